//! Numbers in requests, accepted and refused as in Redis: integers, scores, and the bounds of a range.
//!
//! The three differ, and clients rely on each. An integer has only one form. A score may be hexadecimal, but not too large
//! or too small. A bound may be hexadecimal, too large, too small, or empty.
//!
//! Not here: which board accepts which number.

use super::hex;

/// Longer texts are not 64-bit integers.
const INTEGER_BYTES_MAX: usize = 20;

/// The integer of this text: no sign except a minus, no blanks, no leading zeros.
#[inline]
pub fn integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'0'] => return Some(0),
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if !matches!(digits, [b'1'..=b'9', ..]) || digits.len() >= INTEGER_BYTES_MAX {
        return None;
    }
    let mut value: u64 = 0;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        // Nineteen digits cannot overflow 64 bits.
        value = value * 10 + u64::from(digit);
    }
    if negative { 0i64.checked_sub_unsigned(value) } else { i64::try_from(value).ok() }
}

/// The score of this text. `None` if it is not a number, or too large or too small for a double.
///
/// Minus zero is read as zero, as it is stored.
pub fn score(text: &[u8]) -> Option<f64> {
    match read(text)? {
        Read::Near(value) => Some(value),
        Read::TooLarge(_) | Read::TooSmall => None,
    }
}

/// One end of a range of scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// The end of the range.
    pub score: f64,
    /// Whether this score itself is excluded.
    pub exclusive: bool,
}

/// The bound of this text: a score, with `(` before it to exclude it.
///
/// As in Redis, blanks may precede it, an empty text is zero, a NUL ends the text, and too large a number is infinite.
pub fn bound(text: &[u8]) -> Option<Bound> {
    let (exclusive, text) = match text {
        [b'(', text @ ..] => (true, text),
        text => (false, text),
    };
    let text = text.split(|byte| *byte == 0).next().unwrap_or(text);
    if text.is_empty() {
        return Some(Bound { score: 0.0, exclusive });
    }
    let blanks = text.iter().take_while(|byte| matches!(byte, b' ' | b'\t'..=b'\r')).count();
    let score = match read(&text[blanks..])? {
        Read::Near(value) | Read::TooLarge(value) => value,
        Read::TooSmall => 0.0,
    };
    Some(Bound { score, exclusive })
}

/// The result of reading a number.
pub(super) enum Read {
    /// The nearest double.
    Near(f64),
    /// This infinity, although the text is a finite number.
    TooLarge(f64),
    /// Zero, although the number is not zero.
    TooSmall,
}

impl Read {
    /// Classifies the nearest double of a finite number.
    pub(super) fn new(value: f64, is_zero: bool) -> Self {
        if value.is_infinite() {
            Self::TooLarge(value)
        } else if value != 0.0 {
            Self::Near(value)
        } else if is_zero {
            Self::Near(0.0)
        } else {
            Self::TooSmall
        }
    }
}

fn read(text: &[u8]) -> Option<Read> {
    if let Some(value) = short_integer(text) {
        return Some(Read::Near(value));
    }
    let (negative, magnitude) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    match magnitude.first()? {
        b'0' if matches!(magnitude.get(1), Some(b'x' | b'X')) => hex::read(&magnitude[2..], negative),
        b'0'..=b'9' | b'.' => {
            // Of the forms of C, Rust reads exactly those that start like this.
            let value: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
            let mantissa = magnitude.split(|byte| matches!(byte, b'e' | b'E')).next().unwrap_or(magnitude);
            Some(Read::new(value, !mantissa.iter().any(|byte| matches!(byte, b'1'..=b'9'))))
        }
        _ if magnitude.eq_ignore_ascii_case(b"inf") || magnitude.eq_ignore_ascii_case(b"infinity") => {
            Some(Read::Near(if negative { f64::NEG_INFINITY } else { f64::INFINITY }))
        }
        _ => None,
    }
}

/// Most scores: an integer with few enough digits for a double.
#[inline]
fn short_integer(text: &[u8]) -> Option<f64> {
    let value = if text.len() <= 15 { integer(text) } else { None };
    value.map(|value| value as f64)
}
