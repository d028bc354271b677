//! The baseline: a connection behind a mutex, and one upsert for each request in a transaction of its own.
//!
//! The same table, the same settings for durable commits, the same page cache, a statement prepared once. It does less
//! than the service: it returns neither the previous score nor a rank.

use super::measured::Measured;
use super::operations::{BEGIN_MICROS, Contents, Operations};
use crate::error::{During, Error};
use rusqlite::{Connection, params};
use std::path::Path;
use std::sync::{Barrier, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tally_load::{Latencies, player};

const SCHEMA: &str = "
    CREATE TABLE scores (
        board INTEGER NOT NULL, part INTEGER NOT NULL, player TEXT NOT NULL,
        score INTEGER NOT NULL, subscore INTEGER NOT NULL, at INTEGER NOT NULL,
        PRIMARY KEY (board, part, player)
    ) STRICT, WITHOUT ROWID";
const UPSERT: &str = "
    INSERT INTO scores (board, part, player, score, subscore, at) VALUES (1, 0, ?1, ?2, 0, ?3)
    ON CONFLICT DO UPDATE SET score = excluded.score, at = excluded.at";
const LIST: &str =
    "SELECT player, score, subscore, at FROM scores WHERE board = 1 AND part = 0 ORDER BY player";

/// Does so many submits of each caller, one thread for each, as many as fit into this time. The rest is then written in
/// one transaction outside the measurement, so that the tables can be compared.
pub(super) fn measure(
    folder: &Path,
    players: u64,
    counts: &[u64],
    time: Duration,
    seed: u64,
) -> Result<Measured, Error> {
    let connection = open(&folder.join("baseline.db"), players).during("fill the baseline table")?;
    let connection = Mutex::new(connection);
    let start = Barrier::new(counts.len() + 1);
    let (began, all) = std::thread::scope(|scope| {
        let caller = |(caller, &count): (usize, &u64)| {
            let operations = Operations::new(caller, counts.len(), players, seed);
            let (connection, start) = (&connection, &start);
            scope.spawn(move || {
                start.wait();
                call(connection, operations, count, Instant::now() + time)
            })
        };
        let threads: Vec<_> = counts.iter().enumerate().map(caller).collect();
        start.wait();
        let began = Instant::now();
        let all: Vec<_> =
            threads.into_iter().map(|thread| thread.join().expect("a caller does not panic")).collect();
        (began, all)
    });
    let seconds = began.elapsed().as_secs_f64();
    let (mut latencies, mut rests) = (Latencies::default(), Vec::with_capacity(counts.len()));
    for (one, count) in all.into_iter().zip(counts) {
        let (one, operations) = one.during("upsert")?;
        rests.push((operations, count - one.len() as u64));
        latencies.extend(one);
    }
    let mut connection = connection.into_inner().unwrap_or_else(PoisonError::into_inner);
    finish(&mut connection, rests).during("write the rest")?;
    let contents = Contents::of(&connection, LIST).during("read the baseline table")?;
    Ok(Measured { seconds, latencies, counts: counts.to_vec(), rows_per_commit: 1.0, contents })
}

fn open(path: &Path, players: u64) -> rusqlite::Result<Connection> {
    let mut connection = Connection::open(path)?;
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "cache_size", -64 * 1024)?;
    connection.execute_batch(SCHEMA)?;
    let transaction = connection.transaction()?;
    {
        let mut upsert = transaction.prepare(UPSERT)?;
        for number in 0..players {
            upsert.execute(params![player(number), 0, BEGIN_MICROS])?;
        }
    }
    transaction.commit()?;
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(connection)
}

fn call(
    connection: &Mutex<Connection>,
    mut operations: Operations,
    count: u64,
    until: Instant,
) -> rusqlite::Result<(Vec<Duration>, Operations)> {
    let mut latencies = Vec::new();
    let mut sent = Instant::now();
    while (latencies.len() as u64) < count && sent < until {
        let operation = operations.draw();
        let name = player(operation.player);
        sent = Instant::now();
        let connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
        connection.prepare_cached(UPSERT)?.execute(params![name, operation.score, operation.at_micros])?;
        drop(connection);
        let received = Instant::now();
        latencies.push(received - sent);
        sent = received;
    }
    Ok((latencies, operations))
}

fn finish(connection: &mut Connection, rests: Vec<(Operations, u64)>) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    {
        let mut upsert = transaction.prepare(UPSERT)?;
        for (mut operations, count) in rests {
            for _ in 0..count {
                let one = operations.draw();
                upsert.execute(params![player(one.player), one.score, one.at_micros])?;
            }
        }
    }
    transaction.commit()
}
