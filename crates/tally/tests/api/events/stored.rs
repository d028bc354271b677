//! Stored events: sent when they happen, and resumed exactly at the position of the stream after every kind of break.

use super::{MINE, TALLY, after, deposit, listen, member, stream, text};
use serde_json::{Value, json};
use std::time::Instant;
use tally_testkit::{Client, EventStream, GIVE_UP, Rng, TestTally};

fn amount(data: &Value) -> u64 {
    text(&data["amount"]).parse().expect("an amount")
}

#[test]
fn a_member_hears_of_every_movement_once_and_in_order() {
    let server = TestTally::start_set(TALLY, &[("TALLY_CURRENCIES_USD", "2")]);
    let mut local = server.local();
    let ((ann, token), (bob, _)) = (member(&server, "ann"), member(&server, "bob"));
    deposit(&mut local, &ann, "KRW", 1_000);
    let mut first = listen(&server, &stream(MINE).key(&token));
    deposit(&mut local, &ann, "KRW", 1);
    let heard = first.expect("transaction");
    assert_eq!((amount(&heard), &heard["type"], &heard["currency"]), (1, &json!("deposit"), &json!("KRW")));
    let start = first.last_id.clone();
    // A currency new to the wallet, and both sides of a transfer.
    deposit(&mut local, &ann, "USD", 2);
    let transfer = json!({"from": ann, "to": bob, "amount": 3});
    let sent = local.post("/v1/transfers", &transfer).expect(201);
    deposit(&mut local, &bob, "KRW", 99);
    let heard = [first.expect("transaction"), first.expect("transaction")];
    assert_eq!(heard.each_ref().map(amount), [2, 3]);
    assert_eq!(heard[1]["group_id"], sent["group_id"]);
    drop(first);
    // The same again from any position on, in each wallet's order.
    let mut again = listen(&server, &after(MINE, &start).key(&token));
    let mut second: Vec<u64> = (0..2).map(|_| amount(&again.expect("transaction"))).collect();
    second.sort_unstable();
    assert_eq!(second, [2, 3]);
    deposit(&mut local, &ann, "KRW", 4);
    assert_eq!(amount(&again.expect("transaction")), 4);
    // The list of the wallet equals its events.
    let page = server.client().with_key(&token).get("/v1/me/transactions?limit=1").expect(200);
    assert_eq!(amount(&page["items"][0]), 4);
    // A position in no store: from the present on.
    for id in ["KRW.1000", "EUR.1,KRW.1"] {
        let mut lost = listen(&server, &after(MINE, id).key(&token));
        assert_eq!(lost.expect("reset"), json!({}));
        deposit(&mut local, &ann, "KRW", 5);
        assert_eq!(amount(&lost.expect("transaction")), 5);
    }
    for id in ["x", "7", "KRW.1,KRW.2"] {
        let refused = EventStream::open(server.address(), &after(MINE, id).key(&token));
        refused.expect_err("it is no id").refused(400, "invalid_parameter");
    }
}

fn act(client: &mut Client, act: &str) {
    client.post(&format!("/v1/contests/cup/{act}"), &json!({})).expect(200);
}

fn states(events: &[Value]) -> Vec<[&str; 2]> {
    let word = |value: &Value| match value.as_str() {
        Some("draft") => "draft",
        Some("open") => "open",
        Some("running") => "running",
        Some("finished") => "finished",
        Some("settled") => "settled",
        Some(other) => panic!("{other}"),
        None => "-",
    };
    events.iter().map(|event| [word(&event["previous"]), word(&event["state"])]).collect()
}

#[test]
fn a_contest_tells_of_every_state_it_comes_into() {
    const CUP: &str = "/v1/contests/cup/events";
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    client.get(CUP).refused(404, "contest_not_found");
    client.post("/v1/contests", &json!({"id": "cup", "title": "Cup"})).expect(201);
    let mut live = listen(&server, &stream(CUP));
    let patch = tally_testkit::Request::new("PATCH", "/v1/contests/cup").json(&json!({"title": "The cup"}));
    // A retry makes no event.
    for _ in 0..2 {
        client.send(&patch.clone().idempotent("once")).expect(200);
    }
    for player in ["ann", "bob"] {
        if player == "ann" {
            act(&mut client, "open");
        }
        client.post("/v1/contests/cup/applications", &json!({"player": player})).expect(201);
    }
    client.post("/v1/contests/cup/applications/accept", &json!({"players": ["ann", "bob"]})).expect(200);
    ["start", "finish", "settle"].iter().for_each(|word| act(&mut client, word));
    // Repeated in its end state: nothing happens.
    act(&mut client, "settle");
    let heard: Vec<Value> = (0..5).map(|_| live.expect("contest")).collect();
    let wanted = [
        ["draft", "draft"],
        ["draft", "open"],
        ["open", "running"],
        ["running", "finished"],
        ["finished", "settled"],
    ];
    assert_eq!(states(&heard), wanted);
    for name in ["players", "members"] {
        assert_eq!((&heard[1][name], &heard[2][name]), (&json!(0), &json!(2)));
    }
    assert_eq!(live.last_id, "6");
    let mut all = listen(&server, &after(CUP, "0"));
    let heard: Vec<Value> = (0..6).map(|_| all.expect("contest")).collect();
    assert_eq!(states(&heard)[..2], [["-", "draft"], ["draft", "draft"]]);
    let mut rest = listen(&server, &after(CUP, "4"));
    assert_eq!(states(&[rest.expect("contest"), rest.expect("contest")]), wanted[3..]);
    let mut ahead = listen(&server, &after(CUP, "7"));
    assert_eq!((ahead.expect("reset"), ahead.last_id.as_str()), (json!({}), "6"));
}

/// A period of a minute ends while the server runs; the event is live, and again for later subscribers.
#[test]
fn a_period_that_is_closed_is_told() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    let minutely = json!({"name": "minutely", "schedule": "* * * * *", "keep": 3});
    client.put("/v1/leaderboards/b", &json!({"periods": [minutely]})).expect(201);
    let mut live = listen(&server, &stream(super::BOARD));
    super::submit(&mut client, "ann", 1);
    let closed = loop {
        let event = live.read().expect("it goes on");
        if event.event == "period_closed" {
            break event;
        }
    };
    assert_eq!((&closed.data["board"], &closed.data["total"]), (&json!("b"), &json!(1)));
    let mut later = listen(&server, &after(super::BOARD, "0"));
    let again = later.read().expect("it goes on");
    assert_eq!((again.id.as_str(), &again.data), ("1", &closed.data));
    let listed = client.get("/v1/leaderboards/b/periods").expect(200);
    let listed = listed["items"].as_array().expect("items").iter();
    let listed = listed.filter(|one| one["period"] == closed.data["period"]).collect::<Vec<_>>();
    for name in ["name", "starts_at", "ends_at", "start", "end", "state", "total"] {
        assert_eq!(listed[0][name], closed.data[name], "{name}");
    }
}

/// A subscriber that resumes with its last id gets every transfer once, though its server is killed again and again.
#[test]
fn nothing_is_lost_or_doubled_over_kills() {
    let mut server = TestTally::start(TALLY);
    let (ann, token) = member(&server, "ann");
    let mut rng = Rng::of("events over kills");
    let (mut heard, mut sent) = (Vec::new(), 0);
    let mut last_id = listen(&server, &stream(MINE).key(&token)).last_id.clone();
    for round in 0..4 {
        let mut mine = listen(&server, &after(MINE, &last_id).key(&token));
        let mut local = server.local();
        let (mut before, count) = (heard.len(), 5 + rng.below(20) as usize);
        for _ in 0..count {
            sent += 1;
            deposit(&mut local, &ann, "KRW", sent);
            // Some are read at once, some after the kill from the connection's buffer, some only by the next one.
            if rng.percent(60) {
                heard.push(amount(&mine.expect("transaction")));
                before = heard.len();
            }
        }
        server.kill9();
        // The events before the connection broke.
        heard.extend(mine.rest().iter().map(|event| amount(&event.data)));
        assert!(heard.len() >= before, "round {round}");
        last_id.clone_from(&mine.last_id);
        server.restart();
    }
    let mut mine = listen(&server, &after(MINE, &last_id).key(&token));
    let started = Instant::now();
    while heard.len() < sent as usize {
        assert!(started.elapsed() < GIVE_UP);
        heard.push(amount(&mine.expect("transaction")));
    }
    assert_eq!(heard, (1..=sent).collect::<Vec<_>>());
}
