//! From kill -9 to exact ranks: the server is killed during submits, and started again.

use super::exact;
use super::found::StepResult;
use super::place::{Place, Start, get, target};
use super::{BOARD, GIB, Run, WRITERS};
use crate::error::{During, Error, prove};
use crate::targets::{RECOVERY_MARIADB_S, RECOVERY_SQLITE_S, RESIDENT_GIB};
use std::time::Duration;
use tally_load::report::{Ratio, Table, number};
use tally_load::{Acknowledged, LoadPlan, RequestKind, Skew};

pub(super) fn sqlite(run: &Run<'_>) -> Result<StepResult, Error> {
    recover(&Place::sqlite(run)?)
}

pub(super) fn mariadb(run: &Run<'_>) -> Result<StepResult, Error> {
    recover(&Place::mariadb(run)?)
}

/// One start after a kill.
struct Recovered {
    seconds: f64,
    phases: Vec<(String, f64)>,
    resident: f64,
    peak: f64,
    board: f64,
    proven: u64,
}

fn recover(place: &Place<'_>) -> Result<StepResult, Error> {
    let run = place.run;
    let kills = run.options.pick(1, 3);
    let mut acknowledged = Acknowledged::new(WRITERS);
    let mut all = Vec::with_capacity(kills);
    let mut started = place.start()?;
    for kill in 0..kills {
        run.options.say(&format!("{}: kill {} of {kills}", place.name, kill + 1));
        kill_under_load(run, started, &mut acknowledged, kill as u64)?;
        started = place.start()?;
        all.push(measure(run, &started, &acknowledged)?);
    }
    let given = exact::ask_ranks(place, &started.server, run.options.seed)?;
    started.server.stop()?;
    let rows = exact::count(place, &given)?;
    show(place, &all, given.len(), rows)
}

/// Kills the server during submits.
fn kill_under_load(
    run: &Run<'_>,
    started: Start,
    acknowledged: &mut Acknowledged,
    seed: u64,
) -> Result<(), Error> {
    let Start { mut server, .. } = started;
    let target = target(&server, WRITERS);
    let time = run.options.pick(Duration::from_secs(1), Duration::from_secs(10));
    let plan = LoadPlan {
        kind: RequestKind::Submit,
        skew: Skew::Uniform,
        connections: 64,
        warm_up: Duration::ZERO,
        // The kill comes before this is over.
        duration: time * 2,
        seed,
    };
    std::thread::scope(|scope| {
        let load = scope.spawn(|| tally_load::run(&target, &plan, acknowledged));
        std::thread::sleep(time);
        server.process.0.kill().during("kill the server")?;
        server.process.0.wait().during("wait for the server")?;
        let outcome = load.join().expect("a load does not panic").during("load the server")?;
        prove(outcome.succeeded > 0, || "no submit succeeded before the kill".to_owned())
    })
}

/// The server's own figures, and whether it has everything acknowledged.
fn measure(run: &Run<'_>, started: &Start, acknowledged: &Acknowledged) -> Result<Recovered, Error> {
    let server = &started.server;
    let status = get(server, "/v1/status")?;
    let boards = status["boards"].as_array().map_or(&[][..], Vec::as_slice);
    let board = boards.iter().find(|board| board["board"] == BOARD);
    let board = board.ok_or_else(|| Error::Proof(format!("no board in {status}")))?;
    let proof = tally_load::verify(&target(server, WRITERS), acknowledged, 2_000, run.options.seed);
    let proof = proof.during("read scores back")?;
    prove(proof.wrong.is_empty() && proof.right > 0, || {
        format!("{} right, {} unknown; wrong: {}", proof.right, proof.unknown, proof.wrong.join("; "))
    })?;
    let peak = crate::resident::peak_of(server.process.0.id()).unwrap_or_default();
    Ok(Recovered {
        seconds: started.seconds,
        phases: started.phases.clone(),
        resident: server.process.resident_bytes().unwrap_or_default() as f64,
        peak: peak as f64,
        board: board["bytes"].as_f64().unwrap_or_default(),
        proven: proof.right,
    })
}

fn show(place: &Place<'_>, all: &[Recovered], ranks: usize, rows: u64) -> Result<StepResult, Error> {
    let players = place.run.players as f64;
    let columns =
        ["kill", "s to exact ranks", "phases", "resident GiB", "peak GiB", "board GiB", "bytes a player"];
    let mut table = Table::new(&format!("From kill -9 to exact ranks, {}", place.name), &columns);
    for (at, one) in all.iter().enumerate() {
        let phases: Vec<_> = one.phases.iter().map(|(name, at)| format!("{name} {at:.1}")).collect();
        table.row(vec![
            (at + 1).to_string(),
            number(one.seconds),
            phases.join(", "),
            format!("{:.2}", one.resident / GIB),
            format!("{:.2}", one.peak / GIB),
            format!("{:.2}", one.board / GIB),
            number(one.board / players),
        ]);
    }
    let mut found = StepResult { tables: vec![table], ..StepResult::default() };
    let worst = all.iter().map(|one| one.seconds).fold(0.0, f64::max);
    let resident = all.iter().map(|one| one.resident).fold(0.0, f64::max) / GIB;
    found.figure("recovery_s", worst);
    found.figure("resident_gib", resident);
    found.figure("bytes_a_player", all.iter().map(|one| one.board).fold(0.0, f64::max) / players);
    let target = if place.database().is_none() { RECOVERY_SQLITE_S } else { RECOVERY_MARIADB_S };
    let name = format!("seconds from kill -9 to exact ranks, {}", place.name);
    found.ratios.push(Ratio::at_most(&name, worst, "s", target));
    let name = format!("resident memory of the server, {}", place.name);
    found.ratios.push(Ratio::at_most(&name, resident, "GiB", RESIDENT_GIB));
    let proven = all.iter().map(|one| one.proven).min().unwrap_or_default();
    found.note(format!(
        "{}: killed while 64 connections scored; after each start at least {proven} random players of those had the score \
         acknowledged last",
        place.name
    ));
    found.note(format!(
        "{}: the ranks of {ranks} random players are those of a count of all {} stored rows; pages around them are in order",
        place.name,
        number(rows as f64)
    ));
    found.note(
        "phases: seconds after the start at which /readyz first said so; page caches of the system are warm",
    );
    Ok(found)
}
