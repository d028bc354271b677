//! Reversals on real stores: whole and in parts, retried, refused, many at once; and `verify` on links that were broken by SQL.

use crate::wallets::verify::{Broken, GHOST, Place, fault, hex};
use crate::wallets::world::*;
use tally_rules::ledger::hold::Ending;
use tally_rules::ledger::{
    Amount, EntryKind, MemberId, ReversalLink, TransferId, TransferKind, Uuid, WalletKey,
};
use tally_rules::{Actor, Origin, Rejection};
use tally_service::Failure;
use tally_service::ledger::holds::{self, NewHold};
use tally_service::ledger::reversals::{self, NewReversal};
use tally_service::ledger::transfers::{Receipt, TransferResult};
use tally_service::ledger::{read, transfers::NewTransfer};

fn new(transaction: Uuid, units: Option<i64>, key: Option<&str>) -> NewReversal {
    let amount = units.map(|units| Amount::new(units).unwrap());
    NewReversal {
        transaction,
        amount,
        origin: Origin { actor: Actor::CommandLine, reason: Some("why".into()), metadata: None },
        idempotency: key.and_then(|key| idempotency(key, 1)),
    }
}

fn reverse(world: &World, transaction: Uuid, units: Option<i64>, key: Option<&str>) -> TransferResult {
    world.wait(reversals::reverse(&world.tally, new(transaction, units, key)))
}

fn id(receipt: &Receipt) -> TransferId {
    receipt.posted.entry.transfer
}

fn link(world: &World, id: TransferId) -> Option<ReversalLink> {
    world.tally.store.ledger().reversal(id).unwrap()
}

fn captured(world: &World, member: MemberId, to: Option<MemberId>, units: i64) -> TransferId {
    let wallet = WalletKey { member, currency: code("KRW") };
    let amount = Amount::new(units).unwrap();
    let hold = NewHold { wallet, amount, expires_at: None, origin: Origin::default(), idempotency: None };
    let hold = world.wait(holds::place(&world.tally, hold)).unwrap().id;
    let ending = Ending::Capture { amount: None, to };
    let done = world.wait(holds::end(&world.tally, hold, ending, Origin::default(), None)).unwrap();
    match done.hold.end {
        Some((tally_rules::ledger::hold::HoldEnd::Captured { transfer, .. }, _)) => transfer,
        end => panic!("{end:?}"),
    }
}

#[test]
fn a_transfer_is_taken_back_in_parts_and_linked_both_ways() {
    for kind in [Kind::Sqlite, Kind::MariaDb, Kind::MySql] {
        let world = World::new(kind);
        let (ann, bob) = (world.member("ann", 100), world.member("bob", 10));
        let made = world.transfer(ann, bob, 60, None).unwrap();
        // By the id of an entry, too.
        let first = reverse(&world, made.posted.entry.id(), Some(20), None).unwrap();
        assert_eq!((shown(&first), first.posted.entry.kind), ((70, 50), EntryKind::ReversalOut));
        let rest = reverse(&world, id(&made).0, None, None).unwrap();
        assert_eq!((shown(&rest), world.balance(ann)), ((50, 10), 100));
        let parts = vec![(id(&first), 20), (id(&rest), 40)];
        assert_eq!(link(&world, id(&made)), Some(ReversalLink::Reversed(parts)));
        let original = id(&made);
        assert_eq!(link(&world, id(&rest)), Some(ReversalLink::Reverses { original, reason: None }));
        let found = world.wait(read::transfer(&world.tally, id(&rest).0)).unwrap();
        assert_eq!((found.transfer.origin.actor, found.reason()), (Actor::CommandLine, Some("why")));
        let refusals = [
            (original.0, None, Rejection::ExceedsReversible { left: 0 }),
            (id(&rest).0, None, Rejection::NotReversible),
            (GHOST, None, Rejection::TransactionNotFound),
        ];
        for (of, units, wanted) in refusals {
            assert_eq!(refused(reverse(&world, of, units, None)), wanted);
        }
        world.end(&[ann, bob]);
    }
}

#[test]
fn a_retry_takes_back_once() {
    let world = World::new(Kind::Sqlite);
    let (ann, bob) = (world.member("ann", 100), world.member("bob", 0));
    let made = id(&world.transfer(ann, bob, 60, None).unwrap()).0;
    let first = reverse(&world, made, Some(20), Some("k")).unwrap();
    let again = reverse(&world, made, Some(20), Some("k")).unwrap();
    assert_eq!((first.replayed, again.replayed, &again.posted), (false, true, &first.posted));
    assert_eq!(world.balance(ann), 60);
    // The same key for another request, also for one of a transfer that does not exist.
    let another =
        |transaction| NewReversal { idempotency: idempotency("k", 2), ..new(transaction, None, None) };
    for transaction in [made, GHOST] {
        let done = world.wait(reversals::reverse(&world.tally, another(transaction)));
        assert_eq!(refused(done), Rejection::IdempotencyKeyReused);
    }
    let post = NewTransfer {
        order: order(TransferKind::Deposit { to: ann }, 1),
        origin: Origin::default(),
        idempotency: idempotency("k", 2),
        mint_cap: None,
    };
    let done = world.wait(tally_service::ledger::transfers::post(&world.tally, post));
    assert_eq!(refused(done), Rejection::IdempotencyKeyReused);
    world.end(&[ann, bob]);
}

#[test]
fn what_the_recipient_has_spent_or_holds_cannot_be_taken_back() {
    let world = World::new(Kind::Sqlite);
    let (ann, bob) = (world.member("ann", 100), world.member("bob", 0));
    let made = id(&world.transfer(ann, bob, 60, None).unwrap()).0;
    let wallet = WalletKey { member: bob, currency: code("KRW") };
    let hold = NewHold {
        wallet,
        amount: Amount::new(10).unwrap(),
        expires_at: None,
        origin: Origin::default(),
        idempotency: None,
    };
    world.wait(holds::place(&world.tally, hold)).unwrap();
    let short = Rejection::InsufficientFunds { needed: 60, available: 50 };
    assert_eq!(refused(reverse(&world, made, None, Some("k"))), short);
    assert_eq!(link(&world, TransferId(made)), None, "a rejection leaves nothing");
    reverse(&world, made, Some(50), Some("k")).unwrap();
    assert_eq!((world.balance(ann), world.balance(bob)), (90, 10));
    world.end(&[ann, bob]);
}

/// As many are done as fit, and the others are rejected with what is left.
#[test]
fn reversals_of_many_callers_never_exceed_the_original() {
    for kind in [Kind::Sqlite, Kind::MariaDb, Kind::MySql] {
        let world = World::new(kind);
        let (ann, bob) = (world.member("ann", 100), world.member("bob", 1_000));
        let made = id(&world.transfer(ann, bob, 100, None).unwrap()).0;
        let done = world.wait(async {
            let callers = (0..16).map(|_| {
                let tally = world.tally.clone();
                tokio::spawn(async move { reversals::reverse(&tally, new(made, Some(15), None)).await })
            });
            let callers: Vec<_> = callers.collect();
            let mut done = Vec::new();
            for caller in callers {
                done.push(caller.await.unwrap());
            }
            done
        });
        let (good, bad): (Vec<_>, Vec<_>) = done.into_iter().partition(Result::is_ok);
        assert_eq!((good.len(), bad.len()), (6, 10));
        for refusal in bad {
            assert_eq!(refused(refusal), Rejection::ExceedsReversible { left: 10 });
        }
        assert_eq!((world.balance(ann), world.balance(bob)), (90, 1_010));
        world.end(&[ann, bob]);
    }
}

#[test]
fn fees_captures_and_money_of_the_bank_go_back_where_they_came_from() {
    let world = World::new(Kind::Sqlite);
    let (ann, bob) = (world.member("ann", 1_000), world.member("bob", 0));
    let post = |what| id(&world.post(order(what, 50), None).unwrap());
    let made = [
        post(TransferKind::Deposit { to: ann }),
        post(TransferKind::Withdrawal { from: ann }),
        post(TransferKind::Fee { from: ann }),
        post(TransferKind::Prize { to: ann }),
        post(TransferKind::Refund { to: ann }),
        captured(&world, ann, Some(bob), 50),
        captured(&world, ann, None, 50),
    ];
    for transfer in made {
        reverse(&world, transfer.0, None, None).unwrap();
        let found = world.wait(read::transfer(&world.tally, transfer.0)).unwrap();
        assert_eq!(found.link.map(|link| link.reversed()), Some(50));
    }
    assert_eq!((world.balance(ann), world.balance(bob)), (1_000, 0));
    for (key, total) in world.wait(read::accounts(&world.tally)).unwrap().rows() {
        let net = total.debits.abs_diff(total.credits);
        let wanted =
            if key.account.as_str().starts_with("BANK") && key.currency == code("KRW") { 1_000 } else { 0 };
        assert_eq!(net, wanted, "{}", key.account);
    }
    world.end(&[ann, bob]);
}

#[test]
fn a_reversal_outlives_its_members_and_its_key() {
    let world = World::new(Kind::Sqlite);
    let (ann, bob) = (world.member("ann", 100), world.member("bob", 0));
    let made = id(&world.transfer(ann, bob, 60, None).unwrap()).0;
    reverse(&world, made, None, Some("k")).unwrap();
    for member in [ann, bob] {
        world
            .wait(tally_service::members::close(&world.tally, member, true, Origin::BACKGROUND, None))
            .unwrap();
    }
    // Two days later the key is forgotten, and the link still says that all is back.
    world.advance(2 * 86_400_000_000);
    let refusal = refused(reverse(&world, made, None, Some("k")));
    assert_eq!(refusal, Rejection::ExceedsReversible { left: 0 });
    let deposit = world.tally.store.ledger().history(WalletKey { member: ann, currency: code("KRW") }, 1..2);
    let deposit = deposit.unwrap()[0].1.transfer;
    reverse(&world, deposit.0, Some(30), None).unwrap();
    assert_eq!(world.balance(ann), 70);
    world.end(&[ann, bob]);
}

fn bytes(id: Uuid) -> String {
    format!("{:032x}", u128::from_be_bytes(id.0))
}

/// The stored link of an original. An amount below 64 is one byte: its double.
fn parts(parts: &[(Uuid, u8)]) -> String {
    let part = |(id, units): &(Uuid, u8)| format!("{}{:02x}", bytes(*id), 2 * units);
    let parts: Vec<String> = parts.iter().map(part).collect();
    format!("x'01{:02x}{}'", parts.len(), parts.concat())
}

/// The stored link of a reversal.
fn back(original: Uuid) -> String {
    format!("x'02{}00'", bytes(original))
}

/// Links broken by SQL, and what `verify` says.
fn of_links(original: Uuid, [first, second]: [Uuid; 2], other: Uuid) -> Vec<Broken> {
    let set = |id: Uuid, body: String| format!("UPDATE reversals SET body = {body} WHERE id = {}", hex(id));
    let gone = |id: Uuid| format!("DELETE FROM reversals WHERE id = {}", hex(id));
    vec![
        fault(
            gone(original),
            &[
                &format!("reversals {first}: its original {original} lists it 0 times"),
                &format!("reversals {second}: its original {original} lists it 0 times"),
            ],
        ),
        fault(
            gone(first),
            &[
                &format!("transfers {first}: it is a reversal and names no original"),
                &format!("reversals {original}: its reversal {first} does not name it"),
            ],
        ),
        fault(
            set(original, parts(&[(first, 20)])),
            &[&format!("reversals {second}: its original {original} lists it 0 times")],
        ),
        fault(
            set(original, parts(&[(first, 20), (second, 41)])),
            &[
                &format!("reversals {original}: 61 is reversed of a movement of 60"),
                &format!("reversals {original}: its reversal {second} is of 40, and it counts 41"),
            ],
        ),
        fault(
            set(original, parts(&[(first, 20), (first, 20)])),
            &[
                &format!("reversals {first}: its original {original} lists it 2 times"),
                &format!("reversals {second}: its original {original} lists it 0 times"),
            ],
        ),
        fault(
            set(first, back(other)),
            &[
                &format!("reversals {original}: its reversal {first} does not name it"),
                &format!("reversals {first}: its original {other} lists it 0 times"),
            ],
        ),
        fault(
            format!("INSERT INTO reversals VALUES ({}, {})", hex(other), back(original)),
            &[
                &format!("reversals {other}: its movement is no reversal"),
                &format!("reversals {other}: its original {original} lists it 0 times"),
            ],
        ),
        fault(
            format!("INSERT INTO reversals VALUES ({}, {})", hex(GHOST), parts(&[(first, 20)])),
            &[
                &format!("reversals {GHOST}: its movement is not there"),
                &format!("reversals {GHOST}: its reversal {first} does not name it"),
            ],
        ),
        fault(
            format!("INSERT INTO reversals VALUES ({}, {})", hex(other), parts(&[(GHOST, 7), (second, 40)])),
            &[
                "47 is reversed of a movement of 7",
                &format!("reversals {other}: its reversal {GHOST} does not name it"),
                &format!("reversals {other}: its reversal is not there: {GHOST}"),
                &format!("reversals {other}: its reversal {second} does not name it"),
                &format!("reversals {other}: its reversal {second} is another movement"),
            ],
        ),
        fault(
            set(second, "x'09'".into()),
            &[
                &format!("reversals {second}: it is damaged"),
                &format!("transfers {second}: it is a reversal and names no original"),
                &format!("reversals {original}: its reversal {second} does not name it"),
            ],
        ),
    ]
}

#[test]
fn every_broken_link_is_named() {
    let make = |world: &World| {
        let (ann, bob) = (world.member("ann", 100), world.member("bob", 0));
        let made = id(&world.transfer(ann, bob, 60, None).unwrap()).0;
        let other = id(&world.post(order(TransferKind::Deposit { to: ann }, 7), None).unwrap()).0;
        let parts = [Some(20), None].map(|units| id(&reverse(world, made, units, None).unwrap()).0);
        (made, parts, other)
    };
    for (place, (made, parts, other)) in Place::each(make) {
        place.break_each(&["reversals"], of_links(made, parts, other));
    }
}

#[test]
fn a_damaged_link_stops_reversals_of_its_transfer_alone() {
    let make = |world: &World| {
        let (ann, bob) = (world.member("ann", 100), world.member("bob", 0));
        let made = [60, 30].map(|units| id(&world.transfer(ann, bob, units, None).unwrap()).0);
        made.iter().for_each(|made| drop(reverse(world, *made, Some(10), None).unwrap()));
        made
    };
    let server = tally_testkit::ScratchDatabase::shared(tally_testkit::DatabaseKind::MariaDb10);
    let (world, name) = crate::wallets::verify::in_a_database(server);
    let [first, second] = make(&world);
    server.sql(&format!("UPDATE {name}.reversals SET body = 'x' WHERE id = {}", hex(first)));
    let damaged = reverse(&world, first, None, None);
    assert!(matches!(damaged, Err(Failure::Fault(tally_service::Fault::Damaged(_)))), "{damaged:?}");
    reverse(&world, second, None, None).unwrap();
    let shown = world.wait(read::transfer(&world.tally, second)).unwrap();
    assert_eq!(shown.link.map(|link| link.reversed()), Some(30));
    world.stop();
}
