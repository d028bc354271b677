//! A damaged row as clients meet it, over HTTP and the Redis protocol; and what `tally verify` and the metrics say of it.

use serde_json::json;
use tally_testkit::audit::metric;
use tally_testkit::{DatabaseKind, RespClient, ScratchDatabase, TestTally};
use tally_wire::resp::Reply;

const TALLY: &str = env!("CARGO_BIN_EXE_tally");

#[test]
fn a_damaged_score_is_a_clear_fault_of_its_player() {
    let database = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let url = database.create_database();
    let name = url.rsplit('/').next().expect("it ends in its name");
    let mut server = TestTally::stopped(TALLY);
    server.set("TALLY_STORE_URL", &url);
    server.set("TALLY_RANKING_URL", "memory");
    server.allow("a stored row is damaged");
    server.allow("request failed");
    server.restart();
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
    let named = server.log().iter().filter(|line| line.contains("a stored row is damaged")).count();
    assert_eq!(named, 1, "it is logged once");
    let verified = server.run(&["verify"]);
    assert!(verified.expect(1).contains("WRONG scores 1/0/ann: it is damaged"), "{}", verified.stdout);
    database.sql(&format!("UPDATE {name}.scores SET gone = 0 WHERE player = 'ann'"));
    // Mended, it is read from the store.
    client.post("/v1/leaderboards/b/scores", &json!({"player": "ann", "score": 5})).expect(200);
    assert_eq!(client.get("/v1/leaderboards/b/players/ann").expect(200)["rank"], json!(1));
}
