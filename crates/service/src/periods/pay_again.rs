//! Paying again, by hand, the prizes of a closed period that could not be paid: a wallet was full, a member closed, or the winner no
//! member. Blocks.
//!
//! It goes by the pages of contests (`contests::pay_again`). A winner that is a member by now gets the prize. What still cannot be paid
//! stays as it is. Not here: prizes that had no turn yet, which the scheduler pays (`prizes`).

use super::payments::{PaymentAction, PaymentCaller, PaymentDone, PaymentRequest};
use super::prizes::members_of;
use super::view::View;
use crate::audit;
use crate::contests::execute::retry;
use crate::contests::pay_again::{Rows, in_pages, unpaid};
use crate::failure::Failure;
use crate::ledger::currencies::each_payout;
use crate::tally::Tally;
use tally_rules::Origin;
use tally_rules::contest::Payout;
use tally_rules::contest::member::UnpaidReason;
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::period::PeriodPayment;
use tally_store::WindowKey;
use tally_store::plan::ALL_TIME;

/// How many prizes of a closed period are paid, and why the others are not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrizeCounts {
    /// Whether all of them had their turn; false if the period has none.
    pub settled: bool,
    /// Paid ones.
    pub paid: u64,
    /// Those that had no turn yet.
    pub pending: u64,
    /// Those of closed members.
    pub member_closed: u64,
    /// Those that do not fit into a wallet.
    pub limit_exceeded: u64,
    /// Those of winners that are no members.
    pub no_member: u64,
}

/// Tries every unpaid prize of a period once more. The rows of the first page are under the idempotency key; a retry goes on with what
/// is unpaid then. Returns what became of all prizes, and whether it was a replay.
pub fn pay_again(
    tally: &Tally,
    view: &View,
    origin: &Origin,
    idempotency: Option<&IdempotencyKey>,
) -> Result<(PrizeCounts, bool), Failure> {
    let _running = idempotency.map(|one| tally.begin(&one.key)).transpose()?;
    let key = WindowKey { board: view.board.no, window: view.window().unwrap_or(ALL_TIME) };
    let payment = || tally.store.ledger().payment(key);
    let step = |from: u32, idempotency: Option<&IdempotencyKey>| {
        retry(|| {
            let seen = payment()?;
            let rows = seen.as_ref().map(|payment| Ok::<_, Failure>(unpaid(tally, payment.no, from)?.0));
            let rows = with_members(tally, rows.transpose()?.unwrap_or_default())?;
            let audited = audit::begin(origin.clone(), tally.now())?;
            let caller = Some(PaymentCaller { audited, idempotency: idempotency.cloned() });
            let action = PaymentAction::Repay(seen, rows);
            let done = tally.ledger.ask_blocking(PaymentRequest { key, action, caller })?;
            Ok((done != PaymentDone::Outdated).then_some(done))
        })
    };
    let first = match payment()? {
        Some(begun) => in_pages(tally, begun.no, idempotency, step)?.0,
        // Without prizes there is nothing to pay, and the request is known all the same.
        None => step(0, idempotency)?,
    };
    let counts = payment()?.map(|payment| counts(tally, &payment)).transpose()?;
    Ok((counts.unwrap_or_default(), first == PaymentDone::Replayed))
}

/// Unpaid rows, with the members that winners have become; without those that still are none.
fn with_members(tally: &Tally, rows: Rows) -> Result<Rows, Failure> {
    let others = rows.iter().map(|(_, row)| row).filter(|row| !row.has_member());
    let found = members_of(tally, others.map(|row| &row.player))?;
    let with_member = |(no, row): (u32, Payout)| {
        let member = if row.has_member() { row.member } else { *found.get(&row.player)? };
        Some((no, Payout { member, ..row }))
    };
    Ok(rows.into_iter().filter_map(with_member).collect())
}

fn counts(tally: &Tally, payment: &PeriodPayment) -> Result<PrizeCounts, Failure> {
    let mut counts = PrizeCounts { settled: !payment.is_open(), ..PrizeCounts::default() };
    each_payout(&*tally.store, payment.no, 0, |_, row| {
        let count = match row.paid {
            None => &mut counts.pending,
            Some(Ok(_)) => &mut counts.paid,
            Some(Err(UnpaidReason::MemberClosed)) => &mut counts.member_closed,
            Some(Err(UnpaidReason::LimitExceeded)) => &mut counts.limit_exceeded,
            Some(Err(UnpaidReason::NoMember)) => &mut counts.no_member,
            // Of fees only.
            Some(Err(UnpaidReason::Reversed)) => return,
        };
        *count += 1;
    })?;
    Ok(counts)
}
