//! `tally load`: open-loop load on a running server by a schedule, its figures, and whether money was made or
//! lost.
//!
//! Ctrl-C ends the arrivals, not the command: the figures of a part are worth as much as those of a whole run.
//!
//! The load is `tally_load::open`. Not here: showing figures (`show`), comparing trial balances (`books`), and slow
//! requests (`slow`).

mod books;
mod show;
mod slow;

use crate::cli::{Cli, LoadArgs, LoadSkew, LoadWhat};
use crate::config::Usage;
use crate::seed::scores;
use crate::serve::UNIX;
use crate::target::TargetServer;
use anyhow::{Context, Result, bail};
use books::Books;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use std::io::IsTerminal;
use std::net::{SocketAddr, ToSocketAddrs};
use std::process::ExitCode;
use std::time::Duration;
use tally_load::open::{self, Journey, OpenLimits, Protocol, Scene, Schedule, Threshold};
use tally_load::{People, Skew};
use tally_server::readiness::LOCAL_PREFIX;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use ureq::http::Method;

/// The exit code after Ctrl-C, as in shells.
const INTERRUPTED: u8 = 130;

/// Players of a leaderboard without seeded ones.
const PLAYERS: u64 = 100_000;

/// A validated run.
struct Plan {
    scene: Scene,
    schedule: Schedule,
    bounds: OpenLimits,
    thresholds: Vec<Threshold>,
}

/// Runs the subcommand.
pub(crate) fn run(cli: &Cli, args: &LoadArgs) -> Result<ExitCode> {
    let mut plan = plan(args)?;
    let target = TargetServer::running(cli, &args.target)?;
    let client = &target.client;
    client.wait_until_ready()?;
    plan.scene.address = address(args.redis.as_deref().unwrap_or(client.shown()))?;
    // Only HTTP accepts the token for local commands.
    let good = |key: &&str| plan.scene.protocol == Protocol::Http || !key.starts_with(LOCAL_PREFIX);
    plan.scene.key = client.key().filter(good).map(str::to_owned);
    plan.scene.run = format!("load-{:016x}", getrandom::u64().context("draw a name for the run")?);
    if args.what == LoadWhat::Scores {
        make_board(&target, &args.board)?;
        if args.players.is_none() {
            plan.scene.people = People::seeded(scores::made_on(client, &args.board)?.unwrap_or(PLAYERS));
        }
    }
    let before = Books::read(client)?;
    let bar = bar(&plan.schedule)?;
    let mut told = |progress| show::live(&bar, progress);
    let outcome = open::run(&plan.scene, &plan.schedule, plan.bounds, interrupts()?, &mut told);
    bar.finish_and_clear();
    let outcome = match outcome {
        Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {
            eprintln!("interrupted before the first arrival");
            return Ok(ExitCode::from(INTERRUPTED));
        }
        outcome => {
            outcome.with_context(|| format!("load {}", args.redis.as_deref().unwrap_or(client.shown())))?
        }
    };
    // Looked up again, because a restarted server has another token.
    let again = TargetServer::running(cli, &args.target);
    let slow = again.as_ref().ok().and_then(|target| slow::read(&target.client, outcome.begun));
    let after = again.and_then(|target| Books::read(&target.client));
    let books = books::compare(before.as_ref(), after.ok().flatten().as_ref());
    let results: Vec<_> = plan.thresholds.iter().map(|threshold| threshold.check(&outcome)).collect();
    let mut report = show::report(args, (&outcome, &plan.schedule), &results, &books);
    report.tables.extend(slow);
    print!("{}", report.to_text());
    if let Some(file) = &args.report {
        std::fs::write(file, report.to_html()).with_context(|| format!("write {}", file.display()))?;
        println!("\nreport: {}", file.display());
    }
    if let Some(file) = &args.json {
        let json = show::json(args, &outcome, &results, &books);
        std::fs::write(file, format!("{json:#}\n")).with_context(|| format!("write {}", file.display()))?;
        println!("{}figures: {}", if args.report.is_some() { "" } else { "\n" }, file.display());
    }
    if outcome.interrupted {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let kept = results.iter().all(|one| one.kept) && books.agree != Some(false);
    Ok(if kept { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Receives each Ctrl-C; once the receiver is dropped, Ctrl-C ends the process.
fn interrupts() -> Result<mpsc::Receiver<()>> {
    let (send, receive) = mpsc::channel(1);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let mut signals = {
        let _inside = runtime.enter();
        signal(SignalKind::interrupt()).context("listen to Ctrl-C")?
    };
    let listen = async move {
        while signals.recv().await.is_some() {
            if send.send(()).await.is_err() {
                std::process::exit(INTERRUPTED.into());
            }
        }
    };
    std::thread::Builder::new().name("interrupts".into()).spawn(move || runtime.block_on(listen))?;
    Ok(receive)
}

fn plan(args: &LoadArgs) -> Result<Plan> {
    let usage = |flag: &str, why: String| Usage(format!("{flag}: {why}"));
    let time = |flag: &str, text: &str| {
        let parsed = text.parse::<jiff::SignedDuration>().ok().and_then(|time| Duration::try_from(time).ok());
        parsed
            .filter(|time| !time.is_zero())
            .ok_or_else(|| usage(flag, format!("`{text}` is no length of time; examples: 30s, 2m, 1m30s")))
    };
    let lasts: Vec<_> = args.stages.iter().map(|text| time("--stage", text)).collect::<Result<_, _>>()?;
    let schedule = Schedule::parse(&args.rate, &lasts).map_err(|why| usage("--rate", why))?;
    let journey = journey(args.what);
    if journey != Journey::Scores && (args.reads > 0 || args.redis.is_some()) {
        bail!(Usage("--reads and --redis are for `tally load scores`".into()));
    }
    let names = journey.names();
    let threshold = |text: &String| Threshold::parse(text, &names).map_err(|why| usage("--threshold", why));
    let thresholds = args.thresholds.iter().map(threshold).collect::<Result<_, _>>()?;
    if args.members > args.of {
        bail!(usage("--members", format!("{} of {} members cannot act", args.members, args.of)));
    }
    let players = args.players.unwrap_or(PLAYERS);
    let people = if args.what == LoadWhat::Scores { players } else { args.of };
    let connections = args.connections as usize;
    Ok(Plan {
        scene: Scene {
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            journey,
            people: People::seeded(people),
            members: args.members,
            skew: match args.skew {
                LoadSkew::Uniform => Skew::Uniform,
                LoadSkew::Zipf => Skew::Zipf,
            },
            protocol: if args.redis.is_some() { Protocol::Redis } else { Protocol::Http },
            key: None,
            board: args.board.clone(),
            reads: args.reads,
            run: String::new(),
            seed: args.seed,
        },
        schedule,
        bounds: OpenLimits {
            connections,
            waiting: args.waiting.unwrap_or(connections * 10),
            answer: time("--answer", &args.answer)?,
        },
        thresholds,
    })
}

fn journey(what: LoadWhat) -> Journey {
    match what {
        LoadWhat::Transfers => Journey::Transfers,
        LoadWhat::Scores => Journey::Scores,
        LoadWhat::MainPage => Journey::MainPage,
        LoadWhat::Mixed => Journey::Mixed,
    }
}

/// The socket address of `http://…`.
fn address(base: &str) -> Result<SocketAddr> {
    if base.starts_with(UNIX) {
        bail!(Usage(format!(
            "a load needs a TCP address (`http.listen`, --url http://…), and the server is at {base}"
        )));
    }
    let place = base.strip_prefix("http://").unwrap_or(base);
    let place = place.split('/').next().unwrap_or(place);
    let has_port = place.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let place = if has_port { place.to_owned() } else { format!("{place}:80") };
    let mut found = place.to_socket_addrs().with_context(|| format!("find {place}"))?;
    found.next().with_context(|| format!("{place} has no address"))
}

/// Makes the leaderboard of scores if it is missing.
fn make_board(target: &TargetServer, board: &str) -> Result<()> {
    if !board.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        bail!(Usage(format!("--board: `{board}` has other signs than letters, digits and `-`")));
    }
    let path = format!("/v1/leaderboards/{board}");
    if target.client.send(&Method::GET, &path, None)?.status == 404 {
        let body = json!({}).to_string();
        target.client.ask(&Method::PUT, &path, Some(("application/json", body.as_bytes())))?;
    }
    Ok(())
}

/// Progress, on a terminal only.
fn bar(schedule: &Schedule) -> Result<ProgressBar> {
    if !std::io::stderr().is_terminal() {
        return Ok(ProgressBar::hidden());
    }
    let style = ProgressStyle::with_template("{elapsed_precise} {bar:24} {msg}").context("show progress")?;
    Ok(ProgressBar::new(schedule.lasts().as_secs().max(1)).with_style(style))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_with_and_without_a_port() {
        for (base, found) in [
            ("http://127.0.0.1:8420", "127.0.0.1:8420"),
            ("http://127.0.0.1", "127.0.0.1:80"),
            ("http://[::1]:8420", "[::1]:8420"),
            ("http://[::1]", "[::1]:80"),
        ] {
            assert_eq!(address(base).unwrap().to_string(), found);
        }
    }
}
