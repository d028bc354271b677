//! `/v1/holds`: money that is reserved, captured or voided.

use super::{home, name_member, wrong};
use crate::http::call::Call;
use crate::http::problem;
use crate::http::response::{self, Response};
use hyper::StatusCode;
use tally_rules::Origin;
use tally_rules::clock::DecisionTime;
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::ledger::HoldId;
use tally_rules::ledger::hold::Ending;
use tally_service::ledger::holds::{self, NewHold};
use tally_wire::Problem;
use tally_wire::api::holds::{EndingRead, HoldJson, HoldRead, read_capture, read_hold, read_void};

/// `POST /v1/holds`
pub(in crate::http) async fn place(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    let tally = call.tally()?;
    let key = call.key()?;
    let read = read_hold(call.json().await?, home(&tally)).map_err(wrong)?;
    let HoldRead { wallet, amount, expires_at, reason, metadata } = read;
    let fingerprint = tally.fingerprints.of_hold(&wallet, amount, expires_at, reason.as_deref());
    let fingerprint = tally.fingerprints.with_metadata(fingerprint, metadata.as_deref());
    let idempotency = key.map(|key| IdempotencyKey { key, fingerprint });
    let origin = Origin { metadata, ..call.origin(reason) };
    let new = NewHold { wallet, amount, expires_at, origin, idempotency };
    let sides = (Some(wallet.member), None);
    let done = holds::place(&tally, new).await;
    let done = done.map_err(|failure| name_member(problem::of_failure(&failure), sides, "member"))?;
    // A retry gets the hold as it was created, at any later time.
    let body = HoldJson::new(done.id, &done.hold, DecisionTime::trusted(done.id.0.at()));
    Ok(response::replayed(response::json(StatusCode::CREATED, &body), done.replayed))
}

/// `GET /v1/holds/{hold}`
pub(in crate::http) async fn get(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    let tally = call.tally()?;
    let id = HoldId(call.id("hold")?);
    let hold = holds::find(&tally, id).await.map_err(|failure| problem::of_failure(&failure))?;
    Ok(response::ok(&HoldJson::new(id, &hold, tally.decision_time())))
}

/// `POST /v1/holds/{hold}/capture`
pub(in crate::http) async fn capture(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    let ending = read_capture(call.json_or_none().await?).map_err(wrong)?;
    end(call, ending).await
}

/// `POST /v1/holds/{hold}/void`
pub(in crate::http) async fn void(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    let ending = read_void(call.json_or_none().await?).map_err(wrong)?;
    end(call, ending).await
}

async fn end(call: Call, (ending, reason): EndingRead) -> Result<Response, Problem> {
    let tally = call.tally()?;
    let id = HoldId(call.id("hold")?);
    let fingerprint = tally.fingerprints.of_ending(id, ending, reason.as_deref());
    let idempotency = call.key()?.map(|key| IdempotencyKey { key, fingerprint });
    let done = holds::end(&tally, id, ending, call.origin(reason), idempotency).await;
    let to = if let Ending::Capture { to, .. } = ending { to } else { None };
    let done = done.map_err(|failure| name_member(problem::of_failure(&failure), (None, to), "member"))?;
    let body = HoldJson::new(done.id, &done.hold, tally.decision_time());
    Ok(response::replayed(response::ok(&body), done.replayed))
}
