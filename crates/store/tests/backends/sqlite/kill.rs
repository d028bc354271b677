//! Kills a process that writes, at random moments, and checks what it left.
//!
//! The child is this test binary again, running only [`kill_child`] with the path of the file in its environment. It prints
//! the number of each acknowledged batch. Afterwards the store must hold at least the last number read, at most one batch
//! more, and no part of a batch. Not here: a machine that loses power, which no test can do.

use crate::contract::{key, load, record, request, stored, walk};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use tally_rules::Record;
use tally_rules::outcome::Outcome;
use tally_store::sqlite::{Options, SqliteStore};
use tally_store::{BoardNo, Durability, Loaded, ReadSet, ScoreKey, Transactions, Window, WriteSet};
use tally_testkit::GIVE_UP;

const PATH: &str = "TALLY_STORE_KILL_PATH";
const ROUNDS: u64 = 8;
const COUNTERS: usize = 8;
const NEW_ROWS: usize = 4;

#[test]
fn a_killed_process_loses_nothing_acknowledged_and_leaves_no_half() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tally.db");
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let mut seed = number("TALLY_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    // Captured, and shown with a failure; the folder's content is not kept.
    #[expect(clippy::print_stderr, reason = "a failure is repeated with it")]
    {
        eprintln!("TALLY_SEED={seed}");
    }
    let mut before = 0;
    for round in 0..ROUNDS * number("TALLY_SOAK").unwrap_or(1) {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let time = Duration::from_millis(5 + (seed >> 33) % 150);
        let acknowledged = run_and_kill(&path, time, round % 2 == 0).unwrap_or(before);
        let found = verify(&path);
        assert!(found >= acknowledged, "acknowledged {acknowledged}, found {found}");
        assert!(found <= acknowledged + 1, "acknowledged {acknowledged}, found {found}");
        before = found;
    }
    assert!(before > 0, "no round has written anything");
}

/// Not a test by itself: the child of the test above runs it.
#[test]
fn kill_child() {
    let Some(path) = std::env::var_os(PATH) else { return };
    let store = open(Path::new(&path));
    let mut out = std::io::stdout();
    loop {
        let mut batch = 0;
        // A killed process loses nothing of relaxed transactions either: the system has them.
        let relaxed = std::process::id().is_multiple_of(2);
        let durability = if relaxed { Durability::Relaxed } else { Durability::Commit };
        let plan = ReadSet { durability, ..plan() };
        store
            .run(&plan, &mut |loaded| {
                batch = counter(loaded) + 1;
                changes(batch)
            })
            .unwrap();
        writeln!(out, "acknowledged {batch}").unwrap();
        out.flush().unwrap();
    }
}

/// Small limits and a small log, so that many kills fall into a flush.
fn open(path: &Path) -> SqliteStore {
    let options = Options {
        wal_bytes_max: 256 << 10,
        memtable_bytes_max: 64 << 10,
        flush_age_max: Duration::from_millis(20),
        ..Options::default()
    };
    SqliteStore::open(path, &options).unwrap()
}

/// Lets the child run for this long, kills it, and returns the last number that it printed. The time begins with its first batch, or
/// with its start: then a busy machine may kill it while it opens the store.
fn run_and_kill(path: &Path, time: Duration, writes_first: bool) -> Option<u64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "sqlite::kill::kill_child", "--nocapture"])
        .env(PATH, path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    let (tell, told) = std::sync::mpsc::channel();
    let reading = std::thread::spawn(move || {
        let lines = out.lines().map_while(Result::ok);
        let number = |line: String| line.split_once("acknowledged ")?.1.parse().ok();
        let each = lines.filter_map(number).inspect(|_| {
            let _ = tell.send(());
        });
        each.last()
    });
    if writes_first {
        told.recv_timeout(GIVE_UP).expect("it writes");
    }
    std::thread::sleep(time);
    child.kill().unwrap();
    let status = child.wait().unwrap();
    assert!(status.code().is_none(), "the child ended by itself: {status}");
    reading.join().unwrap()
}

/// Returns the number of the last batch found, after reading every row.
fn verify(path: &Path) -> u64 {
    let store = open(path);
    let counters = load(&store, &plan());
    let last = counter(&counters);
    assert!(
        counters.scores.iter().all(|row| row.map_or(0, |row| row.score) == last),
        "half a batch: {counters:?}"
    );
    let new = walk(&store, BoardNo(2), Window(0), 1000);
    assert_eq!(new.len() as i64, last * NEW_ROWS as i64);
    assert!(new.iter().all(|(_, row)| (1..=last).contains(&row.score)));
    let requests = (1..=last).map(|batch| request("s", &format!("{batch:09}"))).collect();
    let found = load(&store, &ReadSet { requests, ..ReadSet::default() }).requests;
    assert!(found.iter().all(Option::is_some));
    let next = load(
        &store,
        &ReadSet { requests: vec![request("s", &format!("{:09}", last + 1))], ..ReadSet::default() },
    );
    assert_eq!(next.requests, [None]);
    u64::try_from(last).unwrap()
}

fn plan() -> ReadSet {
    ReadSet { scores: counters(), ..ReadSet::default() }
}

fn counters() -> Vec<ScoreKey> {
    (0..COUNTERS).map(|row| key(1, 0, &format!("counter {row}"))).collect()
}

fn counter(loaded: &Loaded) -> i64 {
    loaded.scores[0].map_or(0, |row| row.score)
}

fn changes(batch: i64) -> WriteSet {
    let row = Some(Record { score: batch, ..record(0) });
    let new = (0..NEW_ROWS).map(|number| key(2, 0, &format!("{}-{batch:09}", number * 37 % 10)));
    let mut scores: Vec<_> = counters().into_iter().chain(new).map(|key| (key, row)).collect();
    scores.sort_by(|a, b| a.0.cmp(&b.0));
    let requests = vec![(request("s", &format!("{batch:09}")), stored(1, batch, Outcome::Removed))];
    WriteSet { scores, requests, ..WriteSet::default() }
}
