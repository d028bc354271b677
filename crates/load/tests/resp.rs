//! Pipelines against a real Redis: successes, failures, and that no more is sent than planned.

use std::time::Duration;
use tally_load::{Pipelines, Replied, run_pipelines};
use tally_testkit::{RedisKind, ScratchRedis};
use tally_wire::resp::{Reply, command};

fn plan(connections: usize, commands_max: u64) -> Pipelines {
    let duration = Duration::from_secs(60);
    Pipelines { connections, opening: Vec::new(), warm_up: Duration::ZERO, duration, commands_max }
}

fn request(args: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    command(args, &mut out);
    out
}

/// A chunk that is the same bytes each time, and expects a number of replies.
fn repeat(bytes: Vec<u8>, replies: u64) -> impl FnMut(u64, &mut Vec<u8>) -> u64 {
    move |_, out| {
        out.extend_from_slice(&bytes);
        replies
    }
}

fn run(redis: &ScratchRedis, plan: &Pipelines, bytes: Vec<u8>, replies: u64) -> Replied {
    run_pipelines(redis.address(), plan, repeat(bytes, replies)).unwrap()
}

#[test]
fn as_many_are_sent_as_planned_and_all_are_counted() {
    let redis = ScratchRedis::start(RedisKind::Redis7, &[]);
    let replied = run(&redis, &plan(5, 10_000), request(&["INCR", "n"]).repeat(16), 16);
    assert_eq!((replied.succeeded, replied.refused, replied.broken), (10_000, 0, 0));
    assert_eq!(replied.latencies.count(), 625);
    assert!(replied.rate() > 0.0 && replied.first_fault.is_none());
    assert_eq!(redis.client().call(&["GET", "n"]), Reply::Bulk(b"10000".into()));
}

#[test]
fn what_warms_up_is_sent_and_does_not_count() {
    let redis = ScratchRedis::start(RedisKind::Redis7, &[]);
    let warming = Pipelines { warm_up: Duration::from_secs(60), ..plan(2, 100) };
    let replied = run(&redis, &warming, request(&["INCR", "n"]), 1);
    assert_eq!((replied.succeeded, replied.latencies.count(), replied.rate()), (0, 0, 0.0));
    assert_eq!(redis.client().call(&["GET", "n"]), Reply::Bulk(b"100".into()));
}

#[test]
fn time_ends_it_as_well() {
    let redis = ScratchRedis::start(RedisKind::Redis7, &[]);
    let short = Pipelines { duration: Duration::from_secs(1), ..plan(2, u64::MAX) };
    let replied = run(&redis, &short, request(&["PING"]), 1);
    assert_eq!(replied.succeeded, replied.latencies.count());
    assert!(replied.succeeded > 0 && replied.seconds >= 1.0, "{replied:?}");
}

#[test]
fn each_connection_says_its_number_and_is_opened_first() {
    let redis = ScratchRedis::start(RedisKind::Redis7, &[]);
    let opened = Pipelines { opening: vec![request(&["INCR", "opened"])], ..plan(3, 30) };
    let ask = |connection: u64, out: &mut Vec<u8>| {
        command(&["SADD", "connections", &connection.to_string()], out);
        1
    };
    run_pipelines(redis.address(), &opened, ask).unwrap();
    let replies = redis.client().pipeline(&[["GET", "opened"], ["SCARD", "connections"]]);
    assert_eq!(replies, [Reply::Bulk(b"3".into()), Reply::Integer(3)]);
    let refused = Pipelines { opening: vec![request(&["AUTH", "x"])], ..plan(1, 1) };
    let error = run_pipelines(redis.address(), &refused, ask).unwrap_err();
    assert!(error.to_string().starts_with("-ERR AUTH"), "{error}");
}

#[test]
fn refusals_are_told_apart_and_a_broken_connection_ends() {
    let redis = ScratchRedis::start(RedisKind::Redis7, &[]);
    let half = [request(&["PING"]), request(&["ZADD", "key", "x", "y"])].concat();
    let replied = run(&redis, &plan(2, 100), half, 2);
    assert_eq!((replied.succeeded, replied.refused, replied.broken), (50, 50, 0));
    assert_eq!(replied.first_fault.as_deref(), Some("-ERR value is not a valid float"));
    let replied = run(&redis, &plan(3, u64::MAX), request(&["QUIT"]), 1);
    assert_eq!((replied.succeeded, replied.broken), (3, 3));
}

#[test]
fn replies_of_any_length_and_shape_are_passed_over() {
    let redis = ScratchRedis::start(RedisKind::Redis7, &[]);
    let scores: Vec<String> =
        (0..5_000).flat_map(|number| [number.to_string(), format!("player{number}")]).collect();
    let add: Vec<&str> = ["ZADD", "board"].into_iter().chain(scores.iter().map(String::as_str)).collect();
    assert_eq!(redis.client().call(&add), Reply::Integer(5_000));
    let long = [request(&["ZRANGE", "board", "0", "-1", "WITHSCORES"]), request(&["COMMAND"])].concat();
    let plan = Pipelines { opening: vec![request(&["HELLO", "3"])], ..plan(2, 40) };
    let replied = run(&redis, &plan, long, 2);
    assert_eq!((replied.succeeded, replied.refused, replied.broken), (40, 0, 0), "{replied:?}");
}

#[test]
fn what_is_not_a_reply_breaks_and_other_machines_are_left_alone() {
    let redis = ScratchRedis::start(RedisKind::Redis7, &[]);
    // Unexpected replies belong to no request.
    let replied = run(&redis, &plan(1, 10), request(&["PING"]).repeat(2), 1);
    assert_eq!((replied.succeeded, replied.broken), (0, 1));
    let elsewhere = "192.0.2.1:6379".parse().unwrap();
    let error = run_pipelines(elsewhere, &plan(1, 1), repeat(Vec::new(), 1)).unwrap_err();
    assert_eq!(error.to_string(), "load is sent to this machine only");
}
