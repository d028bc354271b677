//! Archiving past months of the ledger: a request names them in the catalog, and a background task writes and deletes.
//!
//! The request is one transaction, so it is audited and done once for its key. The task is that of any server of the store: the catalog
//! says how far each month is. It rests as long as it works. Not here: files, and reading them (`tally_store::archive`).

use crate::audit;
use crate::background::{Job, Next};
use crate::failure::{Failure, Fault};
use crate::servers;
use crate::tally::Tally;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use tally_rules::Origin;
use tally_rules::audit::{AuditAction, STORE};
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::instant::SECOND;
use tally_rules::ledger::Month;
use tally_rules::outcome::Outcome;
pub use tally_store::archive::ArchivedMonth;
use tally_store::archive::{ArchiveStep, MonthState, step, to_archive};
use tally_store::{LedgerReadSet, Loaded, ReadSet, ShardSet, StoreError, Task, WriteSet};

/// How long a month must be over: by then each of its transfers is committed, also one of a server whose clock is late.
const SETTLED_MICROS: i64 = 3_600 * SECOND;

/// Between two steps, beside the rest after each.
const STEP_PAUSE: Duration = Duration::from_millis(10);
/// Between two checks for something to do.
const IDLE_PAUSE: Duration = Duration::from_secs(5);
/// Between two checks for a month that the setting archives.
const KEEP_PAUSE: Duration = Duration::from_secs(60);
/// The task lease of a silent server. It is renewed while a month is written.
const LEASE: Duration = Duration::from_secs(40);
const RENEWED: Duration = Duration::from_secs(10);
/// After an attempt that failed: longer than the lease, so that another server, which may be able to, is next.
const RETRY: Duration = Duration::from_secs(60);
/// The longest rest while a month is written.
const REST_MAX: Duration = Duration::from_secs(1);
/// Transfers whose rows a step deletes, at least and at most.
const DELETED_MIN: usize = 500;
const DELETED_MAX: usize = 8_000;
/// A step that takes longer has deleted too much: others of the store wait for it.
const DELETED_TIME_MAX: Duration = Duration::from_millis(50);

/// How many transfers a step deletes: twice as many after each quick step, and half as many after one that was not.
#[derive(Debug)]
struct Pace(usize);

impl Pace {
    fn after(&mut self, took: Duration) {
        let next = if took < DELETED_TIME_MAX { self.0 * 2 } else { self.0 / 2 };
        self.0 = next.clamp(DELETED_MIN, DELETED_MAX);
    }
}

/// An attempt of this server to archive a month that failed.
#[derive(Clone, Debug)]
pub struct ArchiveFailure {
    /// The month.
    pub month: Month,
    /// Why.
    pub reason: String,
    at: Instant,
}

/// The last attempt of this server, if it failed and no other one has done it since.
pub fn failure(tally: &Tally) -> Option<ArchiveFailure> {
    tally.tasks.noted.archive_failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

fn note(tally: &Tally, failure: Option<ArchiveFailure>) {
    *tally.tasks.noted.archive_failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
}

/// The month that follows all that are over.
pub fn first_open(tally: &Tally) -> Result<Month, Failure> {
    let in_doubt =
        || Fault::StoreUnavailable("the clock is in doubt, so no month is known to be over".into());
    let now = tally.trusted_now().ok_or_else(in_doubt)?;
    Ok(Month::of(now.plus(-SETTLED_MICROS)))
}

/// Whether there is a folder for archives: a store in a database needs a setting for it.
pub fn has_folder(tally: &Tally) -> bool {
    tally.store.ledger().archives().folder().is_ok()
}

/// Every month of the catalog, oldest first. Blocks on the store.
pub fn list(tally: &Tally) -> Result<Vec<(Month, ArchivedMonth)>, Failure> {
    Ok(tally.store.ledger().archived_months()?)
}

/// Archives the months before `end`, which is at most [`first_open`], in a store that [has a folder](has_folder). Returns whether it was a replay. Blocks on the store.
pub fn request(
    tally: &Tally,
    end: Month,
    (origin, idempotency): (&Origin, Option<&IdempotencyKey>),
) -> Result<bool, Failure> {
    let months = to_archive(tally.store.ledger(), end)?;
    let time = tally.clock.read();
    let audited = audit::begin(origin.clone(), time.later())?;
    let plan = plan(&months, idempotency);
    let stored = servers::again(|| {
        tally.once(&plan, idempotency, time, |loaded, changes| {
            name(&months, loaded, changes);
            let detail = format!("before {end}").into();
            changes.audit.push(audited.row(AuditAction::LedgerArchived, STORE, Some(detail)));
            Ok(Outcome::Removed)
        })
    })?;
    // The next attempt is now.
    note(tally, None);
    tally.tasks.archives.wake();
    Ok(stored.is_some())
}

fn plan(months: &[Month], idempotency: Option<&IdempotencyKey>) -> ReadSet {
    let ledger = LedgerReadSet { archives: months.to_vec(), ..LedgerReadSet::default() };
    let requests = idempotency.iter().map(|one| one.key.clone()).collect();
    ReadSet { requests, shards: ShardSet::of(0), ledger, ..ReadSet::default() }
}

/// Adds the months that the catalog does not have.
fn name(months: &[Month], loaded: &Loaded, changes: &mut WriteSet) {
    let absent = months.iter().zip(&loaded.ledger.archives).filter(|(_, row)| row.is_none());
    changes.ledger.archives.extend(absent.map(|(month, _)| (*month, ArchivedMonth::requested())));
}

/// Starts the background task.
pub(crate) fn start(tally: &Arc<Tally>) -> Result<(), Failure> {
    let (mut archiving, mut pace) = (Job::resting("archive the ledger", 1), Pace(DELETED_MIN));
    let mut keeping = Job::new("find months of the ledger to archive", KEEP_PAUSE);
    tally.tasks.archives.start("archives", tally, Next::After(STEP_PAUSE), move |tally| {
        if let Some(keep) = tally.settings.archive_keep {
            keeping.run(|| archive_old(tally, keep));
        }
        let has_more = archiving.run(|| do_step(tally, &mut pace)).unwrap_or(false);
        Next::After(if has_more { STEP_PAUSE } else { IDLE_PAUSE })
    })
}

/// Names the months in the catalog that are older than the setting keeps.
fn archive_old(tally: &Tally, keep: u32) -> Result<(), Failure> {
    if tally.trusted_now().is_none() || !tally.store.lease_task(Task::Archives, LEASE)? {
        return Ok(());
    }
    tally.store.ledger().archives().folder()?;
    let months = to_archive(tally.store.ledger(), first_open(tally)?.back(keep))?;
    let plan = plan(&months, None);
    if months.is_empty() {
        return Ok(());
    }
    servers::again(|| {
        let write = |loaded: &Loaded| {
            let mut changes = WriteSet::default();
            name(&months, loaded, &mut changes);
            changes
        };
        Ok(tally.store.run(&plan, &mut |loaded| write(loaded)).map(drop)?)
    })
}

/// One step; whether there may be more. Blocks.
fn do_step(tally: &Tally, pace: &mut Pace) -> Result<bool, Failure> {
    let months = tally.store.ledger().archived_months()?;
    let Some((month, _)) = months.into_iter().find(|(_, row)| row.state != MonthState::Done) else {
        note(tally, None);
        return Ok(false);
    };
    if failure(tally).is_some_and(|failed| failed.at.elapsed() < RETRY) {
        return Ok(false);
    }
    // Another server does it.
    if !tally.store.lease_task(Task::Archives, LEASE)? {
        note(tally, None);
        return Ok(false);
    }
    let (mut worked, mut renewed) = (Instant::now(), Instant::now());
    let mut until = || {
        std::thread::sleep(worked.elapsed().min(REST_MAX));
        if renewed.elapsed() >= RENEWED {
            renewed = Instant::now();
            // An attempt that lost its lease finds out when it records its files.
            let _ = tally.store.lease_task(Task::Archives, LEASE);
        }
        worked = Instant::now();
        !tally.tasks.stops.load(Ordering::Relaxed)
    };
    let (begun, deleted_max) = (Instant::now(), std::mem::replace(&mut pace.0, DELETED_MIN));
    match step(&*tally.store, deleted_max, &mut until) {
        // Another transaction was first. What is left is found again.
        Err(StoreError::Conflict(_)) => Ok(true),
        // An unavailable store has its own alerts, and is soon back.
        Err(error @ (StoreError::Unavailable(_) | StoreError::InDoubt { .. })) => Err(error.into()),
        Err(error) => {
            note(tally, Some(ArchiveFailure { month, reason: error.to_string(), at: Instant::now() }));
            Err(error.into())
        }
        Ok(done) => {
            note(tally, None);
            Ok(match done {
                ArchiveStep::Nothing | ArchiveStep::Stopped => false,
                ArchiveStep::Wrote(_) => true,
                ArchiveStep::Deleted(_) => {
                    pace.0 = deleted_max;
                    pace.after(begun.elapsed());
                    true
                }
                ArchiveStep::Done(month) => {
                    tracing::info!(%month, "a month of the ledger is archived");
                    true
                }
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_steps_grow_and_slow_ones_shrink() {
        let mut pace = Pace(DELETED_MIN);
        let mut after = |took| {
            pace.after(took);
            pace.0
        };
        let quick = [(); 5].map(|()| after(DELETED_TIME_MAX / 2));
        assert_eq!(quick, [1_000, 2_000, 4_000, 8_000, 8_000]);
        let slow = [(); 5].map(|()| after(DELETED_TIME_MAX));
        assert_eq!(slow, [4_000, 2_000, 1_000, 500, 500]);
    }
}
