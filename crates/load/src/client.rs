//! Single requests outside a load run, one after the other: what a caller needs that checks a server, or waits for one.
//!
//! A [`Client`] has a runtime of its own, so each of its calls blocks. It keeps its connection, and opens another one after a
//! failure. Not here: repeating a request that failed, because only the caller knows whether it may.

use crate::connection::Connection;
use crate::request::Common;
use crate::run::runtime;
use serde_json::Value;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::runtime::Runtime;

/// How long a single request may take: longer than any response of a server under load.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// A caller of one server. Its calls block, so they must not be made from an async runtime.
pub struct Client {
    address: SocketAddr,
    common: Common,
    answer_max: Duration,
    runtime: Runtime,
    connection: Option<Connection>,
    /// Reused.
    request: Vec<u8>,
}

impl Client {
    /// A client without a connection. Each of its requests may take so long.
    ///
    /// # Errors
    ///
    /// If its runtime does not start.
    pub fn new(address: SocketAddr, answer_max: Duration) -> io::Result<Self> {
        let common = Common::new(address, None);
        Ok(Self { address, common, answer_max, runtime: runtime()?, connection: None, request: Vec::new() })
    }

    /// The address of the server.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Gets a path; returns the status and the body, null without one.
    ///
    /// # Errors
    ///
    /// If there is no response in time, or one that is not JSON.
    pub fn get(&mut self, path: &str) -> io::Result<(u16, Value)> {
        self.common.get(&mut self.request, format_args!("{path}"));
        self.call()
    }

    /// Sends a body by this method; `key` is its idempotency key. Returns the same.
    ///
    /// # Errors
    ///
    /// If there is no response in time, or one that is not JSON.
    pub fn send(
        &mut self,
        method: &str,
        path: &str,
        key: Option<&str>,
        body: &Value,
    ) -> io::Result<(u16, Value)> {
        let line = key.map_or_else(String::new, |key| format!("idempotency-key: {key}\r\n"));
        let (out, body) = (&mut self.request, body.to_string());
        self.common.send_with(out, method, format_args!("{path}"), format_args!("{line}"), body.as_bytes());
        self.call()
    }

    fn call(&mut self) -> io::Result<(u16, Value)> {
        let (address, request, kept) = (self.address, &self.request, self.connection.take());
        let exchange = async {
            let mut connection = match kept.filter(Connection::is_open) {
                Some(kept) => kept,
                None => Connection::open(address).await?,
            };
            let answer = connection.call(request).await?;
            let body =
                if answer.body.is_empty() { Value::Null } else { serde_json::from_slice(answer.body)? };
            Ok::<_, io::Error>(((answer.status, body), connection))
        };
        let done = self.runtime.block_on(async { tokio::time::timeout(self.answer_max, exchange).await });
        let (answer, connection) = done.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        self.connection = Some(connection);
        Ok(answer)
    }
}

/// Gets a path by a connection of its own; returns the status and the body. Blocks; must not be called from an async runtime.
///
/// # Errors
///
/// If there is no response, or one that is not JSON.
pub fn get_json(address: SocketAddr, path: &str) -> io::Result<(u16, Value)> {
    Client::new(address, ANSWER_MAX)?.get(path)
}
