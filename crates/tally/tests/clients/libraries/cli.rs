//! `redis-cli`: line by line in both protocols, its own scans, `--pipe`, keys.

use super::{TALLY, run, stage};
use serde_json::json;
use std::process::Command;
use tally_testkit::TestTally;

/// Commands that `--pipe` sends.
const PIPED: usize = 200_000;
const PIPED_MEMBERS: usize = 5_000;

fn cli(server: &TestTally, args: &[&str]) -> Command {
    let mut command = Command::new("redis-cli");
    let resp = server.resp();
    command.args(["-h", &resp.ip().to_string(), "-p", &resp.port().to_string()]).args(args);
    // A key in the environment of the test run is none of ours.
    command.env_remove("REDISCLI_AUTH");
    command
}

const LINES: &str = r#"
PING
ZADD duels 30 ann 20.5 "bob the \"builder\"" 10 cy
ZADD duels gt ch 5 ann 11 cy
ZRANGE duels 0 -1 WITHSCORES
ZREVRANGE duels 0 0
ZRANGE duels (20.5 +inf BYSCORE
ZRANK duels cy
ZRANK duels nobody
MULTI
ZINCRBY duels 1 ann
ZCARD duels
EXEC
MULTI
ZADD duels 1
EXEC
WATCH duels
LB.CREATE laps ORDER ascending RANKING competition
LB.SUBMIT laps ann 61200 ID 1
LB.SUBMIT laps bob 59900
LB.TOP laps 10
LB.RANK laps ann
LB.RANK laps nobody
ZADD season@weekly 1 ann
ZPOPMAX duels
TYPE duels
SELECT 1
GET duels
"#;

/// Its output for them where standard output is no terminal.
const PRINTED: &str = "PONG\n3\n1\ncy\n11\nbob the \"builder\"\n20.5\nann\n30\nann\nann\n0\n\n\
    OK\nQUEUED\nQUEUED\n31\n3\nOK\nERR wrong number of arguments for 'zadd' command\n\n\
    EXECABORT Transaction discarded because of previous errors.\n\n\
    ERR WATCH is not supported: use the conditions of ZADD (NX, XX, GT, LT)\n\n\
    OK\n61200\n1\n\n\n59900\n1\n\n\n1\nbob\n59900\n2\nann\n61200\n2\n61200\n2\n\n\
    READONLY a period of a leaderboard can only be read\n\nann\n31\nzset\n\
    ERR DB index is out of range\n\nERR unknown command 'GET', with args beginning with: 'duels' \n\n";

#[test]
fn lines_in_both_protocols() {
    for protocol in ["-2", "-3"] {
        let server = stage();
        assert_eq!(run(&mut cli(&server, &[protocol]), LINES), PRINTED, "{protocol}");
    }
}

#[test]
fn its_own_walks() {
    let server = stage();
    let many: Vec<String> = (0..300).map(|at| format!("ZADD b{} {at} m{at}\n", at % 3)).collect();
    run(&mut cli(&server, &[]), &many.concat());
    let scan = run(&mut cli(&server, &["--scan", "--pattern", "b*"]), "");
    let mut found: Vec<&str> = scan.lines().collect();
    found.sort_unstable();
    assert_eq!(found, ["b0", "b1", "b2"]);
    let bigkeys = run(&mut cli(&server, &["--bigkeys"]), "");
    assert!(bigkeys.contains("4 zsets with 300 members (100.00% of keys"), "{bigkeys}");
    let json = run(&mut cli(&server, &["--json", "ZRANGE", "b0", "0", "1", "WITHSCORES"]), "");
    let json: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(json, json!([["m0", 0], ["m3", 3]]));
    // The last argument from standard input.
    assert_eq!(run(&mut cli(&server, &["-x", "ZINCRBY", "b0", "1"]), "m3"), "4\n");
}

/// It sends without waiting, counts replies, and knows the end by an `ECHO`.
#[test]
fn pipe_of_any_length() {
    let server = TestTally::start(TALLY);
    let mut input = String::new();
    for at in 0..PIPED {
        let member = format!("m{}", at % PIPED_MEMBERS);
        let length = member.len();
        input.push_str(&format!("*4\r\n$7\r\nZINCRBY\r\n$1\r\nz\r\n$1\r\n1\r\n${length}\r\n{member}\r\n"));
    }
    let told = run(&mut cli(&server, &["--pipe"]), &input);
    assert!(told.ends_with(&format!("errors: 0, replies: {PIPED}\n")), "{told}");
    let each = (PIPED / PIPED_MEMBERS).to_string();
    let count = run(&mut cli(&server, &["ZCOUNT", "z", &each, &each]), "");
    assert_eq!(count, format!("{PIPED_MEMBERS}\n"), "each command once");
    // Lines of text are commands as well; a wrong one is counted and the rest done.
    let mut wrong = Command::new("sh");
    let whole =
        r#"printf 'ZADD z 1 a\r\nZADD z x b\r\nZADD z 1 c\r\n' | redis-cli -h "$0" -p "$1" --pipe; echo $?"#;
    let resp = server.resp();
    let told = run(wrong.args(["-c", whole, &resp.ip().to_string(), &resp.port().to_string()]), "");
    assert!(told.contains("errors: 1, replies: 3\n") && told.ends_with("\n1\n"), "{told}");
    assert_eq!(run(&mut cli(&server, &["ZMSCORE", "z", "a", "b", "c"]), ""), "1\n\n1\n");
}

#[test]
fn with_a_key() {
    let server = stage();
    let made = server.local().post("/v1/keys", &json!({"role": "reader"})).expect(201);
    let key = made["key"].as_str().expect("it is shown once");
    let ask = |args: &[&str]| run(&mut cli(&server, args), "ZCARD season\nZADD season 1 ann\n");
    let without = "NOAUTH Authentication required.\n\nNOAUTH Authentication required.\n\n";
    assert_eq!(ask(&[]), without);
    assert!(ask(&["--no-auth-warning", "-a", "nonsense"]).ends_with(without));
    let with = "0\nNOPERM this key has no permissions to run the 'zadd' command\n\n";
    assert_eq!(ask(&["--no-auth-warning", "-a", key]), with);
    assert_eq!(ask(&["--no-auth-warning", "-3", "--user", "default", "--pass", key]), with);
    assert_eq!(run(cli(&server, &["ZCARD", "season"]).env("REDISCLI_AUTH", key), ""), "0\n");
}

/// The manual shows the printed text, and names every command.
#[test]
fn the_manual_is_right() {
    let manual = include_str!("../../../../../docs/redis.md");
    let server = TestTally::start(TALLY);
    let (mut commands, mut printed, mut inside) = (String::new(), String::new(), false);
    for line in manual.lines() {
        if line.starts_with("```") {
            inside = line == "```redis";
        } else if let (true, Some(command)) = (inside, line.strip_prefix("> ")) {
            commands.push_str(&format!("{command}\n"));
        } else if inside {
            printed.push_str(&format!("{line}\n"));
        }
    }
    assert!(commands.lines().count() > 10, "{commands}");
    assert_eq!(run(&mut cli(&server, &["--no-raw"]), &commands), printed);
    let words: Vec<&str> = manual.split(|c: char| !c.is_ascii_alphanumeric() && c != '.').collect();
    for name in run(&mut cli(&server, &["COMMAND", "LIST"]), "").to_uppercase().lines() {
        assert!(words.contains(&name), "the manual has no {name}");
    }
}
