//! Rows that commands leave in the audit log: with their reasons at a server, and on a store without one.

use crate::TALLY;
use serde_json::{Value, json};
use tally_testkit::TestTally;

/// Actor, detail and reason of the rows of an action, newest first.
fn rows(server: &TestTally, action: &str) -> Vec<[Value; 3]> {
    let page = server.local().get(&format!("/v1/audit?action={action}")).expect(200);
    let items = page["items"].as_array().expect("a list").iter();
    items.map(|row| ["actor", "detail", "reason"].map(|name| row[name].clone())).collect()
}

#[test]
fn commands_at_a_server_give_their_reason() {
    let server = TestTally::start(TALLY);
    let first = ["keys", "create", "--role", "admin", "--name", "desk", "--reason", "first of all"];
    server.run(&first).expect(0);
    let scoped = ["keys", "create", "--scope", "scores:write", "--scope", "members:read", "--name", "shop"];
    let shop = server.run(&scoped).expect(0).trim().to_owned();
    let id = shop.split('_').nth(1).expect("an id");
    let listed = server.run(&["keys", "list"]).expect(0).to_owned();
    // Each name begins in the column of its heading.
    let lines: Vec<&str> = listed.lines().collect();
    let column = lines[0].find("NAME").expect("a heading");
    assert_eq!(lines.iter().map(|line| &line[column..]).collect::<Vec<_>>(), ["NAME", "desk", "shop"]);
    server.run(&["keys", "revoke", id, "--reason", "lost & found?"]).expect(0);
    let csv = server.data().join("goals.csv");
    std::fs::write(&csv, "player,score\nann,1\n").expect("it is written");
    let file = csv.to_str().expect("UTF-8");
    let import = ["import", "scores", "goals", file, "--player", "player", "--score", "score"];
    server.run(&[&import[..], &["--create", "--reason", "season 3"]].concat()).expect(0);
    assert_eq!(server.run(&[&import[..], &["--reason", "alone"]].concat()).code, Some(2));
    let by = |detail: Value, reason: &str| [json!("command_line"), detail, json!(reason)];
    assert_eq!(rows(&server, "key.created").last(), Some(&by(json!("admin, desk"), "first of all")));
    assert_eq!(rows(&server, "key.revoked"), [by(Value::Null, "lost & found?")]);
    assert_eq!(rows(&server, "leaderboard.created"), [by(Value::Null, "season 3")]);
    let long = "x".repeat(256);
    assert_eq!(server.run(&["keys", "revoke", id, "--reason", &long]).code, Some(2));
}

#[test]
fn commands_without_a_server_leave_a_row_in_the_store() {
    let mut server = TestTally::start(TALLY);
    server.local().put("/v1/leaderboards/b", &json!({})).expect(201);
    let copy = server.data().join("monday.db");
    let copy = copy.to_str().expect("UTF-8").to_owned();
    server.run(&["backup", &copy]).expect(0);
    server.terminate();
    server.run(&["migrate", "--reason", "new release"]).expect(0);
    server.restart();
    let migrated = rows(&server, "store.migrated");
    assert_eq!(
        (migrated.len(), &migrated[0][0], &migrated[0][2]),
        (1, &json!("command_line"), &json!("new release"))
    );
    assert!(migrated[0][1].as_str().is_some_and(|detail| detail.starts_with("schema of release ")));
    server.terminate();
    server.run(&["restore", &copy, "--force", "--reason", "a bad patch"]).expect(0);
    server.restart();
    let by = |detail: &str, reason: &str| [json!("command_line"), json!(detail), json!(reason)];
    // The log is that of the copy, with the row of the command.
    assert_eq!(rows(&server, "store.restored"), [by("from monday.db", "a bad patch")]);
    assert_eq!((rows(&server, "store.migrated").len(), rows(&server, "leaderboard.created").len()), (0, 1));
    // Only a journal with changes is missed.
    server.local().post("/v1/leaderboards/b/scores", &json!({"player": "ann", "score": 1})).expect(200);
    server.kill9();
    for reason in ["nothing is wrong", "a lost disk"] {
        server.run(&["repair", "--reason", reason]).expect(0);
        for entry in std::fs::read_dir(server.data()).expect("readable") {
            let path = entry.expect("readable").path();
            if path.to_string_lossy().contains(".journal-") {
                std::fs::remove_file(path).expect("removable");
            }
        }
    }
    server.restart();
    assert_eq!(rows(&server, "store.repaired"), [by("the journal", "a lost disk")]);
}
