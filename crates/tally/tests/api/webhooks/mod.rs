//! Webhooks over the wire: what a receiver gets, however it and the server behave.
//!
//! Not here: webhooks of several servers (`faults/servers/webhooks.rs`), and the store of them (`store/tests`).

mod receiver;

use crate::TALLY;
use receiver::{Act, Received, Receiver};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tally_rules::Micros;
use tally_service::webhooks::signature;
use tally_testkit::{Client, EventStream, Request, Response, Rng, TestTally, wait_until};

const PRIVATE: (&str, &str) = ("TALLY_WEBHOOKS_PRIVATE", "true");

fn start() -> TestTally {
    TestTally::start_set(TALLY, &[PRIVATE])
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

/// A new webhook of contests: its path and its secret.
fn create(client: &mut Client, url: &str) -> (String, String) {
    let made = client.post("/v1/webhooks", &json!({"url": url, "events": ["contest"]})).expect(201);
    (format!("/v1/webhooks/{}", text(&made["id"])), text(&made["secret"]))
}

/// Makes an event of a contest: the first one makes the contest.
fn change(client: &mut Client, contest: &str, number: u64) {
    let title = format!("Title {number}");
    match number {
        1 => {
            client.post("/v1/contests", &json!({"id": contest, "title": title})).expect(201);
        }
        _ => {
            let request = Request::new("PATCH", format!("/v1/contests/{contest}"));
            client.send(&request.json(&json!({"title": title}))).expect(200);
        }
    }
}

fn topic(contest: &str) -> String {
    format!("contest:{contest}")
}

/// Sends a request without a body.
fn act(client: &mut Client, method: &str, path: &str) -> Response {
    client.send(&Request::new(method, path))
}

/// Each topic in order, none missed, and one id and one body for each event, however often it came.
fn check_order(received: &[Received]) {
    let mut taken: BTreeMap<&str, u64> = BTreeMap::new();
    let mut ids: BTreeMap<(&str, u64), (&Value, &str)> = BTreeMap::new();
    for one in received {
        let last = taken.entry(one.topic()).or_default();
        assert!(one.number() <= *last + 1, "{} came after {last} of {}", one.number(), one.topic());
        if one.is_taken() {
            *last = one.number().max(*last);
        }
        assert_eq!(one.event["id"], one.header("tally-event-id"));
        let first = ids.entry((one.topic(), one.number())).or_insert((&one.event["id"], &one.body));
        assert_eq!(*first, (&one.event["id"], &*one.body));
        assert_eq!(one.event["missed"], Value::Null);
    }
    let mut all: Vec<&Value> = ids.values().map(|(id, _)| *id).collect();
    all.sort_by_key(|id| id.to_string());
    all.dedup();
    assert_eq!(all.len(), ids.len(), "two events have one id");
}

fn is_signed(one: &Received, secrets: &[&str]) -> bool {
    let header = one.header("tally-signature");
    let seconds = header.strip_prefix("t=").and_then(|rest| rest.split(',').next());
    let seconds: i64 = seconds.and_then(|text| text.parse().ok()).expect("a time");
    let secrets: Vec<String> = secrets.iter().map(|secret| (*secret).to_owned()).collect();
    header == signature(&secrets, Micros(seconds * 1_000_000), one.body.as_bytes())
}

/// Slow, failing, redirecting, closing early: and the server is killed meanwhile.
#[test]
fn a_hostile_receiver_gets_every_event_in_order() {
    const CONTESTS: [&str; 3] = ["a", "b", "c"];
    const EVENTS: u64 = 6;
    let (mut server, receiver, elsewhere) = (start(), Receiver::start(), Receiver::start());
    let mut rng = Rng::of("webhooks");
    let all = [
        Act::Status(500),
        Act::Redirect(elsewhere.address()),
        Act::Close,
        Act::Cut,
        Act::Garbage,
        Act::Endless,
        Act::TakeAndCut,
        Act::Status(404),
    ];
    let mut acts: Vec<Act> =
        (0..16).map(|_| if rng.percent(30) { *rng.pick(&all) } else { Act::Take }).collect();
    acts.splice(0..0, all);
    acts.insert(4, Act::Silent);
    receiver.then(&acts, Act::Take);
    let (_, secret) = create(&mut server.client(), &receiver.url());
    for number in 1..=EVENTS {
        let mut client = server.client();
        CONTESTS.iter().for_each(|contest| change(&mut client, contest, number));
        if number % 2 == 0 {
            server.kill9();
            server.restart();
        }
    }
    for number in 1..=EVENTS {
        let has = |contest: &&str| receiver.taken(&topic(contest)) >= number;
        wait_until("the next ones arrive", || CONTESTS.iter().all(&has));
    }
    let received = receiver.received();
    check_order(&received);
    assert!(received.iter().all(|one| is_signed(one, &[&secret])));
    assert!(all.iter().all(|act| received.iter().any(|one| one.act == *act)));
    assert_eq!(elsewhere.connections(), 0, "a redirect was followed");
}

/// Movements of money beside a receiver that fails now and then, and a server that is killed: each line of each wallet, in its order.
#[test]
fn every_line_of_a_wallet_arrives_in_order() {
    let (mut server, receiver) = (start(), Receiver::start());
    let mut rng = Rng::of("lines");
    let mut client = server.client();
    let member = |client: &mut Client, name: &str| {
        text(&client.post("/v1/members", &json!({"login_id": name, "name": name})).expect(201)["id"])
    };
    let members = ["ann", "bob", "cid"].map(|name| member(&mut client, name));
    let events = json!(["balance_below", "reversal", "transfer"]);
    let body = json!({"url": receiver.url(), "events": events, "balance_below": {"KRW": "50"}});
    let made = client.post("/v1/webhooks", &body).expect(201);
    assert_eq!(made["balance_below"], json!({"KRW": "50"}));
    let acts: Vec<Act> = (0..40)
        .map(|_| if rng.percent(20) { *rng.pick(&[Act::Status(500), Act::Close]) } else { Act::Take })
        .collect();
    receiver.then(&acts, Act::Take);
    let mut last = String::new();
    let mut lines = [0_u64; 3];
    for round in 0..4 {
        let mut client = server.client();
        for _ in 0..10 {
            let (from, to) = (rng.below(3) as usize, rng.below(3) as usize);
            client.post("/v1/deposits", &json!({"to": members[from], "amount": 20})).expect(201);
            lines[from] += 1;
            if from != to {
                let body = json!({"from": members[from], "to": members[to], "amount": rng.between(1, 20)});
                last = text(&client.post("/v1/transfers", &body).expect(201)["group_id"]);
                lines[from] += 1;
                lines[to] += 1;
            }
        }
        if round % 2 == 0 {
            server.kill9();
            server.restart();
        }
    }
    let mut client = server.client();
    client.post(&format!("/v1/ledger/transactions/{last}/reverse"), &json!({"amount": 1})).expect(201);
    let moved = client.get(&format!("/v1/ledger/transactions/{last}")).expect(200);
    let sides = ["debit", "credit"].map(|side| text(&moved[side]["member"]));
    sides.iter().for_each(|side| lines[members.iter().position(|one| one == side).expect("a member")] += 1);
    let wallet = |member: &String| format!("wallet:{member}:KRW");
    wait_until("every line arrives", || {
        members.iter().zip(lines).all(|(member, lines)| receiver.taken(&wallet(member)) == lines)
    });
    let received = receiver.received();
    check_order(&received);
    for (member, lines) in members.iter().zip(lines) {
        let history = client.get(&format!("/v1/wallets/{member}/transactions?limit=1000")).expect(200);
        let mut shown: Vec<Value> = history["items"].as_array().expect("a list").clone();
        shown.reverse();
        assert_eq!(shown.len() as u64, lines);
        let topic = wallet(member);
        for (number, line) in (1..).zip(shown) {
            let is_it = |one: &&Received| one.topic() == topic && one.number() == number && one.is_taken();
            let event = &received.iter().find(is_it).expect("it was taken").event;
            let units = |name: &str| text(&line[name]).parse::<i64>().expect("units");
            let crosses = units("before") >= 50 && units("after") < 50;
            let kind = match text(&line["type"]).starts_with("reversal") {
                _ if crosses => "balance_below",
                true => "reversal",
                false => "transfer",
            };
            assert_eq!(event["type"], kind, "{line}");
            let mut wanted = line.clone();
            wanted["member"] = json!(member);
            if crosses {
                wanted["below"] = json!("50");
            }
            assert_eq!(event["data"], wanted);
        }
    }
}

#[test]
fn a_receiver_that_takes_nothing_disables_its_webhook_and_misses_nothing() {
    let (mut server, receiver) = (TestTally::stopped(TALLY), Receiver::start());
    server.set(PRIVATE.0, PRIVATE.1);
    server.set("TALLY_WEBHOOKS_RETRY", "2s");
    server.allow("a webhook was disabled");
    server.restart();
    let mut client = server.client();
    receiver.then(&[], Act::Status(503));
    let (path, _) = create(&mut client, &receiver.url());
    change(&mut client, "cup", 1);
    wait_until("it is disabled", || client.get(&path).expect(200)["enabled"] == false);
    let shown = client.get(&path).expect(200);
    assert!(text(&shown["disabled"]["reason"]).contains("503"), "{shown}");
    assert_eq!(shown["disabled"]["why"], shown["disabled"]["reason"], "the older name");
    server.wait_logged("a webhook was disabled");
    let acts = client.get("/v1/audit?action=webhook.changed").expect(200);
    assert_eq!((&acts["items"][0]["actor"], &acts["items"][1]), (&json!("background"), &Value::Null));
    let sent = receiver.received().len();
    change(&mut client, "cup", 2);
    change(&mut client, "cup", 3);
    wait_until("the metric says so", || client.get("/metrics").text().contains("tally_webhooks_disabled 1"));
    assert_eq!(receiver.received().len(), sent, "a disabled webhook gets nothing");
    receiver.then(&[], Act::Take);
    let enable = Request::new("PATCH", &path).json(&json!({"enabled": true}));
    assert_eq!(client.send(&enable).expect(200)["enabled"], true);
    wait_until("it goes on", || receiver.taken(&topic("cup")) == 3);
    check_order(&receiver.received());
}

#[test]
fn deliveries_are_listed_and_sent_again() {
    let (server, receiver) = (start(), Receiver::start());
    let mut client = server.client();
    let (path, _) = create(&mut client, &receiver.url());
    let list =
        |client: &mut Client, query: &str| client.get(&format!("{path}/deliveries{query}")).expect(200);
    assert_eq!(list(&mut client, "")["items"], json!([]));
    change(&mut client, "good", 1);
    wait_until("it is delivered", || list(&mut client, "?state=delivered")["items"][0].is_object());
    let first = list(&mut client, "")["items"][0].clone();
    let wanted = json!({"topic": "contest:good", "number": 1, "state": "delivered", "status": 204});
    wanted.as_object().expect("fields").iter().for_each(|(name, value)| assert_eq!(first[name], *value));
    // Again, with the same id.
    let send = |client: &mut Client, id: &str| act(client, "POST", &format!("{path}/deliveries/{id}/send"));
    let id = text(&first["id"]);
    // The answer is the delivery, as the list has it.
    let sent = send(&mut client, &id).expect(200);
    for name in
        ["id", "topic", "number", "state", "status", "attempts", "failing_since", "next_attempt_at", "error"]
    {
        assert_eq!(sent[name], first[name], "{name}");
    }
    assert!(sent["at"].as_str() >= first["at"].as_str(), "{sent}");
    assert_eq!(sent["delivered"], true);
    let received = receiver.received();
    assert_eq!(
        received.iter().map(|one| text(&one.event["id"])).collect::<Vec<_>>(),
        [id.clone(), id.clone()]
    );
    receiver.then(&[], Act::Status(500));
    let again = send(&mut client, &id).expect(200);
    assert_eq!((&again["delivered"], &again["status"]), (&json!(false), &json!(500)));
    assert_eq!((&again["state"], &again["attempts"]), (&json!("failing"), &json!(null)));
    assert_eq!(list(&mut client, "?state=failing")["items"], json!([]), "it was delivered before");
    // One that fails, and one that waits for it.
    change(&mut client, "bad", 1);
    change(&mut client, "bad", 2);
    wait_until("it fails", || list(&mut client, "?state=failing")["items"][0].is_object());
    let failing = list(&mut client, "?state=failing")["items"][0].clone();
    assert_eq!((&failing["topic"], &failing["number"]), (&json!("contest:bad"), &json!(1)));
    assert!(failing["attempts"].as_u64() > Some(0) && failing["error"].is_string(), "{failing}");
    assert_eq!(list(&mut client, "?state=delivered")["items"][0]["id"], json!(id));
    let page = list(&mut client, "?limit=1");
    let next = format!("?limit=1&cursor={}", text(&page["next_cursor"]));
    let second = list(&mut client, &next);
    assert_ne!(page["items"][0]["topic"], second["items"][0]["topic"]);
    assert_eq!(second["next_cursor"], Value::Null);
    let bad = text(&failing["id"]);
    receiver.then(&[], Act::Take);
    assert_eq!(send(&mut client, &bad).expect(200)["delivered"], true);
    wait_until("the topic goes on", || receiver.taken(&topic("bad")) == 2);
    let mut parts = bad.split('.');
    let (of, at) = (parts.next().expect("a topic"), parts.nth(1).expect("a time"));
    for (id, code) in [(format!("{of}.9.{at}"), "delivery_not_found"), ("x".into(), "delivery_not_found")] {
        send(&mut client, &id).refused(404, code);
    }
    check_order(&receiver.received());
}

#[test]
fn an_event_behind_one_that_fails_is_not_sent_first() {
    let (server, receiver) = (start(), Receiver::start());
    let mut client = server.client();
    let (path, _) = create(&mut client, &receiver.url());
    change(&mut client, "cup", 1);
    wait_until("it arrives", || receiver.taken(&topic("cup")) == 1);
    receiver.then(&[], Act::Status(500));
    change(&mut client, "cup", 2);
    wait_until("it fails", || receiver.received().iter().any(|one| one.number() == 2));
    change(&mut client, "cup", 3);
    // The id of the third event, from another receiver.
    let other = Receiver::start();
    create(&mut client, &other.url());
    change(&mut client, "cup", 4);
    wait_until("the other has it", || other.taken(&topic("cup")) == 4);
    let fourth = text(&other.received().pop().expect("one").event["id"]);
    act(&mut client, "POST", &format!("{path}/deliveries/{fourth}/send")).refused(409, "delivery_waits");
    assert_eq!(other.received()[0].number(), 4, "a webhook gets no event from before it was made");
    receiver.then(&[], Act::Take);
    wait_until("it goes on", || receiver.taken(&topic("cup")) == 4);
    check_order(&receiver.received());
}

/// The address is checked after the name was resolved.
#[test]
fn private_addresses_get_nothing() {
    let (server, receiver) = (TestTally::start(TALLY), Receiver::start());
    let mut client = server.client();
    let port = receiver.address().port();
    for url in [
        format!("http://localhost:{port}/"),
        format!("https://127.0.0.1:{port}/"),
        format!("https://[::ffff:127.0.0.1]:{port}/"),
        "https://169.254.169.254/".into(),
    ] {
        let answer = client.post("/v1/webhooks", &json!({"url": url, "events": ["contest"]}));
        answer.refused(400, "invalid_field");
    }
    let (path, _) = create(&mut client, &format!("https://localhost:{port}/hook?x=1"));
    change(&mut client, "cup", 1);
    let mut failing = Value::Null;
    wait_until("it fails", || {
        failing = client.get(&format!("{path}/deliveries?state=failing")).expect(200)["items"][0].clone();
        failing.is_object()
    });
    assert!(text(&failing["error"]).contains("private address"), "{failing}");
    assert_eq!(receiver.connections(), 0);
}

#[test]
fn a_secret_is_shown_once_and_replaced_by_another() {
    let (server, receiver) = (start(), Receiver::start());
    let mut client = server.client();
    let body = json!({"url": receiver.url(), "events": ["contest"]});
    let request = Request::new("POST", "/v1/webhooks").json(&body).idempotent("make");
    let made = client.send(&request).expect(201);
    let again = client.send(&request);
    assert!(again.is_replay());
    assert_eq!(again.expect(201), made);
    let path = format!("/v1/webhooks/{}", text(&made["id"]));
    assert_eq!(client.get("/v1/webhooks").expect(200)["items"].as_array().map(Vec::len), Some(1));
    assert!(
        !client.get(&path).text().contains("whsec_") && !client.get("/v1/webhooks").text().contains("whsec_")
    );
    let first = text(&made["secret"]);
    change(&mut client, "cup", 1);
    wait_until("it arrives", || receiver.taken(&topic("cup")) == 1);
    let rotate = Request::new("POST", format!("{path}/secret")).idempotent("rotate");
    let second = text(&client.send(&rotate).expect(200)["secret"]);
    assert!(first != second && client.send(&rotate).is_replay());
    change(&mut client, "cup", 2);
    wait_until("it arrives", || receiver.taken(&topic("cup")) == 2);
    let received = receiver.received();
    assert!(is_signed(&received[0], &[&first]));
    assert!(is_signed(received.last().expect("one"), &[&second, &first]));
    // Deleted: nothing more, and a new one begins anew.
    act(&mut client, "DELETE", &path).expect(204);
    act(&mut client, "GET", &path).refused(404, "webhook_not_found");
    create(&mut client, &receiver.url());
    change(&mut client, "cup", 3);
    wait_until("it arrives", || receiver.taken(&topic("cup")) == 3);
    check_order(&receiver.received());
}

#[test]
fn a_closed_member_is_delivered_once() {
    let (server, receiver) = (start(), Receiver::start());
    let mut client = server.client();
    let body = json!({"url": receiver.url(), "events": ["member_closed"]});
    client.post("/v1/webhooks", &body).expect(201);
    let made = client.post("/v1/members", &json!({"login_id": "ann", "name": "Ann"})).expect(201);
    let id = text(&made["id"]);
    for _ in 0..2 {
        client.post(&format!("/v1/members/{id}/close"), &json!({})).expect(200);
    }
    let other = client.post("/v1/members", &json!({"login_id": "bob", "name": "Bob"})).expect(201);
    client.post(&format!("/v1/members/{}/close", text(&other["id"])), &json!({})).expect(200);
    wait_until("both arrive", || receiver.received().len() >= 2);
    let received = receiver.received();
    assert_eq!(received.len(), 2);
    let first = received.iter().find(|one| one.topic() == format!("member:{id}")).expect("it is there");
    assert_eq!((first.number(), &first.event["data"]), (1, &json!({"member": id})));
    check_order(&received);
}

#[test]
fn a_closed_period_is_delivered() {
    let (server, receiver) = (start(), Receiver::start());
    let mut client = server.client();
    let minutely = json!({"name": "minutely", "schedule": "* * * * *", "keep": 3});
    client.put("/v1/leaderboards/b", &json!({"periods": [minutely]})).expect(201);
    let body = json!({"url": receiver.url(), "events": ["period_closed"]});
    client.post("/v1/webhooks", &body).expect(201);
    change(&mut client, "cup", 1);
    let request = Request::new("GET", "/v1/leaderboards/b/events");
    let mut stream = EventStream::open(server.address(), &request).expect("it may listen");
    client.post("/v1/leaderboards/b/scores", &json!({"player": "ann", "score": 1})).expect(200);
    // A minute ends.
    while stream.read().expect("it goes on").event != "period_closed" {}
    wait_until("it is delivered", || receiver.taken("leaderboard:b") == 1);
    let [only] = &receiver.received()[..] else { panic!("{:?}", receiver.received()) };
    assert_eq!((&only.event["type"], &only.event["data"]["total"]), (&json!("period_closed"), &json!(1)));
}
