//! The truth: what is acknowledged is here, and everything else is derived from it.
//!
//! [`Store`] is the trait with its guarantees; [`plan`] says what a transaction reads and writes, in the words of the
//! domain; each backend is a folder with one file per table. There is no ORM and no query builder: access is by key,
//! rows map to types in one place per table. Not here: rules (a transaction asks the caller to `decide`), ranks, and
//! any retry policy (the lanes have it, from the kinds of [`StoreError`]).

pub mod books;
pub mod books_scores;
mod contest_reads;
pub mod contests;
pub(crate) mod damage;
mod error;
pub mod events;
mod hold;
pub mod ledger;
pub mod mysql;
pub mod payments;
pub mod plan;
pub mod series;
pub mod servers;
mod shard_set;
pub mod shards;
mod slow;
pub mod sqlite;

pub use books::{Books, OfContests};
pub use books_scores::ScoreBooks;
pub use contest_reads::{Contests, Due, DueAfter};
pub use contests::{ContestChanges, ContestLoaded, ContestPlan, EntrantKey, PayoutKey};
pub use damage::{DamagedRow, Listing};
pub use error::StoreError;
pub use events::{EventKey, EventReads, Topic};
pub use ledger::{Ledger, LedgerChanges, LedgerLoaded, LedgerPlan};
pub use payments::PaymentReads;
pub use plan::{
    BanKey, BatchId, Block, BlockKey, BoardChange, BoardNo, BoardRow, Changes, Committed, Durability, Gone,
    ImportKey, ImportRow, KeyChange, KeyRow, Loaded, Part, PartKey, PartRow, Plan, ScoreKey,
};
pub use series::SeriesReads;
pub use servers::{
    Bans, BoardState, Changed, FeedPosition, LostCommits, Mark, Marked, Name, Revisions, ScoreState, Task,
};

pub use shard_set::{SHARDS_MAX, ShardSet};
pub use slow::{SLOW, Slow, Stage};

use std::collections::HashSet;
use std::time::Duration;
use tally_rules::profile::Profile;
use tally_rules::{Micros, PlayerId, Record};

/// A durable store. Every method blocks; callers are threads of their own, never tasks of a runtime.
///
/// Guarantees that the contract suite checks of every backend:
///
/// - **One transaction.** [`run`](Self::run) reads everything of the plan, calls `decide` and writes what it returned,
///   as one unit: all of it is visible to later reads, or none. Over several databases that holds for each of them, see
///   [`StoreError::Partly`].
/// - **Durable when it returns.** After `Ok`, a killed process or machine loses nothing of it, unless the plan said
///   [`Durability::Relaxed`]: then a killed process loses nothing, and a machine that stops the last second at most.
///   After an error other than [`StoreError::LostAtCommit`], nothing of it was done.
/// - **Decided on the present.** What `decide` saw does not change before its changes are written, whatever other
///   threads do.
/// - **Keyed.** The cost of a transaction depends on its plan and changes, not on what else is stored.
pub trait Store: Send + Sync + 'static {
    /// The backend's name, for messages, metrics and the contract suite.
    fn name(&self) -> &'static str;

    /// How many databases records are spread over by player.
    fn shards(&self) -> usize {
        1
    }

    /// Which of them has the records of a player: below [`shards`](Self::shards), and always the same. A transaction that
    /// concerns one of them needs none of the others.
    fn shard_of(&self, _player: &PlayerId) -> usize {
        0
    }

    /// Reads the plan, decides, writes and commits. `decide` may be called again, after an internal retry or where what
    /// was loaded turns out not to be so: it must depend on nothing but what was loaded, and only its last call counts.
    fn run(&self, plan: &Plan, decide: &mut dyn FnMut(&Loaded) -> Changes) -> Result<Committed, StoreError>;

    /// What became of a transaction that ended in [`StoreError::LostAtCommit`]: `None` says that it was not done and never
    /// will be. Asking again gives the same answer. An error says that nobody can know now.
    fn became(&self, batch: &BatchId) -> Result<Option<Committed>, StoreError>;

    /// What can be read of members and money.
    fn ledger(&self) -> &dyn Ledger;

    /// Every live board, in order of number. One whose definition cannot be read is left out, and [noted](Self::damaged) by
    /// its name.
    fn boards(&self) -> Result<Vec<BoardRow>, StoreError>;

    /// Every API key that was not revoked, in order of creation. One that cannot be read is left out, and
    /// [noted](Self::damaged).
    fn keys(&self) -> Result<Vec<KeyRow>, StoreError>;

    /// Whether an API key was ever made, revoked or not.
    fn had_keys(&self) -> Result<bool, StoreError>;

    /// Walks the records of one part of a board in order of player bytes, at most `limit` of them, from the first one
    /// after `after`, each with the version of the transaction that wrote it, where the backend has such. Returns how many
    /// there were; fewer than `limit` means the end. A row that cannot be read is left out, and [noted](Self::damaged).
    fn walk_versions(
        &self,
        board: BoardNo,
        part: Part,
        after: Option<&PlayerId>,
        limit: usize,
        each: &mut dyn FnMut(PlayerId, Record, u64),
    ) -> Result<usize, StoreError>;

    /// The same without versions.
    fn walk_scores(
        &self,
        board: BoardNo,
        part: Part,
        after: Option<&PlayerId>,
        limit: usize,
        each: &mut dyn FnMut(PlayerId, Record),
    ) -> Result<usize, StoreError> {
        self.walk_versions(board, part, after, limit, &mut |player, record, _| each(player, record))
    }

    /// The same for the records of one shard: shards can be walked side by side.
    fn walk_shard(
        &self,
        shard: usize,
        (board, part): (BoardNo, Part),
        after: Option<&PlayerId>,
        limit: usize,
        each: &mut dyn FnMut(PlayerId, Record, u64),
    ) -> Result<usize, StoreError> {
        assert_eq!(shard, 0, "there is one");
        self.walk_versions(board, part, after, limit, each)
    }

    /// The same of all shards or one, with those that were removed not long ago, as `None`: whoever loads an order outside from
    /// them keeps an older version that comes late from bringing them back.
    fn walk_states(
        &self,
        _shard: Option<usize>,
        (board, part): (BoardNo, Part),
        after: Option<&PlayerId>,
        limit: usize,
        each: &mut dyn FnMut(PlayerId, Option<Record>, u64),
    ) -> Result<usize, StoreError> {
        let some = &mut |player, record, version| each(player, Some(record), version);
        self.walk_versions(board, part, after, limit, some)
    }

    /// The record of each key with its version, `None` in it for one that was removed not long ago; without a transaction.
    fn states(&self, keys: &[ScoreKey]) -> Result<Vec<Option<ScoreState>>, StoreError> {
        Ok(self.records(keys)?.into_iter().map(|record| record.map(|record| (Some(record), 0))).collect())
    }

    /// Everything of a live board that servers keep in memory. Of a server that knows the board as of a revision only the bans
    /// after it are read, where that is possible.
    fn board(&self, name: Name<'_>, _known: Option<&Revisions>) -> Result<Option<BoardState>, StoreError> {
        let named = |row: &BoardRow| match name {
            Name::No(no) => row.no == no,
            Name::Id(id) => row.id == *id,
        };
        let Some(row) = self.boards()?.into_iter().find(named) else { return Ok(None) };
        let (bans, parts) = (Bans::All(self.bans(row.no)?), self.parts(row.no)?);
        Ok(Some(BoardState { row, revisions: Revisions::default(), bans, parts }))
    }

    /// What others may have changed after a position of each database's change feed; none is the beginning. Where one process
    /// writes: nothing.
    fn changed(&self, after: &[FeedPosition]) -> Result<Changed, StoreError> {
        Ok(Changed { next: after.to_vec(), ..Changed::default() })
    }

    /// The random id of the store, where it is kept apart from others outside by it.
    fn id(&self) -> Result<Option<[u8; 16]>, StoreError> {
        Ok(None)
    }

    /// How far the wall clock of this machine is ahead of the store's, in microseconds, at least; 0 where the store has none of its
    /// own. Cheap: it was measured not long ago.
    fn clock_ahead(&self) -> i64 {
        0
    }

    /// A number that is another one where this process began while nobody else was there: what is kept outside may be of another
    /// store, or of another state of this one.
    fn generation(&self) -> u64 {
        0
    }

    /// Takes or keeps the turn of a task for so long, or gives it back where that is no time; whether it is ours. Two may
    /// believe that they have it.
    fn take_turn(&self, _task: Task, _time: Duration) -> Result<bool, StoreError> {
        Ok(true)
    }

    /// What a transaction left to publish is published. Cheap: it is noted with a later transaction.
    fn published(&self, _batch: BatchId) {}

    /// Some transactions whose marks are so old and still there, in the order of their ids, from the first one after `after`. None
    /// are left where there is none.
    fn marks(&self, _age: Duration, _after: Option<BatchId>) -> Result<Vec<Mark>, StoreError> {
        Ok(Vec::new())
    }

    /// Makes one mark of those of several transactions of this server, in a transaction of its own: their rows may go then, as where they
    /// are published. Nothing where they stay as they are.
    fn fold_marks(&self, _batches: &[BatchId]) -> Result<Option<BatchId>, StoreError> {
        Ok(None)
    }

    /// Takes marks of any server's off: somebody has published what they name.
    fn take_marks_off(&self, _batches: &[BatchId]) -> Result<(), StoreError> {
        Ok(())
    }

    /// Every period of a board that is stored, in order of number.
    fn parts(&self, board: BoardNo) -> Result<Vec<PartRow>, StoreError>;

    /// One piece of the order of a closed period.
    fn block(&self, key: &BlockKey) -> Result<Option<Block>, StoreError>;

    /// The record of each key, without a transaction.
    fn records(&self, keys: &[ScoreKey]) -> Result<Vec<Option<Record>>, StoreError>;

    /// How many records a part of a board has; may be an estimate from above while others write, for progress only.
    fn count_scores(&self, board: BoardNo, part: Part) -> Result<u64, StoreError>;

    /// The part of a board that an import of one file has reached, without a transaction.
    fn import_progress(&self, key: &ImportKey) -> Result<Option<ImportRow>, StoreError>;

    /// Every player hidden on a board, in order of bytes.
    fn bans(&self, board: BoardNo) -> Result<Vec<PlayerId>, StoreError>;

    /// Those of these players that are banned on a board.
    fn banned(&self, board: BoardNo, players: &[PlayerId]) -> Result<HashSet<PlayerId>, StoreError> {
        let all: HashSet<PlayerId> = self.bans(board)?.into_iter().collect();
        Ok(players.iter().filter(|player| all.contains(*player)).cloned().collect())
    }

    /// The profile of each of these players, in one round trip, each for itself: one that cannot be read says so alone.
    fn profiles(&self, players: &[PlayerId]) -> Result<Vec<Result<Option<Profile>, StoreError>>, StoreError>;

    /// Forgets at most `limit` stored requests older than `before`; returns how many.
    fn expire_requests(&self, before: Micros, limit: usize) -> Result<usize, StoreError>;

    /// Deletes at most `limit` rows that belong to deleted boards; returns how many. Zero means there are none.
    fn purge_deleted(&self, limit: usize) -> Result<usize, StoreError>;

    /// Those of these parts that have rows, or versions of blocks, which wait to be purged on one shard. Until that is done a
    /// part of the same number must not be stored there again: it would see the old rows, and the purge would delete the new ones.
    fn unpurged(&self, parts: &[PartKey], shard: usize) -> Result<Vec<PartKey>, StoreError>;

    /// Purges at most `limit` rows of one part; returns whether nothing of it waits any more.
    fn purge_part(&self, part: PartKey, limit: usize) -> Result<bool, StoreError>;

    /// A remembered value, such as the fingerprint of the secret.
    fn meta(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError>;

    /// Remembers a value, durably.
    fn set_meta(&self, name: &str, value: &[u8]) -> Result<(), StoreError>;

    /// Brings what is at rest to its plainest form and onto the disk: for the end, when nothing is written any more. The
    /// store can still be used afterwards.
    fn settle(&self) -> Result<(), StoreError>;

    /// Whether nobody else can have written since this process last did: what was derived from the store is the present.
    /// Asked before every answer, so it asks nobody. A store that several may write to always says yes: nothing is derived
    /// from it that another could make old.
    fn may_answer(&self) -> bool {
        true
    }

    /// What the store has lost of what it had acknowledged to this process, once that is known. From then on it refuses
    /// everything, and [`may_answer`](Self::may_answer) is false: what is in memory is of a history that is gone.
    fn lost(&self) -> Option<LostCommits> {
        None
    }

    /// Rows that cannot be what we wrote, of those read since the store was opened: some thousands at most.
    fn damaged(&self) -> Vec<DamagedRow> {
        Vec::new()
    }

    /// How many they are. Cheap.
    fn damaged_count(&self) -> u64 {
        0
    }

    /// Whether the record of a key is one of them. Cheap where there is none.
    fn is_damaged(&self, _key: &ScoreKey) -> bool {
        false
    }

    /// Rows, bytes and times the backend can tell of itself, for status and metrics: (name, value).
    fn gauges(&self) -> Vec<(&'static str, f64)>;

    /// The last transactions that took longer than [`SLOW`], the newest last.
    fn slow(&self) -> Vec<Slow> {
        Vec::new()
    }
}
