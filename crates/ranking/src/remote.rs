//! The order of one part in Redis, as the one server sees it that publishes to it.
//!
//! What was committed and could not be published waits here, in order, and nobody is told a rank meanwhile: it would be
//! wrong. Whoever keeps periods publishes it again, or loads the part anew where Redis has lost it; both are harmless
//! to repeat, because a change that is not newer than what is there does nothing. Not here: when that is tried, and where
//! records come from.

use crate::memory::{Movement, Published};
use crate::reads::Reads;
use crate::redis::{Loader, RankingError, RedisPart, VersionedMovement};
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tally_rules::{PlayerId, Record};

/// Changes that may wait; past it the part is loaded anew, which costs less.
const WAITING_MAX: usize = 100_000;
/// Room for the changes of one player in one transaction: their versions lie between that of the transaction and the
/// next one's. A transaction's version is microseconds since 1970, so 52 bits are left for it.
const TURN_BITS: u32 = 12;
const LAST_TURN: u64 = (1 << TURN_BITS) - 1;

/// The order of one part.
#[derive(Debug)]
pub struct Remote {
    part: RedisPart,
    /// How many players it had when somebody looked last.
    total: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    phase: Phase,
    /// Committed and not published yet, oldest first.
    waiting: Vec<VersionedMovement>,
    /// The transaction that is being published.
    version: u64,
    /// How often it has changed each player so far.
    turns: HashMap<PlayerId, u64>,
}

/// What is in Redis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// Nothing to rely on. What is committed now is read by whoever loads it later.
    #[default]
    Lost,
    /// Rows are on their way, and so are changes.
    Loading,
    /// The same, but a change did not arrive.
    Failed,
    /// Everything but what waits.
    Ready,
}

impl Remote {
    /// An order that has yet to be loaded.
    pub(crate) fn new(part: RedisPart) -> Self {
        Self { part, total: AtomicU64::new(0), state: Mutex::default() }
    }

    /// How many players it had when it was published to last.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Asks it.
    pub fn read<T>(&self, with: impl FnOnce(&dyn Reads) -> T) -> Result<T, RankingError> {
        if self.is_behind() {
            return Err(RankingError::Loading);
        }
        let answer = self.part.read(with);
        if matches!(answer, Err(RankingError::Lost)) {
            self.lock().lose();
        }
        answer
    }

    /// Publishes changes of one transaction, in order.
    pub(crate) fn publish(
        &self,
        movements: &[Movement],
        version: u64,
        published: impl FnMut(usize, Published),
    ) {
        let mut state = self.lock();
        if movements.is_empty() || state.phase == Phase::Lost {
            return;
        }
        let movements: Vec<VersionedMovement> =
            movements.iter().map(|movement| state.versioned(movement.clone(), version)).collect();
        if !state.waiting.is_empty() {
            return state.wait(movements);
        }
        let done = self.part.publish(&movements, published);
        match (state.phase, done) {
            (Phase::Ready, Ok(_)) => self.count(),
            (Phase::Ready, Err(RankingError::Lost)) => state.lose(),
            (Phase::Ready, Err(_)) => state.wait(movements),
            (_, Ok(_)) => {}
            (_, Err(_)) => state.phase = Phase::Failed,
        }
    }

    /// Whether something has to be done before it can be asked.
    pub fn is_behind(&self) -> bool {
        let state = self.lock();
        state.phase != Phase::Ready || !state.waiting.is_empty()
    }

    /// Whether it has to be loaded anew.
    pub fn is_lost(&self) -> bool {
        self.lock().phase != Phase::Ready
    }

    /// Begins to load it. Records must be read from the store after this.
    pub fn load(&self) -> Result<Loading<'_>, RankingError> {
        // Keyed by chance for each value: that is all that is asked of it.
        let epoch = RandomState::new().build_hasher().finish();
        let loader = self.part.load(epoch)?;
        let mut state = self.lock();
        (state.phase, state.waiting) = (Phase::Loading, Vec::new());
        Ok(Loading { remote: self, loader: Some(loader) })
    }

    /// Publishes what waits, and looks whether Redis still has the rest.
    pub fn catch_up(&self) -> Result<(), RankingError> {
        let mut state = self.lock();
        if state.phase != Phase::Ready {
            return Ok(());
        }
        let done = self.part.publish(&state.waiting, |_, _| {}).and_then(|_| self.part.total());
        match done {
            Ok(total) => {
                state.waiting = Vec::new();
                self.total.store(total, Ordering::Relaxed);
                Ok(())
            }
            Err(RankingError::Lost) => {
                state.lose();
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Forgets those who went before a transaction of that version.
    pub fn purge(&self, before: u64) -> Result<u64, RankingError> {
        self.part.purge(before << TURN_BITS)
    }

    /// Deletes it.
    pub fn forget(&self) -> Result<(), RankingError> {
        self.part.forget()
    }

    /// A total that cannot be asked stays what it was: the next change asks again.
    fn count(&self) {
        if let Ok(total) = self.part.total() {
            self.total.store(total, Ordering::Relaxed);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn versioned(&mut self, movement: Movement, version: u64) -> VersionedMovement {
        if self.version != version {
            (self.version, self.turns) = (version, HashMap::new());
        }
        let turn = self.turns.entry(movement.player.clone()).or_default();
        let version = (version << TURN_BITS) | (*turn).min(LAST_TURN);
        *turn += 1;
        VersionedMovement { movement, version, previous: None }
    }

    fn wait(&mut self, movements: Vec<VersionedMovement>) {
        self.waiting.extend(movements);
        if self.waiting.len() > WAITING_MAX {
            self.lose();
        }
    }

    fn lose(&mut self) {
        (self.phase, self.waiting) = (Phase::Lost, Vec::new());
    }
}

/// A load under way; dropped before its end, it leaves the part to be loaded again.
#[derive(Debug)]
pub struct Loading<'a> {
    remote: &'a Remote,
    loader: Option<Loader>,
}

impl Loading<'_> {
    /// Takes one record with the version of the transaction that wrote it.
    pub fn push(&mut self, player: &PlayerId, record: &Record, version: u64) -> Result<(), RankingError> {
        let loader = self.loader.as_mut().expect("it is there until the load ends");
        // What a transaction leaves is what it did last.
        loader.push(player, record, (version << TURN_BITS) | LAST_TURN)
    }

    /// Makes it readable.
    pub fn finish(mut self) -> Result<(), RankingError> {
        self.loader.take().expect("it is there until the load ends").finish()?;
        let mut state = self.remote.lock();
        if state.phase != Phase::Loading {
            return Err(RankingError::Superseded);
        }
        state.phase = Phase::Ready;
        self.remote.count();
        Ok(())
    }
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        let mut state = self.remote.lock();
        if state.phase != Phase::Ready {
            state.lose();
        }
    }
}
