//! `GET /v1/leaderboards/{board}/periods`: newest first; empty closed ones without prizes are left out.

use super::find;
use crate::http::call::Call;
use crate::http::keys::invalid_cursor;
use crate::http::response::{self, Response};
use serde_json::{Value, json};
use tally_service::periods::view::{Listed, list};
use tally_wire::cursor::{self, Names};
use tally_wire::{Problem, time};

pub(in crate::http) async fn periods(mut call: Call) -> Result<Response, Problem> {
    let limit = call.query.limit();
    let cursor = call.query.text("cursor");
    call.finish_query()?;
    let tally = call.tally()?;
    let board = find(&tally, &call.board()?).await?;
    let after = match cursor {
        None => None,
        Some(text) => Some(cursor::decode_name(Names::Periods, &text).ok_or_else(invalid_cursor)?),
    };
    tally.counted(vec![std::sync::Arc::clone(&board)]).await;
    let all = list(&board, tally.now());
    let rest = all.iter().skip_while(|one| after.as_ref().is_some_and(|after| place(one) < *after));
    let mut rest = rest.skip_while(|one| after.as_ref().is_some_and(|after| place(one) == *after));
    let items: Vec<&Listed> = rest.by_ref().take(limit).collect();
    let mut body = json!({"items": items.iter().map(|one| write(one)).collect::<Vec<_>>()});
    if let (Some(last), Some(_)) = (items.last(), rest.next()) {
        body["next_cursor"] = json!(cursor::encode_name(Names::Periods, &place(last)));
    }
    Ok(response::ok(&body))
}

/// The cursor position of a period, as text that ascends along the list.
fn place(one: &Listed) -> String {
    format!("{:020}/{}", i128::from(i64::MAX) - i128::from(one.start.0), one.name)
}

fn write(one: &Listed) -> Value {
    let (starts_at, ends_at) = (time::format(one.start), time::format(one.end));
    // `start` and `end` are the older names.
    json!({
        "period": one.period, "name": one.name, "starts_at": starts_at, "ends_at": ends_at,
        "start": starts_at, "end": ends_at, "state": one.state, "total": one.total,
    })
}
