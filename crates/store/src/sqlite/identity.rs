//! Checks that a file is ours, from its first bytes, before SQLite opens it.
//!
//! SQLite may write to a file it opens (a journal to roll back, a log to flush). So a file that is not ours, or of a later
//! version, is recognized without SQLite and stays unchanged. Migrations write these bytes outside of write-ahead logging,
//! so they are never outdated. Not here: whether the rest is sound.

use super::{fault, files};
use crate::StoreError;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use tally_disk::folder_of;

/// The `application_id` of our files: "tlly".
pub(super) const APPLICATION_ID: u32 = 0x746c_6c79;

/// The `application_id` of journal files: "tllj". Their `user_version` is the schema version that wrote them.
pub(super) const JOURNAL_ID: u32 = 0x746c_6c6a;

/// The beginning of every SQLite file. The offsets below are those of its header, which SQLite promises to keep.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
const USER_VERSION_AT: usize = 60;
const APPLICATION_ID_AT: usize = 68;
const HEADER_BYTES: usize = 100;

/// Resolves the links of a path, so that one file has one lock, and its journals lie beside it.
pub(super) fn resolve(path: &Path) -> Result<PathBuf, StoreError> {
    match path.canonicalize() {
        Ok(real) => Ok(real),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let name = path.file_name().ok_or_else(|| fault::file("create", path, &error))?;
            Ok(folder_of(path)
                .canonicalize()
                .map_err(|error| fault::file("find the folder of", path, &error))?
                .join(name))
        }
        Err(error) => Err(fault::file("open", path, &error)),
    }
}

/// Refuses a store, or a file of its journal, that is not ours or later than `known`. A missing or empty file is a new
/// store.
pub(super) fn check(path: &Path, known: u32) -> Result<(), StoreError> {
    check_file(path, APPLICATION_ID, known)?;
    files::journals(path)?.0.iter().try_for_each(|journal| check_file(journal, JOURNAL_ID, known))
}

/// The version of the schema of a store; `None` if there is no store of ours.
pub(super) fn schema(path: &Path) -> Result<Option<u32>, StoreError> {
    let header = header(path)?.filter(|header| is_ours(header, APPLICATION_ID));
    Ok(header.map(|header| number(&header, USER_VERSION_AT)))
}

/// The first bytes of a file; `None` if it is missing.
fn header(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fault::file("open", path, &error)),
    };
    let mut header = Vec::with_capacity(HEADER_BYTES);
    let read = file.by_ref().take(HEADER_BYTES as u64).read_to_end(&mut header);
    read.map_err(|error| fault::file("read", path, &error))?;
    Ok(Some(header))
}

fn is_ours(header: &[u8], id: u32) -> bool {
    header.len() == HEADER_BYTES && header.starts_with(MAGIC) && number(header, APPLICATION_ID_AT) == id
}

fn check_file(path: &Path, id: u32, known: u32) -> Result<(), StoreError> {
    let Some(header) = header(path)? else { return Ok(()) };
    if id == APPLICATION_ID && (header.is_empty() || is_unfinished(path, &header)) {
        return Ok(());
    }
    if !is_ours(&header, id) {
        return Err(StoreError::NotOurs(format!("`{}`", path.display())));
    }
    let found = number(&header, USER_VERSION_AT);
    if found > known {
        return Err(StoreError::TooNew { found, known });
    }
    Ok(())
}

/// A power cut during the creation of a store leaves zeros at the beginning, and a rollback journal. SQLite uses it to make
/// the file empty again.
fn is_unfinished(path: &Path, header: &[u8]) -> bool {
    header.iter().all(|byte| *byte == 0) && files::beside(path, files::ROLLBACK).exists()
}

fn number(header: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(header[at..at + 4].try_into().expect("four bytes"))
}
