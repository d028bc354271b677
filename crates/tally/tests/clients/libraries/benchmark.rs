//! `redis-benchmark`: it runs through without an error, and the data that it wrote is present. Its measurements are not checked.

use super::{TALLY, run};
use std::process::Command;
use tally_testkit::{RespClient, TestTally};
use tally_wire::resp::Reply;

const REQUESTS: i64 = 4_000;
const MEMBERS: u64 = 500;

fn benchmark(server: &TestTally, args: &[&str]) -> String {
    let mut command = Command::new("redis-benchmark");
    let resp = server.resp();
    command.args(["-h", &resp.ip().to_string(), "-p", &resp.port().to_string()]);
    command.args(["-n", &REQUESTS.to_string(), "-r", &MEMBERS.to_string(), "-c", "20", "-P", "16", "--csv"]);
    // It ends with an error as soon as one reply is one.
    run(command.args(args).env_remove("REDISCLI_AUTH"), "")
}

#[test]
fn its_tests_of_sorted_sets_and_commands_of_our_own() {
    let server = TestTally::start(TALLY);
    let table = benchmark(&server, &["-t", "ping,zadd,zpopmin"]);
    let tests: Vec<&str> = table.lines().skip(1).filter_map(|line| line.split('"').nth(1)).collect();
    assert_eq!(tests, ["PING_INLINE", "PING_MBULK", "ZADD", "ZPOPMIN"], "{table}");
    let mut client = RespClient::connect(server.resp());
    assert_eq!(client.call(&["LB.CREATE", "sums", "UPDATE", "sum"]), Reply::Simple(b"OK".to_vec()));
    for protocol in [None, Some("-3")] {
        let with = |args: &[&'static str]| -> Vec<&'static str> {
            protocol.into_iter().chain(args.iter().copied()).collect()
        };
        benchmark(&server, &with(&["ZINCRBY", "counted", "1", "m__rand_int__"]));
        benchmark(&server, &with(&["LB.SUBMIT", "sums", "p__rand_int__", "1"]));
        benchmark(&server, &with(&["LB.AROUND", "sums", "p__rand_int__", "5", "5"]));
        benchmark(&server, &with(&["ZREVRANGE", "counted", "0", "9", "WITHSCORES"]));
    }
    for board in ["counted", "sums"] {
        let Reply::Array(all) = client.call(&["ZRANGE", board, "0", "-1", "WITHSCORES"]) else {
            panic!("a range is an array")
        };
        let sum: i64 = all.iter().skip(1).step_by(2).map(number).sum();
        assert_eq!(sum, 2 * REQUESTS, "each request of `{board}` once");
    }
}

fn number(reply: &Reply) -> i64 {
    let Reply::Bulk(text) = reply else { panic!("{reply:?} is no score") };
    String::from_utf8_lossy(text).parse().expect("it is a number")
}
