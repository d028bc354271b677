//! Outcomes of requests with an idempotency key: those stored by earlier ones, and those that a batch stores beside its
//! effects.
//!
//! Pure, except for [`stored`]. Not here: requests that are running (`requests`).

use tally_lanes::WorkingSet;
use tally_rules::idempotency::{self, IdempotencyKey, KeyCheck, RequestKey, Stored};
use tally_rules::outcome::Outcome;
use tally_rules::{Micros, Rejection};
use tally_store::{ReadSet, Store, StoreError, WriteSet};

/// The time by which outcomes are stored and compared, and how long they are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retention {
    pub(crate) at: Micros,
    pub(crate) keep_micros: i64,
}

/// Adds the stored outcome of a request to a read set.
pub(crate) fn read(plan: &mut ReadSet, idempotency: Option<&IdempotencyKey>) {
    plan.requests.extend(idempotency.map(|one| one.key.clone()));
}

/// The stored outcome of a request, read alone. Blocks on the store.
pub(crate) fn stored(store: &dyn Store, idempotency: &IdempotencyKey) -> Result<Option<Stored>, StoreError> {
    let mut plan = ReadSet::default();
    read(&mut plan, Some(idempotency));
    let mut stored = None;
    store.run(&plan, &mut |loaded| {
        stored.clone_from(&loaded.requests[0]);
        WriteSet::default()
    })?;
    Ok(stored)
}

/// The outcome of a request that was done before; `None` for a new one. Rejects the key of another request.
pub(crate) fn replay(
    idempotency: Option<&IdempotencyKey>,
    stored: Option<&Stored>,
    Retention { at, keep_micros }: Retention,
) -> Result<Option<Outcome>, Rejection> {
    let Some(idempotency) = idempotency else { return Ok(None) };
    Ok(match idempotency::check_key(stored, idempotency.fingerprint, at, keep_micros)? {
        KeyCheck::Replay(outcome) => Some(*outcome),
        KeyCheck::New => None,
    })
}

/// Those of a batch.
pub(crate) struct Outcomes {
    rows: WorkingSet<RequestKey, Stored>,
    retention: Retention,
}

impl Outcomes {
    /// The stored outcomes of the keys of a batch.
    pub(crate) fn new(keys: &[RequestKey], stored: &[Option<Stored>], retention: Retention) -> Self {
        let mut rows = WorkingSet::new();
        keys.iter().zip(stored).for_each(|(key, stored)| rows.load(key.clone(), stored.clone()));
        Self { rows, retention }
    }

    /// See [`replay`].
    pub(crate) fn replay(&self, idempotency: Option<&IdempotencyKey>) -> Result<Option<Outcome>, Rejection> {
        let stored = idempotency.and_then(|one| self.rows.get(&one.key));
        replay(idempotency, stored, self.retention)
    }

    /// Stores an outcome.
    pub(crate) fn remember(&mut self, idempotency: Option<&IdempotencyKey>, outcome: Outcome) {
        if let Some(one) = idempotency {
            let stored = Stored { fingerprint: one.fingerprint.made, at: self.retention.at, outcome };
            self.rows.set(&one.key, Some(stored));
        }
    }

    /// The stored outcome of a key by now.
    pub(crate) fn stored(&self, key: &RequestKey) -> Option<&Stored> {
        self.rows.get(key)
    }

    /// Restores the outcome of a key at a savepoint.
    pub(crate) fn restore(&mut self, key: &RequestKey, before: Option<Stored>) {
        self.rows.set(key, before);
    }

    pub(crate) fn into_writes(self) -> Vec<(RequestKey, Stored)> {
        let row = |(key, stored): (_, Option<_>)| Some((key, stored?));
        self.rows.into_writes().into_iter().filter_map(row).collect()
    }
}
