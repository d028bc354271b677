//! Streams of events over HTTP, as browsers' `EventSource` reads them: who may listen, how many, and how one begins.
//!
//! A stream is an answer that goes on, and a task that fills it (`pump`) from what it tells of (`source`). Not here: what
//! happens (`tally_service::events`), and how an event looks (`tally_wire::api::events`).

pub(super) mod body;
mod pump;
mod source;

use super::answer::{Answer, Content};
use super::call::{Call, bad_parameter};
use super::me::me;
use super::problem;
use crate::limits::EVENTS_WAITING_MAX;
use crate::streams::{Full, Seat};
use body::EventBody;
use hyper::Response;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use pump::Pump;
use source::{Names, Source};
use std::sync::Arc;
use tally_service::Failure;
use tally_service::contests::read;
use tally_service::events::hub::Subject;
use tally_service::events::log::{Begun, Log, Position};
use tally_wire::Problem;
use tally_wire::api::events;

/// The header that says where a client goes on.
const LAST_EVENT_ID: &str = "Last-Event-ID";

/// What a proxy in front is asked: to pass every event on at once.
const UNBUFFERED: HeaderName = HeaderName::from_static("x-accel-buffering");

/// `GET /v1/leaderboards/{board}/events`
pub(super) async fn leaderboard(mut call: Call) -> Result<Answer, Problem> {
    call.finish_query()?;
    let (tally, int64, id) = (call.tally()?, call.int64()?, call.board()?);
    let after = after(&call, |id| events::read_event_id(id).map(Position::Event))?;
    tally.looked_now().await;
    let board = tally.find(&id).await.map_err(|rejection| problem::of_rejection(&rejection))?;
    let seat = sit(&call)?;
    let scores = Some((tally.events.watch(&board), int64));
    let reading = (Arc::clone(&tally), Arc::clone(&board));
    let begun = tally.events.read(move || {
        let (tally, board) = reading;
        tally.events.look(&tally, &board)?;
        Log::of_board(&tally, &board, after)
    });
    let begun = begun.await;
    begin(&call, seat, (scores, Names::Board(board)), begun)
}

/// `GET /v1/contests/{contest}/events`
pub(super) async fn contest(mut call: Call) -> Result<Answer, Problem> {
    call.finish_query()?;
    let (tally, id) = (call.tally()?, call.contest()?);
    let after = after(&call, |id| events::read_event_id(id).map(Position::Event))?;
    let seat = sit(&call)?;
    let (reading, contest) = (Arc::clone(&tally), id.clone());
    let begun = tally.events.read(move || {
        let no = read::get(&reading, &contest)?.no;
        Log::of_subject(&reading, Subject::Contest(no), after)
    });
    begin(&call, seat, (None, Names::Contest(id)), begun.await)
}

/// `GET /v1/me/events`
pub(super) async fn own(mut call: Call) -> Result<Answer, Problem> {
    call.finish_query()?;
    let (tally, me) = (call.tally()?, me(&call));
    let after = after(&call, |id| events::read_entries_id(id).map(Position::Entries))?;
    let seat = sit(&call)?;
    let reading = Arc::clone(&tally);
    let begun = tally.events.read(move || Log::of_subject(&reading, Subject::Member(me), after)).await;
    begin(&call, seat, (None, Names::Own), begun)
}

/// Where the client goes on.
fn after(call: &Call, read: impl Fn(&str) -> Option<Position>) -> Result<Option<Position>, Problem> {
    let Some(text) = call.header(LAST_EVENT_ID)? else { return Ok(None) };
    let wrong = || bad_parameter(LAST_EVENT_ID, "must be an id that this stream has sent");
    read(&text).map(Some).ok_or_else(wrong)
}

/// A seat for the caller.
fn sit(call: &Call) -> Result<Seat, Problem> {
    call.gate.streams.sit(&call.caller).map_err(|full| match full {
        Full::Everybody => {
            let detail = "as many streams of events are open as this server serves at once";
            Problem::new(503, "too_many_streams", detail).retry_after(5)
        }
        Full::Caller(most) => {
            let detail = format!("the caller has {most} streams of events open, which is the most");
            Problem::new(429, "too_many_streams", detail).retry_after(5)
        }
    })
}

/// Begins to answer, and to fill the answer.
fn begin(
    call: &Call,
    seat: Seat,
    (scores, names): (source::Scores, Names),
    begun: Result<(Log, Begun), Failure>,
) -> Result<Answer, Problem> {
    let (log, begun) = begun.map_err(|failure| problem::of_failure(&failure))?;
    let (body, queue) = EventBody::new(EVENTS_WAITING_MAX);
    let pump = Pump::new(call.presence(), call.caller.clone(), seat, queue);
    tokio::spawn(pump.run(Source { scores, log, names, begun }));
    let mut answer = Response::new(Content::Events(body));
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(UNBUFFERED, HeaderValue::from_static("no"));
    Ok(answer)
}
