//! When a certificate ends: the one field of X.509 that metrics need.
//!
//! The TLS library checks certificates of others, and has no accessor for the fields of our own. So this reads the few bytes up to
//! the field, without a parser of the rest. Anything unexpected is `None`. Not here: any check of a certificate.

/// Tags of DER.
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The end of a certificate in DER, in seconds since 1970.
pub(super) fn of(certificate: &[u8]) -> Option<i64> {
    let (signed, _) = element(certificate, SEQUENCE)?;
    let (mut fields, _) = element(signed, SEQUENCE)?;
    if fields.first() == Some(&VERSION) {
        fields = next_element(fields)?.2;
    }
    // The serial number, the algorithm of the signature and the issuer.
    for _ in 0..3 {
        fields = next_element(fields)?.2;
    }
    let (validity, _) = element(fields, SEQUENCE)?;
    let (_, _, after_begin) = next_element(validity)?;
    let (tag, text, _) = next_element(after_begin)?;
    parse_time(tag, std::str::from_utf8(text).ok()?)
}

/// The content of the element at the beginning, if it has this tag, and the bytes after it.
fn element(bytes: &[u8], wanted: u8) -> Option<(&[u8], &[u8])> {
    let (tag, content, rest) = next_element(bytes)?;
    (tag == wanted).then_some((content, rest))
}

/// The tag and the content of the element at the beginning, and the bytes after it.
fn next_element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, first], rest) = bytes.split_first_chunk::<2>()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
        let length =
            digits.iter().try_fold(0_usize, |sum, digit| Some(sum.checked_mul(256)? + usize::from(*digit)));
        (length?, rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// Seconds since 1970 of `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ`, as X.509 has it.
fn parse_time(tag: u8, text: &str) -> Option<i64> {
    let full = match tag {
        // Two digits are a year from 1950 on.
        UTC_TIME => format!("{}{text}", if text.get(..2)? < "50" { "20" } else { "19" }),
        GENERALIZED_TIME => text.to_owned(),
        _ => return None,
    };
    let digits = full.strip_suffix('Z').filter(|digits| digits.len() == 14)?;
    let part = |from: usize, to: usize| digits.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (part(0, 4)?, part(4, 6)?, part(6, 8)?);
    let time = part(8, 10)? * 3_600 + part(10, 12)? * 60 + part(12, 14)?;
    if !(1..=12).contains(&month) {
        return None;
    }
    // Days since 1970 of a date: years begin in March, so that a leap day is the last of its year.
    let shifted = year - i64::from(month <= 2);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = 365 * shifted + shifted.div_euclid(4) - shifted.div_euclid(100) + shifted.div_euclid(400);
    Some((days + day_of_year - 719_468) * 86_400 + time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio_rustls::rustls::pki_types::CertificateDer;
    use tokio_rustls::rustls::pki_types::pem::PemObject;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (tag, text, wanted) in [
            (UTC_TIME, "700101000000Z", Some(0)),
            (UTC_TIME, "491231235959Z", Some(2_524_607_999)),
            (UTC_TIME, "240229120000Z", Some(1_709_208_000)),
            (GENERALIZED_TIME, "20500301000001Z", Some(2_529_705_601)),
            (GENERALIZED_TIME, "99991231235959Z", Some(253_402_300_799)),
            (GENERALIZED_TIME, "20501301000001Z", None),
            (UTC_TIME, "7001010000Z", None),
            (0x16, "700101000000Z", None),
        ] {
            assert_eq!(parse_time(tag, text), wanted, "{text}");
        }
    }

    #[test]
    fn the_end_of_a_certificate_is_found_and_of_other_bytes_none() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../testkit/tls/server.pem");
        let certificate = CertificateDer::from_pem_file(file).unwrap();
        assert_eq!(of(&certificate), Some(END));
        for length in 0..120 {
            assert_eq!(of(&certificate[..length]), None, "{length}");
        }
    }

    /// What `openssl x509 -enddate` says of that file.
    const END: i64 = 4_948_938_949;
}
