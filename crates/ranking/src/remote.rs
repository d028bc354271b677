//! The ranking of one window in Redis, as one of the servers that publish to it sees it.
//!
//! Only Redis knows what it has: any server may load it, publish to it or lose it, and a change that is not newer does
//! nothing. So a server publishes whatever it has committed, whether or not it considers the window loaded. If Redis
//! lacks the window, a later load reads the change from the store. Changes that could not be sent wait here, in order.
//! No rank is reported meanwhile, because it would be wrong. All this holds for each partition alone. Not here: when to
//! retry, which server loads, and where records come from.

use crate::memory::{Published, RankingChange};
use crate::page::Ranked;
use crate::reads::Reads;
use crate::redis::{
    ChangedPlayers, Loader, PublishOutcome, RankingError, RedisWindow, VersionedChange, Watched,
};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tally_rules::{PlayerId, Record};

/// Maximum waiting changes. With more the window is loaded again, which costs less.
const WAITING_MAX: usize = 100_000;
/// The maximum age of a change that is published; after that the window is loaded again. Tombstones are deleted after
/// twice the time, in Redis and in the store, and an older change would bring the player back.
pub const PUBLISHED_WITHIN: Duration = Duration::from_secs(1_800);
/// Maximum transactions that are published at the same time, each in several calls.
const VERSIONS_MAX: usize = 64;
/// Bits for the changes of one player in one transaction: their versions are between that of the transaction and the
/// next. A transaction's version is in microseconds since 1970, so 52 bits are left for it.
const SEQUENCE_BITS: u32 = 12;
/// The row of a banned player is a tombstone in Redis. It is newer than the row, which a server may publish late.
const BANNED_SEQUENCE: u64 = (1 << SEQUENCE_BITS) - 1;
/// A row is the last change of its transaction.
const ROW_SEQUENCE: u64 = BANNED_SEQUENCE - 1;
const LAST_SEQUENCE: u64 = ROW_SEQUENCE - 1;

/// The ranking of one window.
#[derive(Debug)]
pub struct RemoteRanking {
    window: RedisWindow,
    /// Whether something must be done before a query. It summarizes `state` without its lock, which is held while
    /// publishing.
    lagging: AtomicBool,
    state: Mutex<State>,
}

/// The state that this server knows.
#[derive(Debug, Default)]
struct State {
    /// Redis has reported that it is not loaded, at least in part.
    lost: bool,
    /// Partitions with a dropped change, which only another load completes.
    missed: BTreeSet<usize>,
    /// Committed changes that are not published yet, oldest first; their partitions, and since when there are any.
    waiting: Vec<VersionedChange>,
    waiting_in: BTreeSet<usize>,
    waiting_since: Option<Instant>,
    /// The last transactions by version, with the number of changes of each player so far.
    sequences: VecDeque<(u64, HashMap<PlayerId, u64>)>,
}

/// The state of a window in Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadState {
    /// It can be queried.
    Ready,
    /// A server loads it, or has begun to.
    Loading,
    /// It must be loaded.
    Lost,
}

/// A row of the store, for Redis.
#[derive(Clone, Copy, Debug)]
pub struct VersionedRow<'a> {
    /// The player.
    pub player: &'a PlayerId,
    /// The record; `None` if it was removed.
    pub record: Option<&'a Record>,
    /// The version of the transaction that wrote it.
    pub version: u64,
    /// Whether the player is banned.
    pub banned: bool,
}

impl VersionedRow<'_> {
    fn shown(&self) -> Option<Record> {
        self.record.copied().filter(|_| !self.banned)
    }

    fn version(&self) -> u64 {
        (self.version << SEQUENCE_BITS) | if self.banned { BANNED_SEQUENCE } else { ROW_SEQUENCE }
    }
}

impl RemoteRanking {
    /// A ranking in an unknown state.
    pub(crate) fn new(window: RedisWindow) -> Self {
        Self { window, lagging: AtomicBool::new(false), state: Mutex::default() }
    }

    /// The number of players by the last answer.
    pub fn total(&self) -> u64 {
        self.window.known_total()
    }

    /// Queries the number of players. After an error the last one stays.
    pub fn count(&self) {
        drop(self.window.total());
    }

    /// Runs queries.
    pub fn read<T>(&self, with: impl FnOnce(&dyn Reads) -> T) -> Result<T, RankingError> {
        if self.is_lagging() {
            return Err(RankingError::Loading);
        }
        self.noted(self.window.read(with))
    }

    /// Like [`Self::read`], without blocking a thread; `with` may run several times.
    pub async fn read_later<T>(&self, with: impl Fn(&dyn Reads) -> T) -> Result<T, RankingError> {
        if self.is_lagging() {
            return Err(RankingError::Loading);
        }
        self.noted(self.window.read_later(with).await)
    }

    /// Notes a loss that an answer reports. This takes no lock, because a read must not wait for a publish. The next
    /// [`Self::catch_up`] queries Redis itself.
    fn noted<T>(&self, answer: Result<T, RankingError>) -> Result<T, RankingError> {
        if matches!(answer, Err(RankingError::Lost)) {
            self.lagging.store(true, Ordering::Release);
        }
        answer
    }

    /// The rank of a player in each of several rankings. Those that can be queried are queried at once.
    pub(crate) fn ranked_in(items: &[(&Self, &PlayerId)]) -> Vec<Result<Option<Ranked>, RankingError>> {
        let loaded: Vec<(&Self, &PlayerId)> =
            items.iter().copied().filter(|(remote, _)| !remote.is_lagging()).collect();
        let windows: Vec<(&RedisWindow, &PlayerId)> =
            loaded.iter().map(|(remote, player)| (&remote.window, *player)).collect();
        let mut answers = loaded.iter().zip(RedisWindow::ranks_in(&windows)).peekable();
        let answer = |(remote, _): &(&Self, &PlayerId)| match answers
            .next_if(|((next, _), _)| std::ptr::eq(*next, *remote))
        {
            Some((_, answer)) => remote.noted(answer),
            None => Err(RankingError::Loading),
        };
        items.iter().map(answer).collect()
    }

    /// Publishes changes of one transaction, in order.
    pub(crate) fn publish(
        &self,
        changes: &[RankingChange],
        version: u64,
        published: impl FnMut(usize, Published),
    ) {
        if changes.is_empty() {
            return;
        }
        self.change(|state| {
            let changes: Vec<VersionedChange> =
                changes.iter().map(|change| state.versioned(change.clone(), version)).collect();
            let left_out = &state.waiting_in | &state.missed;
            let outcome = self.window.publish_but(&left_out, &changes, published);
            state.settle(&self.window, changes, &outcome);
        });
    }

    /// Publishes rows of the store, whichever server wrote them. A repetition is harmless.
    pub fn republish<'a>(
        &self,
        rows: impl IntoIterator<Item = VersionedRow<'a>>,
    ) -> Result<(), RankingError> {
        let change = |row: VersionedRow<'_>| {
            let change = RankingChange { player: row.player.clone(), record: row.shown(), ranked: false };
            VersionedChange { change, version: row.version(), previous: None }
        };
        match self.window.publish(&rows.into_iter().map(change).collect::<Vec<_>>(), |_, _| {}) {
            // A lost ranking is loaded again, and the load reads these rows.
            Ok(_) | Err(RankingError::Lost) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The players that changed since the last poll, whichever server published the changes.
    pub fn changed(&self, watched: &mut Watched) -> Result<ChangedPlayers, RankingError> {
        self.window.changed(watched)
    }

    /// Whether something must be done before a query.
    pub fn is_lagging(&self) -> bool {
        self.lagging.load(Ordering::Acquire)
    }

    /// Publishes the waiting changes, and checks whether Redis has the rest.
    pub fn catch_up(&self) -> Result<LoadState, RankingError> {
        self.change(|state| {
            if state.waiting_since.is_some_and(|since| since.elapsed() > PUBLISHED_WITHIN) {
                state.give_up();
            }
            let (waiting, since) = (std::mem::take(&mut state.waiting), state.waiting_since.take());
            state.waiting_in.clear();
            let mut outcome = self.window.publish_but(&state.missed, &waiting, |_, _| {});
            state.settle(&self.window, waiting, &outcome);
            state.waiting_since = state.waiting_since.and(since);
            outcome.failed.retain(|_, error| *error != RankingError::Lost);
            if let Some((_, error)) = outcome.failed.pop_first() {
                return Err(error);
            }
            let load_state = match self.window.total() {
                Ok(_) if !state.missed.is_empty() => LoadState::Lost,
                Ok(_) => LoadState::Ready,
                Err(RankingError::Loading) => LoadState::Loading,
                Err(RankingError::Lost) => LoadState::Lost,
                Err(error) => return Err(error),
            };
            state.lost = load_state == LoadState::Lost;
            Ok(load_state)
        })
    }

    /// Requires a load, because committed changes cannot be published any more.
    pub fn miss(&self) {
        self.change(|state| {
            state.missed.extend(0..self.window.partitions());
            state.keep_waiting(|_| false);
        });
    }

    /// Begins to load the lost partitions. Rows must be read from the store after this.
    pub fn load(&self) -> Result<RemoteLoad<'_>, RankingError> {
        self.begin(|state, epoch| self.window.load_lost(epoch, &state.missed))
    }

    /// Begins to load all partitions, whatever they have.
    pub fn load_all(&self) -> Result<RemoteLoad<'_>, RankingError> {
        self.begin(|_, epoch| self.window.load(epoch))
    }

    fn begin(
        &self,
        begin: impl FnOnce(&State, u64) -> Result<Loader, RankingError>,
    ) -> Result<RemoteLoad<'_>, RankingError> {
        // Each value has random keys, which is enough here.
        let epoch = RandomState::new().build_hasher().finish();
        self.change(|state| {
            let loader = begin(state, epoch)?;
            // Earlier changes are among the rows that the load reads.
            state.missed.retain(|partition| !loader.writes(*partition));
            state.keep_waiting(|one| !loader.writes(self.window.partition_of(&one.change.player)));
            state.waiting_in.retain(|partition| !loader.writes(*partition));
            Ok(RemoteLoad { remote: self, loader: Some(loader) })
        })
    }

    /// Deletes the tombstones before a transaction of that version.
    pub fn purge(&self, before: u64) -> Result<u64, RankingError> {
        self.window.purge(before << SEQUENCE_BITS)
    }

    /// Deletes the ranking.
    pub fn forget(&self) -> Result<(), RankingError> {
        self.window.forget()
    }

    /// The one way to change the state.
    fn change<T>(&self, with: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let done = with(&mut state);
        let lagging = state.lost || !state.missed.is_empty() || !state.waiting.is_empty();
        self.lagging.store(lagging, Ordering::Release);
        done
    }
}

impl State {
    fn versioned(&mut self, change: RankingChange, version: u64) -> VersionedChange {
        if !self.sequences.iter().any(|one| one.0 == version) {
            self.sequences.push_back((version, HashMap::new()));
            if self.sequences.len() > VERSIONS_MAX {
                self.sequences.pop_front();
            }
        }
        let of_this = self.sequences.iter_mut().find(|one| one.0 == version).expect("it was just put in");
        let sequence = of_this.1.entry(change.player.clone()).or_default();
        let version = (version << SEQUENCE_BITS) | (*sequence).min(LAST_SEQUENCE);
        *sequence += 1;
        VersionedChange { change, version, previous: None }
    }

    /// Handles the result of publishing. Changes that could not be sent wait, in order, and so do those of partitions
    /// with waiting changes. Others of lost or missed partitions are dropped, because a later load reads them.
    fn settle(&mut self, window: &RedisWindow, changes: Vec<VersionedChange>, outcome: &PublishOutcome) {
        self.lost |= outcome.lost;
        if outcome.failed.is_empty() && self.missed.is_empty() && self.waiting_in.is_empty() {
            return;
        }
        let is_unavailable = |at| outcome.failed.get(&at).is_some_and(|error| *error != RankingError::Lost);
        for one in changes {
            let partition = window.partition_of(&one.change.player);
            if !self.missed.contains(&partition)
                && (self.waiting_in.contains(&partition) || is_unavailable(partition))
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

    /// Drops the waiting changes. Their partitions must be loaded.
    fn give_up(&mut self) {
        self.missed.append(&mut self.waiting_in);
        self.keep_waiting(|_| false);
    }

    fn keep_waiting(&mut self, keep: impl FnMut(&VersionedChange) -> bool) {
        self.waiting.retain(keep);
        if self.waiting.is_empty() {
            self.waiting_in.clear();
            self.waiting_since = None;
        }
    }
}

/// A load in progress. If it is dropped before its end, the window must be loaded again.
#[derive(Debug)]
pub struct RemoteLoad<'a> {
    remote: &'a RemoteRanking,
    loader: Option<Loader>,
}

impl RemoteLoad<'_> {
    /// Adds a row.
    pub fn push(&mut self, row: VersionedRow<'_>) -> Result<(), RankingError> {
        let loader = self.loader.as_mut().expect("it is there until the load ends");
        match row.shown() {
            Some(record) => loader.push(row.player, &record, row.version()),
            None => loader.push_gone(row.player, row.version()),
        }
    }

    /// Whether nothing is lost, so that no rows are needed.
    pub fn is_idle(&self) -> bool {
        self.loader.as_ref().is_some_and(Loader::is_idle)
    }

    /// Makes the window readable.
    pub fn finish(mut self) -> Result<(), RankingError> {
        self.loader.take().expect("it is there until the load ends").finish()?;
        self.remote.change(|state| state.lost = false);
        // This queries the total; another partition may have been lost meanwhile.
        self.remote.noted(self.remote.window.total()).map(drop)
    }
}

impl Drop for RemoteLoad<'_> {
    fn drop(&mut self) {
        // A failed `finish` has taken it too: the next check finds the state.
        if self.loader.is_some() {
            self.remote.change(|state| state.lost = true);
        }
    }
}
