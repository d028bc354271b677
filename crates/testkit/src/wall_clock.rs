//! A wall clock that a test sets while a server runs: libfaketime, below the server's libc.
//!
//! The clock runs at normal speed and begins at noon of a fixed day, so that no day ends while a test runs. Monotonic time
//! is not changed. Every reading opens the file of the offset, so the next reading has a jump. That is too slow for a
//! load. Not here: what a server does about a jump.

use crate::TestTally;
use std::path::PathBuf;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

/// 2031-03-05T12:00:00Z, a Wednesday.
const BEGIN: i64 = 1_930_478_400;

/// The clock of every process that uses it.
#[derive(Debug)]
pub struct WallClock {
    folder: TempDir,
    library: String,
    /// Seconds ahead of the machine's clock.
    ahead: i64,
}

impl WallClock {
    /// A clock at noon.
    ///
    /// # Panics
    ///
    /// If there is no libfaketime: `cargo xtask packages` installs it.
    pub fn at_noon() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970").as_secs();
        Self::ahead(BEGIN - i64::try_from(now).expect("seconds have 63 bits"))
    }

    /// A clock that is right at first, as a database needs it.
    ///
    /// # Panics
    ///
    /// As [`at_noon`](Self::at_noon).
    pub fn at_present() -> Self {
        Self::ahead(0)
    }

    fn ahead(ahead: i64) -> Self {
        let folder = TempDir::with_prefix("tally-clock-").expect("a temporary directory can be made");
        let clock = Self { folder, library: library(), ahead };
        clock.write();
        clock
    }

    /// Sets it for later processes of a server.
    pub fn set_for(&self, server: &mut TestTally) {
        let file = self.file().to_str().expect("a path of text").to_owned();
        for (name, value) in [
            ("LD_PRELOAD", &*self.library),
            ("FAKETIME_TIMESTAMP_FILE", &file),
            ("FAKETIME_NO_CACHE", "1"),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
            // File times stay those of the machine.
            ("NO_FAKE_STAT", "1"),
        ] {
            server.set(name, value);
        }
    }

    /// Moves it forward by so many seconds, or back.
    pub fn jump(&mut self, seconds: i64) {
        self.ahead += seconds;
        self.write();
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("offset")
    }

    /// By a rename, so that no reading finds an incomplete file.
    fn write(&self) {
        let new = self.folder.path().join("new");
        std::fs::write(&new, format!("{:+}\n", self.ahead)).expect("the folder can be written");
        std::fs::rename(&new, self.file()).expect("a file can be renamed");
    }
}

/// The library to load, as its own program reports it: the one for several threads (`-m`). In the other one, a thread that
/// reads the offset disturbs another one, which then has the machine's time: 9 readings of 10,000 with four busy threads.
fn library() -> String {
    let output = Command::new("faketime").args(["-m", "-f", "+0", "printenv", "LD_PRELOAD"]).output();
    let output = output.expect("there is no `faketime`; run `cargo xtask packages`");
    let library = String::from_utf8(output.stdout).expect("a path of text").trim().to_owned();
    assert!(!library.is_empty(), "`faketime` names no library");
    library
}
