//! The options of a run.

use crate::error::{During, Error};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tally_load::report::RunInfo;
use tempfile::TempDir;

/// The size of a scenario's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Seconds in all, as in the tests. Its figures mean little.
    Small,
    /// For figures that are quoted.
    Full,
}

/// Options of a run, the same for every scenario.
#[derive(Clone, Debug)]
pub struct Options {
    /// The size of its numbers.
    pub size: Size,
    /// Seconds for each measurement that lasts for a time.
    pub seconds: f64,
    /// Minutes of the load of the scenario `endurance`, if not the default.
    pub minutes: Option<u32>,
    /// Equal seeds give equal work.
    pub seed: u64,
    /// Initial rows of a scenario's table, in scenarios that support it; `None` for its default.
    pub rows: Option<u64>,
    /// The folder of the reports, each written as soon as it is made; `None` writes none.
    pub report_dir: Option<PathBuf>,
    /// The binary of the server, for scenarios that measure it over the wire.
    pub tally_bin: Option<PathBuf>,
    /// The Redis server that scenarios compare with: a path, or a name on `PATH`.
    pub redis: PathBuf,
    /// The database for scenarios: `mysql://user:password@host:port` of a running MariaDB or MySQL, or a program to
    /// start, as a path or a name on `PATH`.
    pub mysql: String,
    /// The program with third-party drivers for the scenario `drivers`.
    pub drivers: PathBuf,
    /// Members of the board of the scenarios `resp` and `mixed`, if not the default.
    pub members: Option<u64>,
    /// How often the leader of the scenario `followers` is stopped, if not the default.
    pub handovers: Option<u32>,
    /// How often it is killed, if not the default.
    pub kills: Option<u32>,
    /// The folder for the stores and the results of the scenario `hundred-million`.
    pub work: Option<PathBuf>,
    /// The parent of the scenarios' folders; `None` for the system's.
    pub scratch: Option<PathBuf>,
    /// The command as it was typed, for the report.
    pub command: String,
    /// Gets the current operation.
    pub on_step: fn(&str),
    /// Gets the progress of a long step: its name, the done part, and the whole.
    pub on_progress: fn(&str, u64, u64),
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
            minutes: None,
            seed: 1,
            rows: None,
            report_dir: None,
            tally_bin: None,
            redis: PathBuf::from("redis-server"),
            mysql: "mariadbd".to_owned(),
            drivers: PathBuf::from("bench/drivers/target/release/drivers"),
            members: None,
            handovers: None,
            kills: None,
            work: None,
            scratch: None,
            command: String::new(),
            on_step: |_| {},
            on_progress: |_, _, _| {},
        }
    }

    /// One of two values by size.
    pub(crate) fn pick<T>(&self, small: T, full: T) -> T {
        match self.size {
            Size::Small => small,
            Size::Full => full,
        }
    }

    /// The binary of the server; an error names the scenario that needs it.
    pub(crate) fn binary(&self, scenario: &str) -> Result<&Path, Error> {
        let missing = || {
            Error::Missing(format!(
                "the scenario `{scenario}` needs the server: build it with `cargo build -p tally`, or name it with --tally"
            ))
        };
        self.tally_bin.as_deref().ok_or_else(missing)
    }

    /// A temporary folder, removed with the value.
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
    pub(crate) fn progress(&self, what: &str, done: u64, all: u64) {
        (self.on_progress)(what, done, all);
    }

    /// Reports the current operation.
    pub(crate) fn say(&self, what: &str) {
        (self.on_step)(what);
    }
}

impl From<&Options> for RunInfo {
    fn from(options: &Options) -> Self {
        let small = options.size == Size::Small;
        Self { command: options.command.clone(), seed: options.seed, small }
    }
}
