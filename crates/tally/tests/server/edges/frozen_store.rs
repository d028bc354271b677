//! The memory of connections whose replies wait for a store that does not answer.
//!
//! Such a connection cannot close before its answer. So the bound holds once for open connections and once for those that
//! have to close. Not here: which of them has to close, see `resp/buffers.rs`.

use super::memory::{push, status};
use crate::TALLY;
use std::io::{Read, Write};
use std::net::TcpStream;
use tally_testkit::command::HUGE_PAGES;
use tally_testkit::{DatabaseKind, Proxy, RespClient, ScratchDatabase, TestTally};
use tally_wire::resp::{Reply, command};

const MIB: u64 = 1 << 20;
/// `resp.buffer_bytes_max`.
const BUFFERS: u64 = 16 * MIB;
/// Bytes of commands that each connection sends behind its change. Their buffer grows to twice as much.
const INPUT: usize = 6 << 20;
const CONNECTIONS: usize = 16;
const PLAYERS: usize = 2_000;
const NAME_BYTES: usize = 120;
/// Reads before the change: their replies are more than the buffers of the sockets hold.
const READS: usize = 60;
/// The reply of each: a head, and for each name its length and two ends of a line.
const REPLY_BYTES: usize = 7 + PLAYERS * (NAME_BYTES + 8);

/// Lets the server take commands behind a change that waits for the store. Returns the connection, if it is open.
fn wait_for_the_store(server: &TestTally, before: &[u8], behind: &[u8]) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(server.resp()).expect("it listens");
    stream.write_all(before).ok()?;
    // The server reads input while it cannot write replies, and does not run it yet.
    push(&mut stream, behind);
    // It writes two at a time, so none of them waits for the change.
    stream.read_exact(&mut vec![0; READS * REPLY_BYTES]).ok()?;
    Some(stream)
}

#[test]
#[expect(clippy::print_stderr, reason = "the figures are for the reader of a run")]
fn connections_that_wait_for_the_store_have_a_bound() {
    let database = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let proxy = Proxy::start(database.address());
    let url = database.create_database();
    let url = url.replace(&database.address().to_string(), &proxy.address().to_string());
    let most = BUFFERS.to_string();
    let settings =
        [("TALLY_STORE_URL", url.as_str()), ("TALLY_RESP_BUFFER_BYTES_MAX", most.as_str()), HUGE_PAGES];
    let mut server = TestTally::start_set(TALLY, &settings);
    server.allow("the store");
    let mut redis = RespClient::connect(server.resp());
    let pairs = (0..PLAYERS).flat_map(|at| [at.to_string(), format!("{at:0width$}", width = NAME_BYTES)]);
    let add: Vec<String> = ["ZADD".into(), "big".into()].into_iter().chain(pairs).collect();
    assert_eq!(redis.call(&add), Reply::Integer(PLAYERS as i64));

    let (mut before, mut behind) = (Vec::new(), Vec::new());
    (0..READS).for_each(|_| command(&["ZRANGE", "big", "0", "-1"], &mut before));
    command(&["ZADD", "big", "1", "new"], &mut before);
    let text = "x".repeat(500_000);
    (0..INPUT / text.len()).for_each(|_| command(&["ECHO", &text], &mut behind));

    proxy.freeze();
    let start = status(&server, "VmRSS");
    let waiting: Vec<TcpStream> =
        (0..CONNECTIONS).filter_map(|_| wait_for_the_store(&server, &before, &behind)).collect();
    let grown = status(&server, "VmHWM").saturating_sub(start);
    eprintln!("{} connections wait for the store, {} MiB more", waiting.len(), grown / MIB);
    assert!(waiting.len() < CONNECTIONS, "some were closed");
    // Each that waits has its commands and replies of the lane beside its counted buffers.
    assert!(grown < 6 * BUFFERS, "{} MiB", grown / MIB);
    proxy.pass();
    // The audit at the end wants no changes beside it: each change is answered, or its connection is closed.
    for mut stream in waiting {
        let _reply_or_end = stream.read(&mut [0]);
    }
    assert_eq!(redis.call(&["PING"]), Reply::Simple(b"PONG".to_vec()));
}
