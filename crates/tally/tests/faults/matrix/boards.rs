//! Load on leaderboards: scores, bans, scores of a period that ends meanwhile, an unrelated leaderboard, and its ranks.
//!
//! Not here: the leaderboards of contests.

use super::callers::{Caller, Outcome};
use super::load::{Load, Sent, done, items, post};
use super::world::World;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Instant;
use tally_testkit::http::segment;
use tally_testkit::{Client, Request};

/// Players to ban, of each caller; more than there is time for.
const TO_BAN: usize = 400;
/// Players of the unrelated leaderboard, of each caller.
const UNRELATED_PLAYERS: usize = 20;
const PRIZE: &str = "7";
/// More than any sum of a player.
const BEST: i64 = 1_000_000;

#[track_caller]
fn scores(client: &mut Client, board: &str, period: &str) -> BTreeMap<String, i64> {
    let target = format!("/v1/leaderboards/{board}/scores?limit=1000&period={}", segment(period));
    let entries = items(client, &target, "entries");
    let scores: Vec<i64> = entries.iter().map(|entry| entry["score"].as_i64().expect("a score")).collect();
    assert!(scores.is_sorted_by(|one, next| one >= next), "{board}, {period}: {scores:?}");
    let names = entries.iter().map(|entry| entry["player"].as_str().expect("a name").to_owned());
    names.zip(scores).collect()
}

fn submit(board: &str, player: &str, score: i64) -> Request {
    post(format!("/v1/leaderboards/{board}/scores"), &json!({"player": player, "score": score}))
}

#[track_caller]
fn make(client: &mut Client, board: &str, definition: &Value) {
    done(client, &Request::new("PUT", format!("/v1/leaderboards/{board}")).json(definition));
}

/// New players, each added once to a leaderboard of sums.
pub(crate) struct Scores(Sent);

impl Scores {
    pub(crate) fn prepare(client: &mut Client) {
        make(client, "scores", &json!({"update": "sum"}));
    }

    pub(crate) fn new(nth: usize) -> Self {
        Self(Sent::new(format!("s{nth}")))
    }
}

impl Load for Scores {
    fn step(&mut self, caller: &mut Caller<'_>) {
        let score = 1 + self.0.count() as i64;
        self.0.ask(caller, submit("scores", &self.0.next(), score));
    }

    fn lose(&mut self, until: Instant) {
        self.0.lose(until);
    }

    fn check(&self, client: &mut Client) {
        let found = scores(client, "scores", "all_time");
        self.0.check(|nth, name| {
            let score = found.get(name).copied().unwrap_or(0);
            assert_eq!(score % (1 + nth as i64), 0, "{name} is there in part");
            usize::try_from(score / (1 + nth as i64)).expect("sums are positive")
        });
    }
}

/// Players in the ranking, each banned once.
pub(crate) struct Bans(Sent);

impl Bans {
    pub(crate) fn prepare(client: &mut Client) {
        make(client, "bans", &json!({}));
    }

    pub(crate) fn new(client: &mut Client, nth: usize) -> Self {
        let row = |no: usize| json!({"board": "bans", "player": format!("b{nth}-{no}"), "score": no});
        let rows: Vec<Value> = (0..TO_BAN).map(row).collect();
        done(client, &post("/v1/scores/batch", &json!({"scores": rows})));
        Self(Sent::new(format!("b{nth}")))
    }
}

impl Load for Bans {
    fn step(&mut self, caller: &mut Caller<'_>) {
        if self.0.count() < TO_BAN {
            let target = format!("/v1/leaderboards/bans/players/{}/ban", self.0.next());
            self.0.ask(caller, Request::new("POST", target));
        }
    }

    fn lose(&mut self, until: Instant) {
        self.0.lose(until);
    }

    fn check(&self, client: &mut Client) {
        let found = scores(client, "bans", "all_time");
        self.0.check(|_, name| usize::from(!found.contains_key(name)));
    }
}

/// New players of a leaderboard with a period of one minute, which ends while the fault lasts and pays its best player.
pub(crate) struct Periods {
    sent: Sent,
    winner: Option<(String, String)>,
}

impl Periods {
    pub(crate) fn prepare(client: &mut Client) {
        let prizes = json!([{"from": 1, "to": 1, "currency": "KRW", "amount": PRIZE}]);
        let minute = json!({"name": "minute", "schedule": "* * * * *", "prizes": prizes});
        make(client, "periods", &json!({"update": "sum", "periods": [minute]}));
    }

    pub(crate) fn new(nth: usize) -> Self {
        Self { sent: Sent::new(format!("x{nth}")), winner: None }
    }

    /// Of this caller the member is best in the period that is about to end.
    pub(crate) fn with_winner(mut self, client: &mut Client, member: String) -> Self {
        done(client, &submit("periods", "ann", BEST));
        let shown = Request::new("GET", "/v1/leaderboards/periods/players/ann?period=minute");
        let period = done(client, &shown)["period"].as_str().expect("a name").to_owned();
        self.winner = Some((member, period));
        self
    }
}

impl Load for Periods {
    fn step(&mut self, caller: &mut Caller<'_>) {
        self.sent.ask(caller, submit("periods", &self.sent.next(), 1));
    }

    fn lose(&mut self, until: Instant) {
        self.sent.lose(until);
    }

    fn check(&self, client: &mut Client) {
        let all = scores(client, "periods", "all_time");
        let of = |found: &BTreeMap<String, i64>, name: &str| {
            usize::try_from(found.get(name).copied().unwrap_or(0)).expect("sums are positive")
        };
        self.sent.check(|_, name| of(&all, name));
        let listed = items(client, "/v1/leaderboards/periods/periods?limit=100", "items");
        let periods: Vec<String> =
            listed.iter().map(|one| one["period"].as_str().expect("a name").to_owned()).collect();
        let each: Vec<_> = periods.iter().map(|period| scores(client, "periods", period)).collect();
        for (name, outcome) in self.sent.each() {
            let times: usize = each.iter().map(|found| of(found, &name)).sum();
            // By a wrong clock a score may be of a closed period: then the answer says so.
            let allowed = match outcome {
                Outcome::Done(answer) => times == usize::from(answer.json().get("closed_periods").is_none()),
                Outcome::Refused => times == 0,
                Outcome::Unknown => times <= 1,
            };
            assert!(allowed, "{name} counts for {times} of {periods:?}, and the answer was {outcome:?}");
        }
        let Some((member, period)) = &self.winner else { return };
        let target = format!("/v1/leaderboards/periods/prizes?period={}", segment(period));
        tally_testkit::wait_until("the period is closed and paid", || {
            let answer = client.get(&target);
            answer.status == 200 && answer.json()["settled"] == true
        });
        let reference = format!("periods/{period}");
        let mut paid = || {
            let lines = items(client, &format!("/v1/wallets/{member}/transactions?limit=100"), "items");
            lines.iter().filter(|line| line["type"] == "prize").cloned().collect::<Vec<_>>()
        };
        let mut lines = Vec::new();
        tally_testkit::wait_until("the prize is paid", || {
            lines = paid();
            !lines.is_empty()
        });
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert_eq!((&lines[0]["reference"], &lines[0]["amount"]), (&json!(reference), &json!(PRIZE)));
    }
}

/// Pages of the unrelated leaderboard.
pub(crate) struct Ranks;

impl Load for Ranks {
    fn step(&mut self, caller: &mut Caller<'_>) {
        drop(caller.ask(&Request::new("GET", "/v1/leaderboards/unrelated/scores?limit=5")));
    }

    fn lose(&mut self, _until: Instant) {}

    fn check(&self, _client: &mut Client) {}
}

/// Additions to a few players on a leaderboard of their own, whose rows are on the first database.
pub(crate) struct Unrelated {
    nth: usize,
    players: Vec<String>,
    /// Additions: the time of the reply, the place of its player, and its outcome.
    asked: Vec<(Instant, usize, Outcome)>,
}

impl Unrelated {
    pub(crate) fn prepare(client: &mut Client) {
        make(client, "unrelated", &json!({"update": "sum"}));
    }

    pub(crate) fn new(world: &World, client: &mut Client, nth: usize) -> Self {
        // On one of two databases is about every second.
        let name = |no: usize| format!("u{nth}-{no}");
        let rows: Vec<Value> = (0..4 * UNRELATED_PLAYERS)
            .map(|no| json!({"board": "unrelated", "player": name(no), "score": 1}))
            .collect();
        done(client, &post("/v1/scores/batch", &json!({"scores": rows})));
        let sql = format!("SELECT player FROM tally_0.scores WHERE gone = 0 AND player LIKE 'u{nth}-%'");
        let stored = world.databases[0].sql(&sql);
        let players: Vec<String> = stored.lines().take(UNRELATED_PLAYERS).map(str::to_owned).collect();
        assert_eq!(players.len(), UNRELATED_PLAYERS, "{stored}");
        Self { nth, players, asked: Vec::new() }
    }
}

impl Load for Unrelated {
    fn step(&mut self, caller: &mut Caller<'_>) {
        let at = self.asked.len() % self.players.len();
        let key = format!("u{}/{}", self.nth, self.asked.len());
        let outcome = caller.ask(&submit("unrelated", &self.players[at], 1).idempotent(&key));
        self.asked.push((Instant::now(), at, outcome));
    }

    fn lose(&mut self, until: Instant) {
        for (_, _, outcome) in self.asked.iter_mut().filter(|(at, ..)| *at < until) {
            if matches!(outcome, Outcome::Done(_)) {
                *outcome = Outcome::Unknown;
            }
        }
    }

    fn check(&self, client: &mut Client) {
        let found = scores(client, "unrelated", "all_time");
        for (place, player) in self.players.iter().enumerate() {
            let of = |outcome: fn(&Outcome) -> bool| {
                self.asked.iter().filter(|(_, at, one)| *at == place && outcome(one)).count() as i64
            };
            // There was one before.
            let least = 1 + of(|outcome| matches!(outcome, Outcome::Done(_)));
            let most = least + of(|outcome| matches!(outcome, Outcome::Unknown));
            let sum = found[player];
            assert!((least..=most).contains(&sum), "{player} has {sum}, not {least} to {most}");
        }
    }
}
