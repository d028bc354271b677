//! Retries: a request with a key has one effect, however often it is sent.

use crate::instant::Micros;
use crate::outcome::Outcome;
use crate::rejection::Rejection;
use std::sync::Arc;

/// The longest idempotency key, in bytes.
pub const KEY_BYTES_MAX: usize = 255;

/// How long an outcome is kept by default: 24 hours.
pub const KEEP_DEFAULT_MICROS: i64 = 24 * 3600 * 1_000_000;

/// The scope of callers that present no credential.
pub const SCOPE_LOCAL: &str = "local";

/// An idempotency key in the scope of its caller.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestKey {
    /// The caller: a key id or a member.
    pub scope: Arc<str>,
    /// The key that the caller sent.
    pub key: Arc<str>,
}

/// A keyed digest of method, path and canonical body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(pub [u8; 16]);

/// The fingerprint of a request, for each secret of the store that is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestFingerprint {
    /// The one that is stored.
    pub made: Fingerprint,
    /// The number of the secret that made it.
    pub made_by: u8,
    /// The one of the other secret, and its number: a server that makes with that may have stored it.
    pub other: Option<(Fingerprint, u8)>,
}

impl RequestFingerprint {
    /// The number of the secret by which a stored fingerprint is of this request.
    pub fn maker_of(&self, stored: Fingerprint) -> Option<u8> {
        let both = [Some((self.made, self.made_by)), self.other];
        both.into_iter().flatten().find(|(print, _)| *print == stored).map(|(_, by)| by)
    }
}

impl From<Fingerprint> for RequestFingerprint {
    fn from(made: Fingerprint) -> Self {
        Self { made, made_by: 0, other: None }
    }
}

/// A request that must have one effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// The key.
    pub key: RequestKey,
    /// The fingerprint of the request.
    pub fingerprint: RequestFingerprint,
}

/// The row that is stored beside the effect of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The fingerprint of the request.
    pub fingerprint: Fingerprint,
    /// When the request was done.
    pub at: Micros,
    /// The outcome.
    pub outcome: Outcome,
}

/// The result of [`check_key`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyCheck<'a> {
    /// The key is new or expired: do the request.
    New,
    /// The same request was done: return its outcome and change nothing.
    Replay(&'a Outcome),
}

/// Compares a request with the row that is stored under its key.
pub fn check_key<'a>(
    stored: Option<&'a Stored>,
    fingerprint: RequestFingerprint,
    now: Micros,
    keep_micros: i64,
) -> Result<KeyCheck<'a>, Rejection> {
    match stored {
        None => Ok(KeyCheck::New),
        Some(old) if now.since(old.at) >= keep_micros => Ok(KeyCheck::New),
        Some(old) if fingerprint.maker_of(old.fingerprint).is_some() => Ok(KeyCheck::Replay(&old.outcome)),
        Some(_) => Err(Rejection::IdempotencyKeyReused),
    }
}

/// The key of one row of a batch that has one key: it adds the index of the row.
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
        let ask =
            |print: u8, now: i64| check_key(Some(&stored), Fingerprint([print; 16]).into(), Micros(now), 500);
        assert_eq!(ask(1, 1_499), Ok(KeyCheck::Replay(&Outcome::Removed)));
        assert_eq!(ask(1, 1_500), Ok(KeyCheck::New));
        assert_eq!(ask(2, 1_499), Err(Rejection::IdempotencyKeyReused));
        assert_eq!(ask(2, 1_500), Ok(KeyCheck::New));
        let other = Some((stored.fingerprint, 7));
        let both = RequestFingerprint { made: Fingerprint([2; 16]), made_by: 8, other };
        assert_eq!(
            check_key(Some(&stored), both, Micros(1_000), 500),
            Ok(KeyCheck::Replay(&Outcome::Removed)),
            "a server that makes with the other secret has stored it"
        );
        assert_eq!((both.maker_of(stored.fingerprint), both.maker_of(both.made)), (Some(7), Some(8)));
        assert_eq!(check_key(None, Fingerprint([1; 16]).into(), Micros(0), 500), Ok(KeyCheck::New));
    }
}
