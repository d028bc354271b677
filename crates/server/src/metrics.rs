//! Metrics for Prometheus.
//!
//! Each route has handles that are created once, so counting a request is a few atomic additions. Figures of lanes, boards
//! and the store are read at each scrape (`scrape`).

mod scrape;

use crate::accept::Refused;
use crate::readiness::Readiness;
use crate::resp::counts::AllCounts;
use crate::{security, slow_requests};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::time::Duration;
use tally_wire::api::events;

/// Seconds: from a tenth of a millisecond to ten seconds.
const BUCKETS_S: [f64; 16] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

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

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RefusedConnection {
    protocol: &'static str,
    reason: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ForwardedTo {
    outcome: &'static str,
}

/// The counters of requests for the leader, by what became of them.
pub(crate) struct Forwardings {
    pub(crate) answered: Counter,
    pub(crate) here: Counter,
    pub(crate) gave_up: Counter,
    pub(crate) unknown: Counter,
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
    /// Counts of the replies on them.
    pub(crate) resp_counts: AllCounts,
    /// Open event streams.
    pub event_streams: Gauge,
    /// Sent events, by kind.
    events_sent: Family<Sent, Counter>,
    security_events: Family<Sent, Counter>,
    refused: Family<RefusedConnection, Counter>,
    /// Requests for the leader.
    pub(crate) forwarded: Forwardings,
    /// Event streams that were closed because the client did not read.
    pub event_streams_slow: Counter,
}

/// The handles of one route.
#[derive(Clone, Debug)]
pub struct RouteMetrics {
    pub(crate) route: &'static str,
    pub(crate) method: &'static str,
    /// Whether its slow requests are shown.
    pub(crate) shows_slow: bool,
    classes: [Counter; 5],
    seconds: Histogram,
}

impl Metrics {
    /// Creates the metrics at zero.
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
        // These appear at zero from the start.
        for event in events::ALL {
            drop(events_sent.get_or_create(&Sent { event }));
        }
        let security_events = Family::<Sent, Counter>::default();
        registry.register("security_events", "Security events, by event", security_events.clone());
        for event in security::EVENTS {
            drop(security_events.get_or_create(&Sent { event }));
        }
        let refused = Family::<RefusedConnection, Counter>::default();
        let help = "Connections that were closed unserved, by protocol and reason";
        registry.register("connections_refused", help, refused.clone());
        let forwarded = Family::<ForwardedTo, Counter>::default();
        registry.register("forwarded", "Requests for the leader, by outcome", forwarded.clone());
        let of = |outcome| forwarded.get_or_create(&ForwardedTo { outcome }).clone();
        let forwarded = Forwardings {
            answered: of("answered"),
            here: of("here"),
            gave_up: of("gave_up"),
            unknown: of("unknown"),
        };
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
            refused,
            forwarded,
            event_streams_slow,
        }
    }

    /// The handles of a route.
    pub fn route(&self, route: &'static str, method: &'static str) -> RouteMetrics {
        let class = |class| self.answered.get_or_create(&Answered { route, method, class }).clone();
        RouteMetrics {
            route,
            method,
            shows_slow: slow_requests::has(method, route),
            classes: ["1xx", "2xx", "3xx", "4xx", "5xx"].map(class),
            seconds: self.seconds.get_or_create(&Route { route, method }).clone(),
        }
    }

    /// The counter of sent events of this kind.
    pub fn events_sent(&self, event: &'static str) -> Counter {
        self.events_sent.get_or_create(&Sent { event }).clone()
    }

    /// The counter of security events of this kind.
    pub(crate) fn security_events(&self, event: &'static str) -> Counter {
        self.security_events.get_or_create(&Sent { event }).clone()
    }

    /// The counters of refused connections of a protocol. They appear at zero.
    pub(crate) fn refused(&self, protocol: &'static str) -> Refused {
        let of = |reason| self.refused.get_or_create(&RefusedConnection { protocol, reason }).clone();
        Refused { address: of("address"), full: of("full"), descriptors: of("descriptors") }
    }

    /// Renders the text that Prometheus reads.
    pub fn render(&self, readiness: &Readiness) -> String {
        let mut text = String::new();
        encode_registry(&mut text, &self.registry).expect("a string takes everything");
        encode_registry(&mut text, &scrape::registry(readiness)).expect("a string takes everything");
        encode_eof(&mut text).expect("a string takes everything");
        text
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl RouteMetrics {
    /// Counts one response.
    pub fn count(&self, status: u16, took: Duration) {
        let class = usize::from(status / 100).clamp(1, 5) - 1;
        self.classes[class].inc();
        self.seconds.observe(took.as_secs_f64());
    }
}
