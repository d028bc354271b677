//! Scenario `submit`: durable submits on SQLite, the service's lane beside one upsert per transaction.
//!
//! The lane goes first and for a time; the baseline then does the same submits for as long, and the rest is written
//! outside the measurement. Both tables must end with the same rows. Every number of callers begins with new files, so
//! that none inherits a full log.

mod baseline;
mod batched;
mod measured;
pub(crate) mod operations;

use crate::error::{During, Error, prove};
use crate::options::Options;
use measured::Measured;
pub(crate) use operations::{BEGIN_MICROS, Contents, Operation, Operations};
use tally_load::report::{Axis, Chart, Ratio, Report, Series, Table, number};

/// Both ways with one number of callers.
struct Pair {
    callers: usize,
    baseline: Measured,
    lane: Measured,
}

pub(crate) fn measure(options: &Options) -> Result<Report, Error> {
    let players = options.pick(2_000, 200_000);
    let sync = crate::disk::sync_ms().during("try the disk")?;
    let callers: &[usize] = options.pick(&[1, 16], &[1, 4, 16, 64, 256]);
    let title = format!("durable submits on SQLite, a board of {} players", number(players as f64));
    let mut report = Report::new("submit", &title, options);
    let mut pairs = Vec::with_capacity(callers.len());
    for &callers in callers {
        options.say(&format!("{callers} callers"));
        let folder = tempfile::tempdir().during("make a folder")?;
        let lane = batched::measure(folder.path(), players, callers, options.duration(), options.seed)?;
        let baseline =
            baseline::measure(folder.path(), players, &lane.counts, options.duration(), options.seed)?;
        let pair = Pair { callers, baseline, lane };
        prove_same(&pair, players)?;
        pairs.push(pair);
    }
    let columns =
        ["callers", "way", "submits/s", "p50 ms", "p99 ms", "max ms", "rows per commit", "lane / baseline"];
    let mut table = Table::new("Rate, and latency from asking to durable", &columns);
    for pair in &pairs {
        let times = pair.lane.rate() / pair.baseline.rate();
        table.row(row(pair.callers, "baseline", &pair.baseline, String::new()));
        table.row(row(pair.callers, "lane", &pair.lane, format!("{} ×", number(times))));
        report
            .ratios
            .push(Ratio::times(&format!("submits/s, lane / baseline, {} callers", pair.callers), times));
    }
    report.tables.push(table);
    report.charts.push(chart(&pairs, "Submits per second", "submits/s", Measured::rate));
    report.charts.push(chart(&pairs, "Latency that 99 of 100 submits keep", "milliseconds", |one| {
        one.latencies.percentile_ms(99.0)
    }));
    report.note(crate::disk::sentence(sync));
    report.note(
        "baseline: one connection behind a mutex, write-ahead log, a sync at every commit, 64 MiB for pages",
    );
    report.note(
        "lane: the service in this process; its answers have the previous score and both ranks as well",
    );
    report.note("both end with the same rows by hash and count; what the baseline did not reach in time was written unmeasured");
    Ok(report)
}

/// Checks that both ways have all players with equal records.
fn prove_same(pair: &Pair, players: u64) -> Result<(), Error> {
    let (baseline, lane) = (&pair.baseline, &pair.lane);
    let done = lane.counts.iter().sum::<u64>();
    prove(done > 0, || "nothing was submitted".to_owned())?;
    prove(baseline.latencies.count() > 0, || "the baseline did nothing".to_owned())?;
    prove(lane.latencies.count() == done, || "not every submit was timed".to_owned())?;
    for (way, one) in [("baseline", baseline), ("lane", lane)] {
        let rows = one.contents.rows;
        prove(rows == players, || format!("{way}: {rows} rows for {players} players"))?;
    }
    let same = baseline.contents.hash() == lane.contents.hash();
    prove(same, || format!("{} callers: the same submits led to two tables", pair.callers))
}

fn row(callers: usize, way: &str, one: &Measured, times: String) -> Vec<String> {
    let latency = |percent| number(one.latencies.percentile_ms(percent));
    vec![
        callers.to_string(),
        way.to_owned(),
        number(one.rate()),
        latency(50.0),
        latency(99.0),
        number(one.latencies.max_ms()),
        number(one.rows_per_commit),
        times,
    ]
}

fn chart(pairs: &[Pair], title: &str, unit: &str, value: fn(&Measured) -> f64) -> Chart {
    let line = |name: &str, of: fn(&Pair) -> &Measured| Series {
        name: name.to_owned(),
        points: pairs.iter().map(|pair| (pair.callers as f64, value(of(pair)))).collect(),
    };
    Chart {
        title: title.to_owned(),
        x: Axis::logarithmic("concurrent callers"),
        y: Axis::logarithmic(unit),
        series: vec![line("baseline", |pair| &pair.baseline), line("lane", |pair| &pair.lane)],
    }
}
