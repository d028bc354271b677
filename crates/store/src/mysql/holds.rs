//! The table `holds`: money that is reserved.

use super::MySqlStore;
use super::fault::damaged;
use super::lists::all;
use super::row::Fields;
use super::table::Table;
use super::text::{RowScript, Script};
use super::transfers::{origin, put_metadata, put_origin};
use super::wallets::{self, Wallets};
use crate::StoreError;
use crate::codec::holds::Columns;
use std::sync::Arc;
use tally_rules::Micros;
use tally_rules::ledger::{Hold, HoldId, Uuid, WalletKey};

pub(super) struct Holds;

impl Table for Holds {
    const NAME: &'static str = "holds";
    const KEY: &'static str = "id";
    const READ: &'static str = "id, member, currency, amount, expires_at, state, captured, captured_to, transfer, ended_at, \
         actor, reason, ended_by, end_reason, metadata";
    const WRITTEN: &'static str = "id, member, currency, amount, expires_at, state, captured, captured_to, \
         transfer, ended_at, actor, reason, ended_by, end_reason, metadata, due";
    const REPLACED: &'static [&'static str] = &[
        "state",
        "captured",
        "captured_to",
        "transfer",
        "ended_at",
        "reason",
        "ended_by",
        "end_reason",
        "metadata",
        "due",
    ];
    const BLANK: &'static str =
        "'', '', 0, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL";
    type Key = HoldId;
    type Value = Hold;

    fn put_key(row: &mut RowScript<'_>, id: &HoldId) {
        row.bytes(&id.0.0);
    }

    fn put(row: &mut RowScript<'_>, hold: &Hold) {
        let columns = Columns::of(hold);
        Wallets::put_key(row, &hold.wallet);
        row.signed(hold.amount).signed_or_null(hold.expires_at.map(|at| at.0));
        row.number(columns.state).signed_or_null(columns.captured);
        row.bytes_or_null(columns.captured_to.as_ref().map(|id| &id[..]));
        row.bytes_or_null(columns.transfer.as_ref().map(|id| &id[..]));
        row.signed_or_null(columns.ended_at);
        put_origin(row, &hold.origin);
        put_origin(row, &hold.ended_by);
        put_metadata(row, &hold.origin);
        row.signed_or_null(hold.expires_at.filter(|_| hold.is_open()).map(|at| at.0));
    }

    fn decode(row: &mut Fields<'_>) -> Result<(HoldId, Hold), StoreError> {
        let (id, wallet) = (HoldId(Uuid(row.fixed()?)), wallets::key(row)?);
        let (amount, expires_at) = (row.signed()?, row.maybe_signed()?);
        let columns = Columns {
            state: row.tiny()?,
            captured: row.maybe_signed()?,
            captured_to: row.maybe_fixed()?,
            transfer: row.maybe_fixed()?,
            ended_at: row.maybe_signed()?,
        };
        let mut origins = (origin(row, "holds")?, origin(row, "holds")?);
        origins.0.metadata = row.maybe_text()?.map(Arc::from);
        let hold = columns.hold(wallet, amount, expires_at, origins);
        Ok((id, hold.ok_or_else(|| damaged("holds", "a hold that cannot be"))?))
    }
}

/// Open holds that have expired.
pub(super) fn due(
    store: &MySqlStore,
    now: Micros,
    limit: usize,
) -> Result<Vec<(HoldId, WalletKey)>, StoreError> {
    let mut script = Script::default();
    script.sql("SELECT id, member, currency FROM holds WHERE due <= ").signed(now.0);
    script.sql(" ORDER BY due LIMIT ").number(limit as u64).end();
    all(store, &script, "holds", |row| Ok((HoldId(Uuid(row.fixed()?)), wallets::key(row)?)))
}
