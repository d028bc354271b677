//! The origin of a row: its actor in bytes, and its reason. Its metadata is a text beside them, which few rows have.
//!
//! An actor is a number, followed by the bytes of its id: seven bytes for a key, seventeen for a member. The tables have it in
//! a column of its own, and nothing for an unknown one, as in rows from before.

use super::{Input, put_bytes, put_option};
use std::sync::Arc;
use tally_rules::ledger::{MemberId, Uuid};
use tally_rules::{Actor, KeyId, Origin};

/// The numbers of actors. A released one is never changed.
const UNKNOWN: u8 = 0;
const KEY: u8 = 1;
const MEMBER: u8 = 2;
const COMMAND_LINE: u8 = 3;
const LOCAL: u8 = 4;
const BACKGROUND: u8 = 5;

/// Marks the first number of a row of a transfer or a hold that ends with its metadata, in a journal alone: rows from before have
/// none.
pub(crate) const WITH_METADATA: u8 = 0x20;

/// The mark of metadata.
pub(crate) fn mark(metadata: Option<&Arc<str>>) -> u8 {
    metadata.map_or(0, |_| WITH_METADATA)
}

/// Appends metadata, of which the row has the mark.
pub(crate) fn put_metadata(metadata: Option<&Arc<str>>, out: &mut Vec<u8>) {
    metadata.into_iter().for_each(|text| put_bytes(text.as_bytes(), out));
}

/// Reads what [`put_metadata`] wrote, of a row whose first number is this.
pub(crate) fn take_metadata(number: u8, input: &mut Input<'_>) -> Option<Option<Arc<str>>> {
    if number & WITH_METADATA == 0 { Some(None) } else { Some(Some(input.text()?.into())) }
}

/// Appends an origin without its metadata.
pub(crate) fn put(origin: &Origin, out: &mut Vec<u8>) {
    put_actor(origin.actor, out);
    put_option(origin.reason.as_ref(), out, |text, out| put_bytes(text.as_bytes(), out));
}

/// Reads what [`put`] wrote.
pub(crate) fn take(input: &mut Input<'_>) -> Option<Origin> {
    let actor = take_actor(input)?;
    Some(Origin { actor, reason: input.option(|input| input.text().map(Into::into))?, metadata: None })
}

/// Bytes on the heap.
pub(crate) fn heap_bytes(origin: &Origin) -> usize {
    [&origin.reason, &origin.metadata].into_iter().flatten().map(|text| 16 + text.len()).sum()
}

/// The column of an actor; an unknown one has none.
pub(crate) fn column(actor: Actor) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    put_actor(actor, &mut bytes);
    Some(bytes).filter(|bytes| bytes[0] != UNKNOWN)
}

/// The actor of a column.
pub(crate) fn of_column(bytes: Option<&[u8]>) -> Option<Actor> {
    let Some(bytes) = bytes else { return Some(Actor::Unknown) };
    let mut input = Input::new(bytes);
    let actor = take_actor(&mut input)?;
    (input.is_empty() && actor != Actor::Unknown).then_some(actor)
}

pub(crate) fn put_actor(actor: Actor, out: &mut Vec<u8>) {
    match actor {
        Actor::Unknown => out.push(UNKNOWN),
        Actor::Key(id) => {
            out.push(KEY);
            out.extend_from_slice(&id.0);
        }
        Actor::Member(id) => {
            out.push(MEMBER);
            out.extend_from_slice(&id.0.0);
        }
        Actor::CommandLine => out.push(COMMAND_LINE),
        Actor::Local => out.push(LOCAL),
        Actor::Background => out.push(BACKGROUND),
    }
}

pub(crate) fn take_actor(input: &mut Input<'_>) -> Option<Actor> {
    Some(match input.byte()? {
        UNKNOWN => Actor::Unknown,
        KEY => Actor::Key(KeyId(input.fixed()?)),
        MEMBER => Actor::Member(MemberId(Uuid(input.fixed()?))),
        COMMAND_LINE => Actor::CommandLine,
        LOCAL => Actor::Local,
        BACKGROUND => Actor::Background,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_bytes_are_pinned() {
        let member = MemberId(Uuid([9; 16]));
        for (actor, wanted) in [
            (Actor::Key(KeyId([7; 6])), [[1].as_slice(), &[7; 6]].concat()),
            (Actor::Member(member), [[2].as_slice(), &[9; 16]].concat()),
            (Actor::CommandLine, vec![3]),
            (Actor::Local, vec![4]),
            (Actor::Background, vec![5]),
        ] {
            assert_eq!(column(actor), Some(wanted.clone()));
            assert_eq!(of_column(Some(&wanted)), Some(actor));
            for reason in [None, Some("ä")] {
                let origin = Origin { actor, reason: reason.map(Into::into), metadata: None };
                let mut bytes = Vec::new();
                put(&origin, &mut bytes);
                let tail: &[u8] = if reason.is_some() { &[1, 2, 0xc3, 0xa4] } else { &[0] };
                assert_eq!(bytes, [&wanted, tail].concat());
                assert_eq!(take(&mut Input::new(&bytes)), Some(origin));
                assert!((0..bytes.len()).all(|end| take(&mut Input::new(&bytes[..end])).is_none()));
            }
            assert_eq!(of_column(Some(&wanted[..wanted.len() - 1])), None);
            assert_eq!(of_column(Some(&[&wanted[..], &[0]].concat())), None);
        }
        assert_eq!((column(Actor::Unknown), of_column(None)), (None, Some(Actor::Unknown)));
        // No row has these.
        assert_eq!((of_column(Some(&[])), of_column(Some(&[0])), of_column(Some(&[6]))), (None, None, None));
    }
}
