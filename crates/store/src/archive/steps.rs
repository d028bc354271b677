//! From a month that is to be archived to its last deleted row, in steps that may be repeated and cut short.
//!
//! An attempt takes the month by a random number in its row of the catalog. It writes files with this number in their names, and
//! records them only if the month is still its own. So of two servers that work at the same time one wins, and the other removes its
//! files. Rows are deleted in bounded transactions, which also count them.
//!
//! Not here: when a month may be archived, how many rows a step deletes, and how long to rest between two steps.

use super::catalog::{ArchivedMonth, MonthFiles, MonthState, before};
use super::month::{before_all, remove_own, write};
use super::{Months, read_transfer};
use crate::ledger::{Archived, LedgerReadSet, LedgerWriteSet};
use crate::plan::{ReadSet, WriteSet};
use crate::{Ledger, ShardSet, Store, StoreError};
use tally_rules::ledger::{EntryKey, Month, TransferId};

/// Says whether to go on; it is asked often, and may rest meanwhile.
pub type Until<'a> = dyn FnMut() -> bool + 'a;

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArchiveStep {
    /// Nothing is left to do.
    Nothing,
    /// It was stopped, or another server has done it.
    Stopped,
    /// The files of the month are written and recorded.
    Wrote(Month),
    /// Rows of the month were deleted.
    Deleted(Month),
    /// The last rows of the month were deleted.
    Done(Month),
}

/// The months before `end` that have transfers and are not in the catalog, oldest first.
pub fn to_archive(ledger: &dyn Ledger, end: Month) -> Result<Vec<Month>, StoreError> {
    let mut next = ledger.archived_months()?.last().map_or(Month::default(), |(month, _)| month.next());
    let mut found = Vec::new();
    while next < end {
        let Some((id, _)) = ledger.recent_transfers(before_all(next), 1)?.whole()?.pop() else { break };
        let month = Month::of(id.0.at()).max(next);
        if month < end {
            found.push(month);
        }
        next = month.next();
    }
    Ok(found)
}

/// Does the next step of the oldest month that is not done. Blocks: a month is written as one step, and its rows are deleted in steps
/// of at most `deleted_max` transfers.
pub fn step(store: &dyn Store, deleted_max: usize, until: &mut Until<'_>) -> Result<ArchiveStep, StoreError> {
    let months = store.ledger().archived_months()?;
    match months.iter().find(|(_, row)| row.state != MonthState::Done) {
        None => Ok(ArchiveStep::Nothing),
        Some((month, row)) => match &row.files {
            None => write_month(store, *month, &months, until),
            Some(_) => delete_rows(store, deleted_max, (*month, row.clone())),
        },
    }
}

fn write_month(
    store: &dyn Store,
    month: Month,
    months: &Months,
    until: &mut Until<'_>,
) -> Result<ArchiveStep, StoreError> {
    let mut random = [0; 8];
    getrandom::fill(&mut random)
        .map_err(|error| StoreError::Unavailable(format!("no random numbers: {error}")))?;
    let attempt = u64::from_be_bytes(random);
    let is_open = |row: &ArchivedMonth| row.state == MonthState::Writing;
    let take = |row: &ArchivedMonth| {
        is_open(row).then(|| (ArchivedMonth { attempt, ..row.clone() }, Archived::default()))
    };
    if !change(store, month, &take)? {
        return Ok(ArchiveStep::Stopped);
    }
    let Some(files) = write(store.ledger(), (month, attempt), until)? else {
        return Ok(ArchiveStep::Stopped);
    };
    let files = MonthFiles { digest: files.chained(month, before(months, month)), ..files };
    let record = |row: &ArchivedMonth| {
        (is_open(row) && row.attempt == attempt).then(|| {
            let (state, files) = (MonthState::Deleting, Some(files.clone()));
            (ArchivedMonth { state, files, ..row.clone() }, Archived::default())
        })
    };
    let recorded = change(store, month, &record);
    match recorded {
        Ok(true) => return Ok(ArchiveStep::Wrote(month)),
        // The commit may be done, and then the files are needed. If it is not, the next attempt removes them.
        Err(StoreError::InDoubt { .. }) => {}
        Ok(false) | Err(_) => remove_own(store.ledger().archives(), month, attempt)?,
    }
    recorded.map(|_| ArchiveStep::Stopped)
}

fn delete_rows(
    store: &dyn Store,
    deleted_max: usize,
    of: (Month, ArchivedMonth),
) -> Result<ArchiveStep, StoreError> {
    let ledger = store.ledger();
    let file = ledger.archives().transfers(&of)?;
    let (month, row) = of;
    let (mut ids, mut entries) = (Vec::<TransferId>::new(), Vec::<EntryKey>::new());
    for row in file.after(row.deleted).take(deleted_max) {
        let (id, transfer) = read_transfer(&file, &row?)?;
        ids.push(id);
        entries.extend(transfer.entries().into_iter().flatten());
    }
    entries.sort_unstable();
    let deleted = row.deleted + ids.len() as u64;
    // A transfer with words keeps its row. Words only go, so none of the others gets some meanwhile.
    let found = ledger.transfers(&ids)?;
    let is_silent = |transfer: &Option<_>| {
        transfer.as_ref().is_none_or(|transfer: &tally_rules::ledger::Transfer| !transfer.origin.has_words())
    };
    let transfers = ids.into_iter().zip(&found).filter(|(_, transfer)| is_silent(transfer));
    let gone = Archived { transfers: transfers.map(|(id, _)| id).collect(), entries };
    let all = row.files.as_ref().map_or(0, |files| files.transfers.rows);
    let state = if deleted >= all { MonthState::Done } else { MonthState::Deleting };
    let next = ArchivedMonth { state, deleted, ..row.clone() };
    let delete = |present: &ArchivedMonth| (*present == row).then(|| (next.clone(), gone.clone()));
    Ok(match change(store, month, &delete)? {
        false => ArchiveStep::Stopped,
        true if state == MonthState::Done => ArchiveStep::Done(month),
        true => ArchiveStep::Deleted(month),
    })
}

/// What a month becomes, and what is deleted with it.
type Change<'a> = dyn Fn(&ArchivedMonth) -> Option<(ArchivedMonth, Archived)> + 'a;

/// Changes a month in a transaction that has read it; whether it did.
fn change(store: &dyn Store, month: Month, change: &Change<'_>) -> Result<bool, StoreError> {
    let ledger = LedgerReadSet { archives: vec![month], ..LedgerReadSet::default() };
    let plan = ReadSet { shards: ShardSet::of(0), ledger, ..ReadSet::default() };
    let mut done = false;
    store.run(&plan, &mut |loaded| {
        let next = loaded.ledger.archives[0].as_ref().and_then(change);
        done = next.is_some();
        let Some((row, archived)) = next else { return WriteSet::default() };
        let ledger = LedgerWriteSet { archives: vec![(month, row)], archived, ..LedgerWriteSet::default() };
        WriteSet { ledger, ..WriteSet::default() }
    })?;
    Ok(done)
}
