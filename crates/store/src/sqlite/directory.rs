//! Every live board in memory, by number and by name, with the number of the next board.
//!
//! The boards are read from the tables once: there are thousands at most, each transaction checks whether some are live, and
//! one process changes them. A change is checked here before it is written to the journal, because a row of the journal must
//! be possible to flush. Not here: rows of deleted boards, see `purge`.

use super::fault::damaged;
use super::{boards, meta};
use crate::damage::Damages;
use crate::{BoardChange, BoardNo, BoardRow, CorruptRow, StoreError};
use rusqlite::Connection;
use std::collections::{BTreeMap, HashMap};
use tally_rules::BoardId;

/// Live boards.
#[derive(Debug, Default)]
pub(super) struct Directory {
    rows: BTreeMap<BoardNo, BoardRow>,
    names: HashMap<BoardId, BoardNo>,
    /// Boards with a corrupt definition, by name, because the name is taken.
    damaged: Vec<(Option<BoardNo>, CorruptRow)>,
    next: BoardNo,
}

/// New states of boards; `None` for a deleted board.
pub(super) type Changed = Vec<(BoardNo, Option<BoardRow>)>;

impl Directory {
    /// Reads all boards. Corrupt ones are recorded.
    pub(super) fn load(connection: &Connection, damages: &Damages) -> Result<Self, StoreError> {
        let mut damaged = Vec::new();
        let rows = boards::all(connection, &mut |no, row| {
            damages.note(&row);
            damaged.push((no, row));
        })?;
        let names = rows.iter().map(|row| (row.id.clone(), row.no)).collect();
        let rows = rows.into_iter().map(|row| (row.no, row)).collect();
        Ok(Self { rows, names, damaged, next: meta::next_board(connection)? })
    }

    pub(super) fn is_live(&self, no: BoardNo) -> bool {
        self.rows.contains_key(&no)
    }

    pub(super) fn by_name(&self, name: &BoardId) -> Option<&BoardRow> {
        self.names.get(name).and_then(|no| self.rows.get(no))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &BoardRow> {
        self.rows.values()
    }

    /// Boards with a corrupt definition, with their numbers if known.
    pub(super) fn corrupt_rows(&self) -> impl Iterator<Item = (Option<BoardNo>, &CorruptRow)> {
        self.damaged.iter().map(|(no, row)| (*no, row))
    }

    /// The number of the next new board.
    pub(super) fn next(&self) -> BoardNo {
        self.next
    }

    /// The states of boards after these changes, in order of number. Nothing is changed yet.
    pub(super) fn resolve(&self, changes: Vec<BoardChange>) -> Result<Changed, StoreError> {
        let mut changed: Changed = Vec::with_capacity(changes.len());
        for change in changes {
            let row = match change {
                BoardChange::Create(row) => {
                    assert!(
                        row.no >= self.next,
                        "board {} was given before: the next is {}",
                        row.no.0,
                        self.next.0
                    );
                    self.must_be_free(&row.id, &changed)?;
                    (row.no, Some(row))
                }
                BoardChange::Redefine(no, definition) => {
                    (no, Some(BoardRow { definition, ..self.must_be_live(no)?.clone() }))
                }
                BoardChange::Delete(no) => (self.must_be_live(no)?.no, None),
            };
            changed.push(row);
        }
        Ok(changed)
    }

    /// Applies the result of [`resolve`](Self::resolve), once it is in the journal.
    pub(super) fn apply(&mut self, changed: &[(BoardNo, Option<BoardRow>)]) {
        for (no, row) in changed {
            if let Some(old) = self.rows.remove(no) {
                self.names.remove(&old.id);
            }
            if let Some(row) = row {
                self.names.insert(row.id.clone(), *no);
                self.rows.insert(*no, row.clone());
                self.next = self.next.max(BoardNo(no.0 + 1));
            }
        }
    }

    fn must_be_live(&self, no: BoardNo) -> Result<&BoardRow, StoreError> {
        self.rows.get(&no).ok_or_else(|| StoreError::Row(format!("boards: there is no board {}", no.0)))
    }

    fn must_be_free(&self, name: &BoardId, changed: &Changed) -> Result<(), StoreError> {
        if self.damaged.iter().any(|(_, row)| row.key == name.as_str()) {
            return Err(
                damaged("boards", "its definition cannot be read").of_row("boards", || name.as_str().into())
            );
        }
        let deleted = |no: BoardNo| changed.iter().any(|(other, row)| *other == no && row.is_none());
        let here = self.names.get(name).is_some_and(|no| !deleted(*no));
        let new = changed.iter().any(|(_, row)| row.as_ref().is_some_and(|row| row.id == *name));
        if here || new {
            return Err(StoreError::Row(format!("boards: the name `{}` is taken", name.as_str())));
        }
        Ok(())
    }
}
