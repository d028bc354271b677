//! Invariants for any bytes of a client: the same commands as a plain reading, however they are cut.
//!
//! The fuzz target and the property tests run this one body, so that it also runs without a fuzzer. It decodes whole, cut,
//! and by a model that reads everything again each time. Half of all inputs are sent as they are. The others say which
//! requests to make, some of them broken, so that chance comes further than the first byte.
//!
//! Not here: which texts are numbers or quoted, beyond the needs of the model; tables have that.

use tally_wire::resp::{DecodeLimits, Decoder, ProtocolError};

/// A command's arguments.
type Command = Vec<Vec<u8>>;
/// The commands of a stream, and how it ends: bytes that are left, or an error.
type Decoded = (Vec<Command>, Result<usize, ProtocolError>);

/// Small bounds, so that a short stream reaches each of them.
const SMALL: DecodeLimits = DecodeLimits { args_max: 6, bulk_max: 40, inline_max: 48 };
/// The state of a decoder between commands, and the most that it may take for each byte that has arrived. An argument of
/// two bytes is a range of sixteen, in a list that doubles.
const HELD_IDLE: usize = 24 << 10;
const HELD_A_BYTE: usize = 20;
/// Streams up to here are also sent byte by byte.
const SHORT: usize = 300;

/// Checks everything on bytes that say all of it: how they are cut, and whether they are a stream or make one.
pub(crate) fn run(bytes: &[u8]) {
    let (mut seed, mut cuts) = (bytes, Vec::new());
    let kind = take(&mut seed, 1).first().copied().unwrap_or(0);
    for _ in 0..kind / 2 % 8 {
        cuts.push(take(&mut seed, 2).iter().fold(0, |cut, byte| cut << 8 | usize::from(*byte)));
    }
    if kind % 2 == 0 { check(seed, &cuts) } else { check(&stream(seed), &cuts) }
}

/// Checks everything on these bytes, cut before these places.
fn check(input: &[u8], cuts: &[usize]) {
    for bounds in [DecodeLimits::FULL, DecodeLimits::BEFORE_AUTH, SMALL] {
        let whole = decode(input, Vec::new(), &bounds);
        assert_eq!(whole, model(input, &bounds));
        assert_eq!(whole, decode(input, cuts.iter().map(|cut| cut % (input.len() + 1)).collect(), &bounds));
        if input.len() <= SHORT {
            assert_eq!(whole, decode(input, (0..input.len()).collect(), &bounds));
        }
    }
}

/// Decodes as a connection does: the rest of one read stays in front of the next.
fn decode(input: &[u8], mut ends: Vec<usize>, bounds: &DecodeLimits) -> Decoded {
    let mut decoder = Decoder::new();
    let mut commands = Vec::new();
    let mut start = 0;
    ends.sort_unstable();
    ends.push(input.len());
    // A read may end where a command of the read before ends.
    for end in ends {
        let mut part = &input[start..end];
        loop {
            let found = decoder.next(part, bounds);
            assert!(decoder.held() <= HELD_IDLE + HELD_A_BYTE * part.len());
            match found {
                Err(error) => return (commands, Err(error)),
                Ok(None) => break,
                Ok(Some(taken)) => {
                    commands.push(decoder.args(part).map(<[u8]>::to_vec).collect());
                    start += taken;
                    part = &part[taken..];
                }
            }
        }
    }
    (commands, Ok(input.len() - start))
}

fn model(input: &[u8], bounds: &DecodeLimits) -> Decoded {
    let (mut rest, mut commands) = (input, Vec::new());
    loop {
        let mut reading = rest;
        let command = match reading.first() {
            None => return (commands, Ok(rest.len())),
            Some(b'*') => array(&mut reading, bounds),
            Some(0x16) => Err(ProtocolError::Foreign),
            Some(_) => inline(&mut reading, bounds),
        };
        match command {
            Err(error) => return (commands, Err(error)),
            Ok(None) => return (commands, Ok(rest.len())),
            Ok(Some(command)) => commands.push(command),
        }
        rest = reading;
    }
}

/// Takes the bytes before this one and `skip` bytes from there on.
fn until<'a>(
    rest: &mut &'a [u8],
    byte: u8,
    skip: usize,
    max: usize,
    too_long: ProtocolError,
) -> Result<Option<&'a [u8]>, ProtocolError> {
    let line: Vec<&[u8]> = rest.splitn(2, |other| *other == byte).collect();
    if line[0].len() > max {
        return Err(too_long);
    }
    if rest.len() < line[0].len() + skip {
        return Ok(None);
    }
    *rest = &rest[line[0].len() + skip..];
    Ok(Some(line[0]))
}

fn array(rest: &mut &[u8], bounds: &DecodeLimits) -> Result<Option<Command>, ProtocolError> {
    let max = bounds.inline_max;
    let Some(line) = until(rest, b'\r', 2, max, ProtocolError::TooBigCount)? else { return Ok(None) };
    let count = number(&line[1..]).ok_or(ProtocolError::InvalidMultibulkLength)?;
    match usize::try_from(count) {
        Ok(count) if count > 1_048_576 => return Err(ProtocolError::InvalidMultibulkLength),
        Ok(count) if count > bounds.args_max => return Err(ProtocolError::UnauthenticatedMultibulkLength),
        Ok(_) | Err(_) => {}
    }
    let mut command = Vec::new();
    for _ in 0..count {
        let Some(line) = until(rest, b'\r', 2, max, ProtocolError::TooBigBulkCount)? else { return Ok(None) };
        let first = *line.first().unwrap_or(&b'\r');
        if first != b'$' {
            return Err(ProtocolError::ExpectedBulk(first));
        }
        let length = number(&line[1..]).and_then(|length| usize::try_from(length).ok());
        let length = length.filter(|length| *length <= 512 << 10).ok_or(ProtocolError::InvalidBulkLength)?;
        if length > bounds.bulk_max {
            return Err(ProtocolError::UnauthenticatedBulkLength);
        }
        let Some(bulk) = rest.get(..length + 2) else { return Ok(None) };
        command.push(bulk[..length].to_vec());
        *rest = &rest[length + 2..];
    }
    Ok(Some(command))
}

/// An integer is a number that prints as its text.
fn number(text: &[u8]) -> Option<i64> {
    let value: i64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (value.to_string().as_bytes() == text).then_some(value)
}

fn inline(rest: &mut &[u8], bounds: &DecodeLimits) -> Result<Option<Command>, ProtocolError> {
    let Some(line) = until(rest, b'\n', 1, bounds.inline_max, ProtocolError::TooBigInline)? else {
        return Ok(None);
    };
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let command = words(line).ok_or(ProtocolError::UnbalancedQuotes)?;
    let methods = "post put patch delete head options connect trace host:";
    let is_method =
        |name: &Vec<u8>| methods.split(' ').any(|method| name.eq_ignore_ascii_case(method.as_bytes()));
    if command.first().is_some_and(is_method)
        || command.get(2).is_some_and(|third| third.starts_with(b"HTTP/"))
    {
        return Err(ProtocolError::Foreign);
    }
    if command.len() > bounds.args_max {
        return Err(ProtocolError::UnauthenticatedMultibulkLength);
    }
    Ok(Some(command))
}

#[derive(Clone, Copy, PartialEq)]
enum In {
    Blanks,
    Word,
    Closed,
    Quotes(u8),
}

/// One state a byte, after Redis' description of its inline commands.
fn words(line: &[u8]) -> Option<Command> {
    let (mut words, mut word, mut state, mut at) = (Vec::new(), Vec::new(), In::Blanks, 0);
    while at < line.len() {
        let rest = &line[at..];
        let hex = rest.get(2..4).and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        let hex = hex.filter(|_| rest[2] != b'+');
        at += 1;
        match (state, rest[0]) {
            (In::Blanks | In::Closed, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c) => state = In::Blanks,
            (In::Closed, _) => return None,
            (In::Word, b' ' | b'\t' | b'\n' | b'\r') => {
                words.push(std::mem::take(&mut word));
                state = In::Blanks;
            }
            (In::Blanks | In::Word, quote @ (b'"' | b'\'')) => state = In::Quotes(quote),
            (In::Quotes(open), quote) if open == quote => {
                words.push(std::mem::take(&mut word));
                state = In::Closed;
            }
            (In::Quotes(b'"'), b'\\') if rest.get(1) == Some(&b'x') && hex.is_some() => {
                word.extend(hex);
                at += 3;
            }
            (In::Quotes(b'"'), b'\\') if rest.len() > 1 => {
                let named = b"nrtba".iter().position(|name| *name == rest[1]);
                word.push(named.map_or(rest[1], |named| b"\n\r\t\x08\x07"[named]));
                at += 1;
            }
            (In::Quotes(b'\''), b'\\') if rest.get(1) == Some(&b'\'') => {
                word.push(b'\'');
                at += 1;
            }
            (_, byte) => {
                word.push(byte);
                state = if state == In::Blanks { In::Word } else { state };
            }
        }
    }
    match state {
        In::Quotes(_) => return None,
        In::Word => words.push(word),
        In::Blanks | In::Closed => {}
    }
    Some(words)
}

/// Makes a stream out of any bytes: the first of each round chooses the kind, those behind it the content.
fn stream(mut seed: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some((kind, behind)) = seed.split_first() {
        seed = behind;
        match kind % 16 {
            0..=8 => {
                let count = usize::from(take(&mut seed, 1).first().copied().unwrap_or(1) % 8);
                out.extend(format!("*{count}\r\n").bytes());
                (0..count).for_each(|_| bulk(&mut seed, &mut out));
            }
            9..=11 => {
                // Letters with a meaning between words, and few others.
                let letters = b" \t\x0b\"'\\xn41ab\0\x80";
                let word = take(&mut seed, 24).iter().map(|byte| letters[usize::from(*byte) % letters.len()]);
                out.extend(word);
                out.extend_from_slice(if kind % 2 == 0 { b"\r\n" } else { b"\n" });
            }
            12 => {
                let heads =
                    ["*-1\r\n", "*0\r\n", "\r\n", "*01\r\n", "*7\r\n", "*1048577\r\n", "*1048576\r\n"];
                out.extend(heads[usize::from(*kind) / 16 % heads.len()].bytes());
            }
            13 => {
                let heads =
                    ["*1\r\n$-1\r\n", "*1\r\n$524289\r\n", "*1\r\n$16385\r\n", "*1\r\n:1\r\n", "*1\r\n\r\n"];
                out.extend(heads[usize::from(*kind) / 16 % heads.len()].bytes());
            }
            14 => out.extend_from_slice(take(&mut seed, 12)),
            _ => out.extend(
                ["POST / HTTP/1.1\r\n", "hOST: x\r\n", "\"post\"\n"][usize::from(*kind) / 16 % 3].bytes(),
            ),
        }
    }
    out
}

fn bulk(seed: &mut &[u8], out: &mut Vec<u8>) {
    let length = usize::from(take(seed, 1).first().copied().unwrap_or(0) % 48);
    let bytes = take(seed, length);
    out.extend(format!("${}\r\n", bytes.len()).bytes());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

fn take<'a>(seed: &mut &'a [u8], length: usize) -> &'a [u8] {
    let (taken, behind) = seed.split_at(length.min(seed.len()));
    *seed = behind;
    taken
}
