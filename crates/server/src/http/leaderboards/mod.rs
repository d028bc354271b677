//! Leaderboards over HTTP: one file for each operation. This file has what several of them render.

pub(super) mod among;
pub(super) mod around;
pub(super) mod bans;
pub(super) mod batch;
pub(super) mod correct;
pub(super) mod delete;
pub(super) mod get;
pub(super) mod list;
pub(super) mod page;
pub(super) mod periods;
pub(super) mod player;
pub(super) mod prizes;
pub(super) mod put;
pub(super) mod remove;
pub(super) mod submit;

use super::keys::blocking;
use super::{not_found, problem, response};
use crate::responses::{ResponseShare, Responses};
use serde_json::Value;
use std::sync::Arc;
use tally_rules::profile::Profile;
use tally_rules::{BoardId, PlayerId, Rejection};
use tally_service::RankedEntry;
use tally_service::boards::Board;
use tally_service::periods::view::View;
use tally_service::periods::{self as service_periods, ALL_TIME_NAME};
use tally_service::players::ranks::{self, Counted, WindowRank};
use tally_service::scores::submit::Submitted;
use tally_service::{Reads, Tally, damaged, players, scores};
use tally_wire::api::leaderboards;
use tally_wire::api::players::write_profile;
use tally_wire::api::scores::{EntryJson, Expanded, PreviousJson, Style, SubmitJson};
use tally_wire::numbers::Int64;
use tally_wire::{Problem, Query, time};

/// The board with this name, unless it is deleted.
async fn find(tally: &Tally, board: &BoardId) -> Result<Arc<Board>, Problem> {
    tally.find(board).await.map_err(|rejection| problem::of_rejection(&rejection))
}

/// The window of a board that `period` names.
fn view(tally: &Tally, board: &Arc<Board>, period: Option<&str>) -> Result<View, Problem> {
    View::find(board, period, tally.now(), time::parse).map_err(|rejection| {
        let problem = problem::of_rejection(&rejection);
        period.into_iter().fold(problem, not_found::name)
    })
}

/// Reads a window: at once from memory, asynchronously from Redis, or on a blocking thread from the store.
async fn read<T: Send + 'static>(
    tally: &Arc<Tally>,
    view: &View,
    with: impl Fn(&dyn Reads) -> T + Send + Sync + 'static,
) -> Result<T, Problem> {
    // A blocking read needs handles of its own.
    let kept = || (Arc::clone(&tally.store), view.clone());
    let response = match view.read_later(&with).await {
        Some(Ok(response)) => return Ok(response),
        Some(Err(failure)) => {
            let (store, view) = kept();
            tally_service::blocking(move || view.read_anew(&*store, with, failure)).await
        }
        None if view.blocks() => {
            let (store, view) = kept();
            tally_service::blocking(move || view.read(&*store, with)).await
        }
        None => view.read(&*tally.store, with),
    };
    let failure = match response {
        Ok(response) => return Ok(response),
        Err(failure) => failure,
    };
    // The board was deleted during the read. A new board may have its name, and a retry finds it.
    tally.refresh().await;
    let is_deleted = tally.boards.get(&view.board.id).is_none();
    Err(problem::of_failure(&if is_deleted { Rejection::LeaderboardNotFound(None).into() } else { failure }))
}

/// The problem of a player without a rank in a window.
async fn missed(tally: &Arc<Tally>, view: &View, player: PlayerId) -> Problem {
    if let Some(key) = damaged::noted(&*tally.store, &view.board, view.window(), &player) {
        let store = Arc::clone(&tally.store);
        if let Err(failure) = tally_service::blocking(move || damaged::check(&*store, key)).await {
            return problem::of_failure(&failure);
        }
    }
    problem::of_rejection(&Rejection::PlayerNotRanked)
}

fn write_board(tally: &Tally, board: &Board) -> Value {
    let definition = board.present_definition();
    let mut counts = Vec::new();
    if definition.all_time {
        counts.push((ALL_TIME_NAME, board.ranking.total()));
    }
    let listed = service_periods::view::list(board, tally.now());
    for rule in &definition.periods {
        let open = listed.iter().find(|one| one.name == rule.name && one.state == "open");
        counts.push((rule.name.as_str(), open.map_or(0, |one| one.total)));
    }
    leaderboards::write(&board.id, &definition, &counts, board.created_at)
}

pub(in crate::http) fn write_submitted<'a>(
    board: &'a Board,
    player: &'a PlayerId,
    done: &'a Submitted,
    int64: Int64,
    row: bool,
) -> SubmitJson<'a> {
    let style = Style { definition: &board.definition, int64 };
    let previous =
        |old: &scores::submit::Previous| PreviousJson { scores: style.scores(&old.record), rank: old.rank };
    SubmitJson {
        board: board.id.as_str(),
        period: &done.period,
        player: player.as_str(),
        scores: style.scores(&done.record),
        at: time::format(done.record.at),
        rank: done.rank,
        changed: done.changed,
        previous: done.previous.as_ref().map(previous),
        closed_periods: &done.closed_periods,
        replayed: row && done.replayed,
        windows: None,
    }
}

/// Whether the query asks a submit for the ranks in every window that it counts for.
fn wants_windows(query: &mut Query) -> bool {
    match query.text("windows").as_deref() {
        None => false,
        Some("all") => true,
        Some(_) => {
            query.wrong("windows", "must be `all`");
            false
        }
    }
}

/// The ranks in the windows that each submit counted for.
async fn rank_windows(tally: &Arc<Tally>, submits: Vec<Counted>) -> Result<Vec<Vec<WindowRank>>, Problem> {
    let tally = Arc::clone(tally);
    blocking(move || Ok(ranks::of_counted(&tally, submits))).await
}

/// Whether the query asks for profiles.
fn wants_players(query: &mut Query) -> bool {
    match query.text("expand").as_deref() {
        None => false,
        Some("player") => true,
        Some(_) => {
            query.wrong("expand", "must be `player`");
            false
        }
    }
}

/// The profiles of these players in one round trip, each with its own result. `None` for each if `wanted` is false.
///
/// Large ones count from here on, until their share is dropped: the store may read them faster than they are rendered.
async fn expand(
    tally: &Arc<Tally>,
    responses: &Arc<Responses>,
    players: Vec<PlayerId>,
    wanted: bool,
) -> Result<(Vec<Option<Expanded>>, Option<ResponseShare>), Problem> {
    if !wanted {
        return Ok((players.iter().map(|_| None).collect(), None));
    }
    let (tally, responses, count) = (Arc::clone(tally), Arc::clone(responses), players.len());
    let read = tokio::task::spawn_blocking(move || {
        let profiles = players::profile::of_page(&tally, &players);
        let bytes = profiles.iter().flatten().flatten().map(bytes).sum();
        response::share(&responses, bytes, true).map(|share| (profiles, share))
    });
    let Ok(read) = read.await else { return Ok((vec![Some(player_error()); count], None)) };
    let (read, share) = read?;
    let one = |profile: Result<Option<Profile>, _>| match profile {
        Ok(profile) => Expanded::Profile(profile.as_ref().map(write_profile)),
        Err(error) => {
            tracing::warn!(%error, "read a profile");
            player_error()
        }
    };
    Ok((read.into_iter().map(|profile| Some(one(profile))).collect(), share))
}

fn bytes(profile: &Profile) -> usize {
    [&profile.name, &profile.avatar_url, &profile.metadata].into_iter().flatten().map(String::len).sum()
}

fn player_error() -> Expanded {
    let problem = Problem::new(503, "profile_unavailable", "the profile cannot be read now");
    Expanded::PlayerError(problem.row_error())
}

/// The entries of a page, with profiles if `players` is true, and the share of the profiles.
async fn write_entries<'a>(
    tally: &Arc<Tally>,
    responses: &Arc<Responses>,
    style: &Style<'_>,
    places: &'a [RankedEntry],
    players: bool,
) -> Result<(Vec<EntryJson<'a>>, Option<ResponseShare>), Problem> {
    let ids = if players { places.iter().map(|place| place.player.clone()).collect() } else { Vec::new() };
    let (expanded, share) = expand(tally, responses, ids, players).await?;
    let mut expanded = expanded.into_iter();
    let one = |place: &'a RankedEntry| EntryJson {
        rank: place.rank,
        player: place.player.as_str(),
        scores: style.scores(&place.record),
        at: time::format(place.record.at),
        expanded: expanded.next().flatten(),
    };
    Ok((places.iter().map(one).collect(), share))
}
