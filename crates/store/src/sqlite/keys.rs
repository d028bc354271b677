//! The table `keys`: API keys, and whether they are revoked.

use super::fault::damaged;
use super::table::{Rows, Table};
use crate::codec::grants::granted;
use crate::codec::{Input, put_bytes, put_number, put_option, put_signed};
use crate::{CorruptRow, KeyRow, StoreError};
use rusqlite::{Connection, Row, params};
use std::sync::Arc;
use tally_rules::{Grant, Micros};

pub(super) const ALL: &str =
    "SELECT id, hash, coalesce(granted, role), name, created_at, no, revoked_at FROM keys ORDER BY no";
pub(super) const GET: &str =
    "SELECT id, hash, coalesce(granted, role), name, created_at, no, revoked_at FROM keys WHERE id = ?1";
pub(super) const PUT: &str = "INSERT INTO keys (no, id, hash, role, granted, name, created_at, revoked_at) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (no) DO UPDATE SET revoked_at = excluded.revoked_at";
pub(super) const LAST: &str = "SELECT coalesce(max(no), 0) FROM keys";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyState {
    /// The order of creation.
    pub(super) no: u32,
    pub(super) row: KeyRow,
    pub(super) revoked_at: Option<Micros>,
}

/// Every key, including revoked ones, in order of creation. A corrupt one goes to `skip`.
pub(super) fn all(
    connection: &Connection,
    skip: &mut dyn FnMut(CorruptRow),
) -> Result<Vec<KeyState>, StoreError> {
    let mut statement = connection.prepare_cached(ALL)?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let name = || {
            let id = row.get_ref(0).ok().and_then(|id| id.as_bytes().ok()).unwrap_or_default();
            String::from_utf8_lossy(id).escape_debug().to_string()
        };
        match decode(row).map_err(|error| error.of_row("keys", name)) {
            Ok(state) => found.push(state),
            Err(StoreError::CorruptRow(row)) => skip(*row),
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// The key with an id.
pub(super) fn get(connection: &Connection, id: &str) -> Result<Option<KeyState>, StoreError> {
    let mut statement = connection.prepare_cached(GET)?;
    let mut rows = statement.query(params![id])?;
    rows.next()?.map(decode).transpose()
}

/// The number of the last key.
pub(super) fn last(connection: &Connection) -> Result<u32, StoreError> {
    Ok(connection.prepare_cached(LAST)?.query_row([], |row| row.get(0))?)
}

/// The table `keys` for the journal. A revoked key stays, so that its id is never given to another.
pub(super) struct Keys;

impl Table for Keys {
    const TAG: u8 = 9;
    type Key = Arc<str>;
    type Value = KeyState;

    fn check(_key: &Arc<str>, _value: Option<&KeyState>) -> Result<(), StoreError> {
        Ok(())
    }

    fn put_key(key: &Arc<str>, out: &mut Vec<u8>) {
        put_bytes(key.as_bytes(), out);
    }

    fn take_key(input: &mut Input<'_>) -> Option<Arc<str>> {
        input.text().map(Arc::from)
    }

    fn put_value(value: &KeyState, out: &mut Vec<u8>) {
        put_number(value.no.into(), out);
        put_bytes(value.row.id.as_bytes(), out);
        out.extend_from_slice(&value.row.hash);
        put_bytes(value.row.grant.to_string().as_bytes(), out);
        put_bytes(value.row.name.as_bytes(), out);
        put_signed(value.row.created_at.0, out);
        put_option(value.revoked_at, out, |at, out| put_signed(at.0, out));
    }

    fn take_value(input: &mut Input<'_>) -> Option<KeyState> {
        let no = input.small()?;
        let row = KeyRow {
            id: input.text()?.into(),
            hash: input.fixed()?,
            grant: Grant::parse(input.text()?)?,
            name: input.text()?.to_owned(),
            created_at: Micros(input.signed()?),
        };
        Some(KeyState { no, row, revoked_at: input.option(Input::signed)?.map(Micros) })
    }

    fn heap_bytes(key: &Arc<str>, value: Option<&KeyState>) -> usize {
        32 + 2 * key.len() + value.map_or(0, |value| value.row.name.len())
    }

    fn write(connection: &Connection, rows: &mut Rows<'_, '_, Self>) -> Result<(), StoreError> {
        for (_, state) in rows {
            let Some(KeyState { no, row, revoked_at }) = state else { continue };
            connection.prepare_cached(PUT)?.execute(params![
                no,
                &*row.id,
                row.hash,
                row.grant.rights.role().as_str(),
                granted(&row.grant),
                row.name,
                row.created_at.0,
                revoked_at.map(|at| at.0)
            ])?;
        }
        Ok(())
    }
}

pub(super) fn decode(row: &Row<'_>) -> Result<KeyState, StoreError> {
    let grant: String = row.get(2)?;
    let key = KeyRow {
        id: row.get::<_, String>(0)?.into(),
        hash: row.get(1)?,
        grant: Grant::parse(&grant).ok_or_else(|| damaged("keys", &format!("no key may `{grant}`")))?,
        name: row.get(3)?,
        created_at: Micros(row.get(4)?),
    };
    Ok(KeyState { no: row.get(5)?, row: key, revoked_at: row.get::<_, Option<i64>>(6)?.map(Micros) })
}
