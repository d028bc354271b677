//! From a request to its response: find the route, authenticate the caller, run the operation, count and log.

use super::as_of::{self, Reading, State};
use super::body::Unread;
use super::call::{Call, Peer};
use super::follow::{self, CHANGES_PATH};
use super::forward::commands::{self, COMMANDS_PATH};
use super::guard::Authenticated;
use super::response::{self, Response};
use super::routes::{HEALTH_PATHS, OLDER_PATHS, OPEN_PATHS, ROUTES, Route, RunsOn, Serves};
use super::{audit, console, forward, guard, guide, not_found, problem, service};
use crate::listener::PeerAddress;
use crate::metrics::RouteMetrics;
use crate::readiness::{Leader, Readiness};
use crate::slow_requests::{SlowRequest, UNMATCHED};
use crate::traces::HttpSample;
use crate::trust::Trust;
use hyper::body::Incoming;
use hyper::header::{CACHE_CONTROL, EXPECT, HeaderName, HeaderValue, ORIGIN, X_CONTENT_TYPE_OPTIONS};
use hyper::http::request::Parts;
use hyper::{Method, Request};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};
use tally_rules::role::Permission;
use tally_service::stages::{self, Stages};
use tally_wire::Problem;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const REQUEST_ID_BYTES_MAX: usize = 64;
/// The code of a request that is refused before anything is done, because this server has not loaded.
const LOADING: &str = "loading";

/// All routes, compiled for matching.
pub(super) struct Dispatch {
    readiness: Arc<Readiness>,
    paths: matchit::Router<Vec<(&'static Route, RouteMetrics)>>,
    unmatched: RouteMetrics,
    serves: Serves,
    requests: AtomicU64,
    /// Random, so that request ids of two runs differ.
    run: u32,
}

impl Dispatch {
    pub(super) fn new(readiness: Arc<Readiness>, serves: Serves) -> Self {
        let mut paths = matchit::Router::new();
        let mut by_path: Vec<(&'static str, Vec<(&'static Route, RouteMetrics)>)> = Vec::new();
        for route in ROUTES.iter().filter(|route| serves.has(route)) {
            let older = OLDER_PATHS.iter().find(|(_, path)| *path == route.path).map(|(older, _)| *older);
            for served in [route.path].into_iter().chain(older) {
                let entry = (route, readiness.metrics.route(route.path, route.method));
                match by_path.iter_mut().find(|(path, _)| *path == served) {
                    Some((_, routes)) => routes.push(entry),
                    None => by_path.push((served, vec![entry])),
                }
            }
        }
        for (path, routes) in by_path {
            paths.insert(path, routes).expect("the list of routes has no contradictions");
        }
        let unmatched = readiness.metrics.route(UNMATCHED, "any");
        let run = getrandom::u32().unwrap_or(0);
        Self { readiness, paths, unmatched, serves, requests: AtomicU64::new(0), run }
    }

    /// Handles one request.
    pub(super) async fn respond(&self, peer: Peer, request: Request<Incoming>) -> Response {
        let started = Instant::now();
        let id = self.request_id(&request);
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let origin = request.headers().get(ORIGIN).cloned();
        let from = (peer.address.ip(), peer.scheme);
        let sampled = HttpSample::begin(self.readiness.traces.as_ref(), &request, from, started, &id);
        let (parts, body) = request.into_parts();
        let (unread, linger) = (Unread::new(body), peer.linger.clone());
        let expect = parts.headers.contains_key(EXPECT);
        let request = Request::from_parts(parts, unread.clone());
        let mut stages = Stages::default();
        let measured = (sampled.as_ref(), &mut stages);
        let (mut response, metrics) = self.run(peer, request, (&path, &id), measured).await;
        unread.settle(expect, &linger, &mut response).await;
        let status = response.status().as_u16();
        if let Some(sampled) = sampled {
            sampled.answered(status);
        }
        let took = started.elapsed();
        metrics.count(status, took);
        self.note_slow(metrics, status, (started, took), stages);
        if status == 500 {
            tracing::error!(request_id = %id, %method, path, status, "request failed");
        } else {
            tracing::debug!(request_id = %id, %method, path, status, took = ?started.elapsed(), "request");
        }
        response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if let Ok(id) = HeaderValue::from_str(&id) {
            response.headers_mut().insert(REQUEST_ID, id);
        }
        if matches!(method, Method::GET | Method::HEAD | Method::OPTIONS) {
            self.allow_origin(origin, &mut response);
        }
        response
    }

    async fn run(
        &self,
        peer: Peer,
        request: Request<Unread>,
        (path, id): (&str, &str),
        (sampled, stages): (Option<&HttpSample>, &mut Stages),
    ) -> (Response, &RouteMetrics) {
        // Health checks have slots of their own when all others are taken.
        if peer.reserved
            && !HEALTH_PATHS.contains(&path)
            && !guard::is_this_machine(&self.readiness, peer.trust, request.headers())
        {
            let full = Problem::new(
                503,
                "too_many_connections",
                "all connections are in use (setting `http.connections_max`); nothing was done, try again",
            );
            return (problem::render(&full.retry_after(1), path, id), &self.unmatched);
        }
        if let Err(wrong) = guard::check_one_host(&request) {
            return (problem::render(&wrong, path, id), &self.unmatched);
        }
        let is_open = OPEN_PATHS.contains(&path) || console::has(path) || guide::has(path);
        if HEALTH_PATHS.contains(&path) || is_open && self.serves == Serves::All {
            let head = (request.method(), request.headers());
            return (service::open(&self.readiness, head, path, id), &self.unmatched);
        }
        if self.serves == Serves::All && [CHANGES_PATH, COMMANDS_PATH].contains(&path) {
            let answer = if path == CHANGES_PATH {
                follow::changes(&self.readiness, request).await
            } else {
                commands::answer(&self.readiness, request).await
            };
            return (answer.unwrap_or_else(|wrong| problem::render(&wrong, path, id)), &self.unmatched);
        }
        let Ok(found) = self.paths.at(path) else {
            let missing =
                Problem::new(404, "not_found", "no operation has this path: `/openapi.json` lists all paths");
            return (problem::render(&missing, path, id), &self.unmatched);
        };
        let method = if request.method() == Method::HEAD { &Method::GET } else { request.method() };
        let chosen = found.value.iter().find(|(route, _)| route.method == method.as_str());
        let Some((route, metrics)) = chosen else {
            let allow = found.value.iter().map(|(route, _)| route.method).collect::<Vec<_>>().join(", ");
            if request.method() == Method::OPTIONS && self.is_known_origin(request.headers().get(ORIGIN)) {
                return (response::none(), &self.unmatched);
            }
            let wrong = Problem::new(405, "method_not_allowed", format!("this path has: {allow}"));
            return (problem::render(&wrong.header("allow", allow), path, id), &self.unmatched);
        };
        let params = found.params.iter().map(|(name, value)| (static_name(name), value.to_owned())).collect();
        if let Some(sampled) = sampled {
            sampled.route(route.path);
        }
        let operated = self.operate((peer, request), (route, path, id), params, (sampled, stages)).await;
        let response = operated.unwrap_or_else(|wrong| {
            problem::render(&not_found::name_path(wrong, |name| found.params.get(name)), path, id)
        });
        // A change that was made keeps its response.
        let refusable = route.permission == Permission::Read
            || route.method == "GET"
            || response.status().is_client_error();
        let response = response::hold(response, &self.readiness.responses, refusable);
        let mut response = response.unwrap_or_else(|full| problem::render(&full, path, id));
        // Caches must not store keys, tokens, money and settings. They may store what every reader sees.
        if route.permission != Permission::Read {
            response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
        (response, metrics)
    }

    async fn operate(
        &self,
        (mut peer, request): (Peer, Request<Unread>),
        (route, path, id): (&'static Route, &str, &str),
        params: Vec<(&'static str, String)>,
        (sampled, stages): (Option<&HttpSample>, &mut Stages),
    ) -> Result<Response, Problem> {
        let (parts, mut body) = request.into_parts();
        let (authenticated, state) =
            match self.admit((&mut peer, &mut body), &parts, (route, path, id)).await? {
                Admitted::Here(authenticated, state) => (authenticated, state),
                Admitted::Answered(answer) => return Ok(answer),
            };
        let from = (peer.address.ip(), id);
        let caller = authenticated.caller.clone();
        let mut reading = if route.runs_on == RunsOn::Here { Reading::begin(&state) } else { None };
        let call = |(authenticated, peer, parts, body, params)| {
            Call::new(Arc::clone(&self.readiness), (authenticated, peer), route, parts, body, params)
        };
        let repeats = reading.as_mut().filter(|reading| reading.may_repeat() && route.method == "GET");
        let (mut operated, spent) = match repeats {
            None => run(route, call((authenticated, peer, parts, body, params)), sampled).await,
            Some(reading) => loop {
                let (authenticated, peer) = (authenticated.clone(), peer.clone());
                let (parts, body, params) = (parts.clone(), body.clone(), params.clone());
                let operated = run(route, call((authenticated, peer, parts, body, params)), sampled).await;
                if !reading.again() {
                    break operated;
                }
            },
        };
        *stages = spent;
        if let Ok(response) = &mut operated
            && route.runs_on != RunsOn::Itself
        {
            state.tell(reading, response.headers_mut());
        }
        let operated = operated.map_err(|wrong| guard::name_rights(wrong, &caller));
        match &operated {
            Ok(response) => audit::done(&self.readiness, from, (route, path), &caller, response),
            Err(wrong) if audit::is_event(wrong) => {
                audit::refused(&self.readiness, from, (route.method, path), &audit::actor(&caller), wrong);
            }
            Err(_) => {}
        }
        operated
    }

    /// Authenticates the caller of a request, and sends it to the leader if that is to run it. While this server takes over from the
    /// leader, a change waits.
    async fn admit(
        &self,
        (peer, body): (&mut Peer, &mut Unread),
        parts: &Parts,
        (route, path, id): (&'static Route, &str, &str),
    ) -> Result<Admitted, Problem> {
        let is_for_leader = route.runs_on == RunsOn::Leader;
        loop {
            let has_time = is_for_leader && forward::wait_for_leader(&self.readiness).await;
            // It may begin to take over at any moment until then.
            let is_late = || has_time && self.readiness.takes_over();
            let authenticated = match self.authenticate((peer, body), parts, route).await {
                Err(wrong) if wrong.code == LOADING && is_late() => continue,
                Err(wrong) => {
                    let (from, actor) =
                        ((peer.address.ip(), id), audit::claimed(&parts.headers, route.permission));
                    audit::refused(&self.readiness, from, (route.method, path), &actor, &wrong);
                    return Err(wrong);
                }
                Ok(authenticated) => authenticated,
            };
            let state = State::of(&self.readiness);
            let is_here = match route.runs_on {
                RunsOn::Itself => true,
                RunsOn::Here => as_of::wait(&state, &parts.headers).await?,
                RunsOn::Leader => false,
            };
            if !is_here && matches!(self.readiness.leader(), Leader::At(_)) {
                let from = (&authenticated.caller, &*peer, route.permission);
                let sent = forward::forward(&self.readiness, (parts, body), from, id);
                let sent = if is_for_leader { sent.await } else { as_of::in_time(&state, sent).await };
                match sent {
                    Ok(Some(answer)) => return Ok(Admitted::Answered(answer)),
                    Ok(None) => {}
                    Err(wrong) if wrong.code == LOADING && is_late() => continue,
                    Err(wrong) => return Err(wrong),
                }
            }
            if !is_late() {
                // This server may have begun to lead meanwhile.
                return Ok(Admitted::Here(authenticated, State::of(&self.readiness)));
            }
        }
    }

    /// Authenticates the caller: by the request, or by what another server says that has signed it.
    async fn authenticate(
        &self,
        (peer, body): (&mut Peer, &mut Unread),
        parts: &Parts,
        route: &Route,
    ) -> Result<Authenticated, Problem> {
        match forward::signed(&self.readiness, parts)? {
            None => peer.trust = peer.trust.of_request(parts),
            Some(signed) => {
                peer.trust = Trust::Server(signed.behalf);
                peer.address = PeerAddress::Tcp(SocketAddr::new(signed.client, 0));
                body.expect(signed);
            }
        }
        guard::authenticate(&self.readiness, peer.trust, &parts.headers, route).await
    }

    /// Records a request if it is among the slowest.
    fn note_slow(
        &self,
        metrics: &RouteMetrics,
        status: u16,
        (started, took): (Instant, Duration),
        stages: Stages,
    ) {
        if !metrics.shows_slow {
            return;
        }
        let now = (started + took).saturating_duration_since(self.readiness.started);
        self.readiness.slow_requests.note(now, took, || SlowRequest {
            at: SystemTime::now(),
            method: metrics.method,
            route: metrics.route,
            status,
            took,
            stages,
            beside: self.readiness.loaded().map_or_else(Vec::new, |tally| tally.store.worked_since(started)),
        });
    }

    /// The request id of the caller if it is valid, else a new one.
    fn request_id(&self, request: &Request<Incoming>) -> String {
        let given = request.headers().get(REQUEST_ID).and_then(|id| id.to_str().ok());
        let sensible = |id: &&str| {
            (1..=REQUEST_ID_BYTES_MAX).contains(&id.len())
                && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        };
        given.filter(sensible).map_or_else(
            || format!("{:08x}-{:x}", self.run, self.requests.fetch_add(1, Ordering::Relaxed)),
            str::to_owned,
        )
    }

    fn is_known_origin(&self, origin: Option<&HeaderValue>) -> bool {
        let origin = origin.and_then(|origin| origin.to_str().ok());
        origin.is_some_and(|origin| self.readiness.limits.cors_origins.iter().any(|known| known == origin))
    }

    /// Allows pages of configured origins to read the response.
    fn allow_origin(&self, origin: Option<HeaderValue>, response: &mut Response) {
        if !self.is_known_origin(origin.as_ref()) {
            return;
        }
        let Some(origin) = origin else { return };
        let headers = response.headers_mut();
        headers.insert("access-control-allow-origin", origin);
        headers.insert("access-control-allow-methods", HeaderValue::from_static("GET"));
        headers.insert(
            "access-control-allow-headers",
            HeaderValue::from_static("authorization, tally-int64, last-event-id"),
        );
        headers.insert("vary", HeaderValue::from_static("origin"));
    }
}

/// What becomes of a request.
enum Admitted {
    /// This server runs it.
    Here(Authenticated, State),
    /// The leader has answered it.
    Answered(Response),
}

/// Runs an operation, and measures its stages.
async fn run(route: &Route, call: Call, sampled: Option<&HttpSample>) -> (Result<Response, Problem>, Stages) {
    let operated = (route.run)(call);
    match sampled {
        None => stages::measure(operated).await,
        Some(sampled) => stages::measure(tally_service::traces::with_sink(sampled.sink(), operated)).await,
    }
}

/// Maps a parameter name to the static name from the list of routes.
fn static_name(name: &str) -> &'static str {
    const NAMES: [&str; 11] = [
        "board",
        "player",
        "digest",
        "key",
        "member",
        "hold",
        "transaction",
        "contest",
        "series",
        "webhook",
        "delivery",
    ];
    NAMES.into_iter().find(|known| *known == name).expect("every parameter of a route is listed")
}
