//! What a score lane does with a batch: one transaction, then one publication, then the replies.
//!
//! A player's requests are in one lane at a time, so lanes need not wait for each other. Requests of several players have a
//! separate lane, whose batches pass the barrier alone. So do bans, and batches that open a window, at their own shard: a commit
//! in doubt delays no batch of another shard.

use super::kind::{Decision, Replying, ScoreReply, ScoreRequest, on_kind};
use super::publish::{Versions, publish};
use super::revision_guard::{OnShard, Planned, Replan, RevisionGuard, changes_all, changes_boards};
use super::several::InDoubt;
use super::shards::{FIRST, Shards};
use super::targets::Targets;
use super::transact::Transacted;
use crate::clock::ClockReading;
use crate::failure::Fault;
use crate::periods::outdated::OutdatedArchives;
use crate::scores::shared::Shared;
use std::sync::{Arc, PoisonError};
use std::time::Instant;
use tally_lanes::{BarrierGuard, BatchFailure, BatchHandler, BatchSharing, Histogram, Resolution, Weight};
use tally_rules::Rejection;
use tally_store::{BatchId, BoardNo, ScoreKey, ShardSet, WindowRow};

/// Bytes a request holds beside its player's name: a rough sum of the structures, for the queue's bound.
const REQUEST_BYTES: u32 = 256;

/// How often a batch is planned again before it fails with a conflict.
pub(super) const ATTEMPTS_MAX: usize = 16;

/// Why a batch is given up.
pub(super) const CONTENDED: &str =
    "the definition of a leaderboard changed at each attempt of this batch; retry later";

/// The batch handler of one lane of scores.
pub(crate) struct ScoreBatchHandler {
    pub(super) shared: Arc<Shared>,
    /// Which lane this is.
    number: usize,
    pub(super) times: Arc<StoreTimes>,
    /// When the last attempt had read its rows.
    pub(super) read_at: Option<Instant>,
    /// The transaction in doubt, with its decisions.
    pub(super) in_doubt: Option<(BatchId, Transacted)>,
    /// Its batch.
    pub(super) unresolved: Option<Unresolved>,
}

/// A batch with a transaction in doubt.
pub(super) enum Unresolved {
    /// All of it is one transaction.
    Whole(Targets, Planned, usize, BarrierGuard),
    /// It has a transaction on each of several shards.
    Slice(Box<InDoubt>),
}

/// A batch as decided and committed.
pub(crate) struct CommittedBatch {
    pub(super) decisions: Vec<Decision>,
    pub(super) targets: Targets,
    /// Closed periods whose records it has changed.
    pub(super) stale: Vec<(BoardNo, WindowRow)>,
    pub(super) planned: Planned,
    /// What each shard has committed.
    pub(super) done: Vec<OnShard>,
    /// Until it is published.
    pub(super) pass: BarrierGuard,
}

/// How long the store took for each attempt of a batch.
#[derive(Debug, Default)]
pub(crate) struct StoreTimes {
    /// To read and lock what the batch needs.
    pub(crate) read: Histogram,
    /// To write and commit the decisions.
    pub(crate) commit: Histogram,
}

impl ScoreBatchHandler {
    pub(crate) fn new(shared: Arc<Shared>, number: usize, times: Arc<StoreTimes>) -> Self {
        Self { shared, number, times, read_at: None, in_doubt: None, unresolved: None }
    }

    /// The targets of a batch, beside other lanes if possible. The clock is read inside the barrier, so that no period ends
    /// between that and the end of the batch.
    pub(super) fn target(
        &self,
        batch: &[ScoreRequest],
        shards: ShardSet,
    ) -> Result<(Targets, ClockReading, BarrierGuard), (ShardSet, Fault)> {
        let all = ShardSet::first(self.shared.store.shards());
        let places = if changes_all(batch) { all } else { shards };
        // Instants are unique: those of unused targets are used again.
        let target = |is_exclusive| {
            let time = self.shared.clock.read();
            let mut instants = self.shared.instants.lock().unwrap_or_else(PoisonError::into_inner);
            let mut next = *instants;
            let targets = Targets::new(batch, &mut next, time.now, shards);
            let is_used = is_exclusive || targets.opened.is_empty();
            if is_used {
                *instants = next;
            }
            is_used.then_some((targets, time))
        };
        let is_exclusive = self.shared.is_of_several(self.number) || changes_boards(batch);
        let pass = self.shared.pass(places, is_exclusive)?;
        if let Some((targets, time)) = target(is_exclusive) {
            return Ok((targets, time, pass));
        }
        // One lane of a shard opens a window. Lanes of another shard may open it at the same time: see `Targets::install`.
        drop(pass);
        let pass = self.shared.pass(places, true)?;
        let (targets, time) = target(true).expect("an exclusive batch uses its targets");
        Ok((targets, time, pass))
    }
}

impl BatchHandler for ScoreBatchHandler {
    type Request = ScoreRequest;
    type Answer = Result<ScoreReply, Rejection>;
    type Fault = Fault;
    type Committed = CommittedBatch;

    fn weight(request: &ScoreRequest) -> Weight {
        let rows = u32::try_from(on_kind!(request, one => one.weight())).unwrap_or(u32::MAX);
        Weight { rows, bytes: rows.saturating_mul(REQUEST_BYTES) }
    }

    fn kind(request: &ScoreRequest) -> BatchSharing {
        if on_kind!(request, one => one.is_alone()) { BatchSharing::Alone } else { BatchSharing::Group(0) }
    }

    fn commit(&mut self, batch: &[ScoreRequest]) -> Result<CommittedBatch, BatchFailure<Fault>> {
        let shards = Shards::of(batch, &*self.shared.store);
        if shards.len() > 1 {
            return self.commit_each(batch, shards);
        }
        let shard = shards.lowest().unwrap_or(FIRST);
        let mut more = Vec::new();
        for _ in 0..ATTEMPTS_MAX {
            match self.attempt(batch, &more, shard)? {
                Ok(committed) => return Ok(committed),
                Err(replan) => self.prepare(batch, replan, &mut more).map_err(BatchFailure::Unavailable)?,
            }
        }
        Err(BatchFailure::Retry(Fault::Contention(CONTENDED.into())))
    }

    fn read_at(&self) -> Option<Instant> {
        self.read_at
    }

    fn dispatch(&mut self, callers: usize, replies: Box<dyn Send>) {
        self.shared.dispatcher.dispatch(callers, replies);
    }

    /// The store finds the transaction by its name. The decisions were kept, because they must not be made again.
    fn resolve(&mut self, _batch: &[ScoreRequest]) -> Result<Resolution<CommittedBatch, Fault>, Fault> {
        let (lost, _) = self.in_doubt.as_ref().expect("a commit is in doubt");
        let done = self.shared.store.resolve(lost).inspect_err(|_| match &mut self.unresolved {
            Some(Unresolved::Whole(_, planned, shard, pass)) => {
                planned.doubt(*shard);
                pass.mark_stuck();
            }
            Some(Unresolved::Slice(in_doubt)) => in_doubt.mark_stuck(),
            None => {}
        })?;
        let (_, transacted) = self.in_doubt.take().expect("a commit is in doubt");
        let not_done = Fault::StoreUnavailable("the connection was lost before the commit".into());
        let batch = match (self.unresolved.take().expect("a commit is in doubt"), done) {
            (Unresolved::Whole(targets, planned, shard, pass), Some(committed)) => {
                let transacted = Transacted { committed, changed: Vec::new(), ..transacted };
                Some(committed_batch(transacted, targets, planned, (shard, pass)))
            }
            (Unresolved::Whole(..), None) => None,
            (Unresolved::Slice(slice), Some(committed)) => {
                slice.end(Ok(Transacted { committed, ..transacted }))
            }
            (Unresolved::Slice(slice), None) => slice.end(Err(not_done.clone())),
        };
        Ok(batch.map_or(Resolution::NotCommitted(not_done), Resolution::Committed))
    }

    fn publish(
        &mut self,
        mut batch: Vec<ScoreRequest>,
        committed: CommittedBatch,
    ) -> Vec<Result<ScoreReply, Rejection>> {
        let CommittedBatch { mut decisions, mut targets, stale, planned, done, pass: _inside } = committed;
        targets.install();
        if !stale.is_empty() {
            let mark = &mut |board: &Arc<_>| OutdatedArchives::mark(board, &stale);
            batch.iter().for_each(|request| on_kind!(request, one => one.each_board(mark)));
        }
        planned.check_age(&batch);
        let store = &*self.shared.store;
        let ranks = publish(&mut batch, &mut decisions, &targets, &Versions::of(&done, store));
        let scores = batch.iter().zip(&decisions).map(|(request, decision)| request.scores(decision)).sum();
        self.shared.activity.add_scores(self.shared.clock.now(), scores);
        planned.end(&done);
        for outbox in done.iter().filter_map(|one| one.committed.outbox) {
            if RevisionGuard::is_published(&batch) {
                store.published(outbox);
            } else {
                self.shared.unpublished.add(store, outbox);
            }
        }
        let rows = batch.iter().zip(decisions).zip(ranks).enumerate();
        rows.map(|(at, ((request, decision), ranks))| {
            let (shared, targets, rows) = (&*self.shared, &targets, targets.of(at));
            request.reply(decision, Replying { shared, targets, rows, ranks })
        })
        .collect()
    }
}

impl ScoreBatchHandler {
    /// One transaction, if everything is as it was planned.
    fn attempt(
        &mut self,
        batch: &[ScoreRequest],
        more: &[ScoreKey],
        shard: usize,
    ) -> Result<Result<CommittedBatch, Replan>, BatchFailure<Fault>> {
        let guard = RevisionGuard::of(batch);
        let (mut targets, time, pass) = match self.target(batch, ShardSet::of(shard)) {
            Ok(targeted) => targeted,
            Err((shards, fault)) if shards.is_empty() => return Err(BatchFailure::Unavailable(fault)),
            Err((_, fault)) => return Err(BatchFailure::Piece(fault)),
        };
        if let Some((_, fault)) = self.check_targets(batch, &mut targets, time)? {
            return Err(BatchFailure::Piece(fault));
        }
        let Some(planned) = guard.plan(batch, &targets) else {
            return Ok(Err(Replan::BoardsChanged(Vec::new())));
        };
        let transacted = self.transact((batch, &targets), (&guard, &planned), (time, more), shard);
        if let Err(BatchFailure::Unknown(fault)) = transacted {
            self.unresolved = Some(Unresolved::Whole(targets, planned, shard, pass));
            return Err(BatchFailure::Unknown(fault));
        }
        Ok(transacted?.map(|transacted| committed_batch(transacted, targets, planned, (shard, pass))))
    }
}

/// A batch that is one transaction.
fn committed_batch(
    transacted: Transacted,
    targets: Targets,
    planned: Planned,
    (shard, pass): (usize, BarrierGuard),
) -> CommittedBatch {
    let Transacted { decisions, stale, changed, committed } = transacted;
    let done = vec![OnShard { shard, committed, changed }];
    CommittedBatch { decisions, targets, stale, planned, done, pass }
}
