//! What contests and periods owe and have not paid: prizes and fees to pay back. It is no disagreement, and is listed. A payment that
//! is marked as that of a closed member is one where the member is open.
//!
//! Not here: amounts that are not known yet, such as the prizes of a contest before it is settled.

use super::Run;
use std::collections::BTreeMap;
use std::fmt;
use tally_rules::PlayerId;
use tally_rules::contest::Payout;
use tally_rules::contest::member::Unpaid;
use tally_rules::ledger::{Currency, MemberId};
use tally_store::{Books, StoreError};

/// Debts that are kept for a list; of more there are count and sum.
const LISTED_MAX: usize = 100;

/// Members of one read.
const READ: usize = 1_000;

/// One payment that was not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Debt {
    /// The contest or the period.
    pub of: String,
    /// The player it is owed to.
    pub player: PlayerId,
    /// Whether a fee is to be paid back; else it is a prize.
    pub is_refund: bool,
    /// The currency.
    pub currency: Currency,
    /// The amount in units.
    pub amount: i64,
    /// Why it could not be paid; `None` where its turn has not come.
    pub why: Option<Unpaid>,
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

/// All that is owed.
#[derive(Clone, Debug, Default)]
pub struct Owed {
    /// How many payments.
    pub count: u64,
    /// Their sum in each currency, in units.
    pub sums: BTreeMap<Currency, i128>,
    /// The first of them.
    pub first: Vec<Debt>,
}

impl Owed {
    pub(super) fn add(&mut self, debt: Debt) {
        self.count += 1;
        *self.sums.entry(debt.currency).or_default() += i128::from(debt.amount);
        if self.first.len() < LISTED_MAX {
            self.first.push(debt);
        }
    }

    /// Adds a stored payment, unless it was made.
    pub(super) fn add_unpaid(&mut self, of: &str, payout: Payout) {
        let Payout { player, rank, currency, amount, paid, .. } = payout;
        let why = match paid {
            Some(Ok(_)) => return,
            Some(Err(why)) => Some(why),
            None => None,
        };
        let (of, amount) = (of.to_owned(), amount.units());
        self.add(Debt { of, player, is_refund: rank == 0, currency, amount, why });
    }
}

/// Payments of one contest or period that are marked as those of closed members.
#[derive(Default)]
pub(super) struct Marked(Vec<(u32, MemberId)>);

impl Marked {
    /// Keeps a payment that is marked so.
    pub(super) fn note(&mut self, no: u32, payout: &Payout) {
        if payout.paid == Some(Err(Unpaid::MemberClosed)) {
            self.0.push((no, payout.member));
        }
    }

    /// Names those whose members are open.
    pub(super) fn check(
        mut self,
        books: &mut dyn Books,
        run: &mut Run<'_>,
        of: &str,
    ) -> Result<(), StoreError> {
        self.0.sort_unstable_by_key(|(_, member)| *member);
        for rows in self.0.chunks(READ) {
            let mut ids: Vec<MemberId> = rows.iter().map(|(_, member)| *member).collect();
            ids.dedup();
            let found = books.members_of(&ids)?;
            let is_open = |id: &MemberId| {
                let at = ids.binary_search(id).ok()?;
                Some(found[at].as_ref()?.closed_at.is_none())
            };
            for (no, _) in rows.iter().filter(|(_, member)| is_open(member) == Some(true)) {
                let what = "it is marked member_closed, and its member is open: it is owed";
                run.found("contest_prizes", format!("{of}/{no}"), what);
            }
        }
        Ok(())
    }
}
