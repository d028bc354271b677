//! Rules about the text of files: heads, lengths, unfinished marks, paths of one machine.
//!
//! They check lines, not syntax: a mark in a string or a comment counts as well. This file puts the forbidden words
//! together from halves, so that it passes its own rules without an exemption.
//!
//! Not here: the length of functions, which clippy counts (`too-many-lines-threshold`); `lints.rs` checks that setting.

use super::Violation;
use super::repository::{File, Repository};

pub(super) const LENGTH: &str = "file-length";
pub(super) const HEAD: &str = "file-head";
pub(super) const MARKS: &str = "unfinished";
pub(super) const EXAMPLES: &str = "doc-example";
pub(super) const MACHINE_PATHS: &str = "machine-path";

/// Longest file of code, in lines.
const CODE_LINES_MAX: usize = 400;

/// Longest test file: tables of cases are long and read one case at a time.
const TEST_LINES_MAX: usize = 600;

const MARK_WORDS: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX")];
const MARK_CALLS: [&str; 2] = [concat!("to", "do!("), concat!("unim", "plemented!(")];
const IGNORED_TEST: &str = concat!("#[", "ignore");
const IGNORED_DOC: &str = concat!("``", "`ignore");
const FENCE: &str = "```";
const MACHINE_FOLDERS: [&str; 3] = [concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/wo", "rk/")];

/// Generated, so it has no marks of authors.
const GENERATED: &str = "Cargo.lock";

pub(super) fn lengths(repository: &Repository) -> Vec<Violation> {
    let too_long = |file: &File| {
        let max = if is_test(&file.path) { TEST_LINES_MAX } else { CODE_LINES_MAX };
        let lines = file.text.lines().count();
        (lines > max).then(|| {
            Violation::new(LENGTH, &file.path, 0, format!("has {lines} lines, at most {max} are allowed"))
        })
    };
    rust(repository).filter_map(too_long).collect()
}

fn is_test(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("/tests.rs")
}

pub(super) fn heads(repository: &Repository) -> Vec<Violation> {
    let headless = rust(repository).filter(|file| !file.text.starts_with("//!"));
    let message = "the first line must start with `//!` and say what the file is, why it has this shape, what it does not do";
    headless.map(|file| Violation::new(HEAD, &file.path, 1, message)).collect()
}

pub(super) fn marks(repository: &Repository) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in repository.files.iter().filter(|file| file.path != GENERATED) {
        for (number, line) in file.lines() {
            let word = MARK_WORDS.iter().find(|word| has_word(line, word)).copied();
            let call = MARK_CALLS.iter().find(|call| file.is_rust() && line.contains(**call)).copied();
            if let Some(mark) = word.or(call) {
                let message = format!("`{mark}`: an open fault is an issue and a failing test, not a mark");
                found.push(Violation::new(MARKS, &file.path, number, message));
            }
            if file.is_rust() && is_ignored(line) {
                let message = "a test that does not run looks like safety: assert what holds today instead";
                found.push(Violation::new(MARKS, &file.path, number, message));
            }
        }
    }
    found
}

/// A test or an example that never runs; skipping a slow one only under Miri is fine.
fn is_ignored(line: &str) -> bool {
    let by_configuration =
        line.contains("#[cfg_attr(") && has_word(line, "ignore") && !line.contains("cfg_attr(miri,");
    line.contains(IGNORED_TEST) || line.contains(IGNORED_DOC) || by_configuration
}

/// Code in a documentation comment that rustdoc would run. The test command does not run rustdoc, which compiles each crate
/// again.
pub(super) fn examples(repository: &Repository) -> Vec<Violation> {
    let message = "no command runs this example: make it a test, or write `text` behind the fence";
    let mut found = Vec::new();
    for file in rust(repository) {
        let mut inside = false;
        for (number, line) in file.lines() {
            let comment = ["///", "//!"].into_iter().find_map(|mark| line.trim_start().strip_prefix(mark));
            let Some(tag) = comment.and_then(|comment| comment.trim().strip_prefix(FENCE)) else { continue };
            if !inside && tag != "text" {
                found.push(Violation::new(EXAMPLES, &file.path, number, message));
            }
            inside = !inside;
        }
    }
    found
}

pub(super) fn machine_paths(repository: &Repository) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in &repository.files {
        for (number, line) in file.lines() {
            if let Some(folder) = MACHINE_FOLDERS.iter().find(|folder| has_path(line, folder)) {
                let message = format!("`{folder}` is a folder of one machine");
                found.push(Violation::new(MACHINE_PATHS, &file.path, number, message));
            }
        }
    }
    found
}

/// Whether an absolute path in `line` starts with `folder`; inside an address or a longer path it does not count.
fn has_path(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '}' | '~' | '*'))
    })
}

fn has_word(line: &str, word: &str) -> bool {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(part_of_word) && !after.is_some_and(part_of_word)
    })
}

fn rust(repository: &Repository) -> impl Iterator<Item = &File> {
    repository.files.iter().filter(|file| file.is_rust())
}

#[cfg(test)]
mod tests {
    use super::super::tests::files;
    use super::*;

    fn lines_of(found: &[Violation]) -> Vec<(&str, usize)> {
        found.iter().map(|violation| (violation.path.as_str(), violation.line)).collect()
    }

    #[test]
    fn files_of_code_and_of_tests_have_their_own_bounds() {
        let (code, long, test) = ("\n".repeat(400), "\n".repeat(401), "\n".repeat(600));
        let found = lengths(&files(&[
            ("a.rs", &code),
            ("b.rs", &long),
            ("c/tests/d.rs", &test),
            ("c/src/tests.rs", &test),
            ("c/src/contests.rs", &test),
            ("e.md", &test),
        ]));
        assert_eq!(lines_of(&found), [("b.rs", 0), ("c/src/contests.rs", 0)]);
    }

    #[test]
    fn a_file_without_a_head_is_a_violation() {
        let found =
            heads(&files(&[("a.rs", "//! What.\n"), ("b.rs", "mod c;\n"), ("c.rs", ""), ("d.sh", "ls\n")]));
        assert_eq!(lines_of(&found), [("b.rs", 1), ("c.rs", 1)]);
    }

    #[test]
    fn marks_are_found_as_words_in_every_text() {
        let text =
            format!("ok\n# {}: later\nmktemp x.{}X {}LIST\n", MARK_WORDS[0], MARK_WORDS[2], MARK_WORDS[0]);
        let found = marks(&files(&[("a.toml", &text), (GENERATED, &text)]));
        assert_eq!(lines_of(&found), [("a.toml", 2)]);
    }

    #[test]
    fn unfinished_code_and_silent_tests_are_found() {
        let text = [
            format!("    {})", MARK_CALLS[0]),
            format!("    {}\"later\")", MARK_CALLS[1]),
            format!("    {}]", IGNORED_TEST),
            format!("    {} = \"slow\"]", IGNORED_TEST),
            format!("/// {IGNORED_DOC}"),
            concat!("#[cfg_attr(feature = \"x\", ig", "nore)]").to_owned(),
            concat!("#[cfg_attr(miri, ig", "nore = \"slow under Miri\")]").to_owned(),
        ];
        let found = marks(&files(&[("a.rs", &text.join("\n"))]));
        assert_eq!(found.iter().map(|violation| violation.line).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn examples_that_nothing_runs_are_found() {
        let text = "//! ```text\n//! a\n//! ```\n/// ```\n/// b();\n/// ```\n    //! ```rust\n";
        assert_eq!(
            lines_of(&examples(&files(&[("a.rs", text), ("b.md", text)]))),
            [("a.rs", 4), ("a.rs", 7)]
        );
    }

    #[test]
    fn paths_of_one_machine_are_found_and_addresses_are_not() {
        let [root, home, _] = MACHINE_FOLDERS;
        let text = format!(
            "see {home}me/x\n'{root}.x'\nhttps://example.org{home}x\n{{base}}{home}x\nworkspace{root}\n"
        );
        let found = machine_paths(&files(&[("a.md", &text)]));
        assert_eq!(lines_of(&found), [("a.md", 1), ("a.md", 2)]);
    }
}
