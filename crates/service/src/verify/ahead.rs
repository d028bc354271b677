//! Values in the rows of one table by keys of another, in the order of that other, in bounded memory.
//!
//! Holds are in the order of their ids, and wallets need them in wallet order. So a scan of all holds collects the lowest
//! keys, up to a limit; when those are used up, another scan collects the next. Few holds are open, so nearly always there is
//! one scan.

use std::collections::BTreeMap;
use tally_store::StoreError;

/// Collected values by key.
#[derive(Debug)]
pub(super) struct Ahead<K, V> {
    rows: BTreeMap<K, V>,
    /// Every key below it was collected; `None` means all were.
    until: Option<K>,
    /// How many are kept.
    max: usize,
    add: fn(&mut V, V),
}

/// The receiver of each key with its value.
pub(super) type Put<'p, K, V> = dyn FnMut(K, V) + 'p;

impl<K: Copy + Ord, V> Ahead<K, V> {
    /// Collects the lowest keys; `add` makes one of two values of the same key.
    pub(super) fn collect(
        max: usize,
        add: fn(&mut V, V),
        scan: impl FnOnce(&mut Put<'_, K, V>) -> Result<(), StoreError>,
    ) -> Result<Self, StoreError> {
        let mut ahead = Self { rows: BTreeMap::new(), until: None, max, add };
        ahead.collect_from(None, scan)?;
        Ok(ahead)
    }

    fn collect_from(
        &mut self,
        from: Option<K>,
        scan: impl FnOnce(&mut Put<'_, K, V>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let (rows, add, max) = (&mut self.rows, self.add, self.max);
        let mut until: Option<K> = None;
        scan(&mut |key, value| {
            if from.is_some_and(|from| key < from) || until.is_some_and(|until| key >= until) {
                return;
            }
            match rows.get_mut(&key) {
                Some(known) => add(known, value),
                None => drop(rows.insert(key, value)),
            }
            if rows.len() > max {
                until = rows.pop_last().map(|(key, _)| key);
            }
        })?;
        self.until = until;
        Ok(())
    }

    /// The value of a key; keys must ascend, and values between them go to `passed`.
    pub(super) fn at(
        &mut self,
        key: &K,
        mut scan: impl FnMut(&mut Put<'_, K, V>) -> Result<(), StoreError>,
        passed: &mut Put<'_, K, V>,
    ) -> Result<Option<V>, StoreError> {
        loop {
            while let Some(first) = self.rows.first_entry().filter(|first| first.key() < key) {
                let (key, value) = first.remove_entry();
                passed(key, value);
            }
            match self.until {
                Some(until) if *key >= until => self.collect_from(Some(until), &mut scan)?,
                _ => return Ok(self.rows.remove(key)),
            }
        }
    }

    /// The remaining values after the last key.
    pub(super) fn rest(
        mut self,
        mut scan: impl FnMut(&mut Put<'_, K, V>) -> Result<(), StoreError>,
        passed: &mut Put<'_, K, V>,
    ) -> Result<(), StoreError> {
        loop {
            std::mem::take(&mut self.rows).into_iter().for_each(|(key, value)| passed(key, value));
            let Some(until) = self.until else { return Ok(()) };
            self.collect_from(Some(until), &mut scan)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_gives_what_a_map_of_all_would(
            rows in prop::collection::vec((0_u8..40, 1_u32..9), 0..60),
            asked in prop::collection::btree_set(0_u8..40, 0..20),
            max in 1_usize..70,
        ) {
            let scan = |put: &mut Put<'_, u8, u32>| {
                rows.iter().for_each(|(key, value)| put(*key, *value));
                Ok(())
            };
            let mut all: BTreeMap<u8, u32> = BTreeMap::new();
            rows.iter().for_each(|(key, value)| *all.entry(*key).or_default() += value);
            let mut ahead = Ahead::collect(max, |sum, more| *sum += more, scan).unwrap();
            let mut passed = BTreeMap::new();
            let mut found = BTreeMap::new();
            for key in &asked {
                let at = ahead.at(key, scan, &mut |key, value| passed.extend([(key, value)])).unwrap();
                found.extend(at.map(|value| (*key, value)));
            }
            ahead.rest(scan, &mut |key, value| passed.extend([(key, value)])).unwrap();
            let (there, not): (BTreeMap<_, _>, _) = all.into_iter().partition(|(key, _)| asked.contains(key));
            prop_assert_eq!(found, there);
            prop_assert_eq!(passed, not);
        }
    }
}
