//! The table `revisions`: a revision for each change of what servers cache. Revisions only grow.
//!
//! A transaction locks the rows of its boards and reads their revisions. The plan is current if they are the revisions of
//! the plan. A transaction that changes a board gives it the next revision, under the lock of row 0, which it takes last. So
//! revisions are committed in order, and a server that asks for greater ones misses none. A revision is in microseconds
//! since 1970, or one more than the last, so its age is known. Not here: what changed; a server reads the board again.

use super::found;
use super::lease::Lease;
use super::link::Link;
use super::pool::Pool;
use super::row::{Fields, ResultSets};
use super::text::Script;
use super::{CLOCK, boards};
use crate::StoreError;
use crate::plan::{BoardChange, BoardNo, WriteSet};
use crate::servers::{BoardRef, BoardState, FeedPage, FeedPosition, LostCommits};
use std::collections::BTreeSet;

/// The row of the API keys.
const KEYS: BoardNo = BoardNo(u32::MAX);
/// The row whose lock gives revisions.
const NUMBERS: BoardNo = BoardNo(0);

/// The maximum number of changes of one query; there may be more.
const CHANGES_MAX: usize = 1_000;

/// The maximum number of attempts to read a board without a concurrent change. An attempt fails when a change falls between
/// two statements of one message.
const READS_MAX: usize = 20;

/// How long the row of a deleted board is kept. A server that asks less often reads everything.
const GONE_MICROS: u64 = 3600 * 1_000_000;

/// Queries which boards are live and locks them: `alone` if the transaction may change one, else shared. Returns the number of
/// statements.
pub(super) fn select(script: &mut Script, boards: &[BoardNo], alone: bool) -> usize {
    let before = script.len();
    let head = "SELECT board, revision, gone FROM revisions FORCE INDEX (PRIMARY) WHERE board IN (";
    let tail = if alone { ") FOR UPDATE" } else { ") LOCK IN SHARE MODE" };
    script.keys(head, boards, tail, |row, no| {
        row.number(no.0);
    });
    script.len() - before
}

/// Reads the answer of [`select`]: the revision of each live board.
pub(super) fn read(
    results: &mut ResultSets,
    statements: usize,
    boards: &[BoardNo],
) -> Result<Vec<Option<u64>>, StoreError> {
    let all = found(results, statements, "revisions", boards, |row| {
        Ok((BoardNo(row.small()?), (row.number()?, row.boolean()?)))
    })?;
    let live = |(no, one): (&BoardNo, Option<(u64, bool)>)| {
        let one = one.filter(|(_, deleted)| !deleted && *no != NUMBERS && *no != KEYS);
        one.map(|(revision, _)| revision)
    };
    Ok(boards.iter().zip(all).map(live).collect())
}

/// Whether changes affect what servers cache.
pub(super) fn touches(changes: &WriteSet) -> bool {
    let WriteSet { bans, windows, boards, keys, .. } = changes;
    !(bans.is_empty() && windows.is_empty() && boards.is_empty() && keys.is_empty())
}

/// Gives the boards of these changes the next revision, in the variable `@revision`. Returns whether there is any.
pub(super) fn bump(script: &mut Script, changes: &WriteSet) -> bool {
    let mut touched: BTreeSet<BoardNo> = changes.bans.iter().map(|(key, _)| key.board).collect();
    touched.extend(changes.windows.iter().map(|(key, _)| key.board));
    touched.extend(changes.boards.iter().map(BoardChange::no));
    if !changes.keys.is_empty() {
        touched.insert(KEYS);
    }
    if touched.is_empty() {
        return false;
    }
    let created = |change: &&BoardChange| matches!(change, BoardChange::Create(_));
    let new: Vec<BoardNo> = changes.boards.iter().filter(created).map(BoardChange::no).collect();
    touched.retain(|no| !new.contains(no));
    // The boards first and row 0 last, like every transaction.
    script.keys("SELECT board FROM revisions WHERE board IN (", &touched, ") FOR UPDATE", |row, no| {
        row.number(no.0);
    });
    script.sql("SELECT GREATEST(revision + 1, ").sql(CLOCK).sql(") INTO @revision FROM revisions");
    script.sql(" WHERE board = 0 FOR UPDATE").end();
    touched.insert(NUMBERS);
    script.keys("UPDATE revisions SET revision = @revision WHERE board IN (", &touched, ")", |row, no| {
        row.number(no.0);
    });
    let deleted = changes.boards.iter().filter(|change| matches!(change, BoardChange::Delete(_)));
    script.keys("UPDATE revisions SET gone = 1 WHERE board IN (", deleted, ")", |row, change| {
        row.number(change.no().0);
    });
    script.rows("INSERT INTO revisions (board, revision, gone) VALUES ", new, "", |row, no| {
        row.number(no.0).sql("@revision, 0");
    });
    true
}

/// Queries the rows after a position, up to the last revision that was there before. On MariaDB, a statement may see a
/// commit and not the one that it waited for: its list of open transactions is not of one moment. The next statement sees
/// both.
fn since(after: FeedPosition) -> Script {
    let mut script = Script::default();
    script.statement("SET @seen = (SELECT revision FROM revisions WHERE board = 0)");
    script.sql("SELECT board, revision FROM revisions WHERE revision >= ").number(after.revision);
    script.sql(" AND revision <= @seen AND (revision > ").number(after.revision);
    script.sql(" OR board > ").number(after.board.0);
    script.sql(") ORDER BY revision, board LIMIT ").number(CHANGES_MAX as u64).end();
    script.statement(
        "SELECT COALESCE(@seen, 0), COALESCE((SELECT fence FROM leases WHERE name = 'servers'), 0)",
    );
    script
}

/// Queries the changes after a position. A database that lacks the revision of that position has lost it. Servers that
/// write side by side also learn here that one of them has begun a new generation.
pub(super) fn change_feed(
    pool: &Pool,
    lease: Option<&Lease>,
    follower: &mut Option<Link>,
    after: FeedPosition,
) -> Result<FeedPage, StoreError> {
    let (changed, newest, generation) = read_since(pool.query_separately(follower, &since(after))?, after)?;
    let by_others = lease.is_some_and(|lease| !lease.is_alone() && lease.generation() != generation);
    if newest < after.revision || by_others {
        let database = pool.address.shown.clone();
        let lost = LostCommits { database, present: newest, newest: after.revision, by_others };
        return Err(pool.witnesses.lose(lost));
    }
    Ok(changed)
}

/// The revision of each live board.
pub(super) fn all(pool: &Pool) -> Result<Vec<(BoardNo, u64)>, StoreError> {
    let mut script = Script::default();
    script.statement("SELECT board, revision FROM revisions WHERE gone = 0");
    let (mut results, mut all) = (pool.query(&script)?, Vec::new());
    results.each(1, "revisions", |row| {
        all.push((BoardNo(row.small()?), row.number()?));
        Ok(())
    })?;
    all.retain(|(no, _)| ![NUMBERS, KEYS].contains(no));
    Ok(all)
}

/// Reads the answer, with the newest revision and the generation of the servers side by side.
fn read_since(mut results: ResultSets, after: FeedPosition) -> Result<(FeedPage, u64, u64), StoreError> {
    let (mut changed, mut next) = (FeedPage::default(), after);
    let mut rows = 0;
    results.each(2, "revisions", |row| {
        let (board, revision) = (BoardNo(row.small()?), row.number()?);
        next = FeedPosition { revision, board };
        match board {
            NUMBERS => {}
            KEYS => changed.keys = true,
            board => changed.boards.push(board),
        }
        rows += 1;
        Ok(())
    })?;
    (changed.next, changed.more) = (vec![next], rows == CHANGES_MAX);
    let (newest, generation) = results.two_numbers("revisions")?;
    Ok((changed, newest, generation))
}

/// Reads everything of one board, as of one moment. Of the bans only those after the known revision, if none of them is
/// deleted.
pub(super) fn read_board(
    pool: &Pool,
    name: BoardRef<'_>,
    mut known: Option<u64>,
) -> Result<Option<BoardState>, StoreError> {
    for _ in 0..READS_MAX {
        let mut results = pool.query(&select_board(name, known))?;
        let before = results.rows().first().map(|row| Fields::new("revisions", row).number()).transpose()?;
        results.skip(2);
        let Some((state, forgotten)) = boards::read_one(&mut results, known)? else { return Ok(None) };
        if known.is_some_and(|known| known < forgotten) {
            known = None;
        } else if before == Some(state.revisions.of(0)) {
            return Ok(Some(state));
        }
    }
    Err(StoreError::Conflict(format!("a board was changed {READS_MAX} times while it was read")))
}

/// Queries everything of one board, and before that for its revision in a separate statement (see [`since`] why). If the
/// revision in the snapshot is the same, the snapshot has everything up to it and nothing later.
fn select_board(name: BoardRef<'_>, known: Option<u64>) -> Script {
    const REVISION: (&str, &str) = ("SELECT revision, bans_forgotten FROM revisions WHERE board = ", "");
    let mut script = Script::default();
    select_of(&mut script, REVISION, name);
    script.end();
    // For the next transaction only: all its statements see the snapshot of the first.
    script.statement("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ");
    script.statement("START TRANSACTION READ ONLY");
    boards::select_one(&mut script, name);
    select_of(&mut script, REVISION, name);
    script.end();
    if let Some(known) = known {
        select_of(&mut script, ("SELECT player, 0 FROM bans WHERE board = ", " AND revision > "), name);
        script.number(known);
        select_of(
            &mut script,
            (" UNION ALL SELECT player, 1 FROM lifted_bans WHERE board = ", " AND revision > "),
            name,
        );
        script.number(known).sql(" ORDER BY player");
    } else {
        select_of(&mut script, ("SELECT player FROM bans WHERE board = ", " ORDER BY player"), name);
    }
    script.end();
    select_of(&mut script, (super::windows::SELECT, " ORDER BY part"), name);
    script.end();
    script.statement("COMMIT");
    script
}

fn select_of(script: &mut Script, (head, tail): (&'static str, &'static str), name: BoardRef<'_>) {
    script.sql(head);
    match name {
        BoardRef::No(no) => drop(script.number(no.0)),
        BoardRef::Id(id) => {
            script.sql("(SELECT `no` FROM boards WHERE id = ").bytes(id.as_str().as_bytes()).sql(")");
        }
    }
    script.sql(tail);
}

/// Queries the rows of boards that were deleted long ago, without a lock.
pub(super) fn select_old() -> Script {
    let mut script = Script::default();
    script.sql("SELECT board FROM revisions WHERE gone = 1 AND revision + ").number(GONE_MICROS);
    script.sql(" < ").sql(CLOCK).sql(" LIMIT 1000").end();
    script
}

/// Deletes what [`select_old`] found.
pub(super) fn delete_old(mut results: ResultSets) -> Result<Script, StoreError> {
    let mut old = Vec::new();
    results.each(1, "revisions", |row| {
        old.push(row.small()?);
        Ok(())
    })?;
    let mut script = Script::default();
    script.keys("DELETE FROM revisions WHERE gone = 1 AND board IN (", old, ")", |row, no| {
        row.number(no);
    });
    Ok(script)
}
