//! The settings behind the lints: every crate takes the workspace's, and no clippy.toml drops a limit.
//!
//! Two defaults of the tools make this necessary. A crate without `[lints] workspace = true` is not linted, and a
//! clippy.toml inside a crate replaces the one at the root instead of adding to it.
//!
//! Not here: which lints; they are in the root Cargo.toml.

use super::Violation;
use super::repository::{File, Repository};

pub(super) const RULE: &str = "lint-settings";

const THRESHOLD: &str = "too-many-lines-threshold = 80";

/// Lints that no file may switch off without an exemption: the limits that keep the code readable.
const KEPT: [&str; 2] = [concat!("clippy::too_many", "_lines"), concat!("clippy::", "all")];

/// The methods that `rules` may not call; the crate bans them in its clippy.toml.
const CLOCKS: [&str; 2] = ["std::time::SystemTime::now", "std::time::Instant::now"];
const CLOCK_FREE: &str = "crates/rules/clippy.toml";

pub(super) fn check(repository: &Repository) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut report =
        |path: &str, line, message: String| found.push(Violation::new(RULE, path, line, message));
    for package in repository.members() {
        let inherits = repository.file(&package.manifest).is_some_and(|file| inherits_lints(&file.text));
        if !inherits {
            report(&package.manifest, 0, "needs `[lints]` with `workspace = true`".to_owned());
        }
    }
    for path in ["clippy.toml", CLOCK_FREE] {
        if repository.file(path).is_none() {
            report(path, 0, "is missing".to_owned());
        }
    }
    for file in &repository.files {
        let is_settings = file.path == "clippy.toml" || file.path.ends_with("/clippy.toml");
        if is_settings && !file.text.lines().any(|line| line.trim() == THRESHOLD) {
            report(&file.path, 0, format!("needs the line `{THRESHOLD}`"));
        }
        if file.path == CLOCK_FREE {
            for clock in CLOCKS.iter().filter(|clock| !file.text.contains(**clock)) {
                report(&file.path, 0, format!("must disallow {clock}"));
            }
        }
        for (line, lint) in switched_off(file) {
            report(&file.path, line, format!("switches off {lint}"));
        }
    }
    found
}

fn inherits_lints(manifest: &str) -> bool {
    let section = manifest.lines().map(str::trim).skip_while(|line| *line != "[lints]").skip(1);
    section.take_while(|line| !line.starts_with('[')).any(|line| line == "workspace = true")
        || manifest.lines().any(|line| line.trim() == "lints.workspace = true")
}

fn switched_off(file: &File) -> Vec<(usize, &'static str)> {
    if !file.is_rust() {
        return Vec::new();
    }
    let attribute = |line: &str| line.contains("allow(") || line.contains("expect(");
    let kept = |line: &str| KEPT.into_iter().find(|lint| attribute(line) && line.contains(lint));
    file.lines().filter_map(|(number, line)| kept(line).map(|lint| (number, lint))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::metadata::Package;
    use super::super::tests::files;
    use super::*;

    fn messages(manifest: &str, root: &str, rules: &str, code: &str) -> Vec<String> {
        let mut repository = files(&[
            ("a/Cargo.toml", manifest),
            ("clippy.toml", root),
            (CLOCK_FREE, rules),
            ("a/src/lib.rs", code),
        ]);
        repository.packages.push(Package {
            member: true,
            manifest: "a/Cargo.toml".into(),
            ..Package::default()
        });
        check(&repository)
            .into_iter()
            .map(|violation| format!("{}: {}", violation.path, violation.message))
            .collect()
    }

    const GOOD: &str = "[package]\n[lints]\nworkspace = true\n[dependencies]\n";

    fn rules() -> String {
        format!("{THRESHOLD}\ndisallowed-methods = [{CLOCKS:?}]\n")
    }

    #[test]
    fn complete_settings_pass() {
        assert_eq!(messages(GOOD, THRESHOLD, &rules(), "#![allow(dead_code)]\n"), Vec::<String>::new());
    }

    #[test]
    fn a_crate_outside_the_lints_is_a_violation() {
        let found = messages("[package]\n[lints.rust]\n[x]\nworkspace = true\n", THRESHOLD, &rules(), "");
        assert_eq!(found, ["a/Cargo.toml: needs `[lints]` with `workspace = true`"]);
    }

    #[test]
    fn a_forgotten_threshold_or_clock_is_a_violation() {
        assert_eq!(messages(GOOD, "", &rules(), ""), [format!("clippy.toml: needs the line `{THRESHOLD}`")]);
        let found = messages(GOOD, THRESHOLD, THRESHOLD, "");
        assert_eq!(found, CLOCKS.map(|clock| format!("{CLOCK_FREE}: must disallow {clock}")));
        assert_eq!(check(&files(&[])).len(), 2);
    }

    #[test]
    fn switching_a_limit_off_is_a_violation() {
        let code = format!("#[expect({}, reason = \"long\")]\n", KEPT[0]);
        assert_eq!(
            messages(GOOD, THRESHOLD, &rules(), &code),
            [format!("a/src/lib.rs: switches off {}", KEPT[0])]
        );
    }
}
