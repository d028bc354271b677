//! Exchanges with a collector of the test's own: over TLS, on a connection that it closes, silent, and at the end.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tally_traces::{Address, Header, Parent, Ratio, TraceSettings, Traces, probe};
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Long enough for every test; no measurement.
const LONG: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Received {
    names: Mutex<Vec<String>>,
    headers: Mutex<Vec<String>>,
    connections: AtomicUsize,
    /// Connections that have ended.
    ended: AtomicUsize,
    /// The status of its answer; 0 is none.
    status: AtomicU16,
    /// Whether it closes a connection behind its answer, without saying so.
    closes: AtomicBool,
}

impl Received {
    fn names(&self) -> Vec<String> {
        self.names.lock().unwrap().clone()
    }
}

fn file(name: &str) -> String {
    format!("{}/../testkit/tls/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn certificate() -> TlsAcceptor {
    let chain = CertificateDer::pem_file_iter(file("server.pem")).unwrap().collect::<Result<_, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_file(file("server-key.pem")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

async fn collector(tls: bool) -> (SocketAddr, Arc<Received>) {
    let received = Arc::new(Received { status: 200.into(), ..Received::default() });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shared = Arc::clone(&received);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let received = Arc::clone(&shared);
            received.connections.fetch_add(1, SeqCst);
            tokio::spawn(async move {
                if tls {
                    if let Ok(stream) = certificate().accept(stream).await {
                        serve(TokioIo::new(stream), Arc::clone(&received)).await;
                    }
                } else {
                    serve(TokioIo::new(stream), Arc::clone(&received)).await;
                }
                received.ended.fetch_add(1, SeqCst);
            });
        }
    });
    (address, received)
}

async fn serve(stream: impl hyper::rt::Read + hyper::rt::Write + Unpin + 'static, received: Arc<Received>) {
    let shared = Arc::clone(&received);
    let service = service_fn(move |request| take(Arc::clone(&shared), request));
    let connection = hyper::server::conn::http1::Builder::new().serve_connection(stream, service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        done = &mut connection => drop(done),
        () = closed(&received) => {}
    }
}

/// Ends when the connection is to be cut.
async fn closed(received: &Received) {
    while !received.closes.load(SeqCst) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn take(
    received: Arc<Received>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    assert_eq!((request.method().as_str(), request.uri().path()), ("POST", "/v1/traces"));
    assert_eq!(request.headers()["content-type"], "application/x-protobuf");
    let header = request.headers().get("x-key").map(|key| key.to_str().unwrap().to_owned());
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let status = received.status.load(SeqCst);
    if status == 0 {
        std::future::pending::<()>().await;
    }
    received.headers.lock().unwrap().extend(header);
    if status == 200 {
        let message = ExportTraceServiceRequest::decode(body).unwrap();
        let spans = message.resource_spans.iter().flat_map(|one| &one.scope_spans).flat_map(|one| &one.spans);
        received.names.lock().unwrap().extend(spans.map(|span| span.name.clone()));
    }
    let mut answer = Response::new(Full::new(Bytes::new()));
    *answer.status_mut() = StatusCode::from_u16(status).unwrap();
    Ok(answer)
}

fn settings(address: &str, timeout: Duration) -> TraceSettings {
    TraceSettings {
        address: Address::parse(address).unwrap(),
        header: Header::parse("x-key: secret"),
        timeout,
        ratio: Ratio::new(1.0).unwrap(),
        service: "test".into(),
        version: "0",
    }
}

fn put(traces: &Traces, name: &str) {
    let (trace, name, now) = (traces.sample(None, String::new).unwrap(), name.to_owned(), SystemTime::now());
    traces.put(1, move |spans| spans.push(trace.root(name, (now, now))));
}

fn counts(traces: &Traces) -> BTreeMap<&'static str, u64> {
    traces.counts().all().into_iter().collect()
}

async fn until(traces: &Traces, name: &str, count: u64) {
    while counts(traces)[name] < count {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn what_waits_is_sent_together_and_at_the_end() {
    let (address, received) = collector(false).await;
    let traces = Traces::start(&settings(&format!("http://{address}"), LONG), &Handle::current()).unwrap();
    (0..700).for_each(|number| put(&traces, &number.to_string()));
    traces.stop(LONG).await;
    assert_eq!(received.names(), (0..700).map(|number| number.to_string()).collect::<Vec<_>>());
    // In two messages on one connection, each with the header.
    assert_eq!(*received.headers.lock().unwrap(), ["secret", "secret"]);
    assert_eq!(received.connections.load(SeqCst), 1);
    assert_eq!(counts(&traces)["sent"], 700);
    put(&traces, "late");
    assert_eq!(counts(&traces)["full"], 1);
}

#[tokio::test]
async fn a_connection_that_was_closed_is_made_again() {
    let (address, received) = collector(false).await;
    let traces = Traces::start(&settings(&format!("http://{address}"), LONG), &Handle::current()).unwrap();
    put(&traces, "one");
    until(&traces, "sent", 1).await;
    received.closes.store(true, SeqCst);
    while received.ended.load(SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    received.closes.store(false, SeqCst);
    put(&traces, "two");
    traces.stop(LONG).await;
    assert_eq!((received.names(), received.connections.load(SeqCst)), (vec!["one".into(), "two".into()], 2));
}

#[tokio::test]
async fn a_collector_is_trusted_by_its_certificate() {
    let (address, received) = collector(true).await;
    let trusted = format!("https://{address}?ssl-ca={}", file("ca.pem"));
    probe(&settings(&trusted, LONG)).await.unwrap();
    let traces = Traces::start(&settings(&trusted, LONG), &Handle::current()).unwrap();
    put(&traces, "one");
    traces.stop(LONG).await;
    assert_eq!(received.names(), ["one"]);
    let stranger = format!("https://{address}?ssl-ca={}", file("other-ca.pem"));
    let why = probe(&settings(&stranger, LONG)).await.unwrap_err();
    assert!(why.contains("not signed by an authority"), "{why}");
    let plain = probe(&settings(&format!("http://{address}"), LONG)).await.unwrap_err();
    assert!(plain.contains("the connection broke"), "{plain}");
}

#[tokio::test]
async fn what_a_collector_does_not_take_is_counted() {
    let (address, received) = collector(false).await;
    for (status, outcome) in [(400, "undelivered"), (200, "sent"), (503, "undelivered")] {
        received.status.store(status, SeqCst);
        let settings = settings(&format!("http://{address}"), LONG);
        let traces = Traces::start(&settings, &Handle::current()).unwrap();
        assert_eq!(probe(&settings).await.is_ok(), outcome == "sent", "{status}");
        put(&traces, &status.to_string());
        until(&traces, outcome, 1).await;
    }
    assert_eq!(received.names(), ["200"]);
}

#[tokio::test]
async fn what_does_not_fit_is_counted_and_the_end_does_not_wait() {
    let (address, received) = collector(false).await;
    // It answers nothing.
    received.status.store(0, SeqCst);
    let settings = settings(&format!("http://{address}"), Duration::from_millis(20));
    let why = probe(&settings).await.unwrap_err();
    assert!(why.contains("did not answer in 20ms"), "{why}");
    let traces = Traces::start(&settings, &Handle::current()).unwrap();
    put(&traces, "silence");
    until(&traces, "undelivered", 1).await;
    (0..10_000).for_each(|_| put(&traces, "many"));
    assert_eq!(counts(&traces)["full"], 10_000 - 4_096);
    traces.stop(Duration::from_millis(50)).await;
    assert_eq!(received.names(), Vec::<String>::new());
}

#[tokio::test]
async fn a_collector_that_comes_back_gets_what_waited() {
    let (address, received) = collector(false).await;
    received.status.store(503, SeqCst);
    let traces = Traces::start(&settings(&format!("http://{address}"), LONG), &Handle::current()).unwrap();
    put(&traces, "patient");
    while received.headers.lock().unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    received.status.store(200, SeqCst);
    until(&traces, "sent", 1).await;
    assert_eq!((received.names(), counts(&traces)["undelivered"]), (vec!["patient".into()], 0));
}

#[tokio::test]
async fn a_caller_decides_before_the_ratio_does() {
    let parent = |flags| {
        let header = format!("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-{flags}");
        Parent::parse(header.as_bytes()).unwrap()
    };
    for (ratio, alone) in [(0.0, false), (1.0, true)] {
        let ratio = Ratio::new(ratio).unwrap();
        let settings = TraceSettings { ratio, ..settings("http://127.0.0.1", LONG) };
        let traces = Traces::start(&settings, &Handle::current()).unwrap();
        let follows = |parent: Option<&Parent>| traces.sample(parent, || "x=1".into()).is_some();
        assert!(follows(Some(&parent("01"))) && !follows(Some(&parent("00"))));
        assert_eq!(follows(None), alone);
    }
}
