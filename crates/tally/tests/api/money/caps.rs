//! Caps of the money that an API key makes, over HTTP: the rejection, many at once, after a kill; and what no cap counts.

use super::world::World;
use serde_json::{Value, json};
use tally_testkit::{Client, Request};

/// The token of a new key that may do this.
fn key(world: &World, may: &Value) -> String {
    let made = world.server.local().post("/v1/keys", may).expect(201);
    made["key"].as_str().expect("a key").to_owned()
}

fn with_key(world: &World, may: &Value) -> Client {
    world.server.client().with_key(&key(world, may))
}

/// That of a key that makes at most 100 KRW on a day.
fn capped(world: &World) -> String {
    key(world, &json!({"scopes": ["money:mint"], "mint_caps": {"KRW": 100}}))
}

/// The members of a world are audited by a client that may read everything.
fn world() -> World {
    let mut world = World::start(&[("TALLY_CURRENCIES_GEM", "0")]);
    world.client = world.server.local();
    world
}

#[test]
fn a_deposit_beyond_the_cap_is_rejected_with_what_is_left() {
    let mut world = world();
    let ann = world.member("ann", 0);
    let token = capped(&world);
    let mut shop = world.server.client().with_key(&token);
    let deposit =
        |units: u64| Request::new("POST", "/v1/deposits").json(&json!({"to": ann, "amount": units}));
    let first = deposit(70).idempotent("k");
    shop.send(&first).expect(201);
    assert!(shop.send(&first).is_replay());
    let answer = shop.send(&deposit(31));
    answer.refused(422, "mint_cap_reached");
    let body = answer.json();
    assert_eq!(
        (&body["currency"], &body["cap"], &body["left"]),
        (&json!("KRW"), &json!("100"), &json!("30"))
    );
    let detail = body["detail"].as_str().expect("a sentence");
    assert!(["100", "KRW", "30"].iter().all(|word| detail.contains(word)), "{detail}");
    // A currency without a cap, and a request that is rejected.
    shop.post("/v1/deposits", &json!({"to": ann, "amount": 500, "currency": "GEM"})).expect(201);
    let nobody = json!({"to": "0190f8a0-0000-7000-8000-000000000000", "amount": 30});
    shop.post("/v1/deposits", &nobody).refused(404, "recipient_not_found");
    assert_eq!(shop.send(&deposit(1)).expect(201)["after"], json!("71"));
    world.server.kill9();
    world.server.restart();
    world.client = world.server.local();
    let mut shop = world.server.client().with_key(&token);
    shop.send(&deposit(30)).refused(422, "mint_cap_reached");
    assert!(shop.send(&first).is_replay());
    assert_eq!(shop.send(&deposit(29)).expect(201)["after"], json!("100"));
}

#[test]
fn many_deposits_at_once_stay_within_the_cap() {
    let mut world = world();
    let ann = world.member("ann", 0);
    let token = capped(&world);
    let deposit = json!({"to": ann, "amount": 7});
    let done: usize = std::thread::scope(|scope| {
        let one = |_| {
            let (mut client, deposit) = (world.server.client().with_key(&token), &deposit);
            scope.spawn(move || (0..6).filter(|_| client.post("/v1/deposits", deposit).status == 201).count())
        };
        let all: Vec<_> = (0..8).map(one).collect();
        all.into_iter().map(|one| one.join().expect("it ends")).sum()
    });
    assert_eq!((done, world.balance(&ann).as_str()), (14, "98"));
}

/// Prizes and balances of an import are new money that belongs to no deposit.
#[test]
fn a_key_with_a_cap_or_without_the_scope_makes_money_in_no_other_way() {
    let world = world();
    let prizes = json!([{"from": 1, "to": 1, "currency": "KRW", "amount": 1}]);
    let period = json!({"name": "day", "schedule": "0 0 * * *", "prizes": prizes});
    let series = json!({"id": "s", "template": {"title": "S", "prizes": prizes},
        "open": "0 0 1 1 *", "start": "0 1 1 1 *", "end": "0 2 1 1 *"});
    let template = json!({"template": {"title": "S", "prizes": prizes}});
    let head = json!({"digest": "c".repeat(64), "lines_before": 0, "lines_after": 2});
    let row = json!({"line": 2, "login_id": "imported", "balance": 1});
    let put = |path: &str| Request::new("PUT", path);
    let post = |path: &str| Request::new("POST", path);
    let requests = [
        put("/v1/leaderboards/b").json(&json!({"periods": [period]})),
        post("/v1/leaderboards/b/prizes/repay?period=day"),
        post("/v1/contests").json(&json!({"id": "c", "title": "C", "prizes": prizes})),
        post("/v1/contest-series").json(&series),
        Request::new("PATCH", "/v1/contests/plain").json(&json!({"prizes": prizes})),
        Request::new("PATCH", "/v1/contest-series/plain").json(&template),
        post("/v1/imports/members").body("application/x-ndjson", format!("{head}\n{row}")),
    ];
    let others = json!(["boards:admin", "contests:manage", "members:write"]);
    let all = json!(["boards:admin", "contests:manage", "members:write", "money:mint"]);
    let mut free = with_key(&world, &json!({"scopes": all}));
    free.post("/v1/contests", &json!({"id": "plain", "title": "C"})).expect(201);
    let mut plain = series.clone();
    (plain["id"], plain["template"]["prizes"]) = (json!("plain"), json!([]));
    free.post("/v1/contest-series", &plain).expect(201);
    for (may, why) in [
        (json!({"scopes": others}), "`money:mint`"),
        (json!({"scopes": all, "mint_caps": {"KRW": 100}}), "a cap"),
        (json!({"role": "server", "mint_caps": {"GEM": 100}}), "a cap"),
    ] {
        let mut client = with_key(&world, &may);
        for request in &requests {
            let answer = client.send(request);
            answer.refused(403, "forbidden");
            assert!(
                answer.json()["detail"].as_str().is_some_and(|text| text.contains(why)),
                "{}",
                answer.text()
            );
        }
        client.put("/v1/leaderboards/none", &json!({"periods": [{"name": "day", "schedule": "0 0 * * *"}]}));
    }
    for request in &requests {
        let answer = free.send(request);
        assert!((200..300).contains(&answer.status), "{}", answer.text());
    }
}

#[test]
fn what_a_key_is_made_with_is_checked_and_shown() {
    let world = world();
    let mut local = world.server.local();
    let scopes = json!(["money:mint", "members:read", "money:mint"]);
    let made =
        local.post("/v1/keys", &json!({"scopes": scopes, "mint_caps": {"KRW": "5", "GEM": 7}})).expect(201);
    let shown = json!({"scopes": ["members:read", "money:mint"], "mint_caps": {"GEM": "7", "KRW": "5"}});
    for key in [&made, &local.get("/v1/keys").expect(200)["items"][0]] {
        assert_eq!((&key["scopes"], &key["mint_caps"]), (&shown["scopes"], &shown["mint_caps"]));
        assert_eq!(key.get("role"), None);
    }
    let role = local.post("/v1/keys", &json!({"role": "server", "mint_caps": {}})).expect(201);
    assert_eq!((role.get("scopes"), role.get("mint_caps")), (None, None));
    for (field, body) in [
        ("/role", json!({})),
        ("/role", json!({"role": "server", "scopes": ["money:mint"]})),
        ("/scopes", json!({"scopes": []})),
        ("/scopes", json!({"scopes": ["money:make"]})),
        ("/scopes", json!({"scopes": "money:mint"})),
        ("/mint_caps", json!({"scopes": ["money:move"], "mint_caps": {"KRW": 1}})),
        ("/mint_caps", json!({"role": "admin", "mint_caps": {"KRW": 1}})),
        ("/mint_caps", json!({"role": "reader", "mint_caps": {"KRW": 1}})),
        ("/mint_caps", json!({"role": "server", "mint_caps": {"KWR": 1}})),
        ("/mint_caps", json!({"role": "server", "mint_caps": {"KRW": 0}})),
        ("/mint_caps", json!({"role": "server", "mint_caps": {"KRW": 1.5}})),
        ("/mint_caps", json!({"role": "server", "mint_caps": [1]})),
    ] {
        let answer = local.post("/v1/keys", &body);
        answer.refused(400, "invalid_field");
        assert_eq!(answer.json()["errors"][0]["pointer"], json!(field), "{body}: {}", answer.text());
    }
    assert_eq!(local.get("/v1/keys").expect(200)["items"].as_array().map(Vec::len), Some(2));
    let create = ["keys", "create", "--scope", "money:mint", "--scope", "money:read", "--mint-cap", "KRW=9"];
    world.server.run(&create).expect(0);
    let listed = world.server.run(&["keys", "list"]).expect(0).to_owned();
    assert!(listed.contains(" money:read,money:mint,KRW=9 "), "{listed}");
    for wrong in [
        ["--scope", "money:make", "--name", "x"],
        ["--scope", "money:mint", "--role", "server"],
        ["--role", "server", "--mint-cap", "KRW"],
    ] {
        assert_eq!(world.server.run(&[&["keys", "create"][..], &wrong].concat()).code, Some(2), "{wrong:?}");
    }
}
