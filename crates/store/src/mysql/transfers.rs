//! The tables `transfers` and `entries`: transfers, and the entry that each leaves in a wallet. Rows never change,
//! but for the words of callers in transfers of an erased member (`redacted`).

use super::fault::damaged;
use super::row::Fields;
use super::table::Table;
use super::text::{RowScript, Script};
use super::wallets::{self, Wallets};
use crate::StoreError;
use crate::codec::origins;
use std::ops::Range;
use std::sync::Arc;
use tally_rules::Origin;
use tally_rules::ledger::entry::EntryKey;
use tally_rules::ledger::{Currency, Entry, EntryKind, MemberId, Transfer, TransferId, Uuid, WalletKey};

pub(super) struct Transfers;

impl Table for Transfers {
    const NAME: &'static str = "transfers";
    const KEY: &'static str = "id";
    const READ: &'static str = "id, kind, currency, amount, debit_member, debit_sequence, credit_member, \
         credit_sequence, actor, reason, metadata";
    const REPLACED: &'static [&'static str] = &["reason", "metadata"];
    const BLANK: &'static str = "";
    type Key = TransferId;
    type Value = Transfer;

    fn put_key(row: &mut RowScript<'_>, id: &TransferId) {
        row.bytes(&id.0.0);
    }

    fn put(row: &mut RowScript<'_>, transfer: &Transfer) {
        row.number(transfer.kind_number()).bytes(transfer.currency.as_str().as_bytes());
        row.signed(transfer.amount);
        for side in [transfer.debit, transfer.credit] {
            match side {
                Some((member, sequence)) => row.bytes(&member.0.0).number(sequence),
                None => row.sql("NULL, NULL"),
            };
        }
        put_origin(row, &transfer.origin);
        put_metadata(row, &transfer.origin);
    }

    fn decode(row: &mut Fields<'_>) -> Result<(TransferId, Transfer), StoreError> {
        let (id, kind) = (TransferId(Uuid(row.fixed()?)), row.tiny()?);
        let (currency, amount) = (row.choice(Currency::parse)?, row.signed()?);
        let mut side = || -> Result<Option<(MemberId, u64)>, StoreError> {
            let member = row.maybe_fixed()?.map(|member| MemberId(Uuid(member)));
            let sequence = row.maybe_signed()?.map(u64::try_from).transpose();
            Ok(member.zip(sequence.map_err(|_| damaged("transfers", "a negative number of an entry"))?))
        };
        let (debit, credit) = (side()?, side()?);
        let kinds = Transfer::kind_of_number(kind, debit.is_some());
        let (kind, reverses) = kinds.ok_or_else(|| bad_kind("transfers"))?;
        let mut origin = origin(row, "transfers")?;
        origin.metadata = row.maybe_text()?.map(Arc::from);
        Ok((id, Transfer { kind, reverses, currency, amount, debit, credit, origin }))
    }
}

/// Writes the metadata of an origin.
pub(super) fn put_metadata(row: &mut RowScript<'_>, origin: &Origin) {
    row.bytes_or_null(origin.metadata.as_ref().map(|text| text.as_bytes()));
}

/// Writes an origin in two columns: the actor, and the reason.
pub(super) fn put_origin(row: &mut RowScript<'_>, origin: &Origin) {
    row.bytes_or_null(origins::column(origin.actor).as_deref());
    row.bytes_or_null(origin.reason.as_ref().map(|text| text.as_bytes()));
}

/// Reads what [`put_origin`] wrote.
pub(super) fn origin(row: &mut Fields<'_>, table: &'static str) -> Result<Origin, StoreError> {
    let actor = origins::of_column(row.maybe_bytes()?);
    let actor = actor.ok_or_else(|| damaged(table, "an actor that there is not"))?;
    Ok(Origin { actor, reason: row.maybe_text()?.map(Arc::from), metadata: None })
}

fn bad_kind(table: &'static str) -> StoreError {
    damaged(table, "a kind that there is not")
}

pub(super) struct Entries;

impl Table for Entries {
    const NAME: &'static str = "entries";
    const KEY: &'static str = "(member, currency, sequence)";
    const READ: &'static str =
        "member, currency, sequence, transfer, kind, amount, `after`, counterparty, reference";
    const REPLACED: &'static [&'static str] = &[];
    const BLANK: &'static str = "";
    type Key = EntryKey;
    type Value = Entry;

    fn put_key(row: &mut RowScript<'_>, key: &EntryKey) {
        Wallets::put_key(row, &key.wallet);
        row.number(key.sequence);
    }

    fn put(row: &mut RowScript<'_>, entry: &Entry) {
        row.bytes(&entry.transfer.0.0).number(entry.kind.number()).signed(entry.amount).signed(entry.after);
        row.bytes_or_null(entry.counterparty.as_ref().map(|member| &member.0.0[..]));
        row.bytes_or_null(entry.reference.as_ref().map(|text| text.as_bytes()));
    }

    fn decode(row: &mut Fields<'_>) -> Result<(EntryKey, Entry), StoreError> {
        let key = EntryKey { wallet: wallets::key(row)?, sequence: row.number()? };
        let transfer = TransferId(Uuid(row.fixed()?));
        let kind = EntryKind::of_number(row.tiny()?).ok_or_else(|| bad_kind("entries"))?;
        let (amount, after) = (row.signed()?, row.signed()?);
        let counterparty = row.maybe_fixed()?.map(|member| MemberId(Uuid(member)));
        let reference = row.maybe_text()?.map(Arc::from);
        Ok((key, Entry { transfer, kind, amount, after, counterparty, reference }))
    }
}

/// Queries the entries of a wallet whose numbers are in the range, newest first.
pub(super) fn select_history(wallet: WalletKey, numbers: &Range<u64>) -> Script {
    let mut script = Script::default();
    script.sql("SELECT ").sql(Entries::READ).sql(" FROM entries WHERE member = ");
    script.bytes(&wallet.member.0.0);
    script.sql(" AND currency = ").bytes(wallet.currency.as_str().as_bytes());
    script.sql(" AND sequence >= ").number(numbers.start).sql(" AND sequence < ").number(numbers.end);
    script.sql(" ORDER BY sequence DESC").end();
    script
}
