//! The totals of a test run, summed over the output of the test binaries.
//!
//! A binary that dies without a result (an abort, a crash) counts as one failure: the totals are never better than the
//! truth.

use anyhow::{Result, bail};

/// The tests that passed and failed.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(crate) struct Totals {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl Totals {
    /// Parses the output of one binary; `succeeded` is its exit status.
    pub(super) fn of(printed: &[u8], succeeded: bool) -> Self {
        let mut totals = Self::default();
        // A test may print bytes that are not text, which must not end the run.
        String::from_utf8_lossy(printed).lines().for_each(|line| totals.add_line(line));
        if !succeeded && totals.failed == 0 {
            totals.failed = 1;
        }
        totals
    }

    /// The line that a build server searches for.
    pub(crate) fn closing_line(self) -> String {
        format!("{} passed, {} failed", self.passed, self.failed)
    }

    pub(super) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }

    fn add_line(&mut self, line: &str) {
        let Some((_, counts)) = line.split_once("test result: ") else { return };
        for part in counts.split([';', '.']) {
            let mut words = part.split_whitespace();
            let Some(count) = words.next().and_then(|word| word.parse::<u64>().ok()) else { continue };
            match words.next() {
                Some("passed") => self.passed += count,
                Some("failed") => self.failed += count,
                Some(_) | None => {}
            }
        }
    }

    /// The verdict on all binaries.
    pub(super) fn verdict(self) -> Result<()> {
        if self.failed > 0 {
            bail!("{} failed", self.failed);
        }
        if self.passed == 0 {
            bail!("no test ran: does the filter match anything?");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_added() {
        let printed = "running 3 tests\n\
             test a ... ok\n\
             test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 2 filtered out; finished in 0.10s\n\
             test result: FAILED. 1 passed; 2 failed; 7 ignored; 0 measured; 0 filtered out; finished in 12.00s\n";
        let totals = Totals::of(printed.as_bytes(), false);
        assert_eq!(totals, Totals { passed: 4, failed: 2 });
        assert_eq!(totals.closing_line(), "4 passed, 2 failed");
    }

    #[test]
    fn a_result_after_a_line_without_end_is_still_found() {
        let printed =
            b"a test printed \xffthistest result: ok. 1 passed; 0 failed; 0 ignored; finished in 0.00s";
        assert_eq!(Totals::of(printed, true), Totals { passed: 1, failed: 0 });
    }

    #[test]
    fn the_verdict_is_never_better_than_the_truth() {
        let good = b"test result: ok. 5 passed; 0 failed; finished in 0.00s";
        assert!(Totals::of(good, true).verdict().is_ok());
        assert_eq!(Totals::of(good, false), Totals { passed: 5, failed: 1 });
        assert!(Totals::of(good, false).verdict().is_err());
        assert!(Totals::of(b"killed", false).verdict().is_err());
        assert!(Totals::of(b"", true).verdict().unwrap_err().to_string().contains("no test ran"));
    }
}
