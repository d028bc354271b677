//! A database that comes back without its last commits, under servers side by side. All of them read everything anew, their Redis
//! too, and all of them write again.

use super::world::*;
use serde_json::{Value, json};
use tally_testkit::redis::{RedisKind, ScratchRedis};
use tally_testkit::{Client, DatabaseKind, Request, ScratchDatabase, TestTally};

/// Players with their scores, best first.
fn scores(page: &Value) -> Vec<(String, i64)> {
    let entries = page["entries"].as_array().expect("entries");
    let score = |entry: &Value| entry["score"].as_i64().expect("a score");
    names(page).into_iter().zip(entries.iter().map(score)).collect()
}

fn wait_for_reloads(servers: &[TestTally]) {
    for server in servers {
        let mut client = server.client();
        wait_until("every server notices", || {
            let status = client.get("/v1/status");
            status.status == 200 && status.json()["lost_commits"]["reloads"].as_u64() > Some(0)
        });
    }
}

fn ban(client: &mut Client, player: &str) {
    let path = format!("/v1/leaderboards/b/players/{player}/ban");
    send(client, &Request::new("POST", path)).expect(200);
}

/// The last server writes nothing: it notices by its renewals, or by the others.
fn all_read_everything_anew(kind: DatabaseKind) {
    let mut database = ScratchDatabase::start(kind);
    let redis = ScratchRedis::start(RedisKind::Redis7, &[]);
    let url = database.create_database();
    let mut all = start_at(&url, &format!("redis://{}", redis.address()), 3);
    for server in &mut all {
        for text in ["has lost commits", "another server began anew", "it is tried again"] {
            server.allow(text);
        }
    }
    let mut clients = clients(&all);
    put(&mut clients[0], "b", &json!({})).expect(201);
    for (player, score) in [("ann", 10), ("bob", 20), ("eve", 30)] {
        submit(&mut clients[0], "b", player, score).expect(200);
    }
    let made = clients[0].post("/v1/members", &json!({"login_id": "m", "name": "m"})).expect(201);
    let member = made["id"].as_str().expect("an id").to_owned();
    clients[0].post("/v1/deposits", &json!({"to": member, "amount": 100})).expect(201);
    database.keep_copy();
    // Acknowledged, and about to be lost: higher scores, a new player, a board, a ban, which is a revision, and money.
    submit(&mut clients[0], "b", "ann", 99).expect(200);
    submit(&mut clients[1], "b", "new", 50).expect(200);
    put(&mut clients[1], "c", &json!({})).expect(201);
    ban(&mut clients[0], "eve");
    let deposit = Request::new("POST", "/v1/deposits").json(&json!({"to": member, "amount": 1_000}));
    send(&mut clients[1], &deposit).expect(201);
    for client in &mut clients {
        wait_until("all know", || scores(&page(client, "b"))[0] == ("ann".into(), 99));
    }
    database.put_copy_back();
    wait_for_reloads(&all);
    let stored = [("eve", 30), ("bob", 20), ("ann", 10)].map(|(player, score)| (player.to_owned(), score));
    for client in &mut clients {
        wait_until("each shows what is stored", || scores(&page(client, "b")) == stored);
        get(client, "/v1/leaderboards/c").expect(404);
        let hold = Request::new("POST", "/v1/holds").json(&json!({"member": member, "amount": 500}));
        send(client, &hold).refused(422, "insufficient_funds");
    }
    // Each writes again, also a change of the board, whose revision went back.
    for (client, (player, score)) in clients.iter_mut().zip([("one", 41), ("two", 42), ("three", 43)]) {
        let answer = submit(client, "b", player, score).expect(200);
        assert_eq!(answer["rank"], json!(1), "{answer}");
        ban(client, player);
    }
    for client in &mut clients {
        wait_until("all show the same", || scores(&page(client, "b")) == stored);
    }
    all[0].run(&["verify", "--ranks"]).expect(0);
}

#[test]
fn all_servers_read_a_mariadb_that_lost_commits_anew() {
    all_read_everything_anew(DatabaseKind::MariaDb10);
}

#[test]
fn all_servers_read_a_mysql_that_lost_commits_anew() {
    all_read_everything_anew(DatabaseKind::MySql9);
}
