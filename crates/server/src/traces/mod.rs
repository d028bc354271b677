//! The spans of sampled requests, HTTP and RESP, and of their way through the lanes.
//!
//! `http` and `resp` set the attributes of a request by the OpenTelemetry conventions. This file has what both share:
//! times, the trace, and the four spans of a batch. A request has no span while it runs. The span is created when the last
//! reference to the request is dropped. So a client that hangs up leaves a span, too, after all spans of its lane.
//!
//! Not here: which requests are sampled, and how spans get to a collector (crate `traces`).

mod http;
mod resp;

pub(crate) use http::HttpSample;
pub(crate) use resp::Pipeline;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime};
use tally_service::LaneTimings;
use tally_service::traces::Sink;
use tally_traces::{Span, Trace, Traces, Value};

pub(crate) struct SampledRequest {
    traces: Arc<Traces>,
    trace: Trace,
    clock: Clock,
    root: Mutex<Root>,
}

/// The attributes of the request itself.
#[derive(Default)]
struct Root {
    name: String,
    attributes: Vec<(&'static str, Value)>,
    failed: Option<String>,
    /// When its response was ready.
    ended: Option<Instant>,
}

/// When it began, by both clocks: the monotonic one gives exact durations, the wall clock is for the collector.
#[derive(Clone, Copy)]
struct Clock {
    began: Instant,
    at: SystemTime,
}

impl Clock {
    fn time(self, when: Instant) -> SystemTime {
        self.at + when.saturating_duration_since(self.began)
    }
}

impl SampledRequest {
    fn new(traces: &Arc<Traces>, trace: Trace, began: Instant) -> Arc<Self> {
        // A little time may have passed since it began.
        let clock = Clock { began, at: SystemTime::now() - began.elapsed() };
        Arc::new(Self { traces: Arc::clone(traces), trace, clock, root: Mutex::default() })
    }

    fn root(&self) -> std::sync::MutexGuard<'_, Root> {
        self.root.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SampledRequest {
    fn drop(&mut self) {
        let root = std::mem::take(self.root.get_mut().unwrap_or_else(PoisonError::into_inner));
        if root.name.is_empty() {
            return;
        }
        let (trace, clock, now) = (self.trace.clone(), self.clock, Instant::now());
        self.traces.put(1, move |spans| {
            let end = clock.time(root.ended.unwrap_or(now));
            let mut span = trace.root(root.name, (clock.at, end));
            for (name, value) in root.attributes {
                span.set(name, value);
            }
            if let Some(why) = root.failed {
                span.fail(&why);
            }
            spans.push(span);
        });
    }
}

impl Sink for SampledRequest {
    fn record_timings(&self, entered: Instant, timings: &LaneTimings) {
        let (trace, clock, timings) = (self.trace.clone(), self.clock, timings.clone());
        let stages = 3 + usize::from(timings.published.is_some());
        self.traces.put(stages, move |spans| spans.extend(stages_of(&trace, clock, entered, &timings)));
    }
}

/// The spans of one request in a batch, one after the other. If the batch failed, the last span has an error.
fn stages_of(trace: &Trace, clock: Clock, entered: Instant, timings: &LaneTimings) -> Vec<Span> {
    let LaneTimings { begun, ended, published, .. } = *timings;
    // Without a read, all of the time was spent reading.
    let read = timings.read.unwrap_or(ended);
    let stages =
        [("queue", entered, timings.taken.max(entered)), ("read", begun, read), ("commit", read, ended)];
    let publish = published.map(|published| ("publish", ended, published));
    let spans = stages.into_iter().chain(publish).map(|(name, from, to)| {
        let mut span = trace.child(name, (clock.time(from), clock.time(to)));
        span.set("tally.lane", timings.lane.to_string());
        span.set("tally.batch.number", timings.batch);
        if name != "queue" {
            span.set("tally.batch.requests", timings.requests);
            span.set("tally.batch.rows", timings.rows);
        }
        if name == "commit" {
            span.set("tally.batch.retries", u64::from(timings.retries));
            if published.is_none() {
                span.fail("the store did not do it");
            }
        }
        span
    });
    spans.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tally_traces::{Address, Ratio, TraceSettings};

    /// Traces that accept no spans any more, but count them.
    fn stopped() -> Arc<Traces> {
        let settings = TraceSettings {
            address: Address::parse("http://127.0.0.1:1").unwrap(),
            header: None,
            timeout: Duration::from_secs(1),
            ratio: Ratio::new(1.0).unwrap(),
            service: "test".into(),
            version: "0",
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let traces = Traces::start(&settings, runtime.handle()).unwrap();
        runtime.block_on(traces.stop(Duration::from_secs(60)));
        traces
    }

    fn begin(traces: &Arc<Traces>) -> Arc<SampledRequest> {
        SampledRequest::new(traces, traces.sample(None, String::new).unwrap(), Instant::now())
    }

    fn put(traces: &Traces) -> u64 {
        traces.counts().all().into_iter().map(|(_, count)| count).sum()
    }

    fn timings(begun: Instant, published: Option<Instant>) -> LaneTimings {
        let ended = begun + Duration::from_millis(3);
        LaneTimings {
            lane: "lane".into(),
            batch: 7,
            requests: 2,
            rows: 3,
            retries: 1,
            taken: begun,
            begun,
            read: None,
            ended,
            published,
        }
    }

    #[test]
    fn an_abandoned_request_is_exported_when_its_lane_drops_it() {
        let traces = stopped();
        let sampled = begin(&traces);
        sampled.root().name = "GET /x".into();
        let sink: Arc<dyn Sink> = Arc::<SampledRequest>::clone(&sampled);
        drop(sampled);
        assert_eq!(put(&traces), 0, "its lane still knows it");
        let now = Instant::now();
        sink.record_timings(now, &timings(now, Some(now + Duration::from_millis(4))));
        assert_eq!(put(&traces), 4);
        drop(sink);
        assert_eq!(put(&traces), 5);
    }

    #[test]
    fn what_has_no_name_was_no_request() {
        let traces = stopped();
        drop(begin(&traces));
        assert_eq!(put(&traces), 0);
    }

    #[test]
    fn a_batch_that_failed_has_nothing_to_publish() {
        let traces = stopped();
        let sampled = begin(&traces);
        let now = Instant::now();
        let stages = |published| stages_of(&sampled.trace, sampled.clock, now, &timings(now, published));
        assert_eq!(stages(Some(now + Duration::from_millis(4))).len(), 4);
        assert_eq!(stages(None).len(), 3);
    }
}
