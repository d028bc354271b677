//! A new secret for two servers on one database: one restart of each, and no request is refused meanwhile.

use super::world::*;
use serde_json::{Value, json};
use tally_testkit::redis::{RedisKind, ScratchRedis};
use tally_testkit::{Client, DatabaseKind, Request, Response, ScratchDatabase, TestTally};

const NEW: &str = "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a";

fn post(client: &mut Client, path: &str, body: &Value) -> Response {
    send(client, &Request::new("POST", path).json(body))
}

fn sign_in(server: &TestTally, login: &str) -> String {
    let body = json!({"loginId": login, "password": "correct horse"});
    let answer = post(&mut server.client(), "/auth/signin", &body).expect(200);
    answer["data"]["accessToken"].as_str().expect("a token").to_owned()
}

fn pay(server: &TestTally, token: &str, phone: &str, key: &str) -> Response {
    let body = json!({"phoneNumber": phone, "amount": 1, "password": "0042"});
    let request = Request::new("POST", "/transfer/phone-num").json(&body).idempotent(key);
    send(&mut server.client(), &request.header("Authorization", &format!("Bearer {token}")))
}

/// Every server accepts the tokens and PINs that any server makes, and answers a retry at another one as such.
fn all_accept(servers: &[TestTally], step: &str) {
    for (at, server) in servers.iter().enumerate() {
        let (name, phone) = (format!("m-{step}-{at}"), format!("010-{}{at}", step.len()));
        let body = json!({"login_id": name, "password": "correct horse", "pin": "0042", "phone_number": phone, "name": name});
        let made = post(&mut server.local(), "/v1/members", &body).expect(201);
        post(&mut server.local(), "/v1/deposits", &json!({"to": made["id"], "amount": 9})).expect(201);
        let token = sign_in(server, &name);
        pay(server, &token, "010-1", &format!("{step}-{at}")).expect(201);
        for other in servers {
            assert!(pay(other, &token, "010-1", &format!("{step}-{at}")).is_replay(), "{step}");
        }
    }
}

#[test]
fn one_restart_of_each_server_replaces_the_secret() {
    let database = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let redis = ScratchRedis::start(RedisKind::Redis7, &[]);
    let url = database.create_database();
    let mut servers = start_at(&url, &format!("redis://{}", redis.address()), 2);
    for server in &mut servers {
        server.allow("a new secret is announced");
        server.allow("a secret that was dropped");
    }
    let pay_to = json!({"login_id": "shop", "password": "correct horse", "pin": "0042", "phone_number": "010-1", "name": "shop"});
    post(&mut servers[0].local(), "/v1/members", &pay_to).expect(201);
    all_accept(&servers, "o");
    let old = sign_in(&servers[0], "m-o-0");
    // One of both has been restarted. The command is refused, because the other one would not know what the new one makes.
    let both = format!("{SECRET},{NEW}");
    servers[0].set("TALLY_SECRET", &both);
    servers[0].terminate();
    servers[0].restart();
    all_accept(&servers, "on");
    let early = servers[0].run(&["secret", "rotate"]);
    assert!(early.code == Some(1) && early.stderr.contains("does not have this secret"), "{}", early.stderr);
    all_accept(&servers, "one");
    servers[1].set("TALLY_SECRET", &both);
    servers[1].terminate();
    servers[1].restart();
    all_accept(&servers, "both");
    servers[1].run(&["secret", "rotate"]).expect(0);
    // No server was restarted since, and each of them makes with the new one soon.
    let status = |server: &TestTally| server.run(&["secret", "status"]).expect(0).to_owned();
    assert!(status(&servers[0]).contains("is accepted, too"), "{}", status(&servers[0]));
    let numbers = || {
        let name = url.rsplit('/').next().expect("a name");
        database.sql(&format!("SELECT pin_digits FROM {name}.members WHERE login LIKE 'late-%'"))
    };
    let mut tries = 0;
    wait_until("both make with the new secret", || {
        tries += 1;
        for server in &servers {
            let name = format!("late-{tries}-{}", server.address().port());
            let body = json!({"login_id": name, "password": "correct horse", "pin": "0042", "name": name});
            post(&mut server.local(), "/v1/members", &body).expect(201);
        }
        // Number 1 above four digits.
        numbers().lines().rev().take(2).all(|line| line.trim() == "20")
    });
    all_accept(&servers, "after");
    // A token and a PIN of before.
    pay(&servers[0], &old, "010-1", "old-token").expect(201);
    let refused = servers[0].run(&["secret", "drop"]);
    assert!(refused.code == Some(1) && refused.stdout.contains("lost: the PINs of"), "{}", refused.stdout);
    servers[0].run(&["secret", "drop", "--yes"]).expect(0);
    wait_until("the old secret ends everywhere without a restart", || {
        servers.iter().all(|server| pay(server, &old, "010-1", "ended").status == 401)
    });
    all_accept(&servers, "dropped");
    // A server with the old one alone does not start any more; one with the new one does.
    servers[0].terminate();
    servers[0].set("TALLY_SECRET", SECRET);
    let refused = servers[0].run(&["serve", "--http", "127.0.0.1:0", "--resp", "off"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("another secret"), "{}", refused.stderr);
    servers[0].set("TALLY_SECRET", NEW);
    servers[0].restart();
    all_accept(&servers, "finished");
}
