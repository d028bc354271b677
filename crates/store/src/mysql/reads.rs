//! Reads without a transaction.

use super::imports::Imports;
use super::{MySqlStore, audit, bans, boards, keys, meta, profiles, scores, table, windows};
use crate::plan::{
    BlockKey, BoardNo, BoardRow, ImportKey, ImportRow, KeyRow, ScoreKey, StoredBlock, Window, WindowRow,
};
use crate::servers::ScoreState;
use crate::{Ledger, Listing, Reads, StoreError};
use std::collections::HashSet;
use tally_rules::audit::{AuditEntry, AuditId};
use tally_rules::profile::Profile;
use tally_rules::{PlayerId, Record};

impl Reads for MySqlStore {
    fn ledger(&self) -> &dyn Ledger {
        self
    }

    fn boards(&self) -> Result<Vec<BoardRow>, StoreError> {
        boards::read_sound(self.pool.query(&boards::select_all())?)
    }

    fn keys(&self) -> Result<Vec<KeyRow>, StoreError> {
        keys::read_all(self.pool.query(&keys::select_all())?)
    }

    fn had_keys(&self) -> Result<bool, StoreError> {
        keys::read_had(self.pool.query(&keys::select_had())?)
    }

    fn list_audit(
        &self,
        before: AuditId,
        limit: usize,
    ) -> Result<Listing<(AuditId, AuditEntry)>, StoreError> {
        audit::list(self, before, limit)
    }

    fn scan_versions(
        &self,
        board: BoardNo,
        window: Window,
        after: Option<&PlayerId>,
        limit: usize,
        each: &mut dyn FnMut(PlayerId, Record, u64),
    ) -> Result<usize, StoreError> {
        scores::scan_all(&self.pool, (board, window, false), after, limit, &mut |player, record, version| {
            if let Some(record) = record {
                each(player, record, version);
            }
        })
    }

    fn scan_states(
        &self,
        _shard: Option<usize>,
        (board, window): (BoardNo, Window),
        after: Option<&PlayerId>,
        limit: usize,
        each: &mut dyn FnMut(PlayerId, Option<Record>, u64),
    ) -> Result<usize, StoreError> {
        scores::scan_all(&self.pool, (board, window, true), after, limit, each)
    }

    fn states(&self, keys: &[ScoreKey]) -> Result<Vec<Option<ScoreState>>, StoreError> {
        scores::states(&self.pool, keys)
    }

    fn windows(&self, board: BoardNo) -> Result<Vec<WindowRow>, StoreError> {
        windows::read(&mut self.pool.query(&windows::select(board))?)
    }

    fn block(&self, key: &BlockKey) -> Result<Option<StoredBlock>, StoreError> {
        Ok(self.pool.query(&windows::select_block(key))?.list(1, "blocks", windows::decode_block)?.pop())
    }

    fn records(&self, keys: &[ScoreKey]) -> Result<Vec<Option<Record>>, StoreError> {
        Ok(self.states(keys)?.into_iter().map(|state| state?.0).collect())
    }

    fn count_scores(&self, board: BoardNo, window: Window) -> Result<u64, StoreError> {
        scores::read_count(self.pool.query(&scores::count(board, window))?)
    }

    fn import_progress(&self, key: &ImportKey) -> Result<Option<ImportRow>, StoreError> {
        table::get_one::<Imports>(&self.pool, key)
    }

    fn bans(&self, board: BoardNo) -> Result<Vec<PlayerId>, StoreError> {
        bans::read(&mut self.pool.query(&bans::select(board))?)
    }

    fn banned(&self, board: BoardNo, players: &[PlayerId]) -> Result<HashSet<PlayerId>, StoreError> {
        bans::some(&self.pool, board, players)
    }

    fn profiles(&self, players: &[PlayerId]) -> Result<Vec<Result<Option<Profile>, StoreError>>, StoreError> {
        profiles::of(&self.pool, players)
    }

    fn meta(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        meta::read(&mut self.pool.query(&meta::select(name))?)
    }
}
