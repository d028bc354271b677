//! The prize pool of a contest: the entry fees of its members, which are paid out by ranks.
//!
//! The pool has a wallet of its own ([`MemberId::of_pool`]). Fees arrive there at the start, and prizes and refunds leave it. A wallet is
//! never overdrawn, so prizes of a pool make no money. When the prizes are known, one transfer makes the balance exactly their sum. The
//! rest goes to the account `FEES`, or what a guaranteed minimum lacks comes from `PRIZES`.
//!
//! Shares are parts of [`WHOLE`]. Each amount is rounded down, and what that leaves is part of the rest, as is the share of a rank that
//! no player has. Players that share a rank get equal parts of the positions that they fill, whatever `prize_ties` says of other prizes.
//! Else a pool could owe more than it has. Not here: the wallet itself (`ledger`).

#[cfg(test)]
mod tests;

use super::definition::Fee;
use super::prize::{self, PRIZES_MAX, Share, distribute};
use super::state::ContestState;
use super::{ContestRecord, Payout};
use crate::ledger::money::AMOUNT_MAX;
use crate::ledger::{Amount, Currency, EntryKind, MemberId, Transfer, TransferKind};
use crate::rejection::{Rejection, WrongField};

/// All shares together, and the whole rake.
pub const WHOLE: u32 = 10_000;

/// What every rank from `from` to `to` gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolPrize {
    /// The first rank, from 1.
    pub from: u32,
    /// The last rank.
    pub to: u32,
    /// The share of each rank, in parts of [`WHOLE`].
    pub share: u32,
}

/// The definition of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrizePool {
    /// The shares of the ranks.
    pub prizes: Vec<PoolPrize>,
    /// What the operator keeps of the fees, in parts of [`WHOLE`].
    pub rake: u32,
    /// The least that is to be won, if it is guaranteed.
    pub min: Option<Amount>,
}

/// What became of a pool when its prizes were determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolResult {
    /// The number of the first prize of the pool; those before are of the account `PRIZES`.
    pub first: u32,
    /// What went to the account `FEES`: the rake, and what no rank gets.
    pub rake: i64,
    /// What came from the account `PRIZES`.
    pub top_up: i64,
}

/// A part of an amount, rounded down. The parts are not more than the whole.
fn part(units: i64, parts: u64, whole: u64) -> i64 {
    let units = i128::from(units) * i128::from(parts) / i128::from(whole);
    i64::try_from(units).expect("a part is not more than the whole")
}

impl PrizePool {
    /// The wrong fields of a pool, with this fee and so many members.
    pub fn check(&self, fee: Option<Fee>, capacity: u32) -> Vec<WrongField> {
        let mut wrong = Vec::new();
        let mut no = |pointer: String, why: String| wrong.push(WrongField { pointer, why });
        match fee {
            None => no("/pool".into(), "needs an `entry_fee`: it consists of fees".into()),
            Some(fee) if i128::from(fee.amount.units()) * i128::from(capacity) > i128::from(AMOUNT_MAX) => {
                no("/pool".into(), format!("the fees of `capacity` members are more than {AMOUNT_MAX}"));
            }
            Some(_) => {}
        }
        if self.prizes.is_empty() || self.prizes.len() > PRIZES_MAX {
            no("/pool/prizes".into(), format!("must be 1 to {PRIZES_MAX} ranges"));
        }
        if self.rake > WHOLE {
            no("/pool/rake".into(), format!("must be at most {WHOLE}"));
        }
        let mut shares = 0_u64;
        for (at, prize) in self.prizes.iter().enumerate().take(PRIZES_MAX) {
            let before = self.prizes[..at].iter().map(|one| (one.from, one.to));
            if let Err((field, why)) = prize::check_range((prize.from, prize.to), before) {
                no(format!("/pool/prizes/{at}/{field}"), why);
                continue;
            }
            let ranks = u64::from(prize.to - prize.from) + 1;
            shares = shares.saturating_add(ranks.saturating_mul(prize.share.into()));
            if prize.share == 0 || shares > u64::from(WHOLE) {
                let why = format!("must be 1 or more, and all shares together at most {WHOLE}");
                no(format!("/pool/prizes/{at}/share"), why);
            }
        }
        wrong
    }

    /// What is to be won of these fees.
    pub fn to_win(&self, fees: i64) -> i64 {
        let left = fees - part(fees, self.rake.into(), WHOLE.into());
        left.max(self.min.map_or(0, Amount::units))
    }

    /// What is to be won in one division, of so many members of all.
    pub fn of_division(to_win: i64, members: u32, all: u32) -> i64 {
        if all == 0 { 0 } else { part(to_win, members.min(all).into(), all.into()) }
    }

    /// The last rank with a share.
    pub fn last_rank(&self) -> u32 {
        self.prizes.iter().map(|prize| prize.to).max().unwrap_or(0)
    }

    /// All payouts of a final ranking, as [`prize::shares`].
    pub fn shares<T: Clone>(&self, currency: Currency, to_win: i64, ranked: &[(T, bool)]) -> Vec<Share<T>> {
        let each = |rank: u32, tied: u32| {
            let (first, last) = (u64::from(rank), u64::from(rank) + u64::from(tied) - 1);
            let common = |prize: &PoolPrize| {
                let ranks = (last.min(prize.to.into()) + 1).saturating_sub(first.max(prize.from.into()));
                ranks * u64::from(prize.share)
            };
            let share = self.prizes.iter().map(common).sum();
            let units = part(to_win, share, u64::from(WHOLE) * u64::from(tied));
            // Less than one unit is not paid.
            Amount::new(units).ok().map(|amount| (currency, amount)).into_iter().collect()
        };
        distribute(self.last_rank(), ranked, each)
    }
}

/// Whether a member is on that side of a transfer.
fn is_side(side: Option<(MemberId, u64)>, member: MemberId) -> bool {
    side.is_some_and(|(one, _)| one == member)
}

impl ContestRecord {
    /// The member under whose id the wallet of its pool is, if it has a pool.
    pub fn pool_account(&self) -> Option<MemberId> {
        self.contest.pool.as_ref().map(|_| MemberId::of_pool(self.no))
    }

    /// The fees of its members, less what was reversed of them.
    pub fn fees_left(&self) -> i64 {
        let fee = self.contest.entry_fee.map_or(0, |fee| fee.amount.units());
        let reversed: i64 = self.reversed_fees.iter().map(|(_, amount)| amount).sum();
        // The check of the pool bounds the product.
        fee.saturating_mul(self.members.into()) - reversed
    }

    /// The refund of a fee to a member.
    pub fn refund_to(&self, to: MemberId) -> TransferKind {
        self.pool_account().map_or(TransferKind::Refund { to }, |pool| TransferKind::PoolRefund { pool, to })
    }

    /// The transfer of the payout with this number.
    pub fn transfer_of(&self, no: u32, payout: &Payout) -> TransferKind {
        let to = payout.member;
        match self.pool_account() {
            _ if payout.rank == 0 => self.refund_to(to),
            Some(pool) if self.is_of_pool(no) => TransferKind::PoolPrize { pool, to },
            _ => TransferKind::Prize { to },
        }
    }

    /// Whether the prize with this number is of the pool.
    pub fn is_of_pool(&self, no: u32) -> bool {
        self.pool_result.is_some_and(|result| no >= result.first)
    }

    /// Refuses the reversal of a transfer that would leave money in a pool, or take out what it owes.
    pub(super) fn check_pool_reversal(&self, original: &Transfer) -> Result<(), Rejection> {
        let Some(pool) = self.pool_account() else { return Ok(()) };
        match original.kind {
            // From the end of the review on, the fees are prizes.
            EntryKind::Fee if is_side(original.credit, pool) => match self.state {
                ContestState::Settled => Err(Rejection::ContestState(self.state)),
                _ => self.check_review(),
            },
            EntryKind::PrizeOut | EntryKind::RefundOut => Ok(()),
            _ if is_side(original.debit, pool) || is_side(original.credit, pool) => {
                Err(Rejection::NotReversible)
            }
            _ => Ok(()),
        }
    }
}
