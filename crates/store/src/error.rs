//! The faults of a store, by what the caller must do.

use crate::damage::CorruptRow;
use crate::plan::BatchId;

/// A fault of a store. Rejections by a rule are never here, because they are normal results.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum StoreError {
    /// Another transaction conflicted (deadlock, lock wait, busy): nothing was done, the same may succeed again.
    #[error("in conflict with another transaction: {0}")]
    Conflict(String),
    /// A row cannot be stored on any attempt: nothing was done; without that row the others can succeed.
    #[error("a row was refused by the store: {0}")]
    Row(String),
    /// The store cannot be reached or cannot write now (I/O error, disk full, read-only): nothing was done.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// The database cannot be used before a person changes something: its user, its password, its name, its certificate or its
    /// version. Nothing was done.
    #[error("the store is unavailable: {0}")]
    NoAccess(String),
    /// One of several shards is unavailable: nothing was done. Requests for the other shards can succeed.
    #[error("{shard} of the store is unavailable: {why}")]
    ShardUnavailable {
        /// The shard, counted from 1.
        shard: String,
        /// Whether the transaction concerns only this shard.
        alone: bool,
        /// What happened.
        why: String,
    },
    /// The connection was lost at COMMIT: it is unknown whether the transaction was done.
    #[error("the connection was lost at commit: {why}")]
    InDoubt {
        /// The id to [resolve](crate::Transactions::resolve).
        batch: BatchId,
        /// What happened.
        why: String,
    },
    /// One of several shards has committed, and another has not: a retry finishes the rest.
    #[error("a part of it is done, and the rest is not: {0}")]
    Partly(String),
    /// A row that was read is corrupt: nothing was done; requests that do not need that row can succeed.
    #[error("damaged: {0}")]
    CorruptRow(Box<CorruptRow>),
    /// More than one row is corrupt: a file, a page of it, a table.
    #[error("the store is damaged: {0}")]
    Corrupt(String),
    /// A file of the archived ledger, or of a checkpoint, cannot be read, or is not what was written: nothing was done.
    #[error("the file `{file}` cannot be used: {what}")]
    Archive {
        /// The name of the file.
        file: String,
        /// Why.
        what: String,
    },
    /// Another process is the writer of this store: nothing was done.
    #[error("another process has the store open: {0}")]
    Locked(String),
    /// The clock of this machine is too far from that of the store: nothing was done.
    #[error("{0}")]
    Skewed(String),
    /// Locks and leases do not hold with the replication of the database: nothing was done.
    #[error("{0}")]
    Replication(String),
    /// The store was written by a later version; it was not touched.
    #[error(
        "the store has schema version {found}, this tally knows up to {known}; use a newer tally (nothing was changed)"
    )]
    TooNew {
        /// The version found.
        found: u32,
        /// The newest version known here.
        known: u32,
    },
    /// The store was written by an earlier version and is migrated only on request; it was not touched.
    #[error(
        "the store has schema version {found}, this tally needs {known}; run `tally migrate` (nothing was changed)"
    )]
    TooOld {
        /// The version found.
        found: u32,
        /// The version needed.
        known: u32,
    },
    /// These databases are not the shards of the store, or not in this order: nothing was touched.
    #[error("{0}")]
    Layout(String),
    /// The file is a database of another program; it was not touched.
    #[error("{0} is not a tally store (nothing was changed)")]
    NotOurs(String),
}
