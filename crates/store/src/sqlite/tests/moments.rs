//! Reads beside a continuous flush: every read is of one moment, and no row is missing from both places.

use super::*;
use crate::{Reads, Transactions};
use std::sync::atomic::{AtomicBool, AtomicI64};

const PLAYERS: usize = 60;

fn names() -> impl Iterator<Item = String> {
    (0..PLAYERS).map(|row| format!("{row:03}"))
}

/// Every transaction gives all players one score, so a read of two scores has seen half of a transaction. Scores only grow,
/// so a read of less than was acknowledged has missed a transaction.
#[test]
fn reads_beside_writes_and_flushes_see_whole_transactions_and_the_newest() {
    let place = Place::new();
    let store = place.open().unwrap();
    put(&store, names(), 0).unwrap();
    let (stop, acknowledged) = (AtomicBool::new(false), AtomicI64::new(0));
    let keys: Vec<ScoreKey> = names().map(|name| key(&name)).collect();
    let see = |read: &dyn Fn() -> Vec<i64>| {
        while !stop.load(Ordering::Relaxed) {
            let before = acknowledged.load(Ordering::SeqCst);
            let seen = read();
            assert_eq!(seen.len(), PLAYERS);
            assert!(seen.iter().all(|score| *score == seen[0]), "half of one: {seen:?}");
            assert!(seen[0] >= before, "{} is older than {before}", seen[0]);
        }
    };
    std::thread::scope(|scope| {
        let _stops = Stops(&stop);
        scope.spawn(|| {
            see(&|| store.records(&keys).unwrap().into_iter().map(|record| record.unwrap().score).collect());
        });
        scope.spawn(|| {
            see(&|| {
                let mut seen = Vec::new();
                let mut each = |_: PlayerId, record: Record| seen.push(record.score);
                store.scan_scores(BoardNo(1), Window(0), None, usize::MAX, &mut each).unwrap();
                seen
            });
        });
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                store.shared.flushing.flush_now(&store.shared).unwrap();
            }
        });
        for round in 1..=300 {
            let durability = if round % 3 == 0 { Durability::Commit } else { Durability::Relaxed };
            put_as(&store, names(), round, durability).unwrap();
            acknowledged.store(round, Ordering::SeqCst);
        }
    });
    assert!(gauge(&store, "flushes") > 1.0);
}

#[test]
fn a_walk_lays_changes_and_removals_over_the_tables() {
    let place = Place::new();
    let store = place.open().unwrap();
    put(&store, (0..100).map(|row| format!("{row:03}")), 1).unwrap();
    store.checkpoint().unwrap();
    // Removed, changed and new ones, at the ends and in the middle, in both memtables.
    let removed = |row: i32| row % 7 == 0 || (40..60).contains(&row);
    let scores = (0..110).filter(|row| removed(*row) || row % 5 == 0 || *row >= 100).map(|row| {
        let record = Record { score: 2, subscore: 0, at: Micros(0) };
        (key(&format!("{row:03}")), (!removed(row)).then_some(record))
    });
    let scores: Vec<_> = scores.collect();
    store
        .run(&ReadSet::default(), &mut |_| WriteSet { scores: scores.clone(), ..WriteSet::default() })
        .unwrap();
    let wanted: Vec<(String, i64)> = (0..110)
        .filter(|row| !removed(*row))
        .map(|row| (format!("{row:03}"), if row % 5 == 0 || row >= 100 { 2 } else { 1 }))
        .collect();
    let walk = |page: usize| {
        let mut found: Vec<(String, i64)> = Vec::new();
        loop {
            let after = found.last().map(|(name, _)| PlayerId::new(name).unwrap());
            let mut each =
                |player: PlayerId, record: Record| found.push((player.as_str().to_owned(), record.score));
            if store.scan_scores(BoardNo(1), Window(0), after.as_ref(), page, &mut each).unwrap() < page {
                return found;
            }
        }
    };
    for page in [1, 2, 3, 7, 19, 20, 21, 50, 200] {
        assert_eq!(walk(page), wanted, "pages of {page}");
    }
    store.shared.flushing.flush_now(&store.shared).unwrap();
    assert_eq!(walk(9), wanted);
}
