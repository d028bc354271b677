//! Renewals of a lease, on a connection of their own: those of the pool may all be in use for longer than the lease lasts.
//!
//! A renewal is one transaction with a marker (`batches`). If its answer is lost, the marker says whether it was done. Without
//! that, a server that loses a few answers in a row would stop although its lease is renewed. Not here: when a lease is renewed
//! and what follows from it (`lease`).

use super::connect;
use super::leases::{self, LeaseKind, LeaseRow, micros};
use super::link::Link;
use super::pool::{Pool, end_silent_transactions};
use super::row::ResultSets;
use super::text::Script;
use super::{CLOCK, Options, batches};
use crate::StoreError;
use crate::plan::BatchId;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The renewals of one lease.
pub(super) struct Renewals {
    pool: Arc<Pool>,
    kind: LeaseKind,
    token: u64,
    time: Duration,
    /// The random connection name of the markers.
    marker: [u8; 16],
    link: Option<Link>,
    /// The number of the last one that was sent, and of the last one that was answered. The marker of the latter is a witness.
    sent: u64,
    answered: u64,
}

/// A done renewal.
pub(super) struct Renewed {
    /// The row afterwards. With another token, another server has the lease.
    pub(super) found: LeaseRow,
    /// By how much the wall clock is ahead of the database's, in microseconds.
    pub(super) ahead: i64,
}

impl Renewals {
    pub(super) fn new(
        pool: &Arc<Pool>,
        (kind, token): (LeaseKind, u64),
        time: Duration,
    ) -> Result<Self, StoreError> {
        let mut marker = [0; 16];
        getrandom::fill(&mut marker)
            .map_err(|error| StoreError::Unavailable(format!("no random numbers: {error}")))?;
        Ok(Self { pool: Arc::clone(pool), kind, token, time, marker, link: None, sent: 0, answered: 0 })
    }

    /// Renews the lease if its token is still ours. Each renewal leaves a marker, so a server that writes nothing also notices
    /// lost commits of the database. After an error, the next one begins on a new connection.
    pub(super) fn renew(&mut self) -> Result<Renewed, StoreError> {
        let renewed = self.attempt();
        if let Err(error) = &renewed {
            self.link = None;
            // A server that is frozen while it takes the lease has locked its row.
            if matches!(error, StoreError::Conflict(_))
                && let Ok(link) = self.connected()
            {
                end_silent_transactions(link);
            }
        }
        renewed
    }

    fn attempt(&mut self) -> Result<Renewed, StoreError> {
        let pool = Arc::clone(&self.pool);
        pool.witnesses.check()?;
        pool.witnesses.check_all(self.connected()?, &pool.address.shown)?;
        let (begun, settled) = pool.witnesses.begin(1);
        self.sent += 1;
        let batch = BatchId { link: self.marker, sequence: self.sent, ..BatchId::default() };
        let mut script = Script::default();
        script.statement("START TRANSACTION");
        batches::put_renewal(&mut script, &batch, self.answered);
        batches::delete(&mut script, &settled);
        script.sql("UPDATE leases SET expires_at = ").sql(CLOCK).sql(" + ").number(micros(self.time));
        self.kind.put_row(&mut script, self.token);
        script.statement("COMMIT");
        let sent_at = SystemTime::now();
        let sent = self.send_and_read(script).or_else(|error| self.read_if_done(&batch).ok_or(error));
        let mut results = sent.inspect_err(|_| pool.witnesses.settle(settled))?;
        let answered_at = SystemTime::now();
        let found = leases::read(&mut results)?;
        let now = results.one_number("the clock")?;
        self.answered = batch.sequence;
        pool.witnesses.answered(batch, now, begun);
        Ok(Renewed { found, ahead: leases::ahead((sent_at, answered_at), now) })
    }

    /// Sends statements, and reads the row and the clock of the database after them.
    fn send_and_read(&mut self, mut script: Script) -> Result<ResultSets, StoreError> {
        let before = script.len();
        leases::select(&mut script);
        script.sql("SELECT ").sql(CLOCK).end();
        let mut results = self.connected()?.send(&script)?;
        results.skip(before);
        Ok(results)
    }

    /// The same on a new connection, if a renewal without an answer is done.
    fn read_if_done(&mut self, batch: &BatchId) -> Option<ResultSets> {
        self.link = None;
        let mut script = Script::default();
        batches::count(&mut script, batch);
        let done = self.connected().ok()?.send(&script).ok()?.one_number("batches").ok()?;
        if done == 0 { None } else { self.send_and_read(Script::default()).ok() }
    }

    /// Gives the lease of a single writer back. It expires by itself if this statement is lost.
    pub(super) fn release(mut self) {
        let mut script = Script::default();
        script.sql("UPDATE leases SET holder = '', expires_at = 0 WHERE name = 'writer' AND fence = ");
        script.number(self.token).end();
        let _ = self.connected().map(|link| link.send(&script));
    }

    /// A connection whose timeouts leave time for another try. It gives the lease back even after the database has lost commits,
    /// so each renewal checks the witnesses itself.
    fn connected(&mut self) -> Result<&mut Link, StoreError> {
        match &mut self.link {
            Some(link) => Ok(link),
            none => {
                let options = Options {
                    connect_timeout: self.pool.options.connect_timeout.min(self.time / 3),
                    query_timeout: self.pool.options.query_timeout.min(self.time / 3),
                    // Ends before that timeout, so that a locked row is told apart from a silent database.
                    lock_wait: self.pool.options.lock_wait.min(self.time / 5),
                    ..self.pool.options.clone()
                };
                Ok(none.insert(connect::connect(&self.pool.address, &options, &self.pool.stats)?))
            }
        }
    }
}
