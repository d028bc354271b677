//! Event streams over HTTP for browsers' `EventSource`: permissions, limits, and how a stream begins.
//!
//! An event stream is a response and a task (`stream_task`) that fills it with the events of a `source`. Not here: events
//! (`tally_service::events`), and their form (`tally_wire::api::events`).

pub(super) mod body;
mod source;
mod stream_task;

use super::call::{Call, bad_parameter};
use super::me::me;
use super::problem;
use super::response::{Content, Response};
use crate::limits::EVENTS_WAITING_MAX;
use crate::streams::{Full, StreamSlot};
use body::EventBody;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use source::{Names, Source};
use std::sync::Arc;
use stream_task::StreamTask;
use tally_service::Failure;
use tally_service::contests::read;
use tally_service::events::hub::Subject;
use tally_service::events::log::{EventLog, Offset, StreamStart};
use tally_wire::Problem;
use tally_wire::api::events;

/// The header with the event after which a client resumes.
const LAST_EVENT_ID: &str = "Last-Event-ID";

/// The header that asks a reverse proxy to pass every event on at once.
const UNBUFFERED: HeaderName = HeaderName::from_static("x-accel-buffering");

/// `GET /v1/leaderboards/{board}/events`
pub(super) async fn leaderboard(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    let (tally, int64, id) = (call.tally()?, call.int64()?, call.board()?);
    let after = after(&call, |id| events::read_event_id(id).map(Offset::Event))?;
    tally.refresh().await;
    let board = tally.find(&id).await.map_err(|rejection| problem::of_rejection(&rejection))?;
    let slot = acquire(&call)?;
    let scores = Some((tally.events.watch(&board), int64));
    let reading = (Arc::clone(&tally), Arc::clone(&board));
    let opened = tally.events.read(move || {
        let (tally, board) = reading;
        tally.events.poll(&tally, &board)?;
        EventLog::of_board(&tally, &board, after)
    });
    let opened = opened.await;
    begin(&call, slot, (scores, Names::Board(board)), opened)
}

/// `GET /v1/contests/{contest}/events`
pub(super) async fn contest(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    let (tally, id) = (call.tally()?, call.contest()?);
    let after = after(&call, |id| events::read_event_id(id).map(Offset::Event))?;
    let slot = acquire(&call)?;
    let (reading, contest) = (Arc::clone(&tally), id.clone());
    let opened = tally.events.read(move || {
        let no = read::get(&reading, &contest)?.no;
        EventLog::of_subject(&reading, Subject::Contest(no), after)
    });
    begin(&call, slot, (None, Names::Contest(id)), opened.await)
}

/// `GET /v1/me/events`
pub(super) async fn own(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    let (tally, me) = (call.tally()?, me(&call));
    let after = after(&call, |id| events::read_entries_id(id).map(Offset::Entries))?;
    let slot = acquire(&call)?;
    let reading = Arc::clone(&tally);
    let opened = tally.events.read(move || EventLog::of_subject(&reading, Subject::Member(me), after)).await;
    begin(&call, slot, (None, Names::Own), opened)
}

/// The position after which the client resumes.
fn after(call: &Call, read: impl Fn(&str) -> Option<Offset>) -> Result<Option<Offset>, Problem> {
    let Some(text) = call.header(LAST_EVENT_ID)? else { return Ok(None) };
    let wrong = || bad_parameter(LAST_EVENT_ID, "must be an id that this stream has sent");
    read(&text).map(Some).ok_or_else(wrong)
}

/// Takes a slot for the caller.
pub(super) fn acquire(call: &Call) -> Result<StreamSlot, Problem> {
    call.readiness.streams.acquire(&call.caller).map_err(|full| match full {
        Full::Server => {
            let detail = "as many streams of events are open as this server serves at once (setting `events.streams_max`)";
            Problem::new(503, "too_many_streams", detail).retry_after(5)
        }
        Full::Caller(most) => {
            let detail = format!("the caller has {most} streams of events open, which is the most: close one first");
            Problem::new(429, "too_many_streams", detail).retry_after(5)
        }
    })
}

/// Starts the response, and the task that fills it.
fn begin(
    call: &Call,
    slot: StreamSlot,
    (scores, names): (source::Scores, Names),
    opened: Result<(EventLog, StreamStart), Failure>,
) -> Result<Response, Problem> {
    let (log, start) = opened.map_err(|failure| problem::of_failure(&failure))?;
    let (body, queue) = EventBody::new(EVENTS_WAITING_MAX);
    let task = StreamTask::new(call.caller_check(), call.caller.clone(), slot, queue);
    tokio::spawn(task.run(Source { scores, log, names, start }));
    let mut response = Response::new(Content::Events(body));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(UNBUFFERED, HeaderValue::from_static("no"));
    Ok(response)
}
