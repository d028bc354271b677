//! The archive of the ledger: transfers of past months in files instead of rows.
//!
//! A month becomes two files: its transfers by id, and their entries by wallet. The catalog is a table of the store, so a month is
//! archived by a transaction. Later steps delete the rows. A row that is in a table and in a file is one row, and that of the table counts.
//!
//! - `sorted_file`, `writer`: a file; `catalog`: a month in the catalog, and the chain of digests; `month`: writing both files
//! - `steps`: from the request to the last deleted row; `reads`, `snapshot`: tables and files together
//! - `checkpoint`: a file of the same form with what a verification has proved
//!
//! What names a person stays in tables, where an erasure finds it. A transfer with a reason or with metadata keeps its row, and
//! its file has it without them. Reversals, holds and members are not archived. Not here: when a month is over.

mod catalog;
mod checkpoint;
mod month;
pub(crate) mod reads;
pub(crate) mod snapshot;
mod sorted_file;
mod steps;
mod writer;

pub(crate) use catalog::file_names;
pub use catalog::{ArchivedMonth, MonthFiles, MonthState};
pub use checkpoint::{
    CheckpointFile, CheckpointWriter, ProvedWallet, ProvedWallets, Summary, check_replaceable,
};
pub(crate) use month::UNFINISHED;
pub use month::last_id;
pub use steps::{ArchiveStep, Until, step, to_archive};
pub use writer::Written;

use crate::StoreError;
use crate::codec::Input;
use crate::codec::transfers::{take_entry, take_transfer};
use catalog::{ENTRIES, TRANSFERS, file_name};
use lru::LruCache;
use sorted_file::{Row, SortedFile};
use std::fmt::Display;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tally_disk::Disk;
use tally_rules::ledger::{
    Currency, Entry, EntryKey, MemberId, Month, Transfer, TransferId, Uuid, WalletKey,
};

/// The indexes that are kept in memory.
const OPEN_MAX: NonZeroUsize = NonZeroUsize::new(64).expect("more than none");

/// The folder of the archives of a store.
#[derive(Debug)]
pub struct Archives {
    folder: Option<PathBuf>,
    disk: Arc<dyn Disk>,
    open: Mutex<LruCache<String, Arc<SortedFile>>>,
    /// The month where the last row was found: the next one is likely there, too.
    last: AtomicU32,
}

/// The archived months that have files, oldest first.
pub(crate) type Months = Vec<(Month, ArchivedMonth)>;

impl Archives {
    /// The archives in a folder. Without one there can be none.
    pub(crate) fn new(folder: Option<PathBuf>, disk: Arc<dyn Disk>) -> Self {
        Self { folder, disk, open: Mutex::new(LruCache::new(OPEN_MAX)), last: AtomicU32::new(0) }
    }

    /// The folder, or what is to be done to have one.
    pub fn folder(&self) -> Result<&Path, StoreError> {
        let missing = || StoreError::Archive {
            file: "archive.dir".into(),
            what: "this setting has no folder: all servers of the store must have the same one".into(),
        };
        self.folder.as_deref().ok_or_else(missing)
    }

    fn file(&self, month: Month, row: &ArchivedMonth, of: &str) -> Result<Arc<SortedFile>, StoreError> {
        let name = file_name(month, row.attempt, of);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = open.get(&name) {
            return Ok(Arc::clone(file));
        }
        let files = row.files.as_ref().expect("a month with files");
        let written = if of == TRANSFERS { &files.transfers } else { &files.entries };
        let file = Arc::new(SortedFile::open(&self.folder()?.join(&name), written)?);
        open.put(name, Arc::clone(&file));
        Ok(file)
    }

    fn transfers(&self, (month, row): &(Month, ArchivedMonth)) -> Result<Arc<SortedFile>, StoreError> {
        self.file(*month, row, TRANSFERS)
    }

    fn entries(&self, (month, row): &(Month, ArchivedMonth)) -> Result<Arc<SortedFile>, StoreError> {
        self.file(*month, row, ENTRIES)
    }

    /// Checks that all files of these months are there with their lengths, without reading them.
    fn check_files(&self, months: &Months) -> Result<(), StoreError> {
        for (name, bytes) in file_names(months) {
            let path = self.folder()?.join(name);
            let found = std::fs::metadata(&path).map_err(|error| fault(&path, &error))?.len();
            if found != bytes {
                return Err(fault(&path, &format!("it has {found} bytes instead of {bytes}")));
            }
        }
        Ok(())
    }

    /// The months in the order in which a row is looked for: the last place first, then the newest.
    fn in_order<'m>(&self, months: &'m Months) -> impl Iterator<Item = &'m (Month, ArchivedMonth)> {
        let last = Month(self.last.load(Ordering::Relaxed));
        let first = months.iter().find(|(month, _)| *month == last);
        first.into_iter().chain(months.iter().rev().filter(move |(month, _)| *month != last))
    }

    fn found_in(&self, month: Month) {
        self.last.store(month.0, Ordering::Relaxed);
    }
}

/// A fault of a file: it names the file.
fn fault(path: &Path, what: &dyn Display) -> StoreError {
    let file = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    StoreError::Archive { file, what: what.to_string() }
}

/// The key of an entry, in bytes of the same order.
fn entry_key(EntryKey { wallet, sequence }: &EntryKey) -> Vec<u8> {
    [&wallet_key(wallet)[..], &sequence.to_be_bytes()].concat()
}

fn wallet_key(WalletKey { member, currency }: &WalletKey) -> Vec<u8> {
    [&member.0.0[..], &currency.bytes()].concat()
}

fn take_wallet_key(key: &mut Input<'_>) -> Option<WalletKey> {
    Some(WalletKey { member: MemberId(Uuid(key.fixed()?)), currency: Currency::of_bytes(key.fixed()?)? })
}

/// A transfer of a file.
fn read_transfer(file: &SortedFile, (key, value): &Row) -> Result<(TransferId, Transfer), StoreError> {
    let (mut key, mut value) = (Input::new(key), Input::new(value));
    let id = key.fixed().filter(|_| key.is_empty()).map(|id| TransferId(Uuid(id)));
    let transfer = take_transfer(&mut value).filter(|_| value.is_empty());
    id.zip(transfer).ok_or_else(|| file.broken_row())
}

/// An entry of a file.
fn read_entry(file: &SortedFile, (key, value): &Row) -> Result<(EntryKey, Entry), StoreError> {
    let (mut key, mut value) = (Input::new(key), Input::new(value));
    let mut take = || {
        let wallet = take_wallet_key(&mut key)?;
        Some(EntryKey { wallet, sequence: u64::from_be_bytes(key.fixed()?) })
    };
    let of = take();
    let entry = take_entry(&mut value).filter(|_| value.is_empty());
    of.zip(entry).ok_or_else(|| file.broken_row())
}
