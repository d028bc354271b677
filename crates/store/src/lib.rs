//! The store: it holds everything that is acknowledged, and everything else is derived from it.
//!
//! [`Store`] is four traits with their guarantees: [`Transactions`], [`Reads`], [`Coordination`] and [`Maintenance`]. [`plan`] has what a
//! transaction reads and writes, in the words of the domain. Each backend is a folder with a file for each table; `codec` has the bytes
//! that several of them store. There is no ORM: access is by key, and rows become types in one place for each table.
//! Not here: rules, ranks and retries.

pub mod archive;
pub mod changes;
pub(crate) mod codec;
mod contest_reads;
pub mod contests;
mod coordination;
pub mod copy;
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
mod redacted;
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
mod webhooks;

pub use changes::{CHANGES_VERSION, Changes, CommitTap, Tapped};
pub use contest_reads::{ContestReads, Due, DueAfter};
pub use contests::{ContestLoaded, ContestReadSet, ContestWriteSet, EntrantKey, PayoutKey};
pub use coordination::Coordination;
pub use damage::{CorruptRow, Listing};
pub use error::StoreError;
pub use events::{EventKey, EventReads, Topic};
pub use ledger::{Archived, Ledger, LedgerLoaded, LedgerReadSet, LedgerWriteSet};
pub use maintenance::{COUNTERS, Maintenance};
pub use payments::PaymentReads;
pub use plan::{
    BanKey, BatchId, BlockKey, BoardChange, BoardNo, BoardRow, Committed, Durability, Garbage, ImportKey,
    ImportRow, KeyChange, KeyRow, Loaded, ReadSet, ScoreKey, StoredBlock, Window, WindowKey, WindowRow,
    WriteSet,
};
pub use reads::Reads;
pub use redacted::Redacted;
pub use score_snapshot::ScoreSnapshot;
pub use series::SeriesReads;
pub use servers::{
    Bans, BoardRef, BoardState, FeedPage, FeedPosition, LostCommits, OutboxContent, OutboxEntry, Revisions,
    ScoreState, Task,
};
pub use snapshot::{ContestSnapshot, Snapshot};

pub use shard_set::{SHARDS_MAX, ShardSet};
pub use slow::{SLOW, Slow, WaitStage};
pub use throttled_log::ThrottledLog;

pub use transactions::Transactions;
pub use webhooks::{WebhookKey, WebhookReads, WebhookRow};

/// A durable store: its transactions, its reads, what several servers share, and its maintenance.
pub trait Store: Transactions + Reads + Coordination + Maintenance + 'static {}

impl<T: Transactions + Reads + Coordination + Maintenance + 'static> Store for T {}
