//! The table `audit`: the rows of the audit log, by the instant of their requests.
//!
//! Not here: their bytes (`codec::audit`).

use super::fault::damaged;
use super::newest;
use super::state::Shared;
use super::table::{Rows, Table};
use crate::codec::{Input, audit, origins, put_bytes};
use crate::{Listing, StoreError};
use rusqlite::{Connection, Row, params};
use tally_rules::audit::{AuditEntry, AuditId};
use tally_rules::ledger::Uuid;

pub(super) const LIST: &str = "SELECT id, body FROM audit WHERE id < ?1 ORDER BY id DESC";
pub(super) const PUT: &str = "REPLACE INTO audit (id, body) VALUES (?1, ?2)";
pub(super) const REMOVE: &str = "DELETE FROM audit WHERE id = ?1";

/// Stores a row in the transaction of an act on the file itself.
pub(super) fn add(connection: &Connection, (id, entry): &(AuditId, AuditEntry)) -> Result<(), StoreError> {
    connection.execute(PUT, params![id.0.0, audit::encode(entry)])?;
    Ok(())
}

/// Decodes a row that begins with its id and its body.
pub(super) fn decode(row: &Row<'_>) -> Result<(AuditId, AuditEntry), StoreError> {
    let entry = audit::decode(&row.get::<_, Vec<u8>>(1)?);
    Ok((AuditId(Uuid(row.get(0)?)), entry.ok_or_else(|| damaged("audit", "an act that cannot be"))?))
}

/// At most `limit` rows before an id, newest first.
pub(super) fn list(
    shared: &Shared,
    before: AuditId,
    limit: usize,
) -> Result<Listing<(AuditId, AuditEntry)>, StoreError> {
    let decode = |row: &Row<'_>| Ok(decode(row)?.1);
    newest::list::<Audit>(shared, ("audit", LIST, 0), (AuditId, before.0), limit, decode)
}

/// The table `audit` for the journal.
pub(super) struct Audit;

impl Table for Audit {
    const TAG: u8 = 26;
    type Key = AuditId;
    type Value = AuditEntry;

    fn check(_key: &AuditId, _value: Option<&AuditEntry>) -> Result<(), StoreError> {
        Ok(())
    }

    fn put_key(key: &AuditId, out: &mut Vec<u8>) {
        out.extend_from_slice(&key.0.0);
    }

    fn take_key(input: &mut Input<'_>) -> Option<AuditId> {
        Some(AuditId(Uuid(input.fixed()?)))
    }

    fn put_value(value: &AuditEntry, out: &mut Vec<u8>) {
        put_bytes(&audit::encode(value), out);
    }

    fn take_value(input: &mut Input<'_>) -> Option<AuditEntry> {
        audit::decode(input.bytes()?)
    }

    fn heap_bytes(_key: &AuditId, value: Option<&AuditEntry>) -> usize {
        value.map_or(0, |value| {
            32 + value.subject.len()
                + value.detail.as_ref().map_or(0, |text| text.len())
                + origins::heap_bytes(&value.origin)
        })
    }

    fn write(connection: &Connection, rows: &mut Rows<'_, '_, Self>) -> Result<(), StoreError> {
        for (id, entry) in rows {
            match entry {
                Some(entry) => {
                    connection.prepare_cached(PUT)?.execute(params![id.0.0, audit::encode(entry)])?
                }
                None => connection.prepare_cached(REMOVE)?.execute(params![id.0.0])?,
            };
        }
        Ok(())
    }
}
