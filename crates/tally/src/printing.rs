//! Printing: results on stdout, messages on stderr.
//!
//! The macros of the standard library panic if nothing reads the output any more, as behind `tally doctor | head -1`. Those here
//! have their names, and print nothing then: the command does the rest of its work, and ends as if it had been read. Another
//! error of stdout, such as a full disk, fails the command at its end. Not here: the log of a server (`log`).

use anyhow::{Result, bail};
use std::fmt::Arguments;
use std::io::{self, ErrorKind, StdoutLock, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Whether the reader of stdout has closed the pipe.
static IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// The first error of stdout that is no closed pipe.
static FAILED: OnceLock<io::Error> = OnceLock::new();

macro_rules! print {
    ($($text:tt)*) => { $crate::printing::on_stdout(format_args!($($text)*)) };
}

macro_rules! println {
    ($($text:tt)*) => { $crate::printing::on_stdout(format_args!("{}\n", format_args!($($text)*))) };
}

macro_rules! eprint {
    ($($text:tt)*) => { $crate::printing::on_stderr(format_args!($($text)*)) };
}

macro_rules! eprintln {
    ($($text:tt)*) => { $crate::printing::on_stderr(format_args!("{}\n", format_args!($($text)*))) };
}

/// Standard output, for commands that write much and end when it is closed.
pub(crate) struct Stdout(StdoutLock<'static>);

/// Standard output, until it is dropped.
pub(crate) fn stdout() -> Stdout {
    Stdout(io::stdout().lock())
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        note(self.0.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        note(self.0.flush())
    }
}

/// Remembers that stdout is closed, if that is why it could not be written.
fn note<T>(written: io::Result<T>) -> io::Result<T> {
    if written.as_ref().is_err_and(|error| error.kind() == ErrorKind::BrokenPipe) {
        IS_CLOSED.store(true, Relaxed);
    }
    written
}

/// Prints a text on stdout: the macros do.
pub(crate) fn on_stdout(text: Arguments<'_>) {
    if let Err(error) = io::stdout().lock().write_fmt(text)
        && error.kind() != ErrorKind::BrokenPipe
    {
        FAILED.get_or_init(|| error);
    }
}

/// Prints a text on stderr, if it can be written: the macros do.
pub(crate) fn on_stderr(text: Arguments<'_>) {
    let _ = io::stderr().lock().write_fmt(text);
}

/// Fails if something printed on stdout was lost.
pub(crate) fn check() -> Result<()> {
    FAILED.get().map_or(Ok(()), |error| bail!("write to stdout: {error}"))
}

/// Whether an error is that the reader of stdout has closed the pipe. That of a connection to a server is none.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let is_one = |io: &io::Error| io.kind() == ErrorKind::BrokenPipe;
    IS_CLOSED.load(Relaxed)
        && error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(is_one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_that_is_not_stdout_is_an_error() {
        let error =
            anyhow::Error::from(io::Error::from(ErrorKind::BrokenPipe)).context("load http://10.0.0.5:8420");
        assert!(!is_broken_pipe(&error));
        assert!(note::<()>(Err(ErrorKind::BrokenPipe.into())).is_err());
        assert!(is_broken_pipe(&error));
        assert!(!is_broken_pipe(&anyhow::Error::msg("another one")));
    }
}
