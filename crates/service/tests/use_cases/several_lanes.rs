//! Several lanes of scores side by side: every caller has the reply that it would have had alone. Other lanes, requests of
//! all lanes and the ends of periods change nothing.

use crate::world::{DAY, World, board, player, rule};
use std::collections::{BTreeMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use tally_ranking::PageQuery;
use tally_rules::Origin;
use tally_rules::definition::{BoardSpec, Update};
use tally_rules::score::ScoreInput;
use tally_service::periods::scheduler;
use tally_service::periods::view::list;
use tally_service::players::erase::ban;

use tally_service::scores::pipeline::{self, Pipeline};
use tally_service::scores::remove::remove;
use tally_service::scores::steps::{PipelineStep, StepReply};
use tally_service::scores::submit::{ScoreWrite, Submit, submit, submit_batch};
use tally_store::plan::ALL_TIME;
use tally_testkit::SetAtEnd;
use tally_testkit::rng::{self, Rng};

const LANES: usize = 4;
const CALLERS: u64 = 8;
const PLAYERS: u64 = 40;
const HOURS: i64 = DAY / 6;

/// The replies for each player: the score before, and the score after.
#[derive(Default)]
struct Changes(Mutex<BTreeMap<String, Vec<(i64, i64)>>>);

impl Changes {
    fn note(&self, name: &str, before: Option<i64>, after: i64) {
        let mut all = self.0.lock().unwrap();
        all.entry(name.to_owned()).or_default().push((before.unwrap_or(0), after));
    }
}

fn add_one(world: &World, name: &str, changes: &Changes) {
    let (_, done) = world.wait(submit(&world.tally(), world.score(name, ScoreInput::Int(1)))).unwrap();
    changes.note(name, done.previous.map(|previous| previous.record.score), done.record.score);
}

fn add_to_several(world: &World, names: &[String], changes: &Changes) {
    let rows = names.iter().map(|name| world.score(name, ScoreInput::Int(1))).collect();
    let rows = world.wait(submit_batch(&world.tally(), rows, false)).unwrap();
    for (name, row) in names.iter().zip(rows) {
        let (_, done) = row.unwrap();
        changes.note(name, done.previous.map(|previous| previous.record.score), done.record.score);
    }
}

fn add_at_once(world: &World, names: &[String], changes: &Changes) {
    let found = world.tally().boards.get(&board()).unwrap();
    let write = |name: &String| ScoreWrite { player: player(name), score: 1, subscore: 0, at: None };
    let step = |name| {
        PipelineStep::Submit(Submit {
            board: found.clone(),
            write: write(name),
            idempotency: None,
            names_windows: false,
        })
    };
    let commands =
        Pipeline { steps: names.iter().map(step).collect(), atomic: true, relaxed: false, alone: false };
    let replies = world.wait(pipeline::run(&world.tally(), commands)).unwrap();
    for (name, reply) in names.iter().zip(replies) {
        let StepReply::Submitted(done) = reply else { panic!("{reply:?}") };
        changes.note(name, done.previous.map(|previous| previous.record.score), done.record.score);
    }
}

/// One caller's random work.
fn call(world: &World, seed: u64, rounds: usize, changes: &Changes) {
    let mut rng = Rng::new(seed);
    let name = |rng: &mut Rng| format!("p{}", rng.below(PLAYERS));
    for _ in 0..rounds {
        let names: Vec<String> = (0..3).map(|_| name(&mut rng)).collect();
        match rng.below(20) {
            0 => add_at_once(world, &names, changes),
            1 | 2 => add_to_several(world, &names, changes),
            3 => {
                let banned = rng.below(2) == 0;
                world
                    .wait(ban(&world.tally(), &board(), player(&names[0]), banned, Origin::BACKGROUND, None))
                    .unwrap();
            }
            4 => world.advance(HOURS),
            _ => add_one(world, &names[0], changes),
        }
    }
}

/// The records of each player in each window by the store, and the banned players.
fn stored(world: &World) -> BTreeMap<u64, BTreeMap<String, i64>> {
    let found = world.tally().boards.get(&board()).unwrap();
    let periods = world.tally().store.windows(found.no).unwrap();
    let windows = periods.iter().map(|row| row.window).chain([ALL_TIME]);
    let mut all = BTreeMap::new();
    for window in windows {
        let mut scores = BTreeMap::new();
        let mut each = |player: tally_rules::PlayerId, record: tally_rules::Record| {
            scores.insert(player.as_str().to_owned(), record.score);
        };
        world.tally().store.scan_scores(found.no, window, None, usize::MAX, &mut each).unwrap();
        all.insert(window.0, scores);
    }
    all
}

#[test]
fn soak_lanes_side_by_side_answer_as_one() {
    let world = World::with_lanes(100 * DAY, LANES);
    let periods = Some(vec![rule("daily", "0 0 * * *", "UTC", 1_000, 0)]);
    world.put(&BoardSpec { periods, update: Some(Update::Sum), ..BoardSpec::default() }).unwrap();
    assert_eq!(world.tally().lanes(), LANES);
    let (changes, over) = (Changes::default(), AtomicBool::new(false));
    let first = rng::seed();
    std::thread::scope(|scope| {
        let end = SetAtEnd::new(&over);
        let callers: Vec<_> = (0..CALLERS)
            .map(|seed| {
                let (world, changes) = (&world, &changes);
                scope.spawn(move || call(world, first + seed, rng::soak(60), changes))
            })
            .collect();
        let closing = scope.spawn(|| {
            while !over.load(Ordering::SeqCst) {
                scheduler::close_due(&world.tally()).unwrap();
                std::thread::yield_now();
            }
        });
        callers.into_iter().for_each(|caller| caller.join().unwrap());
        drop(end);
        closing.join().unwrap();
    });
    let windows = stored(&world);
    let changes = changes.0.into_inner().unwrap();
    let by_name = |name: &String| windows[&ALL_TIME.0].get(name).copied().unwrap_or(0);
    for (name, mut steps) in changes {
        // Each reply continues from another one, and all of them are in the store.
        steps.sort_unstable();
        let wanted: Vec<(i64, i64)> = (0..steps.len() as i64).map(|before| (before, before + 1)).collect();
        assert_eq!(steps, wanted, "{name}");
        assert_eq!(by_name(&name), wanted.len() as i64, "{name}");
        let of_periods = windows.iter().filter(|(window, _)| **window != ALL_TIME.0);
        let sum: i64 = of_periods.map(|(_, scores)| scores.get(&name).copied().unwrap_or(0)).sum();
        assert_eq!(sum, by_name(&name), "every score counts in one day, {name}");
    }
    // Pages are a sort of the stored rows, without the banned players.
    let found = world.tally().boards.get(&board()).unwrap();
    let shown = world.view("all_time").unwrap();
    let query = PageQuery { limit: 1_000, ..PageQuery::default() };
    let page = shown.read(&*world.tally().store, |order| order.page(&query)).unwrap().entries;
    let mut wanted: Vec<(i64, String)> =
        windows[&ALL_TIME.0].iter().map(|(name, score)| (*score, name.clone())).collect();
    wanted.retain(|(_, name)| !found.is_banned(&player(name)));
    let mut got: Vec<(i64, String)> =
        page.iter().map(|place| (place.record.score, place.player.as_str().to_owned())).collect();
    let instants: HashSet<_> = page.iter().map(|place| place.record.at).collect();
    assert_eq!(instants.len(), page.len(), "no two scores have one instant");
    assert!(got.is_sorted_by_key(|(score, _)| -score));
    got.sort();
    wanted.sort();
    assert_eq!(got, wanted);
    assert!(list(&found, world.now()).len() > 3, "days have ended meanwhile");
    world.stop();
}

#[test]
fn a_player_comes_and_goes_in_one_lane() {
    let world = World::with_lanes(100 * DAY, LANES);
    world.put(&BoardSpec { update: Some(Update::Sum), ..BoardSpec::default() }).unwrap();
    std::thread::scope(|scope| {
        for caller in 0..CALLERS {
            let world = &world;
            scope.spawn(move || {
                let name = format!("own-{caller}");
                for round in 0..50 {
                    let changes = Changes::default();
                    add_one(world, &name, &changes);
                    add_one(world, &name, &changes);
                    let steps = changes.0.into_inner().unwrap().remove(&name).unwrap();
                    assert_eq!(steps, [(0, 1), (1, 2)], "round {round}");
                    world
                        .wait(remove(&world.tally(), &board(), player(&name), &Origin::BACKGROUND, None))
                        .unwrap();
                }
            });
        }
    });
    assert_eq!(world.view("all_time").unwrap().total(), 0);
    world.stop();
}
