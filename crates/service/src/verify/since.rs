//! Verifying from a checkpoint: the end of a month that the archive of the ledger has in files alone.
//!
//! Tables have what came after it, so the files up to it are not read. A wallet then begins with what its first entry found. The sum of
//! these balances must be what the catalog's totals leave, and the number of entries before them must be that of the files. The catalog
//! proves both by its chain of digests.
//!
//! A transfer belongs before the checkpoint by its id. Servers commit ids of one moment in any order. So a late one before the end may
//! have its rows in tables, and entries of files may lie between those of tables. Both are looked up by key.
//!
//! Not here: the rows of those files, which a whole verification reads.

use super::Run;
use super::sum::Sum;
use super::transfers::each_side;
use super::wallets::Story;
use crate::failure::{Failure, Fault};
use std::collections::{BTreeMap, BTreeSet};
use tally_rules::ledger::account::{Account, AccountKey, Total, Totals};
use tally_rules::ledger::{Currency, EntryKey, Month, TransferId, WalletKey};
use tally_store::archive::{MonthFiles, MonthState, last_id};
use tally_store::{Snapshot, StoreError};

/// Entries of files that are looked up between two entries of tables.
const BETWEEN_MAX: u64 = 1_000;

/// Late transfers that are kept in memory.
const LATE_MAX: usize = 500_000;

/// Transfers of one lookup.
const LOOKUP_PAGE: usize = 1_000;

/// The end of an archived month, and what its catalog says of all before.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// The last month of it.
    pub month: Month,
    /// How many months are not read.
    pub months: usize,
    /// How many transfers they have.
    pub transfers: u64,
    /// How many entries.
    pub entries: u64,
    totals: Vec<(AccountKey, Total)>,
}

impl Checkpoint {
    /// The end of a month, or of the last one that is possible. `None` if files do not have all rows before it, and nothing else.
    pub fn find(snapshot: &mut dyn Snapshot, month: Option<Month>) -> Result<Option<Self>, Failure> {
        let done: Vec<(Month, MonthFiles)> = snapshot
            .archived_months()?
            .into_iter()
            .map_while(|(month, row)| Some((month, row.files.filter(|_| row.state == MonthState::Done)?)))
            .take_while(|(of, _)| month.is_none_or(|month| *of <= month))
            .collect();
        let last = done.last().map(|(last, _)| *last);
        let Some(last) = last.filter(|last| month.is_none_or(|month| month == *last)) else {
            return Ok(None);
        };
        let count = |of: fn(&MonthFiles) -> u64| done.iter().map(|(_, files)| of(files)).sum();
        Ok(Some(Self {
            month: last,
            months: done.len(),
            transfers: count(|files| files.transfers.rows),
            entries: count(|files| files.entries.rows),
            totals: done.iter().flat_map(|(_, files)| files.totals.iter().copied()).collect(),
        }))
    }
}

/// A verification from a checkpoint.
pub(super) struct Since {
    checkpoint: Checkpoint,
    /// What all wallets had at the checkpoint, and how many entries.
    had: BTreeMap<Currency, i128>,
    entries: u64,
    /// Transfers with an id before the end, and with entries in tables.
    late: BTreeSet<TransferId>,
}

impl Since {
    pub(super) fn new(checkpoint: Checkpoint) -> Self {
        Self { checkpoint, had: BTreeMap::new(), entries: 0, late: BTreeSet::new() }
    }

    /// The last id before.
    pub(super) fn last(&self) -> TransferId {
        last_id(self.checkpoint.month)
    }

    fn had(&mut self, currency: Currency, units: i128, entries: u64) {
        *self.had.entry(currency).or_default() += units;
        self.entries = self.entries.saturating_add(entries);
    }
}

/// What a wallet had at the checkpoint: that of its first entry in tables, or of the wallet itself.
pub(super) fn begin(run: &mut Run<'_>, wallet: &WalletKey, (balance, last): (i128, u64)) -> Story {
    if let Some(since) = &mut run.since {
        since.had(wallet.currency, balance, last);
    }
    // Credit is a part of the balance.
    Story { balance, last, credit: balance }
}

/// Goes on with the entries of files up to the number `until`.
pub(super) fn go_on(
    snapshot: &mut dyn Snapshot,
    (wallet, mut story, until): (&WalletKey, Story, u64),
    run: &mut Run<'_>,
) -> Result<Story, StoreError> {
    let (first, Some(since)) = (story.last.saturating_add(1), &mut run.since) else { return Ok(story) };
    let numbers = first..until.min(first.saturating_add(BETWEEN_MAX));
    let keys: Vec<EntryKey> = numbers.map(|sequence| EntryKey { wallet: *wallet, sequence }).collect();
    if keys.is_empty() {
        return Ok(story);
    }
    for (key, entry) in keys.iter().zip(snapshot.entries_of(&keys)?) {
        let last = since.last();
        let Some(entry) = entry.filter(|entry| entry.transfer <= last) else { break };
        let next = story.after(key, &entry);
        if next.balance - story.balance != Story::change(&entry) {
            break;
        }
        since.had(wallet.currency, Story::change(&entry), 1);
        story = next;
    }
    Ok(story)
}

/// Notes the transfer of an entry in tables.
pub(super) fn note(run: &mut Run<'_>, transfer: TransferId) -> Result<(), Failure> {
    let Some(since) = run.since.as_mut().filter(|since| transfer <= since.last()) else { return Ok(()) };
    since.late.insert(transfer);
    if since.late.len() > LATE_MAX {
        let what =
            format!("more than {LATE_MAX} transfers came after {} was archived", since.checkpoint.month);
        return Err(Fault::Broken(format!("{what}: verify without a checkpoint")).into());
    }
    Ok(())
}

/// Adds what is not passed by a scan of transfers after the checkpoint: the totals of the catalog, and late transfers.
pub(super) fn add_earlier(
    snapshot: &mut dyn Snapshot,
    (totals, sides): (&mut Totals, &mut Sum),
    run: &mut Run<'_>,
) -> Result<(), StoreError> {
    let Some(since) = &mut run.since else { return Ok(()) };
    for (key, total) in &since.checkpoint.totals {
        totals.account(key.account, key.currency, *total);
    }
    let late: Vec<TransferId> = std::mem::take(&mut since.late).into_iter().collect();
    for ids in late.chunks(LOOKUP_PAGE) {
        run.read(ids.len());
        // One that is not there is found by the sums.
        for (id, transfer) in ids.iter().zip(snapshot.transfers_of(ids)?) {
            let Some(transfer) = transfer else { continue };
            run.replayed.transfers += 1;
            totals.add(&transfer);
            each_side(*id, &transfer, |side| sides.add(&run.key, &side));
        }
    }
    Ok(())
}

/// Compares what all wallets had with the catalog.
pub(super) fn check(run: &mut Run<'_>) {
    let Some(since) = run.since.take() else { return };
    let Since { checkpoint: Checkpoint { month, entries, totals, .. }, had, .. } = since;
    let mut wanted: BTreeMap<Currency, i128> = had.keys().map(|currency| (*currency, 0)).collect();
    for (key, total) in totals.iter().filter(|(key, _)| key.account == Account::BankPayable) {
        let owed = total.credits.cast_signed().wrapping_sub(total.debits.cast_signed());
        *wanted.entry(key.currency).or_default() += owed;
    }
    for (currency, wanted) in wanted {
        let had = had.get(&currency).copied().unwrap_or_default();
        if had != wanted {
            let what =
                format!("wallets had {had} {currency} at its end, and the archived transfers leave {wanted}");
            run.found("archives", month, what);
        }
    }
    if since.entries != entries {
        let what = format!("wallets had {} entries at its end, and {entries} are archived", since.entries);
        run.found("archives", month, what);
    }
}
