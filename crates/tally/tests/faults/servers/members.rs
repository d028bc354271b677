//! Members: one that is made, changed and signed in at one server is the same at every other, and any server ends an erasure.

use super::world::*;
use serde_json::{Value, json};
use std::time::Duration;
use tally_testkit::audit::read_pages;
use tally_testkit::{Client, Request, Rng};

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

/// A member with so many transfers that its erasure takes several steps, whose wallet is empty.
fn person(client: &mut Client, number: usize, payer: &str) -> String {
    let player = format!("ann-player{number}");
    let body = json!({"login_id": format!("ann{number}"), "name": "Annabel", "player": player});
    let made = send(client, &Request::new("POST", "/v1/members").json(&body)).expect(201);
    let id = made["id"].as_str().expect("an id").to_owned();
    let gift = |at| json!({"from": payer, "to": id, "amount": 1, "reason": format!("annabel {at}")});
    let gifts: Vec<Value> = (0..700).map(gift).collect();
    send(client, &Request::new("POST", "/v1/transfers/batch").json(&json!({"transfers": gifts}))).expect(200);
    let back = json!({"from": id, "amount": 700, "reason": "annabel has all of it"});
    send(client, &Request::new("POST", "/v1/withdrawals").json(&back)).expect(201);
    submit(client, "goals", &player, 7).expect(200);
    id
}

#[test]
fn an_erasure_ends_on_any_server() {
    const PERSONS: usize = 6;
    let mut servers = Servers::start(3);
    servers.all.iter_mut().for_each(tally_testkit::TestTally::stay);
    let mut rng = Rng::of("erasures on several servers");
    let mut client = servers.all[0].client();
    put(&mut client, "goals", &json!({})).expect(201);
    let body = json!({"login_id": "payer", "name": "payer"});
    let payer = send(&mut client, &Request::new("POST", "/v1/members").json(&body)).expect(201);
    let payer = payer["id"].as_str().expect("an id");
    let deposit = json!({"to": payer, "amount": 700 * PERSONS});
    send(&mut client, &Request::new("POST", "/v1/deposits").json(&deposit)).expect(201);
    let persons: Vec<String> = (0..PERSONS).map(|number| person(&mut client, number, payer)).collect();
    for (number, id) in persons.iter().enumerate() {
        let (at, next) = (number % 3, (number + 1) % 3);
        let erase =
            Request::new("POST", format!("/v1/members/{id}/erase")).idempotent(&format!("erase-{number}"));
        let mut client = servers.all[at].local();
        let sender = {
            let erase = erase.clone();
            std::thread::spawn(move || client.try_send(&erase))
        };
        std::thread::sleep(Duration::from_millis(rng.below(60)));
        servers.all[at].kill9();
        drop(sender.join());
        // The same request at another server has one effect, and that server ends what the killed one began.
        send(&mut servers.all[next].local(), &erase).expect(200);
        servers.all[at].restart();
    }
    for server in &servers.all {
        let mut client = server.local();
        for id in &persons {
            let is_done = |client: &mut Client| {
                get(client, &format!("/v1/members/{id}")).expect(200)["erasure"] == "done"
            };
            wait_until("the erasure is done", || is_done(&mut client));
        }
        assert_eq!(names(&page(&mut client, "goals")), [""; 0]);
        let mut all = String::new();
        for path in ["/v1/ledger/transactions", "/v1/audit"] {
            for row in read_pages(&mut client, &format!("{path}?limit=1000"), "items").0 {
                all.push_str(&row.to_string());
            }
        }
        assert!(all.contains("member.erased") && !all.to_lowercase().contains("annabel"));
        assert!(!all.contains("ann-player"));
    }
    let rows = get(&mut servers.all[0].local(), "/v1/audit?action=member.erased&limit=100").expect(200);
    assert_eq!(rows["items"].as_array().map(Vec::len), Some(PERSONS), "one row for each person");
    servers.all[0].run(&["verify"]).expect(0);
}
