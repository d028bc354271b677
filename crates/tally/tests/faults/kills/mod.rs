//! Kills and cuts of servers that follow one another: nothing acknowledged is lost or doubled, and no answer never was true.
//!
//! Callers change and read at any server while servers are killed, stopped and frozen, and while their networks are cut, held and
//! refused, in an order that the seed gives. `TALLY_SOAK=125` makes a thousand disturbances.

mod callers;
mod truth;
mod world;

use callers::{EndsRun, Run};
use serde_json::json;
use tally_testkit::{Request, Rng, rng};
use truth::{BOARDS, WRITERS};
use world::World;

const READERS: usize = 3;
const DISTURBANCES: usize = 8;

#[expect(clippy::print_stderr, reason = "the counts are for the reader of a run")]
fn print(text: &str) {
    eprintln!("{text}");
}

#[test]
fn soak_kills_and_cuts_lose_nothing_and_double_nothing_and_no_answer_never_was_true() {
    let run = Run::new();
    let mut world = World::start(&run);
    for (board, update, _) in BOARDS {
        let put = Request::new("PUT", format!("/v1/leaderboards/{board}")).json(&json!({"update": update}));
        world.wait("a leaderboard is made", |world| {
            let made = world.servers().next().map(|server| server.client().try_send(&put));
            made.is_some_and(|made| made.is_ok_and(|made| [200, 201].contains(&made.status)))
        });
    }
    world.wait_shown();
    std::thread::scope(|scope| {
        let _ends = EndsRun(&run);
        let run = &run;
        for nth in 0..WRITERS {
            scope.spawn(move || callers::write(run, nth));
        }
        for nth in 0..READERS {
            scope.spawn(move || callers::read(run, nth));
        }
        let (mut rng, mut done) = (Rng::of("kills and cuts"), 0);
        while done < rng::soak(DISTURBANCES) {
            let hundreds = done / 100;
            done += world.disturb(&mut rng);
            world.check();
            if done / 100 > hundreds {
                print(&world.summary());
            }
        }
        world.wait_written();
        world.wait_ready();
        run.end();
    });
    world.check();
    world.wait_shown();
    print(&format!("seed {}: {}", rng::seed(), world.summary()));
    world.calm();
}
