//! The changes of the leader for the servers that follow it: `GET /servers/changes`, signed by a server of the store.
//!
//! Without `after` it says where the leader is; with it, it answers the changes after that position as bytes
//! (`tally_service::follow`). It is no operation of the API: its form may change with every version.

use super::body::Unread;
use super::call::bad_parameter;
use super::response::{self, Response};
use super::{forward, guard, problem};
use crate::readiness::{NotReady, Readiness};
use hyper::{Method, Request, StatusCode};
use std::time::Duration;
use tally_service::Tally;
use tally_service::follow::{Leading, Position};
use tally_service::signed_requests::Behalf;
use tally_wire::Problem;

/// The path of the leader's changes.
pub const CHANGES_PATH: &str = "/servers/changes";

/// How long it waits for a change.
const WAIT: Duration = Duration::from_millis(100);

/// Answers one request of a follower.
pub(super) async fn changes(readiness: &Readiness, request: Request<Unread>) -> Result<Response, Problem> {
    let (parts, _) = request.into_parts();
    if parts.method != Method::GET {
        return Err(Problem::new(405, "method_not_allowed", "this path has: GET").header("allow", "GET"));
    }
    // A server that drains still tells what it has committed.
    let tally = readiness.loaded().ok_or_else(|| problem::of_not_ready(&readiness.not_loaded()))?;
    let signed = forward::signed(readiness, &parts)?;
    let signed = signed.filter(|signed| signed.behalf == Behalf::Server && signed.has_body(b""));
    signed
        .ok_or_else(|| guard::unauthorized("only servers of this store read its changes, each for itself"))?;
    let Some(changes) = tally.changes.clone() else {
        return Err(problem::not_leader("this server leads no other one"));
    };
    let after = parts.uri.query().and_then(|query| query.strip_prefix("after="));
    let position = after.map(str::parse::<Position>).transpose();
    let position = position.map_err(|()| bad_parameter("after", "must be a position of a leader"))?;
    let message = changes.read(position, WAIT, leading(&tally)).await;
    // It may have lost the lease while it waited. One that has ended had the lease then.
    if !message.ends && !tally.may_answer() {
        return Err(problem::of_not_ready(&NotReady::Unsure));
    }
    Ok(response::with(StatusCode::OK, "application/octet-stream", message.encode()))
}

fn leading(tally: &Tally) -> Leading {
    let marks = u64::try_from(tally.store.marks().as_micros()).unwrap_or(u64::MAX);
    Leading { renewed: tally.store.renewed(), marks }
}
