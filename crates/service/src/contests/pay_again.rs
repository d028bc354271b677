//! Paying again, by hand, the prizes and fees that a contest could not pay: a wallet was full, or a member closed. Blocks.
//!
//! Each page of them is one action, and each action changes the contest's revision, so a row that two callers find is paid once. What
//! still cannot be paid stays as it is. Closed periods go by the same pages (`periods::pay_again`). Not here: what earlier releases
//! left unpaid by mistake (`repay`).

use super::actions::{Action, ContestDone};
use super::bounded_steps::STEP_ROWS;
use super::execute::{ContestActor, Planned, execute_at, find};
use crate::failure::Failure;
use crate::tally::Tally;
use tally_rules::contest::member::UnpaidReason;
use tally_rules::contest::{ContestId, ContestRecord, ContestTrigger, Payout, state};
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::ledger::Uuid;

/// Tries every unpaid prize or fee once more. The rows of the first page are under the idempotency key; a retry goes on with what
/// is unpaid then.
pub fn pay_again(
    tally: &Tally,
    id: &ContestId,
    actor: &ContestActor,
    idempotency: Option<&IdempotencyKey>,
) -> Result<ContestDone, Failure> {
    let _running = idempotency.map(|one| tally.begin(&one.key)).transpose()?;
    let no = find(tally, id)?.no;
    let step = |from: u32, idempotency: Option<&IdempotencyKey>| {
        let plan = |record: &ContestRecord| -> Planned {
            let by = actor.by(record, ContestTrigger::Repay, None)?;
            // Neither state is left again.
            state::transition(record.state, ContestTrigger::Repay, by)?;
            Ok((by, Action::Repay(unpaid(tally, record.no, from)?.0)))
        };
        execute_at(tally, id, (&actor.origin, idempotency), None, plan)
    };
    let (mut done, last) = in_pages(tally, no, idempotency, step)?;
    if let Some(last) = last {
        done.record = last.record;
    }
    Ok(done)
}

/// Does a step for each page of unpaid rows under a number, with the number that the page begins with. The first step is under the
/// idempotency key, also without such rows. Returns the results of the first and the last step.
pub(crate) fn in_pages<T>(
    tally: &Tally,
    no: Uuid,
    idempotency: Option<&IdempotencyKey>,
    step: impl Fn(u32, Option<&IdempotencyKey>) -> Result<T, Failure>,
) -> Result<(T, Option<T>), Failure> {
    let mut next = unpaid(tally, no, 0)?.1;
    let (first, mut last) = (step(0, idempotency)?, None);
    while let Some(from) = next {
        let (rows, after) = unpaid(tally, no, from)?;
        if !rows.is_empty() {
            last = Some(step(from, None)?);
        }
        next = after;
    }
    Ok((first, last))
}

/// What the audit log says of payments; `None` if there were none.
pub(crate) fn detail_of(became: &[Result<(), UnpaidReason>]) -> Option<String> {
    match became.iter().filter(|row| row.is_ok()).count() {
        0 => None,
        1 => Some("1 payment".into()),
        paid => Some(format!("{paid} payments")),
    }
}

/// Payouts with their numbers.
pub(crate) type Rows = Vec<(u32, Payout)>;

/// The unpaid rows of one read from that number on, and the start of the next read.
pub(crate) fn unpaid(tally: &Tally, no: Uuid, from: u32) -> Result<(Rows, Option<u32>), Failure> {
    let mut rows = tally.store.ledger().payouts(no, from, STEP_ROWS)?;
    let next = rows.last().filter(|_| rows.len() == STEP_ROWS).and_then(|(last, _)| last.checked_add(1));
    let may_be_paid = |why: UnpaidReason| why != UnpaidReason::Reversed;
    rows.retain(|(_, row)| row.paid.is_some_and(|paid| paid.is_err_and(may_be_paid)));
    Ok((rows, next))
}
