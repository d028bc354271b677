//! Inline commands: one line, split at blanks, with the quotes of Redis.
//!
//! In double quotes `\n \r \t \b \a \xHH` are bytes, and a backslash makes any other byte literal. In single quotes only
//! `\'` does. A closing quote must be followed by a blank or the end. A NUL, at which Redis stops reading, is an ordinary
//! byte here.
//!
//! Not here: where a line ends, and its limit.

use std::ops::Range;

/// Splits a line into `args`, ranges of `out`; `false` if a quote is not closed correctly.
pub(super) fn split(line: &[u8], out: &mut Vec<u8>, args: &mut Vec<Range<usize>>) -> bool {
    let mut rest = line;
    loop {
        let blanks = rest.iter().take_while(|byte| is_blank(**byte)).count();
        rest = &rest[blanks..];
        if rest.is_empty() {
            return true;
        }
        let start = out.len();
        let Some(length) = argument(rest, out) else { return false };
        args.push(start..out.len());
        rest = &rest[length..];
    }
}

/// Reads one argument. Returns the number of bytes that it takes.
fn argument(text: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        at += 1;
        match byte {
            // As in Redis, fewer bytes end a word than may separate words.
            b' ' | b'\n' | b'\r' | b'\t' => return Some(at - 1),
            b'"' => return Some(at + double_quoted(&text[at..], out)?),
            b'\'' => return Some(at + single_quoted(&text[at..], out)?),
            byte => out.push(*byte),
        }
    }
    Some(at)
}

fn double_quoted(text: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let mut at = 0;
    loop {
        match text.get(at..)? {
            [b'\\', b'x', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                out.push(digit(*high) * 16 + digit(*low));
                at += 4;
            }
            [b'\\', escaped, ..] => {
                out.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 0x08,
                    b'a' => 0x07,
                    plain => *plain,
                });
                at += 2;
            }
            [b'"', rest @ ..] => return closed(rest).then_some(at + 1),
            [byte, ..] => {
                out.push(*byte);
                at += 1;
            }
            [] => return None,
        }
    }
}

fn single_quoted(text: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let mut at = 0;
    loop {
        match text.get(at..)? {
            [b'\\', b'\'', ..] => {
                out.push(b'\'');
                at += 2;
            }
            [b'\'', rest @ ..] => return closed(rest).then_some(at + 1),
            [byte, ..] => {
                out.push(*byte);
                at += 1;
            }
            [] => return None,
        }
    }
}

/// Whether an argument may end before these bytes.
fn closed(rest: &[u8]) -> bool {
    rest.first().is_none_or(|byte| is_blank(*byte))
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

fn digit(byte: u8) -> u8 {
    match byte {
        b'0'..=b'9' => byte - b'0',
        byte => (byte | 0x20) - b'a' + 10,
    }
}
