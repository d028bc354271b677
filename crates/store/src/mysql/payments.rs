//! The table `period_payments`: what is paid for closed periods.
//!
//! Not here: their bytes (`payments`), and the prizes themselves (`contests`).

use super::MySqlStore;
use super::connect::Flavour;
use super::fault::damaged;
use super::lists::all;
use super::row::Fields;
use super::text::{Row, Script, keys_end};
use crate::payments::{self, PaymentReads};
use crate::{BoardNo, Part, PartKey, StoreError};
use tally_rules::period::Payment;

const HEAD: &str = "INSERT INTO period_payments (board, part, open, body) VALUES ";

/// Asks for payments by period; how many statements that takes.
pub(super) fn select(script: &mut Script, keys: &[PartKey], locking: bool) -> usize {
    let head = "SELECT board, part, body FROM period_payments FORCE INDEX (PRIMARY) WHERE (board, part) IN (";
    script.keys(head, keys, keys_end(locking), put_key)
}

fn put_key(row: &mut Row<'_>, key: &PartKey) {
    row.number(key.board.0).number(key.part.0);
}

fn key(row: &mut Fields<'_>) -> Result<PartKey, StoreError> {
    Ok(PartKey { board: BoardNo(row.small()?), part: Part(row.number()?) })
}

/// A row of [`select`].
pub(super) fn decode(row: &mut Fields<'_>) -> Result<(PartKey, Payment), StoreError> {
    let key = key(row)?;
    let bad = || damaged("period_payments", "a payment that cannot be");
    Ok((key, payments::decode(row.bytes()?).ok_or_else(bad)?))
}

/// Asks for payments in order of periods, from the first one after `after`; rows as of [`select`].
pub(super) fn list(after: Option<&PartKey>, limit: usize) -> Script {
    let mut script = Script::default();
    script.sql("SELECT board, part, body FROM period_payments FORCE INDEX (PRIMARY)");
    if let Some(PartKey { board, part }) = after {
        script.sql(" WHERE board > ").number(board.0).sql(" OR (board = ").number(board.0);
        script.sql(" AND part > ").number(part.0).sql(")");
    }
    script.sql(" ORDER BY board, part LIMIT ").number(limit as u64).end();
    script
}

/// Fails where one of these has a row by now.
pub(super) fn guard<'a>(script: &mut Script, absent: impl Iterator<Item = &'a PartKey> + Clone) {
    script.rows(HEAD, absent.clone(), "", |row, key| {
        put_key(row, key);
        row.sql("NULL, ''");
    });
    script.keys("DELETE FROM period_payments WHERE (board, part) IN (", absent, ")", put_key);
}

/// Writes changes. What was not there when it was read must not be there now.
pub(super) fn write(
    script: &mut Script,
    rows: &[(PartKey, Payment)],
    is_new: impl Fn(&PartKey) -> bool,
    flavour: Flavour,
) {
    let put = |row: &mut Row<'_>, (key, payment): &(PartKey, Payment)| {
        put_key(row, key);
        row.signed_or_null(payment.is_open().then_some(1)).bytes(&payments::encode(payment));
    };
    script.rows(HEAD, rows.iter().filter(|(key, _)| is_new(key)), "", put);
    let tail = |script: &mut Script| flavour.replace(script, &["open", "body"]);
    script.upserts(HEAD, rows.iter().filter(|(key, _)| !is_new(key)), tail, put);
}

impl PaymentReads for MySqlStore {
    fn payment(&self, key: PartKey) -> Result<Option<Payment>, StoreError> {
        let mut script = Script::default();
        select(&mut script, &[key], false);
        Ok(all(self, &script, "period_payments", decode)?.pop().map(|(_, payment)| payment))
    }

    fn payments(&self, open: bool, after: Option<PartKey>, limit: usize) -> Result<Vec<PartKey>, StoreError> {
        let mut script = Script::default();
        script.sql("SELECT board, part FROM period_payments FORCE INDEX ");
        script.sql(if open { "(payments_open) WHERE open = 1 " } else { "(PRIMARY) WHERE 1 = 1 " });
        if let Some(PartKey { board, part }) = after {
            script.sql("AND (board > ").number(board.0).sql(" OR board = ").number(board.0);
            script.sql(" AND part > ").number(part.0).sql(") ");
        }
        script.sql("ORDER BY board, part LIMIT ").number(limit as u64).end();
        all(self, &script, "period_payments", key)
    }
}
