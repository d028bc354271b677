//! Transfers and holds by filters, newest first.
//!
//! The references of transfers are in their entries, and the names in the rows of members: a page reads each of them at once.
//! Not here: how far a request reads (`scan`).

use super::read::{MemberNames, names, sound};
use crate::failure::Failure;
use crate::scan::{ListRange, ScanPage, scan};
use crate::tally::Tally;
use std::ops::RangeInclusive;
use std::sync::Arc;
use tally_rules::clock::DecisionTime;
use tally_rules::contest::ContestId;
use tally_rules::ledger::hold::HoldState;
use tally_rules::ledger::{
    Currency, EntryKey, EntryKind, Hold, HoldId, MemberId, Transfer, TransferId, Uuid,
};
use tally_rules::{Actor, BoardId};
use tally_store::Store;

/// Which transfers are asked for; `None` does not choose.
#[derive(Clone, Debug)]
pub struct TransferFilter {
    /// Those that debit or credit a wallet of this member.
    pub member: Option<MemberId>,
    /// Those of this kind.
    pub kind: Option<EntryKind>,
    /// Those with this reference.
    pub reference: Option<String>,
    /// Fees, prizes and refunds of this contest, and their reversals.
    pub contest: Option<ContestId>,
    /// Those of this actor.
    pub actor: Option<Actor>,
    /// Those in this currency.
    pub currency: Option<Currency>,
    /// Those of such an amount.
    pub amounts: RangeInclusive<i64>,
}

impl TransferFilter {
    fn fits(&self, transfer: &Transfer) -> bool {
        let is_side =
            |member| [transfer.debit, transfer.credit].iter().flatten().any(|(side, _)| *side == member);
        self.member.is_none_or(is_side)
            && self.kind.is_none_or(|kind| kind == transfer.kind)
            && self.actor.is_none_or(|actor| actor == transfer.origin.actor)
            && self.currency.is_none_or(|currency| currency == transfer.currency)
            && self.amounts.contains(&transfer.amount)
            && (self.contest.is_none() || may_be_of_contest(transfer))
    }

    fn fits_reference(&self, reference: Option<&str>) -> bool {
        self.reference.as_deref().is_none_or(|wanted| reference == Some(wanted))
            && self.contest.as_ref().is_none_or(|id| reference.and_then(contest_of).as_ref() == Some(id))
    }

    /// Whether the reference of a transfer has to be read before it fits.
    fn needs_reference(&self) -> bool {
        self.reference.is_some() || self.contest.is_some()
    }
}

/// Whether a transfer has the kind of those of contests. The references of other kinds are texts of callers.
fn may_be_of_contest(transfer: &Transfer) -> bool {
    matches!(
        transfer.reverses.unwrap_or(transfer.kind),
        EntryKind::Capture
            | EntryKind::Fee
            | EntryKind::Prize
            | EntryKind::Refund
            | EntryKind::PrizeOut
            | EntryKind::RefundOut
    )
}

/// The contest of a reference, which is that of a leaderboard or of one of its periods.
fn contest_of(reference: &str) -> Option<ContestId> {
    let board = reference.split_once('/').map_or(reference, |(board, _)| board);
    Some(ContestId::of_board(&BoardId::new(board).ok()?)?.0)
}

/// A transfer with its reference.
pub type Referenced = (Transfer, Option<Arc<str>>);

/// A page of transfers, with the names of their members. Blocks on the store.
pub fn transfers(
    tally: &Tally,
    filter: &TransferFilter,
    span: &ListRange,
) -> Result<(ScanPage<Referenced>, MemberNames), Failure> {
    let store = &*tally.store;
    let read = |before, limit| {
        let rows = store.ledger().list_transfers(TransferId(before), limit)?;
        Ok(rows.map(|(id, transfer)| (id.0, transfer)))
    };
    let keep = |mut rows: Vec<(Uuid, Transfer)>, room: usize| {
        rows.retain(|(_, transfer)| filter.fits(transfer));
        if !filter.needs_reference() {
            rows.truncate(room);
        }
        let references = references(store, &rows)?.into_iter();
        let rows = rows.into_iter().zip(references).map(|((id, row), reference)| (id, (row, reference)));
        Ok(rows.filter(|(_, (_, reference))| filter.fits_reference(reference.as_deref())).collect())
    };
    let page = scan(span, read, keep)?;
    let sides = page.rows.iter().flat_map(|(_, (transfer, _))| [transfer.debit, transfer.credit]);
    let names = names(store, sides.flatten().map(|(member, _)| member))?;
    Ok((page, names))
}

/// The reference of each transfer. Both of its entries have it.
fn references(store: &dyn Store, rows: &[(Uuid, Transfer)]) -> Result<Vec<Option<Arc<str>>>, Failure> {
    let key = |(_, transfer): &(_, Transfer)| transfer.entries().into_iter().flatten().next();
    let keys: Vec<EntryKey> = rows.iter().filter_map(key).collect();
    let mut found = sound(&keys, |keys| store.ledger().entries(keys))?.into_iter();
    let mut reference = |row| key(row).and_then(|_| found.next()?)?.reference;
    Ok(rows.iter().map(&mut reference).collect())
}

/// A page of holds by member and state as it is at `time`. Blocks on the store.
pub fn holds(
    tally: &Tally,
    (member, state): (Option<MemberId>, Option<HoldState>),
    span: &ListRange,
    time: DecisionTime,
) -> Result<ScanPage<Hold>, Failure> {
    let read = |before, limit| {
        let rows = tally.store.ledger().list_holds(HoldId(before), limit)?;
        Ok(rows.map(|(id, hold)| (id.0, hold)))
    };
    let fits = |hold: &Hold| {
        member.is_none_or(|member| member == hold.wallet.member)
            && state.is_none_or(|state| state == HoldState::of(hold.end_at(time)))
    };
    let keep = |mut rows: Vec<(Uuid, Hold)>, _| {
        rows.retain(|(_, hold)| fits(hold));
        Ok(rows)
    };
    scan(span, read, keep)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_tells_its_contest() {
        for (reference, wanted) in [
            ("contest:cup", Some("cup")),
            ("contest:cup:3", Some("cup")),
            ("contest:cup/weekly:2026-11-16", Some("cup")),
            ("contest:cups", Some("cups")),
            ("cup", None),
            ("contest:", None),
            ("contest:a b", None),
            ("order 7", None),
            ("", None),
        ] {
            let found = contest_of(reference);
            assert_eq!(found.as_ref().map(ContestId::as_str), wanted, "{reference}");
        }
    }
}
