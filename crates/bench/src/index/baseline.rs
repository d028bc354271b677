//! The baseline: a ranking by hand with the maps of a standard library.
//!
//! A sorted set of (score, stamp, id) and a map from id to entry. Updates are fine; a rank is a count from the front,
//! because a sorted set does not know its ordinal positions.

use super::players::{Digest, Id, changes, id, some};
use super::rounds::median_ns;
use std::collections::{BTreeSet, HashMap};
use std::hint::black_box;
use tally_index::{Entry, RankingIndex};
use tally_load::Random;

/// A ranking.
pub(super) struct Baseline {
    order: BTreeSet<(i64, i64, Id)>,
    entries: HashMap<Id, Entry<i64>>,
}

/// Nanoseconds of one operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figures {
    pub(super) rank_ns: f64,
    pub(super) update_ns: f64,
    pub(super) around_ns: f64,
}

impl Baseline {
    /// A baseline with the present players of an index.
    pub(super) fn of(order: &RankingIndex<i64>, members: u64) -> Self {
        let mut baseline = Self { order: BTreeSet::new(), entries: HashMap::new() };
        for id in (0..members).map(id) {
            if let Some(entry) = order.get(&id) {
                baseline.set(id, entry);
            }
        }
        baseline
    }

    fn set(&mut self, id: Id, entry: Entry<i64>) {
        if let Some(old) = self.entries.insert(id, entry) {
            self.order.remove(&(old.score, old.stamp, id));
        }
        self.order.insert((entry.score, entry.stamp, id));
    }

    fn rank(&self, id: &Id) -> Option<usize> {
        let entry = self.entries.get(id)?;
        Some(self.order.range(..(entry.score, entry.stamp, *id)).count())
    }

    fn around(&self, id: &Id) {
        let Some(entry) = self.entries.get(id) else { return };
        let key = (entry.score, entry.stamp, *id);
        for row in self.order.range(..key).rev().take(5).chain(self.order.range(key..).take(6)) {
            black_box(row);
        }
    }

    /// The hash of the ranking.
    pub(super) fn digest(&self) -> Digest {
        let mut digest = Digest::new();
        for (score, stamp, id) in &self.order {
            digest.add(id, *score, *stamp);
        }
        digest
    }
}

/// Makes the same changes to both and times each; both should have the same contents then.
pub(super) fn beside(
    baseline: &mut Baseline,
    order: &mut RankingIndex<i64>,
    seed: u64,
) -> (Figures, Figures) {
    let members = order.len();
    let mut random = Random::new(seed);
    let made = changes(members, (members as usize / 2).max(1), &mut random);
    let baseline_update = median_ns(1, made.len(), |_| made.clone(), |(id, entry)| baseline.set(id, entry));
    let our_update = median_ns(
        1,
        made.len(),
        |_| made.clone(),
        |(id, entry)| {
            black_box(order.set(&id, entry));
        },
    );
    let mut ids = |count| some(members, count, &mut random);
    let baseline_rank = median_ns(5, 40, &mut ids, |id| {
        black_box(baseline.rank(&id));
    });
    let our_rank = median_ns(5, 10_000, &mut ids, |id| {
        black_box(order.ordinal(&id));
    });
    let baseline_around = median_ns(5, 10_000, &mut ids, |id| baseline.around(&id));
    let our_around = median_ns(5, 10_000, &mut ids, |id| {
        let place = order.ordinal(&id).unwrap_or_default();
        for row in order.range(place.saturating_sub(5)).take(11) {
            black_box(row);
        }
    });
    let baseline = Figures { rank_ns: baseline_rank, update_ns: baseline_update, around_ns: baseline_around };
    (baseline, Figures { rank_ns: our_rank, update_ns: our_update, around_ns: our_around })
}
