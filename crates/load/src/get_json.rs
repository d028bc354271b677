//! One request outside a load run: the JSON that a server reports.

use crate::connection::Connection;
use crate::request::Common;
use crate::run::runtime;
use serde_json::Value;
use std::io;
use std::net::SocketAddr;

/// Gets a path; returns the status and the body. Blocks; must not be called from an async runtime.
///
/// # Errors
///
/// If there is no response, or one that is not JSON.
pub fn get_json(address: SocketAddr, path: &str) -> io::Result<(u16, Value)> {
    runtime()?.block_on(async {
        let mut connection = Connection::open(address).await?;
        let mut request = Vec::new();
        Common::new(address, None).get(&mut request, format_args!("{path}"));
        let answer = connection.call(&request).await?;
        Ok((answer.status, serde_json::from_slice(answer.body)?))
    })
}
