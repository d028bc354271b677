//! Stock clients of the Redis protocol, as they come from their registries, against the real server.
//!
//! A script runs a leaderboard's whole story in its own language and checks every answer. It requests what it cannot do itself by
//! a line on its standard output: a kill and a new start of the server, or a key. The libraries are fetched by
//! `cargo xtask packages`; so are the programs. Not here: every reply to the letter, which is compared with Redis' own elsewhere,
//! and the bounds of a connection (`resp_connection.rs`).

mod benchmark;
mod cli;
mod examples;

use crate::TALLY;
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use tally_testkit::TestTally;

/// A file of the fetched libraries.
pub(crate) fn fetched(name: &str) -> PathBuf {
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let folder = target.parent().expect("it lies in the target folder").join("clients");
    let path = folder.join(name);
    assert!(path.exists(), "there is no {}; run `cargo xtask packages`", path.display());
    path
}

/// Python with redis-py.
fn python() -> Command {
    // Its compiled files would lie beside the sources.
    let mut command = Command::new(fetched("python/environment/bin/python"));
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// A program of the tools for clients over HTTP, such as mypy.
pub(crate) fn tool_of_python(name: &str) -> Command {
    let mut command = Command::new(fetched("tools-python/environment/bin").join(name));
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// A script of the tools for clients over HTTP, such as the compiler of TypeScript.
pub(crate) fn tool_of_node(path: &str) -> Command {
    let mut command = Command::new("node");
    command.arg(fetched("tools-node/node_modules").join(path));
    command
}

/// A script for node, in the folder where node searches the libraries that it imports.
pub(crate) fn node(script: &str, name: &str) -> Command {
    let folder = fetched("node/node_modules").with_file_name("scripts");
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    let path = folder.join(name);
    std::fs::write(&path, script).expect("the script can be written");
    let mut command = Command::new("node");
    command.arg(path);
    command
}

/// Runs a program to its end, which must be good; returns its output.
#[track_caller]
pub(crate) fn run(command: &mut Command, input: &str) -> String {
    let mut child = spawn(command);
    let mut stdin = child.stdin.take().expect("it is piped");
    // A program that ends early gives the reason itself.
    let input = input.to_owned();
    let writing = std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    let output = child.wait_with_output().expect("it ends");
    writing.join().expect("it writes");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{stdout}{stderr}", output.status);
    stdout
}

#[track_caller]
pub(crate) fn spawn(command: &mut Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap_or_else(|error| panic!("{error}: {command:?}; run `cargo xtask packages`"))
}

/// A server for a story: it stays where it is, and has a board with a week.
fn stage() -> TestTally {
    let mut server = TestTally::start(TALLY);
    server.stay();
    let weekly = json!([{"name": "weekly", "schedule": "0 0 * * 1"}]);
    server.local().put("/v1/leaderboards/season", &json!({"update": "sum", "periods": weekly})).expect(201);
    server
}

/// Lets a script run its story.
#[track_caller]
fn tell(mut script: Command) {
    let mut server = stage();
    let resp = server.resp();
    let mut child = spawn(script.arg(resp.ip().to_string()).arg(resp.port().to_string()));
    let mut asking = child.stdin.take().expect("it is piped");
    let mut ended = false;
    for line in BufReader::new(child.stdout.take().expect("it is piped")).lines() {
        let answer = match line.expect("it prints text").as_str() {
            "kill" => {
                server.kill9();
                server.restart();
                "restarted".to_owned()
            }
            "key" => {
                let made = server.local().post("/v1/keys", &json!({"role": "server"})).expect(201);
                made["key"].as_str().expect("it is shown once").to_owned()
            }
            "end" => {
                ended = true;
                continue;
            }
            other => panic!("the script prints {other:?}"),
        };
        // A script that failed has ended; its own message is below.
        drop(writeln!(asking, "{answer}"));
    }
    let mut stderr = String::new();
    child.stderr.take().expect("it is piped").read_to_string(&mut stderr).expect("it prints text");
    let status = child.wait().expect("it ends");
    assert!(status.success() && ended, "{script:?}: {status}\n{stderr}");
}

#[test]
fn redis_py() {
    let mut script = python();
    script.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/libraries/story.py"));
    tell(script);
}

#[test]
fn redis_rs() {
    tell(Command::new(fetched("rust/build/debug/story")));
}

#[test]
fn node_redis() {
    tell(node(include_str!("story_redis.mjs"), "story_redis.mjs"));
}

#[test]
fn ioredis() {
    tell(node(include_str!("story_ioredis.mjs"), "story_ioredis.mjs"));
}
