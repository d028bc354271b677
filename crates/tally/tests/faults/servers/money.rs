//! Money that moves at all servers at once, also while some are killed: each transfer once, and the books agree.

use super::world::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tally_testkit::rng::soak;
use tally_testkit::{Client, Request, Rng, SetAtEnd, at_once};

/// Members with this balance each, made at any server.
fn members(client: &mut Client, count: usize, units: i64) -> Vec<String> {
    let make = |number: usize| {
        let body = json!({"login_id": format!("m{number}"), "name": "one"});
        let made = client.post("/v1/members", &body).expect(201);
        let id = made["id"].as_str().expect("an id").to_owned();
        client.post("/v1/deposits", &json!({"to": id, "amount": units})).expect(201);
        id
    };
    (0..count).map(make).collect()
}

/// Every server shows the same books, and the ledger replays.
fn check_money(servers: &Servers, members: &[String], sum: i64) -> Vec<i64> {
    let seen: Vec<(Value, Vec<i64>)> = servers
        .clients()
        .iter_mut()
        .map(|client| {
            let balance = |member: &String| -> i64 {
                let shown = client.get(&format!("/v1/wallets/{member}")).expect(200);
                shown["items"][0]["balance"].as_str().expect("text").parse().expect("a number")
            };
            let balances: Vec<i64> = members.iter().map(balance).collect();
            (client.get("/v1/ledger/trial-balance").expect(200), balances)
        })
        .collect();
    assert!(seen.iter().all(|one| one == &seen[0]), "{seen:?}");
    let (trial, balances) = &seen[0];
    assert_eq!((&trial["balanced"], balances.iter().sum::<i64>()), (&json!(true), sum));
    servers.all[0].run(&["verify"]).expect(0);
    balances.clone()
}

/// Opposite ways between two, a ring in both directions, and chains all round. Money comes at every server or is absent, and no
/// caller gets a conflict with another one.
#[test]
fn soak_opposite_transfers_at_several_servers_do_not_block_each_other() {
    const CALLERS: usize = 32;
    let servers = Servers::start(3);
    let all = members(&mut servers.clients()[0], 5, 60);
    std::thread::scope(|scope| {
        for caller in 0..CALLERS {
            let (mut client, all) = (servers.all[caller % 3].client(), &all);
            scope.spawn(move || {
                let mut rng = Rng::of(&format!("money at servers {caller}"));
                for _ in 0..soak(8) {
                    let units = rng.between(1, 40);
                    let at = if rng.percent(50) { 0 } else { caller % all.len() };
                    let next = (at + 1) % all.len();
                    let (from, to) = if (caller / 3).is_multiple_of(2) { (at, next) } else { (next, at) };
                    let row = |from: usize, to: usize, linked: bool| {
                        json!({"from": all[from], "to": all[to], "amount": units, "linked": linked})
                    };
                    if rng.percent(70) {
                        let body = json!({"from": all[from], "to": all[to], "amount": units});
                        let answer = client.post("/v1/transfers", &body);
                        if answer.status != 201 {
                            answer.refused(422, "insufficient_funds");
                        }
                        continue;
                    }
                    let ring: Vec<Value> = (0..all.len())
                        .map(|one| row((from + one) % all.len(), (from + one + 1) % all.len(), one + 1 < all.len()))
                        .collect();
                    let answer = client.post("/v1/transfers/batch", &json!({"transfers": ring})).expect(200);
                    for row in answer["results"].as_array().expect("results") {
                        let code = row["error"]["code"].as_str().unwrap_or("insufficient_funds");
                        assert!(["insufficient_funds", "linked_failed"].contains(&code), "{row}");
                    }
                }
            });
        }
    });
    check_money(&servers, &all, 300);
}

/// The same request at all servers at one moment: one does it, the others repeat it or get that it is running.
#[test]
fn a_storm_of_equal_transfers_at_several_servers_has_one_effect() {
    const STORM: usize = 99;
    let servers = Servers::start(3);
    let all = members(&mut servers.clients()[0], 2, 1_000);
    let body = json!({"from": all[0], "to": all[1], "amount": 10});
    for round in 1..=5 {
        let request = Request::new("POST", "/v1/transfers").json(&body).idempotent(&format!("k{round}"));
        let call = |number: usize| (servers.all[number % 3].client(), request.clone());
        let answers = at_once((0..STORM).map(call).collect());
        let done: Vec<_> = answers.iter().filter(|one| one.status == 201 && !one.is_replay()).collect();
        assert_eq!(done.len(), 1, "one is not a repetition");
        for answer in &answers {
            if answer.status == 409 {
                answer.refused(409, "idempotency_in_progress");
            } else {
                assert_eq!(answer.expect(201), done[0].json());
            }
        }
        assert_eq!(check_money(&servers, &all, 2_000), [1_000 - 10 * round, 1_000 + 10 * round]);
    }
}

/// Deposits by one key at all servers at once stay within its cap.
#[test]
fn a_cap_of_a_key_holds_at_all_servers_together() {
    let servers = Servers::start(3);
    let all = members(&mut servers.clients()[0], 1, 2);
    let capped = json!({"scopes": ["money:mint"], "mint_caps": {"KRW": 100}});
    let made = servers.all[0].local().post("/v1/keys", &capped).expect(201);
    let key = made["key"].as_str().expect("a key");
    for server in &servers.all {
        let mut client = server.client().with_key(key);
        wait_until("the key is known", || client.get("/v1/leaderboards").status == 200);
    }
    let deposit = Request::new("POST", "/v1/deposits").json(&json!({"to": all[0], "amount": 7}));
    let done: usize = std::thread::scope(|scope| {
        let one = |caller: usize| {
            let (mut client, deposit) = (servers.all[caller % 3].client().with_key(key), &deposit);
            scope.spawn(move || (0..5).filter(|_| send(&mut client, deposit).status == 201).count())
        };
        let callers: Vec<_> = (0..9).map(one).collect();
        callers.into_iter().map(|caller| caller.join().expect("it ends")).sum()
    });
    assert_eq!(done, 14, "14 times 7 is 98");
    for server in &servers.all {
        let shown = server.local().get(&format!("/v1/wallets/{}", all[0])).expect(200);
        assert_eq!(shown["items"][0]["balance"], json!("100"));
        server.client().with_key(key).send(&deposit).refused(422, "mint_cap_reached");
    }
}

/// Moves money round between three until it is stopped. Each transfer has a key, and is tried again at the others when a server
/// has ended. Returns the entries of the replies.
fn move_until(stop: &AtomicBool, all: &[String], (nth, mut clients): (usize, Vec<Client>)) -> Vec<Value> {
    let (mut lines, mut at) = (Vec::new(), nth);
    while !stop.load(Ordering::SeqCst) {
        let number = lines.len();
        let body = json!({"from": all[(nth + number) % 3], "to": all[(nth + number + 1) % 3], "amount": 1});
        let request =
            Request::new("POST", "/v1/transfers").json(&body).idempotent(&format!("{nth}-{number}"));
        let started = Instant::now();
        loop {
            let count = clients.len();
            match clients[at % count].try_send(&request) {
                Ok(answer) if answer.status == 201 => break lines.push(answer.json()),
                Ok(answer) => assert!([409, 503].contains(&answer.status), "{}", answer.text()),
                Err(_) => at += 1,
            }
            assert!(started.elapsed() < GIVE_UP, "it is never done");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    lines
}

#[test]
fn one_is_killed_while_money_moves_at_all_and_each_movement_is_done_once() {
    let mut servers = Servers::start(3);
    let all = members(&mut servers.clients()[0], 3, 100_000);
    let stop = AtomicBool::new(false);
    let told: Vec<Value> = std::thread::scope(|scope| {
        let (stop, all) = (&stop, &all);
        let end = SetAtEnd::new(stop);
        let clients: Vec<_> = (0..6).map(|nth| (nth, servers.clients())).collect();
        let moving: Vec<_> =
            clients.into_iter().map(|clients| scope.spawn(move || move_until(stop, all, clients))).collect();
        for at in [1, 2] {
            std::thread::sleep(Duration::from_millis(300));
            servers.all[at].kill9();
        }
        std::thread::sleep(Duration::from_millis(300));
        drop(end);
        moving.into_iter().flat_map(|moving| moving.join().expect("a mover ends")).collect()
    });
    for at in [1, 2] {
        servers.all[at].restart();
    }
    check_money(&servers, &all, 300_000);
    let mut client = servers.all[1].client();
    let walk = |member: &String| {
        let target = format!("/v1/wallets/{member}/transactions?limit=1000");
        tally_testkit::audit::read_pages(&mut client, &target, "items").0
    };
    let mut lines: Vec<Value> = all.iter().flat_map(walk).collect();
    // A history has the origin and the names of each transfer besides.
    for line in lines.iter_mut().filter_map(Value::as_object_mut) {
        let origin = ["actor", "reason", "metadata"].map(|field| line.remove(field));
        assert_eq!(origin, [Some(json!("local")), Some(Value::Null), Some(Value::Null)]);
        assert!(line.remove("counterparty_name").is_some());
    }
    assert_eq!(lines.len(), 2 * told.len() + all.len(), "each is done once, and no other");
    let shown: BTreeSet<String> = lines.iter().map(Value::to_string).collect();
    assert!(told.iter().all(|line| shown.contains(&line.to_string())), "what was acknowledged is there");
}

/// Credit expires while money moves at all servers and one is killed. Whichever server takes it out, it leaves each wallet once, holds
/// keep their part until they end, and no other member gets any.
#[test]
fn one_is_killed_while_credit_expires_and_it_leaves_each_wallet_once() {
    const LASTS: Duration = Duration::from_secs(4);
    let mut servers = Servers::start(3);
    let (all, mut clients) = (members(&mut servers.clients()[0], 9, 50), servers.clients());
    let ends = Instant::now() + LASTS;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("it is after 1970");
    let at =
        tally_rules::Micros(i64::try_from((now + LASTS).as_micros()).expect("it is before the year 200,000"));
    let at = tally_wire::time::format(at);
    let mut post = |nth: usize, path: &str, body: &Value| {
        send(&mut clients[nth % 3], &Request::new("POST", path).json(body))
    };
    // A slow machine may be late: then less is given, and less of it is spent.
    let (mut given, mut withdrawn, mut holds) = (vec![0; all.len()], 0, Vec::new());
    for (nth, member) in all.iter().enumerate() {
        let credit = json!({"to": member, "amount": 40, "expires_at": at});
        given[nth] = if post(nth, "/v1/deposits", &credit).status == 201 { 40 } else { 0 };
        post(nth + 1, "/v1/withdrawals", &json!({"from": member, "amount": 10})).expect(201);
        withdrawn += 10;
        if nth % 3 == 0 {
            let hold = post(nth + 2, "/v1/holds", &json!({"member": member, "amount": 30})).expect(201);
            holds.push(hold["id"].as_str().expect("an id").to_owned());
        }
    }
    std::thread::scope(|scope| {
        for nth in 0..6 {
            let (mut client, all) = (servers.all[nth % 3].client(), &all);
            scope.spawn(move || {
                for number in nth.. {
                    let body = json!({"from": all[number % 9], "to": all[(number * 5 + 1) % 9], "amount": 7});
                    let sent = client.try_send(&Request::new("POST", "/v1/transfers").json(&body));
                    // The killed one does not answer.
                    let Ok(answer) = sent else { break };
                    assert!([201, 409, 422, 503].contains(&answer.status), "{}", answer.text());
                    if ends.elapsed() > Duration::from_millis(500) {
                        break;
                    }
                }
            });
        }
        std::thread::sleep(ends.saturating_duration_since(Instant::now()) + Duration::from_millis(300));
        servers.all[2].kill9();
    });
    servers.all[2].restart();
    let mut clients = servers.clients();
    for (nth, hold) in holds.iter().enumerate() {
        let void = Request::new("POST", format!("/v1/holds/{hold}/void")).json(&json!({}));
        send(&mut clients[nth], &void).expect(200);
    }
    wait_until("all credit has left", || {
        all.iter().all(|member| {
            let shown = get(&mut clients[2], &format!("/v1/wallets/{member}")).expect(200);
            shown["items"][0].get("promotional").is_none()
        })
    });
    let mut sum = 9 * 50 - withdrawn;
    for (member, given) in all.iter().zip(given) {
        let target = format!("/v1/wallets/{member}/transactions?limit=1000");
        let lines = tally_testkit::audit::read_pages(&mut clients[1], &target, "items").0;
        let expired = lines.iter().filter(|line| line["type"] == "expiry");
        let expired: i64 =
            expired.map(|line| line["amount"].as_str().expect("text").parse::<i64>().expect("units")).sum();
        assert!((0..=10).contains(&(given - expired)), "{expired} of {given} have expired");
        sum += given - expired;
    }
    check_money(&servers, &all, sum);
}
