//! The log of a test server: the lines that its test has not allowed, and the last lines when the test fails.

use std::io::{BufRead, BufReader, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

const LINES_SHOWN: usize = 60;
const PANIC: &str = "panicked at";

/// The lines of the standard error of one server after the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerLog(Arc<Mutex<Vec<String>>>);

/// Shows the end of a log if the test fails until it is dropped.
pub(crate) struct ShownAtPanic(ServerLog);

impl ServerLog {
    pub(crate) fn push(&self, line: String) {
        self.lock().push(line);
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.lock().clone()
    }

    /// The lines of level WARN or ERROR, and panics, but for those with an allowed text.
    pub(crate) fn bad_lines(&self, allowed: &[String]) -> Vec<String> {
        let bad = [" WARN ", " ERROR ", "\"WARN\"", "\"ERROR\"", PANIC];
        let is_bad = |line: &&String| {
            bad.iter().any(|bad| line.contains(bad)) && !allowed.iter().any(|text| line.contains(text))
        };
        self.lock().iter().filter(is_bad).cloned().collect()
    }

    /// Prints the last lines, or all from a panic on.
    pub(crate) fn show_end(&self) {
        let log = self.lock();
        let panic = log.iter().position(|line| line.contains(PANIC)).unwrap_or(log.len());
        let shown = log[panic.min(log.len().saturating_sub(LINES_SHOWN))..].join("\n");
        let seed = crate::rng::seed();
        drop(writeln!(std::io::stderr(), "--- TALLY_SEED={seed}; the server's log ends:\n{shown}\n---"));
    }

    pub(crate) fn shown_at_panic(&self) -> ShownAtPanic {
        ShownAtPanic(self.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ShownAtPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.show_end();
        }
    }
}

/// Reads lines on a thread of its own until the end.
pub(crate) fn lines(
    from: impl Read + Send + 'static,
    mut each: impl FnMut(String) + Send + 'static,
) -> JoinHandle<()> {
    std::thread::spawn(move || {
        for line in BufReader::new(from).split(b'\n') {
            let Ok(line) = line else { return };
            each(String::from_utf8_lossy(&line).into_owned());
        }
    })
}
