//! What servers stand on: a copy of a database on the Redis of the original, servers with another Redis, and a Redis whose name leads
//! elsewhere. No two orders are ever served for one store.

use super::world::*;
use serde_json::{Value, json};
use std::net::SocketAddr;
use tally_testkit::redis::{RedisKind, ScratchRedis};
use tally_testkit::{Client, DatabaseKind, Proxy, Request, ScratchDatabase, TestTally};

/// A server with a short lease that keeps its address.
fn server(database: &str, redis: SocketAddr) -> TestTally {
    let mut server = TestTally::stopped(TALLY);
    for (name, value) in [
        ("STORE_URL", database),
        ("RANKING_URL", &format!("redis://{redis}")),
        ("RANKING_TIMEOUT", "1s"),
        ("SECRET", SECRET),
        ("STORE_LEASE", "2s"),
    ] {
        server.set(&format!("TALLY_{name}"), value);
    }
    for text in
        ["the start waits", "ranks are", "read changes of other servers", "`store.lease`", "stored changes"]
    {
        server.allow(text);
    }
    server
}

/// Waits until a server that starts says why it waits.
fn wait_reason(server: &TestTally, text: &str) -> Value {
    let mut client = server.client();
    let mut seen = json!(null);
    wait_until(&format!("it waits because {text:?}"), || {
        let answer = client.get("/readyz");
        seen = answer.json();
        answer.status == 503 && seen["reason"].as_str().is_some_and(|reason| reason.contains(text))
    });
    seen
}

fn ranks(client: &mut Client) -> Vec<String> {
    names(&page(client, "b"))
}

/// Copies a database, as a restored backup is one.
fn copy(database: &ScratchDatabase, url: &str) -> String {
    let target = database.create_database();
    let name = |url: &str| url.rsplit('/').next().expect("a name").to_owned();
    let (from, to) = (name(url), name(&target));
    let tables = database
        .sql(&format!("SELECT table_name FROM information_schema.tables WHERE table_schema = '{from}'"));
    let one = |table: &str| {
        format!(
            "CREATE TABLE {to}.`{table}` LIKE {from}.`{table}`; INSERT INTO {to}.`{table}` SELECT * FROM {from}.`{table}`;"
        )
    };
    database.sql(&tables.lines().map(one).collect::<String>());
    target
}

#[test]
fn a_copy_of_a_database_stays_out_of_the_redis_of_the_original() {
    let database = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let redis = ScratchRedis::start(RedisKind::Redis7, &[]);
    let url = database.create_database();
    let mut original = server(&url, redis.address());
    original.restart();
    let mut client = original.client();
    put(&mut client, "b", &json!({})).expect(201);
    submit(&mut client, "b", "ann", 1).expect(200);
    submit(&mut client, "b", "bob", 2).expect(200);
    let copied = copy(database, &url);
    // The copy is older than the lease, as that of a backup is.
    let name = copied.rsplit('/').next().expect("a name");
    database.sql(&format!("UPDATE {name}.leases SET expires_at = 1"));
    let mut other = server(&copied, redis.address());
    other.launch();
    wait_reason(&other, "of which this one is a copy");
    // The original goes on, and the copy has changed nothing.
    submit(&mut client, "b", "cid", 3).expect(200);
    assert_eq!(ranks(&mut client), ["cid", "bob", "ann"]);
    // When it has ended for good, the copy has its own ranks.
    original.kill9();
    other.wait_ready();
    assert_eq!(ranks(&mut other.client()), ["bob", "ann"]);
    // And the original waits now.
    original.launch();
    wait_reason(&original, "of which this one is a copy");
    other.terminate();
    original.wait_ready();
    assert_eq!(ranks(&mut original.client()), ["cid", "bob", "ann"]);
}

#[test]
fn a_server_with_another_redis_waits_until_the_others_have_ended() {
    let database = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let [first, second] = [(); 2].map(|()| ScratchRedis::start(RedisKind::Redis7, &[]));
    let url = database.create_database();
    let mut old = server(&url, first.address());
    old.restart();
    let mut client = old.client();
    put(&mut client, "b", &json!({})).expect(201);
    submit(&mut client, "b", "ann", 1).expect(200);
    let mut new = server(&url, second.address());
    new.launch();
    wait_reason(&new, "in another Redis");
    submit(&mut client, "b", "bob", 2).expect(200);
    assert_eq!(ranks(&mut client), ["bob", "ann"]);
    // One beside it on the same Redis starts.
    let mut beside = server(&url, first.address());
    beside.restart();
    submit(&mut beside.client(), "b", "cid", 3).expect(200);
    old.terminate();
    assert_eq!(new.client().get("/readyz").status, 503, "one is still there");
    assert_eq!(ranks(&mut beside.client()), ["cid", "bob", "ann"]);
    beside.terminate();
    new.wait_ready();
    assert_eq!(ranks(&mut new.client()), ["cid", "bob", "ann"]);
    // The first Redis has an older order of the same store. Nobody serves it.
    submit(&mut new.client(), "b", "dan", 4).expect(200);
    new.kill9();
    old.restart();
    assert_eq!(ranks(&mut old.client()), ["dan", "cid", "bob", "ann"]);
}

/// The name of the Redis leads to another one, for one server first and then for the other, and back.
#[test]
fn servers_that_reach_different_redis_serve_one_order_or_none() {
    let database = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let places = [(); 2].map(|()| ScratchRedis::start(RedisKind::Redis7, &[]));
    let proxies = [(); 2].map(|()| Proxy::start(places[0].address()));
    let url = database.create_database();
    let mut servers = [0, 1].map(|at| server(&url, proxies[at].address()));
    servers.iter_mut().for_each(|server| drop(server.restart()));
    let mut clients = servers.each_ref().map(TestTally::client);
    put(&mut clients[0], "b", &json!({})).expect(201);
    let mut wanted = Vec::new();
    for (round, place) in [1, 0, 1].into_iter().enumerate() {
        for (at, proxy) in proxies.iter().enumerate() {
            let (one, other) = (at, 1 - at);
            proxy.retarget(places[place].address());
            proxy.cut();
            // It is stored wherever ranks are.
            let name = format!("p{round}{at}");
            let score = i64::try_from(10 * round + at).expect("it is small");
            submit(&mut clients[one], "b", &name, score).expect(200);
            wanted.insert(0, name);
            if at == 0 {
                let refused = |client: &mut Client| client.get("/v1/leaderboards/b/scores").status == 503;
                wait_until("the other one refuses ranks", || refused(&mut clients[other]));
            }
            wait_until("the one that has moved has all", || ranks(&mut clients[one]) == wanted);
        }
        wait_until("both serve one order", || ranks(&mut clients[0]) == ranks(&mut clients[1]));
    }
    let stop = Request::new("GET", "/v1/status");
    assert_eq!(send(&mut servers[0].local(), &stop).status, 200);
}
