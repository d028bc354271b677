//! Maintenance of the store, in bounded steps: deleting old requests and events, purging deleted leaderboards.
//!
//! Each step is a short transaction, so no submit waits for more than one of them.

use crate::background::{Job, Next};
use crate::clock::Clock;
use crate::events;
use crate::failure::Failure;
use crate::tally::Tally;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
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
/// For so long more than they are needed, marks wait for a transaction that clears them.
const MARKS_MORE: Duration = Duration::from_secs(60);

/// Starts the background task.
pub(crate) fn start(tally: &Arc<Tally>) -> Result<(), Failure> {
    *expired(tally) = Some(Instant::now());
    let (mut job, mut pace) = (Job::new("clean up the store", Duration::ZERO), Pace::default());
    tally.tasks.maintenance.start("maintenance", tally, Next::After(STEP_PAUSE), move |tally| {
        let has_more = job.run(|| clean(tally, &mut pace)).is_some_and(|rows| rows > 0);
        Next::After(if has_more { STEP_PAUSE } else { IDLE_PAUSE })
    })
}

/// One step; how many rows that were.
pub(crate) fn clean(tally: &Tally, pace: &mut Pace) -> Result<usize, Failure> {
    let rows = again(step(&*tally.store, &tally.clock, tally.settings.idempotency_keep_micros, pace))?;
    if pace.all {
        *expired(tally) = Some(Instant::now());
        clear_marks(&*tally.store)?;
    }
    Ok(rows)
}

/// Clears marks that are kept for a server that leads after this one, and that no transaction has cleared. So are
/// those of an earlier leader.
fn clear_marks(store: &dyn Store) -> Result<(), Failure> {
    let kept = store.marks();
    if kept.is_zero() {
        return Ok(());
    }
    loop {
        let old = store.outbox(kept + MARKS_MORE, None)?;
        if old.is_empty() {
            return Ok(());
        }
        store.clear_outbox(&old.iter().map(|mark| mark.batch).collect::<Vec<_>>())?;
    }
}

/// Another transaction had some of the rows first, and the others are left: the next step is soon, for a pause would let them grow.
fn again(done: Result<usize, StoreError>) -> Result<usize, Failure> {
    match done {
        Err(StoreError::Conflict(_)) => Ok(1),
        done => Ok(done?),
    }
}

fn expired(tally: &Tally) -> MutexGuard<'_, Option<Instant>> {
    tally.tasks.noted.expired.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long ago this server last found no outcome and no event that is to be forgotten, or that another server does it.
pub fn expiry_lag(tally: &Tally) -> Duration {
    expired(tally).map_or(Duration::ZERO, |last| last.elapsed())
}

/// How many requests and events one step forgets: twice as many after each step that was not enough.
#[derive(Debug)]
pub(crate) struct Pace {
    rows: usize,
    /// Whether the last step left none.
    all: bool,
}

impl Default for Pace {
    fn default() -> Self {
        Self { rows: STEP_ROWS, all: false }
    }
}

/// One step; how many rows that were. Requests and events are not forgotten while the clock is in doubt.
fn step(store: &dyn Store, clock: &Clock, keep_micros: i64, pace: &mut Pace) -> Result<usize, StoreError> {
    let old = clock.trusted().map(|now| (now.plus(-keep_micros), now.plus(-events::KEEP_MICROS)));
    let most = std::mem::take(pace).rows;
    if !store.lease_task(Task::Clean, LEASE)? {
        pace.all = true;
        return Ok(0);
    }
    let mut rows = 0;
    if let Some((before, events_before)) = old {
        let events = store.ledger().expire_events(events_before, most)?;
        let requests = store.expire_requests(before, most)?;
        pace.all = events.max(requests) < most;
        if !pace.all {
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
            assert!(!pace.all || left == 0, "{left} are left");
            left -= step(&store, &clock, 1, &mut pace).unwrap();
        }
        assert_eq!((left, pace.all), (0, true));
        assert_eq!(step(&store, &clock, 1, &mut pace).unwrap(), 0);
    }

    #[test]
    fn after_a_conflict_the_next_step_is_soon() {
        assert!(again(Err(StoreError::Conflict("deadlock".into()))).unwrap() > 0);
        assert!(again(Err(StoreError::Unavailable("away".into()))).is_err());
        assert_eq!(again(Ok(0)).unwrap(), 0);
    }
}
