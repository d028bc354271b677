//! The program with third-party drivers: one run for one way, and its output.
//!
//! It is a workspace of its own, because the product needs none of its dependencies. Not here: the rows that it must leave.

use crate::error::{During, Error};
use serde::Deserialize;
use std::path::Path;
use std::process::{Command, Stdio};

/// The command that builds it.
pub(super) const BUILD: &str = "cargo xtask drivers";

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub(super) struct Figures {
    pub(super) operations: u64,
    pub(super) nanos: u64,
    pub(super) p50_nanos: u64,
    pub(super) p95_nanos: u64,
    pub(super) p99_nanos: u64,
    /// The sum of the previous scores.
    pub(super) previous: i64,
}

/// Runs it: this driver, this mode, on this database, with these operations.
pub(super) fn run(
    program: &Path,
    (way, mode): (&str, &str),
    url: &str,
    operations: &Path,
) -> Result<Figures, Error> {
    let mut command = Command::new(program);
    command.args([way, mode, url]).arg(operations).stdin(Stdio::null());
    let output = command.output().during("start the program of other drivers")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(Error::Proof(format!("{} {way} {mode}: {said}", program.display())));
    }
    serde_json::from_slice(&output.stdout).during("read what the program of other drivers says")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_says_is_a_line_of_numbers() {
        let line = r#"{"operations":2,"nanos":9,"p50_nanos":3,"p95_nanos":4,"p99_nanos":5,"previous":-7}"#;
        let said =
            Figures { operations: 2, nanos: 9, p50_nanos: 3, p95_nanos: 4, p99_nanos: 5, previous: -7 };
        assert_eq!(serde_json::from_str::<Figures>(line).unwrap(), said);
    }

    #[test]
    fn a_program_that_fails_fails_the_run() {
        let nowhere = Path::new("/nowhere/operations");
        assert!(matches!(run(Path::new("false"), ("", ""), "", nowhere), Err(Error::Proof(_))));
        assert!(matches!(run(Path::new("true"), ("", ""), "", nowhere), Err(Error::Failed(..))));
    }
}
