//! The transaction of a batch on one database: what it reads, what is decided on that, and what it takes to plan it again.
//!
//! Not here: how often it is tried, and what is published (`work`, `several`).

use super::aim::Aims;
use super::command::Request;
use super::decide::{self, Decision};
use super::plan;
use super::shared::Shared;
use super::spread;
use super::standing::{Standing, Stood, Unready};
use super::work::ScoreWork;
use crate::boards::Board;
use crate::clock::Judged;
use crate::failure::{Fault, in_lane};
use crate::periods::stale::Stale;
use crate::servers::{self, marks};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tally_lanes::Failure;
use tally_store::{BoardNo, Changes, Committed, Durability, Loaded, PartRow, ScoreKey, ShardSet, StoreError};

/// What one transaction decided.
pub(super) struct Part {
    pub(super) decisions: Vec<Decision>,
    /// Closed periods whose records it has changed.
    pub(super) stale: Vec<(BoardNo, PartRow)>,
    /// Boards that it has changed.
    pub(super) changed: Vec<Arc<Board>>,
    pub(super) committed: Committed,
}

impl ScoreWork {
    /// What the contests of its boards allow, and that no period is begun again whose rows wait to be purged. Gives the
    /// databases that could not be asked for such rows.
    pub(super) fn judge(
        &self,
        batch: &[Request],
        aims: &mut Aims,
        time: Judged,
    ) -> Result<Option<(ShardSet, Fault)>, Failure<Fault>> {
        let store = &*self.shared.store;
        aims.judge(batch, store, time.now).map_err(in_lane)?;
        let (purging, away) = aims.settle_purged(batch, store, time.now).map_err(in_lane)?;
        if !purging.is_empty() {
            return Err(Failure::Row(Fault::Purging(purging)));
        }
        Ok(away.map(|(shards, error)| (shards, error.into())))
    }

    /// The transaction of a batch on one database.
    pub(super) fn transact(
        &mut self,
        (batch, aims): (&[Request], &Aims),
        (standing, stood): (&Standing, &Stood),
        (time, more): (Judged, &[ScoreKey]),
        shard: usize,
    ) -> Result<Result<Part, Unready>, Failure<Fault>> {
        let Shared { store, keep_micros, .. } = &*self.shared;
        let (now, keep_micros) = (time.now, time.keep(*keep_micros));
        let mut reading = plan::read(batch, aims, &**store);
        reading.add(more);
        reading.plan.shards = ShardSet::of(shard);
        (reading.plan.marks, reading.plan.alone) = (stood.marks, stood.alone);
        // One request that waits for its commit makes the whole batch durable.
        let relaxed = |request: &Request| matches!(request, Request::Commands(commands) if commands.relaxed);
        if batch.iter().all(relaxed) {
            reading.plan.durability = Durability::Relaxed;
        }
        for (board, live) in aims.opened.values() {
            servers::open_order(&**store, board, live.part, &live.order);
        }
        let mut decided = Ok((Vec::new(), Vec::new(), Vec::new()));
        let (times, read_at, mut since) = (&self.times, &mut self.read_at, Instant::now());
        let mut run = |loaded: &Loaded| {
            let has_read = Instant::now();
            times.read.record(has_read.duration_since(since));
            *read_at = Some(has_read);
            let all = standing
                .moved(&reading.plan, loaded, shard)
                .and_then(|()| decide::decide(batch, aims, &reading, loaded, (now, keep_micros)));
            let (changes, done) = match all {
                Ok((changes, decisions)) => {
                    let (changed, stale) = (standing.changed(&changes), Stale::of(&changes));
                    (changes, Ok((decisions, changed, stale)))
                }
                Err(unready) => (Changes::default(), Err(unready)),
            };
            decided = done;
            since = Instant::now();
            changes
        };
        let done = store.run(&reading.plan, &mut run);
        times.commit.record(since.elapsed());
        let (decisions, changed, stale) = match decided {
            Err(Unready::Ranking(error)) => return Err(Failure::Away(error.into())),
            Err(unready) => return Ok(Err(unready)),
            Ok(decided) => decided,
        };
        let part = Part { decisions, stale, changed, committed: Committed::default() };
        match done {
            Ok(committed) => Ok(Ok(Part { committed, ..part })),
            Err(error) => {
                if let StoreError::LostAtCommit { batch, .. } = &error {
                    self.lost = Some((*batch, part));
                }
                Err(in_lane(error))
            }
        }
    }

    /// Does what it takes to plan a batch again.
    pub(super) fn prepare(
        &self,
        batch: &[Request],
        why: Unready,
        more: &mut Vec<ScoreKey>,
    ) -> Result<(), Fault> {
        let fault = |failure: crate::Failure| match failure {
            crate::Failure::Fault(fault) => fault,
            crate::Failure::Refused(rejection) => Fault::Broken(rejection.detail()),
        };
        match why {
            Unready::Moved(boards) => {
                let shards = spread::shards(batch, &*self.shared.store);
                for board in &boards {
                    servers::renew(&*self.shared.store, board).map_err(fault)?;
                    if let Some(shard) = shards.iter().find(|shard| board.revisions().unheard().has(*shard)) {
                        return Err(self.shared.away(shard, "its changes of a leaderboard are not known"));
                    }
                }
                // A batch of another lane may be about to change it here.
                self.shared.background.wait(Duration::from_millis(1));
            }
            Unready::Missing(keys) => more.extend(keys),
            Unready::Behind(keys) => {
                let standing = Standing::of(batch);
                for ScoreKey { board, part, player } in keys {
                    let Some(board) = standing.board(board) else { continue };
                    marks::publish_one(&*self.shared.store, board, part, &player).map_err(fault)?;
                }
            }
            Unready::Ranking(error) => return Err(error.into()),
        }
        Ok(())
    }
}
