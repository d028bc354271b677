//! The table `meta`: small values under names, the number of the next board, and the version of the schema.
//!
//! Names that begin with `store.` are the store's own and refused to callers.

use super::fault::corrupt;
use super::row::Answers;
use super::text::Script;
use crate::StoreError;
use crate::plan::BoardNo;

const OWN: &str = "store.";
const PUT: &str = "REPLACE INTO meta (name, value) VALUES (";

/// Asks for a value.
pub(super) fn select(name: &str) -> Script {
    let mut script = Script::default();
    script.sql("SELECT value FROM meta WHERE name = ").bytes(name.as_bytes()).end();
    script
}

/// The answer.
pub(super) fn read(answers: &mut Answers) -> Result<Option<Vec<u8>>, StoreError> {
    let mut found = None;
    answers.each(1, "meta", |row| {
        found = Some(row.bytes()?.to_vec());
        Ok(())
    })?;
    Ok(found)
}

/// Remembers a value of the caller's.
pub(super) fn put(name: &str, value: &[u8]) -> Result<Script, StoreError> {
    if name.starts_with(OWN) {
        return Err(StoreError::Row(format!("the name `{name}` is kept for the store itself")));
    }
    let mut script = Script::default();
    script.sql(PUT).bytes(name.as_bytes()).sql(", ").bytes(value).sql(")").end();
    Ok(script)
}

/// Asks for the number of the next board and holds it: whoever changes boards or keys has this row, one at a time.
pub(super) fn lock_next_board(script: &mut Script) {
    script.statement("SELECT value FROM meta WHERE name = 'store.next_board' FOR UPDATE");
}

/// The answer.
pub(super) fn read_next_board(answers: &mut Answers) -> Result<BoardNo, StoreError> {
    let number = |value: Vec<u8>| std::str::from_utf8(&value).ok()?.parse().ok();
    let next = read(answers)?.and_then(number);
    next.map(BoardNo).ok_or_else(|| corrupt("meta", "the number for the next board is none"))
}

/// Says which number the next new board gets.
pub(super) fn put_next_board(script: &mut Script, next: BoardNo) {
    script.sql(PUT).sql("'store.next_board', ").bytes(next.0.to_string().as_bytes()).sql(")").end();
}
