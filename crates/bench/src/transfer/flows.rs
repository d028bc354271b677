//! R5's flows, statement by statement, through a pool.
//!
//! All are transactions of prepared statements. The baseline flow has deadlocks if two members pay each other. A deadlock is
//! retried; latencies count from the first try and include the wait for a connection.

use super::tables::phone;
use super::traffic::{Pairs, Traffic};
use super::{CALLERS, Ran, Way};
use crate::database::connect;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tally_load::Latencies;
use tokio::sync::Semaphore;

/// Error codes of the database that ask for a retry: a deadlock, and a lock timeout.
const AGAIN: [u16; 2] = [1213, 1205];

const KNOWN: &str = "SELECT group_id FROM requests WHERE member_id = ? AND request_key = ?";
const BY_PHONE: &str = "SELECT id, name FROM members WHERE phone = ?";
const NOTE_REQUEST: &str = "INSERT INTO requests (member_id, request_key, group_id) VALUES (?, ?, ?)";
const CODE: &str = "SELECT id FROM accounts WHERE code = ?";
const CODES: &str = "SELECT id, code FROM accounts WHERE code IN ('BANK_ASSET', 'BANK_PAYABLE')";
const ENTRIES: &str = "INSERT INTO ledger (group_id, account_id, debit, credit, created_at) \
     VALUES (?, ?, ?, 0, NOW(6)), (?, ?, 0, ?, NOW(6))";
const LOCK_ONE: &str = "SELECT id, balance FROM wallets_plain WHERE member_id = ? FOR UPDATE";
const TAKE: &str = "UPDATE wallets_plain SET balance = balance - ?, updated_at = NOW(6) WHERE member_id = ?";
const GIVE: &str = "UPDATE wallets_plain SET balance = balance + ?, updated_at = NOW(6) WHERE member_id = ?";
const SIDE: &str = "INSERT INTO transactions (group_id, member_id, kind, amount, before_balance, after_balance, \
     counterparty, status, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, 1, NOW(6))";
const LOCK_BOTH: &str = "SELECT member_id, balance FROM wallets_unique WHERE member_id IN (?, ?) \
     ORDER BY member_id FOR UPDATE";
const MOVE: &str = "UPDATE wallets_unique SET balance = balance + IF(member_id = ?, -?, ?), updated_at = NOW(6) \
     WHERE member_id IN (?, ?)";
const SIDES: &str = "INSERT INTO transactions (group_id, member_id, kind, amount, before_balance, after_balance, \
     counterparty, status, created_at) VALUES (?, ?, 1, ?, ?, ?, ?, 1, NOW(6)), (?, ?, 2, ?, ?, ?, ?, 1, NOW(6))";

/// Groups of transfers, unique over all runs.
static GROUPS: AtomicU64 = AtomicU64::new(1 << 40);

struct Pool {
    free: Mutex<Vec<Conn>>,
    permits: Semaphore,
    again: AtomicU64,
}

struct Transfer {
    from: u64,
    to: u64,
    amount: i64,
    key: String,
    group: u64,
}

/// Transfers until the time is over.
pub(super) async fn run(
    url: &str,
    (way, traffic, connections): (Way, Traffic, usize),
    members: u64,
    time: Duration,
) -> mysql_async::Result<Ran> {
    let mut free = Vec::with_capacity(connections);
    for _ in 0..connections {
        free.push(connect(url).await?);
    }
    let permits = Semaphore::new(connections);
    let pool = Arc::new(Pool { free: Mutex::new(free), permits, again: AtomicU64::new(0) });
    let began = Instant::now();
    let call =
        |caller| tokio::spawn(call(Arc::clone(&pool), (way, traffic), (members, caller), began + time));
    let callers: Vec<_> = (0..CALLERS).map(call).collect();
    let mut latencies = Latencies::default();
    for caller in callers {
        latencies.extend(caller.await.expect("a caller does not panic")?);
    }
    let seconds = began.elapsed().as_secs_f64();
    let free = std::mem::take(&mut *pool.free.lock().unwrap_or_else(PoisonError::into_inner));
    for conn in free {
        conn.disconnect().await?;
    }
    Ok(Ran { seconds, latencies, again: pool.again.load(Ordering::Relaxed) })
}

async fn call(
    pool: Arc<Pool>,
    (way, traffic): (Way, Traffic),
    (members, caller): (u64, usize),
    until: Instant,
) -> mysql_async::Result<Vec<Duration>> {
    let (mut pairs, mut latencies) = (Pairs::new(traffic, members, caller), Vec::new());
    while Instant::now() < until {
        let (from, to) = pairs.next();
        let group = GROUPS.fetch_add(1, Ordering::Relaxed);
        let transfer = Transfer { from, to, amount: 1, key: format!("{group:032x}"), group };
        let sent_at = Instant::now();
        let permit = pool.permits.acquire().await.expect("it is never closed");
        let conn = pool.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut conn = conn.expect("a permit is a connection");
        loop {
            match one(&mut conn, way, &transfer).await {
                Ok(()) => break,
                Err(Error::Server(error)) if AGAIN.contains(&error.code) => {
                    pool.again.fetch_add(1, Ordering::Relaxed);
                    conn.query_drop("ROLLBACK").await?;
                }
                Err(error) => return Err(error),
            }
        }
        pool.free.lock().unwrap_or_else(PoisonError::into_inner).push(conn);
        drop(permit);
        latencies.push(sent_at.elapsed());
    }
    Ok(latencies)
}

async fn one(conn: &mut Conn, way: Way, transfer: &Transfer) -> mysql_async::Result<()> {
    let Transfer { from, to, key, group, .. } = transfer;
    conn.query_drop("START TRANSACTION").await?;
    let _: Option<u64> = conn.exec_first(KNOWN, (from, key)).await?;
    let to = match way {
        Way::Cached => *to,
        _ => {
            let found: Option<(u64, String)> = conn.exec_first(BY_PHONE, (phone(*to),)).await?;
            found.expect("every member has a number").0
        }
    };
    let account = if way == Way::Baseline {
        baseline(conn, transfer, to).await?
    } else {
        tuned(conn, way, transfer, to).await?
    };
    let amount = transfer.amount;
    conn.exec_drop(ENTRIES, (group, account, amount, group, account, amount)).await?;
    conn.exec_drop(NOTE_REQUEST, (from, key, group)).await?;
    conn.query_drop("COMMIT").await
}

/// A statement for each wallet, each update, each side and each code, and for the account of the entries.
async fn baseline(conn: &mut Conn, transfer: &Transfer, to: u64) -> mysql_async::Result<u32> {
    let Transfer { from, amount, group, .. } = transfer;
    let own: Option<(u64, i64)> = conn.exec_first(LOCK_ONE, (from,)).await?;
    let other: Option<(u64, i64)> = conn.exec_first(LOCK_ONE, (to,)).await?;
    let ((_, own), (_, other)) = own.zip(other).expect("both have wallets");
    conn.exec_drop(TAKE, (amount, from)).await?;
    conn.exec_drop(GIVE, (amount, to)).await?;
    conn.exec_drop(SIDE, (group, from, 1, amount, own, own - amount, to)).await?;
    conn.exec_drop(SIDE, (group, to, 2, amount, other, other + amount, from)).await?;
    let _: Option<u32> = conn.exec_first(CODE, ("BANK_ASSET",)).await?;
    let payable: Option<u32> = conn.exec_first(CODE, ("BANK_PAYABLE",)).await?;
    Ok(payable.expect("the code is there"))
}

/// One statement for both wallets, both updates, both sides and both codes; a cache omits the last.
async fn tuned(conn: &mut Conn, way: Way, transfer: &Transfer, to: u64) -> mysql_async::Result<u32> {
    let Transfer { from, amount, group, .. } = transfer;
    let rows: Vec<(u64, i64)> = conn.exec(LOCK_BOTH, (from, to)).await?;
    let of = |member: u64| rows.iter().find(|row| row.0 == member).map(|row| row.1);
    let (own, other) = of(*from).zip(of(to)).expect("both have wallets");
    conn.exec_drop(MOVE, (from, amount, amount, from, to)).await?;
    let first = (group, from, amount, own, own - amount, to);
    let second = (group, to, amount, other, other + amount, from);
    let both: Vec<mysql_async::Value> = [
        first.0.into(),
        first.1.into(),
        first.2.into(),
        first.3.into(),
        first.4.into(),
        first.5.into(),
        second.0.into(),
        second.1.into(),
        second.2.into(),
        second.3.into(),
        second.4.into(),
        second.5.into(),
    ]
    .into();
    conn.exec_drop(SIDES, both).await?;
    if way == Way::Cached {
        return Ok(2);
    }
    let codes: Vec<(u32, String)> = conn.query(CODES).await?;
    Ok(codes.into_iter().find(|code| code.1 == "BANK_PAYABLE").expect("the code is there").0)
}
