//! Everything that a batch reads: from the rankings in memory if they have it, else from the store.
//!
//! Only the lane publishes, so a ranking in memory is exact while a batch is decided. It has the record of every player that is
//! not banned and has no corrupt row. The store has those, and closed periods, requests and profiles.

use super::kind::{Access, ScoreRequest, on_kind};
use super::targets::{Targets, each_row};
use crate::boards::Board;
use crate::contests::play;
use std::collections::HashSet;
use std::sync::{Arc, PoisonError};
use tally_lanes::keys_to_load;
use tally_rules::{PlayerId, Record};
use tally_store::plan::ATTEMPTS;
use tally_store::{BoardNo, ReadSet, ScoreKey, Store, Window};

/// The reads of a batch, and those that memory has answered.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// The read set for the store.
    pub(super) plan: ReadSet,
    /// Records that the rankings in memory have, or have not; a key that is read twice is here twice.
    pub(super) known: Vec<(ScoreKey, Option<Record>)>,
}

pub(crate) fn score_key(board: BoardNo, window: Window, player: &PlayerId) -> ScoreKey {
    ScoreKey { board, window, player: player.clone() }
}

/// Everything that a batch reads, and `more`.
pub(super) fn read(
    batch: &[ScoreRequest],
    targets: &Targets,
    store: &dyn Store,
    more: &[ScoreKey],
) -> Reading {
    let mut plan = ReadSet::default();
    let mut records: Vec<(&Arc<Board>, Window, &PlayerId)> = Vec::with_capacity(batch.len());
    for request in batch {
        on_kind!(request, one => one.each_board(&mut |board| plan.boards.push(board.no)));
        on_kind!(request, one => {
            one.read(targets, &mut plan);
            plan.requests.extend(one.idempotency().map(|idempotency| idempotency.key.clone()));
        });
    }
    each_row(batch, |place, row| {
        let Some(board) = row.board else { return };
        for window in &targets.row_at(place).windows {
            records.extend(row.players.iter().map(|player| (board, *window, player)));
        }
        if matches!(row.access, Access::Score(_)) && play::attempts_max(board).is_some() {
            records.extend(row.players.iter().map(|player| (board, ATTEMPTS, player)));
        }
    });
    let mut reading = Reading { plan, known: Vec::with_capacity(records.len()) };
    reading.read_memory(records, targets, store);
    let mut reading = reading.sorted();
    if !more.is_empty() {
        reading.plan.scores.extend_from_slice(more);
        reading.plan.scores = keys_to_load(std::mem::take(&mut reading.plan.scores));
    }
    reading
}

impl Reading {
    /// Reads the rankings in memory, each once for all its players.
    fn read_memory(
        &mut self,
        mut records: Vec<(&Arc<Board>, Window, &PlayerId)>,
        targets: &Targets,
        store: &dyn Store,
    ) {
        let has_damaged = store.corrupt_row_count() > 0;
        let order = |(board, window, _): &(&Arc<Board>, Window, &PlayerId)| (board.no, *window);
        records.sort_by_key(order);
        for of_one in records.chunk_by(|left, right| order(left) == order(right)) {
            let (board, window, _) = of_one[0];
            let players = of_one.iter().map(|(.., player)| *player);
            let key = |player| score_key(board.no, window, player);
            let found = targets.ranking_of(board, window);
            let Some(ranking) = found.as_ref().and_then(|found| found.ranking().memory()) else {
                self.plan.scores.extend(players.map(key));
                continue;
            };
            let (banned, shown): (Vec<_>, Vec<_>) = {
                let banned = board.banned.read().unwrap_or_else(PoisonError::into_inner);
                // The ranking has no record of those either. A corrupt row must not be taken for none.
                let is_corrupt = |player| has_damaged && store.is_corrupt(&key(player));
                players.partition(|player| banned.contains(*player) || is_corrupt(player))
            };
            self.plan.scores.extend(banned.into_iter().map(key));
            let mut keys = shown.iter().copied().map(key);
            ranking.records(&shown, |record| {
                self.known.push((keys.next().expect("a record for each"), record));
            });
        }
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
