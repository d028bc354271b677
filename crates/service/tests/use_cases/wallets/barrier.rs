//! Requests to a contest that scores read: no score is decided while one of them is written. None waits for the queue that it is
//! in.

use crate::wallets::histories::dying::Dying;
use crate::wallets::histories::player_of;
use crate::wallets::world::{World, settings, start_set};
use std::sync::Arc;
use std::time::Instant;
use tally_rules::contest::definition::ContestSpec;
use tally_rules::contest::{ContestId, ContestState};
use tally_rules::definition::BoardSpec;
use tally_rules::ledger::{MemberId, TransferKind};
use tally_rules::score::ScoreInput;
use tally_rules::{BoardId, Micros, Origin, PlayerId, Rejection};
use tally_service::contests::execute::{ActingAs, ContestActor};
use tally_service::contests::{apply, change, finish, start};
use tally_service::failure::Fault;
use tally_service::scores::submit::{NewScore, submit};
use tally_service::{Clock, Failure, Settings, boards};
use tally_store::Store;
use tally_store::mysql::{MySqlStore, Options};
use tally_store::sqlite::SqliteStore;
use tally_testkit::{COMMIT, Cut, DatabaseKind, GIVE_UP, Proxy, ScratchDatabase, wait_for};

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
    let new =
        NewScore { board, player, score: ScoreInput::Int(1), subscore: None, at: None, idempotency: None };
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
    // The reply of a batch comes before its end.
    wait_until(|| tally.ledger_stats().in_flight == 0);
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
    assert!(
        matches!(late, Err(Failure::Rejected(Rejection::ContestState(ContestState::Finished)))),
        "{late:?}"
    );
    score(&world, other(), player_of(ann)).unwrap();
    world.end(&[ann]);
}

/// The start waits for the ledger: other leaderboards are made meanwhile, and leave the room that it needs.
#[test]
fn leaderboards_are_made_and_deleted_while_a_contest_starts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    let store =
        Dying::new(Arc::new(SqliteStore::open(&path, &tally_store::sqlite::Options::default()).unwrap()));
    let clock = Clock::of(|| Micros(1_700_000_000_000_000));
    let with = Settings { boards_max: 3, ledger: settings(), ..Settings::default() };
    let tally = &start_set(Arc::clone(&store) as Arc<dyn Store>, clock, with).unwrap();
    let [old, new, late] = &["old", "new", "late"].map(|name| BoardId::new(name).unwrap());
    let put = |board| boards::put(tally, board, &BoardSpec::default(), &Origin::BACKGROUND, None).unwrap();
    // A sorted set without a score gives its room away.
    put(old);
    let (id, ann) = (ContestId::new("cup").unwrap(), PlayerId::new("ann").unwrap());
    let spec = ContestSpec { prizes: None, ..crate::wallets::contests::spec(false) };
    change::create(tally, &id, &ContestActor::SERVER, &spec, None).unwrap();
    change::open(tally, &id, &ContestActor::ADMIN, None).unwrap();
    apply::apply(tally, &id, &ContestActor::SERVER, &ann, None).unwrap();
    apply::decide(tally, &id, &ContestActor::ADMIN, std::slice::from_ref(&ann), true, None).unwrap();
    // The reply of a batch comes before its end.
    wait_until(|| tally.ledger_stats().in_flight == 0);
    std::thread::scope(|scope| {
        let money = store.hold_money();
        let started = scope.spawn(|| start::start(tally, &id, &ContestActor::ADMIN, None).map(drop));
        wait_until(|| tally.ledger_stats().in_flight > 0);
        let others = scope.spawn(|| {
            put(new);
            let full = boards::sorted_set(tally, late).map(drop);
            assert!(matches!(full, Err(Failure::Rejected(Rejection::TooManyBoards))), "{full:?}");
            boards::delete(tally, old, &Origin::BACKGROUND, None).unwrap();
        });
        let began = Instant::now();
        while !others.is_finished() && began.elapsed() < GIVE_UP {
            std::thread::yield_now();
        }
        let (are_made, is_started) = (others.is_finished(), started.is_finished());
        drop(money);
        others.join().unwrap();
        started.join().unwrap().unwrap();
        assert!(are_made && !is_started);
    });
    assert!(tally.boards.get(&id.board(None)).is_some() && tally.boards.get(old).is_none());
    // The room of the start is that of its leaderboard now.
    boards::sorted_set(tally, late).unwrap();
    assert_eq!(tally.boards.len(), 3);
    tally.drain();
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
        let done = wait_for("the outcome is known", || match score(&world, id.board(None), player_of(ann)) {
            Err(Failure::Fault(Fault::StoreUnavailable(_))) => None,
            done => Some(done),
        });
        match cut {
            Cut::Before => done.unwrap(),
            _ => assert!(
                matches!(done, Err(Failure::Rejected(Rejection::ContestState(ContestState::Finished)))),
                "{done:?}"
            ),
        }
        world.tally.drain();
    }
}
