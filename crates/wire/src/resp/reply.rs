//! Replies as a client reads them, in both protocols: where one ends, and what it says.
//!
//! The two are apart: [`Replies`] finds the end of a reply without building anything, remembers where it stopped and is
//! all that a load generator needs; [`Reply::parse`] builds values out of a whole one, for tests. Depth is bounded,
//! because a reply is input as well.
//!
//! Not here: attributes and streamed strings, which no server sends unasked; they are refused.

use super::number;
use std::fmt;

/// So many aggregates may lie in one another; `COMMAND DOCS` has six.
const DEPTH_MAX: usize = 16;
/// Longer lines are no status, number or length.
const LINE_MAX: usize = 64 << 10;
/// Redis' own bound of a string, and more elements than any reply has.
const LENGTH_MAX: i64 = 512 << 20;

/// Why what came is no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyError {
    /// No reply starts with this byte.
    Kind(u8),
    /// A length or a number that is none, or too large.
    Number,
    /// A line without an end in sight.
    Line,
    /// Too many aggregates in one another.
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

/// Finds where replies end.
#[derive(Debug, Default)]
pub struct Replies {
    at: usize,
    scanned: usize,
    /// Elements that are still to come, of the aggregate in each level.
    left: [u32; DEPTH_MAX],
    depth: usize,
    /// Bytes of a string that are still to be passed, its end among them.
    body: usize,
}

/// What the first line of a reply says.
enum Head {
    Whole,
    Body(usize),
    Elements(u32),
}

impl Replies {
    /// One at the start of a reply.
    pub fn new() -> Self {
        Self::default()
    }

    /// The length of the next whole reply, which starts with the first byte of `input`; `None` where more is to come,
    /// then call again with the same bytes and more behind them.
    ///
    /// # Errors
    ///
    /// What came is no reply; nothing after it can be understood.
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

    /// One element is known to its end; so may be the aggregates that it was the last of.
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

/// A line without the rest of its end.
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
        // Minus one is nothing, in the old protocol.
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
    /// Nothing.
    Null,
    /// Nothing, where an array could be; only the old protocol tells them apart.
    NullArray,
    /// An array.
    Array(Vec<Reply>),
    /// A map, in the order of the server.
    Map(Vec<(Reply, Reply)>),
    /// A set, in the order of the server.
    Set(Vec<Reply>),
    /// A message that nobody asked for.
    Push(Vec<Reply>),
    /// A double, as its text: a comparison should see every digit.
    Double(Vec<u8>),
    /// An integer of any length, as its text.
    Big(Vec<u8>),
    /// A boolean.
    Boolean(bool),
    /// Text for people, its format (`txt:`) in front.
    Verbatim(Vec<u8>),
}

impl Reply {
    /// Builds the value of a whole reply, such as [`Replies::next`] has found.
    ///
    /// # Errors
    ///
    /// If it is none, or not whole, or more than one.
    pub fn parse(whole: &[u8]) -> Result<Self, ReplyError> {
        if Replies::new().next(whole)? != Some(whole.len()) {
            return Err(ReplyError::Line);
        }
        value(&mut { whole })
    }
}

/// Builds the first value of `rest`, which is known to be whole and not too deep, and takes it off.
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
