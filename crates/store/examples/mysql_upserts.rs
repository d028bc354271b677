//! Measures transactions of many rows on MariaDB or MySQL beside one upsert per statement, at the same connections.
//!
//! Run it with `--release`; arguments are the number of players, the seconds for each row of the table, and `mysql` for
//! MySQL 9. The server is one of the test kit, with a commit on the disk before it is answered. Each connection has its
//! own players, as lanes have. Not here: latency, and HTTP.

use mysql_async::prelude::Queryable;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tally_rules::{Micros, PlayerId, Record};
use tally_store::mysql::{MySqlStore, Options};
use tally_store::plan::ALL_TIME;
use tally_store::{BoardNo, Loaded, Maintenance, ReadSet, Reads, ScoreKey, Transactions, WriteSet};
use tally_testkit::{DatabaseKind, Rng, ScratchDatabase};

const BOARD: BoardNo = BoardNo(1);
const LOAD_ROWS: u64 = 5_000;
const SINGLE: &str = "INSERT INTO scores (board, part, player, score, subscore, `at`, version, gone) \
     VALUES (1, 0, ?, ?, 0, 1700000000000000, 0, 0) ON DUPLICATE KEY UPDATE score = ?, version = version + 1";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let players: u64 = arguments.next().map_or(Ok(200_000), |text| text.parse())?;
    let seconds: u64 = arguments.next().map_or(Ok(3), |text| text.parse())?;
    let mysql = arguments.next().is_some_and(|kind| kind == "mysql");
    let kind = if mysql { DatabaseKind::MySql9 } else { DatabaseKind::MariaDb10 };
    // The kit's small log would be measured instead.
    let log = if mysql { "--innodb-redo-log-capacity=1G" } else { "--innodb-log-file-size=1G" };
    let server = ScratchDatabase::start_with(kind, &["--innodb-buffer-pool-size=1G", log]);
    let url = server.create_database();
    let store = MySqlStore::open(&url, &Options { pool_max: 64, ..Options::default() })?;
    let mut out = std::io::stdout();
    fill(&store, players, &mut out)?;
    let time = Duration::from_secs(seconds);
    for connections in [1, 8, 32] {
        let single = rate(connections, time, |thread, rng, until| {
            singles(&url, (thread, connections, players), rng, until)
        });
        writeln!(out, "{connections:3} connections: {single:8.0} rows/s by one upsert per statement")?;
        for rows in [64, 500] {
            for reads in [true, false] {
                let of = |thread, rng: &mut Rng, until| {
                    batches(&store, (thread, connections, players), (rows, reads), rng, until)
                };
                let many = rate(connections, time, of);
                let how = if reads { "read, locked and written" } else { "written" };
                let times = many / single;
                writeln!(out, "{many:25.0} rows/s by {rows} rows {how}, {times:.1} times that")?;
            }
        }
    }
    let started = Instant::now();
    let (mut walked, mut last) = (0, None);
    loop {
        let mut newest = None;
        let found = store
            .scan_scores(BOARD, ALL_TIME, last.as_ref(), 10_000, &mut |player, _| newest = Some(player))?;
        walked += found;
        last = newest;
        if found < 10_000 {
            break;
        }
    }
    writeln!(out, "walked {walked} rows, {:.0} rows/s", walked as f64 / started.elapsed().as_secs_f64())?;
    writeln!(out, "counted about {}", store.count_scores(BOARD, ALL_TIME)?)?;
    for (name, value) in store.gauges() {
        writeln!(out, "  {name} {value}")?;
    }
    Ok(())
}

fn fill(store: &MySqlStore, players: u64, out: &mut impl Write) -> Result<(), Box<dyn std::error::Error>> {
    let started = Instant::now();
    for next in (0..players).step_by(LOAD_ROWS as usize) {
        write(store, (next..players.min(next + LOAD_ROWS)).map(key).collect(), false)?;
    }
    let rate = players as f64 / started.elapsed().as_secs_f64();
    Ok(writeln!(out, "{players} players loaded in key order, {rate:.0} rows/s")?)
}

/// Rows per second of so many threads.
fn rate(connections: u64, time: Duration, work: impl Fn(u64, &mut Rng, Instant) -> u64 + Sync) -> f64 {
    let rows = AtomicU64::new(0);
    let started = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..connections {
            let (rows, work) = (&rows, &work);
            scope.spawn(move || {
                let done = work(thread, &mut Rng::new(thread), started + time);
                rows.fetch_add(done, Ordering::Relaxed);
            });
        }
    });
    rows.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64()
}

fn singles(url: &str, of: (u64, u64, u64), rng: &mut Rng, until: Instant) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut conn = mysql_async::Conn::from_url(url).await.expect("a connection");
        let statement = conn.prep(SINGLE).await.expect("a statement");
        let mut rows = 0;
        while Instant::now() < until {
            let (player, score) = (pick(of, rng).player, rng.below(1 << 40));
            let values = (player.as_bytes(), score, score);
            conn.exec_drop(&statement, values).await.expect("an upsert");
            rows += 1;
        }
        conn.disconnect().await.expect("a goodbye");
        rows
    })
}

fn batches(
    store: &MySqlStore,
    of: (u64, u64, u64),
    (rows, reads): (u64, bool),
    rng: &mut Rng,
    until: Instant,
) -> u64 {
    let mut done = 0;
    while Instant::now() < until {
        let mut keys: Vec<ScoreKey> = (0..rows).map(|_| pick(of, rng)).collect();
        keys.sort_unstable();
        keys.dedup();
        done += keys.len() as u64;
        write(store, keys, reads).expect("nobody is in the way");
    }
    done
}

/// A player of this thread's.
fn pick((thread, threads, players): (u64, u64, u64), rng: &mut Rng) -> ScoreKey {
    key(rng.below(players / threads) * threads + thread)
}

/// Adds one to each record that is read, or writes one.
fn write(store: &MySqlStore, scores: Vec<ScoreKey>, reads: bool) -> Result<(), tally_store::StoreError> {
    let plan = ReadSet { scores: if reads { scores.clone() } else { Vec::new() }, ..ReadSet::default() };
    let run = store.run(&plan, &mut |loaded: &Loaded| {
        let changed = |(at, key): (usize, &ScoreKey)| {
            let old = loaded.scores.get(at).copied().flatten().map_or(0, |old| old.score);
            let at = Micros(1_700_000_000_000_000);
            (key.clone(), Some(Record { score: old + 1, subscore: 0, at }))
        };
        WriteSet { scores: scores.iter().enumerate().map(changed).collect(), ..WriteSet::default() }
    });
    run.map(drop)
}

fn key(number: u64) -> ScoreKey {
    let player = PlayerId::new(&format!("player-{number:010}")).expect("a good name");
    ScoreKey { board: BOARD, window: ALL_TIME, player }
}
