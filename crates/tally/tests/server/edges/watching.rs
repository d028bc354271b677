//! The board for Grafana and the rules for Prometheus use only series of a running server.
//!
//! Every expression is read word by word: samples, labels and their values are compared with `/metrics`, functions with a list.
//! The rules are read line by line, in the one order that the file keeps. That order also makes it YAML without a reader of YAML.
//! Not here: whether a threshold is wise.

use super::metrics::{Family, of_all};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const BOARD: &str = include_str!("../../../../../deploy/grafana/tally.json");
const RULES: &str = include_str!("../../../../../deploy/prometheus/tally.rules.yml");
const UNIT_TESTS: &str = include_str!("../../../../../deploy/prometheus/tally.rules.test.yml");
const RUNBOOK: &str = include_str!("../../../../../docs/operate/alerts.md");

/// The labels that Prometheus puts on every series itself.
const SCRAPED: [&str; 2] = ["instance", "job"];
const FUNCTIONS: [&str; 10] = [
    "abs",
    "absent",
    "histogram_quantile",
    "increase",
    "label_values",
    "max",
    "rate",
    "sum",
    "time",
    "timestamp",
];
const WORDS: [&str; 4] = ["and", "by", "or", "unless"];

/// Labels with their values, by sample.
type Samples = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

fn samples(families: &BTreeMap<String, Family>) -> Samples {
    let mut all = Samples::new();
    for (name, labels, _) in families.values().flat_map(|(_, samples)| samples) {
        let known = all.entry(name.clone()).or_default();
        for (label, value) in labels {
            known.entry(label.clone()).or_default().insert(value.clone());
        }
    }
    all
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_:".contains(&byte)
}

/// The word at the beginning, and the text behind it.
fn word(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(|byte| is_word(*byte)).count())
}

/// A string in quotes at the beginning, and the text behind it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix('"')?.split_once('"')
}

/// The error of the matchers behind a sample, and the text behind them.
fn matchers<'a>(
    known: &BTreeMap<String, BTreeSet<String>>,
    text: &'a str,
    wrong: &mut Vec<String>,
) -> &'a str {
    let Some(mut rest) = text.strip_prefix('{') else { return text };
    while !rest.starts_with('}') {
        let (label, behind) = word(rest);
        let by_pattern = behind.starts_with("=~");
        let behind = behind.trim_start_matches(['=', '~', '!']);
        let Some((value, behind)) = quoted(behind).filter(|_| !label.is_empty()) else {
            wrong.push(format!("no matcher: {rest}"));
            return "";
        };
        let wanted: Vec<&str> = if by_pattern { value.split('|').collect() } else { vec![value] };
        match known.get(label) {
            None if SCRAPED.contains(&label) => {}
            None => wrong.push(format!("no label {label}")),
            Some(values) => {
                let missing = wanted.into_iter().filter(|value| !values.contains(*value));
                wrong.extend(missing.map(|value| format!("no {label} is {value:?}")));
            }
        }
        rest = behind.strip_prefix(',').unwrap_or(behind);
    }
    &rest[1..]
}

/// The parts of an expression that no server has.
fn wrong_in(samples: &Samples, expression: &str) -> Vec<String> {
    let (mut wrong, mut bare, mut labels) = (Vec::new(), Vec::new(), BTreeSet::from(SCRAPED));
    let (mut rest, mut asked) = (expression, 0);
    while let Some(first) = rest.bytes().next() {
        if first == b'[' {
            rest = rest.split_once(']').map_or("", |(_, behind)| behind);
        } else if first.is_ascii_digit() {
            rest = rest.trim_start_matches(|sign: char| sign.is_ascii_digit() || sign == '.');
        } else if is_word(first) {
            let (name, behind) = word(rest);
            rest = behind;
            if let Some(known) = samples.get(name) {
                asked += 1;
                labels.extend(known.keys().map(String::as_str));
                rest = matchers(known, behind, &mut wrong);
            } else if !WORDS.contains(&name) {
                let called = behind.starts_with('(') || behind.starts_with(" by (");
                if !(called && FUNCTIONS.contains(&name)) {
                    bare.push(name);
                }
            }
        } else {
            if !b" (),+-*/<>=".contains(&first) {
                wrong.push(format!("not understood: {rest}"));
                break;
            }
            rest = &rest[1..];
        }
    }
    // A name alone is a label, of the given ones.
    let unknown = bare.into_iter().filter(|name| !labels.contains(name));
    wrong.extend(unknown.map(|name| format!("neither a sample nor a label of one: {name}")));
    if asked == 0 {
        wrong.push("it asks for nothing".to_owned());
    }
    wrong
}

/// Labels between double braces.
fn shown(legend: &str) -> impl Iterator<Item = &str> {
    legend.split("{{").skip(1).map(|rest| rest.split("}}").next().unwrap_or_default().trim())
}

/// The samples of servers, and what Prometheus adds to them.
fn of_servers() -> Samples {
    let mut samples = samples(&of_all());
    samples.insert("up".to_owned(), BTreeMap::new());
    samples
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_else(|| panic!("no {name} in {value}"))
}

/// The errors of the board.
fn wrong_in_board(samples: &Samples, board: &str) -> Vec<String> {
    let board: Value = serde_json::from_str(board).expect("the board is JSON");
    let (mut wrong, mut ids) = (Vec::new(), BTreeSet::new());
    for variable in board["templating"]["list"].as_array().expect("variables") {
        if text(variable, "type") == "query" {
            wrong.extend(wrong_in(samples, text(variable, "query")));
        }
    }
    for panel in board["panels"].as_array().expect("panels") {
        let title = text(panel, "title");
        if !ids.insert(panel["id"].as_u64().expect("a number")) {
            wrong.push(format!("{title}: its number is another's"));
        }
        let targets = panel["targets"].as_array().map_or(&[][..], Vec::as_slice);
        if targets.is_empty() == (text(panel, "type") != "row") {
            wrong.push(format!("{title}: questions are for panels that are no rows"));
        }
        for target in targets {
            let expression = text(target, "expr");
            let found = wrong_in(samples, expression);
            wrong.extend(found.into_iter().map(|one| format!("{title}: {one}")));
            let strange = shown(text(target, "legendFormat"))
                .filter(|label| !word_of(expression, label) && !SCRAPED.contains(label));
            wrong.extend(strange.map(|label| format!("{title}: no label {label} to show")));
        }
    }
    wrong
}

fn word_of(expression: &str, wanted: &str) -> bool {
    expression.split(|sign: char| !sign.is_ascii() || !is_word(sign as u8)).any(|word| word == wanted)
}

/// A line's value between single quotes, which has none inside.
fn single<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let value = line.trim_start().strip_prefix(key)?.strip_prefix(": '")?.strip_suffix('\'')?;
    (!value.is_empty() && !value.contains('\'')).then_some(value)
}

/// The errors of the rules.
fn wrong_in_rules(samples: &Samples, rules: &str) -> Vec<String> {
    let lines: Vec<&str> = rules.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let head = ["groups:", "  - name: tally", "    rules:"];
    let Some(rules) = lines.strip_prefix(&head) else { return vec!["another head".to_owned()] };
    let (mut wrong, mut names) = (Vec::new(), BTreeSet::new());
    for rule in rules.chunks(9) {
        let &[alert, expr, wait, labels, severity, annotations, summary, description, runbook] = rule else {
            wrong.push(format!("a rule of other lines: {rule:?}"));
            break;
        };
        let name = alert.strip_prefix("      - alert: ").unwrap_or_default();
        let minutes = wait.strip_prefix("        for: ").and_then(|time| time.strip_suffix('m'));
        let severity = severity.strip_prefix("          severity: ").unwrap_or_default();
        let whole = name.starts_with("Tally")
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && minutes.is_some_and(|minutes| minutes.parse::<u32>().is_ok_and(|minutes| minutes > 0))
            && (labels, annotations) == ("        labels:", "        annotations:")
            && ["critical", "warning", "info"].contains(&severity)
            && summary.starts_with("          summary: ")
            && single(summary, "summary").is_some()
            && description.starts_with("          description: ")
            && single(description, "description").is_some_and(|text| text.len() > 80)
            && single(runbook, "runbook")
                == Some(&*format!("docs/operate/alerts.md#{}", name.to_lowercase()))
            && RUNBOOK.contains(&format!("\n### {name}\n"))
            && UNIT_TESTS.contains(&format!("alertname=\"{name}\""));
        if !whole || !names.insert(name) {
            wrong.push(format!("not a whole rule, or twice: {rule:?}"));
        }
        match single(expr, "expr").filter(|_| expr.starts_with("        expr: ")) {
            Some(expression) => {
                let found = wrong_in(samples, expression);
                wrong.extend(found.into_iter().map(|one| format!("{name}: {one}")));
            }
            None => wrong.push(format!("{name}: no expression")),
        }
    }
    wrong
}

/// The programs of Prometheus agree with the file, and each rule fires on its series alone.
#[test]
fn promtool_takes_the_rules_and_their_tests() {
    for (task, file) in [("check", "tally.rules.yml"), ("test", "tally.rules.test.yml")] {
        let path = format!("{}/../../deploy/prometheus/{file}", env!("CARGO_MANIFEST_DIR"));
        let ran = std::process::Command::new("promtool").args([task, "rules", &path]).output();
        let ran = ran.expect("promtool is there: `cargo xtask packages` installs it");
        let said = [ran.stdout, ran.stderr].concat();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&said));
    }
}

#[test]
fn board_and_rules_ask_for_what_a_server_tells() {
    let samples = of_servers();
    assert_eq!(wrong_in_board(&samples, BOARD), Vec::<String>::new());
    assert_eq!(wrong_in_rules(&samples, RULES), Vec::<String>::new());
    // A wrong name, label or value would be found at any position.
    for (was, is) in [
        ("tally_store_unflushed_ratio", "tally_store_unflushed"),
        ("tally_store_connections_used", "tally_store_connections_busy"),
        ("tally_ready", "tally_http_requests"),
        ("lane=", "line="),
        ("stage=\\\"commit\\\"", "stage=\\\"comit\\\""),
        ("sum by (class)", "sum by (kind)"),
        ("{{state}}", "{{phase}}"),
        ("rate(", "rat("),
        ("outcome=~\\\"full|", "outcome=~\\\"lost|"),
    ] {
        assert!(BOARD.contains(was), "{was}");
        assert!(!wrong_in_board(&samples, &BOARD.replacen(was, is, 1)).is_empty(), "{was}");
    }
    for (was, is) in [
        ("tally_store_unflushed_ratio", "tally_store_unflushed"),
        ("found=\"hit\"", "found=\"hits\""),
        ("by (instance, le)", "by (instance, bound)"),
        ("route=\"/v1", "path=\"/v1"),
        ("for: 5m", "for: 5"),
        ("severity: info", "severity: low"),
        ("          description: ", "          details: "),
        ("alerts.md#tallyabsent", "alerts.md#tallyaway"),
        ("- alert: TallyDiskFull", "- alert: TallyDiskFilled"),
        ("tally_ready == 0'", "tally_ready == 0"),
    ] {
        assert!(RULES.contains(was), "{was}");
        assert!(!wrong_in_rules(&samples, &RULES.replacen(was, is, 1)).is_empty(), "{was}");
    }
}
