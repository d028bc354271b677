//! A service on a simulated disk, with a clock of the test's own. Nothing runs in the background.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tally_ranking::PageQuery;
use tally_rules::definition::BoardSpec;
use tally_rules::instant::SECOND;
use tally_rules::period::{PeriodPrizes, PeriodRule};
use tally_rules::score::ScoreInput;
use tally_rules::{BoardId, Micros, Origin, PlayerId};
use tally_service::boards::Board;
use tally_service::periods::view::View;
use tally_service::players::erase::{ban, erase};
use tally_service::scores::import::{NewChunk, NewLine, import};
use tally_service::scores::remove::remove;
use tally_service::scores::submit::{NewScore, submit};
use tally_service::secret::Secret;
use tally_service::{Background, Clock, Failure, Keys, LaneByHand, Progress, Settings, Tally, boards};
use tally_store::plan::ALL_TIME;
use tally_store::sqlite::{self, Options, SqliteStore};
use tally_store::{Reads, ScoreKey, Store};
use tally_testkit::{GIVE_UP, SimulatedDisk};

/// A day of 24 hours.
pub(crate) const DAY: i64 = 86_400 * SECOND;
/// Periods from midnight to midnight.
pub(crate) const MIDNIGHT: &str = "0 0 * * *";

/// The number of checks whether lanes work again, before the test counts that as a fault of the server.
const ATTEMPTS_MAX: u32 = 1_000_000;

/// The service with its disk and its clock.
pub(crate) struct World {
    pub(crate) disk: Arc<SimulatedDisk>,
    now: Arc<AtomicI64>,
    running: Mutex<Option<(Arc<SqliteStore>, Arc<Tally>)>>,
}

impl World {
    /// A running service at that instant.
    pub(crate) fn new(now: i64) -> Self {
        let (disk, now) = (SimulatedDisk::new(), Arc::new(AtomicI64::new(now)));
        let options = Options {
            disk: Arc::clone(&disk) as _,
            background: sqlite::Background::ByHand,
            busy_wait: Duration::ZERO,
            ..Options::default()
        };
        let store = Arc::new(SqliteStore::open(&disk.folder().join("tally.db"), &options).unwrap());
        let shared: Arc<dyn Store> = Arc::clone(&store) as _;
        let wall = Arc::clone(&now);
        let clock = Clock::of(move || Micros(wall.load(Ordering::SeqCst)));
        let settings = Settings { background: Background::ByHand(|| ()), ..Settings::default() };
        let secret = Secret::new([1; 32]);
        let keys = Keys::load(Arc::clone(&shared), secret.clone(), clock.clone(), &settings).unwrap();
        let progress = Progress::default();
        let tally = Tally::start(shared, Arc::new(keys), clock, settings, &progress).unwrap();
        Self { disk, now, running: Mutex::new(Some((store, tally))) }
    }

    /// Drains and closes.
    pub(crate) fn stop(&self) {
        let (_store, tally) = self.running.lock().unwrap().take().unwrap();
        tally.drain();
    }

    pub(crate) fn tally(&self) -> Arc<Tally> {
        Arc::clone(&self.running.lock().unwrap().as_ref().unwrap().1)
    }

    pub(crate) fn store(&self) -> Arc<SqliteStore> {
        Arc::clone(&self.running.lock().unwrap().as_ref().unwrap().0)
    }

    pub(crate) fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        let (mut future, mut context) = (pin!(future), Context::from_waker(Waker::noop()));
        let began = Instant::now();
        loop {
            if let Poll::Ready(done) = future.as_mut().poll(&mut context) {
                return done;
            }
            assert!(began.elapsed() < GIVE_UP, "it is never answered");
            // Another thread of the test may have run the batch with the reply.
            if !self.tally().step(LaneByHand::Scores(0)) {
                std::thread::yield_now();
            }
        }
    }

    /// Lets time pass.
    pub(crate) fn advance(&self, micros: i64) {
        self.now.fetch_add(micros, Ordering::SeqCst);
    }

    /// Puts the board with a period of that schedule.
    pub(crate) fn put(&self, schedule: &str, keep: u32, prizes: PeriodPrizes) -> Result<(), Failure> {
        let (name, schedule, time_zone) = ("daily".into(), schedule.into(), "UTC".into());
        let rule = PeriodRule { no: 0, name, schedule, time_zone, keep, grace_s: 0, prizes };
        let spec = BoardSpec { periods: Some(vec![rule]), ..BoardSpec::default() };
        boards::put(&self.tally(), &id(), &spec, &Origin::BACKGROUND, None).map(drop)
    }

    pub(crate) fn submit(&self, name: &str, score: i64) {
        self.wait(submit(&self.tally(), new_score(name, score))).unwrap();
    }

    /// A score that waits in the lane during another request; its outcome.
    pub(crate) fn submit_beside(&self, name: &str, score: i64, beside: impl FnOnce()) -> Result<(), Failure> {
        let tally = self.tally();
        let mut waiting = Box::pin(submit(&tally, new_score(name, score)));
        let polled = waiting.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
        beside();
        self.wait(waiting).map(drop)
    }

    pub(crate) fn ban(&self, name: &str, banned: bool) -> Result<(), Failure> {
        self.wait(ban(&self.tally(), &id(), player(name), banned, Origin::BACKGROUND, None)).map(drop)
    }

    pub(crate) fn erase(&self, name: &str) -> Result<(), Failure> {
        self.wait(erase(&self.tally(), player(name), Origin::BACKGROUND, None)).map(drop)
    }

    /// Lines of the day before, as a chunk of a file.
    pub(crate) fn import(
        &self,
        file: u64,
        lines: &[(&str, i64)],
        (lines_before, lines_after): (u64, u64),
        last: bool,
    ) -> Result<(), Failure> {
        let at = Some(Micros(self.now.load(Ordering::SeqCst) - DAY));
        let line = |(line, (name, score)): (u64, &(&str, i64))| {
            let (player, score) = (player(name), ScoreInput::Int(*score));
            NewLine { line, player, score, at }
        };
        let rows = (lines_before + 1..).zip(lines).map(line).collect();
        let mut digest = [0; 32];
        digest[..8].copy_from_slice(&file.to_le_bytes());
        let chunk = NewChunk { board: id(), digest, lines_before, lines_after, rows, last };
        self.wait(import(&self.tally(), chunk)).map(drop)
    }

    /// Players of a period with their scores, best first.
    pub(crate) fn page(&self, period: &str) -> Result<Vec<(String, i64)>, Failure> {
        let (tally, board) = (self.tally(), self.board());
        let view = View::find(&board, Some(period), tally.now(), |_| None)?;
        let query = PageQuery { limit: 1_000, ..PageQuery::default() };
        let page = view.read(&*tally.store, |order| order.page(&query))?;
        let entry =
            |place: tally_ranking::RankedEntry| (place.player.as_str().to_owned(), place.record.score);
        Ok(page.entries.into_iter().map(entry).collect())
    }

    /// The score of a player over all time.
    pub(crate) fn record(&self, name: &str) -> Option<i64> {
        let key = ScoreKey { board: self.board().no, window: ALL_TIME, player: player(name) };
        self.store().records(&[key]).unwrap().pop().unwrap().map(|record| record.score)
    }

    pub(crate) fn is_banned(&self, name: &str) -> bool {
        self.store().bans(self.board().no).unwrap().contains(&player(name))
    }

    pub(crate) fn board(&self) -> Arc<Board> {
        self.tally().boards.get(&id()).unwrap()
    }

    /// Waits until the lane has a reply for a request that it rejects.
    pub(crate) fn until_lanes_work(&self) {
        let refused = || {
            let removed =
                self.wait(remove(&self.tally(), &id(), player("nobody"), &Origin::BACKGROUND, None));
            matches!(removed, Err(Failure::Rejected(_)))
        };
        assert!((0..ATTEMPTS_MAX).any(|_| refused()), "the lane does not work again");
    }
}

fn id() -> BoardId {
    BoardId::new("b").unwrap()
}

fn new_score(name: &str, score: i64) -> NewScore {
    let (score, subscore, at, idempotency) = (ScoreInput::Int(score), None, None, None);
    NewScore { board: id(), player: player(name), score, subscore, at, idempotency }
}

pub(crate) fn player(name: &str) -> PlayerId {
    PlayerId::new(name).unwrap()
}
