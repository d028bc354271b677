//! What can go wrong in a store, by what the caller must do about it.

use crate::damage::CorruptRow;
use crate::plan::BatchId;

/// A fault of a store. Rejections of a rule are never here: a rule's answer is not a fault.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum StoreError {
    /// Another transaction was in the way (deadlock, lock wait, busy): nothing was done, the same may succeed again.
    #[error("in conflict with another transaction: {0}")]
    Conflict(String),
    /// A row cannot be stored whatever is tried: nothing was done; without that row the others can go through.
    #[error("a row was refused by the store: {0}")]
    Row(String),
    /// The store cannot be reached or cannot write now (I/O error, disk full, read-only): nothing was done.
    #[error("the store is away: {0}")]
    Unavailable(String),
    /// One of several databases is away: nothing was done. What concerns the others alone can go through.
    #[error("{shard} of the store is away: {why}")]
    ShardUnavailable {
        /// Which, as people count.
        shard: String,
        /// Whether it is the only one that the transaction concerns.
        alone: bool,
        /// What happened.
        why: String,
    },
    /// The connection was lost while committing: it is unknown whether the transaction was done.
    #[error("the connection was lost at commit: {why}")]
    InDoubt {
        /// What to ask [`crate::Store::resolve`] about.
        batch: BatchId,
        /// What happened.
        why: String,
    },
    /// One of several databases has done its part, and another has not: the same again finishes the rest.
    #[error("a part of it is done, and the rest is not: {0}")]
    Partly(String),
    /// A row that was read cannot be what we wrote: nothing was done; what does not need that row can go through.
    #[error("damaged: {0}")]
    CorruptRow(Box<CorruptRow>),
    /// What is stored cannot be what we wrote, beyond one row: a file, a page of it, a table.
    #[error("the store is damaged: {0}")]
    Corrupt(String),
    /// Another process is the one that writes to this store: nothing was done.
    #[error("another process has the store open: {0}")]
    Locked(String),
    /// The clock of this machine is too far from that of the store: nothing was done.
    #[error("{0}")]
    Skewed(String),
    /// The database is replicated in a way in which locks and leases do not hold: nothing was done.
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
    /// The store was written by an earlier version and is not migrated unasked; it was not touched.
    #[error(
        "the store has schema version {found}, this tally needs {known}; run `tally migrate` (nothing was changed)"
    )]
    TooOld {
        /// The version found.
        found: u32,
        /// The version needed.
        known: u32,
    },
    /// These databases are not the store's, or not in this order: nothing was touched.
    #[error("{0}")]
    Layout(String),
    /// The file is some other program's database; it was not touched.
    #[error("{0} is not a tally store (nothing was changed)")]
    NotOurs(String),
}
