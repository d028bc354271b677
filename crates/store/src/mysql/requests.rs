//! The table `requests`: the outcome of each idempotency key, until it expires.

use super::fault::damaged;
use super::pool::Pool;
use super::row::Fields;
use super::table::Table;
use super::text::{RowScript, Script};
use crate::StoreError;
use tally_rules::Micros;
use tally_rules::idempotency::{Fingerprint, RequestKey, Stored};
use tally_rules::outcome::Outcome;

pub(super) struct Requests;

impl Table for Requests {
    const NAME: &'static str = "requests";
    const KEY: &'static str = "(scope, `key`)";
    const READ: &'static str = "scope, `key`, fingerprint, `at`, outcome";
    const REPLACED: &'static [&'static str] = &["fingerprint", "`at`", "outcome"];
    const BLANK: &'static str = "'', 0, ''";
    type Key = RequestKey;
    type Value = Stored;

    fn put_key(row: &mut RowScript<'_>, key: &RequestKey) {
        row.bytes(key.scope.as_bytes()).bytes(key.key.as_bytes());
    }

    fn put(row: &mut RowScript<'_>, stored: &Stored) {
        row.bytes(&stored.fingerprint.0).signed(stored.at.0).bytes(&stored.outcome.encode());
    }

    fn decode(row: &mut Fields<'_>) -> Result<(RequestKey, Stored), StoreError> {
        let key = RequestKey { scope: row.text()?.into(), key: row.text()?.into() };
        let (fingerprint, at) = (Fingerprint(row.fixed()?), Micros(row.signed()?));
        let outcome = Outcome::decode(row.bytes()?)
            .ok_or_else(|| damaged("requests", "an outcome that does not decode"))?;
        Ok((key, Stored { fingerprint, at, outcome }))
    }
}

/// Deletes at most `limit` outcomes older than `before`, the oldest first. Returns their number.
pub(super) fn expire(pool: &Pool, before: Micros, limit: usize) -> Result<usize, StoreError> {
    let mut script = Script::default();
    script.sql("DELETE FROM requests WHERE `at` < ").signed(before.0);
    script.sql(" ORDER BY `at` LIMIT ").number(limit as u64).end();
    Ok(usize::try_from(pool.query(&script)?.affected()).unwrap_or(usize::MAX))
}
