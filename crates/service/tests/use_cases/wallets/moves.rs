//! Transfers, chains, retries and members, one after the other.

use crate::wallets::world::*;
use tally_rules::ledger::{MemberId, TransferKind, Uuid};
use tally_rules::{Origin, Rejection};
use tally_service::ledger::transfers::NewTransfer;
use tally_service::ledger::{LedgerSettings, transfers};
use tally_service::members;

#[test]
fn each_caller_hears_before_and_after() {
    let world = World::new(Kind::Sqlite);
    let (ann, bob) = (world.member("ann", 100), world.member("bob", 0));
    assert_eq!(shown(&world.transfer(ann, bob, 30, None).unwrap()), (100, 70));
    assert_eq!(shown(&world.transfer(bob, ann, 10, None).unwrap()), (30, 20));
    let short = Rejection::InsufficientFunds { needed: 21, available: 20 };
    assert_eq!(refused(world.transfer(bob, ann, 21, None)), short);
    let nobody = MemberId(Uuid([9; 16]));
    assert_eq!(refused(world.transfer(ann, nobody, 1, None)), Rejection::RecipientNotFound);
    assert_eq!(refused(world.transfer(nobody, ann, 1, None)), Rejection::MemberNotFound);
    assert_eq!((world.balance(ann), world.balance(bob)), (80, 20));
    world.end(&[ann, bob]);
}

#[test]
fn a_retry_has_one_effect_and_the_first_answer() {
    let world = World::new(Kind::Sqlite);
    let (ann, bob) = (world.member("ann", 100), world.member("bob", 0));
    let first = world.transfer(ann, bob, 30, Some("k")).unwrap();
    world.transfer(ann, bob, 1, None).unwrap();
    let again = world.transfer(ann, bob, 30, Some("k")).unwrap();
    assert_eq!((again.replayed, &again.posted), (true, &first.posted));
    assert_eq!(world.balance(ann), 69);
    // A rejected request may be repeated under its key, and then counts once.
    let short = Rejection::InsufficientFunds { needed: 99, available: 31 };
    assert_eq!(refused(world.transfer(bob, ann, 99, Some("r"))), short);
    world.post(order(TransferKind::Deposit { to: bob }, 70), None).unwrap();
    assert!(!world.transfer(bob, ann, 99, Some("r")).unwrap().replayed);
    assert!(world.transfer(bob, ann, 99, Some("r")).unwrap().replayed);
    // The same key for something else.
    let new = NewTransfer {
        order: order(TransferKind::Deposit { to: ann }, 1),
        origin: Origin::default(),
        idempotency: idempotency("k", 2),
        mint_cap: None,
    };
    assert_eq!(refused(world.wait(transfers::post(&world.tally, new))), Rejection::IdempotencyKeyReused);
    world.end(&[ann, bob]);
}

#[test]
fn a_list_stands_row_by_row_and_a_chain_whole() {
    let world = World::new(Kind::Sqlite);
    let (ann, bob, eve) = (world.member("ann", 100), world.member("bob", 0), world.member("eve", 0));
    let give = |from, to, units| order(TransferKind::Transfer { from, to }, units);
    let results = world.post_all(vec![
        (give(ann, bob, 60), false),
        (give(ann, bob, 60), false),
        (give(bob, eve, 50), true),
        (give(eve, ann, 51), false),
        (give(bob, eve, 50), true),
        (give(eve, ann, 50), false),
        (give(ann, eve, 1), true),
    ]);
    let told: Vec<_> = results
        .iter()
        .map(|result| match result {
            Ok(receipt) => format!("{:?}", shown(receipt)),
            Err(failure) => refused::<()>(Err(failure.clone())).code().to_owned(),
        })
        .collect();
    let wanted = [
        "(100, 40)",
        "insufficient_funds",
        "linked_failed",
        "insufficient_funds",
        "(60, 10)",
        "(50, 0)",
        "(90, 89)",
    ];
    assert_eq!(told, wanted);
    world.end(&[ann, bob, eve]);
}

#[test]
fn members_are_one_for_each_name_and_close_when_they_are_empty() {
    let world = World::new(Kind::Sqlite);
    let ann = world.create(with_phone("ann", "010-1111")).unwrap().id;
    assert_eq!(refused(world.create(new_member("ann"))), Rejection::LoginTaken("ann".into()));
    assert!(matches!(refused(world.create(with_phone("bob", "0101111"))), Rejection::PhoneTaken(_)));
    let read = world.tally.store.ledger().member(ann).unwrap().unwrap();
    assert_eq!(read.player.as_str(), ann.0.to_string());
    assert_eq!(world.tally.store.ledger().wallets_of(ann).unwrap().len(), 1);
    // Two at once in one batch and under one key.
    let keyed =
        || tally_service::members::NewMember { idempotency: idempotency("m", 1), ..new_member("eve") };
    let eve = world.create(keyed()).unwrap();
    let again = world.create(keyed()).unwrap();
    assert_eq!((again.id, eve.replayed, again.replayed), (eve.id, false, true));
    world.post(order(TransferKind::Deposit { to: ann }, 5), None).unwrap();
    let close = |force| world.wait(members::close(&world.tally, ann, force, Origin::BACKGROUND, None));
    assert_eq!(refused(close(false)), Rejection::WalletNotEmpty(vec![(code("KRW"), 5)]));
    close(true).unwrap();
    close(false).unwrap();
    assert_eq!(refused(world.transfer(ann, eve.id, 1, None)), Rejection::MemberClosed(ann));
    assert!(world.tally.store.ledger().member(ann).unwrap().unwrap().closed_at.is_some());
    world.post(order(TransferKind::Withdrawal { from: ann }, 5), None).unwrap();
    world.end(&[ann, eve.id]);
}

#[test]
fn the_home_currency_stays_what_it_was() {
    let world = World::new(Kind::Sqlite);
    let other = LedgerSettings {
        currencies: tally_rules::ledger::Currencies::new((code("USD"), 2), [(code("KRW"), 0)]),
        ..settings()
    };
    let now = std::sync::Arc::default();
    let start = |other: &LedgerSettings| start(world.tally.store.clone(), &now, other.clone());
    // There are no wallets yet.
    start(&other).unwrap().drain();
    let ann = world.member("ann", 1);
    let refused = start(&other).map(drop).unwrap_err().to_string();
    assert!(refused.contains("KRW") && refused.contains("wallet.currency"), "{refused}");
    world.end(&[ann]);
}
