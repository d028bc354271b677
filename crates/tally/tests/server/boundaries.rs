//! The end of a period under load, over HTTP and by the real clock. Every acknowledged score is in exactly the period of
//! its instant, and none is refused.
//!
//! The finest schedule is a minute and the binary has no clock of the test's. So a run waits for the next full minute;
//! scores stream only around it. `TALLY_SOAK` adds minutes, at most as many as `MINUTES_MAX`. Not here: schedules and zones
//! (unit tests of the calendar), years of closed periods (`periods.rs`), how long a request waits
//! (`cargo xtask bench periods`).

use crate::TALLY;
use jiff::{Timestamp, ToSpan};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tally_testkit::http::segment;
use tally_testkit::rng::soak;
use tally_testkit::{Client, Request, Rng, SetAtEnd, TestTally, audit, wait_until};

const MINUTES_MAX: usize = 3;
const CONNECTIONS: usize = 6;
const BATCH_ROWS: usize = 40;
const PLAYERS: u64 = 30;
/// The time before and after a boundary in which scores stream.
const AROUND: Duration = Duration::from_millis(1_500);
/// The grace of the board `late`.
const GRACE: Duration = Duration::from_secs(4);
const POLL_PAUSE: Duration = Duration::from_millis(50);

/// The acknowledged scores: by board and minute, the sum of each player.
type Sums = BTreeMap<(&'static str, Timestamp), BTreeMap<String, i64>>;

/// By board and period, the observed states, in order.
type States = BTreeMap<(String, String), Vec<String>>;

fn minute(at: Timestamp) -> Timestamp {
    let seconds = at.as_second().div_euclid(60) * 60;
    Timestamp::from_second(seconds).expect("a time of this century")
}

/// The name of the period that begins with a minute.
fn period(minute: Timestamp) -> String {
    minute.strftime("minutely:%Y-%m-%dT%H:%M").to_string().replace("T00:00", "")
}

fn sleep_until(at: Timestamp) {
    let left = at.duration_since(Timestamp::now());
    std::thread::sleep(left.try_into().unwrap_or_default());
}

fn put(client: &mut Client, board: &str, all_time: bool, keep: usize, grace: Duration) {
    let rule = json!({"name": "minutely", "schedule": "* * * * *", "keep": keep, "grace_s": grace.as_secs()});
    let spec = json!({"update": "sum", "all_time": all_time, "periods": [rule]});
    client.put(&format!("/v1/leaderboards/{board}"), &spec).expect(201);
}

fn scores(board: &str) -> String {
    format!("/v1/leaderboards/{board}/scores")
}

/// A row of a random player: on `late` with an instant of a moment ago, elsewhere of now.
fn row(board: &str, number: usize, rng: &mut Rng) -> Value {
    let player = format!("c{number}p{}", rng.below(PLAYERS));
    let mut row = json!({"player": player, "score": rng.between(1, 9)});
    if board == "late" {
        // In whole microseconds, the precision of the server.
        let at = Timestamp::now().as_microsecond() - rng.between(0, 1_500_000);
        row["at"] = json!(Timestamp::from_microsecond(at).expect("a time of this century").to_string());
    }
    row
}

/// Streams scores until it is stopped; each answer says which minute it counted for.
fn stream(mut client: Client, number: usize, stop: &AtomicBool) -> Sums {
    let mut rng = Rng::of(&format!("boundary {number}"));
    let mut sums = Sums::new();
    while !stop.load(Ordering::Relaxed) {
        let board = *rng.pick(&["both", "late", "only"]);
        if !number.is_multiple_of(3) {
            let row = row(board, number, &mut rng);
            let answer = client.post(&scores(board), &row).expect(200);
            count(&mut sums, board, &row, &answer);
            continue;
        }
        // Rows of one batch may count for two minutes.
        let boards: Vec<&str> = (0..BATCH_ROWS).map(|_| *rng.pick(&["both", "late", "only"])).collect();
        let rows: Vec<Value> = boards.iter().map(|board| row(board, number, &mut rng)).collect();
        let named = rows.iter().zip(&boards).map(|(row, board)| {
            let mut row = row.clone();
            row["board"] = json!(board);
            row
        });
        let body = json!({"scores": named.collect::<Vec<_>>()});
        let answer = client.post("/v1/scores/batch", &body).expect(200);
        for ((row, board), result) in
            rows.iter().zip(boards).zip(answer["results"].as_array().expect("a list"))
        {
            count(&mut sums, board, row, result);
        }
    }
    sums
}

fn count(sums: &mut Sums, board: &str, row: &Value, answer: &Value) {
    assert_eq!(answer.get("error"), None, "{board} {row}: {answer}");
    let board = *["both", "late", "only"].iter().find(|name| **name == board).expect("one of ours");
    // A sum is as old as its last score, and here each is newer than the one before or says its instant.
    let at = row.get("at").unwrap_or(&answer["at"]).as_str().expect("an instant");
    let minute = minute(at.parse().expect("an instant"));
    let told = if board == "both" { "all_time".to_owned() } else { period(minute) };
    assert_eq!(answer["period"], json!(told), "{board} {row}: {answer}");
    assert_eq!(answer.get("closed_periods"), None, "{board} {row}: {answer}");
    let sum =
        sums.entry((board, minute)).or_default().entry(row["player"].as_str().expect("text").to_owned());
    *sum.or_default() += row["score"].as_i64().expect("a number");
}

/// The states that each period of a board goes through, in order, up to what it is when that is stopped.
fn watch(mut client: Client, stop: &AtomicBool) -> States {
    let mut seen = States::new();
    loop {
        let is_last = stop.load(Ordering::Relaxed);
        for board in ["late", "only"] {
            for item in listed(&mut client, board) {
                let text = |name: &str| item[name].as_str().expect("text").to_owned();
                let states = seen.entry((board.into(), text("period"))).or_default();
                if states.last() != Some(&text("state")) {
                    states.push(text("state"));
                }
            }
        }
        if is_last {
            return seen;
        }
        std::thread::sleep(POLL_PAUSE);
    }
}

fn listed(client: &mut Client, board: &str) -> Vec<Value> {
    audit::read_pages(client, &format!("/v1/leaderboards/{board}/periods?limit=1000"), "items").0
}

/// The sum of each player in a window.
fn page(client: &mut Client, board: &str, period: &str) -> BTreeMap<String, i64> {
    let target = format!("{}?limit=1000&period={}", scores(board), segment(period));
    let (entries, _) = audit::read_pages(client, &target, "entries");
    let ranks: Vec<u64> = entries.iter().filter_map(|entry| entry["rank"].as_u64()).collect();
    assert_eq!(ranks, (1..=entries.len() as u64).collect::<Vec<_>>());
    let one = |entry: &Value| {
        let player = entry["player"].as_str().expect("text").to_owned();
        (player, entry["score"].as_i64().expect("a number"))
    };
    entries.iter().map(one).collect()
}

/// Streams over boundaries; returns the acknowledged scores, the boundaries, and the observed states.
fn cross(server: &TestTally) -> (Sums, Vec<Timestamp>, States) {
    let all = Mutex::new(Sums::new());
    let done = AtomicBool::new(false);
    let mut boundaries = Vec::new();
    let seen = std::thread::scope(|scope| {
        let watched = SetAtEnd::new(&done);
        let watching = scope.spawn(|| watch(server.client(), &done));
        for _ in 0..soak(1).min(MINUTES_MAX) {
            // At least a moment of both minutes.
            let boundary = minute(Timestamp::now() + AROUND) + 1.minute();
            sleep_until(boundary - AROUND);
            let stop = AtomicBool::new(false);
            std::thread::scope(|streams| {
                let _end = SetAtEnd::new(&stop);
                for number in 0..CONNECTIONS {
                    let (stop, all) = (&stop, &all);
                    streams.spawn(move || {
                        for (key, players) in stream(server.client(), number, stop) {
                            let mut all = all.lock().expect("no other stream has panicked");
                            let sums = all.entry(key).or_default();
                            players
                                .into_iter()
                                .for_each(|(player, sum)| *sums.entry(player).or_default() += sum);
                        }
                    });
                }
                sleep_until(boundary + AROUND);
            });
            boundaries.push(boundary);
        }
        // Until the last ones are closed, and a round of the scheduler longer.
        let last = *boundaries.last().expect("there is one");
        sleep_until(last + GRACE + Duration::from_secs(1));
        let is_closed = |board: &&str| {
            let items = listed(&mut server.client(), board);
            items
                .iter()
                .any(|item| item["period"] == json!(period(last - 1.minute())) && item["state"] == "closed")
        };
        wait_until("the last periods are closed", || ["late", "only"].iter().all(is_closed));
        drop(watched);
        watching.join().expect("the watch does not panic")
    });
    (all.into_inner().expect("no stream has panicked"), boundaries, seen)
}

/// Two closed minutes of the past, older than all that is streamed; gives the older one.
fn import_past(server: &TestTally) -> Timestamp {
    let old = minute(Timestamp::now()) - 20.minutes();
    let line = |at: Timestamp| format!("{at},past,1\n");
    let path = server.data().join("past.csv");
    std::fs::write(&path, format!("at,who,points\n{}{}", line(old), line(old + 1.minute())))
        .expect("it is written");
    let path = path.to_str().expect("a path of text");
    server
        .run(&["import", "scores", "only", path, "--player", "who", "--score", "points", "--at", "at"])
        .expect(0);
    old
}

#[test]
fn soak_a_stream_of_scores_crosses_boundaries_exactly() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    let keep = 2;
    put(&mut client, "both", true, 100, Duration::ZERO);
    put(&mut client, "only", false, keep, Duration::ZERO);
    put(&mut client, "late", false, 100, GRACE);
    let old = import_past(&server);
    assert_eq!(page(&mut client, "only", &period(old)).len(), 1);

    let (sums, boundaries, seen) = cross(&server);
    // An idle connection does not last that long.
    let mut client = server.client();

    // Every acknowledged score is in the period of its instant, and in no other.
    let mut all_time: BTreeMap<String, i64> = BTreeMap::new();
    let minutes: BTreeSet<Timestamp> = sums.keys().map(|(_, minute)| *minute).collect();
    assert!(minutes.len() > boundaries.len(), "{minutes:?}");
    for ((board, minute), players) in &sums {
        if *board == "both" {
            players.iter().for_each(|(player, sum)| *all_time.entry(player.clone()).or_default() += sum);
        }
        let kept = minutes.range(minute..).count() <= keep + 1;
        if *board != "only" || kept {
            assert_eq!(page(&mut client, board, &period(*minute)), *players, "{board} {minute}");
        }
    }
    assert_eq!(page(&mut client, "both", "all_time"), all_time, "the sum of the periods is that of all time");
    check_states(&seen, &boundaries);
    check_kept(&mut client, &minutes, keep, old);
    check_late(&mut client, &boundaries, &sums);
    // Another minute may begin while the audit compares before and after.
    for board in ["both", "only", "late"] {
        client.delete(&format!("/v1/leaderboards/{board}")).expect(204);
    }
}

/// An ended period was open, closing as long as late scores were taken and until that was stored, and closed.
fn check_states(seen: &States, boundaries: &[Timestamp]) {
    for boundary in boundaries {
        let states = |board: &str| seen[&(board.to_owned(), period(*boundary - 1.minute()))].clone();
        assert_eq!(states("late"), ["open", "closing", "closed"]);
        let mut only = states("only");
        only.retain(|state| state != "closing");
        assert_eq!(only, ["open", "closed"]);
    }
}

/// The newest closed minutes are present, the oldest are removed.
fn check_kept(client: &mut Client, minutes: &BTreeSet<Timestamp>, keep: usize, old: Timestamp) {
    let mut closed: Vec<Timestamp> = vec![old, old + 1.minute()];
    closed.extend(minutes);
    let items = listed(client, "only");
    let shown: Vec<&Value> =
        items.iter().filter(|item| item["state"] == "closed").map(|item| &item["period"]).collect();
    // The last streamed minute may be open, or closed by now.
    closed.retain(|minute| items[0]["period"] != json!(period(*minute)));
    let gone = closed.len() - keep;
    let kept: Vec<Value> = closed[gone..].iter().rev().map(|minute| json!(period(*minute))).collect();
    assert_eq!(shown, kept.iter().collect::<Vec<_>>(), "{items:?}");
    for minute in &closed[..gone] {
        let target = format!("{}?period={}", scores("only"), segment(&period(*minute)));
        client.get(&target).refused(404, "period_not_found");
    }
}

/// A closed period takes no more scores.
fn check_late(client: &mut Client, boundaries: &[Timestamp], sums: &Sums) {
    let at = boundaries[0] - 1.microsecond();
    let late = json!({"player": "late", "score": 1, "at": at.to_string()});
    client.post(&scores("late"), &late).refused(409, "period_closed");
    let both = client.post(&scores("both"), &late).expect(200);
    assert_eq!(both["closed_periods"], json!([period(minute(at))]));
    assert_eq!(page(client, "late", &period(minute(at))), sums[&("late", minute(at))]);
}

/// A replay has the rank of the record before when the period is long closed.
#[test]
fn soak_a_retry_after_the_boundary_has_its_ranks() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    put(&mut client, "only", false, 9, Duration::ZERO);
    // Not so near to the end of a minute that it could pass meanwhile.
    let boundary = minute(Timestamp::now() + Duration::from_secs(10)) + 1.minute();
    sleep_until(boundary - 1.minute());
    let send = |client: &mut Client, player: &str, score: i64, key: &str| {
        let body = json!({"player": player, "score": score});
        client.send(&Request::new("POST", scores("only")).json(&body).idempotent(key))
    };
    send(&mut client, "a", 1_000, "first").expect(200);
    send(&mut client, "b", 2_000, "other").expect(200);
    let first = send(&mut client, "a", 5_000, "again").expect(200);
    assert_eq!((&first["rank"], &first["previous"]), (&json!(1), &json!({"score": 1_000, "rank": 2})));
    sleep_until(boundary + POLL_PAUSE);
    // An idle connection does not last that long.
    let mut client = server.client();
    wait_until("a period is closed", || {
        listed(&mut client, "only").iter().any(|item| item["state"] == "closed")
    });
    let again = send(&mut client, "a", 5_000, "again");
    assert!(again.is_replay());
    assert_eq!(again.expect(200), first);
    client.delete("/v1/leaderboards/only").expect(204);
}
