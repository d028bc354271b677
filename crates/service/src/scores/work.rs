//! What the score lane does with a batch: one transaction, then one publication, then the answers.

use super::command::{Done, Imported, Previous, Removed, Request, Submitted};
use super::decide::{self, Decision, Given};
use crate::boards::Board;
use crate::clock::Clock;
use crate::failure::Fault;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use tally_lanes::{Failure, Weight, Work};
use tally_ranking::{Movement, Published};
use tally_rules::instant::Instants;
use tally_rules::{PlayerId, Record, Refusal};
use tally_store::{BoardNo, Store, StoreError};

/// Bytes a request holds beside its player's name: a rough sum of the structures, for the queue's bound.
const REQUEST_BYTES: u32 = 256;

/// The work of one lane of scores.
pub(super) struct ScoreWork {
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Clock,
    pub(super) instants: Instants,
    pub(super) keep_micros: i64,
}

impl Work for ScoreWork {
    type Request = Request;
    type Answer = Result<Done, Refusal>;
    type Fault = Fault;
    type Committed = Vec<Decision>;

    fn weight(request: &Request) -> Weight {
        match request {
            Request::Submit(_) | Request::Remove(_) | Request::Ban(_) => {
                Weight { rows: 1, bytes: REQUEST_BYTES }
            }
            Request::Erase(erase) => {
                let rows = u32::try_from(erase.boards.len()).unwrap_or(u32::MAX);
                Weight { rows, bytes: rows.saturating_mul(REQUEST_BYTES) }
            }
            Request::Import(chunk) => {
                let rows = u32::try_from(chunk.rows.len()).unwrap_or(u32::MAX);
                Weight { rows, bytes: rows.saturating_mul(REQUEST_BYTES) }
            }
        }
    }

    fn commit(&mut self, batch: &[Request]) -> Result<Vec<Decision>, Failure<Fault>> {
        let plan = decide::plan(batch);
        let now = (self.clock)();
        let instants = self.instants_of(batch);
        let mut decisions = Vec::new();
        self.store
            .run(&plan, &mut |loaded| {
                let (changes, decided) =
                    decide::decide(batch, &instants, &plan, loaded, now, self.keep_micros);
                decisions = decided;
                changes
            })
            .map_err(failure)?;
        Ok(decisions)
    }

    fn publish(&mut self, batch: Vec<Request>, committed: Vec<Decision>) -> Vec<Result<Done, Refusal>> {
        let ranks = publish_by_board(&batch, &committed);
        batch
            .iter()
            .zip(committed)
            .zip(ranks)
            .map(|((request, decision), ranks)| answer(request, decision, ranks))
            .collect()
    }
}

impl ScoreWork {
    /// One instant per row, in order of arrival.
    fn instants_of(&mut self, batch: &[Request]) -> Given {
        let now = (self.clock)();
        let instants = &mut self.instants;
        batch
            .iter()
            .map(|request| match request {
                Request::Submit(submit) => vec![instants.of_row(submit.write.at, now)],
                Request::Remove(_) | Request::Ban(_) | Request::Erase(_) => Vec::new(),
                Request::Import(chunk) => {
                    chunk.rows.iter().map(|(_, write)| instants.of_row(write.at, now)).collect()
                }
            })
            .collect()
    }
}

/// What the lane does next, by the kind of the store's fault.
fn failure(error: StoreError) -> Failure<Fault> {
    match error {
        StoreError::Conflict(_) => Failure::Retry(error.into()),
        StoreError::Row(_) => Failure::Row(error.into()),
        // A store whose commit can be lost answers `resolve`; the embedded one has no such moment.
        StoreError::LostAtCommit(_)
        | StoreError::Away(_)
        | StoreError::Corrupt(_)
        | StoreError::Locked(_)
        | StoreError::TooNew { .. }
        | StoreError::NotOurs(_) => Failure::Away(error.into()),
    }
}

/// What a decision does to the order of one board.
enum Effect {
    /// The player's record is this now.
    Move(PlayerId, Option<Record>),
    /// The player is hidden.
    Hide(PlayerId),
    /// The player is shown again, with this record.
    Show(PlayerId, Option<Record>),
}

/// The effects on one board, in order, each with the request that hears the ranks around it.
type Effects<'a> = (&'a Arc<Board>, Vec<(Option<usize>, Effect)>);

/// Publishes a batch, each board's changes together and in order; gives the ranks of every request.
fn publish_by_board(batch: &[Request], committed: &[Decision]) -> Vec<Published> {
    let mut ranks = vec![Published::default(); batch.len()];
    for (board, effects) in effects_by_board(batch, committed).into_values() {
        let (movements, owners) = movements(board, effects);
        for (published, owner) in board.order.publish(&movements).into_iter().zip(owners) {
            if let Some(at) = owner {
                ranks[at] = published;
            }
        }
    }
    ranks
}

fn effects_by_board<'a>(batch: &'a [Request], committed: &[Decision]) -> BTreeMap<BoardNo, Effects<'a>> {
    let mut all: BTreeMap<BoardNo, Effects<'a>> = BTreeMap::new();
    let mut add = |board: &'a Arc<Board>, owner, effect| {
        all.entry(board.no).or_insert_with(|| (board, Vec::new())).1.push((owner, effect));
    };
    for (at, (request, decision)) in batch.iter().zip(committed).enumerate() {
        match (request, decision) {
            (Request::Submit(submit), Decision::Submit { record, replayed: false, .. }) => {
                add(&submit.board, Some(at), Effect::Move(submit.write.player.clone(), Some(*record)));
            }
            (Request::Remove(remove), Decision::Remove { replayed: false }) => {
                add(&remove.board, None, Effect::Move(remove.player.clone(), None));
            }
            (Request::Ban(ban), Decision::Ban { replayed: false, record }) => {
                let player = ban.player.clone();
                let effect = if ban.hidden { Effect::Hide(player) } else { Effect::Show(player, *record) };
                add(&ban.board, None, effect);
            }
            (Request::Erase(erase), Decision::Erase { replayed: false }) => {
                for board in &erase.boards {
                    add(board, None, Effect::Show(erase.player.clone(), None));
                }
            }
            (Request::Import(chunk), Decision::Import { records, .. }) => {
                for (player, record) in records {
                    add(&chunk.board, None, Effect::Move(player.clone(), Some(*record)));
                }
            }
            // Refused, or done in an earlier batch: nothing moves.
            (_, _) => {}
        }
    }
    all
}

/// Effects as movements of the order, where a hidden player does not move.
fn movements(board: &Board, effects: Vec<(Option<usize>, Effect)>) -> (Vec<Movement>, Vec<Option<usize>>) {
    let mut hidden = board.hidden.write().unwrap_or_else(PoisonError::into_inner);
    let mut moves = Vec::with_capacity(effects.len());
    let mut owners = Vec::with_capacity(effects.len());
    for (owner, effect) in effects {
        let (player, record) = match effect {
            Effect::Move(player, _) if hidden.contains(&player) => continue,
            Effect::Move(player, record) => (player, record),
            Effect::Hide(player) => {
                hidden.insert(player.clone());
                (player, None)
            }
            Effect::Show(player, record) => {
                hidden.remove(&player);
                (player, record)
            }
        };
        moves.push(Movement { player, record });
        owners.push(owner);
    }
    (moves, owners)
}

fn answer(request: &Request, decision: Decision, ranks: Published) -> Result<Done, Refusal> {
    match (request, decision) {
        (_, Decision::Refused(refusal)) => Err(refusal),
        (
            _,
            Decision::Remove { replayed } | Decision::Ban { replayed, .. } | Decision::Erase { replayed },
        ) => Ok(Done::Removed(Removed { replayed })),
        (_, Decision::Import { progress, refused, replayed, .. }) => {
            Ok(Done::Imported(Imported { progress, refused, replayed }))
        }
        (Request::Submit(submit), Decision::Submit { record, previous, changed, replayed: true }) => {
            // The outcome is that of then; ranks are those of now.
            let (order, player) = (&submit.board.order, &submit.write.player);
            let rank = order.ranked(player).map(|now| now.rank);
            let then = |old: &Record| (!submit.board.hides(player)).then(|| order.rank_of(player, old));
            let previous = previous.map(|old| Previous { record: old, rank: then(&old) });
            Ok(Done::Submitted(Submitted { record, rank, changed, previous, replayed: true }))
        }
        (_, Decision::Submit { record, previous, changed, .. }) => {
            let previous = previous.map(|old| Previous { record: old, rank: ranks.before });
            Ok(Done::Submitted(Submitted { record, rank: ranks.after, changed, previous, replayed: false }))
        }
    }
}
