//! Unpaid debts of contests and periods: prizes, and fees to pay back. They are no disagreement, and are listed. A payment that
//! is marked as that of a closed member is a disagreement if the member is open.
//!
//! Not here: amounts that are not known yet, such as the prizes of a contest before it is settled.

use super::Run;
use crate::owed::Debt;
use std::collections::BTreeMap;
use tally_rules::contest::Payout;
use tally_rules::contest::member::UnpaidReason;
use tally_rules::ledger::{Currency, MemberId};
use tally_store::{Snapshot, StoreError};

/// Debts that are kept for a list; of more there are count and sum.
const LISTED_MAX: usize = 100;

/// Members of one read.
const READ: usize = 1_000;

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
    pub(super) fn add(&mut self, debt: Option<Debt>) {
        let Some(debt) = debt else { return };
        self.count += 1;
        *self.sums.entry(debt.currency).or_default() += i128::from(debt.amount);
        if self.first.len() < LISTED_MAX {
            self.first.push(debt);
        }
    }
}

/// Payments of one contest or period that are marked as those of closed members.
#[derive(Default)]
pub(super) struct Marked(Vec<(u32, MemberId)>);

impl Marked {
    /// Keeps a payment that is marked so.
    pub(super) fn note(&mut self, no: u32, payout: &Payout) {
        if payout.paid == Some(Err(UnpaidReason::MemberClosed)) {
            self.0.push((no, payout.member));
        }
    }

    /// Reports those whose members are open.
    pub(super) fn check(
        mut self,
        snapshot: &mut dyn Snapshot,
        run: &mut Run<'_>,
        of: &str,
    ) -> Result<(), StoreError> {
        self.0.sort_unstable_by_key(|(_, member)| *member);
        for rows in self.0.chunks(READ) {
            let mut ids: Vec<MemberId> = rows.iter().map(|(_, member)| *member).collect();
            ids.dedup();
            let found = snapshot.members_of(&ids)?;
            let is_open = |id: &MemberId| {
                let at = ids.binary_search(id).ok()?;
                Some(found[at].as_ref()?.closed_at.is_none())
            };
            for (no, _) in rows.iter().filter(|(_, member)| is_open(member) == Some(true)) {
                let what = "it is marked member_closed, and its member is open: it is owed, and paid after the next start of a server";
                run.found("contest_prizes", format!("{of}/{no}"), what);
            }
        }
        Ok(())
    }
}
