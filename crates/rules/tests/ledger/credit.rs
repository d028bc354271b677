//! Promotional credit: `promote A 30 60` gives A 30 that expire in 60 seconds. `credit A -> 20 5 1` is what has not expired, what
//! holds reserve of expired credit, and what has lapsed. `lapse A` is the background step, and `cash` a withdrawal of other money.

use crate::stories::{continue_with, named, tell};
use crate::world::{World, code};
use std::sync::Arc;
use tally_rules::clock::DecisionTime;
use tally_rules::ledger::credit::{CREDITS_MAX, Credit, Credits};
use tally_rules::ledger::hold::Ending;
use tally_rules::ledger::limits::CurrencyLimits;
use tally_rules::ledger::working_set::LedgerWorkingSet;
use tally_rules::ledger::{
    Amount, EntryKind, HoldId, ReversalRequest, TransferId, TransferKind, TransferRequest, Wallet, WalletKey,
};
use tally_rules::rejection::Limit;
use tally_rules::{Micros, Rejection};
use tally_testkit::Rng;
use tally_testkit::rng::soak;

fn later(world: &mut World, seconds: i64) {
    world.now = world.now.plus(seconds * 1_000_000);
}

fn two(story: &str) -> World {
    tell(CurrencyLimits::default(), &format!("member A -> ok\nmember B -> ok\n{story}"))
}

#[test]
fn credit_is_spent_first_and_the_first_to_expire_before_others() {
    let mut world = two("promote A 30 0 -> credit_expiry_in_past
         deposit A 100 -> 100
         promote A 30 60 -> 130
         promote A 20 30 -> 150
         promote A 5 60 -> 155
         credit A -> 55 0 0
         fee A 10 -> 145
         credit A -> 45 0 0");
    let open = |world: &World| world.wallets[&key("A")].credits.as_ref().map(|one| one.open.clone());
    let lefts: Vec<i64> = open(&world).unwrap().iter().map(|credit| credit.left).collect();
    assert_eq!(lefts, [10, 35], "that of the sixtieth second is one credit");
    continue_with(
        &mut world,
        "withdraw A 50 -> 95
         credit A -> 0 0 0
         fee A 95 -> 0",
    );
    assert_eq!(open(&world), None);
    let totals = world.totals.rows().map(|(key, total)| (key.account.as_str(), total.debits, total.credits));
    let wanted =
        [("BANK_ASSET", 100, 50), ("BANK_PAYABLE", 155, 155), ("FEES", 0, 105), ("PROMOTIONS", 55, 0)];
    assert_eq!(totals.collect::<Vec<_>>(), wanted);
}

fn key(name: &str) -> WalletKey {
    WalletKey { member: named(name), currency: code("KRW") }
}

#[test]
fn members_transfer_and_cash_other_money_alone() {
    two("deposit A 100 -> 100
         promote A 50 60 -> 150
         transfer A B 101 -> insufficient_funds
         cash A 101 -> insufficient_funds
         transfer A B 60 -> 90
         cash A 40 -> 50
         cash A 1 -> insufficient_funds
         hold A 50 h -> ok
         capture h 10 B -> insufficient_funds
         capture h 10 -> captured 10
         credit A -> 40 0 0
         deposit A 5 -> 45
         hold A 45 k -> ok
         capture k 5 B -> captured 5
         credit A -> 40 0 0
         free B -> 65");
}

#[test]
fn expired_credit_cannot_be_spent_and_leaves() {
    let mut world = two("deposit A 10 -> 10\npromote A 50 60 -> 60\npromote A 7 90 -> 67\nlapse A -> none");
    later(&mut world, 59);
    continue_with(&mut world, "free A -> 67\nlapse A -> none");
    later(&mut world, 1);
    continue_with(
        &mut world,
        "free A -> 17
         fee A 18 -> insufficient_funds
         hold A 18 h -> insufficient_funds
         hold A 17 h -> ok
         free A -> 0
         hold A 1 k -> insufficient_funds
         credit A -> 7 0 50
         lapse A -> 50
         lapse A -> none
         free A -> 0
         void h -> voided
         free A -> 17",
    );
    let entry = world.entries.values().last().map(|entry| (entry.kind, entry.amount, entry.after));
    assert_eq!(entry, Some((EntryKind::Expiry, 50, 17)));
    later(&mut world, 30);
    continue_with(&mut world, "free A -> 10\nlapse A -> 7\nwithdraw A 10 -> 0");
}

#[test]
fn a_hold_keeps_credit_that_expires_meanwhile_until_it_ends() {
    two("deposit A 40 -> 40
         promote A 60 60 -> 100
         hold A 30 h -> ok
         hold A 20 k -> ok
         wait 60
         free A -> 40
         credit A -> 0 50 10
         lapse A -> 10
         credit A -> 0 50 0
         capture h 10 -> captured 10
         credit A -> 0 20 20
         lapse A -> 20
         free A -> 40
         void k -> voided
         credit A -> 0 0 20
         lapse A -> 20
         withdraw A 40 -> 0");
}

#[test]
fn a_capture_spends_what_has_expired_before_what_has_not() {
    two("promote A 30 60 -> 30
         promote A 20 90 -> 50
         hold A 30 h -> ok
         wait 60
         credit A -> 20 30 0
         capture h 10 -> captured 10
         credit A -> 20 0 20
         lapse A -> 20
         withdraw A 20 -> 0");
}

#[test]
fn what_a_hold_reserves_of_other_money_is_no_credit() {
    two("deposit A 40 -> 40
         promote A 10 60 -> 50
         hold A 30 h -> ok
         wait 60
         credit A -> 0 10 0
         free A -> 20
         capture h 25 -> captured 25
         free A -> 25
         credit A -> 0 0 0");
}

#[test]
fn a_wallet_has_a_bounded_number_of_credits() {
    let mut world = two("deposit A 1 -> 1");
    for second in 1..=CREDITS_MAX {
        continue_with(&mut world, &format!("promote A 1 {second} -> {}", second + 1));
    }
    continue_with(
        &mut world,
        "promote A 1 99 -> limit_exceeded
         promote A 1 3 -> 18",
    );
    later(&mut world, 1);
    continue_with(&mut world, "promote A 1 99 -> 19\nlapse A -> 1");
    assert_eq!(Rejection::LimitExceeded(Limit::Credits).code(), "limit_exceeded");
}

#[test]
fn rules_of_a_currency_and_of_closed_members_hold_for_credit() {
    let limits = CurrencyLimits { balance: Some(100), no_withdrawals: true, ..CurrencyLimits::default() };
    tell(
        limits,
        "member A -> ok
         deposit A 60 -> 60
         promote A 41 60 -> limit_exceeded
         promote A 40 60 -> 100
         cash A 1 -> not_withdrawable",
    );
    let mut world = two("deposit A 100 -> 100
         promote A 50 60 -> 150
         close A forced -> ok
         promote A 1 60 -> member_closed
         cash A 101 -> insufficient_funds
         cash A 10 -> 140
         wait 60
         lapse A -> 50");
    // A payment by a member itself is checked before its PIN is.
    continue_with(&mut world, "deposit B 30 -> 30\npromote B 50 60 -> 80");
    let (krw, now) = (code("KRW"), world.now);
    let checked = [30, 31].map(|units| {
        let amount = Amount::new(units).unwrap();
        world.transact(|book, _| book.can_transfer(named("B"), (krw, amount), now))
    });
    assert_eq!(checked, [Ok(()), Err(Rejection::InsufficientFunds { needed: 31, available: 30 })]);
}

fn reverse(world: &mut World, kind: EntryKind, amount: i64) -> Result<i64, Rejection> {
    let (id, transfer) = world.transfers.iter().find(|(_, one)| one.kind == kind).unwrap();
    let amount = Some(Amount::new(amount).unwrap());
    let request = ReversalRequest { original: *id, transfer: transfer.clone(), amount, reference: None };
    world.transact(|book, id| book.reverse(TransferId(id()), &request).map(|posted| posted.entry.after))
}

#[test]
fn a_reversal_takes_back_what_the_transfer_gave() {
    let mut world = two("deposit A 100 -> 100\npromote A 50 60 -> 150\nfee A 20 -> 130");
    let short = |needed, available| Err(Rejection::InsufficientFunds { needed, available });
    assert_eq!(
        reverse(&mut world, EntryKind::Promotion, 31),
        short(31, 30),
        "other money is not taken for credit"
    );
    assert_eq!(reverse(&mut world, EntryKind::Promotion, 10), Ok(120));
    continue_with(&mut world, "credit A -> 20 0 0");
    assert_eq!(reverse(&mut world, EntryKind::Deposit, 100), Ok(20));
    continue_with(&mut world, "credit A -> 20 0 0\ndeposit A 9 -> 29");
    later(&mut world, 60);
    assert_eq!(reverse(&mut world, EntryKind::Promotion, 1), short(1, 0), "it has expired");
    continue_with(&mut world, "lapse A -> 20");
    assert_eq!(reverse(&mut world, EntryKind::Expiry, 1), Err(Rejection::NotReversible));
    assert_eq!(reverse(&mut world, EntryKind::Fee, 20), Ok(29), "what comes back is no credit");
    continue_with(&mut world, "credit A -> 0 0 0");
    // What is held cannot be taken back, whatever the credit.
    let mut world = two("deposit A 100 -> 100\npromote A 50 60 -> 150\nfee A 20 -> 130\nhold A 120 h -> ok");
    assert_eq!(reverse(&mut world, EntryKind::Promotion, 31), short(31, 10));
    assert_eq!(reverse(&mut world, EntryKind::Promotion, 10), Ok(120));
}

/// An expiry is at most the largest amount of a transfer.
#[test]
fn large_credit_leaves_in_parts() {
    let mut world = World::new(CurrencyLimits::default());
    let most = tally_rules::ledger::money::AMOUNT_MAX;
    let open = vec![Credit { expires_at: Micros(0), left: most + 5 }];
    let credits = Some(Arc::new(Credits { open, ..Credits::default() }));
    let wallet = Wallet { balance: most + 9, credits, ..Wallet::default() };
    let (currencies, limits) = (world.currencies.clone(), world.limits.clone());
    let mut book = LedgerWorkingSet::new(&currencies, &limits);
    book.set_now(world.now);
    book.load_wallet(key("A"), Some(wallet));
    let mut take = || book.expire_credit(TransferId(world.id()), key("A")).map(|posted| posted.entry.amount);
    assert_eq!([take(), take(), take()], [Some(most), Some(5), None]);
}

/// Random requests: credit and other money never mix. Other money is what was paid in, less what left as other money; and when
/// all holds have ended and all credit has expired, no credit is left.
#[test]
fn soak_random_credit_never_becomes_other_money() {
    let mut rng = Rng::of("promotional credit");
    for _ in 0..soak(60) {
        let mut world = two("");
        let mut holds: Vec<HoldId> = Vec::new();
        for _ in 0..60 {
            let (who, units, now) = (*rng.pick(&["A", "B"]), rng.between(1, 40), world.now);
            let other = if who == "A" { "B" } else { "A" };
            let (from, to) = (named(who), named(other));
            let before = plain(&world);
            let pick = (!holds.is_empty()).then(|| *rng.pick(&holds));
            let kind = rng.below(11);
            let what = match kind {
                0 => TransferKind::Deposit { to },
                1 | 2 => TransferKind::Promotion { to, expires_at: now.plus(rng.between(1, 20)) },
                3 => TransferKind::Fee { from },
                4 => TransferKind::Withdrawal { from },
                5 => TransferKind::PlainWithdrawal { from },
                _ => TransferKind::Transfer { from, to },
            };
            let amount = Amount::new(units).unwrap();
            let order = TransferRequest { what, currency: code("KRW"), amount, reference: None };
            let time = DecisionTime::trusted(now);
            let done = world.transact(|book, id| match (kind, pick) {
                (7, _) => {
                    let new = HoldId(id());
                    let placed = book.place(new, key(who), amount, None, now);
                    holds.extend(placed.is_ok().then_some(new));
                    placed.is_ok()
                }
                (8, Some(hold)) => {
                    let to = rng.percent(40).then_some(to);
                    let ending = Ending::Capture { amount: None, to };
                    book.end(hold, ending, TransferId(id()), time).is_ok()
                }
                (9, Some(hold)) => book.end(hold, Ending::Void, TransferId(id()), time).is_ok(),
                (10, _) => book.expire_credit(TransferId(id()), key(who)).is_some(),
                _ => book.post(TransferId(id()), &order, now).is_ok(),
            });
            let after = plain(&world);
            match kind {
                0 if done => assert_eq!(after, before + units),
                1 | 2 | 6 | 7 | 10 => assert_eq!(after, before, "{kind}"),
                5 if done => assert_eq!(after, before - units),
                _ => assert!(after <= before),
            }
            world.now = world.now.plus(rng.between(0, 4));
        }
        world.now = world.now.plus(100);
        let time = DecisionTime::trusted(world.now);
        for hold in holds {
            world.transact(|book, id| book.end(hold, Ending::Void, TransferId(id()), time)).ok();
        }
        for name in ["A", "B"] {
            world.transact(|book, id| book.expire_credit(TransferId(id()), key(name)));
        }
        assert!(world.wallets.values().all(|wallet| wallet.credits.is_none()));
    }
}

/// The money in wallets that is no credit.
fn plain(world: &World) -> i64 {
    let of = |wallet: &Wallet| wallet.balance - wallet.credits.as_ref().map_or(0, |credits| credits.sum());
    world.wallets.values().map(of).sum()
}
