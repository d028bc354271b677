//! Rankings and contest applications in the studio's own Redis or Valkey, a single server or a cluster.
//!
//! A partition is a sorted set and a hash in one slot. The bytes of a member of the set are the whole key
//! (`member_codec`). The hash has the version and the rest of the member for each player. With dense ranks there is a
//! second sorted set, of the distinct scores. Scripts (`script`, one file each) change them together by one rule: the
//! newer version wins. So any number of servers may publish in any order, twice and late, and the newest record of each
//! player remains.
//!
//! A query blocks its thread, or is re-executed without one (`reexecute`). On a single server a window is one partition
//! and every query one round trip (`queries`); concurrent reads share it (`coalesce`). On a cluster, ordinal and competition
//! windows are partitioned by player (`keys`). There a rank is the sum of the counts of all partitions, and a page the
//! merge of their entry ranges (`pages`). A page far from the edge takes a k-way selection first (`select`). Publishing
//! (`publish`) queries what the ranks need, writes last, and returns serial ranks.
//!
//! While a server watches a window, the scripts record which players changed, for every server that polls (`watch`).
//!
//! Rankings are derived data. The hash names the Redis process that it was loaded into, and whether the load was
//! finished. After a flush, a restart, a failover or an eviction every query of that partition returns
//! [`RankingError::Lost`], until a server has loaded it again (`load`). Moving slots to another node counts as such a
//! loss. The applications of contests ([`applications`]) are stored here and nowhere else. Sorted sets of a studio's own code
//! are only read (`sorted_sets`). Not here: which server loads and when, and where records come from.

mod address;
pub mod applications;
mod claim;
mod client;
mod coalesce;
mod error;
mod keys;
mod load;
mod lookups;
mod member_codec;
mod node;
mod pages;
mod pipeline;
mod probe;
mod publish;
mod queries;
mod reader;
mod reexecute;
mod reply;
mod script;
mod select;
mod serial_ranks;
mod sorted_sets;
mod watch;
mod window;

pub use applications::RedisApplications;
pub use claim::{Claim, Owner};
pub use error::RankingError;
pub use load::Loader;
pub use probe::Probe;
pub(crate) use publish::PublishOutcome;
pub use publish::VersionedChange;
pub use sorted_sets::{Member, SortedSets, SourceKey};
pub use watch::{ChangedPlayers, Watched};
pub use window::{RedisBackend, RedisWindow};

use std::time::Duration;

/// Connection settings.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Timeout of connecting, including the login.
    pub connect_timeout: Duration,
    /// Timeout of a response.
    pub response_timeout: Duration,
    /// Threads for I/O.
    pub threads: usize,
}

impl Default for Options {
    fn default() -> Self {
        // Each node has one connection, and one thread moves more than a Redis can answer. On two processors a second
        // thread is only woken in alternation, which costs a tenth of the load.
        let threads = std::thread::available_parallelism().map_or(1, |all| all.get() / 4).clamp(1, 4);
        Self { connect_timeout: Duration::from_secs(1), response_timeout: Duration::from_secs(2), threads }
    }
}
