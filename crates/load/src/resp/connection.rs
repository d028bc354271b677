//! One connection of the Redis protocol: it sends a chunk of commands and receives their replies.
//!
//! Both buffers are reused, and replies are skipped as they arrive. So a chunk of long replies takes no more memory
//! than the longest one. Not here: more than one chunk in flight.

use crate::connection::is_open;
use std::io;
use std::net::SocketAddr;
use tally_wire::resp::Replies;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The most bytes of one read.
const READ_BYTES: usize = 16 << 10;
/// A reply longer than this is a fault of the server.
const REPLY_BYTES_MAX: usize = 64 << 20;

pub(crate) struct Connection {
    stream: TcpStream,
    out: Vec<u8>,
    received: Vec<u8>,
    replies: Replies,
}

/// The replies to a chunk.
#[derive(Debug, Default)]
pub(crate) struct Exchanged {
    pub(crate) errors: u64,
    pub(crate) first_error: Option<String>,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let received = Vec::with_capacity(READ_BYTES);
        Ok(Self { stream, out: Vec::new(), received, replies: Replies::new() })
    }

    /// The buffer for the next chunk.
    pub(crate) fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Whether it can be reused: a server closes an idle connection without notice.
    pub(crate) fn is_open(&self) -> bool {
        is_open(&self.stream)
    }

    /// Sends the appended commands and waits for this many replies.
    pub(crate) async fn exchange(&mut self, mut replies: u64) -> io::Result<Exchanged> {
        self.stream.write_all(&self.out).await?;
        self.out.clear();
        let mut exchanged = Exchanged::default();
        while replies > 0 {
            if self.received.len() > REPLY_BYTES_MAX {
                return Err(bad("a reply without an end"));
            }
            self.received.reserve(READ_BYTES);
            if self.stream.read_buf(&mut self.received).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let mut at = 0;
            while let Some(length) = self.replies.next(&self.received[at..]).map_err(io::Error::other)? {
                let reply = &self.received[at..at + length];
                if matches!(reply[0], b'-' | b'!') {
                    exchanged.errors += 1;
                    exchanged.first_error.get_or_insert_with(|| String::from_utf8_lossy(reply).trim().into());
                }
                // Further replies belong to no command.
                replies = replies.checked_sub(1).ok_or_else(|| bad("more replies than commands"))?;
                at += length;
            }
            self.received.drain(..at);
        }
        if self.received.is_empty() { Ok(exchanged) } else { Err(bad("more bytes than replies")) }
    }
}

fn bad(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
