//! Causes that a client holds for a while: it does not read what it asked for, or reads one thing for long.

use super::{World, server};
use crate::TALLY;
use serde_json::json;
use std::io::PipeReader;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use tally_testkit::audit::metric;
use tally_testkit::{
    Client, EventStream, OwnLogServer, Reply, Request, RespClient, SetAtEnd, TableReader, TestTally,
    wait_until,
};

/// More than the alert allows.
const STREAMS: usize = 24;
/// Bytes of a player's name: what a connection holds for a reader is full soon.
const NAME: usize = 120;
const ROWS: usize = 1_000;
/// More than a cache of one entry keeps.
const MEMBERS: usize = 8;
/// Of the room for changes that are not in the tables; writers wait from 0.5 on.
const USED: f64 = 0.9;

/// More than the five seconds of the alert.
const SYNC_MICROS: u32 = 12_000_000;

/// A server with little room beside its tables.
pub(super) fn with_little_room() -> TestTally {
    server(&[
        ("TALLY_STORE_URL", ""),
        ("TALLY_STORE_WAL_MIB", "1"),
        ("TALLY_STORE_MEMTABLE_MIB", "8"),
        ("TALLY_MEMBERS_CACHE_ENTRIES", "1"),
    ])
}

/// A server whose log nobody reads, and the end of the pipe that keeps it open.
pub(super) fn with_a_log_that_nobody_reads() -> (OwnLogServer, PipeReader) {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    (OwnLogServer::start(TALLY, writer, &[("TALLY_LOG_LEVEL", "debug")]), reader)
}

/// One command with many scores: cheap, so that a writer mostly waits for room.
fn write(client: &mut RespClient, number: usize, score: usize) {
    let score = score.to_string();
    let players: Vec<String> = (0..ROWS).map(|row| format!("{:0NAME$}", number * ROWS + row)).collect();
    let mut command = vec!["ZADD", "b"];
    command.extend(players.iter().flat_map(|player| [score.as_str(), player]));
    // Without any room it is refused.
    let answer = client.call(&command);
    assert!(matches!(answer, Reply::Integer(_) | Reply::Error(_)), "{answer:?}");
}

/// A client with the token of a new member.
fn signed_in(tally: &TestTally, number: usize) -> Client {
    let name = format!("member{number}");
    let body = json!({"login_id": name, "name": name, "password": "open sesame"});
    tally.local().post("/v1/members", &body).expect(201);
    let body = json!({"loginId": name, "password": "open sesame"});
    let token = tally.client().post("/auth/signin", &body).expect(200)["data"]["accessToken"].clone();
    tally.client().with_key(token.as_str().expect("a text"))
}

/// Alerts of a server that others read.
pub(super) fn readers_hold_it(world: &mut World, tally: &TestTally) {
    let mut client = tally.local();
    client.put("/v1/leaderboards/b", &json!({})).expect(201);
    let watch =
        || EventStream::open_narrow(tally.address(), &Request::new("GET", "/v1/leaderboards/b/events"));
    let asleep: Vec<EventStream> = (0..STREAMS).map(|_| watch().expect("a stream opens")).collect();
    // The log of the tables is not emptied while it reads, so at its bound changes wait in the journal.
    let reader = TableReader::of(tally);
    let mut members: Vec<Client> = (0..MEMBERS).map(|number| signed_in(tally, number)).collect();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let end = SetAtEnd::new(&over);
        let over = &over;
        scope.spawn(move || {
            let (mut client, mut writer) = (tally.local(), RespClient::connect(tally.resp()));
            writer.call(&["LB.DURABILITY", "relaxed"]);
            let (mut number, mut score) = (0, 0);
            while !over.load(Ordering::Relaxed) {
                // New players until little room is left, then the same again: that needs no more room.
                let used = metric(&client.get("/metrics"), "tally_store_unflushed_ratio");
                number += usize::from(used < USED);
                score += 1;
                write(&mut writer, number, score);
            }
        });
        scope.spawn(move || {
            while !over.load(Ordering::Relaxed) {
                members.iter_mut().for_each(|member| drop(member.get("/v1/me").expect(200)));
            }
        });
        let alerts = [
            "TallyEventStreamsClosed",
            "TallyLogGrows",
            "TallyCacheSeldomHits",
            "TallyFlushBehind",
            "TallyWritersSlowed",
        ];
        world.fire("held", &alerts);
        drop(end);
    });
    drop((asleep, reader));
}

/// A process that delays each sync of a server by longer than the alert allows, until it is dropped.
struct SlowDisk(Child);

impl SlowDisk {
    fn under(tally: &TestTally) -> Self {
        let syncs = "fsync,fdatasync,sync_file_range";
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={syncs}")]);
        strace.args(["-e", &format!("inject={syncs}:delay_enter={SYNC_MICROS}")]);
        strace.args(["-p", &tally.pid().to_string()]);
        let slow = Self(strace.spawn().expect("strace is there: `cargo xtask packages` installs it"));
        // What is written before that is synced at once, and then nothing waits for the disk.
        wait_until("strace has every thread", || is_traced(tally.pid()));
        slow
    }
}

/// Whether another process traces every thread of a process.
fn is_traced(pid: u32) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("the process runs");
    tasks.flatten().all(|task| {
        let status = std::fs::read_to_string(task.path().join("status"));
        // A thread may end meanwhile.
        status.is_ok_and(|status| !status.contains("TracerPid:\t0\n"))
    })
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        // It lets go of the server when it is asked to end; killed, it would leave it stopped.
        let asked = Command::new("kill").arg(self.0.id().to_string()).status();
        assert!(asked.expect("there is a `kill`").success());
        self.0.wait().expect("it ends");
    }
}

/// Alerts of a disk that takes long to sync.
pub(super) fn its_disk_is_slow(world: &mut World, tally: &TestTally) {
    let mut client = RespClient::connect(tally.resp());
    assert_eq!(client.call(&["LB.DURABILITY", "relaxed"]), Reply::Simple(b"OK".to_vec()));
    let slow = SlowDisk::under(tally);
    let answer = client.call(&["ZADD", "b", "1", "relaxed"]);
    assert_eq!(answer, Reply::Integer(1));
    world.fire("held", &["TallyDiskBehind"]);
    drop(slow);
}

/// Alerts of a log that nobody reads.
pub(super) fn nobody_reads_its_log(world: &mut World, tally: &mut OwnLogServer) {
    tally.log_much();
    world.fire("log", &["TallyLogLinesDropped"]);
}
