//! Contests that need no staff, over HTTP: applications that are accepted at once, starts by the clock with too few members, and pools
//! of fees. The books are audited with the wallets of the pools.

use super::world::World;
use jiff::Timestamp;
use serde_json::{Value, json};
use tally_testkit::{Request, wait_until};

/// Makes it and opens it.
fn open(world: &mut World, id: &str, more: &Value) {
    let mut body = json!({"id": id, "title": "Cup", "entry_fee": {"currency": "KRW", "amount": "100"}, "auto_accept": true});
    body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    world.post("/v1/contests", &body).expect(201);
    world.post(&format!("/v1/contests/{id}/open"), &json!({})).expect(200);
}

fn apply(world: &mut World, id: &str, member: &str, key: &str) -> Value {
    let body = json!({"player": member});
    world.post_under(key, &format!("/v1/contests/{id}/applications"), &body).expect(201)
}

/// Its start comes now.
fn start_by_the_clock(world: &mut World, id: &str, state: &str) {
    let path = format!("/v1/contests/{id}");
    let now = json!({"starts_at": Timestamp::now().to_string()});
    world.client.send(&Request::new("PATCH", &path).json(&now)).expect(200);
    wait_until("the clock starts or cancels it", || world.get(&path)["state"] == json!(state));
}

fn statuses(world: &mut World, id: &str) -> Value {
    world.get(&format!("/v1/contests/{id}"))["counts"].clone()
}

#[test]
fn an_application_is_accepted_at_once_while_there_is_room() {
    let mut world = World::start(&[]);
    let members = ["ann", "bob", "cid"].map(|name| world.member(name, 100));
    open(&mut world, "cup", &json!({"capacity": 2}));
    let shown = members.each_ref().map(|member| apply(&mut world, "cup", member, member)["status"].clone());
    assert_eq!(shown, ["accepted", "accepted", "pending"]);
    // A retry has the first reply.
    assert_eq!(apply(&mut world, "cup", &members[0], &members[0])["status"], "accepted");
    assert_eq!(world.purse(&members[0]), ("100".into(), "100".into(), "0".into()));
    let counts = json!({"pending": 1, "accepted": 2, "rejected": 0, "players": 0, "members": 0});
    assert_eq!(statuses(&mut world, "cup"), counts);
    let acts = world.get("/v1/audit?action=contest.accepted&subject=cup");
    let details: Vec<&Value> =
        acts["items"].as_array().expect("a list").iter().map(|row| &row["detail"]).collect();
    assert_eq!(details, [&format!("1 player: {}", members[1]), &format!("1 player: {}", members[0])]);
    // A free place goes to the next that applies: those that wait are accepted by hand.
    world.client.delete(&format!("/v1/contests/cup/applications/{}", members[0])).expect(204);
    assert_eq!(apply(&mut world, "cup", &members[0], "again")["status"], "accepted");
    let by_hand = json!({"players": [members[2]]});
    let row = world.post("/v1/contests/cup/applications/accept", &by_hand).expect(200)["results"][0].clone();
    assert_eq!(row["error"]["code"], "contest_full");
    start_by_the_clock(&mut world, "cup", "running");
    assert_eq!(members.each_ref().map(|member| world.balance(member)), ["0", "0", "100"]);
}

#[test]
fn the_clock_cancels_a_contest_that_lacks_members_and_releases_every_hold() {
    let mut world = World::start(&[]);
    let members = ["ann", "bob"].map(|name| world.member(name, 500));
    for (id, more, players, state) in [
        ("few", json!({"players_min": 2}), 1, "cancelled"),
        ("enough", json!({"players_min": 2}), 2, "running"),
        ("all-the-same", json!({"players_min": 2, "below_min": "start"}), 1, "running"),
        ("none", json!({"players_min": 1}), 0, "cancelled"),
    ] {
        open(&mut world, id, &more);
        for member in &members[..players] {
            apply(&mut world, id, member, &format!("{id}-{member}"));
        }
        start_by_the_clock(&mut world, id, state);
        let acts = world.get(&format!("/v1/audit?subject={id}&limit=1"))["items"][0].clone();
        let act = if state == "running" { "contest.started" } else { "contest.cancelled" };
        assert_eq!((&acts["action"], &acts["actor"]), (&json!(act), &json!("background")), "{id}");
    }
    let ann = "300";
    assert_eq!(world.purse(&members[0]), (ann.into(), "0".into(), ann.into()));
    assert_eq!(world.get("/v1/contests/few/refunds")["items"], json!([]));
    // By hand it starts with fewer. `members_min` is the older name.
    open(&mut world, "by-hand", &json!({"members_min": 2}));
    assert_eq!(world.get("/v1/contests/by-hand")["players_min"], json!(2));
    let started = world.post("/v1/contests/by-hand/start", &json!({})).expect(200);
    assert_eq!(started["state"], "running");
}

/// Players that join pay like all others, a kill undoes nothing, and each member has so many attempts.
#[test]
fn players_join_a_contest_that_runs_and_have_some_attempts() {
    let mut world = World::start(&[]);
    let members = ["ann", "bob", "cid"].map(|name| world.member(name, 100));
    let pool = json!({"prizes": [{"from": 1, "to": 1, "share": 10_000}]});
    open(&mut world, "cup", &json!({"capacity": 2, "join_s": 3_600, "attempts_max": 2, "pool": pool}));
    apply(&mut world, "cup", &members[0], "ann");
    world.post("/v1/contests/cup/start", &json!({})).expect(200);
    let account = world.get("/v1/contests/cup")["pool_account"]["member"].as_str().expect("an id").to_owned();
    world.members.push(account.clone());
    let joined = apply(&mut world, "cup", &members[1], "bob");
    world.server.kill9();
    world.restarted();
    assert_eq!(
        (&joined["status"], apply(&mut world, "cup", &members[1], "bob")),
        (&json!("accepted"), joined.clone())
    );
    let applications = "/v1/contests/cup/applications";
    world.post(applications, &json!({"player": members[1]})).refused(409, "already_applied");
    world.post(applications, &json!({"player": members[2]})).refused(422, "contest_full");
    assert_eq!(members.each_ref().map(|member| world.balance(member)), ["0", "0", "100"]);
    assert_eq!(world.balance(&account), "200");

    let scores = "/v1/leaderboards/contest:cup/scores";
    let score = |score: i64| json!({"player": members[1], "score": score});
    world.post_under("first", scores, &score(5)).expect(200);
    world.post_under("first", scores, &score(5)).expect(200);
    // One that does not change the record counts, too.
    world.post(scores, &score(4)).expect(200);
    world.post(scores, &score(9)).refused(409, "no_attempts_left");
    let rows = json!({"scores": [{"board": "contest:cup", "player": members[1], "score": 9}]});
    let row = world.post("/v1/scores/batch", &rows).expect(200)["results"][0].clone();
    assert_eq!(row["error"]["code"], "no_attempts_left");
    world.server.kill9();
    world.restarted();
    world.post(scores, &score(9)).refused(409, "no_attempts_left");
    world.post(scores, &json!({"player": members[0], "score": 1})).expect(200);
    let shown = world.get("/v1/contests/cup/players")["items"].clone();
    assert_eq!(world.get("/v1/contests/cup/members")["items"], shown, "the older path");
    let attempts = |member: &String| {
        let rows = shown.as_array().expect("a list");
        rows.iter().find(|row| row["player"] == json!(member)).expect("a member")["attempts"].clone()
    };
    assert_eq!([&members[0], &members[1]].map(attempts), [json!(1), json!(2)]);
    for act in ["finish", "settle"] {
        world.post(&format!("/v1/contests/cup/{act}"), &json!({})).expect(200);
    }
    assert_eq!(members.each_ref().map(|member| world.balance(member)), ["0", "200", "100"]);
}

const POOL: &str =
    r#"{"prizes":[{"from":1,"to":1,"share":6000},{"from":2,"to":3,"share":2000}],"rake":1000,"min":"100"}"#;

/// A contest with a pool that is played by these members, best first. Returns its path and the id of its wallet.
fn played(world: &mut World, members: &[String]) -> (String, String) {
    let pool: Value = serde_json::from_str(POOL).expect("JSON");
    let prize = json!({"from": 1, "to": 1, "currency": "KRW", "amount": 7});
    open(world, "cup", &json!({"pool": pool, "prizes": [prize]}));
    for member in members {
        apply(world, "cup", member, member);
    }
    let path = "/v1/contests/cup".to_owned();
    let shown = world.get(&path);
    assert_eq!(shown["pool"], pool);
    let account = shown["pool_account"]["member"].as_str().expect("an id").to_owned();
    assert_eq!(shown["pool_account"], json!({"member": account, "fees": "0", "to_win": "100"}));
    world.client.get(&format!("/v1/wallets/{account}")).refused(404, "member_not_found");
    world.post(&format!("{path}/start"), &json!({})).expect(200);
    world.members.push(account.clone());
    for (at, member) in members.iter().enumerate() {
        let score = json!({"player": member, "score": 9 - at});
        world.post("/v1/leaderboards/contest:cup/scores", &score).expect(200);
    }
    (path, account)
}

/// The rows of a list of prizes, without what their payment adds.
fn amounts(prizes: &Value) -> Vec<Value> {
    let mut rows = prizes["items"].as_array().expect("a list").clone();
    for row in rows.iter_mut().filter_map(Value::as_object_mut) {
        ["paid", "group_id"].iter().for_each(|name| drop(row.remove(*name)));
    }
    rows
}

/// A preview changes with the ranks, and the settlement pays what the last one has.
#[test]
fn a_preview_has_the_prizes_that_a_settlement_pays() {
    let mut world = World::start(&[]);
    let members = ["ann", "bob", "cid"].map(|name| world.member(name, 100));
    let (path, _) = played(&mut world, &members);
    let list = format!("{path}/prizes");
    world.client.get(&list).refused(409, "contest_state");
    let preview = format!("{list}?preview=true");
    let running = world.get(&preview);
    let totals = json!({"players": 3, "prizes": 4, "amounts": [{"currency": "KRW", "amount": "277"}]});
    assert_eq!(running["totals"], totals);
    assert_eq!(
        (&running["items"][0]["player"], &running["items"][0]["paid"]),
        (&json!(members[0]), &json!(false))
    );
    world.post(&format!("{path}/finish"), &json!({})).expect(200);
    assert_eq!(world.get(&preview), running);
    // The players behind move up.
    world.post(&format!("{path}/players/{}/ban", members[0]), &json!({})).expect(200);
    let last = world.get(&preview);
    assert_eq!(last["totals"]["players"], json!(2));
    assert_eq!(last["items"][0]["player"], json!(members[1]));
    let mut paged = Vec::new();
    let mut next = format!("{preview}&limit=2");
    loop {
        let page = world.get(&next);
        assert_eq!(page["totals"], last["totals"]);
        paged.extend(amounts(&page));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        // A cursor of the preview is none of the stored prizes.
        world.client.get(&format!("{list}?cursor={cursor}")).refused(400, "invalid_cursor");
        next = format!("{preview}&limit=2&cursor={cursor}");
    }
    assert_eq!(paged, amounts(&last));
    world.post(&format!("{path}/settle"), &json!({})).expect(200);
    assert_eq!(amounts(&world.get(&list)), paged);
    world.client.get(&preview).refused(409, "contest_state");
}

#[test]
fn a_pool_pays_its_fees_out_and_nothing_is_left() {
    let mut world = World::start(&[]);
    let members = ["ann", "bob", "cid"].map(|name| world.member(name, 100));
    let (path, account) = played(&mut world, &members);
    assert_eq!((world.balance(&account), world.balance(&members[0])), ("300".into(), "0".into()));
    assert_eq!(world.get(&path)["pool_account"]["to_win"], "270");
    world.server.kill9();
    world.restarted();
    for act in ["finish", "settle"] {
        world.post(&format!("{path}/{act}"), &json!({})).expect(200);
    }
    let settled = world.get(&path)["pool_account"].clone();
    assert_eq!((&settled["rake"], &settled["top_up"]), (&json!("30"), &json!("0")));
    let prizes = world.get(&format!("{path}/prizes"))["items"].clone();
    let row = |at: usize| (prizes[at]["amount"].clone(), prizes[at]["pool"].clone());
    let of_pool = |units: &str| (json!(units), json!(true));
    let fixed = (json!("7"), Value::Null);
    assert_eq!([0, 1, 2, 3].map(row), [fixed, of_pool("162"), of_pool("54"), of_pool("54")]);
    assert_eq!(world.purse(&account).0, "0");
    assert_eq!(members.each_ref().map(|member| world.balance(member)), ["169", "54", "54"]);
    let types = |lines: Vec<Value>| {
        lines.iter().map(|line| line["type"].as_str().expect("a type").to_owned()).collect::<Vec<_>>()
    };
    let of_account = types(world.history(&account, 9));
    assert_eq!(
        of_account,
        ["prize_out", "prize_out", "prize_out", "fee", "transfer_in", "transfer_in", "transfer_in"]
    );
    assert_eq!(types(world.history(&members[1], 9)), ["prize", "fee", "deposit"]);
    let moved = world.get("/v1/ledger/transactions?contest=cup&type=prize_out");
    assert_eq!(moved["items"].as_array().map(Vec::len), Some(3));
    let prize = prizes[1]["group_id"].as_str().expect("a transfer");
    world.post(&format!("/v1/ledger/transactions/{prize}/reverse"), &json!({"amount": "62"})).expect(201);
    assert_eq!((world.balance(&account), world.balance(&members[0])), ("0".into(), "107".into()));
    assert_eq!(world.get(&format!("{path}/prizes"))["items"][1]["reversed"], "62");
    // The money of the fees is with the winners.
    let fee = world.get("/v1/ledger/transactions?contest=cup&type=fee")["items"].clone();
    let fee = fee.as_array().expect("a list").iter().find(|row| row["debit"]["member"] == json!(members[1]));
    let fee = fee.expect("it has paid")["id"].as_str().expect("an id").to_owned();
    world.post(&format!("/v1/ledger/transactions/{fee}/reverse"), &json!({})).refused(409, "contest_state");
    for (path, body, code) in [
        ("/v1/deposits", json!({"to": account, "amount": 1}), "recipient_not_found"),
        ("/v1/withdrawals", json!({"from": account, "amount": 1}), "member_not_found"),
    ] {
        world.post(path, &body).refused(404, code);
    }
}

/// The largest balance of members binds no pool: neither its fees, nor what a guaranteed minimum adds.
#[test]
fn a_pool_may_have_more_than_members() {
    let rules = [("TALLY_WALLET_BALANCE_MAX", "120"), ("TALLY_WALLET_TRANSFERS", "false")];
    let mut world = World::start(&rules);
    let members = ["ann", "bob"].map(|name| world.member(name, 100));
    let pool = json!({"prizes": [{"from": 1, "to": 2, "share": 5_000}], "min": "240"});
    open(&mut world, "cup", &json!({"pool": pool}));
    for member in &members {
        apply(&mut world, "cup", member, member);
    }
    world.post("/v1/contests/cup/start", &json!({})).expect(200);
    let account = world.get("/v1/contests/cup")["pool_account"]["member"].as_str().expect("an id").to_owned();
    world.members.push(account.clone());
    assert_eq!(world.balance(&account), "200");
    for (score, member) in (1..).zip(&members) {
        let score = json!({"player": member, "score": score});
        world.post("/v1/leaderboards/contest:cup/scores", &score).expect(200);
    }
    for act in ["finish", "settle"] {
        world.post(&format!("/v1/contests/cup/{act}"), &json!({})).expect(200);
    }
    assert_eq!(members.each_ref().map(|member| world.balance(member)), ["120", "120"]);
    let one_more = json!({"to": members[0], "amount": 1});
    world.post("/v1/deposits", &one_more).refused(422, "limit_exceeded");
}

#[test]
fn a_contest_with_a_pool_that_is_called_off_gives_the_fees_back() {
    let mut world = World::start(&[]);
    let members = ["ann", "bob"].map(|name| world.member(name, 100));
    let (path, account) = played(&mut world, &members);
    world.post(&format!("{path}/cancel"), &json!({})).expect(200);
    assert_eq!(members.each_ref().map(|member| world.balance(member)), ["100", "100"]);
    assert_eq!(world.balance(&account), "0");
    assert_eq!(world.history(&members[0], 1)[0]["type"], "refund");
}

/// A key that manages contests sees no wallets, so it is not told what is in one.
#[test]
fn a_fee_that_cannot_be_paid_tells_the_balance_only_to_those_that_see_the_wallet() {
    let mut world = World::start(&[]);
    let (ann, token) = world.payer("ann", "010-1111", 30);
    open(&mut world, "cup", &json!({}));
    world.client = world.server.local();
    let mut key = |scopes: Value| {
        let made = world.client.post("/v1/keys", &json!({"scopes": scopes})).expect(201);
        made["key"].as_str().expect("a key").to_owned()
    };
    let callers = [
        (key(json!(["contests:manage"])), Value::Null, Value::Null),
        (key(json!(["contests:manage", "money:read"])), json!("100"), json!("30")),
        (token, json!("100"), json!("30")),
    ];
    for (credential, needed, available) in callers {
        let mut client = world.server.client().with_key(&credential);
        let answer = client.post("/v1/contests/cup/applications", &json!({"player": ann}));
        answer.refused(422, "insufficient_funds");
        let problem = answer.json();
        assert_eq!((&problem["needed"], &problem["available"]), (&needed, &available), "{problem}");
        let detail = problem["detail"].as_str().expect("a sentence");
        assert_eq!(detail.contains("30"), !available.is_null(), "{detail}");
    }
}
