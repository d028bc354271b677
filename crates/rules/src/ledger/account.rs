//! The accounts of the ledger, and which of them a transfer debits and credits.
//!
//! The accounts are fixed in the code. `BANK_ASSET` is what the bank holds, `BANK_PAYABLE` what it owes to wallets, so
//! every wallet is a part of `BANK_PAYABLE`. Only totals of accounts are stored: all debits and all credits of each
//! currency.

use super::entry::Transfer;
use super::money::Currency;
use crate::named;
use std::collections::BTreeMap;

named! {
    /// An account of the ledger.
    pub enum Account { /// What the bank holds.
        BankAsset = "BANK_ASSET", /// What the bank owes to wallets.
        BankPayable = "BANK_PAYABLE", /// Fees that members paid.
        Fees = "FEES", /// The source of prizes.
        Prizes = "PRIZES", /// The source of promotional credit, which gets back what expires.
        Promotions = "PROMOTIONS" }
}

impl Account {
    /// The number that is stored.
    pub fn number(self) -> u8 {
        match self {
            Self::BankAsset => 1,
            Self::BankPayable => 2,
            Self::Fees => 3,
            Self::Prizes => 4,
            Self::Promotions => 5,
        }
    }

    /// The account of a stored number.
    pub fn of_number(number: u8) -> Option<Self> {
        Self::ALL.iter().copied().find(|one| one.number() == number)
    }
}

/// An account in one currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountKey {
    /// Which account.
    pub account: Account,
    /// The currency.
    pub currency: Currency,
}

/// The sums of all debits and credits. Wide enough for any number of transfers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// Sum of debits.
    pub debits: u128,
    /// Sum of credits.
    pub credits: u128,
}

impl Total {
    /// The sums of two totals.
    ///
    /// # Panics
    /// Above 2^128, which 10^23 transfers of the largest amount do not reach.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let add =
            |one: u128, other: u128| one.checked_add(other).expect("a total of fewer than 10^23 movements");
        Self { debits: add(self.debits, other.debits), credits: add(self.credits, other.credits) }
    }
}

/// What transfers add to accounts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals(BTreeMap<AccountKey, Total>);

impl Totals {
    /// Adds a transfer.
    pub fn add(&mut self, transfer: &Transfer) {
        let amount = u128::from(transfer.amount.unsigned_abs());
        let (debit, credit) = transfer.accounts();
        self.account(debit, transfer.currency, Total { debits: amount, credits: 0 });
        self.account(credit, transfer.currency, Total { debits: 0, credits: amount });
    }

    /// Adds to one account.
    pub fn account(&mut self, account: Account, currency: Currency, more: Total) {
        let total = self.0.entry(AccountKey { account, currency }).or_default();
        *total = total.plus(more);
    }

    /// The rows in order of account and currency.
    pub fn into_rows(self) -> Vec<(AccountKey, Total)> {
        self.0.into_iter().collect()
    }

    /// The rows in order of account and currency.
    pub fn rows(&self) -> impl Iterator<Item = (&AccountKey, &Total)> {
        self.0.iter()
    }

    /// Whether debits equal credits in each currency.
    pub fn balanced(&self) -> bool {
        let mut sums: BTreeMap<Currency, Total> = BTreeMap::new();
        for (key, total) in &self.0 {
            let sum = sums.entry(key.currency).or_default();
            *sum = sum.plus(*total);
        }
        sums.values().all(|sum| sum.debits == sum.credits)
    }
}

/// Adds each total to its account.
impl Extend<(AccountKey, Total)> for Totals {
    fn extend<I: IntoIterator<Item = (AccountKey, Total)>>(&mut self, rows: I) {
        rows.into_iter().for_each(|(key, total)| self.account(key.account, key.currency, total));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_numbers_are_pinned() {
        let numbers = Account::ALL.iter().map(|one| (one.as_str(), one.number())).collect::<Vec<_>>();
        assert_eq!(
            numbers,
            [("BANK_ASSET", 1), ("BANK_PAYABLE", 2), ("FEES", 3), ("PRIZES", 4), ("PROMOTIONS", 5),]
        );
        assert!(Account::ALL.iter().all(|one| Account::of_number(one.number()) == Some(*one)));
        assert_eq!(Account::of_number(0), None);
    }

    #[test]
    fn each_currency_balances_by_itself() {
        let code = |text| Currency::parse(text).unwrap();
        let mut totals = Totals::default();
        totals.account(Account::BankAsset, code("KRW"), Total { debits: 5, credits: 0 });
        totals.account(Account::BankPayable, code("USD"), Total { debits: 0, credits: 5 });
        assert!(!totals.balanced());
        totals.account(Account::BankPayable, code("KRW"), Total { debits: 0, credits: 5 });
        totals.account(Account::Fees, code("USD"), Total { debits: 5, credits: 0 });
        assert!(totals.balanced());
    }
}
