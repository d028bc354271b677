//! A MariaDB or MySQL server of its own for a run, on a free port of this machine, in a folder that is gone afterwards.
//!
//! A commit is on the disk before it is answered, and there is no binary log; the log is large enough that no run waits for
//! it to be emptied. A data directory that lies beside the program as `NAME.data` is copied, as the tests' programs have
//! one; otherwise the server's own tools make one.

use crate::error::{During, Error};
use crate::process::Process;
use std::ffi::OsString;
use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long it may take to start.
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// A free port can be taken by somebody else before the server has it.
const PORTS_TRIED: usize = 5;

/// Settings of either server; what only one of them knows is `loose`.
const SETTINGS: &[&str] = &[
    "--user=root",
    "--bind-address=127.0.0.1",
    "--skip-name-resolve",
    "--pid-file=pid",
    "--max-connections=500",
    "--innodb-flush-log-at-trx-commit=1",
    "--skip-log-bin",
    "--local-infile=1",
    "--innodb-buffer-pool-load-at-startup=OFF",
    "--innodb-buffer-pool-dump-at-shutdown=OFF",
    "--loose-mysqlx=OFF",
];

/// A server that runs; it ends with the value.
#[derive(Debug)]
pub(super) struct Own {
    process: Process,
    address: SocketAddr,
    folder: TempDir,
}

/// What the program says of its release, if it can be started.
fn release(program: &Path) -> Option<String> {
    let mut command = Command::new(program);
    command.args(["--no-defaults", "--version"]).stdin(Stdio::null()).stderr(Stdio::null());
    let said = command.output().ok().filter(|said| said.status.success())?;
    Some(String::from_utf8_lossy(&said.stdout).into_owned())
}

/// Whether this program can be started.
pub(super) fn is_there(program: &Path) -> bool {
    release(program).is_some()
}

impl Own {
    /// Starts it with so many MiB for pages and waits until it is ready.
    pub(super) fn start(program: &Path, pool_mib: u32) -> Result<Self, Error> {
        let mut log = String::new();
        for _ in 0..PORTS_TRIED {
            match Self::start_once(program, pool_mib)? {
                Ok(own) => return Ok(own),
                Err(ended) => log = ended,
            }
        }
        Err(Error::Missing(format!("{} does not start; it said: {}", program.display(), log.trim())))
    }

    /// Seconds of processor time it has used, where the system tells.
    pub(super) fn cpu_s(&self) -> Option<f64> {
        self.process.cpu_s()
    }

    /// Its address.
    pub(super) fn url(&self) -> String {
        format!("mysql://root@{}", self.address)
    }

    /// One try; its log where it has ended.
    fn start_once(program: &Path, pool_mib: u32) -> Result<Result<Self, String>, Error> {
        let folder = tempfile::tempdir().during("make a folder for the database")?;
        make_data(program, &folder.path().join("data"))?;
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let address = free.during("find a free port")?;
        let path = |name: &str, place: &str| {
            let mut arg = OsString::from(format!("--{name}="));
            arg.push(folder.path().join(place));
            arg
        };
        let log = folder.path().join("log");
        let child = Command::new(program)
            .arg("--no-defaults")
            .args([path("datadir", "data"), path("socket", "socket")])
            .arg(format!("--port={}", address.port()))
            .arg(format!("--innodb-buffer-pool-size={pool_mib}M"))
            .args(
                ["innodb-log-file-size", "innodb-redo-log-capacity"]
                    .map(|name| format!("--loose-{name}={pool_mib}M")),
            )
            .args(SETTINGS)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).during("make a file for what the database says")?)
            .spawn();
        let mut own = Self { process: Process(child.during("start the database")?), address, folder };
        let deadline = Instant::now() + PATIENCE;
        loop {
            let ended = own.process.0.try_wait().during("ask whether the database runs")?.is_some();
            // Its own log, not an answer: another process may have the port.
            let said = std::fs::read_to_string(own.folder.path().join("log")).unwrap_or_default();
            if said.contains("ready for connections") {
                return Ok(Ok(own));
            }
            if ended || Instant::now() > deadline {
                return Ok(Err(said));
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}

/// Makes the data directory of a database that nobody has used.
fn make_data(program: &Path, data: &Path) -> Result<(), Error> {
    let mut beside = program.as_os_str().to_owned();
    beside.push(".data");
    let beside = PathBuf::from(beside);
    if beside.is_dir() {
        return copy(&beside, data).during("copy a data directory");
    }
    let mut datadir = OsString::from("--datadir=");
    datadir.push(data);
    let is_mariadb = release(program).is_some_and(|release| release.contains("MariaDB"));
    let mut command = if is_mariadb {
        let mut command = Command::new("mariadb-install-db");
        command.args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]);
        command
    } else {
        let mut command = Command::new(program);
        command.args(["--no-defaults", "--initialize-insecure"]);
        command
    };
    let made = command.arg("--user=root").arg(datadir).stdin(Stdio::null()).output();
    let made = made.during("make a data directory")?;
    if made.status.success() {
        return Ok(());
    }
    let said = [made.stdout, made.stderr].concat();
    let said = String::from_utf8_lossy(&said).trim().to_owned();
    Err(Error::Missing(format!("a data directory cannot be made for {}: {said}", program.display())))
}

/// A folder and all in it.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let place = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &place)?;
        } else {
            std::fs::copy(entry.path(), place)?;
        }
    }
    Ok(())
}
