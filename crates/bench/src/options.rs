//! What a run can be told.

use crate::error::{During, Error};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tally_load::report::Run;
use tempfile::TempDir;

/// How much a scenario does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Seconds in all, to see that it works: what the tests run. Its figures mean little.
    Small,
    /// What is quoted.
    Full,
}

/// Options of a run, the same for every scenario.
#[derive(Clone, Debug)]
pub struct Options {
    /// How much to do.
    pub size: Size,
    /// Seconds for each measurement that lasts for a time.
    pub seconds: f64,
    /// The same seed does the same.
    pub seed: u64,
    /// Rows that a scenario's table begins with, where it can be told; its own number otherwise.
    pub rows: Option<u64>,
    /// Where each report is written as soon as it is made; nowhere if not given.
    pub report_dir: Option<PathBuf>,
    /// The binary of the server, for scenarios that measure it over the wire.
    pub tally_bin: Option<PathBuf>,
    /// The Redis server that scenarios compare with: a path, or a name on `PATH`.
    pub redis: PathBuf,
    /// The database that scenarios work in: `mysql://user:password@host:port` of a MariaDB or MySQL that runs, or one to
    /// start, a path or a name on `PATH`.
    pub mysql: String,
    /// The program with the drivers of others that the scenario `drivers` compares with.
    pub drivers: PathBuf,
    /// Members of the board of the scenarios `resp` and `mixed`, where it is not to be as large as usual.
    pub members: Option<u64>,
    /// Where the scenario `hundred-million` keeps its stores and what its steps have found.
    pub work: Option<PathBuf>,
    /// Where scenarios make their folders; where the system does, if not given.
    pub scratch: Option<PathBuf>,
    /// The command as it was typed, for the report.
    pub command: String,
    /// Gets what is being done.
    pub progress: fn(&str),
    /// Gets the progress of a long step: what, how much of it is done, and how much there is.
    pub bar: fn(&str, u64, u64),
}

impl Options {
    /// The defaults of a size: half a second for each measurement when small, ten seconds when full.
    #[must_use]
    pub fn new(size: Size) -> Self {
        let seconds = match size {
            Size::Small => 0.5,
            Size::Full => 10.0,
        };
        Self {
            size,
            seconds,
            seed: 1,
            rows: None,
            report_dir: None,
            tally_bin: None,
            redis: PathBuf::from("redis-server"),
            mysql: "mariadbd".to_owned(),
            drivers: PathBuf::from("bench/drivers/target/release/drivers"),
            members: None,
            work: None,
            scratch: None,
            command: String::new(),
            progress: |_| {},
            bar: |_, _, _| {},
        }
    }

    /// One of two values by size.
    pub(crate) fn pick<T>(&self, small: T, full: T) -> T {
        match self.size {
            Size::Small => small,
            Size::Full => full,
        }
    }

    /// The binary of the server, which a scenario of this name cannot do without.
    pub(crate) fn binary(&self, scenario: &str) -> Result<&Path, Error> {
        let missing = || {
            Error::Missing(format!(
                "the scenario `{scenario}` needs the server: build it with `cargo build -p tally`, or name it with --tally"
            ))
        };
        self.tally_bin.as_deref().ok_or_else(missing)
    }

    /// A folder that is gone with the value.
    pub(crate) fn folder(&self) -> Result<TempDir, Error> {
        let made = match &self.scratch {
            Some(scratch) => tempfile::tempdir_in(scratch),
            None => tempfile::tempdir(),
        };
        made.during("make a folder")
    }

    /// The time for one measurement.
    pub(crate) fn duration(&self) -> Duration {
        Duration::from_secs_f64(self.seconds.clamp(0.01, 3_600.0))
    }

    /// Reports the progress of a long step.
    pub(crate) fn tell(&self, what: &str, done: u64, all: u64) {
        (self.bar)(what, done, all);
    }

    /// Reports what is being done.
    pub(crate) fn say(&self, what: &str) {
        (self.progress)(what);
    }
}

impl From<&Options> for Run {
    fn from(options: &Options) -> Self {
        let small = options.size == Size::Small;
        Self { command: options.command.clone(), seed: options.seed, small }
    }
}
