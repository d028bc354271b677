//! Contests: acts on them, and the required state after their replies.
//!
//! The scheduler changes contests too, and an act is several transactions. So the model of one is the acknowledged and
//! irreversible part: a state that was reached, an application that was decided, a score. `verify` holds fees, prizes and fees
//! that were paid back against the ledger: each once. Wallets are compared with the model without the amounts of contests.

use crate::check::player_id;
use crate::model::MEMBERS;
use crate::operations::Fate;
use crate::world::{World, currency};
use std::collections::BTreeMap;
use std::sync::Arc;
use tally_rules::contest::definition::{ContestSpec, Fee};
use tally_rules::contest::pool::{PoolPrize, PrizePool};
use tally_rules::contest::record::ContestTask;
use tally_rules::contest::{ContestId, ContestRecord, ContestState, OnInvalid, Prize, Status};
use tally_rules::instant::SECOND;
use tally_rules::ledger::Amount;
use tally_rules::score::ScoreInput;
use tally_rules::{Micros, PlayerId};
use tally_service::contests::actions::ActionResult;
use tally_service::contests::execute::ContestActor;
use tally_service::contests::{apply, ban, change, correct, finish, pay_again, settle, start};
use tally_service::scores::submit::{NewScore, submit};
use tally_service::{ALL_TIME, Failure, Tally};
use tally_store::{EntrantKey, Reads};
use tally_testkit::rng::Rng;

/// Contests of one run.
const CONTESTS_MAX: usize = 6;
const FEE: i64 = 5;
/// The most that all contests together can take from a wallet.
pub(crate) const FEES_MAX: i64 = FEE * CONTESTS_MAX as i64;
const PRIZE: i64 = 30;
const HOUR: i64 = 3_600 * SECOND;

/// A request to a contest.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ContestAct {
    /// With a fee or not; the clock may open, start and end it.
    Create {
        fee: bool,
        times: [Option<i64>; 3],
    },
    Open,
    Apply {
        player: usize,
    },
    Decide {
        player: usize,
        accept: bool,
    },
    Withdraw {
        player: usize,
    },
    Start,
    Score {
        player: usize,
        score: i64,
    },
    Ban {
        player: usize,
        banned: bool,
    },
    Finish,
    Correct {
        player: usize,
        score: i64,
    },
    Settle,
    Repay,
    Cancel,
}

fn id(number: usize) -> ContestId {
    ContestId::new(&format!("c{number}")).unwrap()
}

fn spec(fee: bool, times: [Option<i64>; 3]) -> ContestSpec {
    let fee = fee.then(|| Fee { currency: currency(), amount: Amount::new(FEE).unwrap() });
    let prize = Prize { from: 1, to: 2, currency: currency(), amount: Amount::new(PRIZE).unwrap() };
    // Some contests pay their fees out.
    let share = PoolPrize { from: 1, to: 3, share: 3_333 };
    let pool = PrizePool { prizes: vec![share], rake: 1_000, min: Amount::new(2 * FEE).ok() };
    let pool = (fee.is_some() && times[2].is_none()).then_some(pool);
    let [opens_at, starts_at, ends_at] = times.map(|at| Some(at.map(Micros)));
    ContestSpec {
        title: Some("a contest".into()),
        capacity: Some(MEMBERS as u32),
        on_invalid: Some(OnInvalid::Skip),
        entry_fee: Some(fee),
        prizes: Some(vec![prize]),
        pool: Some(pool),
        opens_at,
        starts_at,
        ends_at,
        ..ContestSpec::default()
    }
}

/// Does it, and returns the state in a reply about the whole contest.
pub(crate) async fn act(
    tally: &Arc<Tally>,
    number: usize,
    act: &ContestAct,
) -> Result<Option<ContestState>, Failure> {
    let (id, admin) = (id(number), ContestActor::ADMIN);
    let done = match *act {
        ContestAct::Create { fee, times } => {
            change::create(tally, &id, &ContestActor::SERVER, &spec(fee, times), None)?
        }
        ContestAct::Open => change::open(tally, &id, &admin, None)?,
        ContestAct::Apply { player } => {
            return apply::apply(tally, &id, &ContestActor::SERVER, &player_id(player), None).map(|_| None);
        }
        ContestAct::Decide { player, accept } => {
            let decided = apply::decide(tally, &id, &admin, &[player_id(player)], accept, None)?;
            let rows = match decided.result {
                ActionResult::Decided(rows) => rows,
                what => panic!("it is decided: {what:?}"),
            };
            return rows.into_iter().try_for_each(|row| row.map(drop)).map(|()| None).map_err(Failure::from);
        }
        ContestAct::Withdraw { player } => {
            return apply::withdraw(tally, &id, &ContestActor::SERVER, &player_id(player), None)
                .map(|_| None);
        }
        ContestAct::Start => {
            return start::start(tally, &id, &admin, None).map(|_| Some(ContestState::Running));
        }
        ContestAct::Score { player, score } => {
            let (board, player, score) = (id.board(None), player_id(player), ScoreInput::Int(score));
            let new = NewScore { board, player, score, subscore: None, at: None, idempotency: None };
            return submit(tally, new).await.map(|_| None);
        }
        ContestAct::Ban { player, banned } => {
            return ban::ban(tally, &id, &admin, &player_id(player), banned, None).await.map(|_| None);
        }
        ContestAct::Finish => finish::finish(tally, &id, &admin, None)?,
        ContestAct::Correct { player, score } => {
            let (player, score) = (player_id(player), (ScoreInput::Int(score), None));
            return correct::correct(tally, &id, &admin, &player, score, None).await.map(|_| None);
        }
        ContestAct::Repay => pay_again::pay_again(tally, &id, &admin, None)?,
        ContestAct::Settle => settle::settle(tally, &id, &admin, None)?,
        ContestAct::Cancel => finish::cancel(tally, &id, &admin, None)?,
    };
    Ok(Some(done.record.state))
}

/// The acknowledged state of a contest.
#[derive(Debug)]
struct Known {
    /// It has reached at least that state.
    state: ContestState,
    may_be_cancelled: bool,
    applications: BTreeMap<usize, Status>,
    scores: BTreeMap<usize, i64>,
}

/// The acknowledged state of all contests, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Contests {
    known: BTreeMap<usize, Known>,
    asked: usize,
}

fn place(state: ContestState) -> usize {
    ContestState::ALL.iter().position(|other| *other == state).unwrap()
}

impl Contests {
    /// A possible next act, by the known states.
    pub(crate) fn choose(&mut self, rng: &mut Rng, now: i64) -> Option<(usize, ContestAct)> {
        if self.asked < CONTESTS_MAX && (self.known.is_empty() || rng.percent(6)) {
            let mut at = |hours: i64| rng.percent(30).then(|| now + rng.between(1, hours) * HOUR);
            let opens_at = at(4);
            let starts_at = at(24).map(|at| at + 5 * HOUR);
            let ends_at = at(72).map(|at| at + 30 * HOUR);
            self.asked += 1;
            let times = [opens_at, starts_at, ends_at];
            return Some((self.asked - 1, ContestAct::Create { fee: rng.percent(70), times }));
        }
        let numbers: Vec<usize> = self.known.keys().copied().collect();
        // Mostly one of the last.
        let number = *numbers.get(numbers.len().checked_sub(1 + rng.below(3) as usize)?)?;
        let player = rng.below(MEMBERS as u64) as usize;
        let seems = if rng.percent(8) { *rng.pick(ContestState::ALL) } else { self.known[&number].state };
        let chosen = rng.below(100);
        let act = match (seems, chosen) {
            (ContestState::Draft, _) => ContestAct::Open,
            (ContestState::Open, 0..45) => ContestAct::Apply { player },
            (ContestState::Open, 45..85) => ContestAct::Decide { player, accept: rng.percent(80) },
            (ContestState::Open, 85..90) => ContestAct::Withdraw { player },
            (ContestState::Open, 90..97) => ContestAct::Start,
            (ContestState::Running, 0..80) => ContestAct::Score { player, score: rng.between(-20, 100) },
            (ContestState::Running, 80..87) => ContestAct::Ban { player, banned: rng.percent(70) },
            (ContestState::Running, 87..97) => ContestAct::Finish,
            // The review.
            (ContestState::Finished, 0..30) => ContestAct::Correct { player, score: rng.between(-20, 100) },
            (ContestState::Finished, 30..50) => ContestAct::Ban { player, banned: rng.percent(70) },
            (ContestState::Finished, 50..90) | (ContestState::Settled, 0..50) => ContestAct::Settle,
            (ContestState::Settled, _) => ContestAct::Repay,
            _ => ContestAct::Cancel,
        };
        Some((number, act))
    }

    /// Learns from an answer.
    pub(crate) fn learn(&mut self, number: usize, act: &ContestAct, fate: &Fate) {
        let (done, unknown) = (matches!(fate, Fate::Done { .. }), matches!(fate, Fate::Unknown(_)));
        if let ContestAct::Create { .. } = act {
            if done {
                let (state, scores) = (ContestState::Draft, BTreeMap::new());
                let known = Known { state, may_be_cancelled: false, applications: BTreeMap::new(), scores };
                self.known.insert(number, known);
            }
            return;
        }
        let Some(known) = self.known.get_mut(&number).filter(|_| done || unknown) else { return };
        if let Fate::Done { reached: Some(state), .. } = fate
            && place(*state) > place(known.state)
        {
            known.state = *state;
        }
        match *act {
            ContestAct::Cancel => known.may_be_cancelled = true,
            ContestAct::Apply { player }
            | ContestAct::Withdraw { player }
            | ContestAct::Decide { player, .. }
                if unknown =>
            {
                known.applications.remove(&player);
            }
            ContestAct::Apply { player } => drop(known.applications.insert(player, Status::Pending)),
            ContestAct::Decide { player, accept } => {
                let status = if accept { Status::Accepted } else { Status::Rejected };
                known.applications.insert(player, status);
            }
            ContestAct::Withdraw { player } => drop(known.applications.remove(&player)),
            ContestAct::Correct { player, score } if done => drop(known.scores.insert(player, score)),
            ContestAct::Correct { player, .. } => drop(known.scores.remove(&player)),
            ContestAct::Score { player, score } if done => {
                let best = known.scores.entry(player).or_insert(score);
                *best = score.max(*best);
            }
            _ => {}
        }
    }

    /// A player was erased, or perhaps.
    pub(crate) fn erase(&mut self, player: usize) {
        for known in self.known.values_mut() {
            known.applications.remove(&player);
            known.scores.remove(&player);
        }
    }

    /// The acknowledged state is present, and nothing is held for a contest that is over.
    pub(crate) fn check(&self, world: &World) {
        for (number, known) in &self.known {
            let ledger = world.store().ledger();
            let record = ledger.contest(&id(*number)).unwrap().expect("a contest stays");
            let state = record.state;
            let is_right = match known.state {
                ContestState::Cancelled | ContestState::Settled => state == known.state,
                _ if known.may_be_cancelled && state == ContestState::Cancelled => true,
                _ => state != ContestState::Cancelled && place(state) >= place(known.state),
            };
            assert!(is_right, "contest {number} is {state}, after {known:?}");
            let is_over = !matches!(state, ContestState::Draft | ContestState::Open);
            if is_over && record.work == ContestTask::None {
                let left = ledger.first_applications(record.no, None, 1).unwrap();
                assert_eq!(left, [], "applications of contest {number}, which is {state}");
            }
            for (player, status) in &known.applications {
                check_application(world, &record, player_id(*player), *status);
            }
            check_scores(world, *number, known);
        }
    }
}

fn check_application(world: &World, record: &ContestRecord, player: PlayerId, status: Status) {
    let key = EntrantKey { contest: record.no, player };
    match (record.state, status) {
        (ContestState::Open, _) => {
            let found = world.store().ledger().applications_of(std::slice::from_ref(&key)).unwrap().remove(0);
            assert_eq!(found.map(|one| one.status), Some(status), "{key:?}");
        }
        (ContestState::Running | ContestState::Finished | ContestState::Settled, Status::Accepted) => {
            let found = world.store().ledger().enrolled(std::slice::from_ref(&key)).unwrap();
            assert!(found[0].is_some(), "{key:?} was accepted and is no member");
        }
        _ => {}
    }
}

fn check_scores(world: &World, number: usize, known: &Known) {
    if known.scores.is_empty() {
        return;
    }
    let board = world.tally().boards.get(&id(number).board(None)).expect("the board of a contest stays");
    let mut found = BTreeMap::new();
    let mut each = |player: PlayerId, record: tally_rules::Record| {
        found.insert(player, record.score);
    };
    world.store().scan_scores(board.no, ALL_TIME, None, usize::MAX, &mut each).unwrap();
    for (player, score) in &known.scores {
        let best = found.get(&player_id(*player));
        assert!(
            best.is_some_and(|best| best >= score),
            "contest {number}: {player} has {best:?}, not {score}"
        );
    }
}

/// The amounts that contests hold of each member now.
pub(crate) fn held(world: &World, count: usize) -> Vec<i64> {
    let mut held = vec![0; count];
    let ledger = world.store().ledger();
    for (_, record) in ledger.contests(None, None, CONTESTS_MAX).unwrap() {
        for (player, application) in ledger.first_applications(record.no, None, MEMBERS).unwrap() {
            let Some(hold) = application.hold else { continue };
            let hold = ledger.hold(hold).unwrap().expect("a hold stays");
            if hold.end.is_none() {
                held[crate::check::index_of(&player)] += hold.amount;
            }
        }
    }
    held
}

/// Nothing is due any more: each prize and each fee was paid, or paid back.
pub(crate) fn check_paid(world: &World) {
    let ledger = world.store().ledger();
    assert_eq!(ledger.payments(true, None, 1).unwrap(), [], "prizes of periods");
    for (id, record) in ledger.contests(None, None, CONTESTS_MAX).unwrap() {
        assert_eq!(record.work, ContestTask::None, "of contest {}", id.as_str());
        let owed = ledger.payouts(record.no, 0, usize::MAX).unwrap();
        assert!(
            owed.iter().all(|(_, payout)| payout.paid.is_some()),
            "contest {} owes {owed:?}",
            id.as_str()
        );
    }
}
