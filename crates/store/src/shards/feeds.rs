//! The change feeds of all shards, and a board merged from all shards.
//!
//! A read always waits for the first shard, which has the keys and the names. It reads the others at the same time and waits
//! for them briefly. A late answer is used by a later call, so an unavailable shard does not block answers that do not need
//! it. Not here: changes that did not reach a shard (`directory`).

use super::Inner;
use super::directory::{Delta, no_bans};
use super::split::FIRST;
use crate::mysql::MySqlStore;
use crate::plan::{BoardNo, WindowKey, WindowRow};
use crate::servers::{Bans, BoardRef, BoardState, FeedPage, FeedPosition, Revisions};
use crate::{Coordination, ShardSet, StoreError};
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The maximum wait for the other shards.
const PATIENCE: Duration = Duration::from_millis(200);

/// A pending answer of a shard.
type PendingFeed = Receiver<Result<FeedPage, StoreError>>;

/// The requests that were not answered in time, by shard.
#[derive(Debug, Default)]
pub(super) struct Feeds(Mutex<BTreeMap<usize, PendingFeed>>);

impl Inner {
    /// See [`Coordination::change_feed`].
    pub(super) fn change_feed(&self, after: &[FeedPosition]) -> Result<FeedPage, StoreError> {
        let mut feeds = self.feeds.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = |shard: usize| after.get(shard).copied().unwrap_or_default();
        for shard in 1..self.all.len() {
            if !feeds.contains_key(&shard) && !self.breaker.is_recent(shard) {
                feeds.insert(shard, request_feed(&self.all[shard], at(shard))?);
            }
        }
        let mut changed = self.all[FIRST].change_feed(&[at(FIRST)])?;
        changed.next.extend((1..self.all.len()).map(at));
        // One deadline for all of them.
        let deadline = Instant::now() + PATIENCE;
        for shard in 1..self.all.len() {
            let Some(pending) = feeds.remove(&shard) else { continue };
            match pending.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(Ok(there)) => {
                    self.breaker.take(shard);
                    changed.next[shard] = there.next.first().copied().unwrap_or_default();
                    changed.boards.extend(there.boards);
                    changed.more |= there.more;
                }
                Ok(Err(error)) => {
                    self.breaker.put(shard);
                    tracing::debug!(%error, shard, "read the change feed; it is tried again");
                }
                Err(RecvTimeoutError::Timeout) => drop(feeds.insert(shard, pending)),
                Err(RecvTimeoutError::Disconnected) => {}
            }
        }
        Ok(changed)
    }

    /// See [`Coordination::board`]. A shard whose board differs from that of the first shard is updated. An unavailable
    /// shard may keep the cached state of a known board, so players of the other shards are still served.
    pub(super) fn board(
        &self,
        name: BoardRef<'_>,
        known: Option<&Revisions>,
    ) -> Result<Option<BoardState>, StoreError> {
        let known_of = |shard: usize| known.map(|known| Revisions::new(vec![known.of(shard)]));
        let Some(first) = self.query(FIRST, |store| store.board(name, known_of(FIRST).as_ref()))? else {
            if let BoardRef::No(no) = name {
                self.propagate_deletion(no)?;
            }
            return Ok(None);
        };
        let (mut all, mut unreached) = (vec![(FIRST, first)], ShardSet::default());
        for shard in 1..self.all.len() {
            match self.board_there(shard, &all[FIRST].1, known_of(shard).as_ref()) {
                Ok(state) => all.push((shard, state)),
                Err(StoreError::ShardUnavailable { .. }) if known.is_some() => unreached.insert(shard),
                Err(error) => return Err(error),
            }
        }
        if known.is_some() && all.iter().any(|(_, state)| matches!(state.bans, Bans::All(_))) {
            // One of the shards has forgotten which bans were lifted.
            return self.board(name, None);
        }
        Ok(Some(merged(all, known, unreached, self.all.len())))
    }

    /// A board as another shard has it. The shard is updated first if it differs from the first shard.
    fn board_there(
        &self,
        shard: usize,
        first: &BoardState,
        known: Option<&Revisions>,
    ) -> Result<BoardState, StoreError> {
        // A server that reads the change feed must not wait for an unavailable shard.
        if self.feeds.0.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&shard) {
            return Err(self.unavailable(shard, true, "it has not said yet what has changed".into()));
        }
        let read = || self.query_soon(shard, |store| store.board(BoardRef::No(first.row.no), known));
        let is_current = |state: &BoardState| {
            state.row.definition == first.row.definition && not_propagated(first, state).is_empty()
        };
        let mut there = read()?;
        if !there.as_ref().is_some_and(is_current) {
            let closed = there.iter().flat_map(|there| not_propagated(first, there)).collect();
            self.sync(shard, &Delta { closed, ..Delta::of_board(first.row.no) })?;
            there = read()?;
        }
        there.ok_or_else(|| StoreError::Conflict("a board is made and deleted by others".into()))
    }

    /// Propagates a deletion to the other shards. An unavailable shard gets it before the first shard purges the board.
    fn propagate_deletion(&self, no: BoardNo) -> Result<(), StoreError> {
        for shard in 1..self.all.len() {
            match self.query_soon(shard, |store| store.board(BoardRef::No(no), Some(&no_bans()))) {
                Ok(Some(_)) => self.sync(shard, &Delta::of_board(no))?,
                Ok(None) | Err(StoreError::ShardUnavailable { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Periods that the first shard has closed, without a stored ranking yet, and that another shard does not know as closed.
fn not_propagated(first: &BoardState, there: &BoardState) -> Vec<WindowKey> {
    let board = first.row.no;
    let knows =
        |row: &WindowRow| there.windows.iter().any(|known| known.window == row.window && known.closed);
    let over = first.windows.iter().filter(|row| row.closed && row.version == 0 && !knows(row));
    over.map(|row| WindowKey { board, window: row.window }).collect()
}

/// Reads the feed of one shard in a new thread, so that the caller can wait with a deadline.
fn request_feed(store: &Arc<MySqlStore>, after: FeedPosition) -> Result<PendingFeed, StoreError> {
    let (answer, pending) = sync_channel(1);
    let store = Arc::clone(store);
    let run = move || drop(answer.send(store.change_feed(&[after])));
    let thread = std::thread::Builder::new().name("feed".into()).spawn(run);
    thread.map_err(|error| StoreError::Unavailable(format!("start a thread: {error}")))?;
    Ok(pending)
}

/// Merges the state of a board from all shards that answered, the first shard's first. A shard that did not answer keeps its
/// known revision.
fn merged(
    all: Vec<(usize, BoardState)>,
    known: Option<&Revisions>,
    unreached: ShardSet,
    shards: usize,
) -> BoardState {
    let row = all[FIRST].1.row.clone();
    let mut revisions: Vec<u64> = (0..shards).map(|shard| known.map_or(0, |known| known.of(shard))).collect();
    let (mut banned, mut changes, mut windows) = (Vec::new(), Vec::new(), BTreeMap::new());
    for (shard, state) in all {
        revisions[shard] = state.revisions.of(0);
        match state.bans {
            Bans::All(players) => banned.extend(players),
            Bans::Since { changes: some, .. } => changes.extend(some),
        }
        for window in state.windows {
            // The row of a period on the first shard counts; an open period may be on any shard.
            windows.entry(window.window).or_insert(window);
        }
    }
    banned.sort_unstable();
    changes.sort_unstable();
    let bans = match known {
        Some(known) => Bans::Since { revisions: known.clone(), changes },
        None => Bans::All(banned),
    };
    let revisions = Revisions::new(revisions).without(unreached);
    BoardState { row, revisions, bans, windows: windows.into_values().collect() }
}
