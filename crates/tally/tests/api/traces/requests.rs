//! Requests over HTTP that are sampled: their span, and those of the lane they went through.

use super::collector::{Collector, Span};
use super::server;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tally_testkit::{Client, Request};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";
const SERVER: i32 = 2;
const ERROR: i32 = 2;

fn followed(request: Request) -> Request {
    request.header("traceparent", &format!("00-{TRACE}-{CALLER}-01"))
}

fn post(target: &str, body: &Value) -> Request {
    Request::new("POST", target).json(body)
}

/// The one of that name.
#[track_caller]
fn named<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    let found: Vec<&Span> = spans.iter().filter(|span| span.name == name).collect();
    let [one] = found.as_slice() else { panic!("{name}: {spans:#?}") };
    one
}

/// The spans below one, in the order in which they began.
fn below<'a>(spans: &'a [Span], parent: &Span) -> Vec<&'a Span> {
    let mut all: Vec<&Span> = spans.iter().filter(|span| span.parent == parent.id).collect();
    all.sort_by_key(|span| (span.start, span.end));
    all
}

/// The spans of a batch: four, one behind the other, within that of the request.
#[track_caller]
fn through_a_lane(spans: &[Span], root: &Span, lane: &str) {
    let stages = below(spans, root);
    let names: Vec<&str> = stages.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["queue", "read", "commit", "publish"], "{spans:#?}");
    let mut at = root.start;
    for stage in stages {
        assert_eq!(stage.trace, root.trace);
        assert!(at <= stage.start && stage.start <= stage.end && stage.end <= root.end, "{spans:#?}");
        assert!(stage.attributes["tally.lane"].as_str().expect("a name").starts_with(lane), "{stage:#?}");
        at = stage.end;
    }
}

fn board(client: &mut Client) {
    client.put("/v1/leaderboards/b", &json!({})).expect(201);
}

#[test]
fn a_submit_is_told_below_its_caller_and_its_batch_below_it() {
    let collector = Collector::start();
    let mut server = server(&collector, "0", &[("TALLY_TRACES_SERVICE", "scores-eu")]);
    let mut client = server.client();
    board(&mut client);
    let score = json!({"player": "ann", "score": 5});
    let target = "/v1/leaderboards/b/scores";
    client.post(target, &score).expect(200);
    let not = post(target, &score).header("traceparent", &format!("00-{TRACE}-{CALLER}-00"));
    client.send(&not).expect(200);
    let request = followed(post(target, &score)).header("tracestate", "vendor=1");
    let answer = client.send(&request);
    answer.expect(200);
    // Waiting spans are sent before the server ends.
    server.terminate();
    let spans = collector.spans();
    assert_eq!(spans.len(), 5, "one request of three, and its batch: {spans:#?}");
    let root = named(&spans, "POST /v1/leaderboards/{board}/scores");
    assert_eq!((root.trace.as_str(), root.parent.as_str(), root.state.as_str()), (TRACE, CALLER, "vendor=1"));
    assert_eq!((root.kind, root.status), (SERVER, 0));
    for (name, value) in [
        ("http.request.method", json!("POST")),
        ("http.route", json!("/v1/leaderboards/{board}/scores")),
        ("http.response.status_code", json!(200)),
        ("url.path", json!(target)),
        ("url.scheme", json!("http")),
        ("client.address", json!("127.0.0.1")),
        ("tally.request_id", json!(answer.header("x-request-id").expect("an id"))),
    ] {
        assert_eq!(root.attributes[name], value, "{name}");
    }
    assert_eq!(root.resource["service.name"], "scores-eu");
    assert_eq!(root.resource["service.version"], env!("CARGO_PKG_VERSION"));
    through_a_lane(&spans, root, "scores-");
    for name in ["read", "commit", "publish"] {
        let span = named(&spans, name);
        assert_eq!(
            (&span.attributes["tally.batch.requests"], &span.attributes["tally.batch.rows"]),
            (&json!(1), &json!(1))
        );
    }
}

#[test]
fn rows_that_share_a_commit_are_told_once() {
    let collector = Collector::start();
    let mut server = server(&collector, "0", &[]);
    let mut client = server.client();
    board(&mut client);
    let row = |number| json!({"board": "b", "player": format!("p{number}"), "score": number});
    let rows: Vec<Value> = (0..10).map(row).collect();
    client.send(&followed(post("/v1/scores/batch", &json!({"scores": rows})))).expect(200);
    server.terminate();
    let spans = collector.spans();
    through_a_lane(&spans, named(&spans, "POST /v1/scores/batch"), "scores-");
    let commit = named(&spans, "commit");
    assert_eq!(
        (&commit.attributes["tally.batch.requests"], &commit.attributes["tally.batch.rows"]),
        (&json!(10), &json!(10))
    );
}

/// All requests are sampled, so all that shared a commit are seen to have.
#[test]
fn requests_that_share_a_commit_are_seen_to() {
    let collector = Collector::start();
    let server = server(&collector, "1", &[]);
    board(&mut server.client());
    let mut asked = 0;
    loop {
        std::thread::scope(|scope| {
            for player in 0..8 {
                let mut client = server.client();
                scope.spawn(move || {
                    for score in 0..25 {
                        let score = json!({"player": format!("p{player}"), "score": score});
                        client.post("/v1/leaderboards/b/scores", &score).expect(200);
                    }
                });
            }
        });
        asked += 200;
        let is_commit = |span: &&Span| span.name == "commit";
        collector.wait(|spans| spans.iter().filter(is_commit).count() == asked);
        let mut batches: BTreeMap<(String, String), Vec<Value>> = BTreeMap::new();
        for span in collector.spans().iter().filter(is_commit) {
            let said = |name: &str| span.attributes[name].to_string();
            let batch = batches.entry((said("tally.lane"), said("tally.batch.number"))).or_default();
            batch.push(span.attributes["tally.batch.requests"].clone());
        }
        for (batch, said) in &batches {
            assert_eq!(said, &vec![json!(said.len()); said.len()], "{batch:?}");
        }
        if batches.len() < asked {
            break;
        }
    }
}

#[test]
fn money_and_contests_are_told_through_their_lane() {
    let collector = Collector::start();
    let mut server = server(&collector, "0", &[]);
    let mut client = server.client();
    let member = json!({"login_id": "ann", "name": "Ann", "player": "ann"});
    let member = client.post("/v1/members", &member).expect(201)["id"].clone();
    let deposit = json!({"to": member, "amount": 100});
    client.send(&followed(post("/v1/deposits", &deposit))).expect(201);
    // It is made on a thread that may block.
    client.send(&followed(post("/v1/contests", &json!({"id": "cup", "title": "Cup"})))).expect(201);
    server.terminate();
    let spans = collector.spans();
    for name in ["POST /v1/deposits", "POST /v1/contests"] {
        through_a_lane(&spans, named(&spans, name), "ledger");
    }
}

#[test]
fn what_finds_nothing_or_fails_says_so() {
    let collector = Collector::start();
    let mut server = server(&collector, "0", &[]);
    let mut client = server.client();
    board(&mut client);
    for (request, status) in [
        (Request::new("GET", "/nowhere"), 404),
        (Request::new("BREW", "/v1/leaderboards"), 405),
        (Request::new("GET", "/v1/leaderboards/none"), 404),
        (Request::new("GET", "/v1/leaderboards/b/players/ann?nonsense=1"), 400),
    ] {
        client.send(&followed(request)).expect(status);
    }
    server.terminate();
    let spans = collector.spans();
    let told =
        |span: &Span| (span.name.clone(), span.attributes["http.response.status_code"].clone(), span.status);
    let told: Vec<_> = spans.iter().map(told).collect();
    let wanted = [
        ("GET", 404),
        ("HTTP", 405),
        ("GET /v1/leaderboards/{board}", 404),
        ("GET /v1/leaderboards/{board}/players/{player}", 400),
    ];
    // An error of the caller is no failure of the server.
    assert_eq!(told, wanted.map(|(name, status)| (name.to_owned(), json!(status), 0)));
    assert_eq!(spans[1].attributes["http.request.method"], "_OTHER");
    assert!(spans.iter().all(|span| span.status != ERROR && !span.attributes.contains_key("url.query")));
}

#[test]
fn without_a_caller_the_ratio_decides() {
    let collector = Collector::start();
    let mut server = server(&collector, "1", &[]);
    let mut client = server.client();
    board(&mut client);
    client.get("/v1/leaderboards/b").expect(200);
    server.terminate();
    let spans = collector.spans();
    let [put, get] =
        ["PUT", "GET"].map(|method| named(&spans, &format!("{method} /v1/leaderboards/{{board}}")));
    assert!(put.parent.is_empty() && get.parent.is_empty() && put.trace != get.trace);
    // Callers that are not sampled elsewhere are not sampled here.
    server.restart();
    let before = collector.spans().len();
    let not =
        Request::new("GET", "/v1/leaderboards/b").header("traceparent", &format!("00-{TRACE}-{CALLER}-00"));
    server.client().send(&not).expect(200);
    server.terminate();
    assert_eq!(collector.spans().len(), before);
}
