//! Memory that a client can make the server hold: by its role, and before it has presented a key.
//!
//! Each test lets clients take what they can, while another one goes on writing, and looks at the most memory that the process
//! has had. The bounds of all clients together are set low; the ceilings are far above what the bounds allow, and far below
//! what was taken without them. The longest write of the other client is printed for people, and not checked.

use super::{TALLY, key};
use serde_json::json;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tally_testkit::command::HUGE_PAGES;
use tally_testkit::{Request, RespClient, SetAtEnd, TestTally, wait_until};
use tally_wire::resp::{Reply, command};

const MIB: u64 = 1 << 20;
/// Players of `big`, and the bytes of each one's name: a reply with all of them has some 2.6 MB.
const PLAYERS: usize = 20_000;
const NAME_BYTES: usize = 120;
/// What goes on writing must get so far, while the others take memory.
const WRITES_MIN: usize = 3;

/// The roles of callers; `None` is a caller without a key.
const CALLERS: [Option<&str>; 4] = [Some("reader"), Some("server"), Some("admin"), None];

pub(super) fn status(server: &TestTally, field: &str) -> u64 {
    let text = std::fs::read_to_string(server.data().join("server.json")).expect("it runs");
    let said: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let text = std::fs::read_to_string(format!("/proc/{}/status", said["pid"])).expect("it runs");
    let line = text.lines().find_map(|line| line.strip_prefix(field)).expect("the field is there");
    let kib = line.trim_start_matches(':').trim().trim_end_matches(" kB");
    kib.parse::<u64>().expect("a number") * 1_024
}

/// A server with the board `big`, and a key of each role.
fn filled(settings: &[(&str, &str)]) -> (TestTally, Vec<Option<String>>) {
    let server = TestTally::start_set(TALLY, &[settings, &[HUGE_PAGES]].concat());
    let mut redis = RespClient::connect(server.resp());
    for chunk in 0..PLAYERS / 1_000 {
        let name = |at: usize| format!("{:0width$}", chunk * 1_000 + at, width = NAME_BYTES);
        let pairs = (0..1_000).flat_map(|at| [at.to_string(), name(at)]);
        let add: Vec<String> = ["ZADD".into(), "big".into()].into_iter().chain(pairs).collect();
        assert_eq!(redis.call(&add), Reply::Integer(1_000));
    }
    let mut local = server.local();
    let keys = CALLERS.map(|role| role.map(|role| key(&mut local, role)));
    (server, keys.into())
}

/// A connection of the Redis protocol, with a key if there is one.
fn open(address: SocketAddr, key: Option<&String>) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_nodelay(true).expect("it is a socket");
    if let Some(key) = key {
        let mut auth = Vec::new();
        command(&["AUTH", key], &mut auth);
        stream.write_all(&auth).expect("it is open");
        stream.read_exact(&mut [0; 5]).expect("it answers");
    }
    stream
}

/// Writes until all is written, or no more is taken, or it is closed.
pub(super) fn push(stream: &mut TcpStream, mut bytes: &[u8]) {
    stream.set_write_timeout(Some(Duration::from_secs(3))).expect("it is a socket");
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(some) => bytes = &bytes[some..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// Does something while another client writes; returns the memory that it made the server take.
#[track_caller]
#[expect(clippy::print_stderr, reason = "the figures are for the reader of a run")]
fn grown(server: &TestTally, key: &str, what: &str, does: impl FnOnce()) -> u64 {
    let before = status(server, "VmRSS");
    let done = AtomicBool::new(false);
    let (writes, longest) = std::thread::scope(|scope| {
        let end = SetAtEnd::new(&done);
        let writing = scope.spawn(|| {
            let mut redis = RespClient::connect(server.resp());
            redis.call(&["AUTH", key]);
            let (mut writes, mut longest) = (0_usize, Duration::ZERO);
            while writes < WRITES_MIN || !done.load(Ordering::Relaxed) {
                let begun = Instant::now();
                let reply = redis.call(&["ZADD", "big", &writes.to_string(), "writer"]);
                longest = longest.max(begun.elapsed());
                assert!(matches!(reply, Reply::Integer(0 | 1)), "{reply:?}");
                writes += 1;
                std::thread::sleep(Duration::from_millis(1));
            }
            (writes, longest)
        });
        does();
        drop(end);
        writing.join().expect("writes go on")
    });
    let grown = status(server, "VmHWM").saturating_sub(before);
    eprintln!("{what}: {} MiB more; {writes} writes beside it, the longest {longest:?}", grown / MIB);
    grown
}

/// A case for people: what clients did, and with which key.
fn case(what: &str, role: Option<&str>) -> String {
    format!("{what}, {}", role.unwrap_or("no key"))
}

/// Each reply is whole, or says that there was no memory for it.
#[track_caller]
fn check_replies(replies: &[Reply]) {
    let too_large =
        |reply: &&Reply| matches!(reply, Reply::Error(text) if text.starts_with(b"ERR the replies"));
    let whole = |reply: &&Reply| matches!(reply, Reply::Array(all) if all.len() >= PLAYERS);
    let (whole, refused) = (replies.iter().filter(whole).count(), replies.iter().filter(too_large).count());
    assert_eq!(whole + refused, replies.len());
    assert!((10..30).contains(&whole), "as many as have room: {whole}");
}

#[test]
fn a_transaction_of_reads_has_a_bound() {
    let (server, keys) = filled(&[]);
    for (key, role) in keys.iter().zip(CALLERS).filter_map(|(key, role)| Some((key.as_ref()?, role))) {
        let what = case("a transaction of reads", role);
        let grown = grown(&server, keys[1].as_ref().expect("a server's"), &what, || {
            let mut redis = RespClient::connect(server.resp());
            redis.call(&["AUTH", key]);
            let reads = (0..300).map(|_| &["ZRANGE", "big", "0", "-1"][..]);
            let all: Vec<&[&str]> = [&["MULTI"][..]].into_iter().chain(reads).collect();
            redis.pipeline(&all);
            let Reply::Array(replies) = redis.call(&["EXEC"]) else { panic!("it is a transaction") };
            assert_eq!(replies.len(), 300);
            check_replies(&replies);
        });
        assert!(grown < 600 * MIB, "{} MiB", grown / MIB);
    }
}

#[test]
fn gathered_commands_have_a_bound() {
    let (server, keys) = filled(&[]);
    let key = keys[1].as_ref().expect("a server's");
    // Reads behind a change, and between two.
    for last in [&["PING"][..], &["ZADD", "other", "2", "a"]] {
        let what = format!("reads behind a change and before {}, server", last[0]);
        let grown = grown(&server, key, &what, || {
            let mut redis = RespClient::connect(server.resp());
            redis.call(&["AUTH", key]);
            let reads = (0..300).map(|_| &["ZRANGE", "big", "0", "-1"][..]);
            let first: &[&str] = &["ZADD", "other", "1", "a"];
            let all: Vec<&[&str]> = [first].into_iter().chain(reads).chain([last]).collect();
            check_replies(&redis.pipeline(&all)[1..301]);
        });
        assert!(grown < 600 * MIB, "{} MiB", grown / MIB);
    }
}

#[test]
fn one_reply_has_a_bound() {
    let (server, keys) = filled(&[]);
    let key = keys[0].as_ref().expect("a reader's");
    let mut redis = RespClient::connect(server.resp());
    redis.call(&["AUTH", key]);
    // A million members by chance, each with its name.
    let reply = redis.call(&["ZRANDMEMBER", "big", "-1000000"]);
    assert!(matches!(&reply, Reply::Error(text) if text.starts_with(b"ERR the replies")), "{reply:?}");
    assert_eq!(redis.call(&["ZCARD", "big"]), Reply::Integer(PLAYERS as i64));
}

#[test]
fn unfinished_commands_have_a_bound() {
    let (server, keys) = filled(&[("TALLY_RESP_BUFFER_BYTES_MAX", "134217728")]);
    let argument = [b"$524288\r\n".as_slice(), &[b'x'; 524_288], b"\r\n"].concat();
    let unfinished = [b"*1000\r\n".as_slice(), &argument.repeat(120)].concat();
    for (key, role) in keys.iter().zip(CALLERS) {
        let what = case("unfinished commands", role);
        let grown = grown(&server, keys[1].as_ref().expect("a server's"), &what, || {
            let mut open: Vec<TcpStream> = (0..10).map(|_| open(server.resp(), key.as_ref())).collect();
            std::thread::scope(|scope| {
                for stream in &mut open {
                    scope.spawn(|| push(stream, &unfinished));
                }
            });
        });
        assert!(grown < 400 * MIB, "{} MiB", grown / MIB);
    }
}

/// A transaction that is never run is held like an unfinished command.
#[test]
fn open_transactions_have_a_bound() {
    let (server, keys) = filled(&[("TALLY_RESP_BUFFER_BYTES_MAX", "134217728")]);
    let mut queued = Vec::new();
    command(&["MULTI"], &mut queued);
    let text = "x".repeat(500_000);
    (0..100).for_each(|_| command(&["ZSCORE", "big", &text], &mut queued));
    let what = case("open transactions", CALLERS[0]);
    let grown = grown(&server, keys[1].as_ref().expect("a server's"), &what, || {
        let mut open: Vec<TcpStream> = (0..12).map(|_| open(server.resp(), keys[0].as_ref())).collect();
        std::thread::scope(|scope| {
            for stream in &mut open {
                scope.spawn(|| push(stream, &queued));
            }
        });
    });
    assert!(grown < 400 * MIB, "{} MiB", grown / MIB);
}

#[test]
fn replies_that_are_not_read_have_a_bound() {
    let (server, keys) = filled(&[("TALLY_RESP_BUFFER_BYTES_MAX", "134217728")]);
    let mut reads = Vec::new();
    (0..4).for_each(|_| command(&["ZRANGE", "big", "0", "-1"], &mut reads));
    let all = [reads.repeat(4), b"PING\r\n".repeat(6 << 20)].concat();
    for (key, role) in keys.iter().zip(CALLERS) {
        let what = case("replies that are not read", role);
        let grown = grown(&server, keys[1].as_ref().expect("a server's"), &what, || {
            let mut open: Vec<TcpStream> = (0..12).map(|_| open(server.resp(), key.as_ref())).collect();
            std::thread::scope(|scope| {
                for stream in &mut open {
                    scope.spawn(|| push(stream, &all));
                }
            });
        });
        assert!(grown < 400 * MIB, "{} MiB", grown / MIB);
    }
}

#[test]
fn bodies_have_a_bound() {
    let (server, keys) = filled(&[("TALLY_HTTP_BODIES_BYTES_MAX", "33554432")]);
    let body = vec![b' '; 2 << 20];
    for (key, role) in keys.iter().zip(CALLERS) {
        let mut request = Request::new("POST", "/v1/scores/batch").body("application/json", body.clone());
        if let Some(key) = key {
            request = request.key(key);
        }
        let bytes = request.bytes("127.0.0.1");
        // Its last byte is missing, so that the server goes on holding it.
        let bytes = &bytes[..bytes.len() - 1];
        let what = case("bodies", role);
        let grown = grown(&server, keys[1].as_ref().expect("a server's"), &what, || {
            let mut open: Vec<TcpStream> =
                (0..150).map(|_| TcpStream::connect(server.address()).expect("it listens")).collect();
            for some in open.chunks_mut(10) {
                std::thread::scope(|scope| {
                    for stream in some {
                        scope.spawn(|| push(stream, bytes));
                    }
                });
            }
        });
        assert!(grown < 200 * MIB, "{} MiB", grown / MIB);
    }
}

/// Players of `rich`: a page with the profiles of all has some 3 MB.
const RICH: usize = 300;

/// A server with the board `rich`, and a key of each role.
fn rich(settings: &[(&str, &str)]) -> (TestTally, Vec<(&'static str, String)>, [Request; 2]) {
    let server = TestTally::start_set(TALLY, &[settings, &[HUGE_PAGES]].concat());
    let mut local = server.local();
    let avatar = format!("https://a.example/{}", "a".repeat(2_000));
    let profile =
        json!({"name": "n".repeat(256), "avatar_url": avatar, "metadata": {"x": "m".repeat(8_000)}});
    let players: Vec<String> = (0..RICH).map(|at| format!("p{at}")).collect();
    for player in &players {
        local.put(&format!("/v1/players/{player}"), &profile).expect(201);
    }
    local.put("/v1/leaderboards/rich", &json!({})).expect(201);
    let rows = players.iter().map(|player| json!({"board": "rich", "player": player, "score": 1}));
    local.post("/v1/scores/batch", &json!({"scores": rows.collect::<Vec<_>>()})).expect(200);
    let keys = CALLERS.into_iter().flatten().map(|role| (role, key(&mut local, role))).collect();
    let page = Request::new("GET", "/v1/leaderboards/rich/scores?limit=1000&expand=player");
    let among = Request::new("POST", "/v1/leaderboards/rich/among?expand=player");
    (server, keys, [page, among.json(&json!({"players": players}))])
}

/// A response is held until its client has read it, and profiles make responses large.
#[test]
fn responses_that_are_not_read_have_a_bound() {
    let (server, keys, requests) = rich(&[("TALLY_HTTP_RESPONSES_BYTES_MAX", "33554432")]);
    for (role, key) in &keys {
        for (what, request) in ["pages", "players among each other"].into_iter().zip(&requests) {
            let request = request.clone().key(key);
            // More on each connection than the buffers of its sockets hold.
            let bytes = request.bytes("127.0.0.1").repeat(3);
            let mut client = server.client().with_key(key);
            let (mut open, mut is_full) = (Vec::new(), false);
            let opened = || {
                let mut stream = TcpStream::connect(server.address()).expect("it listens");
                push(&mut stream, &bytes);
                stream
            };
            let what = case(&format!("{what} that are not read"), Some(*role));
            let grown = grown(&server, &keys[1].1, &what, || {
                // All of them ask at once, so most are refused. Further ones take what is left.
                open.extend((0..150).map(|_| opened()));
                for stream in &open {
                    stream.peek(&mut [0]).expect("it begins to answer");
                }
                is_full = (0..50).any(|_| {
                    open.push(opened());
                    let response = client.send(&request);
                    response.status == 503 && response.code() == "overloaded"
                });
            });
            assert!(grown < 300 * MIB, "{} MiB", grown / MIB);
            assert!(is_full, "further large ones are refused");
            // Small responses go on, and large ones when the others are given up.
            client.get("/v1/leaderboards/rich/scores?limit=1").expect(200);
            drop(open);
            wait_until("there is room again", || client.send(&request).status == 200);
        }
    }
}

#[test]
fn responses_that_were_read_leave_little_behind() {
    let (server, keys, [page, _]) = rich(&[]);
    let mut idle = Vec::new();
    let grown =
        grown(&server, &keys[1].1, &case("connections that have read a page", Some("reader")), || {
            for _ in 0..150 {
                let mut client = server.client().with_key(&keys[0].1);
                let read = client.send(&page).expect(200);
                assert_eq!(read["entries"].as_array().expect("a page").len(), RICH);
                idle.push(client);
            }
        });
    assert!(grown < 200 * MIB, "{} MiB", grown / MIB);
}
