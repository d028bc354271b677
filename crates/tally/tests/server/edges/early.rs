//! Answers that come before their request was read to its end: the client gets them, and knows whether its connection goes on.
//!
//! Clients such as those of Python and Node send head and body in two packets. Not here: rejections (`bad_input`).

use super::{TALLY, key};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use tally_testkit::GIVE_UP;
use tally_testkit::TestTally;

/// Long enough that a server answers the head alone, if it does.
const BETWEEN: Duration = Duration::from_millis(150);

/// Requests that are rejected by their head, as a caller with a reader's key.
const REFUSED: [(&str, &str, u16); 6] = [
    ("POST /v1/leaderboards/b/scores", "Authorization: Bearer tally_none", 401),
    ("POST /v1/leaderboards/b/scores", "", 403),
    ("POST /nothing", "", 404),
    ("POST /healthz", "", 405),
    ("POST /v1/leaderboards", "", 405),
    ("POST /auth/signin", "Content-Type: text/plain", 415),
];

fn connect(server: &TestTally) -> TcpStream {
    let stream = TcpStream::connect(server.address()).expect("it listens");
    stream.set_nodelay(true).expect("a socket");
    stream.set_read_timeout(Some(GIVE_UP)).expect("a socket");
    stream
}

fn head(line: &str, headers: &str, key: &str, length: usize) -> String {
    let auth =
        if headers.starts_with("Authorization") { "" } else { &format!("Authorization: Bearer {key}\r\n") };
    let headers = if headers.is_empty() { "" } else { &format!("{headers}\r\n") };
    format!("{line} HTTP/1.1\r\nHost: x\r\n{auth}{headers}Content-Length: {length}\r\n\r\n")
}

/// The head of the next answer; its body is read.
#[track_caller]
fn answer(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("there is an answer");
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("it is text").to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.expect("its length").parse().expect("a number")];
    stream.read_exact(&mut body).expect("there is a body");
    head
}

/// Keys exist, so that a key is needed.
fn world() -> (TestTally, String) {
    let server = TestTally::start(TALLY);
    let reader = key(&mut server.local(), "reader");
    (server, reader)
}

#[test]
fn behind_a_small_body_the_connection_goes_on() {
    let (server, reader) = world();
    for (line, headers, status) in REFUSED {
        let mut stream = connect(&server);
        stream.write_all(head(line, headers, &reader, 1_000).as_bytes()).expect("it listens");
        std::thread::sleep(BETWEEN);
        stream.write_all(&[b' '; 1_000]).expect("it is open");
        let told = answer(&mut stream);
        assert!(told.starts_with(&format!("http/1.1 {status} ")), "{line}: {told}");
        assert!(!told.contains("connection: close"), "{line}: {told}");
        stream.write_all(head("GET /v1/leaderboards", "", &reader, 0).as_bytes()).expect("it goes on");
        assert!(answer(&mut stream).starts_with("http/1.1 200 "), "{line}");
    }
}

#[test]
fn a_client_that_goes_on_writing_reads_why_it_was_refused() {
    let (server, reader) = world();
    let too_large = ("POST /auth/signin", "Content-Type: application/json", 413);
    for ((line, headers, status), length) in
        REFUSED.map(|row| (row, 1 << 20)).into_iter().chain([(too_large, 3 << 20), (too_large, 30 << 20)])
    {
        let mut stream = connect(&server);
        stream.write_all(head(line, headers, &reader, length).as_bytes()).expect("it listens");
        for _ in 0..length >> 16 {
            stream.write_all(&[b' '; 1 << 16]).expect("it reads on");
            std::thread::sleep(Duration::from_millis(1));
        }
        let told = answer(&mut stream);
        assert!(told.starts_with(&format!("http/1.1 {status} ")), "{line}: {told}");
        assert!(told.contains("connection: close"), "{line}: {told}");
        assert_eq!(stream.read(&mut [0; 1]).expect("it closes in peace"), 0, "{line}");
    }
}

/// A client that waits for a `100 Continue` before its body is not kept waiting.
#[test]
fn a_body_that_was_not_asked_for_is_not_waited_for() {
    let (server, reader) = world();
    for (line, headers, status) in REFUSED {
        let headers =
            format!("{headers}{}Expect: 100-continue", if headers.is_empty() { "" } else { "\r\n" });
        let mut stream = connect(&server);
        stream.write_all(head(line, &headers, &reader, 1_000).as_bytes()).expect("it listens");
        let told = answer(&mut stream);
        assert!(told.starts_with(&format!("http/1.1 {status} ")), "{line}: {told}");
        assert!(told.contains("connection: close"), "{line}: {told}");
    }
}

/// A small body is waited for, but not for ever; and the length of one in chunks is known at its end only.
#[test]
fn behind_a_body_that_is_not_read_to_its_end_the_connection_closes() {
    let (server, reader) = world();
    // All wait for their bodies at once.
    let mut waiting = REFUSED.map(|(line, headers, _)| {
        let mut stream = connect(&server);
        stream.write_all(head(line, headers, &reader, 1_000).as_bytes()).expect("it listens");
        stream
    });
    for ((line, _, status), stream) in REFUSED.iter().zip(&mut waiting) {
        let told = answer(stream);
        assert!(told.starts_with(&format!("http/1.1 {status} ")), "{line}: {told}");
        assert!(told.contains("connection: close"), "{line}: {told}");
    }
    for (length, closes) in [(60 << 10, false), (70 << 10, true)] {
        let chunk = format!("{length:x}\r\n{}\r\n0\r\n\r\n", " ".repeat(length));
        let head = head("POST /nothing", "", &reader, 0);
        let head = head.replace("Content-Length: 0", "Transfer-Encoding: chunked");
        let mut stream = connect(&server);
        stream.write_all(format!("{head}{chunk}").as_bytes()).expect("it reads on");
        let told = answer(&mut stream);
        assert!(told.starts_with("http/1.1 404 "), "{told}");
        assert_eq!(told.contains("connection: close"), closes, "{length}: {told}");
    }
}
