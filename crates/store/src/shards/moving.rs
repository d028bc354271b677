//! Copies tables in batches, each row to its new database, with a stored cursor: the work of `reshard`.
//!
//! Databases are read side by side. The transaction that deletes the rows also writes the cursor, so a resumed run begins
//! after them. Not here: when it may begin, and what its end means.

use super::layout::CURSORS;
use crate::StoreError;
use crate::codec::{Input, put_bytes, put_number, put_signed};
use crate::mysql::moving::{Cell, Cells, IMPORT_COUNTS, IMPORTS, Moved};
use crate::mysql::{MySqlStore, Note};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tally_rules::PlayerId;

/// Rows in a batch.
const BITE: u64 = 5_000;
/// The pause between two progress reports.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// The progress of a resharding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MoveProgress {
    /// Records processed, including those before an interruption.
    pub done: u64,
    /// All records.
    pub total: u64,
}

/// The position of a scan of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Cursor {
    /// Rows processed.
    rows: u64,
    after: Option<Cells>,
    ended: bool,
}

/// Copies a table of one database to others. Nothing is deleted.
pub(super) fn copy(
    all: &[Arc<MySqlStore>],
    from: usize,
    table: &Moved,
    to: &[usize],
) -> Result<(), StoreError> {
    let mut cursor = read(&all[from], table)?;
    while !cursor.ended {
        let rows = all[from].chunk(table, cursor.after.as_deref(), BITE)?;
        let every: Vec<&Cells> = rows.iter().collect();
        for target in to.iter().filter(|target| **target != from) {
            all[*target].put(table, &every)?;
        }
        cursor.pass(table, &rows);
        all[from].take_out(table, &[], &[cursor.note(table)])?;
    }
    Ok(())
}

/// Copies the positions of all imports of the first database to others. A database that has a position keeps it, so rows are
/// counted once.
pub(super) fn spread_imports<'a>(
    first: &MySqlStore,
    to: impl Iterator<Item = &'a Arc<MySqlStore>> + Clone,
) -> Result<(), StoreError> {
    let mut after: Option<Cells> = None;
    loop {
        let mut rows = first.chunk(&IMPORTS, after.as_deref(), BITE)?;
        let Some(last) = rows.last() else { return Ok(()) };
        after = Some(IMPORTS.key(last).to_vec());
        rows.iter_mut().for_each(|row| row[IMPORT_COUNTS].fill(Cell::Signed(0)));
        for store in to.clone() {
            store.put(&IMPORTS, &rows.iter().collect::<Vec<_>>())?;
        }
    }
}

/// Refuses databases in which an import has not reached the same line of its file.
pub(super) fn check_imports(all: &[Arc<MySqlStore>]) -> Result<(), StoreError> {
    let mut after: Vec<Option<Cells>> = vec![None; all.len()];
    loop {
        let mut chunks: Vec<Vec<Cells>> = Vec::new();
        for (store, after) in all.iter().zip(&mut after) {
            let mut rows = store.chunk(&IMPORTS, after.as_deref(), BITE)?;
            *after = rows.last().map(|row| IMPORTS.key(row).to_vec());
            rows.iter_mut().for_each(|row| row[IMPORT_COUNTS].fill(Cell::Signed(0)));
            chunks.push(rows);
        }
        if chunks.iter().any(|rows| *rows != chunks[0]) {
            return Err(StoreError::Layout(
                "an import is at another line on each of the databases: finish it first (nothing was changed)".into(),
            ));
        }
        if chunks.iter().all(Vec::is_empty) {
            return Ok(());
        }
    }
}

/// Moves every row of these tables to the database of its player. Only the first `old` databases have rows to move; they are
/// read side by side.
pub(super) fn spread(
    (all, old): (&[Arc<MySqlStore>], usize),
    tables: &[&Moved],
    target: &(dyn Fn(&PlayerId) -> usize + Sync),
    total: u64,
    progress: &mut dyn FnMut(MoveProgress),
) -> Result<(), StoreError> {
    let (done, failed) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let start = |from: usize| {
            let (done, failed) = (&done, &failed);
            scope.spawn(move || {
                let moved =
                    tables.iter().try_for_each(|table| move_rows(all, from, table, target, (done, failed)));
                failed.fetch_or(moved.is_err(), Ordering::Relaxed);
                moved
            })
        };
        let threads: Vec<_> = (0..old).map(start).collect();
        while !threads.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            progress(MoveProgress { done: done.load(Ordering::Relaxed).min(total), total });
            std::thread::sleep(RETRY_PAUSE);
        }
        progress(MoveProgress { done: done.load(Ordering::Relaxed).min(total), total });
        threads.into_iter().try_for_each(|thread| thread.join().expect("moving does not panic"))
    })
}

fn move_rows(
    all: &[Arc<MySqlStore>],
    from: usize,
    table: &Moved,
    target: &dyn Fn(&PlayerId) -> usize,
    (done, failed): (&AtomicU64, &AtomicBool),
) -> Result<(), StoreError> {
    let mut cursor = read(&all[from], table)?;
    let counts = |rows: u64| if table.tombstone.is_some() { rows } else { 0 };
    done.fetch_add(counts(cursor.rows), Ordering::Relaxed);
    while !cursor.ended && !failed.load(Ordering::Relaxed) {
        let rows = all[from].chunk(table, cursor.after.as_deref(), BITE)?;
        let mut moves: BTreeMap<usize, Vec<&Cells>> = BTreeMap::new();
        for row in &rows {
            moves.entry(target(&player(table, row)?)).or_default().push(row);
        }
        moves.remove(&from);
        for (to, rows) in &moves {
            let there: Vec<&Cells> = rows.iter().filter(|row| !is_trace(table, row)).copied().collect();
            all[*to].put(table, &there)?;
        }
        cursor.pass(table, &rows);
        let taken: Vec<&Cells> = moves.into_values().flatten().collect();
        all[from].take_out(table, &taken, &[cursor.note(table)])?;
        done.fetch_add(counts(rows.len() as u64), Ordering::Relaxed);
    }
    Ok(())
}

fn player(table: &Moved, row: &Cells) -> Result<PlayerId, StoreError> {
    let bad = || StoreError::Corrupt(format!("{}: a name that no player can have", table.name));
    let Some(Cell::Bytes(bytes)) = table.player.and_then(|at| row.get(at)) else { return Err(bad()) };
    let name = std::str::from_utf8(bytes).map_err(|_| bad())?;
    PlayerId::new(name).map_err(|_| bad())
}

fn is_trace(table: &Moved, row: &Cells) -> bool {
    table.tombstone.is_some_and(|at| row[at] != Cell::Unsigned(0))
}

impl Cursor {
    /// Advances past these rows.
    fn pass(&mut self, table: &Moved, rows: &[Cells]) {
        self.rows += rows.len() as u64;
        self.ended = (rows.len() as u64) < BITE;
        if let Some(last) = rows.last() {
            self.after = Some(table.key(last).to_vec());
        }
    }

    fn note(&self, table: &Moved) -> Note {
        let mut bytes = vec![u8::from(self.ended)];
        put_number(self.rows, &mut bytes);
        for cell in self.after.iter().flatten() {
            match cell {
                Cell::Signed(number) => {
                    bytes.push(0);
                    put_signed(*number, &mut bytes);
                }
                Cell::Unsigned(number) => {
                    bytes.push(1);
                    put_number(*number, &mut bytes);
                }
                Cell::Bytes(value) => {
                    bytes.push(2);
                    put_bytes(value, &mut bytes);
                }
            }
        }
        (format!("{CURSORS}{}", table.name), Some(bytes))
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = Input::new(bytes);
        let (ended, rows) = (input.boolean()?, input.number()?);
        let mut after = Vec::new();
        while !input.is_empty() {
            after.push(match input.byte()? {
                0 => Cell::Signed(input.signed()?),
                1 => Cell::Unsigned(input.number()?),
                2 => Cell::Bytes(input.bytes()?.to_vec()),
                _ => return None,
            });
        }
        Some(Self { rows, after: (!after.is_empty()).then_some(after), ended })
    }
}

fn read(store: &MySqlStore, table: &Moved) -> Result<Cursor, StoreError> {
    let name = format!("{CURSORS}{}", table.name);
    let notes = store.notes(&name)?;
    let Some((_, value)) = notes.first() else { return Ok(Cursor::default()) };
    Cursor::decode(value)
        .ok_or_else(|| StoreError::Corrupt(format!("{}: `{name}` does not decode", store.url())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mysql::moving::{BANS, SCORES};

    #[test]
    fn a_cursor_reads_back() {
        let after = vec![Cell::Unsigned(7), Cell::Signed(-1), Cell::Bytes("Zoë".into())];
        let cursor = Cursor { rows: 300, after: Some(after), ended: false };
        let (name, value) = cursor.note(&SCORES);
        assert_eq!((name.as_str(), Cursor::decode(&value.unwrap())), ("store.moved.scores", Some(cursor)));
        let none = Cursor { ended: true, ..Cursor::default() };
        assert_eq!(Cursor::decode(&none.note(&BANS).1.unwrap()), Some(none));
        assert_eq!(Cursor::decode(&[1, 1, 9]), None);
    }
}
