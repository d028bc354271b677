//! Moves records to another number of shards while no server runs.
//!
//! A note in each database says that a resharding runs, between how many shards, and its progress. No store opens any of
//! these databases before the last step. A row is written to its new database before it is deleted from the old one. So a
//! kill at any moment loses no row, and a resumed run writes some rows twice at most. The run ends only if the number of
//! rows is the same as at the beginning. The first database stays the first: it has everything that is not spread.
//!
//! A stored request does not name its player, so each is copied to every shard until it expires. Not here: leases; the code
//! that opens the databases has them.

use super::Inner;
use super::directory::NEXT_BOARD;
use super::home::home;
use super::layout::{self, Mark};
use super::moving::{self, MoveProgress, check_imports, spread_imports};
use super::split::FIRST;
use super::upgrade::upgrade;
use crate::mysql::moving::{BANS, REQUESTS, SCORES, WINDOWS};
use crate::mysql::{MySqlStore, Note, Noted, Options};
use crate::plan::{BoardChange, ReadSet, WriteSet};
use crate::{Maintenance, Reads, StoreError, Transactions};
use std::sync::Arc;

/// The number of rows of deleted boards that are purged at a time, before any row is moved.
const PURGE_ROWS: usize = 10_000;

/// The result of a resharding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resharded {
    /// The number of all records.
    pub rows: u64,
    /// Shards before and after.
    pub shards: (usize, usize),
    /// Whether it resumed an interrupted run.
    pub resumed: bool,
}

/// The old and the new list of databases.
struct Lists {
    /// All databases, those of the old list first.
    all: Vec<Arc<MySqlStore>>,
    old: usize,
    /// The new list, as positions in `all`.
    new: Vec<usize>,
}

/// Moves the records of the databases `from` to `to`. If `from` is empty, the first database of `to` says how many of `to`
/// are the old ones. `on_wait` gets a message about each wait, `progress` the progress.
pub fn reshard(
    from: &[String],
    to: &[String],
    options: &Options,
    on_wait: &mut dyn FnMut(&str),
    progress: &mut dyn FnMut(MoveProgress),
) -> Result<Resharded, StoreError> {
    let to = super::connect(to, options, on_wait)?;
    if is_done(&to)? {
        // An earlier run has ended, but its caller did not get the result.
        return Ok(Resharded { rows: count(to.iter())?, shards: (to.len(), to.len()), resumed: true });
    }
    let lists = Lists::open(from, to, options, on_wait)?;
    let (resumed, state) = lists.begin()?;
    let shards = (lists.old, lists.new.len());
    if !lists.is_ending(&state)? {
        lists.prepare()?;
        // Rows without a player go to every shard, open periods to the first.
        for table in [&REQUESTS, &WINDOWS] {
            for at in 0..lists.old {
                let targets = if table.name == WINDOWS.name { vec![FIRST] } else { lists.new.clone() };
                moving::copy(&lists.all, at, table, &targets)?;
            }
        }
        let target = |player: &_| lists.new[home(player, lists.new.len())];
        moving::spread((&lists.all, lists.old), &[&BANS, &SCORES], &target, state.rows, progress)?;
        let found = count(lists.new.iter().map(|at| &lists.all[*at]))?;
        if found != state.rows {
            return Err(StoreError::Corrupt(format!(
                "after moving there are {found} records, and before there were {}",
                state.rows
            )));
        }
    }
    lists.end(&state)?;
    Ok(Resharded { rows: state.rows, shards, resumed })
}

/// Whether the records are on these databases already: a killed run may have finished.
fn is_done(to: &[Arc<MySqlStore>]) -> Result<bool, StoreError> {
    let first = &to[FIRST];
    let fits = |mark: Mark| (mark.shard, mark.of) == (FIRST, to.len());
    let done = read(first)?.is_none() && layout::read_calm(first)?.is_some_and(fits);
    if done {
        layout::check_marks(to)?;
    }
    Ok(done)
}

/// The note in each database during a resharding.
#[derive(Clone, Debug, PartialEq, Eq)]
struct State {
    /// The new name of the store.
    store: String,
    shards: (usize, usize),
    rows: u64,
}

impl State {
    fn encode(&self, place: usize) -> Vec<u8> {
        format!("1 {} {} {} {} {place}", self.store, self.shards.0, self.shards.1, self.rows).into_bytes()
    }

    fn decode(bytes: &[u8]) -> Option<(Self, usize)> {
        let mut words = std::str::from_utf8(bytes).ok()?.split(' ');
        if words.next()? != "1" {
            return None;
        }
        let store = words.next()?.to_owned();
        let mut number = || words.next()?.parse::<u64>().ok();
        let mut small = || usize::try_from(number()?).ok();
        let shards = (small()?, small()?);
        let (rows, place) = (number()?, usize::try_from(number()?).ok()?);
        Some((Self { store, shards, rows }, place))
    }
}

impl Lists {
    fn open(
        from: &[String],
        to: Vec<Arc<MySqlStore>>,
        options: &Options,
        on_wait: &mut dyn FnMut(&str),
    ) -> Result<Self, StoreError> {
        let first = &to[FIRST];
        let count = match (read(first)?, layout::read_calm(first)?) {
            (Some((state, _)), _) => state.shards.0,
            (None, mark) => mark.map_or(1, |mark| mark.of),
        };
        if from.is_empty() && count > to.len() {
            return Err(refused(format!(
                "{} is one of {count} databases: give them, in order, with --from",
                first.url()
            )));
        }
        let mut all: Vec<Arc<MySqlStore>> = Vec::new();
        for (place, url) in from.iter().enumerate() {
            match to.iter().find(|store| store.is_at(url)) {
                Some(store) => all.push(Arc::clone(store)),
                None => all.push(Arc::new(MySqlStore::open_reporting(url, options, on_wait)?)),
            }
            if place == FIRST && all[FIRST].url() != to[FIRST].url() {
                return Err(refused("the first database of both lists must be the same".into()));
            }
        }
        if from.is_empty() {
            all.extend(to.iter().take(count).cloned());
        }
        if all.len() != count {
            return Err(refused(format!(
                "{} is one of {count} databases, not of {}",
                to[FIRST].url(),
                all.len()
            )));
        }
        let mut new = Vec::new();
        for store in to {
            let place = all.iter().position(|other| other.url() == store.url());
            new.push(place.unwrap_or(all.len()));
            if place.is_none() {
                all.push(store);
            }
        }
        Ok(Self { all, old: count, new })
    }

    /// Writes the note into each database, or finds the note of an interrupted run.
    fn begin(&self) -> Result<(bool, State), StoreError> {
        if let Some((state, _)) = read(&self.all[FIRST])? {
            self.check(&state)?;
            return Ok((true, state));
        }
        let (old, new) = self.all.split_at(self.old);
        if self.old > 1 {
            layout::check_marks(old)?;
            upgrade(old)?;
            Inner::new(old.to_vec(), false).catch_up_all()?;
        }
        for store in new {
            if !store.is_new()? || layout::read_calm(store)?.is_some() {
                return Err(refused(format!("{} is not empty", store.url())));
            }
        }
        for store in old {
            while store.purge_deleted(PURGE_ROWS)? > 0 {}
        }
        check_imports(old)?;
        let rows = count(old.iter())?;
        let state = State { store: layout::new_name()?, shards: (self.old, self.new.len()), rows };
        // The first database is written last: no row is moved before.
        for (place, store) in self.all.iter().enumerate().rev() {
            let mut notes: Vec<Note> =
                store.notes(layout::CURSORS)?.into_iter().map(|(name, _)| (name, None)).collect();
            notes.push((layout::RESHARD.into(), Some(state.encode(place))));
            note(store, notes)?;
        }
        Ok((false, state))
    }

    /// Refuses lists that differ from those of the interrupted run.
    fn check(&self, state: &State) -> Result<(), StoreError> {
        let other = |store: &MySqlStore| {
            refused(format!("{} is moved between other databases, or in another order", store.url()))
        };
        if state.shards != (self.old, self.new.len()) {
            return Err(other(&self.all[FIRST]));
        }
        for (place, store) in self.all.iter().enumerate() {
            let fits = match read(store)? {
                Some(found) => found == (state.clone(), place),
                None => layout::read_calm(store)?.is_some_and(|mark| mark == self.mark(state, place)),
            };
            if !fits {
                return Err(other(store));
            }
        }
        Ok(())
    }

    /// The identity of a database at the end.
    fn mark(&self, state: &State, place: usize) -> Mark {
        let store = state.store.clone();
        match self.new.iter().position(|at| *at == place) {
            Some(shard) => Mark { store, shard, of: self.new.len() },
            // A database that is no shard any more.
            None => Mark { store, shard: 0, of: 0 },
        }
    }

    /// Whether every row is moved: some databases have their new identity already.
    fn is_ending(&self, state: &State) -> Result<bool, StoreError> {
        for (place, store) in self.all.iter().enumerate() {
            if layout::read_calm(store)?.is_some_and(|mark| mark == self.mark(state, place)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Creates the boards and the positions of imports in new databases.
    fn prepare(&self) -> Result<(), StoreError> {
        let boards = self.all[FIRST].boards()?;
        let next = self.all[FIRST].notes(NEXT_BOARD)?;
        for store in &self.all[self.old..] {
            let there = store.boards()?;
            let missing = boards.iter().filter(|row| there.iter().all(|other| other.no != row.no));
            let missing: Vec<BoardChange> = missing.cloned().map(BoardChange::Create).collect();
            for some in missing.chunks(100) {
                let changes = WriteSet { boards: some.to_vec(), ..WriteSet::default() };
                store.run(&ReadSet::default(), &mut |_| changes.clone())?;
            }
            note(store, next.iter().map(|(name, value)| (name.clone(), Some(value.clone()))).collect())?;
        }
        spread_imports(&self.all[FIRST], self.all[self.old..].iter())
    }

    /// Writes the new identity into each database. The store opens again when the last one is written.
    fn end(&self, state: &State) -> Result<(), StoreError> {
        for (place, store) in self.all.iter().enumerate().rev() {
            let mut gone: Vec<(String, Vec<u8>)> = Vec::new();
            for prefix in [layout::RESHARD, layout::CURSORS] {
                gone.extend(store.notes(prefix)?);
            }
            let mut notes: Vec<Note> = gone.into_iter().map(|(name, _)| (name, None)).collect();
            notes.push((layout::SHARD.into(), Some(self.mark(state, place).encode())));
            note(store, notes)?;
        }
        Ok(())
    }
}

fn read(store: &MySqlStore) -> Result<Option<(State, usize)>, StoreError> {
    let notes = store.notes(layout::RESHARD)?;
    let Some((_, value)) = notes.first() else { return Ok(None) };
    let unknown =
        || refused(format!("{}: what it says of its resharding is not known to this version", store.url()));
    State::decode(value).map(Some).ok_or_else(unknown)
}

fn count<'a>(mut stores: impl Iterator<Item = &'a Arc<MySqlStore>>) -> Result<u64, StoreError> {
    stores.try_fold(0, |sum, store| Ok(sum + store.count_all()?))
}

fn note(store: &MySqlStore, notes: Vec<Note>) -> Result<(), StoreError> {
    let noted = Noted { notes, ..Noted::default() };
    store.run_noting(&ReadSet::default(), &mut |_, _| noted.clone()).map(drop)
}

fn refused(why: String) -> StoreError {
    StoreError::Layout(format!("{why} (nothing was changed)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_under_way_reads_back() {
        let state = State { store: "ab".into(), shards: (2, 3), rows: 100 };
        assert_eq!(state.encode(1), b"1 ab 2 3 100 1");
        assert_eq!(State::decode(b"1 ab 2 3 100 1"), Some((state, 1)));
        assert_eq!(State::decode(b"2 ab 2 3 100 1"), None);
        assert_eq!(State::decode(b"1 ab 2 3"), None);
    }
}
