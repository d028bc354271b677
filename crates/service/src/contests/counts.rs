//! What is counted of contests, for whoever watches the service.
//!
//! How many are in which state is asked of the store every few seconds, by an index and with a bound, and kept: a scrape
//! reads no table and does not wait for a database that is away. What this server has done is counted when it is answered, so a
//! retry, or another server that does the same, counts nothing. Not here: how it is shown.

use super::command::{ContestDone, What};
use crate::failure::Failure;
use crate::tally::Tally;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use tally_rules::contest::State;
use tally_rules::contest::member::UnpaidReason;

/// Contests that are counted of each state.
pub const COUNTED_MAX: usize = 10_000;

/// Contests that are counted of those with something due.
pub const DUE_MAX: usize = 1_000;

/// What there is, a few seconds ago.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// How many there are in each state.
    pub states: Vec<(State, usize)>,
    /// How many have something under way, or something that is due by the clock.
    pub due: usize,
}

/// What became of payments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Payments {
    /// Made.
    pub paid: u64,
    /// Not made, by the reason.
    pub unpaid: Vec<(UnpaidReason, u64)>,
}

/// The counts of this server.
#[derive(Debug, Default)]
pub struct Counts {
    standing: Mutex<Option<Standing>>,
    entered: [AtomicU64; State::ALL.len()],
    prizes: Paid,
    refunds: Paid,
}

#[derive(Debug, Default)]
struct Paid {
    paid: AtomicU64,
    unpaid: [AtomicU64; UnpaidReason::ALL.len()],
}

impl Counts {
    /// Notes what an act has done. Payments are prizes, or fees that are paid back.
    pub(super) fn note(&self, done: &ContestDone, of_fees: bool) {
        if done.turned
            && let Some(at) = State::ALL.iter().position(|state| *state == done.record.state)
        {
            self.entered[at].fetch_add(1, Ordering::Relaxed);
        }
        if let What::Paid(rows) = &done.what {
            let of = if of_fees { &self.refunds } else { &self.prizes };
            rows.iter().for_each(|row| of.note(*row));
        }
    }

    /// Asks the store how many there are.
    pub(super) fn look(&self, tally: &Tally) {
        let found = standing(tally);
        if let Err(failure) = &found {
            tracing::debug!(%failure, "count contests; it is tried again");
        }
        *self.standing.lock().unwrap_or_else(PoisonError::into_inner) = found.ok();
    }

    /// How many there were a few seconds ago; nothing where the store could not be asked.
    pub fn standing(&self) -> Option<Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How often this server has brought one into each state.
    pub fn entered(&self) -> Vec<(State, u64)> {
        let of = |(state, count): (&State, &AtomicU64)| (*state, count.load(Ordering::Relaxed));
        State::ALL.iter().zip(&self.entered).map(of).collect()
    }

    /// What became of prizes here.
    pub fn prizes(&self) -> Payments {
        self.prizes.now()
    }

    /// What became of fees here that were to be paid back.
    pub fn refunds(&self) -> Payments {
        self.refunds.now()
    }
}

impl Paid {
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
        Payments {
            paid: self.paid.load(Ordering::Relaxed),
            unpaid: UnpaidReason::ALL.iter().zip(&self.unpaid).map(of).collect(),
        }
    }
}

fn standing(tally: &Tally) -> Result<Standing, Failure> {
    let ledger = tally.store.ledger();
    let counts = ledger.count_contests(COUNTED_MAX)?;
    let due = ledger.due_contests(tally.now(), None, DUE_MAX)?.len();
    Ok(Standing { states: State::ALL.iter().copied().zip(counts).collect(), due })
}
