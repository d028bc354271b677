//! Random histories of several contests against lists and numbers on paper; and what the clock does.
//!
//! After every step each answer, each balance and what is held are those of the model; at the end the whole ledger is proved.

use crate::world::{Kind, World, code, refused, settings, start};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tally_rules::contest::definition::{Fee, Wish};
use tally_rules::contest::{ContestId, Prize, State};
use tally_rules::ledger::{Amount, MemberId};
use tally_rules::score::Given;
use tally_rules::{PlayerId, Refusal};
use tally_service::contests::act::Actor;
use tally_service::contests::{apply, ban, change, finish, keeper, read, settle, start as begin};
use tally_service::scores::submit::{self, NewScore};
use tally_service::{Failure, Tally};
use tally_testkit::Rng;
use tally_testkit::rng::soak;

const FEE: i64 = 10;
const CAPACITY: usize = 2;

fn amount(units: i64) -> Amount {
    Amount::new(units).unwrap()
}

fn wish(fee: bool) -> Wish {
    let prize = |from, to, units| Prize { from, to, currency: code("KRW"), amount: amount(units) };
    Wish {
        title: Some("Cup".into()),
        staff: Some(vec![PlayerId::new("boss").unwrap()]),
        capacity: Some(CAPACITY as u32),
        entry_fee: Some(fee.then(|| Fee { currency: code("KRW"), amount: amount(FEE) })),
        prizes: Some(vec![prize(1, 1, 101), prize(2, 3, 30)]),
        ..Wish::default()
    }
}

/// One contest on paper.
#[derive(Debug)]
struct Paper {
    fee: i64,
    state: State,
    pending: Vec<usize>,
    accepted: Vec<usize>,
    rejected: Vec<usize>,
    members: Vec<usize>,
    scores: BTreeMap<usize, i64>,
}

/// All of it on paper: money by player, and contests.
struct Model {
    money: Vec<i64>,
    contests: Vec<Paper>,
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Open,
    Apply(usize),
    Accept(usize),
    Reject(usize),
    Withdraw(usize),
    Start,
    Score(usize, i64),
    Finish,
    Settle,
    Cancel,
}

fn take(list: &mut Vec<usize>, player: usize) -> bool {
    let found = list.iter().position(|one| *one == player);
    found.map(|at| list.remove(at)).is_some()
}

impl Model {
    fn held(&self, player: usize) -> i64 {
        let open = self.contests.iter().filter(|one| one.state == State::Open);
        let has = |one: &&Paper| one.pending.contains(&player) || one.accepted.contains(&player);
        open.filter(has).map(|one| one.fee).sum()
    }

    fn must(&self, contest: usize, state: State) -> Result<(), &'static str> {
        if self.contests[contest].state == state { Ok(()) } else { Err("contest_state") }
    }

    fn act(&mut self, contest: usize, op: Op) -> Result<(), &'static str> {
        match op {
            Op::Open | Op::Apply(_) | Op::Accept(_) | Op::Reject(_) | Op::Withdraw(_) => {
                self.before_the_start(contest, op)
            }
            Op::Start | Op::Score(..) | Op::Finish => self.play(contest, op),
            Op::Settle | Op::Cancel => self.end(contest, op),
        }
    }

    fn before_the_start(&mut self, contest: usize, op: Op) -> Result<(), &'static str> {
        let free = |model: &Self, player: usize| model.money[player] - model.held(player);
        match op {
            Op::Open => {
                self.must(contest, State::Draft)?;
                self.contests[contest].state = State::Open;
            }
            Op::Apply(player) => {
                self.must(contest, State::Open)?;
                let one = &self.contests[contest];
                if one.rejected.contains(&player) {
                    return Err("already_rejected");
                }
                if one.pending.contains(&player) || one.accepted.contains(&player) {
                    return Err("already_applied");
                }
                if free(self, player) < one.fee {
                    return Err("insufficient_funds");
                }
                self.contests[contest].pending.push(player);
            }
            Op::Accept(player) => {
                self.must(contest, State::Open)?;
                let one = &mut self.contests[contest];
                if one.accepted.contains(&player) {
                    return Ok(());
                }
                if !one.pending.contains(&player) {
                    return Err("not_applied");
                }
                if one.accepted.len() == CAPACITY {
                    return Err("contest_full");
                }
                take(&mut one.pending, player);
                one.accepted.push(player);
            }
            Op::Reject(player) => {
                self.must(contest, State::Open)?;
                let one = &mut self.contests[contest];
                if one.rejected.contains(&player) {
                    return Ok(());
                }
                if !take(&mut one.pending, player) && !take(&mut one.accepted, player) {
                    return Err("not_applied");
                }
                one.rejected.push(player);
            }
            Op::Withdraw(player) => {
                self.must(contest, State::Open)?;
                let one = &mut self.contests[contest];
                if one.rejected.contains(&player) {
                    return Err("already_rejected");
                }
                if !take(&mut one.pending, player) && !take(&mut one.accepted, player) {
                    return Err("not_applied");
                }
            }
            _ => unreachable!("it is another's"),
        }
        Ok(())
    }

    fn play(&mut self, contest: usize, op: Op) -> Result<(), &'static str> {
        match op {
            Op::Start => {
                self.must(contest, State::Open)?;
                let one = &mut self.contests[contest];
                (one.state, one.members) = (State::Running, std::mem::take(&mut one.accepted));
                one.members.iter().for_each(|player| self.money[*player] -= one.fee);
            }
            Op::Score(player, score) => {
                let one = &mut self.contests[contest];
                match one.state {
                    // There is no such board yet.
                    State::Draft | State::Open => return Err("leaderboard_not_found"),
                    State::Cancelled if one.members.is_empty() && one.scores.is_empty() => {
                        return Err("contest_state or leaderboard_not_found");
                    }
                    State::Running if !one.members.contains(&player) => return Err("not_a_member"),
                    State::Running => {}
                    State::Finished | State::Settled | State::Cancelled => return Err("contest_state"),
                }
                let best = one.scores.entry(player).or_insert(score);
                *best = score.max(*best);
            }
            Op::Finish => {
                self.must(contest, State::Running)?;
                self.contests[contest].state = State::Finished;
            }
            _ => unreachable!("it is another's"),
        }
        Ok(())
    }

    fn end(&mut self, contest: usize, op: Op) -> Result<(), &'static str> {
        match op {
            Op::Settle => {
                let one = &mut self.contests[contest];
                if one.state == State::Settled {
                    return Ok(());
                }
                self.must(contest, State::Finished)?;
                let one = &mut self.contests[contest];
                one.state = State::Settled;
                // The board is ordinal, and who reached a score first is ahead; scores of the test differ.
                let mut ranked: Vec<_> = one.scores.iter().collect();
                ranked.sort_by_key(|(_, score)| std::cmp::Reverse(**score));
                for (rank, (player, _)) in ranked.into_iter().enumerate() {
                    self.money[*player] += [101, 30, 30].get(rank).copied().unwrap_or(0);
                }
            }
            Op::Cancel => {
                let one = &mut self.contests[contest];
                match one.state {
                    State::Cancelled => {}
                    State::Draft | State::Open => one.state = State::Cancelled,
                    State::Running => {
                        one.state = State::Cancelled;
                        one.members.iter().for_each(|player| self.money[*player] += one.fee);
                    }
                    State::Finished | State::Settled => return Err("contest_state"),
                }
            }
            _ => unreachable!("it is another's"),
        }
        Ok(())
    }
}

fn player_of(member: MemberId) -> PlayerId {
    PlayerId::new(&member.0.to_string()).unwrap()
}

/// Does it for real; a row's refusal is the refusal.
fn act(world: &World, tally: &Tally, id: &ContestId, op: Op, members: &[MemberId]) -> Result<(), Failure> {
    let who = |player: usize| player_of(members[player]);
    let rows = |done: Result<tally_service::contests::command::ContestDone, Failure>| match done?.what {
        tally_service::contests::command::What::Decided(mut rows) => match rows.pop().unwrap() {
            Ok(_) => Ok(()),
            Err(refusal) => Err(refusal.into()),
        },
        _ => Ok(()),
    };
    let admin = &Actor::Admin;
    match op {
        Op::Open => change::open(tally, id, admin, None).map(drop),
        Op::Apply(player) => apply::apply(tally, id, &Actor::Server, &who(player), None).map(drop),
        Op::Accept(player) => rows(apply::decide(tally, id, admin, &[who(player)], true, None)),
        Op::Reject(player) => rows(apply::decide(tally, id, admin, &[who(player)], false, None)),
        Op::Withdraw(player) => apply::withdraw(tally, id, admin, &who(player), None).map(drop),
        Op::Start => begin::start(tally, id, admin, None).map(drop),
        Op::Score(player, score) => {
            let (subscore, at, identity) = (None, None, None);
            let (board, player, score) = (id.board(None), who(player), Given::Int(score));
            let new = NewScore { board, player, score, subscore, at, identity };
            world.wait(submit::submit(tally, new)).map(drop)
        }
        Op::Finish => finish::finish(tally, id, admin, None).map(drop),
        Op::Settle => settle::settle(tally, id, admin, None).map(drop),
        Op::Cancel => finish::cancel(tally, id, admin, None).map(drop),
    }
}

fn any_op(rng: &mut Rng) -> Op {
    let player = rng.below(4) as usize;
    match rng.below(40) {
        0..3 => Op::Open,
        3..14 => Op::Apply(player),
        14..20 => Op::Accept(player),
        20..22 => Op::Reject(player),
        22..24 => Op::Withdraw(player),
        24..26 => Op::Start,
        26..34 => Op::Score(player, rng.below(1 << 40) as i64),
        34..36 => Op::Finish,
        36..39 => Op::Settle,
        _ => Op::Cancel,
    }
}

#[test]
fn soak_random_histories_agree_with_paper() {
    let mut rng = Rng::of("contests");
    // A transaction of a server takes longer.
    for (kind, steps) in [(Kind::Sqlite, 500), (Kind::MariaDb, 150)].repeat(soak(1)) {
        let world = World::new(kind);
        let members: Vec<MemberId> = (0..4).map(|no| world.member(&format!("m{no}"), 35)).collect();
        let mut model = Model { money: vec![35; 4], contests: Vec::new() };
        let ids: Vec<_> = (0..8).map(|no| ContestId::new(&format!("cup-{no}")).unwrap()).collect();
        for (no, id) in ids.iter().enumerate() {
            let fee = no % 3 < 2;
            change::create(&world.tally, id, &Actor::Server, &wish(fee), None).unwrap();
            let again = change::create(&world.tally, id, &Actor::Server, &wish(fee), None);
            assert_eq!(refused(again), Refusal::ContestExists);
            model.contests.push(Paper {
                fee: if fee { FEE } else { 0 },
                state: State::Draft,
                pending: Vec::new(),
                accepted: Vec::new(),
                rejected: Vec::new(),
                members: Vec::new(),
                scores: BTreeMap::new(),
            });
        }
        for _ in 0..steps {
            let (contest, op) = (rng.below(8) as usize, any_op(&mut rng));
            let wanted = model.act(contest, op);
            let done = act(&world, &world.tally, &ids[contest], op, &members);
            match (done, wanted) {
                (Ok(()), Ok(())) => {}
                (Err(Failure::Refused(refusal)), Err(wanted)) if wanted.contains(refusal.code()) => {}
                (done, wanted) => panic!("{op:?} of {:?}: {done:?}, not {wanted:?}", model.contests[contest]),
            }
            let paper = &model.contests[contest];
            let record = read::get(&world.tally, &ids[contest]).unwrap();
            let desk = (record.desk.pending as usize, record.desk.accepted as usize);
            assert_eq!(record.state, paper.state);
            if paper.state == State::Open {
                assert_eq!(desk, (paper.pending.len(), paper.accepted.len()));
            }
            assert_eq!(record.members as usize, paper.members.len());
            for (player, member) in members.iter().enumerate() {
                let wallet = world.tally.store.ledger().wallets_of(*member).unwrap()[0].1;
                let held = model.held(player);
                assert_eq!((wallet.balance, wallet.held), (model.money[player], held), "after {op:?}");
            }
        }
        world.end(&members);
    }
}

#[test]
fn what_the_clock_missed_happens_in_order_before_anybody_asks() {
    let world = World::new(Kind::Sqlite);
    let member = world.member("ann", 50);
    let now = world.now();
    let at = |seconds: i64| Some(Some(now.plus(seconds * 1_000_000)));
    let timed = Wish { opens_at: at(10), starts_at: at(20), ends_at: at(30), ..wish(true) };
    let (cup, idle) = (ContestId::new("cup").unwrap(), ContestId::new("idle").unwrap());
    change::create(&world.tally, &cup, &Actor::Server, &timed, None).unwrap();
    // Nobody is to open this one.
    let never = Wish { opens_at: Some(None), ..timed.clone() };
    change::create(&world.tally, &idle, &Actor::Server, &never, None).unwrap();
    world.advance(12_000_000);
    keeper::do_due(&world.tally).unwrap();
    let player = player_of(member);
    apply::apply(&world.tally, &cup, &Actor::Member(player.clone()), &player, None).unwrap();
    apply::decide(&world.tally, &cup, &Actor::Admin, std::slice::from_ref(&player), true, None).unwrap();
    let tally = &world.tally;
    let after = |id: &ContestId| {
        let record = read::get(tally, id).unwrap();
        (record.state, (record.since.0 - now.0) / 1_000_000)
    };
    assert_eq!((after(&cup), after(&idle)), ((State::Open, 10), (State::Draft, 0)));
    // The server is away at both moments.
    tally.drain();
    let late = Arc::new(AtomicI64::new(now.0 + 100_000_000));
    let next = start(Arc::clone(&tally.store), &late, settings()).unwrap();
    let record = read::get(&next, &cup).unwrap();
    assert_eq!((record.state, record.members, record.since), (State::Finished, 1, now.plus(30_000_000)));
    assert_eq!(read::get(&next, &idle).unwrap().state, State::Draft);
    assert_eq!(next.store.ledger().wallets_of(member).unwrap()[0].1.balance, 40);
    // Opened by hand after its start has passed, it waits for a hand.
    change::open(&next, &idle, &Actor::Admin, None).unwrap();
    late.fetch_add(1_000_000, Ordering::SeqCst);
    keeper::do_due(&next).unwrap();
    assert_eq!(read::get(&next, &idle).unwrap().state, State::Open);
    next.drain();
}

#[test]
fn who_is_hidden_gets_no_prize_and_final_ranks_hold() {
    let world = World::new(Kind::Sqlite);
    let members: Vec<MemberId> = (0..2).map(|no| world.member(&format!("m{no}"), 50)).collect();
    let id = ContestId::new("cup").unwrap();
    change::create(&world.tally, &id, &Actor::Server, &wish(false), None).unwrap();
    for (player, op) in
        [Op::Apply as fn(usize) -> Op, Op::Accept].into_iter().flat_map(|op| [(0, op), (1, op)])
    {
        drop(act(&world, &world.tally, &id, Op::Open, &members));
        act(&world, &world.tally, &id, op(player), &members).unwrap();
    }
    act(&world, &world.tally, &id, Op::Start, &members).unwrap();
    act(&world, &world.tally, &id, Op::Score(0, 9), &members).unwrap();
    act(&world, &world.tally, &id, Op::Score(1, 5), &members).unwrap();
    let hide = |actor: Actor, player: PlayerId, hidden| {
        world.wait(ban::ban(&world.tally, &id, &actor, &player, hidden, None))
    };
    let boss = || Actor::Member(PlayerId::new("boss").unwrap());
    let first = player_of(members[0]);
    assert_eq!(refused(hide(Actor::Server, first.clone(), true)), Refusal::Forbidden);
    assert_eq!(refused(hide(boss(), PlayerId::new("x").unwrap(), true)), Refusal::PlayerNotFound);
    for hidden in [true, false, true] {
        hide(boss(), first.clone(), hidden).unwrap();
    }
    act(&world, &world.tally, &id, Op::Finish, &members).unwrap();
    let ended = Refusal::ContestState(State::Finished);
    assert_eq!(refused(hide(boss(), first.clone(), false)), ended);
    // Nor by the board's own door.
    let board = id.board(None);
    let shown = tally_service::players::erase::ban(&world.tally, &board, first, false, None);
    assert_eq!(refused(world.wait(shown)), ended);
    act(&world, &world.tally, &id, Op::Settle, &members).unwrap();
    assert_eq!([world.balance(members[0]), world.balance(members[1])], [50, 151]);
    world.end(&members);
}

#[test]
fn two_starts_at_once_are_one() {
    let world = World::new(Kind::Sqlite);
    let members: Vec<MemberId> = (0..2).map(|no| world.member(&format!("m{no}"), 50)).collect();
    let id = ContestId::new("cup").unwrap();
    change::create(&world.tally, &id, &Actor::Server, &wish(true), None).unwrap();
    change::open(&world.tally, &id, &Actor::Admin, None).unwrap();
    let players: Vec<_> = members.iter().map(|member| player_of(*member)).collect();
    for player in &players {
        apply::apply(&world.tally, &id, &Actor::Server, player, None).unwrap();
    }
    let boss = Actor::For(PlayerId::new("boss").unwrap());
    apply::decide(&world.tally, &id, &boss, &players, true, None).unwrap();
    let nobody = Actor::Member(PlayerId::new("nobody").unwrap());
    assert_eq!(refused(begin::start(&world.tally, &id, &nobody, None).map(drop)), Refusal::Forbidden);
    let done: Vec<_> = std::thread::scope(|scope| {
        let start = || begin::start(&world.tally, &id, &boss, None).map(drop);
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(start)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(done.iter().filter(|done| done.is_ok()).count(), 1);
    for failed in done.into_iter().filter(Result::is_err) {
        assert_eq!(refused(failed), Refusal::ContestState(State::Running));
    }
    let record = read::get(&world.tally, &id).unwrap();
    assert_eq!((record.state, record.members), (State::Running, 2));
    assert_eq!(world.balance(members[0]), 40);
    assert!(world.tally.store.ledger().first_applications(record.no, 9).unwrap().is_empty());
    world.end(&members);
}
