//! Rankings in a Redis that loses them, freezes and dies: no rank is ever wrong, and nothing acknowledged is lost. The
//! server repairs them by itself.
//!
//! Not here: the same tests as on memory (`TALLY_TEST_ON=mariadb+redis`), and the scripts (`ranking/tests`).

use crate::TALLY;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tally_testkit::database::{DatabaseKind, ScratchDatabase};
use tally_testkit::redis::{RedisKind, ScratchRedis};
use tally_testkit::{Client, GIVE_UP, Proxy, RespClient, TestTally, wait_until};
use tally_wire::resp::Reply;

const POLL_PAUSE: Duration = Duration::from_millis(20);
const PLAYERS: i64 = 300;

fn start(redis: &ScratchRedis) -> TestTally {
    start_at(redis.address(), "300ms", &[])
}

fn start_at(redis: SocketAddr, timeout: &str, more: &[(&str, &str)]) -> TestTally {
    let database = ScratchDatabase::shared(DatabaseKind::MariaDb10).create_database();
    let ranking = format!("redis://{redis}");
    let settings = [
        ("TALLY_STORE_URL", &*database),
        ("TALLY_RANKING_URL", &ranking),
        ("TALLY_RANKING_TIMEOUT", timeout),
        ("TALLY_STORE_LEASE", "4s"),
    ];
    let mut server = TestTally::start_set(TALLY, &[&settings, more].concat());
    server.allow("apply stored changes to rankings");
    server.allow("ranks are unavailable now");
    server
}

fn submit(client: &mut Client, player: i64, score: i64) -> Value {
    let body = json!({"player": format!("p{player:03}"), "score": score});
    client.post("/v1/leaderboards/b/scores", &body).expect(200)
}

fn fill(client: &mut Client) {
    client.put("/v1/leaderboards/b", &json!({})).expect(201);
    let rows: Vec<Value> =
        (0..PLAYERS).map(|at| json!({"board": "b", "player": format!("p{at:03}"), "score": at})).collect();
    client.post("/v1/scores/batch", &json!({"scores": rows})).expect(200);
}

/// Repeats until there is an answer that is not "loading"; returns it.
fn wait_for(client: &mut Client, target: &str) -> Value {
    let started = Instant::now();
    loop {
        let answer = client.get(target);
        if answer.status == 200 {
            return answer.json();
        }
        answer.refused(503, "loading");
        assert!(started.elapsed() < GIVE_UP, "it never comes back");
        std::thread::sleep(POLL_PAUSE);
    }
}

/// Every rank is that of a sort.
fn check(client: &mut Client, best: &[(i64, i64)]) {
    let page = wait_for(client, "/v1/leaderboards/b/scores?limit=1000");
    let mut wanted: Vec<(i64, i64)> = (0..PLAYERS).map(|at| (at, at)).collect();
    for (player, score) in best {
        let place = usize::try_from(*player).expect("it is small");
        wanted[place].1 = wanted[place].1.max(*score);
    }
    wanted.sort_by_key(|(_, score)| -score);
    let wanted: Vec<Value> = wanted
        .iter()
        .zip(1..)
        .map(|((player, score), rank)| json!([rank, format!("p{player:03}"), score]))
        .collect();
    let entries = page["entries"].as_array().expect("entries").iter();
    let seen: Vec<Value> =
        entries.map(|entry| json!([entry["rank"], entry["player"], entry["score"]])).collect();
    assert_eq!(seen, wanted);
}

#[test]
fn what_redis_loses_is_loaded_again_and_never_wrong_meanwhile() {
    let mut redis = ScratchRedis::start(RedisKind::Redis7, &[]);
    let server = start(&redis);
    let mut client = server.client();
    fill(&mut client);
    check(&mut client, &[]);

    // Flushed: the next query notices.
    assert_eq!(redis.client().call(&["FLUSHALL"]), Reply::Simple(b"OK".to_vec()));
    client.get("/v1/leaderboards/b/players/p000").refused(503, "loading");
    let first = submit(&mut client, 0, 1_000);
    assert_eq!(first["score"], 1_000, "it is stored all the same");
    check(&mut client, &[(0, 1_000)]);
    assert_eq!(submit(&mut client, 1, 2_000)["rank"], 1, "ranks are told again");

    // Killed, and back with nothing.
    redis.kill();
    let answer = client.get("/v1/leaderboards/b/players/p000");
    answer.refused(503, "loading");
    assert!(answer.header("retry-after").is_some());
    let away = submit(&mut client, 2, 3_000);
    assert_eq!((&away["score"], &away["rank"]), (&json!(3_000), &Value::Null));
    redis.restart();
    check(&mut client, &[(0, 1_000), (1, 2_000), (2, 3_000)]);

    // There was no read: it notices by itself, so the next read is answered.
    assert_eq!(redis.client().call(&["FLUSHALL"]), Reply::Simple(b"OK".to_vec()));
    let started = Instant::now();
    let mut direct = redis.client();
    while direct.call(&["DBSIZE"]) == Reply::Integer(0) {
        assert!(started.elapsed() < GIVE_UP, "it never notices");
        std::thread::sleep(POLL_PAUSE);
    }
    check(&mut client, &[(0, 1_000), (1, 2_000), (2, 3_000)]);
}

/// What `/readyz` and its parts answer: the status of each, and the parts in the body.
fn readiness(client: &mut Client) -> (Vec<u16>, Value) {
    let paths = ["/readyz", "/readyz/store", "/readyz/ranking", "/readyz/applications"];
    let answers = paths.map(|path| client.get(path));
    (answers.iter().map(|answer| answer.status).collect(), answers[0].json()["parts"].clone())
}

/// The value of a family with one sample.
fn metric(client: &mut Client, name: &str) -> Option<String> {
    let text = client.get("/metrics").text();
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).map(str::to_owned)
}

#[test]
fn ranks_and_applications_that_are_away_are_seen_and_take_no_server_out() {
    let (mut ranks, mut applications) =
        (ScratchRedis::start(RedisKind::Redis7, &[]), ScratchRedis::start(RedisKind::Redis7, &[]));
    let url = format!("redis://{}", applications.address());
    let server = start_at(ranks.address(), "300ms", &[("TALLY_APPLICATIONS_URL", &url)]);
    let mut client = server.client();
    let all = json!({"store": true, "ranking": true, "applications": true});
    assert_eq!(readiness(&mut client), (vec![200, 200, 200, 200], all.clone()));
    fill(&mut client);

    ranks.kill();
    // No request needs ranks meanwhile: the server finds out by itself.
    let away = json!({"store": true, "ranking": false, "applications": true});
    wait_until("ranks are away", || readiness(&mut client) == (vec![200, 200, 503, 200], away.clone()));
    let families = ["tally_ready", "tally_ranking_ready", "tally_applications_ready"];
    let seen = |client: &mut Client| families.map(|name| metric(client, name).expect("a sample"));
    assert_eq!(seen(&mut client), ["1", "0", "1"]);
    assert_eq!(submit(&mut client, 2, 3_000)["rank"], Value::Null, "it is stored");
    let status = client.get("/v1/status").expect(200);
    assert_eq!(
        (&status["ranking"]["ready"], &status["applications"]["ready"]),
        (&json!(false), &json!(true))
    );
    let why = status["ranking"]["failure"].as_str().expect("this machine is an admin").to_owned();
    assert!(why.contains(&ranks.address().to_string()), "{why}");
    // To a reader it does not name what is below the server.
    let made = server.local().post("/v1/keys", &json!({"role": "reader"})).expect(201);
    let mut reader = server.client().with_key(made["key"].as_str().expect("a key"));
    let of_reader = reader.get("/v1/status").expect(200);
    assert_eq!(of_reader["ranking"], json!({"kind": "redis", "ready": false}));

    ranks.restart();
    wait_until("ranks are back", || readiness(&mut reader).0 == [200, 200, 200, 200]);
    check(&mut reader, &[(2, 3_000)]);
    applications.kill();
    let away = json!({"store": true, "ranking": true, "applications": false});
    wait_until("applications are away", || {
        readiness(&mut reader) == (vec![200, 200, 200, 503], away.clone())
    });
    assert_eq!(seen(&mut reader), ["1", "1", "0"]);
    applications.restart();
    wait_until("applications are back", || readiness(&mut reader) == (vec![200, 200, 200, 200], all.clone()));
    assert_eq!(seen(&mut reader), ["1", "1", "1"]);
}

#[test]
fn a_frozen_redis_does_not_stop_stores() {
    let redis = ScratchRedis::start(RedisKind::Redis7, &[]);
    let server = start(&redis);
    let mut client = server.client();
    fill(&mut client);
    redis.freeze();
    for player in 0..5 {
        let stored = submit(&mut client, player, 500 + player);
        assert_eq!((&stored["score"], &stored["rank"]), (&json!(500 + player), &Value::Null));
    }
    client.get("/v1/leaderboards/b/scores").refused(503, "loading");
    let mut resp = RespClient::connect(server.resp());
    let Reply::Error(error) = resp.call(&["ZREVRANK", "b", "p000"]) else { panic!("it cannot know") };
    assert!(error.starts_with(b"LOADING"), "{}", String::from_utf8_lossy(&error));
    redis.thaw();
    check(&mut client, &[(0, 500), (1, 501), (2, 502), (3, 503), (4, 504)]);
    assert_eq!(resp.call(&["ZREVRANK", "b", "p004"]), Reply::Integer(0));
}

#[test]
fn a_restart_finds_what_was_not_published() {
    let redis = ScratchRedis::start(RedisKind::Redis7, &[]);
    let mut server = start(&redis);
    let mut client = server.client();
    fill(&mut client);
    redis.freeze();
    submit(&mut client, 7, 900);
    server.kill9();
    redis.thaw();
    server.restart();
    check(&mut server.client(), &[(7, 900)]);
}

/// No answer passes until all are read: a client that reads board by board gets none.
#[test]
fn a_members_boards_are_asked_all_at_once() {
    const BOARDS: usize = 30;
    let redis = ScratchRedis::start(RedisKind::Redis7, &[]);
    let proxy = Proxy::start(redis.address());
    let cheap = [("TALLY_MEMBERS_PASSWORD_MEMORY_KIB", "8"), ("TALLY_MEMBERS_PASSWORD_PASSES", "1")];
    let server = start_at(proxy.address(), "5s", &cheap);
    let mut client = server.local();
    for nth in 0..BOARDS {
        client.put(&format!("/v1/leaderboards/b{nth:02}"), &json!({})).expect(201);
        let score = |player: String, score: usize| json!({"board": format!("b{nth:02}"), "player": player, "score": score});
        // On every third only other players.
        let mut rows: Vec<Value> =
            (0..=nth).map(|other| score(format!("p{other}"), 10 + 2 * other)).collect();
        rows.extend((!nth.is_multiple_of(3)).then(|| score("ann".into(), 11)));
        client.post("/v1/scores/batch", &json!({"scores": rows})).expect(200);
    }
    let ann = json!({"login_id": "ann", "password": "ann's password", "name": "Ann", "player": "ann"});
    client.post("/v1/members", &ann).expect(201);
    let signed =
        server.client().post("/auth/signin", &json!({"loginId": "ann", "password": "ann's password"}));
    let token = signed.expect(200)["data"]["accessToken"].as_str().expect("a token").to_owned();
    let mut ann = server.client().with_key(&token);
    let ranked = |nth: &usize| !nth.is_multiple_of(3);
    let wanted = |nth: usize| {
        // All but the first have more.
        let (rank, total) = (nth + 1, nth + 2);
        json!({"board": format!("b{nth:02}"), "score": 11, "rank": rank, "total": total})
    };
    let wanted: Vec<Value> = (0..BOARDS).filter(ranked).map(wanted).collect();
    proxy.answer_after(b"EVALSHA", BOARDS);
    assert_eq!(ann.get("/v1/me/ranks?limit=1000").expect(200)["items"], json!(wanted));
    // Pages end where they did, whatever is read at once.
    let first = ann.get("/v1/me/ranks?limit=7").expect(200);
    assert_eq!(first["items"], json!(wanted[..7]));
    let cursor = first["next_cursor"].as_str().expect("there are more");
    let rest = ann.get(&format!("/v1/me/ranks?limit=1000&cursor={cursor}")).expect(200);
    assert_eq!((&rest["items"], rest.get("next_cursor")), (&json!(wanted[7..]), None));
}

/// Polls until the server says why it is not ready; nothing else is answered meanwhile.
fn wait_for_reason(client: &mut Client) {
    let started = Instant::now();
    loop {
        let answer = client.get("/readyz");
        assert_eq!(answer.status, 503, "{}", answer.text());
        if answer.json()["reason"] == "the ranking does not answer, or is loading itself" {
            break;
        }
        assert!(started.elapsed() < GIVE_UP, "it never says why: {}", answer.text());
        std::thread::sleep(POLL_PAUSE);
    }
    let answer = client.get("/v1/leaderboards/b/scores");
    answer.refused(503, "loading");
    assert!(answer.text().contains("the ranking does not answer"), "{}", answer.text());
}

/// It is slow, or loads its own data: a start waits for it and says so.
#[test]
fn a_start_waits_for_a_redis_that_does_not_answer_yet() {
    // A millisecond for each of its keys, while others are answered: `-LOADING`. A busy machine starts the server meanwhile.
    const KEYS: &str = "12000";
    let slow = ["--key-load-delay", "1000", "--loading-process-events-interval-bytes", "1024"];
    let redis =
        ScratchRedis::start(RedisKind::Redis7, &[&slow[..], &["--enable-debug-command", "yes"]].concat());
    let mut server = start(&redis);
    server.allow("load ranks: it is tried again until it works");
    fill(&mut server.client());
    submit(&mut server.client(), 3, 700);
    server.terminate();
    redis.freeze();
    server.launch();
    wait_for_reason(&mut server.client());
    redis.thaw();
    server.wait_ready();
    check(&mut server.client(), &[(3, 700)]);
    server.terminate();
    assert_eq!(redis.client().call(&["DEBUG", "POPULATE", KEYS]), Reply::Simple(b"OK".to_vec()));
    let mut reloading = redis.client();
    std::thread::scope(|scope| {
        let reloaded = scope.spawn(move || reloading.call(&["DEBUG", "RELOAD"]));
        let mut other = redis.client();
        while !matches!(other.call(&["DBSIZE"]), Reply::Error(why) if why.starts_with(b"LOADING")) {
            assert!(!reloaded.is_finished(), "it was loaded before it said so");
        }
        server.launch();
        wait_for_reason(&mut server.client());
        assert_eq!(reloaded.join().expect("a thread"), Reply::Simple(b"OK".to_vec()));
    });
    server.wait_ready();
    check(&mut server.client(), &[(3, 700)]);
    server.wait_logged("it works again");
    // Refused, and no wait helps.
    server.terminate();
    assert_eq!(redis.client().call(&["CONFIG", "SET", "requirepass", "x"]), Reply::Simple(b"OK".to_vec()));
    let refused = server.run(&["serve", "--http", "127.0.0.1:0", "--resp", "off"]);
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("NOAUTH"), "{}", refused.stderr);
}

#[test]
fn a_store_in_a_file_has_its_ranks_in_memory() {
    let server = TestTally::stopped(TALLY);
    let refused = server.run(&["serve", "--store", "sqlite:x.db", "--ranking", "redis://127.0.0.1:1"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("needs a store in MySQL or MariaDB"), "{}", refused.stderr);
}
