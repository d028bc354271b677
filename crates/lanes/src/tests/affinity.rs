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
        let seats = LaneAffinity::new(3);
        // Each lane has 16 bits that count the threads in it.
        let inside: Arc<AtomicU64> = Arc::default();
        // The first lane has enough, so a free assignment gives another one.
        let _elsewhere: Vec<_> = (0..ENOUGH).map(|_| seats.assign(KEYS[1])).collect();
        let one = |wished: usize| {
            let (seats, inside) = (seats.clone(), Arc::clone(&inside));
            thread::spawn(move || {
                for round in 0..3 {
                    let seat = match round {
                        0 => Some(seats.assign(KEYS[0])),
                        _ => seats.assign_to(KEYS[0], wished),
                    };
                    let Some(seat) = seat else { continue };
                    let own = 1 << (16 * seat.lane());
                    let others = inside.fetch_add(own, SeqCst);
                    assert_eq!(others & !(0xffff << (16 * seat.lane())), 0, "somebody is in another lane");
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
        let seats = LaneAffinity::new(2);
        let first = seats.assign(KEYS[0]);
        assert_eq!(first.lane(), 0);
        // The other key has the first lane to itself until that has enough, and then keeps its lane.
        let many: Vec<_> = (1..=2 * ENOUGH).map(|_| seats.assign(KEYS[1])).collect();
        assert!(many.iter().all(|seat| seat.lane() == 0));
        drop(first);
        let beside = seats.assign(KEYS[0]);
        assert_eq!(beside.lane(), 1, "the first lane has enough");
        assert!(seats.assign_to(KEYS[0], 0).is_none(), "it is in the other lane");
        assert_eq!(seats.assign_to(KEYS[0], 1).map(|seat| seat.lane()), Some(1));
        drop((many, beside));
        assert_eq!(seats.assign(KEYS[0]).lane(), 0, "little is asked again");
    });
}

#[test]
fn a_key_whose_request_is_in_doubt_stays() {
    explore(1, || {
        let seats = LaneAffinity::new(2);
        let many: Vec<_> = (0..ENOUGH).map(|_| seats.assign(KEYS[1])).collect();
        let doubtful = seats.assign(KEYS[0]);
        assert_eq!(doubtful.lane(), 1);
        doubtful.keep();
        drop(many);
        assert_eq!(seats.assign(KEYS[0]).lane(), 1);
        assert_eq!(seats.assign(KEYS[1]).lane(), 0);
    });
}

#[test]
fn a_silent_lane_gets_no_other_keys() {
    explore(1, || {
        let seats = LaneAffinity::new(2);
        let stuck = seats.assign(KEYS[0]);
        assert_eq!(seats.assign(KEYS[1]).lane(), 0);
        // Real time, because the affinity reads the system's clock.
        std::thread::sleep(SILENT);
        assert_eq!(seats.assign(KEYS[1]).lane(), 1, "the first lane is silent");
        assert_eq!(seats.assign(KEYS[0]).lane(), 0, "a key stays where it is");
        drop(stuck);
        assert_eq!(seats.assign(KEYS[1]).lane(), 0, "it is done");
    });
}
