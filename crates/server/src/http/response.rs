//! Responses: JSON, text, nothing, or an event stream.

use super::events::body::EventBody;
use bytes::Bytes;
use http_body_util::Full;
use hyper::StatusCode;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use serde::Serialize;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use tally_service::damaged::{self, CorruptRow};

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
    Whole(Full<Bytes>),
    /// An event stream.
    Events(EventBody),
}

impl Content {
    fn of(bytes: impl Into<Bytes>) -> Self {
        Self::Whole(Full::new(bytes.into()))
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
            Self::Whole(whole) => Pin::new(whole).poll_frame(context),
            Self::Events(events) => events.poll(context).map(|next| next.map(|bytes| Ok(Frame::data(bytes)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(whole) => whole.is_end_stream(),
            Self::Events(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(whole) => whole.size_hint(),
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

/// A response of another content type.
pub(super) fn with(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Response {
    let mut response = Response::new(Content::of(body));
    *response.status_mut() = status;
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
