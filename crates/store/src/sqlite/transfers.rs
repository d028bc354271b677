//! The tables `transfers` and `entries`: transfers, and the entry that each leaves in a wallet. Rows never change,
//! but for the words of callers in transfers of an erased member (`redacted`).

use super::fault::{column_text, damaged};
use super::table::{Rows, Table};
use super::wallets::{counted, currency};
use crate::codec::origins;
use crate::codec::{Input, put_number, transfers};
use crate::damage::KeyText;
use crate::{Listing, StoreError};
use rusqlite::{Connection, Row, params};
use std::ops::Range;
use std::sync::Arc;
use tally_rules::Origin;
use tally_rules::ledger::entry::EntryKey;
use tally_rules::ledger::{Currency, Entry, EntryKind, MemberId, Transfer, TransferId, Uuid, WalletKey};

pub(super) const GET: &str = "SELECT kind, currency, amount, debit_member, debit_sequence, credit_member, \
     credit_sequence, actor, reason, metadata FROM transfers WHERE id = ?1";
pub(super) const LIST: &str = "SELECT kind, currency, amount, debit_member, debit_sequence, credit_member, \
     credit_sequence, actor, reason, metadata, id FROM transfers WHERE id < ?1 ORDER BY id DESC";
pub(super) const RECENT: &str = "SELECT kind, currency, amount, debit_member, debit_sequence, credit_member, \
     credit_sequence, actor, reason, metadata, id FROM transfers WHERE id > ?1 ORDER BY id";
pub(super) const PUT: &str = "REPLACE INTO transfers (id, kind, currency, amount, debit_member, debit_sequence, \
     credit_member, credit_sequence, actor, reason, metadata) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
pub(super) const REMOVE: &str = "DELETE FROM transfers WHERE id = ?1";
pub(super) const GET_ENTRY: &str = "SELECT transfer, kind, amount, after, counterparty, reference FROM entries \
     WHERE member = ?1 AND currency = ?2 AND sequence = ?3";
pub(super) const HISTORY: &str = "SELECT transfer, kind, amount, after, counterparty, reference, sequence FROM entries \
     WHERE member = ?1 AND currency = ?2 AND sequence >= ?3 AND sequence < ?4";
pub(super) const PUT_ENTRY: &str = "REPLACE INTO entries (member, currency, sequence, transfer, kind, amount, after, \
     counterparty, reference) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
pub(super) const REMOVE_ENTRY: &str =
    "DELETE FROM entries WHERE member = ?1 AND currency = ?2 AND sequence = ?3";

pub(super) fn get(connection: &Connection, id: &TransferId) -> Result<Option<Transfer>, StoreError> {
    let mut statement = connection.prepare_cached(GET)?;
    let mut rows = statement.query(params![id.0.0])?;
    rows.next()?.map(decode).transpose()
}

/// Decodes the columns from the first one on.
pub(super) fn decode(row: &Row<'_>) -> Result<Transfer, StoreError> {
    let side = |column: usize| -> Result<Option<(MemberId, u64)>, StoreError> {
        let member: Option<[u8; 16]> = row.get(column)?;
        let sequence: Option<i64> = row.get(column + 1)?;
        let sequence = sequence.map(|number| counted("transfers", number)).transpose()?;
        Ok(member.map(|member| MemberId(Uuid(member))).zip(sequence))
    };
    let (debit, credit) = (side(3)?, side(5)?);
    let kinds = Transfer::kind_of_number(row.get(0)?, debit.is_some());
    let (kind, reverses) = kinds.ok_or_else(|| bad_kind("transfers"))?;
    let currency = currency("transfers", &row.get::<_, String>(1)?)?;
    let origin = Origin { metadata: metadata(row, 9)?, ..origin(row, 7, "transfers")? };
    Ok(Transfer { kind, reverses, currency, amount: row.get(2)?, debit, credit, origin })
}

/// The origin in two columns: the actor, and the reason.
pub(super) fn origin(row: &Row<'_>, column: usize, table: &'static str) -> Result<Origin, StoreError> {
    let bytes: Option<Vec<u8>> = row.get(column)?;
    let actor = origins::of_column(bytes.as_deref());
    let actor = actor.ok_or_else(|| damaged(table, "an actor that there is not"))?;
    Ok(Origin { actor, reason: row.get::<_, Option<String>>(column + 1)?.map(Arc::from), metadata: None })
}

/// The metadata in a column.
pub(super) fn metadata(row: &Row<'_>, column: usize) -> Result<Option<Arc<str>>, StoreError> {
    Ok(row.get::<_, Option<String>>(column)?.map(Arc::from))
}

fn bad_kind(table: &'static str) -> StoreError {
    damaged(table, "a kind that there is not")
}

pub(super) fn entry(connection: &Connection, key: &EntryKey) -> Result<Option<Entry>, StoreError> {
    let mut statement = connection.prepare_cached(GET_ENTRY)?;
    let WalletKey { member, currency } = key.wallet;
    let mut rows = statement.query(params![member.0.0, currency.as_str(), key.sequence.cast_signed()])?;
    rows.next()?.map(decode_entry).transpose()
}

/// Decodes the columns from the first one on.
pub(super) fn decode_entry(row: &Row<'_>) -> Result<Entry, StoreError> {
    let counterparty: Option<[u8; 16]> = row.get(4)?;
    let reference: Option<String> = row.get(5)?;
    Ok(Entry {
        transfer: TransferId(Uuid(row.get(0)?)),
        kind: EntryKind::of_number(row.get(1)?).ok_or_else(|| bad_kind("entries"))?,
        amount: row.get(2)?,
        after: row.get(3)?,
        counterparty: counterparty.map(|member| MemberId(Uuid(member))),
        reference: reference.map(Arc::from),
    })
}

/// Entries of a wallet whose numbers are in the range, in order.
pub(super) fn history(
    connection: &Connection,
    wallet: WalletKey,
    numbers: &Range<u64>,
) -> Result<Listing<(u64, Entry)>, StoreError> {
    // Numbers end where the integers of the tables end.
    let [from, until] = [numbers.start, numbers.end].map(|number| i64::try_from(number).unwrap_or(i64::MAX));
    let mut statement = connection.prepare_cached(HISTORY)?;
    let mut rows = statement.query(params![wallet.member.0.0, wallet.currency.as_str(), from, until])?;
    let mut list = Listing::default();
    let read = |row: &Row<'_>| Ok((counted("entries", row.get(6)?)?, decode_entry(row)?));
    while let Some(row) = rows.next()? {
        match read(row) {
            Ok(entry) => list.rows.push(entry),
            Err(error) => {
                let error: StoreError = error;
                list.leave_out(
                    error.of_row("entries", || format!("{}/{}", wallet.text(), column_text(row, 6))),
                )?;
            }
        }
    }
    Ok(list)
}

/// Checks that the tables can hold the number of an entry.
fn check_sequence(sequence: u64) -> Result<(), StoreError> {
    match i64::try_from(sequence) {
        Ok(1..) => Ok(()),
        _ => Err(StoreError::Row("entries: a number that no entry has".into())),
    }
}

fn check_amount(amount: i64) -> Result<(), StoreError> {
    if amount > 0 { Ok(()) } else { Err(StoreError::Row("transfers: an amount that is not positive".into())) }
}

/// The table `transfers` for the journal.
pub(super) struct Transfers;

impl Table for Transfers {
    const TAG: u8 = 14;
    type Key = TransferId;
    type Value = Transfer;

    fn check(_key: &TransferId, value: Option<&Transfer>) -> Result<(), StoreError> {
        let Some(value) = value else { return Ok(()) };
        let mut sides = [value.debit, value.credit].into_iter().flatten();
        sides.try_for_each(|(_, sequence)| check_sequence(sequence))?;
        check_amount(value.amount)
    }

    fn put_key(key: &TransferId, out: &mut Vec<u8>) {
        out.extend_from_slice(&key.0.0);
    }

    fn take_key(input: &mut Input<'_>) -> Option<TransferId> {
        Some(TransferId(Uuid(input.fixed()?)))
    }

    fn put_value(value: &Transfer, out: &mut Vec<u8>) {
        transfers::put_transfer(value, out);
    }

    fn take_value(input: &mut Input<'_>) -> Option<Transfer> {
        transfers::take_transfer(input)
    }

    fn heap_bytes(_key: &TransferId, value: Option<&Transfer>) -> usize {
        value.map_or(0, |value| origins::heap_bytes(&value.origin))
    }

    fn write(connection: &Connection, rows: &mut Rows<'_, '_, Self>) -> Result<(), StoreError> {
        let mut put = connection.prepare_cached(PUT)?;
        let mut remove = connection.prepare_cached(REMOVE)?;
        for (id, transfer) in rows {
            match transfer {
                Some(transfer) => put.execute(params![
                    id.0.0,
                    transfer.kind_number(),
                    transfer.currency.as_str(),
                    transfer.amount,
                    transfer.debit.map(|(member, _)| member.0.0),
                    transfer.debit.map(|(_, sequence)| sequence.cast_signed()),
                    transfer.credit.map(|(member, _)| member.0.0),
                    transfer.credit.map(|(_, sequence)| sequence.cast_signed()),
                    origins::column(transfer.origin.actor),
                    transfer.origin.reason.as_deref(),
                    transfer.origin.metadata.as_deref(),
                ])?,
                None => remove.execute(params![id.0.0])?,
            };
        }
        Ok(())
    }
}

/// The table `entries` for the journal.
pub(super) struct Entries;

impl Table for Entries {
    const TAG: u8 = 15;
    type Key = EntryKey;
    type Value = Entry;

    fn check(key: &EntryKey, value: Option<&Entry>) -> Result<(), StoreError> {
        check_sequence(key.sequence)?;
        match value {
            Some(entry) if entry.after < 0 => Err(StoreError::Row("entries: a balance below zero".into())),
            Some(entry) => check_amount(entry.amount),
            None => Ok(()),
        }
    }

    fn put_key(key: &EntryKey, out: &mut Vec<u8>) {
        out.extend_from_slice(&key.wallet.member.0.0);
        out.extend_from_slice(&key.wallet.currency.bytes());
        put_number(key.sequence, out);
    }

    fn take_key(input: &mut Input<'_>) -> Option<EntryKey> {
        let (member, currency) = (MemberId(Uuid(input.fixed()?)), Currency::of_bytes(input.fixed()?)?);
        Some(EntryKey { wallet: WalletKey { member, currency }, sequence: input.number()? })
    }

    fn put_value(value: &Entry, out: &mut Vec<u8>) {
        transfers::put_entry(value, out);
    }

    fn take_value(input: &mut Input<'_>) -> Option<Entry> {
        transfers::take_entry(input)
    }

    fn heap_bytes(_key: &EntryKey, value: Option<&Entry>) -> usize {
        value.and_then(|value| value.reference.as_ref()).map_or(0, |text| 16 + text.len())
    }

    fn write(connection: &Connection, rows: &mut Rows<'_, '_, Self>) -> Result<(), StoreError> {
        let mut put = connection.prepare_cached(PUT_ENTRY)?;
        let mut remove = connection.prepare_cached(REMOVE_ENTRY)?;
        for (key, entry) in rows {
            let WalletKey { member, currency } = key.wallet;
            let (member, currency, sequence) = (member.0.0, currency.as_str(), key.sequence.cast_signed());
            match entry {
                Some(entry) => put.execute(params![
                    member,
                    currency,
                    sequence,
                    entry.transfer.0.0,
                    entry.kind.number(),
                    entry.amount,
                    entry.after,
                    entry.counterparty.map(|member| member.0.0),
                    entry.reference.as_deref(),
                ])?,
                None => remove.execute(params![member, currency, sequence])?,
            };
        }
        Ok(())
    }
}
