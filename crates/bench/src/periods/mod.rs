//! Scenario `periods`: the end of a period of many players, during submits.
//!
//! Callers submit without a pause, and in the middle the period ends. The service closes it in bounded steps between
//! batches; the baseline ranks it in one statement in one transaction. Both get the same scores into the period, and
//! both closed rankings must be equal. The waits of submits are separate: before the end, during the close, and after.
//! Not here: the wire, and many boards that end at once.

mod baseline;
mod ours;
mod timed;

use crate::error::{During, Error, prove};
use crate::options::Options;
use crate::submit::operations::{BEGIN_MICROS, Contents};
use ours::{Memory, Ours};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tally_load::Latencies;
use tally_load::report::{Ratio, Report, Table, number};

/// Concurrent callers.
const CALLERS: usize = 16;
/// The day that ends: its first instant, and that of the next. It contains the scores of [`BEGIN_MICROS`].
const START_MICROS: i64 = 1_699_920_000_000_000;
const END_MICROS: i64 = START_MICROS + 86_400_000_000;
const _: () = assert!(START_MICROS < BEGIN_MICROS && BEGIN_MICROS + 3_600_000_000 < END_MICROS);

/// The phases.
const BEFORE: usize = 0;
const CLOSING: usize = 1;
const AFTER: usize = 2;
const DONE: usize = 3;
const PHASES: [&str; 3] = ["before", "while closing", "after"];

/// The phase of a run, for callers.
#[derive(Debug, Default)]
struct Phase(AtomicUsize);

impl Phase {
    fn now(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    fn set(&self, phase: usize) {
        self.0.store(phase, Ordering::SeqCst);
    }
}

/// Waits by phase; a wait that overlaps the close counts as closing.
#[derive(Clone, Debug, Default)]
struct Waits([Latencies; 3]);

impl Waits {
    fn record(&mut self, sent_in: usize, answered_in: usize, wait: Duration) {
        let phase = if answered_in == CLOSING || (sent_in, answered_in) == (BEFORE, AFTER) {
            CLOSING
        } else {
            sent_in
        };
        self.0[phase.min(AFTER)].record(wait);
    }

    fn merge(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(all, one)| all.merge(one));
    }
}

/// The figures of either way.
#[derive(Clone, Debug)]
struct Measured {
    waits: Waits,
    /// The duration of each phase.
    seconds: [f64; 3],
    /// Submits of each caller into the period that ended.
    counts: Vec<u64>,
    /// The closed ranking, from the first.
    contents: Contents,
}

/// The initial score of a player.
fn first_score(number: u64) -> i64 {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24) as i64
}

pub(crate) fn measure(options: &Options) -> Result<Report, Error> {
    let players = options.members.unwrap_or(options.pick(5_000, 1_000_000));
    let sync = crate::disk::sync_ms().during("try the disk")?;
    let title = format!("the end of a period of {} players, {CALLERS} callers", number(players as f64));
    let mut report = Report::new("periods", &title, options);
    let folder = options.folder()?;
    options.say("the service");
    let ours = ours::measure(folder.path(), players, options)?;
    options.say("the baseline");
    let baseline = baseline::measure(folder.path(), players, &ours.measured.counts, options)?;
    prove_same(&ours.measured, &baseline, players)?;
    report.tables.push(waits(&ours.measured, &baseline));
    report.tables.push(closing(&ours, &baseline, players));
    report.tables.push(memory(&ours.memory));
    let longest = |one: &Measured| one.waits.0[CLOSING].max_ms();
    report.ratios.push(Ratio::times(
        "longest wait of a submit while closing, baseline / tally",
        longest(&baseline) / longest(&ours.measured),
    ));
    report.note(crate::disk::sentence(sync));
    report.note(format!(
        "tally: a rank in the closed day, read from its blocks, took {} µs (mean)",
        number(ours.rank_us)
    ));
    report.note(
        "both: a score counts for all time and for the day; the clock is set to the day's end in the middle",
    );
    report.note("tally: 200 ms at most until the end is seen, then steps of 64 blocks of 512 entries, each a transaction");
    report.note(
        "baseline: INSERT INTO closed SELECT row_number() OVER (ORDER BY …), then DELETE, in one transaction",
    );
    report.note("both closed orders are the same by hash and count, from the first to the last");
    Ok(report)
}

fn prove_same(ours: &Measured, baseline: &Measured, players: u64) -> Result<(), Error> {
    for (way, one) in [("tally", ours), ("baseline", baseline)] {
        let rows = one.contents.rows;
        prove(rows == players, || format!("{way}: {rows} closed entries for {players} players"))?;
        let waited = one.waits.0[CLOSING].count() > 0;
        prove(waited, || format!("{way}: no submit while it was being closed"))?;
    }
    prove(ours.contents.hash() == baseline.contents.hash(), || {
        "the same submits led to two orders".to_owned()
    })
}

fn waits(ours: &Measured, baseline: &Measured) -> Table {
    let columns = ["way", "phase", "seconds", "submits/s", "p50 ms", "p99 ms", "max ms"];
    let mut table = Table::new("What a submit waits", &columns);
    for (way, one) in [("baseline", baseline), ("tally", ours)] {
        for (phase, (waits, seconds)) in PHASES.iter().zip(one.waits.0.iter().zip(one.seconds)) {
            table.row(vec![
                way.to_owned(),
                (*phase).to_owned(),
                number(seconds),
                number(waits.count() as f64 / seconds),
                number(waits.percentile_ms(50.0)),
                number(waits.percentile_ms(99.0)),
                number(waits.max_ms()),
            ]);
        }
    }
    table
}

fn closing(ours: &Ours, baseline: &Measured, players: u64) -> Table {
    let columns = [
        "way",
        "seconds to close",
        "players/s",
        "transactions",
        "longest, ms",
        "slowest batch, ms: before",
        "while closing",
        "after",
    ];
    let mut table = Table::new("Closing", &columns);
    let none = || "–".to_owned();
    let row =
        |way: &str, seconds: f64| vec![way.to_owned(), number(seconds), number(players as f64 / seconds)];
    let mut cells = row("baseline", baseline.seconds[CLOSING]);
    cells.extend(["1".to_owned(), number(baseline.seconds[CLOSING] * 1e3), none(), none(), none()]);
    table.row(cells);
    let mut cells = row("tally", ours.measured.seconds[CLOSING]);
    cells.extend([number(ours.steps as f64), number(ours.longest_step_ms)]);
    cells.extend(ours.slowest_batch_ms.map(number));
    table.row(cells);
    table
}

fn memory(memory: &Memory) -> Table {
    let mut table =
        Table::new("Memory of the service", &["when", "bytes of the day's order", "resident MiB"]);
    let mib = |bytes: Option<u64>| {
        bytes.map_or_else(|| "unknown".to_owned(), |bytes| number(bytes as f64 / 1_048_576.0))
    };
    for (when, order, resident) in [
        ("before the end", number(memory.order_before as f64), memory.resident_before),
        ("1 s after closing", "0".to_owned(), memory.resident_soon),
        ("at the end of the run", "0".to_owned(), memory.resident_end),
    ] {
        table.row(vec![when.to_owned(), order, mib(resident)]);
    }
    table
}
