//! Private Redis servers of a run: one ([`Redis`]) or three that are a cluster ([`cluster`]), and a plain client of them.
//!
//! A server begins without persistence. It never rewrites its log during a run: chance would decide which burst pays for
//! that, and Redis is at its best without. Not here: the commands.

pub(crate) mod client;
pub(crate) mod cluster;

use crate::error::Error;
use crate::process::{Process, Started, release};
use client::Client;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// How long it may take to write its contents into a log.
const PATIENCE: Duration = Duration::from_secs(120);
const RETRY_PAUSE: Duration = Duration::from_millis(10);

/// A running server; it ends with the value.
#[derive(Debug)]
pub(crate) struct Redis(Started);

/// Whether this program can be started.
pub(crate) fn is_there(program: &Path) -> bool {
    release(program, &["--version"]).is_some()
}

/// Fails if it cannot.
pub(crate) fn needs(program: &Path) -> Result<(), Error> {
    if is_there(program) {
        return Ok(());
    }
    Err(Error::Missing(format!(
        "this scenario needs Redis, and `{}` does not start; on Debian: apt-get install redis-server; elsewhere name the \
         program with --redis",
        program.display()
    )))
}

impl Redis {
    /// Starts it and waits until it is ready.
    pub(crate) fn start(program: &Path) -> Result<Self, Error> {
        Self::start_with(program, || Ok(Vec::new()))
    }

    /// The same with more arguments, which are made anew for each try.
    fn start_with(program: &Path, args: impl Fn() -> Result<Vec<String>, Error>) -> Result<Self, Error> {
        let command = |folder: &Path, port: u16| {
            let mut command = Command::new(program);
            command.args(["--bind", "127.0.0.1", "--port", &port.to_string()]);
            command.args(["--save", "", "--appendonly", "no", "--auto-aof-rewrite-percentage", "0"]);
            command.arg("--dir").arg(folder).args(args()?);
            Ok(command)
        };
        Started::start(program, "Ready to accept connections", command).map(Self)
    }

    pub(crate) fn process(&self) -> &Process {
        &self.0.process
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.0.address
    }
}

/// Changes settings and waits until they hold: a log that is turned on begins with the whole contents of memory.
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
        std::thread::sleep(RETRY_PAUSE);
    }
}
