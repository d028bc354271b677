//! Everything a batch reads: from the orders in memory where they have it, from the store where they have not.
//!
//! The lane is the only one that publishes, so an order in memory is exact while a batch is decided: it holds the record
//! of every player that is not hidden and has no damaged row. What stays for the store are those, closed periods, requests,
//! profiles.

use super::aim::Aims;
use super::command::{Ban, Erase, Redefine, Remove, Request, ScoreWrite, Submit};
use super::steps::Step;
use crate::boards::Board;
use std::collections::HashSet;
use std::sync::{Arc, PoisonError};
use tally_lanes::keys_to_load;
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::{PlayerId, Record};
use tally_store::{BoardNo, Part, Plan, ScoreKey, Store};

/// What a batch reads, and what of it is known already.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// What the store is asked for.
    pub(super) plan: Plan,
    /// Records that the orders in memory have, or have not; a key that is asked for twice is here twice.
    pub(super) known: Vec<(ScoreKey, Option<Record>)>,
}

/// Everything a batch reads.
pub(super) fn read(batch: &[Request], aims: &Aims, store: &dyn Store) -> Reading {
    let mut reading = Gathering::default();
    for (request, rows) in batch.iter().zip(&aims.rows) {
        let identity = match request {
            Request::Submit(Submit { board, write: ScoreWrite { player, .. }, identity })
            | Request::Remove(Remove { board, player, identity }) => {
                reading.board(board, &rows[0].parts, [player]);
                identity.as_ref()
            }
            Request::Ban(Ban { board, player, identity, .. }) => {
                reading.board(board, &rows[0].parts, [player]);
                let packed = board.periods().packed_anywhere(board.is_shared());
                reading.plan.scores.extend(packed.iter().map(|row| score_key(board.no, row.part, player)));
                identity.as_ref()
            }
            Request::Erase(Erase { player, boards, identity, .. }) => {
                reading.plan.boards.extend(boards.iter().map(|board| board.no));
                let parts = boards.iter().flat_map(|board| aims.every_part(board));
                reading.plan.scores.extend(parts.map(|(board, part)| score_key(board, part, player)));
                reading.plan.profiles.push(player.clone());
                identity.as_ref()
            }
            Request::Import(chunk) => {
                for ((_, write), row) in chunk.rows.iter().zip(rows) {
                    reading.board(&chunk.board, &row.parts, [&write.player]);
                }
                reading.plan.boards.push(chunk.board.no);
                reading.plan.imports.push(chunk.key.clone());
                None
            }
            Request::Commands(commands) => {
                for (step, row) in commands.steps.iter().zip(rows) {
                    let identity = reading.step(step, &row.parts);
                    reading.plan.requests.extend(identity.map(|one| one.key.clone()));
                }
                None
            }
            Request::Redefine(Redefine { board, identity, .. }) => {
                reading.plan.board_names.push(board.id.clone());
                reading.plan.boards.push(board.no);
                identity.as_ref()
            }
            Request::Vanish(board) => {
                reading.plan.boards.push(board.no);
                None
            }
        };
        reading.plan.requests.extend(identity.map(|one| one.key.clone()));
    }
    reading.look(aims, store).sorted()
}

/// What a batch reads, as long as the orders in memory have not been asked.
#[derive(Default)]
struct Gathering<'a> {
    plan: Plan,
    /// Records of live boards.
    records: Vec<(&'a Arc<Board>, Part, &'a PlayerId)>,
}

/// The key of a record.
pub(super) fn score_key(board: BoardNo, part: Part, player: &PlayerId) -> ScoreKey {
    ScoreKey { board, part, player: player.clone() }
}

impl<'a> Gathering<'a> {
    fn step(&mut self, step: &'a Step, parts: &[Part]) -> Option<&'a IdempotencyKey> {
        match step {
            Step::Add { board, items, .. } => {
                self.board(board, parts, items.iter().map(|(player, _)| player));
            }
            Step::Remove { board, players } => self.board(board, parts, players),
            Step::Take { board, .. } => self.plan.boards.push(board.no),
            Step::Submit(Submit { board, write, identity }) => {
                self.board(board, parts, [&write.player]);
                return identity.as_ref();
            }
            Step::Read(_) => {}
        }
        None
    }

    /// The records of some players in some parts of a live board.
    fn board(
        &mut self,
        board: &'a Arc<Board>,
        parts: &[Part],
        players: impl IntoIterator<Item = &'a PlayerId> + Clone,
    ) {
        self.plan.boards.push(board.no);
        for part in parts {
            self.records.extend(players.clone().into_iter().map(|player| (board, *part, player)));
        }
    }

    /// Asks the orders in memory, each once for all its players.
    fn look(self, aims: &Aims, store: &dyn Store) -> Reading {
        let Self { plan, mut records } = self;
        let has_damaged = store.damaged_count() > 0;
        let mut reading = Reading { plan, known: Vec::with_capacity(records.len()) };
        let order = |(board, part, _): &(&Arc<Board>, Part, &PlayerId)| (board.no, *part);
        records.sort_by_key(order);
        for of_one in records.chunk_by(|left, right| order(left) == order(right)) {
            let (board, part, _) = of_one[0];
            let players = of_one.iter().map(|(.., player)| *player);
            let key = |player| score_key(board.no, part, player);
            let found = aims.order_of(board, part);
            let Some(order) = found.as_ref().and_then(|found| found.order().memory()) else {
                reading.plan.scores.extend(players.map(key));
                continue;
            };
            let (hidden, shown): (Vec<_>, Vec<_>) = {
                let hidden = board.hidden.read().unwrap_or_else(PoisonError::into_inner);
                // The order has no record of those either. One that is damaged must not be taken for none.
                let is_damaged = |player| has_damaged && store.is_damaged(&key(player));
                players.partition(|player| hidden.contains(*player) || is_damaged(player))
            };
            reading.plan.scores.extend(hidden.into_iter().map(key));
            let mut keys = shown.iter().copied().map(key);
            order.records(&shown, |record| {
                reading.known.push((keys.next().expect("a record for each"), record));
            });
        }
        reading
    }
}

impl Reading {
    /// Reads these too.
    pub(super) fn add(&mut self, more: &[ScoreKey]) {
        self.plan.scores.extend_from_slice(more);
        self.plan.scores = keys_to_load(std::mem::take(&mut self.plan.scores));
    }

    fn sorted(mut self) -> Self {
        let Self { plan, known } = &mut self;
        plan.boards = keys_to_load(std::mem::take(&mut plan.boards));
        plan.board_names = keys_to_load(std::mem::take(&mut plan.board_names));
        plan.scores = keys_to_load(std::mem::take(&mut plan.scores));
        if !plan.scores.is_empty() {
            let known: HashSet<&ScoreKey> = known.iter().map(|(key, _)| key).collect();
            plan.scores.retain(|key| !known.contains(key));
        }
        plan.requests = keys_to_load(std::mem::take(&mut plan.requests));
        plan.imports = keys_to_load(std::mem::take(&mut plan.imports));
        plan.profiles = keys_to_load(std::mem::take(&mut plan.profiles));
        self
    }
}
