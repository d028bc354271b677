//! Requests with an idempotency key that are running now.
//!
//! A second one with the same key is rejected instead of waiting. The entry ends with the reply to the first, not when its
//! client hangs up: a request that has begun is finished. Nothing of this is stored, so a crash leaves nothing over.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use tally_rules::Rejection;
use tally_rules::idempotency::{IdempotencyKey, RequestFingerprint, RequestKey};

/// The keys in use.
#[derive(Clone, Debug, Default)]
pub struct InProgress {
    keys: Arc<Mutex<HashSet<RequestKey>>>,
}

/// Holds one key until it is dropped.
#[derive(Debug)]
pub struct KeyGuard {
    keys: Arc<Mutex<HashSet<RequestKey>>>,
    key: RequestKey,
}

impl InProgress {
    /// Takes a key; rejects one that is taken.
    pub fn begin(&self, key: &RequestKey) -> Result<KeyGuard, Rejection> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if !keys.insert(key.clone()) {
            return Err(Rejection::IdempotencyInProgress);
        }
        Ok(KeyGuard { keys: Arc::clone(&self.keys), key: key.clone() })
    }

    /// How many are running.
    pub fn len(&self) -> usize {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether none is running.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The keys of one batch. A row that is the same request as a row before it has the same key, and is its replay.
#[derive(Debug, Default)]
pub(crate) struct BatchKeys(HashMap<RequestKey, RequestFingerprint>);

impl BatchKeys {
    /// Takes the key of a row, unless a row before it has.
    pub(crate) fn begin(
        &mut self,
        running: &InProgress,
        idempotency: Option<&IdempotencyKey>,
    ) -> Result<Option<KeyGuard>, Rejection> {
        let Some(IdempotencyKey { key, fingerprint }) = idempotency else { return Ok(None) };
        match self.0.get(key) {
            // Another secret may make since the row before it was read.
            Some(first)
                if first.maker_of(fingerprint.made).or(fingerprint.maker_of(first.made)).is_some() =>
            {
                Ok(None)
            }
            Some(_) => Err(Rejection::IdempotencyKeyReused),
            None => {
                let taken = running.begin(key)?;
                self.0.insert(key.clone(), *fingerprint);
                Ok(Some(taken))
            }
        }
    }
}

impl Drop for KeyGuard {
    fn drop(&mut self) {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_free_again_when_its_request_is_answered() {
        let running = InProgress::default();
        let key = RequestKey { scope: "local".into(), key: "k".into() };
        let other = RequestKey { scope: "other".into(), key: "k".into() };
        let first = running.begin(&key).unwrap();
        assert_eq!(running.begin(&key).unwrap_err(), Rejection::IdempotencyInProgress);
        assert!(running.begin(&other).is_ok());
        drop(first);
        assert!(running.begin(&key).is_ok());
        assert!(running.is_empty());
    }
}
