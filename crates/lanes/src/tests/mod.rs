//! Tests of the lane under shuttle: every run is one interleaving, chosen by a scheduler with a seed.
//!
//! A failing run prints its schedule, which `shuttle::replay` takes. `TALLY_SOAK` multiplies the number of
//! runs. Tests with the primitives of `std`, and those of a panicking lane, are in `tests/lane/threads.rs`.

mod affinity;
mod audit;
mod barrier;
mod bisection;
mod bounds;
mod coalescing;
mod failures;
mod model;
mod schedules;

use audit::Recorder;
use model::{Request, Store};

use crate::{Lane, LaneLimits, LaneThread};

/// Replies of different call sites, boxed.
type Boxed = Box<dyn FnOnce(Result<model::Answer, model::Fault>) + Send>;

/// Runs the scenario under many schedules: half of them random, half with few preemptions (PCT).
fn explore(runs: usize, scenario: fn()) {
    let soak = std::env::var("TALLY_SOAK").map_or(1, |times| times.parse().expect("TALLY_SOAK is a number"));
    shuttle::check_random(scenario, runs * soak);
    shuttle::check_pct(scenario, runs * soak, 3);
}

fn start(bounds: LaneLimits, store: Store) -> (Lane<Store, Boxed>, LaneThread<Store>) {
    Lane::start("lane", bounds, Store { bounds, ..store }).expect("a thread")
}

/// Starts a lane that handles these requests in one batch, drains it and audits the run.
fn one_batch(bounds: LaneLimits, store: Store, requests: Vec<Request>) -> (Recorder, Store, crate::Stats) {
    let (lane, thread) = start(bounds, store);
    let mut recorder = Recorder::default();
    let many = requests.into_iter().map(|request| (request, recorder.listen(request))).collect();
    lane.submit_all(many).expect("there is room");
    lane.drain();
    let store = thread.join().expect("the lane ends well");
    recorder.audit(&store);
    (recorder, store, lane.stats())
}
