//! Signals: while it loads, and while it works.

use super::{TALLY, add, fill_big, score, sum_board};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use tally_testkit::command::command;
use tally_testkit::{SetAtEnd, TestTally, wait_until};

/// So often it starts, and more often if it was not seen loading.
const STARTS: usize = 6;
const STARTS_MAX: usize = 60;

#[test]
fn sigterm_while_loading_is_an_end_in_peace() {
    let mut server = TestTally::start(TALLY);
    let mut client = server.client();
    fill_big(&mut client);
    server.terminate();
    let (mut starts, mut loading) = (0, 0);
    // On a busy machine it may have loaded before it is asked.
    while starts < STARTS || loading == 0 {
        server.launch();
        loading += u32::from(server.client().get("/readyz").status == 503);
        server.signal(["TERM", "INT"][starts % 2]);
        server.wait_end();
        assert!(!server.data().join("server.json").exists(), "what is not running is not announced");
        starts += 1;
        assert!(starts < STARTS_MAX, "it was never seen loading");
    }
    server.restart();
    let page = server.client().get("/v1/leaderboards/big/scores?limit=1").expect(200);
    assert_eq!(page["total"], 20_000);
}

/// A process that is announced as running can be ended in peace: the announcement comes when it handles signals, not before.
#[test]
fn sigterm_is_heard_from_the_first_moment() {
    for _ in 0..5 {
        let data = tempfile::TempDir::with_prefix("tally-signal-").expect("it can be made");
        let mut serve = command(TALLY, &["serve", "--http", "127.0.0.1:0", "--resp", "off"]);
        serve.arg("--data").arg(data.path()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut server = serve.spawn().expect("the binary starts");
        // A shell polls and signals without a pause between.
        let look = "until [ -e \"$0\" ]; do kill -0 $1 || exit 1; done; kill -TERM $1";
        let announced = data.path().join("server.json");
        let sent =
            Command::new("sh").args(["-c", look]).arg(&announced).arg(server.id().to_string()).status();
        assert!(sent.expect("there is a shell").success(), "it was never announced");
        let status = server.wait().expect("it ends");
        assert_eq!(status.code(), Some(0), "{status}");
        assert!(!announced.exists(), "what is not running is not announced");
    }
}

#[test]
fn sigint_drains_like_sigterm() {
    let mut server = TestTally::start(TALLY);
    sum_board(&server);
    let (acknowledged, unsure) = (AtomicI64::new(0), AtomicI64::new(0));
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _end = SetAtEnd::new(&over);
        for _ in 0..4 {
            let mut client = server.client();
            let (acknowledged, unsure, over) = (&acknowledged, &unsure, &over);
            scope.spawn(move || {
                // Until the server refuses, unless the test has failed before.
                while !over.load(Ordering::Relaxed) {
                    match client.try_send(&add("p", 1)) {
                        Ok(answer) if answer.status == 200 => acknowledged.fetch_add(1, Ordering::Relaxed),
                        Ok(answer) => return answer.refused(503, "draining"),
                        Err(_) => {
                            unsure.fetch_add(1, Ordering::Relaxed);
                            return;
                        }
                    };
                }
            });
        }
        wait_until("scores are acknowledged", || acknowledged.load(Ordering::Relaxed) >= 50);
        server.signal("INT");
        server.wait_end();
    });
    assert!(!server.data().join("server.json").exists(), "what is not running is not announced");
    server.restart();
    let (least, unsure) = (acknowledged.into_inner(), unsure.into_inner());
    let now = score(&mut server.client(), "p");
    assert!((least..=least + unsure).contains(&now), "{now} is not from {least} to {least} + {unsure}");
}

/// A server may wait for its database for minutes. Whatever renews its files does not know that.
#[test]
fn sighup_does_not_end_a_server_that_waits_for_its_store() {
    // A database that accepts connections and says nothing.
    let database = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let url = format!("mysql://root@{}/tally", database.local_addr().expect("it has an address"));
    let data = tempfile::TempDir::with_prefix("tally-signal-").expect("it can be made");
    let mut serve = command(TALLY, &["serve", "--http", "127.0.0.1:0", "--resp", "off"]);
    serve.env("TALLY_STORE_URL", url).arg("--data").arg(data.path());
    let mut server = serve.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the binary starts");
    let _asked = database.accept().expect("it opens its store");
    let sent = Command::new("kill").args(["-s", "HUP", &server.id().to_string()]).status();
    assert!(sent.expect("there is a `kill`").success());
    // The log ends with the process.
    let mut log = BufReader::new(server.stderr.take().expect("it is piped")).lines().map_while(Result::ok);
    let handled = log.any(|line| line.contains("files were opened again"));
    server.kill().expect("it can be killed");
    server.wait().expect("it ends");
    assert!(handled, "the signal ended it");
}
