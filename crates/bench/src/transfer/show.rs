//! The report of `transfer`: a table for each traffic, ratios against targets, and notes.

use super::traffic::{TRAFFICS, Traffic};
use super::{Amount, CALLERS, Cell, Way};
use crate::targets::{HOT_TIMES_UNIFORM, TRANSFERS_TIMES_BASELINE};
use tally_load::report::{Ratio, Report, Table, number};

const COLUMNS: [&str; 11] = [
    "way",
    "connections",
    "callers",
    "transfers/s",
    "p50 ms",
    "p95 ms",
    "p99 ms",
    "statements each",
    "round trips each",
    "begun again",
    "× baseline",
];

pub(super) fn show(report: &mut Report, cells: &[Cell]) {
    for traffic in TRAFFICS {
        let mut table = Table::new(&format!("Money {}", traffic.name()), &COLUMNS);
        let baseline = baseline(cells, traffic);
        for cell in cells.iter().filter(|cell| cell.traffic == traffic) {
            let latency = |percent| number(cell.ran.latencies.percentile_ms(percent));
            table.row(vec![
                cell.way.name().to_owned(),
                cell.connections.to_string(),
                cell.callers.to_string(),
                number(cell.rate()),
                latency(50.0),
                latency(95.0),
                latency(99.0),
                number(cell.per_transfer(cell.statements)),
                number(cell.per_transfer(cell.messages)),
                cell.ran.again.to_string(),
                format!("{} ×", number(cell.rate() / baseline)),
            ]);
        }
        report.tables.push(table);
    }
    for traffic in TRAFFICS {
        let name =
            format!("transfers/s, money {}, lane / baseline flow, the better of both pools", traffic.name());
        let times = lane(cells, traffic) / baseline(cells, traffic);
        report.ratios.push(Ratio::at_least(&name, times, TRANSFERS_TIMES_BASELINE));
    }
    let times = lane(cells, Traffic::Hot) / lane(cells, Traffic::Uniform);
    report.ratios.push(Ratio::at_least("lane, one hot wallet / uniform", times, HOT_TIMES_UNIFORM));
}

fn baseline(cells: &[Cell], traffic: Traffic) -> f64 {
    best(cells, |cell| cell.way == Way::Baseline && cell.traffic == traffic)
}

fn lane(cells: &[Cell], traffic: Traffic) -> f64 {
    best(cells, |cell| cell.way == Way::Lane && cell.traffic == traffic)
}

/// The highest rate of the matching cells.
fn best(cells: &[Cell], is_one: impl Fn(&&Cell) -> bool) -> f64 {
    cells.iter().filter(is_one).map(Cell::rate).fold(0.0, f64::max)
}

pub(super) fn notes(report: &mut Report, amount: Amount) {
    report.note(format!(
        "the flows: {CALLERS} callers at once share a pool; latencies include the wait for a connection. Statements are \
         prepared, and counted by the database with START TRANSACTION and COMMIT. What had to be begun again met a \
         deadlock"
    ));
    report.note(format!(
        "before the first transfer there were {} wallets and {} transactions with two sides each, in the tables of the \
         flows and in the ledger",
        number(amount.members as f64),
        number(amount.transactions as f64)
    ));
    report.note(
        "proved: all wallets add up to what was deposited, every answered transfer is there with both sides, and debits \
         are credits; on both sides",
    );
    report.note(
        "the lane: the service in this process, with its idempotency keys and totals of accounts; no HTTP",
    );
}
