//! The table `leases`: which server may write, and until when by the database's clock.
//!
//! Statements and rows; `lease` decides when they are sent.

use super::CLOCK;
use super::fault::{self, Fault, corrupt};
use super::link::Link;
use super::row::{Fields, ResultSets};
use super::tasks;
use super::text::Script;
use crate::StoreError;
use crate::plan::BoardNo;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tally_rules::clock::SKEW_MAX;
use tally_rules::instant::SECOND;

/// The maximum length of a holder's name in bytes.
const HOLDER_BYTES_MAX: usize = 1024;

/// Reads the row of the single writer.
const ALONE: &str = "SELECT fence, holder, expires_at FROM leases WHERE name = 'writer'";
/// Reads the row of servers that write side by side.
const BESIDE: &str = "SELECT fence, holder, expires_at FROM leases WHERE name = 'servers'";

/// The holder of the writer's row after servers side by side have fenced the last single writer.
pub(super) const SIDE_BY_SIDE: &str = "servers that write side by side";

/// The kind of a lease: which other servers may write as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeaseKind {
    /// None.
    Alone,
    /// Servers of the same kind.
    Beside,
}

impl LeaseKind {
    /// Ends a statement with the condition of the row to renew.
    pub(super) fn put_row(self, script: &mut Script, token: u64) {
        match self {
            Self::Alone => script.sql(" WHERE name = 'writer' AND fence = ").number(token),
            Self::Beside => script.sql(" WHERE name = 'servers'"),
        };
        script.end();
    }
}

/// A taken lease, and when it was requested.
pub(super) struct HeldLease {
    pub(super) token: u64,
    /// The row of the single writer before: its token, and the end of its lease.
    pub(super) replaced: (u64, u64),
    pub(super) generation: u64,
    pub(super) sent: Instant,
}

/// A row of the table.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LeaseRow {
    pub(super) token: u64,
    pub(super) holder: String,
    pub(super) expires_at: u64,
}

/// The result of [`try_take`].
pub(super) enum Tried {
    Taken(HeldLease),
    /// This server holds it.
    Held(LeaseRow),
    /// The lease of the servers side by side has ended. They may be about to renew it.
    Silent,
}

/// Takes the lease if no other server holds it. A server that takes either row has locked the row of the single writer. The
/// first server side by side raises the token too: a former single writer may be frozen instead of gone. With `may_begin`,
/// silent servers count as gone.
pub(super) fn try_take(
    link: &mut Link,
    (kind, holder): (LeaseKind, &str),
    (time, anew, may_begin): (Duration, Option<u64>, bool),
) -> Result<Tried, StoreError> {
    let mut script = Script::default();
    script.statement("START TRANSACTION");
    script.sql(ALONE).sql(" FOR UPDATE").end();
    script.sql(BESIDE).sql(" FOR UPDATE").end();
    // The clock is read after the lock is granted, however long that took.
    script.sql("SELECT ").sql(CLOCK).end();
    let sent_at = SystemTime::now();
    let mut results = link.send(&script)?;
    let answered_at = SystemTime::now();
    results.skip(1);
    let alone = read(&mut results)?;
    // An older schema, which is about to be migrated, has the row of the single writer only.
    let none = || LeaseRow { token: 0, holder: String::new(), expires_at: 0 };
    let beside = read_row(&mut results)?.unwrap_or_else(none);
    let now = results.one_number("the clock")?;
    check_clock(ahead((sent_at, answered_at), now))?;
    let mut script = Script::default();
    let replaced = (alone.token, alone.expires_at);
    let raises = kind == LeaseKind::Alone || alone.holder != SIDE_BY_SIDE;
    // The token follows the clock: a database that has lost a token would give it again.
    let token = if raises { now.max(alone.token + 1) } else { alone.token };
    // A server that finds no other begins a new generation, and so does the first one that has found lost commits. After a
    // single writer, servers side by side are fenced, so none of them renews.
    let is_lost = anew.is_some_and(|known| beside.token <= known);
    let must_begin = raises || is_lost || beside.token == 0;
    let is_silent = beside.expires_at <= now;
    let begins = kind == LeaseKind::Beside && (must_begin || is_silent);
    let ends_tasks = begins && beside.token > 0;
    let generation = if begins { now.max(beside.token + 1) } else { beside.token };
    let excludes = |found: &LeaseRow| found.expires_at > now;
    if let Some(found) =
        [Some(alone), Some(beside).filter(|_| kind == LeaseKind::Alone)].into_iter().flatten().find(excludes)
    {
        script.statement("ROLLBACK");
        link.send(&script)?;
        return Ok(Tried::Held(found));
    }
    if begins && !must_begin && !may_begin {
        script.statement("ROLLBACK");
        link.send(&script)?;
        return Ok(Tried::Silent);
    }
    if raises && kind == LeaseKind::Beside {
        script.sql("UPDATE leases SET expires_at = 0, holder = ").bytes(SIDE_BY_SIDE.as_bytes());
        script.sql(", fence = ").number(token).sql(" WHERE name = 'writer'").end();
    }
    script.sql("UPDATE leases SET holder = ").bytes(short(holder));
    script.sql(", expires_at = ").sql(CLOCK).sql(" + ").number(micros(time));
    match kind {
        LeaseKind::Alone => script.sql(", fence = ").number(token).sql(" WHERE name = 'writer'"),
        LeaseKind::Beside => script.sql(", fence = ").number(generation).sql(" WHERE name = 'servers'"),
    };
    script.end();
    if ends_tasks {
        tasks::end_all(&mut script);
    }
    script.statement("COMMIT");
    let sent = Instant::now();
    link.send(&script)?;
    Ok(Tried::Taken(HeldLease { token, replaced, generation, sent }))
}

/// By how much the wall clock is at least ahead of the database's, in microseconds. The database read its clock between both
/// instants.
pub(super) fn ahead((sent_at, answered_at): (SystemTime, SystemTime), database: u64) -> i64 {
    let micros = |at: SystemTime| {
        let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    };
    let database = i64::try_from(database).unwrap_or(i64::MAX);
    (micros(sent_at) - database).max(0) - (database - micros(answered_at)).max(0)
}

/// Refuses to begin if the clock differs too much from the database's.
fn check_clock(ahead: i64) -> Result<(), StoreError> {
    if ahead.abs() <= SKEW_MAX {
        return Ok(());
    }
    let (seconds, which) = (ahead.abs() / SECOND, if ahead > 0 { "ahead of" } else { "behind" });
    Err(StoreError::Skewed(format!(
        "the clock of this machine is {seconds} s {which} the database's, and {} s are allowed: set it, by NTP",
        SKEW_MAX / SECOND
    )))
}

pub(super) fn read(results: &mut ResultSets) -> Result<LeaseRow, StoreError> {
    read_row(results)?.ok_or_else(|| corrupt("leases", "the row of the writer is missing"))
}

fn read_row(results: &mut ResultSets) -> Result<Option<LeaseRow>, StoreError> {
    let rows = results.rows();
    let Some(row) = rows.first() else { return Ok(None) };
    let mut row = Fields::new("leases", row);
    let (token, holder) = (row.number()?, String::from_utf8_lossy(row.bytes()?).into_owned());
    Ok(Some(LeaseRow { token, holder, expires_at: row.number()? }))
}

/// Queries the row of the single writer.
pub(super) fn select(script: &mut Script) {
    script.statement(ALONE);
}

/// Reads the fencing token of the answer.
pub(super) fn read_token(results: &mut ResultSets) -> Result<u64, StoreError> {
    Ok(read(results)?.token)
}

/// Writes the end of a `SELECT`. Its last column is 0 if the lease has this token and all these boards are live. Otherwise
/// it is null, for a column that is NOT NULL. From then on no server takes the lease or deletes a board until the
/// transaction ends. One join, because each subquery would cost as much as five records.
pub(super) fn put_guard(script: &mut Script, token: u64, live: &[BoardNo]) {
    script.sql("IF(COUNT(*) = ").number(live.len().max(1) as u64).sql(", 0, NULL) FROM leases");
    if !live.is_empty() {
        script.sql(" JOIN boards FORCE INDEX (PRIMARY) ON boards.`no` IN (");
        for (nth, board) in live.iter().enumerate() {
            script.sql(if nth == 0 { "" } else { ", " }).number(board.0);
        }
        script.sql(")");
    }
    script.sql(" WHERE leases.name = 'writer' AND leases.fence = ").number(token).sql(" LOCK IN SHARE MODE");
}

/// Whether a fault is the rejection by the guard.
pub(super) fn is_rejection(fault: &Fault, statement: usize) -> bool {
    matches!(fault, Fault::Refused { code: fault::NULL, answered, .. } if *answered == statement)
}

pub(super) fn short(holder: &str) -> &[u8] {
    &holder.as_bytes()[..holder.len().min(HOLDER_BYTES_MAX)]
}

pub(super) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_ahead_by_what_the_time_of_the_answer_cannot_explain() {
        let at = |micros| UNIX_EPOCH + Duration::from_micros(micros);
        let between = (at(100), at(300));
        for (database, wanted) in [(100, 0), (200, 0), (300, 0), (40, 60), (350, -50)] {
            assert_eq!(ahead(between, database), wanted, "{database}");
        }
    }
}
