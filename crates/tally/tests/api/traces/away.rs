//! A collector that takes nothing: requests do not notice, lost spans are counted, and secrets are not logged.

use super::collector::Collector;
use super::{TALLY, server};
use serde_json::json;
use tally_testkit::{Client, TestTally, wait_until};

const GONE: &str = "traces are not delivered";

/// The number of spans with that outcome.
fn counted(client: &mut Client, outcome: &str) -> u64 {
    let text = client.get("/metrics").text();
    let line = format!("tally_trace_spans_total{{outcome=\"{outcome}\"}} ");
    let count = text.lines().find_map(|found| found.strip_prefix(&line));
    count.unwrap_or_else(|| panic!("no {line} in {text}")).parse().expect("a count")
}

#[track_caller]
fn serves(client: &mut Client, board: &str) {
    client.put(&format!("/v1/leaderboards/{board}"), &json!({})).expect(201);
    for score in 0..20 {
        let score = json!({"player": "ann", "score": score});
        client.post(&format!("/v1/leaderboards/{board}/scores"), &score).expect(200);
    }
}

#[track_caller]
fn wait(client: &mut Client, outcome: &str) {
    wait_until(outcome, || counted(client, outcome) > 0);
}

/// Waits for the line with the reason of the failed delivery: it may come a moment after it was counted.
#[track_caller]
fn logged(server: &TestTally, why: &str) {
    wait_until(why, || server.log().iter().any(|line| line.contains(GONE) && line.contains(why)));
}

#[test]
fn no_listener() {
    // No test gets this port. One that was free a moment ago may be another test's by now.
    let url = "http://127.0.0.1:1";
    let settings = [("TALLY_TRACES_URL", url), ("TALLY_TRACES_RATIO", "1")];
    let mut server = TestTally::start_set(TALLY, &settings);
    server.allow(GONE);
    let mut client = server.client();
    serves(&mut client, "b");
    wait(&mut client, "undelivered");
    logged(&server, "cannot be reached");
    assert_eq!((counted(&mut client, "sent"), counted(&mut client, "rejected")), (0, 0));
    let told = server.run(&["doctor"]).expect(0).to_owned();
    assert!(told.contains(&format!("warn  traces {url}/v1/traces: it cannot be reached")), "{told}");
}

#[test]
fn a_silent_collector_that_comes_back() {
    let collector = Collector::start();
    collector.answer(None);
    let mut server = server(&collector, "1", &[("TALLY_TRACES_TIMEOUT", "50ms")]);
    server.allow(GONE);
    let mut client = server.client();
    serves(&mut client, "b");
    wait(&mut client, "undelivered");
    assert!(collector.spans().is_empty());
    logged(&server, "did not answer");
    collector.answer(Some(200));
    serves(&mut client, "c");
    collector.wait(|spans| spans.iter().any(|span| span.name == "PUT /v1/leaderboards/{board}"));
    wait(&mut client, "sent");
    server.terminate();
    assert!(server.log().iter().any(|line| line.contains("traces are delivered again")));
}

/// It would wait for two answers of a minute each.
#[test]
fn a_server_ends_in_its_time_whatever_waits() {
    let collector = Collector::start();
    collector.answer(None);
    let settings = [("TALLY_TRACES_TIMEOUT", "60s"), ("TALLY_HTTP_DRAIN_TIMEOUT", "1s")];
    let mut server = server(&collector, "1", &settings);
    let late = "traces were still to be sent";
    server.allow(late);
    serves(&mut server.client(), "b");
    server.terminate();
    assert!(server.log().iter().any(|line| line.contains(late)));
}

#[test]
fn only_the_collector_gets_the_header() {
    let collector = Collector::start();
    let header = ("TALLY_TRACES_HEADER", "x-api-key: very-secret");
    let mut server = server(&collector, "1", &[header, ("TALLY_LOG_LEVEL", "trace")]);
    let status = server.local().get("/v1/status").expect(200);
    assert_eq!(status["settings"]["traces.header"], json!({"value": "…", "source": "environment"}));
    assert!(!status.to_string().contains("very-secret"));
    let told = server.run(&["doctor"]).expect(0).to_owned();
    assert!(told.contains(&format!("ok    traces {}/v1/traces: the collector takes them", collector.url())));
    server.terminate();
    assert!(collector.heads().iter().all(|head| head.contains("x-api-key: very-secret")));
    assert!(collector.heads().len() > 1);
    assert!(!server.log().iter().any(|line| line.contains("very-secret")));
}

#[test]
fn nothing_is_sent_unless_it_is_asked_for() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    serves(&mut client, "b");
    for outcome in ["sent", "full", "undelivered", "rejected"] {
        assert_eq!(counted(&mut client, outcome), 0, "{outcome}");
    }
    let told = server.run(&["doctor"]).expect(0).to_owned();
    assert!(told.contains("ok    traces: off"), "{told}");
}
