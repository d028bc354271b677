//! `GET /v1/leaderboards/{board}/players/{player}`: one player's rank.

use super::{find, missed, read, view};
use crate::http::call::Call;
use crate::http::response::{self, Response};
use tally_wire::api::scores::{PlayerJson, Style};
use tally_wire::{Problem, time};

pub(in crate::http) async fn player(mut call: Call) -> Result<Response, Problem> {
    let period = call.query.text("period");
    call.finish_query()?;
    let (tally, int64) = (call.tally()?, call.int64()?);
    let (board, player) = (find(&tally, &call.board()?).await?, call.player()?);
    let view = view(&tally, &board, period.as_deref())?;
    let of = player.clone();
    let ranked = read(&tally, &view, move |ranking| ranking.ranked(&of)).await?;
    let Some(ranked) = ranked else { return Err(missed(&tally, &view, player).await) };
    let style = Style { definition: &board.definition, int64 };
    Ok(response::ok(&PlayerJson {
        board: board.id.as_str(),
        period: &view.name,
        player: player.as_str(),
        scores: style.scores(&ranked.record),
        at: time::format(ranked.record.at),
        rank: ranked.rank,
        total: ranked.total,
        percentile: ranked.percentile,
    }))
}
