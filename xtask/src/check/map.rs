//! ARCHITECTURE.md: its length, its table of crates, and the source files that documents name.
//!
//! Newcomers read the table of crates first, so each folder below `crates/` has a row. The last cell of a row has what the
//! crate may use. It is computed from `edges.rs`, and a violation prints the cell to insert. A path of a source file in a
//! document misleads its reader if the file does not exist, so that is a violation too.
//!
//! Not here: whether the prose of a row is true.

use super::Violation;
use super::edges::{EDGES, Edges, Outside};
use super::links::outside_fences;
use super::repository::Repository;

pub(super) const RULE: &str = "architecture-map";
pub(super) const PATHS: &str = "source-path";

const MAP: &str = "ARCHITECTURE.md";

/// Readers read the page as a whole; reasons and figures are in `docs/decisions`.
const LINES_MAX: usize = 150;

pub(super) fn check(repository: &Repository) -> Vec<Violation> {
    let Some(map) = repository.file(MAP) else {
        return vec![Violation::new(RULE, MAP, 0, "is missing")];
    };
    let missing = repository
        .crate_folders()
        .into_iter()
        .filter(|name| !map.text.lines().any(|line| is_row(line, name)));
    let mut found: Vec<Violation> =
        missing.map(|name| Violation::new(RULE, MAP, 0, format!("has no row for crates/{name}"))).collect();
    let lines = map.text.lines().count();
    if lines > LINES_MAX {
        let message = format!("has {lines} lines, at most {LINES_MAX} are allowed: see docs/decisions");
        found.push(Violation::new(RULE, MAP, 0, message));
    }
    for (number, line) in map.lines() {
        let Some(row) = EDGES.iter().find(|row| is_row_of(line, row)) else { continue };
        let wanted = may_use(row);
        if !line.ends_with(&format!("| {wanted} |")) {
            found.push(Violation::new(RULE, MAP, number, format!("put this into the last cell: {wanted}")));
        }
    }
    found
}

/// Whether the line starts with `name/` or a full `crates/name`, apart from frames and quotes.
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

/// Whether the line is the row of this crate in the table of crates.
fn is_row_of(line: &str, row: &Edges) -> bool {
    let folder = match short(row.name) {
        "xtask" => "xtask".to_owned(),
        name => format!("crates/{name}"),
    };
    line.starts_with(&format!("| `{folder}` |"))
}

/// The name of a crate's folder.
fn short(name: &str) -> &str {
    name.strip_prefix("tally-").unwrap_or(name)
}

/// What a crate may use, as the last cell of its row.
fn may_use(row: &Edges) -> String {
    let mut parts: Vec<String> = Vec::new();
    if !row.inside.is_empty() {
        parts.push(row.inside.iter().map(|name| short(name)).collect::<Vec<_>>().join(", "));
    }
    match row.outside {
        Outside::Any => parts.push("any library".to_owned()),
        Outside::Never(names) => parts.push(format!("any library but {}", names.join(", "))),
        Outside::Only([]) => parts.push("no library".to_owned()),
        Outside::Only(names) => parts.push(format!("libraries: {}", names.join(", "))),
    }
    parts.join("; ")
}

/// Source files that the documents name and the repository does not have.
pub(super) fn paths(repository: &Repository) -> Vec<Violation> {
    let mut found = Vec::new();
    let documents = repository.files.iter().filter(|file| is_document(&file.path));
    for file in documents {
        for (number, line) in outside_fences(&file.text) {
            for name in line.split('`').skip(1).step_by(2) {
                if is_source_path(repository, name) && !exists(repository, name) {
                    let message = format!("`{name}` is no file and no folder of this repository");
                    found.push(Violation::new(PATHS, &file.path, number, message));
                }
            }
        }
    }
    found
}

fn is_document(path: &str) -> bool {
    path == MAP || path == "CONTRIBUTING.md" || (path.starts_with("docs/") && path.ends_with(".md"))
}

/// A name with spaces or placeholders is no path.
fn is_source_path(repository: &Repository, name: &str) -> bool {
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '-' | '.'));
    let below_crate =
        name.split_once('/').is_some_and(|(first, _)| repository.crate_folders().contains(&first));
    plain && (name.ends_with(".rs") || name.starts_with("crates/") || below_crate)
}

/// Accepts the end of a file's path, or the whole path of a folder, with or without `crates/`.
fn exists(repository: &Repository, name: &str) -> bool {
    let name = name.trim_end_matches('/');
    let (file, folder, full) = (format!("/{name}"), format!("{name}/"), format!("crates/{name}/"));
    repository.files.iter().any(|entry| {
        let path = entry.path.as_str();
        path == name || path.ends_with(&file) || path.starts_with(&folder) || path.starts_with(&full)
    })
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
            messages("| [`crates/load`](crates/load) | x |\n| [`rules/`](crates/rules) | y |\n"),
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

    #[test]
    fn a_page_that_is_too_long_is_a_violation() {
        let page = |lines| format!("load/\nrules/\n{}", "\n".repeat(lines - 2));
        assert_eq!(messages(&page(LINES_MAX)), Vec::<String>::new());
        assert_eq!(messages(&page(LINES_MAX + 1)).len(), 1);
    }

    #[test]
    fn what_a_crate_may_use_is_the_table_of_edges() {
        let row = "| `crates/load` | load | wire; any library but rusqlite |\nrules/\n";
        assert_eq!(messages(row), Vec::<String>::new());
        let found = messages(&row.replace("wire", "wire, store"));
        assert_eq!(found, ["put this into the last cell: wire; any library but rusqlite"]);
        let row = Edges { name: "tally-a", inside: &[], outside: Outside::Only(&["b", "c"]) };
        assert_eq!(may_use(&row), "libraries: b, c");
        assert_eq!(may_use(&Edges { outside: Outside::Only(&[]), ..row }), "no library");
    }

    #[test]
    fn a_source_file_that_is_not_there_is_a_violation() {
        let text = "`rules/src/a.rs`, `src/a.rs`, `a.rs`, `rules/src`, `crates/rules`, `GET /a`, `b.md`, `*.rs`\n```\n`c.rs`\n```\n";
        let wrong = "`rules/src/b.rs`\n`b.rs` and `rules/gone`\n`crates/gone`\n";
        let repository = files(&[("docs/x.md", text), ("docs/y.md", wrong), ("crates/rules/src/a.rs", "")]);
        let found: Vec<(String, usize)> =
            paths(&repository).into_iter().map(|violation| (violation.path, violation.line)).collect();
        let at = |line| ("docs/y.md".to_owned(), line);
        assert_eq!(found, [at(1), at(2), at(2), at(3)]);
    }
}
