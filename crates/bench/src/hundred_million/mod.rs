//! Scenario `hundred-million`: the size and the load of field report R3 (`docs/bench.md`) on one machine, step by step.
//!
//! The steps fill a store with a hundred million players, kill its server, and start it again. Then they send R3's load, half
//! reads and half submits, and end a period. At a tenth of the players they also measure a plain sorted set in Redis, as R3
//! has it. The run takes hours. So the work directory keeps the stores and the result of each step, and an interrupted run
//! continues with the step that was interrupted. Not here: more than one machine, see `docs/deploy/billion.md`.

mod exact;
mod found;
mod loads;
mod place;
mod recover;
mod seed;
mod show;
mod steps;
mod watch;

use crate::database;
use crate::error::{During, Error};
use crate::options::{Options, Size};
use crate::redis;
use found::StepResult;
use std::path::{Path, PathBuf};
use tally_load::report::{Report, number};

/// The board with all players.
const BOARD: &str = "arena";
/// So many players submit while the server is killed.
const WRITERS: u64 = 10_000;
const GIB: f64 = (1_u64 << 30) as f64;

/// What every step needs.
struct Run<'r> {
    options: &'r Options,
    binary: &'r Path,
    /// The work directory: `--work`, or a temporary one.
    folder: &'r Path,
    players: u64,
}

pub(crate) fn measure(options: &Options) -> Result<Report, Error> {
    let own;
    let folder = match &options.work {
        Some(folder) => folder.as_path(),
        None => {
            own = tempfile::tempdir().during("make a folder")?;
            own.path()
        }
    };
    std::fs::create_dir_all(folder).during("make the work directory")?;
    let folder = &folder.canonicalize().during("find the work directory")?;
    let players = options.members.unwrap_or(options.pick(1_000_000, 100_000_000));
    let run = Run { options, binary: options.binary("hundred-million")?, folder, players };
    let title = format!("{} players on one machine, R3's load", number(players as f64));
    let mut report = Report::new("hundred-million", &title, options);
    let mut all = Vec::with_capacity(steps::STEPS.len());
    for step in steps::STEPS {
        all.push((step.name, steps::once(step, &run)?));
    }
    show::show(&mut report, &run, &all);
    Ok(report)
}

/// Fails if a requirement is missing.
pub(crate) fn needs(options: &Options) -> Result<(), Error> {
    options.binary("hundred-million")?;
    redis::needs(&options.redis)?;
    database::needs(options)?;
    if options.size == Size::Full && options.work.is_none() {
        return Err(Error::Missing(
            "this scenario takes hours and some 40 GB: give --work a directory, and the same command goes on there where \
             it was interrupted"
                .to_owned(),
        ));
    }
    Ok(())
}

impl Run<'_> {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}
