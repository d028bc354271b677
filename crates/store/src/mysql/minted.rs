//! The table `minted`: what API keys with a cap have made of each currency on their last day.

use super::row::Fields;
use super::table::Table;
use super::text::RowScript;
use super::wallets::day;
use crate::StoreError;
use tally_rules::KeyId;
use tally_rules::ledger::limits::Spent;
use tally_rules::ledger::{Currency, MintKey};

pub(super) struct Minted;

impl Table for Minted {
    const NAME: &'static str = "minted";
    const KEY: &'static str = "(`key`, currency)";
    const READ: &'static str = "`key`, currency, `day`, units";
    const REPLACED: &'static [&'static str] = &["`day`", "units"];
    const BLANK: &'static str = "0, 0";
    type Key = MintKey;
    type Value = Spent;

    fn put_key(row: &mut RowScript<'_>, of: &MintKey) {
        row.bytes(&of.key.0).bytes(of.currency.as_str().as_bytes());
    }

    fn put(row: &mut RowScript<'_>, minted: &Spent) {
        row.signed(minted.day.into()).signed(minted.units);
    }

    fn decode(row: &mut Fields<'_>) -> Result<(MintKey, Spent), StoreError> {
        let of = MintKey { key: KeyId(row.fixed()?), currency: row.choice(Currency::parse)? };
        Ok((of, Spent { day: day("minted", row.signed()?)?, units: row.signed()? }))
    }
}
