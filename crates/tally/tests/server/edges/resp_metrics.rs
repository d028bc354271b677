//! The series of the RESP listener in `/metrics`: every command once, by its kind and its result.
//!
//! Not here: the replies of each command (`resp_differential`), and how long anything may take.

use super::TALLY;
use serde_json::json;
use std::collections::BTreeMap;
use tally_testkit::audit::metric;
use tally_testkit::{Client, RespClient, TestTally};
use tally_wire::resp::Reply;

/// Commands answered, by class and outcome, and how many bursts they came in.
fn counts(http: &mut Client) -> (BTreeMap<String, u64>, u64) {
    let text = http.get("/metrics").text();
    let (mut commands, mut bursts) = (BTreeMap::new(), None);
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("tally_resp_commands_total{class=\"") {
            let (class, rest) = rest.split_once("\",outcome=\"").expect("an outcome");
            let (outcome, count) = rest.split_once("\"} ").expect("a count");
            commands.insert(format!("{class} {outcome}"), count.parse().expect("a number"));
        }
        if let Some(count) = line.strip_prefix("tally_resp_seconds_count ") {
            bursts = Some(count.parse().expect("a number"));
        }
    }
    (commands, bursts.expect("a histogram of bursts"))
}

/// The counts of a step: reads, writes and others, each answered well and with an error; and bursts.
#[track_caller]
fn added(http: &mut Client, before: &mut (BTreeMap<String, u64>, u64), wanted: [u64; 6], bursts: u64) {
    let now = counts(http);
    let names = ["read ok", "read error", "write ok", "write error", "other ok", "other error"];
    assert_eq!(now.0.len(), names.len(), "{now:?}");
    let more = names.map(|name| now.0[name] - before.0[name]);
    assert_eq!((more, now.1 - before.1), (wanted, bursts));
    *before = now;
}

#[test]
fn every_command_is_counted_once_by_class_and_outcome() {
    let server = TestTally::start(TALLY);
    let (mut http, mut redis) = (server.local(), RespClient::connect(server.resp()));
    let mut before = counts(&mut http);
    assert!(before.0.values().all(|count| *count == 0) && before.1 == 0, "{before:?}");

    redis.call(&["ZADD", "z", "1", "a"]);
    added(&mut http, &mut before, [0, 0, 1, 0, 0, 0], 1);
    redis.call(&["ZADD", "z", "no number", "a"]);
    added(&mut http, &mut before, [0, 0, 0, 1, 0, 0], 1);
    redis.call(&["NOTHING"]);
    added(&mut http, &mut before, [0, 0, 0, 0, 0, 1], 1);
    redis.call(&["ZSCORE", "z"]);
    added(&mut http, &mut before, [0, 1, 0, 0, 0, 0], 1);
    redis.call(&["ZPOPMIN", "z"]);
    added(&mut http, &mut before, [0, 0, 1, 0, 0, 0], 1);
    redis.call(&["LB.CREATE", "board"]);
    added(&mut http, &mut before, [0, 0, 1, 0, 0, 0], 1);

    // Reads in front of a change and behind it, errors between them: in one piece, so in one burst.
    let pipeline: [&[&str]; 8] = [
        &["PING"],
        &["ZCARD", "z"],
        &["ZADD", "z", "1", "a", "2", "b"],
        &["ZSCORE", "z", "a"],
        &["ZINCRBY", "z", "words", "a"],
        &["ZRANK", "z"],
        &["NOTHING"],
        &["ZADD", "z", "3", "c"],
    ];
    redis.pipeline(&pipeline);
    added(&mut http, &mut before, [2, 1, 2, 1, 1, 1], 1);

    // A queued command is counted when it is done.
    redis.pipeline(&[&["MULTI"][..], &["ZADD", "z", "4", "d"], &["ZCARD", "z"]]);
    added(&mut http, &mut before, [0, 0, 0, 0, 1, 0], 1);
    redis.call(&["EXEC"]);
    added(&mut http, &mut before, [1, 0, 1, 0, 1, 0], 1);
    redis.pipeline(&[&["MULTI"][..], &["ZCARD"], &["EXEC"]]);
    added(&mut http, &mut before, [0, 1, 0, 0, 1, 1], 1);

    // Half a command is none, and no burst, until the rest has come.
    redis.send_bytes(b"*1\r\n$4\r\nPI");
    let mut other = RespClient::connect(server.resp());
    other.call(&["PING"]);
    added(&mut http, &mut before, [0, 0, 0, 0, 1, 0], 1);
    redis.send_bytes(b"NG\r\n");
    redis.read();
    added(&mut http, &mut before, [0, 0, 0, 0, 1, 0], 1);
}

/// Members of a board without an all-time ranking are those of its present period.
#[test]
fn a_board_without_all_time_has_the_members_of_its_present_period() {
    let server = TestTally::start(TALLY);
    let mut http = server.local();
    let years = json!({"name": "years", "schedule": "0 0 1 1 *"});
    let again = json!({"name": "again", "schedule": "0 0 1 1 *"});
    http.put("/v1/leaderboards/periods", &json!({"all_time": false, "periods": [years, again]})).expect(201);
    http.put("/v1/leaderboards/plain", &json!({})).expect(201);
    let members = |http: &mut Client| {
        let status = http.get("/v1/status").expect(200);
        let of = |board: &serde_json::Value| (board["board"].to_string(), board["members"].as_u64());
        let boards: Vec<_> = status["boards"].as_array().expect("boards").iter().map(of).collect();
        let text = http.get("/metrics").text();
        let line = text.lines().find_map(|line| line.strip_prefix("tally_board_members "));
        (boards, line.expect("a sum").to_owned())
    };
    let of = |periods, plain| {
        vec![("\"periods\"".to_owned(), Some(periods)), ("\"plain\"".to_owned(), Some(plain))]
    };
    assert_eq!(members(&mut http), (of(0, 0), "0".to_owned()));
    for (board, player) in [("periods", "a"), ("periods", "b"), ("plain", "a")] {
        http.post(&format!("/v1/leaderboards/{board}/scores"), &json!({"player": player, "score": 1}))
            .expect(200);
    }
    assert_eq!(members(&mut http), (of(2, 1), "3".to_owned()));
}

/// Writers change two boards in one transaction. Readers of both in one transaction see both changes or none, in every order,
/// with private reads between. The lane gets no reader.
#[test]
fn transactions_of_reads_see_one_state_and_need_no_lane() {
    let server = TestTally::start(TALLY);
    let mut http = server.local();
    let lane = |http: &mut Client| metric(&http.get("/metrics"), "tally_lane_requests_total");
    let connect = || RespClient::connect(server.resp());
    connect().pipeline(&[&["ZADD", "a", "0", "p"], &["ZADD", "b", "0", "p"]]);
    let before = lane(&mut http);
    let exec = |redis: &mut RespClient, commands: &[&[&str]]| {
        redis.pipeline(&[&[&["MULTI"][..]], commands].concat());
        let Reply::Array(replies) = redis.call(&["EXEC"]) else { panic!("it is a transaction") };
        replies
    };
    let reads: [&[&str]; 7] = [
        &["ZSCORE", "b", "p"],
        &["KEYS", "*"],
        &["EXISTS", "a", "b", "none"],
        &["DBSIZE"],
        &["PING"],
        &["LB.PERIODS", "a"],
        &["ZSCORE", "a", "p"],
    ];
    let backwards: Vec<&[&str]> = reads.iter().rev().copied().collect();
    exec(&mut connect(), &reads);
    assert_eq!(lane(&mut http), before, "no read is a request of the lane");
    std::thread::scope(|scope| {
        for reads in [&reads[..], &backwards] {
            scope.spawn(|| {
                let mut redis = connect();
                for _ in 0..400 {
                    let replies = exec(&mut redis, reads);
                    assert_eq!(replies.len(), 7);
                    assert_eq!(replies[0], replies[6], "both are of one state");
                }
            });
        }
        let mut redis = connect();
        for score in 1..400 {
            let score = score.to_string();
            // A new board now and then: a board that is read may be created meanwhile.
            let new = format!("new{score}");
            let writes: [&[&str]; 3] =
                [&["ZADD", "b", &score, "p"], &["ZADD", &new, "1", "p"], &["ZADD", "a", &score, "p"]];
            exec(&mut redis, &writes);
        }
    });
}

/// A client's pattern is not parsed again for each of many names: the ranking is locked meanwhile.
#[test]
fn a_long_pattern_is_no_work_for_each_name() {
    let server = TestTally::start(TALLY);
    let mut redis = RespClient::connect(server.resp());
    for chunk in 0..20 {
        let pairs = (0..1_000).flat_map(|at| ["1".to_owned(), format!("{:0120}", chunk * 1_000 + at)]);
        let add: Vec<String> = ["ZADD".into(), "big".into()].into_iter().chain(pairs).collect();
        assert_eq!(redis.call(&add), Reply::Integer(1_000));
    }
    let class = format!("*[{}]y", "0".repeat(500_000));
    let Reply::Array(scanned) = redis.call(&["ZSCAN", "big", "0", "MATCH", &class, "COUNT", "100000"]) else {
        panic!("it is answered");
    };
    assert_eq!(scanned[1], Reply::Array(Vec::new()));
    for command in [&["KEYS", &class][..], &["CONFIG", "GET", &class]] {
        assert_eq!(redis.call(command), Reply::Array(Vec::new()));
    }
}
