//! The manifest: the store's id, the number of the next journal file, and the list of existing ones, in the tables.
//!
//! A file is listed durably before it takes its first batch, and removed from the list before it is deleted. So a listed
//! file that is missing was lost, with acknowledged batches. An unlisted file holds nothing that counts: a crash came
//! between its creation and its entry, or between the end of the entry and its deletion.
//!
//! Not here: the files themselves (`journal`), and what a start does with them (`recover`).

use super::fault::corrupt;
use super::files::{self, Files};
use super::journal::{self, Journal};
use super::journal_rows::Identity;
use super::state::Shared;
use super::{meta, tables};
use crate::StoreError;
use rusqlite::Connection;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const ID: &str = "store.id";
const JOURNALS: &str = "store.journals";
const OLDER: &[u8] = b"older";

/// The list of the journal files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Manifest {
    /// The id of the store.
    pub(super) store: [u8; 16],
    /// The number of the next file.
    pub(super) next: u32,
    /// The numbers of the existing files.
    pub(super) open: BTreeSet<u32>,
    /// Whether the files were written by a version that gave them no identity.
    pub(super) older: bool,
}

impl Manifest {
    /// Reads the manifest.
    pub(super) fn read(connection: &Connection) -> Result<Self, StoreError> {
        let id = meta::get(connection, ID)?.and_then(|id| id.try_into().ok());
        let store = id.ok_or_else(|| corrupt("meta", "no id of the store"))?;
        let text = meta::get(connection, JOURNALS)?.unwrap_or_default();
        if text == OLDER {
            return Ok(Self { store, next: 1, open: BTreeSet::new(), older: true });
        }
        let parsed = std::str::from_utf8(&text).ok().and_then(|text| {
            let (next, open) = text.split_once(':')?;
            let numbers = open.split(',').filter(|number| !number.is_empty());
            let open = numbers.map(|number| number.parse().ok()).collect::<Option<BTreeSet<u32>>>()?;
            Some(Self { store, next: next.parse().ok()?, open, older: false })
        });
        parsed.ok_or_else(|| corrupt("meta", "the list of journal files cannot be read"))
    }

    /// Writes the manifest in the caller's transaction.
    pub(super) fn write(&self, connection: &Connection) -> Result<(), StoreError> {
        let numbers: Vec<String> = self.open.iter().map(u32::to_string).collect();
        meta::put_own(connection, JOURNALS, format!("{}:{}", self.next, numbers.join(",")).as_bytes())
    }
}

/// Gives a restored store a new id: journals of the copied store are not its own.
pub(super) fn renew(connection: &Connection) -> Result<(), StoreError> {
    let mut id = [0; 16];
    getrandom::fill(&mut id)
        .map_err(|error| StoreError::Unavailable(format!("no random numbers: {error}")))?;
    meta::put_own(connection, ID, &id)?;
    let manifest = Manifest::read(connection)?;
    Manifest { open: BTreeSet::new(), ..manifest }.write(connection)
}

/// Creates a journal file and lists it.
pub(super) fn create(shared: &Shared) -> Result<Journal, StoreError> {
    let made = shared.write_tables(|connection| {
        let mut manifest = Manifest::read(connection)?;
        let identity = Identity { store: manifest.store, number: manifest.next };
        let journal = Journal::create(&shared.files, &shared.path, identity, shared.options.busy_wait)?;
        manifest.next += 1;
        manifest.open.insert(identity.number);
        manifest.write(connection)?;
        Ok(journal)
    });
    // The outcome of this commit is not in doubt for a caller: the file has no batch yet.
    made.map_err(|error| match error {
        StoreError::InDoubt { why, .. } => StoreError::Unavailable(format!("list a new journal file: {why}")),
        error => error,
    })
}

/// Removes unlisted files, which a failure during their creation has left.
pub(super) fn remove_unlisted(tables: &Connection, files: &Files, store: &Path) -> Result<(), StoreError> {
    let listed = Manifest::read(tables)?.open;
    let (journals, left_over) = files::journals(store)?;
    let is_listed = |path: &PathBuf| files::number(path).is_some_and(|number| listed.contains(&number));
    journals.iter().filter(|path| !is_listed(path)).try_for_each(|path| journal::delete(files, path))?;
    left_over.iter().try_for_each(|path| files.remove(path))
}

/// Removes files from the list, except those to keep.
pub(super) fn forget(
    tables: &mut tables::Tables,
    counters: &tables::Counters,
    keep: impl Fn(u32) -> bool,
) -> Result<(), StoreError> {
    tables.write(counters, |connection| {
        let mut manifest = Manifest::read(connection)?;
        manifest.open.retain(|number| keep(*number));
        manifest.write(connection)
    })
}
