//! `tally migrate --from` as `docs/operate/another-store.md` has it: from a file into a database and back, with the same answers.
//!
//! Not here: every row, and cuts between batches (`crates/store/tests/backends/mysql/copying.rs`).

use super::page_commands::{commands, shell};
use crate::TALLY;
use serde_json::{Value, json};
use std::path::Path;
use tally_testkit::audit::audit;
use tally_testkit::{Client, DatabaseKind, Request, ScratchDatabase, TestTally};

const PAGE: &str = include_str!("../../../../docs/operate/another-store.md");

fn member(client: &mut Client, name: &str) -> String {
    let body = json!({"login_id": name, "name": name, "player": name});
    let id = client.post("/v1/members", &body).expect(201)["id"].as_str().expect("an id").to_owned();
    client.post("/v1/deposits", &json!({"to": id, "amount": 1_000})).expect(201);
    id
}

/// Scores with a profile and a ban, a transfer, and a contest with an application that holds its fee. Returns the requests with a key.
fn fill(client: &mut Client) -> [Request; 2] {
    client.put("/v1/leaderboards/b", &json!({"update": "sum"})).expect(201);
    let scores: Vec<Value> =
        (0..100).map(|at| json!({"board": "b", "player": format!("p{at}"), "score": at})).collect();
    client.post("/v1/scores/batch", &json!({"scores": scores})).expect(200);
    client.put("/v1/players/p7", &json!({"name": "Zoë"})).expect(201);
    client.post("/v1/leaderboards/b/players/p8/ban", &json!({})).expect(200);
    let [ann, bob] = ["ann", "bob"].map(|name| member(client, name));
    let cup = json!({"id": "cup", "title": "Cup", "entry_fee": {"currency": "KRW", "amount": "100"}});
    client.post("/v1/contests", &cup).expect(201);
    client.post("/v1/contests/cup/open", &json!({})).expect(200);
    client.post("/v1/contests/cup/applications", &json!({"player": "ann"})).expect(201);
    let submit = Request::new("POST", "/v1/leaderboards/b/scores").json(&json!({"player": "p9", "score": 5}));
    let pay = Request::new("POST", "/v1/transfers").json(&json!({"from": ann, "to": bob, "amount": 7}));
    let keyed = [submit.idempotent("score"), pay.idempotent("pay")];
    client.send(&keyed[0]).expect(200);
    client.send(&keyed[1]).expect(201);
    keyed
}

/// What a server shows of everything.
fn seen(client: &mut Client) -> Vec<Value> {
    let mut all = audit(client);
    for path in [
        "/v1/contests/cup",
        "/v1/contests/cup/applications",
        "/v1/ledger/transactions?limit=100",
        "/v1/ledger/trial-balance",
        "/v1/players/ann/ranks",
        "/v1/players/p7",
    ] {
        all.push(client.get(path).expect(200));
    }
    all
}

/// Runs a block of the page on this store, with these folders instead of its own. Returns the exit code and what it says.
fn run(name: &str, folder: &Path, (server, store): (&TestTally, &str)) -> (Option<i32>, String) {
    let data = server.data().display().to_string();
    let config = format!("[data]\ndir = \"{data}\"\n[store]\nurl = \"{store}\"\nlease = \"2s\"\n");
    std::fs::write(folder.join("tally.toml"), config).expect("it is written");
    let block = commands(PAGE, name).replace("/etc/tally", &folder.display().to_string());
    let done = shell(&block.replace("/var/lib/tally", &data)).output().expect("there is a shell");
    let said = [done.stdout, done.stderr].map(|out| String::from_utf8_lossy(&out).into_owned()).concat();
    (done.status.code(), said)
}

/// A server on this store shows what the one before did, and answers retries as that would.
fn serves(server: &mut TestTally, store: &str, before: &[Value], keyed: &[Request; 2]) {
    server.set("TALLY_STORE_URL", store);
    server.restart();
    let mut client = server.local();
    assert_eq!(seen(&mut client), before, "{store}");
    assert!(keyed.iter().all(|request| client.send(request).is_replay()));
    assert_eq!(seen(&mut client), before, "a retry has no effect");
    let act = client.get("/v1/audit").expect(200)["items"][0].clone();
    assert_eq!((&act["action"], &act["actor"]), (&json!("store.migrated"), &json!("command_line")), "{act}");
    server.terminate();
}

#[test]
fn the_commands_of_the_page_move_a_file_into_a_database_and_back() {
    let database = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let url = database.create_database();
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let mut server = TestTally::start(TALLY);
    let keyed = fill(&mut server.local());
    // A store that is served is not copied.
    let (code, said) = run("to-a-database", folder, (&server, &url));
    assert!(code == Some(1) && said.contains("another process has the store open"), "{said}");
    server.terminate();
    server.restart();
    let before = seen(&mut server.local());
    server.terminate();
    let (code, said) = run("to-a-database", folder, (&server, &url));
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("sums of money and digests agree") && said.contains("KRW: "), "{said}");
    serves(&mut server, &url, &before, &keyed);
    // Data are never written over.
    let (code, said) = run("to-a-database", folder, (&server, &url));
    assert!(
        code == Some(1) && said.contains("it has rows in") && said.contains("nothing was changed"),
        "{said}"
    );
    let file = format!("sqlite:{}", server.data().join("back.db").display());
    std::fs::write(folder.join("store-before"), format!("{url}\n")).expect("it is written");
    let (code, said) = run("to-a-file", folder, (&server, &file));
    assert_eq!(code, Some(0), "{said}");
    serves(&mut server, &file, &before, &keyed);
}

#[test]
fn a_store_into_which_a_copy_is_not_finished_is_not_served() {
    let database = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let url = database.create_database();
    let name = url.rsplit('/').next().expect("a name");
    let mut server = TestTally::start_set(TALLY, &[("TALLY_STORE_URL", &url)]);
    server.terminate();
    // What an interrupted copy leaves. A later release may write it in another way.
    database.sql(&format!("INSERT INTO {name}.meta (name, value) VALUES ('store.copy', 'later')"));
    for command in [&["serve", "--http", "127.0.0.1:0", "--resp", "off"][..], &["verify"], &["migrate"]] {
        let refused = server.run(command);
        let says = "the copy of another store into it was begun and is not finished; go on with the same `tally migrate --from`";
        assert!(refused.code == Some(1) && refused.stderr.contains(says), "{command:?}: {}", refused.stderr);
    }
    let file = server.data().join("other.db");
    let other = format!("sqlite:{}", file.display());
    assert_eq!(server.run(&["migrate", "--from", &other]).code, Some(2), "there is no such file");
    assert_eq!(server.run(&["migrate", "--from", &url]).code, Some(2), "it is the store itself");
    assert_eq!(server.run(&["migrate", "--from", &other, "--from", &url]).code, Some(2), "two are too many");
}
