//! A collector that keeps its requests: OTLP over HTTP, one thread for each connection.
//!
//! It decodes with the messages of `opentelemetry-proto`, as real ones do with those of other languages.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value as Any};
use prost::Message;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use tally_testkit::GIVE_UP;

/// A span as a test reads it.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) trace: String,
    pub(crate) id: String,
    pub(crate) parent: String,
    pub(crate) state: String,
    pub(crate) name: String,
    pub(crate) kind: i32,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) attributes: BTreeMap<String, Value>,
    /// Of its status: 2 is an error.
    pub(crate) status: i32,
    /// The attributes of the server.
    pub(crate) resource: BTreeMap<String, Value>,
}

#[derive(Default)]
struct State {
    spans: Vec<Span>,
    /// Heads of requests, in small letters.
    heads: Vec<String>,
    /// The response; nothing where there is none.
    status: Option<u16>,
}

pub(crate) struct Collector {
    address: SocketAddr,
    state: Arc<(Mutex<State>, Condvar)>,
}

impl Collector {
    /// One that takes everything.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("it has an address");
        let state = Arc::new((Mutex::new(State { status: Some(200), ..State::default() }), Condvar::new()));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let state = Arc::clone(&shared);
                std::thread::spawn(move || serve(&stream, &state));
            }
        });
        Self { address, state }
    }

    /// The response from now on; nothing at all where there is none.
    pub(crate) fn answer(&self, status: Option<u16>) {
        self.state.0.lock().unwrap().status = status;
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What came so far.
    pub(crate) fn spans(&self) -> Vec<Span> {
        self.state.0.lock().unwrap().spans.clone()
    }

    pub(crate) fn heads(&self) -> Vec<String> {
        self.state.0.lock().unwrap().heads.clone()
    }

    /// Waits until something came that it is about.
    #[track_caller]
    pub(crate) fn wait(&self, until: impl Fn(&[Span]) -> bool) {
        let (state, came) = &*self.state;
        let state = state.lock().unwrap();
        let (state, late) = came.wait_timeout_while(state, GIVE_UP, |state| !until(&state.spans)).unwrap();
        assert!(!late.timed_out(), "{:#?}", state.spans);
    }
}

fn serve(stream: &TcpStream, state: &(Mutex<State>, Condvar)) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            match reader.read_line(&mut head) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
        let head = head.to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length = length.map_or(0, |length| length.trim().parse().expect("a number"));
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let (state, came) = state;
        let mut state = state.lock().unwrap();
        state.heads.push(head);
        if state.status == Some(200) {
            state.spans.extend(read(&body));
        }
        came.notify_all();
        let Some(status) = state.status else { continue };
        drop(state);
        let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n");
        if (&*stream).write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn read(body: &[u8]) -> Vec<Span> {
    let message = ExportTraceServiceRequest::decode(body).expect("a message of OTLP");
    let mut all = Vec::new();
    for of_resource in message.resource_spans {
        let resource = attributes(of_resource.resource.expect("a resource").attributes);
        for span in of_resource.scope_spans.into_iter().flat_map(|scope| scope.spans) {
            all.push(Span {
                trace: hex(&span.trace_id),
                id: hex(&span.span_id),
                parent: hex(&span.parent_span_id),
                state: span.trace_state,
                name: span.name,
                kind: span.kind,
                start: span.start_time_unix_nano,
                end: span.end_time_unix_nano,
                attributes: attributes(span.attributes),
                status: span.status.map_or(0, |status| status.code),
                resource: resource.clone(),
            });
        }
    }
    all
}

fn attributes(all: Vec<KeyValue>) -> BTreeMap<String, Value> {
    let value = |one: KeyValue| match one.value.and_then(|value| value.value) {
        Some(Any::StringValue(text)) => (one.key, json!(text)),
        Some(Any::IntValue(number)) => (one.key, json!(number)),
        other => panic!("{} is {other:?}", one.key),
    };
    all.into_iter().map(value).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
