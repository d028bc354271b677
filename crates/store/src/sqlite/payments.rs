//! The table `period_payments`: the payouts of closed periods.
//!
//! Not here: their bytes (`payments`), and the prizes themselves (`contests`).

use super::SqliteStore;
use super::contest_reads::merged;
use super::contests::one;
use super::fault::damaged;
use super::memtable::Memtables;
use super::table::{Rows, Table};
use super::{reads, windows};
use crate::codec::payments;
use crate::codec::{Input, put_bytes, put_number};
use crate::payments::PaymentReads;
use crate::{BoardNo, StoreError, Window, WindowKey};
use rusqlite::{Connection, Row, params};
use std::ops::Bound;
use tally_rules::period::PeriodPayment;

pub(super) const GET: &str = "SELECT body FROM period_payments WHERE board = ?1 AND part = ?2";
pub(super) const PUT: &str = "REPLACE INTO period_payments (board, part, open, body) VALUES (?1, ?2, ?3, ?4)";
pub(super) const REMOVE: &str = "DELETE FROM period_payments WHERE board = ?1 AND part = ?2";
pub(super) const OPEN: &str = "SELECT board, part FROM period_payments INDEXED BY period_payments_open \
     WHERE open = 1 AND (board, part) > (?1, ?2) ORDER BY board, part";
const KEYS: &str =
    "SELECT board, part FROM period_payments WHERE (board, part) > (?1, ?2) ORDER BY board, part";

fn bad() -> StoreError {
    damaged("period_payments", "a payment that cannot be")
}

/// Decodes a row that begins with its body.
pub(super) fn decode(row: &Row<'_>) -> Result<PeriodPayment, StoreError> {
    payments::decode(&row.get::<_, Vec<u8>>(0)?).ok_or_else(bad)
}

/// The payment of a period.
pub(super) fn get(connection: &Connection, key: WindowKey) -> Result<Option<PeriodPayment>, StoreError> {
    one(connection, GET, params![key.board.0, windows::encode(key.window)?], decode)
}

/// The table `period_payments` for the journal.
pub(super) struct Payments;

impl Table for Payments {
    const TAG: u8 = 22;
    type Key = WindowKey;
    type Value = PeriodPayment;

    fn check(key: &WindowKey, _value: Option<&PeriodPayment>) -> Result<(), StoreError> {
        windows::encode(key.window).map(drop)
    }

    fn put_key(key: &WindowKey, out: &mut Vec<u8>) {
        put_number(key.board.0.into(), out);
        put_number(key.window.0, out);
    }

    fn take_key(input: &mut Input<'_>) -> Option<WindowKey> {
        Some(WindowKey { board: BoardNo(input.small()?), window: Window(input.number()?) })
    }

    fn put_value(value: &PeriodPayment, out: &mut Vec<u8>) {
        put_bytes(&payments::encode(value), out);
    }

    fn take_value(input: &mut Input<'_>) -> Option<PeriodPayment> {
        payments::decode(input.bytes()?)
    }

    fn heap_bytes(_key: &WindowKey, value: Option<&PeriodPayment>) -> usize {
        value.map_or(0, |payment| payment.board.as_str().len() + payment.period.len())
    }

    fn write(connection: &Connection, rows: &mut Rows<'_, '_, Self>) -> Result<(), StoreError> {
        for (key, payment) in rows {
            let window = windows::encode(key.window)?;
            match payment {
                Some(payment) => {
                    let row = params![
                        key.board.0,
                        window,
                        payment.is_open().then_some(1),
                        payments::encode(payment)
                    ];
                    connection.prepare_cached(PUT)?.execute(row)?
                }
                None => connection.prepare_cached(REMOVE)?.execute(params![key.board.0, window])?,
            };
        }
        Ok(())
    }
}

impl PaymentReads for SqliteStore {
    fn payment(&self, key: WindowKey) -> Result<Option<PeriodPayment>, StoreError> {
        let in_memory = |memtables: &Memtables| memtables.get::<Payments>(&key).cloned();
        reads::one(&self.shared, "period_payments", in_memory, &key, |tables, key| get(tables, *key))
    }

    fn payments(
        &self,
        open: bool,
        after: Option<WindowKey>,
        limit: usize,
    ) -> Result<Vec<WindowKey>, StoreError> {
        let in_memory = |memtables: &Memtables| {
            let wanted = |payment: &PeriodPayment| (!open || payment.is_open()).then_some(());
            let from = after.map_or(Bound::Unbounded, Bound::Excluded);
            memtables.first::<Payments, _>(from, |_| true, wanted, limit)
        };
        self.shared.read(in_memory, |newer, tables| {
            let mut statement = tables.prepare_cached(if open { OPEN } else { KEYS })?;
            // The all-time window has no prizes.
            let after = after.unwrap_or(WindowKey { board: BoardNo(0), window: Window(0) });
            let mut rows = statement.query(params![after.board.0, windows::encode(after.window)?])?;
            let decode = |row: &Row<'_>| {
                let window = Window(row.get::<_, i64>(1)?.cast_unsigned());
                Ok((WindowKey { board: BoardNo(row.get(0)?), window }, ()))
            };
            let order = |key: &WindowKey, (): &()| *key;
            let found = merged(newer, order, &mut rows, |row| decode(row).map(Some), limit)?.whole()?;
            Ok(found.into_iter().map(|(key, _)| key).collect())
        })
    }
}
