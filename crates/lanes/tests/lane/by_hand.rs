//! A lane without a thread: the caller runs each batch.

use std::sync::mpsc::{Receiver, Sender, channel};
use tally_lanes::{BatchFailure, BatchHandler, Lane, LaneLimits, Reply, Resolution, Weight};

/// Loses the reply of each commit with a 9, and answers two queries for its outcome with "unknown".
#[derive(Default)]
struct Forgetful {
    asked: u32,
}

impl BatchHandler for Forgetful {
    type Request = u32;
    type Answer = u32;
    type Fault = &'static str;
    type Committed = ();

    fn weight(_request: &u32) -> Weight {
        Weight { rows: 1, bytes: 8 }
    }

    fn commit(&mut self, batch: &[u32]) -> Result<(), BatchFailure<&'static str>> {
        if batch.contains(&9) { Err(BatchFailure::Unknown("lost")) } else { Ok(()) }
    }

    fn resolve(&mut self, _batch: &[u32]) -> Result<Resolution<(), &'static str>, &'static str> {
        self.asked += 1;
        if self.asked < 3 { Err("away") } else { Ok(Resolution::Committed(())) }
    }

    fn publish(&mut self, batch: Vec<u32>, (): ()) -> Vec<u32> {
        batch
    }

    fn pause(&mut self, _attempts: u32) {
        panic!("a lane by hand lets no time pass");
    }
}

type Outcome = Result<u32, &'static str>;

struct ReplyTo(Sender<Outcome>);

impl Reply<Outcome> for ReplyTo {
    fn send(self, answer: Outcome) {
        self.0.send(answer).expect("the test listens");
    }
}

fn lane(batch_rows_max: usize) -> (Lane<Forgetful, ReplyTo>, impl Fn(u32), Receiver<Outcome>) {
    let (tell, heard) = channel();
    let lane =
        Lane::by_hand("hand", LaneLimits { batch_rows_max, ..LaneLimits::default() }, Forgetful::default());
    let into = lane.clone();
    (lane, move |request| into.submit(request, ReplyTo(tell.clone())).unwrap(), heard)
}

#[test]
fn a_turn_is_one_batch() {
    let (lane, submit, heard) = lane(2);
    assert!(!lane.step(), "nothing waits");
    (1..4).for_each(&submit);
    assert!(heard.try_recv().is_err(), "nothing is done by itself");
    assert!(lane.step());
    assert_eq!(heard.try_iter().collect::<Vec<_>>(), [Ok(1), Ok(2)]);
    lane.drain();
    assert!(lane.step());
    assert_eq!(heard.try_iter().collect::<Vec<_>>(), [Ok(3)]);
    assert!(!lane.step(), "it has ended");
}

#[test]
fn a_turn_is_one_question_what_became_of_a_batch() {
    let (lane, submit, heard) = lane(2);
    [9, 1, 2].into_iter().for_each(&submit);
    // The first query is part of the commit.
    assert!(lane.step());
    assert_eq!(heard.try_iter().collect::<Vec<_>>(), [Err("lost"), Err("lost")]);
    assert!(lane.step());
    assert_eq!(heard.try_iter().collect::<Vec<_>>(), [Err("away")], "what comes behind it is not done");
    submit(3);
    assert!(lane.step(), "this question has an answer");
    assert_eq!(heard.try_iter().collect::<Vec<_>>(), [Err("away")]);
    submit(4);
    assert!(lane.step());
    assert_eq!(heard.try_iter().collect::<Vec<_>>(), [Ok(4)]);
}
