//! Boards and keys: the effect at one server holds on the others, and random operations at any of them equal one model.

use super::world::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tally_testkit::model::{Board, Definition, Range, Record, Score};
use tally_testkit::rng::soak;
use tally_testkit::{Request, RespClient, Rng};
use tally_wire::resp::Reply;

#[test]
fn what_one_server_does_holds_on_the_others_at_once() {
    [1, 2].into_iter().for_each(at_once);
}

fn at_once(databases: usize) {
    let servers = Servers::over(databases, 3);
    let mut clients = servers.clients();
    let [a, b, c] = &mut clients[..] else { panic!("three") };
    // A board and its scores, each at another server.
    put(a, "b", &json!({})).expect(201);
    assert_eq!(submit(b, "b", "ann", 10).expect(200)["rank"], 1);
    assert_eq!(submit(c, "b", "bob", 20).expect(200)["rank"], 1);
    let third = submit(a, "b", "cid", 15).expect(200);
    assert_eq!((&third["rank"], &third["previous"]), (&json!(2), &Value::Null));
    for client in [&mut *a, &mut *b, &mut *c] {
        assert_eq!(names(&page(client, "b")), ["bob", "cid", "ann"]);
        assert_eq!(get(client, "/v1/leaderboards/b").expect(200)["counts"]["all_time"], 3);
    }
    // Banned on one: its next submit is decided by any as that of a banned player.
    send(a, &Request::new("POST", "/v1/leaderboards/b/players/bob/ban")).expect(200);
    let banned = submit(b, "b", "bob", 30).expect(200);
    assert_eq!((&banned["rank"], &banned["score"]), (&Value::Null, &json!(30)));
    assert_eq!(names(&page(c, "b")), ["cid", "ann"]);
    send(c, &Request::new("POST", "/v1/leaderboards/b/players/bob/restore")).expect(200);
    assert_eq!(submit(b, "b", "bob", 31).expect(200)["rank"], 1);
    assert_eq!(names(&page(a, "b")), ["bob", "cid", "ann"]);
    // A name in use elsewhere is found, also by a first ZADD.
    put(b, "b", &json!({})).expect(200);
    put(c, "b", &json!({"update": "sum"})).refused(409, "definition_conflict");
    let mut resp: Vec<RespClient> =
        servers.all.iter().map(|server| RespClient::connect(server.resp())).collect();
    assert_eq!(resp[0].call(&["ZADD", "z", "1", "x"]), Reply::Integer(1));
    assert_eq!(resp[1].call(&["ZADD", "z", "2", "y"]), Reply::Integer(1));
    assert_eq!(resp[2].call(&["ZCARD", "z"]), Reply::Integer(2));
    // A removed player is removed once.
    assert!(
        matches!(&resp[2].call(&["ZPOPMIN", "z"]), Reply::Array(two) if two[0] == Reply::Bulk(b"x".into()))
    );
    assert!(
        matches!(&resp[0].call(&["ZPOPMIN", "z"]), Reply::Array(two) if two[0] == Reply::Bulk(b"y".into()))
    );
    assert_eq!(resp[1].call(&["ZCARD", "z"]), Reply::Integer(0));
    // The same request at two servers is one.
    let same = Request::new("POST", "/v1/leaderboards/b/scores").json(&json!({"player": "dan", "score": 1}));
    let same = same.idempotent("once");
    let first = send(a, &same);
    let again = send(b, &same);
    assert!(!first.is_replay() && again.is_replay(), "{}", again.text());
    assert_eq!(first.expect(200)["score"], again.expect(200)["score"]);
    // Erased everywhere, by a server that does not know its boards yet.
    put(a, "new", &json!({})).expect(201);
    submit(a, "new", "ann", 5).expect(200);
    send(c, &Request::new("DELETE", "/v1/players/ann")).expect(204);
    assert_eq!(names(&page(b, "new")), [] as [&str; 0]);
    // Deleted: removed everywhere, and its name is free for any.
    send(b, &Request::new("DELETE", "/v1/leaderboards/b")).expect(204);
    wait_until("it is gone", || a.get("/v1/leaderboards/b").status == 404);
    assert_eq!(submit(c, "b", "ann", 1).status, 404);
    put(a, "b", &json!({"update": "sum"})).expect(201);
    submit(c, "b", "ann", 1).expect(200);
    assert_eq!(submit(b, "b", "ann", 1).expect(200)["score"], 2);
}

#[test]
fn a_key_that_is_revoked_on_one_ends_on_all() {
    let servers = Servers::start(2);
    let [one, other] = &servers.all[..] else { panic!("two") };
    let created = send(&mut one.local(), &Request::new("POST", "/v1/keys").json(&json!({"role": "admin"})));
    let created = created.expect(201);
    let key = created["key"].as_str().expect("it is shown once").to_owned();
    let mut client = other.client().with_key(&key);
    wait_until("the key is known", || client.get("/v1/leaderboards").status == 200);
    let id = created["id"].as_str().expect("an id");
    one.local().delete(&format!("/v1/keys/{id}?force=true")).expect(204);
    std::thread::sleep(Duration::from_secs(1));
    // Refused, or without any answer of a server that cannot know: a busy machine may have delayed its reads.
    let status = client.get("/v1/leaderboards").status;
    assert!([401, 503].contains(&status), "{status}");
    wait_until("it is refused", || client.get("/v1/leaderboards").status == 401);
}

/// One client, each operation at any server: every answer is that of the one model.
#[test]
fn soak_random_operations_at_any_server_equal_one_model() {
    [1, 2].into_iter().for_each(random_operations);
}

fn random_operations(databases: usize) {
    const PLAYERS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let servers = Servers::over(databases, 3);
    let mut clients = servers.clients();
    let mut rng = Rng::of("servers");
    let mut boards: BTreeMap<String, Board> = BTreeMap::new();
    for _ in 0..soak(250) / databases {
        let client = &mut clients[usize::try_from(rng.below(3)).unwrap()];
        let name = format!("b{}", rng.below(3));
        let player = *rng.pick(&PLAYERS);
        let Some(board) = boards.get_mut(&name) else {
            let definition = Definition { score: "int64", subscore: "none", ..Definition::random(&mut rng) };
            put(client, &name, &definition.json()).expect(201);
            boards.insert(name, Board::new(definition));
            continue;
        };
        let of_player = format!("/v1/leaderboards/{name}/players/{player}");
        match rng.below(100) {
            0..55 => {
                let score = rng.between(-4, 4);
                let answer = submit(client, &name, player, score).expect(200);
                let changed = answer["changed"] == json!(true);
                let at = if changed { answer["at"].as_str().unwrap_or("9") } else { "9" };
                let new =
                    Record { player: player.into(), score: Score::Int(score), subscore: 0, at: at.into() };
                let mut wanted = board.submit(new).expect("sums are small");
                (wanted["board"], wanted["period"]) = (json!(name), json!("all_time"));
                assert_eq!(answer, wanted, "on {name}");
            }
            55..70 => {
                let entries = &page(client, &name)["entries"];
                assert_eq!(entries, &json!(board.entries(&Range::default())), "on {name}");
            }
            70..80 => {
                let answer = get(client, &of_player);
                match board.rank(player) {
                    Some(rank) => assert_eq!(answer.expect(200)["rank"], rank),
                    None => answer.refused(404, "player_not_ranked"),
                }
            }
            80..88 => {
                let there = board.remove(player);
                assert_eq!(
                    send(client, &Request::new("DELETE", &of_player)).status,
                    if there { 204 } else { 404 }
                );
            }
            88..93 => {
                board.ban(player);
                send(client, &Request::new("POST", format!("{of_player}/ban"))).expect(200);
            }
            93..98 => {
                board.restore(player);
                send(client, &Request::new("POST", format!("{of_player}/restore"))).expect(200);
            }
            _ => {
                boards.remove(&name);
                send(client, &Request::new("DELETE", format!("/v1/leaderboards/{name}"))).expect(204);
            }
        }
    }
}
