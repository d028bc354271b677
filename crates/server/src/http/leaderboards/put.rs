//! `PUT /v1/leaderboards/{board}?remove_periods=`: create, repeat or change.

use super::write_board;
use crate::http::call::Call;
use crate::http::guard::check_uncounted;
use crate::http::keys::blocking;
use crate::http::response::{self, Response};
use hyper::StatusCode;
use serde_json::{Value, json};
use std::sync::Arc;
use tally_rules::definition::BoardSpec;
use tally_service::boards;
use tally_wire::Problem;
use tally_wire::api::currency;
use tally_wire::api::leaderboards::read_definition;

pub(in crate::http) async fn put(mut call: Call) -> Result<Response, Problem> {
    let removes = call.query.flag("remove_periods");
    call.finish_query()?;
    let tally = call.tally()?;
    let id = call.board()?;
    let mut body: Value = call.json_or_none().await?.unwrap_or_else(|| json!({}));
    let idempotency = call.idempotency(&tally, Some(&body))?;
    let origin = call.origin_of(&mut body)?;
    currency::fill(&mut body, tally.settings.ledger.currencies.home());
    let spec = read_definition(body).map_err(Problem::fields)?;
    let spec = BoardSpec { keeps_history: !removes, ..spec };
    check_uncounted(&call.caller, spec.has_prizes())?;
    let put = {
        let tally = Arc::clone(&tally);
        blocking(move || boards::put(&tally, &id, &spec, &origin, idempotency.as_ref())).await?
    };
    tally.counted(vec![Arc::clone(&put.board)]).await;
    let status = if put.created { StatusCode::CREATED } else { StatusCode::OK };
    Ok(response::replayed(response::json(status, &write_board(&tally, &put.board)), put.replayed))
}
