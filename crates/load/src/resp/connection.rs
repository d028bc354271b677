//! One connection that speaks the Redis protocol: a chunk out, so many replies in.
//!
//! Both buffers are used again, and replies are passed over as they arrive, so a chunk of long replies takes no more
//! memory than the longest. Not here: more than one chunk on its way.

use crate::connection::is_open;
use std::io;
use std::net::SocketAddr;
use tally_wire::resp::Replies;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What is read at once, if there is so much.
const READ_BYTES: usize = 16 << 10;
/// A reply longer than this is a fault of the server.
const REPLY_BYTES_MAX: usize = 64 << 20;

/// An open connection.
pub(crate) struct Connection {
    stream: TcpStream,
    out: Vec<u8>,
    received: Vec<u8>,
    replies: Replies,
}

/// What came back for a chunk.
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

    /// Where the next chunk goes.
    pub(crate) fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Whether it can be used again: a server closes what has been idle for long, and says nothing by itself.
    pub(crate) fn is_open(&self) -> bool {
        is_open(&self.stream)
    }

    /// Sends what was appended and waits for so many replies.
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
                // One pipeline has its replies: what follows belongs to none.
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
