//! Boards that a first `ZADD` makes, seen through both listeners: they exist as long as they have members, and a spec keeps them.
//!
//! Every way to take out the last member is tried, and the server is killed in between. Not here: replies to the letter,
//! and what `ZADD` means on boards of other kinds.

use crate::TALLY;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use tally_testkit::{Client, RespClient, Response, SetAtEnd, TestTally};
use tally_wire::resp::Reply;

/// Rounds of the race between the listeners.
const ROUNDS: usize = 150;

#[track_caller]
fn call(client: &mut RespClient, line: &str) -> Reply {
    client.call(&line.split(' ').collect::<Vec<_>>())
}

#[track_caller]
fn int(client: &mut RespClient, line: &str, wanted: i64) {
    assert_eq!(call(client, line), Reply::Integer(wanted), "{line}");
}

fn ok() -> Reply {
    Reply::Simple(b"OK".to_vec())
}

fn clients(server: &TestTally) -> (RespClient, Client) {
    (RespClient::connect(server.resp()), server.local())
}

fn board(http: &mut Client, name: &str) -> Response {
    http.get(&format!("/v1/leaderboards/{name}"))
}

fn listed(http: &mut Client) -> Vec<String> {
    let list = http.get("/v1/leaderboards?limit=100").expect(200);
    let items = list["items"].as_array().expect("items").iter();
    items.map(|item| item["board"].as_str().expect("a name").to_owned()).collect()
}

fn players(http: &mut Client, name: &str) -> Vec<Value> {
    let page = http.get(&format!("/v1/leaderboards/{name}/scores")).expect(200);
    let entries = page["entries"].as_array().expect("entries").iter();
    entries.map(|entry| json!([entry["rank"], entry["player"], entry["score"]])).collect()
}

/// Both listeners say that it does not exist, for every kind of request.
#[track_caller]
fn check_gone(resp: &mut RespClient, http: &mut Client, name: &str) {
    int(resp, &format!("EXISTS {name}"), 0);
    int(resp, &format!("ZCARD {name}"), 0);
    assert_eq!(call(resp, &format!("TYPE {name}")), Reply::Simple(b"none".to_vec()));
    assert_eq!(call(resp, &format!("KEYS {name}")), Reply::Array(Vec::new()));
    int(resp, &format!("DEL {name}"), 0);
    let target = format!("/v1/leaderboards/{name}");
    for below in ["", "/scores", "/players/ann", "/players/ann/around", "/periods"] {
        http.get(&format!("{target}{below}")).refused(404, "leaderboard_not_found");
    }
    http.delete(&target).refused(404, "leaderboard_not_found");
    let submit = http.post(&format!("{target}/scores"), &json!({"player": "ann", "score": 1}));
    submit.refused(404, "leaderboard_not_found");
    let error = Reply::Error(b"ERR no such leaderboard".to_vec());
    assert_eq!(call(resp, &format!("LB.SUBMIT {name} ann 1")), error);
    assert!(!listed(http).contains(&name.to_owned()));
}

#[track_caller]
fn check_there(resp: &mut RespClient, http: &mut Client, name: &str) {
    int(resp, &format!("EXISTS {name}"), 1);
    assert_eq!(call(resp, &format!("TYPE {name}")), Reply::Simple(b"zset".to_vec()));
    board(http, name).expect(200);
    assert!(listed(http).contains(&name.to_owned()));
}

#[test]
fn it_is_listed_and_read_best_first_over_http() {
    let server = TestTally::start(TALLY);
    let (mut resp, mut http) = clients(&server);
    int(&mut resp, "ZADD duels 2 ann 3 bob 2 cy -inf dee 2 Bob 0.1 ann", 5);
    let shown = board(&mut http, "duels").expect(200);
    let wanted = [
        ("order", "descending"),
        ("update", "latest"),
        ("ties", "player_reversed"),
        ("score", "float64"),
        ("ranking", "ordinal"),
    ];
    for (member, value) in wanted {
        assert_eq!(shown[member], value, "{member}");
    }
    assert_eq!(shown["counts"]["all_time"], 5);
    assert_eq!(listed(&mut http), ["duels"]);
    let wanted = [
        json!([1, "bob", 3.0]),
        json!([2, "cy", 2.0]),
        json!([3, "Bob", 2.0]),
        json!([4, "ann", 0.1]),
        json!([5, "dee", "-inf"]),
    ];
    assert_eq!(players(&mut http, "duels"), wanted);
    // Data that comes in over HTTP is read over the other listener, by the board's own rule.
    http.post("/v1/leaderboards/duels/scores", &json!({"player": "bob", "score": 1.5})).expect(200);
    let order = ["cy", "Bob", "bob", "ann", "dee"].map(|name| Reply::Bulk(name.into()));
    assert_eq!(call(&mut resp, "ZREVRANGE duels 0 -1"), Reply::Array(order.into()));
    assert_eq!(call(&mut resp, "ZSCORE duels bob"), Reply::Bulk(b"1.5".to_vec()));
}

#[test]
fn it_is_gone_with_its_last_member_however_that_goes() {
    let mut server = TestTally::start(TALLY);
    let (mut resp, mut http) = clients(&server);
    let by_command = [
        "ZREM k ann bob nobody",
        "ZPOPMIN k 2",
        "ZPOPMAX k 5",
        "ZREMRANGEBYRANK k 0 -1",
        "ZREMRANGEBYSCORE k -inf +inf",
        "ZREMRANGEBYLEX k - +",
        "DEL k",
        "UNLINK k",
    ];
    for command in by_command {
        int(&mut resp, "ZADD k 1 ann 1 bob", 2);
        check_there(&mut resp, &mut http, "k");
        let reply = call(&mut resp, command);
        assert!(!matches!(reply, Reply::Error(_)), "{command}: {reply:?}");
        check_gone(&mut resp, &mut http, "k");

        int(&mut resp, "ZADD k 1 ann 1 bob", 2);
        let line = [&["MULTI"][..], &command.split(' ').collect::<Vec<_>>(), &["EXISTS", "k"], &["EXEC"]];
        let Some(Reply::Array(done)) = resp.pipeline(&line).pop() else { panic!("EXEC answers for each") };
        assert_eq!(done[1], Reply::Integer(0), "{command}: within the transaction it is gone at once");
        check_gone(&mut resp, &mut http, "k");
    }
    for player in ["ann", "bob"] {
        int(&mut resp, &format!("ZADD one 1 {player}"), 1);
        http.delete(&format!("/v1/leaderboards/one/players/{player}")).expect(204);
        check_gone(&mut resp, &mut http, "one");
    }
    int(&mut resp, "ZADD one 1 ann", 1);
    http.delete("/v1/leaderboards/one").expect(204);
    check_gone(&mut resp, &mut http, "one");
    int(&mut resp, "ZADD erased 1 ann", 1);
    http.delete("/v1/players/ann").expect(204);
    check_gone(&mut resp, &mut http, "erased");

    int(&mut resp, "ZADD full 1 ann", 1);
    int(&mut resp, "ZADD emptied 1 ann", 1);
    int(&mut resp, "ZREM emptied ann", 1);
    server.kill9();
    server.restart();
    let (mut resp, mut http) = clients(&server);
    for name in ["k", "one", "erased", "emptied"] {
        check_gone(&mut resp, &mut http, name);
    }
    assert_eq!(listed(&mut http), ["full"]);
    int(&mut resp, "DBSIZE", 1);
    // And it may come again.
    int(&mut resp, "ZADD emptied 2.5 bob", 1);
    check_there(&mut resp, &mut http, "emptied");
    int(&mut resp, "ZREM full ann", 1);
    check_gone(&mut resp, &mut http, "full");
}

#[test]
fn an_empty_name_is_free_for_a_board_of_another_kind() {
    let mut server = TestTally::start(TALLY);
    let (mut resp, mut http) = clients(&server);
    let spec = json!({"order": "ascending", "update": "best"});
    for name in ["put", "created"] {
        int(&mut resp, &format!("ZADD {name} 7.5 ann"), 1);
    }
    // Not empty: another kind is a conflict.
    http.put("/v1/leaderboards/put", &spec).refused(409, "definition_conflict");
    let Reply::Error(text) = call(&mut resp, "LB.CREATE created ORDER ascending") else {
        panic!("it is refused")
    };
    assert!(text.starts_with(b"ERR definition_conflict "), "{}", text.escape_ascii());
    for name in ["put", "created"] {
        int(&mut resp, &format!("ZREM {name} ann"), 1);
    }
    http.put("/v1/leaderboards/put", &spec).expect(201);
    assert_eq!(call(&mut resp, "LB.CREATE created ORDER ascending"), ok());
    for restarted in [false, true] {
        for name in ["put", "created"] {
            check_there(&mut resp, &mut http, name);
            let shown = board(&mut http, name).expect(200);
            assert_eq!((&shown["order"], &shown["score"]), (&json!("ascending"), &json!("int64")), "{name}");
            assert_eq!(shown["counts"]["all_time"], 0, "nothing is left of the one before");
            int(&mut resp, &format!("ZADD {name} 5 bob"), 1);
            int(&mut resp, &format!("ZADD {name} 9 bob"), 0);
            assert_eq!(players(&mut http, name), [json!([1, "bob", 5])], "{name}");
            int(&mut resp, &format!("ZREM {name} bob"), 1);
        }
        if !restarted {
            server.kill9();
            server.restart();
            (resp, http) = clients(&server);
        }
    }
}

#[test]
fn a_wish_for_it_makes_it_stay() {
    let mut server = TestTally::start(TALLY);
    let (mut resp, mut http) = clients(&server);
    let names = ["put", "said", "created"];
    for name in names {
        int(&mut resp, &format!("ZADD {name} 7.5 ann"), 1);
    }
    http.put("/v1/leaderboards/put", &json!({})).expect(200);
    let said = json!({"update": "latest", "score": "float64", "ties": "player_reversed"});
    http.put("/v1/leaderboards/said", &said).expect(200);
    assert_eq!(call(&mut resp, "LB.CREATE created"), ok());
    for restarted in [false, true] {
        for name in names {
            assert_eq!(players(&mut http, name), [json!([1, "ann", 7.5])], "{name}");
            int(&mut resp, &format!("ZREM {name} ann"), 1);
            check_there(&mut resp, &mut http, name);
            assert_eq!(board(&mut http, name).expect(200)["score"], "float64");
            http.put(&format!("/v1/leaderboards/{name}"), &json!({"score": "int64"}))
                .refused(409, "definition_conflict");
            int(&mut resp, &format!("ZADD {name} 7.5 ann"), 1);
        }
        if !restarted {
            server.kill9();
            server.restart();
            (resp, http) = clients(&server);
        }
    }
    // Only deletion ends it now.
    int(&mut resp, "DEL put said created", 3);
    for name in names {
        check_gone(&mut resp, &mut http, name);
    }
}

/// One listener fills and empties, the other makes and deletes: no answer is a fault, and one board is left.
#[test]
fn the_listeners_may_race_for_a_name() {
    let server = TestTally::start(TALLY);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let end = SetAtEnd::new(&done);
        let racing = scope.spawn(|| {
            let mut http = server.local();
            while !done.load(Ordering::Relaxed) {
                let put = http.put("/v1/leaderboards/k", &json!({"update": "latest", "score": "float64"}));
                assert!([200, 201, 409].contains(&put.status), "{}", put.text());
                let deleted = http.delete("/v1/leaderboards/k").status;
                assert!(deleted == 204 || deleted == 404, "{deleted}");
            }
        });
        let mut resp = RespClient::connect(server.resp());
        let mut wrong = Vec::new();
        for round in 0..ROUNDS {
            let lines = ["ZADD k 1 ann 2 bob", "ZINCRBY k 1 ann", "ZREM k ann bob", "ZCARD k"];
            let lines = lines.map(|line| line.split(' ').collect::<Vec<_>>());
            for (line, reply) in lines.iter().zip(resp.pipeline(&lines)) {
                // The board went a few times in a row just before it was used: nothing was done.
                let went = Reply::Error(b"ERR no such leaderboard".to_vec());
                if let Reply::Error(text) = &reply
                    && reply != went
                {
                    wrong.push(format!("round {round}: {line:?}: {}", text.escape_ascii()));
                }
            }
        }
        drop(end);
        racing.join().expect("no answer is a fault");
        assert_eq!(wrong, Vec::<String>::new());
    });
    let (mut resp, mut http) = clients(&server);
    http.put("/v1/leaderboards/k", &json!({"update": "latest", "score": "float64"}));
    int(&mut resp, "DEL k", 1);
    int(&mut resp, "ZADD k 1 ann", 1);
    assert_eq!(players(&mut http, "k"), [json!([1, "ann", 1.0])]);
}

/// Names that came and went take no memory for ever.
#[test]
fn unused_boards_make_room() {
    let server = TestTally::start_set(TALLY, &[("TALLY_LIMITS_BOARDS", "3")]);
    let mut resp = RespClient::connect(server.resp());
    for round in 0..20 {
        int(&mut resp, &format!("ZADD key{round} {round} member"), 1);
        int(&mut resp, &format!("ZREM key{round} member"), 1);
    }
    for name in ["a", "b", "c"] {
        int(&mut resp, &format!("ZADD {name} 1 member"), 1);
    }
    let Reply::Error(full) = call(&mut resp, "ZADD d 1 member") else { panic!("there is no room") };
    assert!(full.starts_with(b"ERR too_many_boards"), "{}", full.escape_ascii());
    int(&mut resp, "DBSIZE", 3);
}

/// A removal of one command and one in a transaction are refused alike.
#[test]
fn nothing_is_removed_from_the_leaderboard_of_a_contest() {
    let server = TestTally::start(TALLY);
    let (mut redis, mut http) = clients(&server);
    http.post("/v1/contests", &json!({"id": "cup", "title": "Cup"})).expect(201);
    http.post("/v1/contests/cup/open", &json!({})).expect(200);
    http.post("/v1/contests/cup/applications", &json!({"player": "ann"})).expect(201);
    http.post("/v1/contests/cup/applications/accept", &json!({"players": ["ann"]})).expect(200);
    http.post("/v1/contests/cup/start", &json!({})).expect(200);
    int(&mut redis, "ZADD contest:cup 5 ann", 1);
    let refused = |reply: &Reply| matches!(reply, Reply::Error(error) if error.starts_with(b"READONLY"));
    for line in [
        "ZREM contest:cup ann",
        "ZPOPMIN contest:cup",
        "ZPOPMAX contest:cup 2",
        "ZREMRANGEBYRANK contest:cup 0 -1",
        "ZREMRANGEBYSCORE contest:cup -inf +inf",
    ] {
        let reply = call(&mut redis, line);
        assert!(refused(&reply), "{line}: {reply:?}");
        assert_eq!(call(&mut redis, "MULTI"), ok());
        assert_eq!(call(&mut redis, line), Reply::Simple(b"QUEUED".to_vec()));
        let reply = call(&mut redis, "EXEC");
        let Reply::Array(replies) = &reply else { panic!("{line}: {reply:?}") };
        assert!(replies.iter().all(refused), "{line}: {reply:?}");
    }
    int(&mut redis, "ZCARD contest:cup", 1);
}
