//! The trait [`Coordination`]: how several servers share one store.
//!
//! The defaults are those of a store that one process writes to.

use crate::plan::{BatchId, BoardNo, BoardRow};
use crate::servers::{
    Bans, BoardRef, BoardState, FeedPage, FeedPosition, LostCommits, OutboxEntry, Revisions, Task,
};
use crate::{CommitTap, Reads, StoreError};
use std::sync::Arc;
use std::time::Duration;

/// The change feed, the outbox, task leases, and whether this process may answer. Methods block unless they say that they are cheap.
///
/// - **Feed.** A server that reads the feed from a position sees every later change of a board or an API key, in order.
/// - **Outbox.** A transaction with `outbox` leaves an entry until [`published`](Self::published), even if its server ends
///   in between.
/// - **Task leases save work and guarantee nothing.** Two servers may hold one at a time, so every task must be correct when
///   it runs twice.
pub trait Coordination: Reads {
    /// Everything of a live board that servers cache. With the revisions that a server knows, only later changes of bans are
    /// read, if possible.
    fn board(
        &self,
        name: BoardRef<'_>,
        _known: Option<&Revisions>,
    ) -> Result<Option<BoardState>, StoreError> {
        let named = |row: &BoardRow| match name {
            BoardRef::No(no) => row.no == no,
            BoardRef::Id(id) => row.id == *id,
        };
        let Some(row) = self.boards()?.into_iter().find(named) else { return Ok(None) };
        let (bans, windows) = (Bans::All(self.bans(row.no)?), self.windows(row.no)?);
        Ok(Some(BoardState { row, revisions: Revisions::default(), bans, windows }))
    }

    /// A page of the change feed, after a position for each database; no position is the beginning.
    fn change_feed(&self, after: &[FeedPosition]) -> Result<FeedPage, StoreError> {
        Ok(FeedPage { next: after.to_vec(), ..FeedPage::default() })
    }

    /// The random id of the store, which keeps its data in a shared Redis apart from that of other stores.
    fn id(&self) -> Result<Option<[u8; 16]>, StoreError> {
        Ok(None)
    }

    /// The microseconds by which the wall clock of this machine is ahead of the store's, at least. 0 for a store without a clock.
    /// Cheap: the last measurement.
    fn clock_ahead(&self) -> i64 {
        0
    }

    /// A number that changes if no other server was running when this process began. External data may then belong to
    /// another store, or to another state of this one.
    fn generation(&self) -> u64 {
        0
    }

    /// How long a silent server keeps its right to write. Cheap.
    fn lease_time(&self) -> Duration {
        Duration::ZERO
    }

    /// Replaces a value of [`set_meta`](crate::Maintenance::set_meta) by another one if it is still `old`; `None` is a missing one.
    /// Returns whether it did. A store that one process writes to does not need it, and never does.
    fn swap_meta(&self, _name: &str, _old: Option<&[u8]>, _new: &[u8]) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// Takes or renews the lease of a task for a time, or returns it when the time is zero. Returns whether this process has it.
    fn lease_task(&self, _task: Task, _time: Duration) -> Result<bool, StoreError> {
        Ok(true)
    }

    /// Marks the outbox entry of a transaction as published. Cheap: a later transaction removes the entry.
    fn published(&self, _batch: BatchId) {}

    /// Some outbox entries of at least this age, in the order of their ids, from the first one after `after`. An empty list
    /// means that none are left.
    fn outbox(&self, _age: Duration, _after: Option<BatchId>) -> Result<Vec<OutboxEntry>, StoreError> {
        Ok(Vec::new())
    }

    /// Merges outbox entries of this server into one, in a separate transaction. `None` if they stay as they are.
    fn merge_outbox(&self, _batches: &[BatchId]) -> Result<Option<BatchId>, StoreError> {
        Ok(None)
    }

    /// Clears outbox entries of any server, after they were published.
    fn clear_outbox(&self, _batches: &[BatchId]) -> Result<(), StoreError> {
        Ok(())
    }

    /// Whether this process is still the only writer, so that everything it derived from the store is current. Cheap,
    /// because every answer checks it. A store with several writers always returns true: their processes keep nothing
    /// derived that another could make stale.
    fn may_answer(&self) -> bool {
        true
    }

    /// Acknowledged commits that the store has lost, once that is known. From then on it refuses everything, and
    /// [`may_answer`](Self::may_answer) is false: memory has a lost history.
    fn lost(&self) -> Option<LostCommits> {
        None
    }

    /// Hands the changes of each transaction over from now on, if this process is the only writer of a database. Returns its
    /// fencing token. Once, and before any transaction.
    fn tap(&self, _tap: Arc<dyn CommitTap>) -> Option<u64> {
        None
    }

    /// The transactions whose changes are not handed over yet, because it is not known whether they have committed.
    fn tapped_in_doubt(&self) -> Vec<BatchId> {
        Vec::new()
    }

    /// The revision of each live board.
    fn board_revisions(&self) -> Result<Vec<(BoardNo, u64)>, StoreError> {
        Ok(Vec::new())
    }

    /// The end of the lease of the only writer, as the store has it since the last renewal; 0 if there is none. Cheap.
    fn renewed(&self) -> u64 {
        0
    }

    /// How long the outbox has the records that a transaction has changed, after they were published. Cheap.
    fn marks(&self) -> Duration {
        Duration::ZERO
    }
}
