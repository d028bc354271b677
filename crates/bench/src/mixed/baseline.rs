//! The solution that R3 replaced: a row and a member of a sorted set for each submit, one after the other.
//!
//! Callers are threads that hold a connection to the database and one to Redis, with statements prepared once. There is no
//! server in front of them, which favours this way. A submit is durable in the database before it is in Redis, and a crash
//! in between is not repaired here. Players belong to callers, so the expected score of each is known.

use super::{BOARD, Cores, Memory, READ_BACK, Run, SKEWS, Way, Work, redis_memory};
use crate::database::table::{self, Lines};
use crate::database::{self, Database};
use crate::error::{During, Error, prove};
use crate::options::Options;
use crate::redis::Redis;
use crate::redis::client::Client;
use crate::spent;
use crate::submit::BEGIN_MICROS;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Statement};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Barrier;
use std::time::Instant;
use tally_load::{Draws, Latencies, Random, Skew, player};
use tally_wire::resp::Reply;
use tokio::runtime::Runtime;

const NAME: &str = "baseline: one upsert, one ZADD";
const TABLE: &str = "records";
/// As in the load of the other ways.
const SCORE_END: u64 = 1_000_000_000;
/// Neighbours on each side.
const AROUND: i64 = 5;
/// Members that are set before replies are read, while filling.
const FILL_PIPELINE: u64 = 500;
/// Rows between two progress lines.
const TELL_ROWS: u64 = 50_000;

/// The last acknowledged score of each player.
type Promised = HashMap<u64, i64>;

pub(super) fn measure(
    database: &mut Database,
    folder: &Path,
    work: Work,
    options: &Options,
) -> Result<Way, Error> {
    let url = database.create("baseline")?;
    let redis = Redis::start(&options.redis)?;
    let began = Instant::now();
    fill(database, &url, &redis, folder, work, options)?;
    let filled = Some(work.players as f64 / began.elapsed().as_secs_f64());
    let (mut promised, mut runs) = (Promised::new(), Vec::with_capacity(SKEWS.len()));
    for skew in SKEWS {
        options.say(&format!("{NAME}: {}", skew.name()));
        runs.push(run((&url, &redis), database, (work, skew), &mut promised)?);
    }
    let memory = Memory {
        server: None,
        redis: Some(redis_memory::used(&redis)?),
        database: database.resident_bytes(),
    };
    options.say(&format!("{NAME}: reading back"));
    read_back(database, &url, &redis, &promised)?;
    Ok(Way { name: NAME, filled, started_s: None, runs, memory })
}

/// The same initial scores as in the other ways: rows by the database's bulk load, members in pipelines.
fn fill(
    database: &Database,
    url: &str,
    redis: &Redis,
    folder: &Path,
    work: Work,
    options: &Options,
) -> Result<(), Error> {
    let file = folder.join("players");
    let mut lines = Lines::create(&file).during("write the players")?;
    let mut client = Client::open(redis.address()).during("connect to Redis")?;
    let (mut random, mut waiting) = (Random::new(work.seed), 0);
    for number in 0..work.players {
        let score = random.below(SCORE_END) as i64;
        let name = player(number);
        client.add(&["ZADD", BOARD, &score.to_string(), &name]);
        lines.add(&(name, score, BEGIN_MICROS)).during("write the players")?;
        waiting += 1;
        if waiting == FILL_PIPELINE as usize || number + 1 == work.players {
            client.exchange(std::mem::take(&mut waiting)).during("fill Redis")?;
        }
        if number % TELL_ROWS == 0 {
            options.progress(&format!("{NAME}: filling Redis"), number, work.players);
        }
    }
    lines.end().during("write the players")?;
    options.say(&format!("{NAME}: filling the database"));
    database.runtime.block_on(table::load(url, TABLE, &file)).during("fill the table")?;
    std::fs::remove_file(&file).during("remove the players")
}

struct Caller {
    runtime: Runtime,
    conn: Conn,
    upsert: Statement,
    redis: Client,
    number: u64,
    callers: u64,
    /// All players, and those of the caller.
    any_player: Draws,
    own: Draws,
    random: Random,
    submits: Latencies,
    reads: Latencies,
    promised: Promised,
}

impl Caller {
    fn new((url, redis): (&str, SocketAddr), (work, skew): (Work, Skew), number: u64) -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.during("start a runtime")?;
        let upsert = format!(
            "INSERT INTO {TABLE} (player, score, changed_at) VALUES (?, ?, ?) \
             ON DUPLICATE KEY UPDATE score = VALUES(score), changed_at = VALUES(changed_at)"
        );
        let prepared = runtime.block_on(async {
            let mut conn = database::connect(url).await?;
            let upsert = conn.prep(upsert).await?;
            Ok::<_, mysql_async::Error>((conn, upsert))
        });
        let (conn, upsert) = prepared.during("connect to the database")?;
        let callers = work.connections as u64;
        Ok(Self {
            runtime,
            conn,
            upsert,
            redis: Client::open(redis).during("connect to Redis")?,
            number,
            callers,
            any_player: Draws::new(skew, work.players),
            own: Draws::new(skew, (work.players - number).div_ceil(callers)),
            random: Random::new(work.seed ^ (number << 32)),
            submits: Latencies::default(),
            reads: Latencies::default(),
            promised: Promised::new(),
        })
    }

    fn call(&mut self, counts_from: Instant, until: Instant) -> Result<(), Error> {
        loop {
            let sent_at = Instant::now();
            if sent_at >= until {
                return Ok(());
            }
            let is_submit = self.random.below(2) == 0;
            if is_submit { self.submit() } else { self.read() }?;
            if sent_at >= counts_from {
                let latencies = if is_submit { &mut self.submits } else { &mut self.reads };
                latencies.record(sent_at.elapsed());
            }
        }
    }

    fn submit(&mut self) -> Result<(), Error> {
        let number = self.own.draw(&mut self.random) * self.callers + self.number;
        let (name, score) = (player(number), self.random.below(SCORE_END) as i64);
        let row = (&name, score, BEGIN_MICROS + 1);
        self.runtime.block_on(self.conn.exec_drop(&self.upsert, row)).during("upsert")?;
        self.redis.call(&["ZADD", BOARD, &score.to_string(), &name]).during("set a member")?;
        self.promised.insert(number, score);
        Ok(())
    }

    fn read(&mut self) -> Result<(), Error> {
        let name = player(self.any_player.draw(&mut self.random));
        let rank = self.redis.integer(&["ZREVRANK", BOARD, &name]).during("ask for a rank")?;
        let (first, last) = ((rank - AROUND).max(0).to_string(), (rank + AROUND).to_string());
        let page = self.redis.call(&["ZREVRANGE", BOARD, &first, &last, "WITHSCORES"]);
        let page = page.during("ask for neighbours")?;
        prove(matches!(&page, Reply::Array(page) if page.len() > 2), || format!("{name}: no page, {page:?}"))
    }
}

fn run(
    (url, redis): (&str, &Redis),
    database: &Database,
    (work, skew): (Work, Skew),
    promised: &mut Promised,
) -> Result<Run, Error> {
    let mut callers = (0..work.connections as u64)
        .map(|number| Caller::new((url, redis.address()), (work, skew), number))
        .collect::<Result<Vec<_>, _>>()?;
    let start = Barrier::new(callers.len() + 1);
    let cpu_s = || {
        let here = spent::spent().map(|spent| spent.cpu_seconds);
        [here, database.cpu_s(), redis.process().cpu_s()]
    };
    let before = cpu_s();
    let (seconds, whole) = std::thread::scope(|scope| {
        let start = &start;
        let threads: Vec<_> = callers
            .iter_mut()
            .map(|caller| {
                scope.spawn(move || {
                    start.wait();
                    let counts_from = Instant::now() + work.warm_up;
                    caller.call(counts_from, counts_from + work.duration)
                })
            })
            .collect();
        start.wait();
        let began = Instant::now();
        for thread in threads {
            thread.join().expect("a caller does not panic")?;
        }
        let whole = began.elapsed();
        Ok::<_, Error>((whole.saturating_sub(work.warm_up).as_secs_f64(), whole.as_secs_f64()))
    })?;
    let cores = Cores::between(before, cpu_s(), whole);
    let (mut submits, mut reads) = (Latencies::default(), Latencies::default());
    for caller in callers {
        submits.merge(&caller.submits);
        reads.merge(&caller.reads);
        promised.extend(caller.promised);
        caller.runtime.block_on(caller.conn.disconnect()).during("disconnect")?;
    }
    prove(submits.count() > 0 && reads.count() > 0, || format!("{NAME}: nothing was done"))?;
    Ok(Run { skew, seconds, submits, reads, cores })
}

/// Checks that both have the last acknowledged scores.
fn read_back(database: &Database, url: &str, redis: &Redis, promised: &Promised) -> Result<(), Error> {
    let mut client = Client::open(redis.address()).during("connect to Redis")?;
    let some: Vec<(&u64, &i64)> = promised.iter().take(READ_BACK as usize).collect();
    let stored = database.runtime.block_on(async {
        let mut conn = database::connect(url).await?;
        let select = conn.prep(format!("SELECT score FROM {TABLE} WHERE player = ?")).await?;
        let mut scores: Vec<Option<i64>> = Vec::with_capacity(some.len());
        for (number, _) in &some {
            scores.push(conn.exec_first(&select, (player(**number),)).await?);
        }
        conn.disconnect().await?;
        Ok::<_, mysql_async::Error>(scores)
    });
    for ((number, score), stored) in some.iter().zip(stored.during("read scores back")?) {
        let name = player(**number);
        let ranked = client.call(&["ZSCORE", BOARD, &name]).during("read scores back")?;
        let both = stored == Some(**score) && ranked == Reply::Bulk(score.to_string().into_bytes());
        prove(both, || format!("{NAME}: {name} should have {score} and has {stored:?} and {ranked:?}"))?;
    }
    Ok(())
}
