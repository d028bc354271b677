//! One exchange with the collector: it sends a message and reads the response, within a timeout.
//!
//! The connection is kept. If the collector has closed it meanwhile, the message is sent once more on a new one. Not here:
//! the messages, and what happens to spans that the collector did not take.

use crate::{Address, TraceSettings};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// The most bytes of a response that are read.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// Characters of a response that are shown.
const SHOWN_MAX: usize = 200;

/// A header that authenticates: a secret.
#[derive(Clone, Debug)]
pub struct Header(HeaderName, HeaderValue);

impl Header {
    /// Parses `name: value`; `None` for an invalid header, or one that the exporter sets itself.
    pub fn parse(text: &str) -> Option<Self> {
        let (name, value) = text.split_once(':')?;
        let name: HeaderName = name.trim().parse().ok()?;
        let mut value: HeaderValue = value.trim().parse().ok()?;
        // `Debug` does not show it then.
        value.set_sensitive(true);
        let ours = [HOST, CONTENT_TYPE, CONTENT_LENGTH, USER_AGENT].contains(&name);
        (!ours && !value.is_empty()).then_some(Self(name, value))
    }
}

/// The connection to a collector.
pub(crate) struct Collector {
    address: Address,
    header: Option<Header>,
    timeout: Duration,
    agent: HeaderValue,
    tls: Option<tally_tls::Client>,
    open: Option<SendRequest<Full<Bytes>>>,
}

/// Why the collector did not take a message.
#[derive(Debug)]
pub(crate) enum PostError {
    /// A retry may succeed; the collector may have named the pause before it.
    Later(String, Option<Duration>),
    /// A retry cannot succeed.
    Never(String),
}

/// Sends a message without spans, to check that the collector takes spans.
///
/// # Errors
///
/// Why it does not.
pub async fn probe(settings: &TraceSettings) -> Result<(), String> {
    let mut collector = Collector::new(settings)?;
    match collector.post(Bytes::new()).await {
        Ok(_) => Ok(()),
        Err(PostError::Later(why, _) | PostError::Never(why)) => Err(why),
    }
}

impl Collector {
    pub(crate) fn new(settings: &TraceSettings) -> Result<Self, String> {
        let TraceSettings { address, header, timeout, version, .. } = settings;
        let tls = address.trust.as_ref().map(tally_tls::Trust::client).transpose()?;
        let agent = HeaderValue::try_from(format!("tally/{version}")).map_err(|why| why.to_string())?;
        Ok(Self {
            address: address.clone(),
            header: header.clone(),
            timeout: *timeout,
            agent,
            tls,
            open: None,
        })
    }

    /// Sends a message; returns the number of its spans that the collector rejected.
    pub(crate) async fn post(&mut self, message: Bytes) -> Result<u64, PostError> {
        let timeout = self.timeout;
        let done = tokio::time::timeout(timeout, self.exchange(message)).await;
        let done =
            done.unwrap_or_else(|_| Err(PostError::Later(format!("it did not answer in {timeout:?}"), None)));
        if done.is_err() {
            self.open = None;
        }
        done
    }

    async fn exchange(&mut self, message: Bytes) -> Result<u64, PostError> {
        let kept = self.open.take();
        if let Some(mut open) = kept
            && let Ok(answer) = self.send(&mut open, message.clone()).await
        {
            self.open = Some(open);
            return interpret(answer);
        }
        let mut open = self.connect().await?;
        let answer = self.send(&mut open, message).await;
        let answer = answer.map_err(|why| PostError::Later(format!("the connection broke: {why}"), None))?;
        self.open = Some(open);
        interpret(answer)
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, PostError> {
        let Address { host, port, .. } = &self.address;
        let lost = |why: std::io::Error| PostError::Later(format!("it cannot be reached: {why}"), None);
        let stream = TcpStream::connect((host.as_str(), *port)).await.map_err(lost)?;
        match &self.tls {
            None => begin(stream).await,
            Some(tls) => match tls.handshake(host, stream).await {
                Ok(stream) => begin(stream).await,
                Err(tally_tls::Failure::Lost(why)) => Err(lost(why)),
                // A certificate can be renewed while spans wait.
                Err(tally_tls::Failure::Untrusted(why)) => Err(PostError::Later(why, None)),
            },
        }
    }

    async fn send(
        &self,
        open: &mut SendRequest<Full<Bytes>>,
        message: Bytes,
    ) -> Result<(StatusCode, Option<Duration>, Bytes), Box<dyn std::error::Error + Send + Sync>> {
        let mut request = Request::post(&self.address.path)
            .header(HOST, self.address.authority())
            .header(CONTENT_TYPE, "application/x-protobuf")
            .header(USER_AGENT, &self.agent)
            .body(Full::new(message))?;
        if let Some(Header(name, value)) = &self.header {
            request.headers_mut().insert(name, value.clone());
        }
        open.ready().await?;
        let answer = open.send_request(request).await?;
        let after = answer.headers().get(RETRY_AFTER).and_then(|after| after.to_str().ok()?.parse().ok());
        let status = answer.status();
        let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await?;
        Ok((status, after.map(Duration::from_secs), body.to_bytes()))
    }
}

async fn begin(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> Result<SendRequest<Full<Bytes>>, PostError> {
    let (open, connection) = handshake(TokioIo::new(stream))
        .await
        .map_err(|why| PostError::Later(format!("the connection broke: {why}"), None))?;
    // This task ends with the other half, which reports its errors.
    tokio::spawn(async move { drop(connection.await) });
    Ok(open)
}

/// The meaning of a response, by its status as OTLP defines it.
fn interpret((status, after, body): (StatusCode, Option<Duration>, Bytes)) -> Result<u64, PostError> {
    if status.is_success() {
        let answer = ExportTraceServiceResponse::decode(body).unwrap_or_default();
        let rejected = answer.partial_success.map_or(0, |partial| partial.rejected_spans);
        return Ok(u64::try_from(rejected).unwrap_or(0));
    }
    let text: String =
        String::from_utf8_lossy(&body).chars().filter(|one| !one.is_control()).take(SHOWN_MAX).collect();
    let why = format!("it answered {status}{}{text}", if text.is_empty() { "" } else { ": " });
    Err(match status.as_u16() {
        429 | 502 | 503 | 504 => PostError::Later(why, after),
        _ => PostError::Never(why),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTracePartialSuccess;

    #[test]
    fn a_header_is_a_name_and_a_value_and_not_shown() {
        let header = Header::parse("Authorization: Bearer very:secret").unwrap();
        assert_eq!((header.0.as_str(), header.1.as_bytes()), ("authorization", &b"Bearer very:secret"[..]));
        assert!(!format!("{header:?}").contains("secret"));
        for wrong in ["", "secret", "a b: c", ": x", "x:", "x: a\nb", "content-type: text/plain", "Host: x"] {
            assert!(Header::parse(wrong).is_none(), "{wrong:?}");
        }
    }

    #[test]
    fn an_answer_says_whether_to_come_again() {
        let answer =
            |status: u16| interpret((StatusCode::from_u16(status).unwrap(), None, Bytes::from("why\n")));
        assert!(matches!(answer(503), Err(PostError::Later(why, None)) if why.ends_with("Unavailable: why")));
        for (status, later) in
            [(429, true), (502, true), (504, true), (400, false), (401, false), (500, false)]
        {
            assert_eq!(matches!(answer(status), Err(PostError::Later(..))), later, "{status}");
        }
        let partial_success =
            Some(ExportTracePartialSuccess { rejected_spans: 3, error_message: "x".into() });
        let body = ExportTraceServiceResponse { partial_success }.encode_to_vec();
        assert_eq!(interpret((StatusCode::OK, None, body.into())).unwrap(), 3);
        // An unreadable success still means that the spans were taken.
        assert_eq!(interpret((StatusCode::OK, None, "{}".into())).unwrap(), 0);
    }
}
