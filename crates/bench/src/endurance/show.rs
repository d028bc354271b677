//! The figures of the run: the second sixth beside the last one.

use super::Sizes;
use super::sample::Sample;
use crate::targets::ENDURANCE_GROWTH;
use tally_load::open::{OpenOutcome, Second};
use tally_load::report::{Axis, Chart, Ratio, Report, Series, Table, number};

const MIB: f64 = 1_048_576.0;
/// A value of a sample, in the unit of its name.
type Figure = (&'static str, fn(&Sample) -> f64);

/// Figures that must stay the same.
const FLAT: [Figure; 4] = [
    ("resident memory, MiB", |sample| sample.resident / MIB),
    ("file descriptors", |sample| sample.descriptors),
    ("threads", |sample| sample.threads),
    ("journal, MiB", |sample| sample.journal / MIB),
];

pub(super) fn show(report: &mut Report, outcomes: &[OpenOutcome; 2], samples: &[Sample], sizes: Sizes) {
    let lasted = sizes.lasts.as_secs_f64();
    let (early, late) = ((lasted / 6.0, lasted / 3.0), (lasted * 5.0 / 6.0, lasted));
    let mut table =
        Table::new("What the server occupies", &["figure", "second sixth", "last sixth", "most in the run"]);
    let mut grows = |name: &str, [before, after]: [f64; 2], most: f64| {
        table.row(vec![name.to_owned(), number(before), number(after), number(most)]);
        let name = format!("{name}, last sixth / second sixth");
        report.ratios.push(Ratio::at_most(&name, after / before.max(1e-3), "×", ENDURANCE_GROWTH));
    };
    for (name, figure) in FLAT {
        let most = samples.iter().map(figure).fold(0.0, f64::max);
        grows(name, [early, late].map(|part| mean(samples, part, figure)), most);
    }
    let transfers = &outcomes[1].seconds;
    let of_one = |part| gained(samples, part) / done(transfers, part).max(1.0);
    grows("bytes of the tables for each transfer", [early, late].map(of_one), of_one((0.0, lasted)));
    let cores = |part| {
        let inside = within(samples, part);
        let (first, last) = (inside.first().copied().unwrap_or_default(), inside.last().copied());
        let last = last.unwrap_or_default();
        (last.cpu - first.cpu) / (last.at - first.at).max(1e-3)
    };
    grows("processors", [early, late].map(cores), cores((0.0, lasted)));
    report.tables.push(table);
    report.tables.push(latencies(outcomes));
    report.charts.push(chart(samples, "MiB", &[FLAT[0], FLAT[3], ("tables, MiB", |one| one.tables / MIB)]));
    report.charts.push(chart(samples, "number", &FLAT[1..3]));
    report.charts.push(waits(outcomes));
}

fn within(samples: &[Sample], (from, until): (f64, f64)) -> Vec<Sample> {
    samples.iter().filter(|sample| (from..=until).contains(&sample.at)).copied().collect()
}

fn mean(samples: &[Sample], part: (f64, f64), figure: fn(&Sample) -> f64) -> f64 {
    let inside = within(samples, part);
    inside.iter().map(figure).sum::<f64>() / inside.len().max(1) as f64
}

/// Bytes that the tables gain in a part of the run.
fn gained(samples: &[Sample], part: (f64, f64)) -> f64 {
    let inside = within(samples, part);
    let of = |sample: Option<&Sample>| sample.map_or(0.0, |sample| sample.tables);
    of(inside.last()) - of(inside.first())
}

fn done(seconds: &[Second], (from, until): (f64, f64)) -> f64 {
    seconds.iter().filter(|second| (from..=until).contains(&second.at)).map(|one| one.done as f64).sum()
}

fn latencies(outcomes: &[OpenOutcome; 2]) -> Table {
    let columns = ["request", "a second", "failed", "p50 ms", "p95", "p99", "p99.9", "max"];
    let mut table = Table::new("Latencies, from the due time", &columns);
    for (name, outcome) in ["submit", "keyed transfer"].into_iter().zip(outcomes) {
        let mut row = vec![name.to_owned(), number(outcome.rate()), outcome.failed.to_string()];
        row.extend([50.0, 95.0, 99.0, 99.9].map(|percent| number(outcome.iterations.percentile_ms(percent))));
        row.push(number(outcome.iterations.max_ms()));
        table.row(row);
    }
    table
}

fn chart(samples: &[Sample], unit: &str, figures: &[Figure]) -> Chart {
    let line = |&(name, figure): &Figure| Series {
        name: name.to_owned(),
        points: samples.iter().map(|sample| (sample.at / 60.0, figure(sample))).collect(),
    };
    Chart {
        title: format!("What the server occupies, {unit}"),
        x: Axis::linear("minutes"),
        y: Axis::linear(unit),
        series: figures.iter().map(line).collect(),
    }
}

/// Latencies of each minute: the mean of the medians of its seconds, and the longest wait.
fn waits(outcomes: &[OpenOutcome; 2]) -> Chart {
    let mut series = Vec::new();
    for (name, outcome) in ["submit", "transfer"].into_iter().zip(outcomes) {
        let minutes: Vec<&[Second]> = outcome.seconds.chunks(60).collect();
        let mut line = |what: &str, value: fn(&[Second]) -> f64| {
            let points = minutes.iter().enumerate().map(|(minute, seconds)| (minute as f64, value(seconds)));
            series.push(Series { name: format!("{name}, {what}"), points: points.collect() });
        };
        line("median", |seconds| seconds.iter().map(|one| one.ms[0]).sum::<f64>() / seconds.len() as f64);
        line("longest", |seconds| seconds.iter().map(|one| one.ms[3]).fold(0.0, f64::max));
    }
    Chart {
        title: "Latencies of each minute".to_owned(),
        x: Axis::linear("minutes"),
        y: Axis::logarithmic("ms"),
        series,
    }
}
