//! `DELETE /v1/players/{player}`: removed from every board, with profile and ban.

use super::{TALLY, check_replay, check_standing, create, end_and_start, place, submit, turn};
use serde_json::json;
use tally_testkit::{Client, Request, TestTally};

/// `p` on two boards, banned on the second and, without a score, on the third; with a profile.
fn known(server: &TestTally) -> Client {
    let mut client = server.client();
    for board in ["one", "two", "three"] {
        create(&mut client, board, &json!({"update": "sum"}));
        submit(&mut client, board, "q", 5);
    }
    submit(&mut client, "one", "p", 9);
    submit(&mut client, "two", "p", 9);
    client.send(&turn("two", "p", "ban")).expect(200);
    client.send(&turn("three", "p", "ban")).expect(200);
    for player in ["p", "q"] {
        client.put(&format!("/v1/players/{player}"), &json!({"name": player})).expect(201);
    }
    client
}

fn erase(player: &str) -> Request {
    Request::new("DELETE", format!("/v1/players/{player}"))
}

#[track_caller]
fn check_erased(client: &mut Client) {
    client.get("/v1/players/p").refused(404, "player_not_found");
    client.send(&erase("p")).refused(404, "player_not_found");
    for board in ["one", "two", "three"] {
        check_standing(client, board, &["q"]);
        place(client, board, "p").refused(404, "player_not_ranked");
        client.delete(&format!("/v1/leaderboards/{board}/players/p")).refused(404, "player_not_ranked");
    }
    assert_eq!(client.get("/v1/players/q").expect(200), json!({"player": "q", "name": "q"}));
}

#[test]
fn erased_is_erased_everywhere_and_for_good() {
    let mut server = TestTally::start(TALLY);
    let mut client = known(&server);
    let answer = client.send(&erase("p"));
    answer.expect(204);
    assert!(answer.body.is_empty());
    check_erased(&mut client);
    for kill in [true, false] {
        client = end_and_start(&mut server, kill);
        check_erased(&mut client);
    }
    for board in ["one", "two", "three"] {
        let first = submit(&mut client, board, "p", 1);
        assert_eq!(first["previous"], json!(null), "{board}: nothing is remembered");
        assert_eq!((&first["rank"], &first["score"]), (&json!(2), &json!(1)), "{board}: nor is the ban");
    }
}

#[test]
fn any_trace_is_enough_to_be_known() {
    let mut server = TestTally::start(TALLY);
    let mut client = known(&server);
    client.send(&erase("stranger")).refused(404, "player_not_found");
    // A score alone, a profile alone, a ban alone, a score of a banned player alone.
    submit(&mut client, "one", "scored", 1);
    client.put("/v1/players/described", &json!({})).expect(201);
    client.send(&turn("one", "banned", "ban")).expect(200);
    client.send(&turn("one", "both", "ban")).expect(200);
    submit(&mut client, "one", "both", 1);
    client = end_and_start(&mut server, true);
    for player in ["scored", "described", "banned", "both"] {
        client.send(&erase(player)).expect(204);
        client.send(&erase(player)).refused(404, "player_not_found");
    }
    // A ban taken back leaves nothing behind.
    client.send(&turn("one", "shown", "ban")).expect(200);
    client.send(&turn("one", "shown", "restore")).expect(200);
    client.send(&erase("shown")).refused(404, "player_not_found");
}

#[test]
fn a_replay_does_not_erase_a_player_that_came_back() {
    let mut server = TestTally::start(TALLY);
    let mut client = known(&server);
    let request = erase("p").idempotent("erase");
    let first = client.send(&request);
    first.expect(204);
    submit(&mut client, "one", "p", 3);
    client.put("/v1/players/p", &json!({"name": "back"})).expect(201);
    check_replay(&client.send(&request), 204, &first);
    client.send(&erase("q").idempotent("erase")).refused(422, "idempotency_key_reused");
    client = end_and_start(&mut server, true);
    check_replay(&client.send(&request), 204, &first);
    check_standing(&mut client, "one", &["q", "p"]);
    assert_eq!(client.get("/v1/players/p").expect(200)["name"], "back");
    // A rejection is not kept: the same key erases once the player exists.
    client.send(&erase("late").idempotent("late")).refused(404, "player_not_found");
    submit(&mut client, "one", "late", 1);
    let late = client.send(&erase("late").idempotent("late"));
    assert_eq!((late.status, late.is_replay()), (204, false));
}

/// The outcome of a submit is kept with its key, not with the player: a retry must not bring the player back.
#[test]
fn a_retried_submit_brings_no_player_back() {
    let server = TestTally::start(TALLY);
    let mut client = known(&server);
    let row = json!({"player": "p", "score": 1});
    let add = Request::new("POST", "/v1/leaderboards/one/scores").json(&row).idempotent("add");
    client.send(&add).expect(200);
    client.send(&erase("p")).expect(204);
    let again = client.send(&add);
    assert!(again.is_replay());
    assert_eq!(again.expect(200)["rank"], json!(null));
    check_erased(&mut client);
}

#[test]
fn erasing_reaches_many_boards_at_once() {
    let mut server = TestTally::start(TALLY);
    let mut client = server.client();
    let boards: Vec<String> = (0..150).map(|at| format!("board-{at}")).collect();
    for board in &boards {
        create(&mut client, board, &json!({}));
    }
    let row = |board: &String, player: &str| json!({"board": board, "player": player, "score": 1});
    let rows: Vec<_> = boards.iter().flat_map(|board| [row(board, "p"), row(board, "q")]).collect();
    client.post("/v1/scores/batch", &json!({"scores": rows})).expect(200);
    client.send(&erase("p")).expect(204);
    for kill in [false, true] {
        for board in &boards {
            check_standing(&mut client, board, &["q"]);
        }
        client = end_and_start(&mut server, kill);
    }
}
