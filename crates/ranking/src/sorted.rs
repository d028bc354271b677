//! What reads need of a ranking, wherever it is: the tree in memory, or the blocks of a closed period.

use tally_index::{Entry, EntryRef, RankingIndex, Score};
use tally_rules::PlayerId;

/// One entry of a range scan.
#[derive(Clone, Debug)]
pub(crate) struct Item<S> {
    pub(crate) player: PlayerId,
    pub(crate) entry: Entry<S>,
}

/// A ranking with counts and range scans. Ids are bytes as they came; an invalid one has no entry.
pub(crate) trait Sorted<S: Score> {
    /// The number of entries.
    fn len(&self) -> u64;
    /// A player's entry.
    fn get(&self, player: &[u8]) -> Option<Entry<S>>;
    /// A player's entry and position.
    fn find(&self, player: &[u8]) -> Option<(Entry<S>, u64)>;
    /// Entries of a strictly better score.
    fn count_better(&self, score: S) -> u64;
    /// Entries of this score or a better one.
    fn count_at_least(&self, score: S) -> u64;
    /// Distinct strictly better scores.
    fn count_distinct_better(&self, score: S) -> u64;
    /// Entries before a key, which need not exist.
    fn lower_bound(&self, entry: &Entry<S>, player: &[u8]) -> u64;
    /// At most `take` entries from a position on, backwards if `back`.
    fn visit(&self, from: u64, take: usize, back: bool, each: &mut dyn FnMut(&[u8], Entry<S>));

    /// Some entries from a cursor on, 0 the first. Returns the next cursor, 0 at the end. A player with an entry from
    /// the first call to the last is visited, even if its score changes.
    fn scan(&self, cursor: u64, take: usize, each: &mut dyn FnMut(&[u8], Entry<S>)) -> u64;

    /// The entries of [`Self::visit`] as a list.
    fn items_from(&self, from: u64, take: usize, back: bool) -> Vec<Item<S>> {
        let mut items = Vec::with_capacity(take.min(self.len() as usize));
        self.visit(from, take, back, &mut |id, entry| {
            let player = std::str::from_utf8(id).ok().and_then(|id| PlayerId::new(id).ok());
            let player = player.expect("only checked ids enter the ranking");
            items.push(Item { player, entry });
        });
        items
    }
}

impl<S: Score> Sorted<S> for RankingIndex<S> {
    fn len(&self) -> u64 {
        self.len()
    }
    fn get(&self, player: &[u8]) -> Option<Entry<S>> {
        self.get(player)
    }
    fn find(&self, player: &[u8]) -> Option<(Entry<S>, u64)> {
        self.find(player)
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
    fn lower_bound(&self, entry: &Entry<S>, player: &[u8]) -> u64 {
        self.lower_bound(entry.score, entry.stamp, player)
    }
    fn scan(&self, cursor: u64, take: usize, each: &mut dyn FnMut(&[u8], Entry<S>)) -> u64 {
        let Ok(from) = u32::try_from(cursor) else { return 0 };
        let one = |row: EntryRef<'_, S>| each(row.id, Entry { score: row.score, stamp: row.stamp });
        self.scan(from, take, one).map_or(0, u64::from)
    }
    fn visit(&self, from: u64, take: usize, back: bool, each: &mut dyn FnMut(&[u8], Entry<S>)) {
        let mut one = |row: EntryRef<'_, S>| each(row.id, Entry { score: row.score, stamp: row.stamp });
        if back {
            self.range_back(from).take(take).for_each(&mut one);
        } else {
            self.range(from).take(take).for_each(&mut one);
        }
    }
}
