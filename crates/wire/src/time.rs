//! Instants as text: RFC 3339, written in UTC with microseconds, read with any offset.

use jiff::SignedDuration;
use jiff::civil::{Date, DateTime};
use jiff::tz::Offset;
use std::time::SystemTime;
use tally_rules::Micros;

const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);
/// The first and the last instant of RFC 3339. Instants beyond become the nearer one.
const FIRST: i64 = -62_167_219_200_000_000;
const LAST: i64 = 253_402_300_799_999_999;

/// Where a fraction begins in `2026-11-21T08:20:00.123456789`, and where its nine digits end: the library takes no more.
const SECONDS_END: usize = 19;
const NANOSECONDS_END: usize = 29;

/// Writes an instant of this machine's clock in the same form as other instants.
pub fn format_clock(at: SystemTime) -> String {
    let since_1970 = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format(Micros(i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX)))
}

/// Writes an instant as `2026-11-21T08:20:00.000000Z`.
pub fn format(at: Micros) -> String {
    // Not with the library's timestamps: they end some hours before the last second of the year 9999.
    let at = EPOCH.saturating_add(SignedDuration::from_micros(at.0.clamp(FIRST, LAST)));
    // Digit by digit: a page has a thousand of these, and a formatter parses its format for each field.
    let mut text = *b"0000-00-00T00:00:00.000000Z";
    put(&mut text[0..4], i32::from(at.year()));
    put(&mut text[5..7], i32::from(at.month()));
    put(&mut text[8..10], i32::from(at.day()));
    put(&mut text[11..13], i32::from(at.hour()));
    put(&mut text[14..16], i32::from(at.minute()));
    put(&mut text[17..19], i32::from(at.second()));
    put(&mut text[20..26], at.subsec_nanosecond() / 1_000);
    String::from_utf8(text.to_vec()).expect("digits are text")
}

fn put(digits: &mut [u8], mut number: i32) {
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// Reads an RFC 3339 instant, truncated to microseconds.
pub fn parse(text: &str) -> Option<Micros> {
    // The library accepts a superset of RFC 3339, such as two offsets; the standard requires the `T`, seconds and one offset.
    let bytes = text.as_bytes();
    let shape = bytes.len() >= 20 && bytes[10].eq_ignore_ascii_case(&b'T') && !text.contains(['[', ',']);
    if !shape || bytes[16] != b':' || !(text.ends_with(['Z', 'z']) || bytes[bytes.len() - 3] == b':') {
        return None;
    }
    let at = if text.ends_with(['Z', 'z']) { text.len() - 1 } else { text.len() - 6 };
    let (local, offset) = (text.get(..at)?, text.get(at..)?);
    let fraction = local.get(SECONDS_END..)?;
    let is_fraction = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_exact = fraction.is_empty() || fraction.strip_prefix('.').is_some_and(is_fraction);
    if !is_exact {
        return None;
    }
    let local: DateTime = local.get(..NANOSECONDS_END).unwrap_or(local).parse().ok()?;
    let nanos = local.duration_since(EPOCH).as_nanos();
    let micros = i64::try_from(nanos.div_euclid(1_000)).ok()?;
    Some(Micros(micros - offset_seconds(offset)? * 1_000_000))
}

/// The seconds of `Z` or `+09:00`.
fn offset_seconds(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    if bytes.len() == 1 {
        return Some(0);
    }
    let two = |at: usize| {
        let digits = text.get(at..at + 2).filter(|two| two.bytes().all(|byte| byte.is_ascii_digit()))?;
        digits.parse::<i64>().ok()
    };
    let (hours, minutes) = (two(1).filter(|hours| *hours < 24)?, two(4).filter(|minutes| *minutes < 60)?);
    let seconds = hours * 3_600 + minutes * 60;
    match bytes[0] {
        b'+' => Some(seconds),
        b'-' => Some(-seconds),
        _ => None,
    }
}

/// Reads an RFC 3339 instant, or a date: its first instant in UTC.
pub fn parse_or_date(text: &str) -> Option<Micros> {
    if let Some(at) = parse(text) {
        return Some(at);
    }
    if text.len() != 10 {
        return None;
    }
    let date: Date = text.parse().ok()?;
    let midnight = date.to_datetime(jiff::civil::Time::midnight());
    Some(Micros(Offset::UTC.to_timestamp(midnight).ok()?.as_microsecond()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn any_offset_is_read_and_utc_is_written() {
        for (text, written) in [
            ("2026-11-21T08:20:00Z", "2026-11-21T08:20:00.000000Z"),
            ("2026-11-21t17:20:00.5+09:00", "2026-11-21T08:20:00.500000Z"),
            ("1872-11-30T00:00:00.1234567Z", "1872-11-30T00:00:00.123456Z"),
            ("1969-12-31T23:59:59.9999999Z", "1969-12-31T23:59:59.999999Z"),
            ("2026-11-21T17:20:00.1234567890123+09:00", "2026-11-21T08:20:00.123456Z"),
            ("2026-11-21T00:20:00-08:00", "2026-11-21T08:20:00.000000Z"),
        ] {
            assert_eq!(parse(text).map(format).as_deref(), Some(written), "{text}");
        }
    }

    #[test]
    fn other_shapes_are_refused() {
        for text in [
            "",
            "now",
            "2026-11-21",
            "2026-11-21T08:20:00",
            "2026-11-21 08:20:00Z",
            "2026-11-21T08:20Z",
            "2026-13-01T00:00:00Z",
            "2026-02-30T00:00:00Z",
            "2026-11-21T08:20:00+0900",
            "2026-11-21T08:20:00Z[UTC]",
            "2026-11-21T08:20:00+24:00",
            "2026-11-21T08:20:00+0a:00",
            "2026-11-21T08:20:00+09:00Z",
            "2026-11-21T08:20:00+0900Z",
            "2026-11-21T08:20:00.5+09:00+01:00",
            "2026-11-21T08:20:00.Z",
            "2026-11-21T08:20:00.1234567890x0Z",
            "20261121T082000.00000Z",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_last_second_of_the_standard_is_an_instant() {
        assert_eq!(parse("9999-12-31T23:59:59Z"), Some(Micros(253_402_300_799_000_000)));
        assert_eq!(parse("0000-01-01T00:00:00Z"), Some(Micros(-62_167_219_200_000_000)));
        assert_eq!(format(Micros(253_402_300_799_000_000)), "9999-12-31T23:59:59.000000Z");
        assert_eq!(format(Micros(i64::MAX)), "9999-12-31T23:59:59.999999Z");
        assert_eq!(format(Micros(i64::MIN)), "0000-01-01T00:00:00.000000Z");
    }

    #[test]
    fn a_date_is_its_first_instant() {
        assert_eq!(parse_or_date("1970-01-02"), Some(Micros(86_400_000_000)));
        assert_eq!(parse_or_date("1916-07-02").map(format).as_deref(), Some("1916-07-02T00:00:00.000000Z"));
        assert_eq!(parse_or_date("1970-1-2"), None);
        assert_eq!(parse_or_date("NA"), None);
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(micros in FIRST..=LAST) {
            prop_assert_eq!(parse(&format(Micros(micros))), Some(Micros(micros)));
        }

        #[test]
        fn anything_is_read_or_refused_without_a_panic(text in "\\PC{0,40}") {
            let _ = parse_or_date(&text);
        }
    }
}
