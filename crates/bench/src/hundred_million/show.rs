//! The report: the results of all steps in order, and R3's own figures beside the matching ones.

use super::found::StepResult;
use super::{GIB, Run};
use crate::targets::{R3_MEMORY_GIB, R3_RATE};
use tally_load::report::{Report, Table, number, or_dash};

/// Bytes of a member of a plain sorted set of Redis 7, with ids of this length.
const REDIS_BYTES: f64 = 130.0;

pub(super) fn show(report: &mut Report, run: &Run<'_>, all: &[(&'static str, StepResult)]) {
    report.tables.push(beside_r3(run, all));
    report.tables.push(steps(all));
    for (_, found) in all {
        report.tables.extend(found.tables.iter().cloned());
        report.ratios.extend(found.ratios.iter().cloned());
        report.charts.extend(found.charts.iter().cloned());
        for note in &found.notes {
            // Scenarios that are steps have the same notes about the machine.
            if !report.notes.contains(note) {
                report.note(note.clone());
            }
        }
    }
    report.note(
        "load, server and database share the machine; arrivals are due by the clock and measured from when they were due; an \
         answer to a submit has the previous score and both ranks, and is durable",
    );
    report.note(format!(
        "R3: {} + {}/s on 14 processors for server, load and database, Redis of 64 GiB beside them; recovery by reading the \
         database again in tens of minutes to hours",
        number(R3_RATE),
        number(R3_RATE)
    ));
}

fn figure(all: &[(&'static str, StepResult)], step: &str, name: &str) -> Option<f64> {
    all.iter().find(|(other, _)| *other == step)?.1.figures.get(name).copied()
}

fn beside_r3(run: &Run<'_>, all: &[(&'static str, StepResult)]) -> Table {
    let columns = ["", "R3", "tally, SQLite", "tally, MariaDB"];
    let mut table =
        Table::new(&format!("R3 beside tally with {} players", number(run.players as f64)), &columns);
    let mut row = |what: &str, theirs: String, figures: [(Option<f64>, &str); 2]| {
        let cells = figures.map(|(value, unit)| or_dash(value, |value| format!("{} {unit}", number(value))));
        table.row([what.to_owned(), theirs].into_iter().chain(cells).collect());
    };
    let both = |step: [&str; 2], name, unit| step.map(|step| (figure(all, step, name), unit));
    let recover = ["recover-sqlite", "recover-mariadb"];
    let plain = run.players as f64 * REDIS_BYTES / GIB;
    row(
        "memory of ranks",
        format!("{} GiB of Redis (a plain sorted set: {} GiB)", number(R3_MEMORY_GIB), number(plain)),
        both(recover, "resident_gib", "GiB"),
    );
    row("recovery", "tens of minutes to hours".to_owned(), both(recover, "recovery_s", "s"));
    let loads = ["load-zipf", "load-mariadb"];
    row("submits, and as many ±5 reads", format!("{}/s", number(R3_RATE)), both(loads, "submits", "/s"));
    row("p99.9 at that rate", "–".to_owned(), both(loads, "p999_ms", "ms"));
    row("filling", "–".to_owned(), both(["seed-sqlite", "seed-mariadb"], "seed_rate", "scores/s"));
    row("most of both a second", "–".to_owned(), both(["load-rising", ""], "best", "/s"));
    table
}

fn steps(all: &[(&'static str, StepResult)]) -> Table {
    let mut table = Table::new("Steps", &["step", "began", "seconds", "others used %"]);
    for (name, found) in all {
        let others = or_dash(found.others_percent, |percent| format!("{percent:.0}"));
        table.row(vec![(*name).to_owned(), found.at.clone(), number(found.seconds), others]);
    }
    table
}
