//! Numbers as text: the output of Redis, and its accepted input. `servers.rs` sends the same texts to real servers.

use proptest::prelude::*;
use tally_wire::resp::number::{bound, integer, score};
use tally_wire::resp::{Bound, double};

/// Texts that are scores, and their values.
#[rustfmt::skip]
pub(crate) const TAKEN: &[(&str, f64)] = &[
    ("1", 1.0), ("-1", -1.0), ("+1", 1.0), ("00012", 12.0), ("1.", 1.0), (".5", 0.5), ("-.5", -0.5), ("+.5e1", 5.0),
    ("1e5", 1e5), ("1E+5", 1e5), ("1e0005", 1e5), ("-0", 0.0), ("-0.0", 0.0), ("0e-400", 0.0),
    ("0e99999999999999999999", 0.0), ("12345678901234567890", 12_345_678_901_234_567_890.0),
    ("inf", f64::INFINITY), ("+inf", f64::INFINITY), ("-Inf", f64::NEG_INFINITY), ("INFINITY", f64::INFINITY),
    ("4e-324", 5e-324), ("2.4703282292062328e-324", 5e-324), ("1e-310", 1e-310),
    ("1.7976931348623158e308", f64::MAX),
    ("0x1p3", 8.0), ("0x.8", 0.5), ("-0X1P-2", -0.25), ("0x1.8", 1.5), ("0x1.8p1", 3.0), ("0x1p+3", 8.0), ("0xA.", 10.0),
    ("0x0p99999", 0.0), ("0x1p-1074", 5e-324), ("0x1.8p-1075", 5e-324), ("0x0.00001p20", 1.0),
    ("0x1.fffffffffffffp1023", f64::MAX), ("0x1.fffffffffffff7ffp1023", f64::MAX),
    // Ties go to even, unless a digit far behind decides.
    ("0x1.00000000000008p0", 1.0), ("0x1.00000000000008000000000001p0", 1.0 + f64::EPSILON),
    ("0x1.00000000000018p0", 1.0 + 2.0 * f64::EPSILON), ("0x1.fffffffffffff8p0", 2.0),
    ("0x1000000000000000000000000", 79_228_162_514_264_337_593_543_950_336.0),
];

/// Texts that are none.
#[rustfmt::skip]
pub(crate) const REFUSED: &[&str] = &[
    "", " 1", "1 ", "\t1", ".", "-", "+", "+-1", "--1", "e5", "1e", "1e+", "1_0", "1\x002", "1d5", "1f", "1,5",
    "nan", "-nan", "nan(1)", "infinit", "inf ", "infinity1", "1e400", "-1e400", "1e-400", "2e-324",
    "1.7976931348623159e308", "2.4703282292062327e-324", "1e99999999999999999999", "1e-99999999999999999999",
    "0x", "0x.", "0xp1", "0x1p", "0x1p+", "0x1pz", "0x1.8.", "0x1p1024", "0x1p-1075", "0x1.fffffffffffff8p1023",
    "0x0.0000001p-99999", "x1", "0x 1", "\u{661}",
];

/// Texts that may be bounds of a range.
#[rustfmt::skip]
pub(crate) const BOUNDS: &[(&str, Option<Bound>)] = &[
    ("(1.5", at(1.5, true)), ("(-inf", at(f64::NEG_INFINITY, true)), ("", at(0.0, false)), ("(", at(0.0, true)),
    (" 1", at(1.0, false)), ("( 1", at(1.0, true)), ("1\x002", at(1.0, false)), ("\0x", at(0.0, false)),
    ("1e400", at(f64::INFINITY, false)), ("(-1e400", at(f64::NEG_INFINITY, true)), ("1e-400", at(0.0, false)),
    ("1 ", None), (" ", None), ("((1", None), ("nan", None), ("[1", None), (" (1", None),
];

/// Texts that are no integers.
#[rustfmt::skip]
pub(crate) const NO_INTEGERS: &[&str] = &[
    "", "-", "+1", "-0", "01", "-01", "00", " 1", "1 ", "1.0", "0x1", "1\0", "9223372036854775808",
    "-9223372036854775809", "18446744073709551616", "99999999999999999999", "100000000000000000000",
];

const fn at(score: f64, exclusive: bool) -> Option<Bound> {
    Some(Bound { score, exclusive })
}

fn text(value: f64) -> String {
    let mut out = Vec::new();
    double::append(value, &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn doubles_print_as_redis_prints_them() {
    #[rustfmt::skip]
    let table: &[(f64, &str)] = &[
        (0.0, "0"), (-0.0, "0"), (1.0, "1"), (-1.5, "-1.5"), (0.1, "0.1"), (1e15, "1000000000000000"),
        (123_456_789_012_345_678.0, "123456789012345680"),
        (4_611_686_018_427_387_904.0, "4611686018427387904"),
        (9_223_372_036_854_775_807.0, "9223372036854776000"),
        (1e18, "1000000000000000000"), (1e19, "1e+19"), (-1e19, "-1e+19"), (1e20, "1e+20"), (1e21, "1e+21"),
        (1.23456789e20, "1.23456789e+20"), (1e100, "1e+100"),
        (1e-5, "0.00001"), (1e-6, "0.000001"), (1e-7, "1e-7"), (1.5e-7, "1.5e-7"), (1.25e-10, "1.25e-10"),
        (5e-324, "5e-324"), (f64::MAX, "1.7976931348623157e+308"), (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
        (f64::INFINITY, "inf"), (f64::NEG_INFINITY, "-inf"), (f64::NAN, "nan"),
        // The cases without the fewest digits, or the nearest, as in Redis.
        (-155_766.848_834_565_38, "-1.5576684883456537e+5"), (-1.651484200947297e116, "-1.6514842009472968e+116"),
    ];
    for (value, expected) in table {
        assert_eq!(text(*value), *expected);
    }
}

#[test]
fn scores_are_taken_as_redis_takes_them() {
    for (text, value) in TAKEN {
        assert_eq!(score(text.as_bytes()).map(f64::to_bits), Some(value.to_bits()), "{text}");
        assert_eq!(bound(text.as_bytes()), Some(Bound { score: *value, exclusive: false }), "{text}");
    }
    for text in REFUSED {
        assert_eq!(score(text.as_bytes()), None, "{text:?}");
    }
}

#[test]
fn bounds_take_more_than_scores() {
    for (text, expected) in BOUNDS {
        assert_eq!(bound(text.as_bytes()), *expected, "{text:?}");
    }
}

#[test]
fn integers_are_written_in_one_way() {
    for value in [i64::MIN, i64::MIN + 1, -10, -1, 0, 1, 9, 1_000_000_000_000_000_000, i64::MAX] {
        assert_eq!(integer(value.to_string().as_bytes()), Some(value));
    }
    for text in NO_INTEGERS {
        assert_eq!(integer(text.as_bytes()), None, "{text:?}");
    }
}

proptest! {
    #[test]
    fn a_printed_double_reads_back(bits in any::<u64>()) {
        let value = f64::from_bits(bits);
        prop_assume!(!value.is_nan());
        prop_assert_eq!(score(text(value).as_bytes()), Some(value));
        prop_assert_eq!(text(value).parse::<f64>(), Ok(value));
        // A sign, seventeen digits and seven zeros: the longest there is.
        prop_assert!(text(value).len() <= 25, "{}", text(value));
    }

    #[test]
    fn a_decimal_is_read_as_rust_reads_it(text in "[+-]?[0-9]{0,20}[.]?[0-9]{0,20}([eE][+-]?[0-9]{1,3})?") {
        if let Some(value) = score(text.as_bytes()) {
            prop_assert_eq!(text.parse::<f64>(), Ok(value));
        }
    }

    #[test]
    fn an_integer_is_what_prints_as_its_text(text in "-?[0-9]{0,20}") {
        let expected = text.parse::<i64>().ok().filter(|value| value.to_string() == text);
        prop_assert_eq!(integer(text.as_bytes()), expected);
    }

    #[test]
    fn a_hexadecimal_of_64_bits_is_rounded_as_the_machine_rounds(bits in any::<u64>(), power in -900i32..900) {
        let expected = bits as f64 * 2f64.powi(power);
        prop_assert_eq!(score(format!("{bits:#x}p{power}").as_bytes()), Some(expected));
    }

    #[test]
    fn garbage_is_refused_without_a_panic(text in "[-+0-9a-fA-FpPxX.inNtyY( ]{0,30}") {
        let _ = (score(text.as_bytes()), bound(text.as_bytes()), integer(text.as_bytes()));
    }
}
