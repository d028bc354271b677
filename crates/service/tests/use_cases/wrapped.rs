//! A store in front of another one. A test states the difference; everything else is the inner store's.
//!
//! Not here: the differences (`intercepted`, `wallets/histories/dying`).

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use tally_rules::audit::{AuditEntry, AuditId};
use tally_rules::profile::Profile;
use tally_rules::{Micros, PlayerId, Record};
use tally_store::{
    BatchId, BlockKey, BoardNo, BoardRef, BoardRow, BoardState, CommitTap, Committed, Coordination,
    CorruptRow, FeedPage, FeedPosition, ImportKey, ImportRow, KeyRow, Ledger, Listing, Loaded, LostCommits,
    Maintenance, OutboxEntry, ReadSet, Reads, Revisions, ScoreKey, ScoreState, Slow, Store, StoreError,
    StoredBlock, Task, Transactions, Window, WindowKey, WindowRow, WriteSet,
};

/// The difference from the inner store.
pub(crate) trait Difference: Send + Sync + 'static {
    fn inner(&self) -> &dyn Store;

    fn run(
        &self,
        plan: &ReadSet,
        decide: &mut dyn FnMut(&Loaded) -> WriteSet,
    ) -> Result<Committed, StoreError> {
        self.inner().run(plan, decide)
    }

    fn resolve(&self, batch: &BatchId) -> Result<Option<Committed>, StoreError> {
        self.inner().resolve(batch)
    }

    fn board(&self, name: BoardRef<'_>, known: Option<&Revisions>) -> Result<Option<BoardState>, StoreError> {
        self.inner().board(name, known)
    }

    fn clock_ahead(&self) -> i64 {
        self.inner().clock_ahead()
    }

    fn ledger(&self) -> &dyn Ledger {
        self.inner().ledger()
    }

    fn bans(&self, board: BoardNo) -> Result<Vec<PlayerId>, StoreError> {
        self.inner().bans(board)
    }

    fn tap(&self, tap: Arc<dyn CommitTap>) -> Option<u64> {
        self.inner().tap(tap)
    }

    fn board_revisions(&self) -> Result<Vec<(BoardNo, u64)>, StoreError> {
        self.inner().board_revisions()
    }
}

/// The store.
pub(crate) struct Wrapped<D>(pub(crate) D);

impl<D> Deref for Wrapped<D> {
    type Target = D;

    fn deref(&self) -> &D {
        &self.0
    }
}

impl<D: Difference> Transactions for Wrapped<D> {
    fn shards(&self) -> usize {
        self.0.inner().shards()
    }

    fn shard_of(&self, player: &PlayerId) -> usize {
        self.0.inner().shard_of(player)
    }

    fn run(
        &self,
        plan: &ReadSet,
        decide: &mut dyn FnMut(&Loaded) -> WriteSet,
    ) -> Result<Committed, StoreError> {
        self.0.run(plan, decide)
    }

    fn resolve(&self, batch: &BatchId) -> Result<Option<Committed>, StoreError> {
        self.0.resolve(batch)
    }
}

impl<D: Difference> Reads for Wrapped<D> {
    fn ledger(&self) -> &dyn Ledger {
        self.0.ledger()
    }

    fn boards(&self) -> Result<Vec<BoardRow>, StoreError> {
        self.0.inner().boards()
    }

    fn keys(&self) -> Result<Vec<KeyRow>, StoreError> {
        self.0.inner().keys()
    }

    fn list_audit(
        &self,
        before: AuditId,
        limit: usize,
    ) -> Result<Listing<(AuditId, AuditEntry)>, StoreError> {
        self.0.inner().list_audit(before, limit)
    }

    fn had_keys(&self) -> Result<bool, StoreError> {
        self.0.inner().had_keys()
    }

    fn scan_versions(
        &self,
        board: BoardNo,
        window: Window,
        after: Option<&PlayerId>,
        limit: usize,
        each: &mut dyn FnMut(PlayerId, Record, u64),
    ) -> Result<usize, StoreError> {
        self.0.inner().scan_versions(board, window, after, limit, each)
    }

    fn scan_states(
        &self,
        shard: Option<usize>,
        of: (BoardNo, Window),
        after: Option<&PlayerId>,
        limit: usize,
        each: &mut dyn FnMut(PlayerId, Option<Record>, u64),
    ) -> Result<usize, StoreError> {
        self.0.inner().scan_states(shard, of, after, limit, each)
    }

    fn states(&self, keys: &[ScoreKey]) -> Result<Vec<Option<ScoreState>>, StoreError> {
        self.0.inner().states(keys)
    }

    fn windows(&self, board: BoardNo) -> Result<Vec<WindowRow>, StoreError> {
        self.0.inner().windows(board)
    }

    fn block(&self, key: &BlockKey) -> Result<Option<StoredBlock>, StoreError> {
        self.0.inner().block(key)
    }

    fn records(&self, keys: &[ScoreKey]) -> Result<Vec<Option<Record>>, StoreError> {
        self.0.inner().records(keys)
    }

    fn count_scores(&self, board: BoardNo, window: Window) -> Result<u64, StoreError> {
        self.0.inner().count_scores(board, window)
    }

    fn import_progress(&self, key: &ImportKey) -> Result<Option<ImportRow>, StoreError> {
        self.0.inner().import_progress(key)
    }

    fn bans(&self, board: BoardNo) -> Result<Vec<PlayerId>, StoreError> {
        self.0.bans(board)
    }

    fn profiles(&self, players: &[PlayerId]) -> Result<Vec<Result<Option<Profile>, StoreError>>, StoreError> {
        self.0.inner().profiles(players)
    }

    fn meta(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.0.inner().meta(name)
    }
}

impl<D: Difference> Coordination for Wrapped<D> {
    fn board(&self, name: BoardRef<'_>, known: Option<&Revisions>) -> Result<Option<BoardState>, StoreError> {
        self.0.board(name, known)
    }

    fn change_feed(&self, after: &[FeedPosition]) -> Result<FeedPage, StoreError> {
        self.0.inner().change_feed(after)
    }

    fn id(&self) -> Result<Option<[u8; 16]>, StoreError> {
        self.0.inner().id()
    }

    fn clock_ahead(&self) -> i64 {
        self.0.clock_ahead()
    }

    fn generation(&self) -> u64 {
        self.0.inner().generation()
    }

    fn lease_time(&self) -> Duration {
        self.0.inner().lease_time()
    }

    fn swap_meta(&self, name: &str, old: Option<&[u8]>, new: &[u8]) -> Result<bool, StoreError> {
        self.0.inner().swap_meta(name, old, new)
    }

    fn lease_task(&self, task: Task, time: Duration) -> Result<bool, StoreError> {
        self.0.inner().lease_task(task, time)
    }

    fn published(&self, batch: BatchId) {
        self.0.inner().published(batch);
    }

    fn outbox(&self, age: Duration, after: Option<BatchId>) -> Result<Vec<OutboxEntry>, StoreError> {
        self.0.inner().outbox(age, after)
    }

    fn merge_outbox(&self, batches: &[BatchId]) -> Result<Option<BatchId>, StoreError> {
        self.0.inner().merge_outbox(batches)
    }

    fn clear_outbox(&self, batches: &[BatchId]) -> Result<(), StoreError> {
        self.0.inner().clear_outbox(batches)
    }

    fn may_answer(&self) -> bool {
        self.0.inner().may_answer()
    }

    fn lost(&self) -> Option<LostCommits> {
        self.0.inner().lost()
    }

    fn tap(&self, tap: Arc<dyn CommitTap>) -> Option<u64> {
        self.0.tap(tap)
    }

    fn board_revisions(&self) -> Result<Vec<(BoardNo, u64)>, StoreError> {
        self.0.board_revisions()
    }
}

impl<D: Difference> Maintenance for Wrapped<D> {
    fn name(&self) -> &'static str {
        self.0.inner().name()
    }

    fn expire_requests(&self, before: Micros, limit: usize) -> Result<usize, StoreError> {
        self.0.inner().expire_requests(before, limit)
    }

    fn purge_deleted(&self, limit: usize) -> Result<usize, StoreError> {
        self.0.inner().purge_deleted(limit)
    }

    fn unpurged(&self, windows: &[WindowKey], shard: usize) -> Result<Vec<WindowKey>, StoreError> {
        self.0.inner().unpurged(windows, shard)
    }

    fn purge_window(&self, window: WindowKey, limit: usize) -> Result<bool, StoreError> {
        self.0.inner().purge_window(window, limit)
    }

    fn set_meta(&self, name: &str, value: &[u8]) -> Result<(), StoreError> {
        self.0.inner().set_meta(name, value)
    }

    fn checkpoint(&self) -> Result<(), StoreError> {
        self.0.inner().checkpoint()
    }

    fn corrupt_rows(&self) -> Vec<CorruptRow> {
        self.0.inner().corrupt_rows()
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        self.0.inner().gauges()
    }

    fn slow(&self) -> Vec<Slow> {
        self.0.inner().slow()
    }

    fn worked_since(&self, since: std::time::Instant) -> Vec<&'static str> {
        self.0.inner().worked_since(since)
    }
}
