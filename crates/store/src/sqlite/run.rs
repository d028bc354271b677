//! The write path: load, decide, append one row to the journal, insert into the memtable.
//!
//! There is one writer, behind a mutex, as SQLite has only one anyway. A row is visible once it is in the memtable. It gets
//! there only after it is in the journal, so no reader sees a row that could still fail. Not here: flushing rows into the
//! tables (`flush`), and how many may wait (`stall`).

use super::batch::{self, Batch, Present};
use super::crash_points::reach;
use super::directory::Changed;
use super::journal::Journal;
use super::keys::{self, KeyState, Keys};
use super::ledger;
use super::memtable::{self, Memtables};
use super::reads::{self, fill};
use super::scores::{self, Scores};
use super::state::Shared;
use super::table::Table;
use super::wallets::{self, Totals};
use super::{SqliteStore, events, imports, manifest, profiles, requests};
use crate::plan::{BatchId, BoardNo, Committed, Durability, KeyChange, Loaded, ReadSet, WriteSet};
use crate::slow::{WaitStage, Watch};
use crate::{StoreError, Transactions};
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::time::Instant;
use tally_rules::ledger::account::{AccountKey, Total};

/// The longest batch. Far more than lanes make; SQLite would take a row four times as long.
const BODY_BYTES_MAX: usize = 256 << 20;

/// A buffer that grew beyond this size for one batch is not kept.
const BODY_BYTES_KEPT: usize = 4 << 20;

impl Transactions for SqliteStore {
    fn run(
        &self,
        plan: &ReadSet,
        decide: &mut dyn FnMut(&Loaded) -> WriteSet,
    ) -> Result<Committed, StoreError> {
        let done = run(&self.shared, plan, decide);
        self.shared.damages.noted(done).map(|()| Committed::default())
    }

    fn resolve(&self, _batch: &BatchId) -> Result<Option<Committed>, StoreError> {
        undone(&self.shared).map(|()| None)
    }
}

/// The state of the single writer.
#[derive(Debug)]
pub(super) struct Writer {
    /// Created with the first batch, so that a store that is only read has none.
    pub(super) journal: Option<Journal>,
    /// Reads the tables for `decide`.
    reader: Connection,
    /// The number of the last batch.
    last: u64,
    next_key: u32,
    body: Vec<u8>,
}

impl Writer {
    pub(super) fn new(reader: Connection, last: u64, next_key: u32) -> Self {
        Self { journal: None, reader, last, next_key, body: Vec::new() }
    }

    /// Appends a batch to the journal.
    fn append(&mut self, shared: &Shared, batch: &Batch, durability: Durability) -> Result<(), StoreError> {
        self.body.clear();
        self.body.shrink_to(BODY_BYTES_KEPT);
        batch.encode(&mut self.body);
        if self.body.len() > BODY_BYTES_MAX {
            let bytes = self.body.len();
            return Err(StoreError::Row(format!("a transaction of {bytes} bytes is too large")));
        }
        let journal = match &mut self.journal {
            Some(journal) => journal,
            none => none.insert(manifest::create(shared)?),
        };
        let syncs = durability == Durability::Commit || shared.unsynced.is_full(self.body.len());
        let no = self.last + 1;
        // The log gets no part of the row before there is room for all of it, so a full disk leaves no commit in doubt.
        journal.make_room(self.body.len())?;
        reach("append");
        if let Err(error) =
            journal.append((no, (shared.options.now)()), shared.unsynced.synced(), &self.body, syncs)
        {
            return Err(self.after_failed_append(shared, error));
        }
        reach("appended");
        self.last = no;
        if syncs {
            shared.unsynced.clear(no);
        } else {
            shared.unsynced.add(|| journal.log(), no, self.body.len());
        }
        Ok(())
    }

    /// Handles a disk error of an append. The row may be complete at the end of the log, and a start after a crash would
    /// take it for committed. So the log is repaired at once, or the commit is in doubt.
    fn after_failed_append(&mut self, shared: &Shared, error: StoreError) -> StoreError {
        if !matches!(error, StoreError::Unavailable(_)) {
            return error;
        }
        shared.unsynced.fail(error.to_string());
        match self.repair(shared) {
            Ok(()) => error,
            Err(_) => StoreError::InDoubt { batch: BatchId::default(), why: error.to_string() },
        }
    }

    /// Repairs the journal after a failed sync: everything acknowledged is on the disk in another way before any batch is
    /// appended.
    fn repair(&mut self, shared: &Shared) -> Result<(), StoreError> {
        let Some(why) = shared.unsynced.failed() else { return Ok(()) };
        if let Some(journal) = &mut self.journal {
            let failed = |error| StoreError::Unavailable(format!("{why}; repair the journal: {error}"));
            journal.repair().map_err(failed)?;
        }
        shared.unsynced.clear(self.last);
        Ok(())
    }

    /// Waits until everything appended is on the disk.
    pub(super) fn sync(&mut self, shared: &Shared) -> Result<(), StoreError> {
        self.repair(shared)?;
        if shared.unsynced.is_empty() {
            return Ok(());
        }
        if let Some(journal) = &self.journal
            && let Err(error) = journal.sync()
        {
            shared.unsynced.fail(error.to_string());
            return self.repair(shared);
        }
        shared.unsynced.clear(self.last);
        Ok(())
    }
}

/// See [`crate::Transactions::run`].
pub(super) fn run(
    shared: &Shared,
    plan: &ReadSet,
    decide: &mut dyn FnMut(&Loaded) -> WriteSet,
) -> Result<(), StoreError> {
    let mut watch = Watch::start();
    let done = run_staged(shared, plan, decide, &mut watch);
    shared.slows.note(watch, || shared.counters.busy());
    done
}

fn run_staged(
    shared: &Shared,
    plan: &ReadSet,
    decide: &mut dyn FnMut(&Loaded) -> WriteSet,
    watch: &mut Watch,
) -> Result<(), StoreError> {
    plan.assert_sorted();
    shared.flushing.wait_for_room(shared)?;
    watch.end_of(WaitStage::Flush);
    let mut guard = shared.writer();
    let writer = &mut *guard;
    shared.flushing.rotation.rotate_if_requested(shared, writer);
    writer.repair(shared)?;
    watch.end_of(WaitStage::Turn);
    let loaded = load(shared, &writer.reader, plan)?;
    loaded.assert_answers(plan);
    watch.end_of(WaitStage::Read);
    let changes = decide(&loaded);
    changes.assert_sorted();
    let created = changes.keys.iter().filter(|change| matches!(change, KeyChange::Create(_))).count();
    let (batch, boards) = rows(shared, writer, changes)?;
    watch.end_of(WaitStage::Decide);
    if batch.is_empty() {
        // The answer depends on the rows that were read, so they must be durable too.
        return if plan.durability == Durability::Commit { writer.sync(shared) } else { Ok(()) };
    }
    let appended = writer.append(shared, &batch, plan.durability);
    watch.end_of(WaitStage::Sync);
    appended?;
    writer.next_key += u32::try_from(created).expect("as many as there are numbers for");
    let rows = memtable::weight(batch.rows(), writer.body.len());
    let used = writer.journal.as_ref().map_or(0, Journal::used);
    let held = {
        let mut memtables = shared.memtables_mut();
        put(&mut memtables, writer.last, batch, &boards)
    };
    drop(guard);
    watch.end_of(WaitStage::Other);
    shared.flushing.after_put(shared, &held, used, rows);
    watch.end_of(WaitStage::Flush);
    Ok(())
}

/// Makes sure that a row whose append failed is nowhere. If the repair of the log fails, its outcome is unknown.
pub(super) fn undone(shared: &Shared) -> Result<(), StoreError> {
    shared.writer().repair(shared)
}

/// The size of the memtable after a batch.
pub(super) struct Held {
    pub(super) fresh_bytes: usize,
    pub(super) bytes: usize,
    /// Whether the batch is the first of its memtable.
    pub(super) first: bool,
}

fn put(memtables: &mut Memtables, no: u64, batch: Batch, boards: &Changed) -> Held {
    let now = Instant::now();
    let first = memtables.active.is_empty();
    batch.put_into(&mut memtables.active);
    memtables.active.last = no;
    memtables.active.born.get_or_insert(now);
    memtables.active.touched = Some(now);
    memtables.boards.apply(boards);
    let fresh_bytes = memtables.active.bytes();
    let flushing = memtables.flushing.as_ref().map_or(0, |memtable| memtable.bytes());
    Held { fresh_bytes, bytes: fresh_bytes + flushing, first }
}

/// Turns changes into rows of tables.
fn rows(shared: &Shared, writer: &Writer, changes: WriteSet) -> Result<(Batch, Changed), StoreError> {
    let mut present: BTreeMap<String, KeyState> = BTreeMap::new();
    if !changes.keys.is_empty() {
        let in_memory = |memtables: &Memtables| {
            changes.keys.iter().map(|change| memtables.get::<Keys>(&change.id().into()).cloned()).collect()
        };
        let (found, snapshot): (Vec<_>, _) = shared.moment(&writer.reader, in_memory)?;
        let states = fill("keys", found, &changes.keys, |change| keys::get(&snapshot, change.id()))?;
        present.extend(states.into_iter().flatten().map(|state| (state.row.id.to_string(), state)));
    }
    let totals = totals(shared, writer, &changes)?;
    let events = events::numbered(shared, &writer.reader, &changes.ledger.events)?;
    let memtables = shared.memtables();
    let of_key = |id: &str| present.get(id).cloned();
    let next_key = writer.next_key;
    let totals = &totals;
    batch::of(changes, Present { boards: &memtables.boards, keys: &of_key, next_key, totals, events })
}

/// The present totals of the accounts that are added to.
fn totals(shared: &Shared, writer: &Writer, changes: &WriteSet) -> Result<Vec<Option<Total>>, StoreError> {
    let added = &changes.ledger.totals;
    if added.is_empty() {
        return Ok(Vec::new());
    }
    let keys: Vec<AccountKey> = added.iter().map(|(key, _)| *key).collect();
    let in_memory = |memtables: &Memtables| states::<Totals>(memtables, keys.iter().copied());
    let (found, snapshot) = shared.moment(&writer.reader, in_memory)?;
    fill("totals", found, &keys, |key| wallets::total(&snapshot, key))
}

fn load(shared: &Shared, connection: &Connection, plan: &ReadSet) -> Result<Loaded, StoreError> {
    let by_key = !plan.scores.is_empty()
        || !plan.requests.is_empty()
        || !plan.imports.is_empty()
        || !plan.profiles.is_empty()
        || !plan.ledger.is_empty();
    let in_memory = |memtables: &Memtables| boards(memtables, plan);
    if !by_key {
        return Ok(in_memory(&shared.memtables()));
    }
    let in_memory = |memtables: &Memtables| {
        let scores = plan.scores.iter().map(|key| key.clone().into());
        (
            in_memory(memtables),
            states::<Scores>(memtables, scores),
            states::<requests::Requests>(memtables, plan.requests.iter().cloned()),
            states::<imports::Imports>(memtables, plan.imports.iter().cloned()),
            states::<profiles::Profiles>(memtables, plan.profiles.iter().cloned()),
            ledger::in_memory(memtables, &plan.ledger),
        )
    };
    let ((mut loaded, scores, requests, imports, profiles, seen), tables) =
        shared.moment(connection, in_memory)?;
    let mut statement = tables.prepare_cached(scores::GET)?;
    loaded.scores = fill("scores", scores, &plan.scores, |key| scores::get(&mut statement, key))?;
    loaded.requests = fill("requests", requests, &plan.requests, |key| requests::get(&tables, key))?;
    loaded.imports = fill("imports", imports, &plan.imports, |key| imports::get(&tables, key))?;
    loaded.profiles = fill("profiles", profiles, &plan.profiles, |player| profiles::get(&tables, player))?;
    loaded.ledger = ledger::load(seen, &plan.ledger, &tables)?;
    drop(statement);
    tables.commit()?;
    Ok(loaded)
}

/// The boards of a plan, from memory.
fn boards(memtables: &Memtables, plan: &ReadSet) -> Loaded {
    let boards = &memtables.boards;
    Loaded {
        boards: plan.boards.iter().map(|no| boards.is_live(*no).then_some(0)).collect(),
        board_names: plan.board_names.iter().map(|name| boards.by_name(name).cloned()).collect(),
        next_board: if plan.board_names.is_empty() { BoardNo(0) } else { boards.next() },
        ..Loaded::default()
    }
}

pub(super) fn states<T: Table>(
    memtables: &Memtables,
    keys: impl Iterator<Item = T::Key>,
) -> reads::MemtableStates<T::Value> {
    keys.map(|key| memtables.get::<T>(&key).cloned()).collect()
}
