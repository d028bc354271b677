//! A small blocking HTTP/1.1 client that sends exactly the given bytes, malformed or not.
//!
//! It keeps its connection, and never sends a request twice by itself: a test that counts effects must know its
//! number of requests. Not here: chunked responses, redirects, TLS.

pub(crate) use crate::wait::GIVE_UP;
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// One request.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method.
    pub method: String,
    /// Path and query as sent.
    pub target: Vec<u8>,
    /// Header fields; `Host` and `Content-Length` are added unless they are here.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Option<Vec<u8>>,
}

impl Request {
    /// A request without a body.
    pub fn new(method: &str, target: impl AsRef<[u8]>) -> Self {
        Self { method: method.into(), target: target.as_ref().to_vec(), headers: Vec::new(), body: None }
    }

    /// The same with a body of JSON.
    #[must_use]
    pub fn json(self, body: &Value) -> Self {
        self.body("application/json", body.to_string())
    }

    /// The same with a body of this type.
    #[must_use]
    pub fn body(mut self, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self.header("Content-Type", content_type)
    }

    /// The same with a header field.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The same with a credential.
    #[must_use]
    pub fn key(self, key: &str) -> Self {
        self.header("Authorization", &format!("Bearer {key}"))
    }

    /// The same with an idempotency key.
    #[must_use]
    pub fn idempotent(self, key: &str) -> Self {
        self.header("Idempotency-Key", key)
    }

    fn has(&self, name: &str) -> bool {
        self.headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name))
    }

    /// The bytes on the wire.
    pub fn bytes(&self, host: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(self.method.as_bytes());
        bytes.push(b' ');
        bytes.extend_from_slice(&self.target);
        bytes.extend_from_slice(b" HTTP/1.1\r\n");
        if !self.has("host") {
            bytes.extend_from_slice(format!("Host: {host}\r\n").as_bytes());
        }
        for (name, value) in &self.headers {
            bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        if let Some(body) = &self.body
            && !self.has("content-length")
        {
            bytes.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(self.body.as_deref().unwrap_or_default());
        bytes
    }
}

/// One response.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// Header fields, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Response {
    /// The first field of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The body as JSON; null for an empty body.
    #[track_caller]
    pub fn json(&self) -> Value {
        if self.body.is_empty() {
            return Value::Null;
        }
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {}", self.text()))
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The `code` of a problem; empty for other bodies.
    pub fn code(&self) -> String {
        let body: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        body["code"].as_str().unwrap_or_default().to_owned()
    }

    /// The body as JSON, after checking the status.
    #[track_caller]
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        self.json()
    }

    /// Checks status and code of a problem.
    #[track_caller]
    pub fn refused(&self, status: u16, code: &str) {
        assert_eq!((self.status, self.code().as_str()), (status, code), "{}", self.text());
    }

    /// Whether it repeats an earlier response.
    pub fn is_replay(&self) -> bool {
        self.header("idempotent-replayed") == Some("true")
    }
}

/// One connection to a server, opened when needed.
#[derive(Debug)]
pub struct Client {
    address: SocketAddr,
    key: Option<String>,
    patience: Duration,
    connection: Option<BufReader<TcpStream>>,
}

impl Client {
    /// A client of this address.
    pub fn new(address: SocketAddr) -> Self {
        Self { address, key: None, patience: GIVE_UP, connection: None }
    }

    /// The same with a credential for requests without one.
    #[must_use]
    pub fn with_key(mut self, key: &str) -> Self {
        self.key = Some(key.into());
        self
    }

    /// The same with a timeout for the connection, and for each part of a response.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Sends a request and waits for its response.
    pub fn try_send(&mut self, request: &Request) -> io::Result<Response> {
        let host = self.address.to_string();
        let bytes = match &self.key {
            Some(key) if !request.has("authorization") => request.clone().key(key).bytes(&host),
            Some(_) | None => request.bytes(&host),
        };
        let answer = self.exchange(&bytes, request.method == "HEAD");
        let closes = answer.as_ref().map_or(true, |answer| {
            answer.header("connection") == Some("close") || is_stream(&answer.headers)
        });
        if closes {
            self.connection = None;
        }
        answer
    }

    /// Sends a request and waits for its response; panics without one.
    #[track_caller]
    pub fn send(&mut self, request: &Request) -> Response {
        self.try_send(request).unwrap_or_else(|error| {
            panic!("no answer to {} {}: {error}", request.method, String::from_utf8_lossy(&request.target))
        })
    }

    /// Sends these bytes and reads one response; the connection is not reused.
    pub fn raw(&mut self, bytes: &[u8]) -> io::Result<Response> {
        self.connection = None;
        let answer = self.exchange(bytes, false);
        self.connection = None;
        answer
    }

    /// `GET`
    #[track_caller]
    pub fn get(&mut self, target: &str) -> Response {
        self.send(&Request::new("GET", target))
    }

    /// `POST` of JSON.
    #[track_caller]
    pub fn post(&mut self, target: &str, body: &Value) -> Response {
        self.send(&Request::new("POST", target).json(body))
    }

    /// `PUT` of JSON.
    #[track_caller]
    pub fn put(&mut self, target: &str, body: &Value) -> Response {
        self.send(&Request::new("PUT", target).json(body))
    }

    /// `DELETE`
    #[track_caller]
    pub fn delete(&mut self, target: &str) -> Response {
        self.send(&Request::new("DELETE", target))
    }

    fn exchange(&mut self, bytes: &[u8], headless: bool) -> io::Result<Response> {
        if self.connection.is_none() {
            let stream = TcpStream::connect_timeout(&self.address, self.patience)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(self.patience))?;
            stream.set_write_timeout(Some(self.patience))?;
            self.connection = Some(BufReader::new(stream));
        }
        let connection = self.connection.as_mut().expect("it was just made");
        // A server may reject a request before it has read all of it: its response counts more than the broken pipe.
        let written = connection.get_mut().write_all(bytes);
        let answer = read_response(connection, headless);
        match (answer, written) {
            (Err(_), Err(error)) => Err(error),
            (answer, _) => answer,
        }
    }
}

pub(crate) fn read_response(from: &mut impl BufRead, headless: bool) -> io::Result<Response> {
    let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let first = read_line(from)?;
    let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| wrong(&format!("no status in {first:?}")))?;
    let mut headers = Vec::new();
    loop {
        let line = read_line(from)?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').ok_or_else(|| wrong("a header field without a colon"))?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length =
        length.map_or(Ok(0), |(_, value)| value.parse()).map_err(|_| wrong("a bad content-length"))?;
    let mut body = vec![0; if headless { 0 } else { length }];
    from.read_exact(&mut body)?;
    let in_chunks = headers.iter().any(|(name, _)| name == "transfer-encoding");
    if in_chunks && !headless && !is_stream(&headers) {
        body = read_chunks(from)?;
    }
    Ok(Response { status, headers, body })
}

/// Whether it is a stream of events: only its head is read here, and `events` reads the rest.
fn is_stream(headers: &[(String, String)]) -> bool {
    headers.iter().any(|(name, value)| name == "content-type" && value == "text/event-stream")
}

/// A body of a length that the head does not say. A connection that is closed before its end is an error.
fn read_chunks(from: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = read_line(from)?;
        let length = usize::from_str_radix(&line, 16);
        let length = length.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        let start = body.len();
        body.resize(start + length, 0);
        from.read_exact(&mut body[start..])?;
        read_line(from)?;
        if length == 0 {
            return Ok(body);
        }
    }
}

pub(crate) fn read_line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    from.take(1 << 20).read_until(b'\n', &mut line)?;
    if line.pop() != Some(b'\n') {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    line.pop_if(|last| *last == b'\r');
    String::from_utf8(line).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// A path segment, percent-encoded.
pub fn segment(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let one = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_written_as_told() {
        let request = Request::new("POST", "/x").header("content-length", "9").body("text/plain", "ab");
        let text = String::from_utf8(request.bytes("h:1")).unwrap();
        let head = "POST /x HTTP/1.1\r\nHost: h:1\r\ncontent-length: 9\r\nContent-Type: text/plain\r\n\r\n";
        assert_eq!(text, format!("{head}ab"));
    }

    #[test]
    fn answers_are_read_and_cut_ones_are_errors() {
        let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: y\r\n\r\n{}".as_slice();
        let answer = read_response(&mut BufReader::new(whole), false).unwrap();
        assert_eq!((answer.status, answer.header("x"), answer.text().as_str()), (200, Some("y"), "{}"));
        assert!(read_response(&mut BufReader::new(&whole[..whole.len() - 1]), false).is_err());
        assert_eq!(segment("ä/b c"), "%C3%A4%2Fb%20c");
    }
}
