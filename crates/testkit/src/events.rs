//! A client of event streams (`text/event-stream`), which parses them as the standard of browsers says.
//!
//! It reads only when the test calls it, so a test can be a slow reader. It never reconnects by itself. Not here:
//! TLS.

use crate::http::{GIVE_UP, Request, Response, read_line, read_response};
use serde_json::Value;
use socket2::{Domain, Socket, Type};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// Bytes of a segment of a narrow connection: the least that every network carries.
const SEGMENT: u32 = 536;

/// Heartbeats in a row after which the test gives up; no measurement.
const SILENT_MAX: usize = 5;

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its id; empty if it has none.
    pub id: String,
    /// Its name.
    pub event: String,
    /// Its data.
    pub data: Value,
}

/// An open stream.
#[derive(Debug)]
pub struct EventStream {
    connection: BufReader<TcpStream>,
    /// The unread bytes of the current chunk.
    left: usize,
    ended: bool,
    /// The last id that the server sent.
    pub last_id: String,
    /// Comments that the server sent.
    pub comments: usize,
}

impl EventStream {
    /// Opens a stream; a rejection is the error.
    pub fn open(address: SocketAddr, request: &Request) -> Result<Self, Response> {
        let stream = TcpStream::connect_timeout(&address, GIVE_UP).expect("the server listens");
        Self::begin(stream, address, request)
    }

    /// The same on a connection that takes little ahead, so that the buffers of a stream that is not read are full soon.
    pub fn open_narrow(address: SocketAddr, request: &Request) -> Result<Self, Response> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None).expect("a socket");
        socket.set_tcp_mss(SEGMENT).expect("a socket");
        socket.set_recv_buffer_size(SEGMENT as usize).expect("a socket");
        socket.connect_timeout(&address.into(), GIVE_UP).expect("the server listens");
        Self::begin(socket.into(), address, request)
    }

    fn begin(stream: TcpStream, address: SocketAddr, request: &Request) -> Result<Self, Response> {
        stream.set_nodelay(true).expect("a socket");
        stream.set_read_timeout(Some(GIVE_UP)).expect("a socket");
        let mut connection = BufReader::new(stream);
        connection.get_mut().write_all(&request.bytes(&address.to_string())).expect("the server reads");
        let head = read_response(&mut connection, false).expect("an answer");
        if head.status != 200 {
            return Err(head);
        }
        assert_eq!(head.header("content-type"), Some("text/event-stream"));
        assert_eq!(head.header("transfer-encoding"), Some("chunked"));
        let mut stream = Self { connection, left: 0, ended: false, last_id: String::new(), comments: 0 };
        // The stream begins with its offset.
        loop {
            let line = stream.line().expect("the stream begins");
            match line.strip_prefix("id: ") {
                Some(id) => stream.last_id = id.to_owned(),
                None if line.is_empty() => return Ok(stream),
                None => assert!(line.starts_with("retry: "), "{line}"),
            }
        }
    }

    /// The next event; `None` at the end of the stream, clean or not.
    pub fn read(&mut self) -> Option<Event> {
        let comments = self.comments;
        let (mut id, mut event, mut data) = (String::new(), String::new(), String::new());
        loop {
            let line = self.line().ok().filter(|_| !self.ended)?;
            match line.split_once(':').map(|(name, value)| (name, value.strip_prefix(' ').unwrap_or(value))) {
                Some(("", _)) => {
                    self.comments += 1;
                    assert!(self.comments - comments < SILENT_MAX, "nothing happens");
                }
                Some(("id", value)) => {
                    value.clone_into(&mut id);
                    value.clone_into(&mut self.last_id);
                }
                Some(("event", value)) => event = value.to_owned(),
                Some(("data", value)) => data.push_str(value),
                Some(("retry", _)) => {}
                Some(other) => panic!("an unknown field: {other:?}"),
                None => {
                    assert_eq!(line, "", "a line without a colon");
                    if !data.is_empty() {
                        let data = serde_json::from_str(&data).expect("data is JSON");
                        return Some(Event { id, event, data });
                    }
                    id.clear();
                    event.clear();
                }
            }
        }
    }

    /// Waits for a comment; fails if an event comes before it.
    pub fn read_comment(&mut self) {
        let line = self.line().expect("the stream goes on");
        assert_eq!(line, ":");
        assert_eq!(self.line().expect("the stream goes on"), "");
    }

    /// The next event, which must have this name.
    #[track_caller]
    pub fn expect(&mut self, event: &str) -> Value {
        let next = self.read().expect("the stream goes on");
        assert_eq!(next.event, event, "{next:?}");
        next.data
    }

    /// Waits for the end of the stream; returns the events before it.
    pub fn rest(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.read()).collect()
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        loop {
            if self.left == 0 {
                let size = read_line(&mut self.connection)?;
                self.left = usize::from_str_radix(size.trim(), 16).expect("the size of a chunk");
                if self.left == 0 {
                    self.ended = true;
                    return Ok(String::new());
                }
            }
            let before = line.len();
            self.connection.by_ref().take(self.left as u64).read_until(b'\n', &mut line)?;
            self.left -= line.len() - before;
            if line.len() == before {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if self.left == 0 {
                assert_eq!(read_line(&mut self.connection)?, "", "the end of a chunk");
            }
            if line.pop_if(|last| *last == b'\n').is_some() {
                return Ok(String::from_utf8(line).expect("events are text"));
            }
        }
    }
}
