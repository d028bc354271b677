//! The content of a batch, why it ends, and what a full queue refuses.

use super::audit::Recorder;
use super::model::{Request, Store};
use super::{Boxed, explore, start};
use crate::batch::{Waiting, take};
use crate::{BatchSharing, Cut, Lane, LaneLimits, SubmitError, Weight};
use shuttle::sync::mpsc::{self, Receiver, Sender};
use std::collections::VecDeque;

const BOUNDS: LaneLimits = LaneLimits {
    batch_rows_max: 4,
    batch_bytes_max: 100,
    queue_requests_max: 3,
    queue_bytes_max: 1_000,
    retries_max: 0,
};

/// The batches of requests that are given as (rows, bytes, kind), each with its cut.
fn batches(requests: &[(u32, u32, BatchSharing)]) -> Vec<(Vec<usize>, Cut)> {
    let waiting = |(id, &(rows, bytes, kind)): (usize, &(u32, u32, BatchSharing))| Waiting {
        since: std::time::Instant::now(),
        request: id,
        reply: (),
        weight: Weight { rows, bytes },
        kind,
    };
    let mut inbox: VecDeque<_> = requests.iter().enumerate().map(waiting).collect();
    let mut batches = Vec::new();
    while !inbox.is_empty() {
        let taken = take(&mut inbox, &BOUNDS, Cut::Idle);
        let own = &requests[taken.batch.requests[0]..][..taken.batch.requests.len()];
        assert_eq!(taken.rows, own.iter().map(|one| one.0.max(1) as usize).sum::<usize>());
        assert_eq!(taken.bytes, own.iter().map(|one| one.1 as usize).sum::<usize>());
        batches.push((taken.batch.requests, taken.cut));
    }
    batches
}

#[test]
fn every_end_of_a_batch_has_its_name() {
    const A: BatchSharing = BatchSharing::Group(0);
    const B: BatchSharing = BatchSharing::Group(1);
    let plain = (1, 10, A);
    assert_eq!(batches(&[plain; 4]), [(vec![0, 1, 2, 3], Cut::Idle)], "full to the brim is not cut");
    assert_eq!(batches(&[plain; 5]), [(vec![0, 1, 2, 3], Cut::Rows), (vec![4], Cut::Idle)]);
    assert_eq!(batches(&[(1, 50, A); 3]), [(vec![0, 1], Cut::Bytes), (vec![2], Cut::Idle)]);
    assert_eq!(
        batches(&[plain, (1, 10, B), (1, 10, B), plain]),
        [(vec![0], Cut::Kind), (vec![1, 2], Cut::Kind), (vec![3], Cut::Idle)]
    );
    assert_eq!(
        batches(&[plain, (1, 10, BatchSharing::Alone), (1, 10, BatchSharing::Alone), plain]),
        [(vec![0], Cut::Kind), (vec![1], Cut::Kind), (vec![2], Cut::Kind), (vec![3], Cut::Idle)]
    );
    assert_eq!(batches(&[(0, 0, A); 5])[0].0.len(), 4, "a weight of nothing is a row");
    assert_eq!(
        batches(&[plain, (9, 10, A), (1, 999, A), plain]),
        [(vec![0], Cut::Rows), (vec![1], Cut::Rows), (vec![2], Cut::Bytes), (vec![3], Cut::Idle)],
        "what is too heavy goes alone"
    );
}

#[test]
fn cuts_are_counted_under_their_own_number() {
    for (number, cut) in Cut::ALL.into_iter().enumerate() {
        assert_eq!(cut as usize, number);
    }
    assert_eq!(Cut::ALL.map(Cut::name), ["idle", "rows", "bytes", "kind", "drain"]);
}

/// A lane whose first batch, request 0 alone, is held in the store, so that later requests wait.
struct Held {
    lane: Lane<Store, Boxed>,
    thread: crate::LaneThread<Store>,
    recorder: Recorder,
    leave: Sender<()>,
    _begun: Receiver<()>,
}

impl Held {
    fn start() -> Self {
        let (tell_begun, begun) = mpsc::channel();
        let (leave, wait_leave) = mpsc::channel();
        let store = Store { gate: Some((tell_begun, wait_leave)), ..Store::default() };
        let (lane, thread) = start(BOUNDS, store);
        let mut held = Self { lane, thread, recorder: Recorder::default(), leave, _begun: begun };
        assert!(held.submit(Request::new(0, 0)).is_ok());
        held._begun.recv().expect("the first request goes at once");
        held
    }

    fn submit(&mut self, request: Request) -> Result<(), SubmitError<(Request, Boxed)>> {
        self.lane.submit(request, self.recorder.listen(request))
    }

    /// Releases the store, and audits.
    fn finish(self) -> (Store, crate::Stats) {
        drop(self.leave);
        self.lane.drain();
        let store = self.thread.join().unwrap();
        self.recorder.audit(&store);
        (store, self.lane.stats())
    }
}

#[test]
fn what_arrives_meanwhile_is_the_next_batch() {
    explore(100, || {
        let mut held = Held::start();
        for id in 1..4 {
            held.submit(Request::new(id, 0)).unwrap();
        }
        let stats = held.lane.stats();
        assert_eq!((stats.queued_requests, stats.queued_bytes, stats.in_flight), (3, 30, 1));
        let (store, stats) = held.finish();
        assert_eq!(store.log, [vec![0], vec![1, 2, 3]]);
        assert_eq!((stats.requests, stats.rows, stats.batches, stats.batch_rows_largest), (4, 4, 2, 3));
        assert_eq!(stats.cut(Cut::Idle) + stats.cut(Cut::Drain), 2);
        assert_eq!((stats.queued_requests, stats.queued_bytes, stats.in_flight), (0, 0, 0));
    });
}

#[test]
fn a_full_queue_refuses_and_gives_back() {
    explore(100, || {
        let mut held = Held::start();
        held.submit(Request::new(1, 0)).unwrap();
        let pair = [Request::new(2, 0), Request::new(3, 0), Request::new(4, 0)];
        let many = pair.iter().map(|one| (*one, held.recorder.listen(*one))).collect();
        let refused = held.lane.submit_all(many).expect_err("one waits, three more are too many");
        assert!(matches!(refused, SubmitError::Full(_)));
        assert_eq!(refused.into_inner().iter().map(|(request, _)| request.id).collect::<Vec<_>>(), [2, 3, 4]);
        (2..5).for_each(|id| held.recorder.refused(id));
        for id in 5..7 {
            assert!(held.submit(Request::new(id, 0)).is_ok());
        }
        let refused = held.submit(Request::new(7, 0)).expect_err("three wait");
        assert!(matches!(refused, SubmitError::Full((Request { id: 7, .. }, _))));
        held.recorder.refused(7);
        let (store, stats) = held.finish();
        assert_eq!(store.log, [vec![0], vec![1, 5, 6]]);
        assert_eq!((stats.refused_full, stats.refused_draining), (4, 0));
    });
}

#[test]
fn bytes_are_bounded_but_an_empty_queue_takes_anything() {
    explore(100, || {
        let mut held = Held::start();
        let mut heavy = Request::new(1, 0);
        heavy.weight.bytes = 5_000;
        assert!(held.submit(heavy).is_ok(), "refused, it could never succeed");
        assert!(matches!(held.submit(Request::new(2, 0)), Err(SubmitError::Full(_))));
        held.recorder.refused(2);
        assert_eq!(held.finish().0.log, [[0], [1]]);
    });
}

#[test]
fn a_drain_is_the_end_of_the_last_batch() {
    explore(100, || {
        let mut held = Held::start();
        held.submit(Request::new(1, 0)).unwrap();
        held.lane.drain();
        assert!(matches!(held.submit(Request::new(2, 0)), Err(SubmitError::Draining(_))));
        held.recorder.refused(2);
        let (store, stats) = held.finish();
        assert_eq!(store.log, [[0], [1]]);
        assert_eq!((stats.cut(Cut::Drain), stats.refused_draining), (1, 1));
    });
}
