//! The store that is followed: its journal files, held open, and what its tables say.
//!
//! A server deletes a journal file of a followed store instead of emptying it (see [`Followed`]). A file that is held open
//! stays readable after that. So no batch is lost between two reads, unless its file came and went between them, which the
//! numbers of batches tell. A batch counts once its file is synced here: the file may have batches that the server has not
//! synced.
//!
//! The tables are opened only when their files have changed, and briefly: a start that migrates needs them alone. Not here:
//! where the batches go.

use super::super::files::{self, Files, beside};
use super::super::journal_rows::{self, Source, damaged};
use super::super::manifest::Manifest;
use super::super::{Options, connect, fault, identity, journal, meta, migrate};
use super::frames::BatchFrame;
use crate::StoreError;
use rusqlite::{Connection, params};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tally_disk::DiskFile;
use tally_rules::Micros;

/// A read of the journal ends when it has this many bytes of batches.
const READ_BYTES: usize = 8 << 20;

/// Deleted files that are held may take this much of the disk.
const HELD_BYTES_MAX: u64 = 16 << 30;

/// A file may be written again without another time in its inode for this long.
const SAME_TIME: Duration = Duration::from_secs(2);

const ROWS: &str = "SELECT no, synced, digest, body, at FROM batches WHERE no >= ?1 ORDER BY no";
const ROWS_WITHOUT_INSTANT: &str =
    "SELECT no, synced, digest, body, NULL FROM batches WHERE no >= ?1 ORDER BY no";
const META: &str = "SELECT name, value FROM meta WHERE name NOT LIKE 'store.%' ORDER BY name";

/// The marker of a store that is followed: a locked file beside it. The system releases the lock of a killed process.
#[derive(Debug)]
pub(in super::super) struct Followed(File);

/// The path of the marker. Its time is when the copy last had everything.
pub fn followed_marker(store: &Path) -> PathBuf {
    beside(store, ".followed")
}

impl Followed {
    /// Marks the store, or says that another process follows it.
    fn mark(store: &Path) -> Result<Self, StoreError> {
        let path = followed_marker(store);
        let file = File::options().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(|error| fault::file("open", &path, &error))?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(_) => {
                Err(StoreError::Locked(format!("`{}` is held by a process that follows it", path.display())))
            }
        }
    }

    /// Whether a process follows the store.
    pub(in super::super) fn is_marked(store: &Path) -> bool {
        File::open(followed_marker(store)).is_ok_and(|file| file.try_lock_shared().is_err())
    }

    /// Notes for the server that everything it has is copied.
    fn touch(&self) -> std::io::Result<()> {
        self.0.set_modified(SystemTime::now())
    }
}

/// A journal file that is held open.
struct Held {
    source: Source,
    number: u32,
    schema: u32,
    rows: &'static str,
    /// Its log, to sync it.
    log: Arc<dyn DiskFile>,
}

/// What the tables say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tables {
    pub(super) store: [u8; 16],
    pub(super) schema: u32,
    flushed: u64,
    /// Values that do not belong to the store.
    pub(super) meta: BTreeMap<String, Vec<u8>>,
}

impl Tables {
    pub(super) fn read(connection: &Connection) -> Result<Self, StoreError> {
        let transaction = connection.unchecked_transaction()?;
        let meta = transaction
            .prepare(META)?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<_, _>>()?;
        Ok(Self {
            store: Manifest::read(&transaction)?.store,
            schema: transaction.pragma_query_value(None, "user_version", |row| row.get(0))?,
            flushed: meta::flushed(&transaction)?,
            meta,
        })
    }
}

/// The times and lengths of the files of the tables.
type Stamp = [Option<(SystemTime, u64)>; 2];

/// The followed store.
pub(super) struct Sources {
    options: Options,
    files: Files,
    store: PathBuf,
    marker: Followed,
    held: Vec<Held>,
    tables: Tables,
    stamp: Stamp,
    /// The id and the schema of the store that the present stream follows.
    followed: ([u8; 16], u32),
}

/// What a read of the journal finds after a batch.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Following {
    /// The batches that follow it, none if there are none. Whether there may be more.
    Batches(Vec<BatchFrame>, bool),
    /// Why the journal does not go on from there.
    Gap(String),
}

impl Sources {
    pub(super) fn open(options: &Options, store: &Path) -> Result<Self, StoreError> {
        let store = identity::resolve(store)?;
        identity::check(&store, migrate::version(migrate::MIGRATIONS))?;
        let marker = Followed::mark(&store)?;
        let mut sources = Self {
            options: options.clone(),
            files: Files::on(&options.disk),
            store,
            marker,
            held: Vec::new(),
            tables: Tables::default(),
            stamp: Stamp::default(),
            followed: Default::default(),
        };
        sources.hold()?;
        sources.read_tables(true)?;
        Ok(sources)
    }

    /// Follows the store of this id and schema from now on.
    pub(super) fn follow(&mut self, store: [u8; 16], schema: u32) {
        self.followed = (store, schema);
    }

    pub(super) fn store(&self) -> &Path {
        &self.store
    }

    pub(super) fn tables(&self) -> &Tables {
        &self.tables
    }

    pub(super) fn touch(&self) -> Result<(), StoreError> {
        self.marker.touch().map_err(|error| fault::file("write", &followed_marker(&self.store), &error))
    }

    /// Opens journal files that are new.
    pub(super) fn hold(&mut self) -> Result<(), StoreError> {
        for path in files::journals(&self.store)?.0 {
            let Some(number) = files::number(&path) else { continue };
            if self.held.iter().any(|held| held.number == number) {
                continue;
            }
            match self.hold_one(&path, number) {
                Ok(held) => self.held.extend(held),
                // The server may just have deleted it.
                Err(_) if !path.exists() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn hold_one(&self, path: &Path, number: u32) -> Result<Option<Held>, StoreError> {
        let connection = journal::open(&self.files, path, self.options.busy_wait)?;
        let log = self.files.open(&beside(path, files::LOG))?;
        let source = Source::new(path, connection)?;
        // A file without an identity is being deleted: only older versions made such files.
        if source.identity.is_none() {
            return Ok(None);
        }
        let schema = source.connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        let rows = if journal_rows::has_instants(&source.connection)? { ROWS } else { ROWS_WITHOUT_INSTANT };
        Ok(Some(Held { source, number, schema, rows, log }))
    }

    /// Lets go of deleted files without a batch after `last`.
    fn release(&mut self, last: u64) -> Result<(), StoreError> {
        let mut kept = Vec::new();
        let mut bytes = 0;
        for held in std::mem::take(&mut self.held) {
            // Checked first: a server has written the last batch of a file before it deletes it.
            let is_deleted = !held.source.path.exists();
            if is_deleted && held.source.span(last)?.is_none() {
                continue;
            }
            bytes += if is_deleted { held.log.length().unwrap_or(0) } else { 0 };
            kept.push(held);
        }
        // The copy was not followed for so long that it needs a new base.
        if bytes <= HELD_BYTES_MAX {
            self.held = kept;
        }
        Ok(())
    }

    /// The batches after `last`, whose digest in the journal is `digest`, synced.
    pub(super) fn read_after(&mut self, last: u64, digest: [u8; 16]) -> Result<Following, StoreError> {
        self.read_tables(false)?;
        self.hold()?;
        let mut found = self.following(last, digest)?;
        if found.needs_proof() {
            // A file may have come since, and the tables may have changed.
            if self.gap(last)?.is_some() {
                self.hold()?;
                self.read_tables(true)?;
                found = self.following(last, digest)?;
                if found.needs_proof()
                    && let Some(why) = self.gap(last)?
                {
                    found = Following::Gap(why);
                }
            }
        }
        self.release(last)?;
        Ok(found)
    }

    /// Why no batch follows `last`, other than that there is none.
    fn gap(&self, last: u64) -> Result<Option<String>, StoreError> {
        let (store, schema) = self.followed;
        if self.tables.store != store {
            return Ok(Some("the store was replaced by another one".into()));
        }
        if self.tables.schema != schema {
            return Ok(Some(format!("the store has schema {} now", self.tables.schema)));
        }
        let newest = self.newest()?;
        Ok(match newest.cmp(&last) {
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Greater => Some(format!("batch {} is gone", last + 1)),
            std::cmp::Ordering::Less => {
                Some(format!("the store ends at batch {newest}, before batch {last}"))
            }
        })
    }

    /// The last batch that the store has.
    fn newest(&self) -> Result<u64, StoreError> {
        let mut newest = self.tables.flushed;
        for held in self.ours() {
            newest = newest.max(held.source.span(0)?.map_or(0, |(_, last)| last));
        }
        Ok(newest)
    }

    fn ours(&self) -> impl Iterator<Item = &Held> {
        let is_ours = |held: &&Held| {
            let (store, schema) = self.followed;
            held.source.identity.is_some_and(|identity| identity.store == store) && held.schema == schema
        };
        self.held.iter().filter(is_ours)
    }

    fn following(&self, mut last: u64, digest: [u8; 16]) -> Result<Following, StoreError> {
        let mut spans = Vec::new();
        for held in self.ours() {
            spans.extend(held.source.span(last.saturating_sub(1))?.map(|(first, _)| (first, held)));
        }
        spans.sort_by_key(|(first, _)| *first);
        let (mut found, mut bytes) = (Vec::new(), 0);
        let first = last;
        for (_, held) in spans {
            let mut statement = held.source.connection.prepare_cached(held.rows)?;
            let mut rows = statement.query(params![last.cast_signed()])?;
            let before = found.len();
            while let Some(row) = rows.next()? {
                let number =
                    |column| -> Result<u64, StoreError> { Ok(row.get::<_, i64>(column)?.cast_unsigned()) };
                let (no, synced, body) = (number(0)?, number(1)?, row.get::<_, Vec<u8>>(3)?);
                let of_row: [u8; 16] = row.get(2)?;
                if of_row != journal_rows::digest(held.source.identity.as_ref(), no, synced, &body) {
                    return Err(damaged(&held.source.path, &format!("batch {no} is not what was written")));
                }
                if no == first && digest != [0; 16] && of_row != digest {
                    return Ok(Following::Gap(format!("batch {no} is not the one that was copied")));
                }
                if no <= last {
                    continue;
                }
                if no != last + 1 {
                    break;
                }
                last = no;
                bytes += body.len();
                let at = row.get::<_, Option<i64>>(4)?.map_or_else(self.options.now, Micros);
                found.push(BatchFrame { no, at, digest: of_row, body });
                if bytes >= READ_BYTES {
                    break;
                }
            }
            if found.len() > before {
                held.log.sync().map_err(|error| fault::file("sync", &held.source.path, &error))?;
            }
            if bytes >= READ_BYTES {
                return Ok(Following::Batches(found, true));
            }
        }
        Ok(Following::Batches(found, false))
    }

    /// Reads the tables again if they have changed.
    pub(super) fn read_tables(&mut self, always: bool) -> Result<(), StoreError> {
        let stamp = ["", files::LOG].map(|part| {
            let found = std::fs::metadata(beside(&self.store, part)).ok()?;
            Some((found.modified().ok()?, found.len()))
        });
        let is_old = |(time, _): &(SystemTime, u64)| time.elapsed().is_ok_and(|age| age > SAME_TIME);
        if !always && stamp == self.stamp && stamp.iter().flatten().all(is_old) {
            return Ok(());
        }
        let options = &self.options;
        let connection = connect::reader(&self.files, &self.store, options, options.reader_cache_bytes)?;
        let tables = Tables::read(&connection)?;
        if tables.schema < migrate::WITH_REGISTRY {
            let schema = tables.schema;
            let text = format!(
                "a store of schema {schema} cannot be followed: start a server of this version first"
            );
            return Err(StoreError::Unavailable(text));
        }
        self.tables = tables;
        self.stamp = stamp;
        Ok(())
    }
}

impl Following {
    fn needs_proof(&self) -> bool {
        matches!(self, Self::Batches(batches, _) if batches.is_empty()) || matches!(self, Self::Gap(_))
    }
}
