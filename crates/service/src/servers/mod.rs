//! Several servers on one store: each applies the changes of others before they matter.
//!
//! Every leaderboard in memory has a revision in the store, and so have the API keys. A background task reads the change feed ten
//! times a second, and reads what has changed again. Three things do not wait for it:
//!
//! - A batch whose transaction finds another revision than in its plan is planned again (`scores/batch/revision_guard`).
//! - A name that is not in memory makes the next read of the feed begin at once, one for all requests that wait.
//! - Responses are rejected when the last read is older than `store.staleness_max`, so that a revoked key ends everywhere.
//!
//! With rankings in memory one server writes, and none of this exists. Not here: what a server that has ended committed and did
//! not publish ([`outbox`]).

pub(crate) mod in_doubt;
pub(crate) mod outbox;
pub(crate) mod redis_claim;
mod unread;

use crate::background::{BackgroundTask, Next};
use crate::backoff::Backoff;
use crate::boards::Board;
use crate::contests::play;
use crate::failure::{Failure, Fault};
use crate::periods::archive;
use crate::periods::scan::Readers;
use crate::tally::Tally;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tally_ranking::WindowRanking;
use tally_rules::Micros;
use tally_rules::instant::SECOND;
use tally_store::{
    BoardNo, BoardRef, Committed, FeedPosition, Loaded, ReadSet, Store, StoreError, Window, WriteSet,
};
use tokio::sync::watch;
use unread::Unread;

/// The pause between two reads of the feed.
const POLL_PAUSE: Duration = Duration::from_millis(100);
/// How long a request waits for a read of the feed.
const REFRESH_MAX: Duration = Duration::from_secs(1);
/// The least age of the state at which responses end while there are no API keys. Only this machine has access then, and a pause
/// of it should not stop responses. With keys the age is `store.staleness_max`.
const STALENESS_OPEN: Duration = Duration::from_secs(10);
/// Boards that are read again in one round.
const BOARDS_AT_ONCE: usize = 100;
/// The time for boards in one round. Responses do not wait for them: a batch on an older board is planned again.
const READ_MAX: Duration = Duration::from_millis(300);
/// The store keeps deleted boards for twice as long; a server with a longer pause reads everything.
const FOLLOWED_MAX: i64 = 1_800 * SECOND;

/// How often a transaction that met the change of another server is tried.
pub(crate) const ATTEMPTS_MAX: u32 = 8;
/// How long failed attempts of a request may take in all. One that waited in vain for other batches took as long by itself.
const TRIED_MAX: Duration = Duration::from_secs(10);

/// The background task that follows other servers, and the requests that wait for it.
#[derive(Debug)]
pub(crate) struct Follower {
    base: Instant,
    /// When the last successful read of the feed began, in microseconds after `base`.
    known: AtomicU64,
    rounds: Mutex<Rounds>,
    done: watch::Sender<u64>,
    finished: Condvar,
    task: BackgroundTask,
}

#[derive(Debug, Default)]
struct Rounds {
    begun: u64,
    done: u64,
    stopped: bool,
}

/// How far a server follows.
#[derive(Debug)]
pub(crate) struct Followed {
    position: Vec<FeedPosition>,
    /// Boards that have changed and were not read again yet.
    unread: Unread,
    /// The time of the last read.
    at: Micros,
}

impl Followed {
    /// Begins to follow: later reads of the store are not older.
    pub(crate) fn begin(store: &dyn Store, at: Micros) -> Result<Self, Failure> {
        let mut position = Vec::new();
        loop {
            let changed = store.change_feed(&position)?;
            position = changed.next;
            if !changed.more {
                return Ok(Self { position, unread: Unread::default(), at });
            }
        }
    }

    /// Reads the change feed, and changed API keys again.
    fn read_feed(&mut self, tally: &Tally) -> Result<(), Failure> {
        let now = tally.now();
        if now.0 - self.at.0 > FOLLOWED_MAX {
            self.unread.extend(tally.boards.from_no(BoardNo(0), usize::MAX).iter().map(|board| board.no));
            self.unread.extend(tally.store.boards()?.iter().map(|row| row.no));
        }
        loop {
            let changed = tally.store.change_feed(&self.position)?;
            self.unread.extend(changed.boards);
            if changed.keys {
                tally.keys.reload()?;
            }
            self.position = changed.next;
            if !changed.more {
                break;
            }
        }
        self.at = now;
        Ok(())
    }

    /// Reads changed boards again, for so long that the next round is in time.
    fn read(&mut self, tally: &Tally) -> Result<(), Failure> {
        let (began, mut failed) = (Instant::now(), Ok(()));
        for no in self.unread.next(BOARDS_AT_ONCE) {
            let done = renew_no(tally, no);
            self.unread.tried(no, matches!(done, Ok(true)));
            // Another one may be readable.
            failed = done.map(drop).and(failed);
            if began.elapsed() > READ_MAX {
                break;
            }
        }
        failed
    }
}

impl Follower {
    pub(crate) fn new() -> Self {
        Self {
            base: Instant::now(),
            known: AtomicU64::new(0),
            rounds: Mutex::default(),
            done: watch::Sender::new(0),
            finished: Condvar::new(),
            task: BackgroundTask::default(),
        }
    }

    /// Starts the background task.
    pub(crate) fn start(&self, tally: &Arc<Tally>, mut followed: Followed) -> Result<(), Failure> {
        self.known.store(self.micros(), Ordering::Release);
        let mut backoff = Backoff::new("read changes of other servers");
        self.task.start("servers", tally, Next::After(POLL_PAUSE), move |tally| {
            if let Some(follower) = &tally.follower {
                let polled = follower.poll(tally, &mut followed);
                if polled.is_err() {
                    // A waiting request waits for the pause too: a store that does not respond gets no queries without a pause.
                    std::thread::sleep(POLL_PAUSE);
                }
                backoff.note(polled.err().as_ref());
                follower.ended();
            }
            Next::After(POLL_PAUSE)
        })
    }

    /// Ends after the present round.
    pub(crate) fn stop(&self) {
        self.rounds().stopped = true;
        self.finished.notify_all();
        self.task.stop();
    }

    /// Whether the state in memory was current not long ago; `open` if no key is needed.
    pub(crate) fn may_answer(&self, open: bool, staleness_max: Duration) -> bool {
        let age = self.micros().saturating_sub(self.known.load(Ordering::Acquire));
        let most = if open { staleness_max.max(STALENESS_OPEN) } else { staleness_max };
        u128::from(age) < most.as_micros()
    }

    /// Waits for a round that begins now or later; not for long, if the store does not respond.
    pub(crate) fn refresh_blocking(&self) {
        let number = self.request_round();
        let missing = |rounds: &mut Rounds| rounds.done < number && !rounds.stopped;
        drop(self.finished.wait_timeout_while(self.rounds(), REFRESH_MAX, missing));
    }

    /// The same for a caller that must not block.
    pub(crate) async fn refresh(&self) {
        let (number, mut done) = (self.request_round(), self.done.subscribe());
        drop(tokio::time::timeout(REFRESH_MAX, done.wait_for(|done| *done >= number)).await);
    }

    /// Wakes the task; returns the number of its next round.
    fn request_round(&self) -> u64 {
        let number = self.rounds().begun + 1;
        self.task.wake();
        number
    }

    fn rounds(&self) -> MutexGuard<'_, Rounds> {
        self.rounds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn micros(&self) -> u64 {
        u64::try_from(self.base.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn poll(&self, tally: &Tally, followed: &mut Followed) -> Result<(), Failure> {
        self.rounds().begun += 1;
        let began = self.micros();
        followed.read_feed(tally)?;
        self.known.store(began, Ordering::Release);
        followed.read(tally)
    }

    /// Wakes everything that waits for the present round.
    fn ended(&self) {
        let number = {
            let mut rounds = self.rounds();
            rounds.done = rounds.begun;
            rounds.done
        };
        self.finished.notify_all();
        self.done.send_replace(number);
    }
}

/// Brings a board to its stored state: it may be new, changed or deleted. False while a batch changes it.
fn renew_no(tally: &Tally, no: BoardNo) -> Result<bool, Failure> {
    let broken = |rejection: tally_rules::Rejection| Fault::Broken(rejection.detail());
    let known = tally.boards.by_no(no);
    let at = known.as_ref().and_then(|board| board.known());
    match (tally.store.board(BoardRef::No(no), at.as_ref())?, known) {
        (Some(state), Some(board)) => {
            play::load(&*tally.store, &board)?;
            // The feed of an unavailable database is read later.
            Ok(board.renew(&state).map_err(broken)? && state.revisions.unreached().is_empty())
        }
        (Some(state), None) => {
            let board = Board::new(state.row.clone(), Vec::new(), &tally.settings.ranking).map_err(broken)?;
            play::load(&*tally.store, &board)?;
            board.renew(&state).map_err(broken)?;
            tally.boards.set(&state.row.id, Some(Arc::new(board)));
            Ok(true)
        }
        (None, Some(board)) => {
            // The server that deleted it has forgotten its rankings. The name may have another board by now.
            tally.boards.set_gone(&board);
            Ok(true)
        }
        (None, None) => Ok(true),
    }
}

/// Brings a shared board to its stored state; returns whether it still exists. The state of an unavailable database stays as
/// cached, see [`Revisions::unreached`](tally_store::Revisions::unreached).
pub(crate) fn renew(store: &dyn Store, board: &Board) -> Result<bool, Failure> {
    if !board.is_shared() {
        return Ok(true);
    }
    let Some(state) = store.board(BoardRef::No(board.no), board.known().as_ref())? else { return Ok(false) };
    // Before its revision, so that the state in memory is not older than it.
    play::load(store, board)?;
    board.renew(&state).map_err(|rejection| Fault::Broken(rejection.detail()))?;
    Ok(true)
}

/// Runs a transaction; again after a conflict, or if its reply was lost and it was not done.
pub(crate) fn run(
    store: &dyn Store,
    plan: &ReadSet,
    decide: &mut dyn FnMut(&Loaded) -> WriteSet,
) -> Result<Committed, StoreError> {
    let mut tries = 1;
    loop {
        match store.run(plan, decide) {
            Err(StoreError::Conflict(_)) if tries < ATTEMPTS_MAX => {
                std::thread::sleep(tally_lanes::backoff(tries))
            }
            Err(StoreError::InDoubt { batch, why }) => match store.resolve(&batch) {
                Ok(Some(done)) => return Ok(done),
                Ok(None) if tries < ATTEMPTS_MAX => {}
                Ok(None) => return Err(StoreError::Unavailable(why)),
                Err(_) => return Err(StoreError::InDoubt { batch, why }),
            },
            done => return done,
        }
        tries += 1;
    }
}

/// Retries after a conflict with another server.
pub(crate) fn again<T>(mut once: impl FnMut() -> Result<T, Failure>) -> Result<T, Failure> {
    let (mut tries, began) = (1, Instant::now());
    loop {
        match once() {
            Err(Failure::Fault(Fault::Contention(_)))
                if tries < ATTEMPTS_MAX && began.elapsed() < TRIED_MAX =>
            {
                std::thread::sleep(tally_lanes::backoff(tries));
            }
            done => return done,
        }
        tries += 1;
    }
}

/// Makes the ranking of a new window readable. In memory it is empty, because no other server writes. Redis may have one of a
/// deleted store under its number. Or another server opens the same window now; its rows are read too. If this fails, the next
/// round for lagging rankings does it.
pub(crate) fn load_ranking(store: &dyn Store, board: &Board, window: Window, ranking: &WindowRanking) {
    if ranking.remote().is_some() {
        drop(archive::fill(store, board, window, ranking, Readers::Few, |_| {}));
    }
}
