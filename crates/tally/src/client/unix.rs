//! A connection of the client over a Unix socket.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use ureq::Error;
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport,
};

/// Connects to this socket, whatever the address of a request.
#[derive(Debug)]
pub(super) struct ToSocket(pub(super) PathBuf);

pub(super) struct Socket {
    stream: UnixStream,
    buffers: LazyBuffers,
}

impl std::fmt::Debug for Socket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.stream.fmt(f)
    }
}

impl Connector for ToSocket {
    type Out = Socket;

    fn connect(&self, details: &ConnectionDetails<'_>, _: Option<()>) -> Result<Option<Socket>, Error> {
        let stream = UnixStream::connect(&self.0)?;
        let config = details.config;
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        Ok(Some(Socket { stream, buffers }))
    }
}

impl Transport for Socket {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.stream.set_write_timeout(timeout.not_zero().map(|time| *time))?;
        let written = self.stream.write_all(&self.buffers.output()[..amount]);
        written.map_err(|why| transport_error(why, timeout))
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        self.stream.set_read_timeout(timeout.not_zero().map(|time| *time))?;
        let read = self.stream.read(self.buffers.input_append_buf());
        let bytes = read.map_err(|why| transport_error(why, timeout))?;
        self.buffers.input_appended(bytes);
        Ok(bytes > 0)
    }

    /// Connections are not reused: a new one on the same machine costs nothing.
    fn is_open(&mut self) -> bool {
        false
    }
}

fn transport_error(why: io::Error, timeout: NextTimeout) -> Error {
    match why.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => Error::Timeout(timeout.reason),
        _ => why.into(),
    }
}
