//! What readers ask of an order, and what they get.

use tally_rules::rank::Percentile;
use tally_rules::{PlayerId, Record};

/// Which end a page starts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Edge {
    /// From the best downwards.
    #[default]
    Best,
    /// From the worst upwards.
    Worst,
}

/// Where a page starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// At the edge.
    #[default]
    Edge,
    /// So many entries from the edge.
    Offset(u64),
    /// Behind this key, seen from the edge; the player may have moved or gone since.
    After(Record, PlayerId),
}

/// A stretch of an order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageQuery {
    /// Which end it is seen from.
    pub edge: Edge,
    /// Where it starts.
    pub start: Start,
    /// How many entries at most.
    pub limit: usize,
    /// The lowest score, inclusive.
    pub min: Option<i64>,
    /// The highest score, inclusive.
    pub max: Option<i64>,
}

/// One entry of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankedEntry {
    /// From 1, by the board's kind of ranking.
    pub rank: u64,
    /// Who.
    pub player: PlayerId,
    /// The record.
    pub record: Record,
}

/// A stretch of an order with the size of the whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// How many players the part has.
    pub total: u64,
    /// The entries, in the order asked for.
    pub entries: Vec<RankedEntry>,
    /// Whether more follow.
    pub more: bool,
}

/// Some players among each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Among {
    /// How many players the part has.
    pub total: u64,
    /// Those that are there, best first: the rank among them, and the place in the whole.
    pub entries: Vec<(u64, RankedEntry)>,
    /// Those that are not there, in the order asked.
    pub missing: Vec<PlayerId>,
}

/// One player's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranked {
    /// From 1.
    pub rank: u64,
    /// The record.
    pub record: Record,
    /// How many players the part has.
    pub total: u64,
    /// 100 × (total − players of better rank) / total.
    pub percentile: Percentile,
}
