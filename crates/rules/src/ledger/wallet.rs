//! A wallet: the balance of a member in one currency, and the held part of it.
//!
//! `0 <= held <= balance <= BALANCE_MAX` after every method, and `sequence` counts the entries. Each method checks
//! everything before it changes anything.

use super::id::MemberId;
use super::limits::Spent;
use super::money::{Amount, BALANCE_MAX, Currency};
use crate::rejection::{Limit, Rejection};

/// A member's wallet in one currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WalletKey {
    /// The member.
    pub member: MemberId,
    /// The currency.
    pub currency: Currency,
}

/// The state of a wallet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wallet {
    /// The sum of its entries.
    pub balance: i64,
    /// The held part of the balance.
    pub held: i64,
    /// The number of its entries.
    pub sequence: u64,
    /// Whether its member was closed. Only the home wallet is checked for it.
    pub closed: bool,
    /// The transfers from it on its last day with a transfer.
    pub spent: Spent,
}

impl Wallet {
    /// The available balance.
    pub fn available(&self) -> i64 {
        self.balance - self.held
    }

    /// Credits an amount.
    pub fn credit(&mut self, amount: Amount) -> Result<(), Rejection> {
        let balance = self.balance.saturating_add(amount.units());
        if balance > BALANCE_MAX {
            return Err(Rejection::LimitExceeded(Limit::Balance));
        }
        self.balance = balance;
        self.sequence += 1;
        Ok(())
    }

    /// Debits an amount.
    pub fn debit(&mut self, amount: Amount) -> Result<(), Rejection> {
        if amount.units() > self.available() {
            return Err(Rejection::InsufficientFunds);
        }
        self.balance -= amount.units();
        self.sequence += 1;
        Ok(())
    }

    /// Holds an amount.
    pub fn hold(&mut self, amount: Amount) -> Result<(), Rejection> {
        if amount.units() > self.available() {
            return Err(Rejection::InsufficientFunds);
        }
        self.held += amount.units();
        Ok(())
    }

    /// Releases a held amount.
    ///
    /// # Panics
    /// If less is held: a hold was released twice.
    pub fn release(&mut self, amount: i64) {
        assert!(self.held >= amount, "what is released was held");
        self.held -= amount;
    }

    /// Whether it has neither a balance nor a held amount.
    pub fn is_empty(&self) -> bool {
        self.balance == 0 && self.held == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_cannot_be_spent() {
        let units = |units| Amount::new(units).unwrap();
        let mut wallet = Wallet::default();
        assert_eq!(wallet.debit(units(1)), Err(Rejection::InsufficientFunds));
        wallet.credit(units(100)).unwrap();
        wallet.hold(units(60)).unwrap();
        let before = wallet;
        assert_eq!(wallet.debit(units(41)), Err(Rejection::InsufficientFunds));
        assert_eq!(wallet.hold(units(41)), Err(Rejection::InsufficientFunds));
        assert_eq!(wallet, before);
        wallet.debit(units(40)).unwrap();
        assert_eq!((wallet.balance, wallet.available(), wallet.sequence), (60, 0, 2));
        wallet.release(60);
        assert_eq!((wallet.available(), wallet.is_empty()), (60, false));
        wallet.debit(units(60)).unwrap();
        assert!(wallet.is_empty());
    }

    #[test]
    fn a_balance_has_an_end() {
        let mut wallet = Wallet { balance: BALANCE_MAX - 1, ..Wallet::default() };
        wallet.credit(Amount::new(1).unwrap()).unwrap();
        assert_eq!(wallet.credit(Amount::new(1).unwrap()), Err(Rejection::LimitExceeded(Limit::Balance)));
        assert_eq!((wallet.balance, wallet.sequence), (BALANCE_MAX, 1));
    }
}
