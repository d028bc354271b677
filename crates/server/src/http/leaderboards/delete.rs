//! `DELETE /v1/leaderboards/{board}`

use crate::http::answer::{self, Answer};
use crate::http::call::Call;
use crate::http::keys::blocking;
use tally_service::boards;
use tally_wire::Problem;

pub(in crate::http) async fn delete(mut call: Call) -> Result<Answer, Problem> {
    call.finish_query()?;
    call.no_body().await?;
    let tally = call.tally()?;
    let id = call.board()?;
    let identity = call.identity(&tally, None)?;
    let replayed = blocking(move || boards::delete(&tally, &id, identity.as_ref())).await?;
    Ok(answer::replayed(answer::none(), replayed))
}
