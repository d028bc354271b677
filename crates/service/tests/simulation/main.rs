//! A simulation of the whole server: one seed drives callers, clocks, faults of the disk and power cuts.
//!
//! A run has one thread: it polls callers, runs the batches of lanes, and runs the background tasks. So a seed gives the same run
//! again. Requests are in flight together (`traffic`), and the possible states afterwards are a set of worlds (`possible`). After
//! each restart and each power cut the server must have one of them: records, bans, balances, contests, ranks, `verify`.
//! `TALLY_SEED` runs that seed alone, `TALLY_SIMULATE_MINUTES` goes on from there.
//!
//! Not here: several servers, databases, Redis.

#![allow(clippy::print_stdout, reason = "it says what was simulated, and how to repeat a failure")]

mod check;
mod choose;
mod contests;
mod model;
mod operations;
mod possible;
mod run;
mod traffic;
mod world;

use run::{Log, Run};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tally_service::seeded_faults::{SeededFault, seed as seed_fault};

/// Seeds of the test command.
const SEEDS: u64 = 200;
/// Seeds at once.
const AT_ONCE: usize = 2;
/// Steps of one seed.
const STEPS: u64 = 120;
/// Steps that are printed of a failing run.
const SHOWN: usize = 40;
/// Seeds that have found a fault.
const KEPT: &[u64] =
    &[45, 239, 293, 10_363, 273_161_130, 505_619_242, 699_115_847, 967_788_768, 2_705_817_590];

/// What was simulated.
#[derive(Default)]
struct Total {
    seeds: AtomicU64,
    hours: AtomicI64,
    cuts: AtomicU64,
}

/// One seed; the log of its run.
fn simulate(seed: u64, total: &Total) -> Vec<String> {
    let log = Log::default();
    let ended = catch_unwind(AssertUnwindSafe(|| {
        let mut run = Run::new(seed, Log::clone(&log));
        run.steps(STEPS);
        total.hours.fetch_add(run.world.monotonic() / 3_600_000_000, Relaxed);
        total.cuts.fetch_add(run.cuts, Relaxed);
    }));
    total.seeds.fetch_add(1, Relaxed);
    let log = log.take();
    if let Err(panic) = ended {
        for line in &log[log.len().saturating_sub(SHOWN)..] {
            println!("{line}");
        }
        println!("repeat it: cargo xtask simulate --seed {seed}");
        resume_unwind(panic);
    }
    log
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("it is a number"))
}

#[test]
fn every_answer_holds() {
    let (seed, minutes) = (number("TALLY_SEED"), number("TALLY_SIMULATE_MINUTES"));
    let total = Total::default();
    if let Some(first) = seed {
        let end = Instant::now() + Duration::from_secs(60 * minutes.unwrap_or_default());
        for seed in first.. {
            simulate(seed, &total);
            if Instant::now() >= end {
                break;
            }
        }
    } else {
        let run = &|first: usize| {
            let seeds: Vec<u64> = KEPT.iter().copied().chain(1..=SEEDS).collect();
            seeds.into_iter().skip(first).step_by(AT_ONCE).for_each(|seed| drop(simulate(seed, &total)));
        };
        std::thread::scope(|scope| (0..AT_ONCE).for_each(|first| drop(scope.spawn(move || run(first)))));
    }
    let Total { seeds, hours, cuts } = total;
    println!("{seeds:?} seeds, {hours:?} simulated hours, {cuts:?} power cuts");
}

#[test]
fn a_seed_runs_again_exactly() {
    for seed in 1..=20 {
        let [first, second] = [(); 2].map(|()| simulate(seed, &Total::default()));
        let differs = first.iter().zip(&second).find(|(first, second)| first != second);
        assert_eq!((differs, first.len()), (None, second.len()), "seed {seed}");
    }
}

/// A fault of the past is found by one of the first seeds.
fn is_found(fault: SeededFault) -> bool {
    let run = |seed| {
        seed_fault(Some(fault));
        let found = catch_unwind(AssertUnwindSafe(|| simulate(seed, &Total::default()))).is_err();
        seed_fault(None);
        found
    };
    (1..=SEEDS).any(run)
}

#[test]
fn the_number_of_a_forgotten_period_that_is_used_too_soon_is_found() {
    assert!(is_found(SeededFault::NumberReused));
}

#[test]
fn scores_that_are_targeted_by_their_instants_are_found() {
    assert!(is_found(SeededFault::TargetedByInstant));
}
