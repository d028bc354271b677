//! The log of a server: its reader may be slow or gone, and each line of a log in JSON is an object.
//!
//! Not here: security events (`security_events`), and which lines repeat each other (`tally/src/log/repeats.rs`).

use crate::TALLY;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Read};
use tally_testkit::command::run_set;
use tally_testkit::{OwnLogServer, Request, wait_until};
use tempfile::TempDir;

/// A server with this stderr that is ready.
fn start(stderr: PipeWriter, settings: &[(&str, &str)]) -> OwnLogServer {
    OwnLogServer::start(TALLY, stderr, settings)
}

#[test]
fn a_reader_of_the_log_that_stalls_stops_nothing_and_is_told_what_it_missed() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let mut server = start(writer, &[("TALLY_LOG_LEVEL", "debug")]);
    server.log_much();
    let full = server.lines("full");
    assert!(full > 0.0, "the log has no bound");
    // The reader goes on, and the lines of the log with it.
    let reading = std::thread::spawn(move || {
        BufReader::new(reader).lines().map(|line| line.expect("the log is text")).collect::<Vec<_>>()
    });
    wait_until("a line is written", || server.lines("written") > 0.0);
    server.end();
    let lines = reading.join().expect("it reads to the end");
    let told = lines.iter().filter_map(|line| line.split("lines of the log were dropped").nth(1));
    let told: f64 = told.filter_map(|rest| rest.split("lines=").nth(1)?.trim().parse::<f64>().ok()).sum();
    assert!(told >= full, "{told} of {full}");
    assert!(lines.last().is_some_and(|line| line.contains("stopped")), "{:?}", lines.last());
}

#[test]
fn a_server_goes_on_without_a_reader_of_its_log() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut server = start(writer, &[("TALLY_LOG_LEVEL", "debug")]);
    server.log_much();
    wait_until("a line is not written", || server.lines("failed") >= 1.0);
    server.end();
}

fn lines(mut reader: PipeReader) -> Vec<Value> {
    let mut text = String::new();
    reader.read_to_string(&mut text).expect("the log is text");
    let line = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    text.lines().map(line).collect()
}

fn messages(reader: PipeReader) -> Vec<String> {
    let message = |line: Value| line["fields"]["message"].as_str().expect("a line has a message").to_owned();
    lines(reader).into_iter().map(message).collect()
}

/// Acts have a line each, and what players and game servers do has none.
#[test]
fn an_act_of_an_administrator_is_a_line() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let mut server = start(writer, &[("TALLY_LOG_FORMAT", "json")]);
    let client = &mut server.client;
    client.put("/v1/leaderboards/goals", &json!({})).expect(201);
    client.post("/v1/leaderboards/goals/scores", &json!({"player": "ann", "score": 1})).expect(200);
    client.post("/v1/leaderboards/goals/players/ann/ban", &json!({})).expect(200);
    client.get("/v1/leaderboards/goals/scores").expect(200);
    let cup = json!({"id": "cup", "title": "Cup"});
    let create = || Request::new("POST", "/v1/contests").json(&cup).idempotent("once");
    client.send(&create()).expect(201);
    client.send(&create()).expect(201);
    client.post("/v1/contests", &cup).refused(409, "contest_exists");
    client.post("/v1/contests/cup/open", &json!({})).expect(200);
    client.post("/v1/contests/cup/applications", &json!({"player": "ann"})).expect(201);
    let accept = json!({"players": ["ann"]});
    client.post("/v1/contests/cup/applications/accept", &accept).expect(200);
    server.end();
    let acts: Vec<Value> = lines(reader).into_iter().filter(|line| line["target"] == "tally::acts").collect();
    let subjects: Vec<&str> = acts.iter().filter_map(|line| line["fields"]["subject"].as_str()).collect();
    let wanted = [
        "PUT /v1/leaderboards/goals",
        "POST /v1/leaderboards/goals/players/ann/ban",
        "POST /v1/contests",
        "POST /v1/contests/cup/open",
        "POST /v1/contests/cup/applications/accept",
    ];
    assert_eq!(subjects, wanted);
    let fields = &acts[0]["fields"];
    assert_eq!((&fields["message"], &fields["address"]), (&json!("administrative act"), &json!("127.0.0.1")));
    assert!(fields["actor"].is_string() && fields["request_id"].is_string(), "{fields}");
}

#[test]
fn a_log_in_json_is_json_from_the_start_to_the_end() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    start(writer, &[("TALLY_LOG_FORMAT", "json")]).end();
    let said = messages(reader);
    let life: Vec<&str> = said
        .iter()
        .map(String::as_str)
        .filter(|said| ["starting", "ready", "draining", "stopped"].contains(said))
        .collect();
    assert_eq!(life, ["starting", "ready", "draining", "stopped"], "{said:?}");
}

#[test]
fn an_error_before_the_log_starts_is_json_too() {
    let data = TempDir::with_prefix("tally-log-").expect("it can be made");
    let wrong = ("TALLY_HTTP_BODY_TIMEOUT", "soon");
    let serve = ["serve", "--http", "127.0.0.1:0", "--resp", "off", "--config", "none.toml"];
    let by_variable = run_set(TALLY, data.path(), &serve, &[("TALLY_LOG_FORMAT", "json")]);
    let by_flag = run_set(TALLY, data.path(), &["serve", "--log", "json", "--http", "127.0.0.1:0"], &[wrong]);
    for (ended, code, named) in [(by_variable, 1, "none.toml"), (by_flag, 2, "http.body_timeout")] {
        ended.expect(code);
        let line = ended.stderr.lines().last().expect("it says why");
        let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(line["level"], "ERROR");
        assert!(line["fields"]["message"].as_str().is_some_and(|said| said.contains(named)), "{line}");
        assert!(ended.stderr.lines().all(|line| line.starts_with('{')), "{}", ended.stderr);
    }
}
