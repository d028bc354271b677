//! Where a batch's records are, for a store that spreads them over several databases: what concerns one of them is not
//! asked of the others.
//!
//! Only a hint: without it the store finds out by deciding. Not here: which lane a player belongs to.

use super::command::{Ban, Erase, ImportChunk, Remove, Request, Submit};
use super::steps::{Commands, Step};
use std::collections::BTreeMap;
use tally_rules::PlayerId;
use tally_rules::idempotency::{Identity, RequestKey};
use tally_store::{Plan, ShardSet, Store};

/// Tells a plan what its batch concerns.
pub(super) fn hint(plan: &mut Plan, batch: &[Request], store: &dyn Store) {
    if store.shards() == 1 {
        return;
    }
    let mut spread = Spread { store, shards: ShardSet::default(), requests: BTreeMap::new() };
    batch.iter().for_each(|request| spread.request(request));
    plan.shards = spread.shards;
    if plan.shards.len() > 1 {
        let homes = plan.requests.iter().map(|key| spread.requests.get(key).copied());
        plan.request_shards = homes.collect::<Option<_>>().unwrap_or_default();
    }
}

struct Spread<'a> {
    store: &'a dyn Store,
    shards: ShardSet,
    /// The shard of the player of each request that has one.
    requests: BTreeMap<&'a RequestKey, usize>,
}

impl<'a> Spread<'a> {
    fn request(&mut self, request: &'a Request) {
        match request {
            Request::Submit(submit) => self.submit(submit),
            Request::Remove(Remove { player, identity, .. })
            | Request::Ban(Ban { player, identity, .. })
            | Request::Erase(Erase { player, identity, .. }) => self.player(player, identity.as_ref()),
            Request::Import(ImportChunk { rows, .. }) => {
                rows.iter().for_each(|(_, write)| self.player(&write.player, None));
            }
            Request::Commands(Commands { steps, .. }) => steps.iter().for_each(|step| self.step(step)),
            // Of no player: what they need is in the plan.
            _ => {}
        }
    }

    fn step(&mut self, step: &'a Step) {
        match step {
            Step::Add { items, .. } => items.iter().for_each(|(player, _)| self.player(player, None)),
            Step::Remove { players, .. } => players.iter().for_each(|player| self.player(player, None)),
            // Whoever has those ranks when it is decided.
            Step::Take { .. } => self.shards = ShardSet::first(self.store.shards()),
            Step::Submit(submit) => self.submit(submit),
            Step::Read(_) => {}
        }
    }

    fn submit(&mut self, submit: &'a Submit) {
        self.player(&submit.write.player, submit.identity.as_ref());
    }

    fn player(&mut self, player: &PlayerId, identity: Option<&'a Identity>) {
        let shard = self.store.shard_of(player);
        self.shards.insert(shard);
        self.requests.extend(identity.map(|one| (&one.key, shard)));
    }
}
