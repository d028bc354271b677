//! The table `reversals`: the links between transfers and their reversals, by transfer.
//!
//! Not here: their bytes (`codec::reversals`).

use super::fault::damaged;
use super::table::{Rows, Table};
use crate::StoreError;
use crate::codec::reversals::{self, is_sound};
use crate::codec::{Input, put_bytes};
use rusqlite::{Connection, Row, params};
use tally_rules::ledger::{ReversalLink, TransferId, Uuid};

pub(super) const GET: &str = "SELECT body FROM reversals WHERE id = ?1";
pub(super) const PUT: &str = "REPLACE INTO reversals (id, body) VALUES (?1, ?2)";
pub(super) const REMOVE: &str = "DELETE FROM reversals WHERE id = ?1";

pub(super) fn get(connection: &Connection, id: &TransferId) -> Result<Option<ReversalLink>, StoreError> {
    let mut statement = connection.prepare_cached(GET)?;
    let mut rows = statement.query(params![id.0.0])?;
    rows.next()?.map(decode).transpose()
}

/// Decodes a row that begins with its body.
pub(super) fn decode(row: &Row<'_>) -> Result<ReversalLink, StoreError> {
    let link = reversals::decode(&row.get::<_, Vec<u8>>(0)?);
    link.ok_or_else(|| damaged("reversals", "a reversal that cannot be"))
}

/// The table `reversals` for the journal.
pub(super) struct Reversals;

impl Table for Reversals {
    const TAG: u8 = 25;
    type Key = TransferId;
    type Value = ReversalLink;

    fn check(_key: &TransferId, value: Option<&ReversalLink>) -> Result<(), StoreError> {
        if value.is_none_or(is_sound) {
            Ok(())
        } else {
            Err(StoreError::Row("reversals: an amount that is not positive".into()))
        }
    }

    fn put_key(key: &TransferId, out: &mut Vec<u8>) {
        out.extend_from_slice(&key.0.0);
    }

    fn take_key(input: &mut Input<'_>) -> Option<TransferId> {
        Some(TransferId(Uuid(input.fixed()?)))
    }

    fn put_value(value: &ReversalLink, out: &mut Vec<u8>) {
        put_bytes(&reversals::encode(value), out);
    }

    fn take_value(input: &mut Input<'_>) -> Option<ReversalLink> {
        reversals::decode(input.bytes()?)
    }

    fn heap_bytes(_key: &TransferId, value: Option<&ReversalLink>) -> usize {
        match value {
            Some(ReversalLink::Reversed(parts)) => 24 * parts.len(),
            Some(ReversalLink::Reverses { reason: Some(text), .. }) => 16 + text.len(),
            Some(ReversalLink::Reverses { reason: None, .. }) | None => 0,
        }
    }

    fn write(connection: &Connection, rows: &mut Rows<'_, '_, Self>) -> Result<(), StoreError> {
        for (id, link) in rows {
            match link {
                Some(link) => {
                    connection.prepare_cached(PUT)?.execute(params![id.0.0, reversals::encode(link)])?
                }
                None => connection.prepare_cached(REMOVE)?.execute(params![id.0.0])?,
            };
        }
        Ok(())
    }
}
