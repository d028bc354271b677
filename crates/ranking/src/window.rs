//! The ranking of one window, wherever it is: use cases publish to it and listeners query it.
//!
//! A ranking in memory always answers. A ranking in Redis may be unavailable, or may have to be loaded again. Then a
//! query returns an error, because no rank is better than a wrong one.

use crate::memory::{MemoryRanking, Published, RankingChange, WriteGuard};
use crate::page::Ranked;
use crate::reads::Reads;
use crate::redis::{RankingError, RedisBackend};
use crate::remote::RemoteRanking;
use tally_rules::{Definition, PlayerId};

/// Where rankings are kept.
#[derive(Clone, Debug, Default)]
pub enum RankingBackend {
    /// In this process.
    #[default]
    Memory,
    /// In Redis.
    Redis(RedisBackend),
}

/// The ranking of one window.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are the large one, and there is one for each window"
)]
pub enum WindowRanking {
    /// In this process.
    Memory(MemoryRanking),
    /// In Redis.
    Redis(RemoteRanking),
}

/// A ranking that one writer changes step by step.
pub enum LockedRanking<'a> {
    /// Readers wait until it is dropped.
    Memory(WriteGuard<'a>),
    /// Readers in other processes do not wait: they may see half of a transaction.
    Redis(&'a RemoteRanking),
}

impl RankingBackend {
    /// The ranking of a window: empty in memory, or not loaded yet in Redis.
    pub fn of_window(&self, board: u32, window: u64, definition: &Definition) -> WindowRanking {
        match self {
            Self::Memory => WindowRanking::Memory(MemoryRanking::new(definition)),
            Self::Redis(redis) => {
                WindowRanking::Redis(RemoteRanking::new(redis.window(board, window, definition)))
            }
        }
    }

    /// The name of the backend.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Redis(_) => "redis",
        }
    }

    /// The address, without a password.
    pub fn shown(&self) -> String {
        match self {
            Self::Memory => "memory".into(),
            Self::Redis(redis) => redis.address(),
        }
    }
}

impl WindowRanking {
    /// The ranking in memory, if it is there.
    pub fn memory(&self) -> Option<&MemoryRanking> {
        match self {
            Self::Memory(ranking) => Some(ranking),
            Self::Redis(_) => None,
        }
    }

    /// The ranking in Redis, if it is there.
    pub fn remote(&self) -> Option<&RemoteRanking> {
        match self {
            Self::Memory(_) => None,
            Self::Redis(remote) => Some(remote),
        }
    }

    /// Whether a query blocks the thread.
    pub fn waits(&self) -> bool {
        self.remote().is_some()
    }

    /// The number of players.
    pub fn total(&self) -> u64 {
        match self {
            Self::Memory(ranking) => ranking.total(),
            Self::Redis(remote) => remote.total(),
        }
    }

    /// Bytes in the memory of this process.
    pub fn bytes(&self) -> u64 {
        self.memory().map_or(0, MemoryRanking::bytes)
    }

    /// Runs queries.
    pub fn read<T>(&self, with: impl FnOnce(&dyn Reads) -> T) -> Result<T, RankingError> {
        match self {
            Self::Memory(ranking) => Ok(ranking.read(with)),
            Self::Redis(remote) => remote.read(with),
        }
    }

    /// The rank of a player in each of several rankings of one [`RankingBackend`]. Those in Redis are queried at once: one
    /// round trip, or two if one is partitioned. Each fails alone.
    pub fn ranked_in(items: &[(&Self, &PlayerId)]) -> Vec<Result<Option<Ranked>, RankingError>> {
        let remotes: Vec<(&RemoteRanking, &PlayerId)> =
            items.iter().filter_map(|(ranking, player)| Some((ranking.remote()?, *player))).collect();
        let mut elsewhere = RemoteRanking::ranked_in(&remotes).into_iter();
        let ranked = |(ranking, player): &(&Self, &PlayerId)| match ranking {
            Self::Memory(ranking) => Ok(ranking.read(|ranking| ranking.ranked(player))),
            Self::Redis(_) => elsewhere.next().expect("an answer for each ranking in Redis"),
        };
        items.iter().map(ranked).collect()
    }

    /// Publishes the committed changes of a transaction of that version, in their order. A ranking that cannot publish now
    /// reports no ranks and publishes later.
    pub fn publish(&self, changes: &[RankingChange], version: u64, published: impl FnMut(usize, Published)) {
        match self {
            Self::Memory(ranking) => ranking.publish(changes, published),
            Self::Redis(remote) => remote.publish(changes, version, published),
        }
    }

    /// Locks the ranking for several changes with queries in between.
    pub fn hold(&self) -> LockedRanking<'_> {
        match self {
            Self::Memory(ranking) => LockedRanking::Memory(ranking.hold()),
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
    /// Publishes one change of a transaction of that version. Returns the ranks around it if it is `ranked`.
    pub fn publish(&mut self, change: &RankingChange, version: u64) -> Option<Published> {
        match self {
            Self::Memory(held) => held.publish(change),
            Self::Redis(remote) => {
                let mut ranks = None;
                remote.publish(std::slice::from_ref(change), version, |_, published| {
                    ranks = Some(published);
                });
                ranks
            }
        }
    }

    /// The number of players.
    pub fn total(&self) -> u64 {
        match self {
            Self::Memory(held) => held.read(|ranking| ranking.total()),
            Self::Redis(remote) => remote.total(),
        }
    }

    /// Queries it as it is now.
    pub fn read<T>(&self, with: impl FnOnce(&dyn Reads) -> T) -> Result<T, RankingError> {
        match self {
            Self::Memory(held) => Ok(held.read(with)),
            Self::Redis(remote) => remote.read(with),
        }
    }
}
