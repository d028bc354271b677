//! Servers side by side on one database, or several, and one Redis, and requests to them.

pub(crate) use crate::TALLY;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
pub(crate) use tally_testkit::GIVE_UP;
use tally_testkit::redis::{RedisKind, ScratchRedis};
pub(crate) use tally_testkit::wait_until;
use tally_testkit::{Client, DatabaseKind, Request, ScratchDatabase, TestTally};

pub(crate) const SECRET: &str = "0909090909090909090909090909090909090909090909090909090909090909";
pub(crate) const POLL_PAUSE: Duration = Duration::from_millis(10);

/// Servers side by side. They end before their Redis does.
pub(crate) struct Servers {
    pub(crate) all: Vec<TestTally>,
    pub(crate) redis: ScratchRedis,
}

impl Servers {
    pub(crate) fn start(count: usize) -> Self {
        Self::over(1, count)
    }

    /// The same over so many databases.
    pub(crate) fn over(databases: usize, count: usize) -> Self {
        let redis = ScratchRedis::start(RedisKind::Redis7, &[]);
        Self { all: start_over(databases, &format!("redis://{}", redis.address()), count), redis }
    }

    pub(crate) fn clients(&self) -> Vec<Client> {
        clients(&self.all)
    }
}

/// Servers side by side on one new database, with loaded rankings.
pub(crate) fn start_on(ranking: &str, count: usize) -> Vec<TestTally> {
    start_over(1, ranking, count)
}

fn start_over(databases: usize, ranking: &str, count: usize) -> Vec<TestTally> {
    let server = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let urls: Vec<String> = (0..databases).map(|_| server.create_database()).collect();
    start_at(&urls.join(","), ranking, count)
}

/// The same on these databases. A Redis that is there answers in time, also on a busy machine.
pub(crate) fn start_at(url: &str, ranking: &str, count: usize) -> Vec<TestTally> {
    start_waiting(url, (ranking, "3s"), count)
}

/// The same with a time for the answers of the Redis.
pub(crate) fn start_waiting(url: &str, (ranking, timeout): (&str, &str), count: usize) -> Vec<TestTally> {
    let one = |_| {
        let mut server = TestTally::stopped(TALLY);
        let settings =
            [("STORE_URL", url), ("RANKING_URL", ranking), ("RANKING_TIMEOUT", timeout), ("SECRET", SECRET)];
        for (name, value) in settings {
            server.set(&format!("TALLY_{name}"), value);
        }
        // A server that was frozen or has lost its Redis says the same, and so does one with a request for a board that was
        // deleted and made again a moment ago.
        server.allow_late_reads();
        server.restart();
        server
    };
    (0..count).map(one).collect()
}

pub(crate) fn clients(servers: &[TestTally]) -> Vec<Client> {
    servers.iter().map(TestTally::client).collect()
}

/// Sends until the answer is not "retry later": a server that has read no changes for a second gives that.
pub(crate) fn send(client: &mut Client, request: &Request) -> tally_testkit::Response {
    let started = Instant::now();
    loop {
        let answer = client.send(request);
        if answer.status != 503 {
            return answer;
        }
        assert!(started.elapsed() < GIVE_UP, "{}", answer.text());
        std::thread::sleep(POLL_PAUSE);
    }
}

pub(crate) fn get(client: &mut Client, target: &str) -> tally_testkit::Response {
    send(client, &Request::new("GET", target))
}

pub(crate) fn put(client: &mut Client, board: &str, body: &Value) -> tally_testkit::Response {
    send(client, &Request::new("PUT", format!("/v1/leaderboards/{board}")).json(body))
}

pub(crate) fn submit(client: &mut Client, board: &str, player: &str, score: i64) -> tally_testkit::Response {
    let body = json!({"player": player, "score": score});
    send(client, &Request::new("POST", format!("/v1/leaderboards/{board}/scores")).json(&body))
}

pub(crate) fn page(client: &mut Client, board: &str) -> Value {
    get(client, &format!("/v1/leaderboards/{board}/scores?limit=1000")).expect(200)
}

/// Names of a page, best first.
pub(crate) fn names(page: &Value) -> Vec<String> {
    let entries = page["entries"].as_array().expect("entries");
    entries.iter().map(|entry| entry["player"].as_str().expect("a name").to_owned()).collect()
}
