//! `POST /v1/leaderboards/{board}/scores`: one score, durable when answered.

use super::{rank_windows, wants_windows, write_submitted};
use crate::http::call::Call;
use crate::http::problem;
use crate::http::ranks::write_windows;
use crate::http::response::{self, Response};
use tally_rules::idempotency::IdempotencyKey;
use tally_service::scores::submit::{self, NewScore};
use tally_wire::Problem;
use tally_wire::api::scores::read_submit;

pub(in crate::http) async fn submit(mut call: Call) -> Result<Response, Problem> {
    let windows = wants_windows(&mut call.query);
    call.finish_query()?;
    let (tally, int64) = (call.tally()?, call.int64()?);
    let board = call.board()?;
    let read = read_submit(call.json().await?).map_err(Problem::fields)?;
    let fingerprint =
        || tally.fingerprints.of_submit(&board, &read.player, read.score, read.subscore, read.at);
    let idempotency = call.key()?.map(|key| IdempotencyKey { key, fingerprint: fingerprint() });
    let player = read.player.clone();
    let new = NewScore {
        board,
        player: read.player,
        score: read.score,
        subscore: read.subscore,
        at: read.at,
        idempotency,
    };
    let done = submit::submit_naming(&tally, new, windows).await;
    let (board, mut done) = done.map_err(|failure| problem::of_failure(&failure))?;
    let counted = std::mem::take(&mut done.windows);
    let mut body = write_submitted(&board, &player, &done, int64, false);
    if windows {
        let ranked = rank_windows(&tally, vec![(board.id.clone(), player.clone(), counted)]).await?;
        body.windows = ranked.first().map(|ranked| write_windows(&board, ranked, int64));
    }
    Ok(response::replayed(response::ok(&body), done.replayed))
}
