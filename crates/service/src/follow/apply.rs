//! Making a committed transaction of the leader in the rankings of a follower.
//!
//! The rankings that it changes are held together, so a reader sees all of it or none. A transaction is decided by the leader
//! alone: nothing is checked here. It may be older than the state that was loaded, and then a later one ends right. A row of a
//! deleted leaderboard or of a closed period is skipped.

use crate::boards::{Board, Boards};
use crate::failure::{Failure, Fault};
use crate::periods::LiveWindow;
use crate::periods::outdated::OutdatedArchives;
use crate::scores::redefine::{New, install};
use crate::tally::Tally;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use tally_ranking::{RankingBackend, RankingChange};
use tally_rules::{Definition, PlayerId};
use tally_store::plan::ALL_TIME;
use tally_store::{BoardChange, BoardNo, BoardRow, Changes, Window, WindowRow};

/// The changes of one transaction by leaderboard and window, in the order in which all holders of several rankings lock them.
type ByWindow = BTreeMap<(BoardNo, Window), Vec<RankingChange>>;

/// Makes the changes of one transaction. Blocks on the store if API keys have changed.
pub fn apply(tally: &Tally, changes: &Changes) -> Result<(), Failure> {
    let mut redefined = Vec::new();
    for change in &changes.boards {
        match change {
            BoardChange::Create(row) => create(tally, row.clone())?,
            BoardChange::Redefine(no, definition) => {
                redefined.push(*no);
                redefine(tally, *no, definition, changes);
            }
            BoardChange::Delete(no) => {
                if let Some(board) = tally.boards.by_no(*no) {
                    tally.boards.set_gone(&board);
                }
            }
        }
    }
    let of_others = changes.windows.iter().filter(|(key, _)| !redefined.contains(&key.board));
    let windows: Vec<_> =
        of_others.filter_map(|(key, row)| Some((tally.boards.by_no(key.board)?, key.window, row))).collect();
    for (board, _, row) in &windows {
        row.iter().filter(|row| !row.closed).for_each(|row| begin(board, row));
    }
    publish(&tally.boards, changes);
    tally.following.iter().for_each(|following| following.note(changes));
    for (board, window, row) in &windows {
        match row {
            None => forget(board, *window),
            Some(row) if row.closed => close(board, row),
            Some(_) => {}
        }
    }
    if changes.keys {
        tally.keys.reload()?;
    }
    Ok(())
}

fn create(tally: &Tally, row: BoardRow) -> Result<(), Failure> {
    let id = row.id.clone();
    let board = Board::new(row, Vec::new(), &RankingBackend::Memory);
    let board = board.map_err(|rejection| Fault::Broken(rejection.detail()))?;
    tally.boards.set(&id, Some(Arc::new(board)));
    Ok(())
}

fn redefine(tally: &Tally, no: BoardNo, definition: &Definition, changes: &Changes) {
    let Some(board) = tally.boards.by_no(no) else { return };
    let mut new = New { definition: definition.clone(), ends: Vec::new(), deleted_windows: Vec::new() };
    for (key, row) in changes.windows.iter().filter(|(key, _)| key.board == no) {
        match row {
            Some(row) => new.ends.push(*row),
            None => new.deleted_windows.push(key.window),
        }
    }
    install(&board, &new);
}

/// A period has begun.
fn begin(board: &Board, row: &WindowRow) {
    let mut periods = board.periods_mut();
    let Some(state) = periods.rule_mut(row.rule) else { return };
    if state.live(row.window).is_none() && !state.is_closed(row.span) {
        let ranking = board.new_ranking(row.window);
        state.live.push(Arc::new(LiveWindow::new(row.window, row.rule, row.span, ranking)));
        state.live.sort_by_key(|live| live.span.start);
    }
}

/// A period is closed, or its archive is written again, or is outdated.
fn close(board: &Board, row: &WindowRow) {
    {
        let mut periods = board.periods_mut();
        let Some(state) = periods.rule_mut(row.rule) else { return };
        let known = state.closed.iter().find(|known| known.window == row.window);
        // A batch that makes an archive outdated knows it as it was when the batch was decided.
        if !row.stale || known.is_none_or(|known| known.version < row.version) {
            state.replace_closed(row.window, Some(*row));
            if row.version > 0 {
                state.live.retain(|live| live.window != row.window);
            }
        }
    }
    if row.stale {
        OutdatedArchives::mark(board, &[(board.no, *row)]);
    }
    board.live.wake();
}

/// A period and all of it is deleted.
fn forget(board: &Board, window: Window) {
    for state in &mut board.periods_mut().rules {
        state.live.retain(|live| live.window != window);
        state.closed.retain(|row| row.window != window);
    }
    board.stale.forget(window);
}

/// Changes rankings and bans.
pub(super) fn publish(boards: &Boards, changes: &Changes) {
    let by_window = by_window(boards, changes);
    let found = by_window.keys().filter_map(|of| {
        let board = boards.by_no(of.0)?;
        let live = board.periods().live(of.1).cloned();
        Some((*of, board, live))
    });
    let found: Vec<_> = found.collect();
    let mut held = Vec::new();
    for (of, board, live) in &found {
        match live {
            Some(live) => held.push((of, live.ranking.hold())),
            None if of.1 == ALL_TIME => held.push((of, board.ranking.hold())),
            None => {}
        }
    }
    for (of, ranking) in &mut held {
        for change in &by_window[of] {
            ranking.publish(change, 0);
        }
    }
    drop(held);
    for (of, board, _) in
        found.iter().filter(|(of, board, _)| board.live.is_watched() && board.shows_live(of.1))
    {
        board.live.note(of.1, by_window[of].iter().map(|change| &change.player));
    }
}

/// Changes bans, and returns what changes in each window. A banned player does not move.
fn by_window(boards: &Boards, changes: &Changes) -> ByWindow {
    let mut by_window = ByWindow::new();
    let mut put = |of: (BoardNo, Window), player: &PlayerId, record| {
        let change = RankingChange { player: player.clone(), record, ranked: false };
        by_window.entry(of).or_default().push(change);
    };
    for (key, is_banned) in &changes.bans {
        let Some(board) = boards.by_no(key.board) else { continue };
        let mut banned = board.banned.write().unwrap_or_else(PoisonError::into_inner);
        if *is_banned {
            banned.insert(key.player.clone());
            put((key.board, ALL_TIME), &key.player, None);
            board.live().iter().for_each(|live| put((key.board, live.window), &key.player, None));
        } else {
            banned.remove(&key.player);
        }
    }
    for of_board in changes.scores.chunk_by(|(a, _), (b, _)| a.board == b.board) {
        let Some(board) = boards.by_no(of_board[0].0.board) else { continue };
        let banned = board.banned.read().unwrap_or_else(PoisonError::into_inner);
        let shown = of_board.iter().filter(|(key, _)| !banned.contains(&key.player));
        shown.for_each(|(key, record)| put((key.board, key.window), &key.player, *record));
    }
    by_window
}
