//! The tables that a copy of a store carries over, with the columns that both backends have.
//!
//! The columns have the same meaning and the same bytes in both (`codec`), so rows are copied as they are, also damaged ones.
//! What differs is said here: other names, and columns that one backend derives. Not carried over: leases, lists of servers,
//! markers of commits, revisions, lifted bans and tombstones of scores. They are about servers that run, and none does.
//!
//! A test compares this list with the schema. Not here: statements (`sqlite/copying`, `mysql/copying`).

use super::values::CopiedValue;
use ColumnKind::{Bytes as B, Digits as D, Number as N, Text as T};

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    /// A number of 64 bits with a sign.
    Number,
    /// A larger number, without a sign.
    Digits,
    /// Text in UTF-8.
    Text,
    Bytes,
}

/// A column that one backend derives: its name, and its value.
pub(crate) type Derived = (&'static str, fn(&[CopiedValue]) -> CopiedValue);

/// A table that is copied.
#[derive(Debug)]
pub(crate) struct CopiedTable {
    /// Its name in messages, and in SQLite.
    pub(crate) name: &'static str,
    /// Columns that both backends have, those of the key first.
    pub(crate) columns: &'static [(&'static str, ColumnKind)],
    /// The number of columns of the key.
    pub(crate) keys: usize,
    /// The number of rows of a batch.
    pub(crate) rows: usize,
    /// The columns of the currency and of an amount.
    pub(crate) money: Option<(usize, usize)>,
    /// What SQLite reads, if it is not the table.
    pub(crate) sqlite_from: Option<&'static str>,
    /// How SQLite writes a row, if it is not a row of the table.
    pub(crate) sqlite_write: Option<&'static str>,
    /// Its name in MySQL.
    pub(crate) mysql_name: &'static str,
    /// What MySQL reads, if it is not the table.
    pub(crate) mysql_from: Option<&'static str>,
    /// The condition of the rows that MySQL reads.
    pub(crate) mysql_filter: Option<&'static str>,
    /// A column that only MySQL has.
    pub(crate) mysql_derived: Option<Derived>,
}

/// Rows of a batch, and of a batch of rows that may be long.
const ROWS: usize = 2_000;
const LONG_ROWS: usize = 100;

const fn table(
    name: &'static str,
    keys: usize,
    columns: &'static [(&'static str, ColumnKind)],
) -> CopiedTable {
    CopiedTable {
        name,
        columns,
        keys,
        rows: ROWS,
        money: None,
        sqlite_from: None,
        sqlite_write: None,
        mysql_name: name,
        mysql_from: None,
        mysql_filter: None,
        mysql_derived: None,
    }
}

/// A table whose rows may be long.
const fn long(
    name: &'static str,
    keys: usize,
    columns: &'static [(&'static str, ColumnKind)],
) -> CopiedTable {
    CopiedTable { rows: LONG_ROWS, ..table(name, keys, columns) }
}

/// A table with amounts of money.
const fn money(
    name: &'static str,
    keys: usize,
    columns: &'static [(&'static str, ColumnKind)],
    money: (usize, usize),
) -> CopiedTable {
    CopiedTable { money: Some(money), ..table(name, keys, columns) }
}

/// Every table, in the order in which they are copied. A change of the order needs another `VERSION` in `progress`.
pub(crate) static TABLES: &[CopiedTable] = &[
    table(META, 1, &[("name", T), ("value", B)]),
    table("boards", 1, BOARDS),
    table("periods", 2, PERIODS),
    CopiedTable {
        // A column of `periods` in SQLite.
        sqlite_from: Some("(SELECT board, rule, prizes AS body FROM periods WHERE prizes IS NOT NULL)"),
        sqlite_write: Some("UPDATE periods SET prizes = ?3 WHERE board = ?1 AND rule = ?2"),
        ..long("period_prizes", 2, &[("board", N), ("rule", N), ("body", B)])
    },
    table("deleted_boards", 1, &[("`no`", N)]),
    CopiedTable { mysql_name: "api_keys", ..table("keys", 1, KEYS) },
    long("profiles", 1, &[("player", T), ("name", T), ("avatar_url", T), ("metadata", T)]),
    table("bans", 2, &[("board", N), ("player", T)]),
    table("imports", 2, IMPORTS),
    table("requests", 2, &[("scope", T), ("`key`", T), ("fingerprint", B), ("`at`", N), ("outcome", B)]),
    table("parts", 2, PARTS),
    long("blocks", 4, BLOCKS),
    table("deleted_parts", 3, &[("board", N), ("part", N), ("version", N)]),
    CopiedTable {
        // Versions only grow, and are those of a new store.
        mysql_filter: Some("gone = 0"),
        mysql_derived: Some(("version", |_| CopiedValue::Number(1))),
        ..table("scores", 3, SCORES)
    },
    table("members", 1, MEMBERS),
    table("handles", 2, &[("kind", N), ("`text`", T), ("member", B)]),
    money("wallets", 2, WALLETS, (1, 2)),
    CopiedTable {
        // A total is the sum of its slots.
        mysql_from: Some(
            "(SELECT account, currency, SUM(debits) AS debits, SUM(credits) AS credits FROM totals \
             GROUP BY account, currency) AS sums",
        ),
        mysql_derived: Some(("slot", |_| CopiedValue::Number(0))),
        ..money("totals", 2, &[("account", N), ("currency", T), ("debits", D), ("credits", D)], (1, 2))
    },
    money("transfers", 1, TRANSFERS, (2, 3)),
    money("entries", 3, ENTRIES, (1, 5)),
    CopiedTable { mysql_derived: Some(("due", due_of_hold)), ..money("holds", 1, HOLDS, (2, 3)) },
    table("reversals", 1, &[("id", B), ("body", B)]),
    table("minted", 2, &[("`key`", B), ("currency", T), ("`day`", N), ("units", N)]),
    table("archives", 1, &[("month", N), ("body", B)]),
    long("contests", 1, &[("id", T), ("`no`", B), ("state", T), ("due", N), ("body", B)]),
    table("contest_applications", 2, APPLICATIONS),
    table("contest_members", 2, CONTEST_MEMBERS),
    money("contest_prizes", 2, PRIZES, (6, 7)),
    long("contest_series", 1, &[("id", T), ("due", N), ("body", B)]),
    table("period_payments", 2, &[("board", N), ("part", N), ("open", N), ("body", B)]),
    table("events", 2, &[("topic", B), ("number", N), ("`at`", N), ("body", B)]),
    table("event_topics", 1, &[("topic", B), ("last", N)]),
    table("webhooks", 2, &[("topic", B), ("id", B), ("body", B)]),
    table("audit", 1, &[("id", B), ("body", B)]),
];

/// The table of small values. Some of them are not carried over, see `is_carried`.
pub(crate) const META: &str = "meta";

const BOARDS: &[(&str, ColumnKind)] = &[
    ("`no`", N),
    ("id", T),
    ("`order`", T),
    ("`update`", T),
    ("ranking", T),
    ("ties", T),
    ("score", T),
    ("subscore", T),
    ("all_time", N),
    ("rules_given", N),
    ("implicit", N),
    ("created_at", N),
];

const PERIODS: &[(&str, ColumnKind)] = &[
    ("board", N),
    ("position", N),
    ("rule", N),
    ("name", T),
    ("`schedule`", T),
    ("time_zone", T),
    ("keep", N),
    ("grace_s", N),
];

const KEYS: &[(&str, ColumnKind)] = &[
    ("id", T),
    ("`no`", N),
    ("hash", B),
    ("role", T),
    ("granted", T),
    ("name", T),
    ("created_at", N),
    ("revoked_at", N),
];

const IMPORTS: &[(&str, ColumnKind)] =
    &[("board", N), ("digest", B), ("`lines`", N), ("taken", N), ("refused", N), ("finished", N)];

const PARTS: &[(&str, ColumnKind)] = &[
    ("board", N),
    ("part", N),
    ("rule", N),
    ("`starts`", N),
    ("`ends`", N),
    ("closed", N),
    ("version", N),
    ("stale", N),
    ("total", N),
];

const BLOCKS: &[(&str, ColumnKind)] =
    &[("board", N), ("part", N), ("version", N), ("block", N), ("distinct_better", N), ("entries", B)];

const SCORES: &[(&str, ColumnKind)] =
    &[("board", N), ("part", N), ("player", T), ("score", N), ("subscore", N), ("`at`", N)];

const MEMBERS: &[(&str, ColumnKind)] = &[
    ("id", B),
    ("login", T),
    ("phone", T),
    ("player", T),
    ("name", T),
    ("password", T),
    ("pin", B),
    ("pin_digits", N),
    ("pin_wrong", N),
    ("pin_locked_until", N),
    ("tokens_from", N),
    ("closed_at", N),
];

const WALLETS: &[(&str, ColumnKind)] = &[
    ("member", B),
    ("currency", T),
    ("balance", N),
    ("held", N),
    ("sequence", N),
    ("closed", N),
    ("spent_day", N),
    ("spent", N),
    ("credits", B),
    ("credit_due", N),
];

const TRANSFERS: &[(&str, ColumnKind)] = &[
    ("id", B),
    ("kind", N),
    ("currency", T),
    ("amount", N),
    ("debit_member", B),
    ("debit_sequence", N),
    ("credit_member", B),
    ("credit_sequence", N),
    ("actor", B),
    ("reason", T),
    ("metadata", T),
];

const ENTRIES: &[(&str, ColumnKind)] = &[
    ("member", B),
    ("currency", T),
    ("sequence", N),
    ("transfer", B),
    ("kind", N),
    ("amount", N),
    ("`after`", N),
    ("counterparty", B),
    ("reference", T),
];

const HOLDS: &[(&str, ColumnKind)] = &[
    ("id", B),
    ("member", B),
    ("currency", T),
    ("amount", N),
    ("expires_at", N),
    ("state", N),
    ("captured", N),
    ("captured_to", B),
    ("transfer", B),
    ("ended_at", N),
    ("actor", B),
    ("reason", T),
    ("ended_by", B),
    ("end_reason", T),
    ("metadata", T),
];

/// When an open hold expires, which MySQL has as a column with an index.
fn due_of_hold(row: &[CopiedValue]) -> CopiedValue {
    let [expires_at, state] = [4, 5].map(|column| &row[column]);
    if *state == CopiedValue::Number(0) { expires_at.clone() } else { CopiedValue::Null }
}

const APPLICATIONS: &[(&str, ColumnKind)] = &[
    ("contest", B),
    ("player", T),
    ("status", T),
    ("place", N),
    ("applied_at", N),
    ("member", B),
    ("hold", B),
];

const CONTEST_MEMBERS: &[(&str, ColumnKind)] =
    &[("contest", B), ("player", T), ("place", N), ("division", N), ("member", B)];

const PRIZES: &[(&str, ColumnKind)] = &[
    ("contest", B),
    ("`no`", N),
    ("player", T),
    ("member", B),
    ("division", N),
    ("`rank`", N),
    ("currency", T),
    ("amount", N),
    ("transfer", B),
    ("unpaid", T),
];
