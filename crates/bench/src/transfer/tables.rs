//! The tables of R5's flows: members, wallets, a transaction for each side, ledger rows, codes of accounts.
//!
//! The wallets exist twice, with a plain index on their member and with a unique one; the rest is shared. The database
//! itself fills them. Not here: the statements of the flows.

use super::{Amount, Proof};
use crate::database::connect;
use mysql_async::prelude::Queryable;

/// The opening balance of every member.
pub(super) const OPENING: i64 = 1_000_000_000;

const TABLES: [&str; 8] = [
    "CREATE TABLE members (id BIGINT PRIMARY KEY, phone VARCHAR(20) NOT NULL UNIQUE, name VARCHAR(64) NOT NULL)",
    "CREATE TABLE wallets_plain (id BIGINT PRIMARY KEY, member_id BIGINT NOT NULL, balance BIGINT NOT NULL, \
     updated_at DATETIME(6) NOT NULL, KEY (member_id))",
    "CREATE TABLE wallets_unique (id BIGINT PRIMARY KEY, member_id BIGINT NOT NULL, balance BIGINT NOT NULL, \
     updated_at DATETIME(6) NOT NULL, UNIQUE KEY (member_id))",
    "CREATE TABLE transactions (id BIGINT PRIMARY KEY AUTO_INCREMENT, group_id BIGINT UNSIGNED NOT NULL, \
     member_id BIGINT NOT NULL, kind TINYINT NOT NULL, amount BIGINT NOT NULL, before_balance BIGINT NOT NULL, \
     after_balance BIGINT NOT NULL, counterparty BIGINT NOT NULL, status TINYINT NOT NULL, \
     created_at DATETIME(6) NOT NULL, KEY (member_id, id))",
    "CREATE TABLE ledger (id BIGINT PRIMARY KEY AUTO_INCREMENT, group_id BIGINT UNSIGNED NOT NULL, \
     account_id INT NOT NULL, debit BIGINT NOT NULL, credit BIGINT NOT NULL, created_at DATETIME(6) NOT NULL)",
    "CREATE TABLE accounts (id INT PRIMARY KEY, code VARCHAR(32) NOT NULL UNIQUE)",
    "CREATE TABLE requests (member_id BIGINT NOT NULL, request_key VARCHAR(64) NOT NULL, \
     group_id BIGINT UNSIGNED NOT NULL, PRIMARY KEY (member_id, request_key))",
    "CREATE TABLE numbers (n BIGINT PRIMARY KEY)",
];

/// The phone number of a member.
pub(super) fn phone(member: u64) -> String {
    format!("010{member:08}")
}

/// Makes and fills them.
pub(super) async fn fill(url: &str, amount: Amount) -> mysql_async::Result<()> {
    let mut conn = connect(url).await?;
    for table in TABLES {
        conn.query_drop(format!("{table} ENGINE = InnoDB")).await?;
    }
    conn.query_drop("INSERT INTO accounts VALUES (1, 'BANK_ASSET'), (2, 'BANK_PAYABLE')").await?;
    conn.query_drop("INSERT INTO numbers VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)").await?;
    let Amount { members, transactions } = amount;
    let mut count = 10;
    while count < members.max(transactions) {
        // Doubles the rows each time.
        let more = format!("INSERT INTO numbers SELECT n + {count} FROM numbers");
        conn.query_drop(more).await?;
        count *= 2;
    }
    for (table, columns, rows) in [
        ("members", "n, CONCAT('010', LPAD(n, 8, '0')), CONCAT('Member ', n)".to_owned(), members),
        ("wallets_plain", format!("n, n, {OPENING}, NOW(6)"), members),
        ("wallets_unique", format!("n, n, {OPENING}, NOW(6)"), members),
    ] {
        let fill = format!("INSERT INTO {table} SELECT {columns} FROM numbers WHERE n < {rows}");
        conn.query_drop(fill).await?;
    }
    for (kind, from, to) in [(1, "n * 7919", "n * 104729 + 1"), (2, "n * 104729 + 1", "n * 7919")] {
        let history = format!(
            "INSERT INTO transactions (group_id, member_id, kind, amount, before_balance, after_balance, counterparty, \
             status, created_at) SELECT n, ({from}) % {members}, {kind}, 1, {OPENING}, {OPENING}, ({to}) % {members}, 1, \
             NOW(6) FROM numbers WHERE n < {transactions}"
        );
        conn.query_drop(history).await?;
        let (debit, credit) = if kind == 1 { (1, 0) } else { (0, 1) };
        let rows = format!(
            "INSERT INTO ledger (group_id, account_id, debit, credit, created_at) SELECT n, 2, {debit}, {credit}, \
             NOW(6) FROM numbers WHERE n < {transactions}"
        );
        conn.query_drop(rows).await?;
    }
    conn.query_drop("ANALYZE TABLE members, wallets_plain, wallets_unique, transactions, ledger").await?;
    conn.disconnect().await
}

/// Sums the balances and counts the transfers.
pub(super) async fn proof(url: &str) -> mysql_async::Result<Proof> {
    let mut conn = connect(url).await?;
    let mut balances = [0; 2];
    for (sum, table) in balances.iter_mut().zip(["wallets_plain", "wallets_unique"]) {
        let balance: Option<i64> =
            conn.query_first(format!("SELECT CAST(SUM(balance) AS SIGNED) FROM {table}")).await?;
        *sum = balance.unwrap_or(0).into();
    }
    let transactions: Option<u64> = conn.query_first("SELECT COUNT(*) FROM transactions").await?;
    let sums = "SELECT CAST(SUM(debit) AS SIGNED), CAST(SUM(credit) AS SIGNED) FROM ledger";
    let (debits, credits): (i64, i64) = conn.query_first(sums).await?.unwrap_or_default();
    conn.disconnect().await?;
    Ok(Proof { balances, transactions: transactions.unwrap_or(0), entries: (debits.into(), credits.into()) })
}
