//! The lane as other crates link it: primitives of `std`, threads of the system, and a thread that panics.
//!
//! The interleavings are searched in the unit tests. This shows that the same code holds without shuttle, and the callers'
//! view of a dead lane.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;
use tally_lanes::{
    Barrier, BatchFailure, BatchHandler, Blocked, Lane, LaneLimits, Reply, SubmitError, Weight,
};

/// Adds up; every 10th number is a poison request, every 7th commit must be retried.
#[derive(Default)]
struct Sum {
    total: u64,
    commits: u64,
    /// Reports that the first batch has begun, then waits for permission to go on.
    gate: Option<(mpsc::Sender<()>, mpsc::Receiver<()>)>,
}

/// Numbers that end the lane's thread, and the step at which they do.
const PANIC_IN_COMMIT: u64 = u64::MAX;
const PANIC_IN_PUBLISH: u64 = u64::MAX - 1;

impl BatchHandler for Sum {
    type Request = u64;
    type Answer = u64;
    type Fault = &'static str;
    type Committed = ();

    fn weight(_request: &u64) -> Weight {
        Weight { rows: 1, bytes: 8 }
    }

    fn commit(&mut self, batch: &[u64]) -> Result<(), BatchFailure<&'static str>> {
        if let Some((begun, leave)) = self.gate.take() {
            begun.send(()).expect("the test waits for it");
            leave.recv().expect("the test lets it go on");
        }
        assert!(!batch.contains(&PANIC_IN_COMMIT), "a bug in commit, made for this test");
        self.commits += 1;
        if self.commits.is_multiple_of(7) {
            Err(BatchFailure::Retry("deadlock"))
        } else if batch.iter().any(|number| number.is_multiple_of(10)) {
            Err(BatchFailure::PoisonRequest("poison"))
        } else {
            Ok(())
        }
    }

    fn publish(&mut self, batch: Vec<u64>, (): ()) -> Vec<u64> {
        if batch.contains(&PANIC_IN_PUBLISH) {
            return Vec::new();
        }
        self.total += batch.iter().sum::<u64>();
        batch
    }

    fn pause(&mut self, _attempts: u32) {
        thread::yield_now();
    }
}

type Outcome = Result<u64, &'static str>;

/// A reply of its own type, as an edge would write it.
struct ReplyTo(mpsc::Sender<Outcome>);

impl Reply<Outcome> for ReplyTo {
    fn send(self, answer: Outcome) {
        // The caller has dropped its reply; there is no receiver.
        let _ = self.0.send(answer);
    }
}

#[test]
fn threads_of_the_system_get_their_answers() {
    let bounds = LaneLimits { batch_rows_max: 16, ..LaneLimits::default() };
    let (lane, lane_thread) = Lane::start("sum", bounds, Sum::default()).unwrap();
    thread::scope(|scope| {
        for caller in 0..8 {
            let lane = lane.clone();
            scope.spawn(move || {
                let (tell, hear) = mpsc::channel();
                let numbers = caller * 1_000 + 1..caller * 1_000 + 1_000;
                for number in numbers.clone() {
                    lane.submit(number, ReplyTo(tell.clone())).expect("there is room");
                }
                for number in numbers {
                    let due = if number % 10 == 0 { Err("poison") } else { Ok(number) };
                    assert_eq!(hear.recv(), Ok(due), "in the order of the requests");
                }
            });
        }
    });
    let stats = lane.stats();
    assert_eq!(stats.requests, 8 * 999);
    assert_eq!(stats.faults, 8 * 99);
    assert!(stats.busy >= stats.committing);
    drop(lane);
    let sum = lane_thread.join().expect("the last handle has drained it");
    assert_eq!(sum.total, (1..8_000_u64).filter(|number| number % 10 != 0).sum::<u64>());
}

/// A panic of the lane's thread, for the callers: dropped replies, and a closed queue.
fn dies(of: u64) {
    let (tell_begun, begun) = mpsc::channel();
    let (leave, wait_leave) = mpsc::channel();
    let sum = Sum { gate: Some((tell_begun, wait_leave)), ..Sum::default() };
    let bounds = LaneLimits { batch_rows_max: 2, ..LaneLimits::default() };
    let (lane, lane_thread) = Lane::start("dying", bounds, sum).unwrap();
    let (tell, hear) = mpsc::channel();
    let together = vec![(1, ReplyTo(tell.clone())), (of, ReplyTo(tell.clone())), (3, ReplyTo(tell.clone()))];
    lane.submit_all(together).expect("there is room");
    // Two are in the batch, one is in the lane's inbox, and four are in the queue.
    begun.recv().expect("the batch has begun");
    for number in 4..8 {
        lane.submit(number, ReplyTo(tell.clone())).expect("it still lives");
    }
    leave.send(()).expect("the lane waits for it");
    drop(tell);
    let heard = hear.recv_timeout(Duration::from_secs(180));
    assert_eq!(heard, Err(RecvTimeoutError::Disconnected), "no answer, and no reply that could give one");
    let (nobody, _) = mpsc::channel();
    assert!(matches!(lane.submit(9, ReplyTo(nobody)), Err(SubmitError::Draining((9, _)))));
    lane.drain();
    assert!(lane_thread.join().is_err());
}

#[test]
fn a_panic_in_commit_leaves_no_caller_hanging() {
    (0..50).for_each(|_| dies(PANIC_IN_COMMIT));
}

#[test]
fn a_publish_that_forgets_an_answer_is_a_bug() {
    (0..50).for_each(|_| dies(PANIC_IN_PUBLISH));
}

#[test]
fn a_batch_that_need_not_wait_for_a_slow_one_passes_one_that_does() {
    const LONG: Duration = Duration::from_secs(3600);
    let gate = Barrier::default();
    let slow = gate.pass(2, false, LONG).expect("nobody is there");
    let other = gate.clone();
    let waiting = thread::spawn(move || other.pass(3, true, LONG).is_ok());
    // The assertions below mean nothing before the request is in the queue.
    while gate.waiting() == 0 {
        thread::yield_now();
    }
    // These would wait for ever if they stayed behind it in the queue, however many of them there are.
    for _ in 0..3 {
        assert!(gate.pass(1, false, LONG).is_ok());
        thread::yield_now();
    }
    assert!(!waiting.is_finished(), "it has to wait");
    // A handler that has passed and is slow itself lets no other pass: it would wait for one after the other.
    let went_by = gate.pass(1, false, LONG).expect("it need not wait");
    drop(slow);
    assert_eq!(gate.pass(2, false, Duration::from_millis(500)).map(drop), Err(Blocked::Late));
    drop(went_by);
    assert!(waiting.join().expect("a thread"), "its turn comes");
}
