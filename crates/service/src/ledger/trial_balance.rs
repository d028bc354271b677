//! Whether debits equal credits, for monitoring.
//!
//! The totals of accounts are a few rows, read in one statement every few seconds and cached: a scrape reads no table. Not
//! here: whether balances are the sums of their entries (`verify`), and the totals themselves (`read`).

use crate::failure::Failure;
use crate::tally::Tally;
use std::sync::atomic::{AtomicU8, Ordering};
use tally_rules::ledger::account::Totals;

const UNKNOWN: u8 = 0;
const BALANCED: u8 = 1;
const OUT: u8 = 2;

/// The result of the last check.
#[derive(Debug, Default)]
pub struct Balance(AtomicU8);

impl Balance {
    /// Adds up the totals in the store, and records whether they balance.
    pub(crate) fn check(&self, tally: &Tally) {
        let found = tally.store.ledger().totals().map_err(Failure::from);
        self.note(&found.map(|rows| {
            let mut totals = Totals::default();
            totals.extend(rows);
            totals
        }));
    }

    fn note(&self, found: &Result<Totals, Failure>) {
        let now = match found {
            Ok(totals) if totals.balanced() => BALANCED,
            Ok(_) => OUT,
            Err(failure) => {
                tracing::debug!(%failure, "read the totals of accounts; it is tried again");
                UNKNOWN
            }
        };
        let before = self.0.swap(now, Ordering::Relaxed);
        if now == OUT && before != OUT {
            tracing::error!("debits and credits of the ledger differ: run `tally verify`");
        }
    }

    /// Whether the ledger balanced a few seconds ago; `None` if the store was unavailable.
    pub fn known(&self) -> Option<bool> {
        match self.0.load(Ordering::Relaxed) {
            UNKNOWN => None,
            known => Some(known == BALANCED),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Fault;
    use tally_rules::ledger::Currency;
    use tally_rules::ledger::account::{Account, Total};

    #[test]
    fn it_says_what_was_found_last() {
        let balance = Balance::default();
        assert_eq!(balance.known(), None);
        let mut totals = Totals::default();
        balance.note(&Ok(totals.clone()));
        assert_eq!(balance.known(), Some(true));
        let currency = Currency::parse("KRW").unwrap();
        totals.account(Account::BankAsset, currency, Total { debits: 5, credits: 0 });
        balance.note(&Ok(totals));
        assert_eq!(balance.known(), Some(false));
        balance.note(&Err(Fault::Broken("away".into()).into()));
        assert_eq!(balance.known(), None);
    }
}
