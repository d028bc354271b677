//! Members: one that is made, changed and signed in at one server is the same at every other.

use super::world::*;
use serde_json::{Value, json};
use tally_testkit::{Client, Request};

#[test]
fn a_member_is_the_same_on_every_server() {
    let servers = Servers::start(3);
    let mut clients = servers.clients();
    let post =
        |client: &mut Client, path: &str, body: &Value| send(client, &Request::new("POST", path).json(body));
    let member = |name: &str, phone: &str| json!({"login_id": name, "password": "correct horse", "pin": "0042", "phone_number": phone, "name": name});
    let ann = post(&mut clients[0], "/v1/members", &member("ann", "010-1")).expect(201);
    let bob = post(&mut clients[1], "/v1/members", &member("bob", "010-2")).expect(201);
    let (ann, bob) = (ann["id"].as_str().expect("an id"), bob["id"].as_str().expect("an id"));
    post(&mut clients[2], "/v1/deposits", &json!({"to": ann, "amount": 100})).expect(201);
    let sign_in = |client: &mut Client, login: &str| {
        let body = json!({"loginId": login, "password": "correct horse"});
        post(client, "/auth/signin", &body).expect(200)["data"]["accessToken"]
            .as_str()
            .expect("a token")
            .to_owned()
    };
    // A token of one server is good at another, and pays the present owner of the number, wherever that was changed.
    let token = format!("Bearer {}", sign_in(&mut clients[1], "ann"));
    let pay = |client: &mut Client, phone: &str, key: &str| {
        let body = json!({"phoneNumber": phone, "amount": 1, "password": 42});
        let request = Request::new("POST", "/transfer/phone-num").json(&body).idempotent(key);
        send(client, &request.header("Authorization", &token))
    };
    pay(&mut clients[2], "0102", "first").expect(201);
    let changed = Request::new("PATCH", format!("/v1/members/{bob}")).json(&json!({"phone_number": "010-3"}));
    send(&mut clients[0], &changed).expect(200);
    pay(&mut clients[2], "0103", "second").expect(201);
    pay(&mut clients[2], "0102", "third").refused(404, "recipient_not_found");
    assert!(pay(&mut clients[0], "0102", "first").is_replay(), "the same request at another server");
    // Reads may have their documented age; a token ends with its password everywhere.
    let me =
        |client: &mut Client| send(client, &Request::new("GET", "/v1/me").header("Authorization", &token));
    me(&mut clients[1]).expect(200);
    let changes = json!({"name": "Ann", "password": "another one"});
    send(&mut clients[0], &Request::new("PATCH", format!("/v1/members/{ann}")).json(&changes)).expect(200);
    assert_eq!(me(&mut clients[0]).status, 401);
    wait_until("a token ends on every server", || clients.iter_mut().all(|client| me(client).status == 401));
    pay(&mut clients[1], "0103", "fourth").refused(401, "unauthorized");
    // So it does when its member is signed out, and when it is closed.
    let eve = post(&mut clients[1], "/v1/members", &member("eve", "010-4")).expect(201);
    let eve = eve["id"].as_str().expect("an id");
    for act in ["sign-out", "close"] {
        let token = format!("Bearer {}", sign_in(&mut clients[1], "eve"));
        let me = |client: &mut Client| {
            send(client, &Request::new("GET", "/v1/me").header("Authorization", &token))
        };
        clients.iter_mut().for_each(|client| drop(me(client).expect(200)));
        send(&mut clients[0], &Request::new("POST", format!("/v1/members/{eve}/{act}"))).expect(200);
        wait_until("a token ends on every server", || {
            clients.iter_mut().all(|client| me(client).status == 401)
        });
    }
    // Another server gives its names to another member.
    post(&mut clients[2], "/v1/members", &member("eve", "010-4")).expect(201);
}
