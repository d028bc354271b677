//! The databases of a store, and their order.

use super::*;

#[test]
fn players_are_spread_and_everything_is_one_store() {
    let world = World::of(2);
    let mut server = world.stopped(&[0, 1]);
    let ready = server.restart();
    let shown = |url: &String| url.replace("root@", "");
    assert!(ready.contains(&format!("store={},{}", shown(&world.urls[0]), shown(&world.urls[1]))), "{ready}");
    let mut client = server.local();
    fill(&mut client);
    let (one, other) = (world.players(0), world.players(1));
    assert!(one.is_disjoint(&other) && one.len() > 10 && other.len() > 10, "{one:?} {other:?}");
    assert_eq!(one.len() + other.len(), PLAYERS);
    let status = client.get("/v1/status").expect(200).to_string();
    assert!(
        !status.contains("root@") && status.contains(&shown(&world.urls[1])["mysql://".len()..]),
        "{status}"
    );
    // A retry under its key finds its first answer, wherever its player is.
    for player in ["player-000", "player-001", "player-002", "player-003"] {
        let request = submit(player, 77).idempotent(player);
        assert!(!client.send(&request).is_replay());
        assert!(client.send(&request).is_replay());
    }
    // Periods, bans and erasing concern several.
    client
        .put(
            "/v1/leaderboards/w",
            &json!({"periods": [{"name": "d", "schedule": "0 0 * * *", "time_zone": "UTC"}]}),
        )
        .expect(201);
    for number in 0..10 {
        let row = json!({"player": name(number), "score": number});
        client.post("/v1/leaderboards/w/scores", &row).expect(200);
    }
    for number in 0..3 {
        client.post(&format!("/v1/leaderboards/w/players/{}/ban", name(number)), &json!({})).expect(200);
        client.delete(&format!("/v1/players/{}", name(number + 3))).expect(204);
    }
    server.kill9();
    server.restart();
    let mut client = server.local();
    assert_eq!(client.get("/v1/leaderboards/w/scores?period=d").expect(200)["total"], 4);
    assert_eq!(client.get("/v1/leaderboards/b/scores").expect(200)["total"], PLAYERS - 3);
    let doctor = server.run(&["doctor"]);
    let said = doctor.expect(0);
    assert!(
        said.contains("shard 2 of 2 mysql://") && said.contains("those of a sort of the stored rows"),
        "{said}"
    );
}

#[test]
fn a_list_that_is_not_the_stores_is_refused() {
    let world = World::of(3);
    let server = world.started(&[0, 1]);
    fill(&mut server.local());
    drop(server);
    let refused = |shards: &[usize], why: &str| {
        let server = world.stopped(shards);
        let run = server.run(&["serve", "--http", "127.0.0.1:0", "--resp", "off"]);
        run.expect(1);
        assert!(run.stderr.contains(why) && !run.stderr.contains("root@"), "{shards:?}: {}", run.stderr);
    };
    refused(&[1, 0], "is at place 1 of the list and is shard 2 of 2");
    refused(&[0], "is shard 1 of 2 of store");
    refused(&[1], "is shard 2 of 2 of store");
    refused(&[0, 1, 2], "tally migrate --reshard");
    refused(&[0, 2], "is no shard of any store");
    refused(&[2, 1], "is empty");
    // A store of one database does not silently become a shard of another.
    let server = world.started(&[2]);
    fill(&mut server.local());
    drop(server);
    refused(&[2, 0], "`tally migrate --reshard` with this list spreads it");
    let flags = ["serve", "--store", &world.urls[0], "--store", "sqlite:x.db"];
    world.stopped(&[0]).run(&flags).expect(2);
    drop(world.started(&[0, 1]));
}
