//! What a transaction of several shards has still to do on each but the lowest, as bytes that are committed with the
//! lowest's own changes: from then on it is done, whatever happens.
//!
//! Only what other shards than the first can hold is here. The bytes are those of the journal of an embedded store, and
//! as little as those are they ever changed: the next version reads what this one left. Not here: when they are
//! applied (`pending`).

use crate::mysql::Note;
use crate::plan::{BanKey, BoardChange, BoardNo, BoardRow, Changes, Gone, Part, PartKey, ScoreKey};
use crate::sqlite::codec::{Input, put_bytes, put_number, put_option, put_signed};
use crate::sqlite::{put_board, take_board};
use std::collections::BTreeMap;
use tally_rules::idempotency::{Fingerprint, RequestKey, Stored};
use tally_rules::outcome::Outcome;
use tally_rules::{BoardId, Micros, PlayerId, Record};

/// Names of intents, which go on with the intent's number and the piece's.
pub(super) const INTENTS: &str = "store.intent.";
/// Names of what a shard has applied, which go on with the number of the shard whose intent it was.
pub(super) const APPLIED: &str = "store.applied.";

/// Bytes of a piece: a statement of a database has about twice as many.
const PIECE_BYTES: usize = 32 << 10;
const FORMAT: u8 = 1;

/// What is still to be done.
#[derive(Clone, Debug, Default)]
pub(super) struct Intent {
    /// The version of its rows.
    pub(super) version: u64,
    /// Changes by shard.
    pub(super) rest: BTreeMap<usize, Changes>,
}

/// The notes that keep an intent.
pub(super) fn notes(number: u64, intent: &Intent) -> Vec<Note> {
    let mut bytes = vec![FORMAT];
    put_number(intent.version, &mut bytes);
    for (shard, changes) in &intent.rest {
        put_number(*shard as u64, &mut bytes);
        put(changes, &mut bytes);
    }
    let pieces = bytes.chunks(PIECE_BYTES).enumerate();
    pieces.map(|(piece, bytes)| (name(number, piece), Some(bytes.to_vec()))).collect()
}

/// The notes that forget one.
pub(super) fn forgotten(number: u64, pieces: usize) -> impl Iterator<Item = Note> {
    (0..pieces).map(move |piece| (name(number, piece), None))
}

fn name(number: u64, piece: usize) -> String {
    format!("{INTENTS}{number:020}.{piece:06}")
}

/// The note that says which of a shard's intents is applied.
pub(super) fn applied(shard: usize, number: u64) -> Note {
    (format!("{APPLIED}{shard}"), Some(number.to_string().into_bytes()))
}

/// What was applied, by the shard whose intents they were.
pub(super) fn read_applied(notes: &[(String, Vec<u8>)]) -> Option<BTreeMap<usize, u64>> {
    let number = |(name, value): &(String, Vec<u8>)| {
        let number = std::str::from_utf8(value).ok()?.parse().ok()?;
        Some((name.strip_prefix(APPLIED)?.parse().ok()?, number))
    };
    notes.iter().map(number).collect()
}

/// Intents by number, each with how many pieces it has.
pub(super) fn read(notes: &[(String, Vec<u8>)]) -> Option<BTreeMap<u64, (Intent, usize)>> {
    let mut whole: BTreeMap<u64, (Vec<u8>, usize)> = BTreeMap::new();
    for (name, bytes) in notes {
        let (number, _) = name.strip_prefix(INTENTS)?.split_once('.')?;
        let intent = whole.entry(number.parse().ok()?).or_default();
        intent.0.extend_from_slice(bytes);
        intent.1 += 1;
    }
    whole.into_iter().map(|(number, (bytes, pieces))| Some((number, (decode(&bytes)?, pieces)))).collect()
}

fn decode(bytes: &[u8]) -> Option<Intent> {
    let mut input = Input::new(bytes);
    if input.byte()? != FORMAT {
        return None;
    }
    let mut intent = Intent { version: input.number()?, rest: BTreeMap::new() };
    while !input.is_empty() {
        let shard = usize::try_from(input.number()?).ok()?;
        intent.rest.insert(shard, take(&mut input)?);
    }
    Some(intent)
}

fn put(changes: &Changes, out: &mut Vec<u8>) {
    let Changes { scores, requests, imports, profiles, bans, parts, blocks, gone, boards, keys, ledger } =
        changes;
    assert!(
        imports.is_empty()
            && profiles.is_empty()
            && blocks.is_empty()
            && keys.is_empty()
            && ledger.is_empty(),
        "they are the first shard's, which is always the lowest"
    );
    list(scores, out, |(key, record), out| {
        put_part(key.board, key.part, out);
        put_bytes(key.player.as_bytes(), out);
        put_option(record.as_ref(), out, |record, out| {
            [record.score, record.subscore, record.at.0]
                .into_iter()
                .for_each(|number| put_signed(number, out));
        });
    });
    list(requests, out, |(key, stored), out| {
        put_bytes(key.scope.as_bytes(), out);
        put_bytes(key.key.as_bytes(), out);
        out.extend_from_slice(&stored.fingerprint.0);
        put_signed(stored.at.0, out);
        put_bytes(&stored.outcome.encode(), out);
    });
    list(bans, out, |(key, hidden), out| {
        put_number(key.board.0.into(), out);
        put_bytes(key.player.as_bytes(), out);
        out.push(u8::from(*hidden));
    });
    list(parts, out, |(key, row), out| {
        assert!(row.is_none(), "only the first shard and the lowest note periods");
        put_part(key.board, key.part, out);
    });
    list(gone, out, |gone, out| {
        let Gone::Part(key) = gone else { panic!("blocks are the first shard's") };
        put_part(key.board, key.part, out);
    });
    list(boards, out, put_change);
}

fn take(input: &mut Input<'_>) -> Option<Changes> {
    let scores = taken(input, |input| {
        let (board, part) = take_part(input)?;
        let key = ScoreKey { board, part, player: take_player(input)? };
        let record = |input: &mut Input<'_>| {
            let (score, subscore) = (input.signed()?, input.signed()?);
            Some(Record { score, subscore, at: Micros(input.signed()?) })
        };
        Some((key, input.option(record)?))
    })?;
    let requests = taken(input, |input| {
        let key = RequestKey { scope: input.text()?.into(), key: input.text()?.into() };
        let (fingerprint, at) = (Fingerprint(input.fixed()?), Micros(input.signed()?));
        Some((key, Stored { fingerprint, at, outcome: Outcome::decode(input.bytes()?)? }))
    })?;
    let bans = taken(input, |input| {
        let key = BanKey { board: BoardNo(input.small()?), player: take_player(input)? };
        Some((key, input.truth()?))
    })?;
    let key = |(board, part)| PartKey { board, part };
    let parts = taken(input, |input| Some((key(take_part(input)?), None)))?;
    let gone = taken(input, |input| Some(Gone::Part(key(take_part(input)?))))?;
    let boards = taken(input, take_change)?;
    Some(Changes { scores, requests, bans, parts, gone, boards, ..Changes::default() })
}

fn put_change(change: &BoardChange, out: &mut Vec<u8>) {
    match change {
        BoardChange::Create(row) => {
            out.push(0);
            put_board(row, out);
        }
        BoardChange::Redefine(no, definition) => {
            // A definition is written as part of a board; the rest of this one says nothing.
            let id = BoardId::new("-").expect("it is a name");
            out.push(1);
            put_board(&BoardRow { no: *no, id, definition: definition.clone(), created_at: Micros(0) }, out);
        }
        BoardChange::Delete(no) => {
            out.push(2);
            put_number(no.0.into(), out);
        }
    }
}

fn take_change(input: &mut Input<'_>) -> Option<BoardChange> {
    Some(match input.byte()? {
        0 => BoardChange::Create(take_board(input)?),
        1 => take_board(input).map(|row| BoardChange::Redefine(row.no, row.definition))?,
        2 => BoardChange::Delete(BoardNo(input.small()?)),
        _ => return None,
    })
}

fn put_part(board: BoardNo, part: Part, out: &mut Vec<u8>) {
    put_number(board.0.into(), out);
    put_number(part.0, out);
}

fn take_part(input: &mut Input<'_>) -> Option<(BoardNo, Part)> {
    Some((BoardNo(input.small()?), Part(input.number()?)))
}

fn take_player(input: &mut Input<'_>) -> Option<PlayerId> {
    PlayerId::new(input.text()?).ok()
}

fn list<T>(rows: &[T], out: &mut Vec<u8>, mut put: impl FnMut(&T, &mut Vec<u8>)) {
    put_number(rows.len() as u64, out);
    rows.iter().for_each(|row| put(row, out));
}

fn taken<T>(input: &mut Input<'_>, mut take: impl FnMut(&mut Input<'_>) -> Option<T>) -> Option<Vec<T>> {
    let count = input.number()?;
    let mut rows = Vec::new();
    for _ in 0..count {
        rows.push(take(input)?);
    }
    Some(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tally_rules::Definition;
    use tally_rules::period::{PeriodPrizes, PeriodRule};

    fn changes(player: &str, number: i64) -> Changes {
        let player = PlayerId::new(player).unwrap();
        let (board, part) = (BoardNo(number as u32), Part(number.unsigned_abs() >> 1));
        let record = Record { score: number, subscore: -1, at: Micros(number) };
        let weekly = PeriodRule {
            no: 3,
            name: "weekly".into(),
            schedule: "0 0 * * 1".into(),
            time_zone: "Asia/Seoul".into(),
            keep: 53,
            grace_s: 5,
            prizes: PeriodPrizes::default(),
        };
        let definition = Definition { periods: vec![weekly], rules_given: 4, ..Definition::sorted_set() };
        let id = BoardId::new("b").unwrap();
        let row = BoardRow { no: BoardNo(7), id, definition: definition.clone(), created_at: Micros(number) };
        let key = PartKey { board, part };
        let stored =
            Stored { fingerprint: Fingerprint([7; 16]), at: Micros(number), outcome: Outcome::Removed };
        Changes {
            scores: vec![(
                ScoreKey { board, part, player: player.clone() },
                (number % 2 == 0).then_some(record),
            )],
            requests: vec![(RequestKey { scope: "s".into(), key: player.as_str().into() }, stored)],
            bans: vec![(BanKey { board, player }, number > 0)],
            parts: vec![(key, None)],
            gone: vec![Gone::Part(key)],
            boards: vec![
                BoardChange::Create(row),
                BoardChange::Redefine(BoardNo(8), definition),
                BoardChange::Delete(BoardNo(9)),
            ],
            ..Changes::default()
        }
    }

    fn stored(notes: Vec<Note>) -> Vec<(String, Vec<u8>)> {
        notes.into_iter().map(|(name, value)| (name, value.unwrap())).collect()
    }

    proptest! {
        #[test]
        fn what_is_noted_reads_back(player in ".{1,30}", number in any::<i64>(), intent in any::<u64>()) {
            prop_assume!(PlayerId::new(&player).is_ok());
            let rest = [(1, changes(&player, number)), (63, Changes::default())].into();
            let kept = Intent { version: number.unsigned_abs(), rest };
            let notes = stored(notes(intent, &kept));
            let found = read(&notes).unwrap().remove(&intent).unwrap();
            prop_assert_eq!(format!("{:?}", found.0), format!("{kept:?}"));
            prop_assert_eq!(found.1, 1);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(0u8..12, 0..60)) {
            decode(&[&[FORMAT], &bytes[..]].concat());
        }
    }

    #[test]
    fn a_large_intent_is_kept_in_pieces_and_forgotten_with_all_of_them() {
        let (one, mut large) = (changes("ann", 4), Changes::default());
        for number in 0..5_000 {
            let mut score = one.scores[0].clone();
            score.0.player = PlayerId::new(&format!("player {number}")).unwrap();
            large.scores.push(score);
        }
        let intent =
            |shard, changes: &Changes| Intent { version: 9, rest: [(shard, changes.clone())].into() };
        let mut kept = stored(notes(6, &intent(1, &one)));
        let pieces = stored(notes(5, &intent(2, &large)));
        assert!(pieces.len() > 2 && pieces.iter().all(|(_, bytes)| bytes.len() <= PIECE_BYTES));
        let names: Vec<String> = forgotten(5, pieces.len()).map(|(name, _)| name).collect();
        assert_eq!(names, pieces.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>());
        kept.splice(0..0, pieces);
        kept.sort();
        let found = read(&kept).unwrap();
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), [5, 6]);
        assert_eq!(found[&5].0.rest[&2].scores, large.scores);
    }

    #[test]
    fn what_is_applied_reads_back() {
        let notes = stored(vec![applied(0, 7), applied(12, u64::MAX)]);
        assert_eq!(read_applied(&notes), Some([(0, 7), (12, u64::MAX)].into()));
        assert_eq!(read_applied(&[("store.applied.x".into(), b"1".to_vec())]), None);
    }
}
