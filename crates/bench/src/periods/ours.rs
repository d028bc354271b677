//! The service in this process, with a clock that is set to the end of the day.
//!
//! Callers await the same use case as the listeners do. Until a reply says that the day is over, a caller's scores carry
//! an instant. So the scores of the day depend only on the number of each caller's submits.

use super::{
    AFTER, BEFORE, CLOSING, DONE, END_MICROS, Measured, Phase, START_MICROS, Waits, first_score, timed,
};
use super::{BEGIN_MICROS, CALLERS};
use crate::error::{During, Error};
use crate::options::Options;
use crate::resident;
use crate::submit::operations::{Contents, Operations};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};
use tally_load::{Random, player};
use tally_ranking::{PageQuery, PageStart};
use tally_rules::definition::{Definition, Update};
use tally_rules::period::{PeriodPrizes, PeriodRule, TimeSpan, window_number};
use tally_rules::score::ScoreInput;
use tally_rules::{BoardId, Micros, PlayerId, Record};
use tally_service::periods::view::View;
use tally_service::scores::submit::{NewScore, submit};
use tally_service::secret::Secret;
use tally_service::{Clock, Failure, Keys, Progress, Settings, Tally};
use tally_store::plan::{ALL_TIME, BoardChange};
use tally_store::sqlite::{Options as StoreOptions, SqliteStore};
use tally_store::{BoardRow, ReadSet, ScoreKey, Store, StoreError, Window, WindowKey, WindowRow, WriteSet};
use timed::Timed;

/// Rows of one transaction while filling, and entries of one page.
const ROWS: u64 = 10_000;
/// Ranks read in the closed day.
const RANKS: usize = 500;
/// The time after the close for the allocator to release memory.
const SOON: Duration = Duration::from_secs(1);
/// The interval of checks whether the day is closed.
const RETRY_PAUSE: Duration = Duration::from_micros(500);

/// The service's figures.
pub(super) struct Ours {
    pub(super) measured: Measured,
    pub(super) memory: Memory,
    pub(super) slowest_batch_ms: [f64; 3],
    pub(super) steps: u64,
    pub(super) longest_step_ms: f64,
    /// One rank in the closed day.
    pub(super) rank_us: f64,
}

/// The memory of the day's ranking, by its own count and by the system's.
pub(super) struct Memory {
    pub(super) order_before: u64,
    pub(super) resident_before: Option<u64>,
    pub(super) resident_soon: Option<u64>,
    pub(super) resident_end: Option<u64>,
}

/// Lets callers submit through the end of the day.
pub(super) fn measure(folder: &Path, players: u64, options: &Options) -> Result<Ours, Error> {
    let phase = Arc::new(Phase::default());
    let store =
        SqliteStore::open(&folder.join("tally.db"), &StoreOptions::default()).during("open the store")?;
    let store = Arc::new(Timed::new(store, Arc::clone(&phase)));
    fill(&*store, players).during("fill the store")?;
    let ahead = Arc::new(AtomicI64::new(0));
    let (served, now) = (Arc::clone(&store), clock(&ahead));
    // On a thread that ends, as in the server: its memory is released when another thread frees it.
    let started = std::thread::spawn(move || serve(served, now)).join();
    let tally = started.expect("the start does not panic").during("start the service")?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_time().build().during("start a runtime")?;
    let tasks: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let operations = Operations::new(caller, CALLERS, players, options.seed);
            runtime.spawn(call(Arc::clone(&tally), operations, Arc::clone(&phase)))
        })
        .collect();
    let mut seconds = [0.0; 3];
    let mut timer = Instant::now();
    let mut lap = || std::mem::replace(&mut timer, Instant::now()).elapsed().as_secs_f64();
    std::thread::sleep(options.duration());
    seconds[BEFORE] = lap();
    let (resident_before, order_before) = (resident::bytes(), order_bytes(&tally).unwrap_or(0));
    phase.set(CLOSING);
    ahead.store(3_600_000_000, Ordering::SeqCst);
    while order_bytes(&tally).is_some() {
        std::thread::sleep(RETRY_PAUSE);
    }
    phase.set(AFTER);
    seconds[CLOSING] = lap();
    let pause = options.duration().min(SOON);
    std::thread::sleep(pause);
    let resident_soon = resident::bytes();
    std::thread::sleep(options.duration() - pause);
    let resident_end = resident::bytes();
    phase.set(DONE);
    seconds[AFTER] = lap();
    let (mut all, mut counts) = (Waits::default(), Vec::with_capacity(CALLERS));
    for task in tasks {
        let (waits, count) = runtime.block_on(task).expect("a caller does not panic").during("submit")?;
        all.merge(&waits);
        counts.push(count);
    }
    let contents = closed(&tally).during("read the closed day")?;
    let rank_us = rank_us(&tally, players, options).during("rank in the closed day")?;
    tally.drain();
    let (steps, longest_step_ms) = store.steps();
    Ok(Ours {
        measured: Measured { waits: all, seconds, counts, contents },
        memory: Memory { order_before, resident_before, resident_soon, resident_end },
        slowest_batch_ms: store.slowest_batch_ms(),
        steps,
        longest_step_ms,
        rank_us,
    })
}

/// The last hour of the day, moved forward by `ahead`.
fn clock(ahead: &Arc<AtomicI64>) -> Clock {
    let (began, ahead) = (Instant::now(), Arc::clone(ahead));
    Clock::of(move || {
        let since = i64::try_from(began.elapsed().as_micros()).unwrap_or(i64::MAX);
        Micros(END_MICROS - 3_600_000_000).plus(since).plus(ahead.load(Ordering::SeqCst))
    })
}

fn board() -> BoardId {
    BoardId::new("bench").expect("a good name")
}

fn day() -> Window {
    Window(window_number(0, Micros(START_MICROS)))
}

/// The board, which keeps the latest score, with a score for every player, today and over all time.
fn fill(store: &dyn Store, players: u64) -> Result<(), StoreError> {
    let plan = ReadSet { board_names: vec![board()], ..ReadSet::default() };
    let daily = PeriodRule {
        no: 0,
        name: "daily".into(),
        schedule: "0 0 * * *".into(),
        time_zone: "UTC".into(),
        keep: 12,
        grace_s: 0,
        prizes: PeriodPrizes::default(),
    };
    let definition =
        Definition { update: Update::Latest, periods: vec![daily], rules_given: 1, ..Definition::default() };
    let mut no = Default::default();
    store.run(&plan, &mut |loaded| {
        no = loaded.next_board;
        let row =
            BoardRow { no, id: board(), definition: definition.clone(), created_at: Micros(BEGIN_MICROS) };
        let span = TimeSpan { start: Micros(START_MICROS), end: Micros(END_MICROS) };
        let window =
            WindowRow { window: day(), rule: 0, span, closed: false, version: 0, stale: false, total: 0 };
        WriteSet {
            boards: vec![BoardChange::Create(row)],
            windows: vec![(WindowKey { board: no, window: day() }, Some(window))],
            ..WriteSet::default()
        }
    })?;
    for window in [ALL_TIME, day()] {
        for next in (0..players).step_by(ROWS as usize) {
            let row = |number| {
                let key = ScoreKey { board: no, window, player: player_id(number) };
                let record = Record { score: first_score(number), subscore: 0, at: Micros(BEGIN_MICROS) };
                (key, Some(record))
            };
            let scores: Vec<_> = (next..players.min(next + ROWS)).map(row).collect();
            store.run(&ReadSet::default(), &mut |_| WriteSet {
                scores: scores.clone(),
                ..WriteSet::default()
            })?;
        }
    }
    Ok(())
}

fn player_id(number: u64) -> PlayerId {
    PlayerId::new(&player(number)).expect("a good name")
}

fn serve(store: Arc<dyn Store>, clock: Clock) -> Result<Arc<Tally>, Failure> {
    // Nothing outlives the run, so nothing must be secret.
    let (secret, settings) = (Secret::new([7; 32]), Settings::default());
    let keys = Keys::load(Arc::clone(&store), secret.clone(), clock.clone(), &settings)?;
    Tally::start(store, Arc::new(keys), clock, settings, &Progress::default())
}

/// Bytes of the day's ranking while it is in memory.
fn order_bytes(tally: &Tally) -> Option<u64> {
    let board = tally.boards.get(&board())?;
    board.periods().live(day()).map(|live| live.ranking.bytes())
}

/// Submits until the end; returns the waits, and the number of scores in the day.
async fn call(
    tally: Arc<Tally>,
    mut operations: Operations,
    phase: Arc<Phase>,
) -> Result<(Waits, u64), Failure> {
    let (mut waits, mut count, mut over) = (Waits::default(), 0, false);
    loop {
        let before = phase.now();
        if before == DONE {
            return Ok((waits, count));
        }
        let operation = operations.draw();
        let new = NewScore {
            board: board(),
            player: player_id(operation.player),
            score: ScoreInput::Int(operation.score),
            subscore: None,
            at: (!over).then_some(Micros(operation.at_micros)),
            idempotency: None,
        };
        let sent_at = Instant::now();
        let (_, done) = submit(&tally, new).await?;
        waits.record(before, phase.now(), sent_at.elapsed());
        over |= !done.closed_periods.is_empty();
        count += u64::from(!over);
    }
}

/// The mean time of a rank of a random player in the closed day.
fn rank_us(tally: &Tally, players: u64, options: &Options) -> Result<f64, Failure> {
    let mut random = Random::new(options.seed);
    let ranked: Vec<PlayerId> = (0..RANKS).map(|_| player_id(random.below(players))).collect();
    let view = previous(tally)?;
    let began = Instant::now();
    for player in &ranked {
        let ranked = view.read(&*tally.store, |order| order.ranked(player))?;
        std::hint::black_box(ranked);
    }
    Ok(began.elapsed().as_secs_f64() * 1e6 / ranked.len() as f64)
}

fn previous(tally: &Tally) -> Result<View, Failure> {
    let board = tally.boards.find(&board())?;
    Ok(View::find(&board, Some("daily:previous"), tally.now(), |_| None)?)
}

/// The closed day, from the first to the last.
fn closed(tally: &Tally) -> Result<Contents, Failure> {
    let view = previous(tally)?;
    let mut contents = Contents::default();
    loop {
        let (limit, start) = (ROWS as usize, PageStart::Offset(contents.rows));
        let query = PageQuery { start, limit, ..PageQuery::default() };
        let page = view.read(&*tally.store, |order| order.page(&query))?;
        for place in page.entries {
            contents.add(place.player.as_str(), place.record.score, place.record.subscore, place.record.at.0);
        }
        if !page.more {
            return Ok(contents);
        }
    }
}
