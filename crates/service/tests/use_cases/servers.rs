//! Several services on one database and one Redis, with clocks that the test moves and that differ.
//!
//! Not here: processes that die or freeze (`tally/tests/faults/servers`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;
use tally_ranking::redis::{Options as RedisOptions, RedisBackend};
use tally_ranking::{PageQuery, RankingBackend};
use tally_rules::definition::{BoardSpec, Update};
use tally_rules::instant::SECOND;
use tally_rules::period::{PeriodPrizes, PeriodRule};
use tally_rules::score::ScoreInput;
use tally_rules::{BoardId, Micros, Origin, PlayerId, Rejection};
use tally_service::boards::{self, Board};
use tally_service::periods::view::View;
use tally_service::players::erase::ban;
use tally_service::scores::import::{NewChunk, NewLine, import};
use tally_service::scores::submit::{NewScore, submit};
use tally_service::secret::Secret;
use tally_service::{Clock, Failure, Keys, Progress, Settings, Tally};
use tally_store::Store;
use tally_store::mysql::{MySqlStore, Options};
use tally_store::shards::Shards;
use tally_testkit::redis::{RedisKind, ScratchRedis};
use tally_testkit::{Cut, DatabaseKind, Proxy, Rng, ScratchDatabase, SetAtEnd, wait_until};
use tokio::runtime::Runtime;

const DAY: i64 = 86_400 * SECOND;

struct World {
    tallies: Vec<Arc<Tally>>,
    clocks: Vec<Arc<AtomicI64>>,
    runtime: Runtime,
    _redis: ScratchRedis,
}

impl World {
    /// Services whose clocks are half a second apart.
    fn new(now: i64, count: usize) -> Self {
        Self::on(&ScratchDatabase::shared(DatabaseKind::MariaDb10).create_database(), now, count)
    }

    fn on(database: &str, now: i64, count: usize) -> Self {
        Self::of(&vec![vec![database.to_owned()]; count], now)
    }

    /// One for each list of databases.
    fn of(databases: &[Vec<String>], now: i64) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let redis = ScratchRedis::start(RedisKind::Redis7, &[]);
        let clocks: Vec<_> =
            (0..).zip(databases).map(|(nth, _)| Arc::new(AtomicI64::new(now + nth * SECOND / 2))).collect();
        let start = |(clock, databases): (&Arc<AtomicI64>, &Vec<String>)| {
            let options = Options { beside: Some("a test".into()), ..Options::default() };
            let store: Arc<dyn Store> = match &databases[..] {
                [one] => Arc::new(MySqlStore::open(one, &options).unwrap()),
                several => Arc::new(Shards::open(several, &options).unwrap()),
            };
            let url = format!("redis://{}", redis.address());
            let ranking =
                RankingBackend::Redis(RedisBackend::connect(&url, &RedisOptions::default()).unwrap());
            let settings = Settings { ranking, ..Settings::default() };
            let clock = Arc::clone(clock);
            let clock = Clock::of(move || Micros(clock.load(Ordering::SeqCst)));
            let secret = Secret::new([1; 32]);
            let keys = Keys::load(Arc::clone(&store), secret.clone(), clock.clone(), &settings).unwrap();
            Tally::start(store, Arc::new(keys), clock, settings, &Progress::default()).unwrap()
        };
        let tallies = clocks.iter().zip(databases).map(start).collect();
        Self { tallies, clocks, runtime, _redis: redis }
    }

    fn advance(&self, micros: i64) {
        for clock in &self.clocks {
            clock.fetch_add(micros, Ordering::SeqCst);
        }
    }

    fn put(&self, at: usize, spec: &BoardSpec) -> Arc<Board> {
        let (tally, spec) = (Arc::clone(&self.tallies[at]), spec.clone());
        let put = move || boards::put(&tally, &id(), &spec, &Origin::BACKGROUND, None);
        self.runtime.block_on(async { tokio::task::spawn_blocking(put).await.unwrap() }).unwrap().board
    }

    /// The players of a period at one service, with their scores.
    fn page(&self, at: usize, period: &str) -> Result<BTreeMap<String, i64>, Rejection> {
        let tally = &self.tallies[at];
        let board = self.runtime.block_on(tally.find(&id()))?;
        let view = View::find(&board, Some(period), tally.now(), |_| None)?;
        let query = PageQuery { limit: 1_000, ..PageQuery::default() };
        let page = view.read(&*tally.store, |order| order.page(&query)).unwrap();
        let entry =
            |place: tally_ranking::RankedEntry| (place.player.as_str().to_owned(), place.record.score);
        Ok(page.entries.into_iter().map(entry).collect())
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.tallies.iter().for_each(|tally| tally.drain());
    }
}

fn id() -> BoardId {
    BoardId::new("b").unwrap()
}

fn daily(keep: u32) -> BoardSpec {
    let rule = PeriodRule {
        no: 0,
        name: "daily".into(),
        schedule: "0 0 * * *".into(),
        time_zone: "UTC".into(),
        keep,
        grace_s: 0,
        prizes: PeriodPrizes::default(),
    };
    BoardSpec {
        periods: Some(vec![rule]),
        update: Some(Update::Sum),
        all_time: Some(false),
        ..BoardSpec::default()
    }
}

/// The additions to each player, by period.
type Added = BTreeMap<(String, String), i64>;

/// Adds until it is stopped.
fn add_until(stop: &AtomicBool, tally: &Tally, (nth, runtime): (usize, &Runtime)) -> Added {
    let (mut rng, mut added) = (Rng::of(&format!("writer {nth}")), Added::new());
    while !stop.load(Ordering::SeqCst) {
        let (name, score) = (format!("p{}", rng.below(20)), rng.between(1, 9));
        let player = PlayerId::new(&name).unwrap();
        let new = NewScore {
            board: id(),
            player,
            score: ScoreInput::Int(score),
            subscore: None,
            at: None,
            idempotency: None,
        };
        match runtime.block_on(submit(tally, new)) {
            Ok((_, done)) => *added.entry((done.period, name)).or_default() += score,
            // At the boundary: its own clock is behind that of the server which has closed it.
            Err(Failure::Rejected(Rejection::PeriodClosed(_))) => {}
            Err(failure) => panic!("{failure}"),
        }
    }
    added
}

/// Every score counts for one period at most, whichever server took it and whichever has closed it. No period has a score
/// that its reply did not name.
#[test]
fn periods_end_while_all_write() {
    let world = World::new(10 * DAY - SECOND, 3);
    world.put(0, &daily(9));
    let stop = AtomicBool::new(false);
    let added: Vec<Added> = std::thread::scope(|scope| {
        let (stop, runtime) = (&stop, &world.runtime);
        let end = SetAtEnd::new(stop);
        let writers: Vec<_> = world
            .tallies
            .iter()
            .enumerate()
            .map(|(nth, tally)| scope.spawn(move || add_until(stop, tally, (nth, runtime))))
            .collect();
        for _ in 0..3 {
            // Some are past the boundary before the others, and then all are.
            for _ in 0..6 {
                std::thread::sleep(Duration::from_millis(80));
                world.advance(SECOND / 4);
            }
            world.advance(DAY - 3 * SECOND / 2);
        }
        drop(end);
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    let mut wanted: BTreeMap<String, BTreeMap<String, i64>> = BTreeMap::new();
    for ((period, player), score) in added.into_iter().flatten() {
        *wanted.entry(period).or_default().entry(player).or_default() += score;
    }
    assert!(wanted.len() >= 3, "{:?}", wanted.keys());
    world.advance(DAY);
    for at in 0..3 {
        let board = world.tallies[at].boards.get(&id()).unwrap();
        let closed = |board: &Board| board.periods().packed().len() == wanted.len();
        wait_until("every period is closed at every server", || closed(&board));
        for (period, players) in &wanted {
            assert_eq!(&world.page(at, period).unwrap(), players, "{period} at {at}");
        }
    }
    // Banned at one, banned in the archives at all.
    let (period, players) = wanted.iter().next_back().unwrap();
    let banned = players.keys().next().unwrap();
    let player = PlayerId::new(banned).unwrap();
    world.runtime.block_on(ban(&world.tallies[1], &id(), player, true, Origin::BACKGROUND, None)).unwrap();
    for at in [1, 0, 2] {
        wait_until("it is hidden", || !world.page(at, period).unwrap().contains_key(banned));
    }
}

/// A board that is changed at one server is changed at the next batch of the others.
#[test]
fn a_changed_schedule_holds_everywhere_at_once() {
    let world = World::new(10 * DAY + 1, 2);
    world.put(0, &daily(2));
    let add = |at: usize, name: &str| {
        let (player, score) = (PlayerId::new(name).unwrap(), ScoreInput::Int(1));
        let (subscore, at_, idempotency) = (None, None, None);
        let new = NewScore { board: id(), player, score, subscore, at: at_, idempotency };
        world.runtime.block_on(submit(&world.tallies[at], new)).unwrap().1.period
    };
    assert_eq!(add(1, "ann"), "daily:1970-01-11");
    assert_eq!(world.page(0, "daily").unwrap().len(), 1, "a period that another server has opened");
    let mut spec = daily(2);
    spec.periods.as_mut().unwrap()[0].name = "hourly".into();
    spec.periods.as_mut().unwrap()[0].schedule = "0 * * * *".into();
    world.put(1, &spec);
    // It is another rule: the old one is gone with its period, at every server.
    assert_eq!(add(0, "bob"), "hourly:1970-01-11");
    assert_eq!(world.page(1, "hourly").unwrap().keys().collect::<Vec<_>>(), ["bob"]);
    assert_eq!(world.page(0, "daily").map(drop), Err(Rejection::PeriodNotFound));
}

/// As of a database that has lost the last change of a board, and no other commit that this server has read.
#[test]
fn a_board_whose_revision_went_back_is_written_again() {
    let server = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let url = server.create_database();
    let world = World::on(&url, DAY, 1);
    world.put(0, &BoardSpec::default());
    let tally = &world.tallies[0];
    let player = |name: &str| PlayerId::new(name).unwrap();
    let score = |name: &str| {
        let score = ScoreInput::Int(7);
        let new = NewScore {
            board: id(),
            player: player(name),
            score,
            subscore: None,
            at: None,
            idempotency: None,
        };
        world.runtime.block_on(submit(tally, new))
    };
    score("a").unwrap();
    world.runtime.block_on(ban(tally, &id(), player("b"), true, Origin::BACKGROUND, None)).unwrap();
    let back = |rows: &str| {
        let name = url.rsplit('/').next().unwrap();
        server.sql(&format!("UPDATE {name}.revisions SET revision = revision - 1 WHERE board {rows}"));
    };
    let no = tally.boards.get(&id()).unwrap().no.0;
    back(&format!("= {no}"));
    server.sql(&format!("DELETE FROM {}.bans", url.rsplit('/').next().unwrap()));
    score("b").unwrap();
    assert!(!tally.boards.get(&id()).unwrap().is_banned(&player("b")), "its bans are those of the store");
    assert!(tally.may_answer() && tally.store.lost().is_none());
    // A store without the newest revision that this server has read has lost commits.
    world.runtime.block_on(tally.refresh());
    back("= 0");
    wait_until("it is noticed", || tally.store.lost().is_some());
    assert!(!tally.may_answer());
    score("c").unwrap_err();
}

/// The time of the database stands still: services are ahead of it after some seconds, and decide nothing by their clocks then.
#[test]
fn a_clock_that_differs_from_the_database_is_not_trusted() {
    let args = ["--sysdate-is-now", "--init-connect=SET timestamp = UNIX_TIMESTAMP()"];
    let server = ScratchDatabase::start_with(DatabaseKind::MariaDb10, &args);
    let url = server.create_database();
    let name = url.rsplit('/').next().unwrap();
    // An account that may administer the server would not get that error.
    let account = "player@'127.0.0.1'";
    server.sql(&format!("CREATE USER {account} IDENTIFIED BY 'secret'; GRANT ALL ON {name}.* TO {account}"));
    let world = World::on(&url.replace("root@", "player:secret@"), 10 * DAY, 1);
    wait_until("it is in doubt", || world.tallies[0].trusted_now().is_none());
    assert!(world.tallies[0].clock_jump().unwrap() > 5 * SECOND);
}

/// A forgotten period at one server is purged before another one fills it again.
#[test]
fn a_period_that_was_forgotten_is_filled_again_at_another_server() {
    let world = World::new(10 * DAY, 2);
    world.put(0, &daily(1));
    let fill = |at: usize, digest: u8, score: i64, day: i64| {
        let (player, at_) = (PlayerId::new("ann").unwrap(), Some(Micros(day * DAY)));
        let rows = vec![NewLine { line: 1, player, score: ScoreInput::Int(score), at: at_ }];
        let (lines_before, lines_after, last) = (0, 1, true);
        let chunk = NewChunk { board: id(), digest: [digest; 32], lines_before, lines_after, rows, last };
        world.runtime.block_on(import(&world.tallies[at], chunk)).unwrap();
    };
    fill(0, 1, 2, 3);
    fill(0, 2, 3, 3);
    fill(0, 3, 1, 5);
    world.put(0, &daily(9));
    fill(1, 4, 100, 3);
    let wanted = BTreeMap::from([("ann".to_owned(), 100)]);
    for at in [0, 1] {
        wait_until("it is filled again", || world.page(at, "daily:1970-01-04") == Ok(wanted.clone()));
        while world.tallies[at].store.purge_deleted(100).unwrap() > 0 {}
    }
    assert_eq!(world.page(0, "daily:1970-01-04"), Ok(wanted));
}

/// The last transaction of an archive holds the leaderboard on every database. A server that is frozen in between loses that.
#[test]
fn a_ban_beside_a_frozen_server_is_in_the_archive_that_it_writes() {
    let server = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let urls = [server.create_database(), server.create_database()];
    let proxy = Proxy::start(server.address());
    let through = urls[0].replace(&server.address().to_string(), &proxy.address().to_string());
    let world = World::of(&[vec![through, urls[1].clone()], urls.to_vec()], 10 * DAY);
    world.put(0, &daily(9));
    let store = &world.tallies[0].store;
    let all = (0..).map(|number| PlayerId::new(&format!("p{number}")).unwrap());
    let banned = all.clone().find(|player| store.shard_of(player) == 1).unwrap();
    let other = all.clone().find(|player| store.shard_of(player) == 0).unwrap();
    for player in [&banned, &other] {
        let (score, subscore, at, idempotency) = (ScoreInput::Int(1), None, None, None);
        let new = NewScore { board: id(), player: player.clone(), score, subscore, at, idempotency };
        world.runtime.block_on(submit(&world.tallies[0], new)).unwrap();
    }
    let period = "daily:1970-01-11";
    assert_eq!(world.page(1, period).unwrap().len(), 2);
    // The end of the period takes two transactions of the first database. The next one writes the archive: it holds the second
    // database, and waits before the first.
    proxy.cut_after(b"FROM revisions FORCE INDEX (PRIMARY)", 2, Cut::Held);
    world.clocks[0].fetch_add(DAY, Ordering::SeqCst);
    wait_until("the archive is written", || !proxy.is_armed());
    wait_until("the ban is done", || {
        world
            .runtime
            .block_on(ban(&world.tallies[1], &id(), banned.clone(), true, Origin::BACKGROUND, None))
            .is_ok()
    });
    assert!(world.tallies[1].boards.get(&id()).unwrap().periods().packed().is_empty());
    proxy.pass();
    world.clocks[1].fetch_add(DAY, Ordering::SeqCst);
    for at in [0, 1] {
        let board = world.tallies[at].boards.get(&id()).unwrap();
        wait_until("the period is closed", || {
            let packed = board.periods().packed();
            packed.len() == 1 && !packed[0].stale
        });
        let wanted = BTreeMap::from([(other.as_str().to_owned(), 1)]);
        assert_eq!(world.page(at, period), Ok(wanted), "at {at}");
    }
}

/// Changes of another server meanwhile hold on the available databases, and wait on the unavailable one.
#[test]
fn players_of_other_databases_go_on_where_a_leaderboard_changes_while_one_is_away() {
    let server = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let urls = [server.create_database(), server.create_database()];
    let proxy = Proxy::start(server.address());
    let through = urls[1].replace(&server.address().to_string(), &proxy.address().to_string());
    let world = World::of(&[vec![urls[0].clone(), through], urls.to_vec()], 10 * DAY);
    world.put(0, &daily(9));
    let store = &world.tallies[0].store;
    let of_shard = |shard| {
        let all = (0..).map(|number| PlayerId::new(&format!("p{number}")).unwrap());
        all.filter(move |player| store.shard_of(player) == shard)
    };
    let [here, banned] = [0, 1].map(|nth| of_shard(0).nth(nth).unwrap());
    let there = of_shard(1).next().unwrap();
    let add = |at: usize, player: &PlayerId| {
        let (score, subscore, at_, idempotency) = (ScoreInput::Int(1), None, None, None);
        let new = NewScore { board: id(), player: player.clone(), score, subscore, at: at_, idempotency };
        world.runtime.block_on(submit(&world.tallies[at], new)).map(|(_, done)| done.record.score)
    };
    [&here, &banned, &there].iter().for_each(|player| assert_eq!(add(0, player).unwrap(), 1));
    let board = world.tallies[0].boards.get(&id()).unwrap();
    proxy.refuse();
    proxy.cut();
    world
        .runtime
        .block_on(ban(&world.tallies[1], &id(), banned.clone(), true, Origin::BACKGROUND, None))
        .unwrap();
    assert_eq!(add(0, &here).unwrap(), 2);
    assert!(board.is_banned(&banned));
    world.advance(DAY);
    assert_eq!(add(1, &there).unwrap(), 1, "a period begins at the other server, on the other database");
    assert_eq!(add(1, &banned).unwrap(), 1);
    assert_eq!(add(0, &here).unwrap(), 1);
    assert!(add(0, &there).is_err());
    proxy.pass();
    wait_until("its players go on", || add(0, &there).is_ok());
    let period = "daily:1970-01-12";
    let query = PageQuery { limit: 9, ..PageQuery::default() };
    // Its ranks are loaded when both databases are available.
    wait_until("both are in the period", || {
        let view = View::find(&board, Some(period), world.tallies[0].now(), |_| None).unwrap();
        let page = view.read(&*world.tallies[0].store, |order| order.page(&query));
        let scores = |page: &tally_ranking::Page| -> BTreeMap<_, _> {
            page.entries.iter().map(|place| (place.player.clone(), place.record.score)).collect()
        };
        page.is_ok_and(|page| scores(&page) == BTreeMap::from([(here.clone(), 1), (there.clone(), 2)]))
    });
}
