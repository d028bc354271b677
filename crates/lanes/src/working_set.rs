//! Write coalescing: many changes to one key become one row, the newest.
//!
//! A `BatchHandler` loads what a batch needs and applies its requests in order. Each request sees the state that the one
//! before left. Then the handler writes every key that differs from its loaded value, once. A key that came back to that
//! value is not written. The set reads nothing by itself and knows no rule.

use foldhash::quality::RandomState;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;

/// The records of one batch, by key. A hash table, because a batch reads far more often than it writes. The hash is cheaper
/// than the standard one and no client can predict it. Writes are sorted once, into primary-key order.
#[derive(Clone, Debug)]
pub struct WorkingSet<K, V> {
    slots: HashMap<K, Slot<V>, RandomState>,
}

#[derive(Clone, Debug)]
struct Slot<V> {
    loaded: Option<V>,
    /// The newest state, `None` until one is set.
    newest: Option<Option<V>>,
    /// Whether it is written even if it is unchanged.
    touched: bool,
}

/// The keys to read before the batch is decided: sorted, each once.
pub fn keys_to_load<K: Ord>(keys: impl IntoIterator<Item = K>) -> Vec<K> {
    let mut keys: Vec<K> = keys.into_iter().collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

impl<K: Ord + Hash, V: PartialEq> WorkingSet<K, V> {
    /// An empty set.
    #[must_use]
    pub fn new() -> Self {
        Self { slots: HashMap::default() }
    }

    /// Reserves memory for this many more keys.
    pub fn reserve(&mut self, keys: usize) {
        self.slots.reserve(keys);
    }

    /// Records what the store has for `key`; `None` if it has no row.
    ///
    /// # Panics
    /// If the key was loaded before: the second read would hide changes.
    pub fn load(&mut self, key: K, value: Option<V>) {
        match self.slots.entry(key) {
            Entry::Vacant(slot) => slot.insert(Slot { loaded: value, newest: None, touched: false }),
            Entry::Occupied(_) => panic!("a key is loaded once per batch"),
        };
    }

    /// The newest state of `key`.
    ///
    /// # Panics
    /// If the key was not loaded: an absent row must differ from a row that was not read.
    #[must_use]
    pub fn get(&self, key: &K) -> Option<&V> {
        let slot = self.slots.get(key).expect("a key is loaded before it is read");
        slot.newest.as_ref().unwrap_or(&slot.loaded).as_ref()
    }

    /// Sets the state of `key`; `None` deletes.
    ///
    /// # Panics
    /// If the key was not loaded.
    pub fn set(&mut self, key: &K, value: Option<V>) {
        let slot = self.slots.get_mut(key).expect("a key is loaded before it is written");
        slot.newest = Some(value);
    }

    /// Writes `key` even if it does not change: what the store records with a write matters.
    ///
    /// # Panics
    /// If the key was not loaded.
    pub fn touch(&mut self, key: &K) {
        self.slots.get_mut(key).expect("a key is loaded before it is written").touched = true;
    }

    /// Whether the key was loaded.
    #[must_use]
    pub fn is_loaded(&self, key: &K) -> bool {
        self.slots.contains_key(key)
    }

    /// Loads `key` unless it is already loaded, with the same value.
    pub fn load_known(&mut self, key: K, value: impl FnOnce() -> Option<V>) {
        self.slots.entry(key).or_insert_with(|| Slot { loaded: value(), newest: None, touched: false });
    }

    /// The keys that were set, in any order, with their newest state; `None` for a deleted key.
    pub fn all_set(&self) -> impl Iterator<Item = (&K, Option<&V>)> {
        self.slots.iter().filter_map(|(key, slot)| Some((key, slot.newest.as_ref()?.as_ref())))
    }

    /// The keys that differ from their loaded value or were touched, in order, with their newest state; `None` deletes.
    #[must_use]
    pub fn into_writes(self) -> Vec<(K, Option<V>)> {
        let changed = |(key, slot): (K, Slot<V>)| match slot.newest {
            Some(newest) if newest != slot.loaded || slot.touched => Some((key, newest)),
            None if slot.touched => Some((key, slot.loaded)),
            Some(_) | None => None,
        };
        let mut writes: Vec<_> = self.slots.into_iter().filter_map(changed).collect();
        writes.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        writes
    }
}

impl<K: Ord + Hash, V: PartialEq> Default for WorkingSet<K, V> {
    fn default() -> Self {
        Self::new()
    }
}
