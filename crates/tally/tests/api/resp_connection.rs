//! The edges of a connection of the Redis protocol: bounds, wrong bytes, long pipelines, silence, loading.
//!
//! Every bound that can be set is set so low that a test reaches it at once; nothing here is measured. Not here:
//! permissions (`resp_permissions.rs`), the end of the server (`resp_kill.rs`).

use crate::TALLY;
use serde_json::{Value, json};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use tally_testkit::{GIVE_UP, RespClient, TestTally, wait_until};
use tally_wire::resp::{Replies, Reply, command};

fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

fn connect(server: &TestTally) -> RespClient {
    RespClient::connect(server.resp())
}

/// The replies to these bytes until the server closes.
#[track_caller]
fn until_closed(server: &TestTally, bytes: &[u8]) -> String {
    let mut client = connect(server);
    client.send_bytes(bytes);
    String::from_utf8(client.read_to_end()).expect("it is text")
}

/// The number of connections, by one more that reads it.
fn connections(server: &TestTally) -> usize {
    let Reply::Bulk(text) = connect(server).call(&words("INFO clients")) else { panic!("it is text") };
    let text = String::from_utf8(text).expect("it is text");
    let count = text.lines().find_map(|line| line.strip_prefix("connected_clients:"));
    count.expect("the field is there").parse::<usize>().expect("a number") - 1
}

#[test]
fn lines_are_commands_as_well() {
    let server = TestTally::start(TALLY);
    let mut client = connect(&server);
    client.send_bytes(
        b"PING\r\n\r\n  \r\nECHO \"a \\x41\\n\" \nECHO 'it\\'s'\r\n*1\r\n$4\r\nPING\r\nECHO \"\"\r\n",
    );
    let wanted = ["+PONG\r\n", "$4\r\na A\n\r\n", "$4\r\nit's\r\n", "+PONG\r\n", "$0\r\n\r\n"];
    for wanted in wanted {
        assert_eq!(client.read_bytes(), wanted.as_bytes());
    }
    let told = until_closed(&server, b"PING\r\nECHO \"open\r\nPING\r\n");
    assert_eq!(told, "+PONG\r\n-ERR Protocol error: unbalanced quotes in request\r\n");
    let told = until_closed(&server, &[b'x'; (64 << 10) + 1]);
    assert_eq!(told, "-ERR Protocol error: too big inline request\r\n");
}

#[test]
fn bytes_that_are_no_command_close() {
    let server = TestTally::start(TALLY);
    let rows: [(&[u8], &str); 8] = [
        (b"*1\r\n+PING\r\n", "expected '$', got '+'"),
        (b"*x\r\n", "invalid multibulk length"),
        (b"*1048577\r\n", "invalid multibulk length"),
        (b"*1\r\n$x\r\n", "invalid bulk length"),
        (b"*1\r\n$-1\r\n", "invalid bulk length"),
        (b"*2\r\n$4\r\nECHO\r\n$524289\r\n", "invalid bulk length"),
        (b"*1\r\n$99999999999999999999\r\n", "invalid bulk length"),
        (b"*99999999999999999999\r\n", "invalid multibulk length"),
    ];
    for (bytes, why) in rows {
        // Earlier commands are answered, later ones are not.
        let all = [b"*3\r\n$7\r\nZINCRBY\r\n".as_slice(), b"$1\r\nk\r\n$1\r\n1\r\n"].concat();
        let told = until_closed(&server, &[b"PING\r\n", bytes, b"PING\r\n", &all].concat());
        assert_eq!(told, format!("+PONG\r\n-ERR Protocol error: {why}\r\n"), "{}", bytes.escape_ascii());
    }
    // It has no effect, and an empty or a negative number of arguments is no command.
    let mut client = connect(&server);
    client.send_bytes(b"*0\r\n*-1\r\n*2\r\n$6\r\nEXISTS\r\n$1\r\nk\r\n");
    assert_eq!(client.read(), Reply::Integer(0));
}

#[test]
fn http_and_tls_are_not_answered() {
    let server = TestTally::start(TALLY);
    for method in ["POST", "PATCH", "PUT", "DELETE", "OPTIONS", "GET"] {
        let request =
            format!("{method} /v1/leaderboards/b/scores HTTP/1.1\r\nHost: x\r\n\r\nZADD b 1 ann\r\n");
        assert_eq!(until_closed(&server, request.as_bytes()), "", "{method}");
    }
    assert_eq!(until_closed(&server, b"\x16\x03\x01\x02\x00\x01\nZADD b 1 ann\r\n"), "");
    assert_eq!(connect(&server).call(&words("EXISTS b")), Reply::Integer(0));
    // A browser that sends a form to this port does not get far either, and the service goes on.
    assert_eq!(connect(&server).call(&["PING"]), Reply::Simple(b"PONG".to_vec()));
}

#[test]
fn before_a_key_is_presented_little_is_taken() {
    let server = TestTally::start(TALLY);
    let made = server.local().post("/v1/keys", &json!({"role": "server"})).expect(201);
    let key = made["key"].as_str().expect("it is shown once");
    let wrong = |args: &[&str]| {
        let mut out = Vec::new();
        command(args, &mut out);
        until_closed(&server, &out)
    };
    let stranger = until_closed(&server, b"HELO there\r\nPING\r\n");
    assert!(
        stranger.starts_with("-ERR unknown command 'HELO'") && stranger.lines().count() == 1,
        "{stranger}"
    );
    let many = ["ZADD", "k", "1", "a", "1", "b", "1", "c", "1", "d", "1", "e"];
    assert_eq!(wrong(&many[..11]), "-ERR Protocol error: unauthenticated multibulk length\r\n");
    // Its head is enough; the rest would only be discarded.
    let told = until_closed(&server, b"*2\r\n$4\r\nAUTH\r\n$16385\r\n");
    assert_eq!(told, "-ERR Protocol error: unauthenticated bulk length\r\n");
    let mut client = connect(&server);
    let refused = Reply::Error(b"NOAUTH Authentication required.".to_vec());
    assert_eq!(client.call(&many[..10]), refused);
    // In the same write: the bytes behind the key have the wide bounds.
    let large = "y".repeat(400 << 10);
    let all: [&[&str]; 3] = [&["AUTH", key], &many, &["ECHO", &large]];
    let replies = client.pipeline(&all);
    assert_eq!(replies[0], Reply::Simple(b"OK".to_vec()));
    assert_eq!(replies[1..], [Reply::Integer(5), Reply::Bulk(large.into_bytes())]);
}

/// Many clients send a whole pipeline before they read the first reply.
#[test]
fn a_pipeline_may_be_sent_before_anything_is_read() {
    let server = TestTally::start(TALLY);
    let text = |at: usize| format!("{at}:{}", "z".repeat(1_024));
    let (mut out, count) = (Vec::new(), 10_000);
    for at in 0..count {
        // Replies as large as requests, and writes between them.
        match at % 4 {
            0 => command(&["ZADD", "k", &at.to_string(), &format!("m{}", at % 500)], &mut out),
            1 => command(&["ZSCORE", "k", &format!("m{}", (at - 1) % 500)], &mut out),
            _ => command(&["ECHO", &text(at)][..], &mut out),
        }
        command(&["ECHO", &text(at)], &mut out);
    }
    assert!(out.len() > 10 << 20);
    let mut client = connect(&server);
    client.send_bytes(&out);
    for at in 0..count {
        let wanted = match at % 4 {
            0 => Reply::Integer(i64::from(at < 500)),
            1 => Reply::Bulk((at - 1).to_string().into_bytes()),
            _ => Reply::Bulk(text(at).into_bytes()),
        };
        assert_eq!(client.read(), wanted, "{at}");
        assert_eq!(client.read(), Reply::Bulk(text(at).into_bytes()), "{at}");
    }
}

/// Byte by byte is slow and right.
#[test]
fn a_command_may_come_in_pieces() {
    let server = TestTally::start(TALLY);
    let mut client = connect(&server);
    let mut out = Vec::new();
    for line in ["ZADD k 1 ann 2 bob", "MULTI", "ZINCRBY k 5 ann", "EXEC", "ZREVRANGE k 0 -1"] {
        command(&words(line), &mut out);
    }
    for byte in out {
        client.send_bytes(&[byte]);
    }
    let bulk = |text: &str| Reply::Bulk(text.into());
    let wanted = [
        Reply::Integer(2),
        Reply::Simple(b"OK".to_vec()),
        Reply::Simple(b"QUEUED".to_vec()),
        Reply::Array(vec![bulk("6")]),
        Reply::Array(vec![bulk("ann"), bulk("bob")]),
    ];
    for wanted in wanted {
        assert_eq!(client.read(), wanted);
    }
}

#[test]
fn a_client_that_does_not_read_is_closed() {
    let server = TestTally::start_set(TALLY, &[("TALLY_RESP_WRITE_TIMEOUT", "2s")]);
    let text = "z".repeat(64 << 10);
    let mut out = Vec::new();
    (0..64).for_each(|_| command(&["ECHO", &text], &mut out));
    let mut stream = TcpStream::connect(server.resp()).expect("it listens");
    stream.set_write_timeout(Some(GIVE_UP)).expect("it is a socket");
    let mut sent = 0;
    // Until the server has closed: the bytes that it reads before that are bounded.
    while stream.write_all(&out).is_ok() {
        sent += out.len();
        assert!(sent < 1 << 30, "it takes everything");
    }
    wait_until("its connection is given back", || connections(&server) == 0);
    // Others never noticed.
    let mut reading = connect(&server);
    reading.send_bytes(&out);
    for _ in 0..64 {
        assert_eq!(reading.read(), Reply::Bulk(text.clone().into_bytes()));
    }
}

#[test]
fn an_idle_client_is_closed_where_that_is_set() {
    let server = TestTally::start_set(TALLY, &[("TALLY_RESP_IDLE_TIMEOUT", "300ms")]);
    let mut client = connect(&server);
    assert_eq!(client.call(&["PING"]), Reply::Simple(b"PONG".to_vec()));
    assert_eq!(client.read_to_end(), b"");
    // Half a command is no command.
    assert_eq!(until_closed(&server, b"*1\r\n$4\r\nPI"), "");
    wait_until("the connections are given back", || connections(&server) == 0);
}

#[test]
fn past_the_bound_a_connection_waits() {
    let server = TestTally::start_set(TALLY, &[("TALLY_RESP_CONNECTIONS_MAX", "2")]);
    let [mut first, mut second] = [connect(&server), connect(&server)];
    for client in [&mut first, &mut second] {
        assert_eq!(client.call(&["PING"]), Reply::Simple(b"PONG".to_vec()));
    }
    let mut third = TcpStream::connect(server.resp()).expect("the system's queue takes it");
    third.write_all(b"PING\r\n").expect("the system's queue takes it");
    third.set_read_timeout(Some(Duration::from_millis(200))).expect("it is a socket");
    let mut answer = [0; 7];
    let error = third.read_exact(&mut answer).expect_err("nobody serves it");
    assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
    assert_eq!(second.call(&["PING"]), Reply::Simple(b"PONG".to_vec()));
    drop(first);
    third.set_read_timeout(Some(GIVE_UP)).expect("it is a socket");
    third.read_exact(&mut answer).expect("it has the place");
    assert_eq!(&answer, b"+PONG\r\n");
}

/// Replies to a pipeline of these, on a new connection; nothing while the server does not listen yet.
fn ask(server: &TestTally, lines: &[&str]) -> Vec<Reply> {
    let mut stream = TcpStream::connect(server.resp()).expect("it listens");
    stream.set_read_timeout(Some(GIVE_UP)).expect("it is a socket");
    let mut out = Vec::new();
    lines.iter().for_each(|line| command(&words(line), &mut out));
    stream.write_all(&out).expect("it listens");
    let (mut replies, mut received, mut found) = (Replies::new(), Vec::new(), Vec::new());
    while found.len() < lines.len() {
        let mut part = [0; 16 << 10];
        let length = stream.read(&mut part).expect("it answers");
        assert_ne!(length, 0, "it closes");
        received.extend_from_slice(&part[..length]);
        while let Some(length) = replies.next(&received).expect("it is a reply") {
            found.push(Reply::parse(&received[..length]).expect("it is a reply"));
            received.drain(..length);
        }
    }
    found
}

#[test]
fn while_it_loads_it_says_so() {
    let mut server = TestTally::start(TALLY);
    let mut http = server.client();
    http.put("/v1/leaderboards/big", &json!({})).expect(201);
    for chunk in 0..20 {
        let row = |at: usize| json!({"board": "big", "player": format!("p{chunk}-{at}"), "score": at});
        let rows: Vec<Value> = (0..1_000).map(row).collect();
        http.post("/v1/scores/batch", &json!({"scores": rows})).expect(200);
    }
    server.terminate();
    let loading = Reply::Error(b"LOADING Redis is loading the dataset in memory".to_vec());
    let total = Reply::Integer(20_000);
    let mut seen = 0;
    for _ in 0..5 {
        server.launch();
        loop {
            let lines = ["ZCARD big", "PING", "ZADD big 1 x", "CLIENT ID", "SELECT 0", "INFO persistence"];
            let replies = ask(&server, &lines);
            if matches!(replies[0], Reply::Integer(_)) {
                break;
            }
            // Each by itself: it may have become ready in between.
            assert_eq!(replies[0], loading);
            assert!(replies[1] == loading || replies[1] == Reply::Simple(b"PONG".to_vec()), "{replies:?}");
            assert!(replies[2] == loading || matches!(replies[2], Reply::Integer(_)), "{replies:?}");
            // No caller is known and nothing is answered as long as keys are not loaded.
            let Reply::Bulk(info) = &replies[5] else {
                assert!(replies.iter().all(|reply| *reply == loading), "{replies:?}");
                continue;
            };
            seen += u32::from(info.windows(9).any(|part| part == b"loading:1"));
            assert!(matches!(replies[3], Reply::Integer(_)) || replies[3] == loading, "{replies:?}");
            assert!(replies[4] == Reply::Simple(b"OK".to_vec()) || replies[4] == loading, "{replies:?}");
            for line in ["HELLO 3", "RESET", "COMMAND COUNT", "CONFIG GET save", "CLIENT SETNAME x"] {
                let reply = &ask(&server, &[line])[0];
                assert!(!matches!(reply, Reply::Error(_)), "{line}: {reply:?}");
            }
        }
        server.wait_ready();
        connect(&server).call(&words("ZREM big x"));
        server.terminate();
    }
    assert!(seen > 0, "it was never seen loading");
    server.restart();
    assert_eq!(connect(&server).call(&words("ZCARD big")), total);
}

/// Connections go to different threads, and each sees at once the writes acknowledged on another.
#[test]
fn several_threads_serve() {
    let server = TestTally::start_set(TALLY, &[("TALLY_RESP_THREADS", "3")]);
    let mut clients: Vec<RespClient> = (0..7).map(|_| connect(&server)).collect();
    for round in 1..=3 {
        for at in 0..clients.len() {
            let one = clients[at].call(&words("ZINCRBY board 1 player"));
            let sum = (round - 1) * clients.len() + at + 1;
            assert_eq!(one, Reply::Bulk(sum.to_string().into_bytes()));
            let next = (at + 1) % clients.len();
            let seen = clients[next].call(&words("ZSCORE board player"));
            assert_eq!(seen, Reply::Bulk(sum.to_string().into_bytes()));
        }
        // A free slot is given again.
        clients.remove(0);
        clients.push(connect(&server));
    }
}
