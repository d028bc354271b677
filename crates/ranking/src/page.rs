//! Queries of a ranking, and their results.

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
pub enum PageStart {
    /// At the edge.
    #[default]
    Edge,
    /// This many entries from the edge.
    Offset(u64),
    /// After this key, seen from the edge. The player may have moved or been removed since.
    After(Record, PlayerId),
}

/// A bounded entry range of a ranking.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageQuery {
    /// The end it is seen from.
    pub edge: Edge,
    /// Where it starts.
    pub start: PageStart,
    /// The maximum number of entries.
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
    /// The player.
    pub player: PlayerId,
    /// The record.
    pub record: Record,
}

/// An entry range, with the size of the whole ranking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The number of players in the window.
    pub total: u64,
    /// The entries, in the order of the query.
    pub entries: Vec<RankedEntry>,
    /// Whether more follow.
    pub more: bool,
}

/// Some players, ranked among each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Among {
    /// The number of players in the window.
    pub total: u64,
    /// The players with an entry, best first: the rank among them, and the entry in the whole ranking.
    pub entries: Vec<(u64, RankedEntry)>,
    /// The players without an entry, in the order of the query.
    pub missing: Vec<PlayerId>,
}

/// The rank of one player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranked {
    /// From 1.
    pub rank: u64,
    /// The record.
    pub record: Record,
    /// The number of players in the window.
    pub total: u64,
    /// 100 × (total − players of better rank) / total.
    pub percentile: Percentile,
}
