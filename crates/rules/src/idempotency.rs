//! Retries: a request with a key has one effect, however often it is sent.

use crate::instant::Micros;
use crate::outcome::Outcome;
use crate::rejection::Rejection;
use std::sync::Arc;

/// The longest key a caller may choose, in bytes.
pub const KEY_BYTES_MAX: usize = 255;

/// How long an outcome is kept by default: 24 hours.
pub const KEEP_DEFAULT_MICROS: i64 = 24 * 3600 * 1_000_000;

/// The scope of callers that present no credential.
pub const SCOPE_LOCAL: &str = "local";

/// Who chose a key, and the key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestKey {
    /// The caller: a key id or a member.
    pub scope: Arc<str>,
    /// What the caller sent.
    pub key: Arc<str>,
}

/// A keyed digest of method, path and canonical body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(pub [u8; 16]);

/// A request that must have one effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// Its key.
    pub key: RequestKey,
    /// What it asks for.
    pub fingerprint: Fingerprint,
}

/// What is stored beside the effect of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// What was asked for.
    pub fingerprint: Fingerprint,
    /// When it was done.
    pub at: Micros,
    /// What came of it.
    pub outcome: Outcome,
}

/// What to do with a request whose key may have been used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyCheck<'a> {
    /// Never, or too long ago: do it.
    New,
    /// The same request: give its outcome again and change nothing.
    Replay(&'a Outcome),
}

/// Judges a request by what is stored under its key.
pub fn check_key<'a>(
    stored: Option<&'a Stored>,
    fingerprint: Fingerprint,
    now: Micros,
    keep_micros: i64,
) -> Result<KeyCheck<'a>, Rejection> {
    match stored {
        None => Ok(KeyCheck::New),
        Some(old) if now.since(old.at) >= keep_micros => Ok(KeyCheck::New),
        Some(old) if old.fingerprint == fingerprint => Ok(KeyCheck::Replay(&old.outcome)),
        Some(_) => Err(Rejection::IdempotencyKeyReused),
    }
}

/// The key of one row of a batch that has a key as a whole: longer than that by the place.
pub fn row_key(key: &str, index: usize) -> String {
    format!("{key}#{index}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_lives_as_long_as_it_is_kept() {
        let stored =
            Stored { fingerprint: Fingerprint([1; 16]), at: Micros(1_000), outcome: Outcome::Removed };
        let ask = |print: u8, now: i64| check_key(Some(&stored), Fingerprint([print; 16]), Micros(now), 500);
        assert_eq!(ask(1, 1_499), Ok(KeyCheck::Replay(&Outcome::Removed)));
        assert_eq!(ask(1, 1_500), Ok(KeyCheck::New));
        assert_eq!(ask(2, 1_499), Err(Rejection::IdempotencyKeyReused));
        assert_eq!(ask(2, 1_500), Ok(KeyCheck::New));
        assert_eq!(check_key(None, Fingerprint([1; 16]), Micros(0), 500), Ok(KeyCheck::New));
    }
}
