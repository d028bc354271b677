//! Kills one of the databases under load, at random moments, and compares the content of all with the acknowledged writes:
//! exactly.
//!
//! A caller of a lost commit queries its outcome, so at the end every caller knows what was done.

use super::*;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Instant;
use tally_store::Reads;
use tally_testkit::rng::soak;
use tally_testkit::{Rng, SetAtEnd, wait_until};

const THREADS: usize = 4;

#[test]
fn a_killed_shard_has_exactly_what_was_acknowledged() {
    let mut rng = Rng::of("kill a shard");
    let mut servers = [(); 2].map(|()| ScratchDatabase::start(DatabaseKind::MariaDb10));
    let urls = servers.each_ref().map(ScratchDatabase::create_database);
    let mut store = open(&urls);
    let plans: Vec<ReadSet> = (0..THREADS)
        .map(|thread| of_shard(&store, &counters(&store, &format!("{thread}")), thread % 2))
        .collect();
    let mut acknowledged = [0; THREADS];
    for round in 0..soak(4) {
        let (commits, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let until = 20 + rng.below(60);
        std::thread::scope(|scope| {
            let end = SetAtEnd::new(&stop);
            for (plan, acknowledged) in plans.iter().zip(&mut acknowledged) {
                let (store, commits, stop) = (&store, &commits, &stop);
                scope.spawn(move || {
                    while !stop.load(Relaxed) {
                        *acknowledged += add_and_find_out(store, plan);
                        commits.fetch_add(1, Relaxed);
                    }
                });
            }
            wait_until("there are commits", || commits.load(Relaxed) >= until);
            let server = &mut servers[(rng.below(2)) as usize];
            server.kill();
            server.restart();
            drop(end);
        });
        if round % 2 == 1 {
            store = open(&urls);
        }
        // A machine under load may take longer than a shard is waited for.
        plans.iter().for_each(|plan| drop(retry_while_unavailable(|| store.records(&plan.scores))));
        let found: Vec<i64> = plans.iter().map(|plan| count(&store, plan)).collect();
        assert_eq!(found, acknowledged);
    }
    assert!(acknowledged.iter().sum::<i64>() > 0);
}

/// Adds one to each counter of a thread; returns how much was added.
fn add_and_find_out(store: &dyn Store, plan: &ReadSet) -> i64 {
    let batch = match store.run(plan, &mut |loaded| one_more(plan, loaded)) {
        Ok(_) => return 1,
        Err(StoreError::InDoubt { batch, .. }) => batch,
        Err(StoreError::ShardUnavailable { .. } | StoreError::Conflict(_)) => return 0,
        Err(error) => panic!("{error}"),
    };
    let began = Instant::now();
    loop {
        match store.resolve(&batch) {
            Ok(done) => return done.is_some().into(),
            Err(error @ (StoreError::ShardUnavailable { .. } | StoreError::Conflict(_))) => {
                assert!(began.elapsed() < GIVE_UP, "the outcome is never known: {error}");
                std::thread::yield_now();
            }
            Err(error) => panic!("{error}"),
        }
    }
}
