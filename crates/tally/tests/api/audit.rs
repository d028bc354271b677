//! The audit log over HTTP: each act with its actor, once, by filters and pages, and after a kill.

use crate::TALLY;
use serde_json::{Value, json};
use tally_testkit::audit::read_pages;
use tally_testkit::{Client, Request, RespClient, TestTally};
use tally_wire::resp::Reply;

/// Action, subject, actor and detail of a row.
type Row = (String, String, String, Option<String>);

/// A new key of this role: its id, and a client that has it.
fn key(server: &TestTally, role: &str) -> (String, Client) {
    let made = server.local().post("/v1/keys", &json!({"role": role, "name": "shop"})).expect(201);
    let (id, token) = (made["id"].as_str().expect("an id"), made["key"].as_str().expect("a key"));
    (id.to_owned(), server.client().with_key(token))
}

/// Action, subject, actor and detail of each row, oldest first.
fn rows(client: &mut Client, query: &str) -> Vec<Row> {
    let text = |row: &Value, name: &str| row[name].as_str().map(str::to_owned);
    let (mut items, _) = read_pages(client, &format!("/v1/audit?limit=3{query}"), "items");
    items.reverse();
    let one = |row: &Value| {
        let of = |name| text(row, name).expect("a text");
        (of("action"), of("subject"), of("actor"), text(row, "detail"))
    };
    items.iter().map(one).collect()
}

fn row(action: &str, subject: &str, actor: &str, detail: Option<&str>) -> Row {
    (action.into(), subject.into(), actor.into(), detail.map(str::to_owned))
}

#[test]
fn each_act_is_there_once_with_its_actor() {
    let mut server = TestTally::start(TALLY);
    server.client().put("/v1/leaderboards/goals", &json!({})).expect(201);
    let (shop_id, mut shop) = key(&server, "server");
    let (desk_id, mut desk) = key(&server, "admin");
    let (by_shop, by_desk) = (format!("key:{shop_id}"), format!("key:{desk_id}"));
    // Repeated and refused requests leave no row of their own.
    let put = Request::new("PUT", "/v1/leaderboards/cups").json(&json!({})).idempotent("put");
    shop.send(&put).expect(201);
    assert!(shop.send(&put).is_replay());
    shop.put("/v1/leaderboards/cups", &json!({})).expect(200);
    shop.delete("/v1/leaderboards/none").refused(404, "leaderboard_not_found");
    let daily = json!({"periods": [{"name": "daily", "schedule": "0 0 * * *"}]});
    desk.put("/v1/leaderboards/cups", &daily).expect(200);
    shop.post("/v1/leaderboards/goals/scores", &json!({"player": "ann", "score": 1})).expect(200);
    desk.post("/v1/leaderboards/goals/players/ann/ban", &json!({})).expect(200);
    desk.post("/v1/leaderboards/goals/players/ann/restore", &json!({})).expect(200);
    shop.post("/v1/leaderboards/goals/scores", &json!({"player": "bob", "score": 5})).expect(200);
    desk.delete("/v1/leaderboards/goals/players/bob").expect(204);
    shop.delete("/v1/players/ann").expect(204);
    let member = shop.post("/v1/members", &json!({"login_id": "bob", "name": "Bob"})).expect(201);
    let member = member["id"].as_str().expect("an id").to_owned();
    shop.send(&Request::new("PATCH", format!("/v1/members/{member}")).json(&json!({"name": "Bo"})))
        .expect(200);
    desk.post(&format!("/v1/members/{member}/close"), &json!({"force": true})).expect(200);
    desk.delete("/v1/leaderboards/cups").expect(204);
    desk.delete(&format!("/v1/keys/{shop_id}")).expect(204);
    let all = [
        row("leaderboard.created", "goals", "local", None),
        row("key.created", &shop_id, "command_line", Some("server, shop")),
        row("key.created", &desk_id, "command_line", Some("admin, shop")),
        row("leaderboard.created", "cups", &by_shop, None),
        row("leaderboard.changed", "cups", &by_desk, None),
        row("player.banned", "ann", &by_desk, Some("goals")),
        row("player.restored", "ann", &by_desk, Some("goals")),
        row("player.removed", "bob", &by_desk, Some("goals: all_time 5")),
        row("player.erased", "ann", &by_shop, None),
        row("member.changed", &member, &by_shop, Some("name")),
        row("member.closed", &member, &by_desk, Some("force")),
        row("leaderboard.deleted", "cups", &by_desk, None),
        row("key.revoked", &shop_id, &by_desk, None),
    ];
    for killed in [false, true] {
        if killed {
            server.kill9();
            server.restart();
        }
        let mut local = server.local();
        assert_eq!(rows(&mut local, ""), all, "killed: {killed}");
        let of =
            |is: &dyn Fn(&Row) -> bool| -> Vec<_> { all.iter().filter(|row| is(row)).cloned().collect() };
        assert_eq!(rows(&mut local, &format!("&actor={by_shop}")), of(&|row| row.2 == by_shop));
        assert_eq!(rows(&mut local, "&action=key.created"), of(&|row| row.0 == "key.created"));
        assert_eq!(rows(&mut local, "&subject=cups"), of(&|row| row.1 == "cups"));
        let both = format!("&subject=cups&actor={by_desk}&action=leaderboard.deleted");
        assert_eq!(rows(&mut local, &both), all[11..12]);
        // By time: from an instant on, and before it.
        let items = local.get("/v1/audit").expect(200)["items"].clone();
        let at = items[4]["at"].as_str().expect("an instant");
        assert_eq!(rows(&mut local, &format!("&from={at}")), all[8..]);
        assert_eq!(rows(&mut local, &format!("&until={at}")), all[..8]);
    }
}

/// An act that changes nothing answers as the first one did, and is none.
#[test]
fn what_changes_nothing_leaves_no_row() {
    let server = TestTally::start(TALLY);
    let (_, mut desk) = key(&server, "admin");
    let (spare, _) = key(&server, "reader");
    desk.put("/v1/leaderboards/b", &json!({})).expect(201);
    desk.post("/v1/contests", &json!({"id": "cup", "title": "Cup"})).expect(201);
    desk.post("/v1/contests/cup/open", &json!({})).expect(200);
    desk.post("/v1/contests/cup/applications", &json!({"player": "eve"})).expect(201);
    desk.post("/v1/contests/cup/applications/accept", &json!({"players": ["eve"]})).expect(200);
    desk.post("/v1/contests/cup/start", &json!({})).expect(200);
    // A player that was never banned is not restored.
    let never = Request::new("POST", "/v1/leaderboards/b/players/never/restore").idempotent("never");
    let restored = desk.send(&never);
    assert_eq!(restored.expect(200), json!({"board": "b", "player": "never", "banned": false}));
    assert!(desk.send(&never).is_replay());
    // A ban may come before the first score.
    for (act, banned) in [("ban", true), ("restore", false)] {
        for path in ["/v1/leaderboards/b/players/ann", "/v1/contests/cup/players/eve"] {
            let first = desk.post(&format!("{path}/{act}"), &json!({})).expect(200);
            assert_eq!(first["banned"], banned, "{path} {act}");
            assert_eq!(desk.post(&format!("{path}/{act}"), &json!({})).expect(200), first);
        }
    }
    let correction = json!({"score": 5, "reason": "why"});
    for changed in [true, false] {
        let done = desk.post("/v1/leaderboards/b/players/ann/correct", &correction).expect(200);
        assert_eq!((&done["score"], &done["changed"]), (&json!(5), &json!(changed)));
    }
    let member = desk.post("/v1/members", &json!({"login_id": "bob", "name": "Bob"})).expect(201);
    let member = member["id"].as_str().expect("an id").to_owned();
    for _ in 0..2 {
        desk.post(&format!("/v1/members/{member}/close"), &json!({})).expect(200);
    }
    desk.delete(&format!("/v1/keys/{spare}")).expect(204);
    desk.delete(&format!("/v1/keys/{spare}")).refused(404, "key_not_found");
    let mut of = |action: &str| -> Vec<(String, Option<String>)> {
        let found = rows(&mut desk, &format!("&action={action}"));
        found.into_iter().map(|(_, subject, _, detail)| (subject, detail)).collect()
    };
    let one = |subject: &str, detail: &str| (subject.to_owned(), Some(detail.to_owned()));
    let both = [one("ann", "b"), one("eve", "contest:cup")];
    assert_eq!((of("player.banned"), of("player.restored")), (both.to_vec(), both.to_vec()));
    assert_eq!(of("score.corrected"), [one("ann", "b: none to 5")]);
    assert_eq!((of("member.closed"), of("key.revoked")), (vec![(member, None)], vec![(spare, None)]));
}

#[test]
fn acts_on_contests_are_there_with_those_of_the_server_itself() {
    let server = TestTally::start(TALLY);
    let (desk_id, mut desk) = key(&server, "admin");
    let by = format!("key:{desk_id}");
    desk.post("/v1/contests", &json!({"id": "cup", "title": "Cup", "staff": ["boss"]})).expect(201);
    desk.send(&Request::new("PATCH", "/v1/contests/cup").json(&json!({"title": "The cup"}))).expect(200);
    desk.post("/v1/contests/cup/open", &json!({})).expect(200);
    desk.post("/v1/contests/cup/applications", &json!({"player": "ann"})).expect(201);
    desk.post("/v1/contests/cup/applications/accept", &json!({"players": ["ann"]})).expect(200);
    desk.post("/v1/contests/cup/start", &json!({})).expect(200);
    desk.post("/v1/contests/cup/finish", &json!({})).expect(200);
    desk.post("/v1/contests/cup/settle", &json!({})).expect(200);
    desk.post("/v1/contests/cup/settle", &json!({})).expect(200);
    let yearly = json!({"id": "s", "template": {"title": "S"}, "open": "0 0 1 1 *", "start": "0 1 1 1 *", "end": "0 2 1 1 *"});
    desk.post("/v1/contest-series", &yearly).expect(201);
    let change = Request::new("PATCH", "/v1/contest-series/s").json(&json!({"ahead": 1}));
    desk.send(&change).expect(200);
    desk.delete("/v1/contest-series/s").expect(204);
    let found = rows(&mut desk, "&subject=cup");
    let acts: Vec<&str> = found.iter().map(|row| row.0.as_str()).collect();
    let wanted = ["created", "changed", "opened", "accepted", "started", "finished", "settled"];
    assert_eq!(acts, wanted.map(|act| format!("contest.{act}")));
    assert_eq!(found[3].3.as_deref(), Some("1 player: ann"));
    assert!(found.iter().all(|row| row.2 == by), "{found:?}");
    let series: Vec<_> = rows(&mut desk, "&subject=s").into_iter().map(|row| (row.0, row.2)).collect();
    let of = |act: &str| (format!("series.{act}"), by.clone());
    assert_eq!(series, ["created", "changed", "deleted"].map(of));
    // The series makes its contests by itself.
    for made in rows(&mut desk, "&action=contest.created&actor=background") {
        assert_eq!(made.3.as_deref(), Some("s"));
    }
}

/// The reason in the newest row of an action on a subject.
fn reason_of(client: &mut Client, action: &str, subject: &str) -> Value {
    let page = client.get(&format!("/v1/audit?action={action}&subject={subject}")).expect(200);
    page["items"][0]["reason"].clone()
}

/// Money that a key of role `admin` moves, or a caller on this machine with a reason. What games do leaves no row.
#[test]
fn money_that_administrators_move_is_there() {
    let server = TestTally::start(TALLY);
    let (_, mut shop) = key(&server, "server");
    let (desk_id, mut desk) = key(&server, "admin");
    let by = format!("key:{desk_id}");
    let text = |value: &Value| value.as_str().expect("an id").to_owned();
    let moved = |client: &mut Client, path: &str, body: &Value| {
        text(&client.post(path, body).expect(201)["group_id"])
    };
    let new = |name: &str| json!({"login_id": name, "name": name, "reason": "why"});
    let ann = text(&shop.post("/v1/members", &new("ann")).expect(201)["id"]);
    let bob = text(&desk.post("/v1/members", &new("bob")).expect(201)["id"]);
    let gift = json!({"to": bob, "amount": 100, "reason": "gift", "metadata": {"level": 3}});
    let gift = Request::new("POST", "/v1/deposits").json(&gift).idempotent("gift");
    let deposited = text(&desk.send(&gift).expect(201)["group_id"]);
    assert!(desk.send(&gift).is_replay());
    let given = moved(&mut desk, "/v1/transfers", &json!({"from": bob, "to": ann, "amount": 30}));
    let paid = moved(&mut desk, "/v1/withdrawals", &json!({"from": bob, "amount": 20}));
    let reverse = format!("/v1/ledger/transactions/{given}/reverse");
    let back = moved(&mut desk, &reverse, &json!({"amount": 10}));
    // Rejected ones, those that are linked to one, and those of the game leave no row.
    let large = json!({"from": bob, "amount": 1_000});
    desk.post("/v1/withdrawals", &large).refused(422, "insufficient_funds");
    let one = |amount: i64, linked: bool| json!({"from": ann, "to": bob, "amount": amount, "linked": linked});
    let linked = json!({"transfers": [one(1, true), one(1_000, false)]});
    desk.post("/v1/transfers/batch", &linked).expect(200);
    moved(&mut shop, "/v1/deposits", &json!({"to": ann, "amount": 5, "reason": "bought"}));
    let batch = desk.post("/v1/transfers/batch", &json!({"transfers": [one(2, false)]})).expect(200);
    let last = text(&batch["results"][0]["transaction"]["group_id"]);
    let all = [
        row("member.created", &bob, &by, None),
        row("money.deposited", &bob, &by, Some(&format!("100 KRW to {bob}, transaction {deposited}"))),
        row(
            "money.transferred",
            &bob,
            &by,
            Some(&format!("30 KRW from {bob} to {ann}, transaction {given}")),
        ),
        row("money.withdrawn", &bob, &by, Some(&format!("20 KRW from {bob}, transaction {paid}"))),
        row("money.reversed", &given, &by, Some(&format!("10 KRW from {ann} to {bob}, transaction {back}"))),
        row("money.transferred", &ann, &by, Some(&format!("2 KRW from {ann} to {bob}, transaction {last}"))),
    ];
    assert_eq!(rows(&mut desk, &format!("&actor={by}")), all);
    assert_eq!(rows(&mut desk, &format!("&subject_prefix={}", &bob[..35])), all[..4]);
    assert_eq!(rows(&mut desk, "&subject_prefix=x"), []);
    // The whole subject, or nothing.
    assert_eq!(rows(&mut desk, &format!("&subject={bob}")), all[..4]);
    assert_eq!(rows(&mut desk, &format!("&subject={}", &bob[..35])), []);
    assert_eq!(reason_of(&mut desk, "money.deposited", &bob), "gift");
    assert_eq!(reason_of(&mut desk, "member.created", &bob), "why");
    // A caller on this machine gives a reason, or its money is that of a game.
    let mut local = server.local();
    moved(&mut local, "/v1/deposits", &json!({"to": ann, "amount": 1}));
    moved(&mut local, "/v1/deposits", &json!({"to": ann, "amount": 2, "reason": "by hand"}));
    let by_hand = rows(&mut local, "&actor=command_line&action=money.deposited");
    assert_eq!(by_hand.len(), 1, "{by_hand:?}");
    assert_eq!(reason_of(&mut local, "money.deposited", &ann), "by hand");
}

/// Players that a key of role `admin` removes, or a caller on this machine with a reason. The row has the scores. What games remove
/// leaves none.
#[test]
fn players_that_administrators_remove_are_there() {
    let server = TestTally::start(TALLY);
    let (_, mut shop) = key(&server, "server");
    let (desk_id, mut desk) = key(&server, "admin");
    let (mut local, ann) = (server.local(), "/v1/leaderboards/years/players/ann");
    let periods = json!({"periods": [{"name": "yearly", "schedule": "0 0 1 1 *"}]});
    desk.put("/v1/leaderboards/years", &periods).expect(201);
    let mut submit = || {
        shop.post("/v1/leaderboards/years/scores", &json!({"player": "ann", "score": 9})).expect(200);
    };
    submit();
    local.delete(ann).expect(204);
    submit();
    let place = desk.get(&format!("{ann}?period=yearly")).expect(200);
    let remove = request("DELETE", format!("{ann}?reason=a+bot")).idempotent("remove");
    desk.send(&remove).expect(204);
    assert!(desk.send(&remove).is_replay());
    desk.send(&request("DELETE", ann).idempotent("remove")).refused(422, "idempotency_key_reused");
    desk.delete(ann).refused(404, "player_not_ranked");
    submit();
    shop.delete(&format!("{ann}?reason=left")).expect(204);
    let detail = format!("years: all_time 9, {} 9", place["period"].as_str().expect("a name"));
    let wanted = row("player.removed", "ann", &format!("key:{desk_id}"), Some(&detail));
    assert_eq!(rows(&mut desk, "&action=player.removed"), [wanted]);
    assert_eq!(reason_of(&mut desk, "player.removed", "ann"), "a bot");
}

/// Commands of the Redis protocol that are the same acts; they give no reason.
#[test]
fn acts_over_the_redis_protocol_are_there() {
    let server = TestTally::start(TALLY);
    let mut resp = RespClient::connect(server.resp());
    let mut call = |line: &str| resp.call(&line.split(' ').collect::<Vec<_>>());
    assert_eq!(call("LB.CREATE made"), Reply::Simple(b"OK".to_vec()));
    // A leaderboard that its first score makes and its last one ends is no act.
    for line in ["ZADD unmade 1 ann", "ZREM unmade ann", "ZADD made 1 ann", "ZREM made ann", "DEL made"] {
        assert_eq!(call(line), Reply::Integer(1), "{line}");
    }
    assert_eq!(call("DEL made unmade"), Reply::Integer(0));
    let wanted = ["created", "deleted"].map(|act| row(&format!("leaderboard.{act}"), "made", "local", None));
    assert_eq!(rows(&mut server.local(), ""), wanted);
}

fn request(method: &str, path: impl AsRef<str>) -> Request {
    Request::new(method, path.as_ref())
}

fn body(method: &str, path: impl AsRef<str>, body: &Value) -> Request {
    request(method, path).json(body)
}

/// A request, and the action and subject of its row.
type Act<'a> = (&'static str, &'a str, Request);

fn acts_on_boards() -> Vec<Act<'static>> {
    let daily = json!({"periods": [{"name": "d", "schedule": "0 0 * * *"}], "reason": "r2"});
    let on_player = |act: &str| request("POST", format!("/v1/leaderboards/b/players/p/{act}"));
    vec![
        ("leaderboard.created", "b", body("PUT", "/v1/leaderboards/b", &json!({"reason": "r1"}))),
        ("leaderboard.changed", "b", body("PUT", "/v1/leaderboards/b", &daily)),
        ("", "", body("POST", "/v1/leaderboards/b/scores", &json!({"player": "p", "score": 1}))),
        ("", "", body("POST", "/v1/leaderboards/b/scores", &json!({"player": "q", "score": 1}))),
        ("player.removed", "q", request("DELETE", "/v1/leaderboards/b/players/q?reason=r7")),
        ("player.banned", "p", on_player("ban?reason=r3")),
        ("player.restored", "p", on_player("restore?reason=r4")),
        ("player.erased", "p", request("DELETE", "/v1/players/p?reason=r5")),
        ("leaderboard.deleted", "b", request("DELETE", "/v1/leaderboards/b?reason=r6")),
    ]
}

fn acts_on_a_member(member: &str) -> Vec<Act<'_>> {
    let path = format!("/v1/members/{member}");
    vec![
        ("member.changed", member, body("PATCH", &path, &json!({"name": "An", "reason": "m1"}))),
        ("member.changed", member, request("POST", format!("{path}/sign-out?reason=m2"))),
        ("member.changed", member, request("POST", format!("{path}/unlock-pin?reason=m3"))),
        ("member.exported", member, request("GET", format!("{path}/export?reason=m5"))),
        ("member.closed", member, body("POST", format!("{path}/close"), &json!({"reason": "m4"}))),
    ]
}

fn acts_on_contests() -> Vec<Act<'static>> {
    let series = json!({"id": "s", "template": {"title": "S"}, "open": "0 0 1 1 *", "start": "0 1 1 1 *",
        "end": "0 2 1 1 *", "reason": "s1"});
    let post = |path: &str, json: Value| body("POST", format!("/v1/contests/c/{path}"), &json);
    let act = |path: &str| request("POST", format!("/v1/contests/{path}"));
    let new = |json: Value| body("POST", "/v1/contests", &json);
    vec![
        ("contest.created", "c", new(json!({"id": "c", "title": "C", "reason": "c1"}))),
        ("contest.changed", "c", body("PATCH", "/v1/contests/c", &json!({"title": "D", "reason": "c2"}))),
        ("contest.opened", "c", act("c/open?reason=c3")),
        ("", "", post("applications", json!({"player": "p"}))),
        ("", "", post("applications", json!({"player": "q"}))),
        ("contest.accepted", "c", post("applications/accept", json!({"players": ["p"], "reason": "c4"}))),
        ("contest.rejected", "c", post("applications/reject", json!({"players": ["q"], "reason": "c5"}))),
        ("contest.started", "c", act("c/start?reason=c6")),
        ("player.banned", "p", act("c/players/p/ban?reason=c7")),
        ("contest.finished", "c", act("c/finish?reason=c8")),
        ("score.corrected", "p", post("members/p/correct", json!({"score": 1, "reason": "c10"}))),
        ("contest.settled", "c", act("c/settle?reason=c9")),
        ("", "", new(json!({"id": "e", "title": "E"}))),
        ("contest.cancelled", "e", act("e/cancel?reason=e1")),
        ("series.created", "s", body("POST", "/v1/contest-series", &series)),
        ("series.changed", "s", body("PATCH", "/v1/contest-series/s", &json!({"ahead": 1, "reason": "s2"}))),
        ("series.deleted", "s", request("DELETE", "/v1/contest-series/s?reason=s3")),
    ]
}

/// The reason that a request gives in its query or in its body.
fn given(act: &Request) -> String {
    let target = std::str::from_utf8(&act.target).expect("a text");
    if let Some((_, reason)) = target.split_once("reason=") {
        return reason.to_owned();
    }
    let body: Value = serde_json::from_slice(act.body.as_ref().expect("a body")).expect("JSON");
    body["reason"].as_str().expect("a reason").to_owned()
}

#[test]
fn each_act_takes_a_reason() {
    let server = TestTally::start(TALLY);
    let mut local = server.local();
    let id_of = |made: Value| made["id"].as_str().expect("an id").to_owned();
    let key = local.post("/v1/keys", &json!({"role": "admin", "reason": "k1"})).expect(201);
    assert_eq!(reason_of(&mut local, "key.created", &id_of(key)), "k1");
    let spare = id_of(local.post("/v1/keys", &json!({"role": "reader"})).expect(201));
    let member = id_of(local.post("/v1/members", &json!({"login_id": "ann", "name": "Ann"})).expect(201));
    let on_key = ("key.revoked", &*spare, request("DELETE", format!("/v1/keys/{spare}?reason=k2")));
    let acts = acts_on_boards().into_iter().chain(acts_on_a_member(&member)).chain(acts_on_contests());
    for (action, subject, act) in acts.chain([on_key]) {
        let done = local.send(&act);
        assert!(done.status < 300, "{done:?}");
        if action.is_empty() {
            continue;
        }
        assert_eq!(reason_of(&mut local, action, subject), given(&act), "{action}");
    }
}

/// A retry is the same request with the same reason.
#[test]
fn another_reason_is_another_request() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    client.put("/v1/leaderboards/b", &json!({})).expect(201);
    let delete =
        |query: &str| Request::new("DELETE", format!("/v1/leaderboards/b{query}")).idempotent("once");
    client.send(&delete("?reason=a+b")).expect(204);
    assert!(client.send(&delete("?reason=a%20b")).is_replay());
    client.send(&delete("?reason=c")).refused(422, "idempotency_key_reused");
    client.send(&delete("")).refused(422, "idempotency_key_reused");
    let found = server.local().get("/v1/audit?action=leaderboard.deleted").expect(200);
    assert_eq!(found["items"].as_array().expect("a list").len(), 1);
    assert_eq!(found["items"][0]["reason"], "a b");
}
