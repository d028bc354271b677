//! A plain client of the Redis protocol: it sends, waits, and returns an error reply as an error.
//!
//! For what surrounds a measurement: settings, counts, checks. Not here: load; `tally_load` makes that.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use tally_wire::resp::{Replies, Reply, command};

/// The most bytes of one read.
const READ_BYTES: usize = 16 << 10;

/// An open connection.
#[derive(Debug)]
pub(crate) struct Client {
    stream: TcpStream,
    out: Vec<u8>,
    received: Vec<u8>,
}

impl Client {
    pub(crate) fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, out: Vec::new(), received: Vec::new() })
    }

    /// Adds a command to the next send.
    pub(crate) fn add<A: AsRef<[u8]>>(&mut self, args: &[A]) {
        command(args, &mut self.out);
    }

    /// Sends the added commands.
    pub(crate) fn send(&mut self) -> io::Result<()> {
        self.stream.write_all(&self.out)?;
        self.out.clear();
        Ok(())
    }

    /// Sends the added commands and waits for so many replies; returns the last.
    pub(crate) fn exchange(&mut self, replies: usize) -> io::Result<Reply> {
        self.send()?;
        let mut last = Reply::Null;
        for _ in 0..replies {
            last = self.reply()?;
        }
        Ok(last)
    }

    /// One command and its reply.
    pub(crate) fn call<A: AsRef<[u8]>>(&mut self, args: &[A]) -> io::Result<Reply> {
        self.add(args);
        self.exchange(1)
    }

    /// One command with an integer reply.
    pub(crate) fn integer<A: AsRef<[u8]>>(&mut self, args: &[A]) -> io::Result<i64> {
        match self.call(args)? {
            Reply::Integer(number) => Ok(number),
            other => Err(io::Error::other(format!("not an integer: {other:?}"))),
        }
    }

    /// A section of `INFO`.
    pub(crate) fn info(&mut self, section: &str) -> io::Result<Info> {
        match self.call(&["INFO", section])? {
            Reply::Bulk(text) => Ok(Info(String::from_utf8_lossy(&text).into_owned())),
            other => Err(io::Error::other(format!("no information: {other:?}"))),
        }
    }

    /// The next reply; an error reply is an error.
    fn reply(&mut self) -> io::Result<Reply> {
        match self.receive()? {
            Reply::Error(text) => Err(io::Error::other(String::from_utf8_lossy(&text).into_owned())),
            other => Ok(other),
        }
    }

    /// The next reply of any kind.
    pub(crate) fn receive(&mut self) -> io::Result<Reply> {
        let mut replies = Replies::new();
        loop {
            if let Some(length) = replies.next(&self.received).map_err(io::Error::other)? {
                let reply = Reply::parse(&self.received[..length]).map_err(io::Error::other)?;
                self.received.drain(..length);
                return Ok(reply);
            }
            let before = self.received.len();
            self.received.resize(before + READ_BYTES, 0);
            let read = self.stream.read(&mut self.received[before..])?;
            self.received.truncate(before + read);
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

/// A reply of `INFO`.
#[derive(Debug)]
pub(crate) struct Info(String);

impl Info {
    /// A field's text; empty if there is none.
    pub(crate) fn field(&self, name: &str) -> &str {
        let field = |line: &str| line.strip_prefix(name)?.strip_prefix(':').map(str::len);
        let line = self.0.lines().find(|line| field(line).is_some());
        line.map_or("", |line| line[name.len() + 1..].trim())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_of_information_is_a_whole_line() {
        let info = Info("# Memory\r\nused_memory_rss:7\r\nused_memory:5\r\n".to_owned());
        assert_eq!((info.field("used_memory"), info.field("used")), ("5", ""));
    }
}
