//! Why a scenario gave no report, by what its reader can do about it.

use std::fmt;

/// No report.
#[derive(Debug)]
pub enum Error {
    /// There is no scenario of this name.
    UnknownScenario(String),
    /// Something the scenario needs was not given.
    Missing(String),
    /// The scenario ran and its proof failed: its figures would mean nothing.
    Proof(String),
    /// Something failed on the way: what was being done, and why it failed.
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

/// Says what was being done.
pub(crate) trait During<T> {
    /// The error of a result, with this verb phrase before it.
    fn during(self, what: &str) -> Result<T, Error>;
}

impl<T, E: Into<Box<dyn std::error::Error + Send + Sync>>> During<T> for Result<T, E> {
    fn during(self, what: &str) -> Result<T, Error> {
        self.map_err(|error| Error::Failed(what.to_owned(), error.into()))
    }
}

/// Fails the scenario where its proof does not hold.
pub(crate) fn prove(holds: bool, why_not: impl FnOnce() -> String) -> Result<(), Error> {
    if holds { Ok(()) } else { Err(Error::Proof(why_not())) }
}
