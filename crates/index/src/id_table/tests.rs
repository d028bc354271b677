//! Buckets that were passed: too often to count, and all of them. Hashes are chosen here, which no test from outside can.

use super::*;

#[test]
fn a_bucket_passed_too_often_to_count_still_finds_and_forgets() {
    // One hash for all: the first bucket is passed by all but seven.
    let homes = (0..600).map(|slot| Home { slot, leaf: slot + 1 });
    let mut table = Table::with_room(600);
    homes.clone().for_each(|home| table.put(1, home));
    for home in homes.clone() {
        let (bucket, at) = table.find_slot(1, home.slot);
        assert_eq!(table.buckets[bucket].home(at), home);
    }
    homes.clone().step_by(2).for_each(|home| table.remove(1, home.slot));
    assert_eq!(table.len, 300);
    for home in homes {
        assert_eq!(table.find(1, |it| it == home).is_some(), home.slot % 2 == 1, "{home:?}");
    }
}
#[test]
fn who_is_not_there_is_not_looked_for_forever_where_all_buckets_were_passed() {
    let (first, second) = (0, 0x8000_0000);
    let home = |slot| Home { slot, leaf: 0 };
    let mut table = Table::with_buckets(2);
    // Eight that belong into the first bucket, one of them passes it; then it has room again.
    (0..8).for_each(|slot| table.put(first, home(slot)));
    (0..5).for_each(|slot| table.remove(first, slot));
    // Seven that belong into the second, where one stands already: one of these passes it too.
    (10..17).for_each(|slot| table.put(second, home(slot)));
    assert!(table.buckets.iter().all(|bucket| bucket.passed() > 0));
    assert_eq!(table.find(first, |_| false), None);
    assert_eq!(table.find(second, |_| false), None);
    assert!((10..17).all(|slot| table.find(second, |it| it == home(slot)).is_some()));
}
