//! Health, readiness, metrics and status.

use super::call::Call;
use super::response::{self, Response};
use super::{console, guide, openapi, problem};
use crate::readiness::{Finding, Parts, Readiness};
use crate::slow_requests::{SlowRequest, micros, millis};
use hyper::{HeaderMap, Method, StatusCode};
use serde_json::{Map, Value, json};
use tally_rules::grant::Rights;
use tally_rules::ledger::Currency;
use tally_rules::role::Permission;
use tally_rules::scope::Scope;
use tally_service::activity::DayCounts;
use tally_service::contests::counts::{ContestCounts, Payments};
use tally_service::{CallerKind, Slow};
use tally_service::{RedisState, Stats, Tally};
use tally_wire::Problem;

/// The content type that Prometheus expects.
const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// `/healthz`, `/readyz`, the API description, the console's files and the guide: without a key or a host check, in every state.
pub(super) fn open(
    readiness: &Readiness,
    (method, headers): (&Method, &HeaderMap),
    path: &str,
    id: &str,
) -> Response {
    if !matches!(*method, Method::GET | Method::HEAD) {
        let wrong = Problem::new(405, "method_not_allowed", "this path has: GET").header("allow", "GET");
        return problem::render(&wrong, path, id);
    }
    let file = openapi::file(path).or_else(|| console::file(path, headers));
    if let Some(file) = file.or_else(|| guide::file(path, headers)) {
        return file;
    }
    if path == "/healthz" {
        return response::ok(&json!({"status": "ok"}));
    }
    let ready = readiness.ready_for_more();
    let parts = Parts::of(ready.as_deref().ok());
    let mut body = match &ready {
        Ok(_) => json!({"phase": "ready", "done": 0, "total": 0, "eta_s": 0}),
        Err(not_ready) => not_ready.members(),
    };
    body["parts"] =
        json!({"store": parts.store, "ranking": parts.ranking, "applications": parts.applications});
    if let Some(following) = ready.as_ref().ok().and_then(|tally| tally.following.as_ref()) {
        body["follows"] = json!({
            "leader": *following.leader(), "position": following.position().to_string(),
            "age_s": following.age().as_secs_f64(),
        });
    }
    let is_ready = match path {
        "/readyz/ranking" => parts.ranking,
        "/readyz/applications" => parts.applications,
        // A server without ranks still takes scores and moves money, so a balancer must not remove it.
        _ => parts.store,
    };
    let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    response::json(status, &body)
}

/// `GET /metrics`
pub(super) async fn metrics(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    Ok(response::with(StatusCode::OK, METRICS_TYPE, call.readiness.metrics.render(&call.readiness)))
}

/// `GET /v1/status`
pub(super) async fn status(mut call: Call) -> Result<Response, Problem> {
    call.finish_query()?;
    let tally = call.tally()?;
    let now = tally.now();
    let board = |board: &std::sync::Arc<tally_service::boards::Board>| json!({"board": board.id.as_str(), "members": board.members(now), "bytes": board.bytes()});
    let boards = tally.boards.list(None, tally_wire::query::LIMIT_MAX);
    let store: Value = tally
        .store
        .gauges()
        .into_iter()
        .map(|(name, value)| (name.to_owned(), json!(value)))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let mut status = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "uptime_s": call.readiness.started.elapsed().as_secs(),
        "store": {
            "kind": tally.store.name(), "gauges": store,
            "slow": tally.store.slow().iter().map(slow).collect::<Vec<_>>(),
        },
        "boards_total": tally.boards.len(),
        "boards": boards.iter().map(board).collect::<Vec<_>>(),
        "lanes": [lane("scores", tally.lanes(), &tally.lane_stats()), lane("ledger", 1, &tally.ledger_stats())],
    });
    let slow_requests = call.readiness.slow_requests.list(call.readiness.started.elapsed());
    status["slow_requests"] = slow_requests.iter().map(SlowRequest::shown).collect();
    let admin = call.caller.may(Permission::Administer);
    status["caller"] = caller(&call);
    let in_redis = tally.settings.applications.as_ref().map_or("store", |_| "redis");
    status["ranking"] = part(tally.settings.ranking.kind(), &tally.redis.ranking(), admin);
    status["applications"] = part(in_redis, &tally.redis.applications(), admin);
    status["clock"] = clock(&tally);
    status["lost_commits"] = lost_commits(&call.readiness);
    let rate = |(name, rate): (&str, tally_service::members::cache::Rate)| {
        let counts = json!({"entries": rate.entries, "hits": rate.hits, "misses": rate.misses});
        (name.to_owned(), counts)
    };
    let caches: serde_json::Map<_, _> = tally.members.cache.rates().into_iter().map(rate).collect();
    status["caches"] = caches.into();
    status["contests"] = contests(tally.contest_counts());
    let (today, yesterday) = tally.activity();
    let day = |counts: &DayCounts| day(counts, call.reads_money());
    status["activity"] = json!({"today": day(&today), "yesterday": yesterday.as_ref().map(day)});
    if admin {
        status["settings"] = call.readiness.settings();
        status["findings"] = call.readiness.findings().iter().map(finding).collect();
    }
    Ok(response::ok(&status))
}

/// What the caller may do, so that a page can leave out what would be refused.
fn caller(call: &Call) -> Value {
    let CallerKind::Key(rights) = call.caller.kind else { return Value::Null };
    let role = match rights {
        Rights::Role(role) => Some(role.as_str()),
        Rights::Scopes(_) => None,
    };
    let scopes: Vec<&str> = rights.scopes().iter().map(Scope::as_str).collect();
    json!({"role": role, "scopes": scopes})
}

/// Where a part of the service keeps its data, and whether it answers. Admins see why it does not, with the address.
fn part(kind: &str, state: &RedisState, admin: bool) -> Value {
    let mut part = json!({"kind": kind, "ready": state.failure.is_none()});
    if let Some(failure) = state.failure.as_ref().filter(|_| admin) {
        part["failure"] = failure.as_str().into();
    }
    part
}

/// The number of losses of commits while this server ran, and the last one.
fn lost_commits(readiness: &Readiness) -> Value {
    let last = readiness.lost().map(|lost| {
        json!({
            "database": lost.database, "after_version": lost.present.to_string(),
            "up_to_version": lost.newest.to_string(), "seconds": lost.seconds(), "by_others": lost.by_others,
        })
    });
    json!({"reloads": readiness.losses(), "last": last})
}

/// Whether the clock is trusted, and how far it may be wrong.
fn clock(tally: &Tally) -> Value {
    let (jump, seconds) = (tally.clock_jump(), |micros: i64| micros as f64 / 1e6);
    json!({
        "believed": jump.is_none(), "jump_s": seconds(jump.unwrap_or(0)),
        "newest_ahead_s": seconds(tally.newest_ahead()),
    })
}

fn finding(finding: &Finding) -> Value {
    json!({"level": finding.level(), "code": finding.code, "text": finding.text})
}

/// What this server has done on a day. Sums of money are for callers that may read money.
fn day(counts: &DayCounts, reads_money: bool) -> Value {
    let since = tally_wire::time::format(counts.since);
    let mut day = json!({"since": since, "scores": counts.scores, "transfers": counts.transfers});
    if reads_money {
        let sum = |(currency, sum): (&Currency, &u128)| json!({"currency": currency.as_str(), "amount": sum.to_string()});
        day["moved"] = counts.moved.iter().map(sum).collect();
    }
    day
}

fn slow(slow: &Slow) -> Value {
    json!({
        "at": tally_wire::time::format_clock(slow.at), "ms": millis(micros(slow.took)), "cause": slow.cause.as_str(),
        "cause_ms": millis(micros(slow.waited)), "beside": slow.beside,
    })
}

/// The queue and the counters of a lane.
fn lane(name: &str, side_by_side: usize, stats: &Stats) -> Value {
    json!({
        "lane": name, "side_by_side": side_by_side, "queued": stats.queued_requests, "in_flight": stats.in_flight,
        "requests": stats.requests, "batches": stats.batches, "largest_batch": stats.batch_rows_largest,
    })
}

/// The number of contests in each state, and what this server has done for them.
fn contests(counts: &ContestCounts) -> Value {
    let payments = |payments: Payments| {
        let unpaid = payments.unpaid.into_iter().map(|(why, count)| (why.as_str().to_owned(), json!(count)));
        let mut all: Map<_, _> = unpaid.collect();
        all.insert("paid".into(), json!(payments.paid));
        all
    };
    let entered =
        counts.entered().into_iter().map(|(state, count)| (state.as_str().to_owned(), json!(count)));
    let found = counts.state_counts();
    let states = found.as_ref().map(|found| {
        let states = found.states.iter();
        states.map(|(state, count)| (state.as_str().to_owned(), json!(count))).collect::<Map<_, _>>()
    });
    json!({
        "states": states, "due": found.map(|found| found.due), "turned": entered.collect::<Map<_, _>>(),
        "prizes": payments(counts.prizes()), "refunds": payments(counts.refunds()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::HttpLimits;
    use http_body_util::BodyExt;
    use tally_service::LostCommits;

    fn ready(readiness: &Readiness) -> (u16, Value) {
        let answer = open(readiness, (&Method::GET, &HeaderMap::new()), "/readyz", "r");
        let status = answer.status().as_u16();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let Ok(body) = runtime.block_on(answer.into_body().collect());
        (status, serde_json::from_slice(&body.to_bytes()).unwrap())
    }

    #[test]
    fn a_server_that_reads_everything_anew_after_lost_commits_is_not_ready_and_says_why() {
        let readiness = Readiness::of_test(HttpLimits::default(), "");
        let (status, body) = ready(&readiness);
        assert_eq!((status, &body["reason"]), (503, &Value::Null), "the first start: {body}");
        let lost = LostCommits { database: "d".into(), present: 1, newest: 2, by_others: false };
        readiness.close(Some(lost));
        let (status, body) = ready(&readiness);
        assert_eq!(
            (status, &body["phase"], &body["reason"]),
            (503, &json!("reloading"), &json!("lost_commits"))
        );
    }
}
