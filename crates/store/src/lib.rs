//! The truth: what is acknowledged is here, and everything else is derived from it.
//!
//! [`Store`] is the trait with its guarantees; [`plan`] says what a transaction reads and writes, in the words of the
//! domain; each backend is a folder with one file per table. There is no ORM and no query builder: access is by key,
//! rows map to types in one place per table. Not here: rules (a transaction asks the caller to `decide`), ranks, and
//! any retry policy (the lanes have it, from the kinds of [`StoreError`]).

pub(crate) mod codec;
mod contest_reads;
pub mod contests;
mod coordination;
pub(crate) mod damage;
mod error;
pub mod events;
#[doc(hidden)]
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
pub mod ledger;
mod maintenance;
pub mod mysql;
pub mod payments;
pub mod plan;
mod reads;
pub mod score_snapshot;
pub mod series;
pub mod servers;
mod shard_set;
pub mod shards;
mod slow;
pub mod snapshot;
mod throttled_log;

pub mod sqlite;
mod transactions;

pub use contest_reads::{Contests, Due, DueAfter};
pub use contests::{ContestLoaded, ContestReadSet, ContestWriteSet, EntrantKey, PayoutKey};
pub use coordination::Coordination;
pub use damage::{CorruptRow, Listing};
pub use error::StoreError;
pub use events::{EventKey, EventReads, Topic};
pub use ledger::{Ledger, LedgerLoaded, LedgerReadSet, LedgerWriteSet};
pub use maintenance::Maintenance;
pub use payments::PaymentReads;
pub use plan::{
    BanKey, BatchId, Block, BlockKey, BoardChange, BoardNo, BoardRow, Committed, Durability, Garbage,
    ImportKey, ImportRow, KeyChange, KeyRow, Loaded, ReadSet, ScoreKey, Window, WindowKey, WindowRow,
    WriteSet,
};
pub use reads::Reads;
pub use score_snapshot::ScoreSnapshot;
pub use series::SeriesReads;
pub use servers::{
    Bans, BoardRef, BoardState, FeedPage, FeedPosition, LostCommits, OutboxContent, OutboxEntry, Revisions,
    ScoreState, Task,
};
pub use snapshot::{ContestSnapshot, Snapshot};

pub use shard_set::{SHARDS_MAX, ShardSet};
pub use slow::{SLOW, Slow, Stage};
pub use throttled_log::ThrottledLog;

pub use transactions::Transactions;

/// A durable store: its transactions, its reads, what several servers share, and its maintenance.
pub trait Store: Transactions + Reads + Coordination + Maintenance + 'static {}

impl<T: Transactions + Reads + Coordination + Maintenance + 'static> Store for T {}
