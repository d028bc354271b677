//! Contests over HTTP, as a game and its members play them: one that pays its prizes, one that is cancelled, and replays. Not here: the state machine (`rules`), crashes in the middle (`service/tests`), bad input and permissions.

use crate::TALLY;
use serde_json::{Value, json};
use tally_testkit::{
    Client, DatabaseKind, RedisKind, Request, Response, ScratchDatabase, ScratchRedis, TestTally, wait_until,
};

/// Digests of passwords that cost no time.
pub(crate) const CHEAP: [(&str, &str); 2] =
    [("TALLY_MEMBERS_PASSWORD_MEMORY_KIB", "8"), ("TALLY_MEMBERS_PASSWORD_PASSES", "1")];

/// A member with money, signed in; returns its id and its token.
pub(crate) fn member(server: &TestTally, name: &str, units: u64) -> (String, String) {
    let mut local = server.local();
    let body =
        json!({"login_id": name, "password": format!("{name}'s password"), "name": name, "player": name});
    let id = local.post("/v1/members", &body).expect(201)["id"].as_str().expect("an id").to_owned();
    local.post("/v1/deposits", &json!({"to": id, "amount": units})).expect(201);
    let signed_in = server
        .client()
        .post("/auth/signin", &json!({"loginId": name, "password": format!("{name}'s password")}));
    let token = signed_in.expect(200)["data"]["accessToken"].as_str().expect("a token").to_owned();
    (id, token)
}

fn key(server: &TestTally, role: &str) -> String {
    let made = server.local().post("/v1/keys", &json!({"role": role})).expect(201);
    made["key"].as_str().expect("a key").to_owned()
}

/// The balance of a member, and its held part.
pub(crate) fn wallet(client: &mut Client, id: &str) -> (String, String) {
    let wallet = client.get(&format!("/v1/wallets/{id}")).expect(200)["items"][0].clone();
    let text = |name: &str| wallet[name].as_str().expect("an amount").to_owned();
    (text("balance"), text("held"))
}

pub(crate) fn pair(balance: &str, held: &str) -> (String, String) {
    (balance.to_owned(), held.to_owned())
}

/// A request of a server's key that acts for a player.
pub(crate) fn acting(client: &mut Client, player: &str, path: &str, body: &Value) -> Response {
    client.send(&Request::new("POST", path).json(body).header("Tally-Acting-Player", player))
}

/// A reader, and a member that is not staff, see of a list neither wallets nor transactions.
fn assert_reduced(server: &TestTally, path: &str) {
    let signed_in = server
        .client()
        .post("/auth/signin", &json!({"loginId": "ann", "password": "ann's password"}))
        .expect(200);
    let token = signed_in["data"]["accessToken"].as_str().expect("a token");
    let reader = key(server, "reader");
    for who in [&reader, token] {
        let items = server.client().with_key(who).get(path).expect(200)["items"].clone();
        for item in items.as_array().expect("a list") {
            assert!(item["player"].is_string(), "{path}: {item}");
            for name in ["member", "group_id", "paid", "code", "reason"] {
                assert!(item.get(name).is_none(), "{path}: {item}");
            }
        }
        assert_ne!(items, json!([]), "{path}");
    }
}

pub(crate) fn players(list: &[&str]) -> Value {
    json!({"players": list})
}

pub(crate) fn balanced(client: &mut Client) {
    assert_eq!(client.get("/v1/ledger/trial-balance").expect(200)["balanced"], true);
}

fn cup(id: &str) -> Value {
    json!({"id": id, "title": "Friday cup", "staff": ["boss"], "capacity": 2, "on_invalid": "reject",
        "entry_fee": {"currency": "KRW", "amount": "100"}, "leaderboard": {"ranking": "competition"},
        "prizes": [{"from": 1, "to": 1, "currency": "KRW", "amount": 500}], "prize_ties": "split"})
}

#[test]
fn a_refused_act_says_what_it_needs_and_what_the_caller_has() {
    let server = TestTally::start_set(TALLY, &CHEAP);
    let (_, token) = member(&server, "ann", 1);
    let [mut game, mut reader] =
        ["server", "reader"].map(|role| server.client().with_key(&key(&server, role)));
    let mut ann = server.client().with_key(&token);
    game.post("/v1/contests", &json!({"id": "cup", "title": "Cup"})).expect(201);
    let (other, open) = (json!({"id": "other", "title": "Other"}), "/v1/contests/cup/open");
    let staff = ["a key of role `admin`", "the contest's `staff`", "`Tally-Acting-Player`"];
    for (answer, needed, has) in [
        (game.post(open, &json!({})), staff, "this key has the role `server`"),
        (acting(&mut game, "ann", open, &json!({})), staff, "this key has the role `server`"),
        (ann.post(open, &json!({})), staff, "this is the token of a member"),
        (
            reader.post("/v1/contests", &other),
            ["the scope `contests:manage`", "`server`", "`admin`"],
            "this key has the role `reader`",
        ),
        (
            ann.post("/v1/contests", &other),
            ["the scope `contests:manage`", "`server`", "`admin`"],
            "this is the token of a member",
        ),
        (reader.get("/v1/keys"), ["a key", "role", "`admin`"], "this key has the role `reader`"),
    ] {
        answer.refused(403, "forbidden");
        let detail = answer.json()["detail"].as_str().expect("a text").to_owned();
        assert!(needed.iter().all(|words| detail.contains(words)), "{detail}");
        assert!(detail.ends_with(has), "{detail}");
    }
}

#[test]
fn a_contest_from_its_draft_to_its_prizes() {
    let mut server = TestTally::start_set(TALLY, &CHEAP);
    let people = ["boss", "ann", "bob", "cid", "dan"].map(|name| (name, member(&server, name, 1_000)));
    let id = |name: &str| people.iter().find(|one| one.0 == name).expect("a member").1.0.clone();
    let token = |name: &str| people.iter().find(|one| one.0 == name).expect("a member").1.1.clone();
    let game = key(&server, "server");
    let mut local = server.client().with_key(&game);
    let path = "/v1/contests/friday-cup";
    let made = local.post("/v1/contests", &cup("friday-cup")).expect(201);
    assert_eq!((&made["state"], &made["board"]), (&json!("draft"), &json!("contest:friday-cup")));
    local.post("/v1/contests", &cup("friday-cup")).refused(409, "contest_exists");
    let mut boss = server.client().with_key(&token("boss"));
    boss.post("/v1/contests", &cup("another")).refused(403, "forbidden");
    local.post(&format!("{path}/open"), &json!({})).refused(403, "forbidden");
    acting(&mut local, "ann", &format!("{path}/open"), &json!({})).refused(403, "forbidden");
    assert_eq!(boss.post(&format!("{path}/open"), &json!({})).expect(200)["state"], "open");
    let apply = format!("{path}/applications");
    let mut ann = server.client().with_key(&token("ann"));
    let applied = ann.post(&apply, &json!({})).expect(201);
    assert_eq!((&applied["player"], &applied["status"]), (&json!("ann"), &json!("pending")));
    assert!(applied["hold_id"].is_string(), "{applied}");
    assert_eq!(wallet(&mut local, &id("ann")), pair("1000", "100"));
    ann.post(&apply, &json!({"player": "bob"})).refused(403, "forbidden");
    ann.post(&apply, &json!({})).refused(409, "already_applied");
    local.post(&apply, &json!({"player": "boss"})).refused(422, "staff_cannot_apply");
    local.post(&apply, &json!({"player": "nobody"})).refused(422, "wallet_not_found");
    for name in ["bob", "cid", "dan"] {
        local.post(&apply, &json!({"player": name})).expect(201);
    }
    ann.get(&apply).refused(403, "forbidden");
    let pending = boss.get(&format!("{apply}?limit=3")).expect(200);
    let names: Vec<_> =
        pending["items"].as_array().expect("items").iter().map(|one| &one["player"]).collect();
    assert_eq!(names, ["ann", "bob", "cid"]);
    let next = pending["next_cursor"].as_str().expect("there is one more");
    assert_eq!(boss.get(&format!("{apply}?cursor={next}")).expect(200)["items"][0]["player"], "dan");
    let accept = Request::new("POST", format!("{apply}/accept")).json(&players(&["bob", "ann", "cid", "x"]));
    let accept = accept.idempotent("accept").header("Tally-Acting-Player", "boss");
    let rows = local.send(&accept).expect(200)["results"].clone();
    let shown = |row: &Value| row["status"].as_str().or(row["error"]["code"].as_str()).map(str::to_owned);
    let shown: Vec<_> = rows.as_array().expect("rows").iter().filter_map(shown).collect();
    assert_eq!(shown, ["accepted", "accepted", "contest_full", "not_applied"]);
    boss.post(&format!("{apply}/reject"), &players(&["cid"])).expect(200);
    assert_eq!(wallet(&mut local, &id("cid")), pair("1000", "0"));
    local.post(&apply, &json!({"player": "cid"})).refused(409, "already_rejected");
    // The rows of a replay are the present ones.
    let again = local.send(&accept);
    assert!(again.is_replay());
    let again = again.expect(200)["results"].clone();
    assert_eq!((&again[0]["status"], &again[2]["status"]), (&json!("accepted"), &json!("rejected")));
    let other = accept.clone().header("Tally-Acting-Player", "boss");
    local.send(&other).refused(400, "invalid_parameter");
    started_and_played(&mut server, &game, &token("boss"), path, &|name| id(name));
}

/// The contest in the answer of a start.
fn contest_of(started: &Value) -> Value {
    let mut contest = started.clone();
    let fields = contest.as_object_mut().expect("an object");
    for name in ["contest", "enrolled", "failed", "took_ms"] {
        assert!(fields.remove(name).is_some(), "{name}");
    }
    contest
}

/// From the start on, with a restart in between.
fn started_and_played(
    server: &mut TestTally,
    game: &str,
    boss: &str,
    path: &str,
    id: &dyn Fn(&str) -> String,
) {
    let mut local = server.client().with_key(game);
    let start = Request::new("POST", format!("{path}/start")).idempotent("start").key(boss);
    let started = server.client().send(&start).expect(200);
    assert_eq!((&started["enrolled"], &started["failed"]), (&json!(2), &json!([])));
    assert!(started["took_ms"].is_number(), "{started}");
    let counts = json!({"pending": 0, "accepted": 0, "rejected": 0, "players": 2, "members": 2});
    assert_eq!((&started["state"], &started["counts"]), (&json!("running"), &counts));
    assert_eq!(&started["contest"], &contest_of(&started), "the older place of the contest");
    for (name, has) in [("ann", "900"), ("bob", "900"), ("dan", "1000")] {
        assert_eq!(wallet(&mut local, &id(name)), pair(has, "0"), "{name}");
    }
    server.terminate();
    server.restart();
    let mut local = server.client().with_key(game);
    let mut boss = server.client().with_key(boss);
    assert!(server.client().send(&start).is_replay());
    boss.post(&format!("{path}/start"), &json!({})).refused(409, "contest_state");
    let members = local.get(&format!("{path}/members?limit=1")).expect(200);
    assert_eq!((&members["items"][0]["player"], &members["items"][0]["place"]), (&json!("ann"), &json!(2)));
    let next = members["next_cursor"].as_str().expect("there is one more");
    assert_eq!(local.get(&format!("{path}/members?cursor={next}")).expect(200)["items"][0]["player"], "bob");
    local.get(&format!("{path}/prizes")).refused(409, "contest_state");
    let scores = "/v1/leaderboards/contest:friday-cup/scores";
    local.post(scores, &json!({"player": "dan", "score": 9})).refused(403, "not_a_member");
    boss.post(scores, &json!({"player": "ann", "score": 9})).refused(403, "forbidden");
    for (player, score) in [("ann", 7), ("bob", 9)] {
        local.post(scores, &json!({"player": player, "score": score})).expect(200);
    }
    local.delete("/v1/leaderboards/contest:friday-cup").refused(409, "board_in_use");
    boss.post(&format!("{path}/members/dan/ban"), &json!({})).refused(404, "player_not_found");
    // The route of its leaderboard reads the same.
    let on_board = "/v1/leaderboards/contest:friday-cup/players/bob";
    for verb in ["ban", "restore"] {
        local.post(&format!("{on_board}/{verb}"), &json!({})).refused(403, "forbidden");
        acting(&mut local, "ann", &format!("{on_board}/{verb}"), &json!({})).refused(403, "forbidden");
    }
    let banned = boss.post(&format!("{path}/members/bob/ban"), &json!({})).expect(200);
    let members = local.get(&format!("{path}/members")).expect(200)["items"].clone();
    let mut bob = members[1].clone();
    bob["contest"] = json!("friday-cup");
    assert_eq!(banned, bob);
    assert_eq!((&members[0]["banned"], &members[1]["banned"]), (&json!(false), &json!(true)));
    let restore = Request::new("POST", format!("{path}/members/bob/restore")).idempotent("restore");
    let restored = boss.send(&restore).expect(200);
    local.post(scores, &json!({"player": "ann", "score": 9})).expect(200);
    boss.post(&format!("{path}/settle"), &json!({})).refused(409, "contest_state");
    boss.post(&format!("{path}/finish"), &json!({})).expect(200);
    local.post(scores, &json!({"player": "ann", "score": 10})).refused(409, "contest_state");
    // The review: bans still count.
    boss.post(&format!("{path}/members/bob/restore"), &json!({})).expect(200);
    local.get(&format!("{path}/refunds")).refused(409, "contest_state");
    for _ in 0..2 {
        assert_eq!(boss.post(&format!("{path}/settle"), &json!({})).expect(200)["state"], "settled");
    }
    // Repeated, it is the stored outcome; as a new request, it is too late.
    let again = boss.send(&restore);
    assert!(again.is_replay());
    assert_eq!(again.expect(200), restored);
    boss.post(&format!("{path}/members/bob/restore"), &json!({})).refused(409, "contest_state");
    for name in ["ann", "bob"] {
        assert_eq!(wallet(&mut local, &id(name)), pair("1150", "0"), "{name}: both share 500");
    }
    let prizes = local.get(&format!("{path}/prizes")).expect(200);
    let row = |at: usize| (prizes["items"][at]["rank"].clone(), prizes["items"][at]["amount"].clone());
    assert_eq!((row(0), row(1)), ((json!(1), json!("250")), (json!(1), json!("250"))));
    let movement = prizes["items"][0]["group_id"].as_str().expect("a movement");
    assert_eq!(local.get(&format!("/v1/ledger/transactions/{movement}")).expect(200)["type"], "prize");
    // Its ranks are not needed any more, so the board may go; the contest and its payments stay.
    local.delete("/v1/leaderboards/contest:friday-cup").expect(204);
    local.get(scores).refused(404, "leaderboard_not_found");
    assert_eq!(local.get(&format!("{path}/prizes")).expect(200), prizes);
    for list in ["prizes", "members"] {
        assert_reduced(server, &format!("{path}/{list}"));
    }
    let staff = boss.get(&format!("{path}/prizes")).expect(200);
    assert_eq!(staff, prizes);
    let history = local.get(&format!("/v1/wallets/{}/transactions", id("ann"))).expect(200);
    let kinds: Vec<_> =
        history["items"].as_array().expect("a list").iter().map(|line| &line["type"]).collect();
    assert!(kinds.contains(&&json!("fee")) && !kinds.contains(&&json!("capture")), "{history}");
    assert_eq!(local.get(&format!("{path}/members")).expect(200)["items"][0]["player"], "ann");
    assert_eq!(boss.post(&format!("{path}/settle"), &json!({})).expect(200)["state"], "settled");
    balanced(&mut local);
}

/// Applications, in either store: the answers are the same.
fn free_story(server: &TestTally, name: &str) {
    let mut local = server.local();
    let path = format!("/v1/contests/{name}");
    let body = json!({"id": name, "title": "Free cup", "staff": ["boss"], "capacity": 2});
    local.post("/v1/contests", &body).expect(201);
    let apply = format!("{path}/applications");
    local.post(&apply, &json!({"player": "ann"})).refused(409, "contest_state");
    local.post(&format!("{path}/open"), &json!({})).expect(200);
    for player in ["ann", "bob", "cid", "dan"] {
        let body = json!({"player": player});
        let request = Request::new("POST", &apply).json(&body).idempotent(&format!("{name}-{player}"));
        let applied = local.send(&request).expect(201);
        assert_eq!((&applied["status"], &applied["player"]), (&json!("pending"), &json!(player)));
        assert_eq!((applied["hold_id"].clone(), applied["applied_at"].is_string()), (Value::Null, true));
        let again = local.send(&request);
        assert!(again.is_replay());
        assert_eq!(again.expect(201), applied);
    }
    let reused =
        Request::new("POST", &apply).json(&json!({"player": "eve"})).idempotent(&format!("{name}-ann"));
    local.send(&reused).refused(422, "idempotency_key_reused");
    local.post(&apply, &json!({"player": "ann"})).refused(409, "already_applied");
    local.post(&apply, &json!({"player": "boss"})).refused(422, "staff_cannot_apply");
    let rows = local.post(&format!("{apply}/accept"), &players(&["cid", "ann", "bob", "x"])).expect(200);
    // A row is the application as the list has it.
    let listed = local.get(&format!("{apply}?state=accepted")).expect(200);
    assert!(listed["items"].as_array().expect("a list").contains(&rows["results"][0]), "{rows}, {listed}");
    let shown = |row: &Value| row["status"].as_str().or(row["error"]["code"].as_str()).map(str::to_owned);
    let shown: Vec<_> = rows["results"].as_array().expect("rows").iter().filter_map(shown).collect();
    assert_eq!(shown, ["accepted", "accepted", "contest_full", "not_applied"]);
    local.post(&format!("{apply}/reject"), &players(&["dan"])).expect(200);
    local.post(&apply, &json!({"player": "dan"})).refused(409, "already_rejected");
    local.delete(&format!("{apply}/dan")).refused(409, "already_rejected");
    local.delete(&format!("{apply}/eve")).refused(404, "not_applied");
    let counts = json!({"pending": 1, "accepted": 2, "rejected": 1, "players": 0, "members": 0});
    assert_eq!(local.get(&path).expect(200)["counts"], counts);
    assert_eq!(local.get("/v1/contests?state=open").expect(200)["items"][0]["counts"], counts);
    for (status, wanted) in
        [("pending", vec!["bob"]), ("accepted", vec!["cid", "ann"]), ("rejected", vec!["dan"])]
    {
        let (mut names, mut target) = (Vec::new(), format!("{apply}?status={status}&limit=1"));
        loop {
            let page = local.get(&target).expect(200);
            let items = page["items"].as_array().expect("items").iter();
            names.extend(items.map(|one| one["player"].as_str().expect("a name").to_owned()));
            let Some(next) = page["next_cursor"].as_str() else { break };
            target = format!("{apply}?status={status}&limit=1&cursor={next}");
        }
        assert_eq!(names, wanted, "{status}");
    }
    local.delete(&format!("{apply}/bob")).expect(204);
    local.post(&apply, &json!({"player": "bob"})).expect(201);
    let started = local.post(&format!("{path}/start"), &json!({})).expect(200);
    let counts = json!({"pending": 0, "accepted": 0, "rejected": 0, "players": 2, "members": 2});
    assert_eq!((&started["enrolled"], &started["counts"]), (&json!(2), &counts));
    local.post(&format!("{path}/start"), &json!({})).refused(409, "contest_state");
    local.post(&apply, &json!({"player": "eve"})).refused(409, "contest_state");
    let ann = Request::new("POST", &apply).json(&json!({"player": "ann"})).idempotent(&format!("{name}-ann"));
    assert!(local.send(&ann).is_replay());
    let members = local.get(&format!("{path}/members")).expect(200);
    let row = |at: usize| (members["items"][at]["player"].clone(), members["items"][at]["place"].clone());
    assert_eq!((row(0), row(1)), ((json!("ann"), json!(2)), (json!("cid"), json!(1))));
}

#[test]
fn applications_are_the_same_in_the_store_and_in_redis() {
    free_story(&TestTally::start_set(TALLY, &CHEAP), "in-the-store");
    let mut redis = ScratchRedis::start(RedisKind::Valkey9, &[]);
    let url = format!("redis://{}", redis.address());
    let mut server = TestTally::start_with(TALLY, &["--applications", &url]);
    free_story(&server, "in-redis");
    let mut local = server.local();
    let status = local.get("/v1/status").expect(200);
    assert_eq!(
        (&status["applications"]["kind"], &status["settings"]["applications.url"]["value"]),
        (&json!("redis"), &json!(url))
    );
    let path = "/v1/contests/lost";
    local.post("/v1/contests", &json!({"id": "lost", "title": "Lost", "staff": ["boss"]})).expect(201);
    local.post(&format!("{path}/open"), &json!({})).expect(200);
    let apply = format!("{path}/applications");
    local.post(&apply, &json!({"player": "ann"})).expect(201);
    server.allow("a request met a fault");
    redis.kill();
    // A change on a connection that broke just then may have been made; from then on it is known to be unavailable.
    let null = json!({"pending": null, "accepted": null, "rejected": null, "players": 0, "members": 0});
    assert_eq!(local.get(path).expect(200)["counts"], null);
    let away = local.post(&apply, &json!({"player": "bob"}));
    away.refused(503, "applications_unavailable");
    assert!(away.header("retry-after").is_some());
    local.get(&apply).refused(503, "applications_unavailable");
    local.post(&format!("{path}/start"), &json!({})).refused(503, "applications_unavailable");
    local.get("/readyz").expect(200);
    let metrics = local.get("/metrics").text();
    let faults = metrics.lines().find(|line| line.starts_with("tally_applications_faults_total "));
    assert!(faults.is_some_and(|line| !line.ends_with(" 0")), "{metrics}");
    redis.restart();
    wait_until("Redis answers", || local.get(&apply).status != 503);
    for (method, target, body) in [
        ("POST", apply.clone(), json!({"player": "bob"})),
        ("POST", format!("{apply}/accept"), players(&["ann"])),
        ("POST", format!("{path}/start"), json!({})),
    ] {
        local.send(&Request::new(method, &target).json(&body)).refused(409, "applications_lost");
    }
    let shown = local.get(path).expect(200);
    assert_eq!((&shown["state"], &shown["counts"]), (&json!("open"), &null));
    let again = Request::new("POST", format!("{path}/open?reason=the+Redis+was+lost"));
    assert_eq!(local.send(&again).expect(200)["counts"]["pending"], 0);
    local.send(&again).refused(409, "contest_state");
    let rows = local.get("/v1/audit?action=contest.opened&subject=lost").expect(200)["items"].clone();
    assert_eq!((rows.as_array().map(Vec::len), &rows[0]["reason"]), (Some(2), &json!("the Redis was lost")));
    local.post(&apply, &json!({"player": "bob"})).expect(201);
    assert_eq!(local.post(&format!("{path}/cancel"), &json!({})).expect(200)["state"], "cancelled");
}

/// Renaming would give one member's scores to another, so an entry keeps its player.
#[test]
fn a_player_with_an_entry_is_not_renamed() {
    let server = TestTally::start(TALLY);
    let mut client = server.local();
    let (ann, bob) = (member(&server, "ann", 500).0, member(&server, "bob", 500).0);
    let rename = |member: &str, player: &str| {
        server
            .local()
            .send(&Request::new("PATCH", format!("/v1/members/{member}")).json(&json!({"player": player})))
    };
    client.post("/v1/contests", &cup("cup")).expect(201);
    client.post("/v1/contests/cup/open", &json!({})).expect(200);
    client.post("/v1/contests/cup/applications", &json!({"player": "ann"})).expect(201);
    client.post("/v1/contests/cup/applications/accept", &players(&["ann"])).expect(200);
    let refuses = || {
        for (member, player) in [(&ann, "other"), (&bob, "ann")] {
            rename(member, player).refused(409, "player_in_contest");
        }
    };
    refuses();
    client.post("/v1/contests/cup/start", &json!({})).expect(200);
    refuses();
    let score = json!({"player": "ann", "score": 5});
    client.post("/v1/leaderboards/contest:cup/scores", &score).expect(200);
    client.post("/v1/contests/cup/finish", &json!({})).expect(200);
    client.post("/v1/contests/cup/settle", &json!({})).expect(200);
    assert_eq!(rename(&ann, "other").expect(200)["player"], "other");
    assert_eq!(rename(&bob, "ann").expect(200)["player"], "ann");
    balanced(&mut client);
}

#[test]
fn what_is_owed_is_listed_with_its_reason() {
    let database = ScratchDatabase::shared(DatabaseKind::MariaDb10).create_database();
    for store in [&[][..], &[("TALLY_STORE_URL", &*database)]] {
        let server = TestTally::start_set(TALLY, &[&CHEAP, store].concat());
        let mut local = server.local();
        let nothing = json!({"items": []});
        assert_eq!(local.get("/v1/ledger/owed").expect(200), nothing);
        let ids = ["ann", "bob"].map(|name| member(&server, name, 1_000).0);
        let path = "/v1/contests/cup";
        let prizes = json!([{"from": 1, "to": 2, "currency": "KRW", "amount": 500}]);
        local.post("/v1/contests", &json!({"id": "cup", "title": "Cup", "prizes": prizes})).expect(201);
        local.post(&format!("{path}/open"), &json!({})).expect(200);
        let apply = format!("{path}/applications");
        for player in ["ann", "bob"] {
            local.post(&apply, &json!({"player": player})).expect(201);
        }
        local.post(&format!("{apply}/accept"), &players(&["ann", "bob"])).expect(200);
        local.post(&format!("{path}/start"), &json!({})).expect(200);
        for (player, score) in [("ann", 2), ("bob", 1)] {
            let score = json!({"player": player, "score": score});
            local.post("/v1/leaderboards/contest:cup/scores", &score).expect(200);
        }
        for id in &ids {
            local.post(&format!("/v1/members/{id}/close"), &json!({"force": true})).expect(200);
        }
        local.post(&format!("{path}/finish"), &json!({})).expect(200);
        assert_eq!(local.get("/v1/ledger/owed").expect(200), nothing, "it is not known yet");
        local.post(&format!("{path}/settle"), &json!({})).expect(200);
        let owed = |player: &str, id: &String| {
            json!({"contest": "cup", "type": "prize", "player": player, "member": id, "currency": "KRW",
                "amount": "500", "code": "member_closed", "reason": "member_closed"})
        };
        let first = local.get("/v1/ledger/owed?limit=1").expect(200);
        assert_eq!(first["items"], json!([owed("ann", &ids[0])]));
        let next = first["next_cursor"].as_str().expect("there is one more");
        let next = local.get(&format!("/v1/ledger/owed?cursor={next}")).expect(200);
        assert_eq!(next, json!({"items": [owed("bob", &ids[1])]}));
        assert_eq!(local.get("/v1/ledger/owed?player=bob").expect(200), next);
        assert_eq!(local.get("/v1/ledger/owed?player=cid").expect(200), nothing);
        let reader = key(&server, "reader");
        server.client().with_key(&reader).get("/v1/ledger/owed").refused(403, "forbidden");
    }
}

#[test]
fn a_contest_that_is_called_off_gives_everything_back() {
    let mut server = TestTally::start_set(TALLY, &CHEAP);
    let (ann, _) = member(&server, "ann", 1_000);
    let mut local = server.local();
    let ids: Vec<String> = ["open", "running"].map(str::to_owned).to_vec();
    for id in &ids {
        let path = format!("/v1/contests/{id}");
        local.post("/v1/contests", &cup(id)).expect(201);
        local.post(&format!("{path}/open"), &json!({})).expect(200);
        acting(&mut local, "ann", &format!("{path}/applications"), &json!({})).expect(201);
    }
    local.post("/v1/contests/running/applications/accept", &players(&["ann"])).expect(200);
    local.post("/v1/contests/running/start", &json!({})).expect(200);
    assert_eq!(wallet(&mut local, &ann), pair("900", "100"));
    server.terminate();
    server.restart();
    let mut local = server.local();
    for id in &ids {
        for _ in 0..2 {
            let answer = local.post(&format!("/v1/contests/{id}/cancel"), &json!({})).expect(200);
            assert_eq!(answer["state"], "cancelled");
        }
    }
    assert_eq!(wallet(&mut local, &ann), pair("1000", "0"));
    let history = local.get(&format!("/v1/wallets/{ann}/transactions?limit=1")).expect(200);
    assert_eq!(history["items"][0]["type"], "refund");
    let refunds = |id: &str| format!("/v1/contests/{id}/refunds");
    assert_eq!(local.get(&refunds("open")).expect(200)["items"], json!([]));
    let refunds = local.get(&refunds("running")).expect(200)["items"].clone();
    assert_eq!(refunds.as_array().map(Vec::len), Some(1));
    let wanted = json!({"player": "ann", "member": ann, "currency": "KRW", "amount": "100", "paid": true,
        "group_id": history["items"][0]["group_id"]});
    assert_eq!(refunds[0], wanted);
    let cancelled = local.get("/v1/contests?state=cancelled&limit=1").expect(200);
    let next = cancelled["next_cursor"].as_str().expect("there is one more").to_owned();
    let rest = local.get(&format!("/v1/contests?state=cancelled&cursor={next}")).expect(200);
    assert_eq!((&cancelled["items"][0]["id"], &rest["items"][0]["id"]), (&json!("open"), &json!("running")));
    local.get(&format!("/v1/contests?cursor={next}")).refused(400, "invalid_cursor");
    assert_eq!(local.get("/v1/contests?state=running").expect(200)["items"], json!([]));
    balanced(&mut local);
}

#[test]
fn a_start_names_every_bad_row_and_a_contest_without_a_name_gets_one() {
    let server = TestTally::start_set(TALLY, &CHEAP);
    let (_, ann) = member(&server, "ann", 100);
    let mut local = server.local();
    let unnamed = json!({"title": "A", "entry_fee": {"currency": "KRW", "amount": 100}});
    let create = Request::new("POST", "/v1/contests").json(&unnamed).idempotent("create");
    let made = local.send(&create).expect(201);
    let again = local.send(&create);
    assert!(again.is_replay());
    assert_eq!(again.expect(201), made);
    let path = format!("/v1/contests/{}", made["id"].as_str().expect("an id"));
    let patch = |body: &Value| Request::new("PATCH", &path).json(body);
    local.send(&patch(&json!({"title": "B", "on_invalid": "skip"}))).expect(200);
    local.post(&format!("{path}/open"), &json!({})).expect(200);
    let frozen = local.send(&patch(&json!({"entry_fee": null})));
    frozen.refused(409, "contest_state");
    assert_eq!(frozen.json()["state"], "open");
    local.send(&patch(&json!({"on_invalid": "reject"}))).expect(200);
    let mut own = server.client().with_key(&ann);
    let applied = own.post(&format!("{path}/applications"), &json!({})).expect(201);
    own.delete(&format!("{path}/applications/ann")).expect(204);
    own.delete(&format!("{path}/applications/ann")).refused(404, "not_applied");
    let again = own.post(&format!("{path}/applications"), &json!({})).expect(201);
    assert_ne!(applied["hold_id"], again["hold_id"]);
    local.post(&format!("{path}/applications/accept"), &players(&["ann"])).expect(200);
    let hold = again["hold_id"].as_str().expect("a hold");
    local.post(&format!("/v1/holds/{hold}/void"), &json!({})).expect(200);
    let refused = local.post(&format!("{path}/start"), &json!({}));
    refused.refused(422, "invalid_applications");
    let failed = &refused.json()["failed"];
    assert_eq!((&failed[0]["player"], &failed[0]["code"]), (&json!("ann"), &json!("hold_gone")));
    local.send(&patch(&json!({"on_invalid": "skip"}))).expect(200);
    let started = local.post(&format!("{path}/start"), &json!({})).expect(200);
    assert_eq!((&started["enrolled"], &started["failed"][0]["code"]), (&json!(0), &json!("hold_gone")));
    assert_eq!(started["start_report"]["failed_total"], 1);
}
