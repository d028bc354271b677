//! Importing a file, chunk by chunk, each line exactly once.
//!
//! A chunk and the number of lines done are one transaction. So a chunk that is sent again after a crash changes nothing, and
//! an interrupted import continues.

use super::batch::{
    Access, Decision, Effect, Effects, FIRST, Piece, Players, Replying, RowTarget, ScoreBatchState,
    ScoreRequestKind, Shards, Slicing, TargetRow, Targets, after_a_window,
};
use super::submit::{ScoreWrite, checked};
use crate::boards::Board;
use crate::failure::{Failure, Fault, blocking};
use crate::periods::purge::Purge;
use crate::periods::scheduler;
use crate::tally::Tally;
use std::sync::Arc;
use tally_rules::score::ScoreInput;
use tally_rules::{BoardId, Micros, PlayerId, Record, Rejection};
use tally_store::{ImportKey, ImportRow, ReadSet, Window};

/// Consecutive lines of one file, checked.
#[derive(Clone, Debug)]
pub(crate) struct ImportChunk {
    board: Arc<Board>,
    key: ImportKey,
    /// Lines of the file before this chunk.
    lines_before: u64,
    /// Lines of the file up to its end.
    lines_after: u64,
    /// Each line with its number; empty lines are left out.
    rows: Vec<(u64, ScoreWrite)>,
    /// Lines that were rejected before.
    refused: Vec<u64>,
    /// Whether the file ends here.
    last: bool,
    /// Whether it is what one of several shards has of a chunk.
    is_slice: bool,
}

/// The reply to a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The whole import so far.
    pub progress: ImportRow,
    /// Lines of this chunk that were rejected.
    pub refused: Vec<(u64, Rejection)>,
    /// Whether the chunk had been done before.
    pub replayed: bool,
}

#[derive(Debug)]
pub(crate) struct ImportDecision {
    reply: Imported,
    /// The records that each line left, in order.
    records: Vec<(PlayerId, Vec<(Window, Record)>)>,
    /// Why a shard has not done its lines.
    fault: Option<Fault>,
}

impl ScoreRequestKind for ImportChunk {
    type Decision = ImportDecision;
    type Reply = Imported;

    fn each_row<'a>(&'a self, each: &mut impl FnMut(TargetRow<'a>)) {
        for (_, write) in &self.rows {
            let (players, access) = (Players::one(&write.player), Access::Line(write.at));
            each(TargetRow { board: Some(&self.board), players, access });
        }
    }

    fn each_board<'a>(&'a self, each: &mut impl FnMut(&'a Arc<Board>)) {
        each(&self.board);
    }

    fn weight(&self) -> usize {
        self.rows.len()
    }

    /// Each shard has its own position in the file.
    fn shards(&self, shards: &mut Shards<'_>) {
        shards.all();
    }

    fn read(&self, _targets: &Targets, plan: &mut ReadSet) {
        plan.imports.push(self.key.clone());
    }

    fn decide(
        &self,
        state: &mut ScoreBatchState,
        rows: &[RowTarget],
        _targets: &Targets,
    ) -> Result<ImportDecision, Rejection> {
        state.check_live(self.board.no)?;
        let mut progress = state.imports.get(&self.key).copied().unwrap_or_default();
        let ends = self.last && !progress.finished;
        if self.lines_after <= progress.lines && !ends {
            let reply = Imported { progress, refused: Vec::new(), replayed: true };
            return Ok(ImportDecision { reply, records: Vec::new(), fault: None });
        }
        if progress.finished {
            let board = Some(self.board.id.as_str().into());
            return Err(Rejection::ImportRepeated { board, lines: progress.lines });
        }
        // A shard may be ahead of the others after one of them failed.
        let is_ahead = self.is_slice && self.lines_before < progress.lines;
        if self.lines_before != progress.lines && !is_ahead {
            return Err(Rejection::ImportOutOfOrder(progress.lines));
        }
        let is_new = |line: &u64| *line > progress.lines;
        let (mut records, mut refused) = (Vec::with_capacity(self.rows.len()), Vec::new());
        for ((line, write), row) in self.rows.iter().zip(rows).filter(|((line, _), _)| is_new(line)) {
            match row.at.clone().and_then(|at| state.apply(&self.board, write, at, &row.windows)) {
                Ok(applied) => records.push((write.player.clone(), applied.records)),
                Err(rejection) => refused.push((*line, rejection)),
            }
        }
        let before = self.refused.iter().filter(|line| is_new(line)).count();
        progress = ImportRow {
            lines: self.lines_after.max(progress.lines),
            taken: progress.taken + records.len() as u64,
            refused: progress.refused + (refused.len() + before) as u64,
            finished: self.last,
        };
        state.imports.set(&self.key, Some(progress));
        let reply = Imported { progress, refused, replayed: false };
        Ok(ImportDecision { reply, records, fault: None })
    }

    fn publish<'a>(
        &'a self,
        decision: &'a ImportDecision,
        _rows: &'a [RowTarget],
        effects: &mut Effects<'a>,
    ) {
        for (player, records) in &decision.records {
            effects.add(&self.board, Effect::Scores { player, records, ranked: false });
        }
    }

    fn reply(&self, decision: ImportDecision, _with: Replying<'_>) -> Result<Imported, Failure> {
        decision.fault.map_or(Ok(decision.reply), |fault| Err(fault.into()))
    }

    /// The first shard's position is that of the file, so it comes last and only if all others have theirs.
    fn cut(&self, slicing: &Slicing<'_>, rows: &[RowTarget]) -> Option<Piece<Self>> {
        let goes_on = match slicing.known {
            Decision::Pending => true,
            Decision::ImportChunk(known) => known.fault.is_none(),
            _ => false,
        };
        if slicing.shard == FIRST && !goes_on {
            return None;
        }
        let here = self.rows.iter().zip(rows).filter(|((_, write), _)| slicing.is_here(&write.player));
        let (lines, rows) = here.map(|(line, row)| (line.clone(), row.clone())).unzip();
        // Lines without a player count on the first shard.
        let refused = if slicing.shard == FIRST { self.refused.clone() } else { Vec::new() };
        let (board, key) = (Arc::clone(&self.board), self.key.clone());
        let request = Self { board, key, rows: lines, refused, is_slice: true, ..*self };
        Some(Piece { request, rows, steps: Vec::new() })
    }

    fn join(known: Decision, new: Decision, _steps: &[usize]) -> Decision {
        match (known, new) {
            (Decision::ImportChunk(mut known), Decision::ImportChunk(new)) => {
                let Imported { mut progress, refused, replayed } = new.reply;
                progress.taken += known.reply.progress.taken;
                progress.refused += known.reply.progress.refused;
                known.reply.progress = progress;
                known.reply.refused.extend(refused);
                known.reply.replayed &= replayed;
                known.records.extend(new.records);
                Decision::ImportChunk(known)
            }
            // Some lines are done already. The other shards report why they stopped.
            (Decision::ImportChunk(mut known), Decision::Failed(fault)) => {
                known.fault.get_or_insert_with(|| after_a_window(fault));
                Decision::ImportChunk(known)
            }
            (Decision::ImportChunk(mut known), _) => {
                known.fault = Some(Fault::OutcomeUnknown("a part of the chunk is done".into()));
                Decision::ImportChunk(known)
            }
            (Decision::Failed(fault), Decision::ImportChunk(mut new)) => {
                new.fault = Some(after_a_window(fault));
                Decision::ImportChunk(new)
            }
            (Decision::Rejected(rejection), Decision::ImportChunk(mut new)) => {
                new.fault = Some(Fault::OutcomeUnknown(rejection.detail()));
                Decision::ImportChunk(new)
            }
            (failed @ Decision::Failed(_), _) => failed,
            (_, new) => new,
        }
    }
}

/// One line of a file.
#[derive(Clone, Debug)]
pub struct NewLine {
    /// Its number in the file, from 1.
    pub line: u64,
    /// The player.
    pub player: PlayerId,
    /// How much.
    pub score: ScoreInput,
    /// When, if the file says so.
    pub at: Option<Micros>,
}

/// Consecutive lines of a file.
#[derive(Clone, Debug)]
pub struct NewChunk {
    /// The leaderboard.
    pub board: BoardId,
    /// Which file, and how it is read.
    pub digest: [u8; 32],
    /// Lines before this chunk.
    pub lines_before: u64,
    /// Lines up to its end.
    pub lines_after: u64,
    /// Their contents.
    pub rows: Vec<NewLine>,
    /// Whether the file ends here.
    pub last: bool,
}

/// The progress of an import of this file into this board. Blocks on the store.
pub fn progress(tally: &Tally, board: &BoardId, digest: [u8; 32]) -> Result<Option<ImportRow>, Failure> {
    // Another server may have made it a moment ago.
    drop(tally.board(board));
    let board = tally.boards.find(board)?;
    Ok(tally.store.import_progress(&ImportKey { board: board.no, digest })?)
}

/// Imports a chunk.
pub async fn import(tally: &Arc<Tally>, chunk: NewChunk) -> Result<Imported, Failure> {
    let board = tally.find(&chunk.board).await?;
    let mut refused = Vec::new();
    let mut rows = Vec::with_capacity(chunk.rows.len());
    for row in chunk.rows {
        match checked(&board.definition, row.player, row.score, None, row.at) {
            Ok(write) => rows.push((row.line, write)),
            Err(rejection) => refused.push((row.line, rejection)),
        }
    }
    let request = ImportChunk {
        key: ImportKey { board: board.no, digest: chunk.digest },
        board: Arc::clone(&board),
        lines_before: chunk.lines_before,
        lines_after: chunk.lines_after,
        rows,
        refused: refused.iter().map(|(line, _)| *line).collect(),
        last: chunk.last,
        is_slice: false,
    };
    let last = chunk.last;
    let done = purged(tally, request).await;
    if last && done.is_ok() {
        // The reply to the last chunk comes after its closed periods were archived again.
        let (tally, board) = (Arc::clone(tally), board);
        let end = move || {
            scheduler::end_import(&tally, &board);
            Ok(())
        };
        // The chunk is committed, so a fault here is none of the chunk: the scheduler continues.
        drop(blocking(end).await);
    }
    let mut imported = done?;
    imported.refused.extend(refused);
    imported.refused.sort_by_key(|(line, _)| *line);
    Ok(imported)
}

/// Puts a chunk into the lane. If it fills a deleted period, the remaining rows of that period are purged first, outside of the
/// lane.
async fn purged(tally: &Arc<Tally>, chunk: ImportChunk) -> Result<Imported, Failure> {
    let mut purge = Purge::default();
    loop {
        let done = tally.lane.ask(chunk.clone(), None).await;
        let Err(Failure::Fault(Fault::Purging(windows))) = done else { return done };
        let tally = Arc::clone(tally);
        purge = blocking(move || purge.of(&*tally.store, windows)).await?;
    }
}
