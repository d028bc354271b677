//! The table `period_payments`: the payouts of closed periods.
//!
//! Not here: their bytes (`payments`), and the prizes themselves (`contests`).

use super::MySqlStore;
use super::fault::damaged;
use super::lists::all;
use super::row::Fields;
use super::table::{self, Table};
use super::text::{RowScript, Script};
use super::windows;
use crate::codec::payments;
use crate::payments::PaymentReads;
use crate::{StoreError, WindowKey};
use tally_rules::period::PeriodPayment;

pub(super) struct Payments;

impl Table for Payments {
    const NAME: &'static str = "period_payments";
    const KEY: &'static str = "(board, part)";
    const READ: &'static str = "board, part, body";
    const WRITTEN: &'static str = "board, part, open, body";
    const REPLACED: &'static [&'static str] = &["open", "body"];
    const BLANK: &'static str = "NULL, ''";
    type Key = WindowKey;
    type Value = PeriodPayment;

    fn put_key(row: &mut RowScript<'_>, key: &WindowKey) {
        windows::put_key(row, key);
    }

    fn put(row: &mut RowScript<'_>, payment: &PeriodPayment) {
        row.signed_or_null(payment.is_open().then_some(1)).bytes(&payments::encode(payment));
    }

    fn decode(row: &mut Fields<'_>) -> Result<(WindowKey, PeriodPayment), StoreError> {
        let key = windows::key(row)?;
        let bad = || damaged("period_payments", "a payment that cannot be");
        Ok((key, payments::decode(row.bytes()?).ok_or_else(bad)?))
    }
}

/// Queries payments in order of periods, from the first one after `after`; rows as of [`table::select`].
pub(super) fn list(after: Option<&WindowKey>, limit: usize) -> Script {
    let mut script = Script::default();
    table::all::<Payments>(&mut script);
    if let Some(WindowKey { board, window }) = after {
        script.sql(" WHERE board > ").number(board.0).sql(" OR (board = ").number(board.0);
        script.sql(" AND part > ").number(window.0).sql(")");
    }
    script.sql(" ORDER BY board, part LIMIT ").number(limit as u64).end();
    script
}

impl PaymentReads for MySqlStore {
    fn payment(&self, key: WindowKey) -> Result<Option<PeriodPayment>, StoreError> {
        table::get_one::<Payments>(&self.pool, &key)
    }

    fn payments(
        &self,
        open: bool,
        after: Option<WindowKey>,
        limit: usize,
    ) -> Result<Vec<WindowKey>, StoreError> {
        let mut script = Script::default();
        script.sql("SELECT board, part FROM period_payments FORCE INDEX ");
        script.sql(if open { "(payments_open) WHERE open = 1 " } else { "(PRIMARY) WHERE 1 = 1 " });
        if let Some(WindowKey { board, window }) = after {
            script.sql("AND (board > ").number(board.0).sql(" OR board = ").number(board.0);
            script.sql(" AND part > ").number(window.0).sql(") ");
        }
        script.sql("ORDER BY board, part LIMIT ").number(limit as u64).end();
        all(self, &script, "period_payments", windows::key)
    }
}
