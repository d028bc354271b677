//! Serial ranks: what each change of a batch would get if the changes ran one by one, from counts that one query
//! returns.
//!
//! The counts are the members below some bounds in all partitions, before any write of the batch. The changes before a
//! change move members across its bounds, and this module adds these moves. It is pure: it sends no query.

use super::lookups::Count;
use super::publish::VersionedChange;
use super::queries::HashEntry;
use super::window::RedisWindow;
use crate::memory::Published;
use std::collections::HashMap;
use tally_rules::PlayerId;

/// The removed member and the added one.
type Change = (Option<Vec<u8>>, Option<Vec<u8>>);

/// The changes of a batch in order.
#[derive(Debug, Default)]
pub(super) struct SerialRanks {
    changes: Vec<Change>,
    ranked: Vec<RankedChange>,
}

/// A change that is `ranked`. Each pair is the bound of the member, if there is one, and the number of earlier changes.
#[derive(Debug)]
struct RankedChange {
    /// Its position in the batch.
    at: usize,
    before: (Option<Vec<u8>>, usize),
    after: (Option<Vec<u8>>, usize),
}

impl SerialRanks {
    /// `entries` is what was stored of each player before the batch.
    pub(super) fn new(
        window: &RedisWindow,
        batch: &[VersionedChange],
        entries: &HashMap<&PlayerId, Option<HashEntry>>,
    ) -> Self {
        let mut serial = Self::default();
        let mut present: HashMap<&PlayerId, (u64, Option<Vec<u8>>)> = HashMap::new();
        for (player, entry) in entries {
            if let Some(entry) = entry {
                present.insert(player, (entry.version, entry.seen.as_ref().map(|seen| seen.member.clone())));
            }
        }
        for (at, VersionedChange { change, version, .. }) in batch.iter().enumerate() {
            let player = &change.player;
            let known = present.get(player);
            let old = known.and_then(|(_, member)| member.clone());
            let newer = known.is_none_or(|(known, _)| version > known);
            let new = if newer {
                change.record.map(|record| window.codec().member(player, &record))
            } else {
                old.clone()
            };
            if change.ranked {
                let bound = |member: &Option<Vec<u8>>| Some(window.bound(member.as_ref()?, Count::Ahead));
                let changes = serial.changes.len();
                let before = (bound(&old), changes);
                serial.ranked.push(RankedChange {
                    at,
                    before,
                    after: (bound(&new), changes + usize::from(newer)),
                });
            }
            if newer {
                present.insert(player, (*version, new.clone()));
                serial.changes.push((old, new));
            }
        }
        serial
    }

    /// Every bound whose count is needed.
    pub(super) fn bounds(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.ranked.iter().flat_map(|change| change.before.0.iter().chain(&change.after.0))
    }

    /// The ranks around each change, from the counts of all bounds before the batch.
    pub(super) fn ranks(&self, counts: &HashMap<Vec<u8>, u64>) -> Vec<(usize, Published)> {
        let rank = |(bound, changes): &(Option<Vec<u8>>, usize)| {
            let bound = bound.as_ref()?;
            let mut count = counts.get(bound).copied()?;
            let below =
                |member: &Option<Vec<u8>>| u64::from(member.as_ref().is_some_and(|member| member < bound));
            for (old, new) in &self.changes[..*changes] {
                // A removed member was counted, unless it was removed between two queries.
                count = (count + below(new)).saturating_sub(below(old));
            }
            Some(count + 1)
        };
        let one = |change: &RankedChange| {
            (change.at, Published { before: rank(&change.before), after: rank(&change.after) })
        };
        self.ranked.iter().map(one).collect()
    }
}
