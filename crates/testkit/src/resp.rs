//! A plain client of the Redis protocol: it sends exactly the bytes of the test and returns exactly those of the server.
//!
//! Blocking, with one connection and a timeout that only a hanging server reaches. The client parser of `wire` splits
//! replies; a test of the exact form compares bytes. Not here: reconnecting, and pools.

use crate::wait::GIVE_UP;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use tally_wire::resp::{Replies, Reply, command};

/// An open connection.
#[derive(Debug)]
pub struct RespClient {
    stream: TcpStream,
    received: Vec<u8>,
    replies: Replies,
}

impl RespClient {
    /// Connects.
    ///
    /// # Panics
    ///
    /// If nothing listens. All other methods but `try_…` panic if the connection breaks.
    #[track_caller]
    pub fn connect(address: SocketAddr) -> Self {
        Self::try_connect(address, GIVE_UP).unwrap_or_else(|error| panic!("connect to {address}: {error}"))
    }

    /// The same for a server that may end at any time, with a timeout for each part of a reply.
    pub fn try_connect(address: SocketAddr, patience: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, patience)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        Ok(Self { stream, received: Vec::new(), replies: Replies::new() })
    }

    /// Sends these bytes and does not wait.
    #[track_caller]
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the server takes what is sent");
    }

    /// The bytes of the next reply.
    #[track_caller]
    pub fn read_bytes(&mut self) -> Vec<u8> {
        self.try_read().expect("the server replies")
    }

    /// The next reply.
    #[track_caller]
    pub fn read(&mut self) -> Reply {
        let bytes = self.read_bytes();
        Reply::parse(&bytes).unwrap_or_else(|error| panic!("{error}: {}", bytes.escape_ascii()))
    }

    /// Sends a command and reads its reply.
    #[track_caller]
    pub fn call<A: AsRef<[u8]>>(&mut self, args: &[A]) -> Reply {
        self.send(&[args]);
        self.read()
    }

    /// The same, and the bytes of the reply.
    #[track_caller]
    pub fn call_bytes<A: AsRef<[u8]>>(&mut self, args: &[A]) -> Vec<u8> {
        self.send(&[args]);
        self.read_bytes()
    }

    /// Sends all commands at once and reads a reply for each.
    #[track_caller]
    pub fn pipeline<A: AsRef<[u8]>, C: AsRef<[A]>>(&mut self, commands: &[C]) -> Vec<Reply> {
        self.send(commands);
        commands.iter().map(|_| self.read()).collect()
    }

    /// The same for a server that may end at any time.
    pub fn try_pipeline<A: AsRef<[u8]>, C: AsRef<[A]>>(&mut self, commands: &[C]) -> io::Result<Vec<Reply>> {
        self.stream.write_all(&encode(commands))?;
        let read = |_| Reply::parse(&self.try_read()?).map_err(io::Error::other);
        commands.iter().map(read).collect()
    }

    /// Waits until the server closes; returns what it sent before that. A server that closes with unread bytes resets the
    /// connection, which counts as a close.
    #[track_caller]
    pub fn read_to_end(&mut self) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.received);
        match self.stream.read_to_end(&mut bytes) {
            Err(error) if error.kind() != io::ErrorKind::ConnectionReset => {
                panic!("it does not close: {error}")
            }
            Ok(_) | Err(_) => bytes,
        }
    }

    #[track_caller]
    fn send<A: AsRef<[u8]>, C: AsRef<[A]>>(&mut self, commands: &[C]) {
        self.send_bytes(&encode(commands));
    }

    fn try_read(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(length) = self.replies.next(&self.received).map_err(io::Error::other)? {
                let behind = self.received.split_off(length);
                return Ok(std::mem::replace(&mut self.received, behind));
            }
            let mut part = [0; 16 << 10];
            match self.stream.read(&mut part) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => self.received.extend_from_slice(&part[..length]),
                // A read with a timeout ends so when the whole machine has paused.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn encode<A: AsRef<[u8]>, C: AsRef<[A]>>(commands: &[C]) -> Vec<u8> {
    let mut out = Vec::new();
    commands.iter().for_each(|args| command(args.as_ref(), &mut out));
    out
}
