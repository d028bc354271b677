//! `tally backup` beside a server under load, and `tally restore` into another data directory.
//!
//! The copy's ranks are compared with a sort of its own rows by the audit that every test server does at its end.

use crate::TALLY;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tally_testkit::command::run_set;
use tally_testkit::{SetAtEnd, TestTally, audit, wait_until};

const PLAYERS: u64 = 40;
const BOARD: &str = "/v1/leaderboards/b";

/// Every player's score on the board.
fn scores(server: &TestTally) -> BTreeMap<String, u64> {
    let page = server.client().get(&format!("{BOARD}/scores?limit=1000")).expect(200);
    let entries = page["entries"].as_array().expect("entries").iter();
    let score = |entry: &Value| {
        (entry["player"].as_str().expect("a name").to_owned(), entry["score"].as_u64().expect("a score"))
    };
    entries.map(score).collect()
}

/// A server on the copy, with the secret of the first.
fn restored(from: &TestTally, copy: &Path) -> TestTally {
    let mut server = TestTally::stopped(TALLY);
    std::fs::copy(from.data().join("secret"), server.data().join("secret")).expect("the secret is copied");
    server.run(&["restore", copy.to_str().expect("UTF-8")]).expect(0);
    server.restart();
    server
}

#[test]
fn a_backup_under_load_has_every_submit_acknowledged_before_it_began() {
    let server = TestTally::start(TALLY);
    server.client().put(BOARD, &json!({"update": "latest"})).expect(201);
    let stop = AtomicBool::new(false);
    let acknowledged: Vec<AtomicU64> = (0..PLAYERS).map(|_| AtomicU64::new(0)).collect();
    std::thread::scope(|scope| {
        let _end = SetAtEnd::new(&stop);
        for worker in 0..4 {
            let (mut client, stop, acknowledged) = (server.client(), &stop, &acknowledged);
            scope.spawn(move || {
                for score in 1.. {
                    for player in (worker..PLAYERS).step_by(4) {
                        let body = json!({"player": format!("p{player}"), "score": score});
                        client.post(&format!("{BOARD}/scores"), &body).expect(200);
                        acknowledged[usize::try_from(player).expect("small")].store(score, Ordering::SeqCst);
                        if stop.load(Ordering::Relaxed) {
                            return;
                        }
                    }
                }
            });
        }
        for round in 0..3 {
            wait_until("every player has another score", || {
                acknowledged.iter().all(|score| score.load(Ordering::SeqCst) > round)
            });
            let copy = server.data().join(format!("copy-{round}.db"));
            let before: Vec<u64> = acknowledged.iter().map(|score| score.load(Ordering::SeqCst)).collect();
            let done = server.run(&["backup", copy.to_str().expect("UTF-8")]);
            assert!(done.expect(0).contains("1 leaderboard and 40 records"), "{done:?}");
            assert!(done.stderr.contains("secret"), "{done:?}");
            let after: Vec<u64> = acknowledged.iter().map(|score| score.load(Ordering::SeqCst)).collect();
            let other = restored(&server, &copy);
            let found = scores(&other);
            for (player, (before, after)) in before.iter().zip(&after).enumerate() {
                let score = found[&format!("p{player}")];
                assert!(score >= *before, "p{player} had {before} before the backup began, and has {score}");
                // A write without an acknowledgement may be present: at most the one on its way.
                assert!(score <= *after + 1, "p{player} had {after} after the backup, and has {score}");
            }
            let boards = audit::boards(&mut other.client());
            boards.iter().for_each(|board| drop(audit::audit_board(&mut other.client(), board)));
        }
    });
}

#[test]
fn a_restore_refuses_what_would_be_lost_and_says_what_is_missing() {
    let mut server = TestTally::start(TALLY);
    server.client().put(BOARD, &json!({})).expect(201);
    server.client().post(&format!("{BOARD}/scores"), &json!({"player": "ann", "score": 1})).expect(200);
    let copy = server.data().join("copy.db");
    let copy = copy.to_str().expect("UTF-8").to_owned();
    server.run(&["backup", &copy]).expect(0);
    let again = server.run(&["backup", &copy]);
    assert_eq!(again.code, Some(1), "{again:?}");
    assert!(again.stderr.contains("is there already"), "{again:?}");
    let in_use = server.run(&["restore", &copy, "--force"]);
    assert_eq!(in_use.code, Some(1), "{in_use:?}");
    assert!(in_use.stderr.contains("another process has the store open"), "{in_use:?}");
    server.client().post(&format!("{BOARD}/scores"), &json!({"player": "bob", "score": 2})).expect(200);
    server.kill9();
    let taken = server.run(&["restore", &copy]);
    assert_eq!(taken.code, Some(1), "{taken:?}");
    assert!(taken.stderr.contains("--force"), "{taken:?}");
    server.run(&["restore", &copy, "--force"]).expect(0);
    server.launch();
    server.wait_ready();
    assert_eq!(scores(&server), BTreeMap::from([("ann".to_owned(), 1)]));
    // A store without its secret is not served, and the command says so before a start does.
    let other = TestTally::stopped(TALLY);
    let done = other.run(&["restore", &copy]);
    done.expect(0);
    assert!(done.stderr.contains("cannot be served before its secret is there"), "{done:?}");
    let refused = other.run(&["export", "b"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("secret"), "{refused:?}");
    let new = other.data().join("new");
    let missing = run_set(TALLY, &new, &["restore", "/nowhere/copy.db"], &[]);
    assert_eq!(missing.code, Some(1), "{missing:?}");
    assert!(missing.stderr.contains("/nowhere/copy.db"), "{missing:?}");
    assert!(!new.exists(), "a wrong name makes no data directory");
    let nothing = TestTally::stopped(TALLY).run(&["backup", "x.db"]);
    assert_eq!(nothing.code, Some(2), "{nothing:?}");
}

/// Acknowledged scores that are lost with their file: the start says so, and goes on without them only with the option for it.
#[test]
fn a_start_without_its_journal_is_refused_until_it_is_repaired() {
    let mut server = TestTally::start(TALLY);
    server.client().put(BOARD, &json!({})).expect(201);
    for score in 1..=50 {
        server
            .client()
            .post(&format!("{BOARD}/scores"), &json!({"player": "ann", "score": score}))
            .expect(200);
    }
    server.kill9();
    let whole = server.run(&["repair"]);
    whole.expect(0);
    assert!(whole.stdout.contains("nothing was changed"), "{whole:?}");
    let mut removed = 0;
    for entry in std::fs::read_dir(server.data()).expect("readable") {
        let path = entry.expect("readable").path();
        if path.to_string_lossy().contains(".journal-") {
            std::fs::remove_file(path).expect("removable");
            removed += 1;
        }
    }
    assert!(removed >= 2, "{removed}");
    let refused = server.run(&["export", "b"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("missing") && refused.stderr.contains("`tally repair`"), "{refused:?}");
    let repaired = server.run(&["repair"]);
    repaired.expect(0);
    assert!(repaired.stderr.contains("missing"), "{repaired:?}");
    server.launch();
    server.wait_ready();
    server.client().put(BOARD, &json!({})).expect(201);
    server.client().post(&format!("{BOARD}/scores"), &json!({"player": "bob", "score": 2})).expect(200);
    assert_eq!(scores(&server), BTreeMap::from([("bob".to_owned(), 2)]));
}
