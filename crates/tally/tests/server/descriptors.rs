//! File descriptors: a low limit is raised or told, the store keeps its own, and no connection hangs for want of one.
//!
//! Not here: how limits of connections are made to fit (`tally/src/descriptors.rs`).

use crate::TALLY;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tally_testkit::audit::metric;
use tally_testkit::{Client, EventStream, GIVE_UP, Request, wait_until};
use tempfile::TempDir;

/// Event streams: more than the usual soft limit of 1,024 has descriptors.
const STREAMS: usize = 1_100;

/// A server under these limits of a shell, with its address and its log, which the end of the process ends.
struct Server {
    process: Child,
    address: SocketAddr,
    data: TempDir,
}

fn start(limits: &str) -> Result<Server, String> {
    let data = TempDir::with_prefix("tally-descriptors-").expect("it can be made");
    let mut serve = tally_testkit::command::command("sh", &["-c", &format!("{limits}; exec \"$0\" \"$@\"")]);
    serve.args([TALLY, "serve", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0", "--data"]).arg(data.path());
    serve.env("TALLY_KEYS_REQUIRED", "false").env("TALLY_HTTP_HEAD_TIMEOUT", "60s");
    let mut process = serve.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("there is a shell");
    let mut line = String::new();
    let out = process.stdout.as_mut().expect("it is piped");
    BufReader::new(out).read_line(&mut line).expect("it is text");
    match line.split(' ').find_map(|word| word.strip_prefix("http=")) {
        Some(address) => Ok(Server { address: address.parse().expect("an address"), process, data }),
        None => Err(log(process)),
    }
}

fn log(mut process: Child) -> String {
    let mut log = String::new();
    process.stderr.take().expect("it is piped").read_to_string(&mut log).expect("it is text");
    process.wait().expect("it ends");
    log
}

impl Server {
    fn limits(&self) -> [u64; 2] {
        let text = std::fs::read_to_string(format!("/proc/{}/limits", self.process.id())).expect("it runs");
        let line = text.lines().find(|line| line.starts_with("Max open files")).expect("a limit");
        let mut words = line.split_whitespace().skip(3).map(|word| word.parse().expect("a number"));
        [(); 2].map(|()| words.next().expect("two limits"))
    }

    fn set_limit(&self, count: u64) {
        let pid = Pid::from_raw(i32::try_from(self.process.id()).expect("a process number"));
        let maximum = Some(self.limits()[1]);
        prlimit(pid, Resource::Nofile, Rlimit { current: Some(count), maximum }).expect("it may be set");
    }

    /// How many connections were refused, if this one is not.
    fn refused(&self, reason: &str) -> f64 {
        let metrics = Client::new(self.address).get("/metrics");
        let name = format!("tally_connections_refused_total{{protocol=\"http\",reason=\"{reason}\"}}");
        if metrics.status == 200 { metric(&metrics, &name) } else { 0.0 }
    }

    /// Ends it in peace, and returns its log.
    fn end(self) -> String {
        let sent = Command::new("kill").arg(self.process.id().to_string()).status();
        assert!(sent.expect("there is a `kill`").success());
        log(self.process)
    }
}

#[test]
fn the_soft_limit_is_raised_to_the_hard_one() {
    let server = start("ulimit -Sn 50; ulimit -Hn 900").expect("it starts");
    assert_eq!(server.limits(), [900, 900]);
    let found = || Client::new(server.address).get("/v1/status").expect(200)["findings"].clone();
    wait_until("the status has the warning", || {
        found()[0]["text"].as_str().is_some_and(|text| text.contains("file descriptors is 900"))
    });
    let log = server.end();
    assert!(log.contains("the limit of file descriptors is 900"), "{log}");
}

#[test]
fn more_streams_than_the_usual_soft_limit_leave_probes_and_requests_answered() {
    // The other ends are in this process.
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).expect("it may be raised");
    let server = start("ulimit -Sn 1024").expect("it starts");
    let mut client = Client::new(server.address);
    client.put("/v1/leaderboards/b", &json!({})).expect(201);
    let watch = Request::new("GET", "/v1/leaderboards/b/events");
    let open = |_| EventStream::open(server.address, &watch).expect("a stream opens");
    let streams: Vec<EventStream> = (0..STREAMS).map(open).collect();
    for probe in ["/healthz", "/readyz"] {
        assert_eq!(Client::new(server.address).get(probe).status, 200, "{probe}");
    }
    let score = json!({"player": "ann", "score": 1});
    Client::new(server.address).post("/v1/leaderboards/b/scores", &score).expect(200);
    drop(streams);
    assert!(!server.end().contains("Too many open files"));
}

#[test]
fn a_start_without_enough_descriptors_says_so() {
    let log = start("ulimit -n 40").err().expect("it does not start");
    assert!(log.contains("the limit of file descriptors is 40, and a server needs"), "{log}");
}

#[test]
fn clients_that_take_every_connection_leave_descriptors_for_health_and_the_store() {
    let server = start("ulimit -n 256").expect("it starts");
    let crowd: Vec<TcpStream> = (0..400).filter_map(|_| TcpStream::connect(server.address).ok()).collect();
    let started = Instant::now();
    let ask = |request: &Request| {
        let mut client = Client::new(server.address).with_patience(Duration::from_millis(500));
        client.try_send(request).map(|answer| answer.status)
    };
    while ask(&Request::new("GET", "/healthz")).ok() != Some(200) {
        assert!(started.elapsed() < GIVE_UP, "no health check is answered");
    }
    let said = std::fs::read_to_string(server.data.path().join("server.json")).expect("it is announced");
    let said: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    let key = format!("tally_local_{}", said["token"].as_str().expect("a token"));
    let put = Request::new("PUT", "/v1/leaderboards/b").json(&json!({})).key(&key);
    while !matches!(ask(&put).ok(), Some(200 | 201)) {
        assert!(started.elapsed() < GIVE_UP, "nothing is stored");
    }
    drop(crowd);
    while server.refused("full") < 1.0 {
        assert!(started.elapsed() < GIVE_UP, "refused connections are not counted");
    }
    assert!(!server.end().contains("Too many open files"), "the store lacked one");
}

#[test]
fn a_connection_without_a_descriptor_is_told_and_later_ones_are_served() {
    let server = start("ulimit -n 900").expect("it starts");
    let folder = format!("/proc/{}/fd", server.process.id());
    let is_open = |number: u64| std::fs::symlink_metadata(format!("{folder}/{number}")).is_ok();
    let free = (0..900).find(|number| !is_open(*number)).expect("not all are open");
    server.set_limit(free);
    let mut stream = TcpStream::connect(server.address).expect("it listens");
    stream.set_read_timeout(Some(GIVE_UP)).expect("a socket");
    let mut said = String::new();
    stream.read_to_string(&mut said).expect("it is told and closed");
    assert!(said.starts_with("HTTP/1.1 503 "), "{said}");
    server.set_limit(900);
    let mut stream = TcpStream::connect(server.address).expect("it listens");
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").expect("it is open");
    said.clear();
    stream.read_to_string(&mut said).expect("it answers");
    assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
    assert!(server.refused("descriptors") >= 1.0);
    assert!(server.end().contains("accept: a connection is refused"));
}
