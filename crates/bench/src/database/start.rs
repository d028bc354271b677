//! A private MariaDB or MySQL server of a run, on a free port of this machine, in a folder that is removed afterwards.
//!
//! A commit is on the disk before it is answered, and there is no binary log. The redo log is so large that no run waits
//! for its checkpoint. A data directory beside the program, named `NAME.data`, is copied, as for the tests' programs;
//! otherwise the server's own tools make one.

use crate::error::{During, Error};
use crate::process::{Started, release};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Settings of both servers; those that only one knows are `loose`.
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

/// Arguments that print a program's release.
const RELEASE: &[&str] = &["--no-defaults", "--version"];

/// Whether this program can be started.
pub(super) fn is_there(program: &Path) -> bool {
    release(program, RELEASE).is_some()
}

/// Starts it with a buffer pool of so many MiB and waits until it is ready. Its data are in `kept`, or removed with it.
pub(super) fn start(program: &Path, pool_mib: u32, kept: Option<&Path>) -> Result<Started, Error> {
    Started::start(program, "ready for connections", |folder, port| {
        let data = kept.map_or_else(|| folder.join("data"), Path::to_owned);
        // A data directory whose making was interrupted has no file of this name.
        let whole = data.join("whole");
        if kept.is_none() || !whole.exists() {
            let _unfinished = std::fs::remove_dir_all(&data);
            make_data(program, &data)?;
            std::fs::write(&whole, "").during("note that a data directory is whole")?;
        }
        let path = |name: &str, place: &str| {
            let mut arg = OsString::from(format!("--{name}="));
            arg.push(folder.join(place));
            arg
        };
        let mut command = Command::new(program);
        let mut datadir = OsString::from("--datadir=");
        datadir.push(&data);
        command.arg("--no-defaults").args([datadir, path("socket", "socket")]);
        command.arg(format!("--port={port}")).arg(format!("--innodb-buffer-pool-size={pool_mib}M"));
        let logs = ["innodb-log-file-size", "innodb-redo-log-capacity"];
        command.args(logs.map(|name| format!("--loose-{name}={pool_mib}M"))).args(SETTINGS);
        Ok(command)
    })
}

/// Makes the data directory of a new database.
fn make_data(program: &Path, data: &Path) -> Result<(), Error> {
    let mut beside = program.as_os_str().to_owned();
    beside.push(".data");
    let beside = PathBuf::from(beside);
    if beside.is_dir() {
        return copy(&beside, data).during("copy a data directory");
    }
    let mut datadir = OsString::from("--datadir=");
    datadir.push(data);
    let is_mariadb = release(program, RELEASE).is_some_and(|release| release.contains("MariaDB"));
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
    let made = made.during("run `mariadb-install-db`, or the program itself, to make a data directory")?;
    if made.status.success() {
        return Ok(());
    }
    let said = [made.stdout, made.stderr].concat();
    let said = String::from_utf8_lossy(&said).trim().to_owned();
    Err(Error::Missing(format!("a data directory cannot be made for {}: {said}", program.display())))
}

/// A folder with its contents.
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
