//! Failures of a whole batch: retried, store unavailable, commit in doubt.

use super::audit::Recorder;
use super::model::{Event, Fault, Request, Store};
use super::{explore, one_batch, start};
use crate::{LaneLimits, backoff};
use shuttle::sync::mpsc;
use std::time::Duration;

const BOUNDS: LaneLimits = LaneLimits {
    batch_rows_max: 100,
    batch_bytes_max: 10_000,
    queue_requests_max: 100,
    queue_bytes_max: 10_000,
    retries_max: 3,
};

fn three() -> Vec<Request> {
    (0..3).map(|id| Request::new(id, 0)).collect()
}

#[test]
fn a_deadlock_is_retried_until_it_succeeds() {
    shuttle::check_random(
        || {
            let (recorder, store, stats) = one_batch(BOUNDS, Store::scripted(&[Event::Retry; 3]), three());
            assert!((0..3).all(|id| recorder.of(id).is_ok()));
            assert_eq!((store.commits, store.pauses, stats.retries, stats.faults), (4, 3, 3, 0));
        },
        5,
    );
}

#[test]
fn retries_are_bounded_and_end_with_the_last_fault() {
    shuttle::check_random(
        || {
            let (recorder, store, stats) = one_batch(BOUNDS, Store::scripted(&[Event::Retry; 4]), three());
            assert!((0..3).all(|id| recorder.of(id) == Err(Fault::Deadlock)));
            assert_eq!((store.commits, store.pauses, stats.retries, stats.faults), (4, 3, 3, 3));
            assert!(store.stored.is_empty());
        },
        5,
    );
}

#[test]
fn a_store_that_is_away_is_not_retried() {
    shuttle::check_random(
        || {
            let (recorder, store, _) = one_batch(BOUNDS, Store::scripted(&[Event::Unavailable]), three());
            assert!((0..3).all(|id| recorder.of(id) == Err(Fault::Unavailable)));
            assert_eq!((store.commits, store.pauses), (1, 0));
        },
        5,
    );
}

#[test]
fn a_lost_commit_that_was_durable_is_acknowledged() {
    shuttle::check_random(
        || {
            let lost = Event::Lost { committed: true, silent: 0 };
            let (recorder, store, stats) = one_batch(BOUNDS, Store::scripted(&[lost]), three());
            assert!((0..3).all(|id| recorder.of(id).is_ok()));
            assert_eq!((store.commits, stats.resolves), (1, 1));
        },
        5,
    );
}

#[test]
fn a_lost_commit_that_left_no_trace_is_retried() {
    shuttle::check_random(
        || {
            let lost = Event::Lost { committed: false, silent: 0 };
            let (recorder, store, _) = one_batch(BOUNDS, Store::scripted(&[lost]), three());
            assert!((0..3).all(|id| recorder.of(id).is_ok()));
            assert_eq!(store.log, [[0, 1, 2]]);
            let (recorder, store, stats) = one_batch(BOUNDS, Store::scripted(&[lost; 4]), three());
            assert!((0..3).all(|id| recorder.of(id) == Err(Fault::RolledBack)), "it is known, so it is said");
            assert_eq!((store.commits, stats.resolves, store.log.len()), (4, 4, 0));
        },
        5,
    );
}

/// The waiters learn at once that the outcome is unknown. The lane resolves it before it commits anything else.
#[test]
fn nothing_is_committed_before_a_lost_commit_is_resolved() {
    fn scenario(committed: bool) {
        let lost = Event::Lost { committed, silent: 3 };
        let (lane, thread) = start(BOUNDS, Store::scripted(&[lost]));
        let mut recorder = Recorder::default();
        let (sender, receiver) = mpsc::channel();
        let mut first = Some(recorder.listen(Request::new(0, 0)));
        let reply = move |answer| {
            first.take().expect("once")(answer);
            sender.send(answer).unwrap();
        };
        lane.submit(Request::new(0, 0), Box::new(reply)).unwrap();
        assert_eq!(receiver.recv(), Ok(Err(Fault::Unknown)));
        for id in 1..5 {
            let request = Request::new(id, 0);
            lane.submit(request, recorder.listen(request)).unwrap();
            shuttle::thread::yield_now();
        }
        // Only a lane that does not drain keeps trying until the commit is resolved.
        while lane.stats().resolves < 4 {
            shuttle::thread::yield_now();
        }
        lane.drain();
        let store = thread.join().unwrap();
        recorder.audit(&store);
        assert!(!store.left_unresolved());
        assert_eq!(store.log.first().is_some_and(|ids| ids == &[0]), committed);
        for id in 1..5 {
            assert!(recorder.of(id).is_ok() || recorder.of(id) == Err(Fault::Behind));
        }
    }
    explore(500, || scenario(true));
    explore(500, || scenario(false));
}

#[test]
fn a_drain_does_not_wait_for_ever_for_a_lost_commit() {
    explore(200, || {
        let lost = Event::Lost { committed: true, silent: u32::MAX };
        let (recorder, store, stats) = one_batch(BOUNDS, Store::scripted(&[lost]), three());
        assert!((0..3).all(|id| recorder.of(id) == Err(Fault::Unknown)));
        assert!(store.left_unresolved());
        assert_eq!((store.commits, stats.queued_requests, stats.in_flight), (1, 0, 0));
    });
}

#[test]
fn pauses_grow_and_stay_short() {
    let pauses: Vec<u64> = [1, 2, 3, 6, 7, 8, u32::MAX]
        .map(|attempts| u64::try_from(backoff(attempts).as_millis()).unwrap())
        .to_vec();
    assert_eq!(pauses, [1, 2, 4, 32, 50, 50, 50]);
    assert_eq!(backoff(0), Duration::from_millis(1));
}
