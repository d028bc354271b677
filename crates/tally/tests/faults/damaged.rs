//! A corrupt row for clients, over HTTP and the Redis protocol, and in `tally verify` and the metrics.

use crate::TALLY;
use serde_json::json;
use tally_testkit::audit::metric;
use tally_testkit::{DatabaseKind, RespClient, ScratchDatabase, TestTally};
use tally_wire::resp::Reply;

/// A server on a database of its own, and the name of that.
fn server(database: &ScratchDatabase) -> (TestTally, String) {
    let url = database.create_database();
    let name = url.rsplit('/').next().expect("it ends in its name").to_owned();
    let mut server = TestTally::stopped(TALLY);
    server.set("TALLY_STORE_URL", &url);
    server.set("TALLY_RANKING_URL", "memory");
    server.allow("a stored row is damaged");
    server.allow("request failed");
    server.restart();
    (server, name)
}

#[test]
fn a_damaged_score_is_a_clear_fault_of_its_player() {
    let database = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let (mut server, name) = server(database);
    let mut client = server.client();
    client.put("/v1/leaderboards/b", &json!({})).expect(201);
    for (player, score) in [("ann", 1), ("bob", 2)] {
        client.post("/v1/leaderboards/b/scores", &json!({"player": player, "score": score})).expect(200);
    }
    server.terminate();
    database.sql(&format!("UPDATE {name}.scores SET gone = 7 WHERE player = 'ann'"));
    server.restart();
    let mut client = server.client();
    client.post("/v1/leaderboards/b/scores", &json!({"player": "bob", "score": 3})).expect(200);
    let submitted = client.post("/v1/leaderboards/b/scores", &json!({"player": "ann", "score": 3}));
    let ranked = client.get("/v1/leaderboards/b/players/ann");
    let around = client.get("/v1/leaderboards/b/players/ann/around");
    for answer in [submitted, ranked, around] {
        let problem = answer.expect(500);
        assert_eq!(problem["code"], json!("damaged"), "{problem}");
        assert!(problem["detail"].as_str().is_some_and(|text| text.contains("table `scores`")), "{problem}");
    }
    let mut resp = RespClient::connect(server.resp());
    for command in [&["ZSCORE", "b", "ann"][..], &["ZREVRANK", "b", "ann"], &["LB.RANK", "b", "ann"]] {
        let Reply::Error(text) = resp.call(command) else { panic!("{command:?} is answered") };
        let text = String::from_utf8(text).expect("a text");
        assert!(text.starts_with("ERR damaged: a stored row"), "{command:?}: {text}");
    }
    assert!((metric(&client.get("/metrics"), "tally_store_damaged_rows") - 1.0).abs() < 0.1);
    server.wait_logged("a stored row is damaged");
    let named = server.log().iter().filter(|line| line.contains("a stored row is damaged")).count();
    assert_eq!(named, 1, "it is logged once");
    let verified = server.run(&["verify"]);
    assert!(verified.expect(1).contains("WRONG scores 1/0/ann: it is damaged"), "{}", verified.stdout);
    database.sql(&format!("UPDATE {name}.scores SET gone = 0 WHERE player = 'ann'"));
    // Repaired, it is read from the store.
    client.post("/v1/leaderboards/b/scores", &json!({"player": "ann", "score": 5})).expect(200);
    assert_eq!(client.get("/v1/leaderboards/b/players/ann").expect(200)["rank"], json!(1));
}

#[test]
fn a_list_names_a_damaged_row_and_its_cursor_goes_on_behind_it() {
    let database = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let (server, name) = server(database);
    let mut client = server.client();
    for id in ["a", "b", "c", "d"] {
        client.post("/v1/contests", &json!({"id": id, "title": id})).expect(201);
    }
    let member = client.post("/v1/members", &json!({"login_id": "ann", "name": "Ann"})).expect(201);
    let member = member["id"].as_str().expect("an id").to_owned();
    for _ in 0..3 {
        client.post("/v1/deposits", &json!({"to": member, "amount": 5})).expect(201);
    }
    database.sql(&format!(
        "USE {name}; UPDATE contests SET body = x'00' WHERE id = 'b'; UPDATE entries SET kind = 99 WHERE sequence = 2"
    ));
    let first = client.get("/v1/contests?limit=1").expect(200);
    let cursor = first["next_cursor"].as_str().expect("there are more");
    let rest = client.get(&format!("/v1/contests?limit=1&cursor={cursor}")).expect(200);
    assert_eq!(rest["items"][0]["id"], json!("c"));
    assert_eq!(rest["damaged"], json!([{"table": "contests", "row": "b"}]));
    let cursor = rest["next_cursor"].as_str().expect("there are more");
    let last = client.get(&format!("/v1/contests?cursor={cursor}")).expect(200);
    assert_eq!((&last["items"][0]["id"], &last["damaged"]), (&json!("d"), &json!(null)));
    assert_eq!(client.get("/v1/contests/b").expect(500)["code"], json!("damaged"));
    let history = client.get(&format!("/v1/wallets/{member}/transactions?limit=2")).expect(200);
    assert_eq!(history["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(history["damaged"], json!([{"table": "entries", "row": format!("{member}/KRW/2")}]));
    let cursor = history["next_cursor"].as_str().expect("there are more");
    let oldest =
        client.get(&format!("/v1/wallets/{member}/transactions?limit=2&cursor={cursor}")).expect(200);
    assert_eq!((oldest["items"].as_array().map(Vec::len), &oldest["damaged"]), (Some(1), &json!(null)));
    // An export writes the sound rows, and fails.
    database.sql(&format!("USE {name}; UPDATE transfers SET kind = 99 WHERE credit_sequence = 2"));
    let export = server.run(&["ledger", "--format", "json"]);
    assert_eq!(export.expect(1).lines().count(), 2);
    assert!(
        export.stderr.contains("2 transfers.\ntally: corrupt rows were left out: 1"),
        "{}",
        export.stderr
    );
    assert!(export.stderr.contains("\"table\":\"transfers\""), "{}", export.stderr);
    // The audit at the end of the server compares everything.
    database.sql(&format!(
        "USE {name}; UPDATE transfers SET kind = 1 WHERE credit_sequence = 2; UPDATE entries SET kind = 1 WHERE sequence = 2; DELETE FROM contests WHERE id = 'b'"
    ));
}
