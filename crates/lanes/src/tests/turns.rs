//! Turns under every kind of schedule: those who wait for theirs never meet, and everybody has one.

use super::explore;
use super::model::{Request, Store};
use crate::turns::Turns;
use crate::{Bounds, Lane};
use shuttle::sync::atomic::{AtomicU32, Ordering::SeqCst};
use shuttle::thread;
use std::sync::Arc;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(3600);

#[test]
fn those_who_wait_for_their_turn_never_meet() {
    explore(300, || {
        let (turns, inside) = (Turns::default(), Arc::new(AtomicU32::new(0)));
        let one = |_| {
            let (turns, inside) = (turns.clone(), Arc::clone(&inside));
            thread::spawn(move || {
                for _ in 0..3 {
                    let (turn, _) = turns.take(false, LONG);
                    assert_eq!(inside.fetch_add(1, SeqCst), 0);
                    thread::yield_now();
                    inside.fetch_sub(1, SeqCst);
                    drop(turn);
                }
            })
        };
        let threads: Vec<_> = (0..3).map(one).collect();
        threads.into_iter().for_each(|thread| thread.join().expect("everybody has a turn"));
    });
}

#[test]
fn one_with_much_to_commit_goes_beside_and_the_next_waits_for_both() {
    explore(100, || {
        let turns = Turns::default();
        let (first, waited) = turns.take(false, LONG);
        assert!(!waited);
        let (second, waited) = turns.take(true, LONG);
        assert!(!waited);
        let others = turns.clone();
        let third = thread::spawn(move || others.take(false, LONG).1);
        assert!(!turns.take(false, Duration::ZERO).1, "whoever has no patience goes");
        drop(first);
        drop(second);
        third.join().expect("its turn comes");
        assert!(!turns.take(false, LONG).1, "nobody is left");
    });
}

#[test]
fn lanes_that_take_turns_answer_everybody() {
    explore(200, || {
        let (turns, bounds) = (Turns::default(), Bounds { batch_rows_max: 3, ..Bounds::default() });
        let lanes: Vec<_> = (0..2)
            .map(|_| Lane::start_among("lane", bounds, turns.clone(), Store { bounds, ..Store::default() }))
            .collect::<Result<_, _>>()
            .expect("threads");
        let mut ears = [super::Ears::default(), super::Ears::default()];
        for id in 0..4 {
            for ((lane, _), ears) in lanes.iter().zip(&mut ears) {
                let request = Request::new(id, 0);
                lane.submit(request, ears.listen(request)).expect("there is room");
            }
        }
        for ((lane, thread), ears) in lanes.into_iter().zip(&mut ears) {
            lane.drain();
            ears.audit(&thread.join().expect("the lane ends well"));
        }
    });
}
