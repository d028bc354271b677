//! A batch handler that replies on another thread. Every caller gets its reply once, in order within a batch, also after the lane
//! has gone on or ended.

use std::sync::mpsc;
use std::thread;
use tally_lanes::{BatchFailure, BatchHandler, Lane, LaneLimits, Weight};

/// Replies with the number, from the thread at the other end.
struct Elsewhere {
    told: mpsc::Sender<(usize, Box<dyn Send>)>,
}

impl BatchHandler for Elsewhere {
    type Request = u64;
    type Answer = u64;
    type Fault = &'static str;
    type Committed = ();

    fn weight(_request: &u64) -> Weight {
        Weight { rows: 1, bytes: 8 }
    }

    fn commit(&mut self, _batch: &[u64]) -> Result<(), BatchFailure<&'static str>> {
        Ok(())
    }

    fn publish(&mut self, batch: Vec<u64>, (): ()) -> Vec<u64> {
        batch
    }

    fn dispatch(&mut self, callers: usize, replies: Box<dyn Send>) {
        self.told.send((callers, replies)).expect("the dispatcher runs");
    }
}

#[test]
fn callers_that_are_told_elsewhere_hear_once_and_in_order() {
    let (told, to_tell) = mpsc::channel();
    let bounds = LaneLimits { batch_rows_max: 16, ..LaneLimits::default() };
    let (lane, lane_thread) = Lane::start("elsewhere", bounds, Elsewhere { told }).unwrap();
    let (tell, hear) = mpsc::channel();
    for number in 0..1000_u64 {
        let tell = tell.clone();
        let reply = move |answer: Result<u64, &'static str>| {
            tell.send((answer, thread::current().id())).expect("the test listens");
        };
        lane.submit(number, reply).expect("there is room");
    }
    drop(tell);
    drop(lane);
    drop(lane_thread.join().expect("it has drained"));
    assert!(hear.try_recv().is_err(), "nobody was told by the lane");
    let teller = thread::spawn(move || {
        let mut callers = 0;
        for (some, replies) in to_tell {
            callers += some;
            drop(replies);
        }
        (callers, thread::current().id())
    });
    let heard: Vec<_> = hear.iter().collect();
    let (callers, there) = teller.join().expect("it told them");
    assert_eq!(callers, 1000);
    assert_eq!(heard, (0..1000).map(|number| (Ok(number), there)).collect::<Vec<_>>());
}
