//! The output of a run of the matrix: the longest rejection of each kind in each cell, as a table of Markdown.
//!
//! Not here: the table that is kept, in `docs/operate/failures.md`.

use super::load::COLUMNS;
use super::run::Row;
use std::fmt::Write;
use std::time::Duration;

/// A table with a line for each cell.
pub(crate) fn table(rows: &[(String, Row)]) -> String {
    let mut text = format!("| cell | {} | ready |\n", COLUMNS.join(" | "));
    text.push_str(&"|---".repeat(COLUMNS.len() + 2));
    text.push_str("|\n");
    for (name, row) in rows {
        write!(text, "| `{name}` |").expect("it is text");
        for time in row.refused.iter().chain([&row.ready]) {
            write!(text, " {} |", seconds(*time)).expect("it is text");
        }
        text.push('\n');
    }
    text
}

fn seconds(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64())
}

#[test]
fn a_line_has_a_column_for_each_kind() {
    let refused = [Duration::from_millis(1_240); COLUMNS.len()];
    let text = table(&[("redis-1-frozen".to_owned(), Row { refused, ready: Duration::from_millis(60) })]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.iter().all(|line| line.matches('|').count() == COLUMNS.len() + 3), "{text}");
    assert_eq!(lines[2], "| `redis-1-frozen` | 1.2 | 1.2 | 1.2 | 1.2 | 1.2 | 1.2 | 1.2 | 1.2 | 0.1 |");
}
