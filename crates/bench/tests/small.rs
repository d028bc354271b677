//! Every scenario with small numbers, so that none can rot: it runs, its proof holds, its report has figures.
//!
//! `http` needs the server's binary, so its own run is a test of the crate that makes it.

use tally_bench::{Error, Options, Report, SCENARIOS, Size, run};

fn small(name: &str) -> Report {
    let options = Options { seconds: 0.1, ..Options::new(Size::Small) };
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
fn http_without_a_binary_says_what_it_needs() {
    let refused = run(&["http".to_owned()], &Options::new(Size::Small)).unwrap_err();
    assert!(matches!(&refused, Error::Missing(_)), "{refused}");
    assert!(refused.to_string().contains("tally_bin"), "{refused}");
}

#[test]
fn names_are_checked_before_anything_runs() {
    let names = ["index".to_owned(), "nothing".to_owned()];
    let refused = run(&names, &Options::new(Size::Small)).unwrap_err();
    assert!(matches!(refused, Error::UnknownScenario(name) if name == "nothing"));
}

#[test]
fn scenarios_have_names_of_their_own() {
    let mut names: Vec<_> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), SCENARIOS.len());
    assert!(SCENARIOS.iter().all(|scenario| !scenario.about.is_empty()));
}
