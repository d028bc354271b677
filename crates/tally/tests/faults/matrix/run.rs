//! One cell from its beginning to its end: callers of every kind, a fault around the end of a minute, and the final checks.
//!
//! Periods end with minutes, so all cells of a wave wait for the same one. Not here: the form of a row (`table.rs`).

use super::boards::{Bans, Periods, Ranks, Scores, Unrelated};
use super::callers::Caller;
use super::cells::{Cell, Fault};
use super::contests::Contests;
use super::faults;
use super::load::{COLUMNS, Load, UNRELATED};
use super::money::{Deposits, Holds, member};
use super::world::World;
use jiff::Timestamp;
use serde_json::json;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};
use tally_testkit::{GIVE_UP, SetAtEnd, wait_until};

/// Callers of each kind; each prefers another server.
const CALLERS: usize = 2;
/// The duration of a fault.
pub(crate) const LASTS: Duration = Duration::from_secs(8);
/// It begins this long before the end of a minute, and callers begin before that.
const BEFORE: Duration = Duration::from_secs(3);
const CALM: Duration = Duration::from_secs(3);
/// Time to create the due contests at the end of the minute, also on a busy machine.
const TO_PREPARE: Duration = Duration::from_secs(12);
/// The longest way of an acknowledgement from the database to the caller.
const ON_ITS_WAY: Duration = Duration::from_millis(300);
/// The time that callers go on when all servers write again.
const AFTER: Duration = Duration::from_secs(1);

/// The time limits of a cell.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// The longest time without an acknowledged write of the unrelated leaderboard while its database is up.
    refused: Duration,
    /// The time after the fault until every server is ready and writes.
    ready: Duration,
}

impl Limits {
    /// Where cells have the machine to themselves.
    pub(crate) const ALONE: Self = Self { refused: Duration::from_secs(5), ready: Duration::from_secs(10) };
    /// Beside other tests: writes go on before the fault ends. A time of a crowded machine says little.
    pub(crate) const BESIDE_OTHERS: Self = Self { refused: LASTS, ready: GIVE_UP };
}

/// The measurements: of each kind the longest time without an acknowledgement, and the time from the fault until all were ready.
pub(crate) struct Row {
    pub(crate) refused: [Duration; COLUMNS.len()],
    pub(crate) ready: Duration,
}

/// The next end of a minute for which there is time.
fn next_minute() -> Timestamp {
    let soonest = Timestamp::now() + BEFORE + CALM + TO_PREPARE;
    Timestamp::from_second(soonest.as_second() / 60 * 60 + 60).expect("a time of this century")
}

fn sleep_until(at: Timestamp) {
    std::thread::sleep(at.duration_since(Timestamp::now()).try_into().unwrap_or_default());
}

/// Runs a cell together with the others of its wave.
pub(crate) fn run(cell: Cell, limits: Limits, wave: &Barrier) -> Row {
    let prepared = catch_unwind(|| World::prepared(cell));
    // The others do not wait for a failed one.
    wave.wait();
    let mut world = prepared.unwrap_or_else(|panic| resume_unwind(panic));
    let minute = next_minute();
    sleep_until(minute - BEFORE - CALM - TO_PREPARE);
    let mut loads = loads(&world, minute);
    if cell.fault == Fault::DatabaseBack {
        world.databases.last_mut().expect("one").keep_copy();
        wait_until("every server is ready", || {
            world.running().all(|tally| tally.client().get("/readyz").status == 200)
        });
    }
    sleep_until(minute - BEFORE - CALM);
    let (row, began) = disturbed(&mut world, &mut loads, minute);
    assert!(row.ready <= limits.ready, "after {:?} all servers are ready and write", row.ready);
    if cell.fault == Fault::DatabaseBack {
        loads.iter_mut().for_each(|(_, load)| load.lose(began + ON_ITS_WAY));
    }
    // A server that had lost its Redis publishes its commits from that time at its next attempt.
    let since = Instant::now();
    for tally in world.running() {
        let told = loop {
            let doctor = tally.run(&["doctor"]);
            if doctor.code == Some(0) || since.elapsed() > limits.ready {
                break doctor.expect(0).to_owned();
            }
        };
        assert!(told.contains("board scores: all "), "{told}");
    }
    let mut client = world.client();
    loads.iter().for_each(|(_, load)| load.check(&mut client));
    if cell.database_is_there() {
        let longest = row.refused[UNRELATED];
        assert!(longest <= limits.refused, "writes of the unrelated leaderboard failed for {longest:?}");
    }
    row
}

impl World {
    /// With everything that does not depend on the time.
    fn prepared(cell: Cell) -> Self {
        let world = Self::start(cell);
        let mut client = world.client();
        Scores::prepare(&mut client);
        Bans::prepare(&mut client);
        Periods::prepare(&mut client);
        Unrelated::prepare(&mut client);
        member(&mut client, "ann", 0);
        world
    }
}

/// The load of every caller, and its column.
fn loads(world: &World, minute: Timestamp) -> Vec<(usize, Box<dyn Load>)> {
    let client = &mut world.client();
    let mut loads: Vec<(usize, Box<dyn Load>)> = Vec::new();
    let ann = super::load::items(client, "/v1/members?player=ann", "items");
    let ann = ann[0]["id"].as_str().expect("an id");
    for nth in 0..CALLERS {
        let (mut periods, mut contests) = (Periods::new(nth), Contests::new(client, nth));
        if nth == 0 {
            periods = periods.with_winner(client, ann.to_owned());
            contests = contests.with_timed(client, minute + Duration::from_secs(1));
        }
        let of_caller: [Box<dyn Load>; COLUMNS.len()] = [
            Box::new(Scores::new(nth)),
            Box::new(Deposits::new(client, nth)),
            Box::new(Holds::new(client, nth)),
            Box::new(Bans::new(client, nth)),
            Box::new(periods),
            Box::new(contests),
            Box::new(Unrelated::new(world, client, nth)),
            Box::new(Ranks),
        ];
        loads.extend(of_caller.into_iter().enumerate());
    }
    loads
}

/// Callers send requests while the fault begins and ends, until every server writes again.
fn disturbed(world: &mut World, loads: &mut [(usize, Box<dyn Load>)], minute: Timestamp) -> (Row, Instant) {
    let (stop, mut refused) = (AtomicBool::new(false), [Duration::ZERO; COLUMNS.len()]);
    let addresses = Arc::clone(&world.addresses);
    let (patience, may_lose) = (world.cell.patience(), world.cell.fault == Fault::DatabaseBack);
    let (ready, began) = std::thread::scope(|scope| {
        let end = SetAtEnd::new(&stop);
        let asking: Vec<_> = loads
            .iter_mut()
            .enumerate()
            .map(|(nth, (column, load))| {
                let (stop, addresses, column) = (&stop, &*addresses, *column);
                let of_cell = (patience, may_lose);
                let mut caller =
                    Caller::new(addresses, nth / COLUMNS.len(), of_cell, &format!("caller {nth}"));
                let asking = scope.spawn(move || {
                    while !stop.load(Ordering::SeqCst) {
                        load.step(&mut caller);
                        std::thread::sleep(load.pause());
                    }
                    let longest = caller.longest();
                    load.settle(&mut caller);
                    longest
                });
                (column, asking)
            })
            .collect();
        // Callers end in every case.
        let ready = catch_unwind(AssertUnwindSafe(|| fault(world, minute)));
        std::thread::sleep(AFTER);
        drop(end);
        for (column, asking) in asking {
            let longest = asking.join().unwrap_or_else(|panic| resume_unwind(panic));
            refused[column] = refused[column].max(longest);
        }
        ready.unwrap_or_else(|panic| resume_unwind(panic))
    });
    (Row { refused, ready }, began)
}

/// The fault: returns how long after its end every server is ready and writes, and when it began.
fn fault(world: &mut World, minute: Timestamp) -> (Duration, Instant) {
    sleep_until(minute - BEFORE);
    let began = Instant::now();
    let mut state = faults::begin(world);
    while Timestamp::now() < minute - BEFORE + LASTS {
        faults::keep_up(world, &mut state);
        std::thread::sleep(Duration::from_millis(100));
    }
    faults::end(world);
    let ended = Instant::now();
    let body = json!({"player": "last", "score": 1});
    let request = super::load::post("/v1/leaderboards/unrelated/scores", &body);
    for tally in world.running() {
        let mut client = tally.client();
        wait_until("every server is ready and writes", || {
            client.get("/readyz").status == 200 && client.send(&request).status == 200
        });
    }
    (ended.elapsed(), began)
}
