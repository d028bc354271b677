//! Transfers against their effects: an entry on each side, the hold that they captured, the links of reversals, and the totals
//! of accounts.
//!
//! The entries of a transfer are anywhere, so first only the sums of all sides are compared: those of transfers and those
//! of entries. If they differ, everything is looked up by key to report the rows.

use super::ahead::{Ahead, Put};
use super::entries::Entries;
use super::reversals::Links;
use super::sorted_rows::{LOOKUP_PAGE, PAGE_ROWS, SortedRows};
use super::sum::{Sum, TransferSide};
use super::wallets::{name_of_entry, side};
use super::{Run, erased, since};
use crate::failure::Failure;
use std::collections::BTreeMap;
use tally_rules::ledger::account::Totals;
use tally_rules::ledger::entry::EntryKey;
use tally_rules::ledger::hold::HoldEnd;
use tally_rules::ledger::{Entry, EntryKind, Hold, HoldId, MemberId, Transfer, TransferId, WalletKey};
use tally_store::{Snapshot, StoreError};

/// Captured holds that are kept in memory.
const CAPTURED_MAX: usize = 200_000;

const NOT_THOSE: &str =
    "wallets count other ones than the movements since then have; `tally verify` without --since names them";

/// The transfer in a hold that it captured.
#[derive(Clone, Copy, Debug)]
struct Captured {
    hold: HoldId,
    wallet: WalletKey,
    amount: i64,
    to: Option<MemberId>,
    /// Holds that name the same transfer.
    holds: u32,
}

/// Scans transfers; what all of them add up to.
pub(super) fn reconcile(
    snapshot: &mut dyn Snapshot,
    of_entries: Sum,
    run: &mut Run<'_>,
) -> Result<Totals, Failure> {
    let (mut totals, mut sides) = (Totals::default(), Sum::default());
    let (mut holds, from) = (0, run.after());
    let mut captured =
        Ahead::collect(CAPTURED_MAX, again, |put| captured_holds(snapshot, (&mut holds, from), put))?;
    run.reconciled.holds = holds;
    since::add_earlier(snapshot, (&mut totals, &mut sides), run)?;
    let (mut transfers, mut links) = (SortedRows::after(from), Links::after(from));
    loop {
        let read = transfers.fill(|after, limit| snapshot.transfers(after.copied(), limit))?;
        run.read(read);
        let Some((id, transfer)) = transfers.next() else { break };
        run.reconciled.transfers += 1;
        run.reconciled.newest = Some(id);
        totals.add(&transfer);
        each_side(id, &transfer, |side| sides.add(&run.key, &side));
        if transfer.amount <= 0 {
            run.found("transfers", id.0, format!("an amount of {}", transfer.amount));
        }
        if transfer.entries() == [None, None] {
            run.found("transfers", id.0, "it is of no wallet");
        }
        let scan = |put: &mut Put<'_, _, _>| captured_holds(snapshot, (&mut holds, from), put);
        let hold = captured.at(&id, scan, &mut |id, hold| not_there(run, id, &hold))?;
        check_capture(run, id, &transfer, hold);
        erased::check_transfer(run, id, &transfer);
        links.reach(snapshot, (id, &transfer), run)?;
    }
    links.finish(snapshot, run)?;
    let scan = |put: &mut Put<'_, _, _>| captured_holds(snapshot, (&mut holds, from), put);
    captured.rest(scan, &mut |id, hold| not_there(run, id, &hold))?;
    if sides != of_entries {
        let before = run.reconciled.disagreements;
        report_sides(snapshot, run)?;
        report_entries(snapshot, run)?;
        let is_unnamed = run.reconciled.disagreements == before;
        if is_unnamed && run.since.as_ref().is_some_and(|since| since.file().is_some()) {
            // Such as an entry of a transfer since then that its wallet does not count.
            run.found("entries", "since the checkpoint", NOT_THOSE);
        }
    }
    Ok(totals)
}

/// The sides of a transfer, one for each of its entries.
pub(super) fn each_side(id: TransferId, transfer: &Transfer, mut each: impl FnMut(TransferSide)) {
    for (key, kind, counterparty) in transfer.sides().into_iter().flatten() {
        each(TransferSide { key, transfer: id, kind, amount: transfer.amount, counterparty });
    }
}

fn again(known: &mut Captured, _more: Captured) {
    known.holds += 1;
}

/// The transfers in captured holds.
fn captured_holds(
    snapshot: &mut dyn Snapshot,
    (count, from): (&mut u64, Option<TransferId>),
    put: &mut Put<'_, TransferId, Captured>,
) -> Result<(), StoreError> {
    let mut after: Option<HoldId> = None;
    *count = 0;
    loop {
        let page = snapshot.holds(after, PAGE_ROWS)?;
        *count += page.len() as u64;
        for (id, Hold { wallet, end, .. }) in &page {
            if let Some((HoldEnd::Captured { amount, to, transfer }, _)) = end {
                if Some(*transfer) <= from {
                    continue;
                }
                put(*transfer, Captured { hold: *id, wallet: *wallet, amount: *amount, to: *to, holds: 1 });
            }
        }
        match page.last() {
            Some((last, _)) if page.len() == PAGE_ROWS => after = Some(*last),
            _ => return Ok(()),
        }
    }
}

fn not_there(run: &mut Run<'_>, transfer: TransferId, hold: &Captured) {
    run.found("holds", hold.hold.0, format!("the movement that captured it is not there: {}", transfer.0));
}

fn check_capture(run: &mut Run<'_>, id: TransferId, transfer: &Transfer, hold: Option<Captured>) {
    match hold {
        None if transfer.kind == EntryKind::Capture => {
            run.found("transfers", id.0, "no hold was captured by it")
        }
        None => {}
        Some(hold) => {
            let [out, _] = transfer.entries();
            // Earlier releases wrote the fee of a contest as a capture.
            let is_same = matches!(transfer.kind, EntryKind::Capture | EntryKind::Fee)
                && transfer.amount == hold.amount
                && out.map(|key| key.wallet) == Some(hold.wallet)
                && transfer.credit.map(|(member, _)| member) == hold.to;
            if !is_same {
                run.found(
                    "holds",
                    hold.hold.0,
                    format!("it is not as the movement that captured it: {}", id.0),
                );
            }
            if hold.holds > 1 {
                run.found("transfers", id.0, format!("{} holds say that it captured them", hold.holds));
            }
        }
    }
}

/// Checks the entries of every transfer.
fn report_sides(snapshot: &mut dyn Snapshot, run: &mut Run<'_>) -> Result<(), StoreError> {
    let mut after = run.after();
    loop {
        let page = snapshot.transfers(after, LOOKUP_PAGE)?;
        let mut sides: BTreeMap<EntryKey, Vec<TransferSide>> = BTreeMap::new();
        for (id, transfer) in &page {
            each_side(*id, transfer, |side| sides.entry(side.key).or_default().push(side));
        }
        let keys: Vec<EntryKey> = sides.keys().copied().collect();
        for (key, entry) in keys.iter().zip(snapshot.entries_of(&keys)?) {
            sides[key].iter().for_each(|wanted| check_side(run, wanted, entry.as_ref()));
        }
        match page.last() {
            Some((last, _)) if page.len() == LOOKUP_PAGE => after = Some(*last),
            _ => return Ok(()),
        }
    }
}

fn check_side(run: &mut Run<'_>, wanted: &TransferSide, entry: Option<&Entry>) {
    let place = name_of_entry(&wanted.key);
    let Some(entry) = entry else {
        return run.found("transfers", wanted.transfer.0, format!("its entry is not there: {place}"));
    };
    let found = side(&wanted.key, entry);
    if found == *wanted {
        return;
    }
    let what = if found.transfer == wanted.transfer {
        let shown = |side: &TransferSide| {
            let other = side.counterparty.map_or_else(|| "nobody".into(), |member| member.0.to_string());
            format!("{} of {} with {other}", side.kind, side.amount)
        };
        format!("its entry {place} is {}, and it is {}", shown(&found), shown(wanted))
    } else {
        format!("its entry {place} is of another movement: {}", found.transfer.0)
    };
    run.found("transfers", wanted.transfer.0, what);
}

/// Checks that every entry has its transfer.
fn report_entries(snapshot: &mut dyn Snapshot, run: &mut Run<'_>) -> Result<(), StoreError> {
    let mut entries = Entries::of(run);
    loop {
        let mut page = Vec::new();
        while page.len() < LOOKUP_PAGE {
            entries.fill(snapshot)?;
            let Some(next) = entries.next() else { break };
            page.push(next);
        }
        let mut ids: Vec<TransferId> = page.iter().map(|(_, entry)| entry.transfer).collect();
        ids.sort_unstable();
        ids.dedup();
        let found = snapshot.transfers_of(&ids)?;
        for (key, entry) in &page {
            let transfer = ids.binary_search(&entry.transfer).ok().and_then(|at| found[at].as_ref());
            match transfer {
                None => {
                    let what = format!("its movement is not there: {}", entry.transfer.0);
                    run.found("entries", name_of_entry(key), what);
                }
                Some(transfer) if !transfer.entries().contains(&Some(*key)) => {
                    let what = format!("its movement has no such entry: {}", entry.transfer.0);
                    run.found("entries", name_of_entry(key), what);
                }
                Some(_) => {}
            }
        }
        if page.len() < LOOKUP_PAGE {
            return Ok(());
        }
    }
}
