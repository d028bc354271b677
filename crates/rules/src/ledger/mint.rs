//! Caps of the money that one API key makes in a currency on one UTC day.
//!
//! A deposit makes money, and counts. The count is that of the daily limits of wallets ([`Spent`]). Money that is taken back or
//! withdrawn leaves it as it is: it says what the key has made, not what is left of it.

use super::limits::{CurrencyLimits, Spent};
use super::money::{Amount, Currency};
use crate::actor::KeyId;
use crate::instant::Micros;
use crate::rejection::Rejection;
use std::fmt;

/// An API key in one currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MintKey {
    /// The API key.
    pub key: KeyId,
    /// The currency.
    pub currency: Currency,
}

/// The cap of a key in one currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MintCap {
    /// Which key and currency.
    pub of: MintKey,
    /// The most that it may make on one day.
    pub cap: Amount,
}

impl MintCap {
    /// What is made after a deposit, if the cap allows it.
    pub fn check(&self, minted: Spent, amount: Amount, now: Micros) -> Result<Spent, Rejection> {
        let cap = self.cap.units();
        let limits = CurrencyLimits { per_day: Some(cap), ..CurrencyLimits::default() };
        limits.check(minted, amount, now).map_err(|_| {
            let left = cap.saturating_sub(minted.on_day_of(now).units).max(0);
            Rejection::MintCapReached(CapReached { currency: self.of.currency, cap, left })
        })
    }
}

/// A cap that an amount exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CapReached {
    /// The currency.
    pub currency: Currency,
    /// The most that the key may make on one day.
    pub cap: i64,
    /// What is left of this day.
    pub left: i64,
}

impl fmt::Display for CapReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { currency, cap, left } = self;
        write!(f, "this key may make {cap} {currency} on one UTC day, and {left} of it are left")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instant::SECOND;

    #[test]
    fn a_rejection_says_what_is_left_of_the_day() {
        let day = 86_400 * SECOND;
        let currency = Currency::parse("KRW").unwrap();
        let of = MintKey { key: KeyId([1; 6]), currency };
        let cap = MintCap { of, cap: Amount::new(100).unwrap() };
        let check = |units, amount, now| {
            let minted = Spent { day: 1, units };
            cap.check(minted, Amount::new(amount).unwrap(), Micros(now)).map(|minted| minted.units)
        };
        let reached = |left| Err(Rejection::MintCapReached(CapReached { currency, cap: 100, left }));
        assert_eq!(check(40, 60, 2 * day - 1), Ok(100));
        assert_eq!(check(40, 61, 2 * day - 1), reached(60));
        assert_eq!(check(100, 1, 2 * day - 1), reached(0));
        assert_eq!(check(100, 100, 2 * day), Ok(100));
        assert_eq!(check(100, 101, 2 * day), reached(100));
        assert_eq!(check(100, 1, day - 1), reached(0), "a clock that is set back begins no day again");
    }
}
