//! The table `requests`: the outcome of each idempotency key, until it expires.

use super::fault::damaged;
use super::state::Shared;
use super::table::{Rows, Table};
use crate::StoreError;
use crate::codec::{Input, put_bytes, put_signed};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, params};
use tally_rules::Micros;
use tally_rules::idempotency::{Fingerprint, RequestKey, Stored};
use tally_rules::outcome::Outcome;

pub(super) const GET: &str = "SELECT fingerprint, at, outcome FROM requests WHERE scope = ?1 AND key = ?2";
pub(super) const PUT: &str =
    "REPLACE INTO requests (scope, key, fingerprint, at, outcome) VALUES (?1, ?2, ?3, ?4, ?5)";
pub(super) const OLD: &str = "SELECT scope, key FROM requests WHERE at < ?1 ORDER BY at";
pub(super) const REMOVE: &str = "DELETE FROM requests WHERE scope = ?1 AND key = ?2";

/// The stored outcome of a request.
pub(super) fn get(connection: &Connection, key: &RequestKey) -> Result<Option<Stored>, StoreError> {
    let mut statement = connection.prepare_cached(GET)?;
    let mut rows = statement.query(params![&*key.scope, &*key.key])?;
    rows.next()?.map(decode).transpose()
}

/// Deletes at most `limit` requests older than `before`. Rows of that age are usually in the tables already. If they expire
/// faster than the flush, it waits for the flush.
pub(super) fn expire_some(shared: &Shared, before: Micros, limit: usize) -> Result<usize, StoreError> {
    let from_tables = |limit| {
        shared.write_tables(|tables| {
            // A row that is not in the memtable now cannot be in a running flush, because this thread has the tables.
            expire(tables, before, limit, |key| shared.memtables().get::<Requests>(key).is_some())
        })
    };
    let done = from_tables(limit)?;
    if done == limit || !shared.memtables().has_older::<Requests>(before.0) {
        return Ok(done);
    }
    shared.flushing.flush_now(shared)?;
    Ok(done + from_tables(limit - done)?)
}

/// Deletes at most `limit` requests older than `before`, oldest first, except those for which `newer` reports a newer state.
fn expire(
    connection: &Connection,
    before: Micros,
    limit: usize,
    newer: impl Fn(&RequestKey) -> bool,
) -> Result<usize, StoreError> {
    let mut old = Vec::new();
    let mut statement = connection.prepare_cached(OLD)?;
    let mut rows = statement.query(params![before.0])?;
    while old.len() < limit
        && let Some(row) = rows.next()?
    {
        let text = |column: usize| -> Result<std::sync::Arc<str>, StoreError> {
            let text = row.get_ref(column)?.as_str();
            Ok(text.map_err(|_| damaged("requests", "a key that is no text"))?.into())
        };
        let key = RequestKey { scope: text(0)?, key: text(1)? };
        if !newer(&key) {
            old.push(key);
        }
    }
    let mut remove = connection.prepare_cached(REMOVE)?;
    for key in &old {
        remove.execute(params![&*key.scope, &*key.key])?;
    }
    Ok(old.len())
}

/// The table `requests` for the journal.
pub(super) struct Requests;

impl Table for Requests {
    const TAG: u8 = 1;
    type Key = RequestKey;
    type Value = Stored;

    fn check(_key: &RequestKey, _value: Option<&Stored>) -> Result<(), StoreError> {
        Ok(())
    }

    fn put_key(key: &RequestKey, out: &mut Vec<u8>) {
        put_bytes(key.scope.as_bytes(), out);
        put_bytes(key.key.as_bytes(), out);
    }

    fn take_key(input: &mut Input<'_>) -> Option<RequestKey> {
        Some(RequestKey { scope: input.text()?.into(), key: input.text()?.into() })
    }

    fn put_value(value: &Stored, out: &mut Vec<u8>) {
        out.extend_from_slice(&value.fingerprint.0);
        put_signed(value.at.0, out);
        put_bytes(&value.outcome.encode(), out);
    }

    fn take_value(input: &mut Input<'_>) -> Option<Stored> {
        let (fingerprint, at) = (Fingerprint(input.fixed()?), Micros(input.signed()?));
        Some(Stored { fingerprint, at, outcome: Outcome::decode(input.bytes()?)? })
    }

    fn heap_bytes(key: &RequestKey, _value: Option<&Stored>) -> usize {
        // A scope is shared by many keys, or short.
        32 + key.key.len()
    }

    fn age(value: &Stored) -> Option<i64> {
        Some(value.at.0)
    }

    fn write(connection: &Connection, rows: &mut Rows<'_, '_, Self>) -> Result<(), StoreError> {
        let mut put = connection.prepare_cached(PUT)?;
        let mut remove = connection.prepare_cached(REMOVE)?;
        for (key, stored) in rows {
            match stored {
                Some(stored) => {
                    let outcome = stored.outcome.encode();
                    put.execute(params![
                        &*key.scope,
                        &*key.key,
                        stored.fingerprint.0,
                        stored.at.0,
                        outcome.as_slice()
                    ])?
                }
                None => remove.execute(params![&*key.scope, &*key.key])?,
            };
        }
        Ok(())
    }
}

pub(super) fn decode(row: &Row<'_>) -> Result<Stored, StoreError> {
    let ValueRef::Blob(outcome) = row.get_ref(2)? else {
        return Err(damaged("requests", "an outcome that is not bytes"));
    };
    let outcome =
        Outcome::decode(outcome).ok_or_else(|| damaged("requests", "an outcome that does not decode"))?;
    Ok(Stored { fingerprint: Fingerprint(row.get(0)?), at: Micros(row.get(1)?), outcome })
}
