//! The fault matrix: every fault on every kind of deployment, under load of every kind.
//!
//! A cell starts the real binary, real databases and a real Redis, with a proxy in every way between them. Callers write scores,
//! deposits, holds, bans, scores of a period that ends, contests, and scores of an unrelated leaderboard. In the middle something
//! fails. In the end everything acknowledged is present exactly once, and nothing refused is present. `tally verify` and
//! `tally doctor` have no findings, and every server writes. The longest rejection of each kind is printed.
//!
//! The test command runs a few cells. `cargo xtask soak` runs all, `cargo xtask soak --cell NAME` some, `--list` names them. Not
//! here: the reply to each request during a fault (`servers`, `shards`, `lease.rs`).

mod boards;
mod callers;
mod cells;
mod contests;
mod faults;
mod load;
mod money;
mod run;
mod table;
mod world;

use cells::Cell;
use run::{Limits, Row};
use std::sync::Barrier;
use tally_testkit::rng::soak;

/// Cells that run at once: two processors are half busy with them.
const AT_ONCE: usize = 5;
/// Names the cells that run, or is `list`.
const VARIABLE: &str = "TALLY_MATRIX";

/// The message of a thread's panic.
fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}

/// Runs the cells of a wave; returns for each its row or the reason of its failure.
fn wave(cells: &[Cell], limits: Limits) -> Vec<(String, Result<Row, String>)> {
    let barrier = Barrier::new(cells.len());
    std::thread::scope(|scope| {
        let running: Vec<_> = cells
            .iter()
            .map(|cell| (cell.to_string(), scope.spawn(|| run::run(*cell, limits, &barrier))))
            .collect();
        let joined =
            |running: std::thread::ScopedJoinHandle<'_, Row>| running.join().map_err(|panic| words(&*panic));
        running.into_iter().map(|(name, running)| (name, joined(running))).collect()
    })
}

#[expect(clippy::print_stderr, reason = "the table is for the reader of a run")]
fn print(text: &str) {
    eprintln!("{text}");
}

#[test]
fn soak_whatever_fails_nothing_acknowledged_is_lost_and_other_leaderboards_go_on() {
    let (cells, limits) = match std::env::var(VARIABLE).as_deref() {
        Ok("list") => {
            return print(&cells::all().iter().map(Cell::to_string).collect::<Vec<_>>().join("\n"));
        }
        Ok(name) => (cells::named(name), Limits::ALONE),
        Err(_) if soak(1) > 1 => (cells::named("all"), Limits::ALONE),
        Err(_) => (cells::short(), Limits::BESIDE_OTHERS),
    };
    assert!(!cells.is_empty(), "no cell has this name; `cargo xtask soak --list` names them");
    let (mut rows, mut failed) = (Vec::new(), Vec::new());
    for (name, ended) in cells.chunks(AT_ONCE).flat_map(|cells| wave(cells, limits)) {
        match ended {
            Ok(row) => rows.push((name, row)),
            Err(why) => failed.push(format!("{name}: {why}")),
        }
    }
    print(&table::table(&rows));
    assert!(
        failed.is_empty(),
        "{} cells failed; repeat one with `cargo xtask soak --cell NAME`:\n{}",
        failed.len(),
        failed.join("\n")
    );
}
