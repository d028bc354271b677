//! The log lines of a failing disk: one for each cause, and one when it works again.
//!
//! Lines of other threads are not seen; the stores of these tests work on the thread of the test.

use std::collections::BTreeMap;
use std::fmt::Debug;
use tally_testkit::{LogLine, LogLines};

/// The operations that fail by the log, each with its cause.
#[derive(Default)]
pub(super) struct Failing(BTreeMap<String, String>);

impl Failing {
    /// Takes the lines so far. A repeated cause is an error.
    pub(super) fn take(&mut self, lines: &LogLines) -> Result<(), String> {
        for LogLine { message, cause, .. } in lines.take() {
            if let Some(what) = message.strip_suffix(": it works again") {
                self.0.remove(what);
            } else if let Some(what) = message.strip_suffix(": it is tried again until it works") {
                let before = self.0.insert(what.to_owned(), cause.clone());
                if before.as_ref() == Some(&cause) {
                    return Err(format!("the log says twice that it fails: {what}: {cause}"));
                }
            }
        }
        Ok(())
    }

    /// Whether the log reports no failing operation.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Debug for Failing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}
