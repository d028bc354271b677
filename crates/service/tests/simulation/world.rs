//! The server on a simulated disk: its clocks, its start and its end.
//!
//! There are no threads but that of the simulation, which runs the batches of the lanes. So a seed gives the same run again.

use crate::traffic;
use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tally_lanes::LaneLimits;
use tally_rules::Micros;
use tally_rules::clock::Reading;
use tally_rules::ledger::{Currencies, Currency};
use tally_service::clock::TimeSource;
use tally_service::ledger::LedgerSettings;
use tally_service::members::MemberSettings;
use tally_service::members::password::Cost;
use tally_service::secret::Secret;
use tally_service::{Background, Clock, Failure, Keys, LaneByHand, Progress, Settings, Tally};
use tally_store::Store;
use tally_store::sqlite::{self, Options, SqliteStore};
use tally_testkit::SimulatedDisk;
use tally_testkit::disk::scratch_folder;
use tally_testkit::rng::Rng;
use tempfile::TempDir;

const BEGIN: i64 = 1_700_000_000_000_000;

/// Monotonic time, and how far wall time is ahead of it.
#[derive(Debug)]
struct Clocks {
    monotonic: AtomicI64,
    ahead: AtomicI64,
}

struct Source(Arc<Clocks>);

impl TimeSource for Source {
    fn read(&self) -> Reading {
        let monotonic = self.0.monotonic.load(SeqCst);
        Reading { wall: Micros(monotonic + self.0.ahead.load(SeqCst)), monotonic }
    }
}

/// The disk, the clocks and the server.
pub(crate) struct World {
    pub(crate) disk: Arc<SimulatedDisk>,
    clocks: Arc<Clocks>,
    running: Option<(Arc<SqliteStore>, Arc<Tally>)>,
    /// The latest wall time of the run.
    pub(crate) latest: i64,
    /// The maximum number of rows of a batch.
    batch_rows_max: usize,
    folder: Option<TempDir>,
}

pub(crate) fn currency() -> Currency {
    Currency::parse("KRW").unwrap()
}

impl World {
    /// A server on an empty disk.
    pub(crate) fn new(batch_rows_max: usize) -> Self {
        let clocks = Arc::new(Clocks { monotonic: AtomicI64::new(BEGIN), ahead: AtomicI64::new(0) });
        let disk = SimulatedDisk::new();
        let mut world = Self { disk, clocks, running: None, latest: BEGIN, batch_rows_max, folder: None };
        world.start().unwrap();
        world
    }

    /// Starts on the stored state.
    pub(crate) fn start(&mut self) -> Result<(), String> {
        let (disk, background) = (Arc::clone(&self.disk) as _, sqlite::Background::ByHand);
        let options = Options { disk, background, busy_wait: Duration::ZERO, ..Options::default() };
        let path = self.disk.folder().join("tally.db");
        let store = Arc::new(SqliteStore::open(&path, &options).map_err(|error| error.to_string())?);
        let tally = self.start_on(Arc::clone(&store) as _);
        if tally.is_err() {
            // Running lanes end by themselves.
            wait_for_last(&store);
        }
        self.running = Some((store, tally.map_err(|failure| failure.to_string())?));
        Ok(())
    }

    fn start_on(&self, store: Arc<dyn Store>) -> Result<Arc<Tally>, Failure> {
        let clock = Clock::new(Source(Arc::clone(&self.clocks)));
        let lane = LaneLimits { batch_rows_max: self.batch_rows_max, ..LaneLimits::default() };
        let currencies = Currencies::new((currency(), 0), []);
        let ledger = LedgerSettings { currencies, lane, ..LedgerSettings::default() };
        // Each start digests a password.
        let members = MemberSettings { cost: Cost::new(8, 1).unwrap(), ..MemberSettings::default() };
        let background = Background::ByHand(traffic::meanwhile);
        let settings = Settings { background, lane, ledger, members, ..Settings::default() };
        let secret = Secret::new([1; 32]);
        let keys = Keys::load(Arc::clone(&store), secret.clone(), clock.clone(), &settings)?;
        Tally::start(store, Arc::new(keys), clock, settings, &Progress::default())
    }

    /// Drains and closes, if it runs.
    pub(crate) fn stop(&mut self) {
        let Some((store, tally)) = self.running.take() else { return };
        tally.drain();
        wait_for_last(&tally);
        drop(tally);
        wait_for_last(&store);
    }

    /// Cuts the power: the next disk has what this one may have left.
    pub(crate) fn cut(&mut self, rng: &mut Rng) {
        self.disk.stop_at(self.disk.operations() + 1);
        self.stop();
        let folder = scratch_folder();
        let image = folder.path().join("disk");
        self.disk.image(rng, &image).unwrap();
        self.use_disk(&image);
        self.folder = Some(folder);
    }

    fn use_disk(&mut self, image: &Path) {
        self.disk = SimulatedDisk::at(image);
    }

    pub(crate) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    pub(crate) fn tally(&self) -> &Arc<Tally> {
        &self.running.as_ref().unwrap().1
    }

    pub(crate) fn store(&self) -> &SqliteStore {
        &self.running.as_ref().unwrap().0
    }

    pub(crate) fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        let (mut future, mut context) = (pin!(future), Context::from_waker(Waker::noop()));
        loop {
            if let Poll::Ready(done) = future.as_mut().poll(&mut context) {
                return done;
            }
            let stepped = [LaneByHand::Scores(0), LaneByHand::Ledger].map(|lane| self.tally().step(lane));
            assert_ne!(stepped, [false; 2], "nothing is left to do, and there is no answer");
        }
    }

    /// Wall time.
    pub(crate) fn now(&self) -> i64 {
        self.clocks.monotonic.load(SeqCst) + self.clocks.ahead.load(SeqCst)
    }

    pub(crate) fn monotonic(&self) -> i64 {
        self.clocks.monotonic.load(SeqCst) - BEGIN
    }

    /// Lets time pass.
    pub(crate) fn advance(&mut self, micros: i64) {
        self.clocks.monotonic.fetch_add(micros, SeqCst);
        self.latest = self.latest.max(self.now());
    }

    /// Sets wall time ahead by this much.
    pub(crate) fn set_ahead(&mut self, micros: i64) {
        self.clocks.ahead.store(micros, SeqCst);
        self.latest = self.latest.max(self.now());
    }
}

/// Waits until other tasks have dropped it: a task that blocked on the store may hold it for a moment.
fn wait_for_last<T>(one: &Arc<T>) {
    while Arc::strong_count(one) > 1 {
        std::thread::yield_now();
    }
}
