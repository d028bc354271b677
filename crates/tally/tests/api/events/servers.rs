//! Several servers on one database: a change through one is an event on all.

use super::{BOARD, MINE, TALLY, after, deposit, listen, member, stream};
use serde_json::{Value, json};
use tally_testkit::redis::{RedisKind, ScratchRedis};
use tally_testkit::{DatabaseKind, EventStream, ScratchDatabase, TestTally};

const SECRET: &str = "0909090909090909090909090909090909090909090909090909090909090909";

fn start(redis: &ScratchRedis, count: usize) -> Vec<TestTally> {
    let url = ScratchDatabase::shared(DatabaseKind::MariaDb10).create_database();
    let one = |_| {
        let mut server = TestTally::stopped(TALLY);
        server.set("TALLY_STORE_URL", &url);
        server.set("TALLY_RANKING_URL", &format!("redis://{}", redis.address()));
        server.set("TALLY_SECRET", SECRET);
        // On a busy machine a read may be late.
        for text in [
            "read changes of other servers",
            "apply stored changes to rankings",
            "`store.lease`",
            "ranks are unavailable",
            "read events of other servers",
            "send scores to subscribers",
        ] {
            server.allow(text);
        }
        server.restart();
        server
    };
    (0..count).map(one).collect()
}

fn amounts(stream: &mut EventStream, count: usize) -> Vec<Value> {
    (0..count).map(|_| stream.expect("transaction")["amount"].clone()).collect()
}

#[test]
fn what_is_stored_through_one_is_heard_on_all() {
    let redis = ScratchRedis::start(RedisKind::Redis7, &[]);
    let servers = start(&redis, 2);
    let [first, second] = &servers[..] else { unreachable!("there are two") };
    let (ann, token) = member(first, "ann");
    let mut there = listen(second, &stream(MINE).key(&token));
    let mut here = listen(first, &stream(MINE).key(&token));
    let mut locals = [first.local(), second.local()];
    for amount in 1..=20 {
        deposit(&mut locals[amount as usize % 2], &ann, "KRW", amount);
    }
    let wanted: Vec<Value> = (1..=20).map(|amount| json!(amount.to_string())).collect();
    assert_eq!(amounts(&mut there, 20), wanted);
    assert_eq!(amounts(&mut here, 20), wanted);
    // A stream goes on at another server.
    deposit(&mut locals[0], &ann, "KRW", 21);
    let id = there.last_id.clone();
    drop(there);
    let mut moved = listen(first, &after(MINE, &id).key(&token));
    assert_eq!(amounts(&mut moved, 1), [json!("21")]);
    // A contest.
    locals[0].post("/v1/contests", &json!({"id": "cup", "title": "Cup"})).expect(201);
    let mut cup = listen(second, &stream("/v1/contests/cup/events"));
    for act in ["open", "cancel"] {
        locals[0].post(&format!("/v1/contests/cup/{act}"), &json!({})).expect(200);
        let heard = cup.expect("contest");
        let state = if act == "open" { "open" } else { "cancelled" };
        assert_eq!(heard["state"], state);
    }
    // Scores, from every publishing server.
    for local in &mut locals {
        local.put("/v1/leaderboards/live", &json!({"update": "latest"}));
    }
    let mut live = [first, second].map(|server| listen(server, &stream("/v1/leaderboards/live/events")));
    for score in 1..=40 {
        let row = json!({"player": format!("p{}", score % 2), "score": score});
        locals[score as usize % 2].post("/v1/leaderboards/live/scores", &row).expect(200);
    }
    for stream in &mut live {
        let mut newest = [Value::Null, Value::Null];
        while newest != [json!(40), json!(39)] {
            for entry in stream.expect("score")["entries"].as_array().expect("entries") {
                let number = usize::from(entry["player"] == "p1");
                newest[number] = entry["score"].clone();
            }
        }
    }
    // A period.
    let minutely = json!({"name": "minutely", "schedule": "* * * * *", "keep": 3});
    locals[0].put("/v1/leaderboards/b", &json!({"periods": [minutely]})).expect(201);
    let mut streams = [first, second].map(|server| listen(server, &stream(BOARD)));
    super::submit(&mut locals[0], "ann", 1);
    let closed = streams.each_mut().map(|stream| {
        loop {
            let event = stream.read().expect("it goes on");
            if event.event == "period_closed" {
                break (event.id, event.data);
            }
        }
    });
    assert_eq!(closed[0], closed[1]);
    assert_eq!(closed[0].0, "1");
}

/// Its server is killed in the middle; the missing events come from another one.
#[test]
fn a_stream_goes_on_at_another_server() {
    let redis = ScratchRedis::start(RedisKind::Redis7, &[]);
    let mut servers = start(&redis, 2);
    let (ann, token) = member(&servers[0], "ann");
    let mut mine = listen(&servers[0], &stream(MINE).key(&token));
    let mut local = servers[1].local();
    (1..=30).for_each(|amount| deposit(&mut local, &ann, "KRW", amount));
    let mut heard = amounts(&mut mine, 7);
    servers[0].kill9();
    (31..=40).for_each(|amount| deposit(&mut local, &ann, "KRW", amount));
    heard.extend(mine.rest().into_iter().map(|event| event.data["amount"].clone()));
    let mut mine = listen(&servers[1], &after(MINE, &mine.last_id).key(&token));
    heard.extend(amounts(&mut mine, 40 - heard.len()));
    let wanted: Vec<Value> = (1..=40).map(|amount| json!(amount.to_string())).collect();
    assert_eq!(heard, wanted);
}
