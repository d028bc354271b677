//! Scenario `store`: the write path of the store alone, batches of random rows into a filled table.
//!
//! Three ways do the same batches. `direct` upserts them into the table and syncs, as a client without a store would.
//! `journal` is the product's store with rows that its caller knows already. In `journal, reading` each transaction
//! reads its rows first. `journal` goes first and for a time, which ends when everything is in the tables; the others
//! do the same batches for as long. The rest of a way is written outside the measurement, and all three tables must end
//! with the same rows.
//!
//! Not here: lanes, ranks and replies (`submit`).

mod batches;
mod direct;
mod journal;

use crate::error::{During, Error, prove};
use crate::options::Options;
use crate::spent::Spent;
use crate::submit::Contents;
use batches::Batches;
use tally_load::Latencies;
use tally_load::report::{Axis, Chart, Ratio, Report, Series, Table, number, or_dash};

/// Figures of one way with one size of batch.
struct Measured {
    way: &'static str,
    /// Until the last commit, and until everything is in the table.
    seconds: f64,
    drained_seconds: f64,
    latencies: Latencies,
    rows: u64,
    /// By this process, until everything is in the table.
    spent: Option<Spent>,
    contents: Contents,
}

impl Measured {
    fn rate(&self) -> f64 {
        self.rows as f64 / self.drained_seconds
    }

    /// Bytes written for each row; `None` if nothing is written through to a disk.
    fn bytes(&self) -> Option<f64> {
        let bytes = self.spent?.written_bytes;
        (bytes > 0).then(|| bytes as f64 / self.rows as f64)
    }
}

pub(crate) fn measure(options: &Options) -> Result<Report, Error> {
    let players = options.rows.unwrap_or(options.pick(2_000, 1_000_000));
    let sync = crate::disk::sync_ms().during("try the disk")?;
    let sizes: &[usize] = options.pick(&[1, 64], &[1, 64, 512]);
    let title = format!("the store's write path on SQLite, a table of {} rows", number(players as f64));
    let mut report = Report::new("store", &title, options);
    let columns = [
        "rows per batch",
        "way",
        "rows/s",
        "drained",
        "p50 ms",
        "p99 ms",
        "max ms",
        "bytes/row",
        "CPU µs/row",
    ];
    let mut table = Table::new("Rate, latency of a commit, and what a row costs", &columns);
    let mut all = Vec::with_capacity(sizes.len());
    for &size in sizes {
        let ways = ways(options, players, size)?;
        ways.iter().for_each(|way| table.row(row(size, way)));
        report.ratios.extend(ratios(size, &ways));
        all.push((size, ways));
    }
    report.tables.push(table);
    report
        .charts
        .push(chart(&all, "Rows per second, everything in the table", "rows/s", |one| Some(one.rate())));
    report.charts.push(chart(&all, "Bytes written for each row", "bytes", Measured::bytes));
    report.note(crate::disk::sentence(sync));
    report.note("rows/s: until the last commit; drained: until everything is in the table");
    report.note(
        "direct: the table and settings of the store, rows in key order, a sync at every commit, 64 MiB for pages and \
         before a checkpoint",
    );
    report.note("CPU: of this process, the threads in the background included");
    report.note("all three end with the same rows by hash and count; what one did not reach in time was written unmeasured");
    Ok(report)
}

fn ways(options: &Options, players: u64, size: usize) -> Result<[Measured; 3], Error> {
    let folder = options.folder()?;
    let place = |name: &str| folder.path().join(name);
    let batches = || Batches::new(players, size, options.seed);
    let time = options.duration();
    options.say(&format!("{size} rows per batch: journal"));
    let (journal, count) = journal::measure(&place("journal.db"), batches(), None, time, false)?;
    options.say(&format!("{size} rows per batch: journal, reading"));
    let (reading, _) = journal::measure(&place("reading.db"), batches(), Some(count), time, true)?;
    options.say(&format!("{size} rows per batch: direct"));
    let direct = direct::measure(&place("direct.db"), batches(), count, time)?;
    let ways = [direct, journal, reading];
    for one in &ways {
        let (way, rows) = (one.way, one.contents.rows);
        prove(one.rows > 0, || format!("{way} did nothing"))?;
        prove(rows == players, || format!("{way}: {rows} rows of {players}"))?;
        let same = one.contents.hash() == ways[0].contents.hash();
        prove(same, || format!("{way}: the same batches led to another table"))?;
    }
    Ok(ways)
}

fn row(size: usize, one: &Measured) -> Vec<String> {
    let latency = |percent| number(one.latencies.percentile_ms(percent));
    let of = |value: Option<f64>| or_dash(value, number);
    vec![
        size.to_string(),
        one.way.to_owned(),
        number(one.rows as f64 / one.seconds),
        number(one.rate()),
        latency(50.0),
        latency(99.0),
        number(one.latencies.max_ms()),
        of(one.bytes()),
        of(one.spent.map(|spent| spent.cpu_seconds * 1e6 / one.rows as f64)),
    ]
}

fn ratios(size: usize, [direct, journal, _]: &[Measured; 3]) -> Vec<Ratio> {
    let rate = journal.rate() / direct.rate();
    let mut ratios = vec![Ratio::times(&format!("rows/s drained, journal / direct, {size} per batch"), rate)];
    let bytes = direct.bytes().zip(journal.bytes()).map(|(direct, journal)| direct / journal);
    let name = format!("bytes written per row, direct / journal, {size} per batch");
    ratios.extend(bytes.map(|times| Ratio::times(&name, times)));
    ratios
}

type All = [(usize, [Measured; 3])];

fn chart(all: &All, title: &str, unit: &str, value: fn(&Measured) -> Option<f64>) -> Chart {
    let line = |way: usize| Series {
        name: all.first().map_or_else(String::new, |(_, ways)| ways[way].way.to_owned()),
        points: all.iter().filter_map(|(size, ways)| Some((*size as f64, value(&ways[way])?))).collect(),
    };
    Chart {
        title: title.to_owned(),
        x: Axis::logarithmic("rows per batch"),
        y: Axis::logarithmic(unit),
        series: (0..3).map(line).filter(|line| !line.points.is_empty()).collect(),
    }
}
