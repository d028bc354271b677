//! The state that the threads of a store share, and reading all of it at one moment.
//!
//! A row is in the active memtable, in the immutable one, or in the tables. A read locks the memtables, begins a snapshot of
//! the tables under the lock, reads the memtables and releases the lock. A transaction inserts its rows under the same lock.
//! A flushed memtable is dropped under it, after its rows are in the tables. So the rows of the memtables, merged over the
//! snapshot, are of one moment. No row is missing from both, and none is older than another of its transaction.
//!
//! Locks are taken in this order: writer, tables, memtable; each alone is fine. Not here: which thread writes when.

use super::connect::Readers;
use super::files::Files;
use super::flush::Flusher;
use super::memtable::Memtables;
use super::run::Writer;
use super::tables::{Counters, Tables};
use super::unsynced::Unsynced;
use super::{Options, meta};
use crate::damage::Damages;
use crate::slow::Slows;
use crate::{Listing, StoreError};
use rusqlite::{Connection, OptionalExtension, Transaction};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The state that the threads share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) path: PathBuf,
    pub(super) files: Files,
    pub(super) options: Options,
    pub(super) readers: Readers,
    pub(super) flushing: Flusher,
    pub(super) unsynced: Unsynced,
    pub(super) counters: Counters,
    pub(super) slows: Slows,
    /// Corrupt rows.
    pub(super) damages: Damages,
    memtables: RwLock<Memtables>,
    writer: Mutex<Writer>,
    // Dropped last: a connection that may write removes the log when it is the last to close.
    tables: Mutex<Tables>,
}

impl Shared {
    pub(super) fn new(
        path: PathBuf,
        options: &Options,
        readers: Readers,
        memtables: Memtables,
        tables: Tables,
        (writer, damages): (Writer, Damages),
    ) -> Self {
        Self {
            path,
            files: Files::on(&options.disk),
            options: options.clone(),
            readers,
            flushing: Flusher::new(options.background),
            unsynced: Unsynced::new(tables.sync_failure()),
            counters: Counters::default(),
            slows: Slows::default(),
            damages,
            memtables: RwLock::new(memtables),
            writer: Mutex::new(writer),
            tables: Mutex::new(tables),
        }
    }

    // These locks stay valid after a panic: transactions roll back when it unwinds, and only code that cannot panic changes
    // the memtable.

    pub(super) fn memtables(&self) -> RwLockReadGuard<'_, Memtables> {
        self.memtables.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn memtables_mut(&self) -> RwLockWriteGuard<'_, Memtables> {
        self.memtables.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The writer, if no thread has it.
    pub(super) fn idle_writer(&self) -> Option<MutexGuard<'_, Writer>> {
        match self.writer.try_lock() {
            Ok(writer) => Some(writer),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }

    /// What `in_memory` finds in the memtables, and a snapshot of the tables of the same moment.
    pub(super) fn moment<'c, T>(
        &self,
        connection: &'c Connection,
        in_memory: impl FnOnce(&Memtables) -> T,
    ) -> Result<(T, Transaction<'c>), StoreError> {
        let memtables = self.memtables();
        let snapshot = connection.unchecked_transaction()?;
        // A transaction sees the state at its first read.
        snapshot.prepare_cached(meta::GET)?.query_row([""], |_| Ok(())).optional()?;
        Ok((in_memory(&memtables), snapshot))
    }

    /// Reads at one moment, on a lent connection.
    pub(super) fn read<T, R>(
        &self,
        in_memory: impl FnOnce(&Memtables) -> T,
        tables: impl FnOnce(T, &Connection) -> Result<R, StoreError>,
    ) -> Result<R, StoreError> {
        let reader = self.readers.lend();
        let (found, snapshot) = self.moment(&reader, in_memory)?;
        let done = self.damages.noted(tables(found, &snapshot))?;
        snapshot.commit()?;
        Ok(done)
    }

    /// Reads a list in the same way, and records the rows that it leaves out.
    pub(super) fn list<T, R>(
        &self,
        in_memory: impl FnOnce(&Memtables) -> T,
        tables: impl FnOnce(T, &Connection) -> Result<Listing<R>, StoreError>,
    ) -> Result<Listing<R>, StoreError> {
        let list = self.read(in_memory, tables)?;
        list.damaged.iter().for_each(|row| self.damages.note(row));
        Ok(list)
    }

    /// Writes the tables directly, in one transaction.
    pub(super) fn write_tables<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.tables().write(&self.counters, work)
    }
}
