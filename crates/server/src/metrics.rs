//! What is counted, for Prometheus.
//!
//! Requests are counted per route into handles that are made once, so counting is a few atomic additions. What lanes,
//! boards and the store know of themselves is asked when somebody scrapes.

use crate::readiness::Readiness;
use crate::resp::counts::AllCounts;
use crate::security;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::fmt::Write;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tally_service::contests::counts::{COUNTED_MAX, Counts, DUE_MAX};
use tally_service::{Stats, Times};
use tally_traces::Counts as Spans;
use tally_wire::api::events;

/// Seconds: from a tenth of a millisecond to ten seconds.
const BUCKETS_S: [f64; 14] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 10.0];

/// Labels of a request.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Answered {
    route: &'static str,
    method: &'static str,
    class: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Route {
    route: &'static str,
    method: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Sent {
    event: &'static str,
}

/// The registry and its handles.
pub struct Metrics {
    registry: Registry,
    answered: Family<Answered, Counter>,
    seconds: Family<Route, Histogram, fn() -> Histogram>,
    /// Open HTTP connections.
    pub connections: Gauge,
    /// Open connections of the Redis protocol.
    pub resp_connections: Gauge,
    /// What was answered on them.
    pub(crate) resp_counts: AllCounts,
    /// Open streams of events.
    pub event_streams: Gauge,
    /// What was sent on them, by event.
    events_sent: Family<Sent, Counter>,
    security_events: Family<Sent, Counter>,
    /// Streams that were closed because nobody read them.
    pub event_streams_slow: Counter,
}

/// The handles of one route.
#[derive(Clone, Debug)]
pub struct RouteMetrics {
    classes: [Counter; 5],
    seconds: Histogram,
}

impl Metrics {
    /// Everything at zero.
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("tally");
        let answered = Family::<Answered, Counter>::default();
        let histogram: fn() -> Histogram = || Histogram::new(BUCKETS_S);
        let seconds = Family::new_with_constructor(histogram);
        let connections = Gauge::default();
        registry.register(
            "http_requests",
            "Requests answered, by route and class of status",
            answered.clone(),
        );
        registry.register(
            "http_request_seconds",
            "Time from a request's head to its answer",
            seconds.clone(),
        );
        registry.register("http_connections", "Open HTTP connections", connections.clone());
        let resp_connections = Gauge::default();
        registry.register(
            "resp_connections",
            "Open connections of the Redis protocol",
            resp_connections.clone(),
        );
        let event_streams = Gauge::default();
        registry.register("event_streams", "Open streams of events", event_streams.clone());
        let events_sent = Family::<Sent, Counter>::default();
        registry.register("events_sent", "Events sent, by event", events_sent.clone());
        // At zero from the start.
        for event in events::ALL {
            drop(events_sent.get_or_create(&Sent { event }));
        }
        let security_events = Family::<Sent, Counter>::default();
        registry.register("security_events", "Security events, by event", security_events.clone());
        for event in security::EVENTS {
            drop(security_events.get_or_create(&Sent { event }));
        }
        let event_streams_slow = Counter::default();
        let help = "Streams of events closed because their clients did not read";
        registry.register("event_streams_slow", help, event_streams_slow.clone());
        Self {
            registry,
            answered,
            seconds,
            connections,
            resp_connections,
            resp_counts: AllCounts::default(),
            event_streams,
            events_sent,
            security_events,
            event_streams_slow,
        }
    }

    /// The handles of a route.
    pub fn route(&self, route: &'static str, method: &'static str) -> RouteMetrics {
        let class = |class| self.answered.get_or_create(&Answered { route, method, class }).clone();
        RouteMetrics {
            classes: ["1xx", "2xx", "3xx", "4xx", "5xx"].map(class),
            seconds: self.seconds.get_or_create(&Route { route, method }).clone(),
        }
    }

    /// Events of that name that were sent.
    pub fn events_sent(&self, event: &'static str) -> Counter {
        self.events_sent.get_or_create(&Sent { event }).clone()
    }

    /// Security events of that name.
    pub(crate) fn security_events(&self, event: &'static str) -> Counter {
        self.security_events.get_or_create(&Sent { event }).clone()
    }

    /// The text that Prometheus reads.
    pub fn render(&self, gate: &Readiness) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("a string takes everything");
        let end = "# EOF\n";
        text.truncate(text.len() - if text.ends_with(end) { end.len() } else { 0 });
        render_service(&mut text, gate).expect("a string takes everything");
        text.push_str(end);
        text
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl RouteMetrics {
    /// Counts one answer.
    pub fn count(&self, status: u16, took: Duration) {
        let class = usize::from(status / 100).clamp(1, 5) - 1;
        self.classes[class].inc();
        self.seconds.observe(took.as_secs_f64());
    }
}

fn one(text: &mut String, name: &str, kind: &str, help: &str, value: f64) -> std::fmt::Result {
    let suffix = if kind == "counter" { "_total" } else { "" };
    writeln!(text, "# HELP tally_{name} {help}\n# TYPE tally_{name} {kind}\ntally_{name}{suffix} {value}")
}

/// Where a request's time goes between the door and its answer.
fn lane_seconds(text: &mut String, lanes: &[(&str, &[(&str, Times)])]) -> std::fmt::Result {
    let name = "tally_lane_seconds";
    writeln!(
        text,
        "# HELP {name} Time of requests in the queue, of batches in the store (read, commit) and in publishing"
    )?;
    writeln!(text, "# TYPE {name} histogram")?;
    let stages = lanes.iter().flat_map(|(lane, stages)| stages.iter().map(move |stage| (lane, stage)));
    for (lane, (stage, times)) in stages {
        times_of(text, name, &format!("lane=\"{lane}\",stage=\"{stage}\""), times)?;
    }
    Ok(())
}

/// One series of a histogram; `labels` are its own.
fn times_of(text: &mut String, name: &str, labels: &str, times: &Times) -> std::fmt::Result {
    let (comma, braced) =
        if labels.is_empty() { ("", String::new()) } else { (",", format!("{{{labels}}}")) };
    for (bound, count) in times.cumulative() {
        writeln!(text, "{name}_bucket{{{labels}{comma}le=\"{}\"}} {count}", bound.as_secs_f64())?;
    }
    writeln!(text, "{name}_bucket{{{labels}{comma}le=\"+Inf\"}} {}", times.count())?;
    writeln!(text, "{name}_sum{braced} {}", times.sum.as_secs_f64())?;
    writeln!(text, "{name}_count{braced} {}", times.count())
}

/// What the Redis door has answered.
fn resp(text: &mut String, counts: &AllCounts) -> std::fmt::Result {
    let name = "tally_resp_commands";
    writeln!(text, "# HELP {name} Commands of the Redis protocol answered, by class and outcome")?;
    writeln!(text, "# TYPE {name} counter")?;
    for (class, outcome, count) in counts.answered() {
        writeln!(text, "{name}_total{{class=\"{class}\",outcome=\"{outcome}\"}} {count}")?;
    }
    let name = "tally_resp_seconds";
    writeln!(
        text,
        "# HELP {name} Time of what arrived together from its arrival until its replies were there"
    )?;
    writeln!(text, "# TYPE {name} histogram")?;
    times_of(text, name, "", &counts.seconds())
}

/// What a lane holds and has done; `name` is what its series begin with.
fn lane_counts(text: &mut String, name: &str, lane: &Stats) -> std::fmt::Result {
    let mut one = |what: &str, kind: &str, help: &str, value: f64| {
        one(text, &format!("{name}_{what}"), kind, help, value)
    };
    one("queued_requests", "gauge", "Requests that wait for a batch", lane.queued_requests as f64)?;
    one("queued_bytes", "gauge", "Bytes that wait for a batch", lane.queued_bytes as f64)?;
    one("in_flight", "gauge", "Requests of the batch in flight", lane.in_flight as f64)?;
    one("refused_full", "counter", "Requests refused by a full queue", lane.refused_full as f64)?;
    one("requests", "counter", "Requests answered", lane.requests as f64)?;
    one("rows", "counter", "Rows of answered requests", lane.rows as f64)?;
    one("batches", "counter", "Batches", lane.batches as f64)?;
    one("splits", "counter", "Batches split to find a guilty row", lane.splits as f64)?;
    one("retries", "counter", "Commits tried again", lane.retries as f64)?;
    one("faults", "counter", "Requests that failed with the store", lane.faults as f64)?;
    one("commit_seconds", "counter", "Time spent in commits", lane.committing.as_secs_f64())
}

/// How many contests are in which state, and what this server has done of them.
fn contests(text: &mut String, counts: &Counts) -> std::fmt::Result {
    if let Some(standing) = counts.standing() {
        writeln!(text, "# HELP tally_contests Contests by state, at most {COUNTED_MAX} of each counted")?;
        writeln!(text, "# TYPE tally_contests gauge")?;
        for (state, count) in standing.states {
            writeln!(text, "tally_contests{{state=\"{state}\"}} {count}")?;
        }
        let help = format!("Contests with something under way or due, at most {DUE_MAX} counted");
        one(text, "contests_due", "gauge", &help, standing.due as f64)?;
    }
    let name = "tally_contests_turned";
    writeln!(text, "# HELP {name} How often this server brought a contest into a state")?;
    writeln!(text, "# TYPE {name} counter")?;
    for (state, count) in counts.entered() {
        writeln!(text, "{name}_total{{to=\"{state}\"}} {count}")?;
    }
    let name = "tally_contest_payments";
    writeln!(text, "# HELP {name} Prizes, and fees paid back, by what became of them here")?;
    writeln!(text, "# TYPE {name} counter")?;
    for (kind, payments) in [("prize", counts.prizes()), ("refund", counts.refunds())] {
        writeln!(text, "{name}_total{{kind=\"{kind}\",outcome=\"paid\"}} {}", payments.paid)?;
        for (why, count) in payments.unpaid {
            writeln!(text, "{name}_total{{kind=\"{kind}\",outcome=\"{why}\"}} {count}")?;
        }
    }
    Ok(())
}

/// What is kept of members, and how often it was there.
fn caches(text: &mut String, tally: &tally_service::Tally) -> std::fmt::Result {
    let rates = tally.members.cache.rates();
    writeln!(
        text,
        "# HELP tally_cache_requests Look-ups by what was found\n# TYPE tally_cache_requests counter"
    )?;
    for (name, rate) in rates {
        for (found, count) in [("hit", rate.hits), ("miss", rate.misses)] {
            writeln!(text, "tally_cache_requests_total{{cache=\"{name}\",found=\"{found}\"}} {count}")?;
        }
    }
    writeln!(text, "# HELP tally_cache_entries Entries kept\n# TYPE tally_cache_entries gauge")?;
    for (name, rate) in rates {
        writeln!(text, "tally_cache_entries{{cache=\"{name}\"}} {}", rate.entries)?;
    }
    one(
        text,
        "passwords_waiting",
        "gauge",
        "Passwords that wait to be digested",
        tally.members.waiting() as f64,
    )
}

/// What became of the spans of followed requests.
fn traces(text: &mut String, gate: &Readiness) -> std::fmt::Result {
    let off = Spans::default();
    let name = "tally_trace_spans";
    writeln!(text, "# HELP {name} Spans of followed requests by what became of them")?;
    writeln!(text, "# TYPE {name} counter")?;
    for (outcome, count) in gate.traces.as_ref().map_or(&off, |traces| traces.counts()).all() {
        writeln!(text, "{name}_total{{outcome=\"{outcome}\"}} {count}")?;
    }
    Ok(())
}

fn render_service(text: &mut String, gate: &Readiness) -> std::fmt::Result {
    traces(text, gate)?;
    resp(text, &gate.metrics.resp_counts)?;
    one(text, "ready", "gauge", "1 while ranks are exact", f64::from(u8::from(gate.ready().is_ok())))?;
    let progress = gate.progress.snapshot();
    one(text, "loading_rows_done", "gauge", "Rows loaded in the present phase", progress.done as f64)?;
    one(text, "loading_rows_total", "gauge", "Rows to load in the present phase", progress.total as f64)?;
    let help = "How often the store was read anew because its database had lost commits";
    one(text, "lost_commits_reloads", "counter", help, gate.reloads() as f64)?;
    let seconds = gate.lost().and_then(|lost| lost.seconds()).unwrap_or(0.0);
    one(
        text,
        "lost_commits_seconds",
        "gauge",
        "Seconds of commits that were lost at most, the last time",
        seconds,
    )?;
    let Some(tally) = gate.loaded() else { return Ok(()) };
    let tally = &*tally;
    let (scores, ledger) = (tally.lane_stats(), tally.ledger_stats());
    lane_counts(text, "lane", &scores)?;
    lane_counts(text, "ledger_lane", &ledger)?;
    writeln!(text, "# HELP tally_batch_cut Why batches ended\n# TYPE tally_batch_cut counter")?;
    for (lane, stats) in [("scores", &scores), ("ledger", &ledger)] {
        for cut in tally_service::Cut::ALL {
            let (name, count) = (cut.name(), stats.cut(cut));
            writeln!(text, "tally_batch_cut_total{{lane=\"{lane}\",cut=\"{name}\"}} {count}")?;
        }
    }
    lane_seconds(text, &[("scores", &tally.lane_times()), ("ledger", &tally.ledger_times())])?;
    let boards = tally.boards.list(None, usize::MAX);
    let now = tally.now();
    let members: u64 = boards.iter().map(|board| board.members(now)).sum();
    let bytes: u64 = boards.iter().map(|board| board.bytes()).sum();
    one(text, "boards", "gauge", "Leaderboards", boards.len() as f64)?;
    one(text, "board_members", "gauge", "Players on all leaderboards", members as f64)?;
    one(text, "board_bytes", "gauge", "Memory of all orders", bytes as f64)?;
    let jump = tally.clock_jump();
    one(
        text,
        "clock_believed",
        "gauge",
        "1 while the clock is believed",
        f64::from(u8::from(jump.is_none())),
    )?;
    let help = "By how much the clock has jumped, while that keeps it in doubt";
    one(text, "clock_jump_seconds", "gauge", help, jump.unwrap_or(0) as f64 / 1e6)?;
    let help = "By how much the newest instant that was stored at the start lay ahead of the clock";
    one(text, "clock_newest_ahead_seconds", "gauge", help, tally.newest_ahead() as f64 / 1e6)?;
    caches(text, tally)?;
    contests(text, tally.contest_counts())?;
    if let Some(balanced) = tally.balance.known() {
        let help = "1 while debits and credits of the ledger differ";
        one(text, "ledger_out_of_balance", "gauge", help, f64::from(u8::from(!balanced)))?;
    }
    one(
        text,
        "applications_faults",
        "counter",
        "How often the Redis of applications could not be asked",
        tally.applications_faults.load(Ordering::Relaxed) as f64,
    )?;
    for (name, value) in tally.store.gauges() {
        one(text, &format!("store_{name}"), "gauge", "What the store says of itself", value)?;
    }
    Ok(())
}
