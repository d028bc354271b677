//! `POST …/open`, `/start`, `/finish`, `/settle`, `/repay`, `/cancel`: actions of the state machine.

use super::{actor, blocking, idempotency_of, of_event, shown};
use crate::http::call::Call;
use crate::http::response::{self, Response};
use serde_json::json;
use std::time::Instant;
use tally_rules::contest::{ContestId, ContestTrigger};
use tally_rules::idempotency::IdempotencyKey;
use tally_service::contests::actions::ContestDone;
use tally_service::contests::execute::ContestActor;
use tally_service::contests::{change, finish, pay_again, settle, start as starting};
use tally_service::{Failure, Tally};
use tally_wire::Problem;
use tally_wire::api::contests;

/// A use case that changes the state of a contest, or pays.
type StateChange =
    fn(&Tally, &ContestId, &ContestActor, Option<&IdempotencyKey>) -> Result<ContestDone, Failure>;

/// `POST …/open`
pub(in crate::http) async fn open(call: Call) -> Result<Response, Problem> {
    change_state(call, ContestTrigger::Open, change::open).await
}

/// `POST …/finish`
pub(in crate::http) async fn finish(call: Call) -> Result<Response, Problem> {
    change_state(call, ContestTrigger::Finish, finish::finish).await
}

/// `POST …/settle`
pub(in crate::http) async fn settle(call: Call) -> Result<Response, Problem> {
    change_state(call, ContestTrigger::Settle, settle::settle).await
}

/// `POST …/repay`
pub(in crate::http) async fn repay(call: Call) -> Result<Response, Problem> {
    change_state(call, ContestTrigger::Repay, pay_again::pay_again).await
}

/// `POST …/cancel`
pub(in crate::http) async fn cancel(call: Call) -> Result<Response, Problem> {
    change_state(call, ContestTrigger::Cancel, finish::cancel).await
}

async fn change_state(
    mut call: Call,
    event: ContestTrigger,
    change: StateChange,
) -> Result<Response, Problem> {
    let origin = call.origin_of_query();
    call.finish_query()?;
    call.no_body().await?;
    let (tally, id) = (call.tally()?, call.contest()?);
    let idempotency = idempotency_of(&call, &tally, &origin)?;
    let actor = actor(&call, &tally).await?.with(origin);
    let done = blocking(move || {
        let done = change(&tally, &id, &actor, idempotency.as_ref())?;
        Ok((shown(&tally, &id, &done.record), done.replayed))
    });
    let (body, replayed) = done.await.map_err(|problem| of_event(problem, event))?;
    Ok(response::replayed(response::ok(&body), replayed))
}

/// `POST …/start`
pub(in crate::http) async fn start(mut call: Call) -> Result<Response, Problem> {
    let origin = call.origin_of_query();
    call.finish_query()?;
    call.no_body().await?;
    let (tally, id) = (call.tally()?, call.contest()?);
    let idempotency = idempotency_of(&call, &tally, &origin)?;
    let actor = actor(&call, &tally).await?.with(origin);
    let (name, began) = (id.clone(), Instant::now());
    let started = blocking(move || starting::start(&tally, &name, &actor, idempotency.as_ref())).await;
    let started = started.map_err(|problem| of_event(problem, ContestTrigger::Start))?;
    let took_ms = began.elapsed().as_micros() as f64 / 1_000.0;
    let done = &started.done;
    // No applications are left after a start.
    let mut body = contests::write(&id, &done.record, Some(done.record.applications));
    // The older place of the contest.
    body["contest"] = body.clone();
    body["enrolled"] = json!(done.record.report.as_ref().map_or(0, |report| report.enrolled));
    body["failed"] = started.failed.iter().map(contests::write_failed).collect();
    body["took_ms"] = json!(took_ms);
    Ok(response::replayed(response::ok(&body), done.replayed))
}
