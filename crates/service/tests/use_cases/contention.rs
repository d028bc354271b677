//! A leaderboard whose row is locked: unrelated requests go on, and the message names the lock.

use std::sync::Arc;
use std::time::Duration;
use tally_rules::definition::BoardSpec;
use tally_rules::period::{PeriodPrizes, PeriodRule};
use tally_rules::score::ScoreInput;
use tally_rules::{BoardId, Micros, Origin, PlayerId};
use tally_service::failure::Fault;
use tally_service::scores::submit::{NewScore, submit};
use tally_service::secret::Secret;
use tally_service::{Clock, Failure, Keys, Progress, Settings, Tally, boards};
use tally_store::mysql::{MySqlStore, Options};
use tally_store::{BoardNo, Store};
use tally_testkit::{DatabaseKind, ScratchDatabase, wait_until};

/// Longer than everything that must not wait, and than a batch waits for others, also on a busy machine.
const LOCK_WAIT: Duration = Duration::from_secs(60);

fn start(url: &str, lanes: usize) -> Arc<Tally> {
    let options = Options { lock_wait: LOCK_WAIT, query_timeout: 2 * LOCK_WAIT, ..Options::default() };
    let store: Arc<dyn Store> = Arc::new(MySqlStore::open(url, &options).unwrap());
    let clock = Clock::of(|| Micros(1_700_000_000_000_000));
    let (secret, settings) = (Secret::new([1; 32]), Settings { lanes, ..Settings::default() });
    let keys = Keys::load(Arc::clone(&store), secret.clone(), clock.clone(), &settings).unwrap();
    Tally::start(store, Arc::new(keys), clock, settings, &Progress::default()).unwrap()
}

fn with_periods() -> BoardSpec {
    let daily = PeriodRule {
        no: 0,
        name: "daily".into(),
        schedule: "0 0 * * *".into(),
        time_zone: "UTC".into(),
        keep: 1,
        grace_s: 0,
        prizes: PeriodPrizes::default(),
    };
    BoardSpec { periods: Some(vec![daily]), ..BoardSpec::default() }
}

fn lock_of(board: BoardNo) -> String {
    format!("START TRANSACTION; SELECT revision FROM revisions WHERE board = {} FOR UPDATE", board.0)
}

#[test]
fn a_change_of_a_leaderboard_that_waits_for_a_row_delays_no_other_leaderboard() {
    let server = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let url = server.create_database();
    let database = url.rsplit('/').next().unwrap();
    let tally = &start(&url, 1);
    let [held, old, new] = &["held", "old", "new"].map(|name| BoardId::new(name).unwrap());
    boards::put(tally, old, &BoardSpec::default(), &Origin::BACKGROUND, None).unwrap();
    let no = boards::put(tally, held, &BoardSpec::default(), &Origin::BACKGROUND, None).unwrap().board.no;
    let (spec, locking) = (with_periods(), lock_of(no));
    std::thread::scope(|scope| {
        let row = server.hold_locks(database, &locking);
        let change = scope.spawn(|| boards::put(tally, held, &spec, &Origin::BACKGROUND, None).map(drop));
        let waiting = || server.waiting_statement(database);
        wait_until("the change waits for the row", || !waiting().is_empty());
        let first = waiting();
        let has_not_waited =
            |what: &str| assert_eq!(waiting(), first, "{what} waited for the change of another one");
        boards::sorted_set(tally, old).unwrap();
        has_not_waited("finding a leaderboard");
        // As the first ZADD of a name makes it.
        boards::sorted_set(tally, new).unwrap();
        has_not_waited("making a leaderboard");
        assert!(!boards::delete(tally, old, &Origin::BACKGROUND, None).unwrap());
        has_not_waited("deleting a leaderboard");
        drop(row);
        change.join().unwrap().unwrap();
    });
    assert!(tally.boards.get(new).is_some() && tally.boards.get(old).is_none());
    tally.drain();
}

/// The store is there, and only the row of another leaderboard is locked.
#[test]
fn a_change_that_waits_too_long_for_a_batch_is_told_as_contention() {
    let server = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let url = server.create_database();
    let database = url.rsplit('/').next().unwrap();
    let tally = &start(&url, 2);
    let [held, other] = &["held", "other"].map(|name| BoardId::new(name).unwrap());
    let no = boards::put(tally, held, &BoardSpec::default(), &Origin::BACKGROUND, None).unwrap().board.no;
    let before = boards::put(tally, other, &BoardSpec::default(), &Origin::BACKGROUND, None)
        .unwrap()
        .board
        .present_definition();
    let player = PlayerId::new("ann").unwrap();
    let (score, subscore, at, idempotency) = (ScoreInput::Int(1), None, None, None);
    let new = NewScore { board: held.clone(), player, score, subscore, at, idempotency };
    let runtime = &tokio::runtime::Builder::new_current_thread().build().unwrap();
    std::thread::scope(|scope| {
        let row = server.hold_locks(database, &lock_of(no));
        let score = scope.spawn(|| runtime.block_on(submit(tally, new)).map(drop));
        wait_until("the score waits for the row", || !server.waiting_statement(database).is_empty());
        let done = boards::put(tally, other, &with_periods(), &Origin::BACKGROUND, None).map(drop);
        assert!(matches!(done, Err(Failure::Fault(Fault::Contention(_)))), "{done:?}");
        drop(row);
        score.join().unwrap().unwrap();
    });
    // Nothing was done, and it works now.
    let present = || tally.boards.get(other).unwrap().present_definition();
    assert_eq!(present(), before);
    boards::put(tally, other, &with_periods(), &Origin::BACKGROUND, None).unwrap();
    assert_ne!(present(), before);
    tally.drain();
}
