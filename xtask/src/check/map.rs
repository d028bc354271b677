//! Every folder below `crates/` has its row in the map of ARCHITECTURE.md.
//!
//! The map is the first thing a newcomer reads, and a crate that it leaves out does not exist for them. A row is a line that
//! starts with the name of the folder and a slash, as a table, a list or a drawing of the tree has it.
//!
//! Not here: whether what the row says is true; `edges.rs` holds the part of it that a tool can hold.

use super::Violation;
use super::repository::Repository;

pub(super) const RULE: &str = "architecture-map";

const MAP: &str = "ARCHITECTURE.md";

pub(super) fn check(repository: &Repository) -> Vec<Violation> {
    let Some(map) = repository.file(MAP) else {
        return vec![Violation::new(RULE, MAP, 0, "is missing")];
    };
    let missing = repository
        .crate_folders()
        .into_iter()
        .filter(|name| !map.text.lines().any(|line| is_row(line, name)));
    missing.map(|name| Violation::new(RULE, MAP, 0, format!("has no row for crates/{name}"))).collect()
}

/// Whether the line starts with `name/`, or is a full `crates/name`; frames and quotes aside.
fn is_row(line: &str, name: &str) -> bool {
    let line = line.trim_start_matches(|c: char| !c.is_alphanumeric());
    let (line, full) = match line.strip_prefix("crates/") {
        Some(rest) => (rest, true),
        None => (line, false),
    };
    let Some(rest) = line.strip_prefix(name) else { return false };
    let end = rest.chars().next();
    end == Some('/') || (full && !end.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '-'))
}

#[cfg(test)]
mod tests {
    use super::super::tests::files;
    use super::*;

    fn messages(map: &str) -> Vec<String> {
        let repository =
            files(&[(MAP, map), ("crates/load/Cargo.toml", ""), ("crates/rules/src/lib.rs", "")]);
        check(&repository).into_iter().map(|violation| violation.message).collect()
    }

    #[test]
    fn rows_are_found_in_trees_tables_and_lists() {
        assert_eq!(messages("crates/\n  load/   the wire\n  rules/  no clock\n"), Vec::<String>::new());
        assert_eq!(
            messages("| `crates/load` | x |\n| [`rules/`](crates/rules) | y |\n"),
            Vec::<String>::new()
        );
        assert_eq!(messages("├── load/\n- crates/rules: no clock\n"), Vec::<String>::new());
    }

    #[test]
    fn a_crate_without_a_row_is_a_violation() {
        assert_eq!(messages("  load/  uses rules/\n"), ["has no row for crates/rules"]);
        assert_eq!(messages("  load/\n  rules2/\n rules of the house\n"), ["has no row for crates/rules"]);
        assert_eq!(check(&files(&[]))[0].message, "is missing");
    }
}
