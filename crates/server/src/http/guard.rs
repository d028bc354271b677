//! Authenticates callers and checks permissions.
//!
//! A credential is always checked: a bad one is refused, and never treated as none. Without a credential only this machine is
//! served, and only in protected mode. Such a request must not come through a proxy or from a page of another site. So `Host`
//! must be a name of this server (against DNS rebinding), and `Origin` must match it. Routes with [`Permission::Open`] need no
//! credential, and `/metrics` needs none if `metrics.open` is set. Not here: health, documentation and the console, which
//! `dispatch` serves to all callers.

use super::call::bad_parameter;
use super::problem;
use super::routes::{METRICS_PATH, Route};
use crate::readiness::{LOCAL_PREFIX, NotReady, Readiness};
use crate::trust::Trust;
use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HOST, HeaderName, ORIGIN};
use hyper::http::request::Parts;
use hyper::{Request, Version};
use tally_rules::grant::Rights;
use tally_rules::role::Permission;
use tally_rules::scope::{Scope, Scopes};
use tally_rules::{Actor, Micros};
use tally_service::signed_requests::Behalf;
use tally_service::{Caller, CallerKind, Failure, keys};
use tally_wire::{Problem, host};

/// How much of an origin a message shows.
const ORIGIN_CHARS_MAX: usize = 128;

impl Trust {
    /// The trust in one request: that of its connection, or less if the request shows signs of a proxy.
    pub(super) fn of_request(self, parts: &Parts) -> Self {
        // nginx with only `proxy_pass` adds no header. It speaks HTTP/1.0 before 1.29.7, and leaves no sign since then.
        let proxied = parts.version < Version::HTTP_11 || parts.headers.keys().any(is_proxy_header);
        if self == Self::Direct && proxied { Self::Local } else { self }
    }
}

/// Whether proxies add this header. One such header is enough, whatever its value.
fn is_proxy_header(name: &HeaderName) -> bool {
    const EXACT: [&str; 5] = ["forwarded", "via", "cdn-loop", "proxy-connection", "x-forwarded"];
    const STARTS: [&str; 6] = ["cf-", "cloudfront-", "x-azure-", "x-envoy-", "x-forwarded-", "x-original-"];
    let name = name.as_str();
    EXACT.contains(&name) || name.ends_with("-ip") || STARTS.iter().any(|start| name.starts_with(start))
}

/// Refuses a request that names two hosts: a proxy before this server may have checked the other one.
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

#[derive(Clone)]
pub(super) struct Authenticated {
    pub(super) caller: Caller,
    /// The instant from which the tokens of a member are valid.
    pub(super) tokens_from: Micros,
}

impl From<Caller> for Authenticated {
    fn from(caller: Caller) -> Self {
        Self { caller, tokens_from: Micros(0) }
    }
}

/// Authenticates the caller of a request and checks its permission.
pub(super) async fn authenticate(
    readiness: &Readiness,
    trust: Trust,
    headers: &HeaderMap,
    route: &Route,
) -> Result<Authenticated, Problem> {
    let (permission, metrics) = (route.permission, route.path == METRICS_PATH);
    let authenticated = if trust == Trust::Server(Behalf::CommandLine) {
        Caller::command_line().into()
    } else if headers.contains_key(AUTHORIZATION) {
        authenticate_credential(readiness, trust, headers).await?
    } else if metrics && readiness.limits.metrics_open {
        Caller::local().into()
    } else {
        // A server that forwards a request has checked it.
        if !matches!(trust, Trust::Server(_)) {
            // A scraper of metrics may use a host name that is not in `http.hosts`.
            if !metrics {
                check_host(readiness, headers)?;
            }
            check_origin(readiness, headers, permission)?;
        }
        if permission == Permission::Open {
            Caller::anonymous().into()
        } else {
            authenticate_local(readiness, trust)?.into()
        }
    };
    check(&authenticated.caller, permission).map_err(|wrong| name_rights(wrong, &authenticated.caller))?;
    Ok(authenticated)
}

/// Refuses a caller without a permission.
pub(super) fn check(caller: &Caller, permission: Permission) -> Result<(), Problem> {
    if caller.may(permission) {
        return Ok(());
    }
    let needed = match permission.scope() {
        Some(scope) if Scopes::SERVER.contains(scope) => {
            format!("this needs the scope `{scope}`, which the roles `server` and `admin` have")
        }
        Some(scope) => format!("this needs the scope `{scope}`, which the role `admin` has"),
        None if permission == Permission::Own => "this needs the token of a member".into(),
        None if permission == Permission::Observe => "this needs an API key".into(),
        None => "this needs a key of role `admin`".into(),
    };
    Err(denied(&needed))
}

/// Says in a refusal what its caller has instead.
pub(super) fn name_rights(mut problem: Problem, caller: &Caller) -> Problem {
    let has = match caller.kind {
        _ if problem.code != "forbidden" || matches!(caller.actor, Actor::Local | Actor::CommandLine) => None,
        CallerKind::Key(Rights::Role(role)) => Some(format!("this key has the role `{role}`")),
        CallerKind::Key(rights) => Some(format!("this key has the scopes `{rights}`")),
        CallerKind::Member(_) => Some("this is the token of a member".into()),
        CallerKind::Anonymous => None,
    };
    problem.detail.extend(has.map(|has| format!("; {has}")));
    problem
}

/// Refuses a request that makes money which no cap counts, if its caller may not: prizes that are set or paid again, and the
/// balances of an import.
pub(super) fn check_uncounted(caller: &Caller, makes_money: bool) -> Result<(), Problem> {
    let scope = Scope::MoneyMint;
    if !makes_money {
        return Ok(());
    }
    if !caller.may(Permission::Scope(scope)) {
        return Err(denied(&format!("prizes and balances need the scope `{scope}`")));
    }
    if !caller.mint_caps.is_empty() {
        return Err(denied("a key with a cap makes money by deposits alone"));
    }
    Ok(())
}

fn denied(why: &str) -> Problem {
    Problem::new(403, "forbidden", format!("permission denied: {why}"))
}

/// The bearer token of a request; `None` if it has none, or several credentials.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let value = all.next().and_then(|value| value.to_str().ok());
    let token = value.and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
    });
    token.filter(|_| all.next().is_none())
}

/// The id of the key that a request claims to have, see [`keys::claimed_id`].
pub(super) fn claimed_key(headers: &HeaderMap) -> Option<&str> {
    bearer(headers).and_then(keys::claimed_id)
}

/// Whether the token of an authenticated member has not expired. Does not read the store.
pub(super) fn token_is_valid(readiness: &Readiness, headers: &HeaderMap) -> bool {
    let tally = readiness.loaded();
    tally
        .zip(bearer(headers))
        .is_some_and(|(tally, token)| tally.members.tokens.read(token, tally.now()).is_some())
}

/// Whether the caller is a subcommand on this machine: it has the token of the data directory.
pub(super) fn is_this_machine(readiness: &Readiness, trust: Trust, headers: &HeaderMap) -> bool {
    let local = bearer(headers).and_then(|token| token.strip_prefix(LOCAL_PREFIX));
    let is_ours = |local: &str| constant_time_eq(local.as_bytes(), readiness.local_token.as_bytes());
    matches!(trust, Trust::Local | Trust::Direct) && local.is_some_and(is_ours)
}

/// Authenticates the caller by its credential: the token of this machine, a member's token, or an API key.
async fn authenticate_credential(
    readiness: &Readiness,
    trust: Trust,
    headers: &HeaderMap,
) -> Result<Authenticated, Problem> {
    let Some(token) = bearer(headers) else {
        return Err(unauthorized("send the key as `Authorization: Bearer tally_…`"));
    };
    if is_this_machine(readiness, trust, headers) {
        return Ok(Caller::command_line().into());
    }
    // Any other credential counts as a member's token.
    if !token.starts_with(keys::PREFIX) {
        return authenticate_member(readiness, token, headers).await;
    }
    let keys = readiness.keys().ok_or_else(|| loading(readiness))?;
    let caller = keys.authenticate(token);
    caller.map(Authenticated::from).ok_or_else(|| unauthorized("the key is unknown or was revoked"))
}

/// Authenticates a member by its token. Signing the member out or closing it ends the token.
async fn authenticate_member(
    readiness: &Readiness,
    token: &str,
    headers: &HeaderMap,
) -> Result<Authenticated, Problem> {
    let tally = readiness.loaded().ok_or_else(|| loading(readiness))?;
    let subject = tally.members.tokens.read(token, tally.now()).ok_or_else(invalid_token)?;
    match tally.members.known(&tally, subject.member).await {
        Ok(member) if member.tokens_from == subject.tokens_from && member.closed_at.is_none() => {
            if headers.contains_key("tally-acting-player") {
                return Err(Problem::new(
                    403,
                    "forbidden",
                    "permission denied: a member acts for itself alone; leave `Tally-Acting-Player` out",
                ));
            }
            Ok(Authenticated { caller: Caller::member(subject.member), tokens_from: subject.tokens_from })
        }
        Ok(_) | Err(Failure::Rejected(_)) => Err(invalid_token()),
        Err(failure) => Err(problem::of_failure(&failure)),
    }
}

/// 401 for an invalid token.
pub(super) fn invalid_token() -> Problem {
    unauthorized(
        "neither an API key (`tally_…`) nor a valid token of a member; sign in again for a new token",
    )
}

/// Accepts a caller without a credential, as this machine in protected mode.
fn authenticate_local(readiness: &Readiness, trust: Trust) -> Result<Caller, Problem> {
    let keys = readiness.keys().ok_or_else(|| loading(readiness))?;
    if !keys.protected_mode() {
        return Err(unauthorized(
            "this server needs an API key: send it as `Authorization: Bearer tally_…`; `tally keys create` makes one on the machine \
             of the server",
        ));
    }
    if matches!(trust, Trust::Direct | Trust::Server(Behalf::Local)) {
        return Ok(Caller::local());
    }
    Err(unauthorized(
        "protected mode: no API key exists, and this request needs one; make it on the machine of the server with \
         `tally keys create --role admin`; without a key, only Unix sockets are served, and the loopback interface with \
         `--demo` or `keys.required = false`, not through a proxy",
    ))
}

/// Checks the host name of a request without a credential. After DNS rebinding a browser sends a foreign one.
fn check_host(readiness: &Readiness, headers: &HeaderMap) -> Result<(), Problem> {
    let host = host(headers);
    if is_own_host(readiness, host) {
        return Ok(());
    }
    let detail = format!(
        "`{host}` is not a name of this server: use an IP address, or add the name to `http.hosts`, or send a key"
    );
    Err(Problem::new(403, "host_refused", detail))
}

/// Checks the page that made a browser send the request: a page of this server, or for reads one of `http.cors_origins`.
fn check_origin(readiness: &Readiness, headers: &HeaderMap, permission: Permission) -> Result<(), Problem> {
    let Some(origin) = headers.get(ORIGIN) else { return Ok(()) };
    let origin = origin.to_str().unwrap_or_default();
    let ours = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    let reads = matches!(permission, Permission::Read | Permission::Observe)
        && readiness.limits.cors_origins.iter().any(|known| known == origin);
    if reads || ours.is_some_and(|ours| ours.eq_ignore_ascii_case(host(headers))) {
        return Ok(());
    }
    let shown: String = origin.chars().take(ORIGIN_CHARS_MAX).collect();
    let detail = format!(
        "a page of `{shown}` may not do this without a key; add its origin to `http.cors_origins` to let it read"
    );
    Err(Problem::new(403, "origin_refused", detail))
}

fn host(headers: &HeaderMap) -> &str {
    headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default()
}

fn is_own_host(readiness: &Readiness, host: &str) -> bool {
    let Some(name) = host::name(host) else { return false };
    host::is_address(name)
        || name.eq_ignore_ascii_case("localhost")
        || name.to_ascii_lowercase().ends_with(".localhost")
        || readiness.limits.hosts.iter().any(|known| known.eq_ignore_ascii_case(name))
}

pub(super) fn unauthorized(detail: &str) -> Problem {
    Problem::new(401, "unauthorized", detail).header("www-authenticate", "Bearer realm=\"tally\"")
}

/// 503 while the server loads or reloads its store.
pub(super) fn loading(readiness: &Readiness) -> Problem {
    match readiness.not_loaded() {
        lost @ NotReady::Lost(_) => problem::of_not_ready(&lost),
        _ => Problem::new(503, "loading", "the server is starting; see /readyz").retry_after(1),
    }
}

fn constant_time_eq(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len() && left.iter().zip(right).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::HttpLimits;
    use hyper::header::HeaderValue;

    #[test]
    fn the_token_of_this_machine_is_good_on_this_machine_only() {
        let readiness = Readiness::of_test(HttpLimits::default(), "0123");
        let sent = |token: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, HeaderValue::from_static(token));
            [Trust::Direct, Trust::Local, Trust::Foreign, Trust::Server(Behalf::Client)]
                .map(|trust| is_this_machine(&readiness, trust, &headers))
        };
        assert_eq!(sent("Bearer tally_local_0123"), [true, true, false, false]);
        for other in ["Bearer tally_local_0124", "Bearer tally_local_012", "Bearer 0123", "tally_local_0123"]
        {
            assert_eq!(sent(other), [false; 4], "{other}");
        }
    }
}
