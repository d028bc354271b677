//! The timings of a reply through the lane, with the primitives of `std`.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;
use tally_lanes::{BatchFailure, BatchHandler, Lane, LaneLimits, LaneThread, LaneTimings, Reply, Weight};

/// Records its reads; a request of 0 is a poison request, and one of 1 finds no store.
#[derive(Default)]
struct Reads {
    read_at: Option<Instant>,
    commits: u32,
}

impl BatchHandler for Reads {
    type Request = u32;
    type Answer = u32;
    type Fault = &'static str;
    type Committed = ();

    fn weight(request: &u32) -> Weight {
        Weight { rows: *request, bytes: 8 }
    }

    fn commit(&mut self, batch: &[u32]) -> Result<(), BatchFailure<&'static str>> {
        self.commits += 1;
        if batch.contains(&1) {
            return Err(BatchFailure::Unavailable("no store"));
        }
        self.read_at = Some(Instant::now());
        if batch.contains(&0) {
            return Err(BatchFailure::PoisonRequest("poison"));
        }
        // The first attempt of all meets another.
        if self.commits == 1 { Err(BatchFailure::Retry("deadlock")) } else { Ok(()) }
    }

    fn read_at(&self) -> Option<Instant> {
        self.read_at
    }

    fn publish(&mut self, batch: Vec<u32>, (): ()) -> Vec<u32> {
        batch
    }
}

type Outcome = (Vec<LaneTimings>, Result<u32, &'static str>);

struct Recorder(Vec<LaneTimings>, Sender<Outcome>);

impl Reply<Result<u32, &'static str>> for Recorder {
    fn record_timings(&mut self, timings: &LaneTimings) {
        self.0.push(timings.clone());
    }

    fn send(self, answer: Result<u32, &'static str>) {
        self.1.send((self.0, answer)).expect("the test listens");
    }
}

fn handle(requests: &[u32]) -> (Vec<Outcome>, Instant) {
    let (tell, heard): (_, Receiver<Outcome>) = channel();
    let (lane, thread): (Lane<Reads, Recorder>, LaneThread<_>) =
        Lane::start("lane", LaneLimits::default(), Reads::default()).expect("a thread");
    let asked = Instant::now();
    let many = requests.iter().map(|request| (*request, Recorder(Vec::new(), tell.clone()))).collect();
    assert!(lane.submit_all(many).is_ok());
    drop(tell);
    lane.drain();
    assert!(thread.join().is_ok());
    (heard.iter().collect(), asked)
}

#[test]
fn requests_of_one_batch_hear_the_same() {
    let (heard, asked) = handle(&[5, 7]);
    for (all_timings, answer) in &heard {
        let [timings] = all_timings.as_slice() else { panic!("{all_timings:?}") };
        assert_eq!((&*timings.lane, timings.batch, timings.requests, timings.rows), ("lane", 1, 2, 12));
        assert_eq!((timings.retries, answer.is_ok()), (1, true));
        let times = [
            asked,
            timings.taken,
            timings.begun,
            timings.read.unwrap(),
            timings.ended,
            timings.published.unwrap(),
        ];
        assert!(times.is_sorted(), "{times:?}");
    }
    assert_eq!(heard[0].0[0].begun, heard[1].0[0].begun);
}

#[test]
fn a_poison_request_hears_of_its_own_piece_and_nothing_of_publishing() {
    let (heard, _) = handle(&[5, 0, 7]);
    assert_eq!(heard.iter().map(|one| one.1).collect::<Vec<_>>(), [Ok(5), Err("poison"), Ok(7)]);
    let begun: Vec<Instant> = heard.iter().map(|one| one.0[0].begun).collect();
    assert!(begun.is_sorted() && begun[0] < begun[2], "{begun:?}");
    for (all_timings, answer) in heard {
        assert_eq!((all_timings.len(), all_timings[0].requests), (1, 3));
        assert_eq!(all_timings[0].published.is_some(), answer.is_ok());
    }
}

#[test]
fn what_was_read_before_is_not_of_a_batch_that_read_nothing() {
    let (heard, _) = handle(&[1]);
    assert_eq!(heard[0].1, Err("no store"));
    assert_eq!(heard[0].0[0].read, None);
}
