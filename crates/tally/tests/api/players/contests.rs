//! The contests of a player, also without a score; contests and players of contests, found by their beginning.

use super::{TALLY, create, submit};
use serde_json::{Value, json};
use tally_testkit::http::segment;
use tally_testkit::{Client, TestTally};

/// Sends an act of a contest, or an application to it.
fn act(client: &mut Client, contest: &str, what: &str, body: &Value) {
    let answer = client.post(&format!("/v1/contests/{contest}/{what}"), body);
    assert!(answer.status < 300, "{what}: {}", answer.text());
}

/// Three contests: `ann` has applied to one, takes part in one that runs, and is staff of one.
fn contests(client: &mut Client) {
    for (id, title, staff) in
        [("open-cup", "Spring", "boss"), ("run-cup", "Summer cup", "boss"), ("drafted", "Spare", "ann")]
    {
        let contest = json!({"id": id, "title": title, "staff": [staff]});
        client.post("/v1/contests", &contest).expect(201);
    }
    for id in ["open-cup", "run-cup"] {
        act(client, id, "open", &json!({}));
        act(client, id, "applications", &json!({"player": "ann"}));
    }
    act(client, "run-cup", "applications/accept", &json!({"players": ["ann"]}));
    act(client, "run-cup", "start", &json!({}));
}

/// The values of a field of a list.
fn texts(list: &Value, name: &str) -> Vec<String> {
    let items = list["items"].as_array().expect("items").iter();
    items.map(|item| item[name].as_str().expect("a text").to_owned()).collect()
}

#[test]
fn a_player_has_its_contests_without_a_score() {
    let mut server = TestTally::start(TALLY);
    let mut client = server.local();
    contests(&mut client);
    for _ in 0..2 {
        let list = client.get("/v1/players/ann/contests").expect(200);
        assert_eq!(texts(&list, "contest"), ["drafted", "open-cup", "run-cup"]);
        let [draft, open, running] = [0, 1, 2].map(|at| list["items"][at].clone());
        assert_eq!((&draft["staff"], &draft["state"]), (&json!(true), &json!("draft")));
        assert_eq!((draft.get("application"), draft.get("entry")), (None, None));
        assert_eq!((&open["title"], &open["staff"]), (&json!("Spring"), &json!(false)));
        assert_eq!((&open["application"]["state"], open.get("entry")), (&json!("pending"), None));
        assert_eq!((&running["state"], &running["entry"]["place"]), (&json!("running"), &json!(1)));
        assert_eq!(running.get("application"), None);
        let path = "/v1/players/ann/contests?limit=1";
        let (all, pages) = tally_testkit::audit::read_pages(&mut client, path, "items");
        assert_eq!((json!(all), pages.len() >= 3), (list["items"].clone(), true));
        let nobody = client.get("/v1/players/nobody/contests").expect(200);
        assert_eq!(nobody, json!({"player": "nobody", "items": []}));
        // From the tables as well as from memory.
        server.terminate();
        server.restart();
        client = server.local();
    }
}

#[test]
fn contests_are_found_by_the_beginning_of_an_id_or_a_title() {
    let server = TestTally::start(TALLY);
    let mut client = server.local();
    contests(&mut client);
    for (prefix, found) in [
        ("SPR", &["open-cup"][..]),
        ("sp", &["drafted", "open-cup"]),
        ("run", &["run-cup"]),
        ("Summer C", &["run-cup"]),
        ("cup", &[]),
    ] {
        let list = client.get(&format!("/v1/contests?prefix={}", segment(prefix))).expect(200);
        assert_eq!(texts(&list, "id"), found, "{prefix}");
    }
    let running = client.get("/v1/contests?prefix=s&state=running").expect(200);
    assert_eq!(texts(&running, "id"), ["run-cup"]);
    let (all, pages) =
        tally_testkit::audit::read_pages(&mut client, "/v1/contests?prefix=s&limit=1", "items");
    assert_eq!((all.len(), pages.len() >= 3), (3, true));
    let next = pages[0]["next_cursor"].as_str().expect("there are more");
    client.get(&format!("/v1/contests?cursor={next}")).refused(400, "invalid_cursor");
}

/// Leaderboards of contests are searched after the others, which their names do not say.
#[test]
fn contests_do_not_crowd_out_leaderboards() {
    let server = TestTally::start(TALLY);
    let mut client = server.local();
    contests(&mut client);
    create(&mut client, "zeal", &json!({}));
    for board in ["contest:run-cup", "zeal"] {
        submit(&mut client, board, "ann", 1);
    }
    let find =
        |client: &mut Client, prefix: &str| client.get(&format!("/v1/players?prefix={prefix}")).expect(200);
    let found = find(&mut client, "an");
    let boards = json!(["zeal", "contest:run-cup"]);
    assert_eq!((&found["items"][0]["boards"], &found["complete"]), (&boards, &json!(true)));
    // Past the bound the answer says that it is not complete, and contests give way.
    for number in 0..199 {
        create(&mut client, &format!("b{number}"), &json!({}));
    }
    let found = find(&mut client, "an");
    assert_eq!((&found["items"][0]["boards"], &found["complete"]), (&json!(["zeal"]), &json!(false)));
}
