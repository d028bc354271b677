//! Lane affinity under every kind of schedule: a key is in one lane at a time, and low load uses few lanes.

use super::explore;
use crate::affinity::{ENOUGH, LaneAffinity, SILENT};
use shuttle::sync::atomic::{AtomicU64, Ordering::SeqCst};
use shuttle::thread;
use std::sync::Arc;

/// A hash of each of the two buckets that tests have.
const KEYS: [u64; 2] = [0, 1 << 32];

#[test]
fn a_key_is_never_in_two_lanes() {
    explore(400, || {
        let affinity = LaneAffinity::new(3);
        // Each lane has 16 bits that count the threads in it.
        let inside: Arc<AtomicU64> = Arc::default();
        // The first lane has enough, so a free assignment gives another one.
        let _elsewhere: Vec<_> = (0..ENOUGH).map(|_| affinity.assign(KEYS[1])).collect();
        let one = |requested: usize| {
            let (affinity, inside) = (affinity.clone(), Arc::clone(&inside));
            thread::spawn(move || {
                for round in 0..3 {
                    let guard = match round {
                        0 => Some(affinity.assign(KEYS[0])),
                        _ => affinity.assign_to(KEYS[0], requested),
                    };
                    let Some(guard) = guard else { continue };
                    let own = 1 << (16 * guard.lane());
                    let others = inside.fetch_add(own, SeqCst);
                    assert_eq!(others & !(0xffff << (16 * guard.lane())), 0, "another lane has the same key");
                    thread::yield_now();
                    inside.fetch_sub(own, SeqCst);
                }
            })
        };
        let threads: Vec<_> = (0..3).map(one).collect();
        threads.into_iter().for_each(|thread| thread.join().expect("it ends well"));
    });
}

#[test]
fn as_few_lanes_are_used_as_are_enough() {
    explore(1, || {
        let affinity = LaneAffinity::new(2);
        let first = affinity.assign(KEYS[0]);
        assert_eq!(first.lane(), 0);
        // The other key has the first lane to itself until that has enough, and then keeps its lane.
        let many: Vec<_> = (1..=2 * ENOUGH).map(|_| affinity.assign(KEYS[1])).collect();
        assert!(many.iter().all(|guard| guard.lane() == 0));
        drop(first);
        let beside = affinity.assign(KEYS[0]);
        assert_eq!(beside.lane(), 1, "the first lane has enough");
        assert!(affinity.assign_to(KEYS[0], 0).is_none(), "it is in the other lane");
        assert_eq!(affinity.assign_to(KEYS[0], 1).map(|guard| guard.lane()), Some(1));
        drop((many, beside));
        assert_eq!(affinity.assign(KEYS[0]).lane(), 0, "little is asked again");
    });
}

#[test]
fn a_key_whose_request_is_in_doubt_stays() {
    explore(1, || {
        let affinity = LaneAffinity::new(2);
        let many: Vec<_> = (0..ENOUGH).map(|_| affinity.assign(KEYS[1])).collect();
        let doubtful = affinity.assign(KEYS[0]);
        assert_eq!(doubtful.lane(), 1);
        doubtful.keep();
        drop(many);
        assert_eq!(affinity.assign(KEYS[0]).lane(), 1);
        assert_eq!(affinity.assign(KEYS[1]).lane(), 0);
    });
}

#[test]
fn a_silent_lane_gets_no_other_keys() {
    explore(1, || {
        let affinity = LaneAffinity::new(2);
        let stuck = affinity.assign(KEYS[0]);
        assert_eq!(affinity.assign(KEYS[1]).lane(), 0);
        // Real time, because the affinity reads the system's clock.
        std::thread::sleep(SILENT);
        assert_eq!(affinity.assign(KEYS[1]).lane(), 1, "the first lane is silent");
        assert_eq!(affinity.assign(KEYS[0]).lane(), 0, "a key stays where it is");
        drop(stuck);
        assert_eq!(affinity.assign(KEYS[1]).lane(), 0, "it is done");
    });
}
