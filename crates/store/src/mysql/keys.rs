//! The table `api_keys`: API keys, and whether they are revoked.
//!
//! Changes are made one at a time, under the same row lock as changes of boards. So the numbers give the order of creation.

use super::row::{Fields, ResultSets, key};
use super::text::Script;
use crate::StoreError;
use crate::codec::grants::granted;
use crate::plan::{KeyChange, KeyRow};
use tally_rules::{Grant, Micros};

const LAST: &str = "SELECT COALESCE(MAX(`no`), 0) FROM api_keys";

/// Queries every key that is not revoked.
pub(super) fn select_all() -> Script {
    let mut script = Script::default();
    script.statement(
        "SELECT id, hash, COALESCE(granted, role), name, created_at FROM api_keys WHERE revoked_at IS NULL ORDER BY `no`",
    );
    script
}

/// Reads the answer, in order of creation. A corrupt key is recorded and left out.
pub(super) fn read_all(mut results: ResultSets) -> Result<Vec<KeyRow>, StoreError> {
    let mut found = Vec::new();
    results.each_sound(
        "api_keys",
        |row| key("api_keys", row),
        |row| {
            found.push(decode(row)?);
            Ok(())
        },
    )?;
    Ok(found)
}

pub(super) fn decode(row: &mut Fields<'_>) -> Result<KeyRow, StoreError> {
    Ok(KeyRow {
        id: row.text()?.into(),
        hash: row.fixed()?,
        grant: row.choice(Grant::parse)?,
        name: row.text()?.to_owned(),
        created_at: Micros(row.signed()?),
    })
}

/// Queries the number of the last key.
pub(super) fn select_had() -> Script {
    let mut script = Script::default();
    script.statement(LAST);
    script
}

/// Whether a key was ever created.
pub(super) fn read_had(mut results: ResultSets) -> Result<bool, StoreError> {
    Ok(results.one_number("api_keys")? > 0)
}

/// Queries what changes refer to: the last number, then which ids are taken. Returns the number of statements.
pub(super) fn select_present(script: &mut Script, changes: &[KeyChange]) -> usize {
    script.statement(LAST);
    1 + script.keys("SELECT id FROM api_keys WHERE id IN (", changes, ") FOR UPDATE", |row, change| {
        row.bytes(change.id().as_bytes());
    })
}

/// Reads the answer of [`select_present`].
pub(super) fn read_present(
    results: &mut ResultSets,
    statements: usize,
) -> Result<(u64, Vec<Vec<u8>>), StoreError> {
    let last = results.one_number("api_keys")?;
    let mut taken = Vec::new();
    results.each(statements - 1, "api_keys", |row| {
        taken.push(row.bytes()?.to_vec());
        Ok(())
    })?;
    Ok((last, taken))
}

/// Creates and revokes keys. Revoking a missing or a revoked key changes nothing: the key is not accepted already.
pub(super) fn write(
    script: &mut Script,
    changes: &[KeyChange],
    (mut last, taken): (u64, Vec<Vec<u8>>),
) -> Result<(), StoreError> {
    for change in changes {
        match change {
            KeyChange::Create(row) => {
                if taken.iter().any(|id| id == row.id.as_bytes()) {
                    return Err(StoreError::Row(format!("keys: the id `{}` is taken", row.id)));
                }
                last += 1;
                let head = "INSERT INTO api_keys (id, `no`, hash, role, granted, name, created_at) VALUES ";
                script.rows(head, [row], "", |values, row| {
                    values.bytes(row.id.as_bytes()).number(last).bytes(&row.hash);
                    values.bytes(row.grant.rights.role().as_str().as_bytes());
                    values.bytes_or_null(granted(&row.grant).as_deref().map(str::as_bytes));
                    values.bytes(row.name.as_bytes()).signed(row.created_at.0);
                });
            }
            KeyChange::Revoke(id, at) => {
                script.sql("UPDATE api_keys SET revoked_at = ").signed(at.0);
                script.sql(" WHERE revoked_at IS NULL AND id = ").bytes(id.as_bytes()).end();
            }
        }
    }
    Ok(())
}
