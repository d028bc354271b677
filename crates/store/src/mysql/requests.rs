//! The table `requests`: what was done under which idempotency key, until it is forgotten.

use super::connect::Flavour;
use super::fault::damaged;
use super::found;
use super::pool::Pool;
use super::row::{Answers, Fields};
use super::text::{Row, Script};
use crate::StoreError;
use tally_rules::Micros;
use tally_rules::idempotency::{Fingerprint, RequestKey, Stored};
use tally_rules::outcome::Outcome;

/// Asks for requests; how many statements that takes. The keys ascend.
pub(super) fn select(script: &mut Script, keys: &[RequestKey]) -> usize {
    script.keys(
        "SELECT scope, `key`, fingerprint, `at`, outcome FROM requests FORCE INDEX (PRIMARY) \
         WHERE (scope, `key`) IN (",
        keys,
        ") FOR UPDATE",
        put_key,
    )
}

/// The answer.
pub(super) fn read(
    answers: &mut Answers,
    statements: usize,
    keys: &[RequestKey],
) -> Result<Vec<Option<Stored>>, StoreError> {
    found(answers, statements, "requests", keys, decode)
}

pub(super) fn decode(row: &mut Fields<'_>) -> Result<(RequestKey, Stored), StoreError> {
    let key = RequestKey { scope: row.text()?.into(), key: row.text()?.into() };
    let (fingerprint, at) = (Fingerprint(row.fixed()?), Micros(row.signed()?));
    let outcome = Outcome::decode(row.bytes()?)
        .ok_or_else(|| damaged("requests", "an outcome that does not decode"))?;
    Ok((key, Stored { fingerprint, at, outcome }))
}

fn put_key(row: &mut Row<'_>, key: &RequestKey) {
    row.bytes(key.scope.as_bytes()).bytes(key.key.as_bytes());
}

const HEAD: &str = "INSERT INTO requests (scope, `key`, fingerprint, `at`, outcome) VALUES ";

/// Writes requests. One that was not there when it was read must not be there now.
pub(super) fn write(
    script: &mut Script,
    rows: &[(RequestKey, Stored)],
    absent: impl Fn(&RequestKey) -> bool,
    flavour: Flavour,
) {
    let put = |row: &mut Row<'_>, (key, stored): &(RequestKey, Stored)| {
        put_key(row, key);
        row.bytes(&stored.fingerprint.0).signed(stored.at.0).bytes(&stored.outcome.encode());
    };
    script.rows(HEAD, rows.iter().filter(|(key, _)| absent(key)), "", put);
    let tail = |script: &mut Script| flavour.replace(script, &["fingerprint", "`at`", "outcome"]);
    script.upserts(HEAD, rows.iter().filter(|(key, _)| !absent(key)), tail, put);
}

/// Fails where one of these keys has a row by now.
pub(super) fn guard<'a>(script: &mut Script, absent: impl Iterator<Item = &'a RequestKey> + Clone) {
    script.rows(HEAD, absent.clone(), "", |row, key| {
        put_key(row, key);
        row.sql("'', 0, ''");
    });
    script.keys("DELETE FROM requests WHERE (scope, `key`) IN (", absent, ")", put_key);
}

/// Forgets the oldest; gives how many.
pub(super) fn expire(pool: &Pool, before: Micros, limit: usize) -> Result<usize, StoreError> {
    let mut script = Script::default();
    script.sql("DELETE FROM requests WHERE `at` < ").signed(before.0);
    script.sql(" ORDER BY `at` LIMIT ").number(limit as u64).end();
    Ok(usize::try_from(pool.ask(&script)?.affected()).unwrap_or(usize::MAX))
}
