//! The scenarios that measure the server over the wire, with small numbers and the real programs. They run, their proofs hold,
//! and they write their results. The server is the `tally` beside `tally-bench`: a test run of the workspace builds both. Not
//! here: the value of a figure.

use serde_json::Value;
use tally_testkit::command::run;
use tally_testkit::{DatabaseKind, RedisKind};

const BENCH: &str = env!("CARGO_BIN_EXE_tally-bench");

/// Runs a scenario; returns its text and its report.
fn bench(scenario: &str, more: &[&str]) -> (String, Value) {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().to_str().unwrap();
    let args = [&[scenario, "--small", "--report", report], more].concat();
    let text = run(BENCH, &args).expect(0).to_owned();
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
fn events() {
    let (text, report) = bench("events", &[]);
    assert!(text.contains("beside 20 streams"), "{text}");
    assert_eq!(rows(&report, 0), 4);
}

#[test]
fn endurance() {
    let (text, report) = bench("endurance", &[]);
    assert!(
        text.contains("keyed transfers a second") && text.contains("`tally verify` afterwards"),
        "{text}"
    );
    assert_eq!([0, 1].map(|table| rows(&report, table)), [6, 2]);
}

#[test]
fn followers() {
    let mysql = DatabaseKind::MariaDb10.program();
    let args = ["--mysql", mysql.to_str().unwrap(), "--players", "1500", "--handovers", "2", "--kills", "1"];
    let (text, report) = bench("followers", &args);
    assert!(text.contains("1,500 players, handovers: 2, kills: 1") && text.contains("MariaDB"), "{text}");
    assert!(text.contains("every acknowledged change of the takeovers is in the sums once"), "{text}");
    // A rate; four figures of submits, two reads at two servers, and two servers without work; two ways with and without a follower.
    assert_eq!([0, 1, 2, 3].map(|table| rows(&report, table)), [1, 10, 5, 4]);
    let ratios = report["ratios"].as_array().unwrap();
    assert!(ratios.iter().all(|ratio| ratio["value"].as_f64().unwrap() > 0.0), "{ratios:?}");
    assert_eq!(ratios.iter().filter(|ratio| ratio["floor"].is_f64()).count(), 3, "{ratios:?}");
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
fn mixed() {
    let (redis, mysql) = (RedisKind::Redis7.program(), DatabaseKind::MariaDb10.program());
    let (redis, mysql) = (redis.to_str().unwrap(), mysql.to_str().unwrap());
    let (text, report) = bench("mixed", &["--redis", redis, "--mysql", mysql, "--players", "1200"]);
    assert!(text.contains("1,200 players") && text.contains("MariaDB"), "{text}");
    // Four ways, each for players drawn in two ways.
    assert_eq!((rows(&report, 0), rows(&report, 1)), (8, 4));
    let ratios = report["ratios"].as_array().unwrap();
    assert_eq!(ratios.iter().filter(|ratio| ratio["floor"].is_f64()).count(), 12, "{ratios:?}");
    assert!(ratios.iter().all(|ratio| ratio["value"].as_f64().unwrap() > 0.0), "{ratios:?}");
}

#[test]
fn transfer() {
    let mysql = DatabaseKind::MariaDb10.program();
    let (text, report) = bench("transfer", &["--mysql", mysql.to_str().unwrap(), "--rows", "500"]);
    assert!(text.contains("100 members and 500 transactions") && text.contains("MariaDB"), "{text}");
    // Three flows through two pools and the lane with three numbers of callers, for each kind of traffic.
    assert_eq!([0, 1, 2].map(|traffic| rows(&report, traffic)), [9, 9, 9]);
    let ratios = report["ratios"].as_array().unwrap();
    assert_eq!(ratios.iter().filter(|ratio| ratio["value"].as_f64().unwrap() > 0.0).count(), 4, "{ratios:?}");
}

/// With a million it runs by the optimised binary, in `cargo xtask ci`.
#[test]
fn hundred_million() {
    let (redis, mysql) = (RedisKind::Redis7.program(), DatabaseKind::MariaDb10.program());
    let work = tempfile::tempdir().unwrap();
    let args = [
        "--players",
        "20000",
        "--redis",
        redis.to_str().unwrap(),
        "--mysql",
        mysql.to_str().unwrap(),
        "--work",
        work.path().to_str().unwrap(),
    ];
    let (text, report) = bench("hundred-million", &args);
    assert!(text.contains("20,000 players on one machine") && text.contains("R3 beside tally"), "{text}");
    for store in ["SQLite", "MariaDB"] {
        assert!(
            text.contains(&format!("{store}: the ranks of 200 random players are those of a count of all 2")),
            "{text}"
        );
    }
    let began = |report: &Value| report["tables"][1]["rows"].clone();
    assert_eq!(began(&report).as_array().unwrap().len(), 13);
    // A step's recorded finding is not searched again; a lost or invalid one is.
    let lost = work.path().join("close.json");
    std::fs::write(&lost, "{").unwrap();
    let (_, again) = bench("hundred-million", &args);
    let (began, again) = (began(&report), began(&again));
    let same = |at: usize| began[at] == again[at];
    let changed: Vec<&Value> = (0..13).filter(|at| !same(*at)).map(|at| &began[at][0]).collect();
    assert_eq!(changed, ["close"], "{began} {again}");
}

#[test]
fn a_scenario_that_is_named_refuses_without_what_it_needs_and_says_how_to_get_it() {
    let redis = RedisKind::Redis7.program();
    let redis = redis.to_str().unwrap();
    for (scenario, option, package) in [
        ("resp", "--redis", "redis-server"),
        ("page", "--redis", "redis-server"),
        ("contest-clear", "--redis", "redis-server"),
        ("upsert", "--mysql", "mariadb-server-core"),
        ("mixed", "--mysql", "mariadb-server-core"),
        ("transfer", "--mysql", "mariadb-server-core"),
        ("contest-start", "--mysql", "mariadb-server-core"),
        ("expiry", "--mysql", "mariadb-server-core"),
        ("followers", "--mysql", "mariadb-server-core"),
        ("hundred-million", "--mysql", "mariadb-server-core"),
    ] {
        let mut args = vec![scenario, "--small", option, "/nowhere/server"];
        if option != "--redis" {
            args.extend(["--redis", redis]);
        }
        let refused = run(BENCH, &args);
        assert_ne!(refused.code, Some(0));
        let line = format!("apt-get install {package}");
        assert!(refused.stderr.contains(&line) && refused.stderr.contains(option), "{}", refused.stderr);
        assert_eq!(refused.stdout, "");
    }
}

#[test]
fn all_leaves_out_what_cannot_run_here_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().to_str().unwrap();
    let nowhere = ["--redis", "/nowhere/redis-server", "--mysql", "/nowhere/mariadbd"];
    let args = [&["all", "--small", "--report", report], &nowhere[..]].concat();
    let text = run(BENCH, &args).expect(0).to_owned();
    for scenario in [
        "resp",
        "page",
        "contest-clear",
        "upsert",
        "drivers",
        "transfer",
        "mixed",
        "contest-start",
        "expiry",
        "followers",
        "hundred-million",
    ] {
        assert!(text.contains(&format!("\n{scenario}: ")), "{text}");
        let written = std::fs::read(folder.path().join(format!("{scenario}.json"))).unwrap();
        let written: Value = serde_json::from_slice(&written).unwrap();
        assert!(written["skipped"].as_str().unwrap().contains("apt-get install"), "{written}");
    }
    assert_eq!(text.matches("  skipped: ").count(), 11, "{text}");
    for scenario in ["index", "store", "submit", "periods", "http", "events", "endurance"] {
        let written = std::fs::read(folder.path().join(format!("{scenario}.json"))).unwrap();
        let written: Value = serde_json::from_slice(&written).unwrap();
        assert!(written["skipped"].is_null() && !written["tables"].as_array().unwrap().is_empty());
    }
}
