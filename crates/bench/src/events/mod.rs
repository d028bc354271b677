//! Scenario `events`: submits at a steady rate beside open event streams, and without them.
//!
//! The real server over HTTP. Arrivals are due by the clock, so the figures show a submit that waits for the writing of streams.
//! Streams of a board without submits show the cost of an open stream. Those of the scored board get ten batches a second each.
//! The baseline is polling: as many callers read the top of the board once a second. Not here: events of contests and money,
//! which are rare.

mod streams;

use crate::error::{During, Error, prove};
use crate::options::Options;
use crate::server::Server;
use crate::targets::SUBMIT_BESIDE_STREAMS;
use std::time::Duration;
use streams::{Listeners, Received, What};
use tally_load::open::{self, Journey, OpenLimits, OpenOutcome, Protocol, Scene, Schedule};
use tally_load::report::{Ratio, Report, Table, number, or_dash};
use tally_load::{Latencies, LoadTarget, People, Skew, fill};

const BOARD: &str = "bench";
/// The board without submits.
const QUIET: &str = "quiet";

/// A run beside some subscribers.
struct Run {
    name: &'static str,
    outcome: OpenOutcome,
    received: Received,
    cores: Option<f64>,
    resident: Option<u64>,
}

pub(crate) fn measure(options: &Options) -> Result<Report, Error> {
    let binary = options.binary("events")?;
    let players = options.members.unwrap_or(options.pick(2_000, 1_000_000));
    let (rate, streams) = (options.pick(200, 10_000), options.pick(20, 1_000));
    let title = format!(
        "{} submits a second on a board of {} players, beside {} streams",
        number(f64::from(rate)),
        number(players as f64),
        streams
    );
    let mut report = Report::new("events", &title, options);
    let folder = options.folder()?;
    let sync = crate::disk::sync_ms().during("try the disk")?;
    let server = Server::start(binary, folder.path())?;
    for (board, players) in [(QUIET, 1), (BOARD, players)] {
        options.say(&format!("filling `{board}`"));
        let target =
            LoadTarget { address: server.listens.http, token: None, board: board.to_owned(), players };
        let mut on_progress = |done| options.progress("filling", done, players);
        fill(&target, options.seed, &mut on_progress).during("fill the board")?;
    }
    // Once before anything counts: a submit of a new player is of another kind.
    load(&server, players, rate, options)?;
    let mut runs = Vec::new();
    for (name, listen) in [
        ("no streams", None),
        ("streams of another board", Some(What::Stream(QUIET))),
        ("streams of this board", Some(What::Stream(BOARD))),
        ("baseline: the top ten, once a second each", Some(What::Poll(BOARD))),
    ] {
        options.say(name);
        let listeners = listen.map(|what| Listeners::open(server.listens.http, what, streams)).transpose()?;
        let before = server.process.cpu_s();
        let outcome = load(&server, players, rate, options)?;
        let cores =
            server.process.cpu_s().zip(before).map(|(now, then)| (now - then) / outcome.lasted.as_secs_f64());
        let resident = server.process.resident_bytes();
        let received = listeners.map(Listeners::close).transpose()?.unwrap_or_default();
        prove(received.broken == 0, || format!("{name}: {} of {streams} were ended", received.broken))?;
        runs.push(Run { name, outcome, received, cores, resident });
    }
    server.stop()?;
    let told = runs[2].received.events;
    prove(told > u64::from(streams), || format!("streams of the board heard {told} events"))?;
    show(&mut report, &runs, streams);
    report.note(crate::disk::sentence(sync));
    report.note("load, listeners and server share the machine: a thread of load, and one that reads what listeners hear");
    report.note(
        "a batch of a stream has the newest record and rank of each player that changed; ten a second at most",
    );
    Ok(report)
}

/// Fails without a server to measure.
pub(crate) fn needs(options: &Options) -> Result<(), Error> {
    options.binary("events").map(drop)
}

fn load(server: &Server, players: u64, rate: u32, options: &Options) -> Result<OpenOutcome, Error> {
    let scene = Scene {
        protocol: Protocol::Http,
        address: server.listens.http,
        journey: Journey::Scores,
        people: People::seeded(players),
        members: 1,
        skew: Skew::Uniform,
        key: None,
        board: BOARD.to_owned(),
        reads: 0,
        run: String::new(),
        seed: options.seed,
    };
    let lasts = options.duration();
    let schedule = Schedule::parse(&rate.to_string(), &[lasts]).expect("a rate and a length of time");
    let bounds = OpenLimits { connections: 64, waiting: 100_000, answer: Duration::from_secs(30) };
    let (_never, stop) = tokio::sync::mpsc::channel(1);
    let outcome = open::run(&scene, &schedule, bounds, stop, &mut |_| {}).during("load the server")?;
    let wrong = outcome.failed + outcome.dropped;
    prove(wrong == 0, || format!("{wrong} submits failed or were dropped: {:?}", outcome.errors()))?;
    Ok(outcome)
}

fn show(report: &mut Report, runs: &[Run], streams: u32) {
    let columns = [
        "listening",
        "submits/s",
        "p50 ms",
        "p95",
        "p99",
        "p99.9",
        "max",
        "server cores",
        "heard/s of each",
        "KiB/s of each",
        "resident MiB",
    ];
    let mut table = Table::new("What a submit waits beside listeners", &columns);
    for run in runs {
        let latencies: &Latencies = &run.outcome.iterations;
        let seconds = run.outcome.lasted.as_secs_f64();
        let each = |all: u64| number(all as f64 / seconds / f64::from(streams));
        let ms = |percent| number(latencies.percentile_ms(percent));
        table.row(vec![
            run.name.to_owned(),
            number(run.outcome.rate()),
            ms(50.0),
            ms(95.0),
            ms(99.0),
            ms(99.9),
            number(latencies.max_ms()),
            or_dash(run.cores, number),
            each(run.received.events),
            each(run.received.bytes / 1024),
            or_dash(run.resident, |bytes| number(bytes as f64 / 1_048_576.0)),
        ]);
    }
    report.tables.push(table);
    let of = |run: usize, percent| runs[run].outcome.iterations.percentile_ms(percent);
    for (name, run) in
        [("streams of another board", 1), ("streams of this board", 2), ("as many callers that ask", 3)]
    {
        for percent in [50.0, 95.0] {
            let name = format!("p{percent} of submits, beside {name} / without streams");
            let ratio = of(run, percent) / of(0, percent).max(1e-3);
            report.ratios.push(if run == 2 {
                Ratio::at_most(&name, ratio, "×", SUBMIT_BESIDE_STREAMS)
            } else {
                Ratio::times(&name, ratio)
            });
        }
    }
}
