//! Runs against a stub with fixed answers: successes, failures, and the findings of the proof.
//!
//! The stub reads requests of this crate and nothing else; the real server is measured by the bench scenario `http`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;
use tally_load::{Acknowledged, Client, LoadOutcome, LoadPlan, LoadTarget, RequestKind, Skew, run, verify};

/// Returns the status and the body for the number and the first line of a request; without one the connection breaks.
type Answer = fn(usize, &str) -> Option<(u16, String)>;

fn stub(answer: Answer) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || serve(stream, answer));
        }
    });
    address
}

fn serve(stream: TcpStream, answer: Answer) -> Option<()> {
    let mut stream = BufReader::new(stream);
    for number in 0.. {
        let (mut first, mut length) = (String::new(), 0);
        stream.read_line(&mut first).ok()?;
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).ok()?;
            if let Some(text) = line.strip_prefix("content-length: ") {
                length = text.trim().parse().ok()?;
            }
            if line.trim().is_empty() {
                break;
            }
        }
        stream.read_exact(&mut vec![0; length]).ok()?;
        let (status, body) = answer(number, &first)?;
        let length = body.len();
        write!(stream.get_mut(), "HTTP/1.1 {status} Whatever\r\ncontent-length: {length}\r\n\r\n{body}")
            .ok()?;
    }
    None
}

fn load(kind: RequestKind, answer: Answer) -> (LoadOutcome, Acknowledged, LoadTarget) {
    let target = LoadTarget { address: stub(answer), token: None, board: "b".into(), players: 8 };
    // So long that a busy machine answers several requests of each connection.
    let (warm_up, duration) = (Duration::from_millis(20), Duration::from_millis(800));
    let plan = LoadPlan { kind, skew: Skew::Zipf, connections: 4, warm_up, duration, seed: 1 };
    let mut acknowledged = Acknowledged::new(target.players);
    let outcome = run(&target, &plan, &mut acknowledged).unwrap();
    (outcome, acknowledged, target)
}

#[test]
fn answers_of_success_are_counted_and_timed() {
    for kind in [
        RequestKind::Submit,
        RequestKind::Top,
        RequestKind::Rank,
        RequestKind::Around,
        RequestKind::Mix,
        RequestKind::Half,
    ] {
        let (outcome, ..) = load(kind, |_, _| Some((200, "{}".into())));
        assert!(outcome.succeeded > 0);
        assert_eq!(outcome.succeeded, outcome.latencies().count());
        assert_eq!(outcome.failed(), 0);
        assert!(outcome.seconds >= 0.8, "{}", outcome.seconds);
    }
}

#[test]
fn a_refused_submit_fails_and_promises_nothing() {
    let (outcome, acknowledged, _) = load(RequestKind::Submit, |_, _| Some((503, "{}".into())));
    assert_eq!((outcome.succeeded, outcome.rate()), (0, 0.0));
    assert!(outcome.errors[&503] > 0);
    assert!((0..8).all(|player| acknowledged.score(player).is_none()));
}

#[test]
fn a_connection_that_breaks_is_counted_and_its_player_unknown() {
    let (outcome, acknowledged, _) =
        load(RequestKind::Submit, |number, _| (number < 3).then(|| (200, "{}".into())));
    assert_eq!(outcome.errors[&0], 4);
    let known = (0..8).filter(|player| acknowledged.score(*player).is_some()).count();
    assert!(known <= 4, "each of four connections has two players and left one unknown: {known}");
}

#[test]
fn the_proof_finds_a_server_that_forgets() {
    let forgets: Answer = |_, first| {
        let body = if first.starts_with("GET") { r#"{"score":-1}"# } else { "{}" };
        Some((200, body.into()))
    };
    let (_, acknowledged, target) = load(RequestKind::Submit, forgets);
    let proof = verify(&target, &acknowledged, 50, 1).unwrap();
    assert_eq!(proof.right, 0);
    assert_eq!(proof.wrong.len() as u64 + proof.unknown, 50);
    assert!(!proof.wrong.is_empty());
}

#[test]
fn a_client_keeps_its_connection_and_opens_another_one_after_a_failure() {
    let twice: Answer =
        |number, first| (number < 2).then(|| (200, format!(r#"{{"number":{number},"line":{first:?}}}"#)));
    let mut client = Client::new(stub(twice), Duration::from_secs(60)).unwrap();
    let (status, body) = client.get("/a").unwrap();
    assert_eq!((status, &body["number"]), (200, &0.into()));
    let (_, body) = client.send("POST", "/b", Some("k"), &serde_json::json!({"a": 1})).unwrap();
    assert_eq!(body["number"], 1, "the same connection: {body}");
    assert!(body["line"].as_str().unwrap().starts_with("POST /b "), "{body}");
    client.get("/a").unwrap_err();
    assert_eq!(client.get("/a").unwrap().1["number"], 0);
}
