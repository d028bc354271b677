//! Changes that reach a follower: they are sent to the leader, and its answer is passed back.
//!
//! A client so needs not know which server leads. Each attempt asks anew which one that is. If the leader has not got a request,
//! or answers that it did nothing, the follower tries again while a takeover may last. If the leader was lost after it may have
//! got the request, the follower sends it again only if that is safe: it has an idempotency key, or changes nothing that counts.
//! The leader authenticates the caller again. It believes what the follower says of the client by a signature
//! (`tally_service::signed_requests`). A forwarded request is never forwarded again. Not here: which operations are forwarded
//! (`routes.rs`), and who leads.

pub(crate) mod commands;
mod connections;
#[cfg(test)]
mod tests;

use super::body::{Received, Unread};
use super::call::Peer;
use super::response::{self, Response};
use super::{guard, problem, proxies};
use crate::limits::SIGN_IN_BYTES_MAX;
use crate::metrics::Forwardings;
use crate::readiness::{Leader, Readiness};
use crate::security::now;
use crate::trust::Trust;
use bytes::Bytes;
use connections::{Answer, Connections, Failed};
use http_body_util::Full;
use hyper::header::{HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, StatusCode, Uri};
use serde_json::Value;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tally_rules::Actor;
use tally_rules::role::Permission;
use tally_service::Caller;
use tally_service::keyring::Keyring;
use tally_service::signed_requests::{Behalf, HEADER, Signed, SignedRequest};
use tally_wire::Problem;
use tokio::time::{Instant, sleep, timeout_at};

/// The pause after a first attempt at which nothing was done. Each further one is twice as long, up to the longest.
const PAUSE: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(100);
/// How often a request that waits for its answer asks whether the leader is another one.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// How long a leader that is none any more may still answer.
const GRACE: Duration = Duration::from_secs(1);
/// How long a leader may take for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// The headers of a request that its operation reads: they are passed on, and the signature covers them. The others are of the
/// connection, or of the way to this server.
const COVERED: [&str; 6] =
    [CREDENTIAL, IDEMPOTENCY_KEY, "content-type", "tally-int64", "tally-at-least", "tally-acting-player"];
/// Those of a trace are passed on, too. Proxies may change them.
const TRACED: [&str; 2] = ["traceparent", "tracestate"];
const CREDENTIAL: &str = "authorization";
const IDEMPOTENCY_KEY: &str = "idempotency-key";
const REQUEST_ID: &str = "x-request-id";
/// The headers of an answer that are of its connection, or that this server adds itself.
const NOT_PASSED: [&str; 6] =
    ["connection", "keep-alive", "transfer-encoding", "content-length", "date", "x-request-id"];

/// What an operator sets.
#[derive(Clone, Debug)]
pub struct ForwarderSettings {
    /// The file of authorities that are trusted instead of those of browsers.
    pub ca_file: Option<String>,
    /// How long a request waits for a leader: longer than a takeover lasts.
    pub patience: Duration,
}

/// Sends requests to the leader.
pub struct Forwarder {
    connections: Connections,
    patience: Duration,
}

/// A received request on its way to the leader.
struct Outgoing {
    method: Method,
    /// The path with its query.
    target: String,
    headers: HeaderMap,
    body: Bytes,
    behalf: Behalf,
    client: IpAddr,
    /// Whether it may be sent again although it may have been done.
    is_repeatable: bool,
}

/// What became of a request.
enum Outcome {
    Answered(Answer),
    /// This server leads now: it runs the request.
    Here,
    /// Nothing was done.
    GaveUp,
    /// The leader may have done it.
    Unknown,
}

impl Forwarder {
    /// Creates a forwarder without connections.
    ///
    /// # Errors
    ///
    /// What is wrong with the trusted certificates.
    pub fn new(settings: &ForwarderSettings) -> Result<Self, String> {
        let mut options = tally_tls::Options::default();
        if let Some(file) = &settings.ca_file {
            options.set("ssl-ca", file);
        }
        let connections = Connections::new(options.read()?.client()?);
        Ok(Self { connections, patience: settings.patience })
    }

    /// Sends a request to what `leader` returns, which may change at any time.
    async fn forward(
        &self,
        leader: &(impl Fn() -> Leader + Sync),
        ring: &Keyring,
        request: &Outgoing,
    ) -> Outcome {
        let mut until = Instant::now() + self.patience;
        let (mut pause, mut was_lost, mut last) = (PAUSE, false, None);
        loop {
            match leader() {
                // An outcome that is not known yet is that of its idempotency key.
                Leader::Here => return Outcome::Here,
                Leader::Unknown => {}
                Leader::At(base) => match self.attempt((leader, &base), ring, request, until).await {
                    Ok(answer) if !is_to_be_tried_again(&answer, was_lost) => {
                        return Outcome::Answered(answer);
                    }
                    Ok(answer) => last = Some(answer),
                    Err(Failed::NotSent(why)) => tracing::debug!(leader = &*base, why, "not forwarded"),
                    Err(Failed::Lost(why)) => {
                        tracing::debug!(leader = &*base, why, "lost the leader of a forwarded request");
                        if !request.is_repeatable {
                            return Outcome::Unknown;
                        }
                        if !was_lost {
                            (was_lost, until) = (true, Instant::now() + self.patience);
                        }
                    }
                },
            }
            if Instant::now() + pause >= until {
                return match last {
                    _ if was_lost => Outcome::Unknown,
                    Some(answer) => Outcome::Answered(answer),
                    None => Outcome::GaveUp,
                };
            }
            sleep(pause).await;
            pause = (2 * pause).min(PAUSE_MAX);
        }
    }

    /// Sends it once. `until` bounds the wait for a connection, which also ends by itself.
    async fn attempt(
        &self,
        (leader, base): (&(impl Fn() -> Leader + Sync), &Arc<str>),
        ring: &Keyring,
        request: &Outgoing,
        until: Instant,
    ) -> Result<Answer, Failed> {
        let Ok(slot) = timeout_at(until, self.connections.slot()).await else {
            return Err(Failed::NotSent("every connection is in use".into()));
        };
        let sent = request.sign(ring).map_err(Failed::NotSent)?;
        let still_leads = || match leader() {
            Leader::Here => false,
            Leader::At(now) => now == *base,
            Leader::Unknown => true,
        };
        let replaced = async {
            while still_leads() {
                sleep(CHECK_INTERVAL).await;
            }
            sleep(GRACE).await;
        };
        tokio::select! {
            answered = self.connections.send(slot, base, sent) => answered,
            () = replaced => Err(Failed::Lost("another server leads now".into())),
            () = sleep(ANSWER_TIMEOUT) => Err(Failed::Lost(format!("no answer in {ANSWER_TIMEOUT:?}"))),
        }
    }
}

/// Whether an answer says that nothing was done, and a later attempt may succeed. After an attempt that was lost, no answer says
/// that, and the first one may still run.
fn is_to_be_tried_again((head, body): &Answer, was_lost: bool) -> bool {
    let wanted: &[&str] = match head.status.as_u16() {
        503 if was_lost => return true,
        503 => &["not_leader", "draining", "loading"],
        409 if was_lost => &["idempotency_in_progress"],
        _ => return false,
    };
    let problem: Option<Value> = serde_json::from_slice(body).ok();
    problem.is_some_and(|problem| problem["code"].as_str().is_some_and(|code| wanted.contains(&code)))
}

impl Outgoing {
    fn new(
        parts: &Parts,
        body: Bytes,
        (behalf, client): (Behalf, IpAddr),
        (is_harmless, id): (bool, &str),
    ) -> Self {
        let mut headers = HeaderMap::new();
        // The token of this machine means nothing to another one.
        let is_passed = |name: &&str| behalf != Behalf::CommandLine || *name != CREDENTIAL;
        for name in COVERED.into_iter().chain(TRACED).filter(is_passed) {
            for value in parts.headers.get_all(name) {
                headers.append(name, value.clone());
            }
        }
        if let Ok(id) = HeaderValue::from_str(id) {
            headers.insert(REQUEST_ID, id);
        }
        let is_repeatable = is_harmless || headers.contains_key(IDEMPOTENCY_KEY) || parts.method.is_safe();
        let (method, target) = (parts.method.clone(), target(&parts.uri).to_owned());
        Self { method, target, headers, body, behalf, client, is_repeatable }
    }

    /// The request to send, with a new signature.
    fn sign(&self, ring: &Keyring) -> Result<Request<Full<Bytes>>, String> {
        let headers = &covered(&self.headers);
        let signed = SignedRequest { method: self.method.as_str(), target: &self.target, headers };
        let value = signed.sign(ring, &self.body, (self.behalf, self.client), now());
        let request = Request::builder().method(&self.method).uri(&self.target).header(HEADER, value);
        let mut request = request.body(Full::new(self.body.clone())).map_err(|why| why.to_string())?;
        request.headers_mut().extend(self.headers.clone());
        Ok(request)
    }
}

/// The headers that a signature covers, in one order.
fn covered(headers: &HeaderMap) -> Vec<(&'static str, &[u8])> {
    let all = |name| headers.get_all(name).iter().map(move |value| (name, value.as_bytes()));
    COVERED.into_iter().flat_map(all).collect()
}

fn target(uri: &Uri) -> &str {
    uri.path_and_query().map_or("/", |target| target.as_str())
}

/// The signature of another server, if the request has one.
pub(super) fn signed(readiness: &Readiness, parts: &Parts) -> Result<Option<Signed>, Problem> {
    let mut all = parts.headers.get_all(HEADER).iter();
    let Some(value) = all.next() else { return Ok(None) };
    let keys = readiness.keys().ok_or_else(|| guard::loading(readiness))?;
    let headers = &covered(&parts.headers);
    let request = SignedRequest { method: parts.method.as_str(), target: target(&parts.uri), headers };
    // A value that cannot be read, and a second one, are none of a server.
    let value = value.to_str().ok().filter(|_| all.next().is_none()).unwrap_or_default();
    let signed = request.verify(keys.ring(), value, now());
    signed.map(Some).map_err(|refused| guard::unauthorized(&refused.to_string()))
}

/// Waits while this server takes over from its leader: a change is late then, and not refused. Returns whether it may wait
/// again, if this server takes over once more.
pub(super) async fn wait_for_leader(readiness: &Readiness) -> bool {
    let Some(forwarder) = readiness.forwarder.get() else { return false };
    let until = Instant::now() + forwarder.patience;
    while readiness.takes_over() {
        if Instant::now() >= until {
            return false;
        }
        sleep(PAUSE).await;
    }
    true
}

/// Sends a request of an authenticated caller to the leader. Returns `None` if this server is to run it: then `body` has been
/// received.
pub(super) async fn forward(
    readiness: &Readiness,
    (parts, body): (&Parts, &mut Unread),
    (caller, peer, permission): (&Caller, &Peer, Permission),
    id: &str,
) -> Result<Option<Response>, Problem> {
    let forwarder = readiness.forwarder.get().filter(|_| !matches!(peer.trust, Trust::Server(_)));
    let Some(forwarder) = forwarder else {
        return Err(problem::not_leader("another server leads; nothing was done, try again there"));
    };
    let Some(keys) = readiness.keys() else { return Err(guard::loading(readiness)) };
    let is_open = permission == Permission::Open;
    let most = if is_open { SIGN_IN_BYTES_MAX } else { readiness.limits.body_bytes_max };
    let Received { bytes, part } = body.receive(readiness, most).await?;
    let behalf = match caller.actor {
        Actor::CommandLine => Behalf::CommandLine,
        Actor::Local => Behalf::Local,
        _ => Behalf::Client,
    };
    let client = proxies::client(peer.address.ip(), &parts.headers, &readiness.limits.trusted_proxies);
    // A sign-in changes nothing that a second one would change again. What needs the right to read changes nothing.
    let is_harmless = is_open || permission == Permission::Read;
    let request = Outgoing::new(parts, bytes.clone(), (behalf, client), (is_harmless, id));
    let outcome = forwarder.forward(&|| readiness.leader(), keys.ring(), &request).await;
    let Forwardings { answered, here, gave_up, unknown } = &readiness.metrics.forwarded;
    match outcome {
        Outcome::Answered((head, bytes)) => {
            answered.inc();
            Ok(Some(passed(head.status, &head.headers, bytes)))
        }
        Outcome::Here => {
            here.inc();
            *body = Unread::received(Received { bytes, part });
            Ok(None)
        }
        Outcome::Unknown if parts.method != Method::GET => {
            unknown.inc();
            Err(problem::leader_lost())
        }
        Outcome::GaveUp | Outcome::Unknown => {
            gave_up.inc();
            Err(problem::not_leader("the leader cannot be reached now; nothing was done, try again"))
        }
    }
}

/// The answer of the leader, for the client of this server.
fn passed(status: StatusCode, headers: &HeaderMap, body: Bytes) -> Response {
    let mut response = response::bytes(status, body);
    for (name, value) in headers {
        if !NOT_PASSED.contains(&name.as_str()) {
            response.headers_mut().append(name, value.clone());
        }
    }
    response
}
