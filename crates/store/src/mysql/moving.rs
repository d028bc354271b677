//! Reads and writes batches of a table's rows in order of key, to move them to another database while no server runs.
//!
//! Values are copied unchanged, versions too. A row that is written twice exists once. Not here: which rows go where
//! (`shards`).

use super::row::{Fields, ResultSets};
use super::text::{RowScript, Script};
use super::{MySqlStore, meta};
use crate::StoreError;
use crate::mysql::Note;

/// One value of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cell {
    Signed(i64),
    Unsigned(u64),
    Bytes(Vec<u8>),
}

/// The type of a column.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Signed,
    Unsigned,
    Bytes,
}

/// A table whose rows move. The first columns are its key.
#[derive(Debug)]
pub(crate) struct Moved {
    pub(crate) name: &'static str,
    select: &'static str,
    put: (&'static str, &'static str),
    delete: &'static str,
    keys: &'static [&'static str],
    kinds: &'static [Kind],
    /// The column of the player; rows of a table without one go to every shard.
    pub(crate) player: Option<usize>,
    /// The column that marks a tombstone.
    pub(crate) tombstone: Option<usize>,
}

pub(crate) type Cells = Vec<Cell>;

use Kind::{Bytes, Signed, Unsigned};

pub(crate) const SCORES: Moved = Moved {
    name: "scores",
    select: "SELECT board, part, player, score, subscore, `at`, version, gone FROM scores FORCE INDEX (PRIMARY)",
    put: ("REPLACE INTO scores (board, part, player, score, subscore, `at`, version, gone) VALUES ", ""),
    delete: "DELETE FROM scores WHERE (board, part, player) IN (",
    keys: &["board", "part", "player"],
    kinds: &[Unsigned, Unsigned, Bytes, Signed, Signed, Signed, Unsigned, Unsigned],
    player: Some(2),
    tombstone: Some(7),
};

pub(crate) const BANS: Moved = Moved {
    name: "bans",
    select: "SELECT board, player FROM bans",
    put: ("REPLACE INTO bans (board, player) VALUES ", ""),
    delete: "DELETE FROM bans WHERE (board, player) IN (",
    keys: &["board", "player"],
    kinds: &[Unsigned, Bytes],
    player: Some(1),
    tombstone: None,
};

/// Outcomes of requests. A row does not name its player. Of two rows with one key, the newer stays.
pub(crate) const REQUESTS: Moved = Moved {
    name: "requests",
    select: "SELECT scope, `key`, fingerprint, `at`, outcome FROM requests FORCE INDEX (PRIMARY)",
    put: (
        "INSERT INTO requests (scope, `key`, fingerprint, `at`, outcome) VALUES ",
        " ON DUPLICATE KEY UPDATE fingerprint = IF(VALUES(`at`) > requests.`at`, VALUES(fingerprint), requests.fingerprint), \
         outcome = IF(VALUES(`at`) > requests.`at`, VALUES(outcome), requests.outcome), \
         `at` = GREATEST(VALUES(`at`), requests.`at`)",
    ),
    delete: "",
    keys: &["scope", "`key`"],
    kinds: &[Bytes, Bytes, Bytes, Signed, Bytes],
    player: None,
    tombstone: None,
};

/// Open periods of a shard. An existing row stays unchanged.
pub(crate) const WINDOWS: Moved = Moved {
    name: "parts",
    select: "SELECT board, part, rule, `starts`, `ends`, closed, version, stale, total FROM parts",
    put: (
        "INSERT INTO parts (board, part, rule, `starts`, `ends`, closed, version, stale, total) VALUES ",
        " ON DUPLICATE KEY UPDATE board = parts.board",
    ),
    delete: "",
    keys: &["board", "part"],
    kinds: &[Unsigned, Unsigned, Unsigned, Signed, Signed, Unsigned, Unsigned, Unsigned, Unsigned],
    player: None,
    tombstone: None,
};

/// Positions of imported files. An existing row stays unchanged.
pub(crate) const IMPORTS: Moved = Moved {
    name: "imports",
    select: "SELECT board, digest, `lines`, taken, refused, finished FROM imports FORCE INDEX (PRIMARY)",
    put: (
        "INSERT INTO imports (board, digest, `lines`, taken, refused, finished) VALUES ",
        " ON DUPLICATE KEY UPDATE board = imports.board",
    ),
    delete: "",
    keys: &["board", "digest"],
    kinds: &[Unsigned, Bytes, Signed, Signed, Signed, Unsigned],
    player: None,
    tombstone: None,
};

/// The columns of [`IMPORTS`] that count rows.
pub(crate) const IMPORT_COUNTS: std::ops::Range<usize> = 3..5;

/// Writes the condition of the rows after a key, with one range for each column that may be the first to be greater.
pub(super) fn after_key<C>(
    script: &mut Script,
    keys: &[&'static str],
    after: &[C],
    write: impl Fn(&C, &mut Script),
) {
    for depth in 0..keys.len() {
        script.sql(if depth == 0 { "(" } else { " OR (" });
        for (at, (key, cell)) in keys.iter().zip(after).take(depth + 1).enumerate() {
            script.sql(if at == 0 { "" } else { " AND " }).sql(key);
            script.sql(if at == depth { " > " } else { " = " });
            write(cell, script);
        }
        script.sql(")");
    }
}

impl Moved {
    /// Queries the next rows.
    fn chunk(&self, after: Option<&[Cell]>, limit: u64) -> Script {
        let mut script = Script::default();
        script.sql(self.select);
        if let Some(after) = after {
            script.sql(" WHERE ");
            after_key(&mut script, self.keys, after, Cell::write);
        }
        for (at, key) in self.keys.iter().enumerate() {
            script.sql(if at == 0 { " ORDER BY " } else { ", " }).sql(key);
        }
        script.sql(" LIMIT ").number(limit).end();
        script
    }

    fn read(&self, mut results: ResultSets) -> Result<Vec<Cells>, StoreError> {
        let mut rows = Vec::new();
        results.each(1, self.name, |row| {
            rows.push(self.kinds.iter().map(|kind| kind.read(row)).collect::<Result<_, _>>()?);
            Ok(())
        })?;
        Ok(rows)
    }

    /// The key of a row.
    pub(crate) fn key<'a>(&self, row: &'a [Cell]) -> &'a [Cell] {
        &row[..self.keys.len()]
    }
}

impl Kind {
    fn read(self, row: &mut Fields<'_>) -> Result<Cell, StoreError> {
        Ok(match self {
            Self::Signed => Cell::Signed(row.signed()?),
            Self::Unsigned => Cell::Unsigned(row.number()?),
            Self::Bytes => Cell::Bytes(row.bytes()?.to_vec()),
        })
    }
}

impl Cell {
    fn write(&self, script: &mut Script) {
        match self {
            Self::Signed(number) => script.signed(*number),
            Self::Unsigned(number) => script.number(*number),
            Self::Bytes(bytes) => script.bytes(bytes),
        };
    }

    fn put(&self, row: &mut RowScript<'_>) {
        match self {
            Self::Signed(number) => row.signed(*number),
            Self::Unsigned(number) => row.number(*number),
            Self::Bytes(bytes) => row.bytes(bytes),
        };
    }
}

impl MySqlStore {
    /// The next rows of a table, in order of key.
    pub(crate) fn chunk(
        &self,
        of: &Moved,
        after: Option<&[Cell]>,
        limit: u64,
    ) -> Result<Vec<Cells>, StoreError> {
        of.read(self.pool.query(&of.chunk(after, limit))?)
    }

    /// Writes rows into a table.
    pub(crate) fn put(&self, of: &Moved, rows: &[&Cells]) -> Result<(), StoreError> {
        if rows.is_empty() {
            return Ok(());
        }
        self.at_once(|script| {
            script.rows(of.put.0, rows, of.put.1, |row, cells| cells.iter().for_each(|cell| cell.put(row)));
        })
    }

    /// Deletes rows from a table, and stores the progress.
    pub(crate) fn take_out(&self, of: &Moved, rows: &[&Cells], notes: &[Note]) -> Result<(), StoreError> {
        self.at_once(|script| {
            script
                .keys(of.delete, rows, ")", |row, cells| of.key(cells).iter().for_each(|cell| cell.put(row)));
            meta::note(script, notes);
        })
    }

    fn at_once(&self, put: impl FnOnce(&mut Script)) -> Result<(), StoreError> {
        let mut script = Script::default();
        script.statement("START TRANSACTION");
        put(&mut script);
        script.statement("COMMIT");
        self.pool.query(&script).map(drop)
    }

    /// The number of all records.
    pub(crate) fn count_all(&self) -> Result<u64, StoreError> {
        let mut script = Script::default();
        script.statement("SELECT COUNT(*) FROM scores WHERE gone = 0");
        self.pool.query(&script)?.one_number("scores")
    }
}
