//! A plan and its changes, shard by shard, and what the shards have read put together again.
//!
//! Records and bans are where their player is; a request is where its effect is; boards are on all, so that whoever
//! writes a record sees in its own transaction that its board is there; everything else is on the first. Pure. Not
//! here: transactions.

use super::home::home;
use crate::plan::{Changes, Gone, Loaded, Plan};
use crate::{LedgerPlan, ShardSet};
use std::collections::BTreeMap;
use tally_rules::idempotency::{RequestKey, Stored};

/// The one that has what is not spread.
pub(super) const FIRST: usize = 0;

/// How a plan is split among some of `all` shards.
pub(super) struct Split<'a> {
    plan: &'a Plan,
    all: usize,
    /// Those that are asked.
    pub(super) shards: ShardSet,
    /// The shard of each score of the plan.
    homes: Vec<usize>,
}

/// Shards that a plan needs.
pub(super) fn concerned(plan: &Plan, all: usize) -> ShardSet {
    let mut shards = plan.shards;
    shards.extend_with(plan.scores.iter().map(|key| home(&key.player, all)));
    if !plan.requests.is_empty() && plan.shards.is_empty() {
        return ShardSet::first(all);
    }
    shards.extend_with(plan.request_shards.iter().copied());
    let of_first = !(plan.board_names.is_empty()
        && plan.imports.is_empty()
        && plan.profiles.is_empty()
        && plan.ledger.is_empty());
    if of_first || shards.is_empty() {
        shards.insert(FIRST);
    }
    shards
}

impl ShardSet {
    fn extend_with(&mut self, shards: impl Iterator<Item = usize>) {
        shards.for_each(|shard| self.insert(shard));
    }
}

impl<'a> Split<'a> {
    /// Splits a plan among shards that are at least those it needs.
    pub(super) fn new(plan: &'a Plan, all: usize, shards: ShardSet) -> Self {
        let homes = plan.scores.iter().map(|key| home(&key.player, all)).collect();
        Self { plan, all, shards, homes }
    }

    /// The lowest of its shards: it says what becomes of a transaction of several.
    pub(super) fn lowest(&self) -> usize {
        self.shards.lowest().unwrap_or(FIRST)
    }

    /// What one shard reads.
    pub(super) fn plan(&self, shard: usize) -> Plan {
        let plan = self.plan;
        let scores = plan.scores.iter().zip(&self.homes).filter(|(_, home)| **home == shard);
        let first = shard == FIRST;
        let of_first = |wanted: bool| wanted && first;
        Plan {
            durability: plan.durability,
            boards: plan.boards.clone(),
            board_names: if of_first(true) { plan.board_names.clone() } else { Vec::new() },
            scores: scores.map(|(key, _)| key.clone()).collect(),
            requests: self.requests(shard).map(|(_, key)| key.clone()).collect(),
            imports: if first { plan.imports.clone() } else { Vec::new() },
            profiles: if first { plan.profiles.clone() } else { Vec::new() },
            ledger: if first { plan.ledger.clone() } else { LedgerPlan::default() },
            ..Plan::default()
        }
    }

    /// Requests that a shard is asked for, with their places in the plan.
    fn requests(&self, shard: usize) -> impl Iterator<Item = (usize, &RequestKey)> {
        let known = &self.plan.request_shards;
        let asked = move |place: usize| known.get(place).is_none_or(|known| *known == shard);
        self.plan.requests.iter().enumerate().filter(move |(place, _)| asked(*place))
    }

    /// What was read, put together, and where each request was found.
    pub(super) fn loaded(&self, read: &BTreeMap<usize, Loaded>) -> (Loaded, Vec<Option<usize>>) {
        let plan = self.plan;
        let mut scores: BTreeMap<usize, _> =
            read.iter().map(|(shard, loaded)| (*shard, loaded.scores.iter())).collect();
        let mut score = |home: &usize| scores.get_mut(home).and_then(Iterator::next).copied().flatten();
        let mut requests: Vec<Option<Stored>> = vec![None; plan.requests.len()];
        let mut found = vec![None; plan.requests.len()];
        for (shard, loaded) in read {
            for ((place, _), stored) in self.requests(*shard).zip(&loaded.requests) {
                // One whose time was over may have been done again elsewhere: the newest holds.
                let newer = |stored: &Stored| requests[place].as_ref().is_none_or(|old| old.at < stored.at);
                if stored.as_ref().is_some_and(newer) {
                    requests[place].clone_from(stored);
                    found[place] = Some(*shard);
                }
            }
        }
        let boards = read.get(&self.lowest()).map_or_else(Vec::new, |loaded| loaded.boards.clone());
        let first = read.get(&FIRST).cloned().unwrap_or_default();
        let loaded = Loaded {
            boards,
            board_names: first.board_names,
            next_board: first.next_board,
            scores: self.homes.iter().map(&mut score).collect(),
            requests,
            imports: first.imports,
            profiles: first.profiles,
            ledger: first.ledger,
        };
        (loaded, found)
    }

    /// The changes of each shard; those of none are left out. `found` says where requests were.
    pub(super) fn changes(&self, changes: Changes, found: &[Option<usize>]) -> BTreeMap<usize, Changes> {
        let mut parts = Parts { by_shard: BTreeMap::new(), all: self.all };
        for (key, record) in changes.scores {
            parts.of(home(&key.player, self.all)).scores.push((key, record));
        }
        for (key, hidden) in changes.bans {
            parts.of(home(&key.player, self.all)).bans.push((key, hidden));
        }
        // Where all of it is one player's, it is there, also where a part of its effect is elsewhere: a retry looks there
        // alone. What nobody knows a place for is on the lowest.
        let mut of_players = parts.by_shard.keys().copied();
        let only = of_players.next().filter(|_| of_players.next().is_none());
        let hinted = self.plan.shards.lowest().filter(|_| self.plan.shards.len() == 1);
        let otherwise = hinted.or(only).unwrap_or_else(|| self.lowest());
        for (key, stored) in changes.requests {
            let place = self.plan.requests.binary_search(&key).ok();
            let known = place.and_then(|place| self.plan.request_shards.get(place).copied());
            let shard = place.and_then(|place| found.get(place).copied().flatten()).or(known);
            parts.of(shard.unwrap_or(otherwise)).requests.push((key, stored));
        }
        for (key, row) in changes.parts {
            match row {
                // A period that begins is noted beside its first record; the rest of its life is on the first shard.
                Some(row) if !row.closed => parts.of(self.lowest()).parts.push((key, Some(row))),
                Some(row) => parts.of(FIRST).parts.push((key, Some(row))),
                None => parts.each(|part| part.parts.push((key, None))),
            }
        }
        for gone in changes.gone {
            match gone {
                Gone::Part(_) => parts.each(|part| part.gone.push(gone)),
                Gone::Blocks(..) => parts.of(FIRST).gone.push(gone),
            }
        }
        for change in &changes.boards {
            parts.each(|part| part.boards.push(change.clone()));
        }
        let first = Changes {
            imports: changes.imports,
            profiles: changes.profiles,
            blocks: changes.blocks,
            keys: changes.keys,
            ledger: changes.ledger,
            ..Changes::default()
        };
        if !first.is_empty() {
            let Changes { imports, profiles, blocks, keys, ledger, .. } = first;
            let part = parts.of(FIRST);
            (part.imports, part.profiles, part.blocks, part.keys) = (imports, profiles, blocks, keys);
            part.ledger = ledger;
        }
        parts.by_shard
    }
}

struct Parts {
    by_shard: BTreeMap<usize, Changes>,
    all: usize,
}

impl Parts {
    fn of(&mut self, shard: usize) -> &mut Changes {
        self.by_shard.entry(shard).or_default()
    }

    fn each(&mut self, mut change: impl FnMut(&mut Changes)) {
        (0..self.all).for_each(|shard| change(self.of(shard)));
    }
}
