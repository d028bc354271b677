//! `GET /v1/leaderboards/{board}/bans`: the banned players of a leaderboard. Not here: a ban (`players`).

use super::find;
use crate::http::call::Call;
use crate::http::contests::{after, page};
use crate::http::response::{self, Response};
use serde_json::json;
use tally_rules::PlayerId;
use tally_service::damaged::Listing;
use tally_wire::Problem;
use tally_wire::cursor::{self, Names};

pub(in crate::http) async fn bans(mut call: Call) -> Result<Response, Problem> {
    let (limit, text) = (call.query.limit(), call.query.text("cursor"));
    call.finish_query()?;
    let tally = call.tally()?;
    // Bans of another server.
    tally.refresh().await;
    let board = find(&tally, &call.board()?).await?;
    let of = board.id.as_str();
    let after = after(text.as_deref(), (Names::Bans, of), |name| PlayerId::new(name).ok())?;
    let rows = board.bans(after.as_ref(), limit + 1);
    let list = Listing { rows, damaged: Vec::new() };
    let next = |player: &PlayerId| cursor::encode_name_of(Names::Bans, of, player.as_str());
    Ok(response::ok(&page(list, limit, |player| json!({"player": player.as_str()}), next)))
}
