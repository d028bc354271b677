//! Reports as text, JSON and a page, with invented figures.

use super::*;

fn small() -> RunInfo {
    RunInfo { small: true, ..RunInfo::default() }
}

fn report() -> Report {
    let mut report = Report::new("made-up", "a <bold> claim & its figures", small());
    let mut table = Table::new("Rates", &["way", "per second"]);
    table.row(vec!["plain".into(), number(7_431.2)]);
    table.row(vec!["batched".into(), number(123_456.0)]);
    report.tables.push(table);
    let target = RatioTarget { floor: 10.0, aim: 20.0 };
    report.ratios.push(Ratio::at_least("batched / plain", 16.6, target));
    report.ratios.push(Ratio::at_most("bytes", 70.0, "bytes", RatioTarget { floor: 60.0, aim: 45.0 }));
    report.charts.push(Chart {
        title: "Rate over callers".into(),
        x: Axis::logarithmic("callers"),
        y: Axis::linear("per second"),
        series: vec![Series { name: "plain".into(), points: vec![(1.0, 10.0), (4.0, 12.0), (0.0, 1.0)] }],
    });
    report.note("a note");
    report
}

#[test]
fn columns_of_the_text_are_aligned() {
    let text = report().to_text();
    assert!(text.contains("  way      per second\n  plain         7,431\n  batched     123,456\n"), "{text}");
    assert!(text.contains("small numbers"), "{text}");
}

#[test]
fn verdicts_know_which_way_is_better() {
    let verdicts: Vec<RatioVerdict> = report().ratios.iter().map(|ratio| ratio.verdict).collect();
    assert_eq!(verdicts, [RatioVerdict::Floor, RatioVerdict::Missed]);
    let at_aim = Ratio::at_most("x", 45.0, "ns", RatioTarget { floor: 60.0, aim: 45.0 });
    assert_eq!(at_aim.verdict, RatioVerdict::Aim);
    assert_eq!(Ratio::times("x", 1.0).verdict, RatioVerdict::NoTarget);
}

#[test]
fn the_page_draws_its_charts_and_fetches_nothing() {
    let page = report().to_html();
    assert!(page.contains("<svg") && page.contains("<polyline"));
    assert!(page.contains("a &lt;bold&gt; claim &amp; its figures"));
    for fetches in ["http:", "https:", "src=", "href=", "@import", "url("] {
        assert!(!page.contains(fetches), "{fetches}");
    }
}

#[test]
fn a_chart_without_points_is_still_drawn() {
    let chart = Chart {
        title: "nothing".into(),
        x: Axis::logarithmic("x"),
        y: Axis::linear("y"),
        series: vec![Series { name: "none".into(), points: Vec::new() }],
    };
    assert!(chart.svg().contains("<svg"));
}

#[test]
fn json_has_what_the_page_has() {
    let read: serde_json::Value = serde_json::from_str(&report().to_json()).unwrap();
    assert_eq!(read["ratios"][0]["verdict"], "floor");
    assert_eq!(read["tables"][0]["rows"][1][1], "123,456");
    assert!(read["machine"]["cores"].as_u64().unwrap() > 0);
}

#[test]
fn a_run_beside_others_says_that_it_is_not_to_be_quoted() {
    let disturbed = Report { others_percent: Some(40.0), ..report() };
    assert!(disturbed.to_text().contains("others used 40 % of the processors during the run: too much"));
    let quiet = Report { others_percent: Some(3.0), ..report() };
    assert!(quiet.to_html().contains("others used 3 % of the processors during the run<"));
}

#[test]
fn what_was_left_out_says_so_and_has_no_figures() {
    let skipped = Report::skipped("a", "what it measures", "there is no <server>".into(), RunInfo::default());
    assert_eq!(skipped.to_text(), "a: what it measures\n  skipped: there is no <server>\n");
    assert!(skipped.to_html().contains("skipped: there is no &lt;server&gt;"));
    let read: serde_json::Value = serde_json::from_str(&skipped.to_json()).unwrap();
    assert_eq!(read["skipped"], "there is no <server>");
    assert!(serde_json::from_str::<serde_json::Value>(&report().to_json()).unwrap()["skipped"].is_null());
}

#[test]
fn numbers_have_three_digits_or_all_of_their_thousands() {
    let cases = [
        (0.0, "0"),
        (0.012_34, "0.0123"),
        (0.5, "0.50"),
        (12.34, "12.3"),
        (999.0, "999"),
        (-1_234_567.0, "-1,234,567"),
    ];
    for (value, text) in cases {
        assert_eq!(number(value), text);
    }
}

#[test]
fn the_three_forms_are_written_beside_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let paths = report().write(&folder.path().join("new")).unwrap();
    let names: Vec<_> = paths.iter().filter_map(|path| path.file_name()?.to_str()).collect();
    assert_eq!(names, ["made-up.txt", "made-up.json", "made-up.html"]);
}
