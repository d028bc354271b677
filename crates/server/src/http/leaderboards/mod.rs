//! Leaderboards over HTTP: one file per operation; here is what several of them render.

pub(super) mod among;
pub(super) mod around;
pub(super) mod batch;
pub(super) mod delete;
pub(super) mod get;
pub(super) mod list;
pub(super) mod page;
pub(super) mod player;
pub(super) mod put;
pub(super) mod remove;
pub(super) mod submit;

use super::problem;
use serde_json::Value;
use std::sync::Arc;
use tally_ranking::Place;
use tally_rules::{BoardId, PlayerId, Refusal};
use tally_service::boards::Board;
use tally_service::scores::command::Submitted;
use tally_service::{Tally, scores};
use tally_wire::api::leaderboards;
use tally_wire::api::scores::{EntryAnswer, PreviousAnswer, Style, SubmitAnswer};
use tally_wire::numbers::Int64;
use tally_wire::{Problem, time};

/// The name of the part over all time.
const ALL_TIME: &str = "all_time";

/// The live board of that name.
fn find(tally: &Tally, board: &BoardId) -> Result<Arc<Board>, Problem> {
    tally.boards.find(board).map_err(|refusal| problem::of_refusal(&refusal))
}

/// The part of a board that `period` names.
fn check_period(period: Option<String>) -> Result<(), Problem> {
    match period.as_deref() {
        None | Some(ALL_TIME) => Ok(()),
        Some(_) => Err(problem::of_refusal(&Refusal::PeriodNotFound)),
    }
}

fn write_board(board: &Board) -> Value {
    let counts = [(ALL_TIME, board.order.total())];
    leaderboards::write(&board.id, &board.definition, &counts, board.created_at)
}

fn write_submitted<'a>(
    board: &'a Board,
    player: &'a PlayerId,
    done: &Submitted,
    int64: Int64,
    row: bool,
) -> SubmitAnswer<'a> {
    let style = Style { definition: &board.definition, int64 };
    let previous = |old: &scores::command::Previous| PreviousAnswer {
        scores: style.scores(&old.record),
        rank: old.rank,
    };
    SubmitAnswer {
        board: board.id.as_str(),
        period: ALL_TIME,
        player: player.as_str(),
        scores: style.scores(&done.record),
        at: time::format(done.record.at),
        rank: done.rank,
        changed: done.changed,
        previous: done.previous.as_ref().map(previous),
        replayed: row && done.replayed,
    }
}

fn write_entries<'a>(style: &Style<'_>, places: &'a [Place]) -> Vec<EntryAnswer<'a>> {
    let one = |place: &'a Place| EntryAnswer {
        rank: place.rank,
        player: place.player.as_str(),
        scores: style.scores(&place.record),
        at: time::format(place.record.at),
    };
    places.iter().map(one).collect()
}
