//! The command line: help, usage, keys, exports, permission to open a store, and the end by SIGTERM.
//!
//! Texts are asserted by the words a user needs, answers by value. Not here: imports (`import.rs`).

use crate::TALLY;
use serde_json::{Value, json};
use std::io::Read;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tally_testkit::command::{command, run, run_set};
use tally_testkit::{Request, SetAtEnd, TestTally, wait_until};

/// The subcommands that a help text lists.
fn listed(help: &str) -> Vec<String> {
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands = commands.take_while(|line| line.starts_with("  "));
    let names =
        commands.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

#[test]
fn every_subcommand_has_help_with_an_example() {
    let mut waiting = vec![Vec::<String>::new()];
    let mut seen = Vec::new();
    while let Some(path) = waiting.pop() {
        let args: Vec<&str> = path.iter().map(String::as_str).chain(["--help"]).collect();
        let help = run(TALLY, &args);
        let text = help.expect(0);
        assert_eq!(help.stderr, "", "{path:?}");
        let below = listed(text);
        // A command with subcommands may leave the examples to them.
        assert!(text.contains("Example") || !below.is_empty(), "{path:?} has no example:\n{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{path:?} is too wide:\n{text}");
        // A sentence behind the examples that is wider than the terminal leaves a word on a line of its own.
        let behind = text.rsplit_once("\nExample").map_or("", |(_, rest)| rest);
        let is_prose = |line: &&str| !line.is_empty() && !line.starts_with(' ');
        for pair in behind.lines().skip(1).collect::<Vec<_>>().windows(2) {
            let is_broken = pair.iter().all(is_prose) && pair[0].chars().count() < 60;
            assert!(!is_broken, "{path:?} has a line of one word: {:?}\n{text}", pair[0]);
        }
        // Its own options come first.
        let (own, common) = text.split_once("\nCommon options:\n").expect("it has both");
        for flag in
            ["--config <FILE>", "--data <DIR>", "--store <URL>", "--secret-file <FILE>", "--url <URL>"]
        {
            let line = format!("      {flag}");
            assert!(!own.contains(&line), "{path:?} has {flag} among its own options:\n{text}");
            let is_of_all = flag != "--url <URL>";
            assert!(!is_of_all || common.contains(&line), "{path:?} has no {flag}:\n{text}");
        }
        waiting.extend(below.into_iter().map(|name| [path.clone(), vec![name]].concat()));
        seen.push(path.join(" "));
    }
    for known in [
        "",
        "serve",
        "import scores",
        "import redis",
        "compare redis",
        "export",
        "audit",
        "ledger",
        "keys create",
        "keys list",
        "keys revoke",
        "migrate",
        "doctor",
        "backup",
        "restore",
        "repair",
    ] {
        assert!(seen.iter().any(|seen| seen == known), "no `{known}` in {seen:?}");
    }
    let version = run(TALLY, &["--version"]);
    assert!(version.expect(0).starts_with("tally "));
}

#[test]
fn wrong_usage_exits_with_2() {
    let data = TestTally::stopped(TALLY);
    for args in [
        &[][..],
        &["nope"],
        &["serve", "--nope"],
        &["serve", "--http"],
        &["serve", "extra"],
        &["serve", "--store", "postgres://x"],
        &["import"],
        &["import", "scores"],
        &["import", "scores", "b", "f.csv"],
        &["import", "scores", "b", "f.csv", "--player", "p"],
        &["import", "scores", "b", "f.csv", "--player", "p", "--score", "s", "--score-value", "1"],
        &["import", "scores", "b", "f.csv", "--player", "p", "--score-value", "x"],
        &["import", "scores", "b", "f.csv", "--player", "p", "--score-value", "1", "--where", "nothing"],
        &["import", "scores", "b", "f.csv", "--player", "p", "--score-value", "1", "--create", "order"],
        &["import", "members", "/"],
        &["import", "redis"],
        &["import", "redis", "redis://a"],
        &["compare"],
        &["compare", "redis", "--pattern", "lb:*"],
        &["compare", "redis", "redis://a", "--pattern", "lb:*", "--every", "5s"],
        &["export"],
        &["audit", "--format", "xml"],
        &["ledger", "--format", "xml"],
        &["export", "b", "--format", "xml"],
        &["keys"],
        &["keys", "create"],
        &["keys", "create", "--role", "root"],
        &["keys", "revoke"],
        &["export", "b", "--url", "ftp://x"],
        &["--log", "xml", "serve"],
    ] {
        let done = if args.is_empty() { run(TALLY, args) } else { data.run(args) };
        done.expect(2);
        assert_eq!(done.stdout, "", "{args:?}");
        assert!(!done.stderr.is_empty(), "{args:?}");
        assert!(!done.stderr.contains("panicked"), "{args:?}: {}", done.stderr);
    }
}

#[test]
fn a_mistyped_directory_is_refused_and_gets_no_store() {
    let folder = tempfile::tempdir().expect("a folder");
    let typo = folder.path().join("typo");
    let csv = folder.path().join("f.csv");
    std::fs::write(&csv, "login_id\nann\n").expect("it is written");
    let csv = csv.to_str().expect("UTF-8");
    for args in [
        &["keys", "create", "--role", "admin"][..],
        &["keys", "list"],
        &["export", "b"],
        &["audit"],
        &["ledger"],
        &["archive"],
        &["import", "scores", "b", csv, "--player", "login_id", "--score-value", "1", "--create"],
        &["import", "members", csv],
        &["load", "scores", "--rate", "5"],
        &["doctor"],
        &["verify"],
        &["migrate"],
        &["backup", "x.db"],
        &["backup", "--follow", "x"],
        &["repair"],
        &["secret", "status"],
        &["secret", "reset", "--yes"],
    ] {
        let done = run_set(TALLY, &typo, args, &[]);
        done.expect(2);
        let says = format!("tally: no store in {}; `tally serve` creates one\n", typo.display());
        assert_eq!(done.stderr, says, "{args:?}");
        assert!(!typo.exists(), "{args:?}");
    }
    let file = folder.path().join("typo.db");
    let store = format!("sqlite:{}", file.display());
    let done = run_set(TALLY, &typo, &["keys", "list", "--store", &store], &[]);
    done.expect(2);
    assert!(done.stderr.contains(&format!("no store in {};", file.display())), "{}", done.stderr);
    assert!(!typo.exists() && !file.exists());
}

#[test]
fn an_unknown_setting_suggests_the_nearest() {
    let data = TestTally::stopped(TALLY);
    let file = data.data().join("tally.toml");
    std::fs::write(&file, "[http]\nlisten = \"127.0.0.1:0\"\nbody_bytes_mox = 5\n").expect("it is written");
    let done = data.run(&["serve", "--config", file.to_str().expect("a path")]);
    done.expect(2);
    for word in ["body_bytes_mox", "body_bytes_max"] {
        assert!(done.stderr.contains(word), "{}", done.stderr);
    }
}

#[test]
fn ready_is_one_line_and_the_address_is_real() {
    let mut server = TestTally::stopped(TALLY);
    let line = server.restart();
    let words: Vec<&str> = line.split(' ').collect();
    let store = format!("store=sqlite:{}", server.data().join("tally.db").display());
    let http = format!("http={}", server.address());
    let resp = format!("resp={}", server.resp());
    assert_eq!(words[..5], ["ready", &http, &resp, &store, "ranking=memory"]);
    assert!(words[5].strip_prefix("in=").is_some_and(|seconds| seconds.parse::<f64>().is_ok()), "{line}");
    assert_eq!(words.len(), 6);
    server.terminate();
    assert!(!server.data().join("server.json").exists(), "what is not running is not announced");
}

#[test]
fn a_binary_says_what_it_was_built_from() {
    let short = tally_testkit::command::run(TALLY, &["--version"]);
    assert_eq!(short.expect(0).lines().count(), 1, "{short:?}");
    for args in [["--version", "--verbose"], ["--verbose", "-V"]] {
        let told = tally_testkit::command::run(TALLY, &args);
        let text = told.expect(0);
        for line in ["tally ", "commit: ", "compiler: rustc 1.", "target: ", "  rusqlite 0.", "  ring 0."] {
            assert!(text.lines().any(|one| one.starts_with(line)), "{line:?} is missing in {text}");
        }
        let digests = text.lines().filter(|line| line.contains(" sha256:")).count();
        assert!(digests > 200, "{digests} packages");
    }
    tally_testkit::command::run(TALLY, &["--verbose"]).expect(2);
}

#[test]
fn keys_without_and_with_a_server() {
    let mut server = TestTally::start(TALLY);
    server.terminate();
    let made = server.run(&["keys", "create", "--role", "admin", "--name", "first"]);
    let admin = made.expect(0).trim().to_owned();
    let id = admin.split('_').nth(1).expect("an id").to_owned();
    assert_eq!(made.stdout.lines().count(), 1, "stdout is the key alone: {}", made.stdout);
    let listed = server.run(&["keys", "list"]).expect(0).to_owned();
    assert!(listed.contains(&id), "{listed}");
    assert!(listed.contains("first"), "{listed}");
    assert!(!listed.contains(admin.rsplit('_').next().expect("a secret")), "{listed}");

    server.restart();
    server.client().get("/v1/keys").refused(401, "unauthorized");
    server.client().with_key(&admin).get("/v1/keys").expect(200);
    let reader = server.run(&["keys", "create", "--role", "reader"]).expect(0).trim().to_owned();
    server.client().with_key(&reader).get("/v1/leaderboards").expect(200);
    let revoked = server.run(&["keys", "revoke", &id, "--force"]);
    revoked.expect(0);
    server.client().with_key(&admin).get("/v1/keys").refused(401, "unauthorized");
    let again = server.run(&["keys", "revoke", &id]);
    again.expect(1);
    assert!(again.stderr.contains("no such key"), "{}", again.stderr);
    assert_eq!(server.run(&["keys", "list"]).expect(0).lines().count(), 2, "a head and the reader's");
}

#[test]
fn an_export_is_the_board_in_both_formats() {
    let mut server = TestTally::start(TALLY);
    let mut client = server.client();
    client
        .put("/v1/leaderboards/a%2Fb", &json!({"subscore": "descending", "ranking": "competition"}))
        .expect(201);
    let at = "2026-01-01T00:00:00.000000Z";
    for (player, score) in [("plain", 2), ("with, comma", 9), ("\"quoted\"\nü", 2)] {
        let row = json!({"player": player, "score": score, "subscore": 1, "at": at});
        client.post("/v1/leaderboards/a%2Fb/scores", &row).expect(200);
    }
    let csv = format!(
        "rank,player,score,subscore,at\n1,\"with, comma\",9,1,{at}\n2,\"\"\"quoted\"\"\nü\",2,1,{at}\n2,plain,2,1,{at}\n"
    );
    for running in [true, false] {
        if !running {
            server.terminate();
        }
        assert_eq!(server.run(&["export", "a/b"]).expect(0), csv);
        let lines = server.run(&["export", "a/b", "--format", "json"]).expect(0).to_owned();
        let first: Value = serde_json::from_str(lines.lines().next().expect("a line")).expect("JSON");
        assert_eq!(first, json!({"rank": 1, "player": "with, comma", "score": 9, "subscore": 1, "at": at}));
        assert_eq!(lines.lines().count(), 3);
        let missing = server.run(&["export", "none"]);
        missing.expect(1);
        assert_eq!(missing.stdout, "");
    }
    server.restart();
}

#[test]
fn an_export_of_the_audit_log_has_its_filters() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    for board in ["goals", "=cups"] {
        let path = format!("/v1/leaderboards/{}", board.replace('=', "%3D"));
        client.put(&path, &json!({"reason": "a \"b\", c"})).expect(201);
    }
    client.delete("/v1/leaderboards/goals").expect(204);
    let items = client.get("/v1/audit").expect(200)["items"].clone();
    let (text, id) = (|row: usize, name: &str| items[row][name].as_str().expect("a text"), "id");
    let created = |row, subject| {
        let (at, id) = (text(row, "at"), text(row, id));
        format!("{at},local,leaderboard.created,{subject},,\"a \"\"b\"\", c\",{id}\n")
    };
    let (at, last) = (text(0, "at"), text(0, id));
    let deleted = format!("{at},local,leaderboard.deleted,goals,,,{last}\n");
    let head = "at,actor,action,subject,detail,reason,id\n";
    let all = [head, &deleted, &created(1, "'=cups"), &created(2, "goals")].concat();
    assert_eq!(server.run(&["audit"]).expect(0), all);
    let of = ["audit", "--subject", "goals", "--actor", "local", "--action", "leaderboard.created"];
    assert_eq!(server.run(&of).expect(0), [head, &created(2, "goals")].concat());
    let lines = server.run(&["audit", "--from", at, "--format", "json"]).expect(0).to_owned();
    assert_eq!(serde_json::from_str::<Value>(lines.trim_end()).expect("one line of JSON"), items[0]);
    server.run(&["audit", "--until", "yesterday"]).expect(1);
}

#[test]
fn an_export_of_the_ledger_is_resumed_and_agrees_with_the_trial_balance() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    let mut member = |name: &str| {
        let made = client.post("/v1/members", &json!({"login_id": name, "name": format!("={name}")}));
        made.expect(201)["id"].as_str().expect("an id").to_owned()
    };
    let (ann, bob) = (member("ann"), member("bob"));
    let gift =
        json!({"to": ann, "amount": 1000, "reference": "a, b", "reason": "-gift", "metadata": {"a": 1}});
    client.post("/v1/deposits", &gift).expect(201);
    client.post("/v1/transfers", &json!({"from": ann, "to": bob, "amount": 300})).expect(201);
    client.post("/v1/withdrawals", &json!({"from": bob, "amount": 50})).expect(201);
    let items = client.get("/v1/ledger/transactions").expect(200)["items"].clone();
    let text = |row: usize, name: &str| items[row][name].as_str().expect("a text");
    let head = "at,id,type,currency,amount,debit_account,debit_member,debit_name,credit_account,credit_member,\
                credit_name,reference,actor,reason,metadata\n";
    let line = |row: usize, rest: &str| format!("{},{},{rest}\n", text(row, "at"), text(row, "id"));
    let lines = [
        line(0, &format!("withdrawal,KRW,50,BANK_PAYABLE,{bob},'=bob,BANK_ASSET,,,,local,,")),
        line(1, &format!("transfer_out,KRW,300,BANK_PAYABLE,{ann},'=ann,BANK_PAYABLE,{bob},'=bob,,local,,")),
        line(
            2,
            &format!(
                "deposit,KRW,1000,BANK_ASSET,,,BANK_PAYABLE,{ann},'=ann,\"a, b\",local,'-gift,\"{{\"\"a\"\":1}}\""
            ),
        ),
    ];
    let all = server.run(&["ledger"]);
    assert_eq!(all.expect(0), [head, &lines.concat()].concat());
    let sums =
        "BANK_ASSET KRW: debits 1000, credits 50\nBANK_PAYABLE KRW: debits 350, credits 1300\n3 transfers.\n";
    assert_eq!(all.stderr, format!("{sums}The totals agree with the trial balance.\n"));
    // The rest, behind the first line; and the transfers of a time.
    let rest = server.run(&["ledger", "--after", text(0, "id")]);
    assert_eq!(rest.expect(0), lines[1..].concat());
    assert!(rest.stderr.ends_with("2 transfers.\n"), "{}", rest.stderr);
    let (from, until) = (text(1, "at"), text(0, "at"));
    let one = ["ledger", "--from", from, "--until", until, "--format", "json"];
    let one = server.run(&one).expect(0).to_owned();
    assert_eq!(serde_json::from_str::<Value>(one.trim_end()).expect("one line of JSON"), items[1]);
    for wrong in [["--after", "x"], ["--from", "yesterday"]] {
        server.run(&["ledger", wrong[0], wrong[1]]).expect(1);
    }
}

#[test]
fn an_export_of_the_ledger_that_was_interrupted_says_how_it_goes_on() {
    let mut server = TestTally::start(TALLY);
    let mut client = server.client();
    let [ann, bob] = ["ann", "bob"].map(|name| {
        let made = client.post("/v1/members", &json!({"login_id": name, "name": name}));
        made.expect(201)["id"].as_str().expect("an id").to_owned()
    });
    client.post("/v1/deposits", &json!({"to": ann, "amount": 2_000})).expect(201);
    let row = json!({"from": ann, "to": bob, "amount": 1, "reference": "x".repeat(200)});
    for _ in 0..2 {
        client.post("/v1/transfers/batch", &json!({"transfers": vec![&row; 1_000]})).expect(200);
    }
    let whole = server.run(&["ledger"]).expect(0).to_owned();
    let mut part = command(TALLY, &["ledger"]);
    let part = part.arg("--data").arg(server.data()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut part = part.spawn().expect("it starts");
    let mut begun = [0; 10];
    part.stdout.as_mut().expect("it is piped").read_exact(&mut begun).expect("it begins");
    // A page is more than a pipe takes, so the next one is not asked for yet.
    server.kill9();
    let part = part.wait_with_output().expect("it ends");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("commands print UTF-8");
    let (written, told) = (text(&begun) + &text(&part.stdout), text(&part.stderr));
    assert_eq!((part.status.code(), written.lines().count()), (Some(1), 1_001), "{told}");
    let last = written.lines().last().and_then(|line| line.split(',').nth(1)).expect("an id");
    assert!(told.contains(&format!("--after {last} goes on behind its last line")), "{told}");
    assert!(told.contains("\n1000 transfers.\n"), "{told}");
    server.restart();
    let rest = server.run(&["ledger", "--after", last]);
    assert_eq!(written.clone() + rest.expect(0), whole);
    assert!(rest.stderr.ends_with("\n1001 transfers.\n"), "{}", rest.stderr);
}

#[test]
fn a_long_export_is_whole_and_may_be_left() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    client.put("/v1/leaderboards/b", &json!({})).expect(201);
    for chunk in 0..5 {
        let row = |at: i64| json!({"board": "b", "player": format!("player {chunk} {at}"), "score": at});
        let rows: Vec<Value> = (0..1_000).map(row).collect();
        client.post("/v1/scores/batch", &json!({"scores": rows})).expect(200);
    }
    let text = server.run(&["export", "b"]).expect(0).to_owned();
    assert_eq!(text.lines().count(), 5_001);
    let mut left = command(TALLY, &["export", "b"]);
    let mut left = left
        .arg("--data")
        .arg(server.data())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    drop(left.stdout.take());
    assert_eq!(left.wait().expect("it ends").code(), Some(0), "a broken pipe is success");
}

#[test]
fn no_command_complains_that_its_output_is_not_read() {
    let server = TestTally::start(TALLY);
    server.client().put("/v1/leaderboards/b", &json!({})).expect(201);
    for args in [
        &["doctor"][..],
        &["verify"],
        &["verify", "--ranks"],
        &["export", "b"],
        &["audit"],
        &["ledger"],
        &["archive"],
        &["keys", "list"],
        &["secret", "status"],
        &["seed", "scores", "s", "--players", "5"],
        &["seed", "wallets", "--members", "2", "--transactions", "1"],
        &["config"],
        &["completions", "bash"],
        &["--help"],
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut left = command(TALLY, args);
        let done = left.arg("--data").arg(server.data()).stdout(writer).output().expect("the binary starts");
        let told = String::from_utf8(done.stderr).expect("commands print UTF-8");
        assert_eq!(done.status.code(), Some(0), "{args:?}: {told}");
        for word in ["panicked", "pipe", "debits"] {
            assert!(!told.contains(word), "{args:?}: {told}");
        }
    }
    // What was not written for another reason is no success.
    let full = std::fs::File::options().write(true).open("/dev/full").expect("it is there");
    let done = command(TALLY, &["secret", "status"]).arg("--data").arg(server.data()).stdout(full).output();
    let done = done.expect("the binary starts");
    let told = String::from_utf8(done.stderr).expect("commands print UTF-8");
    assert_eq!(done.status.code(), Some(1), "{told}");
    assert!(told.starts_with("tally: write to stdout: "), "{told}");
}

#[test]
fn an_empty_variable_of_a_credential_is_not_set() {
    let mut server = TestTally::start(TALLY);
    let url = format!("http://{}", server.address());
    server.set("TALLY_KEY", "");
    server.run(&["keys", "list", "--url", &url]).expect(0);
    server.terminate();
    server.set("TALLY_SECRET", "");
    server.run(&["keys", "list"]).expect(0);
    server.restart();
    // One that names a place names none.
    let done = command(TALLY, &["keys", "list"]).env("TALLY_DATA", "").output().expect("the binary starts");
    let told = String::from_utf8(done.stderr).expect("commands print UTF-8");
    assert_eq!(done.status.code(), Some(2), "{told}");
    assert!(told.contains("setting `data.dir` is ``"), "{told}");
}

#[test]
fn a_second_server_is_refused_and_the_first_goes_on() {
    let server = TestTally::start(TALLY);
    let announced = std::fs::read(server.data().join("server.json")).expect("it is announced");
    let second = server.run(&["serve", "--http", "127.0.0.1:0", "--resp", "off"]);
    second.expect(1);
    assert_eq!(second.stdout, "");
    let address = server.address().to_string();
    for words in ["another process has the store open", &address] {
        assert!(second.stderr.contains(words), "no {words:?} in {}", second.stderr);
    }
    assert_eq!(std::fs::read(server.data().join("server.json")).expect("it is announced"), announced);
    server.client().put("/v1/leaderboards/b", &json!({})).expect(201);
}

#[test]
fn a_store_of_the_future_is_refused_untouched() {
    let mut server = TestTally::start(TALLY);
    server.client().put("/v1/leaderboards/b", &json!({})).expect(201);
    server.terminate();
    let path = server.data().join("tally.db");
    let present = std::fs::read(&path).expect("it is there");
    let mut future = present.clone();
    // SQLite's `user_version`, where this store keeps its version: offset 60 of the file, big-endian.
    future[60..64].copy_from_slice(&999_u32.to_be_bytes());
    std::fs::write(&path, &future).expect("it is written");
    for args in [
        &["serve", "--http", "127.0.0.1:0", "--resp", "off"][..],
        &["keys", "list"],
        &["export", "b"],
        &["migrate"],
    ] {
        let done = server.run(args);
        done.expect(1);
        assert!(done.stderr.contains("999"), "{args:?}: {}", done.stderr);
        assert!(std::fs::read(&path).expect("it is there") == future, "{args:?} changed the file");
    }
    std::fs::write(&path, &present).expect("it is written");
    server.run(&["migrate"]).expect(0);
    server.restart();
    server.client().get("/v1/leaderboards/b").expect(200);
}

#[test]
fn another_secret_is_refused() {
    let mut server = TestTally::start(TALLY);
    server.terminate();
    let path = server.data().join("secret");
    let secret = std::fs::read(&path).expect("it is there");
    std::fs::write(&path, "ab".repeat(32)).expect("it is written");
    let done = server.run(&["serve", "--http", "127.0.0.1:0", "--resp", "off"]);
    done.expect(1);
    assert!(done.stderr.contains("secret"), "{}", done.stderr);
    std::fs::remove_file(&path).expect("it was there");
    let done = server.run(&["serve", "--http", "127.0.0.1:0", "--resp", "off"]);
    done.expect(1);
    assert!(done.stderr.contains("secret"), "{}", done.stderr);
    assert!(!path.exists(), "no other secret is made for a store that has one");
    std::fs::write(&path, secret).expect("it is written");
    server.restart();
}

/// The record of one client of the drain: acknowledged increments, and those of unknown outcome.
fn add_until_the_end(
    mut client: tally_testkit::Client,
    (acknowledged, unsure): (&AtomicU64, &AtomicU64),
    over: &AtomicBool,
) {
    let add = Request::new("POST", "/v1/leaderboards/b/scores").json(&json!({"player": "p", "score": 1}));
    // Until the server refuses, unless the test has failed before.
    while !over.load(Ordering::Relaxed) {
        match client.try_send(&add) {
            Ok(answer) if answer.status == 200 => acknowledged.fetch_add(1, Ordering::Relaxed),
            Ok(answer) => {
                answer.refused(503, "draining");
                assert!(answer.header("retry-after").is_some(), "{answer:?}");
                return;
            }
            Err(_) => {
                unsure.fetch_add(1, Ordering::Relaxed);
                return;
            }
        };
    }
}

#[test]
fn sigterm_under_load_keeps_everything_acknowledged() {
    let mut server = TestTally::start(TALLY);
    server.client().put("/v1/leaderboards/b", &json!({"update": "sum"})).expect(201);
    for _ in 0..3 {
        let score = |server: &TestTally| {
            let answer = server.client().get("/v1/leaderboards/b/players/p");
            if answer.status == 404 { 0 } else { answer.expect(200)["score"].as_u64().expect("a sum") }
        };
        let before = score(&server);
        let (acknowledged, unsure) = (AtomicU64::new(0), AtomicU64::new(0));
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _end = SetAtEnd::new(&over);
            for _ in 0..6 {
                let client = server.client();
                scope.spawn(|| add_until_the_end(client, (&acknowledged, &unsure), &over));
            }
            wait_until("scores are acknowledged", || acknowledged.load(Ordering::Relaxed) >= 50);
            server.terminate();
        });
        server.restart();
        let (least, unsure) = (before + acknowledged.into_inner(), unsure.into_inner());
        let now = score(&server);
        assert!((least..=least + unsure).contains(&now), "{now} is not from {least} to {least} + {unsure}");
    }
}

#[test]
fn sigterm_ends_a_server_with_idle_connections() {
    let mut server = TestTally::start(TALLY);
    let mut idle: Vec<_> = (0..5).map(|_| server.client()).collect();
    for client in &mut idle {
        client.get("/v1/leaderboards").expect(200);
    }
    server.terminate();
    for client in &mut idle {
        assert!(client.try_send(&Request::new("GET", "/healthz")).is_err(), "its connection is closed");
    }
}
