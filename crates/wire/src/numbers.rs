//! Scores as JSON: exact 64-bit integers, or doubles with infinities as text.

use serde::{Serialize, Serializer};
use serde_json::Value;
use tally_rules::definition::ScoreType;
use tally_rules::score::{self, ScoreInput};

/// How replies contain 64-bit integers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Int64 {
    /// As JSON numbers.
    #[default]
    Number,
    /// As strings, for languages whose numbers are doubles (`Tally-Int64: string`).
    String,
}

/// A score in a reply.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScoreOut {
    /// An exact integer.
    Int(i64),
    /// An exact integer as text.
    IntText(i64),
    /// A double.
    Float(f64),
}

impl ScoreOut {
    /// A stored score in the form of its board's type.
    pub fn new(kind: ScoreType, ordered: i64, int64: Int64) -> Self {
        match kind {
            ScoreType::Int64 => Self::integer(ordered, int64),
            ScoreType::Float64 => Self::Float(score::to_f64(ordered)),
        }
    }

    /// An exact integer.
    pub fn integer(value: i64, int64: Int64) -> Self {
        match int64 {
            Int64::Number => Self::Int(value),
            Int64::String => Self::IntText(value),
        }
    }
}

impl Serialize for ScoreOut {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::Int(value) => serializer.serialize_i64(value),
            Self::IntText(value) => serializer.collect_str(&value),
            Self::Float(value) if value == f64::INFINITY => serializer.serialize_str("inf"),
            Self::Float(value) if value == f64::NEG_INFINITY => serializer.serialize_str("-inf"),
            Self::Float(value) => serializer.serialize_f64(value),
        }
    }
}

/// Reads a score: a JSON number, or a string of one.
pub fn score(value: &Value) -> Result<ScoreInput, &'static str> {
    match value {
        Value::Number(number) => {
            if let Some(int) = number.as_i64() {
                return Ok(ScoreInput::Int(int));
            }
            // JSON integers beyond int64 arrive as doubles. An int64 board refuses them.
            number.as_f64().map(ScoreInput::Float).ok_or("must be a number")
        }
        Value::String(text) => score_text(text).ok_or("must be a number or a string of one"),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => Err("must be a number"),
    }
}

/// Reads a score from text.
pub fn score_text(text: &str) -> Option<ScoreInput> {
    // As in JSON, numbers have no plus sign.
    if text.starts_with('+') {
        return None;
    }
    if let Ok(int) = text.parse::<i64>() {
        return Some(ScoreInput::Int(int));
    }
    match text {
        "inf" => return Some(ScoreInput::Float(f64::INFINITY)),
        "-inf" => return Some(ScoreInput::Float(f64::NEG_INFINITY)),
        _ => {}
    }
    // Only digits, a point and an exponent: names such as `nan` are not numbers here.
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    text.parse::<f64>().ok().filter(|_| plain).map(ScoreInput::Float)
}

/// Reads an exact integer: a JSON integer, or a string of digits.
pub fn integer(value: &Value) -> Result<i64, &'static str> {
    const WRONG: &str = "must be an integer from -9223372036854775808 to 9223372036854775807";
    match value {
        Value::Number(number) => number.as_i64().ok_or(WRONG),
        Value::String(text) if !text.starts_with('+') => text.parse().map_err(|_| WRONG),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => Err(WRONG),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn exact_integers_survive_in_both_forms() {
        for value in [i64::MIN, -1, 0, 9_007_199_254_740_993, i64::MAX] {
            assert_eq!(score(&json!(value)), Ok(ScoreInput::Int(value)));
            assert_eq!(score(&json!(value.to_string())), Ok(ScoreInput::Int(value)));
            let written =
                serde_json::to_value(ScoreOut::new(ScoreType::Int64, value, Int64::String)).unwrap();
            assert_eq!(written, json!(value.to_string()));
            assert_eq!(serde_json::to_value(ScoreOut::Int(value)).unwrap(), json!(value));
        }
    }

    #[test]
    fn what_is_beyond_int64_is_not_cut() {
        let huge: Value = serde_json::from_str("9223372036854775808").unwrap();
        assert!(matches!(score(&huge), Ok(ScoreInput::Float(_))));
        assert!(integer(&huge).is_err());
    }

    #[test]
    fn infinities_are_text_and_nan_is_nothing() {
        assert_eq!(score(&json!("-inf")), Ok(ScoreInput::Float(f64::NEG_INFINITY)));
        assert_eq!(serde_json::to_value(ScoreOut::Float(f64::INFINITY)).unwrap(), json!("inf"));
        for text in ["nan", "NaN", "infinity", "", " 1", "0x10", "1_000", "+5", "+5.0", "+inf"] {
            assert!(score(&json!(text)).is_err(), "{text}");
        }
        assert_eq!(score_text("1e3"), Some(ScoreInput::Float(1000.0)));
    }
}
