//! Random histories of several contests against a paper model, in which every step may be the last of its process.
//!
//! Some of them move money, and have their applications in the store; those of the others are in a Redis. Each act has an
//! idempotency key. A process may die at any transaction and at any call of that Redis, or lose a reply. A dead one is dropped as
//! it is, another one begins in front of both, and repeats the request under the same key. The result, the applications, each
//! balance and the holds equal those of the model after every step. At the end members, prizes and refunds are read and the whole
//! ledger is proved. Redis then has nothing of contests that have started or were cancelled. Not here: clocks, several servers,
//! and a Redis that loses something (`applications`).

pub(crate) mod dying;
mod outside;
pub(crate) mod paper;

use crate::wallets::world::{self, Kind, World, code, idempotency, settings};
use dying::{Dying, DyingStore, End};
use outside::Outside;
use paper::{CAPACITY, FEE, Model, Op, PRIZES, Paper, Shape};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use tally_rules::contest::definition::{ContestSpec, Fee};
use tally_rules::contest::member::UnpaidReason;
use tally_rules::contest::record::{ApplicationLocation, ContestTask};
use tally_rules::contest::{ContestId, ContestState, Payout, Prize, PrizeTies, Status};
use tally_rules::definition::Ranking;
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::ledger::{Amount, Entry, EntryKind, MemberId, WalletKey};
use tally_rules::score::ScoreInput;
use tally_rules::{Definition, Origin, PlayerId, Rejection};
use tally_service::contests::actions::{ActionResult, ContestDone};
use tally_service::contests::execute::ContestActor;
use tally_service::contests::{
    apply, ban, change, correct, finish, pay_again, read, scheduler, settle, start,
};
use tally_service::ledger::reversals::{self, NewReversal};
use tally_service::scores::submit::{self, NewScore};
use tally_service::{Failure, Tally};
use tally_store::Store;
use tally_testkit::rng::soak;
use tally_testkit::{Cut, Rng};
use tokio::runtime::Runtime;

const PLAYERS: usize = 5;
const CONTESTS: usize = 8;
const UNITS: i64 = 35;

pub(crate) fn amount(units: i64) -> Amount {
    Amount::new(units).unwrap()
}

/// A contest of that shape.
pub(crate) fn spec(shape: Shape) -> ContestSpec {
    let prize = |(from, units): (u32, i64)| {
        let (to, currency, amount) = (from, code("KRW"), amount(units));
        Prize { from, to, currency, amount }
    };
    let ranking = if shape.ordinal { Ranking::Ordinal } else { Ranking::Competition };
    let size = shape.division.map(|size| u32::try_from(size).unwrap().try_into().unwrap());
    ContestSpec {
        title: Some("Cup".into()),
        staff: Some(vec![PlayerId::new("boss").unwrap()]),
        capacity: Some(CAPACITY as u32),
        entry_fee: Some((shape.fee > 0).then(|| Fee { currency: code("KRW"), amount: amount(shape.fee) })),
        prizes: Some((1..).zip(PRIZES).map(prize).filter(|_| shape.prizes).collect()),
        prize_ties: Some(if shape.each { PrizeTies::Each } else { PrizeTies::Split }),
        leaderboard: Some(Definition { ranking, ..Definition::default() }),
        division_size: Some(size),
        ..ContestSpec::default()
    }
}

pub(crate) fn player_of(member: MemberId) -> PlayerId {
    PlayerId::new(&member.0.to_string()).unwrap()
}

/// The acting party: a service, and its members by number.
pub(crate) struct Hand<'a> {
    pub(crate) tally: &'a Arc<Tally>,
    pub(crate) runtime: &'a Runtime,
    pub(crate) members: &'a [MemberId],
}

impl Hand<'_> {
    /// Does it on the service; a row's rejection is the rejection. `division` is that of the board that a score is for.
    pub(crate) fn act(
        &self,
        id: &ContestId,
        op: Op,
        division: Option<usize>,
        key: Option<IdempotencyKey>,
    ) -> Result<(), Failure> {
        let (tally, admin, key) = (self.tally, &ContestActor::ADMIN, key.as_ref());
        let who = |player: usize| player_of(self.members[player]);
        let rows = |done: Result<ContestDone, Failure>| {
            let done = done?;
            let ActionResult::Decided(mut rows) = done.result else { return Ok(()) };
            let row = rows.pop().unwrap()?;
            // A replay has the present rows, from which the first reply follows.
            match (op, row) {
                (Op::Accept(_), Status::Pending) => Err(Rejection::ContestFull(0).into()),
                (Op::Accept(_), Status::Rejected) => Err(Rejection::NotApplied.into()),
                _ => Ok(()),
            }
        };
        match op {
            Op::Open => change::open(tally, id, admin, key).map(drop),
            Op::Apply(player) => apply::apply(tally, id, &ContestActor::SERVER, &who(player), key).map(drop),
            Op::Accept(player) => rows(apply::decide(tally, id, admin, &[who(player)], true, key)),
            Op::Reject(player) => rows(apply::decide(tally, id, admin, &[who(player)], false, key)),
            Op::Withdraw(player) => apply::withdraw(tally, id, admin, &who(player), key).map(drop),
            Op::Start | Op::StartTwice => start::start(tally, id, admin, key).map(drop),
            Op::Score(..) | Op::ScoreElsewhere(_) => {
                let (player, score) = match op {
                    Op::Score(player, score) => (player, score),
                    Op::ScoreElsewhere(player) => (player, 9),
                    _ => unreachable!("it is another's"),
                };
                let (subscore, at, idempotency) = (None, None, key.cloned());
                let division = division.map(|no| u32::try_from(no).unwrap());
                let (board, player, score) = (id.board(division), who(player), ScoreInput::Int(score));
                let new = NewScore { board, player, score, subscore, at, idempotency };
                self.runtime.block_on(submit::submit(tally, new)).map(drop)
            }
            Op::Ban(player, banned) => {
                let player = who(player);
                let done = ban::ban(tally, id, admin, &player, banned, key.cloned());
                self.runtime.block_on(done).map(drop)
            }
            Op::Finish => finish::finish(tally, id, admin, key).map(drop),
            Op::Settle | Op::SettleTwice => settle::settle(tally, id, admin, key).map(drop),
            Op::Cancel => finish::cancel(tally, id, admin, key).map(drop),
            Op::Correct(player, score) => {
                let (player, score) = (who(player), (ScoreInput::Int(score), None));
                let done = correct::correct(tally, id, admin, &player, score, key.cloned());
                self.runtime.block_on(done).map(drop)
            }
            Op::Repay => pay_again::pay_again(tally, id, admin, key).map(drop),
            Op::ReverseFee(player) => {
                let wallet = WalletKey { member: self.members[player], currency: code("KRW") };
                let entries = tally.store.ledger().history(wallet, 1..10_000)?;
                let board = id.board(None);
                let is_fee = |entry: &Entry| {
                    entry.kind == EntryKind::Fee && entry.reference.as_deref() == Some(board.as_str())
                };
                let fee = entries.into_iter().find(|(_, entry)| is_fee(entry));
                let transaction = fee.ok_or(Rejection::TransactionNotFound)?.1.transfer.0;
                let (amount, origin, idempotency) = (None, Origin::default(), key.cloned());
                let new = NewReversal { transaction, amount, origin, idempotency };
                self.runtime.block_on(reversals::reverse(tally, new)).map(drop)
            }
        }
    }
}

fn any_op(rng: &mut Rng) -> Op {
    let player = rng.below(PLAYERS as u64) as usize;
    match rng.below(56) {
        0..3 => Op::Open,
        3..15 => Op::Apply(player),
        15..23 => Op::Accept(player),
        23..25 => Op::Reject(player),
        25..27 => Op::Withdraw(player),
        27 => Op::Start,
        28..30 => Op::StartTwice,
        // Few scores, so that some are the same.
        30..39 => Op::Score(player, rng.below(4) as i64),
        39 => Op::ScoreElsewhere(player),
        40..44 => Op::Ban(player, rng.percent(60)),
        44..46 => Op::Finish,
        46 => Op::Settle,
        47..49 => Op::SettleTwice,
        49..52 => Op::ReverseFee(player),
        52..54 => Op::Correct(player, rng.below(4) as i64),
        54 => Op::Repay,
        _ => Op::Cancel,
    }
}

fn any_shape(rng: &mut Rng) -> Shape {
    let division = rng.percent(40).then(|| rng.between(1, 2) as usize);
    let fee = if rng.percent(35) { FEE } else { 0 };
    let prizes = fee > 0 || rng.percent(25);
    Shape { fee, prizes, ordinal: rng.percent(40), each: rng.percent(50), division }
}

/// The way a step fails.
#[derive(Clone, Copy, Debug)]
enum Ending {
    /// At the transaction after this many more.
    Store(u32, End),
    /// At the call of Redis after this many more; and whether the process dies of it.
    Redis(usize, Cut, bool),
}

fn any_ending(rng: &mut Rng, has_money: bool) -> Option<Ending> {
    let ends = [End::Before, End::After, End::LostDone, End::LostUndone];
    if has_money || rng.percent(25) {
        return rng.percent(60).then(|| Ending::Store(rng.below(4) as u32, *rng.pick(&ends)));
    }
    // An answer that does not come is waited for.
    let cut = if rng.percent(75) { Cut::Before } else { Cut::Answer };
    rng.percent(60).then(|| Ending::Redis(rng.below(3) as usize, cut, rng.percent(60)))
}

/// One history: a store, and the process on it.
struct History {
    store: Arc<dyn Store>,
    outside: Outside,
    dying: DyingStore,
    hand: Option<Arc<Tally>>,
    now: Arc<AtomicI64>,
    runtime: Runtime,
    members: Vec<MemberId>,
    ids: Vec<ContestId>,
    model: Model,
    asked: usize,
    deaths: usize,
    lost: usize,
    /// Of both, those that a failure of Redis ended.
    of_redis: usize,
}

impl History {
    /// Members with money and contests, made without faults.
    fn new(world: &World, members: Vec<MemberId>, rng: &mut Rng) -> Self {
        let ids: Vec<_> = (0..CONTESTS).map(|no| ContestId::new(&format!("cup-{no}")).unwrap()).collect();
        let mut contests = Vec::new();
        for (no, id) in ids.iter().enumerate() {
            // Some of each, in every run.
            let shape = match no {
                0 => Shape { fee: FEE, prizes: true, ..any_shape(rng) },
                1 => Shape { fee: 0, prizes: false, ..any_shape(rng) },
                _ => any_shape(rng),
            };
            change::create(&world.tally, id, &ContestActor::SERVER, &spec(shape), None).unwrap();
            let again = change::create(&world.tally, id, &ContestActor::SERVER, &spec(shape), None);
            assert_eq!(world::refused(again), Rejection::ContestExists(id.as_str().into()));
            contests.push(Paper::new(shape));
        }
        world.tally.drain();
        let store = Arc::clone(&world.tally.store);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        let now = Arc::new(AtomicI64::new(world.now().0));
        let (dying, model) = (Dying::new(Arc::clone(&store)), Model::new(vec![UNITS; PLAYERS], contests));
        let (hand, asked, deaths, lost, of_redis) = (None, 0, 0, 0, 0);
        let outside = Outside::start();
        let mut history = Self {
            store,
            outside,
            dying,
            hand,
            now,
            runtime,
            members,
            ids,
            model,
            asked,
            deaths,
            lost,
            of_redis,
        };
        history.begin();
        history
    }

    /// Another process.
    fn begin(&mut self) {
        self.dying = Dying::new(Arc::clone(&self.store));
        let store = Arc::clone(&self.dying) as Arc<dyn Store>;
        let applications = Some(self.outside.applications());
        self.hand = Some(world::start_with(store, &self.now, settings(), applications).unwrap());
    }

    fn hand(&self) -> Hand<'_> {
        let tally = self.hand.as_ref().expect("there is a process");
        Hand { tally, runtime: &self.runtime, members: &self.members }
    }

    /// Sends requests, each under a key of its own; two callers send at once.
    fn ask(&self, contest: usize, op: Op, keys: &[String]) -> Vec<Result<(), Failure>> {
        let division = match op {
            Op::Score(player, _) => self.model.contests[contest].division(player),
            Op::ScoreElsewhere(player) => {
                Some(self.model.contests[contest].division(player).unwrap_or(1) + 1)
            }
            _ => None,
        };
        let (hand, id) = (self.hand(), &self.ids[contest]);
        let one = |key: &String| hand.act(id, op, division, idempotency(key, 1));
        std::thread::scope(|scope| {
            let asked: Vec<_> = keys.iter().map(|key| scope.spawn(|| one(key))).collect();
            asked.into_iter().map(|asked| asked.join().unwrap()).collect()
        })
    }

    /// The process may die, or lose a reply, at any transaction of it; then the request is repeated.
    fn step(&mut self, contest: usize, op: Op, end: Option<Ending>) -> Vec<Result<(), Failure>> {
        self.asked += 1;
        let count = if matches!(op, Op::StartTwice | Op::SettleTwice) { 2 } else { 1 };
        let keys: Vec<String> = (0..count).map(|nth| format!("{} {nth}", self.asked)).collect();
        match end {
            Some(Ending::Store(after, end)) => self.dying.arm(after, end),
            Some(Ending::Redis(after, cut, dies)) => self.outside.arm(after, cut, dies),
            None => {}
        }
        let mut all = self.ask(contest, op, &keys);
        let (happened, dead) = match end {
            Some(Ending::Redis(_, _, dies)) => {
                let happened = self.outside.disarm();
                self.of_redis += usize::from(happened);
                (happened, happened && dies)
            }
            Some(Ending::Store(..)) => self.dying.disarm(),
            None => (false, false),
        };
        if dead {
            // As a kill leaves it: nothing is drained.
            self.dying.die();
            self.hand = None;
            self.outside.pass();
            self.begin();
            self.deaths += 1;
        } else if happened {
            self.lost += 1;
        }
        for (key, done) in keys.iter().zip(&mut all) {
            while let Err(Failure::Fault(fault)) = done {
                assert!(happened, "{op:?}: {fault}");
                std::thread::yield_now();
                *done = self.ask(contest, op, std::slice::from_ref(key)).remove(0);
            }
        }
        // The follow-up work of an act may have been cut short although the act was answered.
        while let Err(failure) = scheduler::do_due(self.hand().tally) {
            assert!(happened, "{op:?}: {failure}");
        }
        all
    }

    fn check_step(&mut self, contest: usize, op: Op) {
        let paper = &self.model.contests[contest];
        let record = read::get(self.hand().tally, &self.ids[contest]).unwrap();
        assert_eq!(record.state, paper.state, "after {op:?}");
        if paper.state == ContestState::Open {
            let counts = read::counts(self.hand().tally, &[&record])[0].expect("Redis is there");
            let counts = (counts.pending as usize, counts.accepted as usize, counts.rejected as usize);
            let wanted = (paper.pending.len(), paper.accepted.len(), paper.rejected.len());
            assert_eq!(counts, wanted, "after {op:?}");
            assert_eq!(
                matches!(record.kept, ApplicationLocation::Redis(_)),
                !paper.shape.has_money(),
                "{:?}",
                record.kept
            );
            self.outside.note(&record);
        }
        assert_eq!(record.members as usize, paper.members.len());
        for (player, member) in self.members.iter().enumerate() {
            let wallet = self.store.ledger().wallets_of(*member).unwrap()[0].1.clone();
            let wanted = (self.model.money[player], self.model.held(player));
            assert_eq!((wallet.balance, wallet.held), wanted, "player {player} after {op:?}");
        }
    }

    /// Members, prizes and refunds are those of the model, each once; nothing is left over.
    fn check_end(&self) {
        let tally = self.hand().tally;
        let player = |name: &PlayerId| {
            let found = self.members.iter().position(|member| player_of(*member) == *name);
            found.expect("it is one of the players")
        };
        for (id, paper) in self.ids.iter().zip(&self.model.contests) {
            let record = read::get(tally, id).unwrap();
            assert_eq!(record.work, ContestTask::None);
            if !matches!(paper.state, ContestState::Draft | ContestState::Open) {
                assert_eq!(record.kept, ApplicationLocation::Store, "what was in Redis is cleared");
                self.outside.assert_cleared(record.no);
            }
            let mut members = self.store.ledger().contest_members(record.no, None, 1_000).unwrap();
            members.sort_by_key(|(_, enrolled)| enrolled.place);
            let found: Vec<_> = members
                .iter()
                .map(|(name, enrolled)| (player(name), enrolled.division.map(|no| no as usize)))
                .collect();
            let wanted: Vec<_> =
                paper.members.iter().map(|player| (*player, paper.division(*player))).collect();
            assert_eq!(found, wanted, "{id:?}: {paper:?}");
            let paid = |(_, row): &(u32, Payout)| {
                let is_reversed = row.rank == 0 && paper.reversed.contains(&player(&row.player));
                let unpaid = row.paid.expect("it was tried").err();
                assert_eq!(unpaid, is_reversed.then_some(UnpaidReason::Reversed), "{row:?}");
                (player(&row.player), row.division.map(|no| no as usize), row.rank, row.amount.units())
            };
            if paper.state == ContestState::Settled {
                let prizes = read::prizes(tally, id, 0, 1_000).unwrap().rows;
                assert_eq!(prizes.iter().map(paid).collect::<Vec<_>>(), paper.prizes(), "{paper:?}");
            }
            if paper.state == ContestState::Cancelled {
                let refunds = read::refunds(tally, id, 0, 1_000).unwrap().rows;
                let fees = if paper.refunded && paper.shape.fee > 0 { &paper.members[..] } else { &[] };
                let back = |player: &usize| (*player, paper.division(*player), 0, paper.shape.fee);
                assert_eq!(
                    refunds.iter().map(paid).collect::<Vec<_>>(),
                    fees.iter().map(back).collect::<Vec<_>>()
                );
            }
            if paper.state != ContestState::Open {
                assert_eq!(self.store.ledger().first_applications(record.no, None, 9).unwrap(), []);
            }
        }
    }
}

/// Whether the result equals the model's. Of two starts at once one wins; settling is the same for both.
fn check_answers(op: Op, all: Vec<Result<(), Failure>>, wanted: Result<(), &'static str>, paper: &Paper) {
    let mut done = 0;
    for one in all {
        match (one, wanted) {
            (Ok(()), Ok(())) => done += 1,
            (Err(Failure::Rejected(Rejection::ContestState(ContestState::Running))), Ok(()))
                if matches!(op, Op::StartTwice) => {}
            (Err(Failure::Rejected(rejection)), Err(wanted)) if rejection.code() == wanted => {}
            (one, wanted) => panic!("{op:?} of {paper:?}: {one:?}, not {wanted:?}"),
        }
    }
    let most = if matches!(op, Op::SettleTwice) { 2 } else { 1 };
    assert_eq!(done, if wanted.is_ok() { most } else { 0 }, "{op:?} of {paper:?}");
}

#[test]
fn soak_random_histories_with_a_crash_at_any_step_agree_with_paper() {
    let mut rng = Rng::of("contests");
    // A transaction of a server takes longer.
    for (kind, steps) in [(Kind::Sqlite, 300), (Kind::MariaDb, 120)].repeat(soak(1)) {
        let world = World::new(kind);
        let members: Vec<MemberId> = (0..PLAYERS).map(|no| world.member(&format!("m{no}"), UNITS)).collect();
        let mut history = History::new(&world, members, &mut rng);
        for _ in 0..steps {
            let (contest, op) = (rng.below(CONTESTS as u64) as usize, any_op(&mut rng));
            let end = any_ending(&mut rng, history.model.contests[contest].shape.has_money());
            let all = history.step(contest, op, end);
            let wanted = history.model.act(contest, op);
            check_answers(op, all, wanted, &history.model.contests[contest]);
            history.check_step(contest, op);
        }
        history.check_end();
        let (deaths, lost, of_redis) = (history.deaths, history.lost, history.of_redis);
        let enough = deaths > steps / 40 && lost > steps / 40 && of_redis > steps / 60;
        assert!(enough, "{kind:?}: {deaths} deaths, {lost} lost, {of_redis} of them by Redis");
        history.hand().tally.drain();
        world.end(&history.members);
    }
}
