//! Options of a store in a database, and what its database reports of itself.
//!
//! Not here: its address, and what these limits limit.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// The limits of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The maximum number of connections; further callers wait. Default: 8.
    pub pool_max: usize,
    /// How long a new connection may take. Default: 5 s.
    pub connect_timeout: Duration,
    /// How long a message may take, and how long a caller waits for a connection. A database that does not answer within
    /// this time is unavailable. Must be more than `lock_wait`. Default: 20 s.
    pub query_timeout: Duration,
    /// How long a statement waits for rows that another transaction has locked, in whole seconds. Default: 2 s, less than a
    /// silent transaction is kept.
    pub lock_wait: Duration,
    /// Whether an older schema is migrated to the present one. An empty database always is. Default: no.
    pub migrate: bool,
    /// The name of this process if it must be the only writer: the process and its host, for messages. None: others may
    /// write as well. Default: none.
    pub writer: Option<String>,
    /// The name of this process if others with this option may write as well, but no single writer. Default: none.
    pub beside: Option<String>,
    /// Whether this process only reads, and follows the only writer. Then every change is refused. Default: no.
    pub follows: bool,
    /// How long the names of changed records stay beside a committed transaction, for a server that leads after this one. None:
    /// no server follows. Default: none.
    pub marks: Option<Duration>,
    /// The newest generation of a store of this process which has found that the database lost commits. Then an empty database is
    /// not created, and what is kept outside of it counts as of a lost history. So a new generation begins, unless another
    /// server that writes beside has begun one since. Default: none.
    pub anew: Option<u64>,
    /// The folder of the archives of the ledger: all servers of the store must see the same one. Default: none.
    pub archives: Option<PathBuf>,
    /// How long the only writer keeps the lease without a renewal; it renews five times in this time. A longer time delays
    /// the successor of a killed server. With a shorter time, a pause of the network or of the machine stops answers.
    /// Default: 10 s.
    pub lease: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            pool_max: 8,
            connect_timeout: Duration::from_secs(5),
            query_timeout: Duration::from_secs(20),
            lock_wait: Duration::from_secs(2),
            migrate: false,
            writer: None,
            beside: None,
            follows: false,
            marks: None,
            anew: None,
            archives: None,
            lease: Duration::from_secs(10),
        }
    }
}

/// What a database reports of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    /// Its version, in its words.
    pub version: String,
    /// Settings that matter here, by name.
    pub settings: BTreeMap<String, String>,
    /// The approximate size of the tables of the store with their indexes.
    pub tables_bytes: u64,
}
