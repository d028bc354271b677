//! The tables `bans` and `lifted_bans`: banned players, and bans that were lifted within the last hour.

use super::pool::Pool;
use super::row::ResultSets;
use super::text::{RowScript, Script};
use super::{CLOCK, player};
use crate::StoreError;
use crate::plan::{BanKey, BoardNo};
use std::collections::{BTreeMap, HashSet};
use tally_rules::PlayerId;

/// How long a lifted ban is kept for servers that have not read it.
const LIFTED_MICROS: u64 = 3600 * 1_000_000;

/// Queries every banned player of a board.
pub(super) fn select(board: BoardNo) -> Script {
    let mut script = Script::default();
    script.sql("SELECT player FROM bans WHERE board = ").number(board.0).sql(" ORDER BY player").end();
    script
}

/// Reads the answer of [`select`], in order of bytes.
pub(super) fn read(results: &mut ResultSets) -> Result<Vec<PlayerId>, StoreError> {
    let mut players = Vec::new();
    results.each(1, "bans", |row| {
        players.push(player(row)?);
        Ok(())
    })?;
    Ok(players)
}

/// The players of `players` that are banned on a board.
pub(super) fn some(
    pool: &Pool,
    board: BoardNo,
    players: &[PlayerId],
) -> Result<HashSet<PlayerId>, StoreError> {
    let (mut script, mut sorted) = (Script::default(), players.to_vec());
    sorted.sort_unstable();
    let head = "SELECT player FROM bans FORCE INDEX (PRIMARY) WHERE (board, player) IN (";
    let statements = script.keys(head, &sorted, ")", |row, player| {
        row.number(board.0).bytes(player.as_bytes());
    });
    let mut players = HashSet::new();
    if statements == 0 {
        return Ok(players);
    }
    pool.query(&script)?.each(statements, "bans", |row| {
        players.insert(player(row)?);
        Ok(())
    })?;
    Ok(players)
}

/// Reads each player, and whether the ban was added or lifted.
pub(super) fn read_changes(results: &mut ResultSets) -> Result<Vec<(PlayerId, bool)>, StoreError> {
    let mut changes = Vec::new();
    results.each(1, "bans", |row| {
        let (player, lifted) = (player(row)?, row.boolean()?);
        changes.push((player, !lifted));
        Ok(())
    })?;
    Ok(changes)
}

/// Adds and lifts bans, in a transaction that has set `@revision`.
pub(super) fn write(script: &mut Script, rows: &[(BanKey, bool)]) {
    let put = |row: &mut RowScript<'_>, (key, _): &(BanKey, bool)| {
        row.number(key.board.0).bytes(key.player.as_bytes());
    };
    let put_with_revision = |row: &mut RowScript<'_>, one: &(BanKey, bool)| {
        put(row, one);
        row.sql("@revision");
    };
    let banned = || rows.iter().filter(|(_, banned)| *banned);
    let lifted = || rows.iter().filter(|(_, banned)| !banned);
    let tail = " ON DUPLICATE KEY UPDATE revision = @revision";
    script.rows("INSERT INTO bans (board, player, revision) VALUES ", banned(), tail, put_with_revision);
    script.keys("DELETE FROM lifted_bans WHERE (board, player) IN (", banned(), ")", put);
    script.rows(
        "INSERT INTO lifted_bans (board, player, revision) VALUES ",
        lifted(),
        tail,
        put_with_revision,
    );
    script.keys("DELETE FROM bans WHERE (board, player) IN (", lifted(), ")", put);
}

/// Deletes old rows of lifted bans. Before that, it stores up to which revision they are deleted.
pub(super) fn forget(pool: &Pool) -> Result<(), StoreError> {
    let mut script = Script::default();
    script.sql("SELECT board, player, revision FROM lifted_bans WHERE revision < ").sql(CLOCK);
    script.sql(" - ").number(LIFTED_MICROS).sql(" ORDER BY revision LIMIT 1000").end();
    let (mut rows, mut newest) = (Vec::new(), BTreeMap::new());
    pool.query(&script)?.each(1, "lifted_bans", |row| {
        let (board, player, revision) = (row.small()?, row.bytes()?.to_vec(), row.number()?);
        newest.insert(board, revision);
        rows.push((board, player, revision));
        Ok(())
    })?;
    if rows.is_empty() {
        return Ok(());
    }
    let mut script = Script::default();
    for (board, revision) in newest {
        script.sql("UPDATE revisions SET bans_forgotten = GREATEST(bans_forgotten, ").number(revision);
        script.sql(") WHERE board = ").number(board).end();
    }
    script.keys("DELETE FROM lifted_bans WHERE (board, player, revision) IN (", rows, ")", |row, one| {
        row.number(one.0).bytes(&one.1).number(one.2);
    });
    pool.query(&script).map(drop)
}
