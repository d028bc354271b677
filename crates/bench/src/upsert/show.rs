//! The report of `upsert`: one table, ratios against targets, and notes.

use super::{Amount, Kind, SINGLES, Way};
use crate::targets::{LANES_TIMES_BULK, LANES_TIMES_SINGLE};
use tally_load::report::{Ratio, Report, Table, number, or_dash};

const COLUMNS: [&str; 9] = [
    "way",
    "rows/s",
    "p50 ms",
    "p95 ms",
    "p99 ms",
    "rows per commit",
    "CPU µs/row, here + there",
    "× single",
    "× upserts of 500",
];

/// The figures. The bulk load has no latency: it is one statement.
pub(super) fn show(report: &mut Report, ways: &[Way], (players, load_rate): (u64, f64)) {
    let single = best(ways, |way| way.kind == Kind::Upsert { rows: 1 });
    let bulk = best(ways, |way| way.kind == Kind::Upsert { rows: 500 });
    let times = |rate: f64| [rate / single, rate / bulk].map(|times| format!("{} ×", number(times)));
    let mut table =
        Table::new("Rate, and latency from asking to durable, of a submit or a statement", &COLUMNS);
    for way in ways {
        let latency = |percent| number(way.measured.latencies.percentile_ms(percent));
        let rate = way.measured.rate();
        let figures = [
            number(rate),
            latency(50.0),
            latency(95.0),
            latency(99.0),
            number(way.rows_per_commit),
            cpu(way),
        ];
        table.row([way.name()].into_iter().chain(figures).chain(times(rate)).collect());
    }
    let nothing = "–".to_owned();
    let load = [
        number(load_rate),
        nothing.clone(),
        nothing.clone(),
        nothing.clone(),
        number(players as f64),
        nothing,
    ];
    let name = "bulk load into an empty table".to_owned();
    table.row([name].into_iter().chain(load).chain(times(load_rate)).collect());
    report.tables.push(table);
    let is_lanes = |way: &&Way| matches!(way.kind, Kind::Lanes { .. });
    for way in ways.iter().filter(is_lanes) {
        let name =
            format!("rows/s, lanes with {} callers / single upserts, {SINGLES} connections", way.callers);
        report.ratios.push(Ratio::at_least(&name, way.measured.rate() / single, LANES_TIMES_SINGLE));
    }
    for way in ways.iter().filter(is_lanes) {
        for bulk in ways.iter().filter(|way| way.kind == Kind::Upsert { rows: 500 }) {
            let name = format!("rows/s, lanes with {} callers / {}", way.callers, bulk.name());
            let times = way.measured.rate() / bulk.measured.rate();
            report.ratios.push(match bulk.callers {
                1 => Ratio::at_least(&name, times, LANES_TIMES_BULK),
                _ => Ratio::times(&name, times),
            });
        }
    }
}

fn cpu(way: &Way) -> String {
    let text = |us: Option<f64>| or_dash(us, number);
    format!("{} + {}", text(way.measured.cpu_us(|cpu| cpu.0)), text(way.measured.cpu_us(|cpu| cpu.1)))
}

/// The highest rate of the matching ways.
fn best(ways: &[Way], is_one: impl Fn(&&Way) -> bool) -> f64 {
    ways.iter().filter(is_one).map(|way| way.measured.rate()).fold(0.0, f64::max)
}

pub(super) fn notes(report: &mut Report, amount: &Amount) {
    let rows = amount.streams as u64 * amount.of_each * amount.rounds as u64;
    report.note(format!(
        "each way did the same {} submits, in {} rounds of turns, and all tables ended with the same rows by hash and \
         count; loading them in order of keys did, too",
        number(rows as f64),
        amount.rounds
    ));
    report.note(
        "upserts: a table with one primary key and nothing else, prepared statements, rows of a statement in order of \
         keys; each is a transaction. The rows of a bulk upsert are at hand, as in an import: no caller waits for them",
    );
    report.note(
        "lanes: the service in this process; its answers have the previous score and both ranks, each caller waits for \
         its own, and what is stored has versions and outlives a lost COMMIT",
    );
    report.note("CPU: of this process, and of the database where it was started for the run");
    report.note(
        "the table is against the faster of the upserts of 500; the target is against those of 1 connection, which are the \
         162,000 rows/s that it was set by",
    );
}
