//! The baseline: at the end of the day one statement ranks it and one deletes it, in one transaction on the connection
//! that every caller waits for.
//!
//! It does less than the service: it returns neither the previous score nor a rank.

use super::{
    AFTER, BEFORE, BEGIN_MICROS, CALLERS, CLOSING, DONE, END_MICROS, Measured, Phase, Waits, first_score,
};
use crate::error::{During, Error};
use crate::options::Options;
use crate::submit::operations::{Contents, Operation, Operations};
use rusqlite::{Connection, params};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tally_load::player;

const TABLES: &str = "
    CREATE TABLE scores (
        part INTEGER NOT NULL, player TEXT NOT NULL, score INTEGER NOT NULL, at INTEGER NOT NULL,
        PRIMARY KEY (part, player)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE closed (
        part INTEGER NOT NULL, rank INTEGER NOT NULL, player TEXT NOT NULL, score INTEGER NOT NULL, at INTEGER NOT NULL,
        PRIMARY KEY (part, rank)
    ) STRICT, WITHOUT ROWID;";
const UPSERT: &str = "
    INSERT INTO scores (part, player, score, at) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT DO UPDATE SET score = excluded.score, at = excluded.at";
const RANK: &str = "
    INSERT INTO closed SELECT part, row_number() OVER (ORDER BY score DESC, at, player), player, score, at
    FROM scores WHERE part = ?1 ORDER BY score DESC, at, player";
const DELETE: &str = "DELETE FROM scores WHERE part = ?1";
const LIST: &str = "SELECT player, score, at FROM closed WHERE part = ?1 ORDER BY rank";

const ALL_TIME: i64 = 0;
const DAY: i64 = 1;
const NEXT_DAY: i64 = 2;

/// How long callers continue around the closing, as a part of the time before it.
const AROUND: f64 = 0.5;

/// Does the same submits, as many as fit into this time; the rest is written unmeasured. Then the day ends while callers
/// continue with submits of the next.
pub(super) fn measure(
    folder: &Path,
    players: u64,
    counts: &[u64],
    options: &Options,
) -> Result<Measured, Error> {
    let connection = open(&folder.join("baseline.db"), players).during("fill the baseline tables")?;
    let connection = Mutex::new(connection);
    let (mut waits, mut seconds) = (Waits::default(), [0.0; 3]);
    let began = Instant::now();
    let until = began + options.duration();
    let done = std::thread::scope(|scope| {
        let caller = |(caller, &count): (usize, &u64)| {
            let operations = Operations::new(caller, CALLERS, players, options.seed);
            let connection = &connection;
            scope.spawn(move || today(connection, operations, count, until))
        };
        let threads: Vec<_> = counts.iter().enumerate().map(caller).collect();
        threads.into_iter().map(|thread| thread.join().expect("a caller does not panic")).collect::<Vec<_>>()
    });
    seconds[BEFORE] = began.elapsed().as_secs_f64();
    let mut rests = Vec::with_capacity(CALLERS);
    for (one, count) in done.into_iter().zip(counts) {
        let (operations, of_caller, reached) = one.during("upsert")?;
        waits.merge(&of_caller);
        rests.push((operations, count - reached));
    }
    finish(&mut lock(&connection), &mut rests).during("write the rest")?;
    let operations = rests.into_iter().map(|(operations, _)| operations);
    close(&connection, operations.collect(), options, &mut waits, &mut seconds)?;
    let contents = list(&lock(&connection)).during("read the closed day")?;
    Ok(Measured { waits, seconds, counts: counts.to_vec(), contents })
}

/// Ends the day while callers submit scores of the next.
fn close(
    connection: &Mutex<Connection>,
    callers: Vec<Operations>,
    options: &Options,
    waits: &mut Waits,
    seconds: &mut [f64; 3],
) -> Result<(), Error> {
    let phase = Phase::default();
    let around = options.duration().mul_f64(AROUND).max(Duration::from_millis(50));
    std::thread::scope(|scope| {
        let caller = |operations| scope.spawn(|| tomorrow(connection, operations, &phase));
        let threads: Vec<_> = callers.into_iter().map(caller).collect();
        std::thread::sleep(around);
        seconds[BEFORE] += around.as_secs_f64();
        phase.set(CLOSING);
        let began = Instant::now();
        let closed = rank(&mut lock(connection));
        seconds[CLOSING] = began.elapsed().as_secs_f64();
        phase.set(AFTER);
        std::thread::sleep(around);
        seconds[AFTER] = around.as_secs_f64();
        phase.set(DONE);
        closed.during("close the day")?;
        for thread in threads {
            waits.merge(&thread.join().expect("a caller does not panic").during("upsert")?);
        }
        Ok(())
    })
}

fn lock(connection: &Mutex<Connection>) -> MutexGuard<'_, Connection> {
    connection.lock().unwrap_or_else(PoisonError::into_inner)
}

fn open(path: &Path, players: u64) -> rusqlite::Result<Connection> {
    let mut connection = Connection::open(path)?;
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "cache_size", -64 * 1024)?;
    connection.execute_batch(TABLES)?;
    let transaction = connection.transaction()?;
    for part in [ALL_TIME, DAY] {
        let mut upsert = transaction.prepare(UPSERT)?;
        for number in 0..players {
            upsert.execute(params![part, player(number), first_score(number), BEGIN_MICROS])?;
        }
    }
    transaction.commit()?;
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(connection)
}

/// One score, over all time and in a day, in one transaction.
fn put(connection: &mut Connection, day: i64, one: Operation, at: i64) -> rusqlite::Result<()> {
    let name = player(one.player);
    let transaction = connection.transaction()?;
    for part in [ALL_TIME, day] {
        transaction.prepare_cached(UPSERT)?.execute(params![part, name, one.score, at])?;
    }
    transaction.commit()
}

fn today(
    connection: &Mutex<Connection>,
    mut operations: Operations,
    count: u64,
    until: Instant,
) -> rusqlite::Result<(Operations, Waits, u64)> {
    let (mut waits, mut done) = (Waits::default(), 0);
    while done < count && Instant::now() < until {
        let one = operations.draw();
        let sent_at = Instant::now();
        put(&mut lock(connection), DAY, one, one.at_micros)?;
        waits.record(BEFORE, BEFORE, sent_at.elapsed());
        done += 1;
    }
    Ok((operations, waits, done))
}

fn tomorrow(
    connection: &Mutex<Connection>,
    mut operations: Operations,
    phase: &Phase,
) -> rusqlite::Result<Waits> {
    let mut waits = Waits::default();
    loop {
        let before = phase.now();
        if before == DONE {
            return Ok(waits);
        }
        let one = operations.draw();
        let sent_at = Instant::now();
        put(&mut lock(connection), NEXT_DAY, one, one.at_micros - BEGIN_MICROS + END_MICROS)?;
        waits.record(before, phase.now(), sent_at.elapsed());
    }
}

fn finish(connection: &mut Connection, rests: &mut [(Operations, u64)]) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    {
        let mut upsert = transaction.prepare(UPSERT)?;
        for (operations, count) in rests {
            for _ in 0..*count {
                let one = operations.draw();
                for part in [ALL_TIME, DAY] {
                    upsert.execute(params![part, player(one.player), one.score, one.at_micros])?;
                }
            }
        }
    }
    transaction.commit()
}

fn rank(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    transaction.execute(RANK, [DAY])?;
    transaction.execute(DELETE, [DAY])?;
    transaction.commit()
}

fn list(connection: &Connection) -> rusqlite::Result<Contents> {
    let mut contents = Contents::default();
    let mut statement = connection.prepare(LIST)?;
    let mut rows = statement.query([DAY])?;
    while let Some(row) = rows.next()? {
        let player: String = row.get(0)?;
        contents.add(&player, row.get(1)?, 0, row.get(2)?);
    }
    Ok(contents)
}
