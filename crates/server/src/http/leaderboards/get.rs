//! `GET /v1/leaderboards/{board}`

use super::{find, write_board};
use crate::http::answer::{self, Answer};
use crate::http::call::Call;
use std::sync::Arc;
use tally_wire::Problem;

pub(in crate::http) async fn get(mut call: Call) -> Result<Answer, Problem> {
    call.finish_query()?;
    let tally = call.tally()?;
    // The current state, whichever server changed it.
    tally.looked_now().await;
    let board = find(&tally, &call.board()?).await?;
    tally.counted(vec![Arc::clone(&board)]).await;
    Ok(answer::ok(&write_board(&tally, &board)))
}
