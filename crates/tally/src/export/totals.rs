//! Totals of exported transfers, by account and currency, and whether they agree with the trial balance.
//!
//! Not here: whether balances agree with their transfers (`tally verify`).

use crate::client::{Client, rows_of_accounts};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use ureq::http::Method;

/// Debits and credits by account and currency.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    transfers: u64,
    sums: BTreeMap<(String, String), [u128; 2]>,
}

/// The two sides of a transfer.
const SIDES: [(&str, usize); 2] = [("debit", 0), ("credit", 1)];

impl Totals {
    /// The totals that the server has stored.
    pub(super) fn of_trial_balance(client: &Client) -> Result<Self> {
        let shown = client.ask(&Method::GET, "/v1/ledger/trial-balance", None)?;
        Self::of_accounts(&shown).context("the trial balance of the server cannot be read")
    }

    fn of_accounts(shown: &Value) -> Option<Self> {
        let mut totals = Self::default();
        for row in rows_of_accounts(shown)? {
            let sums = [number(&row["debits"])?, number(&row["credits"])?];
            totals.sums.insert((text(&row["account"])?, text(&row["currency"])?), sums);
        }
        Some(totals)
    }

    /// Adds a transfer as the API shows it.
    pub(super) fn add(&mut self, row: &Value) -> Result<()> {
        self.transfers += 1;
        self.add_sides(row).with_context(|| format!("a transfer cannot be read: {row}"))
    }

    fn add_sides(&mut self, row: &Value) -> Option<()> {
        let (currency, amount) = (text(&row["currency"])?, number(&row["amount"])?);
        for (name, side) in SIDES {
            let key = (text(&row[name]["account"])?, currency.clone());
            self.sums.entry(key).or_default()[side] += amount;
        }
        Some(())
    }

    /// Fails if a sum is not between two trial balances. They are equal unless money was moved meanwhile.
    pub(super) fn check_between(&self, before: &Self, after: &Self) -> Result<()> {
        let keys: BTreeSet<_> = [self, before, after].iter().flat_map(|totals| totals.sums.keys()).collect();
        for key in keys {
            let of = |totals: &Self| totals.sums.get(key).copied().unwrap_or_default();
            let (least, sums, most) = (of(before), of(self), of(after));
            for (name, side) in SIDES {
                if !(least[side]..=most[side]).contains(&sums[side]) {
                    let (account, currency) = key;
                    bail!(
                        "the transfers do not add up to the trial balance: the {name}s of {account} in {currency} are {}, and {} there; \
                         `tally verify` says what is wrong",
                        sums[side],
                        most[side]
                    );
                }
            }
        }
        Ok(())
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ((account, currency), [debits, credits]) in &self.sums {
            writeln!(f, "{account} {currency}: debits {debits}, credits {credits}")?;
        }
        writeln!(f, "{} transfers.", self.transfers)
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn number(value: &Value) -> Option<u128> {
    value.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn totals_agree_with_a_trial_balance_before_or_after_what_happens_meanwhile() {
        let transfer = |debit: &str, credit: &str, amount: &str| json!({"currency": "KRW", "amount": amount, "debit": {"account": debit}, "credit": {"account": credit}});
        let balance_in = |name: &str, units: u64| {
            let row = |account: &str, sums: [u64; 2]| json!({"account": account, "currency": "KRW", "debits": sums[0].to_string(), "credits": sums[1].to_string()});
            let rows =
                [row("BANK_ASSET", [units, 0]), row("BANK_PAYABLE", [3, units + 3]), row("FEES", [0, 0])];
            Totals::of_accounts(&json!({name: rows})).unwrap()
        };
        let balance = |units| balance_in("items", units);
        assert_eq!(balance_in("accounts", 7), balance(7), "a server of an older release");
        let mut totals = Totals::default();
        totals.add(&transfer("BANK_ASSET", "BANK_PAYABLE", "7")).unwrap();
        totals.add(&transfer("BANK_PAYABLE", "BANK_PAYABLE", "3")).unwrap();
        assert!(totals.check_between(&balance(7), &balance(7)).is_ok());
        assert!(totals.check_between(&balance(5), &balance(9)).is_ok());
        for (before, after) in [(8, 8), (6, 6), (8, 9)] {
            assert!(totals.check_between(&balance(before), &balance(after)).is_err());
        }
        let lines =
            "BANK_ASSET KRW: debits 7, credits 0\nBANK_PAYABLE KRW: debits 3, credits 10\n2 transfers.\n";
        assert_eq!(totals.to_string(), lines);
        // A currency that the trial balance does not have.
        totals.add(&json!({"currency": "USD", "amount": "1", "debit": {"account": "FEES"}, "credit": {"account": "FEES"}})).unwrap();
        assert!(totals.check_between(&balance(7), &balance(7)).is_err());
        assert!(totals.add(&json!({"currency": "USD"})).is_err());
    }
}
