//! A Redis or Valkey server of its own for a test: private port and folder, gone with the value.
//!
//! The programs are those that `cargo xtask packages` has unpacked, so their release is the same on every machine. It has
//! no persistence unless the test asks for it by arguments (`--appendonly yes --appendfsync always`), which come last and
//! so win. Not here: restarting one, and Redis as the ranking of a server under test.

use crate::resp::RespClient;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Where the programs are, unless the variable says another folder; xtask holds the same two.
const LAUNCHERS: &str = "/var/cache/tally-test/bin";
const FOLDER_VARIABLE: &str = "TALLY_TEST_PROGRAMS";

/// How long a server may take to answer before the test gives up; no measurement.
const GIVE_UP: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// A free port can be taken by somebody else before the server has it.
const PORTS_TRIED: usize = 5;

/// Which server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedisKind {
    /// Redis 7.0.
    Redis7,
    /// Valkey 9, which prints doubles as Redis does since 7.2.
    Valkey9,
}

impl RedisKind {
    /// Where its program is.
    ///
    /// # Panics
    ///
    /// If it is not there; the message has the line to run.
    #[track_caller]
    pub fn program(self) -> PathBuf {
        let name = match self {
            Self::Redis7 => "redis-server",
            Self::Valkey9 => "valkey-server",
        };
        let folder = std::env::var_os(FOLDER_VARIABLE).map_or_else(|| LAUNCHERS.into(), PathBuf::from);
        let program = folder.join(name);
        assert!(program.exists(), "there is no {}; run `cargo xtask packages`", program.display());
        program
    }
}

/// A running server.
#[derive(Debug)]
pub struct ScratchRedis {
    child: Child,
    address: SocketAddr,
    folder: TempDir,
}

impl ScratchRedis {
    /// One that is ready.
    ///
    /// # Panics
    ///
    /// If it is not there or does not start; the message has its log, or the line to run.
    #[track_caller]
    pub fn start(kind: RedisKind, args: &[&str]) -> Self {
        let program = kind.program();
        let mut log = String::new();
        for _ in 0..PORTS_TRIED {
            match Self::start_on(&program, free_port(), args) {
                Ok(server) => return server,
                Err(ended) => log = ended,
            }
        }
        panic!("{} does not start:\n{log}", program.display());
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its folder, with its log and what it writes.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A new connection to it.
    pub fn client(&self) -> RespClient {
        RespClient::connect(self.address)
    }

    /// Starts it and waits for it; where it ends instead, gives its log.
    fn start_on(program: &Path, port: u16, args: &[&str]) -> Result<Self, String> {
        let folder = TempDir::with_prefix("tally-redis-").expect("a temporary directory can be made");
        let mut command = Command::new(program);
        command.args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--logfile", "log"]);
        command.args(["--save", "", "--appendonly", "no", "--dir"]).arg(folder.path()).args(args);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().expect("the launcher starts");
        let mut server = Self { child, address: ([127, 0, 0, 1], port).into(), folder };
        let started = Instant::now();
        loop {
            let ended = server.child.try_wait().expect("it can be asked");
            // Its own log, not an answer: it may want a password, and another process may have the port.
            let log = std::fs::read_to_string(server.folder().join("log")).unwrap_or_default();
            if ended.is_some() {
                return Err(log);
            }
            if log.contains("Ready to accept connections") {
                return Ok(server);
            }
            assert!(started.elapsed() < GIVE_UP, "{} is not ready:\n{log}", program.display());
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}

impl Drop for ScratchRedis {
    fn drop(&mut self) {
        // It is gone already, or has nothing to keep.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    listener.local_addr().expect("it has an address").port()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tally_wire::resp::Reply;

    #[test]
    fn each_kind_is_the_release_that_it_says() {
        for (kind, line) in
            [(RedisKind::Redis7, "redis_version:7.0."), (RedisKind::Valkey9, "valkey_version:9.")]
        {
            let server = ScratchRedis::start(kind, &[]);
            let Reply::Bulk(info) = server.client().call(&["INFO"]) else { panic!("INFO is text") };
            let info = String::from_utf8(info).unwrap();
            assert!(info.lines().any(|other| other.starts_with(line)), "{info}");
            assert!(info.lines().any(|other| other == format!("process_id:{}", server.child.id())));
        }
    }

    #[test]
    fn arguments_of_the_test_win_and_it_ends_with_the_value() {
        let server =
            ScratchRedis::start(RedisKind::Redis7, &["--appendonly", "yes", "--appendfsync", "always"]);
        let replies = server.client().pipeline(&[["SET", "a", "1"], ["CONFIG", "GET", "appendfsync"]]);
        let setting = ["appendfsync", "always"].map(|text| Reply::Bulk(text.into()));
        assert_eq!(replies, [Reply::Simple(b"OK".into()), Reply::Array(setting.into())]);
        assert!(server.folder().join("appendonlydir").exists());
        let mut client = server.client();
        assert_eq!(client.call(&["PING"]), Reply::Simple(b"PONG".into()));
        drop(server);
        assert_eq!(client.read_to_end(), b"");
    }
}
