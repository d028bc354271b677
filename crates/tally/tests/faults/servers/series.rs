//! Recurring contests and prizes of periods at three servers, of which one is killed at each moment at which something is due.
//! Each contest is made, started and settled once, and each prize paid once.

use super::contests::{balance, members, post};
use super::world::*;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tally_testkit::rng::soak;
use tally_testkit::{Client, Request};

/// So many of each, so that a server that dies shortly after the moment is in the middle of something.
const SERIES: usize = 6;
const BOARDS: usize = 6;
const PLAYERS: [&str; 3] = ["ann", "bob", "cid"];
const UNITS: u64 = 1_000;
const FEE: i64 = 1;
/// Of a contest, and of a period.
const PRIZES: [i64; 2] = [50, 7];

const MINUTE: Duration = Duration::from_secs(60);
/// The time limit of the preparations before a minute.
const TO_PREPARE: i64 = 30;

fn next_minute() -> Timestamp {
    let seconds = Timestamp::now().as_second();
    Timestamp::from_second(seconds - seconds.rem_euclid(60) + 60).expect("a time of this century")
}

fn sleep_until(at: Timestamp) {
    std::thread::sleep(at.duration_since(Timestamp::now()).try_into().unwrap_or_default());
}

fn micros(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

fn cup(series: usize, minute: Timestamp) -> String {
    format!("s{series}-{}", minute.strftime("%Y%m%d%H%M"))
}

fn state(client: &mut Client, cup: &str) -> Value {
    let shown = get(client, &format!("/v1/contests/{cup}"));
    if shown.status == 404 { Value::Null } else { shown.expect(200)["state"].clone() }
}

/// All players apply to those of a minute and are accepted, if they are still in time.
fn take_part(client: &mut Client, minute: Timestamp) {
    for cup in (0..SERIES).map(|series| cup(series, minute)) {
        let path = format!("/v1/contests/{cup}/applications");
        for player in PLAYERS {
            let apply = Request::new("POST", path.as_str()).json(&json!({"player": player}));
            let applied = send(client, &apply);
            assert!([201, 409].contains(&applied.status), "{}", applied.text());
        }
        let accept = Request::new("POST", format!("{path}/accept")).json(&json!({"players": PLAYERS}));
        let accepted = send(client, &accept);
        assert!([200, 409].contains(&accepted.status), "{}", accepted.text());
    }
}

/// The first is better than the second, and the third does not play: on the boards of those of a minute, and on the others.
fn score(client: &mut Client, minute: Option<Timestamp>) {
    let cups = minute.into_iter().flat_map(|minute| (0..SERIES).map(move |series| cup(series, minute)));
    let boards = (0..BOARDS).map(|board| format!("b{board}"));
    for board in cups.map(|cup| format!("contest:{cup}")).chain(boards) {
        for (player, points) in [("ann", 3), ("bob", 2)] {
            let answer = submit(client, &board, player, points);
            // One may have ended, or had no applicant in time.
            assert!([200, 403, 404, 409].contains(&answer.status), "{}", answer.text());
        }
    }
}

fn wait_for(client: &mut Client, minute: Timestamp, wanted: &[&str]) {
    wait_until("every contest of the minute has come so far", || {
        (0..SERIES).all(|series| {
            state(client, &cup(series, minute)).as_str().is_some_and(|state| wanted.contains(&state))
        })
    });
}

/// The amounts of each wallet, by type and reference.
fn movements(client: &mut Client, ids: &[String]) -> BTreeMap<(String, String, String), Vec<i64>> {
    let mut all: BTreeMap<_, Vec<i64>> = BTreeMap::new();
    for (player, id) in PLAYERS.iter().zip(ids) {
        let target = format!("/v1/wallets/{id}/transactions?limit=1000");
        for line in tally_testkit::audit::read_pages(client, &target, "items").0 {
            let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
            let amount = text("amount").parse().expect("a number");
            all.entry(((*player).to_owned(), text("type"), text("reference"))).or_default().push(amount);
        }
    }
    all
}

/// Every contest that was made has the minute after the one before, and its reported payouts equal those in wallets, once.
fn check(client: &mut Client, ids: &[String], first: Timestamp, last: Timestamp) {
    let minutes = if first == last { 1 } else { 2 };
    let all = movements(client, ids);
    for (what, amounts) in all.iter().filter(|(what, _)| what.1 != "deposit") {
        assert_eq!(amounts.len(), 1, "once: {what:?}");
    }
    let (mut paid, mut winners) = (0, 0);
    for series in 0..SERIES {
        let (listed, _) = tally_testkit::audit::read_pages(client, "/v1/contests?limit=1000", "items");
        let own: Vec<_> = listed.iter().filter(|one| one["series"] == json!(format!("s{series}"))).collect();
        assert!(own.len() > minutes, "{own:?}");
        for (nth, contest) in own.iter().enumerate() {
            let minute = first + MINUTE * u32::try_from(nth).expect("few");
            assert_eq!(contest["id"], json!(cup(series, minute)), "one a minute, none left out");
        }
        for contest in own.iter().filter(|contest| contest["state"] == "settled") {
            let id = contest["id"].as_str().expect("a name");
            let prizes = get(client, &format!("/v1/contests/{id}/prizes")).expect(200);
            for prize in prizes["items"].as_array().expect("prizes") {
                assert_eq!((&prize["player"], &prize["rank"]), (&json!("ann"), &json!(1)));
                let key = ("ann".to_owned(), "prize".to_owned(), format!("contest:{id}"));
                assert_eq!(all.get(&key), Some(&vec![PRIZES[0]]), "{id}");
                winners += 1;
            }
            paid += 1;
        }
    }
    assert!(paid >= minutes * SERIES && winners >= SERIES, "{paid} settled, {winners} with a winner");
    let mut periods = 0;
    for board in 0..BOARDS {
        let name = format!("b{board}");
        let (listed, _) = tally_testkit::audit::read_pages(
            client,
            &format!("/v1/leaderboards/{name}/periods?limit=50"),
            "items",
        );
        for period in listed.iter().filter(|one| one["state"] == "closed" && one["total"] != 0) {
            let period = period["period"].as_str().expect("a name");
            let key = ("ann".to_owned(), "prize".to_owned(), format!("{name}/{period}"));
            assert_eq!(all.get(&key), Some(&vec![PRIZES[1]]), "{name} {period}");
            periods += 1;
        }
    }
    assert!(periods >= BOARDS, "{periods} periods were paid");
    for (player, id) in PLAYERS.iter().zip(ids) {
        let of = |kind: &str| -> i64 {
            let own = all.iter().filter(|(what, _)| what.0 == *player && what.1 == kind);
            own.map(|(_, amounts)| amounts.iter().sum::<i64>()).sum()
        };
        let wanted = of("deposit") + of("prize") + of("refund") - of("fee") - of("capture");
        assert_eq!(balance(client, id), wanted.to_string(), "{player}");
    }
}

#[test]
fn soak_one_is_killed_at_every_moment_and_each_contest_and_each_prize_is_there_once() {
    // On several databases: periods and contests end on all of them.
    let mut servers = Servers::over(2, 3);
    for server in &mut servers.all {
        // A dead server had outbox rows, and the wait for those is reported.
        server.allow("run due actions of contests");
    }
    if next_minute().duration_since(Timestamp::now()).as_secs() < TO_PREPARE {
        sleep_until(next_minute());
    }
    let first = next_minute();
    let mut clients = servers.clients();
    let ids = members(&mut clients[0], &PLAYERS, UNITS);
    let prize = |units: i64| json!([{"from": 1, "to": 1, "currency": "KRW", "amount": units}]);
    for nth in 0..SERIES {
        let fee = json!({"currency": "KRW", "amount": FEE});
        let template = json!({"title": "Every minute", "entry_fee": fee, "prizes": prize(PRIZES[0])});
        let series = json!({"id": format!("s{nth}"), "template": template, "open": "* * * * *",
            "start": "* * * * *", "end": "* * * * *", "ahead": 1});
        post(&mut clients[nth % 3], "/v1/contest-series", &series);
    }
    let period = json!({"name": "minute", "schedule": "* * * * *", "prizes": prize(PRIZES[1])});
    for nth in 0..BOARDS {
        put(&mut clients[nth % 3], &format!("b{nth}"), &json!({"periods": [period]})).expect(201);
    }
    wait_for(&mut clients[0], first, &["open"]);
    take_part(&mut clients[1], first);
    score(&mut clients[2], None);
    // They start, the next ones are made, and the first periods end.
    sleep_until(first + Duration::from_millis(250));
    servers.all[0].kill9();
    let mut client = servers.all[1].client();
    wait_for(&mut client, first, &["running", "finished", "settled"]);
    score(&mut client, Some(first));
    let mut last = first;
    // A minute more if there is time: then the first ones end by the clock.
    if soak(1) > 1 {
        last = first + MINUTE;
        wait_for(&mut client, last, &["open", "running", "finished", "settled"]);
        take_part(&mut client, last);
        servers.all[0].restart();
        sleep_until(last + Duration::from_millis(150));
        servers.all[1].kill9();
        client = servers.all[2].client();
        wait_for(&mut client, first, &["settled"]);
        wait_for(&mut client, last, &["running", "finished", "settled"]);
        score(&mut client, Some(last));
        servers.all[1].restart();
    } else {
        servers.all[0].restart();
        client = servers.all[0].client();
    }
    // No test has to wait for the minute.
    let soon = Timestamp::now() + Duration::from_secs(2);
    for series in 0..SERIES {
        let path = format!("/v1/contests/{}", cup(series, last));
        let patched = send(&mut client, &Request::new("PATCH", path).json(&json!({"ends_at": micros(soon)})));
        assert!([200, 409, 422].contains(&patched.status), "{}", patched.text());
    }
    sleep_until(soon + Duration::from_millis(100));
    servers.all[2].kill9();
    let mut client = servers.all[0].client();
    wait_for(&mut client, last, &["settled"]);
    for nth in 0..SERIES {
        let path = format!("/v1/contest-series/s{nth}");
        assert_eq!(send(&mut client, &Request::new("DELETE", path)).status, 204);
    }
    servers.all[2].restart();
    // Periods are closed and paid by the first server to check; all that have ended by now are due.
    wait_until("the periods are paid", || {
        let target = |board| format!("/v1/leaderboards/b{board}/prizes?period=minute:previous");
        (0..BOARDS).all(|board| {
            let paid = get(&mut client, &target(board));
            paid.status == 200 && paid.json()["settled"] == true
        })
    });
    servers.all[0].run(&["verify"]).expect(0);
    check(&mut servers.all[2].client(), &ids, first, last);
}
