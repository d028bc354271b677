//! Purges rows of deleted boards and windows, old tombstones, and markers of lost connections.
//!
//! The number of a deleted board is never used again, so a step that purges its rows needs no transaction: the next step
//! finds the remaining ones. The number of a window is used again once its row in `deleted_parts` is gone. So a step for a
//! window locks that row, and deletes nothing if another server has removed it. Not here: how often, and how many rows at a
//! time.

use super::fault::damaged;
use super::pool::Pool;
use super::row::ResultSets;
use super::text::Script;
use super::{CLOCK, bans, batches, revisions};
use crate::codec::events::topic_bytes;
use crate::events::Topic;
use crate::{BoardNo, StoreError, Window, WindowKey};

/// How long a tombstone is kept: longer than any server can be late with an older version.
const REMOVED_MICROS: u64 = 3600 * 1_000_000;

/// The number of consecutive steps with only tombstones before the caller is asked to come again.
const EMPTY_BITES_MAX: usize = 64;

/// A target of the purge: a window, a version of its blocks, or a whole board.
#[derive(Clone, Copy)]
struct Of {
    board: u64,
    window: Option<u64>,
    version: Option<u64>,
    /// The version of the row in `deleted_parts` that a step for a window locks.
    mark: Option<i64>,
}

impl Of {
    fn put(self, script: &mut Script) {
        script.sql(" WHERE board = ").number(self.board);
        if let Some(window) = self.window {
            script.sql(" AND part = ").number(window);
        }
        if let Some(version) = self.version {
            script.sql(" AND version = ").number(version);
        }
    }

    /// Like [`Self::put`], but only while the row in `deleted_parts` exists.
    fn put_marked(self, script: &mut Script) {
        self.put(script);
        if self.mark.is_some() {
            script.sql(" AND EXISTS (SELECT 1 FROM deleted_parts");
            self.put_mark(script);
            script.sql(")");
        }
    }

    fn put_mark(self, script: &mut Script) {
        Self { version: None, ..self }.put(script);
        script.sql(" AND version = ").signed(self.mark.unwrap_or_default());
    }

    /// Runs a step. For a window, in a transaction that locks its row.
    fn chunk(self, pool: &Pool, write: impl FnOnce(&mut Script)) -> Result<ResultSets, StoreError> {
        let mut script = Script::default();
        if self.mark.is_none() {
            write(&mut script);
            return pool.query(&script);
        }
        script.statement("START TRANSACTION");
        script.sql("SELECT version FROM deleted_parts");
        self.put_mark(&mut script);
        script.sql(" FOR UPDATE").end();
        write(&mut script);
        script.statement("COMMIT");
        let mut results = pool.query_transaction(&script)?;
        results.skip(2);
        Ok(results)
    }
}

/// Purges at most `limit` rows and returns their number. Tombstones are not counted, because no reader sees them.
pub(super) fn some(pool: &Pool, limit: usize) -> Result<usize, StoreError> {
    let limit = limit as u64;
    let mut left = limit;
    of_boards(pool, &mut left)?;
    of_windows(pool, None, &mut left)?;
    if left > 0 {
        left -= removed(pool, left)?.min(left);
        bans::forget(pool)?;
        let delete = batches::delete_old(pool.query(&batches::select_old())?)?;
        if delete.len() > 0 {
            pool.query(&delete)?;
        }
        let delete = revisions::delete_old(pool.query(&revisions::select_old())?)?;
        if delete.len() > 0 {
            pool.query(&delete)?;
        }
    }
    Ok(usize::try_from(limit - left).unwrap_or(usize::MAX))
}

fn of_boards(pool: &Pool, left: &mut u64) -> Result<(), StoreError> {
    while *left > 0 {
        let mut script = Script::default();
        script.statement("SELECT `no` FROM deleted_boards ORDER BY `no` LIMIT 1");
        let Some([board]) = first(pool.query(&script)?)? else { break };
        let of = Of { board: board.cast_unsigned(), window: None, version: None, mark: None };
        scores(pool, of, left)?;
        for (table, order) in [
            ("DELETE FROM imports", " ORDER BY digest LIMIT "),
            ("DELETE FROM bans", " ORDER BY player LIMIT "),
            ("DELETE FROM lifted_bans", " ORDER BY player LIMIT "),
            ("DELETE FROM parts", " ORDER BY part LIMIT "),
            ("DELETE FROM blocks", " ORDER BY part, version, block LIMIT "),
        ] {
            delete(pool, of, (table, order), left)?;
        }
        let no =
            u32::try_from(of.board).map_err(|_| damaged("deleted_boards", "a number that no board has"))?;
        let topic = topic_bytes(Topic::Board(BoardNo(no)));
        let mut script = Script::default();
        script.sql("DELETE FROM events WHERE topic = ").bytes(&topic);
        script.sql(" ORDER BY number LIMIT ").number(*left).end();
        *left -= pool.query(&script)?.affected().min(*left);
        // A remaining limit means that the board has no rows left.
        if *left > 0 {
            let mut script = Script::default();
            script.sql("DELETE FROM event_topics WHERE topic = ").bytes(&topic).end();
            script.sql("DELETE FROM deleted_boards WHERE `no` = ").number(of.board).end();
            pool.query(&script)?;
        }
    }
    Ok(())
}

/// The windows of `windows` that have rows to purge.
pub(super) fn unpurged(pool: &Pool, windows: &[WindowKey]) -> Result<Vec<WindowKey>, StoreError> {
    let mut script = Script::default();
    let head = "SELECT DISTINCT board, part FROM deleted_parts WHERE (board, part) IN (";
    let statements = script.keys(head, windows, ")", |row, key| {
        row.number(key.board.0).number(key.window.0);
    });
    let mut found = Vec::new();
    if statements > 0 {
        pool.query(&script)?.each(statements, "deleted_parts", |row| {
            found.push(WindowKey { board: BoardNo(row.small()?), window: Window(row.number()?) });
            Ok(())
        })?;
    }
    Ok(found)
}

/// Purges at most `limit` rows of one window. Returns whether nothing of it is left.
pub(super) fn window(pool: &Pool, window: WindowKey, limit: usize) -> Result<bool, StoreError> {
    of_windows(pool, Some(window), &mut (limit as u64))?;
    Ok(unpurged(pool, &[window])?.is_empty())
}

fn of_windows(pool: &Pool, only: Option<WindowKey>, left: &mut u64) -> Result<(), StoreError> {
    while *left > 0 {
        let mut script = Script::default();
        script.sql("SELECT board, part, version FROM deleted_parts");
        if let Some(WindowKey { board, window }) = only {
            Of { board: board.0.into(), window: Some(window.0), version: None, mark: None }.put(&mut script);
        }
        script.sql(" ORDER BY board, part, version LIMIT 1").end();
        let Some([board, window, version]) = first(pool.query(&script)?)? else { break };
        let (board, window) = (board.cast_unsigned(), Some(window.cast_unsigned()));
        let of = Of { board, window, version: u64::try_from(version).ok(), mark: Some(version) };
        if of.version.is_none() {
            scores(pool, of, left)?;
        }
        delete(pool, of, ("DELETE FROM blocks", " ORDER BY version, block LIMIT "), left)?;
        if *left > 0 {
            // The row may belong to the next use of the number by now, whose rows this step has not seen.
            of.chunk(pool, |script| {
                script.sql("DELETE FROM deleted_parts");
                of.put_mark(script);
                if of.version.is_none() {
                    script.sql(" AND NOT EXISTS (SELECT 1 FROM scores");
                    of.put(script);
                    script.sql(")");
                }
                script.sql(" AND NOT EXISTS (SELECT 1 FROM blocks");
                of.put(script);
                script.sql(")").end();
            })?;
        }
    }
    Ok(())
}

fn delete(
    pool: &Pool,
    of: Of,
    (table, order): (&'static str, &'static str),
    left: &mut u64,
) -> Result<(), StoreError> {
    if *left == 0 {
        return Ok(());
    }
    let limit = *left;
    let mut results = of.chunk(pool, |script| {
        script.sql(table);
        of.put_marked(script);
        script.sql(order).number(limit).end();
    })?;
    *left -= results.affected().min(limit);
    Ok(())
}

/// Purges records. Tombstones among them are deleted but not counted.
fn scores(pool: &Pool, of: Of, left: &mut u64) -> Result<(), StoreError> {
    let mut empty = 0;
    while *left > 0 {
        let chunk = *left;
        let mut results = of.chunk(pool, |script| {
            script.sql("SELECT COALESCE(SUM(gone), 0) FROM (SELECT gone FROM scores");
            of.put_marked(script);
            script.sql(" ORDER BY part, player LIMIT ").number(chunk).sql(") bite").end();
            script.sql("DELETE FROM scores");
            of.put_marked(script);
            script.sql(" ORDER BY part, player LIMIT ").number(chunk).end();
        })?;
        let gone = results.one_number("scores")?;
        let deleted = results.affected();
        *left -= deleted.saturating_sub(gone).min(*left);
        if deleted < chunk {
            break;
        }
        empty += 1;
        if empty == EMPTY_BITES_MAX {
            // There may be more tombstones: the count is not zero, so that the caller comes again.
            *left = left.saturating_sub(1);
            return Ok(());
        }
    }
    Ok(())
}

/// Purges old tombstones.
fn removed(pool: &Pool, limit: u64) -> Result<u64, StoreError> {
    let mut script = Script::default();
    script.sql("SELECT version, board, part, player FROM removed WHERE version < ").sql(CLOCK);
    script.sql(" - ").number(REMOVED_MICROS).sql(" ORDER BY version, board, part, player LIMIT ");
    script.number(limit.min(1000)).end();
    let mut rows = Vec::new();
    pool.query(&script)?.each(1, "removed", |row| {
        rows.push((row.number()?, row.number()?, row.number()?, row.bytes()?.to_vec()));
        Ok(())
    })?;
    // The newest of the old ones: a row that was written and removed again since has a newer version, and stays.
    let Some(newest) = rows.last().map(|row| row.0) else { return Ok(0) };
    let mut script = Script::default();
    for (_, board, window, player) in &rows {
        script.sql("DELETE FROM scores WHERE board = ").number(*board).sql(" AND part = ").number(*window);
        script.sql(" AND player = ").bytes(player).sql(" AND gone = 1 AND version <= ").number(newest).end();
    }
    let head = "DELETE FROM removed WHERE (version, board, part, player) IN (";
    script.keys(head, &rows, ")", |row, (version, board, window, player)| {
        row.number(*version).number(*board).number(*window).bytes(player);
    });
    pool.query(&script)?;
    Ok(rows.len() as u64)
}

fn first<const N: usize>(mut results: ResultSets) -> Result<Option<[i64; N]>, StoreError> {
    let mut found = None;
    results.each(1, "what is deleted", |row| {
        let mut columns = [0; N];
        for column in &mut columns {
            *column = row.signed()?;
        }
        found = Some(columns);
        Ok(())
    })?;
    Ok(found)
}
