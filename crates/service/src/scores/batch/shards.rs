//! The shards of a batch, if a store spreads players over several databases.

use super::kind::{Access, ScoreRequest, TargetRow, on_kind};
use tally_rules::PlayerId;
use tally_store::{ShardSet, Store};

/// The shard of what belongs to no player.
pub(crate) const FIRST: usize = 0;

/// The shards of some rows.
pub(crate) struct Shards<'a> {
    store: &'a dyn Store,
    pub(crate) set: ShardSet,
}

impl<'a> Shards<'a> {
    pub(crate) fn new(store: &'a dyn Store) -> Self {
        Self { store, set: ShardSet::default() }
    }

    /// The shards of a batch. Rows without a player belong to the first one.
    pub(super) fn of(batch: &[ScoreRequest], store: &'a dyn Store) -> ShardSet {
        let mut shards = Self::new(store);
        if store.shards() > 1 {
            batch.iter().for_each(|request| on_kind!(request, one => one.shards(&mut shards)));
        }
        if shards.set.is_empty() { ShardSet::of(FIRST) } else { shards.set }
    }

    /// Players that are found by rank may be anywhere.
    pub(crate) fn row(&mut self, row: TargetRow<'_>) {
        match row.access {
            Access::Take => self.all(),
            _ => row.players.iter().for_each(|player| self.player(player)),
        }
    }

    pub(crate) fn all(&mut self) {
        self.set = ShardSet::first(self.store.shards());
    }

    pub(crate) fn player(&mut self, player: &PlayerId) {
        self.set.insert(self.store.shard_of(player));
    }
}
