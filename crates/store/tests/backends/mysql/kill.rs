//! Kills the database under load, at random moments, and compares its content with the acknowledged writes: exactly.
//!
//! A caller of a lost commit queries its outcome, so at the end every caller knows what was done.

use super::*;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Instant;
use tally_testkit::rng::soak;
use tally_testkit::{Rng, SetAtEnd, wait_until};

for_both!(a_killed_database_has_exactly_what_was_acknowledged);

const THREADS: usize = 4;

fn a_killed_database_has_exactly_what_was_acknowledged(kind: DatabaseKind) {
    let mut rng = Rng::of("kill the database");
    let mut server = ScratchDatabase::start(kind);
    let store = open(&server.create_database());
    let mut acknowledged = [0; THREADS];
    for _ in 0..soak(3) {
        let commits = AtomicU64::new(0);
        let stop = AtomicBool::new(false);
        let until = 20 + rng.below(200);
        std::thread::scope(|scope| {
            let end = SetAtEnd::new(&stop);
            for (thread, acknowledged) in acknowledged.iter_mut().enumerate() {
                let (store, commits, stop) = (&store, &commits, &stop);
                scope.spawn(move || {
                    while !stop.load(Relaxed) {
                        *acknowledged += add_and_find_out(store, thread);
                        commits.fetch_add(1, Relaxed);
                    }
                });
            }
            wait_until("there are commits", || commits.load(Relaxed) >= until);
            server.kill();
            server.restart();
            drop(end);
        });
        let found: Vec<i64> = (0..THREADS).map(|thread| counters(&store, thread)).collect();
        assert_eq!(found, acknowledged);
    }
    assert!(acknowledged.iter().sum::<i64>() > 0);
}

fn keys(thread: usize) -> ReadSet {
    plan_of(["a", "b", "c"].map(|name| key(1, 0, &format!("{name} {thread}"))).to_vec())
}

/// The counters of a thread, which are always equal.
fn counters(store: &dyn Store, thread: usize) -> i64 {
    let found = store.records(&keys(thread).scores).unwrap();
    let counts: Vec<i64> = found.iter().map(|found| found.map_or(0, |found| found.score)).collect();
    assert!(counts.windows(2).all(|pair| pair[0] == pair[1]), "half a batch: {counts:?}");
    counts[0]
}

/// Adds one to each counter of a thread; returns how much was added.
fn add_and_find_out(store: &dyn Store, thread: usize) -> i64 {
    let plan = keys(thread);
    let done = store.run(&plan, &mut |loaded| {
        let next = |old: &Option<Record>| Record { score: old.map_or(0, |old| old.score) + 1, ..record(0) };
        let rows = plan.scores.iter().cloned().zip(loaded.scores.iter().map(|old| Some(next(old))));
        scores(rows.collect())
    });
    let batch = match done {
        Ok(_) => return 1,
        Err(StoreError::InDoubt { batch, .. }) => batch,
        Err(StoreError::Unavailable(_) | StoreError::Conflict(_)) => return 0,
        Err(error) => panic!("{error}"),
    };
    let began = Instant::now();
    loop {
        match store.resolve(&batch) {
            Ok(done) => return done.is_some().into(),
            Err(error @ (StoreError::Unavailable(_) | StoreError::Conflict(_))) => {
                assert!(began.elapsed() < GIVE_UP, "the outcome is never known: {error}");
                std::thread::yield_now();
            }
            Err(error) => panic!("{error}"),
        }
    }
}
