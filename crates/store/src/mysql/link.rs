//! One connection and its runtime.
//!
//! The store blocks and the driver does not. So each connection has a small runtime, driven by the thread that uses it, and
//! nothing is passed between threads. Every message has a deadline; a connection that missed one is never used again. Not
//! here: which connection a caller gets (`pool`), and what is sent on it.

use super::connect::Server;
use super::fault::Fault;
use super::row::ResultSets;
use super::stats::Stats;
use super::text::Script;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// How long closing an unneeded connection may take.
const GOODBYE: Duration = Duration::from_millis(200);

/// How long after an answer the connection counts as alive.
const FRESH: Duration = Duration::from_millis(50);

/// The longest end of a transaction that is sent with [`Link::patience`]: that of a full batch of scores.
const SHORT_BYTES: usize = 256 << 10;

/// A connection to the database.
#[derive(Debug)]
pub(super) struct Link {
    conn: Option<Conn>,
    runtime: Option<Runtime>,
    /// The server at the other end.
    pub(super) server: Server,
    /// The random name of the connection in the table `batches`.
    pub(super) name: [u8; 16],
    /// The number of its last transaction that wrote; 0 for none yet.
    pub(super) sequence: u64,
    /// How long the next message may take.
    pub(super) deadline: Duration,
    /// How long the end of a short transaction may take. A commit without an answer can be resolved at any time (`batches`),
    /// and a lane waits for it.
    pub(super) patience: Duration,
    stats: Arc<Stats>,
    /// When the connection became idle; none while it is new.
    pub(super) idle_since: Option<Instant>,
    /// When the last answer arrived.
    answered: Option<Instant>,
    broken: bool,
}

impl Link {
    pub(super) fn new(
        conn: Conn,
        runtime: Runtime,
        (server, name): (Server, [u8; 16]),
        deadline: Duration,
        stats: Arc<Stats>,
    ) -> Self {
        Self {
            conn: Some(conn),
            runtime: Some(runtime),
            server,
            name,
            sequence: 0,
            deadline,
            patience: deadline,
            stats,
            idle_since: None,
            answered: None,
            broken: false,
        }
    }

    /// Sends the statements, in as few messages as the database takes, and returns their results in order. It stops at the
    /// first refused one.
    pub(super) fn send(&mut self, script: &Script) -> Result<ResultSets, Fault> {
        let messages = script.messages(self.server.message_bytes).map_err(Fault::NotSent)?;
        let mut results = ResultSets::recording(Arc::clone(&self.stats));
        for (text, statements) in messages {
            let before = results.len();
            results.extend(self.send_message(text, statements).map_err(|fault| match fault {
                Fault::Refused { code, text, answered } => {
                    Fault::Refused { code, text, answered: before + answered }
                }
                other => other,
            })?);
        }
        Ok(results)
    }

    /// Like [`Self::send`], for the end of a transaction.
    pub(super) fn send_end(&mut self, script: &Script) -> Result<ResultSets, Fault> {
        let deadline = self.deadline;
        if script.text_len() <= SHORT_BYTES {
            self.deadline = deadline.min(self.patience);
        }
        let results = self.send(script);
        self.deadline = deadline;
        results
    }

    fn send_message(&mut self, text: &str, statements: usize) -> Result<ResultSets, Fault> {
        let (Some(conn), Some(runtime), false) = (&mut self.conn, &self.runtime, self.broken) else {
            return Err(Fault::Lost("the connection was lost before".into()));
        };
        self.stats.messages.fetch_add(1, Ordering::Relaxed);
        let answered = runtime
            .block_on(async { tokio::time::timeout(self.deadline, exchange(conn, text, statements)).await });
        let done =
            answered.unwrap_or_else(|_| Err(Fault::Lost(format!("no answer within {:?}", self.deadline))));
        self.broken = matches!(done, Err(Fault::Lost(_)));
        self.answered = (!self.broken).then(Instant::now);
        done
    }

    /// Whether the connection answered just now, so that it is hardly lost.
    pub(super) fn is_fresh(&self) -> bool {
        self.answered.is_some_and(|at| at.elapsed() < FRESH)
    }

    /// Whether the connection must not be used again.
    pub(super) fn is_broken(&self) -> bool {
        self.broken
    }

    /// Marks the connection as broken. The database rolls back its open transaction when it closes.
    pub(super) fn give_up(&mut self) {
        self.broken = true;
    }
}

/// Sends one message and reads its answer.
async fn exchange(conn: &mut Conn, text: &str, statements: usize) -> Result<ResultSets, Fault> {
    let mut results = ResultSets::default();
    let mut result = conn.query_iter(text).await.map_err(|error| Fault::of(&error, 0))?;
    for _ in 0..statements {
        let affected = result.affected_rows();
        let rows = result.collect().await;
        results.push(rows.map_err(|error| Fault::of(&error, results.len()))?, affected);
    }
    // No result is left; if there were one, the connection would be out of step.
    result.drop_result().await.map_err(|error| Fault::of(&error, results.len()))?;
    Ok(results)
}

impl Drop for Link {
    fn drop(&mut self) {
        let (conn, runtime) = (self.conn.take(), self.runtime.take());
        self.stats.open.fetch_sub(1, Ordering::Relaxed);
        let Some(runtime) = runtime else { return };
        // A sound connection says goodbye, if this thread may block. Inside of another runtime it may not, and a lost
        // connection cannot.
        let alone = tokio::runtime::Handle::try_current().is_err();
        if alone && !self.broken && !std::thread::panicking() {
            let _ = runtime.block_on(async {
                let conn = conn?;
                tokio::time::timeout(GOODBYE, conn.disconnect()).await.ok()
            });
        } else {
            // The driver's closing message would run on the current runtime.
            let _this_one = runtime.enter();
            drop(conn);
        }
        runtime.shutdown_background();
    }
}
