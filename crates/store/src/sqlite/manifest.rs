//! The journal files that the tables know: the store's id, the next number, and which files exist.
//!
//! A file is listed, durably, before it takes its first batch, and it leaves the list before it is deleted. So a listed
//! file that is missing was lost, with acknowledged batches. A file that is not listed holds nothing that counts: a crash
//! came between its creation and the entry, or between the entry's end and its deletion.
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

/// What the tables know of the journal's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Manifest {
    /// The id of the store.
    pub(super) store: [u8; 16],
    /// The number of the next file.
    pub(super) next: u32,
    /// Numbers of the files that exist.
    pub(super) open: BTreeSet<u32>,
    /// The files were written by a version that gave them no identity.
    pub(super) older: bool,
}

impl Manifest {
    /// Reads it.
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

    /// Writes it, in the caller's transaction.
    pub(super) fn write(&self, connection: &Connection) -> Result<(), StoreError> {
        let numbers: Vec<String> = self.open.iter().map(u32::to_string).collect();
        meta::put_own(connection, JOURNALS, format!("{}:{}", self.next, numbers.join(",")).as_bytes())
    }
}

/// Gives a store that comes from a copy an id of its own: journals of the store that was copied are not its own.
pub(super) fn renew(connection: &Connection) -> Result<(), StoreError> {
    let mut id = [0; 16];
    getrandom::fill(&mut id)
        .map_err(|error| StoreError::Unavailable(format!("no random numbers: {error}")))?;
    meta::put_own(connection, ID, &id)?;
    let manifest = Manifest::read(connection)?;
    Manifest { open: BTreeSet::new(), ..manifest }.write(connection)
}

/// Makes a journal file and lists it.
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
    // Whatever became of the list: the file takes no batch, so nothing is in doubt that a caller asked for.
    made.map_err(|error| match error {
        StoreError::InDoubt { why, .. } => StoreError::Unavailable(format!("list a new journal file: {why}")),
        error => error,
    })
}

/// Removes files that were not listed, because something failed while they were made.
pub(super) fn remove_unlisted(tables: &Connection, files: &Files, store: &Path) -> Result<(), StoreError> {
    let listed = Manifest::read(tables)?.open;
    let (journals, left_over) = files::journals(store)?;
    let is_listed = |path: &PathBuf| files::number(path).is_some_and(|number| listed.contains(&number));
    journals.iter().filter(|path| !is_listed(path)).try_for_each(|path| journal::delete(files, path))?;
    left_over.iter().try_for_each(|path| files.remove(path))
}

/// Takes the files off the list that are not to be kept.
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
