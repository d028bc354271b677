//! The body of a request: received within limits, or not read when the response does not need it.
//!
//! A response before the end of the body must not break the connection silently. The server reads and discards a small
//! body, and the connection stays usable. After a longer body the response announces that the connection closes. Then the
//! socket reads on for a while, so that a client that is still writing finds the response (see `progress.rs`).

use super::response::Response;
use crate::limits::{BODY_BYTES_FREE, DRAIN_TIMEOUT, DRAINED_BYTES_MAX};
use crate::progress::Linger;
use crate::readiness::Readiness;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::header::{CONNECTION, HeaderValue};
use std::sync::{Arc, Mutex, PoisonError};
use tally_service::signed_requests::Signed;
use tally_wire::Problem;
use tokio::sync::OwnedSemaphorePermit;

/// A body that may be read once. The dispatcher keeps another handle.
#[derive(Clone, Default)]
pub(super) struct Unread {
    body: Option<Arc<Mutex<Option<Source>>>>,
    /// The signature of the server that forwards the request.
    signed: Option<Signed>,
}

enum Source {
    Incoming(Incoming),
    Received(Received),
}

/// A received body, and its share of the memory for all bodies.
#[derive(Default)]
pub(super) struct Received {
    pub(super) bytes: Bytes,
    pub(super) part: Option<OwnedSemaphorePermit>,
}

impl Unread {
    pub(super) fn new(body: Incoming) -> Self {
        let body = (!body.is_end_stream()).then(|| Arc::new(Mutex::new(Some(Source::Incoming(body)))));
        Self { body, signed: None }
    }

    /// One that was received for another server, and is to be used here after all.
    pub(super) fn received(body: Received) -> Self {
        Self { body: Some(Arc::new(Mutex::new(Some(Source::Received(body))))), signed: None }
    }

    /// Lets this handle receive only the body that was signed.
    pub(super) fn expect(&mut self, signed: Signed) {
        self.signed = Some(signed);
    }

    fn take(&self) -> Option<Source> {
        self.body.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Receives the body; it is empty if there is none.
    pub(super) async fn receive(&self, readiness: &Readiness, bytes_max: usize) -> Result<Received, Problem> {
        self.receive_up_to(readiness, bytes_max.min(readiness.limits.body_bytes_max)).await
    }

    /// The same without the limit for the bodies of clients.
    pub(super) async fn receive_up_to(
        &self,
        readiness: &Readiness,
        bytes_max: usize,
    ) -> Result<Received, Problem> {
        let received = match self.take() {
            None => Received::default(),
            Some(Source::Received(received)) => received,
            Some(Source::Incoming(body)) => Self::arrive(body, readiness, bytes_max).await?,
        };
        if self.signed.is_some_and(|signed| !signed.has_body(&received.bytes)) {
            return Err(malformed());
        }
        Ok(received)
    }

    async fn arrive(body: Incoming, readiness: &Readiness, most: usize) -> Result<Received, Problem> {
        if body.size_hint().lower() > most as u64 {
            return Err(too_large(most, Some(body.size_hint().lower())));
        }
        let limit = readiness.limits.body_timeout;
        let received = tokio::time::timeout(limit, collect(readiness, body, most)).await;
        received.unwrap_or_else(|_| {
            let detail = format!("the body did not arrive in {limit:?} (setting `http.body_timeout`)");
            Err(Problem::new(408, "body_timeout", detail).header("connection", "close"))
        })
    }

    /// Handles what the operation has not read, and completes its response.
    pub(super) async fn settle(&self, expects_to_be_asked: bool, linger: &Linger, response: &mut Response) {
        if let Some(Source::Incoming(body)) = self.take() {
            // A client that expects `100 Continue` need not send its body.
            let drained = !expects_to_be_asked && drain(body).await;
            if !drained {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
        }
        if response.headers().get(CONNECTION).is_some_and(|value| value == "close") {
            linger.request();
        }
    }
}

/// `sent` is what the request announces, if it does.
fn too_large(most: usize, sent: Option<u64>) -> Problem {
    let sent = sent.map(|sent| format!(", and this one has {sent}")).unwrap_or_default();
    let detail = format!("the body may have at most {most} bytes{sent}");
    Problem::new(413, "payload_too_large", detail).header("connection", "close")
}

fn malformed() -> Problem {
    Problem::new(400, "malformed_body", "the body did not arrive whole: send the request again")
}

async fn collect(readiness: &Readiness, mut body: Incoming, most: usize) -> Result<Received, Problem> {
    let (mut first, mut all) = (Bytes::new(), BytesMut::new());
    let (mut total, mut part) = (0, None::<OwnedSemaphorePermit>);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| malformed())?.into_data() else { continue };
        total += data.len();
        if total > most {
            return Err(too_large(most, None));
        }
        let counted = total.saturating_sub(BODY_BYTES_FREE).div_ceil(1 << 10);
        let more = counted - part.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        if more > 0 {
            let more = u32::try_from(more).unwrap_or(u32::MAX);
            let taken = Arc::clone(&readiness.bodies).try_acquire_many_owned(more).map_err(|_| {
                let detail =
                    "the bodies of other requests take all of `http.bodies_bytes_max`; nothing was done, try again";
                Problem::new(503, "overloaded", detail).retry_after(1).header("connection", "close")
            })?;
            match &mut part {
                Some(part) => part.merge(taken),
                None => part = Some(taken),
            }
        }
        // Most bodies arrive in one piece, which needs no copy.
        if total == data.len() {
            first = data;
        } else {
            all.extend_from_slice(&std::mem::take(&mut first));
            all.extend_from_slice(&data);
        }
    }
    Ok(Received { bytes: if all.is_empty() { first } else { all.freeze() }, part })
}

/// Reads a small body to its end. Returns whether it reached the end.
async fn drain(mut body: Incoming) -> bool {
    if body.size_hint().lower() > DRAINED_BYTES_MAX as u64 {
        return false;
    }
    let to_its_end = async {
        let mut total = 0;
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { return false };
            total += frame.data_ref().map_or(0, Bytes::len);
            if total > DRAINED_BYTES_MAX {
                return false;
            }
        }
        true
    };
    tokio::time::timeout(DRAIN_TIMEOUT, to_its_end).await.unwrap_or(false)
}
