//! The table `keys`: API keys and whether they were revoked.

use super::fault::corrupt;
use crate::{KeyChange, KeyRow, StoreError};
use rusqlite::{Connection, Row, params};
use tally_rules::Micros;
use tally_rules::role::Role;

pub(super) const LIVE: &str =
    "SELECT id, hash, role, name, created_at FROM keys WHERE revoked_at IS NULL ORDER BY no";
pub(super) const CREATE: &str =
    "INSERT INTO keys (id, hash, role, name, created_at) VALUES (?1, ?2, ?3, ?4, ?5)";
pub(super) const REVOKE: &str = "UPDATE keys SET revoked_at = ?2 WHERE id = ?1 AND revoked_at IS NULL";

/// Every key that was not revoked, in order of creation.
pub(super) fn live(connection: &Connection) -> Result<Vec<KeyRow>, StoreError> {
    let mut statement = connection.prepare_cached(LIVE)?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(decode(row)?);
    }
    Ok(found)
}

/// Creates and revokes. Revoking a key that is not there, or once more, changes nothing: it is not accepted already.
pub(super) fn store(connection: &Connection, changes: &[KeyChange]) -> Result<(), StoreError> {
    for change in changes {
        match change {
            KeyChange::Create(key) => connection.prepare_cached(CREATE)?.execute(params![
                &*key.id,
                key.hash,
                key.role.as_str(),
                key.name,
                key.created_at.0
            ])?,
            KeyChange::Revoke(id, at) => connection.prepare_cached(REVOKE)?.execute(params![&**id, at.0])?,
        };
    }
    Ok(())
}

fn decode(row: &Row<'_>) -> Result<KeyRow, StoreError> {
    let role: String = row.get(2)?;
    Ok(KeyRow {
        id: row.get::<_, String>(0)?.into(),
        hash: row.get(1)?,
        role: Role::parse(&role).ok_or_else(|| corrupt("keys", &format!("no role is named `{role}`")))?,
        name: row.get(3)?,
        created_at: Micros(row.get(4)?),
    })
}
