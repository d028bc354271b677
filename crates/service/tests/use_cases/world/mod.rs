//! A service with a clock of the test's own, on a real store.

use std::future::Future;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use tally_rules::clock::Reading;
use tally_rules::definition::BoardSpec;
use tally_rules::idempotency::{Fingerprint, IdempotencyKey, RequestKey};
use tally_rules::instant::SECOND;
use tally_rules::period::{PeriodPrizes, PeriodRule};
use tally_rules::score::ScoreInput;
use tally_rules::{BoardId, Micros, Origin, PlayerId, Rejection};
use tally_service::clock::{Boot, TimeSource};
use tally_service::periods::view::View;
use tally_service::scores::submit::NewScore;
use tally_service::secret::Secret;
use tally_service::{Clock, Failure, Keys, Progress, Settings, Tally, boards};
use tally_store::Store;
use tally_store::sqlite::{Options, SqliteStore};
use tally_testkit::wait_until;
use tokio::runtime::Runtime;

/// A day of 24 hours.
pub(crate) const DAY: i64 = 86_400 * SECOND;

/// Clocks of the test's own: monotonic time, and how far wall time is ahead of it.
pub(crate) struct Clocks {
    pub(crate) now: Arc<AtomicI64>,
    pub(crate) ahead: Arc<AtomicI64>,
    pub(crate) boot: bool,
}

impl TimeSource for Clocks {
    fn read(&self) -> Reading {
        let monotonic = self.now.load(Ordering::SeqCst);
        Reading { wall: Micros(monotonic + self.ahead.load(Ordering::SeqCst)), monotonic }
    }

    fn boot(&self) -> Option<Boot> {
        self.boot.then(|| Boot { id: "one".into(), micros: self.now.load(Ordering::SeqCst) })
    }
}

/// The service with its clock.
pub(crate) struct World {
    folder: tempfile::TempDir,
    now: Arc<AtomicI64>,
    ahead: Arc<AtomicI64>,
    boot: bool,
    lanes: usize,
    runtime: Runtime,
    tally: Mutex<Option<Arc<Tally>>>,
}

impl World {
    /// A running service at that instant.
    pub(crate) fn new(now: i64) -> Self {
        Self::with_lanes(now, 1)
    }

    /// The same with so many lanes of scores.
    pub(crate) fn with_lanes(now: i64, lanes: usize) -> Self {
        Self::with_ahead(now, lanes, &Arc::default(), false)
    }

    /// The same with a wall clock that the caller sets: so far ahead of monotonic time; with `boot` that one
    /// counts on between processes.
    pub(crate) fn with_ahead(now: i64, lanes: usize, ahead: &Arc<AtomicI64>, boot: bool) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (now, ahead) = (Arc::new(AtomicI64::new(now)), Arc::clone(ahead));
        let world = Self { folder, now, ahead, boot, lanes, runtime, tally: Mutex::new(None) };
        world.start();
        world
    }

    /// Starts on the stored state.
    pub(crate) fn start(&self) {
        let store = SqliteStore::open(&self.folder.path().join("t.db"), &Options::default()).unwrap();
        let store: Arc<dyn Store> = Arc::new(store);
        let clock = Clock::new(Clocks {
            now: Arc::clone(&self.now),
            ahead: Arc::clone(&self.ahead),
            boot: self.boot,
        });
        let settings = Settings { lanes: self.lanes, ..Settings::default() };
        let secret = Secret::new([1; 32]);
        let keys = Keys::load(Arc::clone(&store), secret.clone(), clock.clone(), &settings).unwrap();
        let (keys, progress) = (Arc::new(keys), Progress::default());
        let tally = Tally::start(store, keys, clock, settings, &progress).unwrap();
        *self.tally.lock().unwrap() = Some(tally);
    }

    /// Drains and closes.
    pub(crate) fn stop(&self) {
        let tally = self.tally.lock().unwrap().take().unwrap();
        tally.drain();
        // A task that blocked on the store may hold it for a moment.
        wait_until("no other has the service", || Arc::strong_count(&tally) == 1);
    }

    /// The service.
    pub(crate) fn tally(&self) -> Arc<Tally> {
        Arc::clone(self.tally.lock().unwrap().as_ref().unwrap())
    }

    /// The time.
    pub(crate) fn now(&self) -> Micros {
        Micros(self.now.load(Ordering::SeqCst) + self.ahead.load(Ordering::SeqCst))
    }

    /// The clock, for a task that moves it.
    pub(crate) fn clock(&self) -> Arc<AtomicI64> {
        Arc::clone(&self.now)
    }

    /// Lets time pass.
    pub(crate) fn advance(&self, micros: i64) {
        self.now.fetch_add(micros, Ordering::SeqCst);
    }

    /// Runs to the end.
    pub(crate) fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Puts the board.
    pub(crate) fn put(&self, spec: &BoardSpec) -> Result<(), Failure> {
        let (tally, spec) = (self.tally(), spec.clone());
        let put = move || boards::put(&tally, &board(), &spec, &Origin::BACKGROUND, None).map(drop);
        self.wait(async { tokio::task::spawn_blocking(put).await.unwrap() })
    }

    /// A window of the board.
    pub(crate) fn view(&self, period: &str) -> Result<View, Rejection> {
        let found = self.tally().boards.get(&board()).unwrap();
        View::find(&found, Some(period), self.now(), |_| None)
    }

    /// A score of now for the board.
    pub(crate) fn score(&self, name: &str, score: ScoreInput) -> NewScore {
        let (subscore, at, idempotency) = (None, None, None);
        NewScore { board: board(), player: player(name), score, subscore, at, idempotency }
    }
}

/// The one board.
pub(crate) fn board() -> BoardId {
    BoardId::new("b").unwrap()
}

/// A player.
pub(crate) fn player(name: &str) -> PlayerId {
    PlayerId::new(name).unwrap()
}

/// A request of that key; the fingerprint is the same for all.
pub(crate) fn idempotency(key: &str) -> IdempotencyKey {
    let key = RequestKey { scope: "test".into(), key: key.into() };
    IdempotencyKey { key, fingerprint: Fingerprint([0; 16]).into() }
}

/// A rule.
pub(crate) fn rule(name: &str, schedule: &str, zone: &str, keep: u32, grace_s: u32) -> PeriodRule {
    let (schedule, time_zone, prizes) = (schedule.into(), zone.into(), PeriodPrizes::default());
    PeriodRule { no: 0, name: name.into(), schedule, time_zone, keep, grace_s, prizes }
}
