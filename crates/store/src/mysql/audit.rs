//! The table `audit`: the rows of the audit log, by the instant of their requests.
//!
//! Not here: their bytes (`codec::audit`).

use super::MySqlStore;
use super::fault::damaged;
use super::lists::newest;
use super::row::Fields;
use super::table::Table;
use super::text::{RowScript, Script};
use crate::codec::audit;
use crate::{Listing, StoreError};
use tally_rules::audit::{AuditEntry, AuditId};
use tally_rules::ledger::Uuid;

pub(super) struct Audit;

impl Table for Audit {
    const NAME: &'static str = "audit";
    const KEY: &'static str = "id";
    const READ: &'static str = "id, body";
    const REPLACED: &'static [&'static str] = &[];
    const BLANK: &'static str = "''";
    type Key = AuditId;
    type Value = AuditEntry;

    fn put_key(row: &mut RowScript<'_>, id: &AuditId) {
        row.bytes(&id.0.0);
    }

    fn put(row: &mut RowScript<'_>, entry: &AuditEntry) {
        row.bytes(&audit::encode(entry));
    }

    fn decode(row: &mut Fields<'_>) -> Result<(AuditId, AuditEntry), StoreError> {
        let id = AuditId(Uuid(row.fixed()?));
        let entry = audit::decode(row.bytes()?);
        Ok((id, entry.ok_or_else(|| damaged("audit", "an act that cannot be"))?))
    }
}

/// Replaces rows, where there are such rows.
pub(super) fn replace(script: &mut Script, rows: &[(AuditId, AuditEntry)]) {
    for (id, entry) in rows {
        script.sql("UPDATE audit SET body = ").bytes(&audit::encode(entry));
        script.sql(" WHERE id = ").bytes(&id.0.0).end();
    }
}

/// At most `limit` rows before an id, newest first.
pub(super) fn list(
    store: &MySqlStore,
    before: AuditId,
    limit: usize,
) -> Result<Listing<(AuditId, AuditEntry)>, StoreError> {
    newest::<Audit>(store, before.0, limit)
}
