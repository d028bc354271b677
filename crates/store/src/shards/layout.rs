//! The identity of a database as a shard, in a note. A wrong list, a wrong order or a database of another store is refused
//! before anything is read.
//!
//! The note has the layout version, the store (a random number), the shard's number and the number of shards. Not here:
//! moving records to another number of shards (`reshard`).

use super::split::FIRST;
use crate::StoreError;
use crate::mysql::{MySqlStore, Noted};
use crate::plan::ReadSet;
use std::fmt;
use std::sync::Arc;

/// The name of the note.
pub(super) const SHARD: &str = "store.shard";

/// The name of the note of a running resharding, see `reshard`.
pub(super) const RESHARD: &str = "store.reshard";
/// The prefix of the notes with the progress of a resharding; the table's name follows.
pub(super) const CURSORS: &str = "store.moved.";

/// The version of the layout: the hash in `home`, and where all other rows are.
const VERSION: u32 = 2;
/// The layout of releases that had intents (`upgrade`).
const EARLIER: u32 = 1;

/// The identity of a database as a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// The name of the store.
    pub(super) store: String,
    /// The shard's number, from 0.
    pub(super) shard: usize,
    /// The number of shards; 0 if the database is not used any more.
    pub(super) of: usize,
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.of == 0 {
            return write!(f, "what was left behind of store {}", self.store);
        }
        write!(f, "shard {} of {} of store {}", self.shard + 1, self.of, self.store)
    }
}

impl Mark {
    pub(super) fn encode(&self) -> Vec<u8> {
        format!("{VERSION} {} {} {}", self.store, self.shard, self.of).into_bytes()
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut words = std::str::from_utf8(bytes).ok()?.split(' ');
        let version: u32 = words.next()?.parse().ok()?;
        let (store, shard, of) =
            (words.next()?.into(), words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        (matches!(version, EARLIER | VERSION) && words.next().is_none()).then_some(Self { store, shard, of })
    }
}

/// Reads the identity of a database; `None` if it was never a shard. A database that is being resharded is refused.
fn read(store: &MySqlStore) -> Result<Option<Mark>, StoreError> {
    if !store.notes(RESHARD)?.is_empty() {
        return Err(StoreError::Layout(format!(
            "{}: moving its records to other shards was begun and is not finished; go on with the same \
             `tally migrate --reshard`",
            store.url()
        )));
    }
    read_calm(store)
}

/// Like [`read`], but also accepts a database that is being resharded.
pub(super) fn read_calm(store: &MySqlStore) -> Result<Option<Mark>, StoreError> {
    let notes = store.notes(SHARD)?;
    let Some((_, value)) = notes.first() else { return Ok(None) };
    let unknown =
        || refused(format!("{}: what it says of its shard is not known to this version", store.url()));
    Mark::decode(value).map(Some).ok_or_else(unknown)
}

/// Whether a database has the layout of an earlier release.
pub(super) fn is_earlier(store: &MySqlStore) -> Result<bool, StoreError> {
    let earlier = format!("{EARLIER} ");
    Ok(store.notes(SHARD)?.first().is_some_and(|(_, value)| value.starts_with(earlier.as_bytes())))
}

/// Writes the identity of a database.
pub(super) fn write(store: &MySqlStore, mark: &Mark) -> Result<(), StoreError> {
    let notes = vec![(SHARD.to_owned(), Some(mark.encode()))];
    let noted = Noted { notes, ..Noted::default() };
    store.run_noting(&ReadSet::default(), &mut |_, _| noted.clone()).map(drop)
}

/// A random name for a new store.
pub(super) fn new_name() -> Result<String, StoreError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| StoreError::Unavailable(format!("ask for random bytes: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn refused(why: String) -> StoreError {
    StoreError::Layout(format!("{why} (nothing was changed)"))
}

/// Refuses a list that is not the list of the store. Empty databases become the shards of a new store.
pub(super) fn check(all: &[Arc<MySqlStore>]) -> Result<(), StoreError> {
    if read(&all[FIRST])?.is_some() {
        return check_set(all);
    }
    if !all[FIRST].is_new()? {
        return Err(refused(format!(
            "{} is a store of one database; `tally migrate --reshard` with this list spreads it",
            all[FIRST].url()
        )));
    }
    for (shard, store) in all.iter().enumerate() {
        // A database whose earlier creation was interrupted is empty as well.
        let mark = read(store)?;
        let fits = mark.as_ref().is_none_or(|mark| (mark.shard, mark.of) == (shard, all.len()));
        if !fits || !store.is_new()? {
            let what = mark.map_or_else(|| "is not empty".to_owned(), |mark| format!("is {mark}"));
            return Err(refused(format!("{} {what}, and {} is empty", store.url(), all[FIRST].url())));
        }
    }
    let name = new_name()?;
    // The first shard is written last: its note says that all others have theirs.
    for (shard, store) in all.iter().enumerate().rev() {
        write(store, &Mark { store: name.clone(), shard, of: all.len() })?;
    }
    Ok(())
}

/// Refuses a list if its databases do not say that they are the shards of one store.
pub(super) fn check_set(all: &[Arc<MySqlStore>]) -> Result<(), StoreError> {
    let first = read(&all[FIRST])?;
    let Some(first) = first else {
        return Err(refused(format!("{} is not one of several shards", all[FIRST].url())));
    };
    if first.shard == FIRST && first.of != all.len() {
        return Err(refused(format!(
            "the list has {} databases, and {} is {first}; give all of them, or change their number with \
             `tally migrate --reshard`",
            all.len(),
            all[FIRST].url()
        )));
    }
    check_marks(all)
}

/// Refuses databases that are not the shards of one store in this order.
pub(super) fn check_marks(all: &[Arc<MySqlStore>]) -> Result<(), StoreError> {
    let first = read(&all[FIRST])?.map_or_else(String::new, |mark| mark.store);
    for (shard, store) in all.iter().enumerate() {
        let wanted = Mark { store: first.clone(), shard, of: all.len() };
        let found = read(store)?;
        if found.as_ref() != Some(&wanted) {
            let found = found.map_or_else(|| "no shard of any store".to_owned(), |mark| mark.to_string());
            return Err(refused(format!(
                "{} is at place {} of the list and is {found}; the order is that of the list the store was made with",
                store.url(),
                shard + 1
            )));
        }
    }
    Ok(())
}

/// Refuses a single database that is one of several shards.
pub fn check_alone(store: &MySqlStore) -> Result<(), StoreError> {
    match read(store)? {
        Some(mark) if mark.of != 1 => Err(refused(format!(
            "{} is {mark}; give all of them, in order (`--store` several times)",
            store.url()
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_reads_back_and_another_versions_does_not() {
        let mark = Mark { store: "ab12".into(), shard: 3, of: 5 };
        assert_eq!(mark.encode(), b"2 ab12 3 5");
        for known in [b"1 ab12 3 5", b"2 ab12 3 5"] {
            assert_eq!(Mark::decode(known).as_ref(), Some(&mark));
        }
        for other in [&b"3 ab12 3 5"[..], b"1 ab12 3", b"1 ab12 3 5 x", b"\xff", b""] {
            assert_eq!(Mark::decode(other), None);
        }
    }
}
