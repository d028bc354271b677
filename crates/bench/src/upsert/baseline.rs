//! A client without a service: upserts, each in its own transaction, each share on its own connection.
//!
//! A statement has one row, or many in order of keys, and is prepared once. It returns neither the previous score nor a
//! rank. No caller waits for others to fill a statement: its rows are at hand, as in an import.

use super::measured::Round;
use super::shares::Share;
use crate::database::connect;
use crate::submit::{Operation, Operations};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Statement, Value};
use std::time::{Duration, Instant};
use tally_load::{Latencies, player};

/// Upserts each share on its own connection, with so many rows in a statement.
pub(super) async fn round(
    url: &str,
    table: &str,
    shares: Vec<Share>,
    rows: usize,
) -> mysql_async::Result<(Round, Vec<Operations>)> {
    let mut callers = Vec::with_capacity(shares.len());
    for share in shares {
        callers.push(Caller::new(url, table, share, rows).await?);
    }
    let began = Instant::now();
    let tasks: Vec<_> = callers.into_iter().map(|caller| tokio::spawn(caller.call(rows))).collect();
    let (mut latencies, mut streams) = (Latencies::default(), Vec::new());
    let mut ended = Vec::with_capacity(tasks.len());
    for task in tasks {
        ended.push(task.await.expect("a caller does not panic")?);
    }
    let seconds = began.elapsed().as_secs_f64();
    for (one, share, conn) in ended {
        latencies.extend(one);
        streams.extend(share.into_streams());
        conn.disconnect().await?;
    }
    Ok((Round { seconds, latencies }, streams))
}

struct Caller {
    conn: Conn,
    table: String,
    full: Statement,
    share: Share,
}

impl Caller {
    async fn new(url: &str, table: &str, share: Share, rows: usize) -> mysql_async::Result<Self> {
        let mut conn = connect(url).await?;
        let full = conn.prep(upsert(table, rows)).await?;
        Ok(Self { conn, table: table.to_owned(), full, share })
    }

    async fn call(mut self, rows: usize) -> mysql_async::Result<(Vec<Duration>, Share, Conn)> {
        let mut latencies = Vec::with_capacity(self.share.left().div_ceil(rows));
        let mut batch: Vec<Operation> = Vec::with_capacity(rows);
        loop {
            batch.clear();
            batch.extend(self.share.by_ref().take(rows));
            if batch.is_empty() {
                return Ok((latencies, self.share, self.conn));
            }
            // Rows are locked in one order; the stable sort keeps the order of a player's scores.
            batch.sort_by_key(|one| one.player);
            let values: Vec<Value> = batch.iter().flat_map(values).collect();
            let sent_at = Instant::now();
            if batch.len() == rows {
                self.conn.exec_drop(&self.full, values).await?;
            } else {
                self.conn.exec_drop(upsert(&self.table, batch.len()), values).await?;
            }
            latencies.push(sent_at.elapsed());
        }
    }
}

fn values(one: &Operation) -> [Value; 3] {
    [player(one.player).into(), one.score.into(), one.at_micros.into()]
}

fn upsert(table: &str, rows: usize) -> String {
    let rows = vec!["(?, ?, ?)"; rows].join(", ");
    format!(
        "INSERT INTO {table} (player, score, changed_at) VALUES {rows} \
         ON DUPLICATE KEY UPDATE score = VALUES(score), changed_at = VALUES(changed_at)"
    )
}
