//! The column `marks` of the table `batches`: what a transaction left to publish, written with it.
//!
//! The server that committed publishes, and then the row goes with a later transaction; where it died in between, another
//! one finds the mark by its age, publishes what the rows say by then, and only takes the mark off: the row itself still
//! says what became of the commit. A mark names the records; one that would be too large names the parts of boards they are
//! in. Not here: publishing.

use super::CLOCK;
use super::fault::damaged;
use super::row::Answers;
use super::text::Script;
use crate::StoreError;
use crate::plan::{BatchId, BoardNo, Changes, Part, PartKey, ScoreKey};
use crate::servers::{Mark, Marked};
use std::time::Duration;
use tally_rules::PlayerId;

/// A mark is at most so long; past it, it names parts.
const MARK_BYTES_MAX: usize = 64 << 10;
/// Marks of one question.
const MARKS_MAX: u64 = 64;

const KEYS: u8 = 1;
const PARTS: u8 = 2;

/// What the changes leave to publish; nothing where they change no record.
pub(super) fn of(changes: &Changes) -> Option<Vec<u8>> {
    if changes.scores.is_empty() {
        return None;
    }
    let mut keys = vec![KEYS];
    let mut parts = vec![PARTS];
    let mut last: Option<PartKey> = None;
    let mut count_at = 0;
    for (key, _) in &changes.scores {
        let part = PartKey { board: key.board, part: key.part };
        if last != Some(part) {
            last = Some(part);
            put_part(&mut parts, part);
            put_part(&mut keys, part);
            count_at = keys.len();
            keys.extend(0_u32.to_be_bytes());
        }
        let count: [u8; 4] = keys[count_at..count_at + 4].try_into().expect("four bytes");
        keys[count_at..count_at + 4].copy_from_slice(&(u32::from_be_bytes(count) + 1).to_be_bytes());
        let player = key.player.as_bytes();
        keys.push(u8::try_from(player.len()).expect("a player's name is at most 128 bytes"));
        keys.extend(player);
    }
    Some(if keys.len() > MARK_BYTES_MAX { parts } else { keys })
}

fn put_part(to: &mut Vec<u8>, part: PartKey) {
    to.extend(part.board.0.to_be_bytes());
    to.extend(part.part.0.to_be_bytes());
}

fn decode(bytes: &[u8]) -> Option<Marked> {
    let (kind, mut rest) = bytes.split_first()?;
    let (mut keys, mut parts) = (Vec::new(), Vec::new());
    while !rest.is_empty() {
        let board = BoardNo(u32::from_be_bytes(take(&mut rest)?));
        let part = Part(u64::from_be_bytes(take(&mut rest)?));
        if *kind == PARTS {
            parts.push(PartKey { board, part });
            continue;
        }
        for _ in 0..u32::from_be_bytes(take(&mut rest)?) {
            let [length] = take(&mut rest)?;
            let (player, left) = rest.split_at_checked(usize::from(length))?;
            rest = left;
            let player = PlayerId::new(std::str::from_utf8(player).ok()?).ok()?;
            keys.push(ScoreKey { board, part, player });
        }
    }
    match *kind {
        KEYS => Some(Marked::Records(keys)),
        PARTS => Some(Marked::Parts(parts)),
        _ => None,
    }
}

fn take<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(*head)
}

/// Asks for marks that are so old, in order of key, so that whoever cannot publish some can ask for those behind them.
pub(super) fn find(age: Duration, after: Option<BatchId>) -> Script {
    let mut script = Script::default();
    script.sql("SELECT link, sequence, version, marks FROM batches FORCE INDEX (PRIMARY) ");
    script.sql("WHERE marks IS NOT NULL AND version + ");
    script.number(u64::try_from(age.as_micros()).unwrap_or(u64::MAX)).sql(" <= ").sql(CLOCK);
    if let Some(BatchId { link, sequence }) = after {
        script.sql(" AND (link > ").bytes(&link).sql(" OR link = ").bytes(&link);
        script.sql(" AND sequence > ").number(sequence).sql(")");
    }
    script.sql(" ORDER BY link, sequence LIMIT ").number(MARKS_MAX).end();
    script
}

/// The answer.
pub(super) fn read(mut answers: Answers) -> Result<Vec<Mark>, StoreError> {
    let mut all = Vec::new();
    answers.each(1, "batches", |row| {
        let batch = BatchId { link: row.fixed()?, sequence: row.number()? };
        let version = row.number()?;
        let what = decode(row.bytes()?).ok_or_else(|| damaged("batches", "a mark that does not decode"))?;
        all.push(Mark { batch, version, what });
        Ok(())
    })?;
    Ok(all)
}

/// Takes marks off.
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

    fn changes(players: u64) -> Changes {
        let key = |number: u64| ScoreKey {
            board: BoardNo(7),
            part: Part(number % 2),
            player: PlayerId::new(&format!("player {number:06}")).unwrap(),
        };
        let mut scores: Vec<_> = (0..players).map(|number| (key(number), None)).collect();
        scores.sort_by(|a: &(ScoreKey, _), b| a.0.cmp(&b.0));
        Changes { scores, ..Changes::default() }
    }

    #[test]
    fn a_mark_names_the_records_or_where_they_are() {
        assert_eq!(of(&Changes::default()), None);
        let few = changes(100);
        let keys = few.scores.iter().map(|(key, _)| key.clone()).collect();
        assert_eq!(decode(&of(&few).unwrap()), Some(Marked::Records(keys)));
        let part = |part| PartKey { board: BoardNo(7), part: Part(part) };
        assert_eq!(decode(&of(&changes(100_000)).unwrap()), Some(Marked::Parts(vec![part(0), part(1)])));
        assert!(of(&changes(100_000)).unwrap().len() < 100);
        let bytes = of(&few).unwrap();
        assert!((1..bytes.len()).all(|cut| decode(&bytes[..cut]) != decode(&bytes)));
    }
}
