//! The order of board parts, and applications of contests, in the studio's own Redis or Valkey, single or a cluster.
//!
//! A partition of a part is a sorted set of members whose bytes are the whole key (`member_codec`) and a hash of players
//! with version and member, in one slot; a dense board has a second sorted set, of its distinct scores. Scripts
//! (`script`, one file each) change them together and know one rule: the newer version wins. So any number of servers may
//! publish in any order, twice, and late, and what stays is the newest record of everybody.
//!
//! Who asks waits, on a thread that may, or without one (`replay`). On a single server a part is one partition and every
//! question one round trip (`asks`); readings that wait at the same time share it (`gather`). On a cluster ordinal and competition boards are split by player (`keys`): a rank is the sum of the counts of all partitions, a page the merge of
//! their stretches (`pages`), and a page far inside a search in all of them at once (`select`). Publishing (`publish`) asks
//! what the ranks need first and writes last, and says what one change after the other would have said.
//!
//! While somebody watches a part, who has changed is noted beside it, for every server that looks (`watch`).
//!
//! It is derived data. The hash says which process of Redis it was loaded into, and whether the load was finished; what a
//! flush, a restart, a failover or an eviction has taken is [`RankingError::Lost`] for every question until somebody has
//! loaded it again (`load`), and no other partition than those. Moving slots to another node counts as such a loss. The
//! applications of contests ([`applications`]) are there too, and nowhere else. Not here: who loads and when, and where records come from.

mod address;
pub mod applications;
mod asks;
mod client;
mod error;
mod gather;
mod keys;
mod load;
mod looks;
mod member_codec;
mod node;
mod pages;
mod part;
mod probe;
mod publish;
mod reader;
mod replay;
mod reply;
mod script;
mod select;
mod together;
mod turns;
mod watch;

pub use applications::RedisApplications;
pub use error::RankingError;
pub use load::Loader;
pub use part::{RedisBackend, RedisWindow};
pub use probe::Probe;
pub(crate) use publish::Outcome;
pub use publish::VersionedMovement;
pub use watch::{ChangedPlayers, Watched};

use std::time::Duration;

/// How Redis is reached.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How long a connection may take to be there, with its log-in.
    pub connect_timeout: Duration,
    /// How long an answer may take.
    pub response_timeout: Duration,
    /// Threads that move bytes.
    pub threads: usize,
}

impl Default for Options {
    fn default() -> Self {
        // Each node has one connection, and one thread moves more than a Redis can answer. On two processors a second one
        // is only woken in turns: a tenth of the load.
        let threads = std::thread::available_parallelism().map_or(1, |all| all.get() / 4).clamp(1, 4);
        Self { connect_timeout: Duration::from_secs(1), response_timeout: Duration::from_secs(2), threads }
    }
}
