//! The order of one part in Redis, as one of the servers sees it that publish to it.
//!
//! What is there is known to Redis alone: any server may load it, publish to it or lose it, and a change that is not newer
//! than what is there does nothing. So a server publishes whatever it has committed, whether or not it believes the part to
//! be loaded; where Redis says that it is not, whoever loads it reads the change from the store, because its load has yet to
//! begin. What could not be sent waits here, in order, and nobody is told a rank meanwhile: it would be wrong. Not here:
//! when that is tried, who loads, and where records come from.

use crate::memory::{Movement, Published};
use crate::page::Ranked;
use crate::reads::Reads;
use crate::redis::{Changed, Loader, RankingError, RedisPart, VersionedMovement, Watched};
use std::collections::{HashMap, VecDeque};
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
pub struct Remote {
    part: RedisPart,
    /// Whether something has to be done before it can be asked: what `state` says, without its lock, which is held while
    /// somebody publishes.
    behind: AtomicBool,
    state: Mutex<State>,
}

/// What this server knows.
#[derive(Debug, Default)]
struct State {
    /// Redis has said that it is not loaded.
    lost: bool,
    /// A change was given up, so that only another load makes it whole.
    missed: bool,
    /// Committed and not published yet, oldest first, and since when there is any.
    waiting: Vec<VersionedMovement>,
    waiting_since: Option<Instant>,
    /// The last transactions by version, and how often each has changed each player so far.
    turns: VecDeque<(u64, HashMap<PlayerId, u64>)>,
}

/// What a look at a part has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// It can be asked.
    Ready,
    /// Somebody loads it, or has begun to.
    Loading,
    /// It has to be loaded.
    Lost,
}

/// A row of the store, for Redis.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// Who.
    pub player: &'a PlayerId,
    /// The record; none where it was removed.
    pub record: Option<&'a Record>,
    /// The version of the transaction that wrote it.
    pub version: u64,
    /// Whether the player is hidden.
    pub hidden: bool,
}

impl Row<'_> {
    fn shown(&self) -> Option<Record> {
        self.record.copied().filter(|_| !self.hidden)
    }

    fn version(&self) -> u64 {
        (self.version << TURN_BITS) | if self.hidden { HIDDEN_TURN } else { ROW_TURN }
    }
}

impl Remote {
    /// An order of which nothing is known here yet.
    pub(crate) fn new(part: RedisPart) -> Self {
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
        let items: Vec<(&RedisPart, &PlayerId)> = asked.iter().map(|remote| (&remote.part, player)).collect();
        let mut answers = asked.iter().zip(RedisPart::ranks_in(&items)).peekable();
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
            if state.missed {
                // Whoever loads it reads them.
                return;
            }
            if !state.waiting.is_empty() {
                return state.wait(movements);
            }
            match self.part.publish(&movements, published) {
                Ok(_) => {}
                Err(RankingError::Lost) => state.lost = true,
                Err(_) => state.wait(movements),
            }
        });
    }

    /// Publishes what rows of the store say, whoever wrote them: harmless to repeat.
    pub fn republish<'a>(&self, rows: impl IntoIterator<Item = Row<'a>>) -> Result<(), RankingError> {
        let movement = |row: Row<'_>| {
            let movement = Movement { player: row.player.clone(), record: row.shown(), ranked: false };
            VersionedMovement { movement, version: row.version(), previous: None }
        };
        match self.part.publish(&rows.into_iter().map(movement).collect::<Vec<_>>(), |_, _| {}) {
            // Whoever loads it reads them.
            Ok(_) | Err(RankingError::Lost) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Who has changed since the last look, whichever server published it.
    pub fn changed(&self, watched: &mut Watched) -> Result<Changed, RankingError> {
        self.part.changed(watched)
    }

    /// Whether something has to be done before it can be asked.
    pub fn is_behind(&self) -> bool {
        self.behind.load(Ordering::Acquire)
    }

    /// Publishes what waits, and looks whether Redis has the rest.
    pub fn catch_up(&self) -> Result<Look, RankingError> {
        self.change(|state| {
            if state.waiting_since.is_some_and(|since| since.elapsed() > PUBLISHED_WITHIN) {
                state.miss();
            }
            if state.missed {
                return Ok(Look::Lost);
            }
            let published = self.part.publish(&state.waiting, |_, _| {});
            if matches!(published, Ok(_) | Err(RankingError::Lost)) {
                (state.waiting, state.waiting_since) = (Vec::new(), None);
            }
            let look = match published.and_then(|_| self.part.total()) {
                Ok(_) => Look::Ready,
                Err(RankingError::Loading) => Look::Loading,
                Err(RankingError::Lost) => Look::Lost,
                Err(error) => return Err(error),
            };
            state.lost = look == Look::Lost;
            Ok(look)
        })
    }

    /// What was committed cannot be published any more: it has to be loaded.
    pub fn miss(&self) {
        self.change(State::miss);
    }

    /// Begins to load it. Rows must be read from the store after this.
    pub fn load(&self) -> Result<Loading<'_>, RankingError> {
        // Keyed by chance for each value: that is all that is asked of it.
        let epoch = RandomState::new().build_hasher().finish();
        self.change(|state| {
            let loader = self.part.load(epoch)?;
            // What was committed before is among the rows that are read now.
            (state.missed, state.waiting, state.waiting_since) = (false, Vec::new(), None);
            Ok(Loading { remote: self, loader: Some(loader) })
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
        let behind = state.lost || state.missed || !state.waiting.is_empty();
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

    fn wait(&mut self, movements: Vec<VersionedMovement>) {
        self.waiting_since.get_or_insert_with(Instant::now);
        self.waiting.extend(movements);
        if self.waiting.len() > WAITING_MAX {
            self.miss();
        }
    }

    fn miss(&mut self) {
        (self.missed, self.waiting, self.waiting_since) = (true, Vec::new(), None);
    }
}

/// A load under way; dropped before its end, it leaves the part to be loaded again.
#[derive(Debug)]
pub struct Loading<'a> {
    remote: &'a Remote,
    loader: Option<Loader>,
}

impl Loading<'_> {
    /// Takes one row.
    pub fn push(&mut self, row: Row<'_>) -> Result<(), RankingError> {
        let loader = self.loader.as_mut().expect("it is there until the load ends");
        match row.shown() {
            Some(record) => loader.push(row.player, &record, row.version()),
            None => loader.push_gone(row.player, row.version()),
        }
    }

    /// Makes it readable.
    pub fn finish(mut self) -> Result<(), RankingError> {
        self.loader.take().expect("it is there until the load ends").finish()?;
        self.remote.change(|state| state.lost = false);
        // The total is known from now on.
        self.remote.part.total().map(drop)
    }
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        // An end that failed has taken it too: the next look says what is there.
        if self.loader.is_some() {
            self.remote.change(|state| state.lost = true);
        }
    }
}
