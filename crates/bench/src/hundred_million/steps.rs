//! The steps in their order; each runs once.

use super::{Run, StepResult, loads, recover, seed};
use crate::cpu::Cpu;
use crate::error::{During, Error};
use crate::options::Options;
use crate::{mixed, periods, store};
use std::time::Instant;
use tally_load::report::Machine;
use tally_load::report::Report;

pub(super) struct Step {
    pub(super) name: &'static str,
    /// What it does, for the progress line.
    about: &'static str,
    work: fn(&Run<'_>) -> Result<StepResult, Error>,
}

/// Every step. Those on a store come after the step that fills it.
pub(super) const STEPS: &[Step] = &[
    Step { name: "seed-sqlite", about: "fill SQLite", work: seed::sqlite },
    Step {
        name: "recover-sqlite",
        about: "kill it, start it again, count ranks (SQLite)",
        work: recover::sqlite,
    },
    Step { name: "load-zipf", about: "half ±5, half submits, Zipf, HTTP, SQLite", work: loads::zipf },
    Step { name: "load-reads", about: "nine ±5 for one submit, Zipf, HTTP, SQLite", work: loads::reads },
    Step {
        name: "load-uniform",
        about: "half ±5, half submits, uniform, HTTP, SQLite",
        work: loads::uniform,
    },
    Step { name: "load-redis-protocol", about: "the same by Zipf in the Redis protocol", work: loads::redis },
    Step {
        name: "load-rising",
        about: "more and more of the same, until it is too much",
        work: loads::rising,
    },
    Step { name: "seed-mariadb", about: "fill MariaDB", work: seed::mariadb },
    Step {
        name: "recover-mariadb",
        about: "kill it, start it again, count ranks (MariaDB)",
        work: recover::mariadb,
    },
    Step { name: "load-mariadb", about: "half ±5, half submits, Zipf, HTTP, MariaDB", work: loads::mariadb },
    Step { name: "close", about: "a period of as many players ends", work: close },
    Step { name: "journal", about: "SQLite's journal and flush beside direct upserts", work: journal },
    Step {
        name: "redis-ten-million",
        about: "ranks in Redis, and a plain sorted set, at a tenth",
        work: redis_at_a_tenth,
    },
];

/// Runs a step, or reads its result if it has run.
pub(super) fn once(step: &Step, run: &Run<'_>) -> Result<StepResult, Error> {
    let path = run.path(&format!("{}.json", step.name));
    if let Some(found) = StepResult::read(&path, run.players, run.options.seed) {
        run.options.say(&format!("{}: found before", step.name));
        return Ok(found);
    }
    run.options.say(&format!("{}: {}", step.name, step.about));
    let (began, cpu, at) = (Instant::now(), Cpu::now(), Machine::here().at);
    let mut found = (step.work)(run).map_err(|error| match error {
        Error::Proof(why) => Error::Proof(format!("{}: {why}", step.name)),
        other => other,
    })?;
    found.others_percent = Cpu::now().zip(cpu).map(|(now, then)| now.others_percent(then));
    (found.players, found.seed, found.at) = (run.players, run.options.seed, at);
    found.seconds = began.elapsed().as_secs_f64();
    found.write(&path)?;
    Ok(found)
}

/// The result of another scenario, with other numbers and in the work directory.
fn of_scenario(
    run: &Run<'_>,
    measure: fn(&Options) -> Result<Report, Error>,
    change: impl FnOnce(&mut Options),
) -> Result<StepResult, Error> {
    let mut options = run.options.clone();
    change(&mut options);
    let beside = run.path("beside");
    std::fs::create_dir_all(&beside).during("make a folder")?;
    options.scratch = Some(beside);
    let Report { tables, ratios, charts, notes, .. } = measure(&options)?;
    Ok(StepResult { tables, ratios, charts, notes, ..StepResult::default() })
}

fn close(run: &Run<'_>) -> Result<StepResult, Error> {
    of_scenario(run, periods::measure, |options| {
        options.members = Some(run.options.pick(run.players / 50, run.players))
    })
}

fn journal(run: &Run<'_>) -> Result<StepResult, Error> {
    of_scenario(run, store::measure, |options| {
        options.rows = Some(run.options.pick(run.players / 50, run.players))
    })
}

fn redis_at_a_tenth(run: &Run<'_>) -> Result<StepResult, Error> {
    of_scenario(run, mixed::measure, |options| {
        options.members = Some(run.options.pick(run.players / 500, run.players / 10))
    })
}
