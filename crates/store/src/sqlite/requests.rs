//! The table `requests`: what was done under which idempotency key, until it is forgotten.

use super::fault::corrupt;
use crate::StoreError;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, params};
use tally_rules::Micros;
use tally_rules::idempotency::{Fingerprint, RequestKey, Stored};
use tally_rules::outcome::Outcome;

pub(super) const GET: &str = "SELECT fingerprint, at, outcome FROM requests WHERE scope = ?1 AND key = ?2";
pub(super) const PUT: &str =
    "REPLACE INTO requests (scope, key, fingerprint, at, outcome) VALUES (?1, ?2, ?3, ?4, ?5)";
pub(super) const EXPIRE: &str = "DELETE FROM requests WHERE (scope, key) IN \
     (SELECT scope, key FROM requests WHERE at < ?1 ORDER BY at LIMIT ?2)";

/// What is stored of each request of a plan.
pub(super) fn load(connection: &Connection, keys: &[RequestKey]) -> Result<Vec<Option<Stored>>, StoreError> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let mut statement = connection.prepare_cached(GET)?;
    let mut found = Vec::with_capacity(keys.len());
    for key in keys {
        let mut rows = statement.query(params![&*key.scope, &*key.key])?;
        found.push(rows.next()?.map(decode).transpose()?);
    }
    Ok(found)
}

/// Stores requests that were done.
pub(super) fn store(connection: &Connection, requests: &[(RequestKey, Stored)]) -> Result<(), StoreError> {
    if requests.is_empty() {
        return Ok(());
    }
    let mut statement = connection.prepare_cached(PUT)?;
    for (key, stored) in requests {
        let outcome = stored.outcome.encode();
        statement.execute(params![
            &*key.scope,
            &*key.key,
            stored.fingerprint.0,
            stored.at.0,
            outcome.as_slice()
        ])?;
    }
    Ok(())
}

/// Forgets at most `limit` requests older than `before`, oldest first.
pub(super) fn expire(connection: &Connection, before: Micros, limit: i64) -> Result<usize, StoreError> {
    Ok(connection.prepare_cached(EXPIRE)?.execute(params![before.0, limit])?)
}

fn decode(row: &Row<'_>) -> Result<Stored, StoreError> {
    let ValueRef::Blob(outcome) = row.get_ref(2)? else {
        return Err(corrupt("requests", "an outcome that is not bytes"));
    };
    let outcome =
        Outcome::decode(outcome).ok_or_else(|| corrupt("requests", "an outcome that does not decode"))?;
    Ok(Stored { fingerprint: Fingerprint(row.get(0)?), at: Micros(row.get(1)?), outcome })
}
