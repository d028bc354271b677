//! The table `minted`: what API keys with a cap have made of each currency on their last day.

use super::table::{Rows, Table};
use crate::StoreError;
use crate::codec::{Input, put_signed};
use rusqlite::{Connection, Row, params};
use tally_rules::KeyId;
use tally_rules::ledger::limits::Spent;
use tally_rules::ledger::{Currency, MintKey};

pub(super) const GET: &str = "SELECT day, units FROM minted WHERE key = ?1 AND currency = ?2";
pub(super) const PUT: &str = "REPLACE INTO minted (key, currency, day, units) VALUES (?1, ?2, ?3, ?4)";
pub(super) const REMOVE: &str = "DELETE FROM minted WHERE key = ?1 AND currency = ?2";

pub(super) fn get(connection: &Connection, of: &MintKey) -> Result<Option<Spent>, StoreError> {
    let mut statement = connection.prepare_cached(GET)?;
    let mut rows = statement.query(params![of.key.0, of.currency.as_str()])?;
    rows.next()?.map(decode).transpose()
}

pub(super) fn decode(row: &Row<'_>) -> Result<Spent, StoreError> {
    Ok(Spent { day: row.get(0)?, units: row.get(1)? })
}

/// The table `minted` for the journal.
pub(super) struct Minted;

impl Table for Minted {
    const TAG: u8 = 27;
    type Key = MintKey;
    type Value = Spent;

    fn check(_key: &MintKey, _value: Option<&Spent>) -> Result<(), StoreError> {
        Ok(())
    }

    fn put_key(of: &MintKey, out: &mut Vec<u8>) {
        out.extend_from_slice(&of.key.0);
        out.extend_from_slice(&of.currency.bytes());
    }

    fn take_key(input: &mut Input<'_>) -> Option<MintKey> {
        Some(MintKey { key: KeyId(input.fixed()?), currency: Currency::of_bytes(input.fixed()?)? })
    }

    fn put_value(value: &Spent, out: &mut Vec<u8>) {
        put_signed(value.day.into(), out);
        put_signed(value.units, out);
    }

    fn take_value(input: &mut Input<'_>) -> Option<Spent> {
        Some(Spent { day: i32::try_from(input.signed()?).ok()?, units: input.signed()? })
    }

    fn heap_bytes(_key: &MintKey, _value: Option<&Spent>) -> usize {
        0
    }

    fn write(connection: &Connection, rows: &mut Rows<'_, '_, Self>) -> Result<(), StoreError> {
        for (MintKey { key, currency }, minted) in rows {
            let currency = currency.as_str();
            match minted {
                Some(Spent { day, units }) => {
                    connection.prepare_cached(PUT)?.execute(params![key.0, currency, day, units])?
                }
                None => connection.prepare_cached(REMOVE)?.execute(params![key.0, currency])?,
            };
        }
        Ok(())
    }
}
