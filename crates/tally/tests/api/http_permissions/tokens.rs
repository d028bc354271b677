//! The life of a member's token: events that end it, at every route and every open stream, and events that do not.

use super::{TALLY, UNAUTHORIZED, check, create_key, of_member, prepare, request, sign_in, try_all};
use serde_json::{Value, json};
use tally_testkit::routes::{Route, all};
use tally_testkit::{Client, EventStream, Request, TestTally};

/// A member that has signed in, and listens to everything it may listen to.
struct SignedIn {
    id: String,
    token: String,
    held: Client,
    streams: Vec<(Route, EventStream)>,
}

impl SignedIn {
    fn new(server: &TestTally) -> Self {
        prepare(&mut server.local());
        create_key(&mut server.local(), "admin");
        let token = sign_in(server).expect("the password is right");
        let mut held = server.client().with_key(&token);
        let id = held.get("/v1/me").expect(200)["id"].as_str().expect("an id").to_owned();
        let listen = |(number, route): (usize, Route)| {
            let opened = EventStream::open(server.address(), &request(&route, number).key(&token));
            (route, opened.unwrap_or_else(|answer| panic!("{}", answer.text())))
        };
        let streams = all().into_iter().enumerate().filter(|(_, route)| route.path.ends_with("/events"));
        let streams: Vec<_> = streams.map(listen).collect();
        assert_eq!(streams.len(), 3, "a leaderboard's, a contest's and its own");
        Self { id, token, held, streams }
    }

    fn act(&self, method: &str, what: &str, body: Option<&Value>) -> Request {
        let request = Request::new(method, format!("/v1/members/{}{what}", self.id));
        body.map_or(request.clone(), |body| request.json(body))
    }
}

#[test]
fn what_ends_a_token_ends_it_at_every_route_and_every_open_stream() {
    let patched = |body: Value| ("PATCH", "", Some(body));
    for (name, (method, what, body)) in [
        ("signed out", ("POST", "/sign-out", None)),
        ("closed", ("POST", "/close", None)),
        ("another password", patched(json!({"password": "another one"}))),
        ("the same password again", patched(json!({"password": "open sesame"}))),
        ("no password", patched(json!({"password": null, "name": "Other"}))),
    ] {
        let server = TestTally::start(TALLY);
        let mut member = SignedIn::new(&server);
        server.local().send(&member.act(method, what, body.as_ref())).expect(200);
        check(&member.held.get("/v1/me"), UNAUTHORIZED, name);
        for (route, stream) in &mut member.streams {
            assert_eq!(stream.rest(), [], "{name}: {}", route.path);
        }
        try_all(&server, name, |request| request.key(&member.token), |_| UNAUTHORIZED);
        // A later token is good, where the password still is.
        let again = sign_in(&server);
        assert_eq!(again.is_some(), ["signed out", "the same password again"].contains(&name), "{name}");
        if let Some(token) = again {
            try_all(&server, name, |request| request.key(&token), of_member);
        }
    }
}

#[test]
fn what_changes_a_member_otherwise_leaves_its_token_and_its_streams() {
    let server = TestTally::start(TALLY);
    let mut member = SignedIn::new(&server);
    let mut local = server.local();
    for body in [
        json!({"name": "Other"}),
        json!({"player": "renamed"}),
        json!({"phone_number": "010-1234"}),
        json!({"phone_number": null}),
        json!({"pin": "0042"}),
    ] {
        local.send(&member.act("PATCH", "", Some(&body))).expect(200);
    }
    local.send(&member.act("POST", "/unlock-pin", None)).expect(200);
    let me = member.held.get("/v1/me").expect(200);
    assert_eq!((&me["name"], &me["player"]), (&json!("Other"), &json!("renamed")));
    // Longer than between two permission checks of a subscriber.
    std::thread::sleep(std::time::Duration::from_secs(2));
    for (number, route) in all().iter().enumerate().filter(|(_, route)| route.path.ends_with("/events")) {
        let done = match route.path.as_str() {
            "/v1/me/events" => local.post("/v1/deposits", &json!({"to": member.id, "amount": 1})),
            path if path.starts_with("/v1/contests/") => {
                local.send(&Request::new("POST", format!("/v1/contests/c{number}/open")))
            }
            _ => {
                local.post(&format!("/v1/leaderboards/b{number}/scores"), &json!({"player": "p", "score": 2}))
            }
        };
        assert!((200..300).contains(&done.status), "{}", done.text());
        let (_, stream) = member.streams.iter_mut().find(|(other, _)| other == route).expect("it is open");
        assert!(stream.read().is_some(), "{} has ended", route.path);
    }
    try_all(&server, "a renamed member", |request| request.key(&member.token), of_member);
}
