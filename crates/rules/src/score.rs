//! A score as an exact, ordered 64-bit integer.
//!
//! Boards hold int64 or float64 scores. Both are stored as one i64 whose order is the order of the values, so
//! ranking, storage and comparison do not depend on the type. The mapping of a float is the usual one: flip the
//! magnitude bits of negative numbers (total order of IEEE 754, clause 5.10, without NaN and with one zero).

use crate::definition::ScoreType;
use crate::rejection::Rejection;

/// A score as the caller sent it, independent of the board's type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScoreInput {
    /// Digits only.
    Int(i64),
    /// Any other number.
    Float(f64),
}

/// The ordered integer of a score on a board of this type, or why the board cannot hold it.
pub fn ordered(kind: ScoreType, given: ScoreInput) -> Result<i64, &'static str> {
    match (kind, given) {
        (ScoreType::Int64, ScoreInput::Int(value)) => Ok(value),
        (ScoreType::Int64, ScoreInput::Float(_)) => {
            Err("must be an integer: this leaderboard holds int64 scores")
        }
        // Beyond 2^53 the integer becomes the nearest double, as everywhere with float64.
        (ScoreType::Float64, ScoreInput::Int(value)) => from_f64(value as f64).ok_or("must be a number"),
        (ScoreType::Float64, ScoreInput::Float(value)) => from_f64(value).ok_or("must be a number"),
    }
}

/// A float64 score as its ordered integer; `None` for NaN. Minus zero becomes zero.
pub fn from_f64(value: f64) -> Option<i64> {
    if value.is_nan() {
        return None;
    }
    let value = if value == 0.0 { 0.0 } else { value };
    Some(flip(value.to_bits().cast_signed()))
}

/// The float64 score of an ordered integer.
pub fn to_f64(ordered: i64) -> f64 {
    f64::from_bits(flip(ordered).cast_unsigned())
}

/// Adds two scores of one type; `None` if the sum leaves int64 or is not a number.
pub fn add(kind: ScoreType, left: i64, right: i64) -> Option<i64> {
    match kind {
        ScoreType::Int64 => left.checked_add(right),
        ScoreType::Float64 => from_f64(to_f64(left) + to_f64(right)),
    }
}

/// Adds two scores of one type, or says which sum the type cannot hold.
pub(crate) fn sum(kind: ScoreType, left: i64, right: i64) -> Result<i64, Rejection> {
    let exact = || (kind == ScoreType::Int64).then(|| i128::from(left) + i128::from(right));
    add(kind, left, right).ok_or_else(|| Rejection::ScoreOverflow(exact()))
}

/// Zero, the empty sum, is the same integer for both types.
pub const ZERO: i64 = 0;

/// Its own inverse: negative floats count downwards in their bits.
const fn flip(bits: i64) -> i64 {
    if bits < 0 { bits ^ i64::MAX } else { bits }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn zero_infinity_and_nan() {
        assert_eq!(from_f64(0.0), Some(ZERO));
        assert_eq!(from_f64(-0.0), Some(ZERO));
        assert_eq!(from_f64(f64::NAN), None);
        assert!(from_f64(f64::NEG_INFINITY) < from_f64(f64::MIN));
        assert!(from_f64(f64::MAX) < from_f64(f64::INFINITY));
    }

    #[test]
    fn a_sum_never_becomes_not_a_number() {
        let (up, down) = (from_f64(f64::INFINITY).unwrap(), from_f64(f64::NEG_INFINITY).unwrap());
        assert_eq!(add(ScoreType::Float64, up, down), None);
        assert_eq!(add(ScoreType::Int64, i64::MAX, 1), None);
        assert_eq!(add(ScoreType::Int64, i64::MIN, i64::MAX), Some(-1));
    }

    proptest! {
        #[test]
        fn the_mapping_keeps_order_and_value(a in any::<f64>(), b in any::<f64>()) {
            prop_assume!(!a.is_nan() && !b.is_nan());
            let (x, y) = (from_f64(a).unwrap(), from_f64(b).unwrap());
            prop_assert_eq!(a.partial_cmp(&b).unwrap(), x.cmp(&y));
            prop_assert_eq!(to_f64(x), a);
        }
    }
}
