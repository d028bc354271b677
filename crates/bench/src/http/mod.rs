//! Scenario `http`: the real server over a socket, beside measured figures of Nakama.
//!
//! The board is filled over the wire, and each kind of request has its own run. At the end random players must have
//! their last acknowledged score. No baseline runs: another server with its own database takes long to set up. Its
//! figures are those of one careful measurement on the same kind of machine.

use crate::error::{During, Error, prove};
use crate::options::Options;
use crate::server::Server;
use crate::targets::{NAKAMA_AROUNDS, NAKAMA_SUBMITS, NAKAMA_TOPS, TIMES_NAKAMA};
use std::time::{Duration, Instant};
use tally_load::report::{Axis, Chart, Ratio, Report, Series, Table, number};
use tally_load::{Acknowledged, LoadOutcome, LoadPlan, LoadTarget, RequestKind, Skew, fill, run, verify};

/// Players whose score is read back.
const READ_BACK: u64 = 1_000;
/// Percentiles of the chart: one request in so many is slower.
const RARITIES: [f64; 7] = [2.0, 5.0, 10.0, 100.0, 1_000.0, 10_000.0, 100_000.0];
const KINDS: [RequestKind; 5] =
    [RequestKind::Submit, RequestKind::Top, RequestKind::Rank, RequestKind::Around, RequestKind::Mix];

/// One run and the processor time that the server used in it.
struct Measured {
    outcome: LoadOutcome,
    server_cores: Option<f64>,
}

pub(crate) fn measure(options: &Options) -> Result<Report, Error> {
    let binary = options.binary("http")?;
    let players: u64 = options.pick(1_000, 200_000);
    let connections = options.pick(4, 64);
    let title =
        format!("over HTTP, {connections} connections, a board of {} players", number(players as f64));
    let mut report = Report::new("http", &title, options);
    let folder = tempfile::tempdir().during("make a folder")?;
    let sync = crate::disk::sync_ms().during("try the disk")?;
    let server = Server::start(binary, folder.path())?;
    let target = LoadTarget { address: server.listens.http, token: None, board: "bench".to_owned(), players };
    options.say(&format!("filling a board of {players} players"));
    let began = Instant::now();
    let mut acknowledged = fill(&target, options.seed, &mut |_| {}).during("fill the board")?;
    let filled = players as f64 / began.elapsed().as_secs_f64();
    let mut all = Vec::with_capacity(KINDS.len());
    for kind in KINDS {
        options.say(kind.name());
        let plan = LoadPlan {
            kind,
            skew: Skew::Uniform,
            connections,
            warm_up: Duration::from_millis(options.pick(100, 1_000)),
            duration: options.duration(),
            seed: options.seed,
        };
        all.push(measure_one(&server, &target, &plan, &mut acknowledged)?);
    }
    read_back(&target, &acknowledged, options, &mut report)?;
    server.stop()?;
    show(&mut report, &all);
    report.note(format!("filled over HTTP, 1,000 scores in a request: {} scores/s", number(filled)));
    report.note(crate::disk::sentence(sync));
    report.note("the load generator shares the machine: one thread of its own, closed loop");
    report.note(
        "server cores: processor time of the server over time; the rest is the generator and the system",
    );
    report.note(
        "Nakama on PostgreSQL 15, 64 connections, was measured on 2 cores and 24 GiB: absolute figures drift",
    );
    Ok(report)
}

/// Fails without a server to measure.
pub(crate) fn needs(options: &Options) -> Result<(), Error> {
    options.binary("http").map(drop)
}

fn measure_one(
    server: &Server,
    target: &LoadTarget,
    plan: &LoadPlan,
    acknowledged: &mut Acknowledged,
) -> Result<Measured, Error> {
    let (before, began) = (server.process.cpu_s(), Instant::now());
    let outcome = run(target, plan, acknowledged).during("load the server")?;
    let used = server.process.cpu_s().zip(before).map(|(after, before)| after - before);
    let server_cores = used.map(|used| used / began.elapsed().as_secs_f64());
    let name = plan.kind.name();
    prove(outcome.failed() == 0, || format!("{name}: requests failed, by status {:?}", outcome.errors))?;
    prove(outcome.succeeded > 0, || format!("{name}: nothing was answered"))?;
    Ok(Measured { outcome, server_cores })
}

fn read_back(
    target: &LoadTarget,
    acknowledged: &Acknowledged,
    options: &Options,
    report: &mut Report,
) -> Result<(), Error> {
    let samples = READ_BACK.min(target.players);
    let proof = verify(target, acknowledged, samples, !options.seed).during("read scores back")?;
    prove(proof.wrong.is_empty(), || {
        format!("{} of {samples}: {}", proof.wrong.len(), proof.wrong.join("; "))
    })?;
    prove(proof.right == samples, || format!("only {} of {samples} scores are known", proof.right))?;
    report
        .note(format!("{} random players were read back: each had the score acknowledged last", proof.right));
    Ok(())
}

fn show(report: &mut Report, all: &[Measured]) {
    let columns = ["request", "per second", "p50 ms", "p99 ms", "p99.9 ms", "max ms", "server cores"];
    let mut table = Table::new("Rate, and latency from sending to the last byte", &columns);
    for Measured { outcome, server_cores } in all {
        let latencies = outcome.latencies();
        let latency = |percent| number(latencies.percentile_ms(percent));
        table.row(vec![
            outcome.kind.name().to_owned(),
            number(outcome.rate()),
            latency(50.0),
            latency(99.0),
            latency(99.9),
            number(latencies.max_ms()),
            server_cores.map_or_else(|| "unknown".to_owned(), number),
        ]);
        let peer = match outcome.kind {
            RequestKind::Submit => Some(("durable submits/s", NAKAMA_SUBMITS)),
            RequestKind::Top => Some(("top 10/s", NAKAMA_TOPS)),
            RequestKind::Around => Some(("around ±5/s", NAKAMA_AROUNDS)),
            RequestKind::Rank | RequestKind::Mix | RequestKind::Half => None,
        };
        if let Some((name, theirs)) = peer {
            let name = format!("{name}, tally / Nakama's {}", number(theirs));
            report.ratios.push(Ratio::at_least(&name, outcome.rate() / theirs, TIMES_NAKAMA));
        }
    }
    report.tables.push(table);
    report.charts.push(chart(all));
}

fn chart(all: &[Measured]) -> Chart {
    let line = |one: &Measured| {
        let latencies = one.outcome.latencies();
        // A percentile needs at least one request.
        let known = RARITIES.into_iter().filter(|rarity| *rarity <= latencies.count() as f64);
        let points = known.map(|rarity| (rarity, latencies.percentile_ms(100.0 - 100.0 / rarity))).collect();
        Series { name: one.outcome.kind.name().to_owned(), points }
    };
    Chart {
        title: "Latency of the slowest one in so many requests".to_owned(),
        x: Axis::logarithmic("one in … requests is slower"),
        y: Axis::logarithmic("milliseconds"),
        series: all.iter().map(line).collect(),
    }
}
