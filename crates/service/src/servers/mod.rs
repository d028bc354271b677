//! Several servers on one store: what the others change is known here before it matters.
//!
//! Everything of a board that is in memory has a revision in the store, and so have the API keys. One thread asks ten times a
//! second what has changed after the last look, and reads that again. Three things do not wait for it: a batch, whose
//! transaction finds another revision than it was planned on and is planned again (`scores/standing`); a name that is not
//! known here, for which the next look is made at once, one for all who wait; and answers, which are refused when the last
//! look was a second ago, so that a revoked key ends everywhere (ten seconds where there are no keys). Where orders are in
//! memory one server writes, and none of this is there. Not here: what was committed and not published by who is gone
//! ([`marks`]).

pub(crate) mod doubts;
pub(crate) mod marks;

use crate::boards::Board;
use crate::contests::play;
use crate::failure::{Failure, Fault};
use crate::periods::order;
use crate::periods::walk::Readers;
use crate::tally::Tally;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tally_ranking::WindowRanking;
use tally_rules::Micros;
use tally_rules::instant::SECOND;
use tally_store::{BoardNo, Changes, Committed, FeedPosition, Loaded, Name, Part, Plan, Store, StoreError};
use tokio::sync::watch;

/// Between two looks.
const LOOK_PAUSE: Duration = Duration::from_millis(100);
/// What was known so long ago is not answered from where there are keys: a revoked one ends within a second on every server.
const KNOWN_MAX: Duration = Duration::from_secs(1);
/// The same where there is none: who may ask what is of one machine then, and a pause of it should not stop answers.
const KNOWN_MAX_OPEN: Duration = Duration::from_secs(10);
/// Boards that are read again in one look.
const BOARDS_AT_ONCE: usize = 100;
/// Boards are read for so long in one look. Answers do not wait for them: a batch on an older board is planned again.
const READ_MAX: Duration = Duration::from_millis(300);
/// The store remembers deleted boards for twice as long; whoever looks less often looks at everything.
const FOLLOWED_MAX: i64 = 1_800 * SECOND;

/// How often what met another one's change is tried again.
pub(crate) const TRIES: u32 = 8;

/// The thread that follows, and who waits for it.
#[derive(Debug)]
pub(crate) struct Follower {
    base: Instant,
    /// When the last look that was answered began, in microseconds after `base`.
    known: AtomicU64,
    looks: Mutex<Looks>,
    wanted: Condvar,
    done: watch::Sender<u64>,
    finished: Condvar,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Looks {
    begun: u64,
    done: u64,
    wanted: bool,
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
            let changed = store.changed(&position)?;
            position = changed.next;
            if !changed.more {
                return Ok(Self { position, left: BTreeSet::new(), at });
            }
        }
    }

    /// Asks what has changed, and reads changed API keys again.
    fn ask(&mut self, tally: &Tally) -> Result<(), Failure> {
        let now = tally.now();
        if now.0 - self.at.0 > FOLLOWED_MAX {
            self.left.extend(tally.boards.from_no(BoardNo(0), usize::MAX).iter().map(|board| board.no));
            self.left.extend(tally.store.boards()?.iter().map(|row| row.no));
        }
        loop {
            let changed = tally.store.changed(&self.position)?;
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

    /// Reads changed boards again, for so long that the next look is in time. The newest come first: a request may wait for a name.
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
            wanted: Condvar::new(),
            done: watch::Sender::new(0),
            finished: Condvar::new(),
            thread: Mutex::default(),
        }
    }

    /// Starts the thread; it ends when it is stopped, or with the service.
    pub(crate) fn start(&self, tally: &Arc<Tally>, followed: Followed) -> std::io::Result<()> {
        self.known.store(self.micros(), Ordering::Release);
        let weak = Arc::downgrade(tally);
        let thread =
            std::thread::Builder::new().name("servers".into()).spawn(move || follow(&weak, followed))?;
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(())
    }

    /// Ends after the present look.
    pub(crate) fn stop(&self) {
        self.looks().stopped = true;
        self.wanted.notify_all();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that follows other servers panicked");
        }
    }

    /// Whether what is known here was the present not long ago; `open` where nobody needs a key.
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

    /// The same for whoever must not block.
    pub(crate) async fn looked_now(&self) {
        let (number, mut done) = (self.want(), self.done.subscribe());
        drop(tokio::time::timeout(KNOWN_MAX, done.wait_for(|done| *done >= number)).await);
    }

    fn want(&self) -> u64 {
        let mut looks = self.looks();
        looks.wanted = true;
        self.wanted.notify_all();
        looks.begun + 1
    }

    fn looks(&self) -> MutexGuard<'_, Looks> {
        self.looks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn micros(&self) -> u64 {
        u64::try_from(self.base.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Waits until it is time for a look; its number, or nothing at the end.
    fn next(&self) -> Option<u64> {
        let calm = |looks: &mut Looks| !looks.wanted && !looks.stopped;
        let waited = self.wanted.wait_timeout_while(self.looks(), LOOK_PAUSE, calm);
        let mut looks = waited.unwrap_or_else(PoisonError::into_inner).0;
        looks.wanted = false;
        looks.begun += 1;
        (!looks.stopped).then_some(looks.begun)
    }

    fn ended(&self, number: u64) {
        self.looks().done = number;
        self.finished.notify_all();
        self.done.send_replace(number);
    }
}

fn follow(tally: &Weak<Tally>, mut followed: Followed) {
    let mut failing = false;
    while let Some(tally) = tally.upgrade() {
        let Some(follower) = &tally.follower else { return };
        let Some(number) = follower.next() else { return };
        let began = follower.micros();
        let looked = followed.ask(&tally).and_then(|()| {
            follower.known.store(began, Ordering::Release);
            followed.read(&tally)
        });
        if let Err(failure) = &looked {
            if !failing {
                tracing::warn!(%failure, "look what other servers have changed; it is tried again");
            }
            std::thread::sleep(LOOK_PAUSE);
        }
        failing = looked.is_err();
        follower.ended(number);
    }
}

/// Brings a board to what is stored: it may be new, changed or gone. Whether that was possible: not while a batch changes
/// it.
fn renew_no(tally: &Tally, no: BoardNo) -> Result<bool, Failure> {
    let broken = |rejection: tally_rules::Rejection| Fault::Broken(rejection.detail());
    let known = tally.boards.by_no(no);
    let at = known.as_ref().and_then(|board| board.known());
    match (tally.store.board(Name::No(no), at.as_ref())?, known) {
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
            // Whoever deleted it has forgotten its orders. The name may have another board by now.
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
    let Some(state) = store.board(Name::No(board.no), board.known().as_ref())? else { return Ok(false) };
    // Before its revision: what is known as of that is not older.
    play::learn(store, board)?;
    board.renew(&state).map_err(|rejection| Fault::Broken(rejection.detail()))?;
    Ok(true)
}

/// Runs a transaction, and again where it met another one, or where its answer was lost and it was not done.
pub(crate) fn run(
    store: &dyn Store,
    plan: &Plan,
    decide: &mut dyn FnMut(&Loaded) -> Changes,
) -> Result<Committed, StoreError> {
    let mut tries = 1;
    loop {
        match store.run(plan, decide) {
            Err(StoreError::Conflict(_)) if tries < TRIES => std::thread::sleep(tally_lanes::backoff(tries)),
            Err(StoreError::LostAtCommit { batch, why }) => match store.became(&batch) {
                Ok(Some(done)) => return Ok(done),
                Ok(None) if tries < TRIES => {}
                Ok(None) => return Err(StoreError::Away(why)),
                Err(_) => return Err(StoreError::LostAtCommit { batch, why }),
            },
            done => return done,
        }
        tries += 1;
    }
}

/// Does something again where it met another server's change.
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

/// Makes the order of a part that is new one that can be asked. In memory it is empty, because nobody else writes. What is
/// elsewhere under its number is of a store that is gone; or of a server that opens the same part now, whose rows are read
/// with the others. Where that fails it is done with the next look at what is behind.
pub(crate) fn open_order(store: &dyn Store, board: &Board, part: Part, order: &WindowRanking) {
    if order.remote().is_some() {
        drop(order::fill(store, board, part, order, Readers::Few, |_| {}));
    }
}
