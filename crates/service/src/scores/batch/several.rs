//! A batch of players of several shards: a transaction on each, one after the other, and one publication.
//!
//! It is targeted once, so the instants of its rows are in order. Then each shard does its slice. A slice that fails replies with
//! its fault, and the others continue. A commit in doubt ends the batch: its completed slices wait, unseen, until the commit is
//! resolved. The first shard comes last, because it has the position of an import.

use super::handler::{ATTEMPTS_MAX, CONTENDED, CommittedBatch, ScoreBatchHandler, Unresolved};
use super::kind::ScoreRequest;
use super::revision_guard::{OnShard, Planned, Replan, RevisionGuard};
use super::slices::{Slice, Whole};
use super::targets::Targets;
use super::transact::Transacted;
use crate::clock::ClockReading;
use crate::failure::Fault;
use std::time::{Duration, Instant};
use tally_lanes::{BarrierGuard, BatchFailure, backoff};
use tally_store::{BoardNo, ShardSet, WindowRow};

/// How long failed attempts of one slice may take in all. The batch holds the barrier meanwhile, and only a wait for locked rows
/// takes long. Less than one such wait by default (`store.lock_wait`, 2 s), so that a slice waits once.
const WAITED_MAX: Duration = Duration::from_millis(1_500);

/// Why the databases after a commit in doubt do nothing.
const IN_DOUBT: &str = "the outcome on another database is not known yet";

/// A batch as far as its shards have done it.
struct Progress {
    whole: Whole,
    targets: Targets,
    planned: Planned,
    pass: BarrierGuard,
    stale: Vec<(BoardNo, WindowRow)>,
    done: Vec<OnShard>,
}

/// A batch whose last transaction is in doubt.
pub(super) struct InDoubt {
    progress: Progress,
    slice: Slice,
    shard: usize,
}

impl ScoreBatchHandler {
    /// Returns the decisions of the shards, or why none of them has done anything.
    pub(super) fn commit_each(
        &mut self,
        batch: &[ScoreRequest],
        shards: ShardSet,
    ) -> Result<CommittedBatch, BatchFailure<Fault>> {
        let guard = RevisionGuard::of(batch);
        let (mut available, mut stuck): (ShardSet, Option<(ShardSet, Fault)>) = (shards, None);
        let (mut targets, time, pass) = loop {
            match self.target(batch, available) {
                Ok(targeted) => break targeted,
                Err((unavailable, fault)) if unavailable.is_empty() => {
                    return Err(BatchFailure::Unavailable(fault));
                }
                // The rest of the batch continues without them, once each request stands alone.
                Err((_, fault)) if batch.len() > 1 => return Err(BatchFailure::PoisonRequest(fault)),
                Err((unavailable, fault)) => {
                    available = available.iter().filter(|shard| !unavailable.has(*shard)).collect();
                    if available.is_empty() {
                        return Err(BatchFailure::Piece(fault));
                    }
                    stuck = Some((shards_of(&stuck).and(unavailable), fault));
                }
            }
        };
        if let Some((unavailable, fault)) = self.check_targets(batch, &mut targets, time)? {
            stuck = Some((shards_of(&stuck).and(unavailable), fault));
        }
        let whole = Whole::of(batch, &targets).map_err(|error| BatchFailure::Unavailable(error.into()))?;
        let Some(planned) = guard.plan(batch, &targets) else {
            return Err(BatchFailure::Retry(Fault::Contention(CONTENDED.into())));
        };
        let mut progress = Progress { whole, targets, planned, pass, stale: Vec::new(), done: Vec::new() };
        let (mut last, mut lost) = (None, None);
        for shard in shards.iter().collect::<Vec<_>>().into_iter().rev() {
            let slice = progress.whole.cut((batch, &progress.targets), shard, &*self.shared.store);
            if slice.batch.is_empty() {
                continue;
            }
            let earlier =
                stuck.as_ref().filter(|(stuck, _)| stuck.has(shard)).map(|(_, fault)| fault.clone());
            let done = match (earlier, &lost) {
                (Some(fault), _) => Err(BatchFailure::Piece(fault)),
                (None, Some(_)) => Err(BatchFailure::Piece(Fault::StoreUnavailable(IN_DOUBT.into()))),
                (None, None) => self.slice_done(&slice, (&guard, &progress.planned), time, shard),
            };
            match done {
                Ok(transacted) => progress.join(shard, &slice, transacted),
                Err(BatchFailure::Unknown(fault)) => lost = Some((shard, slice, fault)),
                // A poison request is found by bisection, as long as nothing is done.
                Err(failure @ BatchFailure::PoisonRequest(_))
                    if progress.done.is_empty() && lost.is_none() && batch.len() > 1 =>
                {
                    return Err(failure);
                }
                Err(failure) => {
                    progress.whole.join(&slice, Err(fault_of(&failure)));
                    last = Some(failure);
                }
            }
        }
        match (lost, last) {
            (Some((shard, slice, fault)), _) => {
                self.unresolved = Some(Unresolved::Slice(Box::new(InDoubt { progress, slice, shard })));
                Err(BatchFailure::Unknown(fault))
            }
            (None, Some(failure)) if progress.done.is_empty() => Err(failure),
            (None, _) => Ok(progress.end()),
        }
    }

    /// One slice, with retries after conflicts with other transactions. A slice that has waited for locked rows fails for good: the
    /// lane would try the whole batch again.
    fn slice_done(
        &mut self,
        slice: &Slice,
        guard: (&RevisionGuard, &Planned),
        time: ClockReading,
        shard: usize,
    ) -> Result<Transacted, BatchFailure<Fault>> {
        let (mut more, mut failed) = (Vec::new(), Fault::Contention(CONTENDED.into()));
        let mut waited = Duration::ZERO;
        for attempt in 1..=ATTEMPTS_MAX {
            let began = Instant::now();
            match self.transact((&slice.batch, &slice.targets), guard, (time, &more), shard) {
                Ok(Ok(transacted)) => return Ok(transacted),
                // The whole batch was planned on its leaderboards: they cannot be read again in between.
                Ok(Err(Replan::BoardsChanged(_))) => break,
                Ok(Err(replan)) => {
                    self.prepare(&slice.batch, replan, &mut more).map_err(BatchFailure::Unavailable)?
                }
                Err(BatchFailure::Retry(fault)) => {
                    waited += began.elapsed();
                    if waited >= WAITED_MAX {
                        return Err(BatchFailure::Piece(fault));
                    }
                    failed = fault;
                    let attempts = u32::try_from(attempt).unwrap_or(u32::MAX);
                    self.shared.background.wait(backoff(attempts));
                }
                Err(failure) => return Err(failure),
            }
        }
        Err(BatchFailure::Retry(failed))
    }
}

fn shards_of(stuck: &Option<(ShardSet, Fault)>) -> ShardSet {
    stuck.as_ref().map_or_else(ShardSet::default, |(shards, _)| *shards)
}

fn fault_of(failure: &BatchFailure<Fault>) -> &Fault {
    match failure {
        BatchFailure::Retry(fault)
        | BatchFailure::PoisonRequest(fault)
        | BatchFailure::Piece(fault)
        | BatchFailure::Unavailable(fault)
        | BatchFailure::Unknown(fault) => fault,
    }
}

impl InDoubt {
    /// Marks that its end is unknown, so that no batch waits for it in vain.
    pub(super) fn mark_stuck(&self) {
        self.progress.pass.mark_stuck();
    }

    /// The batch after its last transaction is resolved. `None` if no shard has done anything.
    pub(super) fn end(self, done: Result<Transacted, Fault>) -> Option<CommittedBatch> {
        let Self { mut progress, slice, shard } = self;
        match done {
            Ok(transacted) => progress.join(shard, &slice, transacted),
            Err(fault) => progress.whole.join(&slice, Err(&fault)),
        }
        (!progress.done.is_empty()).then(|| progress.end())
    }
}

impl Progress {
    fn join(&mut self, shard: usize, slice: &Slice, transacted: Transacted) {
        let Transacted { decisions, stale, changed, committed } = transacted;
        self.whole.join(slice, Ok(decisions));
        self.stale.extend(stale);
        self.done.push(OnShard { shard, committed, changed });
    }

    fn end(self) -> CommittedBatch {
        let Self { whole, targets, planned, pass, stale, done } = self;
        CommittedBatch { decisions: whole.0, targets, stale, planned, done, pass }
    }
}
