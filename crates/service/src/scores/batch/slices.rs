//! A batch of players of several shards, cut into a slice for each, and their decisions joined again.
//!
//! Each slice is a transaction of its own, so one may fail while others are done. Requests and the steps of a pipeline have replies
//! of their own: those of an unavailable shard say so, and the others are done. A request that is done on only some of its shards
//! says so.

use super::kind::{Decision, Request};
use super::targets::{RowTarget, Targets};
use crate::failure::{Failure, Fault};
use std::collections::BTreeMap;
use tally_rules::{PlayerId, Record};
use tally_store::Store;

/// What one shard has of a batch.
pub(super) struct Slice {
    pub(super) batch: Vec<Request>,
    pub(super) targets: Targets,
    /// The place of each request in the whole batch, and those of its steps in the request.
    places: Vec<(usize, Vec<usize>)>,
}

/// What one shard has of a request.
pub(crate) struct Piece<K> {
    pub(crate) request: K,
    pub(crate) rows: Vec<RowTarget>,
    /// The places of its steps, where these have replies of their own.
    pub(crate) steps: Vec<usize>,
}

/// How a request is cut.
pub(crate) struct Slicing<'a> {
    whole: &'a Whole,
    at: usize,
    pub(crate) shard: usize,
    store: &'a dyn Store,
}

impl Slicing<'_> {
    pub(crate) fn is_here(&self, player: &PlayerId) -> bool {
        self.store.shard_of(player) == self.shard
    }

    /// The request as it is, if its only player is here.
    pub(crate) fn of_player<K: Clone>(
        &self,
        player: &PlayerId,
        request: &K,
        rows: &[RowTarget],
    ) -> Option<Piece<K>> {
        let piece = || Piece { request: request.clone(), rows: rows.to_vec(), steps: Vec::new() };
        self.is_here(player).then(piece)
    }

    /// Whether an earlier shard has failed or rejected the request.
    pub(crate) fn has_failed(&self) -> bool {
        self.whole.failed.contains_key(&self.at)
            || matches!(self.whole.decisions[self.at], Decision::Rejected(_))
    }

    /// Players that the request takes by rank, in the order asked for.
    pub(crate) fn taken(&self) -> &[(PlayerId, Record)] {
        &self.whole.taken
    }
}

/// A batch as its shards decide it, one after the other.
pub(super) struct Whole {
    decisions: Vec<Decision>,
    failed: BTreeMap<usize, Fault>,
    taken: Vec<(PlayerId, Record)>,
    /// Requests that some shard has done.
    begun: Vec<bool>,
}

impl Whole {
    pub(super) fn of(batch: &[Request], taken: Vec<(PlayerId, Record)>) -> Self {
        let decisions = batch.iter().map(Request::pending).collect();
        Self { decisions, failed: BTreeMap::new(), taken, begun: vec![false; batch.len()] }
    }

    /// Cuts out what one shard has.
    pub(super) fn cut(
        &self,
        (batch, targets): (&[Request], &Targets),
        shard: usize,
        store: &dyn Store,
    ) -> Slice {
        let mut slice = Slice { batch: Vec::new(), targets: targets.without_rows(), places: Vec::new() };
        for (at, request) in batch.iter().enumerate() {
            let slicing = Slicing { whole: self, at, shard, store };
            if let Some(Piece { request, rows, steps }) = request.cut(&slicing, targets.of(at)) {
                slice.batch.push(request);
                slice.targets.push(rows);
                slice.places.push((at, steps));
            }
        }
        slice.targets.keep_parts_of(&slice.batch);
        slice
    }

    /// One shard has done its slice.
    pub(super) fn join(&mut self, slice: &Slice, decisions: Vec<Decision>) {
        for (((at, steps), request), decision) in slice.places.iter().zip(&slice.batch).zip(decisions) {
            self.begun[*at] |= !matches!(decision, Decision::Rejected(_));
            let known = std::mem::replace(&mut self.decisions[*at], Decision::Undone);
            let (joined, fault) = request.join(known, decision, steps);
            self.decisions[*at] = joined;
            self.failed.extend(fault.map(|fault| (*at, fault)));
        }
    }

    /// One shard has not done its slice.
    pub(super) fn fail(&mut self, slice: &Slice, fault: &Fault) {
        for (at, steps) in &slice.places {
            if !self.decisions[*at].fail(steps, fault) {
                self.failed.entry(*at).or_insert_with(|| fault.clone());
            }
        }
    }

    /// Decisions in order, and the requests whose reply is a fault instead.
    pub(super) fn end(self) -> (Vec<Decision>, BTreeMap<usize, Fault>) {
        let Self { mut decisions, mut failed, taken, begun } = self;
        let partly = failed.iter_mut().filter(|(at, _)| begun[**at]);
        partly.for_each(|(_, fault)| *fault = after_a_part(fault.clone()));
        for (decision, is_begun) in decisions.iter_mut().zip(begun) {
            decision.end(is_begun, &taken);
        }
        (decisions, failed)
    }
}

/// The same fault where other shards have done their slices.
pub(crate) fn after_a_part(fault: Fault) -> Fault {
    match Failure::Fault(fault).after_a_part() {
        Failure::Fault(fault) => fault,
        Failure::Refused(refusal) => Fault::Broken(refusal.detail()),
    }
}
