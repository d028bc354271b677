//! Which databases a batch concerns, where a store spreads players over several.
//!
//! Not here: cutting it into one batch for each (`slices`), and which lane a player belongs to (`lane`).

use super::command::{Ban, Erase, Remove, Request, Submit};
use super::steps::{Commands, Step};
use tally_rules::PlayerId;
use tally_store::{ShardSet, Store};

/// The database of what belongs to no player.
pub(super) const FIRST: usize = 0;

/// The databases that a batch concerns: those of its players, and all of them for what takes players by rank, and for the chunk of
/// an import, of which each has its own position.
pub(super) fn shards(batch: &[Request], store: &dyn Store) -> ShardSet {
    let mut spread = Spread { store, shards: ShardSet::default() };
    if store.shards() > 1 {
        batch.iter().for_each(|request| spread.request(request));
    }
    if spread.shards.is_empty() { ShardSet::of(FIRST) } else { spread.shards }
}

/// Whether a batch changes a leaderboard: no batch of any database runs beside it.
pub(super) fn concerns_all(batch: &[Request]) -> bool {
    batch.iter().any(|request| matches!(request, Request::Redefine(_) | Request::Vanish(_)))
}

/// Whether a batch bans or erases players: it is alone at their database. On the other databases nothing of these players is read.
pub(super) fn is_alone(batch: &[Request]) -> bool {
    batch.iter().any(|request| matches!(request, Request::Ban(_) | Request::Erase(_)))
}

/// The databases that some commands concern.
pub(super) fn of_steps(steps: &[Step], store: &dyn Store) -> ShardSet {
    let mut spread = Spread { store, shards: ShardSet::default() };
    steps.iter().for_each(|step| spread.step(step));
    spread.shards
}

struct Spread<'a> {
    store: &'a dyn Store,
    shards: ShardSet,
}

impl Spread<'_> {
    fn request(&mut self, request: &Request) {
        match request {
            Request::Submit(Submit { write, .. }) => self.player(&write.player),
            Request::Remove(Remove { player, .. })
            | Request::Ban(Ban { player, .. })
            | Request::Erase(Erase { player, .. }) => self.player(player),
            Request::Import(_) => self.all(),
            Request::Commands(Commands { steps, .. }) => steps.iter().for_each(|step| self.step(step)),
            Request::Redefine(_) | Request::Vanish(_) => self.shards.insert(FIRST),
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Add { items, .. } => items.iter().for_each(|(player, _)| self.player(player)),
            Step::Remove { players, .. } => players.iter().for_each(|player| self.player(player)),
            Step::Take { .. } => self.all(),
            Step::Submit(submit) => self.player(&submit.write.player),
            Step::Read(_) => {}
        }
    }

    fn all(&mut self) {
        self.shards = ShardSet::first(self.store.shards());
    }

    fn player(&mut self, player: &PlayerId) {
        self.shards.insert(self.store.shard_of(player));
    }
}
