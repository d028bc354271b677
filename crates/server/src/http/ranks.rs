//! Ranks on many leaderboards in one round trip: all of one player, or a list of leaderboards and players. Not here: the ranks
//! of a member that has signed in (`me`), and one rank (`leaderboards::player`).

use super::call::Call;
use super::keys::{blocking, invalid_cursor};
use super::problem;
use super::response::{self, Response};
use crate::limits::RANKS_MAX;
use serde_json::{Value, json};
use tally_rules::{BoardId, Rejection};
use tally_service::Failure;
use tally_service::boards::Board;
use tally_service::players::ranks::{self, BoardRanks, RankQuery, WindowChoice, WindowRank};
use tally_wire::api::scores::{BoardRanksJson, NewRank, PlayerJson, Style, WindowRankJson, read_rank};
use tally_wire::cursor::{self, Names};
use tally_wire::numbers::Int64;
use tally_wire::{Fields, Problem, time};

/// `GET /v1/players/{player}/ranks?limit=&cursor=&closed=`
pub(super) async fn of_player(mut call: Call) -> Result<Response, Problem> {
    let (limit, after, closed) = (call.query.limit(), call.query.text("cursor"), call.query.flag("closed"));
    call.finish_query()?;
    let (tally, int64, player) = (call.tally()?, call.int64()?, call.player()?);
    let after = after.map(|text| board_after(&text)).transpose()?;
    // Leaderboards and periods that another server has made.
    tally.refresh().await;
    let now = tally.now();
    let windows = if closed { WindowChoice::Kept(now) } else { WindowChoice::Open(now) };
    let of = player.clone();
    let page = blocking(move || ranks::of_player(&tally, &of, windows, after.as_ref(), limit)).await?;
    let items: Vec<_> = page.items.iter().map(|one| shown(one, int64)).collect();
    let mut body = json!({"player": player.as_str(), "items": items});
    if let Some(next) = page.next {
        body["next_cursor"] = json!(cursor::encode_name(Names::Ranks, next.as_str()));
    }
    Ok(response::ok(&body))
}

/// The leaderboard that a cursor names.
pub(super) fn board_after(text: &str) -> Result<BoardId, Problem> {
    let name = cursor::decode_name(Names::Ranks, text).ok_or_else(invalid_cursor)?;
    BoardId::new(&name).map_err(|_| invalid_cursor())
}

fn shown(one: &BoardRanks, int64: Int64) -> BoardRanksJson<'_> {
    BoardRanksJson {
        board: one.board.id.as_str(),
        banned: one.banned,
        ranks: write_windows(&one.board, &one.windows, int64),
    }
}

/// Windows of a leaderboard with the ranks of a player.
pub(super) fn write_windows(board: &Board, windows: &[WindowRank], int64: Int64) -> Vec<WindowRankJson> {
    let style = Style { definition: &board.definition, int64 };
    let one = |window: &WindowRank| WindowRankJson {
        period: window.period.clone(),
        scores: style.scores(&window.record),
        at: time::format(window.record.at),
        rank: window.ranked.map(|ranked| ranked.rank),
        total: window.ranked.map(|ranked| ranked.total),
        percentile: window.ranked.map(|ranked| ranked.percentile),
    };
    windows.iter().map(one).collect()
}

/// `POST /v1/ranks`: each row is answered or refused alone.
pub(super) async fn of_many(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    let (tally, int64) = (call.tally()?, call.int64()?);
    let rows = read_rows(call.json().await?)?;
    let queries: Vec<RankQuery> = rows
        .iter()
        .map(|row| RankQuery {
            board: row.board.clone(),
            player: row.player.clone(),
            period: row.period.clone(),
        })
        .collect();
    tally.refresh().await;
    let found = blocking(move || Ok(ranks::of_many(&tally, &queries, time::parse))).await?;
    let results: Vec<Value> = rows.iter().zip(found).map(|(row, found)| result(row, found, int64)).collect();
    Ok(response::ok(&json!({"results": results})))
}

fn result(row: &NewRank, found: Result<ranks::Found, Failure>, int64: Int64) -> Value {
    let refused = |problem: &Problem| {
        let mut refused = json!({"board": row.board.as_str(), "player": row.player.as_str()});
        if let Some(period) = &row.period {
            refused["period"] = json!(period);
        }
        refused["error"] = problem.row_error();
        refused
    };
    let (view, ranked) = match found {
        Ok((view, Some(ranked))) => (view, ranked),
        Ok((_, None)) => return refused(&problem::of_rejection(&Rejection::PlayerNotRanked)),
        Err(failure) => return refused(&problem::of_failure(&failure)),
    };
    let style = Style { definition: &view.board.definition, int64 };
    let row = PlayerJson {
        board: view.board.id.as_str(),
        period: &view.name,
        player: row.player.as_str(),
        scores: style.scores(&ranked.record),
        at: time::format(ranked.record.at),
        rank: ranked.rank,
        total: ranked.total,
        percentile: ranked.percentile,
    };
    serde_json::to_value(row).expect("answers are made of strings and numbers")
}

fn read_rows(body: Value) -> Result<Vec<NewRank>, Problem> {
    let mut fields = Fields::new("", body).map_err(Problem::fields)?;
    let rows = fields.required("ranks", |value| {
        let list = value.as_array().filter(|list| (1..=RANKS_MAX).contains(&list.len()));
        list.cloned().ok_or_else(|| format!("must be an array of 1 to {RANKS_MAX} objects"))
    });
    fields.finish().map_err(Problem::fields)?;
    let (mut read, mut errors) = (Vec::new(), Vec::new());
    for (at, row) in rows.expect("no field is wrong").into_iter().enumerate() {
        match read_rank(&format!("/ranks/{at}"), row) {
            Ok(row) => read.push(row),
            Err(wrong) => errors.extend(wrong),
        }
    }
    if errors.is_empty() { Ok(read) } else { Err(Problem::fields(errors)) }
}
