//! The transaction of a batch on one shard: its reads, its decisions, and the preparation of a new plan.

use super::handler::ScoreBatchHandler;
use super::kind::{Decision, ScoreRequest, on_kind};
use super::revision_guard::{Planned, Replan, RevisionGuard};
use super::shards::Shards;
use super::targets::Targets;
use super::{read, state};
use crate::boards::Board;
use crate::clock::ClockReading;
use crate::failure::{Fault, in_lane};
use crate::periods::outdated::OutdatedArchives;
use crate::scores::shared::Shared;
use crate::servers::{self, outbox};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tally_lanes::BatchFailure;
use tally_store::{
    BoardNo, Committed, Durability, Loaded, ScoreKey, ShardSet, StoreError, WindowRow, WriteSet,
};

/// What one transaction decided.
pub(super) struct Transacted {
    pub(super) decisions: Vec<Decision>,
    /// Closed periods whose records it has changed.
    pub(super) stale: Vec<(BoardNo, WindowRow)>,
    /// Boards that it has changed.
    pub(super) changed: Vec<Arc<Board>>,
    pub(super) committed: Committed,
}

impl ScoreBatchHandler {
    /// Applies the rules of contests. A window whose rows wait for the purge does not begin again. Returns the shards that could
    /// not be queried for such rows.
    pub(super) fn check_targets(
        &self,
        batch: &[ScoreRequest],
        targets: &mut Targets,
        time: ClockReading,
    ) -> Result<Option<(ShardSet, Fault)>, BatchFailure<Fault>> {
        let store = &*self.shared.store;
        targets.check_contests(batch, store, time.now).map_err(in_lane)?;
        let (purging, unavailable) = targets.settle_purged(batch, store, time.now).map_err(in_lane)?;
        if !purging.is_empty() {
            let is_forgotten = targets
                .is_forgotten(&purging, store)
                .map_err(|why| BatchFailure::Unavailable(why.into_fault()))?;
            let purging = Fault::Purging(purging);
            return Err(if is_forgotten {
                BatchFailure::Retry(purging)
            } else {
                BatchFailure::PoisonRequest(purging)
            });
        }
        Ok(unavailable.map(|(shards, error)| (shards, error.into())))
    }

    pub(super) fn transact(
        &mut self,
        (batch, targets): (&[ScoreRequest], &Targets),
        (guard, planned): (&RevisionGuard, &Planned),
        (time, more): (ClockReading, &[ScoreKey]),
        shard: usize,
    ) -> Result<Result<Transacted, Replan>, BatchFailure<Fault>> {
        let Shared { store, keep_micros, .. } = &*self.shared;
        let when = (time.now, time.retention(*keep_micros));
        let mut reading = read::read(batch, targets, &**store, more);
        reading.plan.shards = ShardSet::of(shard);
        (reading.plan.outbox, reading.plan.exclusive) = (planned.outbox, planned.is_exclusive);
        // One request that waits for its commit makes the whole batch durable.
        if batch.iter().all(|request| on_kind!(request, one => one.is_relaxed())) {
            reading.plan.durability = Durability::Relaxed;
        }
        for (board, live) in targets.opened.values() {
            servers::load_ranking(&**store, board, live.window, &live.ranking);
        }
        let mut decided = Ok((Vec::new(), Vec::new(), Vec::new()));
        let (times, read_at, mut since) = (&self.times, &mut self.read_at, Instant::now());
        let mut run = |loaded: &Loaded| {
            let has_read = Instant::now();
            times.read.record(has_read.duration_since(since));
            *read_at = Some(has_read);
            let all = guard
                .check(&reading.plan, loaded, shard)
                .and_then(|()| state::decide(batch, targets, &reading, loaded, when));
            let (changes, done) = match all {
                Ok((changes, decisions)) => {
                    let (changed, stale) = (guard.changed(&changes), OutdatedArchives::of(&changes));
                    (changes, Ok((decisions, changed, stale)))
                }
                Err(replan) => (WriteSet::default(), Err(replan)),
            };
            decided = done;
            since = Instant::now();
            changes
        };
        let done = store.run(&reading.plan, &mut run);
        times.commit.record(since.elapsed());
        let (decisions, changed, stale) = match decided {
            Err(Replan::Ranking(error)) => return Err(BatchFailure::Unavailable(error.into())),
            Err(replan) => return Ok(Err(replan)),
            Ok(decided) => decided,
        };
        let transacted = Transacted { decisions, stale, changed, committed: Committed::default() };
        match done {
            Ok(committed) => Ok(Ok(Transacted { committed, ..transacted })),
            Err(error) => {
                if let StoreError::InDoubt { batch, .. } = &error {
                    self.in_doubt = Some((*batch, transacted));
                }
                Err(in_lane(error))
            }
        }
    }

    /// Prepares a new plan of a batch.
    pub(super) fn prepare(
        &self,
        batch: &[ScoreRequest],
        why: Replan,
        more: &mut Vec<ScoreKey>,
    ) -> Result<(), Fault> {
        match why {
            Replan::BoardsChanged(boards) => {
                let shards = Shards::of(batch, &*self.shared.store);
                for board in &boards {
                    servers::renew(&*self.shared.store, board).map_err(crate::Failure::into_fault)?;
                    if let Some(shard) = shards.iter().find(|shard| board.revisions().unreached().has(*shard))
                    {
                        return Err(self
                            .shared
                            .unavailable(shard, "its changes of a leaderboard are not known"));
                    }
                }
                // A batch of another lane may be about to change it here.
                self.shared.background.wait(Duration::from_millis(1));
            }
            Replan::Missing(keys) => more.extend(keys),
            Replan::Lagging(keys) => {
                let guard = RevisionGuard::of(batch);
                for ScoreKey { board, window, player } in keys {
                    let Some(board) = guard.board(board) else { continue };
                    outbox::publish_one(&*self.shared.store, board, window, &player)
                        .map_err(crate::Failure::into_fault)?;
                }
            }
            Replan::Ranking(error) => return Err(error.into()),
        }
        Ok(())
    }
}
