//! `tally load` sends the given requests at the given rate, and says whether limits were kept.

use crate::TALLY;
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use tally_testkit::{TestTally, command, wait_until};

#[test]
fn scores_arrive_at_their_rate_and_limits_are_checked() {
    let server = TestTally::start(TALLY);
    let (page, figures) = (server.data().join("load.html"), server.data().join("load.json"));
    let files = ["--report", page.to_str().unwrap(), "--json", figures.to_str().unwrap()];
    let load = ["load", "scores", "--players", "50", "--rate", "0..200", "--stage", "1s"];
    let kept = ["--threshold", "errors<1%", "--threshold", "dropped<=0"];
    let ran = server.run(&[&load[..], &kept, &files].concat());
    let text = ran.expect(0);
    assert!(text.contains("100 planned in 1 s"), "{text}");
    // There were few requests before, so some of these are among the slowest.
    assert!(text.contains("The server's slowest requests of the last two minutes"), "{text}");
    let figures: Value = serde_json::from_str(&std::fs::read_to_string(figures).unwrap()).unwrap();
    let iterations = &figures["iterations"];
    assert_eq!((&iterations["arrived"], &iterations["succeeded"]), (&json!(100), &json!(100)));
    assert_eq!(figures["thresholds"][0]["kept"], true);
    let done: u64 =
        figures["per_second"].as_array().unwrap().iter().map(|one| one["done"].as_u64().unwrap()).sum();
    assert_eq!(done, 100);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.matches("<svg").count() >= 3 && page.contains("Latency, second by second"));
    // They are present.
    let scores = server.local().get("/v1/leaderboards/load/scores?limit=100").expect(200);
    assert!((30..=50).contains(&scores["entries"].as_array().unwrap().len()), "{scores}");
    // A limit that nothing can keep.
    let ran = server.run(&[&load[..], &["--threshold", "p50<0.0001ms"]].concat());
    let never = ran.expect(1);
    assert!(never.contains("NO"), "{never}");
}

#[test]
fn seeded_players_are_read_and_score_over_both_protocols() {
    let server = TestTally::start(TALLY);
    server.run(&["seed", "scores", "big", "--players", "3000"]).expect(0);
    // It knows how many there are.
    let load = ["load", "scores", "--board", "big", "--reads", "50", "--skew", "zipf"];
    let plan = ["--rate", "200", "--stage", "1s", "--threshold", "errors<=0", "--threshold", "dropped<=0"];
    let redis = server.resp().to_string();
    for protocol in [&[][..], &["--redis", &redis]] {
        let ran = server.run(&[&load[..], &plan, protocol].concat());
        let text = ran.expect(0);
        let count = |call: &str| -> u64 {
            let line = text.lines().find_map(|line| line.trim().strip_prefix(call)).expect("its line");
            line.split_whitespace().next().unwrap().parse().unwrap()
        };
        let (scores, reads) = (count("score "), count("around "));
        assert_eq!(scores + reads, 200, "{text}");
        assert!((50..150).contains(&reads), "{text}");
    }
    // Only players of the seed have scored.
    let board = server.local().get("/v1/leaderboards/big/scores?limit=1").expect(200);
    assert_eq!(board["total"], 3000, "{board}");
    let ran = server.run(&["load", "transfers", "--reads", "10", "--rate", "1"]);
    ran.expect(2);
    assert!(ran.stderr.contains("--reads and --redis are for"), "{}", ran.stderr);
}

#[test]
fn members_pay_and_look_and_no_money_is_made_or_lost() {
    let server = TestTally::start(TALLY);
    server.run(&["seed", "wallets", "--members", "40", "--transactions", "100"]).expect(0);
    let load = |what: &str, more: &[&str]| {
        let plan =
            ["load", what, "--of", "40", "--members", "10", "--stage", "1s", "--threshold", "errors<=0"];
        let ran = server.run(&[&plan[..], more].concat());
        let text = ran.expect(0).to_owned();
        assert!(text.contains("money: none made, none lost; the bank owes members 40000000 KRW"), "{text}");
        text
    };
    load("transfers", &["--rate", "60", "--skew", "zipf"]);
    let text = load("main-page", &["--rate", "20"]);
    assert!(
        ["profile", "wallet", "ranks"].iter().all(|call| text.contains(&format!("\n  {call} "))),
        "{text}"
    );
    let text = load("mixed", &["--rate", "4", "--threshold", "sign-in.errors<=0"]);
    assert!(text.contains("\n  sign-in ") && text.contains("\n  transfer "), "{text}");
    let totals = server.local().get("/v1/ledger/trial-balance").expect(200);
    assert_eq!(totals["balanced"], true);
    server.run(&["verify"]).expect(0);
    // A member that the seed did not make cannot sign in.
    let ran =
        server.run(&["load", "transfers", "--of", "50", "--members", "50", "--rate", "1", "--stage", "1s"]);
    ran.expect(1);
    assert!(ran.stderr.contains("` cannot sign in"), "{}", ran.stderr);
}

#[test]
fn an_interrupted_load_shows_what_ran() {
    let server = TestTally::start(TALLY);
    server.run(&["seed", "wallets", "--members", "40", "--transactions", "100"]).expect(0);
    let (page, figures) = (server.data().join("load.html"), server.data().join("load.json"));
    let plan = ["load", "transfers", "--of", "40", "--members", "10", "--rate", "100", "--stage", "1h"];
    let mut load = command::command(TALLY, &plan);
    load.arg("--data").arg(server.data()).arg("--report").arg(&page).arg("--json").arg(&figures);
    let load = load.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Not before money has moved, so that there is something to show.
    let mut client = server.local();
    let debits = |totals: &Value| totals["items"][1]["debits"].as_str().unwrap().to_owned();
    let totals = client.get("/v1/ledger/trial-balance").expect(200);
    let has_begun = || debits(&client.get("/v1/ledger/trial-balance").expect(200)) != debits(&totals);
    wait_until("money moves", has_begun);
    let sent = Command::new("kill").args(["-s", "INT", &load.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let ended = load.wait_with_output().unwrap();
    let text = String::from_utf8(ended.stdout).unwrap();
    assert_eq!(ended.status.code(), Some(130), "{text}{}", String::from_utf8_lossy(&ended.stderr));
    assert!(text.contains("360000 planned in 3600 s") && text.contains("interrupted: "), "{text}");
    assert!(text.contains("money: none made, none lost; the bank owes members 40000000 KRW"), "{text}");
    assert!(std::fs::read_to_string(page).unwrap().contains("interrupted: "));
    let figures: Value = serde_json::from_str(&std::fs::read_to_string(figures).unwrap()).unwrap();
    let iterations = &figures["iterations"];
    assert_eq!(figures["interrupted"], true);
    assert_eq!((&iterations["failed"], &iterations["succeeded"]), (&json!(0), &iterations["arrived"]));
    assert!(iterations["arrived"].as_u64().is_some_and(|arrived| arrived > 0), "{iterations}");
}

#[test]
fn what_cannot_be_sent_says_why() {
    let mut server = TestTally::start(TALLY);
    for (args, why) in [
        (&["--rate", "many"][..], "--rate: `many` is no rate"),
        (&["--rate", "0..0"], "nothing would arrive"),
        (&["--rate", "5", "--stage", "soon"], "--stage: `soon` is no length of time"),
        (&["--rate", "5", "--threshold", "p95"], "--threshold: `p95` is no threshold"),
        (&["--rate", "5", "--threshold", "transfer.p95<3ms"], "no call is named `transfer`; there are score"),
        (&["--rate", "5", "--board", "a b"], "--board: `a b`"),
    ] {
        let ran = server.run(&[&["load", "scores"][..], args].concat());
        ran.expect(2);
        let text = &ran.stderr;
        assert!(text.contains(why), "no {why:?} in {text}");
    }
    let elsewhere = server.data().join("nothing");
    let ran = command::run_set(TALLY, &elsewhere, &["load", "scores", "--rate", "5"], &[]);
    ran.expect(2);
    assert!(ran.stderr.contains("no store in "), "{}", ran.stderr);
    server.terminate();
    let ran = server.run(&["load", "scores", "--rate", "5"]);
    ran.expect(1);
    assert!(ran.stderr.contains("no server runs on"), "{}", ran.stderr);
}
