//! Each alert fires by its cause: servers that a Prometheus scrapes get a full disk, a dead Redis, a clock that jumps.
//!
//! One Prometheus has all shipped rules, with shorter times and the same thresholds. Causes are made together and then waited
//! for, because each alert takes some evaluations. Not here: thresholds and times, which `promtool` tests with made series
//! (`server/edges/watching.rs`).

mod archives;
mod held;

use crate::TALLY;
use crate::full::{batch, disk::Disk};
use serde_json::json;
use std::collections::BTreeSet;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tally_testkit::audit::metric;
use tally_testkit::{
    DatabaseKind, RedisKind, Reply, Request, RespClient, ScratchDatabase, ScratchPrometheus, ScratchRedis,
    TestTally, WallClock, tls, wait_until,
};

const RULES: &str = include_str!("../../../../../deploy/prometheus/tally.rules.yml");

const JUMP: i64 = 25 * 3_600;
/// Connections of this machine that a server takes, for each protocol.
const CONNECTIONS: usize = 40;

/// Between two requests of a client that is refused.
const BETWEEN: Duration = Duration::from_millis(200);
/// Bytes beside a store on a small disk; the rest is filled by scores.
const BESIDE: usize = 20 << 20;

/// What a backup of MariaDB does for a moment, here for longer.
const COMMITS_WAIT: &str = "BACKUP STAGE START; BACKUP STAGE FLUSH; BACKUP STAGE BLOCK_DDL; \
    BACKUP STAGE BLOCK_COMMIT; SELECT SLEEP(2); BACKUP STAGE END";

/// The servers and their Prometheus.
struct World {
    prometheus: ScratchPrometheus,
    fired: BTreeSet<&'static str>,
}

impl World {
    /// Waits until each of these has fired for a server.
    #[track_caller]
    fn fire(&mut self, instance: &str, alerts: &[&'static str]) {
        self.prometheus.wait_firing(alerts, instance);
        self.fired.extend(alerts);
    }
}

/// A server that stays at its addresses, on whose log nothing is expected: its parts are broken.
fn server(settings: &[(&str, &str)]) -> TestTally {
    let mut server = TestTally::stopped(TALLY);
    settings.iter().for_each(|(name, value)| server.set(name, value));
    server.allow(" WARN ");
    server.allow(" ERROR ");
    server.restart();
    server.stay();
    server
}

/// A server with a file on a small disk, if this account may make one, and a certificate.
fn on_a_file(disk: Option<&Disk>, folder: &tempfile::TempDir) -> TestTally {
    let files = ["certificate", "key"].map(|name| folder.path().join(name));
    for (file, from) in files.iter().zip(["server.pem", "server-key.pem"]) {
        std::fs::copy(tls::file(from), file).expect("a file can be copied");
    }
    let store = disk.map_or_else(String::new, |disk| format!("sqlite:{}", disk.path("tally.db").display()));
    let [certificate, key] = files.map(|file| file.display().to_string());
    server(&[
        ("TALLY_STORE_URL", &store),
        ("TALLY_TLS_CERTIFICATE", &certificate),
        ("TALLY_TLS_KEY", &key),
        ("TALLY_CONNECTIONS_LOOPBACK_MAX", &CONNECTIONS.to_string()),
        ("TALLY_WEBHOOKS_PRIVATE", "true"),
    ])
}

/// Alerts of a server with a file.
fn file_is_in_trouble(world: &mut World, tally: &TestTally, folder: &tempfile::TempDir, disk: Option<&Disk>) {
    let mut client = tally.local();
    // Its certificate has ended, and nothing listens where events go.
    for (name, from) in [("certificate", "ended.pem"), ("key", "ended-key.pem")] {
        std::fs::copy(tls::file(from), folder.path().join(name)).expect("a file can be copied");
    }
    tally.signal("HUP");
    let hook = json!({"url": "http://127.0.0.1:1/", "events": ["contest"]});
    let hook = client.post("/v1/webhooks", &hook).expect(201)["id"].as_str().expect("an id").to_owned();
    client.post("/v1/contests", &json!({"id": "c", "title": "C"})).expect(201);
    let crowd: Vec<TcpStream> =
        (0..2 * CONNECTIONS).filter_map(|_| TcpStream::connect(tally.resp()).ok()).collect();
    world.fire("file", &["TallyCertificateEnds", "TallyWebhooksFail", "TallyConnectionsRefused"]);
    drop(crowd);
    let disable = Request::new("PATCH", format!("/v1/webhooks/{hook}")).json(&json!({"enabled": false}));
    client.send(&disable).expect(200);
    world.fire("file", &["TallyWebhookDisabled"]);
    let Some(disk) = disk else {
        // Only root may make a disk: elsewhere these have no cause.
        world.fired.extend(["TallyDiskFull", "TallyFlushFails"]);
        return;
    };
    std::fs::write(disk.path("beside"), vec![0; BESIDE]).expect("it fits");
    client.put("/v1/leaderboards/b", &json!({})).expect(201);
    let mut number = 0;
    while batch(&mut client, number).0 == 200 {
        number += 1;
    }
    // The journal grows by more than is left now.
    drop(std::fs::write(disk.path("rest"), vec![0; BESIDE]));
    world.fire("file", &["TallyDiskFull", "TallyFlushFails"]);
}

/// Alerts of a clock.
fn clock_is_wrong(world: &mut World, tally: &mut TestTally, clock: &mut WallClock) {
    let score = json!({"player": "ann", "score": 1});
    tally.local().put("/v1/leaderboards/b", &json!({})).expect(201);
    clock.jump(JUMP);
    world.fire("clock", &["TallyClockInDoubt", "TallyClockOff"]);
    tally.local().post("/v1/leaderboards/b/scores", &score).expect(200);
    tally.terminate();
    clock.jump(-JUMP);
    // Nothing takes its spans.
    tally.set("TALLY_TRACES_URL", "http://127.0.0.1:1");
    tally.set("TALLY_TRACES_RATIO", "1");
    tally.restart();
    world.fire("clock", &["TallyInstantsAhead", "TallySpansDropped"]);
}

/// A database that does not answer, until this is dropped, also by a failure: the clients must end.
struct Frozen<'a>(&'a ScratchDatabase, &'a AtomicBool);

impl<'a> Frozen<'a> {
    fn new(database: &'a ScratchDatabase, thawed: &'a AtomicBool) -> Self {
        database.freeze();
        Self(database, thawed)
    }
}

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        self.1.store(true, Ordering::Relaxed);
        self.0.thaw();
    }
}

/// A queue that is full and requests that wait, while the database does not answer for a moment.
fn database_stands_still(world: &mut World, tally: &TestTally, database: &ScratchDatabase, member: &str) {
    let thawed = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let frozen = Frozen::new(database, &thawed);
        // It is in the batch that the database has, so the full queue does not refuse it.
        scope.spawn(|| drop(RespClient::connect(tally.resp()).call(&["ZADD", "b", "1", "ann"])));
        let mut client = tally.local();
        wait_until("a batch is in flight", || metric(&client.get("/metrics"), "tally_lane_in_flight") > 0.0);
        for thread in 0..6 {
            let (mut client, thawed) = (tally.local(), &thawed);
            scope.spawn(move || {
                // Once more after it was refused, until the queue has been full for long enough; seldom, because what is
                // refused at once is fast.
                while !thawed.load(Ordering::Relaxed) {
                    let score = json!({"player": format!("p{thread}"), "score": 1});
                    client.post("/v1/leaderboards/b/scores", &score);
                    client.post("/v1/deposits", &json!({"to": member, "amount": 1}));
                    std::thread::sleep(BETWEEN);
                }
            });
        }
        world.fire("database", &["TallyBacklog", "TallyRefusesRequests"]);
        drop(frozen);
    });
    world.fire("database", &["TallySubmitsSlow", "TallyRedisProtocolSlow"]);
    // Reads go on, and commits wait.
    std::thread::scope(|scope| {
        let blocking = scope.spawn(|| database.sql(COMMITS_WAIT));
        let mut client = tally.local();
        while !blocking.is_finished() {
            client.post("/v1/deposits", &json!({"to": member, "amount": 1})).expect(201);
        }
    });
    world.fire("database", &["TallyLedgerCommitSlow", "TallySlowTransactions"]);
}

/// Alerts of a database.
fn database_is_in_trouble(
    world: &mut World,
    tally: &mut TestTally,
    database: &mut ScratchDatabase,
    name: &str,
) {
    let mut client = tally.local();
    client.put("/v1/leaderboards/b", &json!({})).expect(201);
    let score = json!({"player": "ann", "score": 1});
    client.post("/v1/leaderboards/b/scores", &score).expect(200);
    let member = client.post("/v1/members", &json!({"login_id": "ann", "name": "Ann"})).expect(201);
    let member = member["id"].as_str().expect("an id").to_owned();
    client.post("/v1/deposits", &json!({"to": member, "amount": 1})).expect(201);
    database_stands_still(world, tally, database, &member);
    // Changed past the server: a setting, a total and a row.
    tally.terminate();
    database.sql("SET GLOBAL innodb_flush_log_at_trx_commit = 2");
    database.sql(&format!("UPDATE {name}.totals SET debits = debits + 1 LIMIT 1"));
    database.sql(&format!("UPDATE {name}.scores SET gone = 7 WHERE player = 'ann'"));
    tally.set("TALLY_STORE_LEASE", "2s");
    tally.restart();
    assert_eq!(tally.local().post("/v1/leaderboards/b/scores", &score).status, 500);
    world.fire("database", &["TallyFinding", "TallyLedgerOutOfBalance", "TallyDamagedRows"]);
    database.keep_copy();
    let mut client = tally.local();
    wait_until("it writes again", || client.put("/v1/leaderboards/lost", &json!({})).status == 201);
    database.put_copy_back();
    world.fire("database", &["TallyCommitsLost"]);
    database.kill();
    let (mut client, other) = (tally.local(), json!({"player": "bob", "score": 1}));
    wait_until("the store fails", || client.post("/v1/leaderboards/b/scores", &other).status == 503);
    (0..20).for_each(|_| drop(client.post("/v1/leaderboards/b/scores", &other)));
    world.fire("database", &["TallyStoreFails", "TallyAnswersFail", "TallyNotReady"]);
}

/// Alerts of a store on several databases, one of which is away.
fn shards_are_away(world: &mut World, tally: &TestTally, shards: &mut [ScratchDatabase; 2]) {
    let mut client = tally.local();
    client.put("/v1/leaderboards/b", &json!({})).expect(201);
    shards[1].kill();
    let submit = |number: usize| json!({"player": format!("p{number}"), "score": 1});
    let answers = (0..20).map(|number| client.post("/v1/leaderboards/b/scores", &submit(number)).status);
    assert_eq!(answers.collect::<BTreeSet<u16>>(), [200, 503].into());
    world.fire("shards", &["TallyShardUnavailable"]);
    shards[0].kill();
    world.fire("shards", &["TallyNotReady"]);
}

/// The memory that a Redis uses.
fn memory(redis: &ScratchRedis) -> u64 {
    let Reply::Bulk(info) = redis.client().call(&["INFO", "memory"]) else { panic!("INFO is text") };
    let info = String::from_utf8(info).expect("INFO is text");
    let used = info.lines().find_map(|line| line.strip_prefix("used_memory:")).expect("it says so");
    used.trim().parse().expect("a number")
}

/// Alerts of both Redis servers.
fn redis_is_in_trouble(
    world: &mut World,
    tally: &TestTally,
    ranks: &mut ScratchRedis,
    others: &mut ScratchRedis,
) {
    let mut client = tally.local();
    let full = (memory(ranks) * 102 / 100).to_string();
    assert_eq!(ranks.client().call(&["CONFIG", "SET", "maxmemory", &full]), Reply::Simple(b"OK".to_vec()));
    world.fire("redis", &["TallyRedisMemory"]);
    client.post("/v1/contests", &json!({"id": "c", "title": "C", "starts_at": soon()})).expect(201);
    client.post("/v1/contests/c/open", &json!({})).expect(200);
    ranks.kill();
    others.kill();
    world.fire("redis", &["TallyRankingUnavailable", "TallyApplicationsUnavailable", "TallyContestsStuck"]);
}

/// In a moment, before which a busy machine has sent two requests.
fn soon() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("it is after 1970");
    let micros = i64::try_from(now.as_micros()).expect("it is before 290000") + 10_000_000;
    tally_wire::time::format(tally_rules::Micros(micros))
}

/// Only the other file was backed up, and the disk of this machine may be full. All else is well, also where a busy machine was
/// late with a scrape.
fn is_well(world: &mut World, has_disk: bool) {
    let known = ["TallyBackupOld", "TallyDiskFull"];
    world.fire("clock", &["TallyBackupOld"]);
    wait_until("no other alert fires", || {
        world.prometheus.firing().iter().all(|alert| known.contains(&alert.as_str()))
    });
    for alert in known.into_iter().take(1 + usize::from(has_disk)) {
        let of_file = format!(r#"count(ALERTS{{instance="file",alertname="{alert}"}})"#);
        assert_eq!(world.prometheus.value(&of_file), None, "{alert}");
    }
}

#[test]
fn every_alert_is_fired_by_its_cause() {
    let (disk, folder) = (Disk::of(32), tempfile::tempdir().expect("a temporary directory can be made"));
    let mut database = ScratchDatabase::start(DatabaseKind::MariaDb10);
    let (url, shared) = (database.create_database(), ScratchDatabase::shared(DatabaseKind::MariaDb10));
    let (mut ranks, mut others) =
        (ScratchRedis::start(RedisKind::Redis7, &[]), ScratchRedis::start(RedisKind::Redis7, &[]));
    let [ranks_url, others_url] = [&ranks, &others].map(|redis| format!("redis://{}", redis.address()));
    let mut clock = WallClock::at_present();
    let on_file = on_a_file(disk.as_ref(), &folder);
    let mut on_clock = TestTally::stopped(TALLY);
    clock.set_for(&mut on_clock);
    on_clock.set("TALLY_STORE_URL", "");
    on_clock.allow(" WARN ");
    on_clock.allow(" ERROR ");
    on_clock.restart();
    on_clock.stay();
    let mut on_database = server(&[
        ("TALLY_STORE_URL", &url),
        ("TALLY_RANKING_URL", "memory"),
        ("TALLY_STORE_LEASE", "60s"),
        ("TALLY_STORE_LANES", "1"),
        ("TALLY_LANE_QUEUE_REQUESTS_MAX", "2"),
    ]);
    let on_redis = server(&[
        ("TALLY_STORE_URL", &shared.create_database()),
        ("TALLY_RANKING_URL", &ranks_url),
        ("TALLY_APPLICATIONS_URL", &others_url),
        ("TALLY_RANKING_TIMEOUT", "300ms"),
        ("TALLY_APPLICATIONS_TIMEOUT", "300ms"),
    ]);
    on_file.run(&["backup", folder.path().join("copy").to_str().expect("a path of text")]).expect(0);
    let held = held::with_little_room();
    let (mut unread, log) = held::with_a_log_that_nobody_reads();
    let (archived, mut far_clock) = archives::with_a_past_month();
    let mut shards = [(); 2].map(|()| ScratchDatabase::start(DatabaseKind::MariaDb10));
    let urls = shards.each_ref().map(ScratchDatabase::create_database);
    let on_shards = server(&[("TALLY_STORE_URL", &urls.join(",")), ("TALLY_RANKING_URL", "memory")]);
    let targets = [
        ("archives", archived.address()),
        ("held", held.address()),
        ("log", unread.address()),
        ("shards", on_shards.address()),
        ("file", on_file.address()),
        ("clock", on_clock.address()),
        ("database", on_database.address()),
        ("redis", on_redis.address()),
    ];
    let prometheus = ScratchPrometheus::start(RULES, &targets);
    let mut world = World { prometheus, fired: BTreeSet::new() };
    world.prometheus.wait_scraped(targets.len());
    is_well(&mut world, disk.is_some());

    // A process followed the store once.
    let marker = std::fs::File::create(on_clock.data().join("tally.db.followed")).expect("it can be made");
    let before = std::time::SystemTime::now() - Duration::from_secs(120);
    marker.set_modified(before).expect("it has a time");
    world.fire("clock", &["TallyFollowBehind"]);

    file_is_in_trouble(&mut world, &on_file, &folder, disk.as_ref());
    archives::cannot_be_written(&mut world, &archived, &mut far_clock);
    held::readers_hold_it(&mut world, &held);
    held::its_disk_is_slow(&mut world, &held);
    held::nobody_reads_its_log(&mut world, &mut unread);
    drop((unread, log));
    shards_are_away(&mut world, &on_shards, &mut shards);
    clock_is_wrong(&mut world, &mut on_clock, &mut clock);
    redis_is_in_trouble(&mut world, &on_redis, &mut ranks, &mut others);
    let name = url.rsplit('/').next().expect("it ends in its name");
    database_is_in_trouble(&mut world, &mut on_database, &mut database, name);
    world.fire("archives", &["TallyExpiryBehind"]);
    let all = [archived, on_file, on_clock, on_database, on_redis, held, on_shards];
    all.into_iter().for_each(|mut server| server.kill9());
    world.fire("file|clock|database|redis", &["TallyServerDown"]);
    world.fire(".*", &["TallyAbsent"]);

    let rules: BTreeSet<&str> =
        RULES.lines().filter_map(|line| line.trim_start().strip_prefix("- alert: ")).collect();
    assert_eq!(rules, world.fired);
}
