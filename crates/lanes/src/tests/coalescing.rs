//! The working set against a plain map: coalescing changes how often a key is written, never the final state.

use crate::{WorkingSet, keys_to_load};
use std::collections::BTreeMap;

/// A small generator with a printable seed (xorshift): no scheduler is involved here.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

fn one_run(seed: u64) {
    let mut dice = Dice(seed);
    let mut stored: BTreeMap<u64, u64> = (0..12).filter(|key| key % 3 != 0).map(|key| (key, key)).collect();
    let before = stored.clone();
    let mut model = stored.clone();
    let touched: Vec<u64> = (0..dice.roll(20)).map(|_| dice.roll(12)).collect();
    let keys = keys_to_load(touched.iter().copied());
    assert!(keys.is_sorted_by(|one, two| one < two), "seed {seed}: sorted, each once");
    assert!(touched.iter().all(|key| keys.contains(key)), "seed {seed}");

    let mut set = WorkingSet::new();
    for key in keys {
        set.load(key, stored.get(&key).copied());
    }
    for key in touched {
        assert_eq!(set.get(&key), model.get(&key), "seed {seed}: each sees what the one before left");
        match dice.roll(4) {
            0 => {
                set.set(&key, None);
                model.remove(&key);
            }
            1 => {}
            _ => {
                let value = dice.roll(3) + key;
                set.set(&key, Some(value));
                model.insert(key, value);
            }
        }
    }

    let writes = set.into_writes();
    assert!(writes.is_sorted_by(|one, two| one.0 < two.0), "seed {seed}: sorted, one row per key");
    for (key, value) in writes {
        assert_ne!(value, before.get(&key).copied(), "seed {seed}: only what has changed");
        match value {
            Some(value) => stored.insert(key, value),
            None => stored.remove(&key),
        };
    }
    assert_eq!(stored, model, "seed {seed}: the same as one by one");
}

#[test]
fn coalescing_leaves_what_one_by_one_leaves() {
    (1..5_000).for_each(one_run);
}

#[test]
#[should_panic(expected = "loaded before it is read")]
fn reading_what_was_not_loaded_is_a_bug() {
    let set: WorkingSet<u8, u8> = WorkingSet::new();
    let _ = set.get(&1);
}

#[test]
#[should_panic(expected = "loaded before it is written")]
fn writing_what_was_not_loaded_is_a_bug() {
    let mut set = WorkingSet::new();
    set.set(&1_u8, Some(1_u8));
}

#[test]
#[should_panic(expected = "loaded once per batch")]
fn loading_twice_is_a_bug() {
    let mut set = WorkingSet::default();
    set.load(1_u8, Some(1_u8));
    set.load(1_u8, None);
}
