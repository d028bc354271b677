//! Writes the two files of a month. Transfers come in the order of their file; entries are sorted in parts of bounded size, which
//! are merged.
//!
//! Not here: the catalog.

use super::catalog::{ENTRIES, MonthFiles, TRANSFERS, file_name};
use super::sorted_file::{Row, SortedFile};
use super::steps::Until;
use super::writer::{Writer, Written};
use super::{Archives, entry_key, fault};
use crate::codec::transfers::{put_entry, put_transfer};
use crate::damage::KeyText;
use crate::{CorruptRow, Ledger, StoreError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tally_disk::folder_of;
use tally_rules::ledger::account::Totals;
use tally_rules::ledger::{EntryKey, Month, Transfer, TransferId, Uuid};

/// Transfers of one read.
const PAGE: usize = 1_000;

/// Entries that are sorted in memory: some tens of MiB.
const SORTED_MAX: usize = 200_000;

/// The end of the name of a file that is not complete.
pub(crate) const UNFINISHED: &str = ".part";

/// The id before all of a month.
pub(super) fn before_all(month: Month) -> TransferId {
    let first = u128::from_be_bytes(Uuid::new(month.start(), 0).0);
    TransferId(Uuid(first.saturating_sub(1).to_be_bytes()))
}

/// The last id of a month.
pub fn last_id(month: Month) -> TransferId {
    before_all(month.next())
}

/// Writes the files of an attempt. `None` if it was stopped. A failed one leaves no files.
pub(super) fn write(
    ledger: &dyn Ledger,
    (month, attempt): (Month, u64),
    until: &mut Until<'_>,
) -> Result<Option<MonthFiles>, StoreError> {
    let (archives, folder) = (ledger.archives(), ledger.archives().folder()?);
    if !folder.exists() {
        std::fs::create_dir_all(folder).map_err(|error| fault(folder, &error))?;
        let parent = folder_of(folder);
        archives.disk.sync_folder(parent).map_err(|error| fault(parent, &error))?;
    }
    // Those of an attempt that was cut short.
    remove(archives, month, |name| !name.starts_with(&of_attempt(month, attempt)))?;
    let path = |of: &str| folder.join(file_name(month, attempt, of));
    let written = write_files(ledger, month, &path, until);
    if !matches!(written, Ok(Some(_))) {
        // The error before says more than one of this.
        let _ = remove_own(archives, month, attempt);
    }
    written
}

/// Removes the files of an attempt.
pub(super) fn remove_own(archives: &Archives, month: Month, attempt: u64) -> Result<(), StoreError> {
    remove(archives, month, |name| name.starts_with(&of_attempt(month, attempt)))
}

/// How the names of the files of an attempt begin.
fn of_attempt(month: Month, attempt: u64) -> String {
    file_name(month, attempt, "")
}

fn remove(archives: &Archives, month: Month, goes: impl Fn(&str) -> bool) -> Result<(), StoreError> {
    let (folder, of_month) = (archives.folder()?, format!("{month}-"));
    let entries = std::fs::read_dir(folder).map_err(|error| fault(folder, &error))?;
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(&of_month) && goes(&name) {
            archives.disk.remove(&entry.path()).map_err(|error| fault(&entry.path(), &error))?;
        }
    }
    archives.disk.sync_folder(folder).map_err(|error| fault(folder, &error))
}

fn write_files(
    ledger: &dyn Ledger,
    month: Month,
    path: &dyn Fn(&str) -> PathBuf,
    until: &mut Until<'_>,
) -> Result<Option<MonthFiles>, StoreError> {
    let (archives, end) = (ledger.archives(), before_all(month.next()));
    let mut transfers = NewFile::create(archives, path(TRANSFERS))?;
    let mut sorter = Sorter { archives, base: path(ENTRIES), rows: Vec::new(), parts: Vec::new() };
    let (mut totals, mut after) = (Totals::default(), before_all(month));
    loop {
        let mut page = ledger.recent_transfers(after, PAGE)?.whole()?;
        let is_last = page.len() < PAGE || page.last().is_some_and(|(id, _)| *id > end);
        page.retain(|(id, _)| *id <= end);
        for (id, transfer) in &page {
            let mut value = Vec::new();
            put_transfer(&without_words(transfer), &mut value);
            transfers.writer.add(&id.0.0, &value)?;
            totals.add(transfer);
            after = *id;
        }
        sorter.add(ledger, &page)?;
        if !until() {
            return Ok(None);
        }
        if is_last {
            break;
        }
    }
    let entries = sorter.finish(until)?;
    let Some(entries) = entries else { return Ok(None) };
    let transfers = transfers.finish()?;
    let totals = totals.into_rows();
    Ok(Some(MonthFiles { transfers, entries, totals, digest: [0; 32] }))
}

/// A transfer as a file has it.
fn without_words(transfer: &Transfer) -> Transfer {
    Transfer { origin: transfer.origin.without_words(), ..transfer.clone() }
}

/// A file that gets its name once it is complete.
struct NewFile<'a> {
    archives: &'a Archives,
    path: PathBuf,
    unfinished: PathBuf,
    writer: Writer,
}

impl<'a> NewFile<'a> {
    fn create(archives: &'a Archives, path: PathBuf) -> Result<Self, StoreError> {
        let mut unfinished = path.clone().into_os_string();
        unfinished.push(UNFINISHED);
        let unfinished = PathBuf::from(unfinished);
        let writer = Writer::create(&*archives.disk, &unfinished)?;
        Ok(Self { archives, path, unfinished, writer })
    }

    fn finish(self) -> Result<Written, StoreError> {
        let (disk, folder) = (&self.archives.disk, self.archives.folder()?);
        let written = self.writer.finish()?;
        disk.rename(&self.unfinished, &self.path).map_err(|error| fault(&self.path, &error))?;
        disk.sync_folder(folder).map_err(|error| fault(folder, &error))?;
        Ok(written)
    }
}

/// Sorts entries.
struct Sorter<'a> {
    archives: &'a Archives,
    base: PathBuf,
    rows: Vec<Row>,
    parts: Vec<(PathBuf, Written)>,
}

impl Sorter<'_> {
    /// Adds the entries of some transfers.
    fn add(&mut self, ledger: &dyn Ledger, page: &[(TransferId, Transfer)]) -> Result<(), StoreError> {
        let keys: Vec<EntryKey> =
            page.iter().flat_map(|(_, transfer)| transfer.entries()).flatten().collect();
        for (key, entry) in keys.iter().zip(ledger.entries(&keys)?) {
            let missing = || CorruptRow { table: "entries", key: key.text(), what: "it is missing".into() };
            let entry = entry.ok_or_else(|| StoreError::CorruptRow(Box::new(missing())))?;
            let mut value = Vec::new();
            put_entry(&entry, &mut value);
            self.rows.push((entry_key(key), value));
        }
        if self.rows.len() >= SORTED_MAX { self.close_part() } else { Ok(()) }
    }

    /// Writes what is in memory into a file of its own.
    fn close_part(&mut self) -> Result<(), StoreError> {
        let mut path = self.base.clone().into_os_string();
        path.push(format!("-{}{UNFINISHED}", self.parts.len()));
        let path = PathBuf::from(path);
        let mut writer = Writer::create(&*self.archives.disk, &path)?;
        write_sorted(&mut self.rows, &mut writer)?;
        self.parts.push((path, writer.finish()?));
        Ok(())
    }

    /// Writes all in order; `None` if it was stopped.
    fn finish(mut self, until: &mut Until<'_>) -> Result<Option<Written>, StoreError> {
        let mut file = NewFile::create(self.archives, self.base.clone())?;
        if self.parts.is_empty() {
            write_sorted(&mut self.rows, &mut file.writer)?;
            return file.finish().map(Some);
        }
        if !self.rows.is_empty() {
            self.close_part()?;
        }
        if !merge(&self.parts, &mut file.writer, until)? {
            return Ok(None);
        }
        for (path, _) in &self.parts {
            self.archives.disk.remove(path).map_err(|error| fault(path, &error))?;
        }
        file.finish().map(Some)
    }
}

fn write_sorted(rows: &mut Vec<Row>, writer: &mut Writer) -> Result<(), StoreError> {
    rows.sort_unstable();
    rows.drain(..).try_for_each(|(key, value)| writer.add(&key, &value))
}

/// Merges sorted parts; false if it was stopped.
fn merge(
    parts: &[(PathBuf, Written)],
    writer: &mut Writer,
    until: &mut Until<'_>,
) -> Result<bool, StoreError> {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;
    let open = |(path, written): &(PathBuf, Written)| -> Result<_, StoreError> {
        Ok(Arc::new(SortedFile::open(Path::new(path), written)?).after(0))
    };
    let mut sources = parts.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let mut heads = BinaryHeap::new();
    for (number, source) in sources.iter_mut().enumerate() {
        heads.extend(source.next().transpose()?.map(|row| Reverse((row, number))));
    }
    let mut done = 0_usize;
    while let Some(Reverse(((key, value), number))) = heads.pop() {
        writer.add(&key, &value)?;
        heads.extend(sources[number].next().transpose()?.map(|row| Reverse((row, number))));
        done += 1;
        if done.is_multiple_of(10 * PAGE) && !until() {
            return Ok(false);
        }
    }
    Ok(true)
}
