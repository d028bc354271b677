//! What the score lane does with a batch: one transaction, then one publication, then the answers.

use super::command::{Done, Imported, Previous, Removed, Request, Submitted};
use super::decide::{self, Decision, Given};
use crate::boards::Board;
use crate::clock::Clock;
use crate::failure::Fault;
use std::collections::BTreeMap;
use std::sync::Arc;
use tally_lanes::{Failure, Weight, Work};
use tally_ranking::{Movement, Published};
use tally_rules::Refusal;
use tally_rules::instant::Instants;
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
            Request::Submit(_) | Request::Remove(_) => Weight { rows: 1, bytes: REQUEST_BYTES },
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
                Request::Remove(_) => Vec::new(),
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

/// Publishes a batch, each board's changes together and in order; gives the ranks of every request.
fn publish_by_board(batch: &[Request], committed: &[Decision]) -> Vec<Published> {
    let mut moves: BTreeMap<BoardNo, (&Arc<Board>, Vec<Movement>, Vec<Option<usize>>)> = BTreeMap::new();
    for (at, (request, decision)) in batch.iter().zip(committed).enumerate() {
        let board = board_of(request);
        let (_, movements, owners) = moves.entry(board.no).or_insert_with(|| (board, Vec::new(), Vec::new()));
        match (request, decision) {
            (Request::Submit(submit), Decision::Submit { record, replayed: false, .. }) => {
                movements.push(Movement { player: submit.write.player.clone(), record: Some(*record) });
                owners.push(Some(at));
            }
            (Request::Remove(remove), Decision::Remove { replayed: false }) => {
                movements.push(Movement { player: remove.player.clone(), record: None });
                owners.push(Some(at));
            }
            (Request::Import(_), Decision::Import { records, .. }) => {
                let of_row = |(player, record): &(_, _)| Movement {
                    player: tally_rules::PlayerId::clone(player),
                    record: Some(*record),
                };
                movements.extend(records.iter().map(of_row));
                owners.extend(records.iter().map(|_| None));
            }
            (_, _) => {}
        }
    }
    let mut ranks = vec![Published::default(); batch.len()];
    for (board, movements, owners) in moves.values() {
        for (published, owner) in board.order.publish(movements).into_iter().zip(owners) {
            if let Some(at) = owner {
                ranks[*at] = published;
            }
        }
    }
    ranks
}

fn board_of(request: &Request) -> &Arc<Board> {
    match request {
        Request::Submit(submit) => &submit.board,
        Request::Remove(remove) => &remove.board,
        Request::Import(chunk) => &chunk.board,
    }
}

fn answer(request: &Request, decision: Decision, ranks: Published) -> Result<Done, Refusal> {
    match (request, decision) {
        (_, Decision::Refused(refusal)) => Err(refusal),
        (_, Decision::Remove { replayed }) => Ok(Done::Removed(Removed { replayed })),
        (_, Decision::Import { progress, refused, replayed, .. }) => {
            Ok(Done::Imported(Imported { progress, refused, replayed }))
        }
        (Request::Submit(submit), Decision::Submit { record, previous, changed, replayed: true }) => {
            // The outcome is that of then; ranks are those of now.
            let (order, player) = (&submit.board.order, &submit.write.player);
            let rank = order.ranked(player).map(|now| now.rank);
            let previous =
                previous.map(|old| Previous { record: old, rank: Some(order.rank_of(player, &old)) });
            Ok(Done::Submitted(Submitted { record, rank, changed, previous, replayed: true }))
        }
        (_, Decision::Submit { record, previous, changed, .. }) => {
            let previous = previous.map(|old| Previous { record: old, rank: ranks.before });
            Ok(Done::Submitted(Submitted { record, rank: ranks.after, changed, previous, replayed: false }))
        }
    }
}
