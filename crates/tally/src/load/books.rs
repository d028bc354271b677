//! Whether a load made or lost money: the trial balance before and after.
//!
//! Loads only move money between members, so what the bank owes them must stay the same. Debits must equal credits at
//! any time. Not here: whether each wallet is right (`tally verify`).

use crate::client::{Client, explain, rows_of_accounts};
use anyhow::{Result, bail};
use serde_json::Value;
use std::collections::BTreeMap;
use ureq::http::Method;

/// What the bank owes to wallets.
const OWED: &str = "BANK_PAYABLE";

/// A trial balance.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Books {
    balanced: bool,
    /// Credits minus debits of what the bank owes, by currency.
    owed: BTreeMap<String, i128>,
}

/// The comparison of two trial balances.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Compared {
    /// `None` if they are unreadable.
    pub(super) agree: Option<bool>,
    /// As text.
    pub(super) says: String,
}

impl Books {
    /// The server's trial balance; `None` if the key may not read it, or the server has none.
    pub(super) fn read(client: &Client) -> Result<Option<Self>> {
        let answer = client.send(&Method::GET, "/v1/ledger/trial-balance", None)?;
        match answer.status {
            200 => Self::of(&answer.body).map(Some),
            401 | 403 | 404 => Ok(None),
            _ => bail!(explain(&answer)),
        }
    }

    fn of(body: &Value) -> Result<Self> {
        let (Some(balanced), Some(accounts)) = (body["balanced"].as_bool(), rows_of_accounts(body)) else {
            bail!("the trial balance is not one");
        };
        let mut owed = BTreeMap::new();
        for row in accounts.iter().filter(|row| row["account"] == OWED) {
            let sum = |name: &str| match &row[name] {
                Value::String(digits) => digits.parse().unwrap_or(0),
                number => number.to_string().parse::<i128>().unwrap_or(0),
            };
            let currency = row["currency"].as_str().unwrap_or_default().to_owned();
            *owed.entry(currency).or_default() += sum("credits") - sum("debits");
        }
        Ok(Self { balanced, owed })
    }
}

/// Compares two trial balances: whether money was made or lost.
pub(super) fn compare(before: Option<&Books>, after: Option<&Books>) -> Compared {
    let (Some(before), Some(after)) = (before, after) else {
        let says = "money: not known, the trial balance could not be read (it needs a key of role server)"
            .to_owned();
        return Compared { agree: None, says };
    };
    if !after.balanced {
        let says = "money: debits and credits of the ledger do not agree; run `tally verify`".to_owned();
        return Compared { agree: Some(false), says };
    }
    let mut changes = Vec::new();
    for currency in before.owed.keys().chain(after.owed.keys().filter(|one| !before.owed.contains_key(*one)))
    {
        let of = |books: &Books| books.owed.get(currency).copied().unwrap_or(0);
        let change = of(after) - of(before);
        if change != 0 {
            let what = if change > 0 { "made" } else { "lost" };
            changes.push(format!("{} {currency} {what}", change.unsigned_abs()));
        }
    }
    if changes.is_empty() {
        let all: Vec<String> = after.owed.iter().map(|(currency, sum)| format!("{sum} {currency}")).collect();
        let says = format!("money: none made, none lost; the bank owes members {}", all.join(", "));
        return Compared { agree: Some(true), says };
    }
    let says = format!(
        "money: {}, unless another client deposited or withdrew meanwhile; run `tally verify`",
        changes.join(", ")
    );
    Compared { agree: Some(false), says }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn books_in(name: &str, balanced: bool, credits: &str) -> Books {
        let accounts = json!([
            {"account": "BANK_ASSET", "currency": "KRW", "debits": "900", "credits": "0"},
            {"account": "BANK_PAYABLE", "currency": "KRW", "debits": "100", "credits": credits},
        ]);
        Books::of(&json!({"balanced": balanced, name: accounts})).unwrap()
    }

    fn books(balanced: bool, credits: &str) -> Books {
        books_in("items", balanced, credits)
    }

    #[test]
    fn an_older_release_has_the_rows_under_another_name() {
        assert_eq!(books_in("accounts", true, "1000"), books(true, "1000"));
        assert!(Books::of(&json!({"balanced": true})).is_err());
    }

    #[test]
    fn what_is_owed_must_stay_the_same() {
        let begin = books(true, "1000");
        let says = |after: &Books| compare(Some(&begin), Some(after));
        assert_eq!(says(&begin).agree, Some(true));
        assert!(says(&begin).says.contains("owes members 900 KRW"));
        assert!(says(&books(true, "1001")).says.starts_with("money: 1 KRW made"));
        assert!(says(&books(true, "900")).says.starts_with("money: 100 KRW lost"));
        assert_eq!(says(&books(true, "900")).agree, Some(false));
        assert_eq!(says(&books(false, "1000")).agree, Some(false));
        assert_eq!(compare(Some(&begin), None).agree, None);
    }
}
