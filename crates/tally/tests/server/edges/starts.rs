//! Starts that wait for a database, ends that tell balancers first, and settings that SIGHUP reads again.
//!
//! Not here: a database that is away from a server that is ready (`faults`), and signals while it loads (`ending`).

use super::{TALLY, key};
use serde_json::json;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;
use tally_testkit::command::run_set;
use tally_testkit::redis::{RedisKind, ScratchRedis};
use tally_testkit::{Client, Cut, DatabaseKind, Proxy, Request, ScratchDatabase, TestTally, wait_until};

/// A server whose database is behind a proxy, and which keeps its addresses.
fn behind_a_proxy() -> (Proxy, TestTally, SocketAddr) {
    let database = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let proxy = Proxy::start(database.address());
    let url = database.create_database();
    let url = url.replace(&database.address().to_string(), &proxy.address().to_string());
    let mut server = TestTally::start_set(TALLY, &[("TALLY_STORE_URL", url.as_str())]);
    server.client().put("/v1/leaderboards/b", &json!({})).expect(201);
    server.client().post("/v1/leaderboards/b/scores", &json!({"player": "ann", "score": 1})).expect(200);
    server.stay();
    server.allow("it is tried again until it works");
    let address = server.address();
    server.terminate();
    (proxy, server, address)
}

fn has_its_score(server: &TestTally) {
    let page = server.client().get("/v1/leaderboards/b/scores").expect(200);
    assert_eq!((&page["total"], &page["entries"][0]["player"]), (&json!(1), &json!("ann")));
}

#[test]
fn a_start_waits_for_a_database_that_is_away() {
    let (proxy, mut server, address) = behind_a_proxy();
    proxy.refuse();
    std::thread::scope(|scope| {
        let starting = scope.spawn(|| server.restart());
        let mut seen = json!(null);
        wait_until("it says that it waits", || {
            let asked = Client::new(address).try_send(&Request::new("GET", "/readyz"));
            let Ok(answer) = asked else { return false };
            seen = answer.json();
            answer.status == 503 && seen["reason"] == "store"
        });
        assert_eq!(seen["phase"], "opening");
        assert_eq!(Client::new(address).get("/healthz").status, 200);
        Client::new(address).get("/v1/leaderboards").refused(503, "loading");
        assert!(!starting.is_finished());
        proxy.pass();
        starting.join().expect("it is ready");
    });
    server.wait_logged("open the store");
    has_its_score(&server);
}

#[test]
fn a_database_that_goes_away_while_it_loads_is_waited_for() {
    let (proxy, mut server, _) = behind_a_proxy();
    proxy.cut_off_at(b"FROM bans", Cut::Before);
    server.launch();
    server.wait_logged("load: ");
    assert_eq!(server.client().get("/readyz").status, 503);
    proxy.pass();
    server.wait_ready();
    has_its_score(&server);
}

#[test]
fn what_only_a_person_can_change_ends_a_start() {
    let database = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    database.sql("CREATE USER IF NOT EXISTS 'locked_out'@'%' IDENTIFIED BY 'right'");
    let address = database.address();
    for (url, why) in [
        (format!("mysql://locked_out:wrong@{address}/mysql"), "denied"),
        (format!("mysql://locked_out:right@{address}/mysql"), "denied"),
        (format!("mysql://root@{address}/no_such_database"), "no_such_database"),
    ] {
        let mut server = TestTally::stopped(TALLY);
        server.set("TALLY_STORE_URL", &url);
        let ended = server.run(&["serve", "--http", "127.0.0.1:0", "--resp", "off"]);
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        assert!(ended.stderr.contains(why), "{}", ended.stderr);
        assert!(!ended.stderr.contains("wrong@") && !ended.stderr.contains("right@"), "{}", ended.stderr);
    }
}

#[test]
fn a_port_in_use_names_its_holder_and_its_setting() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let taken = listener.local_addr().map(|at| at.to_string()).expect("an address");
    let free = "127.0.0.1:0";
    for (http, resp, admin, setting) in [
        (taken.as_str(), "off", "off", "http.listen"),
        (free, taken.as_str(), "off", "resp.listen"),
        (free, "off", taken.as_str(), "admin.listen"),
    ] {
        let other = TestTally::stopped(TALLY);
        let serve = ["serve", "--http", http, "--resp", resp];
        let refused = run_set(TALLY, other.data(), &serve, &[("TALLY_ADMIN_LISTEN", admin)]);
        refused.expect(1);
        let last = refused.stderr.lines().last().expect("it says why");
        let holder = format!("(os error 98), by process {} (", std::process::id());
        for words in [&format!("listen on {taken}: "), &holder, &format!("`{setting}` sets another address")]
        {
            assert!(last.contains(words), "no {words:?} in {last}");
        }
    }
}

#[test]
fn balancers_hear_of_the_end_before_requests_are_refused() {
    let mut server = TestTally::start_set(TALLY, &[("TALLY_HTTP_DRAIN_DELAY", "600s")]);
    let mut client = server.client();
    client.put("/v1/leaderboards/b", &json!({})).expect(201);
    assert_eq!(client.get("/readyz").status, 200);
    server.signal_end();
    wait_until("balancers are told", || client.get("/readyz").status == 503);
    assert_eq!(client.get("/readyz").json()["phase"], "draining");
    // On the same connection, and on a new one.
    for mut client in [client, server.client()] {
        let score = json!({"player": "ann", "score": 1});
        client.post("/v1/leaderboards/b/scores", &score).expect(200);
    }
    // Who is in a hurry signals again.
    server.signal_end();
    server.wait_end();
    server.set("TALLY_HTTP_DRAIN_DELAY", "off");
    server.restart();
    assert_eq!(server.client().get("/v1/leaderboards/b/scores").expect(200)["total"], 1);
}

#[test]
fn sighup_reads_the_level_of_the_log_again_and_names_what_it_does_not_read() {
    let mut server = TestTally::stopped(TALLY);
    let file = server.data().join("tally.toml");
    let write = |level: &str, boards: u32| {
        let text = format!("[log]\nlevel = \"{level}\"\n[limits]\nboards = {boards}\n");
        std::fs::write(&file, text).expect("it is written");
    };
    write("info", 50);
    server.add_arg("--config");
    server.add_arg(file.to_str().expect("UTF-8"));
    server.allow("only a restart reads the changed settings `limits.boards`");
    server.allow("SIGHUP: setting `log.level` is `loud`");
    server.restart();
    let mut client = server.client();
    client.get("/v1/leaderboards/before").refused(404, "leaderboard_not_found");
    write("debug", 60);
    server.signal("HUP");
    server.wait_logged("only a restart reads the changed settings `limits.boards`");
    client.get("/v1/leaderboards/after").refused(404, "leaderboard_not_found");
    server.wait_logged("/v1/leaderboards/after");
    assert!(!server.log().iter().any(|line| line.contains("/v1/leaderboards/before")), "it was no line then");
    let settings = server.local().get("/v1/status").expect(200)["settings"].clone();
    assert_eq!(
        (&settings["log.level"]["value"], &settings["limits.boards"]["value"]),
        (&json!("debug"), &json!("50"))
    );
    write("loud", 50);
    server.signal("HUP");
    server.wait_logged("SIGHUP: setting `log.level` is `loud`");
    client.get("/v1/leaderboards/still").refused(404, "leaderboard_not_found");
    server.wait_logged("/v1/leaderboards/still");
    // For the start after the test.
    write("info", 50);
}

/// A pause of the database is no end of the service: servers of a store answer reads with what they know.
#[test]
fn a_pause_of_the_database_is_bridged_for_the_time_of_the_setting() {
    let redis = ScratchRedis::start(RedisKind::Redis7, &[]);
    let database = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let proxy = Proxy::start(database.address());
    let url = database.create_database();
    let url = url.replace(&database.address().to_string(), &proxy.address().to_string());
    let ranking = format!("redis://{}", redis.address());
    for (staleness, is_bridged) in [("60s", true), ("3s", false)] {
        let settings = [
            ("TALLY_STORE_URL", url.as_str()),
            ("TALLY_RANKING_URL", ranking.as_str()),
            ("TALLY_SECRET", "0909090909090909090909090909090909090909090909090909090909090909"),
            ("TALLY_STORE_STALENESS_MAX", staleness),
            // Only the age of what it knows ends its answers.
            ("TALLY_STORE_LEASE", "60s"),
        ];
        let mut server = TestTally::start_set(TALLY, &settings);
        server.allow("the store");
        server.allow("read changes of other servers");
        let mut client = server.client().with_key(&key(&mut server.local(), "reader"));
        wait_until("it answers", || client.get("/v1/leaderboards").status == 200);
        proxy.freeze();
        if is_bridged {
            std::thread::sleep(Duration::from_secs(2));
            assert_eq!(client.get("/v1/leaderboards").status, 200);
        } else {
            wait_until("it refuses", || client.get("/v1/leaderboards").status == 503);
        }
        proxy.pass();
        wait_until("it goes on", || client.get("/v1/leaderboards").status == 200);
    }
}
