//! Contests at several servers: acknowledged scores of one count, whichever server ends the contest and pays.

use super::world::*;
use serde_json::{Value, json};
use std::time::Instant;
use tally_testkit::{Client, Request, at_once};

pub(crate) fn post(client: &mut Client, path: &str, body: &Value) -> Value {
    let answer = send(client, &Request::new("POST", path).json(body));
    assert!(answer.status < 300, "{path}: {}", answer.text());
    answer.json()
}

fn act(client: &mut Client, contest: &str, act: &str) -> Value {
    let answer = send(client, &Request::new("POST", format!("/v1/contests/{contest}/{act}")));
    answer.expect(200)
}

/// Members, each a player of that name with this balance.
pub(crate) fn members(client: &mut Client, names: &[&str], units: u64) -> Vec<String> {
    let make = |name: &&str| {
        let made = json!({"login_id": name, "name": name, "player": name});
        let id = post(client, "/v1/members", &made)["id"].as_str().expect("an id").to_owned();
        post(client, "/v1/deposits", &json!({"to": id, "amount": units}));
        id
    };
    names.iter().map(make).collect()
}

pub(crate) fn balance(client: &mut Client, member: &str) -> String {
    let wallet = get(client, &format!("/v1/wallets/{member}")).expect(200)["items"][0].clone();
    wallet["balance"].as_str().expect("an amount").to_owned()
}

/// A contest that runs, with a prize for the first.
fn running(client: &mut Client, id: &str, players: &[&str]) {
    let prizes = json!([{"from": 1, "to": 1, "currency": "KRW", "amount": 500}]);
    post(client, "/v1/contests", &json!({"id": id, "title": id, "prizes": prizes}));
    act(client, id, "open");
    for player in players {
        post(client, &format!("/v1/contests/{id}/applications"), &json!({"player": player}));
    }
    post(client, &format!("/v1/contests/{id}/applications/accept"), &json!({"players": players}));
    act(client, id, "start");
}

/// One server takes the best score, or corrects it in the review, and bans the best player, and cannot publish it: it dies, or
/// freezes. The other one ends the contest and pays at once.
#[test]
fn what_a_server_took_and_did_not_publish_counts_for_prizes() {
    for (kill, in_review) in [(true, false), (false, false), (true, true), (false, true)] {
        let mut servers = Servers::start(2);
        let mut clients = servers.clients();
        let ids = members(&mut clients[1], &["ann", "bob", "cid"], 1);
        running(&mut clients[1], "cup", &["ann", "bob", "cid"]);
        submit(&mut clients[1], "contest:cup", "ann", 5).expect(200);
        submit(&mut clients[0], "contest:cup", "cid", 7).expect(200);
        if in_review {
            submit(&mut clients[0], "contest:cup", "bob", 4).expect(200);
            act(&mut clients[1], "cup", "finish");
        }
        servers.redis.freeze();
        let stored = if in_review {
            let corrected = json!({"score": 6, "reason": "counted late"});
            post(&mut clients[0], "/v1/contests/cup/players/bob/correct", &corrected)
        } else {
            submit(&mut clients[0], "contest:cup", "bob", 6).expect(200)
        };
        assert_eq!((&stored["score"], &stored["rank"]), (&json!(6), &Value::Null), "stored, and no more");
        act(&mut clients[0], "cup", "members/cid/ban");
        if kill {
            servers.all[0].kill9();
        } else {
            servers.all[0].signal("STOP");
        }
        servers.redis.thaw();
        if !in_review {
            act(&mut clients[1], "cup", "finish");
        }
        assert_eq!(act(&mut clients[1], "cup", "settle")["state"], "settled");
        let paid: Vec<String> = ids.iter().map(|id| balance(&mut clients[1], id)).collect();
        assert_eq!(paid, ["1", "501", "1"], "killed: {kill}, in the review: {in_review}");
        let order = ["bob", "ann"];
        assert_eq!(names(&page(&mut clients[1], "contest:cup")), order);
        if kill {
            servers.all[0].restart();
        } else {
            servers.all[0].signal("CONT");
        }
        // Its late publications are old.
        let mut back = servers.all[0].client();
        wait_until("both have the same", || names(&page(&mut back, "contest:cup")) == order);
        assert_eq!(act(&mut back, "cup", "settle")["state"], "settled");
        assert_eq!(balance(&mut back, &ids[1]), "501");
    }
}

/// Contests of the start of many, and members of each.
const CONTESTS: usize = 50;
const MEMBERS: usize = 200;
/// Of so many one has a fee, from the same wallets.
const WITH_A_FEE: usize = 5;

/// Contests in which all are accepted.
fn all_accepted(servers: &Servers, players: &[String]) {
    std::thread::scope(|scope| {
        for nth in 0..10 {
            let mut client = servers.all[nth % 3].client();
            scope.spawn(move || {
                for no in (nth..CONTESTS).step_by(10) {
                    let id = format!("c{no}");
                    let fee = (no % WITH_A_FEE == 0).then(|| json!({"currency": "KRW", "amount": 1}));
                    post(&mut client, "/v1/contests", &json!({"id": id, "title": id, "entry_fee": fee}));
                    act(&mut client, &id, "open");
                    let path = format!("/v1/contests/{id}/applications");
                    for player in players {
                        post(&mut client, &path, &json!({"player": player}));
                    }
                    let rows = post(&mut client, &format!("{path}/accept"), &json!({"players": players}));
                    let rows = rows["results"].as_array().expect("rows");
                    assert!(rows.iter().all(|row| row["status"] == "accepted"), "{rows:?}");
                }
            });
        }
    });
}

#[expect(
    clippy::print_stderr,
    reason = "figures are for whoever reads a run, and nothing is asserted of them"
)]
fn print(figures: &str) {
    eprintln!("{figures}");
}

/// All at the same moment, each requested at two servers.
#[test]
fn fifty_contests_that_start_at_once_start_once_each() {
    let servers = Servers::start(3);
    let names: Vec<String> = (0..MEMBERS).map(|no| format!("p{no}")).collect();
    let players: Vec<&str> = names.iter().map(String::as_str).collect();
    let ids = members(&mut servers.clients()[0], &players, 1_000);
    let began = Instant::now();
    all_accepted(&servers, &names);
    let applied = began.elapsed();
    let began = Instant::now();
    let call = |nth: usize| {
        let start = Request::new("POST", format!("/v1/contests/c{}/start", nth / 2));
        (servers.all[(nth / 2 + nth % 2) % 3].client(), start)
    };
    let answers = at_once((0..2 * CONTESTS).map(call).collect());
    let mut answers: Vec<(usize, u16, Value)> =
        answers.iter().enumerate().map(|(nth, answer)| (nth / 2, answer.status, answer.json())).collect();
    let took = began.elapsed();
    answers.sort_by_key(|(contest, status, _)| (*contest, *status));
    let mut each = Vec::new();
    for (contest, pair) in answers.chunks(2).enumerate() {
        let [(one, 200, started), (other, 409, refused)] = pair else { panic!("{pair:?}") };
        assert_eq!((*one, *other), (contest, contest));
        assert_eq!(started["enrolled"], MEMBERS);
        assert_eq!((&refused["code"], &refused["state"]), (&json!("contest_state"), &json!("running")));
        each.push(started["took_ms"].as_f64().expect("a time"));
    }
    each.sort_by(f64::total_cmp);
    print(&format!(
        "{CONTESTS} contests of {MEMBERS} at 3 servers: applied in {applied:.1?}, all started in {took:.1?}; \
         a start took {:.1} ms in the middle, {:.1} ms at most",
        each[each.len() / 2],
        each[each.len() - 1]
    ));
    let mut clients = servers.clients();
    for contest in 0..CONTESTS {
        let shown = get(&mut clients[contest % 3], &format!("/v1/contests/c{contest}")).expect(200);
        let counts =
            json!({"pending": 0, "accepted": 0, "rejected": 0, "players": MEMBERS, "members": MEMBERS});
        assert_eq!((&shown["state"], &shown["counts"]), (&json!("running"), &counts));
    }
    for id in &ids {
        let wallet = get(&mut clients[0], &format!("/v1/wallets/{id}")).expect(200)["items"][0].clone();
        assert_eq!((&wallet["balance"], &wallet["held"]), (&json!("990"), &json!("0")));
    }
    servers.all[0].run(&["verify"]).expect(0);
}
