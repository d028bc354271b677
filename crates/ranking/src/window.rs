//! The order of one part, wherever it is kept: what use cases publish to and doors ask.
//!
//! A ranking in memory always answers. A ranking in Redis may be unavailable, or may have to be loaded again. Then a
//! query returns an error, because no rank is better than a wrong one.

use crate::memory::{MemoryRanking, Movement, Published, WriteGuard};
use crate::page::Ranked;
use crate::reads::Reads;
use crate::redis::{RankingError, RedisBackend};
use crate::remote::RemoteRanking;
use tally_rules::{Definition, PlayerId};

/// Where orders are kept.
#[derive(Clone, Debug, Default)]
pub enum RankingBackend {
    /// In this process.
    #[default]
    Memory,
    /// In Redis.
    Redis(RedisBackend),
}

/// The order of one part.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all are the large one, and there is one for each part")]
pub enum WindowRanking {
    /// In this process.
    Memory(MemoryRanking),
    /// In Redis.
    Redis(RemoteRanking),
}

/// A part that one writer changes step by step.
pub enum LockedRanking<'a> {
    /// Readers wait until it is dropped.
    Memory(WriteGuard<'a>),
    /// Readers of other processes cannot be made to wait: they may see a transaction half way.
    Redis(&'a RemoteRanking),
}

impl RankingBackend {
    /// The order of a part: an empty one in memory, one that has yet to be loaded in Redis.
    pub fn of_window(&self, board: u32, part: u64, definition: &Definition) -> WindowRanking {
        match self {
            Self::Memory => WindowRanking::Memory(MemoryRanking::new(definition)),
            Self::Redis(redis) => {
                WindowRanking::Redis(RemoteRanking::new(redis.part(board, part, definition)))
            }
        }
    }

    /// The name of the kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Redis(_) => "redis",
        }
    }

    /// Where it is, without a password.
    pub fn shown(&self) -> String {
        match self {
            Self::Memory => "memory".into(),
            Self::Redis(redis) => redis.address(),
        }
    }
}

impl WindowRanking {
    /// The tree, where it is in this process.
    pub fn memory(&self) -> Option<&MemoryRanking> {
        match self {
            Self::Memory(order) => Some(order),
            Self::Redis(_) => None,
        }
    }

    /// What is known of it here, where it is not in this process.
    pub fn remote(&self) -> Option<&RemoteRanking> {
        match self {
            Self::Memory(_) => None,
            Self::Redis(remote) => Some(remote),
        }
    }

    /// Whether asking it keeps the thread waiting.
    pub fn waits(&self) -> bool {
        self.remote().is_some()
    }

    /// How many players it has.
    pub fn total(&self) -> u64 {
        match self {
            Self::Memory(order) => order.total(),
            Self::Redis(remote) => remote.total(),
        }
    }

    /// Bytes of this process' memory.
    pub fn bytes(&self) -> u64 {
        self.memory().map_or(0, MemoryRanking::bytes)
    }

    /// Asks it.
    pub fn read<T>(&self, with: impl FnOnce(&dyn Reads) -> T) -> Result<T, RankingError> {
        match self {
            Self::Memory(order) => Ok(order.read(with)),
            Self::Redis(remote) => remote.read(with),
        }
    }

    /// A player's place in each of several orders of one [`RankingBackend`]. Those that are elsewhere are all asked at once: one
    /// round trip, or two where one is split. What fails fails alone.
    pub fn ranked_in(orders: &[&Self], player: &PlayerId) -> Vec<Result<Option<Ranked>, RankingError>> {
        let remotes: Vec<&RemoteRanking> = orders.iter().filter_map(|order| order.remote()).collect();
        let mut elsewhere = RemoteRanking::ranked_in(&remotes, player).into_iter();
        let ranked = |order: &&Self| match order {
            Self::Memory(order) => Ok(order.read(|order| order.ranked(player))),
            Self::Redis(_) => elsewhere.next().expect("an answer for each that was asked"),
        };
        orders.iter().map(ranked).collect()
    }

    /// Publishes the committed changes of a transaction of that version, in their order. A ranking that cannot publish now
    /// reports no ranks and publishes later.
    pub fn publish(&self, movements: &[Movement], version: u64, published: impl FnMut(usize, Published)) {
        match self {
            Self::Memory(order) => order.publish(movements, published),
            Self::Redis(remote) => remote.publish(movements, version, published),
        }
    }

    /// For several changes with questions in between.
    pub fn hold(&self) -> LockedRanking<'_> {
        match self {
            Self::Memory(order) => LockedRanking::Memory(order.hold()),
            Self::Redis(remote) => LockedRanking::Redis(remote),
        }
    }

    /// Deletes a ranking in Redis that is not used any more. A failure leaves keys that no server reads.
    pub fn forget(&self) {
        if let Self::Redis(remote) = self {
            drop(remote.forget());
        }
    }
}

impl LockedRanking<'_> {
    /// Publishes one change that was committed in that version; says the ranks around it if they are wanted.
    pub fn publish(&mut self, movement: &Movement, version: u64) -> Option<Published> {
        match self {
            Self::Memory(held) => held.publish(movement),
            Self::Redis(remote) => {
                let mut ranks = None;
                remote.publish(std::slice::from_ref(movement), version, |_, published| {
                    ranks = Some(published);
                });
                ranks
            }
        }
    }

    /// How many players it has.
    pub fn total(&self) -> u64 {
        match self {
            Self::Memory(held) => held.read(|order| order.total()),
            Self::Redis(remote) => remote.total(),
        }
    }

    /// Asks it as it is now.
    pub fn read<T>(&self, with: impl FnOnce(&dyn Reads) -> T) -> Result<T, RankingError> {
        match self {
            Self::Memory(held) => Ok(held.read(with)),
            Self::Redis(remote) => remote.read(with),
        }
    }
}
