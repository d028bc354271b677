//! The tables `transfers` and `entries`: movements of money, and the line that each leaves in a wallet. Never changed.

use super::fault::damaged;
use super::row::{Answers, Fields};
use super::text::{Row, Script};
use super::{found, wallets};
use crate::StoreError;
use std::ops::Range;
use std::sync::Arc;
use tally_rules::ledger::entry::EntryKey;
use tally_rules::ledger::{Currency, Entry, Kind, MemberId, Transfer, TransferId, Uuid, WalletKey};

/// Adds movements.
pub(super) fn write(script: &mut Script, rows: &[(TransferId, Transfer)]) {
    let head = "INSERT INTO transfers (id, kind, currency, amount, debit_member, debit_sequence, credit_member, \
         credit_sequence) VALUES ";
    script.rows(head, rows, "", |row, (id, transfer)| {
        row.bytes(&id.0.0).number(transfer.kind.number()).bytes(transfer.currency.as_str().as_bytes());
        row.signed(transfer.amount);
        for side in [transfer.debit, transfer.credit] {
            match side {
                Some((member, sequence)) => row.bytes(&member.0.0).number(sequence),
                None => row.sql("NULL, NULL"),
            };
        }
    });
}

/// Adds entries.
pub(super) fn write_entries(script: &mut Script, rows: &[(EntryKey, Entry)]) {
    let head = "INSERT INTO entries (member, currency, sequence, transfer, kind, amount, `after`, counterparty, \
         reference) VALUES ";
    script.rows(head, rows, "", |row, (key, entry)| {
        put_key(row, key);
        row.bytes(&entry.transfer.0.0).number(entry.kind.number()).signed(entry.amount).signed(entry.after);
        row.bytes_or_null(entry.counterparty.as_ref().map(|member| &member.0.0[..]));
        row.bytes_or_null(entry.reference.as_ref().map(|text| text.as_bytes()));
    });
}

fn put_key(row: &mut Row<'_>, key: &EntryKey) {
    wallets::put_key(row, &key.wallet);
    row.number(key.sequence);
}

/// Asks for one movement.
pub(super) fn select(id: TransferId) -> Script {
    let mut script = Script::default();
    script.sql(
        "SELECT kind, currency, amount, debit_member, debit_sequence, credit_member, credit_sequence \
         FROM transfers WHERE id = ",
    );
    script.bytes(&id.0.0).end();
    script
}

/// The answer.
pub(super) fn read(mut answers: Answers) -> Result<Option<Transfer>, StoreError> {
    let mut transfer = None;
    answers.each(1, "transfers", |row| {
        transfer = Some(decode(row)?);
        Ok(())
    })?;
    Ok(transfer)
}

/// The next columns, without the id.
pub(super) fn decode(row: &mut Fields<'_>) -> Result<Transfer, StoreError> {
    let kind = kind("transfers", row)?;
    let (currency, amount) = (row.choice(Currency::parse)?, row.signed()?);
    let mut side = || -> Result<Option<(MemberId, u64)>, StoreError> {
        let member = row.maybe_fixed()?.map(|member| MemberId(Uuid(member)));
        let sequence = row.maybe_signed()?.map(u64::try_from).transpose();
        Ok(member.zip(sequence.map_err(|_| damaged("transfers", "a negative number of an entry"))?))
    };
    Ok(Transfer { kind, currency, amount, debit: side()?, credit: side()? })
}

fn kind(table: &'static str, row: &mut Fields<'_>) -> Result<Kind, StoreError> {
    Kind::of_number(row.tiny()?).ok_or_else(|| damaged(table, "a kind that there is not"))
}

/// Asks for entries; how many statements that takes. The keys ascend.
pub(super) fn select_entries(script: &mut Script, keys: &[EntryKey]) -> usize {
    script.keys(
        "SELECT member, currency, sequence, transfer, kind, amount, `after`, counterparty, reference FROM entries \
         FORCE INDEX (PRIMARY) WHERE (member, currency, sequence) IN (",
        keys,
        ")",
        put_key,
    )
}

/// The answer.
pub(super) fn read_entries(
    mut answers: Answers,
    statements: usize,
    keys: &[EntryKey],
) -> Result<Vec<Option<Entry>>, StoreError> {
    found(&mut answers, statements, "entries", keys, decode_entry)
}

/// The next columns, the key first.
pub(super) fn decode_entry(row: &mut Fields<'_>) -> Result<(EntryKey, Entry), StoreError> {
    let key = EntryKey { wallet: wallets::key(row)?, sequence: row.number()? };
    let (transfer, kind) = (TransferId(Uuid(row.fixed()?)), kind("entries", row)?);
    let (amount, after) = (row.signed()?, row.signed()?);
    let counterparty = row.maybe_fixed()?.map(|member| MemberId(Uuid(member)));
    let reference = row.maybe_text()?.map(Arc::from);
    Ok((key, Entry { transfer, kind, amount, after, counterparty, reference }))
}

/// Asks for the entries of a wallet whose numbers are in the range, newest first.
pub(super) fn select_history(wallet: WalletKey, numbers: &Range<u64>) -> Script {
    let mut script = Script::default();
    script.sql(
        "SELECT member, currency, sequence, transfer, kind, amount, `after`, counterparty, reference FROM entries \
         WHERE member = ",
    );
    script.bytes(&wallet.member.0.0);
    script.sql(" AND currency = ").bytes(wallet.currency.as_str().as_bytes());
    script.sql(" AND sequence >= ").number(numbers.start).sql(" AND sequence < ").number(numbers.end);
    script.sql(" ORDER BY sequence DESC").end();
    script
}
