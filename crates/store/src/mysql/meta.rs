//! The table `meta`: small named values, the id of the store, the number of the next board, and the version of the schema.
//!
//! Names that begin with `store.` belong to the store and are refused to callers.

use super::Note;
use super::fault::corrupt;
use super::pool::Pool;
use super::row::ResultSets;
use super::text::Script;
use crate::StoreError;
use crate::plan::BoardNo;

const OWN: &str = "store.";
const PUT: &str = "REPLACE INTO meta (name, value) VALUES (";

/// Queries a value.
pub(super) fn select(name: &str) -> Script {
    let mut script = Script::default();
    put_select(name, &mut script);
    script
}

/// The same within a script.
pub(super) fn put_select(name: &str, script: &mut Script) {
    script.sql("SELECT value FROM meta WHERE name = ").bytes(name.as_bytes()).end();
}

/// Reads the answer of [`select`].
pub(super) fn read(results: &mut ResultSets) -> Result<Option<Vec<u8>>, StoreError> {
    let mut found = None;
    results.each(1, "meta", |row| {
        found = Some(row.bytes()?.to_vec());
        Ok(())
    })?;
    Ok(found)
}

/// The id of the store: random, created on first use.
pub(super) fn id(pool: &Pool) -> Result<[u8; 16], StoreError> {
    let mut id = [0; 16];
    getrandom::fill(&mut id)
        .map_err(|error| StoreError::Unavailable(format!("no random numbers: {error}")))?;
    let mut script = Script::default();
    script.sql("INSERT IGNORE INTO meta (name, value) VALUES ('store.id', ").bytes(&id).sql(")").end();
    script.statement("SELECT value FROM meta WHERE name = 'store.id'");
    let mut results = pool.query(&script)?;
    results.skip(1);
    let id = read(&mut results)?.and_then(|id| id.try_into().ok());
    id.ok_or_else(|| corrupt("meta", "the id of the store is invalid"))
}

fn check_name(name: &str) -> Result<(), StoreError> {
    if name.starts_with(OWN) {
        return Err(StoreError::Row(format!("the name `{name}` is kept for the store itself")));
    }
    Ok(())
}

/// Replaces a value of the caller, if it is still this one, or missing.
pub(super) fn swap(name: &str, old: Option<&[u8]>, new: &[u8]) -> Result<Script, StoreError> {
    check_name(name)?;
    let mut script = Script::default();
    match old {
        None => script.sql("INSERT IGNORE INTO meta (name, value) VALUES (").bytes(name.as_bytes()).sql(", "),
        Some(_) => script.sql("UPDATE meta SET value = "),
    };
    script.bytes(new);
    match old {
        None => script.sql(")"),
        Some(old) => script.sql(" WHERE name = ").bytes(name.as_bytes()).sql(" AND value = ").bytes(old),
    };
    script.end();
    Ok(script)
}

/// Stores a value of the caller.
pub(super) fn put(name: &str, value: &[u8]) -> Result<Script, StoreError> {
    check_name(name)?;
    let mut script = Script::default();
    script.sql(PUT).bytes(name.as_bytes()).sql(", ").bytes(value).sql(")").end();
    Ok(script)
}

/// Writes values under names of the store; `None` deletes one.
pub(super) fn note(script: &mut Script, notes: &[Note]) {
    script.rows(
        "REPLACE INTO meta (name, value) VALUES ",
        notes.iter().filter_map(|(name, value)| Some((name, value.as_ref()?))),
        "",
        |row, (name, value)| {
            debug_assert!(name.starts_with(OWN), "`{name}` is a caller's");
            row.bytes(name.as_bytes()).bytes(value);
        },
    );
    let gone = notes.iter().filter(|(_, value)| value.is_none());
    script.keys("DELETE FROM meta WHERE name IN (", gone, ")", |row, (name, _)| {
        row.bytes(name.as_bytes());
    });
}

/// Queries every value whose name begins with `prefix`, in order of names.
pub(super) fn select_beginning(prefix: &str) -> Script {
    let mut script = Script::default();
    script.sql("SELECT name, value FROM meta WHERE LEFT(name, ").number(prefix.len() as u64);
    script.sql(") = ").bytes(prefix.as_bytes()).sql(" ORDER BY name").end();
    script
}

/// Reads the answer of [`select_beginning`].
pub(super) fn read_all(mut results: ResultSets) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
    let mut found = Vec::new();
    results.each(1, "meta", |row| {
        found.push((row.text()?.to_owned(), row.bytes()?.to_vec()));
        Ok(())
    })?;
    Ok(found)
}

/// Counts what a database holds beside what the store created when it was empty.
pub(super) fn count_all() -> Script {
    let mut script = Script::default();
    script.statement(
        "SELECT (SELECT COUNT(*) FROM boards) + (SELECT COUNT(*) FROM deleted_boards) \
         + (SELECT COUNT(*) FROM api_keys) + (SELECT COUNT(*) FROM meta WHERE LEFT(name, 6) <> 'store.')",
    );
    script
}

/// Reads and locks the number of the next board. Every change of boards or API keys locks this row, so changes are made one
/// at a time.
pub(super) fn lock_next_board(script: &mut Script) {
    script.statement("SELECT value FROM meta WHERE name = 'store.next_board' FOR UPDATE");
}

/// Reads the answer of [`lock_next_board`].
pub(super) fn read_next_board(results: &mut ResultSets) -> Result<BoardNo, StoreError> {
    let number = |value: Vec<u8>| std::str::from_utf8(&value).ok()?.parse().ok();
    let next = read(results)?.and_then(number);
    next.map(BoardNo).ok_or_else(|| corrupt("meta", "the number for the next board is invalid"))
}

/// Stores the number of the next board.
pub(super) fn put_next_board(script: &mut Script, next: BoardNo) {
    script.sql(PUT).sql("'store.next_board', ").bytes(next.0.to_string().as_bytes()).sql(")").end();
}
