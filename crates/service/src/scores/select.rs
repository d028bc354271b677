//! Which players a range selects while changes of the same batch are not in the ranking yet.
//!
//! The ranking in memory is that before the batch; `changed` has the changes of the batch so far. Only the
//! neighbourhood of the range is read: a merged position differs from that in the ranking by at most the number of
//! changed players.

use std::collections::HashSet;
use std::ops::Range;
use tally_ranking::Reads;
use tally_rules::definition::Order;
use tally_rules::order_key::compare;
use tally_rules::sorted_set::{Bound, places};
use tally_rules::{Definition, PlayerId, Record};

/// Players of one window, by position; scores ascend, positions count from the lowest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RankSelection {
    /// So many with the lowest scores, lowest first.
    Lowest(usize),
    /// So many with the highest scores, highest first.
    Highest(usize),
    /// Positions from one to another, both inclusive, negative ones from the highest; at most so many.
    Places(i64, i64, usize),
    /// Scores from one to another, both inclusive; at most so many.
    Scores(i64, i64, usize),
    /// Members from one bound to another, if all have one score; at most so many.
    Members(Bound, Bound, usize),
    /// Players that were found before, with their records.
    These(Vec<(PlayerId, Record)>),
}

impl RankSelection {
    /// How many it takes at most.
    pub fn most(&self) -> usize {
        match self {
            Self::Lowest(most)
            | Self::Highest(most)
            | Self::Places(_, _, most)
            | Self::Scores(_, _, most)
            | Self::Members(_, _, most) => *most,
            Self::These(these) => these.len(),
        }
    }
}

impl RankSelection {
    /// The same with another bound.
    #[must_use]
    pub fn at_most(&self, most: usize) -> Self {
        match self.clone() {
            Self::Lowest(_) => Self::Lowest(most),
            Self::Highest(_) => Self::Highest(most),
            Self::Places(start, stop, _) => Self::Places(start, stop, most),
            Self::Scores(min, max, _) => Self::Scores(min, max, most),
            Self::Members(low, high, _) => Self::Members(low, high, most),
            these @ Self::These(_) => these,
        }
    }

    /// What is left to take when so many were taken. Positions are taken from the front of their range, so an end that
    /// is counted from the other side moves.
    #[must_use]
    pub fn after(&self, taken: usize) -> Self {
        let Self::Places(first, last, most) = *self else { return self.clone() };
        let taken = i64::try_from(taken).unwrap_or(i64::MAX);
        let start = if first < 0 { first.saturating_add(taken) } else { first };
        let stop = if last < 0 { last } else { last.saturating_sub(taken) };
        // An end that has crossed zero leaves nothing.
        let over = first < 0 && start >= 0 || last >= 0 && stop < 0;
        if over { Self::Places(1, 0, most) } else { Self::Places(start, stop, most) }
    }
}

type Entry = (PlayerId, Record);

/// The selected players, in the requested order.
pub(super) fn select(
    definition: &Definition,
    ranking: &dyn Reads,
    changed: &[(PlayerId, Option<Record>)],
    which: &RankSelection,
) -> Vec<Entry> {
    let merged = Merged::new(definition, ranking, changed);
    let total = merged.total();
    let up_to = |count: usize| (count as u64).min(total);
    let range = match which {
        RankSelection::These(these) => return these.clone(),
        RankSelection::Lowest(most) => 0..up_to(*most),
        RankSelection::Highest(most) => total - up_to(*most)..total,
        RankSelection::Places(start, stop, _) => places(*start, *stop, total).unwrap_or(0..0),
        RankSelection::Scores(min, max, _) => {
            let (from, to) = ranking.score_places(Some(*min), Some(*max));
            merged.widened(from, to)
        }
        RankSelection::Members(low, high, _) => {
            let (from, to) = member_places(definition, ranking, low, high);
            merged.widened(from, to)
        }
    };
    let meant = |entry: &Entry| match which {
        RankSelection::Scores(min, max, _) => (*min..=*max).contains(&entry.1.score),
        RankSelection::Members(low, high, _) => {
            let id = entry.0.as_bytes();
            !low.is_above(id) && high.reaches(id)
        }
        RankSelection::Lowest(_)
        | RankSelection::Highest(_)
        | RankSelection::Places(..)
        | RankSelection::These(_) => true,
    };
    let mut list: Vec<Entry> = merged.entries(range).into_iter().filter(meant).collect();
    list.truncate(which.most());
    if matches!(which, RankSelection::Highest(_)) {
        list.reverse();
    }
    list
}

/// The positions in the ranking, from the best, of members between two bounds; all members must have one score.
pub fn member_places(definition: &Definition, ranking: &dyn Reads, low: &Bound, high: &Bound) -> (u64, u64) {
    match definition.order {
        Order::Ascending => {
            (ranking.partition(&|id| low.is_above(id)), ranking.partition(&|id| high.reaches(id)))
        }
        Order::Descending => {
            (ranking.partition(&|id| !high.reaches(id)), ranking.partition(&|id| !low.is_above(id)))
        }
    }
}

/// The ranking with the changes of the batch.
struct Merged<'a> {
    definition: &'a Definition,
    ranking: &'a dyn Reads,
    changed: HashSet<&'a [u8]>,
    /// Changed players that are there now, best first.
    there: Vec<Entry>,
    /// Positions of the changed players in the ranking, sorted.
    stale: Vec<u64>,
}

impl<'a> Merged<'a> {
    fn new(
        definition: &'a Definition,
        ranking: &'a dyn Reads,
        changed: &'a [(PlayerId, Option<Record>)],
    ) -> Self {
        let place = |one: &(PlayerId, _)| ranking.find(one.0.as_bytes()).map(|(_, place)| place);
        let mut stale: Vec<u64> = changed.iter().filter_map(place).collect();
        stale.sort_unstable();
        let mut there: Vec<Entry> =
            changed.iter().filter_map(|(player, record)| Some((player.clone(), (*record)?))).collect();
        there.sort_by(|a, b| key_order(definition, a, b));
        let changed = changed.iter().map(|(player, _)| player.as_bytes()).collect();
        Self { definition, ranking, changed, there, stale }
    }

    fn total(&self) -> u64 {
        self.ranking.total() - self.stale.len() as u64 + self.there.len() as u64
    }

    /// Merged positions, from the lowest score, that surely contain the entries at these positions of the ranking and
    /// those that the batch has added between.
    fn widened(&self, from: u64, to: u64) -> Range<u64> {
        let (slack, total) = (self.changed.len() as u64, self.total());
        let (from, to) = (from.saturating_sub(slack), (to + slack).min(total));
        match self.definition.order {
            Order::Ascending => from..to,
            Order::Descending => total - to..total - from.min(to),
        }
    }

    /// Entries at merged positions, counted from the lowest score, lowest first.
    fn entries(&self, ascending: Range<u64>) -> Vec<Entry> {
        let total = self.total();
        if ascending.start >= ascending.end {
            return Vec::new();
        }
        let best_first = match self.definition.order {
            Order::Ascending => ascending,
            Order::Descending => total - ascending.end..total - ascending.start,
        };
        let slack = self.changed.len() as u64;
        // Far enough in front to include an unchanged entry whose merged position is in front of the range too.
        let from = best_first.start.saturating_sub(2 * slack + 1);
        let take = usize::try_from(best_first.end + slack - from).unwrap_or(usize::MAX);
        let mut list = Vec::new();
        self.ranking.visit(from, take, false, &mut |id, record| {
            if !self.changed.contains(id) {
                let player = std::str::from_utf8(id).ok().and_then(|id| PlayerId::new(id).ok());
                list.push((player.expect("only checked ids enter the ranking"), record));
            }
        });
        // Of the entries in front of the list: those in the ranking, without the changed ones, and the changed ones
        // that are now there.
        let first = list.first().cloned();
        let in_front = |entry: &Entry| {
            first.as_ref().is_some_and(|first| key_order(self.definition, entry, first).is_lt())
        };
        let come = if from == 0 { 0 } else { self.there.partition_point(in_front) };
        let stale_before = self.stale.partition_point(|place| *place < from) as u64;
        list.extend_from_slice(&self.there[come..]);
        list.sort_by(|a, b| key_order(self.definition, a, b));
        let base = from - stale_before + come as u64;
        let skip = usize::try_from(best_first.start - base).unwrap_or(usize::MAX);
        let count = usize::try_from(best_first.end - best_first.start).unwrap_or(usize::MAX);
        let mut list: Vec<Entry> = list.into_iter().skip(skip).take(count).collect();
        if self.definition.order == Order::Descending {
            list.reverse();
        }
        list
    }
}

fn key_order(definition: &Definition, a: &Entry, b: &Entry) -> std::cmp::Ordering {
    compare(definition, (&a.1, a.0.as_bytes()), (&b.1, b.0.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use tally_ranking::{MemoryRanking, RankingChange};
    use tally_rules::Micros;
    use tally_rules::definition::{Ties, Update};

    fn id(number: u8) -> PlayerId {
        PlayerId::new(&format!("p{number:03}")).unwrap()
    }

    fn record(score: i64) -> Record {
        Record { score, subscore: 0, at: Micros(0) }
    }

    fn any_taken() -> impl Strategy<Value = RankSelection> {
        let bound = prop_oneof![
            Just(Bound::Lowest),
            Just(Bound::Highest),
            (0_u8..60).prop_map(|n| Bound::Inclusive(id(n).as_bytes().to_vec())),
            (0_u8..60).prop_map(|n| Bound::Exclusive(id(n).as_bytes().to_vec())),
        ];
        prop_oneof![
            (0_usize..70).prop_map(RankSelection::Lowest),
            (0_usize..70).prop_map(RankSelection::Highest),
            (-70_i64..70, -70_i64..70).prop_map(|(a, b)| RankSelection::Places(a, b, 1_000)),
            (-12_i64..12, -12_i64..12).prop_map(|(a, b)| RankSelection::Scores(a, b, 1_000)),
            (bound.clone(), bound).prop_map(|(a, b)| RankSelection::Members(a, b, 1_000)),
        ]
    }

    proptest! {
        #[test]
        fn the_same_as_after_publishing(
            before in proptest::collection::vec((0_u8..60, -9_i64..9), 0..60),
            changes in proptest::collection::vec((0_u8..60, proptest::option::of(-9_i64..9)), 0..20),
            which in any_taken(),
            ascending in any::<bool>(),
        ) {
            let one_score = matches!(which, RankSelection::Members(..));
            let order = if ascending { Order::Ascending } else { Order::Descending };
            let ties = if ascending { Ties::Player } else { Ties::PlayerReversed };
            let definition = Definition { order, ties, update: Update::Latest, ..Definition::default() };
            let score = |score: i64| record(if one_score { 7 } else { score });
            let publish = |window: &MemoryRanking, moves: &BTreeMap<PlayerId, Option<Record>>| {
                let moves = moves.iter().map(|(player, record)|
                    RankingChange { player: player.clone(), record: *record, ranked: false });
                window.publish(&moves.collect::<Vec<_>>(), |_, _| {});
            };
            let start: BTreeMap<_, _> = before.iter().map(|(n, s)| (id(*n), Some(score(*s)))).collect();
            let delta: BTreeMap<_, _> = changes.iter().map(|(n, s)| (id(*n), s.map(score))).collect();
            let (old, new) = (MemoryRanking::new(&definition), MemoryRanking::new(&definition));
            publish(&old, &start);
            publish(&new, &start);
            publish(&new, &delta);
            let changed: Vec<_> = delta.into_iter().collect();
            let got = old.read(|ranking| select(&definition, ranking, &changed, &which));
            let want = new.read(|ranking| select(&definition, ranking, &[], &which));
            prop_assert_eq!(&got, &want);
            // And without changes, against the plain list.
            let mut all: Vec<(PlayerId, Record)> = Vec::new();
            new.read(|ranking| ranking.visit(0, 100, false, &mut |one, record| {
                all.push((PlayerId::new(std::str::from_utf8(one).unwrap()).unwrap(), record));
            }));
            if !ascending { all.reverse(); }
            let total = all.len() as u64;
            let plain: Vec<(PlayerId, Record)> = match &which {
                RankSelection::These(these) => these.clone(),
                RankSelection::Lowest(n) => all.into_iter().take(*n).collect(),
                RankSelection::Highest(n) => all.into_iter().rev().take(*n).collect(),
                RankSelection::Places(a, b, _) => {
                    let range = places(*a, *b, total).unwrap_or(0..0);
                    all[range.start as usize..range.end as usize].to_vec()
                }
                RankSelection::Scores(a, b, _) => all.into_iter().filter(|one| *a <= one.1.score && one.1.score <= *b).collect(),
                RankSelection::Members(a, b, _) =>
                    all.into_iter().filter(|one| !a.is_above(one.0.as_bytes()) && b.reaches(one.0.as_bytes())).collect(),
            };
            prop_assert_eq!(got, plain);
        }
    }
}
