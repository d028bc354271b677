//! A snapshot of tables and files together, over that of any backend. Its catalog is of the same moment, and files never change.
//!
//! Not here: reads of the present (`reads`).

use super::sorted_file::{Row, Rows, SortedFile};
use super::{Months, catalog, entry_key, read_entry, read_transfer, reads};
use crate::plan::{BoardNo, ScoreKey, StoredBlock, WindowKey, WindowRow};
use crate::score_snapshot::{ArchiveKey, Boards, ToPurge};
use crate::snapshot::{ContestSnapshot, RowPage};
use crate::{CorruptRow, Ledger, ScoreSnapshot, Snapshot, StoreError};
use std::cmp::Ordering;
use std::iter::Peekable;
use std::sync::Arc;
use tally_rules::contest::{Application, ContestId, ContestPlayer, Payout};
use tally_rules::ledger::account::{AccountKey, Total};
use tally_rules::ledger::member::Handle;
use tally_rules::ledger::{
    Entry, EntryKey, Hold, HoldId, Member, MemberId, Month, ReversalLink, Transfer, TransferId, Uuid, Wallet,
    WalletKey,
};
use tally_rules::period::PeriodPayment;
use tally_rules::{PlayerId, Record, contest};

/// A file, and its rows from a place on.
type Source = (Arc<SortedFile>, Peekable<Rows>);

/// A row with its types.
type Read<K, V> = Result<(K, V), StoreError>;

/// The rows of all files from where the last page ended.
struct Files<K> {
    all: Vec<Source>,
    at: Option<K>,
}

/// How a table's rows are in a file: the bytes of a key, and a row of the bytes.
struct Form<K, V> {
    key: fn(&K) -> Vec<u8>,
    read: fn(&SortedFile, &Row) -> Read<K, V>,
}

impl<K: Clone> Files<K> {
    /// Some rows of a page of the tables, merged with those of the files. A row of the tables counts before one of a file.
    fn merge<V>(&mut self, page: Vec<(K, V)>, limit: usize, form: &Form<K, V>) -> RowPage<K, V> {
        let mut tables = page.into_iter().map(|row| ((form.key)(&row.0), row)).peekable();
        let mut merged = Vec::with_capacity(limit.min(1_024));
        while merged.len() < limit {
            let number = self.least()?;
            let of_file =
                number.and_then(|number| self.all[number].1.peek()).and_then(|row| row.as_ref().ok());
            let order = match (tables.peek(), of_file) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((key, _)), Some((other, _))) => key.cmp(other),
            };
            // The row of a file goes with that of the table.
            let row = match number.filter(|_| order.is_ge()) {
                Some(number) => self.all[number].1.next().transpose()?.map(|row| (number, row)),
                None => None,
            };
            match row.filter(|_| order.is_gt()) {
                Some((number, row)) => merged.push((form.read)(&self.all[number].0, &row)?),
                None => merged.extend(tables.next().map(|(_, row)| row)),
            }
        }
        self.at = merged.last().map(|(key, _)| key.clone()).or_else(|| self.at.take());
        Ok(merged)
    }

    /// The file whose next row has the lowest key.
    fn least(&mut self) -> Result<Option<usize>, StoreError> {
        let mut least: Option<(usize, &[u8])> = None;
        for (number, (_, rows)) in self.all.iter_mut().enumerate() {
            match rows.peek() {
                None => {}
                Some(Err(error)) => return Err(error.clone()),
                Some(Ok((key, _))) if least.is_some_and(|(_, other)| key.as_slice() >= other) => {}
                Some(Ok((key, _))) => least = Some((number, key)),
            }
        }
        Ok(least.map(|(number, _)| number))
    }
}

/// A snapshot; see the head of the file.
struct ArchivedSnapshot<'a> {
    tables: Box<dyn Snapshot + 'a>,
    ledger: &'a dyn Ledger,
    months: Months,
    /// The months whose files are in pages.
    scanned: Months,
    /// Absent before the first page.
    transfers: Option<Files<TransferId>>,
    entries: Option<Files<EntryKey>>,
}

/// A snapshot with the archived rows of its moment.
pub(crate) fn with_archives<'a>(
    ledger: &'a dyn Ledger,
    mut tables: Box<dyn Snapshot + 'a>,
) -> Result<Box<dyn Snapshot + 'a>, StoreError> {
    let months = catalog::checked(tables.archived_months()?)?;
    if months.is_empty() {
        return Ok(tables);
    }
    let scanned = months.clone();
    Ok(Box::new(ArchivedSnapshot { tables, ledger, months, scanned, transfers: None, entries: None }))
}

/// Opens the file of a month.
type Open<'o> = dyn Fn(&(Month, super::ArchivedMonth)) -> Result<Arc<SortedFile>, StoreError> + 'o;

/// The rows of all files after a key: those where the last page ended, if it ended there.
fn at<'f, K: Clone + PartialEq, V>(
    files: &'f mut Option<Files<K>>,
    (months, open): (&Months, &Open<'_>),
    (after, form): (Option<K>, &Form<K, V>),
) -> Result<&'f mut Files<K>, StoreError> {
    if files.as_ref().is_none_or(|files| files.at != after) {
        let key = after.as_ref().map(form.key);
        let one = |of| {
            let file = open(of)?;
            let mut rows = file.from(key.as_deref().unwrap_or_default()).peekable();
            if let Some(after) = &key {
                rows.next_if(|row| row.as_ref().is_ok_and(|(key, _)| key == after));
            }
            Ok((file, rows))
        };
        let all = months.iter().map(one).collect::<Result<_, StoreError>>()?;
        *files = Some(Files { all, at: after });
    }
    Ok(files.as_mut().expect("they were opened"))
}

macro_rules! of_tables {
    ($($name:ident($($arg:ident: $type:ty),*) -> $out:ty;)*) => {
        $(fn $name(&mut self, $($arg: $type),*) -> $out {
            self.tables.$name($($arg),*)
        })*
    };
}

impl Snapshot for ArchivedSnapshot<'_> {
    of_tables! {
        members(after: Option<MemberId>, limit: usize) -> RowPage<MemberId, Member>;
        handles(after: Option<&Handle>, limit: usize) -> RowPage<Handle, MemberId>;
        wallets(after: Option<WalletKey>, limit: usize) -> RowPage<WalletKey, Wallet>;
        holds(after: Option<HoldId>, limit: usize) -> RowPage<HoldId, Hold>;
        reversals(after: Option<TransferId>, limit: usize) -> RowPage<TransferId, ReversalLink>;
        archived_months() -> Result<Months, StoreError>;
        contests(after: Option<&ContestId>, limit: usize) -> RowPage<ContestId, contest::ContestRecord>;
        contest_members(no: Uuid, after: Option<&PlayerId>, limit: usize) -> RowPage<PlayerId, ContestPlayer>;
        payouts(no: Uuid, from: u32, limit: usize) -> RowPage<u32, Payout>;
        owners(of: ContestSnapshot, after: Option<&Uuid>, limit: usize) -> RowPage<Uuid, ()>;
        payments(after: Option<&WindowKey>, limit: usize) -> RowPage<WindowKey, PeriodPayment>;
        members_of(ids: &[MemberId]) -> Result<Vec<Option<Member>>, StoreError>;
        handles_of(handles: &[Handle]) -> Result<Vec<Option<MemberId>>, StoreError>;
        reversals_of(ids: &[TransferId]) -> Result<Vec<Option<ReversalLink>>, StoreError>;
        totals() -> RowPage<AccountKey, Total>;
        corrupt_rows() -> Vec<CorruptRow>;
        rows() -> Result<u64, StoreError>;
    }

    fn leave_out(&mut self, until: Month) -> Result<(), StoreError> {
        let count = self.scanned.partition_point(|(month, _)| *month <= until);
        let out: Months = self.scanned.drain(..count).collect();
        (self.transfers, self.entries) = (None, None);
        self.ledger.archives().check_files(&out)
    }

    fn entries(&mut self, after: Option<EntryKey>, limit: usize) -> RowPage<EntryKey, Entry> {
        let (archives, form) = (self.ledger.archives(), Form { key: entry_key, read: read_entry });
        let open = |of: &(Month, _)| archives.entries(of);
        let files = at(&mut self.entries, (&self.scanned, &open), (after, &form))?;
        files.merge(self.tables.entries(after, limit)?, limit, &form)
    }

    fn transfers(&mut self, after: Option<TransferId>, limit: usize) -> RowPage<TransferId, Transfer> {
        let key = |id: &TransferId| id.0.0.to_vec();
        let (archives, form) = (self.ledger.archives(), Form { key, read: read_transfer });
        let open = |of: &(Month, _)| archives.transfers(of);
        let files = at(&mut self.transfers, (&self.scanned, &open), (after, &form))?;
        files.merge(self.tables.transfers(after, limit)?, limit, &form)
    }

    fn entries_of(&mut self, keys: &[EntryKey]) -> Result<Vec<Option<Entry>>, StoreError> {
        reads::fill_entries(self.ledger, &self.months, keys, self.tables.entries_of(keys)?)
    }

    fn transfers_of(&mut self, ids: &[TransferId]) -> Result<Vec<Option<Transfer>>, StoreError> {
        reads::fill_transfers(self.ledger, &self.months, ids, self.tables.transfers_of(ids)?)
    }
}

impl ScoreSnapshot for ArchivedSnapshot<'_> {
    of_tables! {
        boards() -> Result<Boards, StoreError>;
        to_purge() -> Result<ToPurge, StoreError>;
        scores(after: Option<&ScoreKey>, limit: usize) -> RowPage<ScoreKey, Record>;
        scores_of(keys: &[ScoreKey]) -> Result<Vec<Option<Record>>, StoreError>;
        windows(after: Option<WindowKey>, limit: usize) -> RowPage<WindowKey, WindowRow>;
        blocks(window: WindowKey, version: u32, from: u64, limit: usize) -> RowPage<u64, StoredBlock>;
        archives(after: Option<ArchiveKey>, limit: usize) -> RowPage<ArchiveKey, ()>;
        banned(board: BoardNo) -> Result<Vec<PlayerId>, StoreError>;
        applications(no: Uuid, after: Option<&PlayerId>, limit: usize) -> RowPage<PlayerId, Application>;
    }
}
