//! Idle connections: on both protocols, from many addresses, silent, unread, or a byte at a time.
//!
//! Each test takes every connection there is, and then sends a request as a caller with permission. Times are set short; an
//! answer that does not come is a fault, and how long one takes is not measured.

use super::{TALLY, fill_big, key};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};
use tally_testkit::{Client, GIVE_UP, Request, TestTally};

const POLL_PAUSE: Duration = Duration::from_millis(20);
/// How long an answer may take before another connection is tried.
const ANSWERED: Duration = Duration::from_millis(500);
/// How long it may take where no other connection is tried. A silent client stays for longer by default.
const ANSWERED_AT_ONCE: Duration = Duration::from_secs(8);
/// The time of a server for a key, a head or a reader: short for a test, and longer than a busy machine needs to send one.
const IN_TIME: &str = "2s";

/// A connection from an address of the loopback range.
fn from(last: u8, address: SocketAddr) -> TcpStream {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        socket.bind((Ipv4Addr::new(127, 0, 0, last), 0).into()).expect("the address is this machine's");
        let stream = socket.connect(address).await.expect("it listens").into_std().expect("a socket");
        stream.set_nonblocking(false).expect("a socket");
        stream.set_read_timeout(Some(GIVE_UP)).expect("a socket");
        stream
    })
}

/// So many connections, each from the next of several addresses.
fn crowd(count: u8, address: SocketAddr) -> Vec<TcpStream> {
    (0..count).map(|at| from(2 + at % 7, address)).collect()
}

/// Repeats on new connections until there is an answer.
#[track_caller]
fn insist(what: &str, mut ask: impl FnMut() -> bool) {
    let started = Instant::now();
    while !ask() {
        assert!(started.elapsed() < GIVE_UP, "{what}");
        std::thread::sleep(POLL_PAUSE);
    }
}

/// Whether a client with this key gets an answer, on a connection of its own.
fn pings(address: SocketAddr, key: &str, patience: Duration) -> bool {
    let mut stream = from(100, address);
    stream.set_read_timeout(Some(patience)).expect("a socket");
    let said = stream.write_all(format!("AUTH {key}\r\nPING\r\n").as_bytes());
    let mut answer = [0; 12];
    said.is_ok() && stream.read_exact(&mut answer).is_ok() && &answer == b"+OK\r\n+PONG\r\n"
}

/// Whether a request on a new connection gets this answer.
fn answers(address: SocketAddr, target: &str, key: Option<&str>, status: u16) -> bool {
    answers_in(ANSWERED, address, target, key) == Some(status)
}

/// The answer to a request on a new connection, if it comes in this time.
fn answers_in(patience: Duration, address: SocketAddr, target: &str, key: Option<&str>) -> Option<u16> {
    let mut client = Client::new(address).with_patience(patience);
    if let Some(key) = key {
        client = client.with_key(key);
    }
    client.try_send(&Request::new("GET", target)).ok().map(|answer| answer.status)
}

/// Writes one byte after the other on each until all are closed.
#[track_caller]
fn drip(mut open: Vec<TcpStream>, bytes: &[u8]) {
    let started = Instant::now();
    for byte in bytes.iter().cycle() {
        open.retain_mut(|stream| stream.write_all(&[*byte]).is_ok());
        if open.is_empty() {
            return;
        }
        assert!(started.elapsed() < GIVE_UP, "{} are still open", open.len());
        std::thread::sleep(POLL_PAUSE);
    }
}

#[test]
fn a_stranger_must_present_a_key_in_time() {
    let settings = [("TALLY_RESP_CONNECTIONS_MAX", "9"), ("TALLY_RESP_AUTH_TIMEOUT", IN_TIME)];
    let server = TestTally::start_set(TALLY, &settings);
    let key = key(&mut server.local(), "reader");
    let _silent = crowd(30, server.resp());
    insist("places are free again", || pings(server.resp(), &key, ANSWERED));
    // It may send anything, as slowly as it likes, except a key.
    drip(crowd(5, server.resp()), b"PING\r\n");
    // Its answer may not be read either.
    let mut unread = from(2, server.resp());
    let mut sent = 0;
    while unread.write_all(&b"PING\r\n".repeat(10_000)).is_ok() {
        sent += 60_000;
        assert!(sent < 1 << 30, "it takes everything");
    }
    // A connection that has presented one may be silent.
    let mut known = from(3, server.resp());
    known.write_all(format!("AUTH {key}\r\n").as_bytes()).expect("it listens");
    known.read_exact(&mut [0; 5]).expect("it answers");
    let _silent = crowd(5, server.resp());
    insist("their places are free again", || pings(server.resp(), &key, ANSWERED));
    known.write_all(b"PING\r\n").expect("it is open");
    let mut answer = [0; 7];
    known.read_exact(&mut answer).expect("it is open");
    assert_eq!(&answer, b"+PONG\r\n");
}

#[test]
fn a_head_must_arrive_in_time() {
    let settings = [("TALLY_HTTP_CONNECTIONS_MAX", "9"), ("TALLY_HTTP_HEAD_TIMEOUT", IN_TIME)];
    let server = TestTally::start_set(TALLY, &settings);
    let key = key(&mut server.local(), "reader");
    let reads = || answers(server.address(), "/v1/leaderboards", Some(&key), 200);
    let _silent = crowd(30, server.address());
    insist("places of silent clients are free again", reads);
    drip(crowd(5, server.address()), b"x");
    // A connection with an answer that then is silent is one of them.
    let mut idle = crowd(9, server.address());
    for stream in &mut idle {
        let asked = stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert!(asked.is_ok() && stream.read(&mut [0; 64]).is_ok_and(|some| some > 0));
    }
    insist("places of idle clients are free again", reads);
}

#[test]
fn a_command_must_grow() {
    let server = TestTally::start_set(TALLY, &[("TALLY_RESP_COMMAND_TIMEOUT", "400ms")]);
    let mut silent = from(2, server.resp());
    silent.write_all(b"*2\r\n$4\r\nECHO\r\n$400000\r\nxxx").expect("it listens");
    assert_eq!(silent.read(&mut [0; 1]).expect("it closes"), 0);
    let mut dripping = from(2, server.resp());
    dripping.write_all(b"*2\r\n$4\r\nECHO\r\n$400000\r\n").expect("it listens");
    drip(vec![dripping], b"x");
    // Whole commands may come as slowly as they like.
    let mut slow = from(2, server.resp());
    for _ in 0..40 {
        slow.write_all(b"PING\r\n").expect("it is open");
        slow.read_exact(&mut [0; 7]).expect("it answers");
        std::thread::sleep(POLL_PAUSE);
    }
}

#[test]
fn a_client_that_does_not_read_loses_its_place() {
    let settings = [
        ("TALLY_HTTP_CONNECTIONS_MAX", "9"),
        ("TALLY_HTTP_WRITE_TIMEOUT", IN_TIME),
        ("TALLY_RESP_CONNECTIONS_MAX", "9"),
        ("TALLY_RESP_WRITE_TIMEOUT", IN_TIME),
    ];
    let server = TestTally::start_set(TALLY, &settings);
    fill_big(&mut server.local());
    let key = key(&mut server.local(), "reader");
    let page = Request::new("GET", "/v1/leaderboards/big/scores?limit=1000").key(&key).bytes("127.0.0.1");
    let read = format!("AUTH {key}\r\n{}", "ZRANGE big 0 -1\r\n".repeat(100));
    for (address, asked) in [(server.address(), page.repeat(400)), (server.resp(), read.into_bytes())] {
        let mut unread = crowd(9, address);
        let mut dripping = unread.split_off(5);
        for stream in unread.iter_mut().chain(&mut dripping) {
            stream.write_all(&asked).expect("it takes what is asked");
        }
        insist("a place is free again", || {
            // A byte now and then is no reading.
            for stream in &mut dripping {
                let _closed = stream.read(&mut [0; 1]);
            }
            if address == server.resp() {
                pings(address, &key, ANSWERED)
            } else {
                answers(address, "/v1/leaderboards", Some(&key), 200)
            }
        });
    }
}

#[test]
fn an_address_has_a_part_of_the_connections() {
    let server = TestTally::start_set(TALLY, &[("TALLY_CONNECTIONS_LOOPBACK_MAX", "4")]);
    let key = key(&mut server.local(), "reader");
    for address in [server.resp(), server.address()] {
        let mut crowd: Vec<TcpStream> = (0..4).map(|_| from(2, address)).collect();
        let mut text = String::new();
        from(2, address).read_to_string(&mut text).expect("it is told and closed");
        assert!(
            text == "-ERR max number of clients reached\r\n" || text.starts_with("HTTP/1.1 503 "),
            "{text}"
        );
        let mut other = from(3, address);
        other.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").expect("it listens");
        let closed = other.read(&mut [0; 4]).expect("it is served");
        assert_eq!(closed == 0, address == server.resp(), "another address has its own part");
        // Its slot is free again when a connection has ended.
        crowd.pop();
        insist("the place is free again", || {
            let mut again = from(2, address);
            again.set_read_timeout(Some(Duration::from_millis(100))).expect("a socket");
            again.read(&mut [0; 1]).is_err()
        });
    }
    assert!(pings(server.resp(), &key, ANSWERED_AT_ONCE));
}

/// Thirty slots for HTTP, of which three are kept for this machine and three for health checks.
#[test]
fn health_and_this_machine_are_answered_when_all_connections_are_taken() {
    let settings = [("TALLY_HTTP_CONNECTIONS_MAX", "30"), ("TALLY_RESP_CONNECTIONS_MAX", "30")];
    let server = TestTally::start_set(TALLY, &settings);
    let reader = key(&mut server.local(), "reader");
    let address = server.address();
    let silent = crowd(30, address);
    // Some of the crowd have taken the reserved connections, and lose them when they send nothing.
    insist("a place is kept for health checks", || answers(address, "/healthz", None, 200));
    insist("ready is told, too", || answers(address, "/readyz", None, 200));
    insist("nothing else is", || answers(address, "/v1/leaderboards", Some(&reader), 503));
    let token = format!("tally_local_{}", server.token());
    insist("this machine is answered", || answers(address, "/v1/keys", Some(&token), 200));
    drop(silent);
    insist("everybody is again", || answers(address, "/v1/leaderboards", Some(&reader), 200));

    // Of the Redis protocol the last are for this machine, as all are here.
    let silent = crowd(27, server.resp());
    assert!(pings(server.resp(), &reader, ANSWERED_AT_ONCE));
    drop(silent);
}

/// Operators have a listener of their own: its connections and its thread, and none of the other routes.
#[test]
fn operators_are_answered_when_all_connections_are_taken() {
    let mut server = TestTally::stopped(TALLY);
    server.set("TALLY_HTTP_CONNECTIONS_MAX", "30");
    server.set("TALLY_ADMIN_LISTEN", "127.0.0.1:0");
    let line = server.restart();
    let admin = line.split(' ').find_map(|word| word.strip_prefix("admin=")).expect("it says where");
    let admin: SocketAddr = admin.parse().expect("an address");
    let [reader, key] = ["reader", "admin"].map(|role| key(&mut server.local(), role));
    let silent = crowd(40, server.address());
    let operates = |path: &str, key: Option<&str>| answers_in(ANSWERED_AT_ONCE, admin, path, key);
    for path in ["/healthz", "/readyz"] {
        assert_eq!(operates(path, None), Some(200), "{path}");
    }
    for path in ["/metrics", "/v1/status", "/v1/keys", "/v1/audit", "/v1/webhooks"] {
        assert_eq!((operates(path, Some(&key)), operates(path, None)), (Some(200), Some(401)), "{path}");
    }
    let of_reader = ["/metrics", "/v1/keys"].map(|path| operates(path, Some(&reader)));
    assert_eq!(of_reader, [Some(200), Some(403)]);
    // Everything else is on the other listener.
    for path in ["/v1/leaderboards", "/v1/contests", "/v1/members", "/", "/docs", "/openapi.json"] {
        assert_eq!(operates(path, Some(&key)), Some(404), "{path}");
    }
    let metrics = Client::new(admin).with_key(&key).get("/metrics").text();
    assert!(metrics.contains(r#"protocol="operators""#), "its refused connections are counted");
    // Its own crowd does not reach the others.
    drop(silent);
    let _silent = crowd(100, admin);
    insist("the others are answered", || answers(server.address(), "/v1/leaderboards", Some(&reader), 200));
    insist("a place is kept for health checks", || answers(admin, "/healthz", None, 200));
}

/// A client that never begins its handshake has no longer on a reserved connection than one that sends no head.
#[test]
fn health_is_answered_when_silent_clients_have_all_encrypted_connections() {
    let mut server = TestTally::stopped(TALLY);
    let [ca, certificate, key] = ["ca.pem", "server.pem", "server-key.pem"].map(tally_testkit::tls::file);
    server.set("TALLY_HTTP_CONNECTIONS_MAX", "30");
    server.set("TALLY_TLS_CERTIFICATE", &certificate);
    server.set("TALLY_TLS_KEY", &key);
    let line = server.restart();
    let http = line.split(' ').find_map(|word| word.strip_prefix("http=")).expect("it says where");
    let url = format!("https://{http}/healthz");
    let _silent = crowd(30, http.parse().expect("an address"));
    insist("a place is kept for health checks", || {
        let asked = Command::new("curl").args(["-sS", "--max-time", "1", "--cacert", &ca, &url]).output();
        asked.expect("there is a `curl`").status.success()
    });
}
