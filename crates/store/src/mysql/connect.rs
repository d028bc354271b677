//! Opens a connection: address, kind of server, and settings of the session.
//!
//! Every setting that changes the meaning of a statement is set here, independent of the server's defaults. Not here:
//! checking that the database is ours (`migrate`).

mod address;

pub(super) use address::Address;

use super::Options;
use super::fault::Fault;
use super::link::Link;
use super::row::{Fields, ResultSets};
use super::stats::Stats;
use super::text::Script;
use crate::StoreError;
use mysql_async::Conn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The longest message, even if the server would take a longer one: both sides hold it in memory.
const MESSAGE_BYTES_MAX: u64 = 16 << 20;

/// The bytes of a message beside its text.
const MESSAGE_HEAD: u64 = 1024;

/// How long the server keeps a silent connection: longer than the pool keeps an idle one.
const SERVER_PATIENCE: Duration = Duration::from_secs(120);

/// How long the server keeps a transaction of a silent client. A frozen or disconnected process with locked rows blocks
/// others for this time. MariaDB ends such a transaction by itself; on MySQL a waiting server ends it (`pool`).
pub(super) const IDLE_TRANSACTION: Duration = Duration::from_secs(3);

/// How long the server waits for the rest of a message. A client that was disconnected within a message holds its row locks no
/// longer than one that was disconnected between two.
const READ_PATIENCE: Duration = IDLE_TRANSACTION;

/// How long the server waits for a client that takes nothing of an answer.
const WRITE_PATIENCE: Duration = Duration::from_secs(5);

/// How long the end of a short transaction may take, besides its wait for row locks.
const END_PATIENCE: Duration = Duration::from_secs(1);

/// The SQL dialect of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flavour {
    /// MySQL or a compatible server. It names the inserted row since 8.0.19, and `VALUES()` is deprecated.
    MySql { row_name: bool },
    /// MariaDB.
    MariaDb,
}

impl Flavour {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::MySql { .. } => "mysql",
            Self::MariaDb => "mariadb",
        }
    }

    /// Ends an insert: these columns of an existing row get the new values.
    pub(super) fn replace(self, script: &mut Script, columns: &[&'static str]) {
        let named = self == Self::MySql { row_name: true };
        script.sql(if named { " AS new" } else { "" });
        for (at, column) in columns.iter().enumerate() {
            script.sql(if at == 0 { " ON DUPLICATE KEY UPDATE " } else { ", " }).sql(column).sql(" = ");
            self.put_new(script, column);
        }
    }

    /// Writes the new value of a column, after [`Self::replace`].
    pub(super) fn put_new(self, script: &mut Script, column: &'static str) {
        match self {
            Self::MySql { row_name: true } => script.sql("new.").sql(column),
            _ => script.sql("VALUES(").sql(column).sql(")"),
        };
    }
}

/// The properties of the server, as it reported them when the connection was opened.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) flavour: Flavour,
    pub(super) message_bytes: usize,
}

/// Connects and prepares the session.
pub(super) fn connect(address: &Address, options: &Options, stats: &Arc<Stats>) -> Result<Link, StoreError> {
    let unavailable = |what: String| StoreError::Unavailable(format!("{}: {what}", address.shown));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| unavailable(format!("make a runtime: {error}")))?;
    let mut name = [0; 16];
    getrandom::fill(&mut name)
        .map_err(|error| unavailable(format!("ask the system for random bytes: {error}")))?;
    let connecting = Conn::new(address.opts.clone());
    let conn = runtime
        .block_on(async { tokio::time::timeout(options.connect_timeout, connecting).await })
        .map_err(|_| unavailable(format!("no connection within {:?}", options.connect_timeout)))?
        .map_err(|error| address.explain(&error))?;
    stats.connects.fetch_add(1, Ordering::Relaxed);
    stats.open.fetch_add(1, Ordering::Relaxed);
    let unknown = Server { flavour: Flavour::MariaDb, message_bytes: 4 << 10 };
    let mut link = Link::new(conn, runtime, (unknown, name), options.query_timeout, Arc::clone(stats));
    link.patience = options.lock_wait + END_PATIENCE;
    let answer = link.send(&settings(options)).map_err(|fault| match fault {
        // An error of the connection, not of a row, whatever its code says.
        Fault::Refused { text, .. } => unavailable(format!("prepare the session: {text}")),
        fault => unavailable(StoreError::from(fault).to_string()),
    })?;
    link.server = server(answer).map_err(|error| match error {
        StoreError::NoAccess(what) => StoreError::NoAccess(format!("{}: {what}", address.shown)),
        error => unavailable(error.to_string()),
    })?;
    Ok(link)
}

fn settings(options: &Options) -> Script {
    let mut script = Script::default();
    script.statement("SET NAMES utf8mb4");
    // The database locks existing rows as they are read, but no gaps: two transactions that lock one gap and then fill it
    // always deadlock. Missing rows are guarded when something is written, see `run`.
    script.statement("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
    script
        .sql("SET SESSION autocommit = 1, time_zone = '+00:00', ")
        .sql("sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', sql_select_limit = DEFAULT, ")
        // A list of whole keys needs no index dive to estimate its rows.
        .sql("eq_range_index_dive_limit = 1, wait_timeout = ")
        .number(SERVER_PATIENCE.as_secs())
        .sql(", net_read_timeout = ")
        .number(READ_PATIENCE.as_secs())
        .sql(", net_write_timeout = ")
        .number(WRITE_PATIENCE.as_secs())
        .sql(", innodb_lock_wait_timeout = ")
        .number(options.lock_wait.as_secs().max(1))
        // A comment to every server but MariaDB.
        .sql(" /*M!100301 , idle_transaction_timeout = ")
        .number(IDLE_TRANSACTION.as_secs())
        .sql(" */")
        .end();
    script.statement("SELECT VERSION(), @@max_allowed_packet, CONNECTION_ID()");
    script
}

fn server(mut results: ResultSets) -> Result<Server, StoreError> {
    results.skip(3);
    let rows = results.rows();
    let row =
        rows.first().ok_or_else(|| StoreError::Unavailable("the server says nothing of itself".into()))?;
    let mut row = Fields::new("the server's version", row);
    let (version, packet) = (row.text()?, row.number()?);
    let message_bytes = packet.min(MESSAGE_BYTES_MAX).saturating_sub(MESSAGE_HEAD);
    Ok(Server {
        flavour: flavour(version)?,
        message_bytes: usize::try_from(message_bytes).unwrap_or(usize::MAX),
    })
}

fn flavour(version: &str) -> Result<Flavour, StoreError> {
    // Behind proxies for old replicas, the version of MariaDB begins with `5.5.5-`.
    let mariadb = version.contains("MariaDB");
    let plain = if mariadb { version.trim_start_matches("5.5.5-") } else { version };
    let mut numbers =
        plain.split(|letter: char| !letter.is_ascii_digit()).map_while(|window| window.parse().ok());
    let mut next = || numbers.next().unwrap_or(0_u32);
    let found = (next(), next(), next());
    let (flavour, oldest) = if mariadb {
        (Flavour::MariaDb, (10, 6, 0))
    } else {
        let row_name = found >= (8, 0, 20) && !version.contains("TiDB");
        (Flavour::MySql { row_name }, (8, 0, 0))
    };
    if found < oldest {
        let (name, (major, minor, _)) = (flavour.name(), oldest);
        return Err(StoreError::NoAccess(format!(
            "{name} {version} is too old; {major}.{minor} is the oldest known"
        )));
    }
    Ok(flavour)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_told_apart() {
        let mysql = |row_name| Ok(Flavour::MySql { row_name });
        assert_eq!(flavour("10.11.19-MariaDB-0+deb12u1"), Ok(Flavour::MariaDb));
        assert_eq!(flavour("5.5.5-10.11.6-MariaDB-log"), Ok(Flavour::MariaDb));
        assert_eq!(flavour("9.7.4-2"), mysql(true));
        assert_eq!(flavour("8.0.19"), mysql(false));
        assert_eq!(flavour("8.0.11-TiDB-v8.5.0"), mysql(false));
        for old in ["5.7.44", "10.3.39-MariaDB", "nonsense"] {
            assert!(flavour(old).is_err(), "{old}");
        }
    }
}
