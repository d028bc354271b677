//! Merges a page of a table with newer states of some keys.
//!
//! Not here: reading either of them.

use std::collections::BTreeMap;
use std::ops::Bound;

/// Merges newer states over a page of at most `page_limit` rows. Returns the first `limit` rows. If rows can be removed, `page_limit`
/// includes as many more, so that the rest is a whole page.
pub(super) fn merge<K: Ord + Clone, V: Clone>(
    page: Vec<(K, V)>,
    newer: &BTreeMap<K, Option<V>>,
    after: Option<&K>,
    (page_limit, limit): (usize, usize),
) -> Vec<(K, V)> {
    if newer.is_empty() {
        return page;
    }
    let from = after.map_or(Bound::Unbounded, Bound::Excluded);
    let last = page.last().map(|(last, _)| last.clone()).filter(|_| page.len() == page_limit);
    let until = last.as_ref().map_or(Bound::Unbounded, Bound::Included);
    let mut all: BTreeMap<K, V> = page.into_iter().collect();
    for (key, value) in newer.range((from, until)) {
        match value {
            Some(value) => drop(all.insert(key.clone(), value.clone())),
            None => drop(all.remove(key)),
        }
    }
    all.into_iter().take(limit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pages_of_both_layers_give_each_row_once_also_where_rows_were_removed(
            stored in prop::collection::btree_map(0_u8..60, 0_u8..9, 0..40),
            newer in prop::collection::btree_map(0_u8..60, prop::option::of(0_u8..9), 0..40),
            limit in 1_usize..20,
        ) {
            let mut wanted = stored.clone();
            for (key, value) in &newer {
                match value {
                    Some(value) => wanted.insert(*key, *value),
                    None => wanted.remove(key),
                };
            }
            let page_limit = limit + newer.values().filter(|value| value.is_none()).count();
            let mut found: Vec<(u8, u8)> = Vec::new();
            loop {
                let after = found.last().map(|(key, _)| *key);
                let from = after.map_or(Bound::Unbounded, Bound::Excluded);
                let rows = stored.range((from, Bound::Unbounded)).take(page_limit);
                let page = merge(rows.map(|(key, value)| (*key, *value)).collect(), &newer, after.as_ref(), (page_limit, limit));
                let ended = page.len() < limit;
                prop_assert!(page.len() <= limit);
                found.extend(page);
                if ended {
                    break;
                }
            }
            prop_assert_eq!(found, wanted.into_iter().collect::<Vec<_>>());
        }
    }
}
