//! Spans of sampled requests: sampling, a bounded queue, and the exporter (OTLP over HTTP).
//!
//! The listener calls [`Traces::sample`] once for each request, which costs a comparison for requests that are not sampled.
//! It hands the others in with [`Traces::put`]. That never waits: what does not fit into the queue is counted and dropped.
//! The exporter's task makes the spans, so a lane that reports its batch formats no text.
//!
//! - `parent`: the header `traceparent`; `choice`: whether a request is sampled; `span`: one span
//! - `queue`: the queue, the task that sends, and the counts; `collector`: one exchange with the collector; `address`: its
//!   address
//!
//! The messages are those of `opentelemetry-proto`. Its exporter (`opentelemetry-otlp`) is not used. It takes settings from
//! environment variables that our settings do not list, and hides why a collector is unreachable. It does not count dropped
//! or rejected spans either. Not here: what a request is, and which spans it has.

mod address;
mod choice;
mod collector;
mod parent;
mod queue;
mod span;

pub use address::Address;
pub use choice::Ratio;
pub use collector::{Header, probe};
pub use parent::Parent;
pub use queue::{SpanCounts, Traces};
pub use span::{Span, Trace, Value};

use std::time::Duration;

/// The settings of the exporter.
#[derive(Clone, Debug)]
pub struct TraceSettings {
    /// The address of the collector.
    pub address: Address,
    /// A further header, which authenticates.
    pub header: Option<Header>,
    /// The timeout of one exchange.
    pub timeout: Duration,
    /// The ratio of sampled requests among those without a flag of their caller.
    pub ratio: Ratio,
    /// `service.name`.
    pub service: String,
    /// `service.version`.
    pub version: &'static str,
}
