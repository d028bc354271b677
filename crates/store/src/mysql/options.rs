//! What a store in a database can be told to do differently, and what its database says of itself.
//!
//! Not here: where it is, and what these bounds bound.

use std::collections::BTreeMap;
use std::time::Duration;

/// The bounds of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Connections at most: more callers than that wait. Default: 8.
    pub pool_max: usize,
    /// How long a new connection may take. Default: 5 s.
    pub connect_timeout: Duration,
    /// How long a message may take, and how long a caller waits for a connection. A database that does not answer in
    /// this time is away. More than `lock_wait`. Default: 20 s.
    pub query_timeout: Duration,
    /// How long the database lets a statement wait for rows that another transaction has, in whole seconds. Default:
    /// 2 s, less than a silent transaction is kept.
    pub lock_wait: Duration,
    /// Whether a schema of an older version is brought to the present one. An empty database always is. Default: no.
    pub migrate: bool,
    /// Who this is, where it must be the only one that writes: the process and its place, for messages. None: others may
    /// write as well. Default: none.
    pub writer: Option<String>,
    /// Who this is, where others may write as well that are opened so, but nobody who must be the only one. Default: none.
    pub beside: Option<String>,
    /// Whether a store of this process has found that the database lost commits: then it is not made where it is empty, and what
    /// is kept outside counts as of a history that is gone. Default: no.
    pub anew: bool,
    /// How long the only one stays so without a word; renewed five times in it. Longer: whoever follows one that was killed
    /// waits longer. Shorter: a pause of the network or of the machine stops answers. Default: 10 s.
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
            anew: false,
            lease: Duration::from_secs(10),
        }
    }
}

/// What a database says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    /// Its version, in its words.
    pub version: String,
    /// Settings that matter here, by name.
    pub settings: BTreeMap<String, String>,
    /// About how large the tables of the store are, with their indexes.
    pub tables_bytes: u64,
}
