//! A database and a Redis that speak TLS: reached only so if the settings say so, and only with a trusted certificate.

use crate::TALLY;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tally_testkit::tls::{file, of_database};
use tally_testkit::{
    DatabaseKind, GIVE_UP, RedisKind, ScratchCluster, ScratchDatabase, ScratchRedis, TestTally,
};

const POLL_PAUSE: Duration = Duration::from_millis(20);

fn database(kind: DatabaseKind, certificate: &str) -> ScratchDatabase {
    let args = of_database(certificate);
    ScratchDatabase::start_with(kind, &args.each_ref().map(String::as_str))
}

/// The address of a new database of it, for an account that may not connect without TLS.
fn encrypted_only(server: &ScratchDatabase, options: &str) -> String {
    server.sql(
        "CREATE USER IF NOT EXISTS tally@'%' IDENTIFIED BY 'secret' REQUIRE SSL; GRANT ALL ON *.* TO tally@'%'",
    );
    let url = server.create_database();
    format!("{}?{options}", url.replace("root@", "tally:secret@"))
}

fn ca() -> String {
    format!("ssl-ca={}", file("ca.pem"))
}

/// Scores are stored and ranked, also after a restart.
fn check(store: &str, ranking: &str) {
    let mut server = TestTally::stopped(TALLY);
    for (name, value) in
        [("TALLY_STORE_URL", store), ("TALLY_RANKING_URL", ranking), ("TALLY_STORE_LEASE", "4s")]
    {
        server.set(name, value);
    }
    server.restart();
    let mut client = server.client();
    client.put("/v1/leaderboards/b", &json!({})).expect(201);
    for (player, score) in [("a", 3), ("b", 9), ("c", 5)] {
        client.post("/v1/leaderboards/b/scores", &json!({"player": player, "score": score})).expect(200);
    }
    server.terminate();
    server.restart();
    let (mut client, started) = (server.client(), Instant::now());
    let page = loop {
        let answer = client.get("/v1/leaderboards/b/scores");
        if answer.status != 503 || started.elapsed() > GIVE_UP {
            break answer.expect(200);
        }
        std::thread::sleep(POLL_PAUSE);
    };
    let entries = page["entries"].as_array().expect("entries").iter();
    let seen: Vec<Value> = entries.map(|entry| json!([entry["rank"], entry["player"]])).collect();
    assert_eq!(seen, [json!([1, "b"]), json!([2, "c"]), json!([3, "a"])]);
}

#[test]
fn a_database_and_a_redis_are_reached_encrypted() {
    let redis = ScratchRedis::start_tls(RedisKind::Redis7, "server", &[]);
    let ranking = format!("rediss://{}?{}", redis.address(), ca());
    let server = database(DatabaseKind::MariaDb10, "server");
    check(&encrypted_only(&server, &format!("ssl-mode=verify_identity&{}", ca())), &ranking);
    // Without TLS the same account is refused: so the connections before used it.
    let refused = serve(&encrypted_only(&server, "ssl-mode=disabled"), "memory");
    assert!(refused.contains("Access denied"), "{refused}");
}

#[test]
fn on_mysql_and_on_a_cluster_as_well() {
    let cluster = ScratchCluster::start_tls(RedisKind::Valkey9, "server");
    let nodes: Vec<String> = cluster.tls_addresses().iter().map(SocketAddr::to_string).collect();
    let server = database(DatabaseKind::MySql9, "server");
    let ranking = format!("rediss-cluster://{}?{}", nodes.join(","), ca());
    // An authority alone means TLS.
    check(&encrypted_only(&server, &ca()), &ranking);
}

/// The message of `serve` for an untrusted certificate.
fn serve(store: &str, ranking: &str) -> String {
    let data = TestTally::stopped(TALLY);
    let listen = ["--http", "127.0.0.1:0", "--resp", "off"];
    let done = data.run(&[&["serve", "--store", store, "--ranking", ranking][..], &listen].concat());
    done.expect(1);
    done.stderr
}

#[test]
fn an_untrusted_database_is_not_used() {
    let other = format!("ssl-ca={}", file("other-ca.pem"));
    let named = format!("{}&ssl-name=db.example", ca());
    let good = database(DatabaseKind::MariaDb10, "server");
    for (options, words) in [
        (other.as_str(), "not signed by an authority of `ssl-ca="),
        ("ssl-mode=verify_identity", "authority that browsers know; name the file"),
        (named.as_str(), "not for db.example but for"),
    ] {
        let said = serve(&encrypted_only(&good, options), "memory");
        assert!(said.contains(words), "{options}: {said}");
    }
    let elsewhere = database(DatabaseKind::MariaDb10, "elsewhere");
    let said = serve(&encrypted_only(&elsewhere, &ca()), "memory");
    assert!(said.contains("not for 127.0.0.1 but for") && said.contains("by `ssl-name`"), "{said}");
    check(&encrypted_only(&elsewhere, &format!("{}&ssl-name=elsewhere.example", ca())), "memory");
    let plain = ScratchDatabase::shared(DatabaseKind::MariaDb10).create_database();
    let said = serve(&format!("{plain}?{}", ca()), "memory");
    assert!(said.contains("does not offer TLS"), "{said}");
}

#[test]
fn an_untrusted_redis_is_not_used() {
    let store = ScratchDatabase::shared(DatabaseKind::MariaDb10).create_database();
    let good = ScratchRedis::start_tls(RedisKind::Redis7, "server", &[]);
    let asks = ScratchRedis::start_tls(RedisKind::Redis7, "server", &["--tls-auth-clients", "yes"]);
    let elsewhere = ScratchRedis::start_tls(RedisKind::Redis7, "elsewhere", &[]);
    let plain = ScratchRedis::start(RedisKind::Redis7, &[]);
    let other = format!("?ssl-ca={}", file("other-ca.pem"));
    let ca = format!("?{}", ca());
    for (redis, options, words) in [
        (&good, other.as_str(), "not signed by an authority of `ssl-ca="),
        (&good, "", "authority that browsers know; name the file"),
        (&elsewhere, ca.as_str(), "not for 127.0.0.1 but for"),
        (&plain, ca.as_str(), "does not speak TLS on this port"),
        (&asks, ca.as_str(), "`ssl-cert` and `ssl-key`"),
    ] {
        let said = serve(&store, &format!("rediss://{}{options}", redis.address()));
        assert!(said.contains(words) && said.contains("`ranking.url`"), "{options}: {said}");
    }
    let own = format!("&ssl-cert={}&ssl-key={}", file("server.pem"), file("server-key.pem"));
    check(&store, &format!("rediss://{}{ca}{own}", asks.address()));
}
