//! Orders with the real capacities, large enough for several levels and a split id table.
//!
//! The model test has small leaves and a few hundred players; the effects of size are here.

use tally_index::{Builder, Duplicate, Entry, RankingIndex, Tie};

const PLAYERS: u64 = 100_000;

fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number ^ (number >> 27)
}

fn id(player: u64) -> [u8; 16] {
    let mut id = [b'p'; 16];
    id[..8].copy_from_slice(&mix(player).to_be_bytes());
    id
}

fn entry(player: u64) -> Entry<i64> {
    Entry { score: (mix(player + 1) % 30_000) as i64, stamp: (mix(player + 2) % 50) as i64 }
}

/// All rows in order, and the ranks of some.
fn assert_same(one: &RankingIndex<i64>, other: &RankingIndex<i64>) {
    assert_eq!(one.len(), other.len());
    assert!(one.range(0).eq(other.range(0)));
    for (place, row) in one.range(0).enumerate().step_by(997) {
        assert_eq!(one.ordinal(row.id), Some(place as u64));
        assert_eq!(other.ordinal(row.id), Some(place as u64));
        assert_eq!(one.count_better(row.score), other.count_better(row.score));
        assert_eq!(one.count_distinct_better(row.score), other.count_distinct_better(row.score));
    }
}

#[test]
fn one_by_one_equals_bulk_and_shrinks_again() {
    let mut order = RankingIndex::<i64>::new(Tie::StampDescending, true);
    let mut builder = Builder::<i64>::new(Tie::StampDescending, true);
    for player in 0..PLAYERS {
        order.set(&id(player), entry(player + 7));
        builder.push(&id(player), entry(player));
    }
    for player in (0..PLAYERS).rev() {
        assert_eq!(order.set(&id(player), entry(player)), Some(entry(player + 7)));
    }
    order.check();
    let built = builder.finish().expect("ids are distinct");
    built.check();
    assert_same(&order, &built);

    let full = order.bytes();
    for player in 500..PLAYERS {
        assert_eq!(order.remove(&id(player)), Some(entry(player)));
    }
    order.check();
    assert_eq!(order.len(), 500);
    // The same players again take the same memory.
    for player in 500..PLAYERS {
        order.set(&id(player), entry(player));
    }
    order.check();
    assert_same(&order, &built);
    assert!(order.bytes() < full * 11 / 10, "{} bytes, {full} before", order.bytes());
}

#[test]
fn scores_in_order_fill_the_leaves() {
    let players = 20_000;
    let bytes = [1, -1].map(|direction| {
        let mut order = RankingIndex::<i64>::new(Tie::StampAscending, false);
        for player in 0..players {
            order.set(&id(player), Entry { score: direction * player as i64, stamp: 0 });
        }
        order.check();
        order.bytes()
    });
    for bytes in bytes {
        assert!(bytes < players * 48, "{bytes} bytes for {players} players");
    }
}

#[test]
fn wide_entries_among_narrow_ones_split_their_leaves() {
    // By id, so that the stamp, which takes eight bytes in one of seven, does not change the order.
    let wide = |player: u64| if player % 7 == 3 { i64::MAX - player as i64 } else { 0 };
    let mut order = RankingIndex::<i64>::new(Tie::Id, true);
    for player in 0..5_000 {
        order.set(&id(player), Entry { score: 0, stamp: 0 });
    }
    order.check();
    for player in 0..5_000 {
        order.set(&id(player), Entry { score: 0, stamp: wide(player) });
    }
    order.check();
    for player in (0..5_000).filter(|player| player % 9 != 0) {
        assert_eq!(order.remove(&id(player)), Some(Entry { score: 0, stamp: wide(player) }));
    }
    order.check();
    for player in (0..5_000).step_by(9) {
        assert_eq!(order.get(&id(player)), Some(Entry { score: 0, stamp: wide(player) }));
    }
}

#[test]
fn an_id_pushed_twice_is_an_error() {
    let mut builder = Builder::<i64>::new(Tie::Id, false);
    for player in [1, 2, 3, 2, 4] {
        builder.push(&id(player), entry(player));
    }
    let error = builder.finish().expect_err("player 2 is there twice");
    assert_eq!(error, Duplicate { id: id(2).to_vec() });
}

#[test]
fn an_empty_order_answers() {
    let built = Builder::<[i64; 2]>::new(Tie::Id, true).finish().expect("no ids at all");
    for order in [RankingIndex::<[i64; 2]>::new(Tie::Id, true), built] {
        order.check();
        assert!(order.is_empty());
        assert_eq!(order.get(b"x"), None);
        assert_eq!(order.ordinal(b"x"), None);
        assert_eq!(order.at(0), None);
        assert_eq!(order.count_at_least([i64::MAX; 2]), 0);
        assert_eq!(order.count_distinct_better([0; 2]), 0);
        assert_eq!(order.lower_bound([0; 2], 0, b"x"), 0);
        assert_eq!(order.range(0).count() + order.range_back(0).count(), 0);
    }
}

#[test]
fn extremes_are_stored_exactly() {
    let mut order = RankingIndex::<i64>::new(Tie::StampDescending, true);
    let ends = [i64::MIN, -1, 0, 1, i64::MAX];
    for (player, (score, stamp)) in ends.iter().flat_map(|&it| ends.map(|other| (it, other))).enumerate() {
        order.set(&id(player as u64), Entry { score, stamp });
        assert_eq!(order.get(&id(player as u64)), Some(Entry { score, stamp }));
    }
    order.check();
    assert_eq!(order.count_better(i64::MIN), 0);
    assert_eq!(order.count_at_least(i64::MAX), 25);
    assert_eq!(order.count_distinct_better(i64::MAX), 4);
}

#[test]
#[should_panic(expected = "a player id has 1 to 255 bytes")]
fn an_empty_id_is_refused() {
    RankingIndex::<i64>::new(Tie::Id, false).set(b"", Entry::default());
}
