//! Scenario `mixed`: half pages of ranks around a player and half durable submits, at once, as in field report R3
//! (`docs/bench.md`).
//!
//! Tally is the real server over HTTP. Its store is MariaDB with ranks in memory, then the same database with ranks in
//! Redis, and SQLite with ranks in memory. The baseline is what R3 replaced: 64 callers with a connection to each. They
//! upsert one row and then set one member of a sorted set, or read a rank and then its neighbours. Each way has the same
//! initial scores, and gets requests for uniform players and by Zipf's law. At the end random players must have their last
//! acknowledged score. Not here: a hundred million players, unless `--members` says so, and recovery.

mod baseline;
mod ours;
mod redis_memory;
mod show;

use crate::database::{self, Database};
use crate::error::{During, Error};
use crate::options::Options;
use crate::redis::{self, Redis};
use std::path::Path;
use std::time::Duration;
use tally_load::report::{Report, number};
use tally_load::{Latencies, Skew};

/// The name of the board and of the sorted set.
const BOARD: &str = "bench";
/// Players that are read at the end.
const READ_BACK: u64 = 1_000;
const SKEWS: [Skew; 2] = [Skew::Uniform, Skew::Zipf];

/// The figures of one way.
struct Way {
    name: &'static str,
    /// Scores per second while filling, if it was filled.
    filled: Option<f64>,
    /// Seconds until the restarted server was ready with all players; `None` for the baseline.
    started_s: Option<f64>,
    runs: Vec<Run>,
    memory: Memory,
}

struct Run {
    skew: Skew,
    seconds: f64,
    submits: Latencies,
    reads: Latencies,
    cores: Cores,
}

/// Processor time per second of the run, if known.
#[derive(Clone, Copy, Debug)]
struct Cores {
    /// Of the server; for the baseline of the callers.
    server: Option<f64>,
    database: Option<f64>,
    redis: Option<f64>,
}

/// Bytes, if known.
#[derive(Clone, Copy, Debug, Default)]
struct Memory {
    server: Option<u64>,
    /// Redis' own figure.
    redis: Option<u64>,
    database: Option<u64>,
}

/// The work of a way.
#[derive(Clone, Copy, Debug)]
struct Work {
    players: u64,
    connections: usize,
    warm_up: Duration,
    duration: Duration,
    seed: u64,
}

impl Run {
    fn rate(&self, latencies: &Latencies) -> f64 {
        latencies.count() as f64 / self.seconds
    }

    fn all(&self) -> f64 {
        self.rate(&self.submits) + self.rate(&self.reads)
    }

    /// Processor time of one submit or read in microseconds, of server, database and Redis.
    fn cpu_us_each(&self) -> [Option<f64>; 3] {
        let Cores { server, database, redis } = self.cores;
        [server, database, redis].map(|cores| Some(cores? * 1e6 / self.all()))
    }

    /// The sum over the known processes.
    fn cpu_us(&self) -> f64 {
        self.cpu_us_each().into_iter().flatten().sum()
    }
}

impl Cores {
    /// The difference of two readings of processor time, divided by the time.
    fn between(before: [Option<f64>; 3], now: [Option<f64>; 3], seconds: f64) -> Self {
        let over = |at: usize| Some((now[at]? - before[at]?) / seconds);
        Self { server: over(0), database: over(1), redis: over(2) }
    }
}

pub(crate) fn measure(options: &Options) -> Result<Report, Error> {
    let binary = options.binary("mixed")?;
    let work = Work {
        players: options.members.unwrap_or(options.pick(1_000, 10_000_000)),
        connections: options.pick(8, 64),
        warm_up: Duration::from_millis(options.pick(100, 2_000)),
        duration: options.duration(),
        seed: options.seed,
    };
    let (players, connections) = (number(work.players as f64), work.connections);
    let title =
        format!("half ranks around ±5, half durable submits: {players} players, {connections} connections");
    let mut report = Report::new("mixed", &title, options);
    let sync = crate::disk::sync_ms().during("try the disk")?;
    let mut ways = Vec::new();
    let mut database = Database::open(options)?;
    let folder = options.folder()?;
    ways.extend(on_database(binary, &mut database, folder.path(), work, options)?);
    ways.push(baseline::measure(&mut database, folder.path(), work, options)?);
    report.note(database.says()?);
    drop(database);
    let place = ours::Place { name: "tally: SQLite, ranks in memory", store: None, ranking: None };
    let (way, _) = ours::measure(binary, &place, folder.path(), (work, None), options)?;
    ways.push(way);
    show::show(&mut report, &ways, work);
    report.note(crate::disk::sentence(sync));
    Ok(report)
}

/// Fails if a requirement is missing.
pub(crate) fn needs(options: &Options) -> Result<(), Error> {
    options.binary("mixed")?;
    redis::needs(&options.redis)?;
    database::needs(options)
}

/// Ranks in memory, then the same players with ranks in Redis.
fn on_database(
    binary: &Path,
    database: &mut Database,
    folder: &Path,
    work: Work,
    options: &Options,
) -> Result<[Way; 2], Error> {
    let store = database.create("tally")?;
    let place = ours::Place {
        name: "tally: MariaDB, ranks in memory",
        store: Some((&store, &*database)),
        ranking: None,
    };
    // One data directory: the secret belongs to the database.
    let data = folder.join("on-database");
    std::fs::create_dir(&data).during("make a folder")?;
    let (memory, promised) = ours::measure(binary, &place, &data, (work, None), options)?;
    let redis = Redis::start(&options.redis)?;
    let place = ours::Place { name: "tally: MariaDB, ranks in Redis", ranking: Some(&redis), ..place };
    let (in_redis, _) = ours::measure(binary, &place, &data, (work, Some(promised)), options)?;
    Ok([memory, in_redis])
}
