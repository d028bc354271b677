//! Periods of a batch whose numbers were used before: nothing is stored under one of them before its old rows are purged.
//!
//! Each database is asked once for each period, before the first record of it there: so a database that is away keeps no period of
//! the others from beginning. Not here: purging (`periods/purge`).

use super::aim::Aims;
use super::command::Request;
use super::redefine;
use crate::boards::Board;
use crate::plants::{Plant, is_planted};
use std::collections::BTreeSet;
use std::sync::Arc;
use tally_rules::Micros;
use tally_store::{PartKey, PartRow, ShardSet, Store, StoreError};

/// Databases that could not be asked, and why.
type Unasked = Option<(ShardSet, StoreError)>;

impl Aims {
    /// Parts that this batch would store anew while rows of the same number still wait to be purged. A new score does not
    /// count for one: it was closed before it was forgotten. What has to be purged first is returned: a dated line or a
    /// changed schedule needs the number. Databases that cannot be asked are returned
    /// too: the batch does nothing there.
    pub(super) fn settle_purged(
        &mut self,
        batch: &[Request],
        store: &dyn Store,
        now: Micros,
    ) -> Result<(Vec<PartKey>, Unasked), StoreError> {
        let begun = |request: &Request| match request {
            Request::Redefine(redefine) => redefine::begun(redefine, now),
            _ => Vec::new(),
        };
        let begun: Vec<PartKey> = batch.iter().flat_map(begun).collect();
        let fresh = |(_, row): &(Arc<Board>, PartRow)| row.version == 0;
        let stale = self.stale.iter().filter(|(_, one)| fresh(one)).map(|(key, _)| *key);
        let live = self.opened.keys().chain(self.unchecked.keys()).copied();
        let keys: Vec<PartKey> = stale.chain(live).chain(begun.iter().copied()).collect();
        if keys.is_empty() || is_planted(Plant::NumberReused) {
            return Ok((Vec::new(), None));
        }
        let (waiting, away) = self.ask_unpurged(&keys, store)?;
        if waiting.is_empty() {
            return Ok((Vec::new(), away));
        }
        let imported = |key: &PartKey| {
            let of = batch.iter().zip(&self.rows).filter(
                |(request, _)| matches!(request, Request::Import(chunk) if chunk.board.no == key.board),
            );
            of.flat_map(|(_, rows)| rows).any(|row| row.parts.contains(&key.part))
        };
        let needed = |key: &PartKey| imported(key) || begun.contains(key) || self.unchecked.contains_key(key);
        let needed: Vec<PartKey> = waiting.iter().copied().filter(needed).collect();
        if needed.is_empty() {
            waiting.iter().for_each(|key| self.leave(batch, *key));
        }
        Ok((needed, away))
    }

    /// Which of these parts a database of the batch has to purge, and which databases are away.
    fn ask_unpurged(
        &self,
        keys: &[PartKey],
        store: &dyn Store,
    ) -> Result<(BTreeSet<PartKey>, Unasked), StoreError> {
        let (mut waiting, mut away) = (BTreeSet::new(), None);
        for shard in self.shards.iter() {
            match store.unpurged(keys, shard) {
                Ok(some) => {
                    let opened = self.opened.iter().map(|(key, (_, live))| (key, live));
                    let live = opened.chain(&self.unchecked).filter(|(key, _)| !some.contains(key));
                    live.for_each(|(_, live)| live.check(shard));
                    waiting.extend(some);
                }
                Err(error @ StoreError::ShardAway { .. }) => {
                    away.get_or_insert((ShardSet::default(), error)).0.insert(shard);
                }
                Err(error) => return Err(error),
            }
        }
        Ok((waiting, away))
    }

    /// New scores do not count for a part, as if it were closed.
    fn leave(&mut self, batch: &[Request], key: PartKey) {
        let Some((board, live)) = self.opened.remove(&key) else { return };
        let periods = board.periods();
        let name = periods.rule_no(live.rule).map(|state| state.name(live.span.start)).unwrap_or_default();
        for (request, rows) in batch.iter().zip(&mut self.rows) {
            for (at, row) in rows.iter_mut().enumerate() {
                if request.board_of(at).is_some_and(|of| of.no == key.board) && row.parts.contains(&key.part)
                {
                    row.parts.retain(|part| *part != key.part);
                    row.closed.push(name.clone());
                }
            }
        }
    }
}
