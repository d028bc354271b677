//! One HTTP/1.1 keep-alive connection: it sends a request and receives status and body.
//!
//! It supports only responses with `content-length`: no chunks, no redirects, no pipelining. Both buffers are reused,
//! so a request costs two system calls and no allocation.

use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// More headers than any response has.
const HEADERS_MAX: usize = 32;
/// A longer response is a fault of the server.
const ANSWER_BYTES_MAX: usize = 4 << 20;

pub(crate) struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
}

/// A response; its body stays in the connection until the next request.
#[derive(Debug)]
pub(crate) struct Response<'a> {
    pub(crate) status: u16,
    pub(crate) body: &'a [u8],
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, received: Vec::with_capacity(4096) })
    }

    /// Whether it can be reused: a server closes an idle connection without notice.
    pub(crate) fn is_open(&self) -> bool {
        is_open(&self.stream)
    }

    /// Sends one request and waits for its response.
    pub(crate) async fn call(&mut self, request: &[u8]) -> io::Result<Response<'_>> {
        self.received.clear();
        self.stream.write_all(request).await?;
        let (status, body) = loop {
            if self.stream.read_buf(&mut self.received).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if let Some(whole) = parse(&self.received)? {
                break whole;
            }
        };
        // One request has one response: further bytes belong to no request.
        if body.end != self.received.len() {
            return Err(bad("more bytes than one answer"));
        }
        Ok(Response { status, body: &self.received[body] })
    }
}

/// Whether an idle connection is usable: it is open, and no unrequested bytes have arrived.
pub(crate) fn is_open(stream: &TcpStream) -> bool {
    let nothing = stream.try_read(&mut [0; 1]);
    nothing.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

/// Status and range of the body, once the response is complete.
fn parse(bytes: &[u8]) -> io::Result<Option<(u16, Range<usize>)>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut head = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(start) =
        head.parse(bytes).map_err(|_| bad("an answer that is not HTTP"))?
    else {
        return Ok(None);
    };
    let status = head.code.ok_or_else(|| bad("no status"))?;
    let length = head.headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"));
    let length = match length {
        Some(header) => std::str::from_utf8(header.value).ok().and_then(|text| text.parse().ok()),
        None if status == 204 => Some(0),
        None => None,
    };
    let length: usize =
        length.filter(|length| *length <= ANSWER_BYTES_MAX).ok_or_else(|| bad("no usable length"))?;
    let body = start..start + length;
    Ok((bytes.len() >= body.end).then_some((status, body)))
}

fn bad(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_with_its_last_byte() {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        for end in 0..answer.len() {
            assert_eq!(parse(&answer[..end]).unwrap(), None);
        }
        let (status, body) = parse(answer).unwrap().unwrap();
        assert_eq!((status, &answer[body]), (200, &b"hello"[..]));
    }

    #[test]
    fn one_that_the_server_closed_is_not_used_again() {
        let runtime = crate::run::runtime().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let connection = Connection::open(listener.local_addr().unwrap()).await.unwrap();
            let (other, _) = listener.accept().await.unwrap();
            assert!(connection.is_open());
            drop(other);
            connection.stream.readable().await.unwrap();
            assert!(!connection.is_open());
        });
    }

    #[test]
    fn an_answer_without_a_length_is_a_fault_unless_it_has_no_body() {
        assert!(parse(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").is_err());
        assert!(parse(b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n").is_err());
        assert!(parse(b"+PONG\r\n").is_err());
        assert!(parse(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap().is_some());
    }
}
