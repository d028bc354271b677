//! The order of one part, wherever it is kept: what use cases publish to and doors ask.
//!
//! In memory nothing can go wrong. An order in somebody's Redis may be away, or may have to be loaded anew: then a
//! question is an error, because no rank is better than a wrong one.

use crate::error::RankingError;
use crate::memory::{Held, Movement, PartOrder, Published};
use crate::reads::Reads;
use tally_rules::Definition;

/// Where orders are kept.
#[derive(Clone, Debug, Default)]
pub enum Ranking {
    /// In this process.
    #[default]
    Memory,
}

/// The order of one part.
#[derive(Debug)]
pub enum Standings {
    /// In this process.
    Memory(PartOrder),
}

/// A part that one writer changes step by step.
pub enum HeldStandings<'a> {
    /// Readers wait until it is dropped.
    Memory(Held<'a>),
}

impl Ranking {
    /// The order of a part: an empty one in memory.
    pub fn of_part(&self, _board: u32, _part: u64, definition: &Definition) -> Standings {
        match self {
            Self::Memory => Standings::Memory(PartOrder::new(definition)),
        }
    }
}

impl Standings {
    /// The tree, where it is in this process.
    pub fn memory(&self) -> Option<&PartOrder> {
        match self {
            Self::Memory(order) => Some(order),
        }
    }

    /// Whether asking it keeps the thread waiting.
    pub fn waits(&self) -> bool {
        self.memory().is_none()
    }

    /// How many players it has.
    pub fn total(&self) -> u64 {
        match self {
            Self::Memory(order) => order.total(),
        }
    }

    /// Bytes of this process' memory.
    pub fn bytes(&self) -> u64 {
        self.memory().map_or(0, PartOrder::bytes)
    }

    /// Asks it.
    pub fn read<T>(&self, with: impl FnOnce(&dyn Reads) -> T) -> Result<T, RankingError> {
        match self {
            Self::Memory(order) => Ok(order.read(with)),
        }
    }

    /// Publishes committed changes in their order.
    pub fn publish(&self, movements: &[Movement], published: impl FnMut(usize, Published)) {
        match self {
            Self::Memory(order) => order.publish(movements, published),
        }
    }

    /// For several changes with questions in between.
    pub fn hold(&self) -> HeldStandings<'_> {
        match self {
            Self::Memory(order) => HeldStandings::Memory(order.hold()),
        }
    }
}

impl HeldStandings<'_> {
    /// Publishes one committed change; says the ranks around it if they are wanted.
    pub fn publish(&mut self, movement: &Movement) -> Option<Published> {
        match self {
            Self::Memory(held) => held.publish(movement),
        }
    }

    /// How many players it has.
    pub fn total(&self) -> u64 {
        match self {
            Self::Memory(held) => held.read(|order| order.total()),
        }
    }

    /// Asks it as it is now.
    pub fn read<T>(&self, with: impl FnOnce(&dyn Reads) -> T) -> Result<T, RankingError> {
        match self {
            Self::Memory(held) => Ok(held.read(with)),
        }
    }
}
