//! Reversals: each kind of transfer taken back, in parts and whole, and random ones against numbers alone.

use crate::world::{World, code, member};
use tally_rules::Rejection;
use tally_rules::clock::DecisionTime;
use tally_rules::ledger::hold::{Ending, HoldEnd};
use tally_rules::ledger::limits::CurrencyLimits;
use tally_rules::ledger::reversal::REVERSALS_MAX;
use tally_rules::ledger::working_set::LedgerWorkingSet;
use tally_rules::ledger::{
    Amount, HoldId, ReversalLink, ReversalRequest, TransferId, TransferKind, TransferRequest, WalletKey,
};
use tally_rules::rejection::Limit;
use tally_testkit::Rng;
use tally_testkit::rng::soak;

fn amount(units: i64) -> Amount {
    Amount::new(units).unwrap()
}

fn post(world: &mut World, what: TransferKind, units: i64) -> Result<TransferId, Rejection> {
    let (now, reference) = (world.now, Some("r".into()));
    let order = TransferRequest { what, currency: code("KRW"), amount: amount(units), reference };
    world.transact(|book, id| {
        let id = TransferId(id());
        book.post(id, &order, now).map(|_| id)
    })
}

fn request(world: &World, original: TransferId, units: Option<i64>) -> ReversalRequest {
    let (transfer, reference) = (world.transfers[&original].clone(), Some("r".into()));
    ReversalRequest { original, transfer, amount: units.map(amount), reference }
}

/// The id of the reversal, and the balance after it in the wallet that its caller sees.
fn reverse(
    world: &mut World,
    original: TransferId,
    units: Option<i64>,
) -> Result<(TransferId, i64), Rejection> {
    let request = request(world, original, units);
    world.transact(|book, id| {
        let id = TransferId(id());
        let posted = book.reverse(id, &request)?;
        assert_eq!((posted.entry.transfer, posted.entry.reference.as_deref()), (id, Some("r")));
        Ok((id, posted.entry.after))
    })
}

fn balance(world: &World, number: u8) -> i64 {
    world.wallets[&WalletKey { member: member(number), currency: code("KRW") }].balance
}

/// Members 0 to 2, each with 100.
fn members() -> World {
    let mut world = World::new(CurrencyLimits {
        per_transfer: Some(1_000),
        per_day: Some(1_000),
        ..CurrencyLimits::default()
    });
    for number in 0..3 {
        world.transact(|book, _| book.open(member(number)));
        post(&mut world, TransferKind::Deposit { to: member(number) }, 100).unwrap();
    }
    world
}

#[test]
fn every_kind_of_transfer_is_taken_back() {
    let [ann, bob] = [0, 1].map(member);
    for (what, other) in [
        (TransferKind::Deposit { to: ann }, 100),
        (TransferKind::Withdrawal { from: ann }, 100),
        (TransferKind::Transfer { from: ann, to: bob }, 100),
        (TransferKind::Fee { from: ann }, 100),
        (TransferKind::Prize { to: ann }, 100),
        (TransferKind::Refund { to: ann }, 100),
    ] {
        let mut world = members();
        let made = post(&mut world, what, 60).unwrap();
        reverse(&mut world, made, Some(20)).unwrap();
        reverse(&mut world, made, None).unwrap();
        assert_eq!((balance(&world, 0), balance(&world, 1)), (100, other), "{what:?}");
        let nets = |debits: u128, credits: u128| debits.abs_diff(credits);
        for (key, total) in world.totals.rows() {
            let wanted = if matches!(key.account.as_str(), "FEES" | "PRIZES") { 0 } else { 300 };
            assert_eq!(nets(total.debits, total.credits), wanted, "{what:?}: {}", key.account);
        }
        assert_eq!(reverse(&mut world, made, None), Err(Rejection::ExceedsReversible { left: 0 }));
    }
}

#[test]
fn a_capture_is_taken_back_and_its_hold_stays_ended() {
    for to in [Some(1), None] {
        let mut world = members();
        let wallet = WalletKey { member: member(0), currency: code("KRW") };
        let now = world.now;
        let (hold, transfer) = world.transact(|book, id| {
            let (hold, transfer) = (HoldId(id()), TransferId(id()));
            book.place(hold, wallet, amount(50), None, now).unwrap();
            let ending = Ending::Capture { amount: None, to: to.map(member) };
            book.end(hold, ending, transfer, DecisionTime::trusted(now)).unwrap();
            (hold, transfer)
        });
        reverse(&mut world, transfer, None).unwrap();
        assert_eq!((balance(&world, 0), balance(&world, 1)), (100, 100));
        assert!(matches!(world.holds[&hold].end, Some((HoldEnd::Captured { amount: 50, .. }, _))));
    }
}

#[test]
fn a_reversal_is_refused_for_the_first_of_its_reasons() {
    let mut world = members();
    let [ann, bob, eve] = [0, 1, 2].map(member);
    let made = post(&mut world, TransferKind::Transfer { from: ann, to: bob }, 60).unwrap();
    assert_eq!(reverse(&mut world, made, Some(61)), Err(Rejection::ExceedsReversible { left: 60 }));
    // The recipient has passed the money on.
    post(&mut world, TransferKind::Transfer { from: bob, to: eve }, 150).unwrap();
    let short = Rejection::InsufficientFunds { needed: 60, available: 10 };
    assert_eq!(reverse(&mut world, made, None), Err(short.clone()));
    let (back, left) = reverse(&mut world, made, Some(10)).unwrap();
    assert_eq!((left, balance(&world, 0)), (0, 50));
    assert_eq!(reverse(&mut world, back, None), Err(Rejection::NotReversible));
    // So also by the stored link alone.
    let mut forged = request(&world, back, None);
    forged.transfer.reverses = None;
    let refused = world.transact(|book, id| book.reverse(TransferId(id()), &forged));
    assert_eq!(refused, Err(Rejection::NotReversible));
    let mut foreign = request(&world, made, Some(1));
    foreign.transfer.currency = code("EUR");
    let refused = world.transact(|book, id| book.reverse(TransferId(id()), &foreign));
    let foreign = world.currencies.check(code("EUR")).unwrap_err();
    assert_eq!(refused, Err(foreign.clone()));
    let order = [
        Rejection::NotReversible,
        Rejection::ExceedsReversible { left: 0 },
        foreign,
        Rejection::MemberNotFound,
        Rejection::RecipientNotFound,
        Rejection::WalletNotFound(code("KRW")),
        Rejection::LimitExceeded(Limit::Reversals),
        Rejection::LimitExceeded(Limit::Balance),
        short,
    ];
    assert!(order.is_sorted(), "the order of the enum is that of the checks");
}

#[test]
fn closed_members_pay_and_are_paid_by_a_reversal() {
    let mut world = members();
    let [ann, bob] = [0, 1].map(member);
    let made = post(&mut world, TransferKind::Transfer { from: ann, to: bob }, 60).unwrap();
    world.transact(|book, _| [ann, bob].map(|member| book.close(member, true).unwrap()));
    reverse(&mut world, made, None).unwrap();
    assert_eq!((balance(&world, 0), balance(&world, 1)), (100, 100));
}

#[test]
fn a_transfer_has_so_many_reversals_at_most() {
    let mut world = members();
    let made = post(&mut world, TransferKind::Deposit { to: member(0) }, 500).unwrap();
    for _ in 0..REVERSALS_MAX {
        reverse(&mut world, made, Some(1)).unwrap();
    }
    assert_eq!(reverse(&mut world, made, Some(1)), Err(Rejection::LimitExceeded(Limit::Reversals)));
    assert_eq!(world.reversals[&made].reversed(), 100);
}

/// Several in one transaction see each other, and one that is refused leaves no trace.
#[test]
fn reversals_of_one_batch_see_each_other() {
    let mut world = members();
    let made = post(&mut world, TransferKind::Deposit { to: member(0) }, 50).unwrap();
    let request = request(&world, made, Some(30));
    let done = world.transact(|book: &mut LedgerWorkingSet<'_>, id| {
        [(); 2].map(|()| book.reverse(TransferId(id()), &request).map(|posted| posted.entry.after))
    });
    assert_eq!(done, [Ok(120), Err(Rejection::ExceedsReversible { left: 20 })]);
    let Some(ReversalLink::Reversed(parts)) = world.reversals.get(&made) else { panic!("it is reversed") };
    assert_eq!((parts.len(), world.reversals.len()), (1, 2));
}

#[test]
fn soak_random_reversals_agree_with_numbers() {
    let mut rng = Rng::of("reversals");
    for _ in 0..soak(10) {
        let mut world = members();
        let mut model: Vec<(TransferId, i64)> = Vec::new();
        for _ in 0..60 {
            let units = rng.between(1, 40);
            if model.is_empty() || rng.percent(40) {
                let mut who = || member(u8::try_from(rng.below(3)).unwrap());
                let (one, other) = (who(), who());
                let what = match rng.below(6) {
                    0 => TransferKind::Deposit { to: one },
                    1 => TransferKind::Withdrawal { from: one },
                    2 => TransferKind::Fee { from: one },
                    3 => TransferKind::Prize { to: one },
                    4 => TransferKind::Refund { to: one },
                    _ => TransferKind::Transfer { from: one, to: other },
                };
                model.extend(post(&mut world, what, units).map(|id| (id, units)));
                continue;
            }
            let at = usize::try_from(rng.below(model.len() as u64)).unwrap();
            let (id, left) = model[at];
            let units = rng.percent(70).then_some(units);
            let payer = world.transfers[&id].credit.map(|(payer, _)| payer);
            let has = payer.map_or(i64::MAX, |payer| balance(&world, payer.0.0[0]));
            let wanted = match units.unwrap_or(left) {
                units if units > left || left == 0 => Err(Rejection::ExceedsReversible { left }),
                units if units > has => Err(Rejection::InsufficientFunds { needed: units, available: has }),
                units => Ok(units),
            };
            let done = reverse(&mut world, id, units).map(|(back, _)| world.transfers[&back].amount);
            assert_eq!(done, wanted);
            model[at].1 -= done.unwrap_or(0);
            assert_eq!(
                world.reversals.get(&id).map_or(0, ReversalLink::reversed),
                world.transfers[&id].amount - model[at].1
            );
        }
    }
}
