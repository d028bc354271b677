//! The report of `contest-start`: a table for each store, the ratios, and notes.

use super::largest::Large;
use super::{Cell, Way};
use crate::targets::START_TIMES_EACH;
use tally_load::report::{Ratio, Report, Table, number, or_dash};

/// The size at which field report R1 (`docs/bench.md`) compares.
const COMPARED: u32 = 200;

const COLUMNS: [&str; 6] =
    ["members", "way", "ms", "slowest ms", "× a commit for each", "peak memory more, KiB"];

/// The figures of one store.
pub(super) fn show(report: &mut Report, store: &str, cells: &[Cell]) {
    let of = |members: u32, way: Way| {
        let found = cells.iter().find(|cell| cell.members == members && cell.way == way);
        found.expect("every way has every size")
    };
    let title = format!("A start on {store}, from asking to durable and cleared: the one in the middle");
    let mut table = Table::new(&title, &COLUMNS);
    for cell in cells {
        let times = of(cell.members, Way::Each).ms() / cell.ms();
        table.row(vec![
            number(f64::from(cell.members)),
            cell.way.name().to_owned(),
            number(cell.ms()),
            number(cell.took[cell.took.len() - 1]),
            format!("{} ×", number(times)),
            or_dash(cell.grew_kib, |kib| number(kib as f64)),
        ]);
    }
    report.tables.push(table);
    // A small run has no such size, and so no target.
    let compared = cells.iter().map(|cell| cell.members).filter(|members| *members <= COMPARED).max();
    let compared = compared.expect("there is a size");
    let tally = of(compared, Way::Tally).ms();
    let name = |other: &str| format!("a start of {compared} on {store}: {other} / tally, time");
    let (each, looped) = (of(compared, Way::Each).ms() / tally, of(compared, Way::Loop).ms() / tally);
    report.ratios.push(match compared {
        COMPARED => Ratio::at_least(&name("a commit for each"), each, START_TIMES_EACH),
        _ => Ratio::times(&name("a commit for each"), each),
    });
    report.ratios.push(Ratio::times(&name("a loop in one transaction"), looped));
}

/// The largest contests.
pub(super) fn largest(report: &mut Report, all: &[(&str, Vec<Large>)]) {
    let columns = [
        "store",
        "members",
        "fee",
        "start s",
        "settle s",
        "longest transfer of others, ms: idle",
        "during the start",
        "while settled",
        "peak memory more, MiB",
    ];
    let title = "The largest contests: every member has a score and a prize, beside transfers of money";
    let mut table = Table::new(title, &columns);
    for (store, large) in all.iter().flat_map(|(store, some)| some.iter().map(move |one| (store, one))) {
        let mib = |kib: u64| number(kib as f64 / 1024.0);
        let waits = large.waits.map(number);
        let mut cells = vec![
            (*store).to_owned(),
            number(f64::from(large.members)),
            if large.fee { "yes" } else { "no" }.to_owned(),
            number(large.started),
            number(large.settled),
        ];
        cells.extend(waits);
        cells.push(or_dash(large.grew_kib, mib));
        table.row(cells);
    }
    report.tables.push(table);
}

pub(super) fn notes(report: &mut Report) {
    report.note(
        "the field report (a match platform, Go, MySQL): 200 members one by one 42.44 ms and 995 KB, in batches 3.44 ms \
         and 192 KB: 12.3 × in time, 5.2 × in memory",
    );
    report.note(
        "memory is the growth of the process' peak of resident memory, in pages, the most of all starts: what is allocated \
         and given back below it, or fits into what the process has, is not in it; the field report counted what was \
         allocated",
    );
    report.note(
        "tally also checks each application and makes the leaderboard, and clears more than 500 applications in transactions \
         of their own; the others make none and delete by the contest's key",
    );
}
