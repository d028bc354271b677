//! Transfers with a PIN: checked first, counted also under concurrent guesses, and never paid to the former owner of the number.

use crate::wallets::world::*;
use tally_rules::idempotency::IdempotencyKey;
use tally_rules::instant::SECOND;
use tally_rules::ledger::member::{Login, Phone};
use tally_rules::ledger::pin::Given;
use tally_rules::ledger::{Amount, MemberId, TransferKind};
use tally_rules::{Origin, Rejection};
use tally_service::Failure;
use tally_service::members::change::{MemberChange, Set};
use tally_service::members::pay::{self, NewPayment, PaymentReply};
use tally_service::members::{self, NewMember};

fn phone(text: &str) -> Phone {
    Phone::parse(text, None).unwrap()
}

/// A payment of Ann's.
fn payment(
    world: &World,
    from: MemberId,
    pin: &str,
    to: &str,
    idempotency: Option<IdempotencyKey>,
) -> NewPayment {
    let guess = world.tally.members.pins.guess(&Login::new("ann").unwrap(), &Given::Digits(pin.into()));
    let tokens_from = world.tally.store.ledger().member(from).unwrap().unwrap().tokens_from;
    let amount = Amount::new(10).unwrap();
    NewPayment {
        from,
        tokens_from,
        guess,
        phone: phone(to),
        to: None,
        currency: code("KRW"),
        amount,
        idempotency,
    }
}

fn pay(
    world: &World,
    from: MemberId,
    pin: &str,
    to: &str,
    key: Option<&str>,
) -> Result<PaymentReply, Failure> {
    let idempotency = key.and_then(|key| idempotency(key, 1));
    world.wait(pay::pay(&world.tally, payment(world, from, pin, to, idempotency)))
}

#[track_caller]
fn paid(done: Result<PaymentReply, Failure>) -> (bool, Option<MemberId>) {
    match done {
        Ok(PaymentReply::Paid(receipt)) => (receipt.replayed, receipt.posted.entry.counterparty),
        done => panic!("{done:?}"),
    }
}

/// Ann with the PIN 0042 and 1000, Bob at 010-1111 and Eve without a number.
fn people(world: &World) -> [MemberId; 3] {
    let ann = new_member("ann");
    let pin = world.tally.members.pins.pin(&ann.member.login, "0042");
    let member = tally_rules::ledger::Member { pin: Some(pin), ..ann.member };
    let ann = world.create(NewMember { member, ..ann }).unwrap().id;
    let bob = world.create(with_phone("bob", "010-1111")).unwrap().id;
    let eve = world.create(new_member("eve")).unwrap().id;
    world.post(order(TransferKind::Deposit { to: ann }, 1_000), None).unwrap();
    [ann, bob, eve]
}

fn the_pin_is_checked_first(kind: Kind) {
    let world = World::new(kind);
    let [ann, bob, eve] = people(&world);
    assert_eq!(paid(pay(&world, ann, "0042", "010-1111", Some("k"))), (false, Some(bob)));
    assert_eq!(paid(pay(&world, ann, "0042", "0101111", Some("k"))), (true, Some(bob)));
    // A caller without the PIN gets neither an earlier reply nor whether the number has an owner.
    assert_eq!(refused(pay(&world, ann, "0043", "010-1111", Some("k"))), Rejection::InvalidPin);
    assert_eq!(refused(pay(&world, ann, "0043", "010-9999", None)), Rejection::InvalidPin);
    assert_eq!(refused(pay(&world, ann, "42", "010-1111", None)), Rejection::InvalidPin);
    assert_eq!(refused(pay(&world, ann, "0042", "010-9999", None)), Rejection::RecipientNotFound);
    // The PIN was right, so the count begins anew.
    for _ in 0..5 {
        assert_eq!(refused(pay(&world, ann, "0043", "010-1111", None)), Rejection::InvalidPin);
    }
    let locked = |left| Rejection::PinLocked { retry_after_s: left };
    assert_eq!(refused(pay(&world, ann, "0042", "010-1111", Some("k"))), locked(900));
    world.advance(899 * SECOND);
    assert_eq!(refused(pay(&world, ann, "0042", "010-1111", None)), locked(1));
    world.advance(SECOND);
    // The next lock is twice as long, and the right PIN ends that.
    for _ in 0..5 {
        assert_eq!(refused(pay(&world, ann, "0043", "010-1111", None)), Rejection::InvalidPin);
    }
    assert_eq!(refused(pay(&world, ann, "0042", "010-1111", None)), locked(1_800));
    world.advance(1_800 * SECOND);
    assert_eq!(paid(pay(&world, ann, "0042", "010-1111", None)), (false, Some(bob)));
    // A member without a PIN cannot know it.
    assert_eq!(refused(pay(&world, eve, "0042", "010-1111", None)), Rejection::InvalidPin);
    assert_eq!((world.balance(ann), world.balance(bob)), (980, 20));
    world.end(&[ann, bob, eve]);
}

#[test]
fn the_pin_is_checked_before_anything_is_told_in_a_file() {
    the_pin_is_checked_first(Kind::Sqlite);
}

#[test]
fn the_pin_is_checked_before_anything_is_told_on_mariadb() {
    the_pin_is_checked_first(Kind::MariaDb);
}

fn numbers_are_not_told(kind: Kind) {
    let world = World::new(kind);
    let [ann, bob, eve] = people(&world);
    let probe = |to: &str| pay(&world, ann, "0042", to, None);
    // Ann can pay: 100 numbers without a member, and one more every five minutes.
    for number in 0..100 {
        assert_eq!(refused(probe(&format!("010-9{number:03}"))), Rejection::RecipientNotFound);
    }
    assert_eq!(probe("010-9999").unwrap(), PaymentReply::Wait(300));
    assert_eq!(probe("010-1111").unwrap(), PaymentReply::Wait(300), "whether a member has it or not");
    world.advance(299 * SECOND);
    assert_eq!(probe("010-1111").unwrap(), PaymentReply::Wait(1));
    world.advance(SECOND);
    // Paid transfers use up no attempt, and are replayed.
    for _ in 0..3 {
        assert_eq!(paid(pay(&world, ann, "0042", "010-1111", Some("k"))).1, Some(bob));
    }
    assert_eq!(refused(probe("010-9999")), Rejection::RecipientNotFound);
    assert_eq!(probe("010-1111").unwrap(), PaymentReply::Wait(300));
    // With too little money, the owner of the number makes no difference, and counts for nothing.
    world.post(order(TransferKind::Withdrawal { from: ann }, 985), None).unwrap();
    world.advance(300 * SECOND);
    for number in ["010-1111", "010-9999"].repeat(60) {
        assert_eq!(refused(probe(number)).code(), "insufficient_funds", "{number}");
    }
    world.end(&[ann, bob, eve]);
}

#[test]
fn phone_numbers_are_not_told_in_a_file() {
    numbers_are_not_told(Kind::Sqlite);
}

#[test]
fn phone_numbers_are_not_told_on_mariadb() {
    numbers_are_not_told(Kind::MariaDb);
}

/// A caller without the PIN learns nothing from the time either: the same is read and stored.
#[test]
fn an_unknown_number_is_looked_up_like_any_other() {
    let world = World::new(Kind::Sqlite);
    let [ann, bob, eve] = people(&world);
    let rates = || world.tally.members.cache.rates().map(|(_, rate)| (rate.hits, rate.misses, rate.entries));
    let asked = |to: &str| {
        let before = rates();
        for _ in 0..2 {
            assert_eq!(refused(pay(&world, ann, "0043", to, None)), Rejection::InvalidPin);
        }
        let after = rates();
        [0, 1].map(|at| {
            let (before, after) = (before[at], after[at]);
            (after.0 - before.0, after.1 - before.1, after.2 - before.2)
        })
    };
    let (nobodys, bobs) = (asked("010-9999"), asked("010-1111"));
    assert_eq!(nobodys, [(1, 1, 1), (0, 0, 0)]);
    assert_eq!(bobs, nobodys);
    // The later owner of the number is paid all the same.
    let change = MemberChange { phone: Set::To(Some(phone("010-9999"))), ..MemberChange::default() };
    world.wait(members::change(&world.tally, eve, change, Some(Origin::BACKGROUND), None)).unwrap();
    assert_eq!(paid(pay(&world, ann, "0042", "010-9999", None)), (false, Some(eve)));
    world.end(&[ann, bob, eve]);
}

#[test]
fn guesses_at_the_same_time_all_count() {
    let world = World::new(Kind::Sqlite);
    let [ann, bob, eve] = people(&world);
    let guesses = (0..40).map(|number| {
        let (tally, new) =
            (world.tally.clone(), payment(&world, ann, &format!("{number:04}"), "010-1111", None));
        async move { pay::pay(&tally, new).await }
    });
    let guesses: Vec<_> = guesses.collect();
    let answers = world.wait(async {
        let tasks: Vec<_> = guesses.into_iter().map(tokio::spawn).collect();
        let mut answers = Vec::new();
        for task in tasks {
            answers.push(refused(task.await.unwrap()));
        }
        answers
    });
    let wrong = answers.iter().filter(|one| **one == Rejection::InvalidPin).count();
    let locked = answers.iter().filter(|one| matches!(one, Rejection::PinLocked { .. })).count();
    assert_eq!((wrong, locked), (5, 35));
    let unlock = MemberChange { unlock_pin: true, ..MemberChange::default() };
    world.wait(members::change(&world.tally, ann, unlock, Some(Origin::BACKGROUND), None)).unwrap();
    assert_eq!(paid(pay(&world, ann, "0042", "010-1111", None)), (false, Some(bob)));
    world.end(&[ann, bob, eve]);
}

#[test]
fn money_goes_to_the_present_owner_of_the_number() {
    let world = World::new(Kind::Sqlite);
    let [ann, bob, eve] = people(&world);
    assert_eq!(paid(pay(&world, ann, "0042", "010-1111", None)), (false, Some(bob)));
    let change = |id, phone: Option<Phone>| {
        let change = MemberChange { phone: Set::To(phone), ..MemberChange::default() };
        world.wait(members::change(&world.tally, id, change, Some(Origin::BACKGROUND), None))
    };
    assert!(matches!(refused(change(eve, Some(phone("010-1111")))), Rejection::PhoneTaken(_)));
    change(bob, Some(phone("010-2222"))).unwrap();
    assert_eq!(refused(pay(&world, ann, "0042", "010-1111", None)), Rejection::RecipientNotFound);
    change(eve, Some(phone("010-1111"))).unwrap();
    assert_eq!(paid(pay(&world, ann, "0042", "010-1111", None)), (false, Some(eve)));
    assert_eq!(paid(pay(&world, ann, "0042", "010-2222", None)), (false, Some(bob)));
    change(eve, None).unwrap();
    assert_eq!(refused(pay(&world, ann, "0042", "010-1111", None)), Rejection::RecipientNotFound);
    // A changed password ends everything begun with an older token.
    let before = payment(&world, ann, "0042", "010-2222", None);
    let password = MemberChange { password: Set::To(Some("x".into())), ..MemberChange::default() };
    world.wait(members::change(&world.tally, ann, password, Some(Origin::BACKGROUND), None)).unwrap();
    assert_eq!(world.wait(pay::pay(&world.tally, before)).unwrap(), PaymentReply::SignedOut);
    assert_eq!(world.balance(ann), 970);
    world.end(&[ann, bob, eve]);
}
