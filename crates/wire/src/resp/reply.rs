//! Decodes replies for clients, in both protocols.
//!
//! There are two parts. [`Replies`] finds the end of a reply without building anything and resumes where it stopped; a load
//! generator needs only that. [`Reply::parse`] builds values from a whole reply, for tests. The depth has a limit, because a
//! reply is input as well.
//!
//! Not here: attributes and streamed strings, which no server sends unrequested; they are refused.

use super::number;
use std::fmt;

/// The limit of nested aggregates; `COMMAND DOCS` has six.
const DEPTH_MAX: usize = 16;
/// The longest line of a status, number or length.
const LINE_MAX: usize = 64 << 10;
/// The limit of Redis for a string, and more elements than any reply has.
const LENGTH_MAX: i64 = 512 << 20;

/// Why the input is not a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyError {
    /// No reply starts with this byte.
    Kind(u8),
    /// An invalid or too large length or number.
    Number,
    /// A line without an end within the limit.
    Line,
    /// Too many nested aggregates.
    Depth,
}

impl fmt::Display for ReplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind(byte) => write!(f, "no reply starts with the byte {byte:#04x}"),
            Self::Number => f.write_str("a reply with an unreadable number"),
            Self::Line => f.write_str("a reply with a line that does not end"),
            Self::Depth => write!(f, "a reply of more than {DEPTH_MAX} levels"),
        }
    }
}

impl std::error::Error for ReplyError {}

/// Finds the ends of replies.
#[derive(Debug, Default)]
pub struct Replies {
    at: usize,
    scanned: usize,
    /// The remaining elements of the aggregate at each level.
    left: [u32; DEPTH_MAX],
    depth: usize,
    /// The remaining bytes of a string, including its end.
    body: usize,
}

/// What the first line of a reply announces.
enum Head {
    Whole,
    Body(usize),
    Elements(u32),
}

impl Replies {
    /// Starts at the beginning of a reply.
    pub fn new() -> Self {
        Self::default()
    }

    /// The length of the next whole reply, which starts at the first byte of `input`. `None` if it is incomplete: call again
    /// with the same bytes followed by more.
    ///
    /// # Errors
    ///
    /// The input is not a reply; nothing after it can be decoded.
    pub fn next(&mut self, input: &[u8]) -> Result<Option<usize>, ReplyError> {
        loop {
            if input.len() - self.at < self.body {
                return Ok(None);
            }
            self.at += std::mem::take(&mut self.body);
            if self.at > 0 && self.depth == 0 {
                return Ok(Some(std::mem::take(self).at));
            }
            let Some(line) = self.line(input)? else { return Ok(None) };
            match head(line)? {
                Head::Whole => self.finish_element(),
                Head::Body(length) => {
                    self.body = length + 2;
                    self.finish_element();
                }
                Head::Elements(0) => self.finish_element(),
                Head::Elements(count) => {
                    *self.left.get_mut(self.depth).ok_or(ReplyError::Depth)? = count;
                    self.depth += 1;
                }
            }
        }
    }

    /// Ends one element, and the aggregates of which it was the last.
    #[inline]
    fn finish_element(&mut self) {
        while self.depth > 0 {
            let left = &mut self.left[self.depth - 1];
            *left -= 1;
            if *left > 0 {
                return;
            }
            self.depth -= 1;
        }
    }

    #[inline]
    fn line<'i>(&mut self, input: &'i [u8]) -> Result<Option<&'i [u8]>, ReplyError> {
        let rest = &input[self.at..];
        let found = rest[self.scanned..].iter().position(|byte| *byte == b'\n');
        let end = found.map_or(rest.len(), |found| self.scanned + found);
        if end > LINE_MAX {
            return Err(ReplyError::Line);
        }
        if found.is_none() {
            self.scanned = end;
            return Ok(None);
        }
        self.at += end + 1;
        self.scanned = 0;
        Ok(Some(content(&rest[..end])))
    }
}

/// A line without the `\r` of its end.
#[inline]
fn content(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[inline]
fn head(line: &[u8]) -> Result<Head, ReplyError> {
    let (kind, text) = line.split_first().ok_or(ReplyError::Kind(b'\r'))?;
    let length = || match number::integer(text) {
        Some(length @ -1..=LENGTH_MAX) => Ok(length),
        Some(_) | None => Err(ReplyError::Number),
    };
    Ok(match kind {
        b'+' | b'-' | b':' | b'_' | b',' | b'#' | b'(' => Head::Whole,
        // Minus one is null in RESP2.
        b'$' | b'=' | b'!' => usize::try_from(length()?).map_or(Head::Whole, Head::Body),
        b'*' | b'~' | b'>' => u32::try_from(length()?).map_or(Head::Whole, Head::Elements),
        b'%' => Head::Elements(u32::try_from(length()? * 2).map_err(|_| ReplyError::Number)?),
        kind => return Err(ReplyError::Kind(*kind)),
    })
}

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A status, such as `OK`.
    Simple(Vec<u8>),
    /// An error, with its code.
    Error(Vec<u8>),
    /// An integer.
    Integer(i64),
    /// A string.
    Bulk(Vec<u8>),
    /// Null.
    Null,
    /// Null in place of an array; only RESP2 has it.
    NullArray,
    /// An array.
    Array(Vec<Reply>),
    /// A map, in the order of the server.
    Map(Vec<(Reply, Reply)>),
    /// A set, in the order of the server.
    Set(Vec<Reply>),
    /// A message without a request.
    Push(Vec<Reply>),
    /// A double, as its text, so that a comparison covers every digit.
    Double(Vec<u8>),
    /// An integer of any length, as its text.
    Big(Vec<u8>),
    /// A boolean.
    Boolean(bool),
    /// A text for people, after its format (`txt:`).
    Verbatim(Vec<u8>),
}

impl Reply {
    /// Builds the value of a whole reply, such as [`Replies::next`] found.
    ///
    /// # Errors
    ///
    /// If it is not exactly one whole reply.
    pub fn parse(whole: &[u8]) -> Result<Self, ReplyError> {
        if Replies::new().next(whole)? != Some(whole.len()) {
            return Err(ReplyError::Line);
        }
        value(&mut { whole })
    }
}

/// Builds the first value of `rest` and removes it. The caller has checked that it is whole and not too deep.
fn value(rest: &mut &[u8]) -> Result<Reply, ReplyError> {
    let end = rest.iter().position(|byte| *byte == b'\n').ok_or(ReplyError::Line)?;
    let line = content(&rest[..end]);
    *rest = &rest[end + 1..];
    let (kind, text) = line.split_first().ok_or(ReplyError::Line)?;
    Ok(match (kind, head(line)?) {
        (b'*', Head::Whole) => Reply::NullArray,
        (b'$' | b'_' | b'~' | b'>' | b'=' | b'!', Head::Whole) => Reply::Null,
        (b'+', _) => Reply::Simple(text.to_vec()),
        (b'-', _) => Reply::Error(text.to_vec()),
        (b':', _) => Reply::Integer(number::integer(text).ok_or(ReplyError::Number)?),
        (b',', _) => Reply::Double(text.to_vec()),
        (b'(', _) => Reply::Big(text.to_vec()),
        (b'#', _) => Reply::Boolean(text == b"t"),
        (kind, Head::Body(length)) => {
            let body = rest.get(..length).ok_or(ReplyError::Line)?.to_vec();
            *rest = rest.get(length + 2..).ok_or(ReplyError::Line)?;
            match kind {
                b'!' => Reply::Error(body),
                b'=' => Reply::Verbatim(body),
                _ => Reply::Bulk(body),
            }
        }
        (b'%', Head::Elements(count)) => {
            let pairs = (0..count / 2).map(|_| Ok((value(rest)?, value(rest)?)));
            Reply::Map(pairs.collect::<Result<_, _>>()?)
        }
        (kind, Head::Elements(count)) => {
            let elements = (0..count).map(|_| value(rest)).collect::<Result<_, _>>()?;
            match kind {
                b'~' => Reply::Set(elements),
                b'>' => Reply::Push(elements),
                _ => Reply::Array(elements),
            }
        }
        (kind, Head::Whole) => return Err(ReplyError::Kind(*kind)),
    })
}
