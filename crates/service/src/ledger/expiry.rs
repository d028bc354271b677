//! Ending holds and promotional credit at their expiry: the background task reads what is due every second and puts it into the lane.
//!
//! Several servers may find the same hold; the ledger ends it once. A server that was down ends overdue holds when it
//! starts. Not here: rejecting the capture of a hold that is due and not yet ended; the rule does that by its time.

use super::LedgerSettings;
use super::request::{LedgerRequest, Needs};
use super::state::BatchState;
use crate::background::{Job, Next};
use crate::failure::Failure;
use crate::tally::Tally;
use std::sync::Arc;
use std::time::Duration;
use tally_rules::ledger::{HoldId, TransferId, Uuid, WalletKey};
use tally_rules::{Origin, Rejection};
use tally_store::ReadSet;

/// The pause between two rounds.
const PAUSE: Duration = Duration::from_secs(1);

/// Holds, or wallets, of one request to the lane.
const HOLDS: usize = 200;

/// Holds that were due when they were read.
struct DueHolds(Vec<(HoldId, WalletKey)>);

impl LedgerRequest for DueHolds {
    type Answer = ();

    fn needs(&self) -> Needs {
        Needs { rows: self.0.len(), ..Needs::default() }
    }

    fn origin(&self) -> Origin {
        Origin::BACKGROUND
    }

    fn read(&self, plan: &mut ReadSet, _ids: &[Uuid], _settings: &LedgerSettings) {
        plan.ledger.holds.extend(self.0.iter().map(|(hold, _)| *hold));
        plan.ledger.wallets.extend(self.0.iter().map(|(_, wallet)| *wallet));
    }

    fn decide(&self, state: &mut BatchState<'_>, _ids: &[Uuid]) -> Result<(), Rejection> {
        for (hold, _) in &self.0 {
            state.book.expire(*hold, state.time.now);
        }
        Ok(())
    }
}

/// Wallets with credit that was due when they were read.
struct DueCredits(Vec<WalletKey>);

impl LedgerRequest for DueCredits {
    type Answer = ();

    fn needs(&self) -> Needs {
        Needs { rows: self.0.len(), ids: self.0.len(), ..Needs::default() }
    }

    fn origin(&self) -> Origin {
        Origin::BACKGROUND
    }

    fn read(&self, plan: &mut ReadSet, _ids: &[Uuid], _settings: &LedgerSettings) {
        plan.ledger.wallets.extend(&self.0);
    }

    fn decide(&self, state: &mut BatchState<'_>, ids: &[Uuid]) -> Result<(), Rejection> {
        for (wallet, id) in self.0.iter().zip(ids) {
            state.book.expire_credit(TransferId(*id), *wallet);
        }
        Ok(())
    }
}

/// Starts the background task.
pub(crate) fn start(tally: &Arc<Tally>) -> Result<(), Failure> {
    let mut job = Job::new("end expired holds", Duration::ZERO);
    tally.tasks.holds.start("holds", tally, Next::After(Duration::ZERO), move |tally| {
        let is_full = job.run(|| end_due(tally)) == Some(true);
        Next::After(if is_full { Duration::ZERO } else { PAUSE })
    })
}

/// Ends holds that are due; returns whether there may be more. A failed one is found again. Blocks.
pub(crate) fn end_due(tally: &Tally) -> Result<bool, Failure> {
    // An ended hold cannot be restored, so a clock in doubt ends none.
    let Some(now) = tally.trusted_now() else { return Ok(false) };
    let due = tally.store.ledger().due_holds(now, HOLDS)?;
    let is_full = due.len() == HOLDS;
    if !due.is_empty() {
        tally.ledger.ask_blocking(DueHolds(due))?;
    }
    let credits = tally.store.ledger().due_credits(now, HOLDS)?;
    let has_more = credits.len() == HOLDS;
    if !credits.is_empty() {
        tally.ledger.ask_blocking(DueCredits(credits))?;
    }
    Ok(is_full || has_more)
}
