//! The demo server as a child process: started by the README's own line, ready when it says so, stopped by SIGTERM.
//!
//! A thread reads its output to the end, because a server with a full pipe blocks. The child never outlives this value.
//!
//! Not here: requests to the server; the README's other blocks make them.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// The default address of the demo.
const ADDRESS: &str = "127.0.0.1:8420";

/// The line of standard output after which every response is exact.
const READY: &str = "ready ";

/// Cargo may have to build the server.
const READY_WAIT: Duration = Duration::from_secs(900);
const STOP_WAIT: Duration = Duration::from_secs(30);

pub(super) struct Demo {
    child: Child,
}

impl Demo {
    /// Starts the server with this command and waits until it is ready.
    pub(super) fn start(line: &str, folder: &Path, target: &Path) -> Result<Demo> {
        if let Err(error) = TcpListener::bind(ADDRESS) {
            bail!(
                "{ADDRESS}, where the demo listens, is not free ({error}): stop what uses it and start again"
            );
        }
        let mut command = Command::new("bash");
        command.current_dir(folder).env("CARGO_TARGET_DIR", target);
        Demo::spawn(command, line, READY_WAIT)
    }

    fn spawn(mut shell: Command, line: &str, wait: Duration) -> Result<Demo> {
        // `exec`, here and inside cargo, makes the started process the server itself, so it gets the signal.
        shell.args(["-c", &format!("exec {line}")]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = shell.spawn().with_context(|| format!("start `{line}`"))?;
        let stdout = child.stdout.take();
        let demo = Demo { child };
        let lines = read_lines(stdout.context("read what the server prints")?);
        wait_for(&lines, wait).with_context(|| format!("`{line}`"))?;
        Ok(demo)
    }

    /// Sends SIGTERM; the server must drain and exit with 0.
    pub(super) fn stop(mut self) -> Result<()> {
        let mut kill = Command::new("bash");
        kill.args(["-c", &format!("kill -TERM {}", self.child.id())]).stdin(Stdio::null());
        crate::process::run(&mut kill)?;
        let end = Instant::now() + STOP_WAIT;
        while Instant::now() < end {
            match self.child.try_wait().context("wait for the server")? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => bail!("the server ended with {status} after SIGTERM"),
                None => thread::sleep(Duration::from_millis(20)),
            }
        }
        bail!("the server still runs {STOP_WAIT:?} after SIGTERM");
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // Both usually fail, because the child has exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_lines(stdout: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (send, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            println!("{line}");
            // The receiver is gone once the server is ready; the pipe must be emptied all the same.
            let _ = send.send(line);
        }
    });
    lines
}

fn wait_for(lines: &Receiver<String>, wait: Duration) -> Result<()> {
    let end = Instant::now() + wait;
    loop {
        match lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(line) if line.starts_with(READY) => return Ok(()),
            Ok(_) => {}
            Err(RecvTimeoutError::Timeout) => bail!("printed no line `{READY}…` within {wait:?}"),
            Err(RecvTimeoutError::Disconnected) => bail!("ended before it printed a line `{READY}…`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(script: &str) -> Result<Demo, String> {
        start_within(script, READY_WAIT)
    }

    fn start_within(script: &str, wait: Duration) -> Result<Demo, String> {
        Demo::spawn(Command::new("bash"), &format!("bash -c '{script}'"), wait)
            .map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn a_server_that_gets_ready_and_drains_passes() {
        let demo =
            start("trap \"exit 0\" TERM; echo hello; echo ready http; while :; do sleep 0.01; done").unwrap();
        demo.stop().unwrap();
    }

    #[test]
    fn a_server_that_ends_badly_is_reported() {
        let demo = start("trap \"exit 3\" TERM; echo ready http; while :; do sleep 0.01; done").unwrap();
        assert!(demo.stop().unwrap_err().to_string().contains("after SIGTERM"));
    }

    #[test]
    fn a_server_that_is_never_ready_is_reported() {
        assert!(start("echo already; exit 1").err().unwrap().contains("ended before"));
        assert!(
            start_within("echo hello; exec sleep 5", Duration::from_millis(500))
                .err()
                .unwrap()
                .contains("within 500ms")
        );
    }
}
