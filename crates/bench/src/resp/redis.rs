//! A redis-server of its own for a run, on a free port of this machine, in a folder that is gone afterwards.
//!
//! It begins without persistence. Its log is never rewritten while it runs: whether that falls into one burst or another
//! is chance, and without it Redis is at its best. Not here: what is asked of it.

use super::client::Client;
use crate::error::{During, Error};
use crate::process::Process;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long it may take to start, and to write what it holds into a log.
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// A free port can be taken by somebody else before the server has it.
const PORTS_TRIED: usize = 5;

/// A server that runs; it ends with the value.
#[derive(Debug)]
pub(crate) struct Redis {
    pub(crate) process: Process,
    pub(crate) address: SocketAddr,
    folder: TempDir,
}

/// Whether this program can be started.
pub(crate) fn is_there(program: &Path) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

impl Redis {
    /// Starts it and waits until it is ready.
    pub(crate) fn start(program: &Path) -> Result<Self, Error> {
        let mut log = String::new();
        for _ in 0..PORTS_TRIED {
            match Self::start_once(program)? {
                Ok(redis) => return Ok(redis),
                Err(ended) => log = ended,
            }
        }
        Err(Error::Missing(format!("{} does not start; it said: {}", program.display(), log.trim())))
    }

    /// One try; its log where it has ended.
    fn start_once(program: &Path) -> Result<Result<Self, String>, Error> {
        let folder = tempfile::tempdir().during("make a folder for Redis")?;
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let address = free.during("find a free port")?;
        let child = Command::new(program)
            .args(["--bind", "127.0.0.1", "--port", &address.port().to_string(), "--logfile", "log"])
            .args(["--save", "", "--appendonly", "no", "--auto-aof-rewrite-percentage", "0", "--dir"])
            .arg(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let mut redis = Self { process: Process(child.during("start redis-server")?), address, folder };
        let deadline = Instant::now() + PATIENCE;
        loop {
            let ended = redis.process.0.try_wait().during("ask whether Redis runs")?.is_some();
            // Its own log, not an answer: another process may have the port.
            let log = std::fs::read_to_string(redis.folder.path().join("log")).unwrap_or_default();
            if log.contains("Ready to accept connections") {
                return Ok(Ok(redis));
            }
            if ended || Instant::now() > deadline {
                return Ok(Err(log));
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}

/// Changes settings and waits until they hold: a log that is switched on begins with all that is in memory.
pub(crate) fn configure(client: &mut Client, settings: &[(&str, &str)]) -> std::io::Result<()> {
    for (name, value) in settings {
        client.call(&["CONFIG", "SET", name, value])?;
    }
    let deadline = Instant::now() + PATIENCE;
    loop {
        let info = client.info("persistence")?;
        let busy = ["aof_rewrite_in_progress", "aof_rewrite_scheduled"];
        if busy.iter().all(|field| info.field(field) == "0") {
            let failed = info.field("aof_last_bgrewrite_status") != "ok";
            return if failed { Err(std::io::Error::other("Redis could not write its log")) } else { Ok(()) };
        }
        if Instant::now() > deadline {
            return Err(std::io::Error::other("Redis did not finish its log"));
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}
