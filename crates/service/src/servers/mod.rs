//! Several servers on one store: each learns what the others change before it matters.
//!
//! Every leaderboard in memory has a revision in the store, and so have the API keys. A background task reads the change feed
//! ten times a second, and reads what has changed again. Three things do not wait for it. A batch whose transaction finds
//! another revision than it was planned on is planned again. (`scores/batch/guard`); a name that is not in memory the next look is made at once,
//! one for all requests that wait. Answers are refused when the last look was a second ago, so that a revoked key ends
//! everywhere (ten seconds where there are no keys). Where rankings are in memory one server writes, and none of this is there.
//! Not here: what a server that has ended committed and did not publish ([`outbox`]).

pub(crate) mod in_doubt;
pub(crate) mod outbox;

use crate::background::{BackgroundTask, Next};
use crate::backoff::Backoff;
use crate::boards::Board;
use crate::contests::play;
use crate::failure::{Failure, Fault};
use crate::periods::archive;
use crate::periods::scan::Readers;
use crate::tally::Tally;
use std::collections::BTreeSet;
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

/// Between two looks.
const LOOK_PAUSE: Duration = Duration::from_millis(100);
/// The age of what may be answered where there are keys: a revoked one ends within a second on every server.
const KNOWN_MAX: Duration = Duration::from_secs(1);
/// The same where there is none: then only this machine has access, and a pause of it should not stop answers.
const KNOWN_MAX_OPEN: Duration = Duration::from_secs(10);
/// Boards that are read again in one look.
const BOARDS_AT_ONCE: usize = 100;
/// Boards are read for so long in one look. Answers do not wait for them: a batch on an older board is planned again.
const READ_MAX: Duration = Duration::from_millis(300);
/// The store remembers deleted boards for twice as long; a server that looks less often reads everything.
const FOLLOWED_MAX: i64 = 1_800 * SECOND;

/// How often a transaction that met the change of another server is tried.
pub(crate) const TRIES: u32 = 8;

/// The background task that follows other servers, and the requests that wait for it.
#[derive(Debug)]
pub(crate) struct Follower {
    base: Instant,
    /// When the last look that was answered began, in microseconds after `base`.
    known: AtomicU64,
    looks: Mutex<Looks>,
    done: watch::Sender<u64>,
    finished: Condvar,
    task: BackgroundTask,
}

#[derive(Debug, Default)]
struct Looks {
    begun: u64,
    done: u64,
    stopped: bool,
}

/// How far a server follows.
#[derive(Debug)]
pub(crate) struct Followed {
    position: Vec<FeedPosition>,
    /// Boards that have changed and were not read again yet.
    left: BTreeSet<BoardNo>,
    /// The time of the last look.
    at: Micros,
}

impl Followed {
    /// Begins to follow: what is read of the store from now on is not older.
    pub(crate) fn begin(store: &dyn Store, at: Micros) -> Result<Self, Failure> {
        let mut position = Vec::new();
        loop {
            let changed = store.change_feed(&position)?;
            position = changed.next;
            if !changed.more {
                return Ok(Self { position, left: BTreeSet::new(), at });
            }
        }
    }

    /// Reads the change feed, and changed API keys again.
    fn ask(&mut self, tally: &Tally) -> Result<(), Failure> {
        let now = tally.now();
        if now.0 - self.at.0 > FOLLOWED_MAX {
            self.left.extend(tally.boards.from_no(BoardNo(0), usize::MAX).iter().map(|board| board.no));
            self.left.extend(tally.store.boards()?.iter().map(|row| row.no));
        }
        loop {
            let changed = tally.store.change_feed(&self.position)?;
            self.left.extend(changed.boards);
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

    /// Reads changed boards again, for so long that the next look is in time. The newest come first: a request may wait for a
    /// name.
    fn read(&mut self, tally: &Tally) -> Result<(), Failure> {
        let (began, mut failed) = (Instant::now(), Ok(()));
        for no in self.left.iter().rev().take(BOARDS_AT_ONCE).copied().collect::<Vec<_>>() {
            match renew_no(tally, no) {
                Ok(true) => drop(self.left.remove(&no)),
                Ok(false) => {}
                // Another one may be readable.
                Err(failure) => failed = Err(failure),
            }
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
            looks: Mutex::default(),
            done: watch::Sender::new(0),
            finished: Condvar::new(),
            task: BackgroundTask::default(),
        }
    }

    /// Starts the background task.
    pub(crate) fn start(&self, tally: &Arc<Tally>, mut followed: Followed) -> Result<(), Failure> {
        self.known.store(self.micros(), Ordering::Release);
        let mut backoff = Backoff::new("look what other servers have changed");
        self.task.start("servers", tally, Next::After(LOOK_PAUSE), move |tally| {
            if let Some(follower) = &tally.follower {
                let looked = follower.look(tally, &mut followed);
                if looked.is_err() {
                    // A request that waits for a look waits with it: a store that does not answer is not asked without a
                    // pause.
                    std::thread::sleep(LOOK_PAUSE);
                }
                backoff.note(looked.err().as_ref());
                follower.ended();
            }
            Next::After(LOOK_PAUSE)
        })
    }

    /// Ends after the present look.
    pub(crate) fn stop(&self) {
        self.looks().stopped = true;
        self.finished.notify_all();
        self.task.stop();
    }

    /// Whether what is in memory was the present not long ago; `open` where no key is needed.
    pub(crate) fn may_answer(&self, open: bool) -> bool {
        let age = self.micros().saturating_sub(self.known.load(Ordering::Acquire));
        let most = if open { KNOWN_MAX_OPEN } else { KNOWN_MAX };
        u128::from(age) < most.as_micros()
    }

    /// Waits for a look that begins now or later; not for long, where the store does not answer.
    pub(crate) fn look_now(&self) {
        let number = self.want();
        let missing = |looks: &mut Looks| looks.done < number && !looks.stopped;
        drop(self.finished.wait_timeout_while(self.looks(), KNOWN_MAX, missing));
    }

    /// The same for a caller that must not block.
    pub(crate) async fn looked_now(&self) {
        let (number, mut done) = (self.want(), self.done.subscribe());
        drop(tokio::time::timeout(KNOWN_MAX, done.wait_for(|done| *done >= number)).await);
    }

    /// Wakes the task; gives the number of its next look.
    fn want(&self) -> u64 {
        let number = self.looks().begun + 1;
        self.task.wake();
        number
    }

    fn looks(&self) -> MutexGuard<'_, Looks> {
        self.looks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn micros(&self) -> u64 {
        u64::try_from(self.base.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn look(&self, tally: &Tally, followed: &mut Followed) -> Result<(), Failure> {
        self.looks().begun += 1;
        let began = self.micros();
        followed.ask(tally)?;
        self.known.store(began, Ordering::Release);
        followed.read(tally)
    }

    /// Wakes everything that waits for the present look.
    fn ended(&self) {
        let number = {
            let mut looks = self.looks();
            looks.done = looks.begun;
            looks.done
        };
        self.finished.notify_all();
        self.done.send_replace(number);
    }
}

/// Brings a board to what is stored: it may be new, changed or deleted. False while a batch changes it.
fn renew_no(tally: &Tally, no: BoardNo) -> Result<bool, Failure> {
    let broken = |rejection: tally_rules::Rejection| Fault::Broken(rejection.detail());
    let known = tally.boards.by_no(no);
    let at = known.as_ref().and_then(|board| board.known());
    match (tally.store.board(BoardRef::No(no), at.as_ref())?, known) {
        (Some(state), Some(board)) => {
            play::learn(&*tally.store, &board)?;
            // A database that was away is heard later.
            Ok(board.renew(&state).map_err(broken)? && state.revisions.unheard().is_empty())
        }
        (Some(state), None) => {
            let board = Board::new(state.row.clone(), Vec::new(), &tally.settings.ranking).map_err(broken)?;
            play::learn(&*tally.store, &board)?;
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

/// Brings a board that is shared to what is stored; whether it is still there. Where a database is away it stays as it is known of
/// that one, see [`Revisions::unheard`](tally_store::Revisions::unheard).
pub(crate) fn renew(store: &dyn Store, board: &Board) -> Result<bool, Failure> {
    if !board.is_shared() {
        return Ok(true);
    }
    let Some(state) = store.board(BoardRef::No(board.no), board.known().as_ref())? else { return Ok(false) };
    // Before its revision: what is in memory as of that is not older.
    play::learn(store, board)?;
    board.renew(&state).map_err(|rejection| Fault::Broken(rejection.detail()))?;
    Ok(true)
}

/// Runs a transaction, and again where it met another one, or where its answer was lost and it was not done.
pub(crate) fn run(
    store: &dyn Store,
    plan: &ReadSet,
    decide: &mut dyn FnMut(&Loaded) -> WriteSet,
) -> Result<Committed, StoreError> {
    let mut tries = 1;
    loop {
        match store.run(plan, decide) {
            Err(StoreError::Conflict(_)) if tries < TRIES => std::thread::sleep(tally_lanes::backoff(tries)),
            Err(StoreError::InDoubt { batch, why }) => match store.resolve(&batch) {
                Ok(Some(done)) => return Ok(done),
                Ok(None) if tries < TRIES => {}
                Ok(None) => return Err(StoreError::Unavailable(why)),
                Err(_) => return Err(StoreError::InDoubt { batch, why }),
            },
            done => return done,
        }
        tries += 1;
    }
}

/// Tries something again where it met another server's change.
pub(crate) fn again<T>(mut once: impl FnMut() -> Result<T, Failure>) -> Result<T, Failure> {
    let mut tries = 1;
    loop {
        match once() {
            Err(Failure::Fault(Fault::Contention(_))) if tries < TRIES => {
                std::thread::sleep(tally_lanes::backoff(tries));
            }
            done => return done,
        }
        tries += 1;
    }
}

/// Makes the ranking of a new window one that can be read. In memory it is empty, because no other server writes. In Redis
/// there may be one of a deleted store under its number; or another server opens the same window now, whose rows are read with
/// the others. Where that fails the next look at lagging rankings does it.
pub(crate) fn open_order(store: &dyn Store, board: &Board, window: Window, order: &WindowRanking) {
    if order.remote().is_some() {
        drop(archive::fill(store, board, window, order, Readers::Few, |_| {}));
    }
}
