//! Reads of the ledger from tables and files together. The caller has read the tables first.
//!
//! A row is deleted from its table only after the catalog has its file. So a row that the tables do not have is in a file of the catalog
//! as it is afterwards, or nowhere. The catalog is read only if the tables may lack a row.

use super::month::before_all;
use super::{Months, catalog, entry_key, read_entry, read_transfer};
use crate::{Ledger, Listing, StoreError};
use std::collections::BTreeMap;
use std::ops::Range;
use tally_rules::ledger::{Entry, EntryKey, Month, Transfer, TransferId, Uuid, WalletKey};

/// The months with files.
fn months(ledger: &dyn Ledger) -> Result<Months, StoreError> {
    catalog::checked(ledger.archived_months()?)
}

/// The transfer of each id, of which the tables have `found`.
pub(crate) fn transfers(
    ledger: &dyn Ledger,
    ids: &[TransferId],
    found: Vec<Option<Transfer>>,
) -> Result<Vec<Option<Transfer>>, StoreError> {
    if found.iter().all(Option::is_some) {
        return Ok(found);
    }
    fill_transfers(ledger, &months(ledger)?, ids, found)
}

/// The same with a catalog that was read.
pub(super) fn fill_transfers(
    ledger: &dyn Ledger,
    months: &Months,
    ids: &[TransferId],
    mut found: Vec<Option<Transfer>>,
) -> Result<Vec<Option<Transfer>>, StoreError> {
    let archives = ledger.archives();
    for of in months {
        let places: Vec<usize> =
            (0..ids.len()).filter(|at| found[*at].is_none() && Month::of(ids[*at].0.at()) == of.0).collect();
        if places.is_empty() {
            continue;
        }
        let file = archives.transfers(of)?;
        let keys: Vec<Vec<u8>> = places.iter().map(|at| ids[*at].0.0.to_vec()).collect();
        for ((at, key), value) in places.into_iter().zip(&keys).zip(file.get(&keys)?) {
            if let Some(value) = value {
                found[at] = Some(read_transfer(&file, &(key.clone(), value))?.1);
                archives.found_in(of.0);
            }
        }
    }
    Ok(found)
}

/// A transfer, which the tables have or not.
pub(crate) fn transfer(
    ledger: &dyn Ledger,
    id: TransferId,
    found: Option<Transfer>,
) -> Result<Option<Transfer>, StoreError> {
    Ok(transfers(ledger, &[id], vec![found])?.pop().flatten())
}

/// The entry of each key, of which the tables have `found`.
pub(crate) fn entries(
    ledger: &dyn Ledger,
    keys: &[EntryKey],
    found: Vec<Option<Entry>>,
) -> Result<Vec<Option<Entry>>, StoreError> {
    if found.iter().all(Option::is_some) {
        return Ok(found);
    }
    fill_entries(ledger, &months(ledger)?, keys, found)
}

/// The same with a catalog that was read.
pub(super) fn fill_entries(
    ledger: &dyn Ledger,
    months: &Months,
    keys: &[EntryKey],
    mut found: Vec<Option<Entry>>,
) -> Result<Vec<Option<Entry>>, StoreError> {
    let archives = ledger.archives();
    for of in archives.in_order(months) {
        let mut left: Vec<(Vec<u8>, usize)> =
            (0..keys.len()).filter(|at| found[*at].is_none()).map(|at| (entry_key(&keys[at]), at)).collect();
        if left.is_empty() {
            break;
        }
        left.sort_unstable();
        let file = archives.entries(of)?;
        let (names, places): (Vec<_>, Vec<_>) = left.into_iter().unzip();
        for ((at, name), value) in places.into_iter().zip(&names).zip(file.get(&names)?) {
            if let Some(value) = value {
                found[at] = Some(read_entry(&file, &(name.clone(), value))?.1);
                archives.found_in(of.0);
            }
        }
    }
    Ok(found)
}

/// The entries of a wallet whose numbers are in the range, newest first. Numbers have no gap, so the tables lack none if they have as
/// many.
pub(crate) fn history(
    ledger: &dyn Ledger,
    wallet: WalletKey,
    numbers: Range<u64>,
    list: Listing<(u64, Entry)>,
) -> Result<Listing<(u64, Entry)>, StoreError> {
    let wanted = numbers.end.saturating_sub(numbers.start.max(1));
    if (list.rows.len() + list.damaged.len()) as u64 >= wanted {
        return Ok(list);
    }
    let (months, archives) = (months(ledger)?, ledger.archives());
    let mut all: BTreeMap<u64, Entry> = list.rows.into_iter().collect();
    let key = |sequence| entry_key(&EntryKey { wallet, sequence });
    let end = key(numbers.end);
    for of in archives.in_order(&months) {
        if (all.len() + list.damaged.len()) as u64 >= wanted {
            break;
        }
        let file = archives.entries(of)?;
        for row in file.from(&key(numbers.start)) {
            let row = row?;
            if row.0 >= end {
                break;
            }
            let (key, entry) = read_entry(&file, &row)?;
            all.entry(key.sequence).or_insert(entry);
            archives.found_in(of.0);
        }
    }
    Ok(Listing { rows: all.into_iter().rev().collect(), damaged: list.damaged })
}

/// At most `limit` transfers before an id, newest first.
pub(crate) fn list_transfers(
    ledger: &dyn Ledger,
    before: TransferId,
    limit: usize,
    list: Listing<(TransferId, Transfer)>,
) -> Result<Listing<(TransferId, Transfer)>, StoreError> {
    let months = months(ledger)?;
    if months.is_empty() {
        return Ok(list);
    }
    // A whole page of the tables hides what is older than its last row.
    let least = list.rows.last().map(|(id, _)| *id).filter(|_| list.rows.len() >= limit);
    let least = least.unwrap_or(TransferId(Uuid([0; 16])));
    let mut all: BTreeMap<TransferId, Transfer> = list.rows.into_iter().collect();
    for of in months.iter().rev() {
        let (first, end) = (before_all(of.0), before_all(of.0.next()));
        if first >= before || end < least {
            continue;
        }
        let is_enough = all.len() >= limit && all.keys().rev().nth(limit - 1).is_some_and(|id| *id > end);
        if limit == 0 || is_enough {
            break;
        }
        let file = ledger.archives().transfers(of)?;
        for row in file.before(&before.0.0, &least.0.0, limit)? {
            let (id, transfer) = read_transfer(&file, &row)?;
            all.entry(id).or_insert(transfer);
        }
    }
    Ok(Listing { rows: all.into_iter().rev().take(limit).collect(), damaged: list.damaged })
}

/// At most `limit` transfers after an id, the oldest first.
pub(crate) fn recent_transfers(
    ledger: &dyn Ledger,
    after: TransferId,
    limit: usize,
    list: Listing<(TransferId, Transfer)>,
) -> Result<Listing<(TransferId, Transfer)>, StoreError> {
    let months = months(ledger)?;
    if months.last().is_none_or(|(month, _)| before_all(month.next()) <= after) {
        return Ok(list);
    }
    let most = list.rows.last().map(|(id, _)| *id).filter(|_| list.rows.len() >= limit);
    let mut all: BTreeMap<TransferId, Transfer> = list.rows.into_iter().collect();
    for of in &months {
        if before_all(of.0.next()) <= after {
            continue;
        }
        let is_enough = all.keys().nth(limit.saturating_sub(1)).is_some_and(|id| *id <= before_all(of.0));
        if is_enough {
            break;
        }
        let file = ledger.archives().transfers(of)?;
        let rows = file.from(&after.0.0).filter(|row| row.as_ref().map_or(true, |row| row.0 != after.0.0));
        for row in rows.take(limit) {
            let (id, transfer) = read_transfer(&file, &row?)?;
            if most.is_some_and(|most| id > most) {
                break;
            }
            all.entry(id).or_insert(transfer);
        }
    }
    Ok(Listing { rows: all.into_iter().take(limit).collect(), damaged: list.damaged })
}
