//! Random ledger requests in random batches against a model that has only numbers.
//!
//! `World::prove` holds after every batch: debits equal credits, each balance is the replay of its entries, nothing is
//! negative. The held amount is that of open holds, and every hold ends once. Here every single answer is compared as well.

use crate::world::{World, code, member};
use std::collections::BTreeMap;
use tally_rules::clock::DecisionTime;
use tally_rules::ledger::hold::{Ending, HoldEnd, HoldState};
use tally_rules::ledger::limits::CurrencyLimits;
use tally_rules::ledger::working_set::LedgerWorkingSet;
use tally_rules::ledger::{Amount, HoldId, TransferId, TransferKind, TransferRequest, Uuid, WalletKey};
use tally_rules::{Micros, Rejection};
use tally_testkit::Rng;
use tally_testkit::rng::soak;

const MEMBERS: u64 = 5;

/// A hold of the model: whose, how much, until when, and how it ended.
#[derive(Clone, Debug)]
struct Promise {
    wallet: (u8, &'static str),
    amount: i64,
    until: Option<i64>,
    end: Option<(&'static str, i64, Option<u8>)>,
    ended_at: i64,
}

impl Promise {
    /// The rejection of another end than it has.
    fn resolved(&self) -> Rejection {
        let (how, ..) = self.end.expect("it has ended");
        Rejection::HoldResolved(HoldState::parse(how).unwrap(), Micros(self.ended_at))
    }
}

/// Numbers by name. An existing member has a wallet in KRW.
#[derive(Clone, Debug, Default)]
struct Model {
    balances: BTreeMap<(u8, &'static str), i64>,
    holds: BTreeMap<HoldId, Promise>,
}

#[derive(Clone, Debug)]
enum Op {
    /// 200 and 201 stand for the bank.
    Move {
        from: u8,
        to: u8,
        currency: &'static str,
        amount: i64,
    },
    Hold {
        of: u8,
        currency: &'static str,
        amount: i64,
        until: Option<i64>,
    },
    Capture {
        hold: HoldId,
        amount: Option<i64>,
        to: Option<u8>,
    },
    Void {
        hold: HoldId,
    },
    Expire {
        hold: HoldId,
    },
}

const BANK: u8 = 200;

impl Model {
    fn held(&self, wallet: (u8, &'static str)) -> i64 {
        let open = self.holds.values().filter(|hold| hold.wallet == wallet && hold.end.is_none());
        open.map(|hold| hold.amount).sum()
    }

    fn is_there(&self, who: u8) -> bool {
        self.balances.contains_key(&(who, "KRW"))
    }

    /// The result of an operation: a number to compare, or a rejection.
    fn apply(&mut self, op: &Op, id: Option<HoldId>, now: i64) -> Result<i64, Rejection> {
        match *op {
            Op::Move { from, to, currency, amount } => self.shift(from, to, currency, amount),
            Op::Hold { of, currency, amount, until } => {
                if let Some(until) = until.filter(|until| *until <= now) {
                    return Err(Rejection::HoldExpiryInPast { at: Micros(until), now: Micros(now) });
                }
                if !self.is_there(of) {
                    return Err(Rejection::MemberNotFound);
                }
                let balance =
                    *self.balances.get(&(of, currency)).ok_or(Rejection::WalletNotFound(code(currency)))?;
                let available = balance - self.held((of, currency));
                if available < amount {
                    return Err(Rejection::InsufficientFunds { needed: amount, available });
                }
                let promise = Promise { wallet: (of, currency), amount, until, end: None, ended_at: 0 };
                self.holds.insert(id.unwrap(), promise);
                Ok(amount)
            }
            Op::Capture { hold, amount, to } => {
                let promise = self.holds[&hold].clone();
                let amount = amount.unwrap_or(promise.amount);
                match promise.end {
                    Some(("expired", ..)) => return Err(Rejection::HoldExpired),
                    Some(end) if end == ("captured", amount, to) => return Ok(amount),
                    Some(_) => return Err(promise.resolved()),
                    None if promise.until.is_some_and(|until| until <= now) => {
                        return Err(Rejection::HoldExpired);
                    }
                    None if amount > promise.amount => {
                        return Err(Rejection::ExceedsHold { amount, held: promise.amount });
                    }
                    None => {}
                }
                // Moving money is not held.
                let ending = self.holds.get_mut(&hold).unwrap();
                (ending.end, ending.ended_at) = (Some(("captured", amount, to)), now);
                let moved = self.shift(promise.wallet.0, to.unwrap_or(BANK), promise.wallet.1, amount);
                if moved.is_err() {
                    self.holds.get_mut(&hold).unwrap().end = None;
                }
                moved.map(|_| amount)
            }
            Op::Void { hold } => {
                let promise = self.holds.get_mut(&hold).unwrap();
                match promise.end {
                    Some(("expired", ..)) => Err(Rejection::HoldExpired),
                    Some(("voided", ..)) => Ok(0),
                    Some(_) => Err(promise.resolved()),
                    None if promise.until.is_some_and(|until| until <= now) => Err(Rejection::HoldExpired),
                    None => {
                        (promise.end, promise.ended_at) = (Some(("voided", 0, None)), now);
                        Ok(0)
                    }
                }
            }
            Op::Expire { hold } => {
                let promise = self.holds.get_mut(&hold).unwrap();
                if promise.end.is_none() && promise.until.is_some_and(|until| until <= now) {
                    promise.end = Some(("expired", 0, None));
                    return Ok(1);
                }
                Ok(0)
            }
        }
    }

    fn shift(&mut self, from: u8, to: u8, currency: &'static str, amount: i64) -> Result<i64, Rejection> {
        if from != BANK && !self.is_there(from) {
            return Err(Rejection::MemberNotFound);
        }
        if from == to {
            return Err(Rejection::SameWallet(member(from)));
        }
        if to != BANK && !self.is_there(to) {
            return Err(Rejection::RecipientNotFound);
        }
        if from != BANK {
            let balance =
                *self.balances.get(&(from, currency)).ok_or(Rejection::WalletNotFound(code(currency)))?;
            let available = balance - self.held((from, currency));
            if available < amount {
                return Err(Rejection::InsufficientFunds { needed: amount, available });
            }
            self.balances.insert((from, currency), balance - amount);
        }
        if to != BANK {
            *self.balances.entry((to, currency)).or_default() += amount;
        }
        let shown = if from == BANK { to } else { from };
        Ok(self.balances[&(shown, currency)])
    }
}

/// The same by the rules.
fn by_the_book(book: &mut LedgerWorkingSet<'_>, op: &Op, id: Uuid, now: Micros) -> Result<i64, Rejection> {
    let amount_of = |units| Amount::new(units).unwrap();
    match *op {
        Op::Move { from, to, currency, amount } => {
            let what = match (from, to) {
                (BANK, to) => TransferKind::Deposit { to: member(to) },
                (from, BANK) => TransferKind::Withdrawal { from: member(from) },
                (from, to) => TransferKind::Transfer { from: member(from), to: member(to) },
            };
            let order = TransferRequest {
                what,
                currency: code(currency),
                amount: amount_of(amount),
                reference: None,
            };
            book.post(TransferId(id), &order, now).map(|posted| posted.entry.after)
        }
        Op::Hold { of, currency, amount, until } => {
            let wallet = WalletKey { member: member(of), currency: code(currency) };
            book.place(HoldId(id), wallet, amount_of(amount), until.map(Micros), now).map(|hold| hold.amount)
        }
        Op::Capture { hold, amount, to } => {
            let ending = Ending::Capture { amount: amount.map(amount_of), to: to.map(member) };
            let done = book.end(hold, ending, TransferId(id), DecisionTime::trusted(now))?;
            match done.end {
                Some((HoldEnd::Captured { amount, .. }, _)) => Ok(amount),
                end => panic!("{end:?}"),
            }
        }
        Op::Void { hold } => {
            book.end(hold, Ending::Void, TransferId(id), DecisionTime::trusted(now)).map(|_| 0)
        }
        Op::Expire { hold } => Ok(i64::from(book.expire(hold, now).is_some())),
    }
}

fn any_op(rng: &mut Rng, holds: &[HoldId], now: i64) -> Op {
    let who = |rng: &mut Rng| u8::try_from(rng.below(MEMBERS + 1)).unwrap();
    let currency = if rng.percent(20) { "USD" } else { "KRW" };
    let amount = rng.between(1, 60);
    let hold = (!holds.is_empty()).then(|| *rng.pick(holds));
    match (rng.below(10), hold) {
        (0 | 1, _) => Op::Move { from: BANK, to: who(rng), currency, amount },
        (2, _) => Op::Move { from: who(rng), to: BANK, currency, amount },
        (6, _) | (_, None) => {
            let until = rng.percent(50).then(|| now + rng.between(-1, 5));
            Op::Hold { of: who(rng), currency, amount, until }
        }
        (7, Some(hold)) => {
            let amount = rng.percent(60).then_some(amount);
            Op::Capture { hold, amount, to: rng.percent(50).then(|| who(rng)) }
        }
        (8, Some(hold)) => Op::Void { hold },
        (9, Some(hold)) => Op::Expire { hold },
        _ => Op::Move { from: who(rng), to: who(rng), currency, amount },
    }
}

#[test]
fn soak_random_orders_agree_with_a_model() {
    let mut rng = Rng::of("ledger rules");
    for _ in 0..soak(20) {
        let mut world = World::new(CurrencyLimits::default());
        let mut model = Model::default();
        // The last member is never made.
        for number in 0..u8::try_from(MEMBERS).unwrap() {
            world.transact(|book, _| book.open(member(number)));
            model.balances.insert((number, "KRW"), 0);
        }
        for _ in 0..40 {
            let now = world.now;
            let holds: Vec<HoldId> = world.holds.keys().rev().take(6).copied().collect();
            let chained = rng.percent(30);
            let ops: Vec<Op> = (0..=rng.below(6)).map(|_| any_op(&mut rng, &holds, now.0)).collect();
            // Only transfers make chains.
            let ops: Vec<Op> =
                ops.into_iter().filter(|op| !chained || matches!(op, Op::Move { .. })).collect();
            let before = model.clone();
            let whole = world.transact(|book, id| {
                let mark = book.savepoint();
                let mut whole = true;
                for op in &ops {
                    let new = id();
                    let wanted = model.apply(op, Some(HoldId(new)), now.0);
                    let got = by_the_book(book, op, new, now);
                    assert_eq!(got, wanted, "{op:?}");
                    whole &= got.is_ok();
                }
                if chained && !whole {
                    book.roll_back(mark);
                }
                whole
            });
            if chained && !whole {
                model = before;
            }
            for (key, wallet) in &world.wallets {
                let name = (key.member.0.0[0], if key.currency == code("KRW") { "KRW" } else { "USD" });
                assert_eq!(wallet.balance, model.balances[&name]);
                assert_eq!(wallet.held, model.held(name));
            }
            world.now = world.now.plus(rng.between(0, 3));
        }
    }
}
