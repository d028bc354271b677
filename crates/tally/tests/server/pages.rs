//! Pages of the documents whose commands work as they are on `tally serve --demo`. Each command succeeds, and each answer that a
//! page shows is a part of the real one.

use crate::demo::demo;
use serde_json::Value;
use tally_testkit::TestTally;

/// The pages of `docs/how-to` with commands, and the concepts.
const PAGES: [&str; 16] = [
    include_str!("../../../../docs/how-to/friends.md"),
    include_str!("../../../../docs/how-to/seasons.md"),
    include_str!("../../../../docs/how-to/cheaters.md"),
    include_str!("../../../../docs/how-to/many-scores.md"),
    include_str!("../../../../docs/how-to/money.md"),
    include_str!("../../../../docs/how-to/contest.md"),
    include_str!("../../../../docs/how-to/names.md"),
    include_str!("../../../../docs/how-to/ties.md"),
    include_str!("../../../../docs/how-to/support.md"),
    include_str!("../../../../docs/how-to/sign-in.md"),
    include_str!("../../../../docs/how-to/shop.md"),
    include_str!("../../../../docs/how-to/take-back.md"),
    include_str!("../../../../docs/how-to/series.md"),
    include_str!("../../../../docs/how-to/owed.md"),
    include_str!("../../../../docs/how-to/erase.md"),
    include_str!("../../../../docs/concepts.md"),
];

/// Prints the answer of each `curl` as a line.
const PRELUDE: &str =
    "set -euo pipefail\ncurl() { command curl --silent --show-error --fail-with-body \"$@\"; echo; }\n";

/// Runs the commands of a page at this server, and compares the shown answers. Returns the number of commands.
pub(crate) fn run_page(server: &TestTally, text: &str, which: impl Fn(&str) -> bool) -> usize {
    let (mut commands, mut answer) = (0, None);
    for part in text.split("\n```").skip(1) {
        let (language, block) = part.split_once('\n').unwrap_or((part, ""));
        match language {
            "sh demo" if which(block) => {
                answer = Some(run(server, block));
                commands += block.matches("curl ").count();
            }
            "json" => {
                let Some(answer) = answer.take() else { continue };
                let read = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
                let (shown, real) = (read(block), read(&answer));
                assert!(is_part(&shown, &real), "the page shows {shown}, and the answer is {real}");
            }
            // An answer stands directly below its commands.
            _ if !block.trim().is_empty() => answer = None,
            _ => {}
        }
    }
    commands
}

/// Runs a block; returns the last line that it printed.
fn run(server: &TestTally, block: &str) -> String {
    let here = block.replace("127.0.0.1:8420", &server.address().to_string());
    let mut bash = std::process::Command::new("bash");
    let done = bash.args(["-c", &format!("{PRELUDE}{here}")]).output().expect("bash runs");
    let printed = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{block}\n{printed}");
    printed.lines().rfind(|line| !line.is_empty()).unwrap_or_default().to_owned()
}

/// Whether all fields that are shown are in the answer. Lists are whole.
fn is_part(shown: &Value, real: &Value) -> bool {
    match (shown, real) {
        (Value::Object(shown), Value::Object(real)) => {
            shown.iter().all(|(name, value)| real.get(name).is_some_and(|real| is_part(value, real)))
        }
        (Value::Array(shown), Value::Array(real)) => {
            shown.len() == real.len() && shown.iter().zip(real).all(|(shown, real)| is_part(shown, real))
        }
        _ => shown == real,
    }
}

#[test]
fn pages_with_commands_work_as_they_are() {
    let mut server = demo();
    server.restart();
    for page in PAGES {
        assert!(run_page(&server, page, |_| true) > 0, "{page}");
    }
}
