//! What reads need of an order, wherever it is: the tree in memory, or the blocks of a closed period.

use tally_index::{Entry, Order, Score};
use tally_rules::PlayerId;

/// One entry of a walk.
#[derive(Clone, Debug)]
pub(crate) struct Item<S> {
    pub(crate) player: PlayerId,
    pub(crate) entry: Entry<S>,
}

/// An order that can be counted in and walked.
pub(crate) trait Sorted<S: Score> {
    /// How many entries it has.
    fn len(&self) -> u64;
    /// A player's entry and place.
    fn find(&self, player: &PlayerId) -> Option<(Entry<S>, u64)>;
    /// Entries of a strictly better score.
    fn count_better(&self, score: S) -> u64;
    /// Entries of this score or a better one.
    fn count_at_least(&self, score: S) -> u64;
    /// Distinct strictly better scores.
    fn count_distinct_better(&self, score: S) -> u64;
    /// Entries before a key, which need not be there.
    fn lower_bound(&self, entry: &Entry<S>, player: &PlayerId) -> u64;
    /// At most `take` entries from a place on.
    fn walk(&self, from: u64, take: usize) -> Vec<Item<S>>;
    /// At most `take` entries from a place backwards.
    fn walk_back(&self, from: u64, take: usize) -> Vec<Item<S>>;
}

impl<S: Score> Sorted<S> for Order<S> {
    fn len(&self) -> u64 {
        self.len()
    }
    fn find(&self, player: &PlayerId) -> Option<(Entry<S>, u64)> {
        self.find(player.as_bytes())
    }
    fn count_better(&self, score: S) -> u64 {
        self.count_better(score)
    }
    fn count_at_least(&self, score: S) -> u64 {
        self.count_at_least(score)
    }
    fn count_distinct_better(&self, score: S) -> u64 {
        self.count_distinct_better(score)
    }
    fn lower_bound(&self, entry: &Entry<S>, player: &PlayerId) -> u64 {
        self.lower_bound(entry.score, entry.stamp, player.as_bytes())
    }
    fn walk(&self, from: u64, take: usize) -> Vec<Item<S>> {
        self.walk(from).take(take).map(|row| item(&row)).collect()
    }
    fn walk_back(&self, from: u64, take: usize) -> Vec<Item<S>> {
        self.walk_back(from).take(take).map(|row| item(&row)).collect()
    }
}

fn item<S: Score>(row: &tally_index::Row<'_, S>) -> Item<S> {
    let player = std::str::from_utf8(row.id).ok().and_then(|id| PlayerId::new(id).ok());
    let player = player.expect("only checked ids enter the order");
    Item { player, entry: Entry { score: row.score, stamp: row.stamp } }
}
