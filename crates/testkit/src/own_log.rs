//! A server whose log goes into a pipe of the test, which may read it, stall, or be gone.
//!
//! Not here: servers whose log the kit reads and checks (`server`).

use crate::audit::metric;
use crate::command::command;
use crate::http::Client;
use std::io::{BufRead, BufReader, PipeWriter};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// More than a pipe, the queue and a write hold, in paths of about 1,000 bytes.
const REQUESTS: usize = 2_000;

/// A running server, killed with the value.
#[derive(Debug)]
pub struct OwnLogServer {
    /// A client of it.
    pub client: Client,
    address: SocketAddr,
    process: Child,
    _data: TempDir,
}

impl OwnLogServer {
    /// One with this stderr that is ready.
    ///
    /// # Panics
    ///
    /// If it does not start.
    #[track_caller]
    pub fn start(binary: &str, stderr: PipeWriter, settings: &[(&str, &str)]) -> Self {
        let data = TempDir::with_prefix("tally-log-").expect("it can be made");
        let mut serve = command(binary, &["serve", "--http", "127.0.0.1:0", "--resp", "off"]);
        serve.arg("--data").arg(data.path()).env("TALLY_KEYS_REQUIRED", "false");
        serve.envs(settings.iter().copied());
        let mut process = serve.stdout(Stdio::piped()).stderr(stderr).spawn().expect("the binary starts");
        let mut line = String::new();
        let mut out = BufReader::new(process.stdout.take().expect("it is piped"));
        out.read_line(&mut line).expect("it is text");
        let address = line.split(' ').find_map(|word| word.strip_prefix("http=")).expect("it says where");
        let address: SocketAddr = address.parse().expect("an address");
        Self { client: Client::new(address), address, process, _data: data }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Makes more lines than anything holds, with `log.level` at `debug`.
    #[track_caller]
    pub fn log_much(&mut self) {
        let path = format!("/{}", "x".repeat(1_000));
        (0..REQUESTS).for_each(|_| assert_eq!(self.client.get(&path).status, 404));
    }

    /// How many lines had this outcome.
    #[track_caller]
    pub fn lines(&mut self, outcome: &str) -> f64 {
        let metrics = self.client.get("/metrics");
        metric(&metrics, &format!("tally_log_lines_total{{outcome=\"{outcome}\"}}"))
    }

    /// Ends it in peace.
    ///
    /// # Panics
    ///
    /// If it ends with a failure.
    #[track_caller]
    pub fn end(mut self) {
        let sent = Command::new("kill").arg(self.process.id().to_string()).status();
        assert!(sent.expect("there is a `kill`").success());
        let status = self.process.wait().expect("it ends");
        assert_eq!(status.code(), Some(0), "{status}");
    }
}

impl Drop for OwnLogServer {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
