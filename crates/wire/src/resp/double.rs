//! The text of a score: the digits of `grisu.rs` in the layout of Redis 7.2 and Valkey.
//!
//! Integers up to 2^62 are printed digit by digit. Other numbers get the fewest digits with a point, or with an exponent if
//! that would need many zeros. Deliberately different: minus zero is `0`.
//!
//! Not here: reading (`number.rs`), and the framing of a reply.

use super::grisu;

/// The largest magnitude that is printed as an integer.
const INTEGER_MAX: f64 = (1u64 << 62) as f64;
/// The most zeros that are written after the digits, and the most positions after the point.
const ZEROS_MAX: i32 = 7;
const PLACES_MAX: i32 = 6;
/// A first digit below this power of ten never gets an exponent.
const PLAIN_BELOW: i32 = 4;

/// Appends the text of a score.
pub fn append(value: f64, out: &mut Vec<u8>) {
    if value.is_nan() {
        return out.extend_from_slice(b"nan");
    }
    let integer = value as i64;
    if value.abs() <= INTEGER_MAX && integer as f64 == value {
        return out.extend_from_slice(itoa::Buffer::new().format(integer).as_bytes());
    }
    if value < 0.0 {
        out.push(b'-');
    }
    if value.is_infinite() {
        return out.extend_from_slice(b"inf");
    }
    let (digits, length, ten) = grisu::digits(value.abs());
    lay_out(&digits[..length], ten, out);
}

/// Writes digits, of which the last has this power of ten.
fn lay_out(digits: &[u8], ten: i32, out: &mut Vec<u8>) {
    let length = digits.len() as i32;
    let first = ten + length - 1;
    if ten >= 0 && first.abs() < length + ZEROS_MAX {
        out.extend_from_slice(digits);
        out.extend((0..ten).map(|_| b'0'));
    } else if ten < 0 && (ten >= -PLACES_MAX || first.abs() < PLAIN_BELOW) {
        let before = length + ten;
        if before <= 0 {
            out.extend_from_slice(b"0.");
            out.extend((before..0).map(|_| b'0'));
            out.extend_from_slice(digits);
        } else {
            let (before, behind) = digits.split_at(before.cast_unsigned() as usize);
            out.extend_from_slice(before);
            out.push(b'.');
            out.extend_from_slice(behind);
        }
    } else {
        out.push(digits[0]);
        if length > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        out.extend_from_slice(if first < 0 { b"e-" } else { b"e+" });
        out.extend_from_slice(itoa::Buffer::new().format(first.abs()).as_bytes());
    }
}
