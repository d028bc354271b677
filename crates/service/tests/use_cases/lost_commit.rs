//! The database cannot be reached at the moment of a commit. Callers get an unknown outcome, and the lane resolves it as
//! soon as the database answers.

use std::sync::Arc;
use std::time::Instant;
use tally_ranking::PageQuery;
use tally_rules::definition::{BoardSpec, Update};
use tally_rules::idempotency::{Fingerprint, IdempotencyKey, RequestKey};
use tally_rules::role::Role;
use tally_rules::score::ScoreInput;
use tally_rules::{BoardId, Micros, Origin, PlayerId};
use tally_service::failure::Fault;
use tally_service::periods::view::View;
use tally_service::scores::submit::Submitted;
use tally_service::scores::submit::{NewScore, submit};
use tally_service::secret::Secret;
use tally_service::{Clock, Failure, Keys, Progress, Settings, Tally, boards};
use tally_store::mysql::{MySqlStore, Options};
use tally_store::plan::ALL_TIME;
use tally_store::{ScoreKey, Store};
use tally_testkit::{COMMIT, Cut, DatabaseKind, GIVE_UP, Proxy, ScratchDatabase, wait_for};
use tokio::runtime::Runtime;

const NOW: Micros = Micros(1_700_000_000_000_000);

fn start(url: &str) -> Arc<Tally> {
    // One connection, so that no other one is left for a query.
    let options = Options { pool_max: 1, ..Options::default() };
    let store: Arc<dyn Store> = Arc::new(MySqlStore::open(url, &options).unwrap());
    let clock = Clock::of(|| NOW);
    let (secret, settings) = (Secret::new([1; 32]), Settings::default());
    let keys = Keys::load(Arc::clone(&store), secret.clone(), clock.clone(), &settings).unwrap();
    Tally::start(store, Arc::new(keys), clock, settings, &Progress::default()).unwrap()
}

fn board() -> BoardId {
    BoardId::new("b").unwrap()
}

/// Adds one to a player's sum, under a key.
fn send(runtime: &Runtime, tally: &Tally, name: &str, key: &str) -> Result<Submitted, Failure> {
    let key = RequestKey { scope: "test".into(), key: key.into() };
    let idempotency = Some(IdempotencyKey { key, fingerprint: Fingerprint([0; 16]).into() });
    let (player, score) = (PlayerId::new(name).unwrap(), ScoreInput::Int(1));
    let new = NewScore { board: board(), player, score, subscore: None, at: None, idempotency };
    runtime.block_on(submit(tally, new)).map(|(_, done)| done)
}

fn fault(done: Result<Submitted, Failure>) -> Fault {
    match done {
        Err(Failure::Fault(fault)) => fault,
        done => panic!("{done:?}"),
    }
}

#[test]
fn the_lane_finds_out_what_became_of_a_lost_commit_and_publishes_it() {
    let server = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let proxy = Proxy::start(server.address());
    let url = server.create_database();
    let tally = start(&url.replace(&server.address().to_string(), &proxy.address().to_string()));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let spec = BoardSpec { update: Some(Update::Sum), ..BoardSpec::default() };
    boards::put(&tally, &board(), &spec, &Origin::BACKGROUND, None).unwrap();
    let order = || {
        let view = View::find(&tally.boards.get(&board()).unwrap(), None, NOW, |_| None).unwrap();
        let query = PageQuery { limit: 10, ..PageQuery::default() };
        let page = view.read(&*tally.store, |order| order.page(&query)).unwrap();
        page.entries.iter().map(|place| (place.player.clone(), place.record.score)).collect::<Vec<_>>()
    };
    send(&runtime, &tally, "ann", "first").unwrap();
    let mut sum = 1;
    for (round, cut) in [Cut::Answer, Cut::Before, Cut::Answer].into_iter().enumerate() {
        let key = format!("round {round}");
        proxy.cut_at(COMMIT, cut);
        proxy.refuse();
        let lost = fault(send(&runtime, &tally, "ann", &key));
        assert!(matches!(lost, Fault::OutcomeUnknown(_)), "{lost:?}");
        // Nothing is done or shown before it is known.
        let behind = fault(send(&runtime, &tally, "bob", &key));
        assert!(matches!(behind, Fault::StoreUnavailable(_)), "{behind:?}");
        assert_eq!(order(), [(PlayerId::new("ann").unwrap(), sum)]);
        proxy.pass();
        // The same request again, until the lane has resolved: one effect, whatever the outcome of the first.
        let done = wait_for("the outcome is known", || match send(&runtime, &tally, "ann", &key) {
            Ok(done) => Some(done),
            Err(Failure::Fault(Fault::StoreUnavailable(_))) => None,
            Err(error) => panic!("{error}"),
        });
        sum += 1;
        assert_eq!((done.record.score, done.replayed), (sum, cut == Cut::Answer), "round {round}");
        assert_eq!(order(), [(PlayerId::new("ann").unwrap(), sum)]);
    }
    let board = tally.boards.get(&board()).unwrap().no;
    let key = ScoreKey { board, window: ALL_TIME, player: PlayerId::new("ann").unwrap() };
    assert_eq!(tally.store.records(&[key]).unwrap()[0].unwrap().score, sum);
    tally.drain();
}

/// A service behind a proxy.
fn behind_proxy() -> (Proxy, Arc<Tally>) {
    let server = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let proxy = Proxy::start(server.address());
    let url = server.create_database();
    let tally = start(&url.replace(&server.address().to_string(), &proxy.address().to_string()));
    (proxy, tally)
}

/// Does something whose commit is cut and cannot be resolved, and lets the database answer again.
fn lose<T: std::fmt::Debug>(proxy: &Proxy, cut: Cut, with: impl FnOnce() -> Result<T, Failure>) {
    proxy.cut_at(COMMIT, cut);
    proxy.refuse();
    let lost = with();
    assert!(matches!(lost, Err(Failure::Fault(Fault::OutcomeUnknown(_)))), "{lost:?}");
}

fn wait_until(is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < GIVE_UP, "it never is");
        std::thread::yield_now();
    }
}

#[test]
fn a_key_whose_revocation_was_lost_works_only_where_it_is_known_to_be_there() {
    for cut in [Cut::Answer, Cut::Before] {
        let (proxy, tally) = behind_proxy();
        let made = tally.keys.create(Role::Admin, "one", &Origin::BACKGROUND, None).unwrap();
        lose(&proxy, cut, || tally.keys.revoke(&made.row.id, true, &Origin::BACKGROUND, None));
        assert!(tally.keys.authenticate(&made.token).is_none(), "it may be revoked");
        proxy.pass();
        match cut {
            Cut::Before => wait_until(|| tally.keys.authenticate(&made.token).is_some()),
            // The next change settles it, and it stays removed.
            _ => wait_until(|| {
                boards::put(&tally, &board(), &BoardSpec::default(), &Origin::BACKGROUND, None).is_ok()
            }),
        }
        assert_eq!(tally.keys.authenticate(&made.token).is_some(), cut == Cut::Before);
        // A created one exists or not.
        lose(&proxy, cut, || tally.keys.create(Role::Admin, "two", &Origin::BACKGROUND, None));
        proxy.pass();
        wait_until(|| {
            boards::put(&tally, &board(), &BoardSpec::default(), &Origin::BACKGROUND, None).is_ok()
        });
        let made = tally.keys.list().iter().any(|row| row.name == "two");
        assert_eq!(made, cut == Cut::Answer);
        tally.drain();
    }
}

#[test]
fn a_leaderboard_whose_making_or_deleting_was_lost_is_what_is_stored() {
    for cut in [Cut::Answer, Cut::Before] {
        let (proxy, tally) = behind_proxy();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let id = board();
        lose(&proxy, cut, || boards::put(&tally, &id, &BoardSpec::default(), &Origin::BACKGROUND, None));
        proxy.pass();
        let put = wait_for("the outcome is known", || {
            match boards::put(&tally, &id, &BoardSpec::default(), &Origin::BACKGROUND, None) {
                Ok(put) => Some(put),
                Err(Failure::Fault(Fault::StoreUnavailable(_))) => None,
                Err(failure) => panic!("{failure}"),
            }
        });
        assert_eq!(put.created, cut == Cut::Before);
        send(&runtime, &tally, "ann", "first").unwrap();
        lose(&proxy, cut, || boards::delete(&tally, &id, &Origin::BACKGROUND, None));
        proxy.pass();
        // No caller retries.
        wait_until(|| tally.boards.get(&id).is_some() == (cut == Cut::Before));
        tally.drain();
    }
}
