//! The report of `drivers`: R2's table, and every way with its latencies.

use super::{Cell, DRIVERS, MODES, program};
use tally_load::report::{Ratio, Report, Table, number};

/// R2's own figures; throughput relative to its first.
const THEIRS: &str = "R2 on MySQL, 23 machines: blocking 100 %, in a procedure 72 %, with a transaction in it 69 %; blocking \
    ORM 109 %; asynchronous 190 %, 180 %, 168 %";

impl Cell {
    /// Submits per second over all rounds.
    fn rate(&self) -> f64 {
        let operations: u64 = self.rounds.iter().map(|figures| figures.operations).sum();
        let nanos: u64 = self.rounds.iter().map(|figures| figures.nanos).sum();
        operations as f64 / nanos as f64 * 1e9
    }

    /// A latency in milliseconds: the mean over all rounds.
    fn latency(&self, of: impl Fn(&super::Figures) -> u64) -> f64 {
        let nanos: u64 = self.rounds.iter().map(of).sum();
        nanos as f64 / self.rounds.len() as f64 / 1e6
    }
}

pub(super) fn show(report: &mut Report, cells: &[Cell]) {
    let (ours, others) = cells.split_last().expect("ours is there");
    let baseline = others.first().map(Cell::rate);
    let percent = |cell: &Cell| match baseline {
        Some(baseline) if !cell.rounds.is_empty() => format!("{} %", number(cell.rate() / baseline * 100.0)),
        _ => "–".to_owned(),
    };
    let columns = ["way", "said as", "submits/s", "against the first", "p50 ms", "p95 ms", "p99 ms"];
    let mut table = Table::new("Rate, and latency from asking to durable", &columns);
    for cell in cells.iter().filter(|cell| !cell.rounds.is_empty()) {
        table.row(vec![
            cell.name.to_owned(),
            cell.mode.to_owned(),
            number(cell.rate()),
            percent(cell),
            number(cell.latency(|figures| figures.p50_nanos)),
            number(cell.latency(|figures| figures.p95_nanos)),
            number(cell.latency(|figures| figures.p99_nanos)),
        ]);
    }
    if let Some(baseline) = baseline {
        let columns: Vec<&str> = ["way"].into_iter().chain(MODES.iter().map(|mode| mode.1)).collect();
        let mut summary = Table::new("Rate against plain statements of the driver that blocks", &columns);
        for (driver, cells) in DRIVERS.iter().zip(others.chunks(MODES.len())) {
            let cells = cells.iter().map(percent);
            summary.row([driver.1.to_owned()].into_iter().chain(cells).collect());
        }
        let lanes = percent(ours);
        summary.row([ours.name.to_owned()].into_iter().chain(MODES.map(|_| lanes.clone())).collect());
        report.tables.push(summary);
        let best = others.iter().filter(|cell| !cell.rounds.is_empty()).map(Cell::rate).fold(0.0, f64::max);
        let times = ours.rate() / baseline;
        report
            .ratios
            .push(Ratio::times("submits/s, lanes / plain statements of the driver that blocks", times));
        report.ratios.push(Ratio::times("submits/s, lanes / the fastest other way", ours.rate() / best));
    }
    report.tables.push(table);
}

pub(super) fn notes(report: &mut Report, rounds: usize, built: bool) {
    if built {
        report.note(THEIRS);
        report.note(
            "drivers: a connection for each caller, held, and statements prepared once; a submit reads the score before \
             and writes the new one; the transaction locks what it reads; diesel cannot read what a procedure gives",
        );
    } else {
        report.note(format!(
            "the program of other drivers has not been built, so the lanes stand alone: run `{}`, or name it by --drivers",
            program::BUILD
        ));
    }
    report.note(
        "lanes: the service in this process, as many callers; each answer has the previous score and both ranks, and \
         callers that meet share a transaction",
    );
    report.note(format!(
        "rounds: {rounds}, in turns; every way saw the same scores before and left the same rows, by hash and count"
    ));
}
