//! The table `holds`: money that is reserved.

use super::fault::damaged;
use super::table::{Rows, Table};
use super::transfers::{metadata, origin};
use super::wallets::currency;
use crate::StoreError;
use crate::codec::holds::{Columns, WITH_ORIGINS};
use crate::codec::origins;
use crate::codec::{Input, put_option, put_signed};
use rusqlite::{Connection, Row, params};
use tally_rules::ledger::{Currency, Hold, HoldId, MemberId, Uuid, WalletKey};
use tally_rules::{Micros, Origin};

pub(super) const GET: &str = "SELECT member, currency, amount, expires_at, state, captured, captured_to, transfer, \
     ended_at, actor, reason, ended_by, end_reason, metadata FROM holds WHERE id = ?1";
pub(super) const LIST: &str = "SELECT member, currency, amount, expires_at, state, captured, captured_to, transfer, \
     ended_at, actor, reason, ended_by, end_reason, metadata, id FROM holds WHERE id < ?1 ORDER BY id DESC";
pub(super) const PUT: &str = "REPLACE INTO holds (id, member, currency, amount, expires_at, state, captured, \
     captured_to, transfer, ended_at, actor, reason, ended_by, end_reason, metadata) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";
pub(super) const REMOVE: &str = "DELETE FROM holds WHERE id = ?1";
/// The state is a literal in the text, so that SQLite uses the index of due holds.
pub(super) const DUE: &str = "SELECT id, member, currency FROM holds INDEXED BY holds_due \
     WHERE state = 0 AND expires_at IS NOT NULL AND expires_at <= ?1 ORDER BY expires_at";

pub(super) fn get(connection: &Connection, id: &HoldId) -> Result<Option<Hold>, StoreError> {
    let mut statement = connection.prepare_cached(GET)?;
    let mut rows = statement.query(params![id.0.0])?;
    rows.next()?.map(decode).transpose()
}

/// Decodes the columns from the first one on.
pub(super) fn decode(row: &Row<'_>) -> Result<Hold, StoreError> {
    let member = MemberId(Uuid(row.get(0)?));
    let wallet = WalletKey { member, currency: currency("holds", &row.get::<_, String>(1)?)? };
    let columns = Columns {
        state: row.get(4)?,
        captured: row.get(5)?,
        captured_to: row.get(6)?,
        transfer: row.get(7)?,
        ended_at: row.get(8)?,
    };
    let made = Origin { metadata: metadata(row, 13)?, ..origin(row, 9, "holds")? };
    let origins = (made, origin(row, 11, "holds")?);
    let hold = columns.hold(wallet, row.get(2)?, row.get(3)?, origins);
    hold.ok_or_else(|| damaged("holds", "a hold that cannot be"))
}

/// Passes due holds to `each`, for as long as it returns true.
pub(super) fn due(
    connection: &Connection,
    now: Micros,
    each: &mut dyn FnMut(HoldId, WalletKey) -> bool,
) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(DUE)?;
    let mut rows = statement.query(params![now.0])?;
    while let Some(row) = rows.next()? {
        let member = MemberId(Uuid(row.get(1)?));
        let wallet = WalletKey { member, currency: currency("holds", &row.get::<_, String>(2)?)? };
        if !each(HoldId(Uuid(row.get(0)?)), wallet) {
            break;
        }
    }
    Ok(())
}

/// The table `holds` for the journal.
pub(super) struct Holds;

impl Table for Holds {
    const TAG: u8 = 16;
    type Key = HoldId;
    type Value = Hold;

    fn check(_key: &HoldId, value: Option<&Hold>) -> Result<(), StoreError> {
        match value {
            Some(hold) if hold.amount <= 0 => {
                Err(StoreError::Row("holds: an amount that is not positive".into()))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn put_key(key: &HoldId, out: &mut Vec<u8>) {
        out.extend_from_slice(&key.0.0);
    }

    fn take_key(input: &mut Input<'_>) -> Option<HoldId> {
        Some(HoldId(Uuid(input.fixed()?)))
    }

    fn put_value(value: &Hold, out: &mut Vec<u8>) {
        let columns = Columns::of(value);
        out.extend_from_slice(&value.wallet.member.0.0);
        out.extend_from_slice(&value.wallet.currency.bytes());
        put_signed(value.amount, out);
        put_option(value.expires_at, out, |at, out| put_signed(at.0, out));
        let has_origins = [&value.origin, &value.ended_by].iter().any(|origin| **origin != Origin::default());
        let metadata = value.origin.metadata.as_ref();
        let mark = origins::mark(metadata);
        out.push(columns.state | mark | if has_origins { WITH_ORIGINS } else { 0 });
        put_option(columns.captured, out, put_signed);
        put_option(columns.captured_to, out, |id, out| out.extend_from_slice(&id));
        put_option(columns.transfer, out, |id, out| out.extend_from_slice(&id));
        put_option(columns.ended_at, out, put_signed);
        if has_origins {
            origins::put(&value.origin, out);
            origins::put(&value.ended_by, out);
        }
        origins::put_metadata(metadata, out);
    }

    fn take_value(input: &mut Input<'_>) -> Option<Hold> {
        let (member, currency) = (MemberId(Uuid(input.fixed()?)), Currency::of_bytes(input.fixed()?)?);
        let (amount, expires_at) = (input.signed()?, input.option(Input::signed)?);
        let state = input.byte()?;
        let columns = Columns {
            state: state & !(WITH_ORIGINS | origins::WITH_METADATA),
            captured: input.option(Input::signed)?,
            captured_to: input.option(Input::fixed)?,
            transfer: input.option(Input::fixed)?,
            ended_at: input.option(Input::signed)?,
        };
        let (origin, ended_by) = match state & WITH_ORIGINS {
            0 => <(Origin, Origin)>::default(),
            _ => (origins::take(input)?, origins::take(input)?),
        };
        let origins = (Origin { metadata: origins::take_metadata(state, input)?, ..origin }, ended_by);
        columns.hold(WalletKey { member, currency }, amount, expires_at, origins)
    }

    fn heap_bytes(_key: &HoldId, value: Option<&Hold>) -> usize {
        let both = |value: &Hold| origins::heap_bytes(&value.origin) + origins::heap_bytes(&value.ended_by);
        value.map_or(0, both)
    }

    fn write(connection: &Connection, rows: &mut Rows<'_, '_, Self>) -> Result<(), StoreError> {
        let mut put = connection.prepare_cached(PUT)?;
        let mut remove = connection.prepare_cached(REMOVE)?;
        for (id, hold) in rows {
            match hold {
                Some(hold) => {
                    let columns = Columns::of(hold);
                    put.execute(params![
                        id.0.0,
                        hold.wallet.member.0.0,
                        hold.wallet.currency.as_str(),
                        hold.amount,
                        hold.expires_at.map(|at| at.0),
                        columns.state,
                        columns.captured,
                        columns.captured_to,
                        columns.transfer,
                        columns.ended_at,
                        origins::column(hold.origin.actor),
                        hold.origin.reason.as_deref(),
                        origins::column(hold.ended_by.actor),
                        hold.ended_by.reason.as_deref(),
                        hold.origin.metadata.as_deref(),
                    ])?
                }
                None => remove.execute(params![id.0.0])?,
            };
        }
        Ok(())
    }
}
