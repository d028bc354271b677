//! Work of a contest that takes more than one transaction: clearing applications, determining and paying prizes, refunding fees.
//!
//! Each step is bounded and names its start; the contest's row names the start of the next one. So a step that is sent
//! twice, or by two servers, is done once, and any server may continue. A cleared application leaves no row, so the loop that
//! clears keeps its position in memory. Otherwise it would scan over tombstones again and again. Blocks.

use super::actions::{Action, ActionResult, ContestRequest};
use super::execute::submit;
use super::settle;
use crate::failure::Failure;
use crate::tally::Tally;
use tally_rules::contest::record::ContestTask;
use tally_rules::contest::{ContestId, ContestRecord, Payout};

/// Rows of one transaction: other requests wait no longer than for a batch.
pub(crate) const STEP_ROWS: usize = 500;

/// Payouts without their numbers, which follow each other.
pub(crate) fn payouts(rows: Vec<(u32, Payout)>) -> Vec<Payout> {
    rows.into_iter().map(|(_, payout)| payout).collect()
}

/// Does the remaining steps, from the contest as it was read; returns the contest after them.
pub(crate) fn run_remaining_steps(
    tally: &Tally,
    id: &ContestId,
    mut observed: ContestRecord,
) -> Result<ContestRecord, Failure> {
    // The last player that this loop has cleared; no player applies any more.
    let mut cleared = None;
    loop {
        let ledger = tally.store.ledger();
        let action = match &observed.work {
            ContestTask::None => return Ok(observed),
            ContestTask::Clear => {
                let rows = ledger.first_applications(observed.no, cleared.as_ref(), STEP_ROWS)?;
                let last = rows.len() < STEP_ROWS;
                Action::Clear(rows, last)
            }
            ContestTask::Determine => {
                let (payouts, first) = settle::payouts(tally, id, &observed)?;
                Action::Determine(payouts, first)
            }
            ContestTask::Pay { done } => {
                Action::Pay(*done, payouts(ledger.payouts(observed.no, *done, STEP_ROWS)?))
            }
            ContestTask::Refund { after } => {
                let rows = ledger.contest_members(observed.no, after.as_ref(), STEP_ROWS)?;
                let last = rows.len() < STEP_ROWS;
                Action::Refund(rows, last)
            }
        };
        let last = match &action {
            Action::Clear(rows, _) => rows.last().map(|(player, _)| player.clone()),
            _ => None,
        };
        let done = submit(tally, ContestRequest::by_clock(id, observed, action, tally.now())?)?;
        cleared = last.filter(|_| !matches!(done.result, ActionResult::Outdated));
        observed = *done.record;
    }
}
