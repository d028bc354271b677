//! `tally doctor` finds nothing in a sound store, and finds faults that were made behind the server's back.

use crate::TALLY;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tally_testkit::{
    DatabaseKind, GIVE_UP, RedisKind, ScratchCluster, ScratchDatabase, ScratchRedis, SetAtEnd, TestTally,
    wait_until,
};

/// Boards of each kind of rank, with ties, a banned player and more than a page.
fn fill(server: &TestTally) {
    let mut client = server.local();
    let boards = [
        ("plain", json!({})),
        ("dense", json!({"ranking": "dense", "ties": "player", "order": "ascending"})),
        (
            "shared",
            json!({
                "ranking": "competition", "score": "float64", "subscore": "descending",
                "periods": [{"name": "day", "schedule": "0 0 * * *", "time_zone": "Europe/Berlin"}],
            }),
        ),
    ];
    for (board, definition) in boards {
        client.put(&format!("/v1/leaderboards/{board}"), &definition).expect(201);
        let row = |number: i32| {
            let mut row = json!({"board": board, "player": format!("p{number}"), "score": number % 400});
            if board == "shared" {
                row["subscore"] = json!(number % 3);
            }
            row
        };
        for chunk in (0..1200).collect::<Vec<_>>().chunks(100) {
            let rows: Vec<_> = chunk.iter().map(|number| row(*number)).collect();
            client.post("/v1/scores/batch", &json!({"scores": rows})).expect(200);
        }
        client.post(&format!("/v1/leaderboards/{board}/players/p7/ban"), &json!({})).expect(200);
    }
    // An open period, and two that were closed without a score.
    let years =
        json!({"all_time": false, "periods": [{"name": "year", "schedule": "0 0 1 1 *", "keep": 100}]});
    client.put("/v1/leaderboards/years", &years).expect(201);
    let score = json!({"player": "ann", "score": 1});
    client.post("/v1/leaderboards/years/scores", &score).expect(200);
    let mut text = String::from("who,points,day\n");
    for number in 0..1500 {
        text += &format!("p{},{},{}-05-01\n", number / 2, number % 400, 2019 + number % 2);
    }
    let path = server.data().join("years.csv");
    std::fs::write(&path, text).unwrap();
    let columns = ["--player", "who", "--score", "points", "--at", "day"];
    let import = ["import", "scores", "years", path.to_str().unwrap()];
    server.run(&[&import[..], &columns].concat()).expect(0);
    std::fs::remove_file(path).unwrap();
}

fn all_are_equal(text: &str) {
    for board in ["plain", "dense", "shared"] {
        let line = format!("ok    board {board}: all 1199 ranks are those of a sort of the stored rows");
        assert!(text.contains(&line), "no {line:?} in {text}");
    }
    for words in [
        "board shared: so are 1199 ranks of its periods, 1 in",
        "board years: so are 1501 ranks of its periods, 3 in",
    ] {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
    assert!(!text.contains("WRONG") && !text.contains("board years: all"), "{text}");
}

#[test]
fn a_file_with_and_without_a_server() {
    let mut server = TestTally::stopped(TALLY);
    server.set("TALLY_STORE_URL", "");
    server.restart();
    fill(&server);
    server.run(&["seed", "wallets", "--members", "3", "--transactions", "50"]).expect(0);
    let beside = server.run(&["doctor", "--target-rate", "50000"]);
    let text = beside.expect(0);
    all_are_equal(text);
    for words in [
        "ok    tally 0.",
        "ok    store sqlite:",
        "its journal: ",
        "in use at 50000 rows/s",
        "in use at 50000 movements/s",
    ] {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
    server.terminate();
    let alone = server.run(&["doctor", "--target-rate", "50000"]);
    all_are_equal(alone.expect(0));
    assert!(alone.stdout.contains("warn  connections by Little's law: no server runs"), "{}", alone.stdout);
    let left = std::fs::read_dir(server.data()).unwrap().flatten().map(|entry| entry.file_name());
    assert!(!left.map(|name| name.into_string().unwrap()).any(|name| name.contains("doctor")));
}

#[test]
fn a_mariadb_whose_rows_were_changed_behind_the_server() {
    rows_were_changed(DatabaseKind::MariaDb10, "mariadb 10.11");
}

#[test]
fn a_mysql_whose_rows_were_changed_behind_the_server() {
    rows_were_changed(DatabaseKind::MySql9, "mysql 9.");
}

/// The findings of a server, once it has checked.
fn first_findings(server: &TestTally) -> Vec<Value> {
    let begun = Instant::now();
    loop {
        let status = server.local().get("/v1/status").expect(200);
        let mut found = status["findings"].as_array().expect("findings").clone();
        // Whether the limit of descriptors is too low is a matter of the machine.
        found.retain(|one| !one["text"].as_str().is_some_and(|text| text.contains("file descriptors")));
        if !found.is_empty() || begun.elapsed() > GIVE_UP {
            return found;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn rows_were_changed(kind: DatabaseKind, release: &str) {
    let database = ScratchDatabase::start(kind);
    let url = database.create_database();
    let mut server = TestTally::stopped(TALLY);
    server.set("TALLY_STORE_URL", &url);
    server.restart();
    fill(&server);
    let good = server.run(&["doctor"]);
    all_are_equal(good.expect(0));
    for words in [release, "ok    innodb_flush_log_at_trx_commit = 1", "store.pool_max = 8"] {
        assert!(good.stdout.contains(words), "no {words:?} in {}", good.stdout);
    }
    database.sql("SET GLOBAL innodb_flush_log_at_trx_commit = 2");
    let unsafe_setting = server.run(&["doctor"]);
    let text = unsafe_setting.expect(1);
    assert!(text.contains("WRONG innodb_flush_log_at_trx_commit = 2"), "{text}");
    // A running server finds it too, by itself.
    server.terminate();
    server.restart();
    let found = first_findings(&server);
    let wrong = found.iter().find(|one| one["level"] == "wrong").expect("a setting that loses data");
    assert!(
        wrong["text"].as_str().expect("a text").starts_with("innodb_flush_log_at_trx_commit = 2: "),
        "{wrong}"
    );
    database.sql("SET GLOBAL innodb_flush_log_at_trx_commit = 1");
    let name = url.rsplit('/').next().unwrap();
    let change = |score: i32| {
        let set = format!("UPDATE {name}.scores SET score = {score} WHERE player = 'p3' AND board = 1");
        database.sql(&set);
    };
    change(9999);
    let changed = server.run(&["doctor"]);
    assert!(changed.expect(1).contains("WRONG board plain: at 1: "), "{}", changed.stdout);
    let ranks = server.run(&["verify", "--ranks"]);
    assert!(ranks.expect(1).contains("WRONG board plain: at 1: "), "{}", ranks.stdout);
    change(3);
    server.run(&["doctor"]).expect(0);
    let ranks = server.run(&["verify", "--ranks"]);
    assert!(ranks.expect(0).contains("ok    board plain: all "), "{}", ranks.stdout);
    let of_a_closed_year = "player = 'p4' AND score = 8 AND part > 0";
    database.sql(&format!("UPDATE {name}.scores SET score = 9999 WHERE {of_a_closed_year}"));
    let changed = server.run(&["doctor"]);
    let text = changed.expect(1);
    assert!(text.contains("WRONG board years, year:2019-01-01T00:00:00"), "{text}");
    let changed = server.run(&["verify"]);
    assert!(changed.expect(1).contains("/p4: its archive has another record"), "{}", changed.stdout);
    database.sql(&format!(
        "UPDATE {name}.scores SET score = 8 WHERE player = 'p4' AND score = 9999 AND part > 0"
    ));
}

/// Scores arrive all the time, for a few players of one board. The other ranks are known all the same.
#[test]
fn ranks_are_compared_beside_writes() {
    let database = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let url = database.create_database();
    let server = TestTally::start_set(TALLY, &[("TALLY_STORE_URL", &url), ("TALLY_RANKING_URL", "memory")]);
    fill(&server);
    let (ended, mut written) = (AtomicBool::new(false), 0);
    let beside = |doctor: &dyn Fn()| {
        std::thread::scope(|scope| {
            let end = SetAtEnd::new(&ended);
            let writing = scope.spawn(|| {
                let (mut client, mut number) = (server.local(), 0);
                while !ended.load(Ordering::Relaxed) {
                    number += 1;
                    let score = json!({"player": format!("p{}", 10 + number % 9), "score": 1_000 + number});
                    client.post("/v1/leaderboards/plain/scores", &score).expect(200);
                }
                number
            });
            doctor();
            drop(end);
            writing.join().expect("it writes")
        })
    };
    written += beside(&|| {
        let told = server.run(&["doctor"]);
        let text = told.expect(0);
        assert!(!text.contains("board plain: unknown"), "{text}");
        assert!(text.contains("ok    board dense: all 1199 ranks"), "{text}");
        let plain = text.lines().find(|line| line.starts_with("ok    board plain: "));
        assert!(
            plain.is_some_and(|line| line.contains("ranks are those of a sort of the stored rows")),
            "{text}"
        );
    });
    ended.store(false, Ordering::Relaxed);
    let name = url.rsplit('/').next().unwrap();
    let change = |score: i32| {
        database.sql(&format!("UPDATE {name}.scores SET score = {score} WHERE player = 'p99' AND board = 1"));
    };
    // The best one, so that the first rank is wrong.
    change(100_000);
    written += beside(&|| {
        let told = server.run(&["doctor"]);
        let text = told.expect(1);
        assert!(text.contains("WRONG board plain: at 1: ") && text.contains("\"player\":\"p99\""), "{text}");
    });
    change(99);
    assert!(written > 2, "it wrote meanwhile");
}

#[test]
fn the_redis_of_rankings_is_looked_at() {
    let mut redis = ScratchRedis::start(RedisKind::Redis7, &[]);
    let address = redis.address();
    let url = format!("redis://{address}");
    let database = ScratchDatabase::shared(DatabaseKind::MariaDb10).create_database();
    let mut server =
        TestTally::start_set(TALLY, &[("TALLY_STORE_URL", &database), ("TALLY_RANKING_URL", &url)]);
    server.allow("ranks are unavailable now");
    server.allow("apply stored changes to rankings");
    let good = server.run(&["doctor"]);
    for words in [
        format!("ok    ranking {url}: {address} is redis 7."),
        format!("ok    {address}: used_memory = "),
        format!("ok    {address}: maxmemory-policy = noeviction"),
        format!("ok    {address}: appendonly = no"),
    ] {
        assert!(good.expect(0).contains(&words), "no {words:?} in {}", good.stdout);
    }
    let mut client = redis.client();
    client.call(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    // Full, it would evict.
    for (memory, words) in [
        ("100mb", "maxmemory-policy = allkeys-lru: when it is full"),
        ("1mb", "maxmemory = 1048576: almost full"),
    ] {
        client.call(&["CONFIG", "SET", "maxmemory", memory]);
        let worse = server.run(&["doctor"]);
        assert!(worse.stdout.contains(words), "no {words:?} in {}", worse.stdout);
    }
    client.call(&["CONFIG", "SET", "maxmemory", "0"]);
    redis.kill();
    let away = server.run(&["doctor"]);
    let words = format!("WRONG ranking {url}: ");
    assert!(away.stdout.contains(&words), "{}", away.stdout);
    redis.restart();
    wait_until("ranks are back", || server.local().get("/readyz/ranking").status == 200);
}

#[test]
fn the_redis_of_applications_is_looked_at() {
    let mut redis = ScratchRedis::start(RedisKind::Redis7, &[]);
    let mut server = TestTally::stopped(TALLY);
    server.set("TALLY_APPLICATIONS_URL", &format!("redis://{}", redis.address()));
    server.restart();
    let good = server.run(&["doctor"]);
    let text = good.expect(0);
    let address = redis.address();
    let found = first_findings(&server);
    let [one] = found.as_slice() else { panic!("one thing is worth a look: {found:?}") };
    assert_eq!(one["level"], "warning");
    let words = format!("{address}: appendonly = no: a restart or a failover loses the applications");
    assert!(one["text"].as_str().expect("a text").starts_with(&words), "{one}");
    for words in [
        format!("ok    applications redis://{address}: {address} is redis 7."),
        format!("ok    {address}: maxmemory-policy = noeviction, maxmemory = 0"),
        format!("warn  {address}: appendonly = no: a restart or a failover loses the applications"),
    ] {
        assert!(text.contains(&words), "no {words:?} in {text}");
    }
    let mut client = redis.client();
    client.call(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    assert!(server.run(&["doctor"]).expect(0).contains("warn  "), "without a bound nothing is evicted");
    client.call(&["CONFIG", "SET", "maxmemory", "100mb"]);
    let evicts = server.run(&["doctor"]);
    let words = format!("WRONG {address}: maxmemory-policy = allkeys-lru, maxmemory = 104857600: it evicts");
    assert!(evicts.expect(1).contains(&words), "{}", evicts.stdout);
    redis.kill();
    let away = server.run(&["doctor"]);
    let words = format!("WRONG applications redis://{address}: ");
    assert!(away.expect(1).contains(&words), "{}", away.stdout);
}

#[test]
fn every_node_of_a_cluster_of_applications_is_looked_at() {
    let cluster = ScratchCluster::start(RedisKind::Valkey9, &[]);
    let all: Vec<String> = cluster.addresses().iter().map(ToString::to_string).collect();
    let mut server = TestTally::stopped(TALLY);
    server.set("TALLY_APPLICATIONS_URL", &format!("redis-cluster://{}", all.join(",")));
    server.restart();
    let told = server.run(&["doctor"]);
    for address in all {
        let words = format!("ok    {address}: maxmemory-policy = noeviction");
        assert!(told.expect(0).contains(&words), "no {words:?} in {}", told.stdout);
    }
    server.terminate();
    let in_store = TestTally::start(TALLY);
    assert!(in_store.run(&["doctor"]).expect(0).contains("ok    applications: in the store"));
}
