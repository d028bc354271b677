//! Scenario `endurance`: hours of submits and keyed transfers at a steady rate, and whether anything grows that should not.
//!
//! The real server with a store in a file. Samples every few seconds have its memory, its descriptors, its journal and its tables
//! (`sample`). Each figure of the last sixth of the run is compared with that of the second sixth: the first one is the warm-up,
//! in which caches fill. Outcomes of idempotency keys are kept for a short time, so that they end during the run. Tables gain what
//! a transfer takes, which must stay the same. Afterwards the whole store is verified.
//!
//! Not here: a baseline. The run is compared with itself.

mod sample;
mod show;

use crate::error::{During, Error, prove};
use crate::options::Options;
use crate::server::Server;
use crate::set_at_end::SetAtEnd;
use sample::Sample;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tally_load::open::{self, Journey, OpenLimits, OpenOutcome, Protocol, Scene, Schedule};
use tally_load::report::Report;
use tally_load::{People, Skew};

const BOARD: &str = "endurance";
/// How long outcomes of idempotency keys are kept.
const KEEP: &str = "10m";
/// Longer than a run: members sign in before it.
const TOKEN_TTL: &str = "24h";

/// The sizes of a run.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    players: u64,
    members: u64,
    submits: u32,
    transfers: u32,
    lasts: Duration,
    /// Between two samples.
    interval: Duration,
}

impl Sizes {
    fn of(options: &Options) -> Self {
        let minutes = |minutes: u32| Duration::from_secs(u64::from(minutes) * 60);
        Self {
            players: options.members.unwrap_or(options.pick(2_000, 1_000_000)),
            members: options.pick(200, 100_000),
            submits: options.pick(200, 2_000),
            transfers: options.pick(50, 500),
            lasts: options.minutes.map_or(options.pick(Duration::from_secs(3), minutes(120)), minutes),
            interval: options.pick(Duration::from_millis(200), Duration::from_secs(10)),
        }
    }
}

pub(crate) fn measure(options: &Options) -> Result<Report, Error> {
    let binary = options.binary("endurance")?;
    let sizes = Sizes::of(options);
    let title = format!(
        "{} submits and {} keyed transfers a second for {} s",
        sizes.submits,
        sizes.transfers,
        sizes.lasts.as_secs()
    );
    let mut report = Report::new("endurance", &title, options);
    let folder = options.folder()?;
    let sync = crate::disk::sync_ms().during("try the disk")?;
    let settings = [("TALLY_IDEMPOTENCY_KEEP", KEEP), ("TALLY_AUTH_TOKEN_TTL", TOKEN_TTL)];
    let server = Server::start_with(binary, folder.path(), &[], &settings)?;
    options.say("filling");
    let data = folder.path().join("data");
    let count = sizes.players.to_string();
    command(binary, &data, &["seed", "scores", BOARD, "--players", &count])?;
    let (members, transactions) = (sizes.members.to_string(), (2 * sizes.members).to_string());
    command(binary, &data, &["seed", "wallets", "--members", &members, "--transactions", &transactions])?;
    let (outcomes, samples) = load(options, sizes, &server, &data)?;
    server.stop()?;
    options.say("verifying");
    let verified = command(binary, &data, &["verify"])?;
    show::show(&mut report, &outcomes, &samples, sizes);
    let found = verified.lines().find(|line| line.starts_with("ok")).unwrap_or_default();
    report.note(format!("`tally verify` afterwards: {found}"));
    report.note(format!("outcomes of idempotency keys are kept for {KEEP}"));
    report.note(crate::disk::sentence(sync));
    Ok(report)
}

/// Fails without a server to measure.
pub(crate) fn needs(options: &Options) -> Result<(), Error> {
    options.binary("endurance").map(drop)
}

/// Runs a command of the binary on the store; returns its output.
fn command(binary: &Path, data: &Path, words: &[&str]) -> Result<String, Error> {
    let mut command = Command::new(binary);
    command.args(words).arg("--data").arg(data).stdin(Stdio::null());
    let ran = command.output().during("run a command of the server")?;
    let (said, errors) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    prove(ran.status.success(), || format!("`tally {}` ended with {}: {errors}", words[0], ran.status))?;
    Ok(said.into_owned())
}

/// Both loads beside each other, with samples until both have ended.
fn load(
    options: &Options,
    sizes: Sizes,
    server: &Server,
    data: &Path,
) -> Result<([OpenOutcome; 2], Vec<Sample>), Error> {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let end = SetAtEnd(&over);
        let samples = scope.spawn(|| sample::until(&over, server, data, sizes, options));
        let transfers =
            scope.spawn(|| run(options, sizes, server, Journey::Transfers, (sizes.transfers, sizes.members)));
        let submits = run(options, sizes, server, Journey::Scores, (sizes.submits, sizes.players));
        let transfers = transfers.join().expect("a load does not panic");
        drop(end);
        let samples = samples.join().expect("sampling does not panic");
        Ok(([submits?, transfers?], samples?))
    })
}

fn run(
    options: &Options,
    sizes: Sizes,
    server: &Server,
    journey: Journey,
    (rate, people): (u32, u64),
) -> Result<OpenOutcome, Error> {
    let scene = Scene {
        protocol: Protocol::Http,
        address: server.listens.http,
        journey,
        people: People::seeded(people),
        // Each signs in before the run, which takes 20 ms of a processor.
        members: people.min(options.pick(20, 500)),
        skew: Skew::Zipf,
        key: None,
        board: BOARD.to_owned(),
        reads: 0,
        run: format!("endurance-{}", std::process::id()),
        seed: options.seed,
    };
    let schedule = Schedule::parse(&rate.to_string(), &[sizes.lasts]).expect("a rate and a length of time");
    let bounds = OpenLimits { connections: 64, waiting: 100_000, answer: Duration::from_secs(30) };
    let (_never, stop) = tokio::sync::mpsc::channel(1);
    let outcome = open::run(&scene, &schedule, bounds, stop, &mut |_| {}).during("load the server")?;
    let wrong = outcome.failed + outcome.dropped;
    prove(wrong == 0, || format!("{wrong} requests failed or were dropped: {:?}", outcome.errors()))?;
    Ok(outcome)
}
