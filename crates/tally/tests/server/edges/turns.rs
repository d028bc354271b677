//! A connection with much to do lets the other connections of its thread go on.
//!
//! Each test counts what another client was answered between the request and the first byte of its reply. Times depend on
//! the machine: they are printed for people, and not judged. Not here: the lane, and the locks of the rankings.

use super::{TALLY, fill_big};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use tally_testkit::{RespClient, TestTally};
use tally_wire::resp::{Reply, command};

/// A connection that kept its thread to itself would let one or two answers through: those before its request is read. A busy
/// machine lets the other client ask less often.
const ANSWERS_MIN: usize = 8;

/// How often another client gets this answer before the first byte of the reply. Other answers do not count.
#[track_caller]
#[expect(clippy::print_stderr, reason = "the figures are for the reader of a run")]
fn answers_before(
    server: &TestTally,
    (long, request): (&mut TcpStream, &[u8]),
    (asked, answer): (&[&str], &Reply),
) -> usize {
    let mut other = RespClient::connect(server.resp());
    other.call(&["PING"]);
    long.write_all(request).expect("it is open");
    long.set_nonblocking(true).expect("it is a socket");
    let (mut answers, mut longest) = (0, Duration::ZERO);
    loop {
        let begun = Instant::now();
        let counts = other.call(asked) == *answer;
        longest = longest.max(begun.elapsed());
        match long.peek(&mut [0]) {
            Ok(1) => break,
            Err(error) if error.kind() == ErrorKind::WouldBlock => answers += usize::from(counts),
            other => panic!("it is open: {other:?}"),
        }
    }
    eprintln!("{answers} answers beside it, the longest wait {longest:?}");
    answers
}

fn connect(server: &TestTally) -> TcpStream {
    let stream = TcpStream::connect(server.resp()).expect("it listens");
    stream.set_nodelay(true).expect("it is a socket");
    stream
}

#[test]
fn reads_behind_a_change_let_others_go_on() {
    let server = TestTally::start_set(TALLY, &[("TALLY_RESP_THREADS", "1")]);
    fill_big(&mut server.local());
    let mut all = Vec::new();
    command(&["ZADD", "other", "1", "a"], &mut all);
    (0..300).for_each(|_| command(&["ZRANGE", "big", "0", "-1"], &mut all));
    // From the publication of the change on, the connection waits for nothing.
    let changed = (&["ZSCORE", "other", "a"][..], &Reply::Bulk(b"1".into()));
    let answers = answers_before(&server, (&mut connect(&server), &all), changed);
    assert!(answers >= ANSWERS_MIN, "{answers}");
}

#[test]
fn a_long_transaction_lets_others_go_on() {
    const COMMANDS: usize = 200_000;
    let server = TestTally::start_set(TALLY, &[("TALLY_RESP_THREADS", "1")]);
    let mut long = connect(&server);
    let mut all = Vec::new();
    command(&["MULTI"], &mut all);
    (0..COMMANDS).for_each(|_| command(&["PING"], &mut all));
    let mut queued = vec![0; b"+OK\r\n".len() + COMMANDS * b"+QUEUED\r\n".len()];
    std::thread::scope(|scope| {
        let mut sending = long.try_clone().expect("it is a socket");
        scope.spawn(move || sending.write_all(&all).expect("it is open"));
        long.read_exact(&mut queued).expect("it answers");
    });
    let pong = (&["PING"][..], &Reply::Simple(b"PONG".to_vec()));
    let answers = answers_before(&server, (&mut long, b"*1\r\n$4\r\nEXEC\r\n"), pong);
    assert!(answers >= ANSWERS_MIN, "{answers}");
}
