//! The baseline: each batch upserted into its table in one transaction, synced.
//!
//! It is as good as possible without a journal. Rows are in key order, and the statement is prepared once. Each row takes one
//! descent of the tree, and the log is large before a checkpoint.

use super::Measured;
use super::batches::{Batches, before, name};
use crate::error::{During, Error};
use crate::spent;
use crate::submit::Contents;
use rusqlite::{Connection, params};
use std::path::Path;
use std::time::{Duration, Instant};
use tally_load::Latencies;
use tally_rules::{PlayerId, Record};

const SCHEMA: &str = "
    CREATE TABLE scores (
        board INTEGER NOT NULL, part INTEGER NOT NULL, player TEXT NOT NULL,
        score INTEGER NOT NULL, subscore INTEGER NOT NULL, at INTEGER NOT NULL,
        PRIMARY KEY (board, part, player)
    ) STRICT, WITHOUT ROWID";
const UPSERT: &str =
    "REPLACE INTO scores (board, part, player, score, subscore, at) VALUES (1, 0, ?1, ?2, ?3, ?4)";
const LIST: &str =
    "SELECT player, score, subscore, at FROM scores WHERE board = 1 AND part = 0 ORDER BY player";
const ROWS: u64 = 10_000;

/// Writes so many batches, as many as fit into this time, and then the rest unmeasured.
pub(super) fn measure(
    path: &Path,
    mut batches: Batches,
    count: u64,
    time: Duration,
) -> Result<Measured, Error> {
    let mut connection = open(path, batches.players).during("fill the baseline table")?;
    let (mut latencies, mut rows, mut done) = (Latencies::default(), 0, 0);
    let (then, began) = (spent::spent(), Instant::now());
    while done < count && began.elapsed() < time {
        let batch = batches.draw();
        rows += batch.len() as u64;
        done += 1;
        let sent_at = Instant::now();
        write(&mut connection, &batch).during("upsert")?;
        latencies.record(sent_at.elapsed());
    }
    let seconds = began.elapsed().as_secs_f64();
    checkpoint(&connection).during("checkpoint the log")?;
    let drained_seconds = began.elapsed().as_secs_f64();
    let spent = spent::since(then);
    connection.pragma_update(None, "synchronous", "OFF").during("hurry")?;
    for _ in done..count {
        write(&mut connection, &batches.draw()).during("write the rest")?;
    }
    let contents = Contents::of(&connection, LIST).during("read the baseline table")?;
    Ok(Measured { way: "direct", seconds, drained_seconds, latencies, rows, spent, contents })
}

fn open(path: &Path, players: u64) -> rusqlite::Result<Connection> {
    let mut connection = Connection::open(path)?;
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "cache_size", -64 * 1024)?;
    // 64 MiB of pages.
    connection.pragma_update(None, "wal_autocheckpoint", 16 * 1024)?;
    connection.execute_batch(SCHEMA)?;
    let mut next = 0;
    while next < players {
        let end = players.min(next + ROWS);
        write(&mut connection, &(next..end).map(|number| (name(number), before())).collect::<Vec<_>>())?;
        next = end;
    }
    checkpoint(&connection)?;
    Ok(connection)
}

fn write(connection: &mut Connection, batch: &[(PlayerId, Record)]) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    {
        let mut upsert = transaction.prepare_cached(UPSERT)?;
        for (player, record) in batch {
            upsert.execute(params![player.as_str(), record.score, record.subscore, record.at.0])?;
        }
    }
    transaction.commit()
}

fn checkpoint(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}
