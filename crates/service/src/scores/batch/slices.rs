//! A batch of players of several shards, cut into a slice for each, and their decisions joined again.
//!
//! Each slice is a separate transaction, so one may fail while others are done. Requests and the steps of a pipeline have
//! separate replies: those of an unavailable shard have its fault, and the others are done. The reply to a request that is done
//! on only some of its shards says so.

use super::kind::{Decision, ScoreRequest};
use super::targets::{RowTarget, Targets};
use crate::failure::{Failure, Fault};
use tally_ranking::RankingError;
use tally_rules::PlayerId;
use tally_store::Store;

/// What one shard has of a batch.
pub(super) struct Slice {
    pub(super) batch: Vec<ScoreRequest>,
    pub(super) targets: Targets,
    /// The index of each request in the whole batch, and those of its steps in the request.
    places: Vec<(usize, Vec<usize>)>,
}

/// What one shard has of a request.
pub(crate) struct Piece<K> {
    pub(crate) request: K,
    pub(crate) rows: Vec<RowTarget>,
    /// The indexes of its steps, if these have separate replies.
    pub(crate) steps: Vec<usize>,
}

/// How a request is cut.
pub(crate) struct Slicing<'a> {
    /// Its decision, as far as other shards have done it.
    pub(crate) known: &'a Decision,
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
}

/// The decisions of a batch as its shards make them, one after the other.
pub(super) struct Whole(pub(super) Vec<Decision>);

impl Whole {
    pub(super) fn of(batch: &[ScoreRequest], targets: &Targets) -> Result<Self, RankingError> {
        let each = batch.iter().enumerate();
        each.map(|(at, request)| request.pending(targets.of(at), targets)).collect::<Result<_, _>>().map(Self)
    }

    /// Cuts out what one shard has.
    pub(super) fn cut(
        &self,
        (batch, targets): (&[ScoreRequest], &Targets),
        shard: usize,
        store: &dyn Store,
    ) -> Slice {
        let mut slice = Slice { batch: Vec::new(), targets: targets.without_rows(), places: Vec::new() };
        for (at, (request, known)) in batch.iter().zip(&self.0).enumerate() {
            let slicing = Slicing { known, shard, store };
            if let Some(Piece { request, rows, steps }) = request.cut(&slicing, targets.of(at)) {
                slice.batch.push(request);
                slice.targets.push(rows);
                slice.places.push((at, steps));
            }
        }
        slice.targets.keep_parts_of(&slice.batch);
        slice
    }

    /// Adds what one shard has decided of its slice, or its fault.
    pub(super) fn join(&mut self, slice: &Slice, done: Result<Vec<Decision>, &Fault>) {
        let mut decisions = done.map(Vec::into_iter);
        for ((at, steps), request) in slice.places.iter().zip(&slice.batch) {
            let new = match &mut decisions {
                Ok(decisions) => decisions.next().expect("a decision for each request"),
                Err(fault) => Decision::Failed(Fault::clone(fault)),
            };
            let known = std::mem::replace(&mut self.0[*at], Decision::Pending);
            self.0[*at] = request.join(known, new, steps);
        }
    }
}

/// The same fault if other shards have done their slices.
pub(crate) fn after_a_window(fault: Fault) -> Fault {
    Failure::Fault(fault).after_a_window().into_fault()
}
