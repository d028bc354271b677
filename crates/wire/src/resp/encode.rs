//! Encodes replies in the protocol of the connection, appended to a buffer; and requests, for clients.
//!
//! A command defines the content of its reply; only this file decides whether that is a map or a flat array. Headers come
//! before their elements, so a long reply can be sent while it is produced.
//!
//! Not here: flushing and its bound, and the replies of the commands.

use super::double;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// The bytes that an encoder takes from a [`Quota`] at a time.
const STEP: usize = 64 << 10;

/// Appends a request, as clients send it.
pub fn command<A: AsRef<[u8]>>(args: &[A], out: &mut Vec<u8>) {
    let mut encoder = Encoder::new(out, Protocol::Resp2);
    encoder.array(args.len());
    args.iter().for_each(|arg| encoder.bulk(arg));
}

/// The protocol of a connection; `HELLO` changes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// The protocol of every new connection.
    #[default]
    Resp2,
    /// With maps, sets, doubles, booleans and one null.
    Resp3,
}

/// The bytes that several replies may take together, on any threads.
///
/// The first reply that does not fit closes the quota, and no later reply begins. Otherwise each of many commands would do
/// the work of a whole reply and return an error.
#[derive(Debug)]
pub struct Quota {
    left: AtomicUsize,
    closed: AtomicBool,
}

impl Quota {
    /// A quota of this many bytes.
    pub const fn new(bytes: usize) -> Self {
        Self { left: AtomicUsize::new(bytes), closed: AtomicBool::new(false) }
    }

    /// Bytes that are left.
    pub fn left(&self) -> usize {
        self.left.load(Relaxed)
    }

    /// Whether a reply must not begin: one did not fit, or only one element still would.
    pub fn is_used_up(&self) -> bool {
        self.closed.load(Relaxed) || self.left() < STEP
    }

    fn take(&self, bytes: usize) -> bool {
        self.left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(bytes)).is_ok()
    }

    /// Takes the remaining bytes, up to this many.
    pub fn take_up_to(&self, bytes: usize) {
        if bytes > 0 {
            let _always = self.left.fetch_update(Relaxed, Relaxed, |left| Some(left.saturating_sub(bytes)));
        }
    }

    fn give_back(&self, bytes: usize) {
        if bytes > 0 {
            self.left.fetch_add(bytes, Relaxed);
        }
    }
}

/// Appends replies to a buffer.
#[derive(Debug)]
pub struct Encoder<'a> {
    out: &'a mut Vec<u8>,
    protocol: Protocol,
    quota: Option<&'a Quota>,
    /// The buffer may grow up to here before the encoder takes more of the quota.
    end: usize,
    taken: usize,
    /// See [`work`](Self::work).
    worked: usize,
    full: bool,
}

impl<'a> Encoder<'a> {
    /// An encoder that appends in this protocol.
    pub fn new(out: &'a mut Vec<u8>, protocol: Protocol) -> Self {
        Self { out, protocol, quota: None, end: usize::MAX, taken: 0, worked: 0, full: false }
    }

    /// An encoder whose reply takes its bytes from this quota. Call [`finish`](Self::finish) at its end.
    pub fn within(out: &'a mut Vec<u8>, protocol: Protocol, quota: &'a Quota) -> Self {
        let end = out.len();
        Self { out, protocol, quota: Some(quota), end, taken: 0, worked: 0, full: false }
    }

    /// Whether the whole reply is in the buffer. Beyond its quota an encoder writes nothing more, so memory does not grow
    /// while a command that cannot be answered continues. The quota gets back the bytes that the reply does not take, or all
    /// of them if the caller does not keep the reply.
    pub fn finish(self, kept: bool) -> bool {
        if let Some(quota) = self.quota {
            if kept && !self.full {
                quota.give_back(self.end.saturating_sub(self.out.len()));
                quota.take_up_to(self.out.len().saturating_sub(self.end));
            } else {
                quota.give_back(self.taken);
            }
            quota.take_up_to(self.worked);
            if self.full {
                quota.closed.store(true, Relaxed);
            }
        }
        !self.full
    }

    /// Notes work that the reply does not show, as bytes of a reply that would have taken as long. It never makes this reply
    /// too large, but later replies have less of the quota.
    pub fn work(&mut self, bytes: usize) {
        self.worked = self.worked.saturating_add(bytes);
    }

    /// Whether one more element may be written. One element may exceed the end, because it has a bound of its own.
    #[inline]
    fn fits(&mut self) -> bool {
        self.out.len() <= self.end || self.grow()
    }

    #[cold]
    fn grow(&mut self) -> bool {
        let step = STEP.max(self.out.len() - self.end);
        if self.full || !self.quota.is_some_and(|quota| quota.take(step)) {
            self.full = true;
            return false;
        }
        self.taken += step;
        self.end += step;
        true
    }

    /// The protocol of the reply.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// A status, such as `OK`. The text must have one line.
    pub fn simple(&mut self, text: &str) {
        debug_assert!(!text.contains(['\r', '\n']));
        self.out.push(b'+');
        self.out.extend_from_slice(text.as_bytes());
        self.end();
    }

    /// An error: its code, a blank, and a text that may repeat what the client sent. As in Redis, blanks replace line
    /// ends.
    pub fn error(&mut self, text: impl AsRef<[u8]>) {
        self.out.push(b'-');
        let start = self.out.len();
        self.out.extend_from_slice(text.as_ref());
        for byte in &mut self.out[start..] {
            if matches!(byte, b'\r' | b'\n') {
                *byte = b' ';
            }
        }
        self.end();
    }

    /// An integer.
    pub fn integer(&mut self, value: i64) {
        self.header(b':', value);
    }

    /// A reply that was encoded before, in the same protocol.
    pub fn raw(&mut self, reply: &[u8]) {
        if self.fits() {
            self.out.extend_from_slice(reply);
        }
    }

    /// A string of any bytes.
    pub fn bulk(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        if !self.fits() {
            return;
        }
        self.length(b'$', bytes.len());
        self.out.extend_from_slice(bytes);
        self.end();
    }

    /// Null in place of a string or a number.
    pub fn null(&mut self) {
        if !self.fits() {
            return;
        }
        self.out.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"$-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// Null in place of an array.
    pub fn null_array(&mut self) {
        self.out.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"*-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// The start of an array of this many replies.
    pub fn array(&mut self, length: usize) {
        self.length(b'*', length);
    }

    /// The start of a map of this many pairs; in RESP2 an array of keys and values in turn.
    pub fn map(&mut self, pairs: usize) {
        match self.protocol {
            Protocol::Resp2 => self.length(b'*', pairs * 2),
            Protocol::Resp3 => self.length(b'%', pairs),
        }
    }

    /// The start of a set of this many replies.
    pub fn set(&mut self, length: usize) {
        match self.protocol {
            Protocol::Resp2 => self.length(b'*', length),
            Protocol::Resp3 => self.length(b'~', length),
        }
    }

    /// A double.
    pub fn double(&mut self, value: f64) {
        self.number(|out| double::append(value, out));
    }

    /// An exact integer in place of a double, with every digit.
    pub fn exact(&mut self, value: i64) {
        self.number(|out| out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes()));
    }

    /// A boolean; in RESP2 one or zero.
    pub fn boolean(&mut self, value: bool) {
        self.out.extend_from_slice(match (self.protocol, value) {
            (Protocol::Resp2, true) => b":1\r\n",
            (Protocol::Resp2, false) => b":0\r\n",
            (Protocol::Resp3, true) => b"#t\r\n",
            (Protocol::Resp3, false) => b"#f\r\n",
        });
    }

    /// A text for people, such as that of `INFO`.
    pub fn verbatim(&mut self, text: &str) {
        match self.protocol {
            Protocol::Resp2 => self.bulk(text),
            Protocol::Resp3 => {
                self.length(b'=', text.len() + 4);
                self.out.extend_from_slice(b"txt:");
                self.out.extend_from_slice(text.as_bytes());
                self.end();
            }
        }
    }

    /// The text of a number: a double, or in RESP2 a bulk, whose length is not known before.
    #[inline]
    fn number(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if !self.fits() {
            return;
        }
        if self.protocol == Protocol::Resp3 {
            self.out.push(b',');
            write(self.out);
        } else {
            // No number has more than 99 characters: write it after a length that is filled in.
            let start = self.out.len();
            self.out.extend_from_slice(b"$00\r\n");
            write(self.out);
            let length = (self.out.len() - start - 5) as u8;
            if length < 10 {
                self.out[start + 1] = b'0' + length;
                self.out.remove(start + 2);
            } else {
                self.out[start + 1] = b'0' + length / 10;
                self.out[start + 2] = b'0' + length % 10;
            }
        }
        self.end();
    }

    #[inline]
    fn length(&mut self, kind: u8, length: usize) {
        self.header(kind, length);
    }

    #[inline]
    fn header(&mut self, kind: u8, number: impl itoa::Integer) {
        if !self.fits() {
            return;
        }
        self.out.push(kind);
        self.out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        self.end();
    }

    #[inline]
    fn end(&mut self) {
        self.out.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes a reply of this many members within the remaining quota.
    fn list(out: &mut Vec<u8>, quota: &Quota, members: usize) -> bool {
        let mut to = Encoder::within(out, Protocol::Resp2, quota);
        to.array(members);
        (0..members).for_each(|_| to.bulk([b'x'; 1_000]));
        to.finish(true)
    }

    #[test]
    fn replies_share_a_quota_and_end_with_it() {
        let (quota, mut out) = (Quota::new(4 * STEP), Vec::new());
        assert!(list(&mut out, &quota, 3));
        assert_eq!(quota.left(), 4 * STEP - out.len(), "what a reply does not take is given back");
        assert!(list(&mut out, &quota, 100));
        let whole = out.len();
        assert!(!quota.is_used_up());
        assert!(!list(&mut out, &quota, 1_000_000));
        assert!(out.len() < 6 * STEP, "a reply beyond the quota takes no memory: {}", out.len());
        out.truncate(whole);
        assert_eq!(quota.left(), 4 * STEP - out.len(), "a reply that is not sent takes no quota");
        assert!(quota.is_used_up(), "or each further reply would do the work of a whole one");
        while list(&mut out, &quota, 50) {}
        assert!(quota.is_used_up() && out.len() > 3 * STEP && out.len() < 6 * STEP);
    }

    #[test]
    fn a_reply_that_is_not_kept_takes_no_quota() {
        let (quota, mut out) = (Quota::new(2 * STEP), Vec::new());
        let mut to = Encoder::within(&mut out, Protocol::Resp3, &quota);
        to.array(2);
        to.bulk("x");
        assert!(to.finish(false));
        assert_eq!(quota.left(), 2 * STEP);
    }

    #[test]
    fn work_takes_quota_from_later_replies_only() {
        let (quota, mut out) = (Quota::new(2 * STEP), Vec::new());
        for (work, left) in [(STEP / 2, true), (100 * STEP, false)] {
            let mut to = Encoder::within(&mut out, Protocol::Resp3, &quota);
            to.work(work);
            to.integer(1);
            assert!(to.finish(true), "its own reply is whole");
            assert_eq!(!quota.is_used_up(), left);
        }
        assert_eq!(quota.left(), 0);
    }
}
