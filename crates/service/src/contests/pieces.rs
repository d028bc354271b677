//! Work of a contest that takes more than one transaction: clearing applications, paying prizes, refunding fees.
//!
//! Each piece is bounded and names its start; the contest's row names the start of the next one. So a piece that is sent
//! twice, or by two servers, is done once, and any server may continue. A cleared application leaves no row, so the loop that
//! clears keeps its position in memory. Otherwise it would scan over tombstones again and again. Blocks.

use super::act::ask;
use super::acts::{Act, ActResult, ContestRequest};
use crate::failure::Failure;
use crate::tally::Tally;
use tally_rules::contest::record::ContestTask;
use tally_rules::contest::{ContestId, Payout, Record};

/// Rows of one transaction: other requests wait no longer than for a batch.
pub(crate) const PIECE: usize = 500;

/// Payouts without their numbers, which follow each other.
pub(crate) fn payouts(rows: Vec<(u32, Payout)>) -> Vec<Payout> {
    rows.into_iter().map(|(_, payout)| payout).collect()
}

/// Does the remaining pieces, from the contest as it was read; returns the contest after them.
pub(crate) fn go_on(tally: &Tally, id: &ContestId, mut seen: Record) -> Result<Record, Failure> {
    // The last player that this loop has cleared; no player applies any more.
    let mut cleared = None;
    loop {
        let ledger = tally.store.ledger();
        let act = match &seen.work {
            ContestTask::None => return Ok(seen),
            ContestTask::Clear => {
                let rows = ledger.first_applications(seen.no, cleared.as_ref(), PIECE)?;
                let last = rows.len() < PIECE;
                Act::Clear(rows, last)
            }
            ContestTask::Pay { done } => Act::Pay(*done, payouts(ledger.payouts(seen.no, *done, PIECE)?)),
            ContestTask::Refund { after } => {
                let rows = ledger.contest_members(seen.no, after.as_ref(), PIECE)?;
                let last = rows.len() < PIECE;
                Act::Refund(rows, last)
            }
        };
        let last = match &act {
            Act::Clear(rows, _) => rows.last().map(|(player, _)| player.clone()),
            _ => None,
        };
        let done = ask(tally, ContestRequest::by_clock(id, seen, act))?;
        cleared = last.filter(|_| !matches!(done.what, ActResult::Outdated));
        seen = *done.record;
    }
}
