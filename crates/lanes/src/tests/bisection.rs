//! Bisection: poison requests fail alone; all other requests commit, in order.

use super::model::{Event, Fault, Request, Store};
use super::one_batch;
use crate::LaneLimits;

/// Every set of poison requests among up to six requests, on two keys.
#[test]
fn every_set_of_poison_requests() {
    shuttle::check_random(
        || {
            for count in 1..=6 {
                for set in 0..1_u32 << count {
                    let poison = (0..count).filter(|id| set >> id & 1 == 1).collect();
                    let store = Store { poison, ..Store::default() };
                    let requests = (0..count).map(|id| Request::new(id, (id % 2) as u8)).collect();
                    let (recorder, _, stats) = one_batch(LaneLimits::default(), store, requests);
                    for id in 0..count {
                        assert_eq!(recorder.of(id).is_err(), set >> id & 1 == 1, "{id} of set {set:b}");
                        assert!(recorder.of(id).is_ok() || recorder.of(id) == Err(Fault::Poison));
                    }
                    assert!(stats.commits < 2 * u64::from(count));
                    assert_eq!(stats.commits, 2 * stats.splits + 1);
                    assert_eq!(stats.faults, u64::from(set.count_ones()));
                    assert_eq!(stats.batches, 1);
                }
            }
        },
        2,
    );
}

#[test]
fn one_poison_request_costs_a_logarithm() {
    shuttle::check_random(
        || {
            for (count, halvings) in [(64_u32, 6), (100, 7)] {
                for poison in 0..count {
                    let store = Store { poison: [poison].into(), ..Store::default() };
                    let requests = (0..count).map(|id| Request::new(id, 0)).collect();
                    let (_, store, stats) = one_batch(LaneLimits::default(), store, requests);
                    assert!(stats.commits <= 2 * halvings + 1, "{} commits", stats.commits);
                    assert_eq!(store.log.iter().map(Vec::len).sum::<usize>(), count as usize - 1);
                }
            }
        },
        1,
    );
}

/// The audit holds for every failure of the n-th commit of a bisected batch.
#[test]
fn every_failure_at_every_commit_of_a_bisected_batch() {
    shuttle::check_random(
        || {
            let lost = |committed, silent| Event::Lost { committed, silent };
            let events = [
                Event::Retry,
                Event::Unavailable,
                lost(true, 0),
                lost(false, 0),
                lost(true, 1),
                lost(false, 1),
                lost(true, 99),
                lost(false, 99),
            ];
            for poison in 0..6 {
                for event in events {
                    for at in 0..8 {
                        let script = move |call| if call == at { event } else { Event::Fine };
                        let store =
                            Store { script: Box::new(script), poison: [poison].into(), ..Store::default() };
                        let requests = (0..6).map(|id| Request::new(id, (id % 2) as u8)).collect();
                        let (_, store, _) = one_batch(LaneLimits::default(), store, requests);
                        assert!(store.commits >= 1);
                    }
                }
            }
        },
        1,
    );
}

#[test]
fn a_store_that_goes_away_during_a_bisection_is_not_tried_again() {
    shuttle::check_random(
        || {
            // The whole and its first half: refused. The first quarter: store unavailable. Nothing after it is tried.
            let mut store = Store::scripted(&[Event::Fine, Event::Fine, Event::Unavailable]);
            store.poison = [1, 7].into();
            let requests = (0..8).map(|id| Request::new(id, 0)).collect();
            let (recorder, store, stats) = one_batch(LaneLimits::default(), store, requests);
            assert_eq!(store.commits, 3);
            assert!(store.log.is_empty());
            assert!((0..8).all(|id| recorder.of(id) == Err(Fault::Unavailable)));
            assert_eq!(stats.faults, 8);
        },
        5,
    );
}

#[test]
fn a_piece_that_cannot_be_done_now_fails_alone() {
    shuttle::check_random(
        || {
            // The whole and its first half: refused. The first quarter cannot commit now; the pieces after it can.
            let mut store = Store::scripted(&[Event::Fine, Event::Fine, Event::Piece]);
            store.poison = [1].into();
            let requests = (0..8).map(|id| Request::new(id, 0)).collect();
            let (recorder, store, stats) = one_batch(LaneLimits::default(), store, requests);
            assert_eq!((store.commits, stats.faults, stats.retries), (5, 2, 0));
            assert!((0..8).all(|id| (recorder.of(id) == Err(Fault::Unavailable)) == (id < 2)));
        },
        5,
    );
}
