//! The real server, started for the run and stopped after it.
//!
//! Its output has its addresses and the ready line. It is stopped with SIGTERM, as an operator does, so that a run also
//! shows that it drains. A failed run kills it.

use crate::error::{During, Error, prove};
use crate::process::Process;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long it may take to be ready, with many players in a store, and to exit.
const PATIENCE: Duration = Duration::from_secs(30 * 60);

/// A running server; it ends with the value.
pub(crate) struct Server {
    pub(crate) process: Process,
    pub(crate) listens: Listens,
}

/// The addresses of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listens {
    pub(crate) http: SocketAddr,
    pub(crate) resp: SocketAddr,
}

impl Server {
    /// Starts `binary` on the store below `folder` and waits until it is ready.
    pub(crate) fn start(binary: &Path, folder: &Path) -> Result<Self, Error> {
        Self::start_with(binary, folder, &[], &[])
    }

    /// The same on a port of the caller, so that requests are possible before it is ready.
    pub(crate) fn start_at(
        binary: &Path,
        folder: &Path,
        http: SocketAddr,
        args: &[String],
    ) -> Result<Self, Error> {
        Self::start_on(binary, folder, &http.to_string(), args, &[])
    }

    /// The same with more arguments and environment variables.
    pub(crate) fn start_with(
        binary: &Path,
        folder: &Path,
        args: &[String],
        settings: &[(&str, &str)],
    ) -> Result<Self, Error> {
        Self::start_on(binary, folder, "127.0.0.1:0", args, settings)
    }

    fn start_on(
        binary: &Path,
        folder: &Path,
        http: &str,
        args: &[String],
        settings: &[(&str, &str)],
    ) -> Result<Self, Error> {
        let errors = folder.join("stderr.log");
        let mut process = Command::new(binary)
            .arg("serve")
            .arg("--data")
            .arg(folder.join("data"))
            .args(["--http", http, "--resp", "127.0.0.1:0"])
            .args(args)
            // Its directory is new, and so has no key.
            .env("TALLY_KEYS_REQUIRED", "false")
            .envs(settings.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(&errors).during("make a file for what the server says")?)
            .spawn()
            .map(Process)
            .during("start the server")?;
        let output = process.0.stdout.take().expect("its output is piped");
        let (sender, receiver) = mpsc::channel();
        // Read to the end: a full pipe would block the server.
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if let Some(listens) = ready(&line) {
                    // The receiver is gone after the first line.
                    let _ = sender.send(listens);
                }
            }
        });
        let listens = receiver.recv_timeout(PATIENCE).map_err(|_| {
            let said = std::fs::read_to_string(&errors).unwrap_or_default();
            Error::Missing(format!("the server did not become ready; it said: {}", said.trim()))
        })?;
        Ok(Self { process, listens })
    }

    /// Sends SIGTERM and checks that it exits cleanly.
    pub(crate) fn stop(mut self) -> Result<(), Error> {
        let pid = self.process.0.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status().during("send SIGTERM")?;
        prove(sent.success(), || "the server was gone before it was asked to end".to_owned())?;
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if let Some(status) = self.process.0.try_wait().during("wait for the server")? {
                return prove(status.success(), || format!("the server ended with {status}"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Err(Error::Proof("the server did not end after SIGTERM".to_owned()))
    }
}

/// The addresses in the ready line.
fn ready(line: &str) -> Option<Listens> {
    let words = line.strip_prefix("ready ")?;
    let address =
        |name: &str| words.split_whitespace().find_map(|word| word.strip_prefix(name)?.parse().ok());
    Some(Listens { http: address("http=")?, resp: address("resp=")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_line_that_says_ready_has_the_addresses() {
        let (http, resp) = ("127.0.0.1:8420".parse().unwrap(), "127.0.0.1:8421".parse().unwrap());
        assert_eq!(ready("ready http=127.0.0.1:8420 resp=127.0.0.1:8421 in=1"), Some(Listens { http, resp }));
        assert_eq!(ready("not ready http=127.0.0.1:8420 resp=127.0.0.1:8421"), None);
        assert_eq!(ready("ready"), None);
    }

    #[test]
    fn a_binary_that_is_no_server_is_an_error_that_says_so() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Server::start(&folder.path().join("none"), folder.path()).is_err());
    }
}
