//! Hexadecimal numbers such as `0x1.8p3`, which C reads as doubles, so Redis accepts them as scores.
//!
//! The reader collects the digits into 64 bits and a mark for further ones. It rounds once, to even, at the width that the
//! exponent leaves. Not here: the sign and the `0x`, which the caller has read.

use super::number::Read;

/// Beyond this the exponent alone decides the result.
const EXPONENT_MAX: i64 = 1 << 40;
/// The bits of a double's integer significand, and the exponent of its smallest unit.
const PRECISION: i64 = 53;
const EXPONENT_MIN: i64 = -1074;
/// The exponent of the largest power of two.
const TOP: i64 = 1023;

/// Reads the text after `0x`.
pub(super) fn read(text: &[u8], negative: bool) -> Option<Read> {
    let (mut bits, mut exact, mut exponent) = (0u64, true, 0i64);
    let (mut digits, mut point) = (0usize, false);
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        let digit = match char::from(*byte).to_digit(16) {
            Some(digit) => digit,
            None if *byte == b'.' && !point => {
                point = true;
                at += 1;
                continue;
            }
            None => break,
        };
        digits += 1;
        if bits >> 60 == 0 {
            bits = bits << 4 | u64::from(digit);
            exponent -= if point { 4 } else { 0 };
        } else {
            exact &= digit == 0;
            exponent += if point { 0 } else { 4 };
        }
        at += 1;
    }
    if digits == 0 {
        return None;
    }
    exponent += match &text[at..] {
        [] => 0,
        [b'p' | b'P', power @ ..] => self::exponent(power)?,
        _ => return None,
    };
    let value = round(bits, exact, exponent);
    Some(Read::new(if negative { -value } else { value }, bits == 0))
}

/// The power of two, limited to where it no longer matters.
fn exponent(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let fold = |value: i64, digit: &u8| (value * 10 + i64::from(digit - b'0')).min(EXPONENT_MAX);
    let value = digits.iter().fold(0, fold);
    Some(if negative { -value } else { value })
}

/// The double nearest to `bits` (and a little more if it is not `exact`) times two to the `exponent`.
fn round(bits: u64, exact: bool, exponent: i64) -> f64 {
    if bits == 0 {
        return 0.0;
    }
    let top = exponent + i64::from(63 - bits.leading_zeros());
    if top > TOP {
        return f64::INFINITY;
    }
    // The unit of the last position: that of 53 bits, or the smallest one.
    let unit = (top - PRECISION + 1).max(EXPONENT_MIN);
    // From here on all shifts are small: `unit` is within 63 of `exponent`, or everything is cut off.
    let significand = match unit - exponent {
        grow @ ..=0 => bits << -grow,
        cut @ 1..=64 => {
            let (wide, half) = (u128::from(bits), 1u128 << (cut - 1));
            let (kept, lost) = (wide >> cut, wide & ((half << 1) - 1));
            let up = lost > half || (lost == half && (!exact || kept & 1 == 1));
            (kept as u64) + u64::from(up)
        }
        _ => 0,
    };
    // Added, not joined: the leading bit of the significand raises the exponent by one, and a carry by one more.
    f64::from_bits(((unit - EXPONENT_MIN).cast_unsigned() << (PRECISION - 1)) + significand)
}
