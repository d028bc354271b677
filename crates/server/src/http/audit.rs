//! Which HTTP requests and responses are security events, and which other ones are lines of the log: acts of administrators.
//!
//! Not here: where events go, and their limits (`security.rs`).

use super::guard;
use super::response::{self, Response};
use super::routes::Route;
use crate::readiness::Readiness;
use crate::security::SecurityEvent;
use hyper::HeaderMap;
use std::net::IpAddr;
use tally_rules::Actor;
use tally_rules::role::Permission;
use tally_rules::scope::Scope;
use tally_service::{Caller, CallerKind};
use tally_wire::Problem;

/// Details of the operation for its security event. It is an extension of the response and never sent.
#[derive(Clone)]
pub(super) struct Detail(pub(super) String);

/// Records a successful operation, if it is a security event or an act of an administrator.
pub(super) fn done(
    readiness: &Readiness,
    (address, request): (IpAddr, &str),
    (route, path): (&Route, &str),
    caller: &Caller,
    answer: &Response,
) {
    let name = match (route.method, route.path) {
        ("POST", "/v1/keys") => Some("key_created"),
        ("DELETE", "/v1/keys/{key}") => Some("key_revoked"),
        ("PATCH", "/v1/members/{member}") => Some("member_changed"),
        ("POST", "/v1/members/{member}/close") => Some("member_closed"),
        ("POST", "/v1/members/{member}/erase") => Some("member_erased"),
        ("GET", "/v1/members/{member}/export") => Some("member_exported"),
        ("POST", "/v1/members/{member}/sign-out") => Some("member_signed_out"),
        ("POST", "/v1/members/{member}/unlock-pin") => Some("pin_unlocked"),
        _ => None,
    };
    if name.is_none() && !is_act(route, caller) || answer.headers().contains_key(response::REPLAYED) {
        return;
    }
    let detail = answer.extensions().get::<Detail>().map_or("", |Detail(detail)| detail);
    let subject = format!("{} {path} {detail}", route.method);
    let (actor, subject) = (actor(caller), subject.trim_end());
    match name {
        Some(name) => {
            let event = SecurityEvent { name, actor: &actor, address, request, subject };
            readiness.security_event(&event, false);
        }
        None => {
            tracing::info!(target: "tally::acts", actor, %address, request_id = request, subject, "administrative act");
        }
    }
}

/// Whether a request is an act of an administrator, or of staff of a contest. A player's application is none.
fn is_act(route: &Route, caller: &Caller) -> bool {
    use Scope::{BoardsAdmin, ContestsManage, MembersWrite};
    let is_of_staff = match route.permission {
        Permission::Administer | Permission::Scope(BoardsAdmin | ContestsManage | MembersWrite) => true,
        Permission::Play => {
            !route.path.contains("/applications") || !matches!(caller.kind, CallerKind::Member(_))
        }
        _ => false,
    };
    is_of_staff && route.method != "GET" && !route.path.ends_with("/applications")
}

/// Whether a problem is a security event.
pub(super) fn is_event(problem: &Problem) -> bool {
    name_of(problem, "").is_some()
}

/// Records a refused request, if it is a security event. `actor` is the authenticated or the claimed caller.
pub(super) fn refused(
    readiness: &Readiness,
    (address, request): (IpAddr, &str),
    (method, path): (&str, &str),
    actor: &str,
    problem: &Problem,
) {
    let Some(name) = name_of(problem, path) else { return };
    // The client decides how long a path is.
    let subject: String = format!("{method} {path}").chars().take(200).collect();
    readiness.security_event(&SecurityEvent { name, actor, address, request, subject: &subject }, true);
}

fn name_of(problem: &Problem, path: &str) -> Option<&'static str> {
    match (problem.status, problem.code) {
        (401, "unauthorized") => Some("credential_refused"),
        // The payer is signed in. It sent money to many phone numbers that no member has.
        (429, "too_many_attempts") if path == "/transfer/phone-num" => Some("transfer_delayed"),
        (401, "invalid_credentials") | (429, "too_many_attempts") => Some("sign_in_failed"),
        (403, "host_refused") => Some("host_refused"),
        (403, "origin_refused") => Some("origin_refused"),
        (403, "invalid_pin") => Some("pin_refused"),
        (403, "forbidden") => Some("permission_denied"),
        (423, "pin_locked") => Some("pin_locked"),
        _ => None,
    }
}

/// The name of an authenticated caller.
pub(super) fn actor(caller: &Caller) -> String {
    match caller.kind {
        CallerKind::Anonymous => "none".into(),
        CallerKind::Key(_) if matches!(caller.actor, Actor::Local | Actor::CommandLine) => {
            "this machine".into()
        }
        CallerKind::Key(rights) => format!("key {} ({rights})", caller.scope),
        CallerKind::Member(id) => format!("member {}", id.0),
    }
}

/// The claim of a refused caller: the id of a key is no secret, anything else is left out.
pub(super) fn claimed(headers: &HeaderMap, permission: Permission) -> String {
    match guard::claimed_key(headers) {
        Some(id) => format!("claims key {id}"),
        None if headers.contains_key(hyper::header::AUTHORIZATION) => "claims a token".into(),
        None if permission == Permission::Open => "none".into(),
        None => "no credential".into(),
    }
}
