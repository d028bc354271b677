//! Spans of followed requests: which requests are followed, a bounded queue, and the way to a collector (OTLP over HTTP).
//!
//! The listener asks [`Traces::follow`] once for each request, which costs a comparison for those that are not
//! followed, and hands in what is to be told of the others with [`Traces::put`]. That never waits: what does not fit into
//! the queue is counted and gone. Spans are made from it on the exporter's side, so a lane that tells of its batch makes
//! no text.
//!
//! - `parent`: what a caller says in `traceparent`; `choice`: whether a request is followed; `span`: what is told of it
//! - `queue`: what waits, is sent and is counted; `collector`: one exchange with the collector; `address`: where it is
//!
//! The messages are those of `opentelemetry-proto`. Its exporter (`opentelemetry-otlp`) is not used: it takes settings from
//! variables of the environment that no list of ours shows, hides why a collector cannot be reached, and does not tell how
//! many spans were dropped or refused. Not here: what a request is, and which spans it has.

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
pub use queue::{Counts, Traces};
pub use span::{Span, Trace, Value};

use std::time::Duration;

/// Where spans go, and how many.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the collector is.
    pub address: Address,
    /// Further headers, which authenticate.
    pub header: Option<Header>,
    /// How long one exchange with it may take.
    pub timeout: Duration,
    /// How many requests are followed of those whose caller says nothing of it.
    pub ratio: Ratio,
    /// `service.name`.
    pub service: String,
    /// `service.version`.
    pub version: &'static str,
}
