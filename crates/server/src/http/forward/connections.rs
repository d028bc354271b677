//! Connections to the leader: kept after an answer, one request at a time on each.
//!
//! What matters of a failure is whether the leader may have got the request. Not here: whether it is sent again (`mod.rs`).

use crate::webhooks::WebhookTarget;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::Request;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{HOST, HeaderValue};
use hyper::http::response::Parts;
use hyper_util::rt::TokioIo;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

/// Connections at once. Further requests wait for one.
const CONNECTIONS_MAX: usize = 512;
/// Time to connect, with the handshake of TLS.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// The most bytes of an answer: more than any change has, and a million members that one command has removed.
const ANSWER_BYTES_MAX: usize = 256 << 20;

type Sender = SendRequest<Full<Bytes>>;

/// An answer of the leader.
pub(super) type Answer = (Parts, Bytes);

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Failed {
    /// The leader has not got the request.
    NotSent(String),
    /// It may have got the request, and may have done it.
    Lost(String),
}

/// What became of a request on one connection.
enum Exchanged {
    Answered(Answer, Sender),
    NotSent(Request<Full<Bytes>>, String),
    Lost(String),
}

/// The connections of a server to its leader.
pub(super) struct Connections {
    tls: tally_tls::Client,
    slots: Semaphore,
    /// Idle ones, each with the address of its leader.
    kept: Mutex<Vec<(Arc<str>, Sender)>>,
}

impl Connections {
    pub(super) fn new(tls: tally_tls::Client) -> Self {
        Self { tls, slots: Semaphore::new(CONNECTIONS_MAX), kept: Mutex::default() }
    }

    /// Waits for the right to send.
    pub(super) async fn slot(&self) -> SemaphorePermit<'_> {
        self.slots.acquire().await.expect("nothing closes it")
    }

    /// Sends a request to the server at `base` and receives its answer.
    pub(super) async fn send(
        &self,
        _slot: SemaphorePermit<'_>,
        base: &Arc<str>,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Answer, Failed> {
        let target = WebhookTarget::parse(base, true).map_err(Failed::NotSent)?;
        let host = HeaderValue::try_from(&target.authority);
        request.headers_mut().insert(HOST, host.map_err(|why| Failed::NotSent(why.to_string()))?);
        while let Some(sender) = self.take(base) {
            match exchange(sender, request).await {
                Exchanged::Answered(answer, sender) => return Ok(self.keep(base, answer, sender)),
                // The leader has closed it meanwhile.
                Exchanged::NotSent(again, _) => request = again,
                Exchanged::Lost(why) => return Err(Failed::Lost(why)),
            }
        }
        let connected = timeout(CONNECT_TIMEOUT, self.connect(&target)).await;
        let connected = connected.unwrap_or_else(|_| Err(format!("no connection in {CONNECT_TIMEOUT:?}")));
        match exchange(connected.map_err(Failed::NotSent)?, request).await {
            Exchanged::Answered(answer, sender) => Ok(self.keep(base, answer, sender)),
            Exchanged::NotSent(_, why) => Err(Failed::NotSent(why)),
            Exchanged::Lost(why) => Err(Failed::Lost(why)),
        }
    }

    fn take(&self, base: &Arc<str>) -> Option<Sender> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // Those to an earlier leader are of no use.
        kept.retain(|(of, _)| of == base);
        kept.pop().map(|(_, sender)| sender)
    }

    fn keep(&self, base: &Arc<str>, answer: Answer, sender: Sender) -> Answer {
        if !sender.is_closed() {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.push((Arc::clone(base), sender));
        }
        answer
    }

    async fn connect(&self, target: &WebhookTarget) -> Result<Sender, String> {
        let unreachable = |why: std::io::Error| format!("it cannot be reached: {why}");
        let stream = TcpStream::connect((target.host.as_str(), target.port)).await.map_err(unreachable)?;
        stream.set_nodelay(true).map_err(unreachable)?;
        if !target.is_encrypted {
            return begin(stream).await;
        }
        match self.tls.handshake(&target.host, stream).await {
            Ok(stream) => begin(stream).await,
            Err(tally_tls::Failure::Lost(why)) => Err(unreachable(why)),
            Err(tally_tls::Failure::Untrusted(why)) => Err(why),
        }
    }
}

async fn begin(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Result<Sender, String> {
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|why| why.to_string())?;
    // It ends with its sender, or when the leader closes it.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender)
}

/// Sends a request on a connection and receives the whole answer.
async fn exchange(mut sender: Sender, request: Request<Full<Bytes>>) -> Exchanged {
    if let Err(why) = sender.ready().await {
        return Exchanged::NotSent(request, why.to_string());
    }
    let answer = match sender.try_send_request(request).await {
        Ok(answer) => answer,
        Err(mut failed) => {
            let why = failed.error().to_string();
            return match failed.take_message() {
                Some(request) => Exchanged::NotSent(request, why),
                None => Exchanged::Lost(why),
            };
        }
    };
    let (parts, body) = answer.into_parts();
    match Limited::new(body, ANSWER_BYTES_MAX).collect().await {
        Ok(body) => Exchanged::Answered((parts, body.to_bytes()), sender),
        Err(why) => Exchanged::Lost(why.to_string()),
    }
}
