//! A third-party server that a scenario starts: on a free port of this machine, in a folder that is removed afterwards.
//!
//! It is ready when its own log says so; a reply proves nothing, because another process may have the port. It is killed
//! with the value, so a failed run leaves nothing behind. Not here: its arguments, and its use.

use crate::error::{During, Error};
use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Clock ticks per second, the unit of Linux for the time of a process.
const TICKS: f64 = 100.0;
/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(120);
const RETRY_PAUSE: Duration = Duration::from_millis(10);
/// A free port can be taken by another program before the server has it.
const PORTS_TRIED: usize = 5;

/// A process that is killed with the value.
#[derive(Debug)]
pub(crate) struct Process(pub(crate) Child);

impl Process {
    /// Processor time of all its threads in seconds, if the system reports it.
    pub(crate) fn cpu_s(&self) -> Option<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).ok()?;
        // The name in parentheses may contain anything; user and system time are the 12th and 13th field after it.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
        let (user, system): (f64, f64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        Some((user + system) / TICKS)
    }

    /// Its resident bytes, if the system reports them.
    pub(crate) fn resident_bytes(&self) -> Option<u64> {
        crate::resident::bytes_of(self.0.id())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail for a process that has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The output of a program about its release, if it can be started.
pub(crate) fn release(program: &Path, args: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stderr(Stdio::null());
    let said = command.output().ok().filter(|said| said.status.success())?;
    Some(String::from_utf8_lossy(&said.stdout).into_owned())
}

/// A port that is free at the moment.
pub(crate) fn free_port() -> Result<u16, Error> {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    Ok(free.during("find a free port")?.port())
}

/// A running server; it ends with the value, and its folder is removed after it.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) process: Process,
    pub(crate) address: SocketAddr,
    folder: TempDir,
}

impl Started {
    /// Starts it and waits until its log says `ready`. `command` is called for every port that is tried, with a new folder.
    pub(crate) fn start(
        program: &Path,
        ready: &str,
        command: impl Fn(&Path, u16) -> Result<Command, Error>,
    ) -> Result<Self, Error> {
        let mut log = String::new();
        for _ in 0..PORTS_TRIED {
            let folder = tempfile::tempdir().during("make a folder for a server")?;
            let port = free_port()?;
            match Self::start_once(command(folder.path(), port)?, folder, port, ready)? {
                Ok(started) => return Ok(started),
                Err(ended) => log = ended,
            }
        }
        Err(Error::Missing(format!("{} does not start; it said: {}", program.display(), log.trim())))
    }

    /// One try; its log if it has ended.
    fn start_once(
        mut command: Command,
        folder: TempDir,
        port: u16,
        ready: &str,
    ) -> Result<Result<Self, String>, Error> {
        let log = File::create(folder.path().join("log")).during("make a file for what a server says")?;
        let errors = log.try_clone().during("share the file for what a server says")?;
        let child = command.stdin(Stdio::null()).stdout(log).stderr(errors).spawn();
        let process = Process(child.during("start a server")?);
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let mut started = Self { process, address, folder };
        let deadline = Instant::now() + PATIENCE;
        loop {
            let ended = started.process.0.try_wait().during("ask whether a server runs")?.is_some();
            let said = std::fs::read(started.folder.path().join("log")).during("read what a server says")?;
            let said = String::from_utf8_lossy(&said);
            if said.contains(ready) {
                return Ok(Ok(started));
            }
            if ended || Instant::now() > deadline {
                return Ok(Err(said.into_owned()));
            }
            std::thread::sleep(RETRY_PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &'static str) -> Result<Started, Error> {
        let program = Path::new("/bin/sh");
        Started::start(program, "here I am", |folder, port| {
            let mut command = Command::new(program);
            command.args(["-c", script]).arg(folder).arg(port.to_string());
            Ok(command)
        })
    }

    #[test]
    fn one_that_says_that_it_is_ready_runs_until_the_value_goes() {
        let started = shell("echo here I am; exec sleep 1000").unwrap();
        let (folder, id) = (started.folder.path().to_owned(), started.process.0.id());
        assert!(folder.is_dir() && started.address.port() > 0);
        assert_eq!(started.process.cpu_s().is_some(), cfg!(target_os = "linux"));
        drop(started);
        assert!(!folder.exists());
        assert!(!Path::new(&format!("/proc/{id}")).exists());
    }

    #[test]
    fn one_that_ends_is_an_error_that_has_its_log() {
        let refused = shell("echo no such thing").unwrap_err();
        assert!(matches!(&refused, Error::Missing(why) if why.contains("no such thing")), "{refused}");
        assert!(release(Path::new("/nowhere/server"), &["--version"]).is_none());
    }
}
