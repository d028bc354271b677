//! `GET /v1/leaderboards/{board}`

use super::{find, write_board};
use crate::http::call::Call;
use crate::http::response::{self, Response};
use std::sync::Arc;
use tally_wire::Problem;

pub(in crate::http) async fn get(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    let tally = call.tally()?;
    // The current state, whichever server changed it.
    tally.refresh().await;
    let board = find(&tally, &call.board()?).await?;
    tally.counted(vec![Arc::clone(&board)]).await;
    Ok(response::ok(&write_board(&tally, &board)))
}
