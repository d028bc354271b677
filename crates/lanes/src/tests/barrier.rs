//! A barrier under every kind of schedule: exclusive batches are alone, and every batch passes.

use super::explore;
use crate::{Barrier, Blocked};
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::atomic::{AtomicU32, Ordering::SeqCst};
use shuttle::thread;
use std::sync::Arc;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(3600);

/// For each place, the number of threads inside side by side, and the number inside exclusively.
type Counts = Arc<Vec<(AtomicU32, AtomicU32)>>;

const PLACES: usize = 3;

#[test]
fn an_exclusive_batch_meets_no_other_at_its_places() {
    explore(300, || {
        let barrier = Barrier::default();
        let counts: Counts = Arc::new((0..PLACES).map(|_| Default::default()).collect());
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (barrier, counts) = (barrier.clone(), Arc::clone(&counts));
                thread::spawn(move || {
                    for _ in 0..3 {
                        let (places, is_alone) =
                            (thread_rng().gen_range(1..1 << PLACES), thread_rng().gen_bool(0.5));
                        let pass = barrier.pass(places, is_alone, LONG).expect("its turn comes");
                        let mine = || counts.iter().enumerate().filter(|(at, _)| places & 1 << at != 0);
                        let count = |one: &(AtomicU32, AtomicU32), by: u32| {
                            if is_alone { &one.1 } else { &one.0 }.fetch_add(by, SeqCst);
                        };
                        mine().for_each(|(_, one)| count(one, 1));
                        thread::yield_now();
                        for (at, (beside, alone)) in mine() {
                            let (beside, alone) = (beside.load(SeqCst), alone.load(SeqCst));
                            let fits = if is_alone { (beside, alone) == (0, 1) } else { alone == 0 };
                            assert!(fits, "{alone} alone, {beside} beside at {at}");
                        }
                        mine().for_each(|(_, one)| count(one, u32::MAX));
                        drop(pass);
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("everybody comes through"));
    });
}

#[test]
fn an_exclusive_batch_meets_no_other() {
    explore(300, || {
        let barrier = Barrier::default();
        let (beside, alone) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (barrier, beside, alone) = (barrier.clone(), Arc::clone(&beside), Arc::clone(&alone));
                thread::spawn(move || {
                    for _ in 0..3 {
                        let is_alone = thread_rng().gen_bool(0.4);
                        let pass = barrier.pass(1, is_alone, LONG).expect("its turn comes");
                        let mine = if is_alone { &alone } else { &beside };
                        mine.fetch_add(1, SeqCst);
                        thread::yield_now();
                        let (beside, alone) = (beside.load(SeqCst), alone.load(SeqCst));
                        assert!(alone == 0 || (alone == 1 && beside == 0), "{alone} alone, {beside} beside");
                        assert_eq!(alone == 1, is_alone);
                        mine.fetch_sub(1, SeqCst);
                        drop(pass);
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("everybody comes through"));
    });
}

#[test]
fn those_beside_each_other_do_not_wait_for_each_other() {
    shuttle::check_random(
        || {
            let barrier = Barrier::default();
            let first = barrier.pass(1, false, LONG);
            let other = barrier.clone();
            // It would wait for ever if it waited for the first.
            let through = thread::spawn(move || other.pass(1, false, LONG).is_ok()).join();
            assert!(through.expect("a thread"));
            drop(first);
        },
        100,
    );
}

#[test]
fn one_that_loses_patience_leaves_the_line_to_the_others() {
    shuttle::check_random(
        || {
            let barrier = Barrier::default();
            let inside = barrier.pass(1, false, LONG);
            assert_eq!(
                barrier.pass(1, true, Duration::ZERO).unwrap_err(),
                Blocked::Late,
                "a batch is inside"
            );
            assert!(barrier.pass(1, false, LONG).is_ok(), "no batch waits in front any more");
            drop(inside);
            assert!(barrier.pass(1, true, LONG).is_ok());
        },
        100,
    );
}

#[test]
fn no_batch_waits_for_one_that_is_stuck() {
    shuttle::check_random(
        || {
            let barrier = Barrier::default();
            let lost = barrier.pass(2, false, LONG).unwrap();
            let other = barrier.clone();
            let waiting = thread::spawn(move || other.pass(7, true, LONG).unwrap_err());
            lost.mark_stuck();
            assert_eq!(waiting.join().expect("a thread"), Blocked::Stuck(2));
            assert_eq!(barrier.pass(3, true, LONG).unwrap_err(), Blocked::Stuck(2));
            // Batches of other places pass, and so do batches that may share the place.
            assert!(barrier.pass(5, true, LONG).is_ok() && barrier.pass(2, false, LONG).is_ok());
            drop(lost);
            assert!(barrier.pass(7, true, LONG).is_ok());
        },
        100,
    );
}
