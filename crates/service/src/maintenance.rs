//! Maintenance of the store, in bounded steps: deleting old requests and events, purging deleted leaderboards.
//!
//! Each step is a short transaction, so no submit waits for more than one of them.

use crate::background::{Job, Next};
use crate::clock::Clock;
use crate::events;
use crate::failure::Failure;
use crate::tally::Tally;
use std::sync::Arc;
use std::time::Duration;
use tally_store::{Store, StoreError, Task};

const STEP_ROWS: usize = 500;
/// The same of requests and events while there are always more: they are forgotten as fast as any server stores them.
const STEP_ROWS_MAX: usize = 8_000;
/// Between two bites while there is something to do.
const STEP_PAUSE: Duration = Duration::from_millis(10);
/// The task lease of a silent server: longer than the pause between two rounds.
const LEASE: Duration = Duration::from_secs(40);
/// The pause between two rounds.
const IDLE_PAUSE: Duration = Duration::from_secs(30);

/// Starts the background task.
pub(crate) fn start(tally: &Arc<Tally>) -> Result<(), Failure> {
    let (mut job, mut pace) = (Job::new("clean up the store", Duration::ZERO), Pace::default());
    tally.tasks.maintenance.start("maintenance", tally, Next::After(STEP_PAUSE), move |tally| {
        let has_more = job.run(|| clean(tally, &mut pace)).is_some_and(|rows| rows > 0);
        Next::After(if has_more { STEP_PAUSE } else { IDLE_PAUSE })
    })
}

/// One step; how many rows that were.
pub(crate) fn clean(tally: &Tally, pace: &mut Pace) -> Result<usize, Failure> {
    match step(&*tally.store, &tally.clock, tally.settings.idempotency_keep_micros, pace) {
        // Another server did it; remaining rows are found again.
        Err(StoreError::Conflict(_)) => Ok(0),
        done => Ok(done?),
    }
}

/// How many requests and events one step forgets: twice as many after each step that was not enough.
#[derive(Debug)]
pub(crate) struct Pace {
    rows: usize,
}

impl Default for Pace {
    fn default() -> Self {
        Self { rows: STEP_ROWS }
    }
}

/// One step; how many rows that were. Requests and events are not forgotten while the clock is in doubt.
fn step(store: &dyn Store, clock: &Clock, keep_micros: i64, pace: &mut Pace) -> Result<usize, StoreError> {
    let old = clock.trusted().map(|now| (now.plus(-keep_micros), now.plus(-events::KEEP_MICROS)));
    let most = std::mem::take(pace).rows;
    if !store.lease_task(Task::Clean, LEASE)? {
        return Ok(0);
    }
    let mut rows = 0;
    if let Some((before, events_before)) = old {
        let events = store.ledger().expire_events(events_before, most)?;
        let requests = store.expire_requests(before, most)?;
        if events.max(requests) == most {
            pace.rows = (most * 2).min(STEP_ROWS_MAX);
        }
        rows = events + requests;
    }
    Ok(rows + store.purge_deleted(STEP_ROWS)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tally_rules::Micros;
    use tally_rules::idempotency::{Fingerprint, RequestKey, Stored};
    use tally_rules::outcome::Outcome;
    use tally_store::Transactions;
    use tally_store::sqlite::{Options, SqliteStore};
    use tally_store::{ReadSet, WriteSet};

    #[test]
    fn many_old_requests_are_forgotten_in_few_steps() {
        const ROWS: usize = 30_000;
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&folder.path().join("t.db"), &Options::default()).unwrap();
        for first in (0..ROWS).step_by(10_000) {
            let row = |number: usize| {
                let key = RequestKey { scope: "test".into(), key: format!("{number:05}").into() };
                (key, Stored { fingerprint: Fingerprint([0; 16]), at: Micros(1), outcome: Outcome::Removed })
            };
            let requests = (first..first + 10_000).map(row).collect();
            let changes = WriteSet { requests, ..WriteSet::default() };
            store.run(&ReadSet::default(), &mut |_| changes.clone()).unwrap();
        }
        let (clock, mut pace, mut left) = (Clock::of(|| Micros(10)), Pace::default(), ROWS);
        for _ in 0..10 {
            left -= step(&store, &clock, 1, &mut pace).unwrap();
        }
        assert_eq!(left, 0);
        assert_eq!(step(&store, &clock, 1, &mut pace).unwrap(), 0);
    }
}
