//! `GET /v1/members/{member}/export`: everything that tally stores about a member, as one JSON document.
//!
//! A task reads it in pages and sends each page before it reads the next one, so memory holds a page for any size. The last field is
//! `"complete":true`. A document that cannot be completed is broken off: the connection is closed without an end. Not here: the
//! rows (`tally_service`).

mod document;
mod sections;

use super::call::Call;
use super::events::acquire;
use super::events::body::{EventBody, Queue};
use super::keys::blocking;
use super::response::{Content, Response};
use crate::streams::StreamSlot;
use document::{Document, Stopped};
use hyper::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderValue};
use sections::Export;
use std::sync::Arc;
use tally_service::members::export;
use tally_wire::Problem;
use tokio::sync::Notify;

/// Pieces of a document that wait for the client.
const WAITING_MAX: usize = 2;

/// `GET /v1/members/{member}/export`
pub(super) async fn of_member(mut call: Call) -> Result<Response, Problem> {
    let origin = call.origin_of_query();
    call.finish_query()?;
    let (tally, int64, id) = (call.tally()?, call.int64()?, call.member()?);
    let slot = acquire(&call)?;
    let shared = Arc::clone(&tally);
    let member = blocking(move || {
        export::note(&shared, id, &origin)?;
        export::subject(&shared, id)
    });
    let (member, owns_player) = member.await?;
    let export = Export { tally, int64, id, member, owns_player };
    let (body, queue) = EventBody::new(WAITING_MAX);
    tokio::spawn(run(export, queue, slot, Arc::clone(&call.peer.cut)));
    let mut response = Response::new(Content::Events(body));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Ok(name) = HeaderValue::from_str(&format!("attachment; filename=\"member-{}.json\"", id.0)) {
        headers.insert(CONTENT_DISPOSITION, name);
    }
    Ok(response)
}

/// Sends the document. The slot bounds how many there are at a time.
async fn run(export: Export, queue: Queue, _slot: StreamSlot, cut: Arc<Notify>) {
    let member = export.id.0;
    let stopped = export.write(&mut Document::new(queue.send)).await;
    match stopped {
        Ok(()) | Err(Stopped::Disconnected) => {}
        Err(Stopped::Slow) => cut.notify_one(),
        Err(Stopped::Failed(failure)) => {
            tracing::warn!(%failure, %member, "the export of a member was broken off");
            cut.notify_one();
        }
    }
}
