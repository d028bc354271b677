//! Contests over HTTP: `change` creates and reads them, `actions` changes their state, `applications` has the applications,
//! `members` the contest members and payouts, `series` the series. This file has what they share.
//!
//! The permission of a route admits callers. The state machine of the contest decides whether a caller is staff
//! (`tally_rules::contest::state`). Every action blocks on the store, so it does not run on the threads of connections.

pub(super) mod actions;
pub(super) mod applications;
pub(super) mod change;
pub(super) mod members;
pub(super) mod series;

use super::call::{Call, reason_body};
use super::keys::{blocking, invalid_cursor};
use super::problem;
use super::response;
use serde_json::{Value, json};
use std::sync::Arc;
use tally_rules::contest::{ContestId, ContestRecord, ContestState, ContestTrigger, state};
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::{Origin, PlayerId};
use tally_service::contests::execute::{ActingAs, ContestActor};
use tally_service::contests::read;
use tally_service::damaged::Listing;
use tally_service::{CallerKind, Tally};
use tally_wire::Problem;
use tally_wire::api::contests;
use tally_wire::cursor::{self, Names};

/// The caller as a contest sees it. A key of any role that names a player acts for that player.
pub(in crate::http) async fn actor(call: &Call, tally: &Arc<Tally>) -> Result<ContestActor, Problem> {
    let rights = match call.caller.kind {
        CallerKind::Member(id) => {
            let member = tally.members.known(tally, id).await;
            let member = member.map_err(|failure| problem::of_failure(&failure))?;
            return Ok(ActingAs::Member(member.player.clone()).by(call.caller.actor));
        }
        CallerKind::Key(rights) => rights,
        CallerKind::Anonymous => unreachable!("no route of contests is open"),
    };
    let acting = match call.acting_player()? {
        Some(player) => ActingAs::For(player),
        None if rights.is_admin() => ActingAs::Admin,
        None => ActingAs::Server,
    };
    Ok(acting.by(call.caller.actor))
}

/// Whether the caller sees wallets and transfers of members in the lists of a contest or a period. Callers that may read money and the
/// staff of the contest do.
pub(in crate::http) async fn sees_money(
    call: &Call,
    tally: &Arc<Tally>,
    id: Option<&ContestId>,
) -> Result<bool, Problem> {
    if call.reads_money() {
        return Ok(true);
    }
    let (CallerKind::Member(_), Some(id)) = (call.caller.kind, id.cloned()) else { return Ok(false) };
    let ActingAs::Member(player) = actor(call, tally).await?.acting else { return Ok(false) };
    let tally = Arc::clone(tally);
    blocking(move || Ok(read::get(&tally, &id)?.contest.is_staff(&player))).await
}

/// Says in which states an event is possible, in the problem of a contest in another state.
fn of_event(mut problem: Problem, event: ContestTrigger) -> Problem {
    let at = problem.more.get("state").and_then(Value::as_str).and_then(ContestState::parse);
    let detail = match (problem.code, event, at) {
        ("contest_state", ContestTrigger::Apply, Some(at)) => Some(format!(
            "players apply while a contest is open, or within `join_s` of its start, and this one is {at}"
        )),
        ("contest_state", _, Some(at)) => state::out_of_place(event, at),
        _ => None,
    };
    if let Some(detail) = detail {
        problem.detail = detail;
    }
    problem
}

/// The JSON form of a contest. Blocks.
fn shown(tally: &Tally, id: &ContestId, record: &ContestRecord) -> Value {
    contests::write(id, record, read::counts(tally, &[record]).pop().flatten())
}

/// The idempotency key of a request. The acting player is part of its fingerprint.
fn idempotency(call: &Call, tally: &Tally, body: Option<&Value>) -> Result<Option<IdempotencyKey>, Problem> {
    let acting = call.acting_player()?;
    let acting = acting.as_ref().map(PlayerId::as_str);
    call.idempotency(tally, Some(&json!({"for": acting, "body": body})))
}

/// The same of an act without a body.
fn idempotency_of(call: &Call, tally: &Tally, origin: &Origin) -> Result<Option<IdempotencyKey>, Problem> {
    idempotency(call, tally, reason_body(origin).as_ref())
}

/// Renders a list that was read with one row more than its limit: the page, and a cursor if there is a next page.
pub(in crate::http) fn page<T>(
    list: Listing<T>,
    limit: usize,
    show: impl Fn(&T) -> Value,
    next: impl Fn(&T) -> String,
) -> Value {
    let Listing { mut rows, damaged } = list;
    let more = rows.len() > limit;
    rows.truncate(limit);
    let mut body = json!({"items": rows.iter().map(show).collect::<Vec<_>>()});
    if let (true, Some(last)) = (more, rows.last()) {
        body["next_cursor"] = json!(next(last));
    }
    response::name_damaged(&mut body, &damaged);
    body
}

/// Decodes a cursor: the last name of the previous page, read by `read`.
pub(in crate::http) fn after<T>(
    text: Option<&str>,
    (list, of): (Names, &str),
    read: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, Problem> {
    let Some(text) = text else { return Ok(None) };
    let name = cursor::decode_name_of(list, of, text).ok_or_else(invalid_cursor)?;
    read(&name).map(Some).ok_or_else(invalid_cursor)
}
