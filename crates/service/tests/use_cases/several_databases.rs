//! A service with ranks in memory on two databases, one of which does not answer: players of the other database go on.
//!
//! Not here: several servers (`servers`), and the databases themselves (`store/tests/backends/shards`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tally_ranking::PageQuery;
use tally_rules::definition::{BoardSpec, Update};
use tally_rules::instant::SECOND;
use tally_rules::period::{PeriodPrizes, PeriodRule};
use tally_rules::score::ScoreInput;
use tally_rules::{BoardId, Micros, Origin, PlayerId};
use tally_service::failure::Fault;
use tally_service::periods::view::View;
use tally_service::players::erase::{ban, erase};
use tally_service::scores::pipeline::{self, Pipeline};
use tally_service::scores::steps::{PipelineStep, StepReply};
use tally_service::scores::submit::{NewScore, ScoreWrite, Submit, Submitted, submit};
use tally_service::secret::Secret;
use tally_service::{Clock, Failure, Keys, Progress, Settings, Tally, boards};
use tally_store::Store;
use tally_store::mysql::Options;
use tally_store::shards::Shards;
use tally_testkit::{COMMIT, Cut, DatabaseKind, Proxy, ScratchDatabase, wait_for, wait_until};
use tokio::runtime::Runtime;

const DAY: i64 = 86_400 * SECOND;

struct World {
    tally: Arc<Tally>,
    databases: Vec<String>,
    proxies: Vec<Proxy>,
    clock: Arc<AtomicI64>,
    runtime: Runtime,
}

impl World {
    fn new() -> Self {
        let server = ScratchDatabase::shared(DatabaseKind::MariaDb10);
        let address = server.address().to_string();
        let proxies: Vec<Proxy> = (0..2).map(|_| Proxy::start(server.address())).collect();
        let own: Vec<String> = proxies.iter().map(|_| server.create_database()).collect();
        let through = |(url, proxy): (&String, &Proxy)| url.replace(&address, &proxy.address().to_string());
        let urls: Vec<String> = own.iter().zip(&proxies).map(through).collect();
        let databases = own.iter().map(|url| url.rsplit('/').next().unwrap().to_owned()).collect();
        let store: Arc<dyn Store> = Arc::new(Shards::open(&urls, &Options::default()).unwrap());
        let clock = Arc::new(AtomicI64::new(10 * DAY));
        let now = Arc::clone(&clock);
        let told = Clock::of(move || Micros(now.load(Ordering::SeqCst)));
        let (secret, settings) = (Secret::new([1; 32]), Settings::default());
        let keys = Keys::load(Arc::clone(&store), secret.clone(), told.clone(), &settings).unwrap();
        let tally = Tally::start(store, Arc::new(keys), told, settings, &Progress::default()).unwrap();
        let rule = PeriodRule {
            no: 0,
            name: "daily".into(),
            schedule: "0 0 * * *".into(),
            time_zone: "UTC".into(),
            keep: 9,
            grace_s: 0,
            prizes: PeriodPrizes::default(),
        };
        let spec = BoardSpec { periods: Some(vec![rule]), update: Some(Update::Sum), ..BoardSpec::default() };
        boards::put(&tally, &id(), &spec, &Origin::BACKGROUND, None).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        Self { tally, databases, proxies, clock, runtime }
    }

    /// A player of a database.
    fn player(&self, shard: usize, nth: usize) -> PlayerId {
        let all = (0..).map(|number| PlayerId::new(&format!("p{number}")).unwrap());
        all.filter(|player| self.tally.store.shard_of(player) == shard).nth(nth).unwrap()
    }

    fn add(&self, player: &PlayerId) -> Result<Submitted, Failure> {
        let (score, subscore, at, idempotency) = (ScoreInput::Int(1), None, None, None);
        let new = NewScore { board: id(), player: player.clone(), score, subscore, at, idempotency };
        self.runtime.block_on(submit(&self.tally, new)).map(|(_, done)| done)
    }

    /// The same, again while the player's database does not answer.
    fn add_at_last(&self, player: &PlayerId) -> Submitted {
        wait_for("the player's database answers", || match self.add(player) {
            Err(Failure::Fault(Fault::ShardUnavailable { .. })) => None,
            done => Some(done.unwrap()),
        })
    }

    /// Adds to two players with one pipeline, whose commands have their own answers.
    fn add_to_both(&self, players: [&PlayerId; 2]) -> Result<Vec<StepReply>, Failure> {
        let found = self.tally.boards.get(&id()).unwrap();
        let write =
            |player: &PlayerId| ScoreWrite { player: player.clone(), score: 1, subscore: 0, at: None };
        let step = |player| {
            PipelineStep::Submit(Submit {
                board: Arc::clone(&found),
                write: write(player),
                idempotency: None,
                names_windows: false,
            })
        };
        let steps = players.map(step).into();
        let commands = Pipeline { steps, atomic: false, relaxed: false, alone: false };
        self.runtime.block_on(pipeline::run(&self.tally, commands))
    }

    /// How many transactions the lanes have tried.
    fn tries(&self) -> u64 {
        let times = self.tally.lane_times();
        times.iter().find(|(stage, _)| *stage == "commit").unwrap().1.count()
    }

    fn ban(&self, player: &PlayerId, banned: bool) -> Result<bool, Failure> {
        self.runtime.block_on(ban(&self.tally, &id(), player.clone(), banned, Origin::BACKGROUND, None))
    }

    /// The next commit on the second database is lost. Its outcome is queried on a new connection, which is not possible until
    /// the proxy passes again.
    fn lose(&self, cut: Cut) {
        self.proxies[1].cut_at(COMMIT, cut);
        self.proxies[1].refuse();
    }

    fn page(&self, period: &str) -> BTreeMap<PlayerId, i64> {
        let board = self.tally.boards.get(&id()).unwrap();
        let view = View::find(&board, Some(period), self.tally.now(), |_| None).unwrap();
        let query = PageQuery { limit: 9, ..PageQuery::default() };
        let page = view.read(&*self.tally.store, |order| order.page(&query)).unwrap();
        page.entries.into_iter().map(|place| (place.player, place.record.score)).collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.proxies.iter().for_each(Proxy::pass);
        self.tally.drain();
    }
}

fn id() -> BoardId {
    BoardId::new("b").unwrap()
}

fn is_away<T: std::fmt::Debug>(done: Result<T, Failure>) {
    assert!(matches!(done, Err(Failure::Fault(Fault::ShardUnavailable { .. }))), "{done:?}");
}

fn is_unknown<T: std::fmt::Debug>(done: Result<T, Failure>) {
    assert!(matches!(done, Err(Failure::Fault(Fault::OutcomeUnknown(_)))), "{done:?}");
}

#[test]
fn a_ban_in_doubt_keeps_only_players_of_its_database_waiting() {
    for cut in [Cut::Answer, Cut::Before] {
        let world = World::new();
        let (here, there) = (world.player(0, 0), world.player(1, 0));
        [&here, &there].iter().for_each(|player| drop(world.add(player).unwrap()));
        world.lose(cut);
        is_unknown(world.ban(&there, true));
        // Scores, bans and a new period of the other database do not wait for it.
        world.add(&here).unwrap();
        world.ban(&here, true).unwrap();
        world.ban(&here, false).unwrap();
        world.clock.fetch_add(DAY, Ordering::SeqCst);
        assert_eq!(world.add(&here).unwrap().rank, Some(1));
        world.runtime.block_on(erase(&world.tally, world.player(0, 0), Origin::BACKGROUND, None)).unwrap();
        is_away(world.add(&world.player(1, 1)));
        is_away(world.ban(&there, false));
        world.proxies[1].pass();
        assert_eq!(world.add_at_last(&there).record.score, 2);
        let is_hidden = cut == Cut::Answer;
        assert_eq!(world.page("all_time").contains_key(&there), !is_hidden);
        assert!(!world.page("all_time").contains_key(&here));
    }
}

#[test]
fn a_period_whose_opening_is_in_doubt_is_opened_by_players_of_the_other_database() {
    for cut in [Cut::Answer, Cut::Before] {
        let world = World::new();
        let (here, there) = (world.player(0, 0), world.player(1, 0));
        [&here, &there].iter().for_each(|player| drop(world.add(player).unwrap()));
        world.clock.fetch_add(DAY, Ordering::SeqCst);
        world.lose(cut);
        is_unknown(world.add(&there));
        world.add(&here).unwrap();
        world.add(&here).unwrap();
        world.proxies[1].pass();
        world.add_at_last(&there);
        // Both are in one ranking.
        let of_there = if cut == Cut::Answer { 2 } else { 1 };
        assert_eq!(world.page("daily"), BTreeMap::from([(here.clone(), 2), (there.clone(), of_there)]));
        let of_there = of_there + 1;
        assert_eq!(world.page("all_time"), BTreeMap::from([(here, 3), (there, of_there)]));
    }
}

#[test]
fn a_period_begins_while_a_database_is_away_for_players_of_the_other_one() {
    let world = World::new();
    for (away, here) in [(1, 0), (0, 1)] {
        world.proxies[away].refuse();
        world.proxies[away].cut();
        world.clock.fetch_add(DAY, Ordering::SeqCst);
        let (here, away_one) = (world.player(here, 0), world.player(away, 0));
        world.add(&here).unwrap();
        is_away(world.add(&away_one));
        world.proxies[away].pass();
        world.add_at_last(&away_one);
        assert_eq!(world.page("daily"), BTreeMap::from([(here, 1), (away_one, 1)]));
    }
}

/// A batch of several databases passes the barrier alone. While it waits for a locked row, other scores wait for it.
#[test]
fn a_locked_row_of_one_database_is_given_up_after_one_wait_and_others_go_on() {
    let (world, server) = (World::new(), ScratchDatabase::shared(DatabaseKind::MariaDb10));
    let (here, there) = (world.player(0, 0), world.player(1, 0));
    [&here, &there].iter().for_each(|player| drop(world.add(player).unwrap()));
    let database = &world.databases[1];
    std::thread::scope(|scope| {
        let rows =
            server.hold_locks(database, "START TRANSACTION; SELECT revision FROM revisions FOR UPDATE");
        let before = world.tries();
        let both = scope.spawn(|| world.add_to_both([&there, &here]));
        // On a busy machine the wait may be over before it is seen.
        let waits = || both.is_finished() || !server.waiting_statement(database).is_empty();
        wait_until("the batch waits for the row", waits);
        let meanwhile = world.add(&world.player(0, 1));
        let replies = both.join();
        let tries = world.tries() - before;
        drop(rows);
        let replies = replies.unwrap().unwrap();
        // On a busy machine the database may say that it gave up only when nobody listens any more.
        let [StepReply::Failed(given_up), StepReply::Submitted(done)] = &replies[..] else {
            panic!("{replies:?}")
        };
        assert!(matches!(given_up, Fault::Contention(_) | Fault::ShardUnavailable { .. }), "{given_up:?}");
        assert_eq!(done.record.score, 2);
        meanwhile.unwrap();
        assert!(tries <= 3, "{tries}: at most one transaction on each database, and the other score");
    });
    assert_eq!(world.add_at_last(&there).record.score, 2);
}
