//! Measures one store: random upserts that read before they write, and the walk that a start makes.
//!
//! Run it with `--release`; arguments are the number of players, the seconds for each size of batch, and a folder. It
//! goes through `Store::run` alone, as the lanes do, from one thread. Not here: a comparison with anything, and HTTP.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tally_rules::{Micros, PlayerId, Record};
use tally_store::plan::ALL_TIME;
use tally_store::sqlite::{Options, SqliteStore};
use tally_store::{BoardNo, Loaded, Maintenance, ReadSet, Reads, ScoreKey, Transactions, WriteSet};

const BOARD: BoardNo = BoardNo(1);
const LOAD_ROWS: u64 = 5_000;
const SCAN_ROWS: usize = 10_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let players: u64 = arguments.next().map_or(Ok(200_000), |text| text.parse())?;
    let seconds: u64 = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let folder = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = tempfile::tempdir_in(folder)?;
    let mut out = std::io::stdout();
    let store = SqliteStore::open(&folder.path().join("tally.db"), &Options::default())?;
    fill(&store, players, &mut out)?;
    for rows in [1, 64, 512] {
        let measured = upserts(&store, players, rows, Duration::from_secs(seconds))?;
        writeln!(out, "{rows:4} rows/batch: {measured}")?;
    }
    for (name, value) in store.gauges() {
        writeln!(out, "  {name} {value}")?;
    }
    walk(&store, &mut out)?;
    let closing = Instant::now();
    drop(store);
    writeln!(out, "closed in {:.2} s", closing.elapsed().as_secs_f64())?;
    let bytes = file_bytes(&folder.path().join("tally.db"))?;
    writeln!(out, "{:.1} bytes per player at rest", bytes as f64 / players as f64)?;
    Ok(())
}

fn fill(store: &SqliteStore, players: u64, out: &mut impl Write) -> Result<(), Box<dyn std::error::Error>> {
    let started = Instant::now();
    let mut next = 0;
    while next < players {
        let end = players.min(next + LOAD_ROWS);
        write(store, (next..end).map(key).collect(), 0)?;
        next = end;
    }
    let rate = players as f64 / started.elapsed().as_secs_f64();
    Ok(writeln!(out, "{players} players loaded in key order, {rate:.0} rows/s")?)
}

fn upserts(
    store: &SqliteStore,
    players: u64,
    rows: usize,
    time: Duration,
) -> Result<String, Box<dyn std::error::Error>> {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64 ^ rows as u64;
    let mut took = Vec::new();
    let started = Instant::now();
    while started.elapsed() < time {
        let mut keys: Vec<ScoreKey> = (0..rows).map(|_| key(next(&mut random) % players)).collect();
        keys.sort_unstable();
        keys.dedup();
        let began = Instant::now();
        write(store, keys, 1)?;
        took.push(began.elapsed());
    }
    let rate = (took.len() * rows) as f64 / started.elapsed().as_secs_f64();
    took.sort_unstable();
    let at = |window: f64| took[((took.len() - 1) as f64 * window) as usize].as_secs_f64() * 1e3;
    Ok(format!(
        "{rate:.0} rows/s, ms p50 {:.2} p99 {:.2} p99.9 {:.2} max {:.1}",
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0)
    ))
}

fn walk(store: &SqliteStore, out: &mut impl Write) -> Result<(), Box<dyn std::error::Error>> {
    let started = Instant::now();
    let counted = store.count_scores(BOARD, ALL_TIME)?;
    writeln!(out, "counted {:.0} rows/s", counted as f64 / started.elapsed().as_secs_f64())?;
    let started = Instant::now();
    let (mut rows, mut last) = (0, None);
    loop {
        let mut newest = None;
        let read = store
            .scan_scores(BOARD, ALL_TIME, last.as_ref(), SCAN_ROWS, &mut |player, _| newest = Some(player))?;
        rows += read;
        last = newest;
        if read < SCAN_ROWS {
            break;
        }
    }
    Ok(writeln!(out, "walked {rows} rows, {:.0} rows/s", rows as f64 / started.elapsed().as_secs_f64())?)
}

/// Adds one to each record: what is written depends on what was read.
fn write(store: &SqliteStore, scores: Vec<ScoreKey>, add: i64) -> Result<(), tally_store::StoreError> {
    let plan = ReadSet { scores, ..ReadSet::default() };
    store
        .run(&plan, &mut |loaded: &Loaded| {
            let changed = |(key, old): (&ScoreKey, &Option<Record>)| {
                let old = old.unwrap_or(Record { score: 0, subscore: 0, at: Micros(1_700_000_000_000_000) });
                (key.clone(), Some(Record { score: old.score + add, at: old.at.plus(1), ..old }))
            };
            WriteSet {
                scores: plan.scores.iter().zip(&loaded.scores).map(changed).collect(),
                ..WriteSet::default()
            }
        })
        .map(drop)
}

fn key(number: u64) -> ScoreKey {
    let player = PlayerId::new(&format!("player-{number:010}")).expect("a good name");
    ScoreKey { board: BOARD, window: ALL_TIME, player }
}

/// SplitMix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn file_bytes(path: &Path) -> std::io::Result<u64> {
    Ok(std::fs::metadata(path)?.len())
}
