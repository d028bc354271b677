//! Reads and checks rows of a journal file.
//!
//! A row has the number of its batch, and the number of the last batch that was synced when it was written. It also has a
//! digest of these, of its bytes and of the journal's identity. So a row that was copied from the journal of another store,
//! or from another file of this one, is rejected.
//!
//! Not here: the meaning of the bytes (`batch`), and the meaning of a gap between rows (`recover`, `damage`).

use crate::StoreError;
use rusqlite::{Connection, OptionalExtension, params};
use std::path::Path;

const AFTER: &str = "SELECT no, synced, digest, body FROM batches WHERE no > ?1 ORDER BY no";
const SPAN: &str = "SELECT min(no), max(no) FROM batches WHERE no > ?1";
const HAS_IDENTITY: &str = "SELECT 1 FROM sqlite_schema WHERE name = 'journal'";
const HAS_INSTANTS: &str = "SELECT 1 FROM pragma_table_info('batches') WHERE name = 'at'";
const IDENTITY: &str = "SELECT store, number FROM journal";

/// The identity of a journal file. Files that were written before schema 10 have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    /// The id of the store.
    pub(super) store: [u8; 16],
    /// The number of the file in the store.
    pub(super) number: u32,
}

/// A stored batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JournalRow {
    pub(super) no: u64,
    pub(super) synced: u64,
    pub(super) body: Vec<u8>,
}

/// A journal file that is open for reading.
pub(super) struct Source {
    pub(super) path: Box<Path>,
    pub(super) connection: Connection,
    pub(super) identity: Option<Identity>,
}

impl Source {
    /// Reads the identity of the file.
    pub(super) fn new(path: &Path, connection: Connection) -> Result<Self, StoreError> {
        let has = connection.query_row(HAS_IDENTITY, [], |_| Ok(())).optional()?.is_some();
        let read = |row: &rusqlite::Row<'_>| Ok(Identity { store: row.get(0)?, number: row.get(1)? });
        let identity = if has { Some(connection.query_row(IDENTITY, [], read)?) } else { None };
        Ok(Self { path: path.into(), connection, identity })
    }

    /// Reads the rows after a batch, in order, each checked by its digest.
    pub(super) fn read(
        &self,
        after: u64,
        each: &mut dyn FnMut(JournalRow) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut statement = self.connection.prepare(AFTER)?;
        let mut rows = statement.query(params![after.cast_signed()])?;
        while let Some(row) = rows.next()? {
            let number =
                |column| -> Result<u64, StoreError> { Ok(row.get::<_, i64>(column)?.cast_unsigned()) };
            let (no, synced, body) = (number(0)?, number(1)?, row.get::<_, Vec<u8>>(3)?);
            if row.get::<_, Vec<u8>>(2)? != digest(self.identity.as_ref(), no, synced, &body) {
                return Err(damaged(&self.path, &format!("batch {no} is not what was written")));
            }
            each(JournalRow { no, synced, body })?;
        }
        Ok(())
    }

    /// The first and the last batch after `after`.
    pub(super) fn span(&self, after: u64) -> Result<Option<(u64, u64)>, StoreError> {
        let read =
            |row: &rusqlite::Row<'_>| Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, Option<i64>>(1)?));
        let (first, last) = self.connection.query_row(SPAN, params![after.cast_signed()], read)?;
        Ok(first.zip(last).map(|(first, last)| (first.cast_unsigned(), last.cast_unsigned())))
    }
}

/// Whether the rows of a file have instants. Those that earlier versions wrote have none.
pub(super) fn has_instants(connection: &Connection) -> Result<bool, StoreError> {
    Ok(connection.query_row(HAS_INSTANTS, [], |_| Ok(())).optional()?.is_some())
}

/// The error of a corrupt journal file. Its text says what is wrong, and names the command that continues without the file.
pub(super) fn damaged(path: &Path, what: &str) -> StoreError {
    StoreError::Corrupt(format!("the journal `{}`: {what}; {REPAIR}", path.display()))
}

/// What an operator can do about a store that refuses to start.
pub(super) const REPAIR: &str =
    "put the file back if there is a copy of it, or run `tally repair` to go on with the batches before it";

/// The digest of a row.
pub(super) fn digest(identity: Option<&Identity>, no: u64, synced: u64, body: &[u8]) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    if let Some(identity) = identity {
        hasher.update(&identity.store).update(&identity.number.to_le_bytes());
    }
    hasher.update(&no.to_le_bytes()).update(&synced.to_le_bytes()).update(body);
    *hasher.finalize().as_bytes().first_chunk().expect("a digest is longer")
}
