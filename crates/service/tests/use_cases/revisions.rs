//! Leaderboards that other servers change, on one database and one Redis: what a server does until it has read the change.
//!
//! Not here: what several servers write at the same time (`servers`), and processes (`tally/tests/faults/servers`).

use crate::intercepted::Intercepted;
use crate::wrapped::Wrapped;
use std::sync::Arc;
use tally_lanes::LaneLimits;
use tally_ranking::redis::{Options as RedisOptions, RedisBackend};
use tally_ranking::{PageQuery, RankingBackend};
use tally_rules::definition::BoardSpec;
use tally_rules::score::ScoreInput;
use tally_rules::{BoardId, Micros, Origin, PlayerId};
use tally_service::failure::Fault;
use tally_service::periods::view::View;
use tally_service::players::erase::ban;
use tally_service::scores::submit::{NewScore, submit};
use tally_service::secret::Secret;
use tally_service::{Clock, Failure, Keys, Progress, Settings, Tally, boards};
use tally_store::mysql::{MySqlStore, Options};
use tally_store::{Bans, BoardNo, Store};
use tally_testkit::redis::{RedisKind, ScratchRedis};
use tally_testkit::{DatabaseKind, ScratchDatabase, wait_until};
use tokio::runtime::Runtime;

/// A batch is planned so often before it is given up.
const TRIES: usize = 16;

/// A service, and the store below it.
struct Server {
    tally: Arc<Tally>,
    store: Arc<Wrapped<Intercepted>>,
    runtime: Runtime,
}

impl Server {
    fn start(database: &str, redis: &ScratchRedis) -> Result<Self, Failure> {
        let options = Options { beside: Some("a test".into()), ..Options::default() };
        let store = Intercepted::new(Arc::new(MySqlStore::open(database, &options).unwrap()));
        let url = format!("redis://{}", redis.address());
        let ranking = RankingBackend::Redis(RedisBackend::connect(&url, &RedisOptions::default()).unwrap());
        let settings = Settings { ranking, ..Settings::default() };
        let (clock, secret) = (Clock::of(|| Micros(1_700_000_000_000_000)), Secret::new([1; 32]));
        let below: Arc<dyn Store> = Arc::clone(&store) as _;
        let keys = Keys::load(Arc::clone(&below), secret.clone(), clock.clone(), &settings)?;
        let tally = Tally::start(below, Arc::new(keys), clock, settings, &Progress::default())?;
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        Ok(Self { tally, store, runtime })
    }

    fn put(&self, name: &str) -> BoardNo {
        boards::put(&self.tally, &id(name), &BoardSpec::default(), &Origin::BACKGROUND, None)
            .unwrap()
            .board
            .no
    }

    fn submit(&self, board: &str, name: &str, score: i64) -> Result<i64, Failure> {
        let new = NewScore {
            board: id(board),
            player: player(name),
            score: ScoreInput::Int(score),
            subscore: None,
            at: None,
            idempotency: None,
        };
        self.runtime.block_on(submit(&self.tally, new)).map(|(_, done)| done.record.score)
    }

    fn ban(&self, board: &str, name: &str) {
        self.runtime
            .block_on(ban(&self.tally, &id(board), player(name), true, Origin::BACKGROUND, None))
            .unwrap();
    }

    /// The players of a leaderboard, best first.
    fn names(&self, board: &str) -> Vec<String> {
        let board = self.runtime.block_on(self.tally.find(&id(board))).unwrap();
        let view = View::find(&board, None, self.tally.now(), |_| None).unwrap();
        let query = PageQuery { limit: 100, ..PageQuery::default() };
        let page = view.read(&*self.tally.store, |order| order.page(&query)).unwrap();
        page.entries.iter().map(|entry| entry.player.as_str().to_owned()).collect()
    }

    fn is_banned(&self, board: &str, name: &str) -> bool {
        self.tally.boards.get(&id(board)).unwrap().is_banned(&player(name))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.tally.drain();
    }
}

fn id(name: &str) -> BoardId {
    BoardId::new(name).unwrap()
}

fn player(name: &str) -> PlayerId {
    PlayerId::new(name).unwrap()
}

/// Every transaction of a batch finds that its leaderboard has changed since the plan.
#[test]
fn a_score_whose_leaderboard_changes_before_each_attempt_is_contention_and_not_stored() {
    let url = ScratchDatabase::shared(DatabaseKind::MariaDb10).create_database();
    let redis = ScratchRedis::start(RedisKind::Redis7, &[]);
    let server = Server::start(&url, &redis).unwrap();
    server.put("b");
    assert_eq!(server.submit("b", "ann", 5).unwrap(), 5);
    let before = server.store.attempts();
    server.store.change_always(true);
    let done = server.submit("b", "ann", 9);
    assert!(matches!(&done, Err(Failure::Fault(Fault::Contention(_)))), "{done:?}");
    // The lane tries a batch again as often as after a deadlock.
    let batches = 1 + LaneLimits::default().retries_max as usize;
    assert_eq!(server.store.attempts() - before, batches * TRIES);
    server.store.change_always(false);
    assert_eq!(server.submit("b", "ann", 7).unwrap(), 7, "the first 9 was not stored");
    assert_eq!(server.names("b"), ["ann"]);
}

/// Ranks are answered while a server reads the bans that another one has changed, and it reads those only.
#[test]
fn answers_go_on_while_changed_bans_are_read() {
    let url = ScratchDatabase::shared(DatabaseKind::MariaDb10).create_database();
    let redis = ScratchRedis::start(RedisKind::Redis7, &[]);
    let [other, server] = [(); 2].map(|()| Server::start(&url, &redis).unwrap());
    let no = other.put("b");
    other.put("c");
    for (board, name, score) in
        [("b", "ann", 4), ("b", "bob", 3), ("b", "cid", 2), ("b", "dee", 1), ("c", "ann", 1)]
    {
        other.submit(board, name, score).unwrap();
    }
    other.ban("b", "dee");
    wait_until("the leaderboards are known", || server.names("c").len() + server.names("b").len() == 4);
    wait_until("the first ban is known", || server.is_banned("b", "dee"));
    server.store.take_bans_read();
    let since = |read: &[(BoardNo, Bans)], names: &[&str]| {
        let mut changed: Vec<PlayerId> = Vec::new();
        for (_, bans) in read.iter().filter(|(of, _)| *of == no) {
            let Bans::Since { changes, .. } = bans else { panic!("all bans are read: {bans:?}") };
            changed
                .extend(changes.iter().filter(|(_, is_banned)| *is_banned).map(|(player, _)| player.clone()));
        }
        changed.sort_unstable();
        changed.dedup();
        changed == names.iter().map(|name| player(name)).collect::<Vec<_>>()
    };
    let held = server.store.hold_boards();
    std::thread::scope(|scope| {
        // If a check fails the reads go on, and so the threads end.
        let held = held;
        other.ban("b", "cid");
        wait_until("the change is read", || server.store.waiting() > 0);
        let reading = scope.spawn(|| (server.names("b"), server.names("c"), server.submit("c", "eve", 9)));
        wait_until("the same leaderboard and another one are answered", || reading.is_finished());
        let (same, another, submitted) = reading.join().unwrap();
        assert_eq!((same, another), (vec!["ann".to_owned(), "bob".to_owned()], vec!["ann".to_owned()]));
        assert_eq!(submitted.unwrap(), 9, "a score of another leaderboard");
        assert!(!server.is_banned("b", "cid") && server.store.waiting() > 0);
        // A score of the same leaderboard reads the change by itself, and waits for that.
        let submitting = scope.spawn(|| server.submit("b", "cid", 7));
        wait_until("the score reads the change too", || server.store.waiting() > 1);
        drop(held);
        assert_eq!(submitting.join().unwrap().unwrap(), 7);
    });
    assert!(server.is_banned("b", "cid"), "before the score is published");
    assert_eq!(server.names("b"), ["ann", "bob"]);
    assert!(since(&server.store.take_bans_read(), &["cid"]));
    other.ban("b", "bob");
    wait_until("the next change is known", || server.is_banned("b", "bob"));
    assert!(since(&server.store.take_bans_read(), &["bob"]));
    assert_eq!(server.store.whole_reads(), 0);
}

/// A start gives the id of its store to the ranking. So a Redis that has the rankings of another store is refused as a whole.
#[test]
fn a_start_on_the_redis_of_another_store_is_refused_and_changes_nothing() {
    let shared = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let urls = [shared.create_database(), shared.create_database()];
    let redis = [ScratchRedis::start(RedisKind::Redis7, &[]), ScratchRedis::start(RedisKind::Redis7, &[])];
    let first = Server::start(&urls[0], &redis[0]).unwrap();
    let no = first.put("b");
    first.submit("b", "ann", 5).unwrap();
    let second = Server::start(&urls[1], &redis[1]).unwrap();
    assert_eq!(second.put("b"), no, "both rankings have the same name");
    second.submit("b", "bob", 6).unwrap();
    drop(second);
    let refused = Server::start(&urls[1], &redis[0]).map(drop);
    let Err(Failure::Fault(Fault::RanksUnavailable(why))) = &refused else { panic!("{refused:?}") };
    assert!(why.contains("another store"), "{why}");
    assert_eq!(first.names("b"), ["ann"]);
    first.submit("b", "cid", 4).unwrap();
    assert_eq!(first.names("b"), ["ann", "cid"]);
    let second = Server::start(&urls[1], &redis[1]).unwrap();
    assert_eq!(second.names("b"), ["bob"], "its own Redis has it still");
}
