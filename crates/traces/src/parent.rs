//! The trace of a caller: the header `traceparent` of W3C Trace Context.
//!
//! An invalid header counts as missing, as the standard requires: the trace begins here then.

use crate::span::SpanId;

/// The span of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parent {
    pub(crate) trace: [u8; 16],
    pub(crate) span: SpanId,
    pub(crate) sampled: bool,
}

/// `00-`, 32 digits, `-`, 16 digits, `-`, 2 digits.
const LENGTH: usize = 55;

impl Parent {
    /// Reads the header.
    pub fn parse(header: &[u8]) -> Option<Self> {
        let (known, more) = header.split_at_checked(LENGTH)?;
        let [version] = hex(&known[..2])?;
        // A later version may append fields, which are ignored.
        let ends = match version {
            0 => more.is_empty(),
            0xff => false,
            _ => more.is_empty() || more[0] == b'-',
        };
        let dashes = [2, 35, 52].iter().all(|at| known[*at] == b'-');
        let (trace, span, [flags]) = (hex(&known[3..35])?, hex(&known[36..52])?, hex(&known[53..])?);
        let real = trace != [0; 16] && span != [0; 8];
        (ends && dashes && real).then_some(Self { trace, span, sampled: flags & 1 == 1 })
    }
}

/// Lower-case digits only.
fn hex<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = (digit(pair[0])? << 4) | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    const SPAN: &str = "b7ad6b7169203331";

    fn parse(header: &str) -> Option<Parent> {
        Parent::parse(header.as_bytes())
    }

    #[test]
    fn a_caller_says_its_trace_its_span_and_whether_it_is_sampled() {
        let parent = parse(&format!("00-{TRACE}-{SPAN}-01")).unwrap();
        assert_eq!(parent.trace[..3], [0x0a, 0xf7, 0x65]);
        assert_eq!(parent.span, [0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31]);
        assert!(parent.sampled);
        for (flags, sampled) in [("00", false), ("03", true), ("02", false), ("ff", true)] {
            assert_eq!(parse(&format!("00-{TRACE}-{SPAN}-{flags}")).unwrap().sampled, sampled, "{flags}");
        }
    }

    #[test]
    fn a_later_version_may_say_more() {
        assert!(parse(&format!("cc-{TRACE}-{SPAN}-01")).is_some());
        assert!(parse(&format!("cc-{TRACE}-{SPAN}-01-what-else")).is_some());
        assert!(parse(&format!("cc-{TRACE}-{SPAN}-01.what")).is_none());
    }

    #[test]
    fn what_is_not_as_it_should_be_was_not_sent() {
        for wrong in [
            String::new(),
            "00".into(),
            format!("00-{TRACE}-{SPAN}"),
            format!("00-{TRACE}-{SPAN}-1"),
            format!("00-{TRACE}-{SPAN}-0g"),
            format!("00-{TRACE}-{SPAN}-01-"),
            format!("00-{TRACE}-{SPAN}-01 "),
            format!("ff-{TRACE}-{SPAN}-01"),
            format!("0x-{TRACE}-{SPAN}-01"),
            format!("00_{TRACE}-{SPAN}-01"),
            format!("00-{}-{SPAN}-01", TRACE.to_uppercase()),
            format!("00-{}-{SPAN}-01", "0".repeat(32)),
            format!("00-{TRACE}-{}-01", "0".repeat(16)),
            format!("00-{TRACE}-{SPAN}é01"),
        ] {
            assert_eq!(parse(&wrong), None, "{wrong}");
        }
    }
}
