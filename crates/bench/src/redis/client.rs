//! A plain client of the Redis protocol: asks, waits, and takes an error for one.
//!
//! For what surrounds a measurement: settings, counts, proofs. Not here: load; `tally_load` makes that.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use tally_wire::resp::{Replies, Reply, command};

/// What is read at once, if there is so much.
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

    /// Adds a command to those that are sent together.
    pub(crate) fn add<A: AsRef<[u8]>>(&mut self, args: &[A]) {
        command(args, &mut self.out);
    }

    /// Sends what was added.
    pub(crate) fn send(&mut self) -> io::Result<()> {
        self.stream.write_all(&self.out)?;
        self.out.clear();
        Ok(())
    }

    /// Sends what was added and waits for that many replies; gives the last.
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

    /// One command that is answered with an integer.
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

    /// The next reply that is no error.
    fn reply(&mut self) -> io::Result<Reply> {
        match self.receive()? {
            Reply::Error(text) => Err(io::Error::other(String::from_utf8_lossy(&text).into_owned())),
            other => Ok(other),
        }
    }

    /// The next reply, whatever it is.
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

/// What `INFO` said.
#[derive(Debug)]
pub(crate) struct Info(String);

impl Info {
    /// A field's text; empty where there is none.
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
