//! The page `docs/deploy/two-machines.md` as an operator follows it: its settings, and a new version under load.
//!
//! Not here: kills and cuts (`followers`, `forward`).

use super::followers::{SECRET, database, leads};
use crate::TALLY;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tally_testkit::{Client, Request, SetAtEnd, TestTally, wait_until};

const PAGE: &str = include_str!("../../../../docs/deploy/two-machines.md");
const CLIENTS: usize = 4;

/// A server with the settings of the page, but for its addresses, and for its lease: on a busy machine or disk a renewal takes seconds.
fn of_page(url: &str) -> TestTally {
    let (_, rest) = PAGE.split_once("```toml\n").expect("settings");
    let (settings, _) = rest.split_once("```").expect("their end");
    let mut text = String::new();
    for line in settings.lines() {
        match line.split_once(" = ") {
            Some(("url", _)) => text.push_str(&format!("url = \"{url}\"\n")),
            Some(("listen", _)) => {}
            Some(("lease", _)) => text.push_str("lease = \"10s\"\n"),
            Some(("advertise", url)) => {
                assert!(url.starts_with("\"http://"), "{url}");
                text.push_str("advertise = \"auto\"\n");
            }
            _ => text.push_str(&format!("{line}\n")),
        }
    }
    let mut server = TestTally::stopped(TALLY);
    server.set("TALLY_SECRET", SECRET);
    server.allow("the store has not answered for `store.lease`");
    // A slow database: its client sends the request again, and must not fail twice.
    server.allow("a request met a fault");
    let config = server.data().join("tally.toml");
    std::fs::write(&config, text).expect("it is written");
    server.set("TALLY_CONFIG", config.to_str().expect("UTF-8"));
    server.restart();
    server.stay();
    server
}

/// How far a client is.
#[derive(Default)]
struct Progress {
    answered: AtomicUsize,
    /// The request that it waits for, since when, and the last failure before that.
    waits: Mutex<Option<(String, Instant, String)>>,
}

/// A test that fails says what its clients were doing: the cause of a wait that is never over is there.
struct Told<'a>(&'a [Progress]);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        for (number, client) in self.0.iter().enumerate() {
            let waits = client.waits.lock().unwrap_or_else(PoisonError::into_inner);
            let waits = waits.as_ref().map(|(request, since, failure)| {
                format!("{request} for {:?}; its last failure before: {failure:?}", since.elapsed())
            });
            let answered = client.answered.load(Ordering::SeqCst);
            let waits = waits.unwrap_or_else(|| "nothing".to_owned());
            // A failure here must not hide why the test fails.
            drop(writeln!(
                std::io::stderr(),
                "client {number}: {answered} requests ended, it waits for {waits}"
            ));
        }
    }
}

/// Adds one to the score of a player until the end, at any server; a request that fails is sent once more, to the other one. Returns
/// the number of points, and what requests got that failed twice.
fn play(
    player: &str,
    servers: [SocketAddr; 2],
    (over, progress): (&AtomicBool, &Progress),
) -> (i64, Vec<String>) {
    let (mut points, mut failed, mut last) = (0, Vec::new(), String::new());
    while !over.load(Ordering::SeqCst) {
        let body = json!({"player": player, "score": 1});
        let request = Request::new("POST", "/v1/leaderboards/b/scores").json(&body);
        let key = format!("{player}-{points}-{}", failed.len());
        let request = request.idempotent(&key);
        let first = usize::try_from(points % 2).expect("0 or 1");
        let mut send = |at: usize| {
            let began = Instant::now();
            let waits = (format!("{key} at server {at}"), began, last.clone());
            *progress.waits.lock().expect("no other writes it") = Some(waits);
            let mut client = Client::new(servers[at]).with_patience(Duration::from_secs(30));
            let why = match client.try_send(&request) {
                Ok(answer) if answer.status == 200 => return Ok(()),
                Ok(answer) => format!("{}: {}", answer.status, answer.text()),
                Err(error) => error.to_string(),
            };
            last = format!("{key} at server {at} after {:?}: {why}", began.elapsed());
            Err(last.clone())
        };
        let done = send(first).or_else(|once| {
            std::thread::sleep(Duration::from_millis(100));
            send(1 - first).map_err(|twice| format!("{once}, then {twice}"))
        });
        match done {
            Ok(()) => points += 1,
            Err(twice) => failed.push(twice),
        }
        *progress.waits.lock().expect("no other writes it") = None;
        progress.answered.fetch_add(1, Ordering::SeqCst);
    }
    (points, failed)
}

#[test]
fn a_new_version_is_deployed_without_a_failed_request() {
    let url = database();
    let mut first = of_page(&url);
    first.client().put("/v1/leaderboards/b", &json!({"update": "sum"})).expect(201);
    let mut second = of_page(&url);
    let (servers, over) = ([first.address(), second.address()], AtomicBool::new(false));
    let progress: [Progress; CLIENTS] = Default::default();
    // As long as a balancer needs to notice: until each client has been answered twice more.
    let pause = || {
        let answered = || progress.iter().map(|client| client.answered.load(Ordering::SeqCst));
        let before: Vec<usize> = answered().collect();
        wait_until("all clients go on", || answered().zip(&before).all(|(now, before)| now >= before + 2));
    };
    let played: BTreeMap<String, (i64, Vec<String>)> = std::thread::scope(|scope| {
        let (end, _told) = (SetAtEnd::new(&over), Told(&progress));
        let players = (0..CLIENTS).map(|number| {
            let (player, seen) = (format!("p{number}"), (&over, &progress[number]));
            scope.spawn(move || (player.clone(), play(&player, servers, seen)))
        });
        let players: Vec<_> = players.collect();
        // The follower first, then the leader.
        pause();
        second.terminate();
        second.restart();
        pause();
        first.terminate();
        leads(&second);
        first.restart();
        wait_until("the old leader follows", || {
            first.client().get("/readyz").json()["follows"]["leader"].is_string()
        });
        pause();
        drop(end);
        players.into_iter().map(|player| player.join().expect("it plays")).collect()
    });
    for (player, (points, failed)) in played {
        assert!(failed.is_empty(), "{player}: {failed:?}");
        let page = second.client().get(&format!("/v1/leaderboards/b/players/{player}"));
        assert_eq!(page.expect(200)["score"], points, "{player}: each counts once");
    }
}
