//! One span, and its form on the wire.

use crate::parent::Parent;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span as Wire, Status, status};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// The id of a span; never all zeros.
pub(crate) type SpanId = [u8; 8];

/// Flags of a span: it is sampled; the next flag is valid; its parent is in another process.
const SAMPLED: u32 = 1;
const SAYS_WHERE: u32 = 0x100;
const ELSEWHERE: u32 = 0x200;

/// A sampled request: its trace, and its own span in it.
#[derive(Clone, Debug)]
pub struct Trace {
    id: [u8; 16],
    /// The span of the request.
    span: SpanId,
    /// The span of its caller.
    parent: Option<SpanId>,
    /// `tracestate`, which is passed on unchanged.
    state: Arc<str>,
}

/// One operation with its start and end.
#[derive(Clone, Debug)]
pub struct Span {
    pub(crate) wire: Wire,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A text.
    Text(Cow<'static, str>),
    /// A whole number.
    Number(i64),
}

impl Trace {
    /// A new span below the span of the caller, or at the root of a new trace.
    pub(crate) fn new(parent: Option<&Parent>, state: &str) -> Self {
        Self {
            id: parent.map_or_else(random, |parent| parent.trace),
            span: random(),
            parent: parent.map(|parent| parent.span),
            state: state.into(),
        }
    }

    /// The span of the request itself.
    pub fn root(&self, name: String, (start, end): (SystemTime, SystemTime)) -> Span {
        let above = self.parent.map_or(0, |_| ELSEWHERE);
        let parent = self.parent.map_or_else(Vec::new, |parent| parent.to_vec());
        self.make(self.span, parent, above, SpanKind::Server, name, (start, end))
    }

    /// The span of a part of the request.
    pub fn child(&self, name: &str, (start, end): (SystemTime, SystemTime)) -> Span {
        self.make(random(), self.span.to_vec(), 0, SpanKind::Internal, name.to_owned(), (start, end))
    }

    fn make(
        &self,
        id: SpanId,
        parent_span_id: Vec<u8>,
        above: u32,
        kind: SpanKind,
        name: String,
        (start, end): (SystemTime, SystemTime),
    ) -> Span {
        let wire = Wire {
            trace_id: self.id.to_vec(),
            span_id: id.to_vec(),
            trace_state: (*self.state).to_owned(),
            parent_span_id,
            flags: SAMPLED | SAYS_WHERE | above,
            name,
            kind: kind.into(),
            start_time_unix_nano: nanos(start),
            end_time_unix_nano: nanos(end),
            ..Wire::default()
        };
        Span { wire }
    }
}

impl Span {
    /// Adds an attribute.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.wire.attributes.push(attribute(name, value.into()));
    }

    /// Marks it as failed.
    pub fn fail(&mut self, why: &str) {
        self.wire.status = Some(Status { message: why.to_owned(), code: status::StatusCode::Error.into() });
    }
}

impl From<&'static str> for Value {
    fn from(text: &'static str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<usize> for Value {
    fn from(number: usize) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

/// The resource of all spans, made once.
pub(crate) fn resource(service: &str, version: &str) -> Resource {
    let instance: [u8; 16] = random();
    let instance: String = instance.iter().map(|byte| format!("{byte:02x}")).collect();
    let said = [
        ("service.name", service.to_owned()),
        ("service.version", version.to_owned()),
        ("service.instance.id", instance),
    ];
    let attributes = said.into_iter().map(|(name, text)| attribute(name, text.into())).collect();
    Resource { attributes, ..Resource::default() }
}

/// The message of these spans.
pub(crate) fn request(resource: &Resource, version: &str, spans: Vec<Span>) -> ExportTraceServiceRequest {
    let scope = InstrumentationScope { name: "tally".into(), version: version.into(), ..Default::default() };
    let spans = spans.into_iter().map(|span| span.wire).collect();
    let scope_spans = vec![ScopeSpans { scope: Some(scope), spans, ..Default::default() }];
    let resource_spans =
        vec![ResourceSpans { resource: Some(resource.clone()), scope_spans, ..Default::default() }];
    ExportTraceServiceRequest { resource_spans }
}

fn attribute(name: &str, value: Value) -> KeyValue {
    let value = match value {
        Value::Text(text) => any_value::Value::StringValue(text.into_owned()),
        Value::Number(number) => any_value::Value::IntValue(number),
    };
    KeyValue { key: name.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

fn nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Random bytes that are not all zeros.
fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // A system without random numbers has made no keys either, so the server never gets here.
    if getrandom::fill(&mut bytes).is_err() || bytes == [0; N] {
        bytes[N - 1] = 1;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn times(from: u64, to: u64) -> (SystemTime, SystemTime) {
        (UNIX_EPOCH + Duration::from_nanos(from), UNIX_EPOCH + Duration::from_nanos(to))
    }

    #[test]
    fn a_request_stands_below_its_caller_and_its_parts_below_it() {
        let parent = Parent { trace: [7; 16], span: [9; 8], sampled: true };
        let trace = Trace::new(Some(&parent), "vendor=1");
        let mut root = trace.root("GET /x".into(), times(5, 9));
        root.set("a", 5_u64);
        root.fail("500");
        let child = trace.child("queue", times(6, 7));
        assert_eq!(root.wire.trace_id, [7; 16]);
        assert_eq!(root.wire.parent_span_id, [9; 8]);
        assert_eq!((root.wire.start_time_unix_nano, root.wire.end_time_unix_nano), (5, 9));
        assert_eq!(root.wire.flags & ELSEWHERE, ELSEWHERE);
        assert_eq!(root.wire.trace_state, "vendor=1");
        assert_eq!(root.wire.kind, i32::from(SpanKind::Server));
        assert_eq!(root.wire.status.unwrap().code, i32::from(status::StatusCode::Error));
        assert_eq!(child.wire.trace_id, [7; 16]);
        assert_eq!(child.wire.parent_span_id, root.wire.span_id);
        assert_eq!(child.wire.flags & ELSEWHERE, 0);
        assert_ne!(child.wire.span_id, root.wire.span_id);
    }

    #[test]
    fn without_a_caller_a_trace_begins() {
        let (one, two) = (Trace::new(None, ""), Trace::new(None, ""));
        assert_ne!(one.id, two.id);
        let root = one.root("x".into(), times(0, 0));
        assert!(root.wire.parent_span_id.is_empty());
        assert_eq!(root.wire.flags & ELSEWHERE, 0);
    }
}
