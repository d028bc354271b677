//! Decodes requests: arrays of bulk strings and inline commands, pipelined, from a buffer that grows.
//!
//! A request is flat, so the decoder is a small state machine that resumes where it stopped. It reads each byte only once,
//! however the network splits the stream. Its memory follows the bytes that have arrived, never a promised length. Arguments
//! of an array are ranges of the caller's buffer. Arguments of an inline command may be quoted, so the decoder keeps them in
//! a buffer of its own; [`Decoder::arg`] hides the difference.
//!
//! As in Redis, the decoder skips the two bytes after a bulk and the one after a line's `\r` unread. Unlike Redis, it refuses a
//! line beyond its bound even if the end has arrived with it, so that the split never changes the meaning.
//!
//! Not here: the replies to refused requests, beyond their text.

use super::inline;
use super::number;
use std::fmt;
use std::ops::Range;

/// The capacity for arguments that an idle connection keeps.
const ARGS_KEPT: usize = 1024;
/// Bytes of inline arguments that an idle connection keeps.
const INLINE_KEPT: usize = 4096;

/// The limits of a connection.
///
/// The decoder applies them when it reads a length. To let `AUTH` widen them for the next command of a pipeline, execute
/// each command before decoding the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeLimits {
    /// The number of arguments of a command, including its name.
    pub args_max: usize,
    /// Bytes of an argument.
    pub bulk_max: usize,
    /// Bytes of a line: an inline command, or a length.
    pub inline_max: usize,
}

impl DecodeLimits {
    /// The limits of a connection after any required AUTH.
    pub const FULL: Self = Self { args_max: 1_048_576, bulk_max: 512 << 10, inline_max: 64 << 10 };
    /// The limits before a required AUTH. A length between these and the full ones is refused as unauthenticated.
    pub const BEFORE_AUTH: Self = Self { args_max: 10, bulk_max: 16 << 10, inline_max: 16 << 10 };
}

/// Why a connection must be closed. The text is that of Redis, to be sent after `-ERR `.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    /// The number of arguments is not a number, or beyond all limits.
    InvalidMultibulkLength,
    /// The number of arguments needs AUTH first.
    UnauthenticatedMultibulkLength,
    /// The length of an argument is not a number, negative, or beyond all limits.
    InvalidBulkLength,
    /// The length of an argument needs AUTH first.
    UnauthenticatedBulkLength,
    /// Another byte at the beginning of an argument.
    ExpectedBulk(u8),
    /// The quotes of an inline command are not closed.
    UnbalancedQuotes,
    /// An inline command without an end within the limit.
    TooBigInline,
    /// A number of arguments without an end within the limit.
    TooBigCount,
    /// A length of an argument without an end within the limit.
    TooBigBulkCount,
    /// HTTP or TLS: a page of another site sent a browser here, or a client uses the wrong port. Close without a reply.
    Foreign,
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Protocol error: ")?;
        f.write_str(match self {
            Self::InvalidMultibulkLength => "invalid multibulk length",
            Self::UnauthenticatedMultibulkLength => "unauthenticated multibulk length",
            Self::InvalidBulkLength => "invalid bulk length",
            Self::UnauthenticatedBulkLength => "unauthenticated bulk length",
            // An error is one line; like Redis, replace a line end by a blank.
            Self::ExpectedBulk(b'\r' | b'\n') => "expected '$', got ' '",
            Self::ExpectedBulk(byte) => return write!(f, "expected '$', got '{}'", char::from(*byte)),
            Self::UnbalancedQuotes => "unbalanced quotes in request",
            Self::TooBigInline => "too big inline request",
            Self::TooBigCount => "too big mbulk count string",
            Self::TooBigBulkCount => "too big bulk count string",
            Self::Foreign => "HTTP or TLS on the port of the Redis protocol",
        })
    }
}

impl std::error::Error for ProtocolError {}

/// The first byte of TLS: a handshake record.
const TLS_HANDSHAKE: u8 = 0x16;

/// Methods of HTTP that are not commands of Redis, and the header that every request has.
const HTTP_ONLY: [&str; 9] =
    ["post", "put", "patch", "delete", "head", "options", "connect", "trace", "host:"];

/// Decodes requests. Resumes where it stopped, so that it scans nothing twice.
#[derive(Debug, Default)]
pub struct Decoder {
    /// Ranges of the command's bytes, or of `inline`.
    args: Vec<Range<usize>>,
    inline: Vec<u8>,
    is_inline: bool,
    /// The first byte that is not decoded yet.
    at: usize,
    /// The number of bytes from there on that are known to contain no line end.
    scanned: usize,
    expected: Expected,
}

#[derive(Clone, Copy, Debug, Default)]
enum Expected {
    #[default]
    Command,
    /// The number of remaining arguments, and the length of the next if it is known.
    Args { left: usize, bulk: Option<usize> },
}

impl Decoder {
    /// A decoder at the start of a command.
    pub fn new() -> Self {
        Self::default()
    }

    /// The next whole command, which starts at the first byte of `input`.
    ///
    /// `Ok(Some(n))`: it takes `n` bytes, and its arguments are available until the next call; an empty line and `*0` have
    /// none. `Ok(None)`: call again with the same bytes followed by more.
    ///
    /// # Errors
    ///
    /// The rest of the stream cannot be decoded: reply, then close.
    pub fn next(&mut self, input: &[u8], bounds: &DecodeLimits) -> Result<Option<usize>, ProtocolError> {
        let result = self.advance(input, bounds);
        if !matches!(result, Ok(None)) {
            self.at = 0;
            self.scanned = 0;
            self.expected = Expected::Command;
        }
        result
    }

    /// The number of arguments of the command, including its name.
    pub fn len(&self) -> usize {
        self.args.len()
    }

    /// Whether it has no arguments and no name. Such a command gets no reply.
    pub fn is_empty(&self) -> bool {
        self.args.is_empty()
    }

    /// An argument of the command that `next` has just found at the start of `input`.
    ///
    /// # Panics
    ///
    /// If there is no argument of this number.
    #[inline]
    pub fn arg<'a>(&'a self, input: &'a [u8], number: usize) -> &'a [u8] {
        let source = if self.is_inline { &self.inline } else { input };
        &source[self.args[number].clone()]
    }

    /// All arguments of that command.
    pub fn args<'a>(&'a self, input: &'a [u8]) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone {
        let source = if self.is_inline { &self.inline } else { input };
        self.args.iter().map(move |range| &source[range.clone()])
    }

    /// Whether the command arrived inline.
    pub fn is_inline(&self) -> bool {
        self.is_inline
    }

    /// The bytes of its own memory.
    pub fn held(&self) -> usize {
        self.args.capacity() * size_of::<Range<usize>>() + self.inline.capacity()
    }

    fn advance(&mut self, input: &[u8], bounds: &DecodeLimits) -> Result<Option<usize>, ProtocolError> {
        let (mut left, mut bulk) = match self.expected {
            Expected::Args { left, bulk } => (left, bulk),
            Expected::Command => {
                self.forget();
                match input.first() {
                    None => return Ok(None),
                    Some(b'*') => {}
                    Some(&TLS_HANDSHAKE) => return Err(ProtocolError::Foreign),
                    Some(_) => return self.inline(input, bounds),
                }
                let Some(line) = self.line(input, bounds, ProtocolError::TooBigCount)? else {
                    return Ok(None);
                };
                (count(&line[1..], bounds)?, None)
            }
        };
        while left > 0 {
            let length = match bulk {
                Some(length) => length,
                None => match self.line(input, bounds, ProtocolError::TooBigBulkCount)? {
                    Some(line) => bulk_length(line, bounds)?,
                    None => return Ok(self.pause(left, None)),
                },
            };
            if input.len() - self.at < length + 2 {
                return Ok(self.pause(left, Some(length)));
            }
            self.args.push(self.at..self.at + length);
            self.at += length + 2;
            left -= 1;
            bulk = None;
        }
        Ok(Some(self.at))
    }

    fn pause(&mut self, left: usize, bulk: Option<usize>) -> Option<usize> {
        self.expected = Expected::Args { left, bulk };
        None
    }

    /// Clears the state of the last command, and frees memory that only a large one needs.
    fn forget(&mut self) {
        self.is_inline = false;
        self.args.clear();
        self.inline.clear();
        if self.args.capacity() > ARGS_KEPT {
            self.args.shrink_to(ARGS_KEPT);
        }
        if self.inline.capacity() > INLINE_KEPT {
            self.inline.shrink_to(INLINE_KEPT);
        }
    }

    /// The line that starts at `at`, without its end. Moves `at` after it.
    #[inline]
    fn line<'i>(
        &mut self,
        input: &'i [u8],
        bounds: &DecodeLimits,
        too_big: ProtocolError,
    ) -> Result<Option<&'i [u8]>, ProtocolError> {
        let rest = &input[self.at..];
        let found = rest[self.scanned..].iter().position(|byte| *byte == b'\r');
        let end = found.map_or(rest.len(), |found| self.scanned + found);
        if end > bounds.inline_max {
            return Err(too_big);
        }
        if rest.len() < end + 2 {
            self.scanned = end;
            return Ok(None);
        }
        self.at += end + 2;
        self.scanned = 0;
        Ok(Some(&rest[..end]))
    }

    fn inline(&mut self, input: &[u8], bounds: &DecodeLimits) -> Result<Option<usize>, ProtocolError> {
        let found = input[self.scanned..].iter().position(|byte| *byte == b'\n');
        let end = found.map_or(input.len(), |found| self.scanned + found);
        if end > bounds.inline_max {
            return Err(ProtocolError::TooBigInline);
        }
        if found.is_none() {
            self.scanned = end;
            return Ok(None);
        }
        let line = input[..end].strip_suffix(b"\r").unwrap_or(&input[..end]);
        self.is_inline = true;
        if !inline::split(line, &mut self.inline, &mut self.args) {
            return Err(ProtocolError::UnbalancedQuotes);
        }
        if self.is_http() {
            return Err(ProtocolError::Foreign);
        }
        if self.args.len() > bounds.args_max {
            return Err(too_many(self.args.len()));
        }
        Ok(Some(end + 1))
    }

    /// Whether an inline command is the request line of HTTP, or its `Host` header. `GET` alone is a command of Redis.
    fn is_http(&self) -> bool {
        let mut args = self.args.iter().map(|range| &self.inline[range.clone()]);
        let first = args.next().unwrap_or_default();
        let is_it = |method: &&str| first.eq_ignore_ascii_case(method.as_bytes());
        HTTP_ONLY.iter().any(is_it) || args.nth(1).is_some_and(|version| version.starts_with(b"HTTP/"))
    }
}

fn count(text: &[u8], bounds: &DecodeLimits) -> Result<usize, ProtocolError> {
    let count = number::integer(text).ok_or(ProtocolError::InvalidMultibulkLength)?;
    // Zero arguments or fewer: nothing to do.
    let count = usize::try_from(count.max(0)).map_err(|_| ProtocolError::InvalidMultibulkLength)?;
    if count > bounds.args_max { Err(too_many(count)) } else { Ok(count) }
}

fn too_many(count: usize) -> ProtocolError {
    if count > DecodeLimits::FULL.args_max {
        ProtocolError::InvalidMultibulkLength
    } else {
        ProtocolError::UnauthenticatedMultibulkLength
    }
}

#[inline]
fn bulk_length(line: &[u8], bounds: &DecodeLimits) -> Result<usize, ProtocolError> {
    let text = match line.split_first() {
        Some((b'$', text)) => text,
        Some((byte, _)) => return Err(ProtocolError::ExpectedBulk(*byte)),
        // The line is empty: its end is where the argument should begin.
        None => return Err(ProtocolError::ExpectedBulk(b'\r')),
    };
    let length = number::integer(text).and_then(|length| usize::try_from(length).ok());
    match length {
        Some(length) if length <= bounds.bulk_max => Ok(length),
        Some(length) if length <= DecodeLimits::FULL.bulk_max => {
            Err(ProtocolError::UnauthenticatedBulkLength)
        }
        Some(_) | None => Err(ProtocolError::InvalidBulkLength),
    }
}
