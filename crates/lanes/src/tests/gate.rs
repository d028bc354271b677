//! A gate under every kind of schedule: whoever is alone is alone, and everybody comes through.

use super::explore;
use crate::Gate;
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::atomic::{AtomicU32, Ordering::SeqCst};
use shuttle::thread;
use std::sync::Arc;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(3600);

#[test]
fn one_that_is_alone_meets_nobody() {
    explore(300, || {
        let gate = Gate::default();
        let (beside, alone) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (gate, beside, alone) = (gate.clone(), Arc::clone(&beside), Arc::clone(&alone));
                thread::spawn(move || {
                    for _ in 0..3 {
                        let is_alone = thread_rng().gen_bool(0.4);
                        let pass = gate.pass(is_alone, LONG).expect("its turn comes");
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
            let gate = Gate::default();
            let first = gate.pass(false, LONG);
            let other = gate.clone();
            // It would wait for ever if it waited for the first.
            let through = thread::spawn(move || other.pass(false, LONG).is_some()).join();
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
            let gate = Gate::default();
            let inside = gate.pass(false, LONG);
            assert!(gate.pass(true, Duration::ZERO).is_none(), "somebody is inside");
            assert!(gate.pass(false, LONG).is_some(), "nobody waits in front any more");
            drop(inside);
            assert!(gate.pass(true, LONG).is_some());
        },
        100,
    );
}
