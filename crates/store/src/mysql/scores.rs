//! The table `scores`, with `removed`: one record for each player of each window of each board.
//!
//! A removed record leaves a tombstone with its version, `gone`, until no server can bring an older one any more. Reads of
//! records do not return it. The keys of one `IN` list are in order, and so are the rows that a statement locks.

use super::connect::Flavour;
use super::fault::corrupt;
use super::pool::Pool;
use super::row::{Fields, ResultSets, first_column};
use super::text::{RowScript, Script, keys_end};
use super::{Version, found, player};
use crate::StoreError;
use crate::damage::score_text;
use crate::plan::{BoardNo, ScoreKey, Window};
use crate::servers::ScoreState;
use tally_rules::{Micros, PlayerId, Record};

/// The number of records of one message of a scan.
const SCAN_ROWS: usize = 10_000;

/// Up to this many records of a window are counted, more are estimated.
const COUNT_MAX: u64 = 100_000;

/// A row: a record or a tombstone, and its version.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoredScore {
    pub(super) record: Option<Record>,
    pub(super) version: u64,
}

/// Queries records. Returns the number of statements. The keys ascend.
pub(super) fn select(script: &mut Script, keys: &[ScoreKey], locking: bool) -> usize {
    script.keys(
        "SELECT board, part, player, score, subscore, `at`, version, gone FROM scores FORCE INDEX (PRIMARY) \
         WHERE (board, part, player) IN (",
        keys,
        keys_end(locking),
        put_key,
    )
}

/// Reads the answer of [`select`]: `None` for a key without a row.
pub(super) fn read(
    results: &mut ResultSets,
    statements: usize,
    keys: &[ScoreKey],
) -> Result<Vec<Option<StoredScore>>, StoreError> {
    found(results, statements, "scores", keys, |row| {
        let key =
            ScoreKey { board: BoardNo(row.small()?), window: Window(row.number()?), player: player(row)? };
        let record = record(row)?;
        let (version, tombstone) = (row.number()?, row.boolean()?);
        Ok((key, StoredScore { record: (!tombstone).then_some(record), version }))
    })
}

/// Reads the next columns.
pub(super) fn record(row: &mut Fields<'_>) -> Result<Record, StoreError> {
    Ok(Record { score: row.signed()?, subscore: row.signed()?, at: Micros(row.signed()?) })
}

fn put_key(row: &mut RowScript<'_>, key: &ScoreKey) {
    row.number(key.board.0).number(key.window.0).bytes(key.player.as_bytes());
}

const HEAD: &str = "INSERT INTO scores (board, part, player, score, `at`, version, subscore, gone) VALUES ";
/// For existing records without a subscore: the other columns have their default, 0. A database takes a fifth less time for
/// such a row.
const PLAIN_HEAD: &str = "INSERT INTO scores (board, part, player, score, `at`, version) VALUES ";

/// Writes records, the newest of each key. `absent` says whether a key had no row when it was read: then it must still have
/// none.
pub(super) fn write(
    script: &mut Script,
    rows: &[(ScoreKey, Option<Record>)],
    absent: impl Fn(&ScoreKey) -> bool,
    (flavour, version): (Flavour, Version),
) {
    let is_plain = rows.iter().all(|(_, record)| record.is_some_and(|record| record.subscore == 0));
    let head = if is_plain { PLAIN_HEAD } else { HEAD };
    let put = |row: &mut RowScript<'_>, (key, record): &(ScoreKey, Option<Record>)| {
        put_key(row, key);
        let tombstone = record.is_none();
        let record = record.unwrap_or(Record { score: 0, subscore: 0, at: Micros(0) });
        row.signed(record.score).signed(record.at.0);
        version.put_in(row);
        if !is_plain {
            row.signed(record.subscore).number(u8::from(tombstone));
        }
    };
    // Removing a record that does not exist leaves no tombstone: the guards check that it does not exist.
    let new = rows.iter().filter(|(key, record)| record.is_some() && absent(key));
    script.rows(head, new, "", put);
    // A row that was not read may have any version, and must still get a greater one.
    let tail = |script: &mut Script| {
        if is_plain {
            flavour.replace(script, &["score", "`at`"]);
            script.sql(", subscore = 0, gone = 0");
        } else {
            flavour.replace(script, &["score", "`at`", "subscore", "gone"]);
        }
        script.sql(", version = GREATEST(");
        flavour.put_new(script, "version");
        script.sql(", scores.version + 1)");
    };
    script.upserts(head, rows.iter().filter(|(key, _)| !absent(key)), tail, put);
    let removed = rows.iter().filter(|(key, record)| record.is_none() && !absent(key));
    let head = "INSERT INTO removed (version, board, part, player) VALUES ";
    script.rows(head, removed, " ON DUPLICATE KEY UPDATE board = removed.board", |row, (key, _)| {
        version.put_in(row);
        put_key(row, key);
    });
}

/// Fails if one of these keys has a row now.
pub(super) fn guard<'a>(script: &mut Script, absent: impl Iterator<Item = &'a ScoreKey> + Clone) {
    script.rows(HEAD, absent.clone(), "", |row, key| {
        put_key(row, key);
        row.sql("0, 0, 0, 0, 1");
    });
    script.keys("DELETE FROM scores WHERE (board, part, player) IN (", absent, ")", put_key);
}

/// The states of some keys, in any order, without a lock.
pub(super) fn states(pool: &Pool, keys: &[ScoreKey]) -> Result<Vec<Option<ScoreState>>, StoreError> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let mut sorted = keys.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut script = Script::default();
    let statements = select(&mut script, &sorted, false);
    let found = read(&mut pool.query(&script)?, statements, &sorted)?;
    let state = |key| found[sorted.binary_search(key).expect("it is one of them")];
    Ok(keys.iter().map(|key| state(key).map(|state| (state.record, state.version))).collect())
}

/// Scans a window, with or without tombstones. Returns the number of rows.
pub(super) fn scan_all(
    pool: &Pool,
    of: (BoardNo, Window, bool),
    after: Option<&PlayerId>,
    limit: usize,
    each: &mut dyn FnMut(PlayerId, Option<Record>, u64),
) -> Result<usize, StoreError> {
    let mut after = after.map(|after| after.as_bytes().to_vec());
    let mut read = 0;
    while read < limit {
        let want = SCAN_ROWS.min(limit - read);
        let results = pool.query(&select_page(of, after.as_deref(), want))?;
        let (rows, sound, last) = read_page(results, (of.0, of.1), each)?;
        read += sound;
        if rows < want {
            break;
        }
        after = last;
    }
    Ok(read)
}

/// Queries a page of a scan.
fn select_page(
    (board, window, removed): (BoardNo, Window, bool),
    after: Option<&[u8]>,
    limit: usize,
) -> Script {
    let mut script = Script::default();
    script.sql(
        "SELECT player, score, subscore, `at`, version, gone FROM scores FORCE INDEX (PRIMARY) WHERE board = ",
    );
    script.number(board.0).sql(" AND part = ").number(window.0);
    if let Some(after) = after {
        script.sql(" AND player > ").bytes(after);
    }
    script.sql(if removed { "" } else { " AND gone <> 1" });
    script.sql(" ORDER BY player LIMIT ").number(limit as u64).end();
    script
}

/// Reads a page: the number of rows, the number of sound ones, and the player of the last. Corrupt rows are recorded.
fn read_page(
    mut results: ResultSets,
    of: (BoardNo, Window),
    each: &mut dyn FnMut(PlayerId, Option<Record>, u64),
) -> Result<(usize, usize, Option<Vec<u8>>), StoreError> {
    let mut sound = 0;
    let name = |row: &mysql_async::Row| score_text(of, first_column(row));
    let (rows, last) = results.each_sound("scores", name, |row| {
        let (player, record, version) = (player(row)?, record(row)?, row.number()?);
        each(player, (!row.boolean()?).then_some(record), version);
        sound += 1;
        Ok(())
    })?;
    Ok((rows, sound, last))
}

/// Queries the number of records of a window: few are counted, many are estimated.
pub(super) fn count(board: BoardNo, window: Window) -> Script {
    let mut script = Script::default();
    let of = |script: &mut Script| {
        script.number(board.0).sql(" AND part = ").number(window.0);
    };
    script.sql("SELECT COUNT(*) FROM (SELECT 1 FROM scores WHERE gone = 0 AND board = ");
    of(&mut script);
    script.sql(" LIMIT ").number(COUNT_MAX).sql(") counted").end();
    script.sql("EXPLAIN FORMAT = TRADITIONAL SELECT score FROM scores WHERE board = ");
    of(&mut script);
    script.end();
    script
}

/// Reads the answer of [`count`].
pub(super) fn read_count(mut results: ResultSets) -> Result<u64, StoreError> {
    let counted = results.one_number("scores")?;
    if counted < COUNT_MAX {
        return Ok(counted);
    }
    let rows = results.rows();
    let row = rows.first().ok_or_else(|| corrupt("scores", "nothing is explained"))?;
    // The optimiser never estimates a range as more than half of the table, so an estimate may be half of the real number.
    let estimate = row.get_opt::<u64, _>("rows").and_then(Result::ok).unwrap_or(0);
    Ok(estimate.saturating_mul(2).max(counted))
}
