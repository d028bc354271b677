//! The real server, started for the run and ended after it.
//!
//! It says on its output where it listens and that it is ready. It is asked to end with SIGTERM, as an operator does, so
//! that a run also shows that it drains; if the run fails on the way, it is killed.

use crate::error::{During, Error, prove};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long it may take to be ready, and to end.
const PATIENCE: Duration = Duration::from_secs(60);
/// Clock ticks of a second, by which Linux counts the time of a process.
const TICKS: f64 = 100.0;

/// A server that runs; it ends with the value.
pub(super) struct Server {
    child: Child,
    pub(super) address: SocketAddr,
}

impl Server {
    /// Starts `binary` on an empty store below `folder` and waits until it is ready.
    pub(super) fn start(binary: &Path, folder: &Path) -> Result<Self, Error> {
        let errors = folder.join("stderr.log");
        let mut child = Command::new(binary)
            .arg("serve")
            .arg("--data")
            .arg(folder.join("data"))
            .args(["--http", "127.0.0.1:0", "--resp", "off"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(&errors).during("make a file for what the server says")?)
            .spawn()
            .during("start the server")?;
        let output = child.stdout.take().expect("its output is piped");
        let (tell, told) = mpsc::channel();
        // Read to the end: a server that cannot write its output would stop.
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if let Some(address) = ready(&line) {
                    // Nobody listens after the first.
                    let _ = tell.send(address);
                }
            }
        });
        let mut server = Self { child, address: SocketAddr::from(([127, 0, 0, 1], 0)) };
        server.address = told.recv_timeout(PATIENCE).map_err(|_| {
            let said = std::fs::read_to_string(&errors).unwrap_or_default();
            Error::Missing(format!("the server did not become ready; it said: {}", said.trim()))
        })?;
        Ok(server)
    }

    /// Seconds of processor time it has used, where the system tells.
    pub(super) fn cpu_s(&self) -> Option<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).ok()?;
        // The name in parentheses may contain anything; user and system time are the 12th and 13th field after it.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
        let (user, system): (f64, f64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        Some((user + system) / TICKS)
    }

    /// Asks it to end and proves that it ends well.
    pub(super) fn stop(mut self) -> Result<(), Error> {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status().during("send SIGTERM")?;
        prove(sent.success(), || "the server was gone before it was asked to end".to_owned())?;
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().during("wait for the server")? {
                return prove(status.success(), || format!("the server ended with {status}"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Err(Error::Proof("the server did not end after SIGTERM".to_owned()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // After `stop` both do nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The address in the line that says it is ready.
fn ready(line: &str) -> Option<SocketAddr> {
    let mut words = line.split_whitespace();
    if words.next() != Some("ready") {
        return None;
    }
    words.find_map(|word| word.strip_prefix("http=")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_line_that_says_ready_has_the_address() {
        assert_eq!(ready("ready http=127.0.0.1:8420 pid=1"), Some("127.0.0.1:8420".parse().unwrap()));
        assert_eq!(ready("not ready http=127.0.0.1:8420"), None);
        assert_eq!(ready("ready"), None);
    }

    #[test]
    fn a_binary_that_is_no_server_is_an_error_that_says_so() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Server::start(&folder.path().join("none"), folder.path()).is_err());
    }
}
