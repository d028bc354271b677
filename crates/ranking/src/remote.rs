//! The order of one part in Redis, as one of the servers sees it that publish to it.
//!
//! What is there is known to Redis alone: any server may load it, publish to it or lose it, and a change that is not newer
//! than what is there does nothing. So a server publishes whatever it has committed, whether or not it believes the part to
//! be loaded; where Redis says that it is not, whoever loads it reads the change from the store, because its load has yet to
//! begin. What could not be sent waits here, in order, and nobody is told a rank meanwhile: it would be wrong. Each of that is true
//! of a partition: the others are published to and stay. Not here: when that is tried, who loads, and where records come from.

use crate::memory::{Movement, Published};
use crate::page::Ranked;
use crate::reads::Reads;
use crate::redis::{ChangedPlayers, Loader, Outcome, RankingError, RedisWindow, VersionedMovement, Watched};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tally_rules::{PlayerId, Record};

/// Changes that may wait; past it the part is loaded anew, which costs less.
const WAITING_MAX: usize = 100_000;
/// A change that was committed so long ago is not published any more, and the part is loaded anew: who went is forgotten
/// after twice the time, in Redis and in the store, and an older change would bring the player back.
pub const PUBLISHED_WITHIN: Duration = Duration::from_secs(1_800);
/// Transactions that may be published in turn, call by call.
const IN_TURN_MAX: usize = 64;
/// Room for the changes of one player in one transaction: their versions lie between that of the transaction and the
/// next one's. A transaction's version is microseconds since 1970, so 52 bits are left for it.
const TURN_BITS: u32 = 12;
/// What a hidden player's row is to Redis: nobody, and newer than the row itself, which somebody may be publishing late.
const HIDDEN_TURN: u64 = (1 << TURN_BITS) - 1;
/// What a transaction leaves is what it did last.
const ROW_TURN: u64 = HIDDEN_TURN - 1;
const LAST_TURN: u64 = ROW_TURN - 1;

/// The order of one part.
#[derive(Debug)]
pub struct RemoteRanking {
    part: RedisWindow,
    /// Whether something has to be done before it can be asked: what `state` says, without its lock, which is held while
    /// somebody publishes.
    behind: AtomicBool,
    state: Mutex<State>,
}

/// What this server knows.
#[derive(Debug, Default)]
struct State {
    /// Redis has said that it is not loaded, or not all of it.
    lost: bool,
    /// Partitions for which a change was given up, so that only another load makes them whole.
    missed: BTreeSet<usize>,
    /// Committed and not published yet, oldest first, in which partitions, and since when there is any.
    waiting: Vec<VersionedMovement>,
    waiting_in: BTreeSet<usize>,
    waiting_since: Option<Instant>,
    /// The last transactions by version, and how often each has changed each player so far.
    turns: VecDeque<(u64, HashMap<PlayerId, u64>)>,
}

/// What a look at a part has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadState {
    /// It can be asked.
    Ready,
    /// A server loads it, or has begun to.
    Loading,
    /// It has to be loaded.
    Lost,
}

/// A row of the store, for Redis.
#[derive(Clone, Copy, Debug)]
pub struct VersionedRow<'a> {
    /// The player.
    pub player: &'a PlayerId,
    /// The record; none where it was removed.
    pub record: Option<&'a Record>,
    /// The version of the transaction that wrote it.
    pub version: u64,
    /// Whether the player is hidden.
    pub hidden: bool,
}

impl VersionedRow<'_> {
    fn shown(&self) -> Option<Record> {
        self.record.copied().filter(|_| !self.hidden)
    }

    fn version(&self) -> u64 {
        (self.version << TURN_BITS) | if self.hidden { HIDDEN_TURN } else { ROW_TURN }
    }
}

impl RemoteRanking {
    /// An order of which nothing is known here yet.
    pub(crate) fn new(part: RedisWindow) -> Self {
        Self { part, behind: AtomicBool::new(false), state: Mutex::default() }
    }

    /// How many players it had by the last answer.
    pub fn total(&self) -> u64 {
        self.part.known_total()
    }

    /// Asks how many players it has; where that cannot be said now, it stays what is known.
    pub fn count(&self) {
        drop(self.part.total());
    }

    /// Asks it.
    pub fn read<T>(&self, with: impl FnOnce(&dyn Reads) -> T) -> Result<T, RankingError> {
        if self.is_behind() {
            return Err(RankingError::Loading);
        }
        self.noted(self.part.read(with))
    }

    /// The same without keeping a thread waiting; `with` may be run several times.
    pub async fn read_later<T>(&self, with: impl Fn(&dyn Reads) -> T) -> Result<T, RankingError> {
        if self.is_behind() {
            return Err(RankingError::Loading);
        }
        self.noted(self.part.read_later(with).await)
    }

    /// An answer, after what it says of the order is known. Without the lock: who reads must not wait for who publishes. Whoever
    /// looks next asks Redis itself.
    fn noted<T>(&self, answer: Result<T, RankingError>) -> Result<T, RankingError> {
        if matches!(answer, Err(RankingError::Lost)) {
            self.behind.store(true, Ordering::Release);
        }
        answer
    }

    /// A player's place in each of several: those that can be asked are asked all at once.
    pub(crate) fn ranked_in(
        remotes: &[&Self],
        player: &PlayerId,
    ) -> Vec<Result<Option<Ranked>, RankingError>> {
        let asked: Vec<&Self> = remotes.iter().copied().filter(|remote| !remote.is_behind()).collect();
        let items: Vec<(&RedisWindow, &PlayerId)> =
            asked.iter().map(|remote| (&remote.part, player)).collect();
        let mut answers = asked.iter().zip(RedisWindow::ranks_in(&items)).peekable();
        let answer = |remote: &&Self| match answers.next_if(|(asked, _)| std::ptr::eq(**asked, *remote)) {
            Some((_, answer)) => remote.noted(answer),
            None => Err(RankingError::Loading),
        };
        remotes.iter().map(answer).collect()
    }

    /// Publishes changes of one transaction, in order.
    pub(crate) fn publish(
        &self,
        movements: &[Movement],
        version: u64,
        published: impl FnMut(usize, Published),
    ) {
        if movements.is_empty() {
            return;
        }
        self.change(|state| {
            let movements: Vec<VersionedMovement> =
                movements.iter().map(|movement| state.versioned(movement.clone(), version)).collect();
            let left_out = &state.waiting_in | &state.missed;
            let outcome = self.part.publish_but(&left_out, &movements, published);
            state.settle(&self.part, movements, &outcome);
        });
    }

    /// Publishes rows of the store, whichever server wrote them. A repetition is harmless.
    pub fn republish<'a>(
        &self,
        rows: impl IntoIterator<Item = VersionedRow<'a>>,
    ) -> Result<(), RankingError> {
        let movement = |row: VersionedRow<'_>| {
            let movement = Movement { player: row.player.clone(), record: row.shown(), ranked: false };
            VersionedMovement { movement, version: row.version(), previous: None }
        };
        match self.part.publish(&rows.into_iter().map(movement).collect::<Vec<_>>(), |_, _| {}) {
            // A lost ranking is loaded again, and the load reads these rows.
            Ok(_) | Err(RankingError::Lost) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Who has changed since the last look, whichever server published it.
    pub fn changed(&self, watched: &mut Watched) -> Result<ChangedPlayers, RankingError> {
        self.part.changed(watched)
    }

    /// Whether something has to be done before it can be asked.
    pub fn is_behind(&self) -> bool {
        self.behind.load(Ordering::Acquire)
    }

    /// Publishes what waits, and looks whether Redis has the rest.
    pub fn catch_up(&self) -> Result<LoadState, RankingError> {
        self.change(|state| {
            if state.waiting_since.is_some_and(|since| since.elapsed() > PUBLISHED_WITHIN) {
                state.give_up();
            }
            let (waiting, since) = (std::mem::take(&mut state.waiting), state.waiting_since.take());
            state.waiting_in.clear();
            let mut outcome = self.part.publish_but(&state.missed, &waiting, |_, _| {});
            state.settle(&self.part, waiting, &outcome);
            state.waiting_since = state.waiting_since.and(since);
            outcome.failed.retain(|_, error| *error != RankingError::Lost);
            if let Some((_, error)) = outcome.failed.pop_first() {
                return Err(error);
            }
            let look = match self.part.total() {
                Ok(_) if !state.missed.is_empty() => LoadState::Lost,
                Ok(_) => LoadState::Ready,
                Err(RankingError::Loading) => LoadState::Loading,
                Err(RankingError::Lost) => LoadState::Lost,
                Err(error) => return Err(error),
            };
            state.lost = look == LoadState::Lost;
            Ok(look)
        })
    }

    /// What was committed cannot be published any more: it has to be loaded.
    pub fn miss(&self) {
        self.change(|state| {
            state.missed.extend(0..self.part.partitions());
            state.keep_waiting(|_| false);
        });
    }

    /// Begins to load what is lost of it. Rows must be read from the store after this.
    pub fn load(&self) -> Result<RemoteLoad<'_>, RankingError> {
        self.begin(|state, epoch| self.part.load_lost(epoch, &state.missed))
    }

    /// The same of all of it, whatever is there.
    pub fn load_all(&self) -> Result<RemoteLoad<'_>, RankingError> {
        self.begin(|_, epoch| self.part.load(epoch))
    }

    fn begin(
        &self,
        begin: impl FnOnce(&State, u64) -> Result<Loader, RankingError>,
    ) -> Result<RemoteLoad<'_>, RankingError> {
        // Keyed by chance for each value: that is all that is asked of it.
        let epoch = RandomState::new().build_hasher().finish();
        self.change(|state| {
            let loader = begin(state, epoch)?;
            // What was committed before is among the rows that are read now.
            state.missed.retain(|partition| !loader.writes(*partition));
            state.keep_waiting(|one| !loader.writes(self.part.partition_of(&one.movement.player)));
            state.waiting_in.retain(|partition| !loader.writes(*partition));
            Ok(RemoteLoad { remote: self, loader: Some(loader) })
        })
    }

    /// Forgets those who went before a transaction of that version.
    pub fn purge(&self, before: u64) -> Result<u64, RankingError> {
        self.part.purge(before << TURN_BITS)
    }

    /// Deletes it.
    pub fn forget(&self) -> Result<(), RankingError> {
        self.part.forget()
    }

    /// The one way to change the state.
    fn change<T>(&self, with: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let done = with(&mut state);
        let behind = state.lost || !state.missed.is_empty() || !state.waiting.is_empty();
        self.behind.store(behind, Ordering::Release);
        done
    }
}

impl State {
    fn versioned(&mut self, movement: Movement, version: u64) -> VersionedMovement {
        if !self.turns.iter().any(|one| one.0 == version) {
            self.turns.push_back((version, HashMap::new()));
            if self.turns.len() > IN_TURN_MAX {
                self.turns.pop_front();
            }
        }
        let of_this = self.turns.iter_mut().find(|one| one.0 == version).expect("it was just put in");
        let turn = of_this.1.entry(movement.player.clone()).or_default();
        let version = (version << TURN_BITS) | (*turn).min(LAST_TURN);
        *turn += 1;
        VersionedMovement { movement, version, previous: None }
    }

    /// After changes were published, but for those of partitions that miss some or have others waiting: what could not be sent
    /// waits, in order. What is lost is loaded, by a load that has yet to begin and reads the change.
    fn settle(&mut self, part: &RedisWindow, movements: Vec<VersionedMovement>, outcome: &Outcome) {
        self.lost |= outcome.lost;
        if outcome.failed.is_empty() && self.missed.is_empty() && self.waiting_in.is_empty() {
            return;
        }
        let is_away = |at| outcome.failed.get(&at).is_some_and(|error| *error != RankingError::Lost);
        for one in movements {
            let partition = part.partition_of(&one.movement.player);
            if !self.missed.contains(&partition)
                && (self.waiting_in.contains(&partition) || is_away(partition))
            {
                self.waiting_since.get_or_insert_with(Instant::now);
                self.waiting_in.insert(partition);
                self.waiting.push(one);
            }
        }
        if self.waiting.len() > WAITING_MAX {
            self.give_up();
        }
    }

    /// What waits is not published any more.
    fn give_up(&mut self) {
        self.missed.append(&mut self.waiting_in);
        self.keep_waiting(|_| false);
    }

    fn keep_waiting(&mut self, keep: impl FnMut(&VersionedMovement) -> bool) {
        self.waiting.retain(keep);
        if self.waiting.is_empty() {
            self.waiting_in.clear();
            self.waiting_since = None;
        }
    }
}

/// A load under way; dropped before its end, it leaves the part to be loaded again.
#[derive(Debug)]
pub struct RemoteLoad<'a> {
    remote: &'a RemoteRanking,
    loader: Option<Loader>,
}

impl RemoteLoad<'_> {
    /// Takes one row.
    pub fn push(&mut self, row: VersionedRow<'_>) -> Result<(), RankingError> {
        let loader = self.loader.as_mut().expect("it is there until the load ends");
        match row.shown() {
            Some(record) => loader.push(row.player, &record, row.version()),
            None => loader.push_gone(row.player, row.version()),
        }
    }

    /// Whether nothing is lost any more, so that no row is wanted.
    pub fn is_idle(&self) -> bool {
        self.loader.as_ref().is_some_and(Loader::is_idle)
    }

    /// Makes it readable.
    pub fn finish(mut self) -> Result<(), RankingError> {
        self.loader.take().expect("it is there until the load ends").finish()?;
        self.remote.change(|state| state.lost = false);
        // The total is known from now on; another partition may have been lost meanwhile.
        self.remote.noted(self.remote.part.total()).map(drop)
    }
}

impl Drop for RemoteLoad<'_> {
    fn drop(&mut self) {
        // An end that failed has taken it too: the next look says what is there.
        if self.loader.is_some() {
            self.remote.change(|state| state.lost = true);
        }
    }
}
