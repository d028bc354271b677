//! Printing: results on stdout, messages on stderr.
//!
//! The macros of the standard library panic if nothing reads the output any more, as behind `tally doctor | head -1`. Those here
//! have their names, and print nothing then: the command does the rest of its work, and ends as if it had been read. Another
//! error of stdout, such as a full disk, fails the command at its end. Not here: the log of a server (`log`).

use anyhow::{Result, bail};
use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;

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

/// Whether an error is that the reader of stdout has closed the pipe.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|io| io.kind() == ErrorKind::BrokenPipe))
}
