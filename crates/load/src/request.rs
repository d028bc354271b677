//! Bytes of requests, written into a reused buffer.
//!
//! The headers that all requests to a server share are rendered once. Paths need no escaping: boards and players of a
//! load run are letters, digits and `-`.

use std::io::Write;
use std::net::SocketAddr;

/// The headers of every request to one server.
#[derive(Clone, Debug)]
pub(crate) struct Common {
    headers: String,
}

impl Common {
    pub(crate) fn new(address: SocketAddr, token: Option<&str>) -> Self {
        let mut headers = format!("host: {address}\r\n");
        if let Some(token) = token {
            headers += &format!("authorization: Bearer {token}\r\n");
        }
        Self { headers }
    }

    /// Writes a request without a body.
    pub(crate) fn get(&self, out: &mut Vec<u8>, path: std::fmt::Arguments<'_>) {
        out.clear();
        write!(out, "GET {path} HTTP/1.1\r\n{}\r\n", self.headers).expect("a buffer takes everything");
    }

    /// Writes a request with a JSON body.
    pub(crate) fn send(&self, out: &mut Vec<u8>, method: &str, path: std::fmt::Arguments<'_>, body: &[u8]) {
        self.send_with(out, method, path, format_args!(""), body);
    }

    /// The same with further header lines, each with its line end.
    pub(crate) fn send_with(
        &self,
        out: &mut Vec<u8>,
        method: &str,
        path: std::fmt::Arguments<'_>,
        lines: std::fmt::Arguments<'_>,
        body: &[u8],
    ) {
        out.clear();
        let (headers, length) = (&self.headers, body.len());
        write!(out, "{method} {path} HTTP/1.1\r\n{headers}{lines}content-type: application/json\r\n")
            .expect("a buffer takes everything");
        write!(out, "content-length: {length}\r\n\r\n").expect("a buffer takes everything");
        out.extend_from_slice(body);
    }
}
