//! The options of `ZRANGE` in every order and combination, to tally, to Redis and to Valkey.
//!
//! Which of two errors a server reports depends on the order in which it reads, so chance alone rarely meets each case. Not
//! here: bounds and scores, which the random commands have.

use super::text;
use crate::TALLY;
use tally_testkit::redis::{RedisKind, ScratchRedis};
use tally_testkit::resp::RespClient;
use tally_testkit::server::TestTally;
use tally_wire::resp::Reply;

const OPTIONS: [&[&str]; 7] = [
    &["BYSCORE"],
    &["BYLEX"],
    &["REV"],
    &["WITHSCORES"],
    &["LIMIT", "0", "-1"],
    &["LIMIT", "1", "1"],
    &["LIMIT", "0"],
];
/// Options in one command.
const OPTIONS_MAX: usize = 4;
/// Indexes, scores in both directions, and members.
const BOUNDS: [[&str; 2]; 4] = [["0", "1"], ["1", "0"], ["-", "+"], ["+", "-"]];

/// Every way to choose some of the options in some order.
fn orders() -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    let mut last = all.clone();
    for _ in 0..OPTIONS_MAX {
        let longer = |chosen: &Vec<usize>| {
            let others = (0..OPTIONS.len()).filter(|option| !chosen.contains(option));
            others.map(|option| [chosen.as_slice(), &[option]].concat()).collect::<Vec<_>>()
        };
        last = last.iter().flat_map(longer).collect();
        all.extend_from_slice(&last);
    }
    all
}

fn fill(client: &mut RespClient, protocol: &str) {
    client.call(&["HELLO", protocol]);
    client.call(&["FLUSHALL"]);
    client.call(&["ZADD", "key", "0", "a", "0", "b", "1", "c", "1", "d", "2", "e"]);
    client.call(&["ZADD", "lex", "0", "a", "0", "b", "0", "c", "0", "d"]);
}

#[test]
fn options_of_ranges_mean_and_exclude_what_they_do_in_redis() {
    let tally = TestTally::start(TALLY);
    let orders = orders();
    for (kind, protocol) in [(RedisKind::Redis7, "2"), (RedisKind::Valkey9, "3")] {
        let real = ScratchRedis::start(kind, &[]);
        let (mut ours, mut theirs) = (RespClient::connect(tally.resp()), RespClient::connect(real.address()));
        fill(&mut ours, protocol);
        fill(&mut theirs, protocol);
        for (key, [from, to]) in
            ["key", "lex", "missing"].into_iter().flat_map(|key| BOUNDS.map(|both| (key, both)))
        {
            let command = |order: &Vec<usize>| {
                let options = order.iter().flat_map(|option| OPTIONS[*option].iter().copied());
                ["ZRANGE", key, from, to].into_iter().chain(options).collect::<Vec<&str>>()
            };
            let commands: Vec<Vec<&str>> = orders.iter().map(command).collect();
            // Whole ranges of `BYLEX` are specified for one score only.
            let is_specified = |command: &Vec<&str>| key != "key" || !command.contains(&"BYLEX");
            let commands: Vec<Vec<&str>> = commands.into_iter().filter(is_specified).collect();
            let (mine, real) = (ours.pipeline(&commands), theirs.pipeline(&commands));
            for ((command, mine), real) in commands.iter().zip(&mine).zip(&real) {
                assert!(mine == real, "{command:?}\n  ours:   {}\n  theirs: {}", text(mine), text(real));
            }
        }
        // Without a kind of range, a limit that limits nothing is none; two kinds are an error in any order.
        let limited = |count: &str| ["ZRANGE", "lex", "0", "1", "LIMIT", "0", count].map(str::to_owned);
        assert!(matches!(ours.call(&limited("-1")), Reply::Array(two) if two.len() == 2));
        let told = |reply: Reply| text(&reply);
        assert_eq!(
            told(ours.call(&limited("2"))),
            "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX"
        );
        for kinds in [["BYLEX", "BYSCORE"], ["BYSCORE", "BYLEX"]] {
            let both = [&["ZRANGE", "lex", "-", "+"][..], &kinds].concat();
            assert_eq!(told(ours.call(&both)), "ERR syntax error");
        }
    }
}
