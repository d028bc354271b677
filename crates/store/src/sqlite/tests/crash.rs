//! Ends a process at each crash point, and checks what it left.
//!
//! The child is this test binary again, running only [`child`]. It writes batches, flushes, and prints what was
//! acknowledged, until it reaches its crash point. Random kills are in `tests/backends/sqlite/kill.rs`.

use super::*;
use crate::{Reads, Transactions};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

const PATH: &str = "TALLY_STORE_CRASH_PATH";
/// Every crash point; several starts end at each.
const POINTS: [&str; 8] =
    ["append", "appended", "rotated", "flush", "flushed some", "flushed", "emptied", "recovered"];
const ROWS: usize = 30;

#[test]
fn a_crash_anywhere_loses_nothing_acknowledged_and_leaves_no_half() {
    for point in POINTS {
        let place = Place::new();
        let mut last = 0;
        for _ in 0..3 {
            let acknowledged = run_until(&place, point).unwrap_or(last);
            // The check opens a copy, so that the next child finds the store as it was left.
            let store = place.killed().open().unwrap();
            let found = score(&store, &name(0, 0)).unwrap_or(0);
            assert!(found >= acknowledged, "{point}: acknowledged {acknowledged}, found {found}");
            assert!(found <= acknowledged + 1, "{point}: acknowledged {acknowledged}, found {found}");
            for row in 0..ROWS {
                assert_eq!(score(&store, &name(found, row)).unwrap_or(0), found, "{point}: half a batch");
            }
            assert_eq!(store.boards().unwrap().len() as i64, found, "{point}");
            last = found;
        }
        assert!(last > 0 || point == "append", "{point} was never come to");
    }
}

/// Not a test by itself: the child process of the test above runs it.
#[test]
fn child() {
    let Some(path) = std::env::var_os(PATH) else { return };
    let options = Options { flush_idle: Duration::from_secs(60), ..Options::default() };
    let store = SqliteStore::open(Path::new(&path), &options).unwrap();
    let mut batch = score(&store, &name(0, 0)).unwrap_or(0);
    for _ in 0..20 {
        batch += 1;
        store.run(&ReadSet::default(), &mut |_| changes(batch)).unwrap();
        // On a line of its own, because the test harness prints there, too.
        #[expect(clippy::print_stdout, reason = "the test that started this reads it")]
        {
            println!("\nacknowledged {batch}");
        }
        if batch % 5 == 0 {
            store.shared.flushing.flush_now(&store.shared).unwrap();
        }
    }
    // A point that is only reached at a start that recovers.
    std::process::abort();
}

/// Half of the rows are the same in every batch, the others are new.
fn name(batch: i64, row: usize) -> String {
    if row.is_multiple_of(2) { format!("counter {row}") } else { format!("new {batch} {row}") }
}

fn changes(batch: i64) -> WriteSet {
    let record = Record { score: batch, subscore: 0, at: Micros(0) };
    let mut scores: Vec<_> = (0..ROWS).map(|row| (key(&name(batch, row)), Some(record))).collect();
    scores.sort_by(|a, b| a.0.cmp(&b.0));
    let no = BoardNo(u32::try_from(batch).unwrap());
    let id = tally_rules::BoardId::new(&format!("board {batch}")).unwrap();
    let row = BoardRow { no, id, definition: tally_rules::Definition::default(), created_at: Micros(1) };
    WriteSet { scores, boards: vec![crate::BoardChange::Create(row)], ..WriteSet::default() }
}

/// Lets a child write until it ends at that point. Returns the last acknowledged batch.
fn run_until(place: &Place, point: &str) -> Option<i64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "sqlite::tests::crash::child", "--nocapture"])
        .env(PATH, place.path())
        .env("TALLY_STORE_CRASH", point)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let last = lines.filter_map(|line| line.strip_prefix("acknowledged ")?.parse().ok()).last();
    let status = child.wait().unwrap();
    assert!(status.code().is_none(), "the child ended by itself: {status}");
    last
}
