//! Optional rules of one currency, all off by default.
//!
//! They limit what a member may transfer at once and on one UTC day, and the largest balance. They also say whether members
//! transfer the currency to each other, and whether it is withdrawn.
//!
//! Only transfers count towards their limits. The operator sets the rules, and makes withdrawals, holds and captures itself.
//! Money that comes back always fits: refunds and reversals have no largest balance.

use super::money::{Amount, Currency};
use super::transfer_request::TransferKind;
use crate::instant::{Micros, SECOND};
use crate::rejection::{Limit, Rejection};

const DAY: i64 = 86_400 * SECOND;

/// The rules of one currency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CurrencyLimits {
    /// For one transfer.
    pub per_transfer: Option<i64>,
    /// For one day.
    pub per_day: Option<i64>,
    /// For the balance of a member.
    pub balance: Option<i64>,
    /// Members cannot transfer it to each other.
    pub no_transfers: bool,
    /// It cannot be withdrawn.
    pub no_withdrawals: bool,
}

/// What was transferred from a wallet on one day, or made by a key ([`mint`](super::mint)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Days since 1970.
    pub day: i32,
    /// The sum of that day.
    pub units: i64,
}

impl Spent {
    /// What is transferred on the day of `now`. A clock that is set back does not begin a day again.
    pub(super) fn on_day_of(self, now: Micros) -> Self {
        let day = i32::try_from(now.0.div_euclid(DAY)).unwrap_or(i32::MAX).max(self.day);
        Self { day, units: if self.day == day { self.units } else { 0 } }
    }
}

impl CurrencyLimits {
    /// The spending after a transfer, if the limits allow it.
    pub fn check(&self, spent: Spent, amount: Amount, now: Micros) -> Result<Spent, Rejection> {
        let amount = amount.units();
        if let Some(max) = self.per_transfer.filter(|max| amount > *max) {
            return Err(Rejection::LimitExceeded(Limit::PerTransfer { max, amount }));
        }
        let Spent { day, units: before } = spent.on_day_of(now);
        let units = before.saturating_add(amount);
        if let Some(max) = self.per_day.filter(|max| units > *max) {
            // A limit may have been lowered since.
            let left = max.saturating_sub(before).max(0);
            return Err(Rejection::LimitExceeded(Limit::PerDay { max, left, amount }));
        }
        Ok(Spent { day, units })
    }

    /// Whether its currency allows a transfer of this kind.
    pub fn allows(&self, what: TransferKind, currency: Currency) -> Result<(), Rejection> {
        match what {
            TransferKind::Transfer { .. } if self.no_transfers => Err(Rejection::NotTransferable(currency)),
            TransferKind::Withdrawal { .. } | TransferKind::PlainWithdrawal { .. } if self.no_withdrawals => {
                Err(Rejection::NotWithdrawable(currency))
            }
            _ => Ok(()),
        }
    }

    /// Checks the balance of a member that a transfer has credited.
    pub fn check_balance(&self, balance: i64) -> Result<(), Rejection> {
        let exceeded = self.balance.filter(|max| balance > *max);
        exceeded.map_or(Ok(()), |max| Err(Rejection::LimitExceeded(Limit::CurrencyBalance { max })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_begins_anew_and_no_limit_is_none() {
        let limits =
            CurrencyLimits { per_transfer: Some(60), per_day: Some(100), ..CurrencyLimits::default() };
        let too_much = |limit| Err(Rejection::LimitExceeded(limit));
        let of_day = |left, amount| too_much(Limit::PerDay { max: 100, left, amount });
        let rows = [
            // (limits, spent on day 1, amount, instant, outcome)
            (limits, 0, 60, DAY, Ok(60)),
            (limits, 0, 61, DAY, too_much(Limit::PerTransfer { max: 60, amount: 61 })),
            (limits, 40, 60, 2 * DAY - 1, Ok(100)),
            (limits, 41, 60, 2 * DAY - 1, of_day(59, 60)),
            (limits, 100, 60, 2 * DAY, Ok(60)),
            (limits, 100, 60, DAY - 1, of_day(0, 60)),
            (CurrencyLimits::default(), i64::MAX, 1, DAY, Ok(i64::MAX)),
        ];
        for (limits, spent, amount, now, wanted) in rows {
            let spent = Spent { day: 1, units: spent };
            let got = limits.check(spent, Amount::new(amount).unwrap(), Micros(now)).map(|spent| spent.units);
            assert_eq!(got, wanted, "{spent:?} and {amount} at {now}");
        }
    }
}
