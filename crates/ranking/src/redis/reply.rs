//! Decodes the answers of scripts. An unexpected value is an error, never a guess.

use super::RankingError;
use redis::Value;

/// The error for a ranking that was loaded from another store.
const FOREIGN: &str = "it has the ranking of another store under this prefix: give each store a prefix of its own \
     (`?prefix=NAME` in `ranking.url`), or delete the keys of a store that is gone";

/// SerialRanks a status word of a script, which says why it has no answer, into an error.
pub(super) fn status(value: Value) -> Result<Value, RankingError> {
    match value {
        Value::SimpleString(word) => Err(match word.as_str() {
            "LOST" => RankingError::Lost,
            "LOADING" => RankingError::Loading,
            "FOREIGN" => RankingError::Refused(FOREIGN.into()),
            "SUPERSEDED" => RankingError::Superseded,
            other => strange(&format!("the word {other}")),
        }),
        value => Ok(value),
    }
}

pub(super) fn list(value: Value) -> Result<Vec<Value>, RankingError> {
    match value {
        Value::Array(list) => Ok(list),
        other => Err(strange(&format!("{other:?} where a list belongs"))),
    }
}

pub(super) fn bytes(value: Value) -> Result<Vec<u8>, RankingError> {
    match value {
        Value::BulkString(bytes) => Ok(bytes),
        other => Err(strange(&format!("{other:?} where bytes belong"))),
    }
}

/// A number that may be negative.
pub(super) fn signed(value: &Value) -> Result<i64, RankingError> {
    match value {
        Value::Int(number) => Ok(*number),
        other => Err(strange(&format!("{other:?} where a number belongs"))),
    }
}

pub(super) fn number(value: &Value) -> Result<u64, RankingError> {
    let number = signed(value)?;
    u64::try_from(number).map_err(|_| strange(&format!("{number} where a count belongs")))
}

/// A cursor, which Redis sends as text.
pub(super) fn cursor(value: Value) -> Result<u64, RankingError> {
    let text = String::from_utf8(bytes(value)?).ok().and_then(|text| text.parse().ok());
    text.ok_or_else(|| strange("a cursor that is no number"))
}

/// The only value of a list, which may be a status word.
pub(super) fn only(value: Value) -> Result<Value, RankingError> {
    let mut values = list(value)?.into_iter();
    status(next(&mut values)?)
}

pub(super) fn next(values: &mut impl Iterator<Item = Value>) -> Result<Value, RankingError> {
    values.next().ok_or_else(|| strange("less than was asked for"))
}

/// Decodes `CLUSTER SLOTS`: the first and last slot of each range, and its master.
pub(super) fn slots(value: Value) -> Result<Vec<(u16, u16, String, u16)>, RankingError> {
    let small = |value: Value| u16::try_from(number(&value)?).map_err(|_| strange("a slot beyond the last"));
    let one = |range: Value| {
        let mut range = list(range)?.into_iter();
        let (first, last) = (small(next(&mut range)?)?, small(next(&mut range)?)?);
        let mut master = list(next(&mut range)?)?.into_iter();
        let host = match next(&mut master)? {
            Value::Nil => Vec::new(),
            host => bytes(host)?,
        };
        let host = String::from_utf8(host).map_err(|_| strange("a host that is no text"))?;
        Ok((first, last, host, small(next(&mut master)?)?))
    };
    list(value)?.into_iter().map(one).collect()
}

pub(super) fn strange(what: &str) -> RankingError {
    RankingError::Refused(what.to_owned())
}
