//! The cells of the matrix: the place of rankings, the number of databases, and the fault.
//!
//! A cell has a name, `redis-2-frozen`. Not here: how a fault is made (`faults.rs`).

use std::fmt::{self, Display};
use std::time::Duration;

/// Where ranks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ranks {
    /// In the memory of the one server that writes.
    Memory,
    /// In a Redis that all servers share.
    Redis,
    /// In a Redis Cluster.
    Cluster,
}

/// The fault, and its duration: [`super::run::LASTS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The first server is stopped as it is.
    Frozen,
    /// Nothing passes between the first server and the databases.
    DatabasePartition,
    /// Nothing passes between the first server and the Redis.
    RedisPartition,
    /// The last database is killed, and comes back with all that it has committed.
    DatabaseKilled,
    /// The last database is killed, and comes back as it was before the callers began.
    DatabaseBack,
    /// The Redis loses all its keys.
    RedisEmptied,
    /// The Redis, or one node of the cluster, is killed and comes back empty.
    NodeLost,
    /// The clock of the first server is this many hours wrong.
    Clock(i64),
    /// The databases commit, and the first server does not get the answer.
    CommitUnanswered,
    /// The second messages of transactions of the first server stay in the network.
    MessageHeld,
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) ranks: Ranks,
    pub(crate) databases: usize,
    pub(crate) fault: Fault,
}

const FAULTS: [Fault; 13] = [
    Fault::Frozen,
    Fault::DatabasePartition,
    Fault::RedisPartition,
    Fault::DatabaseKilled,
    Fault::DatabaseBack,
    Fault::RedisEmptied,
    Fault::NodeLost,
    Fault::Clock(1),
    Fault::Clock(-1),
    Fault::Clock(25),
    Fault::Clock(-25),
    Fault::CommitUnanswered,
    Fault::MessageHeld,
];

/// The cells of the test command: each kind of ranks, and the faults that stopped servers before.
const SHORT: [&str; 6] = [
    "memory-1-frozen",
    "redis-1-frozen",
    "redis-1-message-held",
    "redis-1-clock+25h",
    "redis-2-message-held",
    "cluster-1-commit-unanswered",
];

impl Fault {
    fn needs_redis(self) -> bool {
        matches!(self, Self::RedisPartition | Self::RedisEmptied | Self::NodeLost)
    }
}

impl Cell {
    /// The number of servers from the beginning.
    pub(crate) fn servers(self) -> usize {
        if self.ranks == Ranks::Memory { 1 } else { 2 }
    }

    /// Whether another server takes over from the only one, which does not answer.
    pub(crate) fn has_standby(self) -> bool {
        self.servers() == 1 && matches!(self.fault, Fault::Frozen | Fault::DatabasePartition)
    }

    /// How long its callers wait for a reply. Where each commit loses its answer it takes a few tenths of a second until the
    /// connection closes, and a request may wait for two commits.
    pub(crate) fn patience(self) -> Duration {
        Duration::from_secs(if self.fault == Fault::CommitUnanswered { 3 } else { 1 })
    }

    /// Whether the database of every row is up all the time.
    pub(crate) fn database_is_there(self) -> bool {
        // Rows of the unrelated board are on the first one.
        self.databases > 1 || !matches!(self.fault, Fault::DatabaseKilled | Fault::DatabaseBack)
    }
}

impl Display for Ranks {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Memory => "memory",
            Self::Redis => "redis",
            Self::Cluster => "cluster",
        })
    }
}

impl Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Frozen => "frozen",
            Self::DatabasePartition => "database-partition",
            Self::RedisPartition => "redis-partition",
            Self::DatabaseKilled => "database-killed",
            Self::DatabaseBack => "database-back",
            Self::RedisEmptied => "redis-emptied",
            Self::NodeLost => "node-lost",
            Self::Clock(hours) => return write!(out, "clock{hours:+}h"),
            Self::CommitUnanswered => "commit-unanswered",
            Self::MessageHeld => "message-held",
        };
        out.write_str(name)
    }
}

impl Display for Cell {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}-{}", self.ranks, self.databases, self.fault)
    }
}

/// Every cell there is.
pub(crate) fn all() -> Vec<Cell> {
    let mut cells = Vec::new();
    for ranks in [Ranks::Memory, Ranks::Redis, Ranks::Cluster] {
        for databases in [1, 2] {
            let has = |fault: &&Fault| ranks != Ranks::Memory || !fault.needs_redis();
            cells.extend(FAULTS.iter().filter(has).map(|fault| Cell { ranks, databases, fault: *fault }));
        }
    }
    cells
}

/// The cells of the test command.
pub(crate) fn short() -> Vec<Cell> {
    all().into_iter().filter(|cell| SHORT.contains(&&*cell.to_string())).collect()
}

/// The cells that `--cell` means: the one of this name, or those whose names contain it. `all` means every cell.
pub(crate) fn named(name: &str) -> Vec<Cell> {
    let (exact, others): (Vec<Cell>, Vec<Cell>) =
        all().into_iter().partition(|cell| cell.to_string() == name);
    let wanted = |cell: &Cell| name == "all" || cell.to_string().contains(name);
    if exact.is_empty() { others.into_iter().filter(wanted).collect() } else { exact }
}

#[test]
fn cells_are_found_by_name() {
    assert_eq!(all().len(), 72);
    assert_eq!(short().len(), SHORT.len());
    let one = named("memory-1-frozen");
    assert_eq!(one, [Cell { ranks: Ranks::Memory, databases: 1, fault: Fault::Frozen }]);
    assert_eq!(named("clock+25h").len(), 6);
    assert_eq!(named("no such cell"), []);
}
