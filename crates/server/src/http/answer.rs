//! What goes back: JSON, text or nothing.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;

/// A whole answer.
pub(super) type Answer = Response<Full<Bytes>>;

/// The header that says that an answer is an earlier one.
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// An answer of JSON.
pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Answer {
    let body = serde_json::to_vec(value).expect("answers are made of strings and numbers");
    with(status, "application/json", body)
}

/// 200 with JSON.
pub(super) fn ok(value: &impl Serialize) -> Answer {
    json(StatusCode::OK, value)
}

/// 204.
pub(super) fn none() -> Answer {
    let mut answer = Response::new(Full::new(Bytes::new()));
    *answer.status_mut() = StatusCode::NO_CONTENT;
    answer
}

/// An answer of some other type.
pub(super) fn with(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
}

/// Marks an answer that repeats an earlier one.
pub(super) fn replayed(mut answer: Answer, replayed: bool) -> Answer {
    if replayed {
        answer.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    answer
}
