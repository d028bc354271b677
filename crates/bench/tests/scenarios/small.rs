//! Every scenario with small numbers, so that none can rot: it runs, its proof holds, its report has figures.
//!
//! Scenarios that measure the server over the wire run by the command, in `command.rs`.

use tally_bench::{Error, Options, SCENARIOS, Size, run};
use tally_load::report::Report;
use tally_testkit::{DatabaseKind, RedisKind, ScratchDatabase};

fn small(name: &str) -> Report {
    small_with(name, Options::new(Size::Small))
}

fn small_with(name: &str, options: Options) -> Report {
    let options = Options { seconds: 0.1, ..options };
    let mut reports = run(&[name.to_owned()], &options).expect("the scenario runs");
    let report = reports.remove(0);
    assert!(reports.is_empty());
    assert!(report.tables.iter().all(|table| !table.rows.is_empty()));
    assert!(report.ratios.iter().all(|ratio| ratio.value.is_finite() && ratio.value > 0.0));
    assert_eq!(report.others_percent.is_some(), cfg!(target_os = "linux"));
    assert!(report.to_text().contains("small numbers"));
    report
}

#[test]
fn index() {
    let report = small("index");
    assert!(report.ratios.len() >= 4, "{:?}", report.ratios);
}

#[test]
fn store() {
    let report = small("store");
    assert_eq!(report.tables[0].rows.len(), 6);
    assert!(report.ratios.len() >= 2, "{:?}", report.ratios);
}

#[test]
fn submit() {
    let report = small("submit");
    assert_eq!(report.tables[0].rows.len(), 4);
    assert!(report.to_html().contains("<svg"));
}

#[test]
fn periods() {
    let report = small("periods");
    assert_eq!(report.tables[0].rows.len(), 6);
}

#[test]
fn page() {
    let redis = RedisKind::Redis7.program();
    let report = small_with("page", Options { redis, ..Options::new(Size::Small) });
    // Two distances, each with values and ranks at both places, and the field report's own row.
    assert_eq!(report.tables.iter().map(|table| table.rows.len()).collect::<Vec<_>>(), [5, 5]);
    assert_eq!(report.ratios.iter().filter(|ratio| ratio.floor.is_some()).count(), 8);
    assert!(report.notes.iter().any(|note| note.contains("Redis server v=7.")), "{:?}", report.notes);
}

#[test]
fn contest_clear() {
    let redis = RedisKind::Redis7.program();
    let report = small_with("contest-clear", Options { redis, ..Options::new(Size::Small) });
    assert_eq!(report.tables.iter().map(|table| table.rows.len()).collect::<Vec<_>>(), [2, 2]);
    assert_eq!(report.ratios.iter().filter(|ratio| ratio.floor.is_some()).count(), 2);
    assert!(report.to_html().contains("<svg"));
}

#[test]
fn contest_start() {
    let mysql = DatabaseKind::MariaDb10.program().to_str().unwrap().to_owned();
    let report = small_with("contest-start", Options { mysql, ..Options::new(Size::Small) });
    // Two sizes in three ways, on each store.
    assert_eq!(report.tables.iter().map(|table| table.rows.len()).collect::<Vec<_>>(), [6, 6, 4]);
    assert_eq!(report.ratios.len(), 4);
    assert!(report.notes.iter().any(|note| note.contains("12.3 ×")), "{:?}", report.notes);
}

#[test]
fn expiry() {
    let mysql = DatabaseKind::MariaDb10.program().to_str().unwrap().to_owned();
    let report = small_with("expiry", Options { mysql, ..Options::new(Size::Small) });
    // Three ways on each store.
    assert_eq!(report.tables.iter().map(|table| table.rows.len()).collect::<Vec<_>>(), [3, 3]);
    assert_eq!(report.ratios.iter().filter(|ratio| ratio.floor.is_some()).count(), 2);
    assert!(report.notes.iter().any(|note| note.contains("MariaDB")), "{:?}", report.notes);
}

#[test]
fn upsert_on_a_database_of_its_own() {
    let mysql = DatabaseKind::MariaDb10.program().to_str().unwrap().to_owned();
    let report = small_with("upsert", Options { mysql, ..Options::new(Size::Small) });
    assert_eq!(report.tables[0].rows.len(), 8);
    // Two numbers of callers, against single upserts and two kinds of bulks, one of which has no target.
    assert_eq!(report.ratios.len(), 6);
    assert_eq!(report.ratios.iter().filter(|ratio| ratio.floor.is_some()).count(), 4);
    assert!(report.notes.iter().any(|note| note.contains("MariaDB") && note.contains("for the run")));
}

#[test]
fn upsert_on_a_database_that_is_given() {
    let server = ScratchDatabase::start(DatabaseKind::MySql9);
    let mysql = format!("mysql://root@{}", server.address());
    let options = Options { mysql, ..Options::new(Size::Small) };
    let refused = run(&["upsert".to_owned()], &options).unwrap_err();
    assert!(refused.to_string().contains("SET GLOBAL local_infile = 1"), "{refused}");
    server.sql("SET GLOBAL local_infile = 1");
    let report = small_with("upsert", options);
    assert_eq!(report.tables[0].rows.len(), 8);
    assert!(report.notes.iter().any(|note| note.contains("given by --mysql")));
    let left = server.sql("SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name LIKE 'tally%'");
    assert_eq!(left, "0");
}

#[test]
fn drivers_without_their_program_are_the_lanes_alone_and_the_command_that_builds_it() {
    let server = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let options = Options::new(Size::Small);
    let (mysql, drivers) = (format!("mysql://root@{}", server.address()), "/nowhere/drivers".into());
    let report = small_with("drivers", Options { mysql, drivers, ..options });
    assert_eq!((report.tables.len(), report.tables[0].rows.len()), (1, 1));
    assert!(report.notes.iter().any(|note| note.contains("cargo xtask drivers")), "{:?}", report.notes);
}

#[test]
fn without_a_database_the_line_that_installs_one_comes_before_anything_runs() {
    let mysql = "/nowhere/mariadbd".to_owned();
    let options = Options { mysql, ..Options::new(Size::Small) };
    let refused = run(&["upsert".to_owned()], &options).unwrap_err();
    assert!(matches!(&refused, Error::Missing(_)), "{refused}");
    assert!(refused.to_string().contains("apt-get install mariadb-server-core"), "{refused}");
}

#[test]
fn http_without_a_binary_says_what_it_needs() {
    let refused = run(&["http".to_owned()], &Options::new(Size::Small)).unwrap_err();
    assert!(matches!(&refused, Error::Missing(_)), "{refused}");
    assert!(refused.to_string().contains("--tally"), "{refused}");
}

#[test]
fn names_are_checked_before_anything_runs() {
    let names = ["index".to_owned(), "nothing".to_owned()];
    let refused = run(&names, &Options::new(Size::Small)).unwrap_err();
    assert!(matches!(refused, Error::UnknownScenario(name) if name == "nothing"));
}

#[test]
fn every_scenario_is_in_the_documentation() {
    let page = include_str!("../../../../docs/bench.md");
    for scenario in SCENARIOS {
        assert!(page.contains(&format!("\n| `cargo xtask bench {}` |", scenario.name)), "{}", scenario.name);
    }
    assert_eq!(page.matches("\n| `cargo xtask bench ").count(), SCENARIOS.len());
}

#[test]
fn scenarios_have_names_of_their_own() {
    let mut names: Vec<_> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), SCENARIOS.len());
    assert!(SCENARIOS.iter().all(|scenario| !scenario.about.is_empty()));
}
