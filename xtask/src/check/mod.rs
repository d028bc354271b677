//! `cargo xtask check`: the project's own rules, each a function over a description of the repository.
//!
//! A rule takes a [`Repository`] in memory and returns violations. It uses neither disk nor processes, so each rule has a
//! test with a violation; a rule that cannot fail is worse than none. The check is also a test (at the end of this file),
//! so the one test command runs it.
//!
//! Not here: what rustc, rustfmt and clippy check (lengths of functions, banned methods: see the files named clippy.toml),
//! and fixing anything.

mod edge_rules;
mod edges;
mod exemptions;
mod images;
mod links;
mod lints;
mod map;
pub(crate) mod metadata;
mod passwords;
mod ports;
mod repository;
mod text;
mod unsafety;

use anyhow::{Result, bail};

use crate::{process, readme};
use exemptions::{EXEMPTIONS, Exemption};
use repository::Repository;
pub(crate) use repository::project_files;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Violation {
    rule: &'static str,
    path: String,
    /// From 1; 0 is the file as a whole.
    line: usize,
    message: String,
}

impl Violation {
    fn new(rule: &'static str, path: &str, line: usize, message: impl Into<String>) -> Violation {
        Violation { rule, path: path.to_owned(), line, message: message.into() }
    }

    fn render(&self) -> String {
        let line = if self.line > 0 { format!(":{}", self.line) } else { String::new() };
        format!("{}{line}: {} [{}]", self.path, self.message, self.rule)
    }
}

/// A rule depends on the repository only.
type Rule = fn(&Repository) -> Vec<Violation>;

const RULES: &[(&str, Rule)] = &[
    (edge_rules::RULE, edge_rules::check),
    (text::LENGTH, text::lengths),
    (text::HEAD, text::heads),
    (text::MARKS, text::marks),
    (text::EXAMPLES, text::examples),
    (text::MACHINE_PATHS, text::machine_paths),
    (links::RULE, links::check),
    (map::RULE, map::check),
    (map::PATHS, map::paths),
    (unsafety::RULE, unsafety::check),
    (lints::RULE, lints::check),
    (images::RULE, images::check),
    (ports::RULE, ports::check),
    (passwords::RULE, passwords::check),
    ("readme", readme_commands),
];

pub(crate) fn main() -> Result<()> {
    let repository = repository::load(&process::root()?)?;
    let violations = violations(&repository, EXEMPTIONS);
    for violation in &violations {
        println!("{}", violation.render());
    }
    if !violations.is_empty() {
        bail!("check: {} violations of the project's rules", violations.len());
    }
    println!("check: {} rules hold in {} files", RULES.len(), repository.files.len());
    Ok(())
}

/// All violations without the exempt ones, and the exemptions without effect, so that the list does not become stale.
fn violations(repository: &Repository, exemptions: &[Exemption]) -> Vec<Violation> {
    let all: Vec<Violation> = RULES.iter().flat_map(|(_, rule)| rule(repository)).collect();
    let stale =
        exemptions.iter().filter(|exemption| !all.iter().any(|violation| exemption.covers(violation)));
    let stale: Vec<Violation> = stale
        .map(|exemption| {
            let message = format!("the exemption from `{}` covers nothing: remove it", exemption.rule);
            Violation::new("exemptions", exemption.path, 0, message)
        })
        .collect();
    let open =
        all.into_iter().filter(|violation| !exemptions.iter().any(|exemption| exemption.covers(violation)));
    let mut open: Vec<Violation> = open.chain(stale).collect();
    open.sort_by(|a, b| (&a.path, a.line, a.rule).cmp(&(&b.path, b.line, b.rule)));
    open
}

/// Whether `cargo xtask readme` runs each command of the README. This only reads the blocks.
fn readme_commands(repository: &Repository) -> Vec<Violation> {
    let Some(file) = repository.file("README.md") else {
        return vec![Violation::new("readme", "README.md", 0, "is missing")];
    };
    match readme::plan(&file.text) {
        Ok(_) => Vec::new(),
        Err(error) => vec![Violation::new("readme", "README.md", 0, format!("{error:#}"))],
    }
}

#[cfg(test)]
mod tests {
    use super::repository::File;
    use super::*;

    /// A repository of text files, for the rules that read nothing else.
    pub(super) fn files(files: &[(&str, &str)]) -> Repository {
        let files =
            files.iter().map(|(path, text)| File { path: (*path).into(), text: (*text).into() }).collect();
        Repository { files, packages: Vec::new() }
    }

    #[test]
    fn an_exemption_covers_its_rule_at_its_path_only() {
        let repository = files(&[("crates/a/src/x.rs", "mod y;\n"), ("crates/a/src/z.rs", "mod y;\n")]);
        let exemption = Exemption { rule: text::HEAD, path: "crates/a/src/x.rs", reason: "a fixture" };
        let heads = |exemptions: &[Exemption]| {
            let found = violations(&repository, exemptions);
            found.iter().filter(|violation| violation.rule == text::HEAD).count()
        };
        assert_eq!(heads(&[]), 2);
        assert_eq!(heads(&[exemption]), 1);
    }

    #[test]
    fn an_exemption_that_covers_nothing_is_reported() {
        let exemption = Exemption { rule: text::HEAD, path: "gone.rs", reason: "was a fixture" };
        let found = violations(&files(&[]), &[exemption]);
        assert!(found.iter().any(|violation| violation.rule == "exemptions" && violation.path == "gone.rs"));
    }

    #[test]
    fn a_readme_is_required_and_read() {
        assert_eq!(readme_commands(&files(&[]))[0].message, "is missing");
        let found = readme_commands(&files(&[("README.md", "```sh\nmake install\n```\n")]));
        assert!(found[0].message.contains("make install"), "{found:?}");
    }

    #[test]
    fn a_violation_reads_like_a_compiler_message() {
        let violation = Violation::new("head", "a.rs", 3, "no head");
        assert_eq!(violation.render(), "a.rs:3: no head [head]");
        assert_eq!(Violation::new("head", "a.rs", 0, "no head").render(), "a.rs: no head [head]");
    }

    #[test]
    fn the_repository_keeps_its_rules() {
        let repository = repository::load(&process::root().unwrap()).unwrap();
        let found: Vec<String> = violations(&repository, EXEMPTIONS).iter().map(Violation::render).collect();
        assert!(found.is_empty(), "\n{}\n", found.join("\n"));
    }
}
