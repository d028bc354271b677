//! `unsafe` is allowed in `crates/index`, which Miri and a model check, in `crates/memory`, which calls the allocator, and in
//! the simulated disk of the test kit, which SQLite calls.
//!
//! The compiler rejects `unsafe` everywhere (`unsafe_code = "deny"` in the workspace), and an attribute or a manifest can
//! lift that. This rule finds where it is lifted. Examples may, because nothing links them.
//!
//! Not here: `unsafe` inside dependencies.

use super::Violation;
use super::repository::{File, Repository};

pub(super) const RULE: &str = "unsafe";

const LINT: &str = concat!("unsafe", "_code");

/// Levels below `deny`.
const LIFTED: [&str; 3] = ["allow", "expect", "warn"];

pub(super) fn check(repository: &Repository) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in repository.files.iter().filter(|file| !may_be_unsafe(&file.path)) {
        let lines = if file.is_rust() {
            attributes(file)
        } else if file.path.ends_with("Cargo.toml") {
            settings(file)
        } else {
            continue;
        };
        let message = "lifts the ban on `unsafe`, which is for crates/index, crates/memory and the simulated disk's VFS";
        found.extend(lines.into_iter().map(|line| Violation::new(RULE, &file.path, line, message)));
    }
    found
}

/// Only tests link the simulated disk.
const SIMULATED_VFS: [&str; 2] = ["crates/testkit/src/disk/vfs.rs", "crates/testkit/src/disk/vfs/file.rs"];

fn may_be_unsafe(path: &str) -> bool {
    if SIMULATED_VFS.contains(&path) {
        return true;
    }
    let mut parts = path.split('/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some("crates"), Some("index" | "memory"), Some(_)) => true,
        (Some("crates"), Some(_), Some(folder)) => folder == "examples",
        (_, _, _) => false,
    }
}

/// Lines of attributes such as `#![allow(dead_code, …)]`, also of those over several lines.
fn attributes(file: &File) -> Vec<usize> {
    let mut lines = Vec::new();
    for (at, _) in file.text.match_indices(LINT) {
        let before = &file.text[..at];
        let level = before.rsplit_once('(').map_or("", |(before, _)| before);
        if LIFTED.iter().any(|lifted| level.trim_end().ends_with(lifted)) {
            lines.push(before.matches('\n').count() + 1);
        }
    }
    lines
}

/// Lines of a manifest that set the lint to anything that only warns.
fn settings(file: &File) -> Vec<usize> {
    let lifts = |line: &str| {
        let value = line.trim().strip_prefix(LINT);
        value.is_some_and(|value| LIFTED.iter().any(|lifted| value.contains(&format!("\"{lifted}\""))))
    };
    file.lines().filter(|(_, line)| lifts(line)).map(|(number, _)| number).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::files;
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let text = text.replace("LINT", LINT);
        check(&files(&[(path, &text)])).into_iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn attributes_that_lift_the_ban_are_found() {
        assert_eq!(lines("crates/store/src/lib.rs", "//! x\n#![allow(LINT)]\n"), [2]);
        assert_eq!(lines("crates/store/src/lib.rs", "#[expect(\n    dead_code,\n    LINT,\n)]\n"), [3]);
        assert_eq!(lines("xtask/src/main.rs", "#![warn(LINT, reason = \"x\")]\n"), [1]);
        assert_eq!(lines("crates/store/src/lib.rs", "#![deny(LINT)]\n#![allow(dead_code)]\n"), [0; 0]);
    }

    #[test]
    fn manifests_that_lift_the_ban_are_found() {
        assert_eq!(lines("crates/store/Cargo.toml", "[lints.rust]\nLINT = \"allow\"\n"), [2]);
        assert_eq!(lines("Cargo.toml", "LINT = { level = \"warn\" }\n"), [1]);
        assert_eq!(lines("Cargo.toml", "LINT = \"deny\"\n"), [0; 0]);
    }

    #[test]
    fn the_index_the_allocator_the_simulated_disk_and_examples_may() {
        assert_eq!(lines("crates/testkit/src/disk/vfs.rs", "#![allow(LINT)]\n"), [0; 0]);
        assert_eq!(lines("crates/testkit/src/disk/state.rs", "#![allow(LINT)]\n"), [1]);
        assert_eq!(lines("crates/index/src/tree.rs", "#![allow(LINT)]\n"), [0; 0]);
        assert_eq!(lines("crates/memory/src/lib.rs", "#[expect(LINT)]\n"), [0; 0]);
        assert_eq!(lines("crates/bench/examples/raw.rs", "#![allow(LINT)]\n"), [0; 0]);
        assert_eq!(lines("crates/bench/src/examples/raw.rs", "#![allow(LINT)]\n"), [1]);
        assert_eq!(lines("crates/indexer/src/lib.rs", "#![allow(LINT)]\n"), [1]);
    }
}
