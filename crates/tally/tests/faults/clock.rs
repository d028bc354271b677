//! A clock that jumps under the running binary, and between two starts: it closes no period and pays no prize.
//!
//! Not here: the definition of a jump (`rules`), and every order of jumps and requests (`service/tests/use_cases/clock.rs` and
//! the simulation).

use crate::TALLY;
use serde_json::{Value, json};
use std::time::Duration;
use tally_testkit::http::segment;
use tally_testkit::{
    Client, DatabaseKind, RedisKind, ScratchDatabase, ScratchRedis, TestTally, WallClock, wait_until,
};

/// The scheduler checks five times a second for due work: time for several checks.
const LOOKS: Duration = Duration::from_secs(2);

const JUMP: i64 = 25 * 3_600;
const TODAY: &str = "daily:2031-03-05";
const TOMORROW: &str = "daily:2031-03-06";
const PRIZE: &str = "30";

/// Digests of passwords that cost no time.
const CHEAP: [(&str, &str); 2] =
    [("TALLY_MEMBERS_PASSWORD_MEMORY_KIB", "8"), ("TALLY_MEMBERS_PASSWORD_PASSES", "1")];

const JUMPED: &str = "the clock has jumped";
const TRUSTED: &str = "the clock is trusted again";
const AHEAD: &str = "the newest stored instant lies ahead of the clock";

/// A server on that clock.
fn server(clock: &WallClock, settings: &[(&str, &str)]) -> TestTally {
    let mut server = TestTally::stopped(TALLY);
    clock.set_for(&mut server);
    settings.iter().for_each(|(name, value)| server.set(name, value));
    for text in [JUMPED, TRUSTED, AHEAD] {
        server.allow(text);
    }
    server.restart();
    server
}

/// A board of days, whose best player gets a prize; and the member that plays for it.
fn prepare(server: &TestTally) -> String {
    let mut local = server.local();
    let member = json!({"login_id": "ann", "password": "ann's password", "name": "ann", "player": "ann"});
    let id = local.post("/v1/members", &member).expect(201)["id"].as_str().expect("an id").to_owned();
    let prizes = json!([{"from": 1, "to": 1, "currency": "KRW", "amount": PRIZE}]);
    let days = json!({"name": "daily", "schedule": "0 0 * * *", "keep": 9, "prizes": prizes});
    local.put("/v1/leaderboards/b", &json!({"update": "sum", "periods": [days]})).expect(201);
    id
}

/// Submits a score; the period that it counts for.
fn submit(client: &mut Client, player: &str, score: i64) -> String {
    let answer = client.post("/v1/leaderboards/b/scores", &json!({"player": player, "score": score}));
    let answer = answer.expect(200);
    assert_eq!(answer.get("closed_periods"), None, "{answer}");
    let target = format!("/v1/leaderboards/b/players/{player}?period=daily");
    client.get(&target).expect(200)["period"].as_str().expect("a name").to_owned()
}

/// Whether the period is closed and its payouts are stored.
fn is_settled(server: &TestTally, period: &str) -> bool {
    let target = format!("/v1/leaderboards/b/prizes?period={}", segment(period));
    server.local().get(&target).expect(200)["settled"] == true
}

/// Players of a period with their sums, best first.
fn players(client: &mut Client, period: &str) -> Vec<(String, i64)> {
    let target = format!("/v1/leaderboards/b/scores?limit=100&period={}", segment(period));
    let page = client.get(&target).expect(200);
    let row = |entry: &Value| {
        (entry["player"].as_str().expect("a name").to_owned(), entry["score"].as_i64().expect("a number"))
    };
    page["entries"].as_array().expect("entries").iter().map(row).collect()
}

fn balance(server: &TestTally, member: &str) -> Value {
    server.local().get(&format!("/v1/wallets/{member}")).expect(200)["items"][0]["balance"].clone()
}

/// The value of a sample without labels.
fn metric(server: &TestTally, name: &str) -> f64 {
    let text = server.local().get("/metrics").text();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("no {name}")).parse().expect("a number")
}

/// Lines are read by another thread, so they are waited for.
fn is_logged(server: &TestTally, text: &str, times: usize) {
    let count = || server.log().iter().filter(|line| line.contains(text)).count();
    wait_until(text, || count() >= times);
    assert_eq!(count(), times, "{text}");
}

/// Nothing is closed or paid, however often the scheduler runs.
fn nothing_is_done(server: &TestTally, member: &str) {
    std::thread::sleep(LOOKS);
    assert!(!is_settled(server, TODAY));
    assert_eq!(balance(server, member), "0");
}

fn is_in_doubt(server: &TestTally) {
    wait_until("the jump is found", || metric(server, "tally_clock_believed") == 0.0);
    let jump = metric(server, "tally_clock_jump_seconds");
    assert!((jump - JUMP as f64).abs() < 60.0, "{jump}");
    let doctor = server.run(&["doctor"]);
    let text = doctor.expect(0);
    assert!(text.contains("warn  clock: in doubt after a jump of "), "{text}");
}

#[test]
fn a_jump_of_the_clock_closes_no_day_and_pays_no_prize() {
    let mut clock = WallClock::at_noon();
    let mut server = server(&clock, &CHEAP);
    let ann = prepare(&server);
    let mut client = server.client();
    assert_eq!(submit(&mut client, "ann", 9), TODAY);
    assert!(server.run(&["doctor"]).expect(0).contains("ok    clock: trusted"));

    clock.jump(JUMP);
    is_in_doubt(&server);
    is_logged(&server, JUMPED, 1);
    assert_eq!(submit(&mut client, "early", 1), TOMORROW, "scores go on, by the clock");
    nothing_is_done(&server, &ann);

    clock.jump(-JUMP);
    wait_until("the clock is trusted again", || metric(&server, "tally_clock_believed") == 1.0);
    is_logged(&server, TRUSTED, 1);
    assert_eq!(metric(&server, "tally_clock_jump_seconds"), 0.0);
    nothing_is_done(&server, &ann);
    assert_eq!(submit(&mut client, "bob", 4), TODAY, "the day was not closed");
    assert_eq!(players(&mut client, TODAY), [("ann".to_owned(), 9), ("bob".to_owned(), 4)]);

    // The rows of the jump lie ahead.
    is_logged(&server, AHEAD, 0);
    server.kill9();
    server.restart();
    is_logged(&server, AHEAD, 1);
    is_logged(&server, JUMPED, 1);
    assert!(metric(&server, "tally_clock_newest_ahead_seconds") > 24.0 * 3_600.0);
    assert_eq!(metric(&server, "tally_clock_believed"), 1.0);
    let doctor = server.run(&["doctor"]);
    assert!(doctor.expect(0).contains("warn  clock: at the start the newest stored instant lay "));
    assert_eq!(submit(&mut server.client(), "bob", 1), TODAY);

    // A jump while no server runs.
    server.terminate();
    clock.jump(JUMP);
    server.restart();
    is_in_doubt(&server);
    nothing_is_done(&server, &ann);

    // The operator knows that it is tomorrow.
    server.terminate();
    server.set("TALLY_CLOCK_STEADY", "1s");
    server.restart();
    wait_until("the day is closed", || is_settled(&server, TODAY));
    wait_until("the prize is paid", || balance(&server, &ann) == PRIZE);
    let mut client = server.client();
    assert_eq!(players(&mut client, TODAY), [("ann".to_owned(), 9), ("bob".to_owned(), 5)]);
    assert_eq!(players(&mut client, TOMORROW), [("early".to_owned(), 1)]);
}

/// With ranks in Redis a start loads no rows: the newest instant is remembered by the store.
#[test]
fn a_start_that_loads_nothing_warns_of_instants_ahead() {
    let database = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let redis = ScratchRedis::start(RedisKind::Redis7, &[]);
    let (url, ranking) = (database.create_database(), format!("redis://{}", redis.address()));
    let settings = [("TALLY_STORE_URL", &*url), ("TALLY_RANKING_URL", &ranking), ("TALLY_STORE_LEASE", "4s")];
    let mut clock = WallClock::at_present();
    let mut server = server(&clock, &settings);
    let mut local = server.local();
    local.put("/v1/leaderboards/b", &json!({})).expect(201);
    let mut submit = |player: &str| {
        let score = json!({"player": player, "score": 1});
        local.post("/v1/leaderboards/b/scores", &score).expect(200)
    };
    let name = url.rsplit('/').next().expect("a name");
    let stored = || database.sql(&format!("SELECT value FROM {name}.meta WHERE name = 'newest_instant'"));
    submit("ann");
    wait_until("the newest instant is stored", || !stored().is_empty());
    let before = stored();
    clock.jump(JUMP);
    submit("early");
    wait_until("the newest instant is stored again", || stored() != before);
    clock.jump(-JUMP);
    wait_until("the clock is trusted", || metric(&server, "tally_clock_believed") == 1.0);
    assert_eq!(metric(&server, "tally_clock_newest_ahead_seconds"), 0.0);
    server.kill9();
    server.restart();
    is_logged(&server, AHEAD, 1);
    assert_eq!(metric(&server, "tally_clock_believed"), 1.0);
    assert!(metric(&server, "tally_clock_newest_ahead_seconds") > 24.0 * 3_600.0);
    assert!(
        server.run(&["doctor"]).stdout.contains("warn  clock: at the start the newest stored instant lay ")
    );
}
