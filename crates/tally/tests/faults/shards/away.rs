//! One of the databases is unavailable.

use super::*;
use std::time::Duration;
use tally_testkit::{RespClient, wait_until};

/// The reply to one of its players.
fn refused(client: &mut Client, player: &str) {
    let answer = client.send(&submit(player, 1));
    answer.refused(503, "store_unavailable");
    assert!(answer.text().contains("shard 2 of 2 of the store cannot be used now"), "{}", answer.text());
}

#[test]
fn a_shard_that_is_down_fails_its_players_and_no_others() {
    let mut world = World::of(2);
    let mut server = world.started(&[0, 1]);
    server.allow("shard 2 of 2");
    fill(&mut server.local());
    server.local().put("/v1/leaderboards/old", &json!({})).expect(201);
    let (here, there) = (world.players(0), world.players(1));
    world.servers[1].kill();
    // A connection that answered just now gets the next transaction in one message, and its outcome would be unknown.
    std::thread::sleep(Duration::from_millis(100));
    let mut client = server.local();
    for (at, player) in there.iter().chain(&here).chain(&there).enumerate() {
        if there.contains(player) {
            refused(&mut client, player);
        } else {
            client.send(&submit(player, 1000 + at as i64)).expect(200);
        }
    }
    // Ranks are in memory.
    assert_eq!(client.get("/v1/leaderboards/b/scores").expect(200)["total"], PLAYERS);
    // Rows of a batch fail one by one.
    let rows: Vec<Value> =
        here.iter().chain(&there).map(|player| json!({"board": "b", "player": player, "score": 5})).collect();
    let answer = client.post("/v1/scores/batch", &json!({"scores": rows})).expect(200);
    for (row, player) in answer["results"].as_array().unwrap().iter().zip(here.iter().chain(&there)) {
        assert_eq!(row["error"]["code"] == "store_unavailable", there.contains(player), "{row}");
    }
    // A leaderboard is made and deleted on the first one; the other is updated when it is back.
    client.put("/v1/leaderboards/new", &json!({})).expect(201);
    client.delete("/v1/leaderboards/old").expect(204);
    let on_new = |player: &str| {
        Request::new("POST", "/v1/leaderboards/new/scores").json(&json!({"player": player, "score": 1}))
    };
    client.send(&on_new(here.first().unwrap())).expect(200);
    client.send(&on_new(there.first().unwrap())).refused(503, "store_unavailable");
    let mut resp = RespClient::connect(server.resp());
    let mut zadd = |args: &[&str]| {
        String::from_utf8(resp.call_bytes(&[&["ZADD", "b"], args].concat())).expect("it is text")
    };
    let (one, other) = (here.first().unwrap(), there.first().unwrap());
    let (ours, theirs) = (zadd(&["3", one]), zadd(&["3", other]));
    assert!(ours.starts_with(':') && theirs.starts_with("-TRYAGAIN shard 2 of 2"), "{ours} {theirs}");
    let both = zadd(&["4", one, "4", other]);
    assert!(both.starts_with("-TRYAGAIN"), "{both}");
    assert!(both.contains("it is not known whether the change was made"), "a part of it is: {both}");
    world.servers[1].restart();
    let another = there.iter().next_back().unwrap();
    wait_until("its database answers", || client.send(&submit(another, 9)).status == 200);
    for player in there.iter().chain(&here) {
        client.send(&submit(player, 7)).expect(200);
    }
    client.send(&on_new(there.first().unwrap())).expect(200);
    let boards = world.servers[1].sql("SELECT id FROM tally_0.boards ORDER BY id");
    assert_eq!(boards.split_whitespace().collect::<Vec<_>>(), ["b", "new"]);
    assert_eq!(world.players(1), there);
}
