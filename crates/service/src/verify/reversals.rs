//! Reversals against their transfers: links are there both ways, and no transfer is reversed by more than its amount.
//!
//! Links are in the order of transfers, so both are scanned side by side. The other end of a link may be anywhere and is looked
//! up by its key: few transfers are reversed.

use super::Run;
use super::sorted_rows::SortedRows;
use std::collections::{BTreeMap, BTreeSet};
use tally_rules::ledger::{ReversalLink, Transfer, TransferId};
use tally_store::{Snapshot, StoreError};

/// Links of one page whose other ends are looked up. One transfer has a hundred reversals at most.
const LOOKED_UP: usize = 200;

/// The links beside a scan of all transfers.
#[derive(Debug)]
pub(super) struct Links(SortedRows<TransferId, ReversalLink>);

impl Links {
    /// Those beside a scan of the transfers after one.
    pub(super) fn after(last: Option<TransferId>) -> Self {
        Self(SortedRows::after(last))
    }

    /// Advances to a transfer, and compares it with its link.
    pub(super) fn reach(
        &mut self,
        snapshot: &mut dyn Snapshot,
        (id, transfer): (TransferId, &Transfer),
        run: &mut Run<'_>,
    ) -> Result<(), StoreError> {
        let link = self.at(snapshot, Some(id), run)?;
        match (link, transfer.reverses) {
            (None, None) | (Some(ReversalLink::Reverses { .. }), Some(_)) => {}
            (Some(ReversalLink::Reverses { .. }), None) => {
                run.found("reversals", id.0, "its movement is no reversal");
            }
            (None | Some(ReversalLink::Reversed(_)), Some(_)) => {
                run.found("transfers", id.0, "it is a reversal and names no original");
            }
            (Some(link @ ReversalLink::Reversed(_)), None) if link.reversed() > transfer.amount => {
                let what = format!("{} is reversed of a movement of {}", link.reversed(), transfer.amount);
                run.found("reversals", id.0, what);
            }
            (Some(ReversalLink::Reversed(_)), None) => {}
        }
        Ok(())
    }

    /// The link of a transfer; those before it, or all that are left, are of none.
    fn at(
        &mut self,
        snapshot: &mut dyn Snapshot,
        id: Option<TransferId>,
        run: &mut Run<'_>,
    ) -> Result<Option<ReversalLink>, StoreError> {
        loop {
            self.0.fill(|after: Option<&TransferId>, limit| snapshot.reversals(after.copied(), limit))?;
            let Some((key, _)) = self.0.peek() else { return Ok(None) };
            if id.is_some_and(|id| *key > id) {
                return Ok(None);
            }
            let Some((key, link)) = self.0.next() else { return Ok(None) };
            if id == Some(key) {
                return Ok(Some(link));
            }
            run.found("reversals", key.0, "its movement is not there");
        }
    }

    /// Ends the scan, and compares both ends of each link.
    pub(super) fn finish(mut self, snapshot: &mut dyn Snapshot, run: &mut Run<'_>) -> Result<(), StoreError> {
        self.at(snapshot, None, run)?;
        let from = run.after();
        let mut after = from;
        loop {
            let page = snapshot.reversals(after, LOOKED_UP)?;
            let ends = Ends::of(snapshot, &page)?;
            for (id, link) in &page {
                match link {
                    ReversalLink::Reversed(parts) => {
                        parts.iter().for_each(|part| ends.check_part(run, *id, *part));
                    }
                    ReversalLink::Reverses { original, .. } => {
                        ends.check_original(run, *id, *original);
                        if Some(*original) <= from {
                            ends.check_earlier(run, *id, *original);
                        }
                    }
                }
            }
            match page.last() {
                Some((last, _)) if page.len() == LOOKED_UP => after = Some(*last),
                _ => return Ok(()),
            }
        }
    }
}

/// The rows that the links of a page concern.
struct Ends {
    links: BTreeMap<TransferId, ReversalLink>,
    transfers: BTreeMap<TransferId, Transfer>,
}

impl Ends {
    fn of(snapshot: &mut dyn Snapshot, page: &[(TransferId, ReversalLink)]) -> Result<Self, StoreError> {
        let mut ids = BTreeSet::new();
        for (id, link) in page {
            ids.insert(*id);
            match link {
                ReversalLink::Reversed(parts) => ids.extend(parts.iter().map(|(part, _)| *part)),
                ReversalLink::Reverses { original, .. } => drop(ids.insert(*original)),
            }
        }
        let ids: Vec<TransferId> = ids.into_iter().collect();
        let (links, transfers) = (snapshot.reversals_of(&ids)?, snapshot.transfers_of(&ids)?);
        Ok(Self { links: there(&ids, links), transfers: there(&ids, transfers) })
    }

    /// A reversal that an original lists.
    fn check_part(&self, run: &mut Run<'_>, id: TransferId, (part, amount): (TransferId, i64)) {
        let named = match self.links.get(&part) {
            Some(ReversalLink::Reverses { original, .. }) => Some(*original),
            Some(ReversalLink::Reversed(_)) | None => None,
        };
        if named != Some(id) {
            run.found("reversals", id.0, format!("its reversal {} does not name it", part.0));
        }
        let Some(back) = self.transfers.get(&part) else {
            return run.found("reversals", id.0, format!("its reversal is not there: {}", part.0));
        };
        if back.amount != amount {
            let what = format!("its reversal {} is of {}, and it counts {amount}", part.0, back.amount);
            run.found("reversals", id.0, what);
        }
        let member = |side: Option<(_, u64)>| side.map(|(member, _)| member);
        let is_back = self.transfers.get(&id).is_none_or(|original| {
            back.reverses == Some(original.kind)
                && back.currency == original.currency
                && member(back.debit) == member(original.credit)
                && member(back.credit) == member(original.debit)
        });
        if !is_back {
            run.found("reversals", id.0, format!("its reversal {} is another movement", part.0));
        }
    }

    /// An original that no scan passes, by one of its reversals.
    fn check_earlier(&self, run: &mut Run<'_>, id: TransferId, original: TransferId) {
        let Some(link @ ReversalLink::Reversed(parts)) = self.links.get(&original) else { return };
        let of_it = parts.iter().filter(|(part, _)| *part == id);
        of_it.for_each(|part| self.check_part(run, original, *part));
        let Some(transfer) = self.transfers.get(&original) else {
            return run.found("reversals", id.0, format!("its original is not there: {}", original.0));
        };
        let is_last = parts.last().is_some_and(|(part, _)| *part == id);
        if is_last && link.reversed() > transfer.amount {
            let what = format!("{} is reversed of a movement of {}", link.reversed(), transfer.amount);
            run.found("reversals", original.0, what);
        }
    }

    /// The original that a reversal names.
    fn check_original(&self, run: &mut Run<'_>, id: TransferId, original: TransferId) {
        let times = match self.links.get(&original) {
            Some(ReversalLink::Reversed(parts)) => parts.iter().filter(|(part, _)| *part == id).count(),
            Some(ReversalLink::Reverses { .. }) | None => 0,
        };
        if times != 1 {
            run.found("reversals", id.0, format!("its original {} lists it {times} times", original.0));
        }
    }
}

fn there<V>(ids: &[TransferId], rows: Vec<Option<V>>) -> BTreeMap<TransferId, V> {
    ids.iter().zip(rows).filter_map(|(id, row)| Some((*id, row?))).collect()
}
