//! Why a scenario has no report, by what its reader can do about it.

use std::fmt;

/// The scenario has no report.
#[derive(Debug)]
pub enum Error {
    /// There is no scenario of this name.
    UnknownScenario(String),
    /// A requirement of the scenario is missing.
    Missing(String),
    /// The scenario ran and its check failed, so its figures mean nothing.
    Proof(String),
    /// An operation failed: its name, and the cause.
    Failed(String, Box<dyn std::error::Error + Send + Sync>),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownScenario(name) => write!(f, "there is no scenario `{name}`"),
            Self::Missing(what) => f.write_str(what),
            Self::Proof(why) => write!(f, "the proof failed: {why}"),
            Self::Failed(what, why) => write!(f, "{what}: {why}"),
        }
    }
}

impl std::error::Error for Error {}

/// Adds the failed operation to an error.
pub(crate) trait During<T> {
    /// The error of a result, with this verb phrase before it.
    fn during(self, what: &str) -> Result<T, Error>;
}

impl<T, E: Into<Box<dyn std::error::Error + Send + Sync>>> During<T> for Result<T, E> {
    fn during(self, what: &str) -> Result<T, Error> {
        self.map_err(|error| Error::Failed(what.to_owned(), error.into()))
    }
}

/// Fails the scenario if the check does not hold.
pub(crate) fn prove(holds: bool, why_not: impl FnOnce() -> String) -> Result<(), Error> {
    if holds { Ok(()) } else { Err(Error::Proof(why_not())) }
}
