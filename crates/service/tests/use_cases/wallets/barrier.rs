//! Requests to a contest that scores read: no score is decided while one of them is written. None waits for the queue that it is
//! in.

use crate::wallets::histories::dying::Dying;
use crate::wallets::histories::player_of;
use crate::wallets::world::World;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tally_rules::contest::definition::ContestSpec;
use tally_rules::contest::{ContestId, State};
use tally_rules::ledger::{MemberId, TransferKind};
use tally_rules::score::ScoreInput;
use tally_rules::{BoardId, Origin, PlayerId, Rejection};
use tally_service::contests::execute::{ActingAs, ContestActor};
use tally_service::contests::{apply, change, finish, start};
use tally_service::failure::Fault;
use tally_service::scores::submit::{NewScore, submit};
use tally_service::{Failure, boards};
use tally_store::Store;
use tally_store::mysql::{MySqlStore, Options};
use tally_store::sqlite::SqliteStore;
use tally_testkit::{COMMIT, Cut, DatabaseKind, Proxy, ScratchDatabase};

/// No answer in this time is a fault; no measurement.
const GIVE_UP: Duration = Duration::from_secs(60);

/// A running contest of one member, and a leaderboard without a contest.
fn play(world: &World) -> (ContestId, MemberId) {
    let (tally, member, id) = (&world.tally, world.member("ann", 50), ContestId::new("cup").unwrap());
    let spec = crate::wallets::contests::spec(true);
    change::create(tally, &id, &ContestActor::SERVER, &spec, None).unwrap();
    change::open(tally, &id, &ContestActor::ADMIN, None).unwrap();
    let player = player_of(member);
    apply::apply(tally, &id, &ActingAs::Member(player.clone()).by(Origin::BACKGROUND), &player, None)
        .unwrap();
    apply::decide(tally, &id, &ContestActor::ADMIN, std::slice::from_ref(&player), true, None).unwrap();
    start::start(tally, &id, &ContestActor::ADMIN, None).unwrap();
    boards::put(tally, &other(), &tally_rules::definition::BoardSpec::default(), &Origin::BACKGROUND, None)
        .unwrap();
    (id, member)
}

fn other() -> BoardId {
    BoardId::new("other").unwrap()
}

fn score(world: &World, board: BoardId, player: PlayerId) -> Result<(), Failure> {
    let new = NewScore { board, player, score: ScoreInput::Int(1), subscore: None, at: None, identity: None };
    let answer = world.wait(async { tokio::time::timeout(GIVE_UP, submit(&world.tally, new)).await });
    answer.expect("a score waits for ever").map(drop)
}

fn wait_until(is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < GIVE_UP, "it never is");
        std::thread::yield_now();
    }
}

#[test]
fn no_score_waits_for_the_queue_in_which_a_change_of_a_contest_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    let store =
        Dying::new(Arc::new(SqliteStore::open(&path, &tally_store::sqlite::Options::default()).unwrap()));
    let world = World::on(Arc::clone(&store) as Arc<dyn Store>, folder);
    let (id, ann) = play(&world);
    let (tally, player) = (&world.tally, player_of(ann));
    let spec = ContestSpec { title: Some("Another".into()), ..ContestSpec::default() };
    std::thread::scope(|scope| {
        let money = store.hold_money();
        let first = scope
            .spawn(|| world.post(crate::wallets::world::order(TransferKind::Deposit { to: ann }, 1), None));
        wait_until(|| tally.ledger_stats().in_flight > 0);
        let patch = scope.spawn(|| change::patch(tally, &id, &ContestActor::ADMIN, &spec, None).map(drop));
        wait_until(|| tally.ledger_stats().queued_requests > 0);
        let end = scope.spawn(|| finish::finish(tally, &id, &ContestActor::ADMIN, None).map(drop));
        wait_until(|| tally.ledger_stats().queued_requests > 1);
        let scores = [score(&world, other(), player.clone()), score(&world, id.board(None), player.clone())];
        let waited = !first.is_finished();
        drop(money);
        first.join().unwrap().unwrap();
        // The second one sees the effect of the first.
        patch.join().unwrap().unwrap();
        end.join().unwrap().unwrap();
        assert!(waited && scores.iter().all(Result::is_ok), "{scores:?}");
    });
    let late = score(&world, id.board(None), player);
    assert!(matches!(late, Err(Failure::Rejected(Rejection::ContestState(State::Finished)))), "{late:?}");
    score(&world, other(), player_of(ann)).unwrap();
    world.end(&[ann]);
}

/// The end is in doubt for a while: no score is taken before it is resolved, and none after an end.
#[test]
fn no_score_comes_in_after_an_end_whose_answer_was_lost() {
    for cut in [Cut::Answer, Cut::Before] {
        let server = ScratchDatabase::shared(DatabaseKind::MariaDb10);
        let proxy = Proxy::start(server.address());
        let url = server.create_database();
        let through = url.replace(&server.address().to_string(), &proxy.address().to_string());
        let store = Arc::new(MySqlStore::open(&through, &Options::default()).unwrap());
        let world = World::on(store, tempfile::tempdir().unwrap());
        let (id, ann) = play(&world);
        proxy.cut_at(COMMIT, cut);
        proxy.refuse();
        let lost = finish::finish(&world.tally, &id, &ContestActor::ADMIN, None).map(drop);
        assert!(matches!(lost, Err(Failure::Fault(Fault::OutcomeUnknown(_)))), "{lost:?}");
        proxy.pass();
        let done = loop {
            match score(&world, id.board(None), player_of(ann)) {
                Err(Failure::Fault(Fault::StoreUnavailable(_))) => std::thread::yield_now(),
                done => break done,
            }
        };
        match cut {
            Cut::Before => done.unwrap(),
            _ => assert!(
                matches!(done, Err(Failure::Rejected(Rejection::ContestState(State::Finished)))),
                "{done:?}"
            ),
        }
        world.tally.drain();
    }
}
