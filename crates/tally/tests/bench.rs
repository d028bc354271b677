//! The scenarios that measure the server over the wire, with small numbers and the real programs: they run, their proofs
//! hold, and they write what they found. Not here: what any figure is.

use serde_json::Value;
use std::path::Path;
use tally_testkit::RedisKind;
use tally_testkit::command::run;

const TALLY: &str = env!("CARGO_BIN_EXE_tally");

/// Runs a scenario; gives its text and its report.
fn bench(scenario: &str, more: &[&str]) -> (String, Value) {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().to_str().unwrap();
    let args = [&["bench", scenario, "--small", "--report", report], more].concat();
    let text = run(TALLY, &args).expect(0).to_owned();
    let written = std::fs::read(folder.path().join(format!("{scenario}.json"))).unwrap();
    (text, serde_json::from_slice(&written).unwrap())
}

fn rows(report: &Value, table: usize) -> usize {
    report["tables"][table]["rows"].as_array().unwrap().len()
}

#[test]
fn http() {
    let (text, report) = bench("http", &[]);
    assert!(text.contains("each had the score acknowledged last"), "{text}");
    assert_eq!(rows(&report, 0), 5);
}

#[test]
fn resp() {
    let redis = RedisKind::Redis7.program();
    let (text, report) = bench("resp", &["--redis", redis.to_str().unwrap(), "--members", "1500"]);
    assert!(text.contains("1,500 members") && text.contains("Redis 7."), "{text}");
    assert_eq!([0, 1, 2].map(|class| rows(&report, class)), [6, 6, 6]);
    assert_eq!(report["charts"].as_array().unwrap().len(), 3);
    let ratios = report["ratios"].as_array().unwrap();
    let good = |ratio: &&Value| ratio["value"].as_f64().unwrap() > 0.0 && ratio["floor"].is_f64();
    assert_eq!(ratios.iter().filter(good).count(), 18, "{ratios:?}");
}

#[test]
fn without_redis_the_line_that_installs_it_comes_before_anything_runs() {
    let nowhere = Path::new("/nowhere/redis-server").to_str().unwrap();
    for scenario in ["resp", "all"] {
        let refused = run(TALLY, &["bench", scenario, "--small", "--redis", nowhere]);
        assert_ne!(refused.code, Some(0));
        assert!(refused.stderr.contains("apt-get install redis-server"), "{}", refused.stderr);
        assert_eq!(refused.stdout, "");
    }
}
