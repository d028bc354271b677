//! Scenario `resp`: sorted sets over the Redis protocol, the real server and a real redis-server in alternation.
//!
//! Both get the same members over the same protocol, must then reply alike, and get the same streams of commands from the
//! same generator. Every cell is short and has its own ratio, so drift of the machine affects both. At the end both must
//! have as many members as at the beginning. Not here: HTTP (`http`), and memory (`index`).

mod cells;
mod classes;
mod commands;
mod show;

use crate::error::{During, Error, prove};
use crate::index::players::id;
use crate::options::Options;
use crate::redis::{self, Redis, client::Client};
use crate::server::Server;
use cells::{CONNECTIONS, CommandLoad, SETTLE_MAX, Side};
use classes::{CLASSES, Class};
use commands::KEY;
use show::Cell;
use std::path::Path;
use std::time::Duration;
use tally_load::Random;
use tally_load::report::{Report, number};
use tally_wire::resp::command;

/// Members on which both must agree after filling.
const COMPARED: u64 = 200;
/// Larger boards skip the longest pipeline.
const LARGE: u64 = 1_000_000;

pub(crate) fn measure(options: &Options) -> Result<Report, Error> {
    let binary = ready(options)?;
    let members = options.members.unwrap_or(options.pick(2_000, 1_000_000));
    let title = format!(
        "the Redis protocol beside Redis, {CONNECTIONS} connections, {} members",
        number(members as f64)
    );
    let mut report = Report::new("resp", &title, options);
    let sync = crate::disk::sync_ms().during("try the disk")?;
    let folder = tempfile::tempdir().during("make a folder")?;
    let redis = Redis::start(&options.redis)?;
    let tally = Server::start(binary, folder.path())?;
    let mut clients = Clients {
        redis: Client::open(redis.address()).during("connect to Redis")?,
        tally: Client::open(tally.listens.resp).during("connect to tally")?,
    };
    let theirs = Side {
        process: redis.process(),
        address: redis.address(),
        opening: Vec::new(),
        puts_off: Duration::ZERO,
    };
    // Written rows stay in the store's memtable until the store is idle.
    let idle = tally_store::sqlite::Options::default().flush_idle;
    let ours = |durability: &str, puts_off: Duration| {
        let mut opening = Vec::new();
        command(&["LB.DURABILITY", durability], &mut opening);
        Side { process: &tally.process, address: tally.listens.resp, opening: vec![opening], puts_off }
    };
    options.say(&format!("filling both with {members} members"));
    let filled =
        [&theirs, &ours("relaxed", idle)].map(|side| cells::fill(side, members, options).map(number));
    let [redis_filled, tally_filled] = filled;
    report.note(format!(
        "filled, 256 at a time: Redis {}/s, tally, relaxed, {}/s",
        redis_filled?, tally_filled?
    ));
    clients.prove_alike(members, options.seed)?;
    let mut restless = 0;
    for class in &CLASSES {
        redis::configure(&mut clients.redis, class.redis).during("set Redis up")?;
        let ours = ours(class.durability, if class.writes() { idle } else { Duration::ZERO });
        let cells = measure_class(class, [&theirs, &ours], members, options)?;
        restless += cells.iter().map(|cell| cell.redis.restless + cell.tally.restless).sum::<u64>();
        show::show(&mut report, class, &cells);
    }
    clients.prove_members(members)?;
    let version = clients.redis.info("server").during("ask Redis")?.field("redis_version").to_owned();
    drop(clients);
    tally.stop()?;
    drop(redis);
    notes(&mut report, &version, restless, sync);
    Ok(report)
}

/// Fails if either server is missing.
pub(crate) fn needs(options: &Options) -> Result<(), Error> {
    ready(options).map(drop)
}

/// The server's binary, if there is also a Redis.
fn ready(options: &Options) -> Result<&Path, Error> {
    let binary = options.binary("resp")?;
    redis::needs(&options.redis)?;
    Ok(binary)
}

fn measure_class(
    class: &Class,
    [redis, tally]: [&Side; 2],
    members: u64,
    options: &Options,
) -> Result<Vec<Cell>, Error> {
    let pipelines: &[u64] = if members > LARGE { &[1, 16] } else { options.pick(&[1, 16], &[1, 16, 64]) };
    let mut cells: Vec<Cell> = Vec::new();
    for &kind in class.kinds {
        for &pipeline in pipelines {
            options.say(&format!("{}: {}, P={pipeline}", class.name, kind.name()));
            let load = CommandLoad { kind, pipeline, members };
            let [redis, tally] = cells::measure([redis, tally], load, options)?;
            cells.push(Cell { kind, pipeline, redis, tally });
        }
    }
    Ok(cells)
}

/// A connection to each, for what surrounds the measurement.
struct Clients {
    redis: Client,
    tally: Client,
}

impl Clients {
    /// Checks that both reply alike for random members and for the top.
    fn prove_alike(&mut self, members: u64, seed: u64) -> Result<(), Error> {
        self.prove_members(members)?;
        let mut random = Random::new(!seed);
        for _ in 0..COMPARED {
            let member = id(random.below(members));
            self.prove_same(&[b"ZSCORE", KEY.as_bytes(), &member])?;
            self.prove_same(&[b"ZREVRANK", KEY.as_bytes(), &member])?;
        }
        self.prove_same(&[b"ZREVRANGE", KEY.as_bytes(), b"0", b"99", b"WITHSCORES"])
    }

    fn prove_same(&mut self, args: &[&[u8]]) -> Result<(), Error> {
        let redis = self.redis.call(args).during("ask Redis")?;
        let tally = self.tally.call(args).during("ask tally")?;
        let args = || args.iter().map(|arg| String::from_utf8_lossy(arg)).collect::<Vec<_>>().join(" ");
        prove(redis == tally, || format!("{}: Redis says {redis:?}, tally {tally:?}", args()))
    }

    fn prove_members(&mut self, members: u64) -> Result<(), Error> {
        for (name, client) in [("Redis", &mut self.redis), ("tally", &mut self.tally)] {
            let count = client.integer(&["ZCARD", KEY]).during("count members")?;
            prove(u64::try_from(count) == Ok(members), || {
                format!("{name} has {count} of {members} members")
            })?;
        }
        Ok(())
    }
}

fn notes(report: &mut Report, version: &str, restless: u64, sync: f64) {
    report.note(format!(
        "Redis {version}, one thread for commands, no snapshots, its log never rewritten during the run, which favours it"
    ));
    report.note(
        "P: commands in a pipeline; p50 and p99 are of a whole pipeline, from sending it to its last reply",
    );
    report.note(
        "each cell: a burst of Redis, two of tally, one of Redis; a rate is the median of a server's bursts",
    );
    report.note(
        "on a busy machine a server with more threads gets more of the processors: there CPU µs says more than rates",
    );
    report.note(format!(
        "CPU µs: processor time of the server for one command, what it did until it was idle again included, {} s at most; \
         {restless} turns ended without that",
        SETTLE_MAX.as_secs()
    ));
    report.note("the load generator shares the machine: one thread, closed loop, the same for both");
    report.note(format!(
        "filled alike: {COMPARED} random members have the same score and rank, and the best 100 are the same; \
         as many members at the end as at the beginning"
    ));
    report.note(crate::disk::sentence(sync));
}
