//! Windows of a batch whose numbers were used before: nothing is stored under such a number before its old rows are purged.
//!
//! Each shard is queried once for each window, before the first record of it there. So an unavailable shard keeps no period of
//! the others from beginning. Not here: purging (`periods/purge`).

use super::kind::{Access, ScoreRequest, on_kind};
use super::targets::{Targets, each_row};
use crate::failure::Failure;
use crate::seeded_faults::{SeededFault, is_seeded};
use crate::servers;
use std::collections::BTreeSet;
use std::sync::Arc;
use tally_rules::Micros;
use tally_store::{ShardSet, Store, StoreError, WindowKey};

/// Shards that could not be queried, and why.
type UnavailableShards = Option<(ShardSet, StoreError)>;

impl Targets {
    /// Windows that this batch would store again while rows of the same number still wait for the purge. A new score does not
    /// count for such a window: it was closed before it was deleted. A line of a file or a changed schedule needs the number, so
    /// this returns what must be purged first. It returns unavailable shards too: the batch does nothing there.
    pub(super) fn settle_purged(
        &mut self,
        batch: &[ScoreRequest],
        store: &dyn Store,
        now: Micros,
    ) -> Result<(Vec<WindowKey>, UnavailableShards), StoreError> {
        let mut begun = Vec::new();
        batch.iter().for_each(|request| begun.extend(on_kind!(request, one => one.begins(now))));
        let stale = self.stale.iter().filter(|(_, (_, row))| row.version == 0).map(|(key, _)| *key);
        let live = self.opened.keys().chain(self.unchecked.keys()).copied();
        let keys: Vec<WindowKey> = stale.chain(live).chain(begun.iter().copied()).collect();
        if keys.is_empty() || is_seeded(SeededFault::NumberReused) {
            return Ok((Vec::new(), None));
        }
        let (waiting, unavailable) = self.read_unpurged(&keys, store)?;
        if waiting.is_empty() {
            return Ok((Vec::new(), unavailable));
        }
        begun.extend(self.unchecked.keys());
        each_row(batch, |place, row| {
            let is_imported = |key: &&WindowKey| {
                row.board.is_some_and(|board| board.no == key.board)
                    && self.rows[place].windows.contains(&key.window)
            };
            if let Access::Line(_) = row.access {
                begun.extend(waiting.iter().filter(is_imported));
            }
        });
        let needed: Vec<WindowKey> = waiting.iter().copied().filter(|key| begun.contains(key)).collect();
        if needed.is_empty() {
            waiting.iter().for_each(|key| self.leave(batch, *key));
        }
        Ok((needed, unavailable))
    }

    /// Whether one of these windows is deleted: another server changed its leaderboard, which is read again to check that.
    pub(super) fn is_forgotten(&self, windows: &[WindowKey], store: &dyn Store) -> Result<bool, Failure> {
        for (key, (board, live)) in &self.unchecked {
            if board.is_shared() && windows.contains(key) {
                servers::renew(store, board)?;
                if !board.periods().live(key.window).is_some_and(|now| Arc::ptr_eq(now, live)) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Which of these windows a shard of the batch must purge, and which shards are unavailable.
    fn read_unpurged(
        &self,
        keys: &[WindowKey],
        store: &dyn Store,
    ) -> Result<(BTreeSet<WindowKey>, UnavailableShards), StoreError> {
        let (mut waiting, mut unavailable): (_, UnavailableShards) = (BTreeSet::new(), None);
        for shard in self.shards.iter() {
            match store.unpurged(keys, shard) {
                Ok(some) => {
                    let live = self.opened.iter().chain(&self.unchecked);
                    let live = live.filter(|(key, _)| !some.contains(key));
                    live.for_each(|(_, (_, live))| live.check(shard));
                    waiting.extend(some);
                }
                Err(error @ StoreError::ShardUnavailable { .. }) => {
                    unavailable.get_or_insert((ShardSet::default(), error)).0.insert(shard);
                }
                Err(error) => return Err(error),
            }
        }
        Ok((waiting, unavailable))
    }

    /// New scores do not count for a window, as if it were closed.
    fn leave(&mut self, batch: &[ScoreRequest], key: WindowKey) {
        let Some((board, live)) = self.opened.remove(&key) else { return };
        let name = board.periods().rule_no(live.rule).map(|state| state.name(live.span.start));
        each_row(batch, |place, row| {
            let target = &mut self.rows[place];
            if row.board.is_some_and(|of| of.no == key.board) && target.windows.contains(&key.window) {
                target.windows.retain(|window| *window != key.window);
                target.closed.push(name.clone().unwrap_or_default());
            }
        });
    }
}
