//! `GET /v1/leaderboards`: boards in byte order of their names.

use super::write_board;
use crate::http::call::Call;
use crate::http::keys::invalid_cursor;
use crate::http::response::{self, Response};
use serde_json::json;
use tally_rules::BoardId;
use tally_wire::Problem;
use tally_wire::cursor::{self, Names};

pub(in crate::http) async fn list(mut call: Call) -> Result<Response, Problem> {
    let limit = call.query.limit();
    let text = call.query.text("cursor");
    call.finish_query()?;
    let tally = call.tally()?;
    let after = match text {
        None => None,
        Some(text) => {
            let name =
                cursor::decode_name(Names::Leaderboards, &text).and_then(|name| BoardId::new(&name).ok());
            Some(name.ok_or_else(invalid_cursor)?)
        }
    };
    // Other servers may have created boards a moment ago.
    tally.refresh().await;
    // One more than the limit shows whether there is a next page.
    let mut boards = tally.boards.list(after.as_ref(), limit + 1);
    let more = boards.len() > limit;
    boards.truncate(limit);
    tally.counted(boards.clone()).await;
    let mut body =
        json!({"items": boards.iter().map(|board| write_board(&tally, board)).collect::<Vec<_>>()});
    if let (true, Some(last)) = (more, boards.last()) {
        body["next_cursor"] = json!(cursor::encode_name(Names::Leaderboards, last.id.as_str()));
    }
    response::name_damaged(&mut body, &tally.boards.damaged_rows());
    Ok(response::ok(&body))
}
