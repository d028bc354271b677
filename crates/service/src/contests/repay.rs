//! Prizes and fees that an earlier release left unpaid by mistake. It took every rejection for a closed member, also that of a
//! currency that was not configured. Each start pays such rows until none is left, and logs what it finds; `owed` checks once
//! more. Blocks.
//!
//! A refund reaches closed members, so `member_closed` is never a reason against one. A prize stays unpaid if its member is
//! closed now, because the store does not know whether it was closed before. Every payment of such rows changes its contest's
//! revision or its period's instant, so a row that two servers find is paid once. Not here: rows that were not processed yet
//! (`bounded_steps`).

use super::actions::{Action, ActionResult};
use super::bounded_steps::STEP_ROWS;
use super::execute::{execute_at, find};
use crate::failure::Failure;
use crate::periods::payments::{PaymentAction, PaymentRequest};
use crate::tally::Tally;
use tally_rules::Origin;
use tally_rules::contest::member::UnpaidReason;
use tally_rules::contest::{ActorKind, ContestId, ContestRecord, ContestState, Payout};
use tally_rules::ledger::{Currency, Uuid, Wallet};
use tally_store::WindowKey;

/// The key in the store that records that there are no such rows.
const CHECKED_META: &str = "unpaid_checked";

/// The stored value.
const CHECKED: &[u8] = b"1";

/// Contests or payments of one read.
const PAGE: usize = 500;

/// Rows of one read that are to be paid.
#[derive(Default)]
struct Wrong {
    rows: Vec<(u32, Payout)>,
    /// In currencies that are not configured now.
    left: usize,
    /// The start of the next read.
    next: Option<u32>,
}

/// The result for one contest or period.
#[derive(Default)]
struct Found {
    paid: usize,
    left: usize,
}

/// Pays every such row.
pub(crate) fn repay_all(tally: &Tally) {
    if let Err(failure) = find_unpaid(tally) {
        tracing::warn!(%failure, "search for prizes that were left unpaid by mistake; the next start tries it again");
    }
}

fn find_unpaid(tally: &Tally) -> Result<(), Failure> {
    if tally.store.meta(CHECKED_META)?.is_some_and(|known| known == CHECKED) {
        return Ok(());
    }
    if of_contests(tally)? + of_periods(tally)? == 0 {
        tally.store.set_meta(CHECKED_META, CHECKED)?;
    }
    Ok(())
}

fn of_contests(tally: &Tally) -> Result<usize, Failure> {
    let mut left = 0;
    for state in [ContestState::Settled, ContestState::Cancelled] {
        let mut after = None::<ContestId>;
        loop {
            let page = tally.store.ledger().contests(Some(state), after.as_ref(), PAGE)?;
            for (id, _) in page.iter().filter(|(_, record)| record.members > 0) {
                left += all_of_contest(tally, id)?;
            }
            if page.len() < PAGE {
                break;
            }
            after = page.into_iter().next_back().map(|(id, _)| id);
        }
    }
    Ok(left)
}

/// Pays the wrong rows of a contest; returns the number of payments that are left, in currencies that are not configured now.
pub(crate) fn all_of_contest(tally: &Tally, id: &ContestId) -> Result<usize, Failure> {
    let found = each(tally, find(tally, id)?.no, |from| of_contest(tally, id, from))?;
    found.log("contest", id.as_str());
    Ok(found.left)
}

/// The same from that number on, in one read.
fn of_contest(tally: &Tally, id: &ContestId, from: u32) -> Result<usize, Failure> {
    let rows = |record: &ContestRecord| Ok::<_, Failure>(wrong(tally, record.no, from)?.rows);
    if rows(&find(tally, id)?)?.is_empty() {
        return Ok(0);
    }
    let background = (&Origin::BACKGROUND, None);
    let plan = |record: &ContestRecord| Ok((ActorKind::Clock, Action::Repay(rows(record)?)));
    let done = execute_at(tally, id, background, None, plan)?;
    Ok(if let ActionResult::Paid(became) = done.result { became.len() } else { 0 })
}

fn of_periods(tally: &Tally) -> Result<usize, Failure> {
    let (mut left, mut after) = (0, None);
    loop {
        let page = tally.store.ledger().payments(false, after, PAGE)?;
        for key in &page {
            left += all_of_period(tally, *key)?;
        }
        after = page.last().copied();
        if page.len() < PAGE {
            return Ok(left);
        }
    }
}

/// Pays the wrong rows of a period.
pub(crate) fn all_of_period(tally: &Tally, key: WindowKey) -> Result<usize, Failure> {
    let Some(payment) = tally.store.ledger().payment(key)? else { return Ok(0) };
    let found = each(tally, payment.no, |from| of_period(tally, key, from))?;
    found.log("period", &format!("{}/{}", payment.board.as_str(), payment.period));
    Ok(found.left)
}

/// The same from that number on, in one read.
fn of_period(tally: &Tally, key: WindowKey, from: u32) -> Result<usize, Failure> {
    let Some(payment) = tally.store.ledger().payment(key)? else { return Ok(0) };
    let rows = wrong(tally, payment.no, from)?.rows;
    let count = rows.len();
    if count > 0 {
        tally
            .ledger
            .ask_blocking(PaymentRequest::of_server(key, PaymentAction::Repay(Some(payment), rows)))?;
    }
    Ok(count)
}

/// Reads the rows under a number page by page, and pays those of each page.
fn each(tally: &Tally, no: Uuid, pay: impl Fn(u32) -> Result<usize, Failure>) -> Result<Found, Failure> {
    let (mut found, mut from) = (Found::default(), Some(0));
    while let Some(place) = from {
        let page = wrong(tally, no, place)?;
        if !page.rows.is_empty() {
            found.paid += pay(place)?;
        }
        found.left += page.left;
        from = page.next;
    }
    Ok(found)
}

/// The wrong rows of one read from that number on.
fn wrong(tally: &Tally, no: Uuid, from: u32) -> Result<Wrong, Failure> {
    let page = tally.store.ledger().payouts(no, from, STEP_ROWS)?;
    let next = page.last().filter(|_| page.len() == STEP_ROWS).and_then(|(place, _)| place.checked_add(1));
    let mut wrong = Wrong { next, ..Wrong::default() };
    let currencies = &tally.settings.ledger.currencies;
    let is_open = |(currency, wallet): &(Currency, Wallet)| *currency == currencies.home() && !wallet.closed;
    for (place, row) in page {
        if row.paid != Some(Err(UnpaidReason::MemberClosed)) {
            continue;
        }
        let may_be_paid = row.rank == 0 || tally.store.ledger().wallets_of(row.member)?.iter().any(is_open);
        match (may_be_paid, currencies.digits(row.currency)) {
            (true, Some(_)) => wrong.rows.push((place, row)),
            (true, None) => wrong.left += 1,
            (false, _) => {}
        }
    }
    Ok(wrong)
}

impl Found {
    fn log(&self, what: &'static str, name: &str) {
        if self.paid > 0 {
            tracing::warn!(
                name,
                rows = self.paid,
                "an earlier release left prizes or fees of this {what} unpaid as `member_closed`, and the members are not \
                 closed: they have their turn again"
            );
        }
        if self.left > 0 {
            tracing::error!(
                name,
                rows = self.left,
                "an earlier release left prizes or fees of this {what} unpaid, in a currency that is not among \
                 `currencies`: add it, and the next start pays them"
            );
        }
    }
}
