//! `POST /v1/members/{member}/erase`: what goes, what stays, who may have the name afterwards, and kills in the middle.

use super::world::{CHEAP, World};
use crate::TALLY;
use serde_json::{Value, json};
use std::time::Duration;
use tally_testkit::audit::read_pages;
use tally_testkit::{Client, Request, TestTally, wait_for};

/// What names the person in this world, in any case of letters: its name, login, number and player, and words about it.
const PERSONAL: [&str; 7] =
    ["annabel", "ann@example.org", "0105551234", "ann-player", "gift", "level", "cheats"];

fn world() -> World {
    World::start(&[])
}

fn erase(member: &str) -> Request {
    Request::new("POST", format!("/v1/members/{member}/erase"))
}

/// A member with traces everywhere, whose wallet is empty at the end.
fn person(world: &mut World, suffix: &str) -> String {
    let player = format!("ann-player{suffix}");
    let body = json!({"login_id": format!("ann@example.org{suffix}"), "name": "Annabel", "player": player,
        "phone_number": format!("0105551234{suffix}"), "password": "open sesame", "pin": "0042"});
    let made = world.client.post("/v1/members", &body).expect(201);
    let id = made["id"].as_str().expect("an id").to_owned();
    world.members.push(id.clone());
    let bob = world.member(&format!("bob{suffix}"), 0);
    let deposit = json!({"to": id, "amount": 1_000, "reference": "payment-7", "reason": "gift", "metadata": {"level": 3}});
    world.client.post("/v1/deposits", &deposit).expect(201);
    let transfer =
        json!({"from": id, "to": bob, "amount": 100, "reason": "a gift for bob", "metadata": {"level": 1}});
    let gift = world.client.post("/v1/transfers", &transfer).expect(201);
    let reverse = format!("/v1/ledger/transactions/{}/reverse", gift["id"].as_str().expect("an id"));
    world.client.post(&reverse, &json!({"amount": 40, "reason": "half of the gift"})).expect(201);
    let hold = json!({"member": id, "amount": 50, "reason": "gift", "metadata": {"level": 2}});
    for end in ["capture", "void"] {
        let hold = world.client.post("/v1/holds", &hold).expect(201);
        let path = format!("/v1/holds/{}/{end}", hold["id"].as_str().expect("an id"));
        world.client.post(&path, &json!({"reason": "the gift is late"})).expect(200);
    }
    play(&mut world.client, &player, suffix);
    let back = world.balance(&id);
    world
        .client
        .post("/v1/withdrawals", &json!({"from": id, "amount": back, "reason": "no gift"}))
        .expect(201);
    id
}

/// Scores with periods, a ban with its reason, a profile, a contest that was played and paid, and one that was cancelled.
fn play(client: &mut Client, player: &str, suffix: &str) {
    let board = format!("goals{suffix}");
    let weekly = json!({"periods": [{"name": "weekly", "schedule": "0 0 * * 1"}]});
    client.put(&format!("/v1/leaderboards/{board}"), &weekly).expect(201);
    for name in [player, "bystander"] {
        let score = json!({"player": name, "score": 7});
        client.post(&format!("/v1/leaderboards/{board}/scores"), &score).expect(200);
    }
    client
        .put(&format!("/v1/players/{player}"), &json!({"name": "Annabel", "metadata": {"level": 9}}))
        .expect(201);
    let ban = format!("/v1/leaderboards/{board}/players/{player}/ban?reason=Annabel+cheats");
    client.send(&Request::new("POST", ban)).expect(200);
    let contest = |id: &str| {
        json!({"id": format!("{id}{suffix}"), "title": id, "entry_fee": {"currency": "KRW", "amount": 10},
            "prizes": [{"from": 1, "to": 1, "currency": "KRW", "amount": 5}]})
    };
    for id in ["cup", "off"] {
        client.post("/v1/contests", &contest(id)).expect(201);
        let path = format!("/v1/contests/{id}{suffix}");
        client.post(&format!("{path}/open"), &json!({})).expect(200);
        client.post(&format!("{path}/applications"), &json!({"player": player})).expect(201);
        let accept = json!({"players": [player], "reason": "a gift"});
        client.post(&format!("{path}/applications/accept"), &accept).expect(200);
        client.post(&format!("{path}/start"), &json!({})).expect(200);
        if id == "cup" {
            let score = json!({"player": player, "score": 1});
            client.post(&format!("/v1/leaderboards/contest:cup{suffix}/scores"), &score).expect(200);
            client.post(&format!("{path}/finish"), &json!({})).expect(200);
            client.post(&format!("{path}/settle"), &json!({})).expect(200);
        } else {
            client.post(&format!("{path}/cancel"), &json!({})).expect(200);
        }
    }
}

/// Waits until nothing of the person is left that can be found.
fn erased(client: &mut Client, member: &str) -> Value {
    wait_for("the erasure is done", || {
        let shown = client.get(&format!("/v1/members/{member}")).expect(200);
        if shown["erasure"] == "done" {
            return Some(shown);
        }
        assert_eq!(shown["erasure"], "running", "{shown}");
        None
    })
}

/// Every list that may name a person, as text.
fn everything(client: &mut Client, member: &str, suffix: &str) -> String {
    let mut all = String::new();
    for path in ["/v1/ledger/transactions", "/v1/holds", "/v1/audit"] {
        for row in read_pages(client, &format!("{path}?limit=100"), "items").0 {
            all.push_str(&row.to_string());
        }
    }
    for path in [
        format!("/v1/wallets/{member}/transactions?limit=100"),
        format!("/v1/members/{member}"),
        format!("/v1/contests/cup{suffix}/members"),
        format!("/v1/contests/cup{suffix}/prizes"),
        format!("/v1/contests/off{suffix}/members"),
        format!("/v1/contests/off{suffix}/refunds"),
        format!("/v1/leaderboards/goals{suffix}/scores"),
        format!("/v1/leaderboards/goals{suffix}/scores?period=weekly"),
        format!("/v1/leaderboards/contest:cup{suffix}/scores"),
        format!("/v1/members/{member}/export"),
    ] {
        all.push_str(&client.get(&path).expect(200).to_string());
    }
    all.to_lowercase()
}

#[test]
fn nothing_names_the_person_afterwards_and_the_ledger_is_the_same() {
    let mut world = world();
    let id = person(&mut world, "");
    let mut local = world.server.local();
    let before = everything(&mut local, &id, "");
    assert!(PERSONAL.iter().all(|word| before.contains(word)), "the test has something to find: {before}");
    let accounts = world.get("/v1/ledger/accounts");
    let history = world.history(&id, 7);
    let signed_in = world
        .post("/auth/signin", &json!({"loginId": "ann@example.org", "password": "open sesame"}))
        .expect(200);
    let token = signed_in["data"]["accessToken"].as_str().expect("a token").to_owned();
    let request = erase(&id).json(&json!({"reason": "letter 17"})).idempotent("erase");
    local.send(&request).expect(200);
    let shown = erased(&mut local, &id);
    let login = format!("erased:{id}");
    for (field, value) in [("login_id", &*login), ("name", "erased member"), ("player", &*id)] {
        assert_eq!(shown[field], value, "{shown}");
    }
    assert_eq!((&shown["has_password"], &shown["has_pin"]), (&json!(false), &json!(false)));
    assert!(shown["closed_at"].is_string() && shown["phone_number"].is_null());
    for word in PERSONAL {
        let after = everything(&mut local, &id, "");
        assert!(!after.contains(word), "{word}: {after}");
    }
    // Who has done what stays, and the key of the caller's own books.
    assert_eq!(world.get("/v1/ledger/accounts"), accounts);
    assert_eq!(world.history(&id, 7), history);
    assert!(history.iter().any(|line| line["reference"] == "payment-7"));
    let rows = local.get("/v1/audit?action=member.erased").expect(200);
    assert_eq!(rows["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        (&rows["items"][0]["subject"], &rows["items"][0]["reason"]),
        (&json!(id), &json!("letter 17"))
    );
    let bans = local.get("/v1/audit?action=player.banned").expect(200);
    assert_eq!((&bans["items"][0]["subject"], &bans["items"][0]["detail"]), (&json!(id), &json!("goals")));
    // Nobody is found, and nobody comes in.
    for query in ["login_id=ann%40example.org", "phone_number=0105551234", "player=ann-player"] {
        assert_eq!(world.get(&format!("/v1/members?{query}"))["items"], json!([]), "{query}");
    }
    assert_eq!(world.get("/v1/players?prefix=annabel")["items"], json!([]));
    world
        .post("/auth/signin", &json!({"loginId": "ann@example.org", "password": "open sesame"}))
        .refused(401, "invalid_credentials");
    world.server.client().with_key(&token).get("/v1/me").refused(401, "unauthorized");
    // A retry is one, and another request finds nothing more.
    assert!(local.send(&request).is_replay());
    local.send(&erase(&id)).expect(200);
    assert_eq!(erased(&mut local, &id), shown);
    assert_eq!(local.get("/v1/audit?action=member.erased").expect(200), rows);
    world.audit();
}

#[test]
fn the_next_member_with_the_names_inherits_nothing() {
    let mut world = world();
    let id = person(&mut world, "");
    let mut local = world.server.local();
    local.send(&erase(&id)).expect(200);
    erased(&mut local, &id);
    let body = json!({"login_id": "ann@example.org", "name": "Another", "player": "ann-player", "phone_number": "0105551234"});
    let heir = local.post("/v1/members", &body).expect(201);
    let heir = heir["id"].as_str().expect("an id").to_owned();
    let export = local.get(&format!("/v1/members/{heir}/export")).expect(200);
    for list in ["leaderboards", "contests", "transactions", "holds", "audit"] {
        let rows: Vec<&Value> = export[list].as_array().expect("a list").iter().collect();
        let others = rows.iter().filter(|row| row["action"] != "member.exported");
        assert_eq!(others.count(), 0, "{list}: {rows:?}");
    }
    let score = json!({"player": "ann-player", "score": 1});
    let first = local.post("/v1/leaderboards/goals/scores", &score).expect(200);
    assert_eq!(
        (&first["previous"], &first["rank"]),
        (&json!(null), &json!(2)),
        "no score and no ban: {first}"
    );
    world.members.push(heir);
    world.audit();
}

/// A ban in a contest outlasts the erasure of a player, but not that of a member: it names the person, and another may get the name.
#[test]
fn a_ban_in_a_contest_goes_with_the_member() {
    let mut world = world();
    let mut local = world.server.local();
    let body = json!({"login_id": "ann", "name": "Ann", "player": "ann-player"});
    let made = local.post("/v1/members", &body).expect(201);
    let id = made["id"].as_str().expect("an id").to_owned();
    world.members.push(id.clone());
    local.post("/v1/contests", &json!({"id": "cup", "title": "Cup"})).expect(201);
    local.post("/v1/contests/cup/open", &json!({})).expect(200);
    local.post("/v1/contests/cup/applications", &json!({"player": "ann-player"})).expect(201);
    let players = json!({"players": ["ann-player"]});
    local.post("/v1/contests/cup/applications/accept", &players).expect(200);
    local.post("/v1/contests/cup/start", &json!({})).expect(200);
    local.post("/v1/contests/cup/players/ann-player/ban", &json!({})).expect(200);
    local.post("/v1/contests/cup/finish", &json!({})).expect(200);
    let bans =
        |local: &mut Client| local.get("/v1/leaderboards/contest:cup/bans").expect(200)["items"].clone();
    assert_eq!(bans(&mut local), json!([{"player": "ann-player"}]));
    local.send(&erase(&id)).expect(200);
    erased(&mut local, &id);
    assert_eq!(bans(&mut local), json!([]));
    assert_eq!(local.get("/v1/players/ann-player/ranks").expect(200)["items"], json!([]));
    world.audit();
}

/// A key that closes members sees no wallets, so it is not told what is in one.
#[test]
fn a_wallet_that_is_not_empty_tells_the_balance_only_to_those_that_read_money() {
    let mut world = world();
    let ann = world.member("ann", 100);
    world.client = world.server.local();
    let close = format!("/v1/members/{ann}/close");
    for (scopes, is_told) in
        [(json!(["members:write"]), false), (json!(["members:write", "money:read"]), true)]
    {
        let made = world.client.post("/v1/keys", &json!({"scopes": scopes})).expect(201);
        let mut staff = world.server.client().with_key(made["key"].as_str().expect("a key"));
        let answer = staff.post(&close, &json!({}));
        answer.refused(409, "wallet_not_empty");
        assert_eq!(answer.text().contains("100 KRW"), is_told, "{}", answer.text());
    }
    world.audit();
}

#[test]
fn money_and_contests_come_first() {
    let mut world = world();
    let ann = world.member("ann", 100);
    let mut local = world.server.local();
    let refused = |local: &mut Client, code: &str| local.send(&erase(&ann)).refused(409, code);
    refused(&mut local, "wallet_not_empty");
    // Neither does a closing by force let it pass.
    let gone = world.member("gone", 5);
    local.post(&format!("/v1/members/{gone}/close"), &json!({"force": true})).expect(200);
    local.send(&erase(&gone)).refused(409, "wallet_not_empty");
    let hold = local.post("/v1/holds", &json!({"member": ann, "amount": 100})).expect(201);
    refused(&mut local, "wallet_not_empty");
    let capture = format!("/v1/holds/{}/capture", hold["id"].as_str().expect("an id"));
    local.post(&capture, &json!({})).expect(200);
    local.post("/v1/contests", &json!({"id": "cup", "title": "Cup"})).expect(201);
    local.post("/v1/contests/cup/open", &json!({})).expect(200);
    local.post("/v1/contests/cup/applications", &json!({"player": ann})).expect(201);
    refused(&mut local, "player_in_contest");
    local.post("/v1/contests/cup/applications/accept", &json!({"players": [ann]})).expect(200);
    local.post("/v1/contests/cup/start", &json!({})).expect(200);
    refused(&mut local, "player_in_contest");
    assert!(
        local.get(&format!("/v1/members/{ann}")).expect(200).get("closed_at").is_none(),
        "nothing was done"
    );
    local.post("/v1/contests/cup/finish", &json!({})).expect(200);
    local.send(&erase(&ann)).expect(200);
    erased(&mut local, &ann);
    local.send(&erase("0190f8a0-0000-7000-8000-000000000000")).refused(404, "member_not_found");
    // Nothing changes an erased member.
    local
        .send(&Request::new("PATCH", format!("/v1/members/{ann}")).json(&json!({"name": "Ann"})))
        .refused(409, "member_closed");
    local.post(&format!("/v1/members/{ann}/close"), &json!({})).expect(200);
    assert_eq!(local.get(&format!("/v1/members/{ann}")).expect(200)["erasure"], "done");
    world.audit();
}

/// A member that was closed long ago, and whose names another one has.
#[test]
fn what_is_another_members_by_now_stays() {
    let mut world = world();
    let id = person(&mut world, "");
    let mut local = world.server.local();
    local.post(&format!("/v1/members/{id}/close"), &json!({})).expect(200);
    local.post("/v1/leaderboards/goals/players/ann-player/restore", &json!({})).expect(200);
    let body = json!({"login_id": "ann@example.org", "name": "Another", "player": "ann-player"});
    let heir = local.post("/v1/members", &body).expect(201);
    let heir = heir["id"].as_str().expect("an id").to_owned();
    let score = json!({"player": "ann-player", "score": 99});
    local.post("/v1/leaderboards/goals/scores", &score).expect(200);
    let left_out = local.get(&format!("/v1/members/{id}/export")).expect(200);
    assert_eq!((&left_out["owns_player"], &left_out["leaderboards"]), (&json!(false), &json!([])));
    let ban = "/v1/leaderboards/goals/players/ann-player/ban?reason=the+heir+cheats";
    local.send(&Request::new("POST", ban)).expect(200);
    local.post("/v1/leaderboards/goals/players/ann-player/restore", &json!({})).expect(200);
    local.send(&erase(&id)).expect(200);
    erased(&mut local, &id);
    let rank = local.get("/v1/leaderboards/goals/players/ann-player").expect(200);
    assert_eq!(rank["score"], 99, "the score is the other's");
    let found = local.get("/v1/members?player=ann-player").expect(200);
    assert_eq!(found["items"][0]["id"], json!(heir));
    // Rows with its own id are its own.
    let members = local.get("/v1/contests/cup/members").expect(200);
    assert_eq!(members["items"][0]["player"], json!(id));
    let bans = local.get("/v1/audit?action=player.banned").expect(200);
    let bans: Vec<_> =
        (0..2).map(|at| (&bans["items"][at]["subject"], &bans["items"][at]["reason"])).collect();
    let (others, its_own) = ((&json!("ann-player"), &json!("the heir cheats")), (&json!(id), &json!(null)));
    assert_eq!(bans, [others, its_own], "it was its name first");
    world.members.push(heir);
    world.audit();
}

/// Rows of contests are found by the member too: its player may have had another name then.
#[test]
fn a_name_from_before_goes_where_rows_have_the_member() {
    let mut world = world();
    let mut local = world.server.local();
    let body = json!({"login_id": "ann", "name": "Ann", "player": "old-name"});
    let id = local.post("/v1/members", &body).expect(201)["id"].as_str().expect("an id").to_owned();
    world.members.push(id.clone());
    let prizes = json!([{"from": 1, "to": 1, "currency": "KRW", "amount": 5}]);
    local.post("/v1/contests", &json!({"id": "cup", "title": "Cup", "prizes": prizes})).expect(201);
    local.post("/v1/contests/cup/open", &json!({})).expect(200);
    local.post("/v1/contests/cup/applications", &json!({"player": "old-name"})).expect(201);
    local.post("/v1/contests/cup/applications/accept", &json!({"players": ["old-name"]})).expect(200);
    local.post("/v1/contests/cup/start", &json!({})).expect(200);
    let score = json!({"player": "old-name", "score": 1});
    local.post("/v1/leaderboards/contest:cup/scores", &score).expect(200);
    local.post("/v1/contests/cup/finish", &json!({})).expect(200);
    local.post("/v1/contests/cup/settle", &json!({})).expect(200);
    let rename = Request::new("PATCH", format!("/v1/members/{id}")).json(&json!({"player": "new-name"}));
    local.send(&rename).expect(200);
    local.post("/v1/withdrawals", &json!({"from": id, "amount": 5})).expect(201);
    let export = local.get(&format!("/v1/members/{id}/export")).expect(200);
    let entered = &export["contests"][0];
    assert_eq!(
        (&entered["entry"]["player"], &entered["payouts"][0]["amount"]),
        (&json!("old-name"), &json!("5"))
    );
    local.send(&erase(&id)).expect(200);
    erased(&mut local, &id);
    for list in ["members", "prizes"] {
        let rows = local.get(&format!("/v1/contests/cup/{list}")).expect(200);
        assert_eq!(rows["items"][0]["player"], json!(id), "{list}");
    }
    world.audit();
}

/// The transaction that closes the member is the first. A kill at any moment after it leaves an erasure that goes on by itself.
#[test]
fn a_kill_in_the_middle_ends_in_the_erased_state() {
    let mut world = World::of(TestTally::start_set(TALLY, &CHEAP));
    let (mut ids, payer) = (Vec::new(), world.member("payer", 2_000));
    for (number, delay) in [0_u64, 3, 9, 20, 40].into_iter().enumerate() {
        let suffix = number.to_string();
        let id = person(&mut world, &suffix);
        let many: Vec<Value> = (0..400)
            .map(|at| json!({"from": payer, "to": id, "amount": 1, "reason": format!("gift {at}")}))
            .collect();
        world.client.post("/v1/transfers/batch", &json!({"transfers": many})).expect(200);
        world.client.post("/v1/withdrawals", &json!({"from": id, "amount": 400})).expect(201);
        let request = erase(&id).json(&json!({"reason": "r"})).idempotent(&format!("erase-{number}"));
        let mut client = world.server.local();
        let sender = {
            let request = request.clone();
            std::thread::spawn(move || client.try_send(&request))
        };
        std::thread::sleep(Duration::from_millis(delay));
        world.server.kill9();
        drop(sender.join());
        world.restarted();
        let mut local = world.server.local();
        let shown = local.get(&format!("/v1/members/{id}")).expect(200);
        if shown.get("erasure").is_none() {
            assert!(
                shown.get("closed_at").is_none() && shown["name"] == "Annabel",
                "all or nothing: {shown}"
            );
            local.send(&request).expect(200);
        }
        erased(&mut local, &id);
        ids.push((id, suffix));
    }
    let mut local = world.server.local();
    for (id, suffix) in ids {
        let after = everything(&mut local, &id, &suffix);
        assert!(PERSONAL.iter().all(|word| !after.contains(word)), "{after}");
    }
    world.audit();
}
