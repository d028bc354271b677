//! A wallet: the balance of a member in one currency, and the held part of it.
//!
//! `0 <= held <= balance <= BALANCE_MAX` after every method, credit is at most the balance, and `sequence` counts the entries. Each method checks
//! everything before it changes anything.

use super::credit::Credits;
use super::id::MemberId;
use super::limits::Spent;
use super::money::{AMOUNT_MAX, Amount, BALANCE_MAX, Currency};
use crate::instant::Micros;
use crate::rejection::{Limit, Rejection};
use std::sync::Arc;

/// A member's wallet in one currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WalletKey {
    /// The member.
    pub member: MemberId,
    /// The currency.
    pub currency: Currency,
}

/// The state of a wallet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    /// Its promotional credit; most wallets have none.
    pub credits: Option<Arc<Credits>>,
}

impl Wallet {
    /// The available balance.
    pub fn available(&self) -> i64 {
        self.balance - self.held - self.credits.as_ref().map_or(0, |credits| credits.lapsed)
    }

    /// The money that is no credit.
    fn plain(&self) -> i64 {
        self.balance - self.credits.as_ref().map_or(0, |credits| credits.sum())
    }

    fn check_funds(amount: Amount, available: i64) -> Result<(), Rejection> {
        let needed = amount.units();
        if needed > available { Err(Rejection::InsufficientFunds { needed, available }) } else { Ok(()) }
    }

    /// Changes the credit, if there is any.
    fn change_credits(&mut self, change: impl FnOnce(&mut Credits)) {
        if let Some(credits) = &mut self.credits {
            let changed = Arc::make_mut(credits);
            change(changed);
            if changed.is_empty() {
                self.credits = None;
            }
        }
    }

    /// Expires credit that is due.
    pub fn settle(&mut self, now: Micros) {
        let held = self.held;
        self.change_credits(|credits| credits.settle(held, now));
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

    /// Credits promotional credit.
    pub fn promote(&mut self, amount: Amount, expires_at: Micros) -> Result<(), Rejection> {
        let mut credits = self.credits.as_deref().cloned().unwrap_or_default();
        credits.add(amount, expires_at)?;
        self.credit(amount)?;
        self.credits = Some(Arc::new(credits));
        Ok(())
    }

    /// Debits an amount of money that is no credit.
    pub fn debit_plain(&mut self, amount: Amount) -> Result<(), Rejection> {
        Self::check_funds(amount, self.available().min(self.plain()))?;
        self.balance -= amount.units();
        self.sequence += 1;
        Ok(())
    }

    /// Debits an amount of credit that has not expired.
    pub fn debit_credit(&mut self, amount: Amount) -> Result<(), Rejection> {
        let credit = self.credits.as_ref().map_or(0, |credits| credits.unexpired());
        Self::check_funds(amount, self.available().min(credit))?;
        self.debit(amount)
    }

    /// Takes out the credit that has lapsed.
    pub fn take_lapsed(&mut self) -> Option<Amount> {
        let lapsed = Amount::new(self.credits.as_ref()?.lapsed.min(AMOUNT_MAX)).ok()?;
        self.change_credits(|credits| credits.lapsed -= lapsed.units());
        self.balance -= lapsed.units();
        self.sequence += 1;
        Some(lapsed)
    }

    /// Ends a hold and debits a part of it: credit first.
    pub fn capture(&mut self, held: i64, amount: Amount) {
        self.held -= held;
        self.balance -= amount.units();
        self.sequence += 1;
        self.change_credits(|credits| credits.capture(amount.units()));
        self.settle(Micros(i64::MIN));
    }

    /// Debits an amount: credit first.
    pub fn debit(&mut self, amount: Amount) -> Result<(), Rejection> {
        Self::check_funds(amount, self.available())?;
        self.balance -= amount.units();
        self.sequence += 1;
        self.change_credits(|credits| credits.spend(amount.units()));
        Ok(())
    }

    /// Holds an amount.
    pub fn hold(&mut self, amount: Amount) -> Result<(), Rejection> {
        Self::check_funds(amount, self.available())?;
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
        self.settle(Micros(i64::MIN));
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
        let short = |needed, available| Err(Rejection::InsufficientFunds { needed, available });
        assert_eq!(wallet.debit(units(1)), short(1, 0));
        wallet.credit(units(100)).unwrap();
        wallet.hold(units(60)).unwrap();
        let before = wallet.clone();
        assert_eq!(wallet.debit(units(41)), short(41, 40));
        assert_eq!(wallet.hold(units(41)), short(41, 40));
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
