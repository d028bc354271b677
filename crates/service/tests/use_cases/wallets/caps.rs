//! Caps of the money that a key makes: on real stores, at once, retried, rejected, of the next day, after a restart.

use crate::wallets::world::*;
use tally_rules::ledger::mint::CapReached;
use tally_rules::ledger::{Amount, MemberId, MintCap, MintKey, TransferKind};
use tally_rules::{KeyId, Origin, Rejection};
use tally_service::ledger::transfers::{self, NewTransfer, TransferResult};

const DAY: i64 = 86_400_000_000;

fn cap(key: u8, currency: &str, units: i64) -> Option<MintCap> {
    let of = MintKey { key: KeyId([key; 6]), currency: code(currency) };
    Some(MintCap { of, cap: Amount::new(units).unwrap() })
}

/// A deposit in KRW by a key with a cap of 100 a day.
fn deposit(to: MemberId, units: i64, key: Option<&str>) -> NewTransfer {
    let order = order(TransferKind::Deposit { to }, units);
    let idempotency = key.and_then(|key| idempotency(key, 1));
    NewTransfer { order, origin: Origin::default(), idempotency, mint_cap: cap(1, "KRW", 100) }
}

fn post(world: &World, new: NewTransfer) -> TransferResult {
    world.wait(transfers::post(&world.tally, new))
}

fn reached(left: i64) -> Rejection {
    Rejection::MintCapReached(CapReached { currency: code("KRW"), cap: 100, left })
}

#[test]
fn a_cap_is_of_one_key_one_currency_and_one_day() {
    for kind in [Kind::Sqlite, Kind::MariaDb, Kind::MySql] {
        let world = World::new(kind);
        let ann = world.member("ann", 0);
        post(&world, deposit(ann, 60, None)).unwrap();
        assert_eq!(refused(post(&world, deposit(ann, 41, None))), reached(40));
        post(&world, deposit(ann, 40, None)).unwrap();
        assert_eq!(refused(post(&world, deposit(ann, 1, None))), reached(0));
        // Another key, another currency, a key without a cap.
        post(&world, NewTransfer { mint_cap: cap(2, "KRW", 100), ..deposit(ann, 100, None) }).unwrap();
        let mut dollars = NewTransfer { mint_cap: cap(1, "USD", 100), ..deposit(ann, 100, None) };
        dollars.order.currency = code("USD");
        post(&world, dollars).unwrap();
        post(&world, NewTransfer { mint_cap: None, ..deposit(ann, 1_000, None) }).unwrap();
        world.advance(DAY);
        assert_eq!(refused(post(&world, deposit(ann, 101, None))), reached(100));
        post(&world, deposit(ann, 100, None)).unwrap();
        assert_eq!(refused(post(&world, deposit(ann, 1, None))), reached(0));
        assert_eq!(world.balance(ann), 1_300);
        world.end(&[ann]);
    }
}

#[test]
fn a_retry_counts_once_and_a_rejection_not_at_all() {
    let world = World::new(Kind::Sqlite);
    let ann = world.member("ann", 0);
    for replayed in [false, true, true] {
        assert_eq!(post(&world, deposit(ann, 60, Some("k"))).unwrap().replayed, replayed);
    }
    let ghost = MemberId(crate::wallets::verify::GHOST);
    assert_eq!(refused(post(&world, deposit(ghost, 40, None))), Rejection::RecipientNotFound);
    // Of linked ones, all or none count.
    let moves = [(deposit(ann, 30, None), true), (deposit(ghost, 5, None), false)];
    let done = world.wait(transfers::post_all(&world.tally, moves.into())).unwrap();
    let refusals: Vec<_> = done.into_iter().map(refused).collect();
    assert_eq!(
        refusals,
        [Rejection::LinkedFailed { nth: 2, code: "recipient_not_found" }, Rejection::RecipientNotFound]
    );
    assert_eq!(refused(post(&world, deposit(ann, 41, None))), reached(40));
    let moves = [(deposit(ann, 30, None), true), (deposit(ann, 10, None), false)];
    assert!(world.wait(transfers::post_all(&world.tally, moves.into())).unwrap().iter().all(Result::is_ok));
    assert_eq!(refused(post(&world, deposit(ann, 1, None))), reached(0));
    assert_eq!(world.balance(ann), 100);
    world.end(&[ann]);
}

#[test]
fn deposits_of_one_batch_are_summed() {
    for kind in [Kind::Sqlite, Kind::MariaDb, Kind::MySql] {
        let world = World::new(kind);
        let ann = world.member("ann", 0);
        let moves = (0..20).map(|_| (deposit(ann, 30, None), false)).collect();
        let done = world.wait(transfers::post_all(&world.tally, moves)).unwrap();
        assert_eq!(done.iter().filter(|one| one.is_ok()).count(), 3, "{done:?}");
        assert!(done.into_iter().filter(Result::is_err).all(|one| refused(one) == reached(10)));
        assert_eq!(world.balance(ann), 90);
        world.end(&[ann]);
    }
}
