//! A sampled HTTP request, by the stable OpenTelemetry conventions for servers.
//!
//! The query is left out: it may have phone numbers. Not here: bodies and other headers.

use super::SampledRequest;
use hyper::body::Incoming;
use hyper::header::{HOST, HeaderName, USER_AGENT};
use hyper::{HeaderMap, Method, Request, Version};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;
use tally_service::traces::Sink;
use tally_traces::{Parent, Traces, Value};

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The maximum bytes of `tracestate` that are passed on; a longer one is left out.
const TRACESTATE_BYTES_MAX: usize = 512;
/// The maximum characters of the user agent, the path and the host: many spans may wait for the collector.
const TEXT_MAX: usize = 512;

/// Methods that the conventions know.
const METHODS: [Method; 9] = [
    Method::GET,
    Method::POST,
    Method::PUT,
    Method::DELETE,
    Method::PATCH,
    Method::HEAD,
    Method::OPTIONS,
    Method::CONNECT,
    Method::TRACE,
];

/// A sampled request, until its response.
pub(crate) struct HttpSample(Arc<SampledRequest>);

impl HttpSample {
    /// Starts the spans of a request, if it is sampled.
    pub(crate) fn begin(
        traces: Option<&Arc<Traces>>,
        request: &Request<Incoming>,
        (peer, scheme): (IpAddr, &'static str),
        began: Instant,
        id: &str,
    ) -> Option<Self> {
        let traces = traces?;
        let headers = request.headers();
        let trace = traces.sample(parent(headers).as_ref(), || state(headers))?;
        let sampled = SampledRequest::new(traces, trace, began);
        {
            let mut root = sampled.root();
            root.attributes = attributes(request, peer, scheme, id);
            // The name of a span without a route.
            root.name = method(request.method()).1.to_owned();
        }
        Some(Self(sampled))
    }

    /// Sets the route of the operation.
    pub(crate) fn route(&self, route: &'static str) {
        let mut root = self.0.root();
        root.name = format!("{} {route}", root.name);
        root.attributes.push(("http.route", route.into()));
    }

    /// The receiver of lane timings.
    pub(crate) fn sink(&self) -> Arc<dyn Sink> {
        Arc::<SampledRequest>::clone(&self.0)
    }

    /// Records the response.
    pub(crate) fn answered(&self, status: u16) {
        let mut root = self.0.root();
        root.ended = Some(Instant::now());
        root.attributes.push(("http.response.status_code", u64::from(status).into()));
        if status >= 500 {
            root.attributes.push(("error.type", status.to_string().into()));
            root.failed = Some(String::new());
        }
    }
}

/// The caller's span. A header that comes twice is ignored.
fn parent(headers: &HeaderMap) -> Option<Parent> {
    let mut all = headers.get_all(TRACEPARENT).iter();
    let first = all.next()?;
    all.next().is_none().then(|| Parent::parse(first.as_bytes()))?
}

/// The `tracestate` of upstream systems, joined as the standard says.
fn state(headers: &HeaderMap) -> String {
    let all: Option<Vec<&str>> =
        headers.get_all(TRACESTATE).iter().map(|value| value.to_str().ok()).collect();
    all.map(|all| all.join(",")).filter(|all| all.len() <= TRACESTATE_BYTES_MAX).unwrap_or_default()
}

/// A method as an attribute, and in the name of a span. An unknown method may be any text.
fn method(method: &Method) -> (&str, &str) {
    if METHODS.contains(method) { (method.as_str(), method.as_str()) } else { ("_OTHER", "HTTP") }
}

fn attributes(
    request: &Request<Incoming>,
    peer: IpAddr,
    scheme: &'static str,
    id: &str,
) -> Vec<(&'static str, Value)> {
    let headers = request.headers();
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let version = match request.version() {
        Version::HTTP_10 => "1.0",
        _ => "1.1",
    };
    let mut all: Vec<(&'static str, Value)> = vec![
        ("http.request.method", method(request.method()).0.to_owned().into()),
        ("url.scheme", scheme.into()),
        ("url.path", cut(request.uri().path()).into()),
        ("network.protocol.version", version.into()),
        ("client.address", peer.to_canonical().to_string().into()),
        ("tally.request_id", id.to_owned().into()),
    ];
    if let Some((host, port)) = text(HOST).map(host) {
        all.push(("server.address", cut(host).into()));
        if let Some(port) = port {
            all.push(("server.port", u64::from(port).into()));
        }
    }
    if let Some(agent) = text(USER_AGENT) {
        all.push(("user_agent.original", cut(agent).into()));
    }
    all
}

/// Shortens a text.
fn cut(text: &str) -> String {
    text.chars().take(TEXT_MAX).collect()
}

/// Name and port of a `Host`.
fn host(text: &str) -> (&str, Option<u16>) {
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, port.parse().ok()),
        _ => (text, None),
    };
    (name.trim_matches(['[', ']']), port)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn headers(all: &[(HeaderName, &str)]) -> HeaderMap {
        all.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    #[test]
    fn a_parent_that_is_sent_twice_is_none() {
        assert!(parent(&headers(&[(TRACEPARENT, PARENT)])).is_some());
        assert!(parent(&headers(&[(TRACEPARENT, PARENT), (TRACEPARENT, PARENT)])).is_none());
        assert!(parent(&headers(&[(TRACEPARENT, "what")])).is_none());
        assert!(parent(&headers(&[])).is_none());
    }

    #[test]
    fn states_are_joined_and_bounded() {
        assert_eq!(state(&headers(&[])), "");
        assert_eq!(state(&headers(&[(TRACESTATE, "a=1"), (TRACESTATE, "b=2")])), "a=1,b=2");
        assert_eq!(state(&headers(&[(TRACESTATE, &"a".repeat(TRACESTATE_BYTES_MAX + 1))])), "");
    }

    #[test]
    fn hosts_have_names_and_perhaps_ports() {
        assert_eq!(host("localhost"), ("localhost", None));
        assert_eq!(host("localhost:80"), ("localhost", Some(80)));
        assert_eq!(host("[::1]:80"), ("::1", Some(80)));
        assert_eq!(host("[::1]"), ("::1", None));
    }

    #[test]
    fn an_unknown_method_is_not_a_name() {
        assert_eq!(method(&Method::PATCH), ("PATCH", "PATCH"));
        assert_eq!(method(&Method::from_bytes(b"BREW").unwrap()), ("_OTHER", "HTTP"));
    }
}
