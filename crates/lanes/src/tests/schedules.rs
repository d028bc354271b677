//! Many concurrent callers, under every kind of schedule, with every kind of failure.

use super::audit::Recorder;
use super::model::{Event, Request, Store};
use super::{Boxed, explore, start};
use crate::{Lane, LaneLimits, SubmitError, Weight};
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::mpsc;
use shuttle::thread;

const TIGHT: LaneLimits = LaneLimits {
    batch_rows_max: 3,
    batch_bytes_max: 45,
    queue_requests_max: 6,
    queue_bytes_max: 90,
    retries_max: 2,
};

/// Random requests of one caller, alone or as neighbours. Records refusals and checks that refused requests came
/// back whole.
fn call(lane: &Lane<Store, Boxed>, mut recorder: Recorder, caller: u32, count: u32) -> Recorder {
    let mut rng = thread_rng();
    let mut next = caller * 100;
    let end = next + count;
    while next < end {
        let size = rng.gen_range(1..=3).min(end - next);
        let requests: Vec<Request> = (next..next + size).map(|id| random_request(id, &mut rng)).collect();
        next += size;
        let ids: Vec<u32> = requests.iter().map(|request| request.id).collect();
        let mut many: Vec<_> = requests.iter().map(|one| (*one, recorder.listen(*one))).collect();
        let back = if size == 1 {
            let (request, reply) = many.remove(0);
            lane.submit(request, reply).map_err(|refused| vec![refused.into_inner()])
        } else {
            recorder.grouped(ids.clone());
            lane.submit_all(many).map_err(SubmitError::into_inner)
        };
        if let Err(back) = back {
            assert_eq!(back.iter().map(|(request, _)| *request).collect::<Vec<_>>(), requests);
            ids.into_iter().for_each(|id| recorder.refused(id));
        }
    }
    recorder
}

fn random_request(id: u32, rng: &mut impl Rng) -> Request {
    let mut request = Request::new(id, rng.gen_range(0..3));
    request.weight = Weight { rows: rng.gen_range(1..=4), bytes: rng.gen_range(1..=50) };
    if rng.gen_bool(0.2) {
        request.kind =
            if rng.gen_bool(0.5) { crate::BatchSharing::Alone } else { crate::BatchSharing::Group(1) };
    }
    request
}

/// A store in which about every third commit fails in some way.
fn hostile() -> Store {
    let mut rng = thread_rng();
    let poison = (0..400).filter(|_| rng.gen_bool(0.1)).collect();
    let script = move |_| match rng.gen_range(0..15) {
        0 | 1 => Event::Retry,
        2 => Event::Unavailable,
        3 | 4 => Event::Lost { committed: rng.gen_bool(0.5), silent: rng.gen_range(0..4) },
        _ => Event::Fine,
    };
    Store { script: Box::new(script), poison, ..Store::default() }
}

fn many_callers(store: Store, bounds: LaneLimits, drain_midway: bool) {
    let (lane, lane_thread) = start(bounds, store);
    let mut recorder = Recorder::default();
    let callers: Vec<_> = (0..3)
        .map(|caller| {
            let (lane, recorder) = (lane.clone(), recorder.clone());
            thread::spawn(move || call(&lane, recorder, caller, 5))
        })
        .collect();
    if drain_midway {
        lane.drain();
        let mut late = recorder.clone();
        let request = Request::new(300, 0);
        let refused = lane.submit(request, late.listen(request));
        assert!(matches!(refused, Err(SubmitError::Draining(_))), "a draining lane takes nothing");
        late.refused(300);
        recorder.merge(late);
    }
    for caller in callers {
        recorder.merge(caller.join().unwrap());
    }
    // Without an earlier drain, dropping the last handle ends the lane.
    drop(lane);
    let store = lane_thread.join().unwrap();
    recorder.audit(&store);
}

#[test]
fn many_callers_of_a_good_store() {
    explore(1_500, || many_callers(Store::default(), LaneLimits::default(), false));
}

#[test]
fn many_callers_of_a_hostile_store_within_tight_bounds() {
    explore(3_000, || many_callers(hostile(), TIGHT, false));
}

#[test]
fn a_drain_in_the_middle_answers_what_was_accepted() {
    explore(2_000, || many_callers(Store::default(), TIGHT, true));
}

#[test]
fn a_drain_in_the_middle_of_a_hostile_store() {
    explore(3_000, || many_callers(hostile(), TIGHT, true));
}

/// A lost wake-up would leave a caller waiting for ever, which shuttle reports as a deadlock.
#[test]
fn callers_that_wait_for_each_answer_are_woken() {
    explore(1_500, || {
        let (lane, lane_thread) = start(TIGHT, hostile());
        let callers: Vec<_> = (0..3)
            .map(|caller| {
                let lane = lane.clone();
                thread::spawn(move || {
                    for id in caller * 100..caller * 100 + 3 {
                        let (sender, receiver) = mpsc::channel();
                        let reply: Boxed = Box::new(move |answer| sender.send(answer).unwrap());
                        lane.submit(Request::new(id, 0), reply).expect("three callers fit the queue");
                        let _any = receiver.recv().expect("an answer comes");
                    }
                })
            })
            .collect();
        callers.into_iter().for_each(|caller| caller.join().unwrap());
        let stats = lane.stats();
        assert_eq!(stats.requests + stats.shed, 9, "an answered request is counted");
        lane.drain();
        lane_thread.join().unwrap();
    });
}

#[test]
fn a_caller_that_disconnects_disturbs_no_other() {
    explore(1_000, || {
        let (lane, lane_thread) = start(TIGHT, Store::default());
        let mut recorder = Recorder::default();
        let gone = {
            let lane = lane.clone();
            thread::spawn(move || {
                for id in 100..103 {
                    let (sender, receiver) = mpsc::channel();
                    // A reply ignores that its caller no longer waits.
                    let reply: Boxed = Box::new(move |answer| {
                        let _no_receiver = sender.send(answer);
                    });
                    let taken = lane.submit(Request::new(id, 1), reply).is_ok();
                    drop(receiver);
                    assert!(taken, "three and three fit the queue");
                }
            })
        };
        for id in 0..3 {
            let request = Request::new(id, 0);
            lane.submit(request, recorder.listen(request)).expect("three and three fit the queue");
        }
        gone.join().unwrap();
        lane.drain();
        let store = lane_thread.join().unwrap();
        assert_eq!(recorder.outcomes().len(), 3);
        assert_eq!(store.stored, [(0, 6), (1, 101 + 102 + 103)].into(), "what was accepted was done");
        assert_eq!(store.shown, store.stored);
    });
}
