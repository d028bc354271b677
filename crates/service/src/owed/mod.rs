//! What contests and periods owe and have not paid: stored prizes, and fees to pay back.
//!
//! Lists are read a page at a time, by a scan that costs a bounded number of reads (`scan`). Blocks. Not here: amounts that are
//! not stored yet, such as the prizes of a contest before it is settled.

mod scan;

use crate::contests::repay;
use crate::damaged::CorruptRow;
use crate::failure::Failure;
use crate::tally::Tally;
pub use scan::DebtPosition;
use scan::{DebtScan, Key};
use std::fmt;
use tally_rules::contest::member::UnpaidReason;
use tally_rules::contest::{ContestId, ContestRecord, Payout};
use tally_rules::ledger::{Currency, MemberId};
use tally_rules::{BoardId, PlayerId};

/// What owes a payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Debtor {
    /// A contest with its name.
    Contest(ContestId),
    /// A closed period of a leaderboard.
    Period {
        /// The leaderboard that has the period.
        board: BoardId,
        /// The period's name.
        period: String,
    },
}

impl fmt::Display for Debtor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Contest(id) => write!(f, "contest {}", id.as_str()),
            Self::Period { board, period } => write!(f, "period {}/{period}", board.as_str()),
        }
    }
}

/// One payment that was not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Debt {
    /// What owes it.
    pub of: Debtor,
    /// The player it is owed to.
    pub player: PlayerId,
    /// The member whose wallet gets it.
    pub member: Option<MemberId>,
    /// Whether a fee is to be paid back; else it is a prize.
    pub is_refund: bool,
    /// The currency of the amount.
    pub currency: Currency,
    /// The amount in units.
    pub amount: i64,
    /// Why it could not be paid; `None` if it was not tried yet.
    pub why: Option<UnpaidReason>,
}

impl Debt {
    /// A stored payment, unless it was made. A winner that is no member is owed nothing.
    pub(crate) fn of_payout(of: &Debtor, payout: Payout) -> Option<Self> {
        Self::unpaid(of, payout).filter(|debt| debt.why != Some(UnpaidReason::NoMember))
    }

    /// The same, also of a winner that is no member.
    fn unpaid(of: &Debtor, payout: Payout) -> Option<Self> {
        let member = payout.has_member().then_some(payout.member);
        let Payout { player, rank, currency, amount, paid, .. } = payout;
        let why = match paid {
            Some(Ok(_) | Err(UnpaidReason::Reversed)) => return None,
            Some(Err(why)) => Some(why),
            None => None,
        };
        let (of, amount) = (of.clone(), amount.units());
        Some(Self { of, player, member, is_refund: rank == 0, currency, amount, why })
    }

    /// A fee of a cancelled contest that was not paid back yet, less what was reversed of it.
    pub(crate) fn of_fee(
        of: &Debtor,
        record: &ContestRecord,
        player: PlayerId,
        member: Option<MemberId>,
    ) -> Option<Self> {
        let fee = record.contest.entry_fee?;
        let amount = fee.amount.units() - member.map_or(0, |member| record.reversed_fee(member));
        let (of, currency) = (of.clone(), fee.currency);
        (amount > 0).then_some(Self { of, player, member, is_refund: true, currency, amount, why: None })
    }

    /// The stable word for why it is not paid: `pending` if the scheduler will pay it.
    pub fn reason(&self, tally: &Tally) -> &'static str {
        let currencies = &tally.settings.ledger.currencies;
        match (self.why, currencies.check(self.currency)) {
            (Some(why), _) => why.as_str(),
            (None, Err(rejection)) => rejection.code(),
            (None, Ok(())) => "pending",
        }
    }
}

impl fmt::Display for Debt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { of, player, currency, amount, .. } = self;
        let what = if self.is_refund { "fee back" } else { "prize" };
        write!(f, "{of}, player {}: {what} of {amount} {currency}, ", player.as_str().escape_debug())?;
        match self.why {
            Some(why) => write!(f, "not paid: {}", why.as_str()),
            None => f.write_str("not paid yet"),
        }
    }
}

/// A page of debts.
#[derive(Debug, Default)]
pub struct DebtPage {
    /// At most the requested number; fewer do not mean the end.
    pub rows: Vec<Debt>,
    /// Corrupt rows that the page met.
    pub damaged: Vec<CorruptRow>,
    /// The start of the next page; `None` at the end.
    pub next: Option<DebtPosition>,
}

/// Which debts a list has.
#[derive(Clone, Debug, Default)]
pub struct DebtFilter {
    /// Those of this player alone.
    pub player: Option<PlayerId>,
    /// Also the prizes of winners that are no members. Nothing is owed for them, and a repayment pays each that has become one.
    pub with_winners: bool,
}

impl DebtFilter {
    fn is_for(&self, player: &PlayerId) -> bool {
        self.player.as_ref().is_none_or(|one| one == player)
    }
}

/// At most `limit` debts from that position on.
pub fn list(tally: &Tally, from: Option<DebtPosition>, limit: usize) -> Result<DebtPage, Failure> {
    list_filtered(tally, &DebtFilter::default(), from, limit)
}

/// The same of those that fit a filter. It reads as much: no index has them by player.
pub fn list_filtered(
    tally: &Tally,
    filter: &DebtFilter,
    from: Option<DebtPosition>,
    limit: usize,
) -> Result<DebtPage, Failure> {
    Ok(DebtScan::from(tally, from, limit, filter)?.page)
}

/// Payments that are marked `member_closed` although the member is open: earlier releases did that by mistake. The first start of
/// a newer release pays them at once (`contests::repay`). A server of an earlier release may write more of them beside it, or
/// after it. So each process checks for them once more, a page at a time.
#[derive(Debug, Default)]
pub(crate) struct Mistakes {
    /// The start of the next page.
    next: Option<DebtPosition>,
    is_done: bool,
}

impl Mistakes {
    /// Pays those of the next page, until all pages are done.
    pub(crate) fn pay(&mut self, tally: &Tally) -> Result<(), Failure> {
        if self.is_done {
            return Ok(());
        }
        let filter = DebtFilter::default();
        let scan = DebtScan::from(tally, self.next.clone(), usize::MAX, &filter)?;
        for key in scan.marked {
            match key {
                Key::Contest(id) => repay::all_of_contest(tally, &id)?,
                Key::Period(key) => repay::all_of_period(tally, key)?,
            };
        }
        self.next = scan.page.next;
        self.is_done = self.next.is_none();
        Ok(())
    }
}
