//! Responses: JSON, text, nothing, or an event stream.

use super::events::body::EventBody;
use crate::limits::RESPONSE_BYTES_FREE;
use crate::responses::{ResponseShare, Responses};
use bytes::Bytes;
use hyper::StatusCode;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use serde::Serialize;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tally_service::damaged::{self, CorruptRow};
use tally_wire::Problem;

/// The maximum number of corrupt rows that a response names.
const DAMAGED_MAX: usize = 100;

/// Logs and names the corrupt rows that a list leaves out, if there are any.
pub(super) fn name_damaged(body: &mut Value, damaged: &[CorruptRow]) {
    if damaged.is_empty() {
        return;
    }
    damaged.iter().for_each(damaged::log);
    let name = |row: &CorruptRow| json!({"table": row.table, "row": row.key});
    body["damaged"] = damaged.iter().take(DAMAGED_MAX).map(name).collect();
}

pub(super) type Response = hyper::Response<Content>;

/// The body of a response.
pub(super) enum Content {
    /// A complete body.
    Whole(WholeBody),
    /// An event stream.
    Events(EventBody),
}

/// A complete body. A large one is sent in pieces.
///
/// hyper copies each piece into the buffer of the connection and keeps the memory of that buffer. It drops the body with the
/// last piece. So a connection holds little beside the body, and the body with its share lives until its client has read it.
pub(super) struct WholeBody {
    rest: Bytes,
    /// The share of a large body in the memory for all responses.
    share: Option<ResponseShare>,
}

impl WholeBody {
    fn next(&mut self) -> Option<Bytes> {
        let piece = self.rest.split_to(self.rest.len().min(RESPONSE_BYTES_FREE));
        (!piece.is_empty()).then_some(piece)
    }
}

impl Content {
    fn of(bytes: impl Into<Bytes>) -> Self {
        Self::Whole(WholeBody { rest: bytes.into(), share: None })
    }
}

impl Body for Content {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(whole) => Poll::Ready(whole.next().map(|piece| Ok(Frame::data(piece)))),
            Self::Events(events) => events.poll(context).map(|next| next.map(|bytes| Ok(Frame::data(bytes)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(whole) => whole.rest.is_empty(),
            Self::Events(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(whole) => SizeHint::with_exact(whole.rest.len() as u64),
            Self::Events(_) => SizeHint::default(),
        }
    }
}

/// The header that marks a response as the repetition of an earlier one.
pub(super) const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// A JSON response.
pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    let body = serde_json::to_vec(value).expect("answers are made of strings and numbers");
    with(status, "application/json", body)
}

/// 200 with JSON.
pub(super) fn ok(value: &impl Serialize) -> Response {
    json(StatusCode::OK, value)
}

/// 204.
pub(super) fn none() -> Response {
    let mut response = Response::new(Content::of(Bytes::new()));
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// A response with this body, without headers.
pub(super) fn bytes(status: StatusCode, body: impl Into<Bytes>) -> Response {
    let mut response = Response::new(Content::of(body));
    *response.status_mut() = status;
    response
}

/// A response of another content type.
pub(super) fn with(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Response {
    let mut response = bytes(status, body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// Marks a response that repeats an earlier one.
pub(super) fn replayed(mut response: Response, replayed: bool) -> Response {
    if replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

/// The share of a response in the memory for all of them; a small one has none. Fails if it exceeds the limit and is `refusable`.
pub(super) fn share(
    responses: &Arc<Responses>,
    bytes: usize,
    refusable: bool,
) -> Result<Option<ResponseShare>, Problem> {
    if bytes <= RESPONSE_BYTES_FREE {
        return Ok(None);
    }
    let share = responses.hold(bytes - RESPONSE_BYTES_FREE, refusable);
    share.map(Some).ok_or_else(|| {
        let detail = "responses that clients have not read take all of `http.responses_bytes_max`; nothing was done, \
                      try again";
        Problem::new(503, "overloaded", detail).retry_after(1)
    })
}

/// Counts a large response until its client has read it. Fails as [`share`] does.
pub(super) fn hold(
    mut response: Response,
    responses: &Arc<Responses>,
    refusable: bool,
) -> Result<Response, Problem> {
    if let Content::Whole(body) = response.body_mut() {
        body.share = share(responses, body.rest.len(), refusable)?;
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    fn piece(response: &mut Response) -> Option<usize> {
        let mut context = Context::from_waker(Waker::noop());
        match Pin::new(response.body_mut()).poll_frame(&mut context) {
            Poll::Ready(Some(Ok(frame))) => frame.into_data().ok().map(|piece| piece.len()),
            Poll::Ready(None) => None,
            Poll::Pending => panic!("all of it is there"),
        }
    }

    #[test]
    fn a_large_body_is_sent_in_pieces_and_counts_until_it_is_dropped() {
        let responses = Responses::new(RESPONSE_BYTES_FREE);
        let of = |bytes: usize| with(StatusCode::OK, "text/plain", vec![b'x'; bytes]);
        let large = 2 * RESPONSE_BYTES_FREE;
        let mut held = hold(of(large), &responses, true).expect("there is room");
        assert_eq!(held.body().size_hint().exact(), Some(large as u64));
        assert_eq!(hold(of(large), &responses, true).err().map(|full| full.code), Some("overloaded"));
        assert!(hold(of(large), &responses, false).is_ok(), "a change was made");
        assert!(hold(of(RESPONSE_BYTES_FREE), &responses, true).is_ok(), "a small one does not count");
        assert_eq!(piece(&mut held), Some(RESPONSE_BYTES_FREE));
        assert!(!held.body().is_end_stream() && hold(of(large), &responses, true).is_err());
        assert_eq!(piece(&mut held), Some(RESPONSE_BYTES_FREE));
        assert!(held.body().is_end_stream() && piece(&mut held).is_none());
        drop(held);
        assert!(hold(of(large), &responses, true).is_ok());
    }
}
