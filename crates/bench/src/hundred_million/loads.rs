//! R3's load by `tally load scores`, with samples of memory, bytes written and slow transactions.
//!
//! Arrivals are due by the clock, so a pause is not hidden. Every second with a wait of more than 50 ms is compared with the slow
//! log of the server, and with what the disk did then.

use super::found::StepResult;
use super::place::Place;
use super::watch::{Watched, watch};
use super::{BOARD, GIB, Run};
use crate::device::DeviceCounts;
use crate::error::{During, Error, prove};
use crate::server::Server;
use crate::set_at_end::SetAtEnd;
use crate::targets::{LOAD_P999_MS, MIXED_TIMES_R3, R3_RATE};
use serde_json::Value;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use tally_load::report::{Axis, Chart, Ratio, Series, Table, number, or_dash};
use tally_service::clock;

/// A longer iteration is a pause: the threshold of the slow log.
const PAUSE_MS: f64 = tally_store::SLOW.as_millis() as f64;
/// Pauses that a report lists; all are counted.
const LISTED: usize = 30;

struct Load {
    title: &'static str,
    reads: u32,
    skew: &'static str,
    /// Whether it uses the Redis protocol.
    redis: bool,
    /// Arrivals per second, and seconds of a run of full size.
    rate: &'static str,
    seconds: u32,
}

const ZIPF: Load = Load {
    title: "half ±5, half submits, Zipf, HTTP",
    reads: 50,
    skew: "zipf",
    redis: false,
    // One percent more than the floor: the achieved rate is a hair lower than the offered one.
    rate: "20200",
    seconds: 1_800,
};

pub(super) fn zipf(run: &Run<'_>) -> Result<StepResult, Error> {
    load(&Place::sqlite(run)?, &ZIPF)
}

pub(super) fn reads(run: &Run<'_>) -> Result<StepResult, Error> {
    let title = "nine ±5 for one submit, Zipf, HTTP";
    load(&Place::sqlite(run)?, &Load { title, reads: 90, seconds: 120, ..ZIPF })
}

pub(super) fn uniform(run: &Run<'_>) -> Result<StepResult, Error> {
    let title = "half ±5, half submits, uniform, HTTP";
    load(&Place::sqlite(run)?, &Load { title, skew: "uniform", seconds: 120, ..ZIPF })
}

pub(super) fn redis(run: &Run<'_>) -> Result<StepResult, Error> {
    let title = "half ±5, half submits, Zipf, Redis protocol";
    load(&Place::sqlite(run)?, &Load { title, redis: true, seconds: 120, ..ZIPF })
}

pub(super) fn rising(run: &Run<'_>) -> Result<StepResult, Error> {
    let title = "half ±5, half submits, Zipf, HTTP, rising to 80,000 a second";
    load(&Place::sqlite(run)?, &Load { title, rate: "0..80000", seconds: 120, ..ZIPF })
}

pub(super) fn mariadb(run: &Run<'_>) -> Result<StepResult, Error> {
    load(&Place::mariadb(run)?, &Load { seconds: 120, ..ZIPF })
}

fn load(place: &Place<'_>, load: &Load) -> Result<StepResult, Error> {
    let run = place.run;
    let started = place.start()?;
    let figures = run.path("load.json");
    let _old = std::fs::remove_file(&figures);
    let over = AtomicBool::new(false);
    let server = &started.server;
    let (ran, watched) = std::thread::scope(|scope| {
        let end = SetAtEnd(&over);
        let watching = scope.spawn(|| watch(server, &place.folder, &over));
        let ran = command(place, load, server).arg("--json").arg(&figures).output();
        drop(end);
        (ran, watching.join().expect("watching does not panic"))
    });
    let ran = ran.during("run `tally load`")?;
    prove(ran.status.success(), || {
        format!("`tally load` ended with {}: {}", ran.status, String::from_utf8_lossy(&ran.stderr))
    })?;
    started.server.stop()?;
    let figures = std::fs::read(&figures).during("read the figures of a load")?;
    let figures: Value = serde_json::from_slice(&figures).during("read the figures of a load")?;
    Ok(show(place, load, &figures, &watched))
}

fn command(place: &Place<'_>, load: &Load, server: &Server) -> Command {
    let run = place.run;
    let rate = run.options.pick(if load.rate.contains("..") { "0..2000" } else { "300" }, load.rate);
    let seconds = run.options.pick(if load.rate.contains("..") { 6 } else { 2 }, load.seconds);
    let (players, reads, stage) = (run.players.to_string(), load.reads.to_string(), format!("{seconds}s"));
    // A new seed each time: the same load on the same store would submit its scores again, and write nothing.
    let seed = run.options.seed.wrapping_add(clock::system().now().0.cast_unsigned()).to_string();
    let mut command = place.command(&["load", "scores", "--board", BOARD, "--players", &players]);
    command
        .args(["--reads", &reads, "--skew", load.skew, "--rate", rate, "--stage", &stage, "--seed", &seed]);
    command.args(["--connections", "64", "--waiting", "20000", "--answer", "10s"]);
    if load.redis {
        command.args(["--redis", &server.listens.resp.to_string()]);
    }
    command.stdin(Stdio::null());
    command
}

/// One second with a long wait.
struct Pause {
    at: f64,
    ms: f64,
    cause: String,
    /// The disk in this second.
    disk: Option<DeviceCounts>,
}

fn pauses(figures: &Value, watched: &Watched) -> Vec<Pause> {
    let begun = figures["begun_unix"].as_f64().unwrap_or_default();
    let seconds = figures["per_second"].as_array().into_iter().flatten();
    let slow = seconds.filter_map(|second| {
        let (at, ms) = (second["at"].as_f64()?, second["latency_ms"]["max"].as_f64()?);
        if ms <= PAUSE_MS {
            return None;
        }
        // The cause of a wait ended before the response did, and the response within this second.
        let until = ((begun + at) * 1e6) as i64;
        let from = until - 1_000_000 - (ms * 1e3) as i64;
        let stolen = second["stolen_percent"].as_f64().unwrap_or_default();
        let cause = match watched.cause(from, until) {
            Some((took, cause)) => format!("{cause} ({took:.0} ms)"),
            None if stolen >= 5.0 => format!("other: the host took {stolen:.0} % of the processors"),
            None => "other: no transaction was slow".to_owned(),
        };
        Some(Pause { at, ms, cause, disk: watched.disk_in(from, until) })
    });
    slow.collect()
}

fn show(place: &Place<'_>, load: &Load, figures: &Value, watched: &Watched) -> StepResult {
    let name = place.name;
    let mut found = StepResult::default();
    let columns = ["of", "a second", "failed", "p50 ms", "p95", "p99", "p99.9", "max"];
    let mut table = Table::new(&format!("{}, {name}", load.title), &columns);
    let iterations = &figures["iterations"];
    let lasted = iterations["seconds"].as_f64().unwrap_or(1.0);
    for (what, call) in [("score", &figures["calls"]["score"]), ("around ±5", &figures["calls"]["around"])] {
        let count = call["succeeded"].as_f64().unwrap_or_default();
        let ms = |key: &str| number(call["latency_ms"][key].as_f64().unwrap_or_default());
        let failed = call["failed"].as_u64().unwrap_or_default().to_string();
        let rate = number(count / lasted);
        let row = [what.to_owned(), rate, failed, ms("p50"), ms("p95"), ms("p99"), ms("p99.9"), ms("max")];
        table.row(row.into());
    }
    found.tables.push(table);
    let p999 = iterations["latency_ms"]["p99.9"].as_f64().unwrap_or_default();
    let rate = figures["calls"]["score"]["succeeded"].as_f64().unwrap_or_default() / lasted;
    found.figure("submits", rate);
    found.figure("p999_ms", p999);
    let dropped = iterations["arrived"].as_f64().unwrap_or_default()
        - iterations["succeeded"].as_f64().unwrap_or_default();
    if load.rate.contains("..") {
        let best = best(figures);
        found.figure("best", best);
        found.note(format!("{}: the best five seconds had {} a second in all", load.title, number(best)));
    } else {
        let title = load.title;
        found.ratios.push(Ratio::at_most(&format!("p99.9, {title}, {name}"), p999, "ms", LOAD_P999_MS));
        if load.reads == 50 {
            let what = format!("submits/s, {title}, {name} / R3's {}", number(R3_RATE));
            found.ratios.push(Ratio::at_least(&what, rate / R3_RATE, MIXED_TIMES_R3));
        }
    }
    found.tables.push(beside(load, name, rate * lasted, watched));
    let pauses = pauses(figures, watched);
    found.figure("pauses", pauses.len() as f64);
    let title = format!("Seconds with a wait over {PAUSE_MS} ms, {}, {name}: {}", load.title, pauses.len());
    let columns = ["at s", "longest ms", "cause", "disk MB/s", "its writes/s", "ms a write"];
    let mut table = Table::new(&title, &columns);
    let mut longest: Vec<&Pause> = pauses.iter().collect();
    longest.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    for pause in longest.into_iter().take(LISTED) {
        let mut row = vec![number(pause.at), number(pause.ms), pause.cause.clone()];
        row.extend(DISK.map(|figure| or_dash(pause.disk, |disk| number(figure(disk)))));
        table.row(row);
    }
    found.tables.push(table);
    found.charts.push(seconds_chart(load, name, figures));
    found.charts.extend(disk_chart(load, name, figures, watched));
    if dropped > 0.0 {
        found.note(format!("{}: {} arrivals found no connection or failed", load.title, number(dropped)));
    }
    found
}

/// The shown figures of a second of the disk.
const DISK: [fn(DeviceCounts) -> f64; 3] =
    [|disk| disk.bytes as f64 / 1e6, |disk| disk.writes as f64, DeviceCounts::ms_a_write];

/// Memory, bytes written and the disk during the load.
fn beside(load: &Load, name: &str, submits: f64, watched: &Watched) -> Table {
    let columns = [
        "resident GiB, first",
        "least",
        "most",
        "last",
        "bytes written a submit",
        "disk, median second: MB/s",
        "its writes/s",
        "ms a write",
    ];
    let title = format!("Memory of the server and the disk meanwhile, {}, {name}", load.title);
    let mut table = Table::new(&title, &columns);
    let gib = |bytes: Option<&u64>| or_dash(bytes, |bytes| format!("{:.2}", *bytes as f64 / GIB));
    let resident = &watched.resident;
    let written = watched.written.filter(|_| submits > 0.0);
    let mut row = vec![
        gib(resident.first()),
        gib(resident.iter().min()),
        gib(resident.iter().max()),
        gib(resident.last()),
        or_dash(written, |bytes| number(bytes as f64 / submits)),
    ];
    row.extend(DISK.map(|figure| or_dash(watched.disk_median(figure), number)));
    table.row(row);
    table
}

/// The highest rate over five seconds.
fn best(figures: &Value) -> f64 {
    let done: Vec<f64> = figures["per_second"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|second| second["done"].as_f64())
        .collect();
    done.windows(5).map(|five| five.iter().sum::<f64>() / 5.0).fold(0.0, f64::max)
}

fn seconds_chart(load: &Load, name: &str, figures: &Value) -> Chart {
    let line = |key: &str| {
        let seconds = figures["per_second"].as_array().into_iter().flatten();
        let point = |second: &Value| Some((second["at"].as_f64()?, second["latency_ms"][key].as_f64()?));
        Series { name: key.to_owned(), points: seconds.filter_map(point).collect() }
    };
    Chart {
        title: format!("Latency, second by second: {}, {name}", load.title),
        x: Axis::linear("seconds"),
        y: Axis::logarithmic("ms"),
        series: ["p50", "p99", "max"].into_iter().map(line).collect(),
    }
}

fn disk_chart(load: &Load, name: &str, figures: &Value, watched: &Watched) -> Option<Chart> {
    let begun = figures["begun_unix"].as_f64()?;
    let names = ["MB a second", "ms a write"];
    let line = |(name, figure): (&str, fn(DeviceCounts) -> f64)| {
        let points = watched.disk.iter().map(|(at, disk)| (*at as f64 / 1e6 - begun, figure(*disk)));
        // A logarithmic axis has no zero.
        let points = points.filter(|(at, value)| *at > 0.0 && *value > 0.0).collect();
        Series { name: name.to_owned(), points }
    };
    (!watched.disk.is_empty()).then(|| Chart {
        title: format!("The disk, second by second: {}, {name}", load.title),
        x: Axis::linear("seconds"),
        y: Axis::logarithmic("MB, ms"),
        series: names.into_iter().zip([DISK[0], DISK[2]]).map(line).collect(),
    })
}
