//! `DELETE /v1/leaderboards/{board}`

use crate::http::call::Call;
use crate::http::keys::blocking;
use crate::http::response::{self, Response};
use tally_service::boards;
use tally_wire::Problem;

pub(in crate::http) async fn delete(mut call: Call) -> Result<Response, Problem> {
    let origin = call.origin_of_query();
    call.finish_query()?;
    call.no_body().await?;
    let tally = call.tally()?;
    let id = call.board()?;
    let idempotency = call.idempotency_of(&tally, &origin)?;
    let replayed = blocking(move || boards::delete(&tally, &id, &origin, idempotency.as_ref())).await?;
    Ok(response::replayed(response::none(), replayed))
}
