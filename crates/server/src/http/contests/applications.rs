//! `…/applications`: apply, accept, reject, withdraw.

use super::{actor, after, blocking, idempotency, of_event, page};
use crate::http::call::Call;
use crate::http::not_found;
use crate::http::problem;
use crate::http::response::{self, Response};
use crate::http::span;
use hyper::StatusCode;
use serde_json::{Value, json};
use tally_rules::contest::{Application, ContestTrigger, Status};
use tally_rules::scope::Scope;
use tally_rules::{PlayerId, Rejection};
use tally_service::contests::actions::ActionResult;
use tally_service::contests::execute::{ActingAs, ContestActor};
use tally_service::contests::{apply as applying, read};
use tally_service::{CallerKind, Failure, Fault};
use tally_wire::Problem;
use tally_wire::api::contests::{ApplicationJson, read_application, read_players};
use tally_wire::cursor::{self, Names};

/// `POST …/applications`
pub(in crate::http) async fn apply(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    let (tally, id) = (call.tally()?, call.contest()?);
    let body = call.json_or_none().await?;
    let (idempotency, actor) = (idempotency(&call, &tally, body.as_ref())?, actor(&call, &tally).await?);
    let named = read_application(body).map_err(Problem::fields)?;
    let own = match &actor.acting {
        ActingAs::Member(player) | ActingAs::For(player) => Some(player.clone()),
        ActingAs::Admin | ActingAs::Server => None,
    };
    let player = named
        .or(own)
        .ok_or_else(|| Problem::field("/player", "is required: an API key has no player of its own"))?;
    let applicant = player.clone();
    let sees = sees_wallet(&call, &actor, &player);
    let done = blocking(move || applying::apply(&tally, &id, &actor, &applicant, idempotency.as_ref())).await;
    let done = done.map_err(|problem| {
        problem::with_balance_if(sees, with_player(of_event(problem, ContestTrigger::Apply), &player))
    })?;
    let ActionResult::Applied(application) = &done.result else { return Err(unexpected(&done.result)) };
    let body = ApplicationJson::new(&player, application);
    Ok(response::replayed(response::json(StatusCode::CREATED, &body), done.replayed))
}

/// Names the player, if the problem is about it.
fn with_player(problem: Problem, player: &PlayerId) -> Problem {
    let is_about = problem.detail.starts_with("the player ");
    if is_about { not_found::name(problem, player.as_str()) } else { problem }
}

/// Whether the caller sees the wallet that the fee of this player is held in: a member its own, and keys with a scope of it.
fn sees_wallet(call: &Call, actor: &ContestActor, player: &PlayerId) -> bool {
    match (call.caller.kind, &actor.acting) {
        (CallerKind::Member(_), ActingAs::Member(own)) => own == player,
        (CallerKind::Key(rights), _) => {
            let scopes = rights.scopes();
            scopes.contains(Scope::MoneyRead) || scopes.contains(Scope::MoneyMove)
        }
        _ => false,
    }
}

/// `GET …/applications?state=&limit=&cursor=`
pub(in crate::http) async fn list(mut call: Call) -> Result<Response, Problem> {
    let limit = call.query.limit();
    let text = call.query.text("cursor");
    // `status` is the older name.
    let [state, older] = ["state", "status"].map(|name| span::choice(&mut call.query, name, Status::ALL));
    call.finish_query()?;
    let status = state.or(older).unwrap_or(Status::Pending);
    let (tally, id) = (call.tally()?, call.contest()?);
    let actor = actor(&call, &tally).await?;
    let of = format!("{}/{status}", id.as_str());
    let above = after(text.as_deref(), (Names::Applications, &of), |place| place.parse().ok())?;
    let asked = (above.unwrap_or(0), limit + 1);
    let rows = blocking(move || read::applications(&tally, &id, &actor, status, asked)).await?;
    let show = |(player, row): &(PlayerId, Application)| json!(ApplicationJson::new(player, row));
    let next = |(_, row): &(PlayerId, Application)| {
        cursor::encode_name_of(Names::Applications, &of, &row.place.to_string())
    };
    Ok(response::ok(&page(rows, limit, show, next)))
}

/// `POST …/applications/accept`
pub(in crate::http) async fn accept(call: Call) -> Result<Response, Problem> {
    decide(call, true).await
}

/// `POST …/applications/reject`
pub(in crate::http) async fn reject(call: Call) -> Result<Response, Problem> {
    decide(call, false).await
}

async fn decide(mut call: Call, accept: bool) -> Result<Response, Problem> {
    call.finish_query()?;
    let (tally, id) = (call.tally()?, call.contest()?);
    let mut body = call.json().await?;
    let idempotency = idempotency(&call, &tally, Some(&body))?;
    let actor = actor(&call, &tally).await?.with(call.origin_of(&mut body)?);
    let players = read_players(body).map_err(Problem::fields)?;
    let asked = players.clone();
    let decided = move || {
        let done = applying::decide(&tally, &id, &actor, &asked, accept, idempotency.as_ref())?;
        // The decisions are stored: applications that cannot be read now do not undo them.
        let present = applying::present(&tally, &done.record, &asked).unwrap_or_default();
        Ok((done, present))
    };
    let (done, present) =
        blocking(decided).await.map_err(|problem| of_event(problem, ContestTrigger::Decide))?;
    let ActionResult::Decided(results) = &done.result else { return Err(unexpected(&done.result)) };
    let present = present.into_iter().chain(std::iter::repeat(None));
    let rows = players.iter().zip(results).zip(present);
    let rows: Vec<Value> =
        rows.map(|((player, result), present)| decided_row(player, result, present)).collect();
    Ok(response::replayed(response::ok(&json!({"results": rows})), done.replayed))
}

/// What was decided on a player: its application, if that is `present` and has this state still.
fn decided_row(player: &PlayerId, result: &Result<Status, Rejection>, present: Option<Application>) -> Value {
    match (result, present) {
        (Ok(status), Some(application)) if application.status == *status => {
            json!(ApplicationJson::new(player, &application))
        }
        (Ok(status), _) => {
            json!({"player": player.as_str(), "state": status.as_str(), "status": status.as_str()})
        }
        (Err(rejection), _) => {
            let problem = with_player(problem::of_rejection(rejection), player);
            json!({"player": player.as_str(), "error": problem.row_error()})
        }
    }
}

/// `DELETE …/applications/{player}`
pub(in crate::http) async fn withdraw(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    call.no_body().await?;
    let (tally, id, player) = (call.tally()?, call.contest()?, call.player()?);
    let (idempotency, actor) = (idempotency(&call, &tally, None)?, actor(&call, &tally).await?);
    let done = move || applying::withdraw(&tally, &id, &actor, &player, idempotency.as_ref());
    let done = blocking(done).await.map_err(|problem| of_event(problem, ContestTrigger::Withdraw))?;
    let replayed = done.replayed;
    Ok(response::replayed(response::none(), replayed))
}

/// The error for a use case that returned another result than expected.
fn unexpected(what: &ActionResult) -> Problem {
    problem::of_failure(&Failure::Fault(Fault::Broken(format!("an application is answered as {what:?}"))))
}
