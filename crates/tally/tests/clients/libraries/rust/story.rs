//! A leaderboard's story in redis-rs, in both protocols. Arguments: host, port.
//!
//! Its connections are blocking ones, which do not connect again by themselves: after the kill the story does.

use redis::{
    Client, Commands, Connection, FromRedisValue, ProtocolVersion, RedisConnectionInfo, RedisResult,
};
use redis::{ScanOptions, SortedSetAddOptions, UpdateCheck, cmd};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io::{BufRead, Write};

/// The reply of `LB.SUBMIT`: score and rank, then those before.
type Submitted = (i64, i64, Option<i64>, Option<i64>);
type Everything = BTreeMap<String, Vec<(String, f64)>>;

#[track_caller]
fn equal<T: PartialEq + Debug>(found: RedisResult<T>, wanted: T) {
    assert_eq!(found.expect("it is answered"), wanted);
}

#[track_caller]
fn refused<T: Debug>(found: RedisResult<T>, words: &str) {
    let error = found.expect_err(words).to_string();
    assert!(error.contains(words), "not {words}: {error}");
}

/// Requests something of the runner of the story.
fn ask(what: &str) -> String {
    println!("{what}");
    std::io::stdout().flush().expect("somebody listens");
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).expect("somebody answers");
    line.trim().to_owned()
}

fn connect(
    protocol: ProtocolVersion,
    login: impl Fn(RedisConnectionInfo) -> RedisConnectionInfo,
) -> RedisResult<Connection> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let address = format!("redis://{}:{}", args[0], args[1]);
    let info: redis::ConnectionInfo = redis::IntoConnectionInfo::into_connection_info(address)?;
    let settings = login(RedisConnectionInfo::default().set_protocol(protocol));
    Client::open(info.set_redis_settings(settings))?.get_connection()
}

/// A command that the library has no name for.
fn call<T: FromRedisValue>(r: &mut Connection, line: &str) -> RedisResult<T> {
    let mut words = line.split(' ');
    cmd(words.next().expect("a command has a name")).arg(words.collect::<Vec<_>>()).query(r)
}

fn pairs(list: &[(&str, f64)]) -> Vec<(String, f64)> {
    list.iter().map(|(member, score)| ((*member).to_owned(), *score)).collect()
}

fn sorted_set(r: &mut Connection, key: &str) {
    let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
    equal(cmd("PING").query(r), "PONG".to_owned());
    equal(r.zadd_multiple(key, &[(30.0, "ann"), (20.5, "bob"), (10.0, "cy"), (20.5, "dee")]), 4);
    let greater = SortedSetAddOptions::add_or_update(Some(UpdateCheck::GT)).include_changed_count();
    equal(r.zadd_options(key, "ann", 31, &greater), 1);
    equal(r.zincr(key, "cy", 5), 15.0);
    equal(r.zscore(key, "bob"), Some(20.5));
    equal(r.zscore(key, "nobody"), None::<f64>);
    equal(r.zscore_multiple(key, &["ann", "nobody"]), vec![Some(31.0), None]);
    equal(r.zrange_withscores(key, 0, 1), pairs(&[("cy", 15.0), ("bob", 20.5)]));
    equal(r.zrevrange_withscores(key, 0, 1), pairs(&[("ann", 31.0), ("dee", 20.5)]));
    equal(r.zrangebyscore_limit(key, "(15", "+inf", 0, 2), names(&["bob", "dee"]));
    equal(r.zrevrangebyscore_limit(key, "+inf", 20, 1, 2), names(&["dee", "bob"]));
    equal(r.zrank(key, "ann"), Some(3));
    equal(r.zrevrank(key, "ann"), Some(0));
    equal(r.zrank(key, "nobody"), None::<usize>);
    equal(r.zcard(key), 4);
    equal(r.zcount(key, 20, 40), 3);
    equal(r.key_type(key), redis::ValueType::ZSet);
    equal(r.exists(&[key, "nothing"]), 1);

    // A pipeline answers each command for itself; a transaction is one unit.
    let mut pipe = redis::pipe();
    pipe.zadd(key, "eve", 1).zrevrank(key, "eve").zadd(key, "", 1).zrem(key, "eve").zcard(key);
    let answers: Vec<RedisResult<i64>> = pipe.ignore_errors().query(r).expect("it is answered");
    let wrong = answers[2].as_ref().expect_err("an empty member").to_string();
    assert!(wrong.contains("member"), "{wrong}");
    let right: Vec<i64> = answers.into_iter().filter_map(Result::ok).collect();
    assert_eq!(right, [1, 4, 1, 4]);
    let mut unit = redis::pipe();
    unit.atomic().zincr(key, "ann", 1).zincr(key, "bob", -1).zscore(key, "bob");
    equal(unit.query(r), (32.0, 19.5, 19.5));
    let mut broken = redis::pipe();
    broken.atomic().zincr(key, "ann", 1).cmd("ZADD").arg(key).arg(1);
    refused(broken.query::<()>(r), "Transaction aborted");
    equal(r.zscore(key, "ann"), 32.0);
    many(r, &format!("{key}-many"), key);
}

/// More than one page of a scan.
fn many(r: &mut Connection, key: &str, other: &str) {
    let all: Vec<(i64, String)> = (0..1_000).map(|number| (number, format!("m{number:04}"))).collect();
    equal(r.zadd_multiple(key, &all), 1_000);
    let seen: RedisResult<BTreeMap<String, i64>> = r.zscan(key).expect("it is answered").collect();
    equal(seen, all.into_iter().map(|(score, member)| (member, score)).collect());
    let some = r.zscan_match::<_, _, (String, f64)>(key, "m00*").expect("it is answered");
    assert_eq!(some.count(), 100);
    let one_at_a_time = ScanOptions::default().with_count(1);
    let keys: RedisResult<Vec<String>> = r.scan_options(one_at_a_time).expect("it is answered").collect();
    let keys = keys.expect("it is answered");
    assert!([key, other, "season"].iter().all(|key| keys.iter().any(|found| found == key)), "{keys:?}");
    equal(r.zpopmax(key, 2), pairs(&[("m0999", 999.0), ("m0998", 998.0)]));
    equal(r.zpopmin(key, 1), pairs(&[("m0000", 0.0)]));
    equal(r.zremrangebyrank(key, 0, 96), 97);
    equal(r.zrembyscore(key, 900, "(998"), 98);
    equal(r.zcard(key), 802);
    equal(r.del(key), 1);
    equal(r.exists(key), false);
}

fn leaderboard(r: &mut Connection, board: &str) {
    let best = "ORDER ascending UPDATE best RANKING competition";
    equal(call(r, &format!("LB.CREATE {board} {best}")), "OK".to_owned());
    refused(call::<String>(r, &format!("LB.CREATE {board} UPDATE sum")), "definition_conflict");
    let first = format!("LB.SUBMIT {board} ann 61200 ID {board}-1");
    equal::<Submitted>(call(r, &first), (61_200, 1, None, None));
    equal::<Submitted>(call(r, &format!("LB.SUBMIT {board} bob 59900")), (59_900, 1, None, None));
    equal::<Submitted>(call(r, &format!("LB.SUBMIT {board} ann 61000")), (61_000, 2, Some(61_200), Some(2)));
    // The same request again is not counted again, its rank is that of now; another one under its name is refused.
    equal::<Submitted>(call(r, &first), (61_200, 2, None, None));
    let other = format!("LB.SUBMIT {board} ann 1 ID {board}-1");
    refused(call::<Submitted>(r, &other), "idempotency_key_reused");
    let both: Vec<Submitted> = vec![(61_000, 2, None, None), (70_000, 4, None, None)];
    equal(call(r, &format!("LB.MSUBMIT {board} cy 61000 dee 70000")), both);
    let ranks = |list: &[(i64, &str, i64)]| {
        list.iter().map(|(rank, player, score)| (*rank, (*player).to_owned(), *score)).collect::<Vec<_>>()
    };
    let top = ranks(&[(1, "bob", 59_900), (2, "ann", 61_000), (2, "cy", 61_000)]);
    equal(call(r, &format!("LB.TOP {board} 3")), top);
    let around = ranks(&[(2, "ann", 61_000), (2, "cy", 61_000), (4, "dee", 70_000)]);
    equal(call(r, &format!("LB.AROUND {board} cy 1 1")), around);
    equal(call(r, &format!("LB.RANK {board} dee")), Some((4, 70_000, 4)));
    equal(call(r, &format!("LB.RANK {board} nobody")), None::<(i64, i64, i64)>);
    let among = vec![(1, 2, "ann".to_owned(), 61_000), (2, 4, "dee".to_owned(), 70_000)];
    equal(call(r, &format!("LB.AMONG {board} dee ann nobody")), among);
    refused(call::<Submitted>(r, "LB.SUBMIT nothing ann 1"), "no such leaderboard");
}

fn season(r: &mut Connection, player: &str) {
    let before: i64 = r.zcard("season@weekly").expect("it is answered");
    let submitted = call(r, &format!("LB.SUBMIT season {player} 7"));
    equal::<Submitted>(submitted, (7, before + 1, None, None));
    let exact = 2_f64.powi(53) + 7.0;
    equal(r.zincr("season", player, 2_f64.powi(53)), exact);
    equal(r.zscore("season@weekly", player), exact);
    equal(r.zcard("season@weekly"), before + 1);
    equal(r.zcard("season@weekly:previous"), 0);
    refused(r.zadd::<_, _, _, i64>("season@weekly", player, 1), "ReadOnly");
}

fn everything(r: &mut Connection) -> Everything {
    let keys: RedisResult<Vec<String>> = r.scan().expect("it is answered").collect();
    let mut all = Everything::new();
    for key in keys.expect("it is answered") {
        let members = r.zrange_withscores(&key, 0, -1).expect("it is answered");
        all.insert(key, members);
    }
    all
}

fn main() {
    let open = |protocol| connect(protocol, |login| login).expect("it is reached");
    let protocols = [ProtocolVersion::RESP2, ProtocolVersion::RESP3];
    let mut stories = protocols.map(open);
    for (at, r) in stories.iter_mut().enumerate() {
        sorted_set(r, &format!("duels{at}"));
        leaderboard(r, &format!("laps{at}"));
        season(r, &format!("ann{at}"));
    }

    // Acknowledged data outlives a kill; the connections do not.
    let before = everything(&mut stories[0]);
    assert_eq!(before.keys().collect::<Vec<_>>(), ["duels0", "duels1", "laps0", "laps1", "season"]);
    ask("kill");
    for r in &mut stories {
        let error = r.zcard::<_, i64>("season").expect_err("it was killed");
        assert!(error.is_io_error(), "{error}");
    }
    stories = protocols.map(open);
    for r in &mut stories {
        assert_eq!(everything(r), before);
    }
    for (at, r) in stories.iter_mut().enumerate() {
        equal(r.zadd(format!("duels{at}"), "fay", 3), 1);
    }

    // With the first key, no request passes without one.
    let key = ask("key");
    for protocol in protocols {
        let without = connect(protocol, |login| login).and_then(|mut r| r.zcard::<_, i64>("duels0"));
        refused(without, "NOAUTH");
        assert!(connect(protocol, |login| login.set_password(&key[1..])).is_err(), "a wrong key");
        assert!(connect(protocol, |login| login.set_username("ann").set_password(&key)).is_err(), "a name");
        let mut r = connect(protocol, |login| login.set_password(&key)).expect("it is let in");
        equal(r.zscore("duels0", "fay"), 3.0);
    }
    println!("end");
}
