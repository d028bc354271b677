//! Where a batch's records are, for a store that spreads them over several databases: what concerns one of them is not
//! asked of the others, and does not wait for them.
//!
//! To the store only a hint: without it the store finds out by deciding. Not here: which lane a player belongs to.

use super::command::{Ban, Erase, ImportChunk, Remove, Request, Submit};
use super::left_out::LeftOut;
use super::steps::{Commands, Step};
use std::collections::BTreeMap;
use tally_rules::PlayerId;
use tally_rules::idempotency::{Identity, RequestKey};
use tally_store::{Plan, ShardSet, Store};

/// Tells a plan what its batch concerns.
pub(super) fn hint(plan: &mut Plan, batch: &[Request], left_out: &LeftOut, store: &dyn Store) {
    if store.shards() == 1 {
        return;
    }
    let spread = Spread::of(batch, left_out, store);
    plan.shards = spread.shards;
    if plan.shards.len() > 1 {
        let homes = plan.requests.iter().map(|key| spread.requests.get(key).copied());
        plan.request_shards = homes.collect::<Option<_>>().unwrap_or_default();
    }
}

/// Whose other batches a batch must not meet: those of the same databases.
pub(super) fn places(batch: &[Request], left_out: &LeftOut, store: &dyn Store) -> ShardSet {
    // These change what everybody looks at.
    let of_all = |request: &Request| match request {
        Request::Ban(_) | Request::Erase(_) | Request::Redefine(_) | Request::Vanish(_) => true,
        Request::Submit(_) | Request::Remove(_) | Request::Import(_) | Request::Commands(_) => false,
    };
    if store.shards() == 1 || batch.iter().any(of_all) {
        return ShardSet::first(store.shards());
    }
    Spread::of(batch, left_out, store).shards
}

/// What one command concerns.
pub(super) fn of_step(step: &Step, store: &dyn Store) -> ShardSet {
    let mut spread = Spread::new(store);
    spread.step(step);
    spread.shards
}

struct Spread<'a> {
    store: &'a dyn Store,
    shards: ShardSet,
    /// The shard of the player of each request that has one.
    requests: BTreeMap<&'a RequestKey, usize>,
}

impl<'a> Spread<'a> {
    fn new(store: &'a dyn Store) -> Self {
        Self { store, shards: ShardSet::default(), requests: BTreeMap::new() }
    }

    fn of(batch: &'a [Request], left_out: &LeftOut, store: &'a dyn Store) -> Self {
        let mut spread = Self::new(store);
        batch.iter().for_each(|request| spread.request(request, left_out));
        spread
    }

    fn request(&mut self, request: &'a Request, left_out: &LeftOut) {
        match request {
            Request::Submit(submit) => self.submit(submit),
            Request::Remove(Remove { player, identity, .. })
            | Request::Ban(Ban { player, identity, .. })
            | Request::Erase(Erase { player, identity, .. }) => self.player(player, identity.as_ref()),
            Request::Import(ImportChunk { rows, .. }) => {
                rows.iter().for_each(|(_, write)| self.player(&write.player, None));
            }
            Request::Commands(Commands { steps, .. }) => {
                let stays = steps.iter().enumerate().filter(|(at, _)| left_out.fault(*at).is_none());
                stays.for_each(|(_, step)| self.step(step));
            }
            // Of no player: what they need is in the plan.
            Request::Redefine(_) | Request::Vanish(_) => {}
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
