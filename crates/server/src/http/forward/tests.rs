//! Requests to small leaders that answer, refuse, close or stay silent.

use super::*;
use crate::limits::HttpLimits;
use bytes::BytesMut;
use std::collections::VecDeque;
use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard};
use tally_service::secret::Secret;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(100);
const BODY: &[u8] = b"{\"score\":1}";
const DONE: Act = Act::Say(200, "{}");

/// What a leader does with a request that it has received.
#[derive(Clone, Copy)]
enum Act {
    Say(u16, &'static str),
    Close,
    Wait,
}

/// A leader that does one act after the other, and repeats the last one.
struct TestLeader {
    base: Arc<str>,
    received: Mutex<Vec<String>>,
    acts: Mutex<VecDeque<Act>>,
    connections: AtomicUsize,
}

impl TestLeader {
    async fn start(acts: &[Act]) -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap()).into();
        let acts = Mutex::new(acts.iter().copied().collect());
        let leader = Self { base, received: Mutex::default(), acts, connections: AtomicUsize::new(0) };
        let leader = Arc::new(leader);
        let accepting = Arc::clone(&leader);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                accepting.connections.fetch_add(1, SeqCst);
                let leader = Arc::clone(&accepting);
                tokio::spawn(async move { leader.serve(stream).await });
            }
        });
        leader
    }

    async fn serve(&self, mut stream: TcpStream) {
        let mut bytes = BytesMut::new();
        loop {
            while !is_whole(&bytes) {
                if !stream.read_buf(&mut bytes).await.is_ok_and(|count| count > 0) {
                    return;
                }
            }
            self.received().push(String::from_utf8(bytes.split().to_vec()).unwrap());
            match self.next() {
                Act::Say(status, body) => {
                    let length = body.len();
                    let answer = format!(
                        "HTTP/1.1 {status} Said\r\nContent-Length: {length}\r\nIdempotent-Replayed: true\r\n\
                         Date: today\r\nKeep-Alive: timeout=5\r\n\r\n{body}"
                    );
                    stream.write_all(answer.as_bytes()).await.unwrap();
                }
                Act::Close => return,
                Act::Wait => pending().await,
            }
        }
    }

    fn next(&self) -> Act {
        let mut acts = self.acts.lock().unwrap();
        if acts.len() > 1 { acts.pop_front().unwrap() } else { acts[0] }
    }

    fn received(&self) -> MutexGuard<'_, Vec<String>> {
        self.received.lock().unwrap()
    }

    fn count(&self) -> usize {
        self.received().len()
    }

    /// That it leads.
    fn leads(&self) -> Leader {
        Leader::At(Arc::clone(&self.base))
    }
}

fn is_whole(request: &[u8]) -> bool {
    let head_end = request.windows(4).position(|end| end == b"\r\n\r\n");
    head_end.is_some_and(|at| request.len() == at + 4 + BODY.len())
}

fn forwarder(patience: Duration) -> Forwarder {
    Forwarder::new(&ForwarderSettings { ca_file: None, patience }).unwrap()
}

fn ring() -> Keyring {
    Keyring::new(&[Secret::new([7; 32])])
}

fn client() -> IpAddr {
    "192.0.2.7".parse().unwrap()
}

/// A request on behalf of a client or of a command, with or without an idempotency key.
fn request_of(behalf: Behalf, key: Option<&str>) -> Outgoing {
    let request = Request::post("/v1/leaderboards/b/scores?windows=all")
        .header("Authorization", "Bearer tally_a_b")
        .header("Content-Type", "application/json")
        .header("Cookie", "a=b")
        .header("X-Forwarded-For", "198.51.100.1");
    let request = key.into_iter().fold(request, |request, key| request.header("Idempotency-Key", key));
    let (parts, ()) = request.body(()).unwrap().into_parts();
    Outgoing::new(&parts, Bytes::from_static(BODY), (behalf, client()), (false, "r-1"))
}

fn request(key: Option<&str>) -> Outgoing {
    request_of(Behalf::Client, key)
}

/// The status of an answer, or 0 and what became of the request instead.
async fn outcome(
    forwarder: &Forwarder,
    leader: impl Fn() -> Leader + Sync,
    request: &Outgoing,
) -> (u16, &'static str) {
    match forwarder.forward(&leader, &ring(), request).await {
        Outcome::Answered((head, _)) => (head.status.as_u16(), "answered"),
        Outcome::Here => (0, "here"),
        Outcome::GaveUp => (0, "gave up"),
        Outcome::Unknown => (0, "unknown"),
    }
}

#[tokio::test]
async fn the_leader_gets_the_request_and_its_answer_is_passed_back() {
    let leader = TestLeader::start(&[Act::Say(201, "{\"rank\":1}")]).await;
    let answered = forwarder(LONG).forward(&|| leader.leads(), &ring(), &request(Some("k"))).await;
    let Outcome::Answered((head, body)) = answered else { panic!("it is answered") };
    assert_eq!((head.status.as_u16(), &body[..]), (201, &b"{\"rank\":1}"[..]));
    let passed = passed(head.status, &head.headers, body);
    let names: Vec<&str> = passed.headers().keys().map(|name| name.as_str()).collect();
    assert_eq!((passed.status().as_u16(), names), (201, vec!["idempotent-replayed"]));

    let sent = leader.received()[0].clone();
    let (head, body) = sent.split_once("\r\n\r\n").unwrap();
    let mut lines = head.lines();
    assert_eq!(lines.next(), Some("POST /v1/leaderboards/b/scores?windows=all HTTP/1.1"));
    assert_eq!(body.as_bytes(), BODY);
    let headers: Vec<(String, &str)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value))
        .collect();
    let value = |name: &str| headers.iter().find(|(other, _)| other == name).map(|(_, value)| *value);
    assert_eq!(value("host"), leader.base.strip_prefix("http://"));
    for (name, wanted) in [
        ("authorization", Some("Bearer tally_a_b")),
        ("content-type", Some("application/json")),
        ("idempotency-key", Some("k")),
        ("x-request-id", Some("r-1")),
        ("cookie", None),
        ("x-forwarded-for", None),
    ] {
        assert_eq!(value(name), wanted, "{name}");
    }
    let named = |name: &'static str| value(name).map(|value| (name, value.as_bytes()));
    let covered: Vec<_> =
        ["authorization", "idempotency-key", "content-type"].into_iter().filter_map(named).collect();
    let target = "/v1/leaderboards/b/scores?windows=all";
    let signed = SignedRequest { method: "POST", target, headers: &covered };
    let signed = signed.verify(&ring(), value(HEADER).unwrap(), now()).unwrap();
    assert_eq!((signed.behalf, signed.client), (Behalf::Client, client()));
    assert!(signed.has_body(BODY));
}

#[tokio::test]
async fn a_connection_is_kept_and_the_token_of_a_machine_stays_on_it() {
    let leader = TestLeader::start(&[DONE]).await;
    let forwarder = forwarder(LONG);
    for _ in 0..3 {
        let command = request_of(Behalf::CommandLine, None);
        assert_eq!(outcome(&forwarder, || leader.leads(), &command).await, (200, "answered"));
    }
    assert_eq!((leader.count(), leader.connections.load(SeqCst)), (3, 1));
    assert!(leader.received().iter().all(|sent| !sent.contains("tally_a_b")));
}

#[tokio::test]
async fn a_request_that_may_have_been_done_is_sent_again_only_by_its_key() {
    let leader = TestLeader::start(&[Act::Close, DONE]).await;
    assert_eq!(outcome(&forwarder(LONG), || leader.leads(), &request(None)).await, (0, "unknown"));
    assert_eq!(leader.count(), 1, "never a second time");

    let in_progress = Act::Say(409, "{\"code\":\"idempotency_in_progress\"}");
    let away = Act::Say(503, "{\"code\":\"store_unavailable\"}");
    let leader = TestLeader::start(&[Act::Close, in_progress, away, Act::Close, DONE]).await;
    assert_eq!(outcome(&forwarder(LONG), || leader.leads(), &request(Some("k"))).await, (200, "answered"));
    assert_eq!(leader.count(), 5);
    // Another request of the client has the key.
    let leader = TestLeader::start(&[in_progress]).await;
    assert_eq!(outcome(&forwarder(LONG), || leader.leads(), &request(Some("k"))).await, (409, "answered"));

    let leader = TestLeader::start(&[Act::Close]).await;
    assert_eq!(outcome(&forwarder(SHORT), || leader.leads(), &request(Some("k"))).await, (0, "unknown"));
}

#[tokio::test]
async fn a_request_is_sent_again_if_nothing_was_done() {
    let not_leader = Act::Say(503, "{\"code\":\"not_leader\"}");
    let (draining, loading) =
        (Act::Say(503, "{\"code\":\"draining\"}"), Act::Say(503, "{\"code\":\"loading\"}"));
    let leader = TestLeader::start(&[not_leader, draining, loading, DONE]).await;
    assert_eq!(outcome(&forwarder(LONG), || leader.leads(), &request(None)).await, (200, "answered"));
    assert_eq!(leader.count(), 4);

    let leader = TestLeader::start(&[Act::Say(503, "{\"code\":\"store_unavailable\"}"), DONE]).await;
    assert_eq!(outcome(&forwarder(LONG), || leader.leads(), &request(None)).await, (503, "answered"));
    assert_eq!(leader.count(), 1, "the client decides");

    let leader = TestLeader::start(&[loading]).await;
    assert_eq!(
        outcome(&forwarder(SHORT), || leader.leads(), &request(None)).await,
        (503, "answered"),
        "in the end"
    );
}

#[tokio::test]
async fn a_request_waits_for_a_leader() {
    let leader = TestLeader::start(&[DONE]).await;
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let closed: Arc<str> = format!("http://{closed}").into();
    let asked = AtomicUsize::new(0);
    let found = || match asked.fetch_add(1, SeqCst) {
        0 => Leader::Unknown,
        1..4 => Leader::At(Arc::clone(&closed)),
        _ => leader.leads(),
    };
    assert_eq!(outcome(&forwarder(LONG), found, &request(None)).await, (200, "answered"));
    for none in [Leader::Unknown, Leader::At(Arc::clone(&closed))] {
        let gave_up = outcome(&forwarder(SHORT), || none.clone(), &request(Some("k"))).await;
        assert_eq!(gave_up, (0, "gave up"));
    }
    assert_eq!(outcome(&forwarder(LONG), || Leader::Here, &request(None)).await, (0, "here"));
}

#[tokio::test]
async fn a_silent_leader_is_given_up_when_another_one_leads() {
    for key in [None, Some("k")] {
        let (silent, next) = (TestLeader::start(&[Act::Wait]).await, TestLeader::start(&[DONE]).await);
        let found = || if silent.count() == 0 { silent.leads() } else { next.leads() };
        let wanted = if key.is_some() { (200, "answered") } else { (0, "unknown") };
        assert_eq!(outcome(&forwarder(LONG), found, &request(key)).await, wanted);
        assert_eq!((silent.count(), next.count()), (1, usize::from(key.is_some())));
    }
}

#[tokio::test]
async fn a_body_that_was_not_signed_is_refused() {
    let readiness = Readiness::of_test(HttpLimits::default(), "");
    let request = SignedRequest { method: "POST", target: "/", headers: &[] };
    let value = request.sign(&ring(), BODY, (Behalf::Client, client()), now());
    let signed = request.verify(&ring(), &value, now()).unwrap();
    for (sent, is_good) in [(BODY, true), (b"{}", false), (b"", false)] {
        let mut body = Unread::received(Received { bytes: Bytes::from_static(sent), part: None });
        body.expect(signed);
        let received = body.receive(&readiness, 1 << 10).await;
        assert_eq!(received.is_ok(), is_good, "{sent:?}");
    }
}

#[tokio::test]
async fn a_change_waits_while_this_server_takes_over() {
    let readiness = Readiness::of_test(HttpLimits::default(), "");
    drop(readiness.forwarder.set(forwarder(SHORT)));
    assert!(!readiness.takes_over(), "the first start");
    readiness.close(None);
    assert_eq!((readiness.takes_over(), readiness.leader()), (true, Leader::Unknown));
    let began = Instant::now();
    wait_for_leader(&readiness).await;
    assert!(began.elapsed() >= SHORT);
    readiness.drain();
    assert!(!readiness.takes_over(), "it ends");
}
