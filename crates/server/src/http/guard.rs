//! Who asks, and whether they may.
//!
//! A presented credential is always judged: a bad one is refused, never a fall back to less. Without one, only this
//! machine may ask, only until the first key was made, and neither through a proxy nor through a browser that was
//! sent here by a foreign page: the `Host` must be ours (against DNS rebinding) and so must the `Origin`.

use super::call::bad_parameter;
use super::problem;
use super::routes::{METRICS_PATH, Route};
use crate::readiness::{LOCAL_PREFIX, NotReady, Readiness};
use crate::way::Way;
use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HOST, HeaderName, ORIGIN};
use hyper::http::request::Parts;
use hyper::{Request, Version};
use tally_rules::Micros;
use tally_rules::role::Permission;
use tally_service::{Caller, CallerKind, Failure};
use tally_wire::{Problem, host};

/// What every API key begins with. Anything else is taken for a member's token.
const KEY_PREFIX: &str = "tally_";

impl Way {
    /// The way of one request on a connection that came this way.
    pub(super) fn of_request(self, parts: &Parts) -> Self {
        // nginx with nothing but `proxy_pass` adds no header and speaks HTTP/1.0.
        let proxied = parts.version < Version::HTTP_11 || parts.headers.keys().any(is_of_proxy);
        if self == Self::Direct && proxied { Self::Local } else { self }
    }
}

/// Whether a header is one that proxies add. One is enough, whatever it says.
fn is_of_proxy(name: &HeaderName) -> bool {
    const EXACT: [&str; 5] = ["forwarded", "via", "cdn-loop", "proxy-connection", "x-forwarded"];
    const STARTS: [&str; 6] = ["cf-", "cloudfront-", "x-azure-", "x-envoy-", "x-forwarded-", "x-original-"];
    let name = name.as_str();
    EXACT.contains(&name) || name.ends_with("-ip") || STARTS.iter().any(|start| name.starts_with(start))
}

/// Refuses a request whose host is ambiguous: a proxy may have judged another one than this server.
pub(super) fn check_one_host<B>(request: &Request<B>) -> Result<(), Problem> {
    let mut hosts = request.headers().get_all(HOST).iter();
    let first = hosts.next();
    let other = match request.uri().authority() {
        None => false,
        Some(target) => {
            first.is_none_or(|host| !host.as_bytes().eq_ignore_ascii_case(target.as_str().as_bytes()))
        }
    };
    if hosts.next().is_none() && !other {
        return Ok(());
    }
    Err(bad_parameter("Host", "must be sent once, and be that of the request's target"))
}

/// Who asks, as far as it was judged.
pub(super) struct Judged {
    pub(super) caller: Caller,
    /// From when on the tokens of a member are good.
    pub(super) tokens_from: Micros,
}

impl From<Caller> for Judged {
    fn from(caller: Caller) -> Self {
        Self { caller, tokens_from: Micros(0) }
    }
}

/// Judges a request: who asks, and whether it has the right.
pub(super) async fn judge(
    gate: &Readiness,
    way: Way,
    headers: &HeaderMap,
    route: &Route,
) -> Result<Judged, Problem> {
    let (right, metrics) = (route.right, route.path == METRICS_PATH);
    let judged = if headers.contains_key(AUTHORIZATION) {
        presented(gate, way, headers).await?
    } else if metrics && gate.limits.metrics_open {
        Caller::local().into()
    } else {
        // Whoever scrapes knows the server under some name of its own.
        if !metrics {
            check_host(gate, headers)?;
        }
        check_origin(gate, headers, right)?;
        if right == Permission::Open { Caller::anonymous().into() } else { anonymous(gate, way)?.into() }
    };
    if judged.caller.may(right) {
        return Ok(judged);
    }
    let detail = match judged.caller.kind {
        CallerKind::Key(_) if right == Permission::Own => {
            "only a member who has signed in has something of its own".into()
        }
        CallerKind::Key(role) => format!("a key of role `{role}` may not do this"),
        CallerKind::Member(_) | CallerKind::Anonymous => "a member may not do this".into(),
    };
    Err(Problem::new(403, "forbidden", detail))
}

/// The one credential of a request.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let value = all.next().and_then(|value| value.to_str().ok());
    let token = value.and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
    });
    token.filter(|_| all.next().is_none())
}

/// The id of the key that a request presents, if it has the form of one: 12 hexadecimal digits.
pub(super) fn claimed_key(headers: &HeaderMap) -> Option<&str> {
    let (id, _) = bearer(headers)?.strip_prefix(KEY_PREFIX)?.split_once('_')?;
    (id.len() == 12 && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(id)
}

/// Whether the token of a member who was judged before has not run out. Asks nobody.
pub(super) fn token_holds(gate: &Readiness, headers: &HeaderMap) -> bool {
    let tally = gate.loaded();
    tally
        .zip(bearer(headers))
        .is_some_and(|(tally, token)| tally.members.tokens.read(token, tally.now()).is_some())
}

/// Whether a command of this machine asks.
pub(super) fn is_this_machine(gate: &Readiness, way: Way, headers: &HeaderMap) -> bool {
    let local = bearer(headers).and_then(|token| token.strip_prefix(LOCAL_PREFIX));
    let is_ours = |local: &str| same(local.as_bytes(), gate.local_token.as_bytes());
    way != Way::Foreign && local.is_some_and(is_ours)
}

async fn presented(gate: &Readiness, way: Way, headers: &HeaderMap) -> Result<Judged, Problem> {
    let Some(token) = bearer(headers) else {
        return Err(unauthorized("send the key as `Authorization: Bearer tally_…`"));
    };
    if is_this_machine(gate, way, headers) {
        return Ok(Caller::local().into());
    }
    if !token.starts_with(KEY_PREFIX) {
        return signed_in(gate, token, headers).await;
    }
    let keys = gate.keys().ok_or_else(|| starting(gate))?;
    let caller = keys.authenticate(token);
    caller.map(Judged::from).ok_or_else(|| unauthorized("the key is unknown or was revoked"))
}

/// A member, by its token, which ends when its member's tokens are ended or the member is closed.
async fn signed_in(gate: &Readiness, token: &str, headers: &HeaderMap) -> Result<Judged, Problem> {
    let tally = gate.loaded().ok_or_else(|| starting(gate))?;
    let said = tally.members.tokens.read(token, tally.now()).ok_or_else(signed_out)?;
    match tally.members.known(&tally, said.member).await {
        Ok(member) if member.tokens_from == said.tokens_from && member.closed_at.is_none() => {
            if headers.contains_key("tally-acting-player") {
                return Err(Problem::new(403, "forbidden", "a member acts for itself alone"));
            }
            Ok(Judged { caller: Caller::member(said.member), tokens_from: said.tokens_from })
        }
        Ok(_) | Err(Failure::Refused(_)) => Err(signed_out()),
        Err(failure) => Err(problem::of_failure(&failure)),
    }
}

/// 401 for a token that is not good.
pub(super) fn signed_out() -> Problem {
    unauthorized("the token is not one of ours, or has ended: sign in again")
}

fn anonymous(gate: &Readiness, way: Way) -> Result<Caller, Problem> {
    let keys = gate.keys().ok_or_else(|| starting(gate))?;
    if !keys.protected_mode() {
        return Err(unauthorized("a key is needed: `Authorization: Bearer tally_…`"));
    }
    if way == Way::Direct {
        return Ok(Caller::local());
    }
    Err(unauthorized(
        "protected mode: without a key only this machine itself may ask, over a listener of the loopback interface and \
         not through a proxy; make a key there with `tally keys create --role admin`",
    ))
}

/// The name under which a browser was sent here.
fn check_host(gate: &Readiness, headers: &HeaderMap) -> Result<(), Problem> {
    let host = host(headers);
    if our_host(gate, host) {
        return Ok(());
    }
    let detail = format!(
        "`{host}` is not a name of this server: use an IP address, or add the name to `http.hosts`, or send a key"
    );
    Err(Problem::new(403, "host_refused", detail))
}

/// The page that sent a browser here.
fn check_origin(gate: &Readiness, headers: &HeaderMap, right: Permission) -> Result<(), Problem> {
    let Some(origin) = headers.get(ORIGIN) else { return Ok(()) };
    let origin = origin.to_str().unwrap_or_default();
    let ours = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    let reads = matches!(right, Permission::Read | Permission::Observe)
        && gate.limits.cors_origins.iter().any(|known| known == origin);
    if reads || ours.is_some_and(|ours| ours.eq_ignore_ascii_case(host(headers))) {
        return Ok(());
    }
    Err(Problem::new(403, "origin_refused", "a page of another origin may not use this server without a key"))
}

fn host(headers: &HeaderMap) -> &str {
    headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default()
}

fn our_host(gate: &Readiness, host: &str) -> bool {
    let Some(name) = host::name(host) else { return false };
    host::is_address(name)
        || name.eq_ignore_ascii_case("localhost")
        || name.to_ascii_lowercase().ends_with(".localhost")
        || gate.limits.hosts.iter().any(|known| known.eq_ignore_ascii_case(name))
}

fn unauthorized(detail: &str) -> Problem {
    Problem::new(401, "unauthorized", detail).header("www-authenticate", "Bearer realm=\"tally\"")
}

fn starting(gate: &Readiness) -> Problem {
    match gate.not_loaded() {
        lost @ NotReady::Lost(_) => problem::of_not_ready(&lost),
        _ => Problem::new(503, "loading", "the service is starting").retry_after(1),
    }
}

/// Compares without telling by its time how much was right.
fn same(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len() && left.iter().zip(right).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}
