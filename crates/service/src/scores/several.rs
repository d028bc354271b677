//! A batch of players of several databases: a transaction on each, one after the other, and one publication.
//!
//! It is aimed once, so its rows have their instants in order. Then each database does its slice. What one does not do is answered
//! with its fault, and the others go on. A commit in doubt ends it: what was done waits, unseen, until that is known. The first
//! database comes last, because the position of an import is its. Not here: one transaction (`work`), cutting (`slices`).

use super::aim::Aims;
use super::command::Request;
use super::select::select;
use super::slices::{Slice, Whole, cut};
use super::standing::{OnDatabase, Standing, Stood, Unready};
use super::steps::{Commands, Step};
use super::transact::Part;
use super::work::{CHANGED, Decided, Open, ScoreWork, TRIES};
use crate::clock::Judged;
use crate::failure::Fault;
use tally_lanes::{BarrierGuard, Failure, backoff};
use tally_ranking::RankingError;
use tally_rules::{PlayerId, Record};
use tally_store::{BoardNo, PartRow, ShardSet};

/// Why the databases after one whose commit is in doubt do nothing.
const IN_DOUBT: &str = "what became of the part of another database is not known yet";

/// A batch as far as its databases have done it.
struct Progress {
    whole: Whole,
    aims: Aims,
    stood: Stood,
    pass: BarrierGuard,
    stale: Vec<(BoardNo, PartRow)>,
    done: Vec<OnDatabase>,
}

/// A batch whose last transaction may have been committed.
pub(super) struct Doubt {
    progress: Progress,
    slice: Slice,
    shard: usize,
}

impl ScoreWork {
    /// Gives what its databases have decided, or why none of them has done anything.
    pub(super) fn commit_each(
        &mut self,
        batch: &[Request],
        shards: ShardSet,
    ) -> Result<Decided, Failure<Fault>> {
        let standing = Standing::of(batch);
        let (mut there, mut stuck): (ShardSet, Option<(ShardSet, Fault)>) = (shards, None);
        let (mut aims, time, pass) = loop {
            match self.aim(batch, there) {
                Ok(aimed) => break aimed,
                Err((away, fault)) if away.is_empty() => return Err(Failure::Away(fault)),
                // What concerns the others goes on without them, once it stands for itself.
                Err((_, fault)) if batch.len() > 1 => return Err(Failure::Row(fault)),
                Err((away, fault)) => {
                    there = there.iter().filter(|shard| !away.has(*shard)).collect();
                    if there.is_empty() {
                        return Err(Failure::Piece(fault));
                    }
                    stuck = Some((of_stuck(&stuck).and(away), fault));
                }
            }
        };
        if let Some((away, fault)) = self.judge(batch, &mut aims, time)? {
            stuck = Some((of_stuck(&stuck).and(away), fault));
        }
        let taken = taken(batch, &aims).map_err(|error| Failure::Away(error.into()))?;
        let Some(stood) = standing.plan(batch, &aims) else {
            return Err(Failure::Retry(Fault::Contention(CHANGED.into())));
        };
        let mut progress = Progress {
            whole: Whole::of(batch, taken),
            aims,
            stood,
            pass,
            stale: Vec::new(),
            done: Vec::new(),
        };
        let (mut last, mut lost) = (None, None);
        for shard in shards.iter().collect::<Vec<_>>().into_iter().rev() {
            let slice = cut((batch, &progress.aims), &progress.whole, shard, &*self.shared.store);
            if slice.batch.is_empty() {
                continue;
            }
            let earlier =
                stuck.as_ref().filter(|(stuck, _)| stuck.has(shard)).map(|(_, fault)| fault.clone());
            let done = match (earlier, &lost) {
                (Some(fault), _) => Err(Failure::Piece(fault)),
                (None, Some(_)) => Err(Failure::Piece(Fault::StoreAway(IN_DOUBT.into()))),
                (None, None) => self.slice_done(&slice, (&standing, &progress.stood), time, shard),
            };
            match done {
                Ok(part) => progress.join(shard, &slice, part),
                Err(Failure::Unknown(fault)) => lost = Some((shard, slice, fault)),
                // A guilty row is found by halving, as long as nothing is done.
                Err(failure @ Failure::Row(_))
                    if progress.done.is_empty() && lost.is_none() && batch.len() > 1 =>
                {
                    return Err(failure);
                }
                Err(failure) => {
                    progress.whole.fail(&slice, fault_of(&failure));
                    last = Some(failure);
                }
            }
        }
        match (lost, last) {
            (Some((shard, slice, fault)), _) => {
                self.open = Some(Open::Doubt(Box::new(Doubt { progress, slice, shard })));
                Err(Failure::Unknown(fault))
            }
            (None, Some(failure)) if progress.done.is_empty() => Err(failure),
            (None, _) => Ok(progress.end()),
        }
    }

    /// One slice, as often as its boards are others than it was planned on, or other transactions are in its way.
    fn slice_done(
        &mut self,
        slice: &Slice,
        standing: (&Standing, &Stood),
        time: Judged,
        shard: usize,
    ) -> Result<Part, Failure<Fault>> {
        let (mut more, mut failed) = (Vec::new(), Fault::Contention(CHANGED.into()));
        for attempt in 1..=TRIES {
            match self.transact((&slice.batch, &slice.aims), standing, (time, &more), shard) {
                Ok(Ok(part)) => return Ok(part),
                // The whole batch stands on its boards: they cannot be read again in between.
                Ok(Err(Unready::Moved(_))) => break,
                Ok(Err(unready)) => self.prepare(&slice.batch, unready, &mut more).map_err(Failure::Away)?,
                Err(Failure::Retry(fault)) => {
                    failed = fault;
                    let attempts = u32::try_from(attempt).unwrap_or(u32::MAX);
                    self.shared.background.wait(backoff(attempts));
                }
                Err(failure) => return Err(failure),
            }
        }
        Err(Failure::Retry(failed))
    }
}

/// Players that the only command of a batch takes by rank.
fn taken(batch: &[Request], aims: &Aims) -> Result<Vec<(PlayerId, Record)>, RankingError> {
    let [Request::Commands(Commands { steps, .. })] = batch else { return Ok(Vec::new()) };
    let [Step::Take { board, which, .. }] = &steps[..] else { return Ok(Vec::new()) };
    let shown = aims.rows[0][0].parts.first().and_then(|part| aims.order_of(board, *part));
    let Some(shown) = shown else { return Ok(Vec::new()) };
    shown.order().read(|order| select(&board.definition, order, &[], which))
}

fn of_stuck(stuck: &Option<(ShardSet, Fault)>) -> ShardSet {
    stuck.as_ref().map_or_else(ShardSet::default, |(shards, _)| *shards)
}

fn fault_of(failure: &Failure<Fault>) -> &Fault {
    match failure {
        Failure::Retry(fault)
        | Failure::Row(fault)
        | Failure::Piece(fault)
        | Failure::Away(fault)
        | Failure::Unknown(fault) => fault,
    }
}

impl Doubt {
    /// Nobody waits for it in vain.
    pub(super) fn mark_stuck(&self) {
        self.progress.pass.mark_stuck();
    }

    /// What the batch came to, now that this is known of its last transaction; nothing where no database has done anything.
    pub(super) fn end(self, done: Result<Part, Fault>) -> Option<Decided> {
        let Self { mut progress, slice, shard } = self;
        match done {
            Ok(part) => progress.join(shard, &slice, part),
            Err(fault) => progress.whole.fail(&slice, &fault),
        }
        (!progress.done.is_empty()).then(|| progress.end())
    }
}

impl Progress {
    fn join(&mut self, shard: usize, slice: &Slice, part: Part) {
        let Part { decisions, stale, changed, committed } = part;
        self.whole.join(slice, decisions);
        self.stale.extend(stale);
        self.done.push(OnDatabase { shard, committed, changed });
    }

    fn end(self) -> Decided {
        let Self { whole, aims, stood, pass, stale, done } = self;
        let (decisions, failed) = whole.end();
        Decided { decisions, failed, aims, stale, stood, done, pass }
    }
}
