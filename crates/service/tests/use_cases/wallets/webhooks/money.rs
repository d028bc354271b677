//! Lines of wallets by webhooks: each once and in order of its wallet, from the first after the webhook was made, whatever stops and starts.

use super::{Held, Sent, answer, enable, start_with};
use crate::wallets::histories::amount;
use crate::wallets::verify::verify;
use crate::wallets::world::{Kind, World, code, order};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tally_rules::Origin;
use tally_rules::ledger::{MemberId, TransferKind, WalletKey};
use tally_rules::webhook::EventType;
use tally_service::ledger::reversals::{self, NewReversal};
use tally_service::webhooks::{Happening, Named, WalletEntry};
use tally_store::{LedgerReadSet, LedgerWriteSet, ReadSet, Topic, WebhookKey, WebhookRow, WriteSet};
use tally_testkit::GIVE_UP;
use tally_testkit::wait_until;

const SECOND: i64 = 1_000_000;

fn entry_of(sent: &Sent) -> &WalletEntry {
    match &sent.0.event.what {
        Happening::Entry(entry) => entry,
        Happening::Stored(event) => panic!("{event:?}"),
    }
}

fn pay(world: &World, what: TransferKind, units: i64) -> tally_rules::ledger::Uuid {
    let receipt = world.post(order(what, units), None).unwrap();
    world.advance(1);
    receipt.posted.entry.transfer.0
}

fn next(held: &Receiver<Sent>) -> Sent {
    held.recv_timeout(GIVE_UP).expect("it is sent")
}

fn take(held: &Receiver<Sent>) -> (EventType, MemberId, u64, i64) {
    let sent = next(held);
    let entry = entry_of(&sent);
    let seen = (sent.0.event.kind, entry.wallet.member, sent.0.event.number, entry.entry.after);
    sent.1(answer(200));
    seen
}

fn is_quiet(held: &Receiver<Sent>) {
    assert!(held.recv_timeout(Duration::from_millis(1_500)).is_err(), "nothing is sent");
}

/// A line is one event, of the first type that fits it and that the webhook wants.
#[test]
fn a_line_is_sent_once_as_what_the_webhook_wants() {
    let all = [EventType::Transfer, EventType::Reversal, EventType::BalanceBelow];
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        let [ann, bob] = ["ann", "bob"].map(|name| world.member(name, 0));
        pay(&world, TransferKind::Deposit { to: ann }, 100);
        world.advance(SECOND);
        let marks: BTreeMap<_, _> = [(code("KRW"), 50)].into();
        let (_, held) = start_with(&world, &all, &marks);
        // From its beginning on: not the deposit before.
        let moved = pay(&world, TransferKind::Transfer { from: ann, to: bob }, 50);
        let mut seen: Vec<_> = (0..2).map(|_| take(&held)).collect();
        seen.sort_by_key(|(_, member, ..)| *member != ann);
        let both = [(EventType::Transfer, ann, 2, 50), (EventType::Transfer, bob, 1, 50)];
        assert_eq!(seen, both, "{kind:?}");
        pay(&world, TransferKind::Withdrawal { from: ann }, 1);
        assert_eq!(take(&held), (EventType::BalanceBelow, ann, 3, 49));
        // It is below already.
        pay(&world, TransferKind::Withdrawal { from: ann }, 1);
        assert_eq!(take(&held), (EventType::Transfer, ann, 4, 48));
        let (amount, origin) = (Some(amount(7)), Origin::default());
        let new = NewReversal { transaction: moved, amount, origin, idempotency: None };
        world.wait(reversals::reverse(&world.tally, new)).unwrap();
        let mut seen: Vec<_> = (0..2).map(|_| take(&held)).collect();
        seen.sort_by_key(|(_, member, ..)| *member != ann);
        assert_eq!(seen, [(EventType::Reversal, ann, 5, 55), (EventType::BalanceBelow, bob, 2, 43)]);
        is_quiet(&held);
        world.tally.drain();
    }
}

/// Hundreds of lines that a webhook does not want are no events and no position.
#[test]
fn lines_that_are_not_wanted_are_passed() {
    let world = World::new(Kind::Sqlite);
    let [ann, bob] = ["ann", "bob"].map(|name| world.member(name, 0));
    let (hook, held) = start_with(&world, &[EventType::Reversal], &BTreeMap::new());
    let mut last = pay(&world, TransferKind::Deposit { to: ann }, 1_000);
    for _ in 0..350 {
        last = pay(&world, TransferKind::Transfer { from: ann, to: bob }, 1);
    }
    let reverse = |transaction| {
        let new = NewReversal { transaction, amount: None, origin: Origin::default(), idempotency: None };
        world.wait(reversals::reverse(&world.tally, new)).unwrap();
        world.advance(1);
    };
    reverse(last);
    let mut seen: Vec<_> = (0..2).map(|_| take(&held)).collect();
    seen.sort_by_key(|(_, member, ..)| *member != ann);
    assert_eq!(seen, [(EventType::Reversal, ann, 352, 651), (EventType::Reversal, bob, 351, 349)]);
    wait_until("both are stored", || super::positions(&world, &hook).len() == 2);
    world.tally.drain();
}

/// Another process goes on with what was not taken, also with what was stored while none ran, and repeats nothing else.
#[test]
fn another_process_goes_on_where_the_last_one_stopped() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        let members: Vec<MemberId> = (0..20).map(|no| world.member(&format!("m{no}"), 0)).collect();
        let (_, held) = start_with(&world, &[EventType::Transfer], &BTreeMap::new());
        let mut wanted = BTreeSet::new();
        let mut seen = BTreeSet::new();
        let deposit = |world: &World, wanted: &mut BTreeSet<_>, member: MemberId, number| {
            pay(world, TransferKind::Deposit { to: member }, 1);
            wanted.insert((member, number));
        };
        members.iter().for_each(|member| deposit(&world, &mut wanted, *member, 1));
        for _ in 0..members.len() {
            let (_, member, number, _) = take(&held);
            assert!(seen.insert((member, number)), "sent twice");
        }
        // Far enough for the later read, and for its place to be stored.
        world.advance(120 * SECOND);
        deposit(&world, &mut wanted, members[0], 2);
        let (_, member, number, _) = take(&held);
        assert!(seen.insert((member, number)));
        world.advance(120 * SECOND);
        // It is sent, and the process ends before the answer.
        deposit(&world, &mut wanted, members[1], 2);
        let lost = next(&held);
        world.tally.drain();
        drop(lost);
        let next_world = World::on(Arc::clone(&world.tally.store), tempfile::tempdir().unwrap());
        next_world.advance(world.now().since(next_world.now()));
        let world = next_world;
        members.iter().skip(2).for_each(|member| deposit(&world, &mut wanted, *member, 2));
        let (pipe, held) = channel();
        world.tally.start_webhooks(Arc::new(Held(Mutex::new(pipe)))).unwrap();
        while seen != wanted {
            let (_, member, number, _) = take(&held);
            assert!(seen.insert((member, number)), "{kind:?}: line {number} of {member:?} is repeated");
        }
        is_quiet(&held);
        world.tally.drain();
    }
}

/// A server whose clock is behind another one decides earlier and commits later: its lines are found by the later read.
#[test]
fn a_transfer_that_appears_late_is_found() {
    let world = World::new(Kind::MariaDb);
    let behind = World::on(Arc::clone(&world.tally.store), tempfile::tempdir().unwrap());
    let ann = world.member("ann", 0);
    world.advance(20 * SECOND);
    let (_, held) = start_with(&world, &[EventType::Transfer], &BTreeMap::new());
    world.advance(20 * SECOND);
    behind.advance(30 * SECOND);
    let first = pay(&world, TransferKind::Deposit { to: ann }, 1);
    assert_eq!(take(&held), (EventType::Transfer, ann, 1, 1));
    let second = pay(&behind, TransferKind::Deposit { to: ann }, 1);
    assert!(second < first, "its clock is behind");
    world.advance(70 * SECOND);
    assert_eq!(take(&held), (EventType::Transfer, ann, 2, 2));
    behind.tally.drain();
    world.tally.drain();
}

/// `verify` reports a position behind the last line, whose lines the receiver would never get.
#[test]
fn a_position_behind_the_last_line_is_named() {
    let world = World::new(Kind::Sqlite);
    let ann = world.member("ann", 0);
    let (hook, held) = start_with(&world, &[EventType::Transfer], &BTreeMap::new());
    pay(&world, TransferKind::Deposit { to: ann }, 1);
    take(&held);
    wait_until("it is stored", || super::positions(&world, &hook) == [1]);
    world.tally.drain();
    let store = &*world.tally.store;
    assert_eq!(verify(store).1, [""; 0]);
    let topic = Topic::Wallet(WalletKey { member: ann, currency: code("KRW") });
    let key = WebhookKey { topic: Some(topic), id: hook.id };
    let ledger = LedgerReadSet { webhooks: vec![key], ..LedgerReadSet::default() };
    let plan = ReadSet { ledger, ..ReadSet::default() };
    let run = store.run(&plan, &mut |loaded| {
        let mut position = loaded.ledger.webhooks[0].as_ref().unwrap().position().unwrap().clone();
        position.delivered = 2;
        let webhooks = vec![(key, Some(WebhookRow::Position(position)))];
        WriteSet { ledger: LedgerWriteSet { webhooks, ..LedgerWriteSet::default() }, ..WriteSet::default() }
    });
    run.unwrap();
    let name = format!("webhooks w{}KRW/{}", ann.0, hook.id);
    assert_eq!(verify(store).1, [format!("{name}: 2 events were delivered, and the last one is 1")]);
}

/// A receiver that fails delays the wallets that it fails for, and what was stored meanwhile comes in order.
#[test]
fn a_failing_wallet_waits_and_others_go_on() {
    let world = World::new(Kind::Sqlite);
    let [ann, bob] = ["ann", "bob"].map(|name| world.member(name, 0));
    let (hook, held): (Named, _) = start_with(&world, &[EventType::Transfer], &BTreeMap::new());
    pay(&world, TransferKind::Deposit { to: ann }, 1);
    let sent = next(&held);
    sent.1(answer(500));
    for _ in 0..3 {
        pay(&world, TransferKind::Deposit { to: ann }, 1);
    }
    pay(&world, TransferKind::Deposit { to: bob }, 1);
    assert_eq!(take(&held), (EventType::Transfer, bob, 1, 1));
    enable(&world, &hook, false);
    pay(&world, TransferKind::Deposit { to: bob }, 1);
    world.advance(120 * SECOND);
    enable(&world, &hook, true);
    let mut seen: Vec<_> = (0..5).map(|_| take(&held)).collect();
    seen.sort_by_key(|(_, member, number, _)| (*member != ann, *number));
    let numbers: Vec<_> = seen.iter().map(|(_, member, number, _)| (*member == ann, *number)).collect();
    assert_eq!(numbers, [(true, 1), (true, 2), (true, 3), (true, 4), (false, 2)]);
    is_quiet(&held);
    world.tally.drain();
}
