//! Random stories of money's edges. Contests have fees, prizes and period prizes, in currencies that come and go. Members are
//! renamed, closed and made anew, players banned and erased, contests cancelled, leaderboards deleted.
//!
//! The process may end at any transaction of a step, or lose its reply; then another begins, and repeats the request under the
//! same key. The paper model follows the replies and has the balance of each wallet. At the end nothing is held or under way.
//! Each prize and refund is paid once or is owed for a reason, and all replays agree. A seed repeats a story. Not here: which
//! request is refused with what (`histories`).

mod paper;
mod play;

use crate::wallets::histories::dying::{Dying, DyingStore, End};
use crate::wallets::histories::paper::FEE;
use crate::wallets::prizes::DAY;
use crate::wallets::verify::{owed, verify};
use crate::wallets::world::{Kind, World, code, idempotency, new_member, order, prove};
use paper::{Account, CUPS, Cup, KEEP, Named, OF_DAY, SLOTS, begin_on, usd};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tally_rules::contest::member::UnpaidReason;
use tally_rules::contest::record::ContestTask;
use tally_rules::contest::{ContestState, Payout};
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::ledger::{Currency, Member, MemberId, TransferKind, TransferRequest};
use tally_rules::{Origin, PlayerId, Rejection};
use tally_service::contests::execute::ContestActor;
use tally_service::contests::{ban, change, expire, finish, read, scheduler, settle, start as begin};
use tally_service::ledger::transfers::{self, NewTransfer};
use tally_service::members::{self, NewMember, change::MemberChange};
use tally_service::periods::{prizes, scheduler as periods};
use tally_service::players::erase;
use tally_service::{Failure, Tally};
use tally_store::Store;
use tally_testkit::Rng;
use tally_testkit::rng::soak;
use tokio::runtime::Runtime;

/// One story, and its process.
struct Story {
    rng: Rng,
    store: Arc<dyn Store>,
    dying: DyingStore,
    tally: Arc<Tally>,
    now: Arc<AtomicI64>,
    runtime: Runtime,
    has_usd: bool,
    accounts: Vec<Account>,
    cups: Vec<Cup>,
    money: BTreeMap<(MemberId, Currency), i64>,
    /// Prizes that could not be paid.
    debts: Vec<String>,
    asked: usize,
    /// The results, with their counts.
    seen: BTreeMap<&'static str, usize>,
}

impl Story {
    fn new(world: &World, seed: u64) -> Self {
        world.tally.drain();
        let store = Arc::clone(&world.tally.store);
        let (now, dying) = (Arc::new(AtomicI64::new(world.now().0)), Dying::new(Arc::clone(&store)));
        let tally = begin_on(&dying, &now, true).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        let mut story = Self {
            rng: Rng::new(seed),
            store,
            dying,
            tally,
            now,
            runtime,
            has_usd: true,
            accounts: Vec::new(),
            cups: Vec::new(),
            money: BTreeMap::new(),
            debts: Vec::new(),
            asked: 0,
            seen: BTreeMap::new(),
        };
        for no in 0..SLOTS {
            story.make(PlayerId::new(&format!("p{no}")).unwrap()).unwrap();
        }
        story
    }

    fn note(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    /// Another process; the last one is as a kill leaves it.
    fn begin(&mut self) {
        self.dying.die();
        self.dying = Dying::new(Arc::clone(&self.store));
        self.tally = begin_on(&self.dying, &self.now, self.has_usd).unwrap();
    }

    /// Repeats a request under a key until there is a reply, also if the process ends.
    fn ask<T>(
        &mut self,
        what: impl Fn(&Arc<Tally>, &Runtime, Option<IdempotencyKey>) -> Result<T, Failure>,
    ) -> Result<T, Rejection> {
        self.asked += 1;
        let key = format!("step {}", self.asked);
        if self.rng.percent(30) {
            let ends = [End::Before, End::After, End::LostDone, End::LostUndone, End::Unknown];
            self.dying.arm(self.rng.below(4) as u32, *self.rng.pick(&ends));
        }
        let mut done = what(&self.tally, &self.runtime, idempotency(&key, 1));
        let mut is_settled = false;
        while !is_settled {
            if self.dying.disarm().1 {
                self.note("kill");
                self.begin();
            }
            if matches!(done, Err(Failure::Fault(_))) {
                done = what(&self.tally, &self.runtime, idempotency(&key, 1));
            } else {
                // Its follow-up work may have been cut short.
                let tally = &self.tally;
                let closed = scheduler::do_due(tally).and(periods::close_due(tally));
                is_settled = closed.and(prizes::pay_due(tally)).is_ok();
            }
        }
        match done {
            Ok(done) => Ok(done),
            Err(Failure::Rejected(rejection)) => Err(rejection),
            Err(Failure::Fault(fault)) => panic!("{fault}"),
        }
    }

    fn add(&mut self, member: MemberId, currency: Currency, units: i64) {
        *self.money.entry((member, currency)).or_default() += units;
    }

    /// The account that a name finds.
    fn holder(&self, name: &PlayerId) -> Option<&Account> {
        self.accounts.iter().find(|one| one.name == *name && !one.is_closed)
    }

    fn is_closed(&self, member: MemberId) -> bool {
        self.accounts.iter().any(|one| one.member == member && one.is_closed)
    }

    /// A contest that is open or runs, moves money, and has an entry of that name.
    fn with_entry(&self, name: &PlayerId) -> Option<&Cup> {
        let has = |cup: &&Cup| {
            let entry = match cup.state {
                ContestState::Open => {
                    let record = read::get(&self.tally, &cup.id).unwrap();
                    let seen = tally_store::EntrantKey { contest: record.no, player: name.clone() };
                    let found = self.store.ledger().applications_of(&[seen]).unwrap().remove(0);
                    found.is_some_and(|one| one.status != tally_rules::contest::Status::Rejected)
                }
                ContestState::Running => cup.members.contains_key(name),
                _ => false,
            };
            entry && cup.needs_members()
        };
        self.cups.iter().find(has)
    }

    /// A new member of that name, with money.
    fn make(&mut self, name: PlayerId) -> Result<(), Rejection> {
        let login = format!("login {}", self.accounts.len());
        let new = |idempotency| {
            let new = new_member(&login);
            let member = Member { player: name.clone(), ..new.member };
            NewMember { member, player_is_id: false, idempotency }
        };
        let is_free = self.holder(&name).is_none();
        let done = self.ask(|tally, runtime, key| {
            runtime.block_on(members::create(tally, new(key), &Origin::BACKGROUND))
        });
        match done {
            Ok(made) => {
                assert!(is_free && self.with_entry(&name).is_none(), "{name:?} has an entry or a holder");
                self.accounts.push(Account { member: made.id, name, is_closed: false });
                self.deposit(made.id, code("KRW"), 100);
                Ok(())
            }
            Err(rejection) => {
                match &rejection {
                    Rejection::PlayerTaken(_) => assert!(!is_free),
                    Rejection::PlayerInContest(_) => assert!(self.with_entry(&name).is_some()),
                    other => panic!("{other:?}"),
                }
                self.note(rejection.code());
                Err(rejection)
            }
        }
    }

    fn deposit(&mut self, member: MemberId, currency: Currency, units: i64) {
        let order = TransferRequest { currency, ..order(TransferKind::Deposit { to: member }, units) };
        if self.post(&order) {
            self.add(member, currency, units);
        }
    }

    fn post(&mut self, order: &TransferRequest) -> bool {
        let (origin, mint_cap) = (Origin::default(), None);
        let new =
            |idempotency| NewTransfer { order: order.clone(), origin: origin.clone(), idempotency, mint_cap };
        self.ask(|tally, runtime, key| runtime.block_on(transfers::post(tally, new(key))).map(drop)).is_ok()
    }

    /// A name: of a member, of a closed one, or new.
    fn any_name(&mut self) -> PlayerId {
        if self.rng.percent(5) {
            return PlayerId::new(&format!("new {}", self.asked)).unwrap();
        }
        let any = self.rng.below(self.accounts.len() as u64) as usize;
        let open = self.any_member().filter(|_| self.rng.percent(70));
        self.accounts[open.unwrap_or(any)].name.clone()
    }

    fn any_member(&mut self) -> Option<usize> {
        let open: Vec<usize> = (0..self.accounts.len()).filter(|at| !self.accounts[*at].is_closed).collect();
        if open.is_empty() { None } else { Some(*self.rng.pick(&open)) }
    }

    fn new_cup(&mut self) {
        let has_usd = self.rng.percent(50);
        let (cup, spec) = Cup::new(self.asked, if has_usd { usd() } else { code("KRW") }, &mut self.rng);
        let done = self.ask(|tally, _, key| {
            change::create(tally, &cup.id, &ContestActor::SERVER, &spec, key.as_ref()).map(drop)
        });
        match done {
            Ok(()) => self.cups.push(cup),
            Err(rejection) => {
                assert!(matches!(rejection, Rejection::InvalidContest(_)), "{rejection:?}");
                assert!(!self.has_usd && has_usd && cup.uses(), "{cup:?}");
            }
        }
    }

    /// From state to state; paper follows.
    fn turn(&mut self, at: usize, to: ContestState) {
        let (id, admin) = (self.cups[at].id.clone(), &ContestActor::ADMIN);
        let done = self.ask(|tally, _, key| {
            let key = key.as_ref();
            match to {
                ContestState::Open => change::open(tally, &id, admin, key).map(drop),
                ContestState::Running => begin::start(tally, &id, admin, key).map(drop),
                ContestState::Finished => finish::finish(tally, &id, admin, key).map(drop),
                ContestState::Settled => settle::settle(tally, &id, admin, key).map(drop),
                _ => finish::cancel(tally, &id, admin, key).map(drop),
            }
        });
        let from = self.cups[at].state;
        if let Err(rejection) = done {
            let is_late = matches!(rejection, Rejection::ContestState(state) if state == from);
            let is_bad =
                to == ContestState::Running && matches!(rejection, Rejection::InvalidApplications { .. });
            assert!(is_late || is_bad, "{rejection:?} of {:?}", self.cups[at]);
            return;
        }
        self.note(to.as_str());
        if from == to {
            return;
        }
        let record = read::get(&self.tally, &id).unwrap();
        assert_eq!((record.state, &record.work), (to, &ContestTask::None), "{id:?}");
        self.cups[at].state = to;
        match to {
            ContestState::Running => {
                let members = self.store.ledger().contest_members(record.no, None, 99).unwrap();
                let fee = if self.cups[at].fee { -FEE } else { 0 };
                self.cups[at].members =
                    members.into_iter().map(|(name, enrolled)| (name, enrolled.member)).collect();
                self.of_members(at, fee);
            }
            ContestState::Settled => self.settled(at),
            ContestState::Cancelled => {
                let paid = matches!(from, ContestState::Running | ContestState::Finished);
                let fee = if paid && self.cups[at].fee { FEE } else { 0 };
                self.of_members(at, fee);
                self.cups[at].of_day.clear();
            }
            _ => {}
        }
        if matches!(to, ContestState::Settled | ContestState::Cancelled) {
            self.cups[at].over = Some(record.since.0);
        }
    }

    fn of_members(&mut self, at: usize, units: i64) {
        let (currency, members) = (self.cups[at].currency, self.cups[at].members.clone());
        for member in members.into_values().flatten().filter(|_| units != 0) {
            self.add(member, currency, units);
        }
    }

    fn settled(&mut self, at: usize) {
        let cup = &self.cups[at];
        let (currency, id) = (cup.currency, cup.id.clone());
        for (name, units) in cup.payouts() {
            let member = self.cups[at].members[&name].expect("it has a wallet");
            let closed = self.is_closed(member);
            match closed {
                true => self.debts.push(format!(
                    "contest {}, player {}: prize of {units} {currency}, not paid: member_closed",
                    id.as_str(),
                    name.as_str()
                )),
                false => self.add(member, currency, units),
            }
            self.cups[at].paid.push((name, units, closed.then_some(UnpaidReason::MemberClosed)));
        }
    }

    /// A day passes: its first are paid, and leaderboards go that have been kept long enough.
    fn day(&mut self) {
        self.now.fetch_add(DAY, Ordering::SeqCst);
        self.ask(|tally, _, _| periods::close_due(tally).and(prizes::pay_due(tally))).unwrap();
        for at in 0..self.cups.len() {
            let scores = std::mem::take(&mut self.cups[at].of_day);
            let cup = &self.cups[at];
            let first = cup.ranked(&scores).into_iter().next().filter(|_| cup.days);
            let holder = first.and_then(|name| self.holder(&name)).map(|one| one.member);
            let currency = cup.currency;
            if let Some(member) = holder {
                self.add(member, currency, OF_DAY);
                self.note("prize of a day");
            }
        }
        self.ask(|tally, _, _| expire::delete_due(tally)).unwrap();
        let now = self.now.load(Ordering::SeqCst);
        for cup in self.cups.iter().filter(|cup| cup.over.is_some_and(|over| over + KEEP <= now)) {
            assert!(self.tally.boards.get(&cup.id.board(None)).is_none(), "{cup:?}");
        }
    }

    /// The next process has other currencies, unless that would leave money without one.
    fn restart(&mut self) {
        self.has_usd = !self.has_usd;
        let next = Dying::new(Arc::clone(&self.store));
        self.tally.drain();
        let has_board = |cup: &Cup| self.tally.boards.get(&cup.id.board(None)).is_some();
        let in_use = |cup: &&Cup| {
            let ended = matches!(cup.state, ContestState::Settled | ContestState::Cancelled);
            let pays = cup.days && cup.state != ContestState::Cancelled && has_board(cup);
            cup.currency == usd() && cup.uses() && (!ended || pays)
        };
        let held = self.money.iter().filter(|((_, currency), _)| *currency == usd()).map(|(_, units)| *units);
        let is_needed = held.sum::<i64>() > 0 || self.cups.iter().any(|cup| in_use(&cup));
        match begin_on(&next, &self.now, self.has_usd) {
            Ok(tally) => {
                assert!(self.has_usd || !is_needed);
                (self.tally, self.dying) = (tally, next);
                self.note("start");
            }
            Err(failure) => {
                assert!(!self.has_usd && is_needed, "{failure}");
                assert!(failure.to_string().contains("`currencies` lacks USD"), "{failure}");
                self.has_usd = true;
                self.begin();
                self.note("refused start");
            }
        }
    }

    /// All are paid out in one currency.
    fn pay_out(&mut self) {
        for ((member, currency), units) in self.money.clone() {
            if currency == usd() && self.has_usd && units > 0 {
                let order =
                    TransferRequest { currency, ..order(TransferKind::Withdrawal { from: member }, units) };
                if self.post(&order) {
                    self.add(member, currency, -units);
                }
            }
        }
    }

    fn close(&mut self) {
        let Some(at) = self.any_member() else { return };
        let (member, by) = (self.accounts[at].member, || Origin::BACKGROUND);
        self.ask(|tally, runtime, key| runtime.block_on(members::close(tally, member, true, by(), key)))
            .unwrap();
        self.accounts[at].is_closed = true;
    }

    fn rename(&mut self) {
        let (Some(at), name) = (self.any_member(), self.any_name()) else { return };
        let (member, old) = (self.accounts[at].member, self.accounts[at].name.clone());
        let change = MemberChange { player: Some(name.clone()), ..MemberChange::default() };
        let done = self.ask(|tally, runtime, key| {
            runtime.block_on(members::change(tally, member, change.clone(), Some(Origin::BACKGROUND), key))
        });
        match done {
            Ok(_) => {
                let others = [&old, &name].into_iter().filter(|_| old != name);
                others.for_each(|name| assert!(self.with_entry(name).is_none(), "{name:?} has an entry"));
                self.accounts[at].name = name;
                self.note("rename");
            }
            Err(Rejection::PlayerTaken(_) | Rejection::PlayerInContest(_)) => self.note("no rename"),
            Err(other) => panic!("{other:?}"),
        }
    }

    fn erase(&mut self) {
        let (name, by) = (self.any_name(), || Origin::BACKGROUND);
        drop(self.ask(|tally, runtime, key| runtime.block_on(erase::erase(tally, name.clone(), by(), key))));
        for cup in &mut self.cups {
            cup.scores.remove(&name);
            cup.attempts.remove(&name);
            cup.of_day.remove(&name);
        }
    }

    fn ban(&mut self, at: usize, name: &PlayerId) {
        let (id, bans) = (self.cups[at].id.clone(), self.rng.percent(60));
        let done = self.ask(|tally, runtime, key| {
            runtime.block_on(ban::ban(tally, &id, &ContestActor::ADMIN, name, bans, key)).map(drop)
        });
        let banned = &mut self.cups[at].banned;
        match (done, bans) {
            (Ok(()), true) => drop(banned.insert(name.clone())),
            (Ok(()), false) => drop(banned.remove(name)),
            (Err(_), _) => {}
        }
    }

    fn step(&mut self) {
        self.now.fetch_add(1_000, Ordering::SeqCst);
        let live: Vec<usize> = (0..self.cups.len()).filter(|at| self.cups[*at].over.is_none()).collect();
        if live.is_empty() || live.len() < CUPS && self.rng.percent(5) {
            return self.new_cup();
        }
        // Contests that are over get some steps, too.
        let any = self.rng.below(self.cups.len() as u64) as usize;
        let at = if self.rng.percent(5) { any } else { *self.rng.pick(&live) };
        let mut name = self.any_name();
        let members: Vec<_> = self.cups[at].members.keys().cloned().collect();
        if !members.is_empty() && self.rng.percent(70) {
            name = self.rng.pick(&members).clone();
        }
        let after = ContestState::ALL.iter().filter(|state| **state > self.cups[at].state);
        let next = *after.min().unwrap_or(&ContestState::Settled);
        match self.rng.below(100) {
            0..45 => match self.cups[at].state {
                ContestState::Draft => self.turn(at, ContestState::Open),
                ContestState::Open => self.apply_or_decide(at, &name),
                ContestState::Running | ContestState::Finished if self.rng.percent(20) => self.ban(at, &name),
                ContestState::Running if self.rng.percent(20) => self.join(at, &name),
                _ => self.score(at, &name),
            },
            45..53 => self.turn(at, next),
            53..55 => {
                let to = *self.rng.pick(&ContestState::ALL[1..]);
                self.turn(at, to);
            }
            55..57 => self.turn(at, ContestState::Cancelled),
            57..64 => self.day(),
            64..69 => self.restart(),
            69..73 => self.pay_out(),
            73..77 => self.close(),
            77..86 => drop(self.make(name)),
            86..91 => self.rename(),
            91..94 => self.erase(),
            _ => {
                if let Some(to) = self.any_member().filter(|_| self.has_usd) {
                    self.deposit(self.accounts[to].member, usd(), 40);
                }
            }
        }
    }

    fn check_money(&self) {
        for account in &self.accounts {
            for (currency, wallet) in self.store.ledger().wallets_of(account.member).unwrap() {
                let wanted = self.money.get(&(account.member, currency)).copied().unwrap_or(0);
                assert_eq!(wallet.balance, wanted, "{currency} of {account:?} after {:?}", self.cups);
            }
        }
    }

    /// Every contest ends, every day is over, and nothing is left.
    fn end(mut self) -> BTreeMap<&'static str, usize> {
        if !self.has_usd {
            self.restart();
        }
        for at in 0..self.cups.len() {
            match self.cups[at].state {
                ContestState::Draft | ContestState::Open => self.turn(at, ContestState::Cancelled),
                ContestState::Running => self.turn(at, ContestState::Finished),
                _ => {}
            }
            if self.cups[at].state == ContestState::Finished {
                self.turn(at, ContestState::Settled);
            }
        }
        (0..3).for_each(|_| self.day());
        self.check_money();
        for cup in &self.cups {
            let rows: Vec<(u32, Payout)> = match cup.state {
                ContestState::Settled => read::prizes(&self.tally, &cup.id, 0, 99).unwrap().rows,
                _ if cup.fee && !cup.members.is_empty() => {
                    let rows = read::refunds(&self.tally, &cup.id, 0, 99).unwrap().rows;
                    assert_eq!(rows.len(), cup.members.len(), "{cup:?}");
                    assert!(rows.iter().all(|(_, row)| matches!(row.paid, Some(Ok(_)))), "{rows:?}");
                    continue;
                }
                _ => continue,
            };
            let shown = rows
                .into_iter()
                .map(|(_, row)| (row.player, row.amount.units(), row.paid.expect("it had its turn").err()));
            assert_eq!(shown.collect::<Vec<_>>(), cup.paid, "{cup:?}");
        }
        self.tally.drain();
        let members: Vec<MemberId> = self.accounts.iter().map(|one| one.member).collect();
        for member in &members {
            let held = self.store.ledger().wallets_of(*member).unwrap();
            assert!(held.iter().all(|(_, wallet)| wallet.held == 0), "{held:?}");
        }
        let pools =
            self.cups.iter().filter_map(|cup| read::get(&self.tally, &cup.id).unwrap().pool_account());
        prove(&*self.store, &members.iter().copied().chain(pools).collect::<Vec<_>>());
        let (reconciled, wrong) = verify(&*self.store);
        assert_eq!(wrong, [""; 0]);
        let mut listed = owed(&reconciled);
        listed.sort();
        self.debts.sort();
        assert_eq!(listed, self.debts);
        *self.seen.entry("debt").or_default() += listed.len();
        self.seen
    }
}

#[test]
fn soak_random_stories_conserve_money_and_end_with_nothing_held() {
    let mut rng = Rng::of("stories of money");
    let fresh: Vec<u64> = (0..soak(4)).map(|_| rng.below(1_000_000)).collect();
    let mut all = BTreeMap::<&str, usize>::new();
    for (no, seed) in fresh.into_iter().enumerate() {
        // A transaction of a database takes longer.
        let (kind, steps) = if no % 4 == 3 { (Kind::MariaDb, 200) } else { (Kind::Sqlite, 500) };
        let world = World::new(kind);
        let _named = Named(seed, kind);
        let mut story = Story::new(&world, seed);
        // Nothing is in a currency yet, so it may go.
        (0..no % 2).for_each(|_| story.restart());
        for step in 0..steps {
            story.step();
            if step % 20 == 0 {
                story.check_money();
            }
        }
        for (what, times) in story.end() {
            *all.entry(what).or_default() += times;
        }
    }
    let wanted = [
        "kill",
        "running",
        "settled",
        "cancelled",
        "join",
        "no attempts left",
        "prize of a day",
        "start",
        "refused start",
        "rename",
        "no rename",
        "player_in_contest",
    ];
    let missing: Vec<_> = wanted.into_iter().filter(|what| !all.contains_key(what)).collect();
    assert_eq!(missing, [""; 0], "the stories have none of these: {all:?}");
}
