//! Filling a board with rows in order of players, by the one process that has the store.
//!
//! No server runs on the store, so there is no ranking to update and no reply to send. A transaction is a chunk with the
//! progress of the file. Previous records are read by one range scan beside the rows instead of by key, and a chunk can be
//! written while the next is made. A server builds its rankings from the records when it starts. Not here: boards with
//! periods or of contests, and rows in any order ([`super::import`]).

use super::batch::score_key;
use super::submit::checked;
use crate::failure::Failure;
use std::collections::VecDeque;
use std::sync::Arc;
use tally_rules::instant::Instants;
use tally_rules::score::ScoreInput;
use tally_rules::{BoardId, Micros, PlayerId, Record, record};
use tally_store::BoardRef;
use tally_store::plan::ALL_TIME;
use tally_store::{BoardRow, ImportKey, ImportRow, Loaded, ReadSet, ScoreKey, Store, StoreError, WriteSet};

/// Records of one step of the range scan beside the rows.
const SCAN_ROWS: usize = 4096;

/// A board that is filled.
pub struct Filling {
    store: Arc<dyn Store>,
    board: BoardRow,
    key: ImportKey,
    /// How far the chunks made so far bring the file.
    done: ImportRow,
    instants: Instants,
    present: Present,
}

/// The state of a board to fill.
pub enum FillTarget {
    /// It can be filled.
    Fillable(Box<Filling>),
    /// Only a server can: its scores count for more than all time, it is a contest's, or the store has several databases.
    Served,
    /// There is none.
    Missing,
}

/// Consecutive rows, decided and not yet written.
pub struct Chunk {
    plan: ReadSet,
    scores: Vec<(ScoreKey, Option<Record>)>,
    before: ImportRow,
    /// How far the file is when it is written.
    pub done: ImportRow,
}

impl Filling {
    /// The board of that name, with the progress of the file of that digest. The caller ensures that no other process
    /// writes to the store.
    pub fn open(store: &Arc<dyn Store>, board: &BoardId, digest: [u8; 32]) -> Result<FillTarget, Failure> {
        let Some(state) = store.board(BoardRef::Id(board), None)? else { return Ok(FillTarget::Missing) };
        let board = state.row;
        let has_periods = !board.definition.periods.is_empty() || !state.windows.is_empty();
        // A chunk is one transaction.
        let is_spread = store.shards() > 1;
        if has_periods || is_spread || !board.definition.all_time || board.id.is_reserved() {
            return Ok(FillTarget::Served);
        }
        let key = ImportKey { board: board.no, digest };
        let done = store.import_progress(&key)?.unwrap_or_default();
        let (store, instants) = (Arc::clone(store), Instants::default());
        let filling = Self { store, board, key, done, instants, present: Present::default() };
        Ok(FillTarget::Fillable(Box::new(filling)))
    }

    /// How far the file is with every chunk that was made.
    pub fn done(&self) -> ImportRow {
        self.done
    }

    /// Decides the next rows, for the lines up to `until`. Players ascend, also from chunk to chunk. Chunks must be written
    /// in the order in which they are made.
    pub fn chunk(
        &mut self,
        rows: Vec<(PlayerId, ScoreInput)>,
        until: u64,
        now: Micros,
    ) -> Result<Chunk, Failure> {
        let before = self.done;
        let mut scores = Vec::with_capacity(rows.len());
        for (player, given) in rows {
            let previous = self.present.of(&player, &*self.store, &self.board)?;
            let at = self.instants.next(now);
            let decided = checked(&self.board.definition, player, given, None, None).and_then(|write| {
                let submit = Record { score: write.score, subscore: write.subscore, at };
                Ok((write.player, record::apply(&self.board.definition, previous, submit)?))
            });
            let Ok((player, updated)) = decided else {
                self.done.refused += 1;
                continue;
            };
            self.done.taken += 1;
            if updated.changed {
                scores.push((score_key(self.board.no, ALL_TIME, &player), Some(updated.record)));
            }
        }
        self.done.lines = until;
        let plan =
            ReadSet { boards: vec![self.board.no], imports: vec![self.key.clone()], ..ReadSet::default() };
        Ok(Chunk { plan, scores, before, done: self.done })
    }
}

impl Chunk {
    /// Writes it: all of it with how far the file is, or nothing.
    pub fn write(self, store: &dyn Store) -> Result<(), Failure> {
        let mut moved = false;
        store.run(&self.plan, &mut |loaded: &Loaded| {
            moved = loaded.boards[0].is_none() || loaded.imports[0].unwrap_or_default() != self.before;
            if moved {
                return WriteSet::default();
            }
            let imports = vec![(self.plan.imports[0].clone(), self.done)];
            WriteSet { scores: self.scores.clone(), imports, ..WriteSet::default() }
        })?;
        if moved {
            return Err(StoreError::Conflict("another process changes the store".to_owned()).into());
        }
        Ok(())
    }
}

/// The previous records, in order of players, read ahead of the rows.
#[derive(Default)]
struct Present {
    ahead: VecDeque<(PlayerId, Record)>,
    /// Nothing up to this player is read any more, so rows that are written meanwhile are never read.
    past: Option<PlayerId>,
    ended: bool,
}

impl Present {
    /// The record of a player, which must come after all players of earlier calls.
    fn of(
        &mut self,
        player: &PlayerId,
        store: &dyn Store,
        board: &BoardRow,
    ) -> Result<Option<Record>, StoreError> {
        debug_assert!(self.past.as_ref().is_none_or(|past| past < player), "players ascend");
        loop {
            while let Some((other, _)) = self.ahead.pop_front_if(|(other, _)| &*other < player) {
                self.past = Some(other);
            }
            if self.ended || !self.ahead.is_empty() {
                break;
            }
            // Without its last letter a name is just before all that begin like it.
            let before = player.as_str();
            let before = before.strip_suffix(|_: char| true).and_then(|text| PlayerId::new(text).ok());
            let (after, ahead) = (self.past.clone().max(before), &mut self.ahead);
            let each = &mut |player, record| ahead.push_back((player, record));
            self.ended = store.scan_scores(board.no, ALL_TIME, after.as_ref(), SCAN_ROWS, each)? < SCAN_ROWS;
        }
        self.past = Some(player.clone());
        Ok(self.ahead.pop_front_if(|(other, _)| &*other == player).map(|(_, record)| record))
    }
}
