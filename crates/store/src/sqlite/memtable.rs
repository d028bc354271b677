//! The memtable: rows that are in the journal and not yet in the tables, the newest of each key.
//!
//! There are two memtables. New rows go into the active one. The immutable one is being flushed, and is dropped when the
//! tables have all of it. A row is looked up in the active one, in the immutable one, and then in the tables; `moment` in
//! `state` makes all three of one moment.
//!
//! Rows are ordered, because flushing is cheap in key order, and scans merge ranges of it. All boards are here, flushed or
//! not: there are few, and every transaction checks whether some are live. Not here: how much is allowed (`stall`).

use super::directory::Directory;
use super::table::{List, TABLES, Table};
use crate::StoreError;
use rusqlite::Connection;
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Instant;

/// Estimates the memory of an entry with its share of the tree's nodes and of their free space: measured as about half as
/// much again.
const fn row_bytes(entry: usize) -> usize {
    entry + entry / 2
}

/// The number of bytes that count as one more row: an archive block is as much to write as sixty records.
const ROW_BYTES: usize = 256;

/// The weight of rows: their number, or more if they are large.
pub(super) fn weight(rows: usize, bytes: usize) -> usize {
    rows.max(bytes / ROW_BYTES)
}

/// The rows of one table.
pub(super) struct Layer<T: Table> {
    rows: BTreeMap<T::Key, Option<T::Value>>,
    bytes: usize,
    lowest_age: Option<i64>,
}

impl<T: Table> Default for Layer<T> {
    fn default() -> Self {
        Self { rows: BTreeMap::new(), bytes: 0, lowest_age: None }
    }
}

impl<T: Table> Debug for Layer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} rows of table {}", self.rows.len(), T::TAG)
    }
}

impl<T: Table> Layer<T> {
    pub(super) fn rows(&self) -> &BTreeMap<T::Key, Option<T::Value>> {
        &self.rows
    }

    /// The lowest age of any row that was ever inserted.
    fn lowest_age(&self) -> Option<i64> {
        self.lowest_age
    }

    pub(super) fn put(&mut self, list: List<T>) {
        let fixed = row_bytes(size_of::<T::Key>() + size_of::<Option<T::Value>>());
        for (key, value) in list {
            let heap = T::heap_bytes(&key, value.as_ref());
            let age = value.as_ref().and_then(T::age);
            self.lowest_age = match (self.lowest_age, age) {
                (Some(lowest), Some(age)) => Some(lowest.min(age)),
                (lowest, age) => lowest.or(age),
            };
            // The old key stays and the new one is dropped. They are equal, so only the memory of the values changes.
            match self.rows.entry(key) {
                std::collections::btree_map::Entry::Vacant(place) => {
                    place.insert(value);
                    self.bytes += fixed + heap;
                }
                std::collections::btree_map::Entry::Occupied(mut place) => {
                    let old = T::heap_bytes(place.key(), place.get().as_ref());
                    place.insert(value);
                    self.bytes = self.bytes + heap - old;
                }
            }
        }
    }
}

/// Writes rows of a layer up to a weight, from where it stopped. Returns their weight, which is less at the end.
pub(super) type RowFlusher<'a> = Box<dyn FnMut(&Connection, usize) -> Result<usize, StoreError> + 'a>;

/// A layer without its types.
pub(super) trait AnyLayer: Any + Debug + Send + Sync {
    fn rows(&self) -> usize;
    fn bytes(&self) -> usize;
    fn flusher(&self) -> RowFlusher<'_>;
}

impl<T: Table> AnyLayer for Layer<T> {
    fn rows(&self) -> usize {
        self.rows.len()
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn flusher(&self) -> RowFlusher<'_> {
        let mut rows = self.rows.iter();
        Box::new(move |connection, most| {
            let mut left = most;
            let mut some = std::iter::from_fn(|| {
                let (key, value) = if left > 0 { rows.next() } else { None }?;
                left = left.saturating_sub(weight(1, T::heap_bytes(key, value.as_ref())));
                Some((key, value))
            });
            T::write(connection, &mut some)?;
            Ok(most - left)
        })
    }
}

/// The rows of all tables, from a section of the journal.
#[derive(Debug)]
pub(super) struct Memtable {
    layers: Vec<Box<dyn AnyLayer>>,
    /// Its last batch; 0 for none.
    pub(super) last: u64,
    /// When the first row was inserted.
    pub(super) born: Option<Instant>,
    /// When the last row was inserted.
    pub(super) touched: Option<Instant>,
}

impl Default for Memtable {
    fn default() -> Self {
        Self {
            layers: TABLES.iter().map(|table| table.layer()).collect(),
            last: 0,
            born: None,
            touched: None,
        }
    }
}

impl Memtable {
    pub(super) fn layer<T: Table>(&self) -> &Layer<T> {
        let layer: &dyn Any = &*self.layers[usize::from(T::TAG)];
        layer.downcast_ref().expect("a layer stands at the tag of its table")
    }

    pub(super) fn layer_mut<T: Table>(&mut self) -> &mut Layer<T> {
        let layer: &mut dyn Any = &mut *self.layers[usize::from(T::TAG)];
        layer.downcast_mut().expect("a layer stands at the tag of its table")
    }

    /// Every layer, in the order of flushing.
    pub(super) fn layers(&self) -> impl Iterator<Item = &dyn AnyLayer> {
        self.layers.iter().map(|layer| &**layer)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.last == 0
    }

    pub(super) fn rows(&self) -> usize {
        self.layers().map(AnyLayer::rows).sum()
    }

    pub(super) fn bytes(&self) -> usize {
        self.layers().map(AnyLayer::bytes).sum()
    }
}

/// The newest states in order of keys, and the key up to which they are complete if there are more.
pub(super) type Range<T> =
    (BTreeMap<<T as Table>::Key, Option<<T as Table>::Value>>, Option<<T as Table>::Key>);

/// Both memtables, and every board.
#[derive(Debug, Default)]
pub(super) struct Memtables {
    pub(super) active: Memtable,
    pub(super) flushing: Option<Arc<Memtable>>,
    pub(super) boards: Directory,
}

impl Memtables {
    /// The newest state of a key, if it is not yet in the tables: `Some(None)` for a removed row.
    pub(super) fn get<T: Table>(&self, key: &T::Key) -> Option<&Option<T::Value>> {
        self.each().find_map(|memtable| memtable.layer::<T>().rows.get(key))
    }

    /// Both memtables, the newer one first.
    pub(super) fn each(&self) -> impl Iterator<Item = &Memtable> {
        std::iter::once(&self.active).chain(self.flushing.as_deref())
    }

    /// Whether a row older than this may not be in the tables yet.
    pub(super) fn has_older<T: Table>(&self, than: i64) -> bool {
        let mut lowest = self.each().filter_map(|memtable| memtable.layer::<T>().lowest_age());
        lowest.any(|lowest| lowest < than)
    }

    /// The newest states of the keys from `from` on while `within` holds, about `most` at most.
    pub(super) fn range<T: Table>(
        &self,
        from: Bound<T::Key>,
        within: impl Fn(&T::Key) -> bool,
        most: usize,
    ) -> Range<T> {
        let mut found = BTreeMap::new();
        let mut complete: Option<T::Key> = None;
        // The older one comes first, so that the newer one overwrites.
        let each: Vec<&Memtable> = self.each().collect();
        for memtable in each.into_iter().rev() {
            let rows = memtable.layer::<T>().rows.range((from.clone(), Bound::Unbounded));
            let mut taken = 0;
            for (key, value) in rows.take_while(|(key, _)| within(key)) {
                if taken == most {
                    break;
                }
                taken += 1;
                found.insert(key.clone(), value.clone());
                if taken == most && complete.as_ref().is_none_or(|until| key < until) {
                    complete = Some(key.clone());
                }
            }
        }
        if let Some(until) = &complete {
            let mut beyond = found.split_off(until);
            found.extend(beyond.pop_first());
        }
        (found, complete)
    }

    /// The newest states of at least the `most` last keys before a key that have a row, if there are as many.
    pub(super) fn newest<T: Table>(
        &self,
        before: &T::Key,
        most: usize,
    ) -> BTreeMap<T::Key, Option<T::Value>> {
        let mut found = BTreeMap::new();
        // The older one comes first, so that the newer one overwrites.
        let each: Vec<&Memtable> = self.each().collect();
        for memtable in each.into_iter().rev() {
            let mut left = most;
            for (key, row) in memtable.layer::<T>().rows.range::<T::Key, _>(..before).rev() {
                if left == 0 {
                    break;
                }
                left -= usize::from(matches!(self.get::<T>(key), Some(Some(_))));
                found.insert(key.clone(), row.clone());
            }
        }
        found
    }

    /// The newest states of the keys from `from` on while `within` holds, up to the `most`th that `pick` accepts. A state
    /// that `pick` rejects counts as removed. The result is complete up to its last key. The first `most` rows in order of
    /// keys need none after it.
    pub(super) fn first<T: Table, V>(
        &self,
        from: Bound<T::Key>,
        within: impl Fn(&T::Key) -> bool,
        pick: impl Fn(&T::Value) -> Option<V>,
        most: usize,
    ) -> BTreeMap<T::Key, Option<V>> {
        let rows = (from, Bound::Unbounded);
        let mut active = self.active.layer::<T>().rows.range(rows.clone()).peekable();
        let mut old = self.flushing.as_deref().map(|old| old.layer::<T>().rows.range(rows).peekable());
        let (mut found, mut there) = (Vec::new(), 0);
        while there < most {
            let newer = active.peek().map(|(key, _)| *key);
            let older = old.as_mut().and_then(|rows| rows.peek()).map(|(key, _)| *key);
            let row = match (newer, older) {
                (Some(newer), Some(older)) if older < newer => old.as_mut().and_then(Iterator::next),
                (Some(newer), Some(older)) if older == newer => {
                    old.as_mut().and_then(Iterator::next);
                    active.next()
                }
                (Some(_), _) => active.next(),
                (None, _) => old.as_mut().and_then(Iterator::next),
            };
            let Some((key, row)) = row.filter(|(key, _)| within(key)) else { break };
            let picked = row.as_ref().and_then(&pick);
            there += usize::from(picked.is_some());
            found.push((key.clone(), picked));
        }
        found.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::bans::Bans;
    use super::*;
    use crate::plan::{BanKey, BoardNo};
    use tally_rules::PlayerId;
    use tally_testkit::rng::Rng;

    fn ban(player: &str, banned: bool) -> (BanKey, Option<()>) {
        let player = PlayerId::new(player).unwrap();
        (BanKey { board: BoardNo(1), player }, banned.then_some(()))
    }

    fn memtables() -> Memtables {
        let mut old = Memtable::default();
        old.layer_mut::<Bans>().put(vec![ban("a", true), ban("b", true), ban("c", true), ban("e", true)]);
        let mut memtables = Memtables { flushing: Some(Arc::new(old)), ..Memtables::default() };
        memtables.active.layer_mut::<Bans>().put(vec![ban("b", false), ban("d", true)]);
        memtables
    }

    #[test]
    fn the_newer_generation_wins() {
        let memtables = memtables();
        let get = |player: &str| memtables.get::<Bans>(&ban(player, true).0);
        assert_eq!(get("a"), Some(&Some(())));
        assert_eq!(get("b"), Some(&None));
        assert_eq!(get("d"), Some(&Some(())));
        assert_eq!(get("f"), None);
    }

    #[test]
    fn a_range_is_complete_up_to_where_it_says() {
        let memtables = memtables();
        let range = |most| {
            let from = Bound::Included(ban("a", true).0);
            let (found, complete) = memtables.range::<Bans>(from, |_| true, most);
            let names: String = found.keys().map(|key| key.player.as_str()).collect();
            (names, complete.map(|key| key.player.as_str().to_owned()))
        };
        assert_eq!(range(9), ("abcde".into(), None));
        assert_eq!(range(1), ("a".into(), Some("a".into())));
        assert_eq!(range(2), ("ab".into(), Some("b".into())));
        assert_eq!(range(3), ("abc".into(), Some("c".into())));
    }

    /// Checks a page that is merged from a table whose rows were partly changed or removed since.
    #[test]
    fn the_first_rows_are_those_of_all_rows_sorted() {
        let name = |number: u64| format!("{number:02}");
        let mut rng = Rng::of("the first rows of a memtable");
        for _ in 0..2_000 {
            let mut table: BTreeMap<String, bool> = BTreeMap::new();
            let (mut active, mut old) = (Memtable::default(), Memtable::default());
            let mut now = BTreeMap::new();
            for number in (0..20).map(name) {
                let stored = rng.below(2) == 0;
                now.insert(number.clone(), stored);
                table.insert(number.clone(), stored);
                for memtable in [&mut old, &mut active] {
                    if rng.below(3) == 0 {
                        let is_there = rng.below(2) == 0;
                        now.insert(number.clone(), is_there);
                        memtable.layer_mut::<Bans>().put(vec![ban(&number, is_there)]);
                    }
                }
            }
            let flushing = (rng.below(3) > 0).then(|| Arc::new(old));
            if flushing.is_none() {
                now.clone_from(&table);
                let changed = active.layer::<Bans>().rows().iter();
                now.extend(changed.map(|(key, row)| (key.player.as_str().to_owned(), row.is_some())));
            }
            let memtables = Memtables { active, flushing, ..Memtables::default() };
            let (after, most) = (name(rng.below(20)), rng.below(6) as usize);
            let from = Bound::Excluded(ban(&after, true).0);
            let end = name(10 + rng.below(12));
            let within = |key: &BanKey| key.player.as_str() < &*end;
            let newer = memtables.first::<Bans, ()>(from, within, |()| Some(()), most);
            assert!(newer.values().flatten().count() <= most);
            // The merged page, and the expected one.
            let in_table = table.iter().filter(|(player, there)| {
                **there && **player > after && **player < end && !newer.contains_key(&ban(player, true).0)
            });
            let mut page: Vec<&str> = in_table.map(|(player, _)| &**player).take(most).collect();
            page.extend(newer.iter().filter_map(|(key, row)| row.map(|()| key.player.as_str())));
            page.sort_unstable();
            page.truncate(most);
            let all = now.iter().filter(|(player, there)| **there && **player > after && **player < end);
            let all: Vec<&str> = all.map(|(player, _)| &**player).take(most).collect();
            assert_eq!(page, all);
        }
    }

    #[test]
    fn bytes_follow_what_is_held() {
        let mut layer = Layer::<Bans>::default();
        layer.put(vec![ban("a", true)]);
        let one = layer.bytes;
        assert!(one > size_of::<BanKey>());
        layer.put(vec![ban("a", false), ban("bb", true)]);
        assert_eq!(layer.bytes, 2 * one + 1, "one byte more of name");
    }
}
