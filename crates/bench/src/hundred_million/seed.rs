//! Filling a store by `tally seed scores`, which continues after an interruption.

use super::found::StepResult;
use super::place::{Place, target};
use super::{BOARD, Run, WRITERS};
use crate::error::{During, Error, prove};
use std::process::Stdio;
use std::time::Instant;
use tally_load::report::{Table, number};

pub(super) fn sqlite(run: &Run<'_>) -> Result<StepResult, Error> {
    seed(&Place::sqlite(run)?)
}

pub(super) fn mariadb(run: &Run<'_>) -> Result<StepResult, Error> {
    seed(&Place::mariadb(run)?)
}

fn seed(place: &Place<'_>) -> Result<StepResult, Error> {
    let run = place.run;
    let is_new = !place.folder.join("data").exists();
    let started = place.start()?;
    if is_new {
        // The board, which keeps the latest score, and the players that score while the server is killed.
        let writers = target(&started.server, WRITERS);
        tally_load::fill(&writers, run.options.seed, &mut |_| {}).during("make the board")?;
    }
    started.server.stop()?;
    let began = Instant::now();
    let mut command = place.command(&["seed", "scores", BOARD, "--players", &run.players.to_string()]);
    // The command shows its own progress bar.
    let seeded = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit()).output();
    let seeded = seeded.during("seed scores")?;
    prove(seeded.status.success(), || format!("`tally seed scores` ended with {}", seeded.status))?;
    let said = String::from_utf8_lossy(&seeded.stdout);
    let made: u64 = said.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or_default();
    let seconds = began.elapsed().as_secs_f64();
    let bytes = place.bytes()?;
    let columns = ["store", "players", "in this go", "scores/s", "bytes a player"];
    let mut table = Table::new(&format!("Filling {}", place.name), &columns);
    let rate = made as f64 / seconds;
    let players = run.players as f64;
    let row = [number(players), number(made as f64), number(rate), number(bytes as f64 / players)];
    table.row(std::iter::once(place.name.to_owned()).chain(row).collect());
    let mut found = StepResult { tables: vec![table], ..StepResult::default() };
    found.figure("seed_rate", rate);
    found.note(format!(
        "{}: by `tally seed scores` without a server beside it, names of 16 to 24 signs, a few thousand different scores; \
         whole command, until everything is in the tables",
        place.name
    ));
    Ok(found)
}
