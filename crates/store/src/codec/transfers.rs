//! A transfer, and an entry: in the journal, and in archives.
//!
//! Not here: their keys, and the columns of tables.

use super::{Input, origins, put_bytes, put_number, put_option, put_signed};
use std::sync::Arc;
use tally_rules::Origin;
use tally_rules::ledger::{Currency, Entry, EntryKind, MemberId, Transfer, TransferId, Uuid};

/// Marks the kind of a transfer that has its origin at its end: rows from before end without one.
const WITH_ORIGIN: u8 = 0x40;

/// Appends a transfer.
pub(crate) fn put_transfer(value: &Transfer, out: &mut Vec<u8>) {
    let has_origin = value.origin != Origin::default();
    let metadata = value.origin.metadata.as_ref();
    let mark = origins::mark(metadata);
    out.push(value.kind_number() | mark | if has_origin { WITH_ORIGIN } else { 0 });
    out.extend_from_slice(&value.currency.bytes());
    put_signed(value.amount, out);
    for side in [value.debit, value.credit] {
        put_option(side, out, |(member, sequence), out| {
            out.extend_from_slice(&member.0.0);
            put_number(sequence, out);
        });
    }
    if has_origin {
        origins::put(&value.origin, out);
    }
    origins::put_metadata(metadata, out);
}

/// Reads what [`put_transfer`] wrote.
pub(crate) fn take_transfer(input: &mut Input<'_>) -> Option<Transfer> {
    let number = input.byte()?;
    let (currency, amount) = (Currency::of_bytes(input.fixed()?)?, input.signed()?);
    let mut side = || input.option(|input| Some((MemberId(Uuid(input.fixed()?)), input.number()?)));
    let (debit, credit) = (side()?, side()?);
    let marks = WITH_ORIGIN | origins::WITH_METADATA;
    let (kind, reverses) = Transfer::kind_of_number(number & !marks, debit.is_some())?;
    let origin = if number & WITH_ORIGIN == 0 { Origin::default() } else { origins::take(input)? };
    let origin = Origin { metadata: origins::take_metadata(number, input)?, ..origin };
    Some(Transfer { kind, reverses, currency, amount, debit, credit, origin })
}

/// Appends an entry.
pub(crate) fn put_entry(value: &Entry, out: &mut Vec<u8>) {
    out.extend_from_slice(&value.transfer.0.0);
    out.push(value.kind.number());
    put_signed(value.amount, out);
    put_signed(value.after, out);
    put_option(value.counterparty, out, |member, out| out.extend_from_slice(&member.0.0));
    put_option(value.reference.as_ref(), out, |text, out| put_bytes(text.as_bytes(), out));
}

/// Reads what [`put_entry`] wrote.
pub(crate) fn take_entry(input: &mut Input<'_>) -> Option<Entry> {
    let (transfer, kind) = (TransferId(Uuid(input.fixed()?)), EntryKind::of_number(input.byte()?)?);
    let (amount, after) = (input.signed()?, input.signed()?);
    let counterparty = input.option(|input| Some(MemberId(Uuid(input.fixed()?))))?;
    let reference = input.option(|input| input.text().map(Arc::from))?;
    Some(Entry { transfer, kind, amount, after, counterparty, reference })
}
