//! The Redis protocol: what arrived together is one span.

use super::collector::{Collector, Span};
use super::server;
use serde_json::json;
use tally_testkit::RespClient;

#[track_caller]
fn request<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    let found = spans.iter().find(|span| span.name == name && span.kind == 2);
    found.unwrap_or_else(|| panic!("no {name} in {spans:#?}"))
}

#[test]
fn a_pipeline_is_one_span_with_one_batch() {
    let collector = Collector::start();
    let mut server = server(&collector, "1", &[]);
    let mut client = RespClient::connect(server.resp());
    client.call(&["zadd", "scores", "1", "ann"]);
    client.pipeline(&[["ZADD", "scores", "2", "bob"], ["ZADD", "scores", "3", "cat"]]);
    client.pipeline(&[vec!["PING"], vec!["ZSCORE", "scores", "ann"]]);
    client.call(&["zscore", "scores"]);
    client.call(&["secret-word", "x"]);
    drop(client);
    server.terminate();
    let spans = collector.spans();
    let text = format!("{spans:?}");
    assert!(!text.contains("secret-word") && !text.contains("ann"), "{text}");
    let of = |name: &'static str| request(&spans, name);
    for (name, size, code) in [
        ("ZADD", None, None),
        ("PIPELINE ZADD", Some(2), None),
        ("PIPELINE", Some(2), None),
        ("ZSCORE", None, Some("ERR")),
        ("UNKNOWN", None, Some("ERR")),
    ] {
        let span = of(name);
        assert_eq!(span.attributes["db.operation.name"], name);
        assert_eq!(span.attributes.get("db.operation.batch.size"), size.map(|size| json!(size)).as_ref());
        assert_eq!(span.attributes.get("db.response.status_code"), code.map(|code| json!(code)).as_ref());
    }
    for (name, rows) in [("ZADD", 1), ("PIPELINE ZADD", 2)] {
        let mut stages: Vec<&Span> = spans.iter().filter(|span| span.parent == of(name).id).collect();
        stages.sort_by_key(|span| (span.start, span.end));
        let names: Vec<&str> = stages.iter().map(|span| span.name.as_str()).collect();
        assert_eq!(names, ["queue", "read", "commit", "publish"], "{spans:#?}");
        assert!(stages.iter().all(|span| of(name).start <= span.start && span.end <= of(name).end));
        let commit = &stages[2].attributes;
        assert_eq!((&commit["tally.batch.requests"], &commit["tally.batch.rows"]), (&json!(1), &json!(rows)));
    }
}
