//! Importing a file, chunk by chunk, each line exactly once.
//!
//! A chunk and the number of lines done are one transaction, so a chunk that is sent again after a crash changes
//! nothing, and an interrupted import goes on where it was.

use super::command::{Done, ImportChunk, Imported, Request};
use super::submit::checked;
use crate::failure::{Failure, Fault, blocking};
use crate::periods::keeper;
use crate::periods::purge::Purge;
use crate::tally::Tally;
use std::sync::Arc;
use tally_rules::score::Given;
use tally_rules::{BoardId, Micros, PlayerId};
use tally_store::{ImportKey, ImportRow};

/// One line of a file.
#[derive(Clone, Debug)]
pub struct NewLine {
    /// Its number in the file, from 1.
    pub line: u64,
    /// Who.
    pub player: PlayerId,
    /// How much.
    pub score: Given,
    /// When, if the file says so.
    pub at: Option<Micros>,
}

/// Consecutive lines of a file.
#[derive(Clone, Debug)]
pub struct NewChunk {
    /// Where.
    pub board: BoardId,
    /// Which file, and how it is read.
    pub digest: [u8; 32],
    /// Lines before this chunk.
    pub lines_before: u64,
    /// Lines up to its end.
    pub lines_after: u64,
    /// What they say.
    pub rows: Vec<NewLine>,
    /// Whether the file ends here.
    pub last: bool,
}

/// How far an import of this file into this board has come. Blocks on the store.
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
        // What the file said of closed periods is in force when the last chunk is answered.
        let (tally, board) = (Arc::clone(tally), board);
        let end = move || {
            keeper::end_import(&tally, &board);
            Ok(())
        };
        // The chunk is committed, so a fault here is no fault of it: the scheduler goes on.
        drop(blocking(end).await);
    }
    match done {
        Ok(Done::Imported(mut imported)) => {
            imported.refused.extend(refused);
            imported.refused.sort_by_key(|(line, _)| *line);
            Ok(imported)
        }
        Ok(_) => unreachable!("a chunk is answered as a chunk"),
        Err(failure) => Err(failure),
    }
}

/// Puts a chunk into the lane. Where it fills a period that was forgotten, what is left of that one is purged before, beside
/// the lane.
async fn purged(tally: &Arc<Tally>, chunk: ImportChunk) -> Result<Done, Failure> {
    let mut purge = Purge::default();
    loop {
        let done = tally.lane.ask(Request::Import(chunk.clone()), None).await;
        let Err(Failure::Fault(Fault::Purging(parts))) = done else { return done };
        let tally = Arc::clone(tally);
        purge = blocking(move || purge.of(&*tally.store, parts)).await?;
    }
}
