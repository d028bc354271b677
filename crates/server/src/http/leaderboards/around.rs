//! `GET /v1/leaderboards/{board}/players/{player}/around`: the ranks around a player.

use super::{find, missed, read, view, wants_players, write_entries};
use crate::http::call::Call;
use crate::http::response::{self, Response};
use crate::limits::{AROUND_DEFAULT, AROUND_MAX};
use tally_wire::Problem;
use tally_wire::api::scores::{PageJson, Style};

pub(in crate::http) async fn around(mut call: Call) -> Result<Response, Problem> {
    // `finish_query` refuses a wrong number, so the default never replaces one.
    let mut count = |name| call.query.number(name, 0, AROUND_MAX).unwrap_or(AROUND_DEFAULT);
    let (above, below) = (count("above"), count("below"));
    let period = call.query.text("period");
    let players = wants_players(&mut call.query);
    call.finish_query()?;
    let (tally, int64) = (call.tally()?, call.int64()?);
    let (board, player) = (find(&tally, &call.board()?).await?, call.player()?);
    let view = view(&tally, &board, period.as_deref())?;
    let (above, below) = (above as usize, below as usize);
    let of = player.clone();
    let page = read(&tally, &view, move |ranking| ranking.around(&of, above, below)).await?;
    let Some(page) = page else { return Err(missed(&tally, &view, player).await) };
    let style = Style { definition: &board.definition, int64 };
    let responses = &call.readiness.responses;
    let (entries, _share) = write_entries(&tally, responses, &style, &page.entries, players).await?;
    Ok(response::ok(&PageJson {
        board: board.id.as_str(),
        period: &view.name,
        total: page.total,
        entries,
        next_cursor: None,
    }))
}
