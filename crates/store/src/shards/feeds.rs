//! What other servers have changed on each database, and a board as all of them have it.
//!
//! The first is asked and waited for: it has the keys and the names. The others are asked at the same time, and one that takes long
//! is not waited for: its changes are heard with a later question, so a database that is away stops no answers that do not need
//! it. Not here: what a database has not been told (`directory`).

use super::Inner;
use super::directory::Told;
use super::split::FIRST;
use crate::mysql::MySqlStore;
use crate::servers::{Bans, BoardRef, BoardState, FeedPage, FeedPosition, Revisions};
use crate::{Coordination, StoreError};
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long one of the others is waited for.
const PATIENCE: Duration = Duration::from_millis(200);

/// An answer that is on its way from a database.
type Asked = Receiver<Result<FeedPage, StoreError>>;

/// Questions that were not answered in time.
#[derive(Debug, Default)]
pub(super) struct Feeds(Mutex<BTreeMap<usize, Asked>>);

impl Inner {
    /// See [`Store::changed`].
    pub(super) fn change_feed(&self, after: &[FeedPosition]) -> Result<FeedPage, StoreError> {
        let mut feeds = self.feeds.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = |shard: usize| after.get(shard).copied().unwrap_or_default();
        for shard in 1..self.all.len() {
            if !feeds.contains_key(&shard) && !self.breaker.is_recent(shard) {
                feeds.insert(shard, ask(&self.all[shard], at(shard))?);
            }
        }
        let mut changed = self.all[FIRST].change_feed(&[at(FIRST)])?;
        changed.next.extend((1..self.all.len()).map(at));
        // One deadline for all of them.
        let deadline = Instant::now() + PATIENCE;
        for shard in 1..self.all.len() {
            let Some(asked) = feeds.remove(&shard) else { continue };
            match asked.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(Ok(there)) => {
                    self.breaker.take(shard);
                    changed.next[shard] = there.next.first().copied().unwrap_or_default();
                    changed.boards.extend(there.boards);
                    changed.more |= there.more;
                }
                Ok(Err(error)) => {
                    self.breaker.put(shard);
                    tracing::debug!(%error, shard, "ask what has changed; it is asked again");
                }
                Err(RecvTimeoutError::Timeout) => drop(feeds.insert(shard, asked)),
                Err(RecvTimeoutError::Disconnected) => {}
            }
        }
        Ok(changed)
    }

    /// See [`Store::board`]. A database that does not know it as the first does is told.
    pub(super) fn board(
        &self,
        name: BoardRef<'_>,
        known: Option<&Revisions>,
    ) -> Result<Option<BoardState>, StoreError> {
        let of = |shard: usize, known: Option<&Revisions>| {
            known.map(|known| Revisions::new(vec![known.of(shard)]))
        };
        let ask = |shard: usize, name: BoardRef<'_>, known: Option<&Revisions>| {
            self.ask(shard, |store| store.board(name, of(shard, known).as_ref()))
        };
        let Some(first) = ask(FIRST, name, known)? else {
            if let BoardRef::No(no) = name {
                for shard in 1..self.all.len() {
                    if ask(shard, name, known)?.is_some() {
                        self.sync(shard, &Told::of_board(no))?;
                    }
                }
            }
            return Ok(None);
        };
        let name = BoardRef::No(first.row.no);
        let mut all = vec![first];
        for shard in 1..self.all.len() {
            let is_told = |state: &BoardState| state.row.definition == all[FIRST].row.definition;
            // Whoever follows the changes must not wait for a database that is away.
            self.refuse_recent(shard, true)?;
            if self.feeds.0.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&shard) {
                return Err(self.away(shard, true, "it has not said yet what has changed".into()));
            }
            let mut there = ask(shard, name, known)?;
            if !there.as_ref().is_some_and(is_told) {
                self.sync(shard, &Told::of_board(all[FIRST].row.no))?;
                there = ask(shard, name, known)?;
            }
            let changing = || StoreError::Conflict("a board is made and deleted by others".into());
            all.push(there.ok_or_else(changing)?);
        }
        if known.is_some() && all.iter().any(|state| matches!(state.bans, Bans::All(_))) {
            // One of them has forgotten what was lifted.
            return self.board(name, None);
        }
        Ok(Some(merged(all, known)))
    }
}

/// Asks one database in a thread, whose answer can be waited for.
fn ask(store: &Arc<MySqlStore>, after: FeedPosition) -> Result<Asked, StoreError> {
    let (answer, asked) = sync_channel(1);
    let store = Arc::clone(store);
    let run = move || drop(answer.send(store.change_feed(&[after])));
    let thread = std::thread::Builder::new().name("feed".into()).spawn(run);
    thread.map_err(|error| StoreError::Unavailable(format!("start a thread: {error}")))?;
    Ok(asked)
}

/// A board of all databases, the first one's first.
fn merged(all: Vec<BoardState>, known: Option<&Revisions>) -> BoardState {
    let row = all[FIRST].row.clone();
    let revisions = Revisions::new(all.iter().map(|state| state.revisions.of(0)).collect());
    let (mut banned, mut changes, mut windows) = (Vec::new(), Vec::new(), BTreeMap::new());
    for state in all {
        match state.bans {
            Bans::All(players) => banned.extend(players),
            Bans::Since { changes: some, .. } => changes.extend(some),
        }
        for window in state.windows {
            // A period's row of the first database holds; one that has only begun may be on any.
            windows.entry(window.window).or_insert(window);
        }
    }
    banned.sort_unstable();
    changes.sort_unstable();
    let bans = match known {
        Some(known) => Bans::Since { revisions: known.clone(), changes },
        None => Bans::All(banned),
    };
    BoardState { row, revisions, bans, windows: windows.into_values().collect() }
}
