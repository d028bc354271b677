//! A private Redis or Valkey server for a test, with its own port and folder, removed with the value.
//!
//! It has no persistence unless arguments of the test turn it on (`--appendonly yes --appendfsync always`); they come last
//! and override. Not here: Redis as the ranking of a server under test, and clusters (`cluster.rs`).

use crate::process::{self, ProcessPlan, Server};
use crate::resp::RespClient;
use crate::tls;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The kind of server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedisKind {
    /// Redis 7.0.
    Redis7,
    /// Valkey 9, which prints doubles as Redis does since 7.2.
    Valkey9,
}

impl RedisKind {
    /// The path of its program.
    ///
    /// # Panics
    ///
    /// If it is missing; the message names the command to run.
    #[track_caller]
    pub fn program(self) -> PathBuf {
        process::program(self.name())
    }

    fn name(self) -> &'static str {
        match self {
            Self::Redis7 => "redis-server",
            Self::Valkey9 => "valkey-server",
        }
    }
}

/// A running server.
#[derive(Debug)]
pub struct ScratchRedis(Server);

impl ScratchRedis {
    /// A server that is ready.
    ///
    /// # Panics
    ///
    /// If it is missing or does not start; the message has its log, or the command to run.
    #[track_caller]
    pub fn start(kind: RedisKind, args: &[&str]) -> Self {
        Self::start_each(kind, |_| args.iter().map(OsString::from).collect())
    }

    /// A server with TLS only, so the clients of this kit cannot use it.
    #[track_caller]
    pub fn start_tls(kind: RedisKind, certificate: &str, args: &[&str]) -> Self {
        Self::start_each(kind, |port| {
            let port = ["--port".to_owned(), "0".to_owned(), "--tls-port".to_owned(), port.to_string()];
            let own = port.into_iter().chain(tls::of_redis(certificate)).map(OsString::from);
            own.chain(args.iter().map(OsString::from)).collect()
        })
    }

    /// The same with arguments that depend on the port; `args` is called for each port that is tried.
    #[track_caller]
    pub(crate) fn start_each(kind: RedisKind, args: impl Fn(u16) -> Vec<OsString>) -> Self {
        let program = kind.program();
        Self(Server::start(kind.name(), |folder, port| {
            let given = args(port);
            let port = port.to_string();
            let mut all: Vec<OsString> = ["--bind", "127.0.0.1", "--port", &port].map(OsString::from).into();
            all.extend(["--save", "", "--appendonly", "no", "--dir"].map(OsString::from));
            all.push(folder.into());
            all.extend(given);
            ProcessPlan { program: program.clone(), args: all, ready: "Ready to accept connections" }
        }))
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.0.address()
    }

    /// Its folder, with its log and what it writes.
    pub fn folder(&self) -> &Path {
        self.0.folder()
    }

    /// A new connection to it.
    pub fn client(&self) -> RespClient {
        RespClient::connect(self.address())
    }

    /// Kills it with SIGKILL. Unwritten data is lost.
    ///
    /// # Panics
    ///
    /// If it is not running.
    #[track_caller]
    pub fn kill(&mut self) {
        self.0.kill();
    }

    /// Starts it after a kill, on the same port and folder.
    ///
    /// # Panics
    ///
    /// If it is running, or does not start.
    #[track_caller]
    pub fn restart(&mut self) {
        self.0.restart();
    }

    /// Suspends it: connections stay, the system accepts new ones, and nothing replies.
    #[track_caller]
    pub fn freeze(&self) {
        self.0.freeze();
    }

    /// Resumes it.
    #[track_caller]
    pub fn thaw(&self) {
        self.0.thaw();
    }
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
            assert!(info.lines().any(|other| other == format!("process_id:{}", server.0.id())));
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

    #[test]
    fn a_killed_one_comes_back_with_what_it_wrote() {
        let mut server =
            ScratchRedis::start(RedisKind::Valkey9, &["--appendonly", "yes", "--appendfsync", "always"]);
        let address = server.address();
        assert_eq!(server.client().call(&["SET", "a", "1"]), Reply::Simple(b"OK".into()));
        server.kill();
        server.restart();
        assert_eq!(server.address(), address);
        assert_eq!(server.client().call(&["GET", "a"]), Reply::Bulk(b"1".into()));
    }

    #[test]
    fn a_frozen_one_answers_when_it_is_thawed() {
        let server = ScratchRedis::start(RedisKind::Redis7, &[]);
        let mut client = server.client();
        server.freeze();
        let command = b"*1\r\n$4\r\nPING\r\n";
        client.send_bytes(command);
        server.thaw();
        assert_eq!(client.read(), Reply::Simple(b"PONG".into()));
    }
}
