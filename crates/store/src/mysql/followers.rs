//! Which server leads, for the servers that follow it: the holder of the single-writer lease, and its address.
//!
//! The address is a value of `meta` with the fencing token of its server. One with another token is that of an earlier leader.
//! A server that follows has no lease, so it must not write: [`MySqlStore::may_write`]. Not here: what followers read from the
//! leader.

use super::text::Script;
use super::{CLOCK, MySqlStore, leases, meta};
use crate::StoreError;
use crate::plan::{BatchId, Committed};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The name of the value.
const LEADER: &str = "store.leader";

/// The lease of the only writer, as a follower finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderRow {
    /// The fencing token of the last holder.
    pub token: u64,
    /// Its address; `None` before it has stored one.
    pub address: Option<String>,
    /// Whether it has given the lease back, or has not renewed it in time: another server may lead.
    pub is_over: bool,
    /// Whether it has given the lease back.
    pub is_released: bool,
}

/// The last holder of the lease before this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// Its fencing token.
    pub token: u64,
    /// The end of its lease by the database's clock; 0 if it has given it back.
    pub expires_at: u64,
}

/// Transactions whose marks are kept, oldest first.
#[derive(Debug, Default)]
pub(super) struct Marked(Mutex<VecDeque<(Instant, BatchId)>>);

impl MySqlStore {
    /// Stores the address of this process for followers, if it is the only writer.
    pub fn lead(&self, address: &str) -> Result<(), StoreError> {
        let Some(lease) = self.lease.as_ref().filter(|lease| lease.is_alone()) else { return Ok(()) };
        let value = [&lease.token().to_be_bytes(), address.as_bytes()].concat();
        let mut script = Script::default();
        // A process that was frozen here may have been replaced.
        script
            .sql("REPLACE INTO meta (name, value) SELECT ")
            .bytes(LEADER.as_bytes())
            .sql(", ")
            .bytes(&value);
        script.sql(" FROM leases WHERE name = 'writer' AND fence = ").number(lease.token()).end();
        self.pool.query(&script).map(drop)
    }

    /// Reads who leads.
    pub fn leader(&self) -> Result<LeaderRow, StoreError> {
        let mut script = Script::default();
        leases::select(&mut script);
        script.sql("SELECT ").sql(CLOCK).end();
        meta::put_select(LEADER, &mut script);
        let mut results = self.pool.query(&script)?;
        let row = leases::read(&mut results)?;
        let now = results.one_number("the clock")?;
        let stored = meta::read(&mut results)?;
        let own = stored.as_deref().and_then(|value| value.split_first_chunk::<8>());
        let own = own.filter(|(token, _)| u64::from_be_bytes(**token) == row.token);
        let address = own.and_then(|(_, address)| String::from_utf8(address.to_vec()).ok());
        let (is_over, is_released) = (row.expires_at <= now, row.expires_at == 0);
        Ok(LeaderRow { token: row.token, address, is_over, is_released })
    }

    /// The writer before this process, if it is the only writer. No other process has written in between.
    pub fn replaced(&self) -> Option<Replaced> {
        let (token, expires_at) = self.lease.as_ref().filter(|lease| lease.is_alone())?.replaced();
        Some(Replaced { token, expires_at })
    }

    /// Keeps the names of what a transaction has changed beside it for a while: a server that leads after this one may have missed
    /// it. A later transaction deletes them.
    pub(super) fn keep_marks(&self, committed: Committed) -> Committed {
        let Some(keep) = self.pool.options.marks else { return committed };
        let mut marked = self.marked.0.lock().unwrap_or_else(PoisonError::into_inner);
        marked.extend(committed.outbox.map(|batch| (Instant::now(), batch)));
        let old = marked.iter().take_while(|(at, _)| at.elapsed() > keep).count();
        self.pool.witnesses.settle(marked.drain(..old).map(|(_, batch)| batch));
        Committed { outbox: None, ..committed }
    }

    /// Whether this process only follows.
    pub fn follows(&self) -> bool {
        self.pool.options.follows
    }

    /// Refuses a change by a process that follows.
    pub(super) fn may_write(&self) -> Result<(), StoreError> {
        if self.follows() {
            return Err(StoreError::Unavailable("this server follows another one, which writes".into()));
        }
        Ok(())
    }
}
