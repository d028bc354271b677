//! `POST /v1/leaderboards/{board}/players/{player}/correct`: sets a score, with a reason.

use super::write_submitted;
use crate::http::call::Call;
use crate::http::contests::actor;
use crate::http::problem;
use crate::http::response::{self, Response};
use tally_service::contests::correct as corrections;
use tally_wire::Problem;
use tally_wire::api::scores::read_correction_of;

pub(in crate::http) async fn correct(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    let (tally, int64) = (call.tally()?, call.int64()?);
    let (board, player) = (call.board()?, call.player()?);
    let (body, idempotency, origin) = call.act(&tally).await?;
    let has_reason = origin.reason.is_some();
    let actor = actor(&call, &tally).await?.with(origin);
    let (score, subscore, period) = read_correction_of(body).map_err(Problem::fields)?;
    if !has_reason {
        return Err(Problem::field("/reason", "is required"));
    }
    let of = (&player, period.as_deref());
    let done = corrections::on_board(&tally, &board, &actor, of, (score, subscore), idempotency).await;
    let (board, done) = done.map_err(|failure| problem::of_failure(&failure))?;
    let body = write_submitted(&board, &player, &done, int64, false);
    Ok(response::replayed(response::ok(&body), done.replayed))
}
