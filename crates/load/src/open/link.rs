//! One connection of an open loop, in either protocol: it sends a request and checks its response.
//!
//! Not here: the requests (`journey`), and when they are sent.

use super::journey::{Protocol, Scene};
use crate::connection::Connection;
use crate::resp;
use std::io;

pub(super) enum Link {
    Http(Connection),
    Redis(resp::Connection),
}

impl Link {
    /// Opens a connection, and authenticates if the protocol requires it first.
    pub(super) async fn open(scene: &Scene) -> io::Result<Self> {
        match scene.protocol {
            Protocol::Http => Ok(Self::Http(Connection::open(scene.address).await?)),
            Protocol::Redis => {
                let mut connection = resp::Connection::open(scene.address).await?;
                if let Some(key) = &scene.key {
                    super::journey::command(connection.out(), &["AUTH", key]);
                    let refused = connection.exchange(1).await?.first_error;
                    refused.map_or(Ok(()), |why| Err(io::Error::other(why)))?;
                }
                Ok(Self::Redis(connection))
            }
        }
    }

    /// Whether it can be reused: a server closes idle connections.
    pub(super) fn is_open(&self) -> bool {
        match self {
            Self::Http(connection) => connection.is_open(),
            Self::Redis(connection) => connection.is_open(),
        }
    }

    /// Sends one request and waits for its response: its body (empty in the Redis protocol), or a short reason of the
    /// failure.
    pub(super) async fn call(&mut self, request: &[u8]) -> io::Result<Result<&[u8], String>> {
        match self {
            Self::Http(connection) => {
                let answer = connection.call(request).await?;
                let well = (200..300).contains(&answer.status);
                Ok(if well { Ok(answer.body) } else { Err(problem(answer.status, answer.body)) })
            }
            Self::Redis(connection) => {
                connection.out().extend_from_slice(request);
                let refused = connection.exchange(1).await?.first_error;
                Ok(refused.map_or(Ok(&[]), Err))
            }
        }
    }
}

/// A rejection as status and code.
fn problem(status: u16, body: &[u8]) -> String {
    let problem: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    match problem["code"].as_str() {
        Some(code) => format!("{status} {code}"),
        None => status.to_string(),
    }
}
