//! The outbox: the column `marks` of the table `batches` names what a transaction leaves to publish, and is written with it.
//!
//! The server that committed publishes, and a later transaction deletes the row. If the server died in between, another
//! server finds the entry by its age and publishes what the rows say then. It clears only the column, because the row is
//! still the commit marker. An entry names the records, or their windows if the list would be too long. While publishing
//! fails, a server merges its entries into one, so the table stays small. Not here: publishing.

use super::fault::damaged;
use super::link::Link;
use super::pool::{Pool, Use};
use super::row::ResultSets;
use super::text::Script;
use super::{CLOCK, Version, batches};
use crate::StoreError;
use crate::plan::{BatchId, BoardNo, ScoreKey, Window, WindowKey, WriteSet};
use crate::servers::{OutboxContent, OutboxEntry};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tally_rules::PlayerId;

/// The maximum length of an entry; a longer one names windows.
const MARK_BYTES_MAX: usize = 64 << 10;
/// The same for entries of a server that others follow: a window that is named is loaded anew.
const FOLLOWED_BYTES_MAX: usize = 1 << 20;
/// The maximum number of entries of one query.
const MARKS_MAX: u64 = 64;

const KEYS: u8 = 1;
const WINDOWS: u8 = 2;

/// What changes leave to publish; nothing if they change no record.
pub(super) fn of(changes: &WriteSet, is_followed: bool) -> Option<Vec<u8>> {
    if changes.scores.is_empty() {
        return None;
    }
    let all = changes
        .scores
        .iter()
        .map(|(key, _)| (WindowKey { board: key.board, window: key.window }, &key.player));
    Some(encode(all, if is_followed { FOLLOWED_BYTES_MAX } else { MARK_BYTES_MAX }))
}

/// Encodes an entry of records, in order of windows, or of their windows if it would be too long.
fn encode<'a>(all: impl Iterator<Item = (WindowKey, &'a PlayerId)>, bytes_max: usize) -> Vec<u8> {
    let mut keys = vec![KEYS];
    let mut windows = vec![WINDOWS];
    let mut last: Option<WindowKey> = None;
    let mut count_at = 0;
    for (window, player) in all {
        if last != Some(window) {
            last = Some(window);
            put_window(&mut windows, window);
            put_window(&mut keys, window);
            count_at = keys.len();
            keys.extend(0_u32.to_be_bytes());
        }
        let count: [u8; 4] = keys[count_at..count_at + 4].try_into().expect("four bytes");
        keys[count_at..count_at + 4].copy_from_slice(&(u32::from_be_bytes(count) + 1).to_be_bytes());
        let player = player.as_bytes();
        keys.push(u8::try_from(player.len()).expect("a player's name is at most 128 bytes"));
        keys.extend(player);
    }
    if keys.len() > bytes_max { windows } else { keys }
}

/// The merged content of several entries.
#[derive(Default)]
struct Compacted {
    version: u64,
    players: BTreeMap<WindowKey, BTreeSet<PlayerId>>,
    /// Whether any entry names windows: then the merged one does.
    of_windows: bool,
}

impl Compacted {
    fn add(&mut self, version: u64, what: OutboxContent) {
        self.version = self.version.max(version);
        match what {
            OutboxContent::Records(keys) => {
                for ScoreKey { board, window, player } in keys {
                    self.players.entry(WindowKey { board, window }).or_default().insert(player);
                }
            }
            OutboxContent::Windows(windows) => {
                self.of_windows = true;
                for window in windows {
                    self.players.entry(window).or_default();
                }
            }
        }
    }

    fn encode(&self) -> Vec<u8> {
        if !self.of_windows {
            let all = self.players.iter();
            let keys = all.flat_map(|(window, players)| players.iter().map(|player| (*window, player)));
            return encode(keys, MARK_BYTES_MAX);
        }
        let mut windows = vec![WINDOWS];
        self.players.keys().for_each(|window| put_window(&mut windows, *window));
        windows
    }
}

/// See [`crate::Coordination::merge_outbox`].
pub(super) fn compact(pool: &Pool, batches: &[BatchId]) -> Result<BatchId, StoreError> {
    let mut link = pool.take_for(Use::Transact)?;
    let compacted = compact_on(link.get(), batches);
    if compacted.is_err() {
        // The connection may have an open transaction.
        link.get().give_up();
    }
    compacted
}

fn compact_on(link: &mut Link, batches: &[BatchId]) -> Result<BatchId, StoreError> {
    let mut batches = batches.to_vec();
    // In the order of the key, like every transaction that locks several rows.
    batches.sort_unstable();
    let mut script = Script::default();
    script.statement("START TRANSACTION");
    let head = "SELECT version, marks FROM batches FORCE INDEX (PRIMARY) WHERE marks IS NOT NULL AND (link, sequence) IN (";
    script.keys(head, &batches, ") FOR UPDATE", |row, batch| {
        row.bytes(&batch.link).number(batch.sequence);
    });
    let statements = script.len() - 1;
    let mut results = link.send(&script)?;
    results.skip(1);
    let mut compacted = Compacted::default();
    results.each(statements, "batches", |row| {
        let version = row.number()?;
        compacted.add(version, decode(row.bytes()?).ok_or_else(undecodable)?);
        Ok(())
    })?;
    let batch = BatchId { link: link.name, sequence: link.sequence + 1, ..BatchId::default() };
    let mut script = take_off(&batches);
    let unpublished = compacted.encode();
    batches::put(&mut script, &batch, (Version::Number(compacted.version), Some(&unpublished)), None);
    script.statement("COMMIT");
    link.send(&script)?;
    link.sequence = batch.sequence;
    Ok(batch)
}

fn undecodable() -> StoreError {
    damaged("batches", "a mark that does not decode")
}

fn put_window(to: &mut Vec<u8>, window: WindowKey) {
    to.extend(window.board.0.to_be_bytes());
    to.extend(window.window.0.to_be_bytes());
}

fn decode(bytes: &[u8]) -> Option<OutboxContent> {
    let (kind, mut rest) = bytes.split_first()?;
    let (mut keys, mut windows) = (Vec::new(), Vec::new());
    while !rest.is_empty() {
        let board = BoardNo(u32::from_be_bytes(take(&mut rest)?));
        let window = Window(u64::from_be_bytes(take(&mut rest)?));
        if *kind == WINDOWS {
            windows.push(WindowKey { board, window });
            continue;
        }
        for _ in 0..u32::from_be_bytes(take(&mut rest)?) {
            let [length] = take(&mut rest)?;
            let (player, left) = rest.split_at_checked(usize::from(length))?;
            rest = left;
            let player = PlayerId::new(std::str::from_utf8(player).ok()?).ok()?;
            keys.push(ScoreKey { board, window, player });
        }
    }
    match *kind {
        KEYS => Some(OutboxContent::Records(keys)),
        WINDOWS => Some(OutboxContent::Windows(windows)),
        _ => None,
    }
}

fn take<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(*head)
}

/// Queries entries of at least this age by the database's clock, or all for no age: a version may be ahead of that clock. In order of key, so that a caller that cannot publish some can read on after them.
pub(super) fn find(age: Duration, after: Option<BatchId>) -> Script {
    let mut script = Script::default();
    script.sql("SELECT link, sequence, version, marks FROM batches FORCE INDEX (PRIMARY) ");
    script.sql("WHERE marks IS NOT NULL");
    if !age.is_zero() {
        script.sql(" AND version + ").number(u64::try_from(age.as_micros()).unwrap_or(u64::MAX));
        script.sql(" <= ").sql(CLOCK);
    }
    if let Some(BatchId { link, sequence, .. }) = after {
        script.sql(" AND (link > ").bytes(&link).sql(" OR link = ").bytes(&link);
        script.sql(" AND sequence > ").number(sequence).sql(")");
    }
    script.sql(" ORDER BY link, sequence LIMIT ").number(MARKS_MAX).end();
    script
}

/// Reads the answer of [`find`].
pub(super) fn read(mut results: ResultSets) -> Result<Vec<OutboxEntry>, StoreError> {
    let mut all = Vec::new();
    results.each(1, "batches", |row| {
        let batch = BatchId { link: row.fixed()?, sequence: row.number()?, ..BatchId::default() };
        let version = row.number()?;
        let what = decode(row.bytes()?).ok_or_else(undecodable)?;
        all.push(OutboxEntry { batch, version, what });
        Ok(())
    })?;
    Ok(all)
}

/// Clears entries.
pub(super) fn take_off(batches: &[BatchId]) -> Script {
    let mut script = Script::default();
    let head = "UPDATE batches SET marks = NULL WHERE (link, sequence) IN (";
    script.keys(head, batches, ")", |row, batch| {
        row.bytes(&batch.link).number(batch.sequence);
    });
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(players: u64) -> WriteSet {
        let key = |number: u64| ScoreKey {
            board: BoardNo(7),
            window: Window(number % 2),
            player: PlayerId::new(&format!("player {number:06}")).unwrap(),
        };
        let mut scores: Vec<_> = (0..players).map(|number| (key(number), None)).collect();
        scores.sort_by(|a: &(ScoreKey, _), b| a.0.cmp(&b.0));
        WriteSet { scores, ..WriteSet::default() }
    }

    #[test]
    fn a_mark_names_the_records_or_where_they_are() {
        assert_eq!(of(&WriteSet::default(), true), None);
        let few = changes(100);
        let keys = few.scores.iter().map(|(key, _)| key.clone()).collect();
        assert_eq!(decode(&of(&few, false).unwrap()), Some(OutboxContent::Records(keys)));
        let window = |window| WindowKey { board: BoardNo(7), window: Window(window) };
        assert_eq!(
            decode(&of(&changes(100_000), false).unwrap()),
            Some(OutboxContent::Windows(vec![window(0), window(1)]))
        );
        assert!(of(&changes(100_000), false).unwrap().len() < 100);
        let bytes = of(&few, false).unwrap();
        assert!((1..bytes.len()).all(|cut| decode(&bytes[..cut]) != decode(&bytes)));
    }
    #[test]
    fn merged_entries_name_what_each_of_them_names() {
        let (few, many) = (of(&changes(10), false).unwrap(), of(&changes(100_000), false).unwrap());
        let compact = |marks: &[&Vec<u8>]| {
            let mut compacted = Compacted::default();
            (7..).zip(marks).for_each(|(version, mark)| compacted.add(version, decode(mark).unwrap()));
            (compacted.version, decode(&compacted.encode()))
        };
        assert_eq!(compact(&[&few, &few]), (8, decode(&few)));
        assert_eq!(compact(&[&few, &many]), (8, decode(&many)));
        assert_eq!(compact(&[]), (0, Some(OutboxContent::Records(Vec::new()))));
    }
}
