//! How many requests one lane carries when the work itself costs nothing.
//!
//! There are two shapes of load. Some callers wait for each answer before the next request, so their number
//! bounds the batch. Others keep pushing with a closure as reply, so the queue bounds it. What is measured is
//! the lane alone; a store adds its commit per batch. Not a benchmark with statistics: it prints one number
//! per line, to be compared on one machine before and after a change.
#![expect(clippy::print_stdout, reason = "an example that measures prints what it measured")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;
use tally_lanes::{BatchFailure, BatchHandler, Lane, LaneLimits, Stats, SubmitError, Weight};

struct Echo;

impl BatchHandler for Echo {
    type Request = u64;
    type Answer = u64;
    type Fault = ();
    type Committed = ();

    fn weight(_request: &u64) -> Weight {
        Weight { rows: 1, bytes: 64 }
    }

    fn commit(&mut self, _batch: &[u64]) -> Result<(), BatchFailure<()>> {
        Ok(())
    }

    fn publish(&mut self, batch: Vec<u64>, (): ()) -> Vec<u64> {
        batch
    }
}

type Boxed = Box<dyn FnOnce(Result<u64, ()>) + Send>;

fn main() {
    let total: u64 = std::env::args().nth(1).map_or(1_000_000, |count| count.parse().expect("a number"));
    for callers in [1, 4, 16, 64, 256] {
        let waiting_total = total / 4;
        report("waiting", callers, |lane| waiting(lane, callers, waiting_total / callers));
    }
    for callers in [1, 2, 4, 16, 256] {
        report("pushing", callers, |lane| pushing(lane, callers, total / callers));
    }
}

/// Each caller waits for its answer before the next request.
fn waiting(lane: &Lane<Echo, Boxed>, callers: u64, each: u64) {
    thread::scope(|scope| {
        for _ in 0..callers {
            scope.spawn(move || {
                let (tell, hear) = mpsc::sync_channel(1);
                for request in 0..each {
                    let tell = tell.clone();
                    let reply: Boxed = Box::new(move |answer| tell.send(answer).expect("it waits"));
                    lane.submit(request, reply).expect("there is room");
                    assert!(hear.recv() == Ok(Ok(request)));
                }
            });
        }
    });
}

/// Callers push as fast as the queue lets them; the answers are counted.
fn pushing(lane: &Lane<Echo, Boxed>, callers: u64, each: u64) {
    let answered = Arc::new(AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..callers {
            let answered = &answered;
            scope.spawn(move || {
                for request in 0..each {
                    let counter = Arc::clone(answered);
                    let mut reply: Boxed = Box::new(move |_| {
                        counter.fetch_add(1, Relaxed);
                    });
                    while let Err(SubmitError::Full((_, back))) = lane.submit(request, reply) {
                        reply = back;
                        thread::yield_now();
                    }
                }
            });
        }
    });
    while answered.load(Relaxed) < callers * each {
        thread::yield_now();
    }
}

fn report(shape: &str, callers: u64, load: impl FnOnce(&Lane<Echo, Boxed>)) {
    let (lane, thread) = Lane::start("echo", LaneLimits::default(), Echo).expect("a thread");
    let started = Instant::now();
    load(&lane);
    let elapsed = started.elapsed();
    let stats: Stats = lane.stats();
    lane.drain();
    thread.join().expect("the lane ends well");
    println!(
        "{shape} callers={callers:3} requests/s={:9.0} requests/batch={:6.1} cuts={:?}",
        stats.requests as f64 / elapsed.as_secs_f64(),
        stats.requests as f64 / stats.batches as f64,
        stats.cuts,
    );
}
