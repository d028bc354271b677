//! The figures of a load: the progress line, and the report.
//!
//! The report has the form of the benchmarks' reports, so that tables and charts are drawn by the same code. Not
//! here: judging them.

use super::books::Compared;
use crate::cli::LoadArgs;
use indicatif::ProgressBar;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::SystemTime;
use tally_load::Latencies;
use tally_load::open::{OpenOutcome, OpenProgress, Schedule, Second, ThresholdResult};
use tally_load::report::{Axis, Chart, Report, RunInfo, Series, Table};

/// Percentiles of the tables.
const PERCENTS: [f64; 5] = [50.0, 90.0, 95.0, 99.0, 99.9];

/// Updates the progress line.
pub(super) fn live(bar: &ProgressBar, progress: OpenProgress) {
    match progress {
        OpenProgress::SignedIn(done, all) => bar.set_message(format!("{done} of {all} members signed in")),
        OpenProgress::Second(second) => {
            if bar.position() == 0 {
                bar.reset_elapsed();
            }
            bar.set_position(second.at as u64);
            let Second { target, done, failed, dropped, ms, waiting, .. } = second;
            bar.set_message(format!(
                "{done}/s of {target:.0}  p95 {:.1} ms  max {:.1} ms  failed {failed}  dropped {dropped}  under way {waiting}",
                ms[1], ms[3]
            ));
        }
    }
}

/// The whole report.
pub(super) fn report(
    args: &LoadArgs,
    (outcome, schedule): (&OpenOutcome, &Schedule),
    results: &[ThresholdResult],
    books: &Compared,
) -> Report {
    let run = RunInfo { command: command(), seed: args.seed, small: false };
    let title = format!("{}, {} a second", name(args), args.rate);
    let mut report = Report::new("load", &title, run);
    report.tables.push(counts(outcome, schedule));
    if !results.is_empty() {
        report.tables.push(thresholds(results));
    }
    report.tables.push(latencies(outcome));
    let errors = outcome.errors();
    if !errors.is_empty() {
        let mut table = Table::new("Errors", &["what", "calls"]);
        for (what, count) in errors {
            table.row(vec![what.to_owned(), count.to_string()]);
        }
        report.tables.push(table);
    }
    report.charts = charts(outcome);
    if outcome.interrupted {
        report.note(
            "interrupted: no more arrivals came from then on, and the limits count only those before; requests \
             without a response at the end count as failed",
        );
    }
    report.note(&*books.says);
    if outcome.stolen >= 1.0 {
        let most = outcome.seconds.iter().map(|second| second.stolen).fold(0.0, f64::max);
        report.note(format!(
            "the host gave {:.0} % of this machine's processors to others ({most:.0} % in the worst second): latencies of \
             such seconds say little about the server",
            outcome.stolen
        ));
    }
    report.note(
        "latencies count from when an arrival was due, of iterations and calls that ended well; a call that follows \
         another counts from the answer before it",
    );
    report
}

/// The command line, without a key.
fn command() -> String {
    let mut words = vec!["tally".to_owned()];
    let mut hidden = false;
    for word in std::env::args().skip(1) {
        words.push(match word.split_once('=') {
            _ if std::mem::take(&mut hidden) => "…".to_owned(),
            Some(("--key", _)) => "--key=…".to_owned(),
            _ => word.clone(),
        });
        hidden = word == "--key";
    }
    words.join(" ")
}

fn name(args: &LoadArgs) -> &'static str {
    use crate::cli::LoadWhat::{MainPage, Mixed, Scores, Transfers};
    match args.what {
        Transfers => "transfers",
        Scores => "scores",
        MainPage => "main-page",
        Mixed => "mixed",
    }
}

fn counts(outcome: &OpenOutcome, schedule: &Schedule) -> Table {
    let columns = ["", "arrived", "done well", "failed", "dropped", "seconds", "done a second"];
    let mut table = Table::new("Iterations", &columns);
    let row = [
        format!("{:.0} planned in {:.0} s", schedule.arrivals(), schedule.lasts().as_secs_f64()),
        outcome.arrived.to_string(),
        outcome.iterations.count().to_string(),
        outcome.failed.to_string(),
        outcome.dropped.to_string(),
        format!("{:.1}", outcome.lasted.as_secs_f64()),
        format!("{:.1}", outcome.rate()),
    ];
    table.row(row.into());
    table
}

fn thresholds(results: &[ThresholdResult]) -> Table {
    let mut table = Table::new("Thresholds", &["limit", "measured", "kept"]);
    for one in results {
        let measured = format!("{:.2} {}", one.value, one.unit).trim_end().to_owned();
        table.row(vec![one.threshold.clone(), measured, if one.kept { "yes" } else { "NO" }.into()]);
    }
    table
}

fn latencies(outcome: &OpenOutcome) -> Table {
    let mut columns = vec!["of".to_owned(), "count".to_owned(), "failed".to_owned()];
    columns.extend(PERCENTS.map(|percent| format!("p{percent} ms")));
    columns.push("max ms".into());
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut table = Table::new("Latencies", &columns);
    let mut add = |name: &str, latencies: &Latencies, failed: u64| {
        let mut row = vec![name.to_owned(), latencies.count().to_string(), failed.to_string()];
        row.extend(PERCENTS.map(|percent| format!("{:.2}", latencies.percentile_ms(percent))));
        row.push(format!("{:.2}", latencies.max_ms()));
        table.row(row);
    };
    add("an iteration", &outcome.iterations, outcome.failed);
    if outcome.calls.len() > 1 {
        for call in &outcome.calls {
            add(call.name, &call.latencies, call.failed());
        }
    }
    table
}

/// Without the incomplete last second, if there are others.
fn whole(seconds: &[Second]) -> &[Second] {
    match seconds {
        [others @ .., before, last] if last.at - before.at < 0.9 => &seconds[..=others.len()],
        all => all,
    }
}

fn charts(outcome: &OpenOutcome) -> Vec<Chart> {
    let seconds = whole(&outcome.seconds);
    let line = |name: &str, of: &dyn Fn(&Second) -> f64| Series {
        name: name.to_owned(),
        points: seconds.iter().map(|second| (second.at, of(second))).collect(),
    };
    let mut charts = vec![
        Chart {
            title: "Rate: planned and reached".into(),
            x: Axis::linear("seconds"),
            y: Axis::linear("iterations a second"),
            series: vec![
                line("planned", &|second| second.target),
                line("done well", &|second| second.done as f64),
            ],
        },
        Chart {
            title: "Latency, second by second".into(),
            x: Axis::linear("seconds"),
            y: Axis::logarithmic("ms"),
            series: ["p50", "p95", "p99", "max"]
                .into_iter()
                .enumerate()
                .map(|(at, name)| line(name, &move |second| second.ms[at]))
                .collect(),
        },
    ];
    if outcome.failed + outcome.dropped > 0 {
        charts.push(Chart {
            title: "What did not end well".into(),
            x: Axis::linear("seconds"),
            y: Axis::linear("iterations a second"),
            series: vec![
                line("failed", &|second| second.failed as f64),
                line("dropped", &|second| second.dropped as f64),
            ],
        });
    }
    charts.push(distribution(outcome));
    charts
}

/// The tail: one in so many takes longer.
fn distribution(outcome: &OpenOutcome) -> Chart {
    let points = |latencies: &Latencies| {
        let last = latencies.count().max(2) as f64;
        let one_in =
            (0..=80).map(|step| 10_f64.powf(f64::from(step) / 10.0)).take_while(|one_in| *one_in <= last);
        one_in.map(|one_in| (one_in, latencies.percentile_ms(100.0 - 100.0 / one_in))).collect()
    };
    let mut series = vec![Series { name: "an iteration".into(), points: points(&outcome.iterations) }];
    if outcome.calls.len() > 1 {
        for call in &outcome.calls {
            series.push(Series { name: call.name.into(), points: points(&call.latencies) });
        }
    }
    Chart {
        title: "The tail: one in so many takes longer".into(),
        x: Axis::logarithmic("one in"),
        y: Axis::logarithmic("ms"),
        series,
    }
}

/// The figures for a program.
pub(super) fn json(
    args: &LoadArgs,
    outcome: &OpenOutcome,
    results: &[ThresholdResult],
    books: &Compared,
) -> Value {
    let ms = |latencies: &Latencies| {
        let mut figures: BTreeMap<String, f64> = PERCENTS
            .iter()
            .map(|percent| (format!("p{percent}"), latencies.percentile_ms(*percent)))
            .collect();
        figures.insert("max".into(), latencies.max_ms());
        figures
    };
    let calls = outcome.calls.iter().map(|call| {
        let figures = json!({
            "succeeded": call.latencies.count(),
            "failed": call.failed(),
            "errors": call.errors,
            "latency_ms": ms(&call.latencies),
        });
        (call.name.to_owned(), figures)
    });
    let seconds = outcome.seconds.iter().map(|second| {
        let [p50, p95, p99, max] = second.ms;
        json!({
            "at": second.at, "planned": second.target, "done": second.done, "failed": second.failed,
            "dropped": second.dropped, "under_way": second.waiting, "stolen_percent": second.stolen,
            "latency_ms": {"p50": p50, "p95": p95, "p99": p99, "max": max},
        })
    });
    let thresholds = results.iter().map(
        |one| json!({"threshold": one.threshold, "measured": one.value, "unit": one.unit, "kept": one.kept}),
    );
    json!({
        "load": name(args),
        "begun_unix": outcome.begun.duration_since(SystemTime::UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64()),
        "rate": args.rate,
        "stages": args.stages,
        "seed": args.seed,
        "connections": args.connections,
        "interrupted": outcome.interrupted,
        "iterations": {
            "arrived": outcome.arrived,
            "succeeded": outcome.iterations.count(),
            "failed": outcome.failed,
            "dropped": outcome.dropped,
            "seconds": outcome.lasted.as_secs_f64(),
            "per_second": outcome.rate(),
            "stolen_percent": outcome.stolen,
            "latency_ms": ms(&outcome.iterations),
        },
        "calls": calls.collect::<serde_json::Map<_, _>>(),
        "thresholds": thresholds.collect::<Vec<_>>(),
        "money": {"agrees": books.agree, "says": books.says},
        "per_second": seconds.collect::<Vec<_>>(),
    })
}
