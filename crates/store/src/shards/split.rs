//! Splits a plan and its changes by shard, and merges what the shards have read.
//!
//! Records and bans are on the player's home shard. A request and the position of an import are where their effect is.
//! Boards are on all shards, so that a transaction itself sees that its board exists. Everything else is on the first shard.
//! Pure. Not here: transactions, and how the others learn of boards (`directory`).

use super::directory::Delta;
use super::home::home;
use crate::plan::{BoardChange, Garbage, Loaded, ReadSet, WriteSet};
use crate::redacted::Redacted;
use crate::{LedgerReadSet, ShardSet};
use std::collections::BTreeMap;
use tally_rules::idempotency::Stored;

/// The shard that has everything that is not spread.
pub(super) const FIRST: usize = 0;

/// A plan, split among some of `all` shards.
pub(super) struct Split<'a> {
    plan: &'a ReadSet,
    all: usize,
    /// The shards of the transaction.
    pub(super) shards: ShardSet,
    /// The shard of each score of the plan.
    homes: Vec<usize>,
}

/// The shards that a plan needs.
pub(super) fn concerned(plan: &ReadSet, all: usize) -> ShardSet {
    let mut shards = plan.shards;
    shards.extend_with(plan.scores.iter().map(|key| home(&key.player, all)));
    if !plan.requests.is_empty() && plan.shards.is_empty() {
        return ShardSet::first(all);
    }
    let of_first = !(plan.board_names.is_empty() && plan.profiles.is_empty() && plan.ledger.is_empty());
    if !plan.imports.is_empty() {
        shards.insert(hinted(plan).unwrap_or(FIRST));
    }
    if of_first || shards.is_empty() {
        shards.insert(FIRST);
    }
    shards
}

/// The shard that the caller has named, if it is the only one.
pub(super) fn hinted(plan: &ReadSet) -> Option<usize> {
    plan.shards.lowest().filter(|_| plan.shards.len() == 1)
}

impl ShardSet {
    fn extend_with(&mut self, shards: impl Iterator<Item = usize>) {
        shards.for_each(|shard| self.insert(shard));
    }
}

impl<'a> Split<'a> {
    /// Splits a plan among shards that include those it needs.
    pub(super) fn new(plan: &'a ReadSet, all: usize, shards: ShardSet) -> Self {
        let homes = plan.scores.iter().map(|key| home(&key.player, all)).collect();
        Self { plan, all, shards, homes }
    }

    /// The lowest of its shards, which commits first.
    pub(super) fn lowest(&self) -> usize {
        self.shards.lowest().unwrap_or(FIRST)
    }

    /// The shard that the caller has named, or the one that commits first. The caller gets the result of its commit.
    pub(super) fn main(&self) -> usize {
        hinted(self.plan).unwrap_or_else(|| self.lowest())
    }

    /// The shard with the positions of its imports; each shard has its own.
    fn of_imports(&self) -> usize {
        hinted(self.plan).unwrap_or(FIRST)
    }

    /// What one shard reads.
    pub(super) fn plan(&self, shard: usize) -> ReadSet {
        let plan = self.plan;
        let scores = plan.scores.iter().zip(&self.homes).filter(|(_, home)| **home == shard);
        let first = shard == FIRST;
        let of_first = |wanted: bool| wanted && first;
        ReadSet {
            durability: plan.durability,
            exclusive: plan.exclusive,
            outbox: plan.outbox,
            boards: plan.boards.clone(),
            board_names: if of_first(true) { plan.board_names.clone() } else { Vec::new() },
            scores: scores.map(|(key, _)| key.clone()).collect(),
            requests: plan.requests.clone(),
            imports: if shard == self.of_imports() { plan.imports.clone() } else { Vec::new() },
            profiles: if first { plan.profiles.clone() } else { Vec::new() },
            ledger: if first { plan.ledger.clone() } else { LedgerReadSet::default() },
            ..ReadSet::default()
        }
    }

    /// Merges what the shards have read, and says on which shard each request was found.
    pub(super) fn loaded(&self, read: &BTreeMap<usize, Loaded>) -> (Loaded, Vec<Option<usize>>) {
        let plan = self.plan;
        let mut scores: BTreeMap<usize, _> =
            read.iter().map(|(shard, loaded)| (*shard, loaded.scores.iter())).collect();
        let mut score = |home: &usize| scores.get_mut(home).and_then(Iterator::next).copied().flatten();
        let mut requests: Vec<Option<Stored>> = vec![None; plan.requests.len()];
        let mut found = vec![None; plan.requests.len()];
        for (shard, loaded) in read {
            for (place, stored) in loaded.requests.iter().enumerate() {
                // An expired request may have run again on another shard: the newest counts.
                let newer = |stored: &Stored| requests[place].as_ref().is_none_or(|old| old.at < stored.at);
                if stored.as_ref().is_some_and(newer) {
                    requests[place].clone_from(stored);
                    found[place] = Some(*shard);
                }
            }
        }
        let main = self.main();
        let boards = read.get(&main).map_or_else(Vec::new, |loaded| loaded.boards.clone());
        let elsewhere = read.iter().filter(|(shard, _)| **shard != main);
        let first = read.get(&FIRST).cloned().unwrap_or_default();
        let imports = read.get(&self.of_imports()).map_or_else(Vec::new, |loaded| loaded.imports.clone());
        let loaded = Loaded {
            boards,
            boards_elsewhere: elsewhere.map(|(shard, loaded)| (*shard, loaded.boards.clone())).collect(),
            board_names: first.board_names,
            next_board: first.next_board,
            scores: self.homes.iter().map(&mut score).collect(),
            requests,
            imports,
            profiles: first.profiles,
            ledger: first.ledger,
        };
        (loaded, found)
    }

    /// The changes of each shard, and what the other shards have to get of boards after the commit.
    pub(super) fn changes(
        &self,
        changes: WriteSet,
        found: &[Option<usize>],
    ) -> (BTreeMap<usize, WriteSet>, Delta) {
        let mut slices = Slices::default();
        for (key, record) in changes.scores {
            slices.of(home(&key.player, self.all)).scores.push((key, record));
        }
        for (key, banned) in changes.bans {
            slices.of(home(&key.player, self.all)).bans.push((key, banned));
        }
        // The request is on the home shard of all changes, if there is only one, even if a part of its effect is elsewhere.
        // A retry looks only there. A request without a known shard is on the lowest.
        let mut of_players = slices.0.keys().copied();
        let only = of_players.next().filter(|_| of_players.next().is_none());
        let otherwise = hinted(self.plan).or(only).unwrap_or_else(|| self.lowest());
        for (key, stored) in changes.requests {
            let place = self.plan.requests.binary_search(&key).ok();
            let shard = place.and_then(|place| found.get(place).copied().flatten());
            slices.of(shard.unwrap_or(otherwise)).requests.push((key, stored));
        }
        if !changes.audit.is_empty() {
            // Beside the act: a transaction of its own may be lost.
            slices.of(otherwise).audit = changes.audit;
        }
        let Redacted { transfers, audit, entrants } = changes.redacted;
        if !audit.is_empty() {
            // The row is where its act was.
            self.shards.iter().for_each(|shard| slices.of(shard).redacted.audit.clone_from(&audit));
        }
        if !(transfers.is_empty() && entrants.is_empty()) {
            let redacted = &mut slices.of(FIRST).redacted;
            (redacted.transfers, redacted.entrants) = (transfers, entrants);
        }
        if !changes.imports.is_empty() {
            slices.of(self.of_imports()).imports = changes.imports;
        }
        let mut change =
            Delta { boards: changes.boards.iter().map(BoardChange::no).collect(), ..Delta::default() };
        let mut of_first = WriteSet { boards: changes.boards, ..WriteSet::default() };
        for (key, row) in changes.windows {
            match row {
                // An open period is noted beside its first record; later its row is on the first shard.
                Some(row) if !row.closed => slices.of(self.lowest()).windows.push((key, Some(row))),
                Some(row) => {
                    // The ranking of the period is not archived yet, so no shard may take more scores for it. A stale period
                    // is closed already, or made by old lines of an import.
                    if row.version == 0 && !row.stale {
                        change.closed.insert(key);
                    }
                    of_first.windows.push((key, Some(row)));
                }
                None => of_first.windows.push((key, None)),
            }
        }
        change.deleted_windows.extend(changes.garbage.iter().filter_map(|gone| match gone {
            Garbage::Window(window) => Some(*window),
            Garbage::Blocks(..) => None,
        }));
        let first = WriteSet {
            profiles: changes.profiles,
            blocks: changes.blocks,
            keys: changes.keys,
            ledger: changes.ledger,
            garbage: changes.garbage,
            ..of_first
        };
        if !first.is_empty() {
            let slice = slices.of(FIRST);
            slice.windows.extend(first.windows);
            slice.windows.sort_unstable_by_key(|(key, _)| *key);
            let WriteSet { profiles, blocks, keys, ledger, garbage, boards, .. } = first;
            (slice.profiles, slice.blocks, slice.keys, slice.ledger) = (profiles, blocks, keys, ledger);
            (slice.garbage, slice.boards) = (garbage, boards);
        }
        (slices.0, change)
    }
}

#[derive(Default)]
struct Slices(BTreeMap<usize, WriteSet>);

impl Slices {
    fn of(&mut self, shard: usize) -> &mut WriteSet {
        self.0.entry(shard).or_default()
    }
}
