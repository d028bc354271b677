//! `GET /v1/leaderboards/{board}`

use super::{find, write_board};
use crate::http::answer::{self, Answer};
use crate::http::call::Call;
use tally_wire::Problem;

pub(in crate::http) async fn get(mut call: Call) -> Result<Answer, Problem> {
    call.finish_query()?;
    let tally = call.tally()?;
    Ok(answer::ok(&write_board(&tally, &*find(&tally, &call.board()?)?)))
}
