//! A server that follows: after each change of the leader its rankings are the same.

use crate::world::{Clocks, DAY, player, rule};
use crate::wrapped::{Difference, Wrapped};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};
use tally_ranking::PageQuery;
use tally_rules::definition::{BoardSpec, Update};
use tally_rules::score::ScoreInput;
use tally_rules::{BoardId, Micros, Origin, PlayerId, Record};
use tally_service::follow::{ChangeRing, Following, Handover, Leading, Message, Position, Role, apply};
use tally_service::periods::scheduler;
use tally_service::periods::view::{View, list};
use tally_service::players::erase::ban;
use tally_service::scores::pipeline::{self, Pipeline};
use tally_service::scores::remove::remove;
use tally_service::scores::steps::PipelineStep;
use tally_service::scores::submit::{NewScore, ScoreWrite, Submit, submit_batch};
use tally_service::secret::Secret;
use tally_service::{Clock, Keys, Progress, Settings, Tally, boards};
use tally_store::sqlite::{Options, SqliteStore};
use tally_store::{
    BatchId, BoardNo, Changes, CommitTap, Committed, Loaded, ReadSet, Store, StoreError, Tapped, WriteSet,
};
use tally_testkit::rng::{self, Rng};
use tokio::runtime::Runtime;

const TOKEN: u64 = 7;
const HOUR: i64 = DAY / 24;
const BOARDS: [&str; 3] = ["a", "b", "c"];
const PLAYERS: u64 = 30;

/// A store that hands the changes of its transactions over, as a database does.
struct WithTap {
    inner: Arc<dyn Store>,
    tapped: Tapped,
}

impl Difference for WithTap {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    fn run(
        &self,
        plan: &ReadSet,
        decide: &mut dyn FnMut(&Loaded) -> WriteSet,
    ) -> Result<Committed, StoreError> {
        self.tapped.run(decide, |decide| self.inner.run(plan, decide))
    }

    fn tap(&self, tap: Arc<dyn CommitTap>) -> Option<u64> {
        self.tapped.set(tap);
        Some(TOKEN)
    }

    /// A file has no revisions; that of each leaderboard is unknown.
    fn board_revisions(&self) -> Result<Vec<(BoardNo, u64)>, StoreError> {
        Ok(self.inner.boards()?.into_iter().map(|row| (row.no, 0)).collect())
    }
}

/// A leader, and servers that follow it on the same store.
struct Servers {
    _folder: tempfile::TempDir,
    now: Arc<AtomicI64>,
    runtime: Runtime,
    inner: Arc<dyn Store>,
    store: Arc<dyn Store>,
    leader: Arc<Tally>,
}

/// A server that follows.
struct Follower {
    tally: Arc<Tally>,
    at: Position,
}

impl Servers {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&folder.path().join("t.db"), &Options::default()).unwrap();
        let inner: Arc<dyn Store> = Arc::new(store);
        let store = with_tap(&inner);
        let now = Arc::new(AtomicI64::new(100 * DAY));
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap();
        let leader = server(&store, &now, Role::Leads(None));
        Self { _folder: folder, now, runtime, inner, store, leader }
    }

    fn ring(&self) -> &ChangeRing {
        self.leader.changes.as_ref().unwrap()
    }

    fn read(&self, after: Option<Position>) -> Message {
        let message = self.runtime.block_on(self.ring().read(after, Duration::ZERO, Leading::default()));
        Message::decode(&message.encode()).unwrap()
    }

    /// A server that begins to follow, as if it had asked the leader `before` it read the store.
    fn follower(&self, before: Position) -> Follower {
        let following = Following::new("http://leader", before, Duration::from_secs(1));
        Follower { tally: server(&self.store, &self.now, Role::Follows(Arc::new(following))), at: before }
    }

    fn put(&self, board: &str, periods: &[&str]) {
        let (tally, id) = (Arc::clone(&self.leader), id(board));
        let periods = periods.iter().map(|name| rule(name, schedule(name), "UTC", 3, 600)).collect();
        let spec = BoardSpec { periods: Some(periods), update: Some(Update::Sum), ..BoardSpec::default() };
        let put = move || boards::put(&tally, &id, &spec, &Origin::BACKGROUND, None).map(drop);
        self.runtime.block_on(async { tokio::task::spawn_blocking(put).await.unwrap() }).unwrap();
    }

    /// One random change.
    fn change(&self, rng: &mut Rng) {
        let board = BOARDS[rng.below(BOARDS.len() as u64) as usize];
        let name = format!("p{}", rng.below(PLAYERS));
        let wait = &self.runtime;
        match rng.below(24) {
            0 => self.delete(board),
            1 => self.put(board, &["daily", "hourly"]),
            2 => self.put(board, &["daily"]),
            3 => {
                self.now.fetch_add(HOUR * 2 / 3, Ordering::SeqCst);
                scheduler::close_due(&self.leader).unwrap();
            }
            4 | 5 => {
                let banned = rng.below(2) == 0;
                // Rejected if the leaderboard is deleted.
                drop(wait.block_on(ban(
                    &self.leader,
                    &id(board),
                    player(&name),
                    banned,
                    Origin::BACKGROUND,
                    None,
                )));
            }
            6 => drop(wait.block_on(remove(
                &self.leader,
                &id(board),
                player(&name),
                &Origin::BACKGROUND,
                None,
            ))),
            7..11 => self.add_to_all(&name),
            _ => {
                let names: Vec<String> =
                    (0..1 + rng.below(5)).map(|_| format!("p{}", rng.below(PLAYERS))).collect();
                // One of an hour ago counts for a closed period, too.
                let at = (rng.below(4) == 0).then(|| Micros(self.now.load(Ordering::SeqCst) - HOUR));
                let score = |name: String| NewScore {
                    board: id(board),
                    player: player(&name),
                    score: ScoreInput::Int(1 + name.len() as i64),
                    subscore: None,
                    at,
                    idempotency: None,
                };
                drop(wait.block_on(submit_batch(
                    &self.leader,
                    names.into_iter().map(score).collect(),
                    false,
                )));
            }
        }
    }

    fn delete(&self, board: &str) {
        let (tally, id) = (Arc::clone(&self.leader), id(board));
        let delete = move || drop(boards::delete(&tally, &id, &Origin::BACKGROUND, None));
        self.runtime.block_on(async { tokio::task::spawn_blocking(delete).await.unwrap() });
    }

    /// A score on each leaderboard, at once.
    fn add_to_all(&self, name: &str) {
        let found = BOARDS.iter().filter_map(|board| self.leader.boards.get(*board));
        let step = |board| {
            let write = ScoreWrite { player: player(name), score: 1, subscore: 0, at: None };
            PipelineStep::Submit(Submit { board, write, idempotency: None, names_windows: false })
        };
        let steps = found.map(step).collect();
        let pipeline = Pipeline { steps, atomic: true, relaxed: false, alone: false };
        self.runtime.block_on(pipeline::run(&self.leader, pipeline)).unwrap();
    }

    /// The leader ends, and this follower leads.
    fn hand_over(&mut self, follower: Follower) {
        self.leader.drain();
        self.ring().end();
        assert!(self.read(Some(follower.at)).ends);
        let handover = Handover::of(&follower.tally);
        follower.tally.drain();
        self.store = with_tap(&self.inner);
        self.leader = server(&self.store, &self.now, Role::Leads(handover));
    }

    fn stop(self, followers: Vec<Follower>) {
        self.leader.drain();
        followers.iter().for_each(|follower| follower.tally.drain());
    }
}

impl Follower {
    fn follow(&mut self, servers: &Servers) {
        loop {
            let message = servers.read(Some(self.at));
            assert_eq!((message.newest.token, message.first), (TOKEN, self.at.number + 1));
            for changes in &message.changes {
                apply(&self.tally, &Changes::decode(changes).unwrap()).unwrap();
                self.at.number += 1;
            }
            if self.at == message.newest {
                return;
            }
        }
    }
}

fn server(store: &Arc<dyn Store>, now: &Arc<AtomicI64>, role: Role) -> Arc<Tally> {
    let clock = Clock::new(Clocks { now: Arc::clone(now), ahead: Arc::default(), boot: false });
    let settings = Settings { role, ..Settings::default() };
    let keys = Keys::load(Arc::clone(store), Secret::new([1; 32]), clock.clone(), &settings).unwrap();
    Tally::start(Arc::clone(store), Arc::new(keys), clock, settings, &Progress::default()).unwrap()
}

fn with_tap(inner: &Arc<dyn Store>) -> Arc<dyn Store> {
    Arc::new(Wrapped(WithTap { inner: Arc::clone(inner), tapped: Tapped::default() }))
}

fn id(name: &str) -> BoardId {
    BoardId::new(name).unwrap()
}

fn schedule(name: &str) -> &'static str {
    if name == "daily" { "0 0 * * *" } else { "0 * * * *" }
}

/// Everything that a reader sees: each leaderboard with its definition, its bans and the page of each period.
fn seen(tally: &Tally) -> Vec<String> {
    let mut seen = Vec::new();
    for board in tally.boards.list(None, 100) {
        seen.push(format!(
            "{} {:?} {:?}",
            board.id.as_str(),
            board.present_definition(),
            board.bans(None, 1_000)
        ));
        let periods = list(&board, tally.now()).into_iter().map(|period| period.name);
        for period in periods.chain(["all_time".into()]) {
            let view = View::find(&board, Some(&period), tally.now(), |_| None).unwrap();
            let query = PageQuery { limit: 1_000, ..PageQuery::default() };
            let page = view.read(&*tally.store, |order| order.page(&query)).unwrap();
            let places: Vec<(u64, PlayerId, Record)> =
                page.entries.into_iter().map(|place| (place.rank, place.player, place.record)).collect();
            seen.push(format!("{} {period} {} {places:?}", board.id.as_str(), view.total()));
        }
    }
    seen
}

#[test]
fn soak_a_follower_shows_what_the_leader_shows() {
    let mut servers = Servers::start();
    for board in BOARDS {
        servers.put(board, &["daily", "hourly"]);
    }
    let mut rng = Rng::new(rng::seed());
    let mut followers = vec![servers.follower(servers.ring().position())];
    for round in 0..rng::soak(400) {
        let before = servers.ring().position();
        servers.change(&mut rng);
        if round % 50 == 0 {
            // It has read a newer state than that from which it follows.
            followers.truncate(2);
            followers.push(servers.follower(before));
        }
        let wanted = seen(&servers.leader);
        for follower in &mut followers {
            follower.follow(&servers);
            assert_eq!(seen(&follower.tally), wanted, "round {round}");
        }
        if round % 130 == 129 {
            servers.hand_over(followers.remove(0));
            assert_eq!(seen(&servers.leader), wanted, "it leads from round {round} on");
            followers.into_iter().for_each(|follower| follower.tally.drain());
            followers = vec![servers.follower(servers.ring().position())];
        }
    }
    servers.stop(followers);
}

#[test]
fn changes_that_are_not_kept_any_more_are_a_gap() {
    // Two small changes, with what they take beside their bytes.
    let ring = ChangeRing::with_bytes_max(150);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let read = |number| {
        let after = Position { token: 0, number };
        runtime.block_on(ring.read(Some(after), Duration::ZERO, Leading::default()))
    };
    for change in 1..=4_u8 {
        ring.committed(vec![change; 4]);
    }
    assert_eq!(ring.position().number, 4);
    assert_eq!((read(1).first, read(1).changes.len()), (0, 0), "the second one has gone");
    assert_eq!((read(2).first, read(2).changes), (3, vec![vec![3; 4], vec![4; 4]]));
    assert_eq!((read(4).first, read(4).changes), (5, Vec::new()));
    assert_eq!(read(5).first, 0, "one that never was");
    let other = Position { token: 1, number: 3 };
    assert_eq!(
        runtime.block_on(ring.read(Some(other), Duration::ZERO, Leading::default())).first,
        0,
        "of another leader"
    );
    ring.committed(vec![9; 100]);
    assert_eq!(read(4).changes, [vec![9; 100]], "one that is larger than the bound");
}

#[test]
fn a_follower_answers_only_while_it_knows_that_it_is_recent() {
    let following =
        Following::new("http://leader", Position { token: 1, number: 5 }, Duration::from_secs(3_600));
    assert!(following.position() == Position { token: 1, number: 5 });
    following.reached(Instant::now());
    assert!(following.may_answer() && following.age() < Duration::from_secs(60));
    let strict = Following::new("http://leader", Position::default(), Duration::ZERO);
    strict.reached(Instant::now());
    std::thread::sleep(Duration::from_millis(1));
    assert!(!strict.may_answer(), "it may have missed something since");
}

#[test]
fn a_follower_knows_whether_it_can_tell_what_it_has_missed() {
    let following = Following::new("http://leader", Position::default(), Duration::from_secs(1));
    let hour = 3_600_000_000;
    following.reached(Instant::now());
    assert!(!following.can_catch_up(100), "no marks are kept");
    following.hear(Leading { renewed: 100, marks: hour });
    assert!(following.can_catch_up(100) && following.can_catch_up(101));
    assert!(!following.can_catch_up(99), "the database has lost a renewal");
    assert!(!following.can_catch_up(0), "the leader gave the lease back, and did not say that it ends");
    assert!(!following.can_catch_up(101 + hour / 2), "the leader went on for long, while this machine slept");
    following.hear(Leading { renewed: 100, marks: 1 });
    assert!(!following.can_catch_up(100), "marks of what it has missed may be deleted");
}

#[test]
fn a_transaction_in_doubt_is_handed_over_when_it_is_resolved() {
    let (tapped, ring) = (Tapped::default(), Arc::new(ChangeRing::default()));
    tapped.set(Arc::<ChangeRing>::clone(&ring));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let told = || {
        let message =
            runtime.block_on(ring.read(Some(Position::default()), Duration::ZERO, Leading::default()));
        (message.changes.len(), message.pending > 0)
    };
    let batch = |sequence| BatchId { sequence, ..BatchId::default() };
    let run = |end: fn(BatchId) -> Result<Committed, StoreError>, sequence| {
        let boards = vec![tally_store::BoardChange::Delete(BoardNo(1))];
        let mut decide = |_: &Loaded| WriteSet { boards: boards.clone(), ..WriteSet::default() };
        let done = tapped.run(&mut decide, |decide| {
            decide(&Loaded::default());
            assert!(told().1, "it is on its way");
            end(batch(sequence))
        });
        done.is_ok()
    };
    let doubt = |batch| Err(StoreError::InDoubt { batch, why: String::new() });
    assert!(!run(doubt, 1) && !run(doubt, 2));
    assert!(!run(|_| Err(StoreError::Unavailable(String::new())), 3));
    assert_eq!(told(), (0, true), "a follower that starts waits for two of them");
    assert_eq!(tapped.all_in_doubt(), [batch(1), batch(2)]);
    tapped.resolved(&batch(1), false);
    assert_eq!(told(), (0, true));
    tapped.resolved(&batch(2), true);
    tapped.resolved(&batch(2), true);
    assert_eq!(told(), (1, false), "the one that was done, once");
    assert!(run(|_| Ok(Committed::default()), 4));
    assert_eq!(told(), (2, false));
}
