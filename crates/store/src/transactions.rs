//! The trait [`Transactions`]: the only way in which rows change.
//!
//! Not here: rules (a transaction asks the caller to `decide`), and any retry policy. The lanes have it, from the kinds of
//! [`StoreError`].

use crate::StoreError;
use crate::plan::{BatchId, Committed, Loaded, ReadSet, WriteSet};
use tally_rules::PlayerId;

/// Transactions. Every method blocks; callers use dedicated threads, never tasks of a runtime.
///
/// The contract suite checks these guarantees on every backend:
///
/// - **One transaction.** [`run`](Self::run) reads the whole read set, calls `decide`, and writes the write set as one unit. Later
///   reads see all of it or none. Over several databases that holds for each of them, see [`StoreError::Partly`].
/// - **Durable when it returns.** After `Ok`, a killed process or machine loses nothing of it. With [`crate::Durability::Relaxed`], a
///   killed process loses nothing, and a stopped machine loses the last second at most. After an error other than
///   [`StoreError::InDoubt`], nothing was done.
/// - **Decided on the present.** The rows that `decide` saw do not change before its changes are written, whatever other
///   threads do.
/// - **Keyed.** The cost of a transaction depends on its read set and write set, not on what else is stored.
pub trait Transactions: Send + Sync {
    /// The number of shards that records are spread over.
    fn shards(&self) -> usize {
        1
    }

    /// The home shard of a player: below [`shards`](Self::shards), and always the same.
    fn shard_of(&self, _player: &PlayerId) -> usize {
        0
    }

    /// Reads the read set, decides, writes and commits. The store may call `decide` again, after an internal retry or when an
    /// assumption did not hold. So `decide` depends only on what was loaded, and only its last call counts.
    fn run(
        &self,
        plan: &ReadSet,
        decide: &mut dyn FnMut(&Loaded) -> WriteSet,
    ) -> Result<Committed, StoreError>;

    /// The outcome of a transaction that ended in [`StoreError::InDoubt`]: `None` means that it was not done and never will be.
    /// The answer never changes. An error means that the store cannot tell now.
    fn resolve(&self, batch: &BatchId) -> Result<Option<Committed>, StoreError>;
}
