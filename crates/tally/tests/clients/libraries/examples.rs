//! The programs in `examples/` that can run here, each on a server of its own: they print what their page shows.

use super::{TALLY, node, python, run};
use regex_lite::Regex;
use std::process::Command;
use tally_testkit::TestTally;

const OUTPUT: &str = include_str!("../../../../../examples/output.txt");

fn path(name: &str) -> String {
    format!("{}/../../examples/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// The output of a program with these listeners of a new server.
fn printed(mut program: Command, listeners: &[fn(&TestTally) -> String]) -> String {
    let server = TestTally::start(TALLY);
    run(program.args(listeners.iter().map(|listener| listener(&server))), "")
}

fn http(server: &TestTally) -> String {
    format!("http://{}", server.address())
}

fn redis(server: &TestTally) -> String {
    format!("redis://{}", server.resp())
}

fn bash(name: &str) -> Command {
    let mut command = Command::new("bash");
    command.arg(path(name)).env_remove("REDISCLI_AUTH");
    command
}

#[test]
fn python_over_http() {
    // Any Python will do: it needs no library.
    let mut program = Command::new("python3");
    program.arg(path("over_http.py"));
    assert_eq!(printed(program, &[http]), OUTPUT);
}

#[test]
fn python_over_redis() {
    let mut program = python();
    program.arg(path("over_redis.py"));
    assert_eq!(printed(program, &[redis, http]), OUTPUT);
}

#[test]
fn javascript_over_http() {
    let script = include_str!("../../../../../examples/over_http.mjs");
    assert_eq!(printed(node(script, "over_http.mjs"), &[http]), OUTPUT);
}

#[test]
fn javascript_over_redis() {
    let script = include_str!("../../../../../examples/over_redis.mjs");
    assert_eq!(printed(node(script, "over_redis.mjs"), &[redis, http]), OUTPUT);
}

#[test]
fn shell_over_http() {
    let all = printed(bash("over_http.sh"), &[http]);
    // The parts of each answer that do not change from day to day.
    let part =
        Regex::new(r#""(?:error|rank|overall_rank|player|score)":("?[a-z0-9]+"?)"#).expect("a pattern");
    let line = |line: &str| {
        let parts = part.captures_iter(line).map(|found| found[1].trim_matches('"').to_owned());
        parts.collect::<Vec<_>>().join(" ")
    };
    let lines: Vec<String> = all.lines().map(line).collect();
    assert!(all.starts_with(r#"{"all_time":true,"board":"arcade""#), "{all}");
    assert_eq!(lines[1..3], ["ada 1200 1", "ada 1200 1"], "{all}");
    assert_eq!(all.lines().nth(3), Some("100"));
    let shown = |at: usize| OUTPUT.lines().nth(at).and_then(|line| line.split_once(": ")).expect("a list").1;
    assert_eq!(lines[4], shown(3).replace(", ", " "));
    assert_eq!(lines[5], shown(4).replace(", ", " "));
    assert_eq!(lines[6], "1 1 ada 1200 2 95 p007 70");
    assert_eq!(lines[7], shown(6));
    assert_eq!(lines.len(), 8, "{all}");
}

#[test]
fn shell_over_redis() {
    let host = |server: &TestTally| server.resp().ip().to_string();
    let port = |server: &TestTally| server.resp().port().to_string();
    let all = printed(bash("over_redis.sh"), &[host, port, http]);
    let list = |at: usize| {
        let line = OUTPUT.lines().nth(at).and_then(|line| line.split_once(": ")).expect("a list").1;
        line.replace(", ", " ").replace(' ', "\n")
    };
    let submitted = "1200\n1\n\n\n".repeat(2);
    let friends = "1\n1\nada\n1200\n2\n95\np007\n70";
    let wanted =
        format!("OK\n{submitted}errors: 0, replies: 100\n{}\n{}\n{friends}\nada\n1200\n", list(3), list(4));
    assert_eq!(all, wanted);
}
