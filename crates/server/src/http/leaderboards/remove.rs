//! `DELETE /v1/leaderboards/{board}/players/{player}`: remove a player from the board's open windows.

use crate::http::call::Call;
use crate::http::problem;
use crate::http::response::{self, Response};
use tally_rules::idempotency::IdempotencyKey;
use tally_service::scores;
use tally_wire::Problem;

pub(in crate::http) async fn remove(mut call: Call) -> Result<Response, Problem> {
    let origin = call.origin_of_query();
    call.finish_query()?;
    call.no_body().await?;
    let tally = call.tally()?;
    let (board, player) = (call.board()?, call.player()?);
    let fingerprint = || tally.fingerprints.of_remove(&board, &player, origin.reason.as_deref());
    let idempotency = call.key()?.map(|key| IdempotencyKey { key, fingerprint: fingerprint() });
    let removed = scores::remove::remove(&tally, &board, player, &origin, idempotency)
        .await
        .map_err(|failure| problem::of_failure(&failure))?;
    Ok(response::replayed(response::none(), removed.replayed))
}
