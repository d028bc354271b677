//! `cargo xtask simulate`: the simulation of the whole server, with one seed or with as many as fit into some minutes.
//!
//! It runs the test binary of `crates/service/tests/simulation`, which reads the seed and the minutes from two variables. One
//! process runs all seeds, because a seed takes less than a second.
//!
//! Not here: the simulation, and keeping seeds: a seed that finds a fault is added to the list in that test.

use anyhow::Result;

use crate::{process, soak};

/// Minutes of a run without options.
const MINUTES: u64 = 10;

const TEST: [&str; 7] = ["test", "-p", "tally-service", "--test", "simulation", "--", "every_answer_holds"];

pub(crate) fn main(args: &[String]) -> Result<()> {
    let options = soak::parse("simulate", args)?;
    let minutes = options.minutes.unwrap_or(if options.seed.is_some() { 0 } else { MINUTES });
    let seed = options.seed.map_or_else(soak::seed_from_clock, Ok)?;
    println!("== seeds from {seed}");
    let mut command = process::cargo(&TEST)?;
    command.arg("--nocapture").env("TALLY_SEED", seed.to_string());
    process::run(command.env("TALLY_SIMULATE_MINUTES", minutes.to_string()))
}
