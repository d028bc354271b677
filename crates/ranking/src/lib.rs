//! The ranking of every window, derived from the store: published after the commit, rebuilt at start.
//!
//! [`memory`] keeps one counted tree for each window behind one lock. [`page`] says which entry range a reader wants,
//! and `rules` computes it. Nothing here is durable and nothing decides: records arrive as committed. Not here: board
//! names (a window is handed out as a [`memory::MemoryRanking`]), rules beyond turning counts into ranks, and I/O.

pub mod archive;
pub mod blocks;
pub mod memory;
pub mod page;
pub mod reads;
pub mod redis;
mod remote;
mod rules;
mod sorted;
pub mod window;

pub use archive::{ArchiveBlock, ArchiveSource, ArchivedRanking};
pub use memory::{Loading, MemoryRanking, Published, RankingChange, ReadGuard, WriteGuard};
pub use page::{Among, Edge, Page, PageQuery, PageStart, Ranked, RankedEntry};
pub use reads::Reads;
pub use redis::{ChangedPlayers, Probe, RankingError, RedisApplications, RedisBackend, Watched};
pub use remote::{LoadState, PUBLISHED_WITHIN, RemoteLoad, RemoteRanking, VersionedRow};
pub use window::{LockedRanking, RankingBackend, WindowRanking};
