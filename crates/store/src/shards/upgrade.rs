//! The upgrade of a store of several shards from releases up to 0.1: intents, and positions of imports on the first shard
//! alone.
//!
//! An intent was what a transaction still had to do on each shard but the lowest, as notes on the lowest. A note on each
//! other shard said which intents were applied. A start applies remaining intents once and copies the positions of imports
//! to every shard. It also raises the version of the layout, so an earlier release refuses the store afterwards. Every step
//! can be repeated. Not here: writing intents, which no code does any more.

use super::layout;
use super::moving::spread_imports;
use super::split::FIRST;
use crate::StoreError;
use crate::codec::Input;
use crate::codec::boards::take_board;
use crate::mysql::{MySqlStore, Note, Noted};
use crate::plan::{BanKey, BoardChange, BoardNo, Garbage, ReadSet, ScoreKey, Window, WindowKey, WriteSet};
use std::collections::BTreeMap;
use std::sync::Arc;
use tally_rules::idempotency::{Fingerprint, RequestKey, Stored};
use tally_rules::outcome::Outcome;
use tally_rules::{Micros, PlayerId, Record};

/// The prefix of the notes of intents; the number of the intent and of the piece follow.
const INTENTS: &str = "store.intent.";
/// The prefix of the notes of applied intents; the number of the shard with the intent follows.
const APPLIED: &str = "store.applied.";
const FORMAT: u8 = 1;

/// The remaining changes of a transaction.
struct Intent {
    /// The version of its rows.
    version: u64,
    /// The changes by shard.
    rest: BTreeMap<usize, WriteSet>,
}

/// Upgrades a store of an earlier release to the present layout.
pub(super) fn upgrade(all: &[Arc<MySqlStore>]) -> Result<(), StoreError> {
    if !layout::is_earlier(&all[FIRST])? {
        return Ok(());
    }
    for (of, store) in all.iter().enumerate() {
        let bad = || StoreError::Corrupt(format!("{}: an intent does not decode", store.url()));
        for (number, intent) in read(&store.notes(INTENTS)?).ok_or_else(bad)? {
            apply(all, (of, number), &intent)?;
        }
    }
    // Notes of applied intents are deleted after the intents, so that no intent is applied twice.
    all.iter().try_for_each(|store| forget(store, INTENTS))?;
    all.iter().try_for_each(|store| forget(store, APPLIED))?;
    spread_imports(&all[FIRST], all.iter().skip(1))?;
    for store in all.iter().rev() {
        if let Some(mark) = layout::read_calm(store)? {
            layout::write(store, &mark)?;
        }
    }
    Ok(())
}

fn apply(all: &[Arc<MySqlStore>], (of, number): (usize, u64), intent: &Intent) -> Result<(), StoreError> {
    for (shard, changes) in &intent.rest {
        let store = all.get(*shard).ok_or_else(|| {
            StoreError::Corrupt(format!("{}: an intent names shard {}", all[of].url(), shard + 1))
        })?;
        let name = format!("{APPLIED}{of}");
        let notes = store.notes(&name)?;
        let applied = notes.iter().find(|(found, _)| *found == name);
        let applied = applied.and_then(|(_, value)| std::str::from_utf8(value).ok()?.parse().ok());
        if applied.unwrap_or(0) < number {
            let notes: Vec<Note> = vec![(name, Some(number.to_string().into_bytes()))];
            let noted = Noted { changes: changes.clone(), notes, version: intent.version };
            store.run_noting(&ReadSet::default(), &mut |_, _| noted.clone())?;
        }
    }
    Ok(())
}

fn forget(store: &MySqlStore, prefix: &str) -> Result<(), StoreError> {
    let notes: Vec<Note> = store.notes(prefix)?.into_iter().map(|(name, _)| (name, None)).collect();
    if notes.is_empty() {
        return Ok(());
    }
    let noted = Noted { notes, ..Noted::default() };
    store.run_noting(&ReadSet::default(), &mut |_, _| noted.clone()).map(drop)
}

/// Decodes intents, by number.
fn read(notes: &[(String, Vec<u8>)]) -> Option<BTreeMap<u64, Intent>> {
    let mut whole: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    for (name, bytes) in notes {
        let (number, _) = name.strip_prefix(INTENTS)?.split_once('.')?;
        whole.entry(number.parse().ok()?).or_default().extend_from_slice(bytes);
    }
    whole.into_iter().map(|(number, bytes)| Some((number, decode(&bytes)?))).collect()
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

fn take(input: &mut Input<'_>) -> Option<WriteSet> {
    let scores = taken(input, |input| {
        let WindowKey { board, window } = take_window(input)?;
        let key = ScoreKey { board, window, player: take_player(input)? };
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
        Some((key, input.boolean()?))
    })?;
    let windows = taken(input, |input| Some((take_window(input)?, None)))?;
    let garbage = taken(input, |input| Some(Garbage::Window(take_window(input)?)))?;
    let boards = taken(input, |input| {
        Some(match input.byte()? {
            0 => BoardChange::Create(take_board(input)?),
            1 => take_board(input).map(|row| BoardChange::Redefine(row.no, row.definition))?,
            2 => BoardChange::Delete(BoardNo(input.small()?)),
            _ => return None,
        })
    })?;
    Some(WriteSet { scores, requests, bans, windows, garbage, boards, ..WriteSet::default() })
}

fn take_window(input: &mut Input<'_>) -> Option<WindowKey> {
    Some(WindowKey { board: BoardNo(input.small()?), window: Window(input.number()?) })
}

fn take_player(input: &mut Input<'_>) -> Option<PlayerId> {
    PlayerId::new(input.text()?).ok()
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

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(0u8..12, 0..60)) {
            decode(&[&[FORMAT], &bytes[..]].concat());
        }
    }

    #[test]
    fn pieces_of_an_intent_are_put_together() {
        // Version 9; shard 1: no score, no request, a ban of "al" on board 3, no period, none gone, board 2 deleted.
        let bytes = [FORMAT, 9, 1, 0, 0, 1, 3, 2, b'a', b'l', 1, 0, 0, 1, 2, 2];
        let (first, rest) = bytes.split_at(5);
        let note = |piece: u32, bytes: &[u8]| (format!("{INTENTS}{:020}.{piece:06}", 7), bytes.to_vec());
        let found = read(&[note(0, first), note(1, rest)]).unwrap();
        let (version, changes) = (found[&7].version, &found[&7].rest[&1]);
        assert_eq!(version, 9);
        let key = BanKey { board: BoardNo(3), player: PlayerId::new("al").unwrap() };
        assert_eq!(
            (&changes.bans, &changes.boards),
            (&vec![(key, true)], &vec![BoardChange::Delete(BoardNo(2))])
        );
        assert!(read(&[("store.intent.x".into(), bytes.to_vec())]).is_none());
    }
}
