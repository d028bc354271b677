//! Counts of contests, for monitoring.
//!
//! A query counts the states in the store every few seconds, by an index and with a bound. So a scrape reads no table and does
//! not wait for a database that is unavailable. Actions of this server count when their reply is sent: a retry, or the same action on
//! another server, does not count. Not here: how it is shown.

use super::actions::{ActionResult, ContestDone};
use crate::failure::Failure;
use crate::tally::Tally;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use tally_rules::contest::ContestState;
use tally_rules::contest::member::UnpaidReason;

/// Contests that are counted of each state.
pub const COUNTED_MAX: usize = 10_000;

/// Contests that are counted of those with something due.
pub const DUE_MAX: usize = 1_000;

/// Contests by state, a few seconds ago.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateCounts {
    /// How many there are in each state.
    pub states: Vec<(ContestState, usize)>,
    /// How many have something under way, or something that is due by the clock.
    pub due: usize,
}

/// Outcomes of payments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Payments {
    /// Payments that were made.
    pub paid: u64,
    /// Payments that were not made, by the reason.
    pub unpaid: Vec<(UnpaidReason, u64)>,
}

/// The counts of this server.
#[derive(Debug, Default)]
pub struct ContestCounts {
    state_counts: Mutex<Option<StateCounts>>,
    entered: [AtomicU64; ContestState::ALL.len()],
    prizes: PayoutCounts,
    refunds: PayoutCounts,
}

#[derive(Debug, Default)]
struct PayoutCounts {
    paid: AtomicU64,
    unpaid: [AtomicU64; UnpaidReason::ALL.len()],
}

impl ContestCounts {
    /// Counts what an action has done. Payments are prizes, or fees that are paid back.
    pub(super) fn note(&self, done: &ContestDone, of_fees: bool) {
        if done.state_changed
            && let Some(at) = ContestState::ALL.iter().position(|state| *state == done.record.state)
        {
            self.entered[at].fetch_add(1, Ordering::Relaxed);
        }
        if let ActionResult::Paid(rows) = &done.result {
            let of = if of_fees { &self.refunds } else { &self.prizes };
            rows.iter().for_each(|row| of.note(*row));
        }
    }

    /// Counts the states in the store.
    pub(super) fn refresh(&self, tally: &Tally) {
        let found = state_counts(tally);
        if let Err(failure) = &found {
            tracing::debug!(%failure, "count contests; it is tried again");
        }
        *self.state_counts.lock().unwrap_or_else(PoisonError::into_inner) = found.ok();
    }

    /// The states a few seconds ago; `None` if the store was unavailable.
    pub fn state_counts(&self) -> Option<StateCounts> {
        self.state_counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How often this server has brought one into each state.
    pub fn entered(&self) -> Vec<(ContestState, u64)> {
        let of = |(state, count): (&ContestState, &AtomicU64)| (*state, count.load(Ordering::Relaxed));
        ContestState::ALL.iter().zip(&self.entered).map(of).collect()
    }

    /// Outcomes of prizes on this server.
    pub fn prizes(&self) -> Payments {
        self.prizes.now()
    }

    /// Outcomes of refunds on this server.
    pub fn refunds(&self) -> Payments {
        self.refunds.now()
    }
}

impl PayoutCounts {
    fn note(&self, row: Result<(), UnpaidReason>) {
        let count = match row {
            Ok(()) => &self.paid,
            Err(why) => {
                let at = UnpaidReason::ALL.iter().position(|one| *one == why);
                &self.unpaid[at.expect("every reason is in the list of all")]
            }
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    fn now(&self) -> Payments {
        let of = |(why, count): (&UnpaidReason, &AtomicU64)| (*why, count.load(Ordering::Relaxed));
        // Contests pay members only.
        let rows =
            UnpaidReason::ALL.iter().zip(&self.unpaid).filter(|(why, _)| **why != UnpaidReason::NoMember);
        Payments { paid: self.paid.load(Ordering::Relaxed), unpaid: rows.map(of).collect() }
    }
}

fn state_counts(tally: &Tally) -> Result<StateCounts, Failure> {
    let ledger = tally.store.ledger();
    let counts = ledger.count_contests(COUNTED_MAX)?;
    let due = ledger.due_contests(tally.now(), None, DUE_MAX)?.len();
    Ok(StateCounts { states: ContestState::ALL.iter().copied().zip(counts).collect(), due })
}
