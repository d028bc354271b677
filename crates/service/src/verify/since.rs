//! Verifying from a checkpoint: the end of an archived month, or what an earlier verification has proved and written into a file.
//!
//! **A month.** Tables have what came after it, so the files up to it are not read. A wallet then begins with what its first entry
//! found. The sum of these balances must be what the catalog's totals leave, and the number of entries before them must be that of the
//! files. The catalog proves both by its chain of digests.
//!
//! **A file.** It has the balance and the number of entries of each wallet. So each wallet begins with its own, and the entries that it
//! counts since then must leave its present balance (`entries`).
//!
//! A transfer belongs before the checkpoint by its id. Servers commit ids of one moment in any order. So a late one before the end may
//! have its rows in tables, and entries of files may lie between those of tables. Both are looked up by key.
//!
//! Not here: the rows before it, which a whole verification reads.

use super::sorted_rows::LOOKUP_PAGE;
use super::sum::Sum;
use super::transfers::each_side;
use super::wallets::{Story, name};
use super::{Reconciled, Run};
use crate::failure::{Failure, Fault};
use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;
use std::sync::Arc;
use tally_rules::Micros;
use tally_rules::ledger::account::{Account, AccountKey, Total, Totals};
use tally_rules::ledger::{Currency, EntryKey, Month, TransferId, Uuid, WalletKey};
use tally_store::archive::{
    CheckpointFile, MonthFiles, MonthState, ProvedWallet, ProvedWallets, Summary, last_id,
};
use tally_store::{Snapshot, StoreError};

/// Entries of files that are looked up between two entries of tables.
const BETWEEN_MAX: u64 = 1_000;

/// Late transfers that are kept in memory.
const LATE_MAX: usize = 500_000;

/// How far the clocks of a server and of a verification may be apart.
pub const CLOCKS_APART_MICROS: i64 = 60_000_000;

/// What else it may be, if rows of a file are not there any more.
pub(super) const RESTORED: &str =
    "; or this store was restored to an earlier state: `tally verify` without --since tells";

/// Where a verification begins.
#[derive(Clone, Debug)]
pub enum Checkpoint {
    /// The end of an archived month.
    Month(MonthCheckpoint),
    /// What an earlier verification has proved.
    File(Arc<CheckpointFile>),
}

/// The end of an archived month, and what its catalog says of all before.
#[derive(Clone, Debug)]
pub struct MonthCheckpoint {
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

impl MonthCheckpoint {
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

impl Checkpoint {
    /// Why a file is not of the store of this snapshot, or not of an earlier state of it.
    pub fn refused(&self, snapshot: &mut dyn Snapshot) -> Result<Option<String>, Failure> {
        let Self::File(file) = self else { return Ok(None) };
        let Summary { newest, archived, .. } = file.summary();
        if let Some((month, digest)) = archived {
            let is_same = |files: &MonthFiles| files.digest == *digest;
            let mut months = snapshot.archived_months()?.into_iter();
            if !months.any(|(of, row)| of == *month && row.files.as_ref().is_some_and(is_same)) {
                return Ok(Some(format!("the archive of {month} is not the one that it was made with")));
            }
        }
        // No two stores have an id in common.
        let newest = newest.as_slice();
        if snapshot.transfers_of(newest)?.iter().any(Option::is_none) {
            let id = newest[0].0;
            return Ok(Some(format!(
                "its last movement, {id}, is not there. It is of another store or of a later state, or the row is lost: \
                 `tally verify` without --since tells"
            )));
        }
        Ok(None)
    }

    /// What a verification from there, or of all, has proved. It found nothing. `Err` says why no other one may begin at it.
    pub fn proved(since: Option<&Self>, reconciled: &Reconciled, at: Micros) -> Result<Summary, String> {
        let (whole, newest, transfers, entries) = match since {
            None => (Some(at), None, 0, 0),
            Some(Self::Month(month)) => (None, None, month.transfers, month.entries),
            Some(Self::File(file)) => {
                let before = file.summary();
                (before.whole, before.newest, before.transfers, before.entries)
            }
        };
        let newest = reconciled.newest.or(newest);
        let last = since.map(Self::last).max(newest).unwrap_or(TransferId(Uuid([0; 16])));
        let ahead = last.0.at();
        if ahead > at.plus(CLOCKS_APART_MICROS) {
            // Each transfer until then would be a late one.
            return Err(format!(
                "the last movement, {}, is of {ahead}, and the clock of this machine says {at}. Set the clock that is wrong; \
                 until {ahead} no checkpoint can be written",
                last.0
            ));
        }
        Ok(Summary {
            at,
            whole,
            last,
            newest,
            transfers: transfers + reconciled.transfers,
            entries: entries + reconciled.entries,
            totals: reconciled.totals.clone(),
            archived: reconciled.archived,
        })
    }

    /// The month whose files, and all before, are not read.
    pub(super) fn left_out(&self) -> Option<Month> {
        match self {
            Self::Month(month) => Some(month.month),
            Self::File(file) => file.summary().archived.map(|(month, _)| month),
        }
    }

    /// The last id before.
    fn last(&self) -> TransferId {
        match self {
            Self::Month(month) => last_id(month.month),
            Self::File(file) => file.summary().last,
        }
    }

    fn totals(&self) -> &[(AccountKey, Total)] {
        match self {
            Self::Month(month) => &month.totals,
            Self::File(file) => &file.summary().totals,
        }
    }
}

/// A verification from a checkpoint.
pub(super) struct Since {
    checkpoint: Checkpoint,
    /// What all wallets had at the end of a month, and how many entries.
    had: BTreeMap<Currency, i128>,
    entries: u64,
    /// The wallets of a file that were not passed.
    proved: Option<Peekable<ProvedWallets>>,
    /// Transfers with an id before the end, and with entries after it.
    late: BTreeSet<TransferId>,
}

impl Since {
    pub(super) fn new(checkpoint: Checkpoint) -> Self {
        let proved = match &checkpoint {
            Checkpoint::Month(_) => None,
            Checkpoint::File(file) => Some(file.wallets().peekable()),
        };
        Self { checkpoint, had: BTreeMap::new(), entries: 0, proved, late: BTreeSet::new() }
    }

    /// The last id before.
    pub(super) fn last(&self) -> TransferId {
        self.checkpoint.last()
    }

    /// The file that it begins at.
    pub(super) fn file(&self) -> Option<&CheckpointFile> {
        match &self.checkpoint {
            Checkpoint::Month(_) => None,
            Checkpoint::File(file) => Some(file),
        }
    }

    /// The fees of what started until then may have been taken before. Servers and this machine have clocks of their own.
    pub(super) fn started_until(&self) -> Micros {
        let last = self.last().0.at();
        self.file().map_or(last, |file| file.summary().at.max(last)).plus(CLOCKS_APART_MICROS)
    }

    fn had(&mut self, currency: Currency, units: i128, entries: u64) {
        *self.had.entry(currency).or_default() += units;
        self.entries = self.entries.saturating_add(entries);
    }
}

/// The next wallet of a file, at most this one.
pub(super) fn next_proved(
    proved: &mut Peekable<ProvedWallets>,
    until: Option<&WalletKey>,
) -> Result<Option<(WalletKey, ProvedWallet)>, StoreError> {
    let is_next = |row: &Result<(WalletKey, ProvedWallet), StoreError>| match row {
        Ok((key, _)) => until.is_none_or(|until| key <= until),
        Err(_) => true,
    };
    proved.next_if(is_next).transpose()
}

/// What a wallet had before its first entry that is read, if that is known.
pub(super) fn known(run: &mut Run<'_>, wallet: &WalletKey) -> Result<Option<Story>, StoreError> {
    match &run.since {
        None => Ok(Some(Story::default())),
        Some(since) if since.proved.is_none() => Ok(None),
        Some(_) => Ok(Some(pass(run, Some(wallet))?.map_or_else(Story::default, |proved| Story {
            balance: proved.balance.into(),
            last: proved.sequence,
            credit: proved.credit,
        }))),
    }
}

/// Names the wallets of a file that are not there any more: those before a wallet, or all that are left.
pub(super) fn pass(run: &mut Run<'_>, until: Option<&WalletKey>) -> Result<Option<ProvedWallet>, StoreError> {
    loop {
        let Some(proved) = run.since.as_mut().and_then(|since| since.proved.as_mut()) else {
            return Ok(None);
        };
        match next_proved(proved, until)? {
            None => return Ok(None),
            Some((key, proved)) if until == Some(&key) => return Ok(Some(proved)),
            Some((key, _)) => run.found(
                "wallets",
                name(&key),
                format!("it is not there, and was at the checkpoint{RESTORED}"),
            ),
        }
    }
}

/// What a wallet had at the end of a month: that of its first entry in tables, or of the wallet itself.
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
    let first = story.last.saturating_add(1);
    let Some(since) = run.since.as_mut().filter(|since| since.proved.is_none()) else { return Ok(story) };
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
        let what = format!("more than {LATE_MAX} transfers with ids before the checkpoint came after it");
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
    for (key, total) in since.checkpoint.totals() {
        totals.account(key.account, key.currency, *total);
    }
    let late: Vec<TransferId> = std::mem::take(&mut since.late).into_iter().collect();
    for ids in late.chunks(LOOKUP_PAGE) {
        run.read(ids.len());
        // One that is not there is found by the sums.
        for (id, transfer) in ids.iter().zip(snapshot.transfers_of(ids)?) {
            let Some(transfer) = transfer else { continue };
            run.reconciled.transfers += 1;
            run.reconciled.late += 1;
            totals.add(&transfer);
            each_side(*id, &transfer, |side| sides.add(&run.key, &side));
        }
    }
    Ok(())
}

/// Compares what all wallets had at the end of a month with the catalog.
pub(super) fn check(run: &mut Run<'_>) {
    let Some(Since { checkpoint: Checkpoint::Month(month), had, entries: had_entries, .. }) =
        run.since.take()
    else {
        return;
    };
    let MonthCheckpoint { month, entries, totals, .. } = month;
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
    if had_entries != entries {
        let what = format!("wallets had {had_entries} entries at its end, and {entries} are archived");
        run.found("archives", month, what);
    }
}
