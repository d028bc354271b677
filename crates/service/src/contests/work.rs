//! What a contest sets off and takes more than one transaction: clearing applications, paying prizes, paying fees back.
//!
//! Each piece is bounded and says where it begins; the contest's row says where the next one does, so a piece that is done
//! twice, or by two servers, is done once. Whoever finds it begun may go on with it. What is cleared is gone, so its row says
//! nothing; whoever clears remembers where it is, because what it has removed would have to be passed over again and again.
//! Blocks.

use super::act::ask;
use super::command::{Act, ContestOrder, What};
use crate::failure::Failure;
use crate::tally::Tally;
use tally_rules::contest::record::ContestTask;
use tally_rules::contest::{ActorKind, ContestId, Payout, Record};

/// Rows of one transaction: it delays others by no more than a batch of theirs.
pub(crate) const PIECE: usize = 500;

/// Without their numbers, which follow each other.
pub(crate) fn payouts(rows: Vec<(u32, Payout)>) -> Vec<Payout> {
    rows.into_iter().map(|(_, payout)| payout).collect()
}

/// Goes on from the contest as it was seen until nothing is under way; gives it then. Each piece answers how it stands.
pub(crate) fn go_on(tally: &Tally, id: &ContestId, mut seen: Record) -> Result<Record, Failure> {
    // Of whom this loop has cleared; nobody applies any more. Whoever begins anew begins with the first.
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
        let (id, from, boards) = (id.clone(), Some(Box::new(seen)), Vec::new());
        let (by, at, identity) = (ActorKind::Clock, None, None);
        let done = ask(tally, ContestOrder { id, seen: from, by, at, act, boards, identity })?;
        cleared = last.filter(|_| !matches!(done.what, What::Stale));
        seen = *done.record;
    }
}
