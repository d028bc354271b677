//! Buckets that were passed: too often to count, and all of them. Tests from outside cannot choose the
//! hashes.

use super::*;

#[test]
fn a_bucket_passed_too_often_to_count_still_finds_and_forgets() {
    // One hash for all: the first bucket is passed by all but seven.
    let locations = (0..600).map(|slot| Location { slot, leaf: slot + 1 });
    let mut table = Table::with_room(600);
    locations.clone().for_each(|location| table.put(1, location));
    for location in locations.clone() {
        let (bucket, at) = table.find_slot(1, location.slot);
        assert_eq!(table.buckets[bucket].location(at), location);
    }
    locations.clone().step_by(2).for_each(|location| table.remove(1, location.slot));
    assert_eq!(table.len, 300);
    for location in locations {
        assert_eq!(table.find(1, |it| it == location).is_some(), location.slot % 2 == 1, "{location:?}");
    }
}
#[test]
fn a_missing_player_ends_the_search_where_all_buckets_were_passed() {
    let (first, second) = (0, 0x8000_0000);
    let location = |slot| Location { slot, leaf: 0 };
    let mut table = Table::with_buckets(2);
    // Eight that belong into the first bucket, one of them passes it; then it has room again.
    (0..8).for_each(|slot| table.put(first, location(slot)));
    (0..5).for_each(|slot| table.remove(first, slot));
    // Seven that belong into the second, where one is already: one of these passes it too.
    (10..17).for_each(|slot| table.put(second, location(slot)));
    assert!(table.buckets.iter().all(|bucket| bucket.passed() > 0));
    assert_eq!(table.find(first, |_| false), None);
    assert_eq!(table.find(second, |_| false), None);
    assert!((10..17).all(|slot| table.find(second, |it| it == location(slot)).is_some()));
}
