//! An import that is cut between its databases: each goes on at its own line, and no line counts twice.

use super::*;
use tally_testkit::{COMMIT, Cut, Proxy, wait_until};

const DIGEST: &str = "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a";

/// Lines of the file from one to another: each gives one player a point, and one has no effect.
fn chunk(from: u64, to: u64, last: bool) -> Request {
    let head = json!({
        "board": "sum", "digest": DIGEST, "lines_before": from, "lines_after": to, "last": last
    });
    let row = |line: u64| {
        let score = if line == 3 { json!(0.5) } else { json!(1) };
        json!({"line": line, "player": name(line as usize % 7), "score": score})
    };
    let lines: Vec<String> =
        std::iter::once(head).chain((from + 1..=to).map(row)).map(|line| line.to_string()).collect();
    Request::new("POST", "/v1/imports").body("application/x-ndjson", lines.join("\n"))
}

/// How often a cut may meet another transaction.
const TRIES: usize = 5;

#[test]
fn an_import_that_is_cut_between_its_databases_counts_each_line_once() {
    for killed in [false, true] {
        // The server has transactions of its own, and the cut may meet one of them.
        assert!((0..TRIES).any(|_| is_cut_and_counted(killed)), "killed: {killed}");
    }
}

/// Whether the cut met the import; then each of its lines counts once.
fn is_cut_and_counted(killed: bool) -> bool {
    let mut world = World::of(2);
    let to = world.servers[0].address();
    let proxy = Proxy::start(to);
    world.urls[0] = world.urls[0].replace(&to.to_string(), &proxy.address().to_string());
    let mut server = world.started(&[0, 1]);
    for why in ["shard 1 of 2", "the outcome", "the store", "not ready"] {
        server.allow(why);
    }
    let mut client = server.local();
    client.put("/v1/leaderboards/sum", &json!({"update": "sum"})).expect(201);
    let done = client.send(&chunk(0, 20, false)).expect(200);
    assert_eq!((&done["lines"], &done["taken"], &done["refused"]), (&json!(20), &json!(19), &json!(1)));
    // The other database has done its part when the first one, which is last, is cut.
    proxy.cut_off_at(COMMIT, Cut::Before);
    let answer = client.send(&chunk(20, 60, true));
    if answer.status != 503 || answer.json()["code"] != "outcome_unknown" {
        proxy.pass();
        return false;
    }
    assert!(!proxy.is_armed());
    let there = world.servers[1].sql("SELECT `lines` FROM tally_0.imports");
    assert_eq!(there.trim(), "60");
    if killed {
        server.kill9();
    }
    proxy.pass();
    if killed {
        server.restart();
    }
    let mut client = server.local();
    let progress = format!("/v1/imports/sum/{DIGEST}");
    wait_until("the progress is known", || client.get(&progress).status == 200);
    assert_eq!(client.get(&progress).expect(200)["lines"], 20);
    // It goes on in other chunks than before.
    for (from, to) in [(20, 35), (35, 60)] {
        wait_until("a chunk is taken", || client.send(&chunk(from, to, to == 60)).status != 503);
    }
    let done = client.get(&progress).expect(200);
    assert_eq!((&done["lines"], &done["finished"]), (&json!(60), &json!(true)));
    assert_eq!((&done["taken"], &done["refused"]), (&json!(59), &json!(1)), "killed: {killed}");
    for player in 0..7 {
        let found = client.get(&format!("/v1/leaderboards/sum/players/{}", name(player))).expect(200);
        let lines = (1..=60).filter(|line| line % 7 == player && *line != 3).count();
        assert_eq!(found["score"], lines, "killed: {killed}");
    }
    true
}
