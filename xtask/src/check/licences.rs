//! Licences of everything in Cargo.lock, against a list of those that a binary under Apache-2.0 OR MIT may contain.
//!
//! The expressions are the small language of SPDX: `A OR B` (also written `A/B`), `A AND B`, `A WITH exception`,
//! parentheses. An expression passes if some choice of it consists of allowed licences.
//!
//! Not here: reading licence files. A package that declares none fails and is then looked at by a person.

use anyhow::{Context, Result, bail};

use super::Violation;
use super::repository::Repository;

pub(super) const RULE: &str = "licence";

/// Licences that ask for no more than naming the authors. Licences that ask for source code with the binary, even for single
/// files (MPL-2.0), are left out: `tally` is one file that people copy to a server, and nothing it needs forces the question.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0", // of data: the certificates of `webpki-roots`; asks for its text beside them, and nothing of what is made with them
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Deeper nesting than any licence has; a bound because the text is not ours.
const DEPTH_MAX: usize = 8;

pub(super) fn check(repository: &Repository) -> Vec<Violation> {
    let mut found = Vec::new();
    for package in &repository.packages {
        let message = match package.licence.as_deref().map(allowed) {
            Some(Ok(true)) => continue,
            Some(Ok(false)) => {
                format!("{} is under `{}`", package.name, package.licence.as_deref().unwrap_or_default())
            }
            Some(Err(error)) => format!("{}: cannot read its licence: {error:#}", package.name),
            None => format!("{} declares no licence", package.name),
        };
        let path = if package.member { &package.manifest } else { "Cargo.lock" };
        found.push(Violation::new(RULE, path, 0, message));
    }
    found
}

/// Whether an SPDX expression can be satisfied with allowed licences alone.
fn allowed(expression: &str) -> Result<bool> {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut parser = Parser { words: &words, depth: 0 };
    let verdict = parser.any()?;
    match parser.words.first() {
        None => Ok(verdict),
        Some(word) => bail!("`{word}` is left over in `{expression}`"),
    }
}

struct Parser<'a> {
    words: &'a [&'a str],
    depth: usize,
}

impl<'a> Parser<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(first)
    }

    fn take(&mut self, word: &str) -> bool {
        let found = self.words.first() == Some(&word);
        if found {
            self.words = &self.words[1..];
        }
        found
    }

    fn any(&mut self) -> Result<bool> {
        let mut verdict = self.all()?;
        while self.take("OR") {
            verdict |= self.all()?;
        }
        Ok(verdict)
    }

    fn all(&mut self) -> Result<bool> {
        let mut verdict = self.one()?;
        while self.take("AND") {
            verdict &= self.one()?;
        }
        Ok(verdict)
    }

    fn one(&mut self) -> Result<bool> {
        let name = self.next().context("a licence is missing")?;
        if name == "(" {
            self.depth += 1;
            if self.depth > DEPTH_MAX {
                bail!("nested more than {DEPTH_MAX} deep");
            }
            let verdict = self.any()?;
            self.depth -= 1;
            if !self.take(")") {
                bail!("a parenthesis is not closed");
            }
            return Ok(verdict);
        }
        if matches!(name, ")" | "OR" | "AND" | "WITH") {
            bail!("a licence is missing before `{name}`");
        }
        if self.take("WITH") {
            let exception = self.next().context("an exception is missing")?;
            return Ok(ALLOWED.contains(&format!("{name} WITH {exception}").as_str()));
        }
        Ok(ALLOWED.contains(&name))
    }
}

#[cfg(test)]
mod tests {
    use super::super::metadata::Package;
    use super::*;

    fn messages(licence: Option<&str>) -> Vec<String> {
        let package = Package { name: "p".into(), licence: licence.map(str::to_owned), ..Package::default() };
        let repository = Repository { files: Vec::new(), packages: vec![package] };
        check(&repository).into_iter().map(|violation| violation.message).collect()
    }

    #[test]
    fn a_choice_that_is_allowed_is_enough() {
        for licence in [
            "MIT",
            "MIT/Apache-2.0",
            "LGPL-2.1-or-later OR MIT",
            "(MIT OR GPL-3.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR GPL-2.0",
        ] {
            assert_eq!(messages(Some(licence)), Vec::<String>::new(), "{licence}");
        }
    }

    #[test]
    fn licences_outside_the_list_are_violations() {
        for licence in [
            "GPL-3.0-only",
            "MPL-2.0",
            "MIT AND GPL-3.0",
            "(MIT OR ISC) AND AGPL-3.0",
            "MIT WITH odd-exception",
        ] {
            assert_eq!(messages(Some(licence)), [format!("p is under `{licence}`")]);
        }
        assert_eq!(messages(None), ["p declares no licence"]);
    }

    #[test]
    fn what_cannot_be_read_does_not_pass() {
        for licence in ["", "MIT OR", "(MIT", "MIT)", "MIT Apache-2.0", "AND MIT"] {
            assert!(allowed(licence).is_err(), "{licence}");
        }
        let deep = format!("{}MIT{}", "(".repeat(100), ")".repeat(100));
        assert!(allowed(&deep).unwrap_err().to_string().contains("deep"));
    }
}
