//! Webhooks by a clock and a receiver of the test's: what is stored after which answer, and what no one gets twice.
//!
//! Not here: HTTP (`tally/tests/api/webhooks`), and the rows in a store (`store/tests`).

mod money;

use crate::wallets::world::{Kind, World};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, Sender as Pipe, channel};
use std::sync::{Arc, Mutex, PoisonError};
use tally_rules::Origin;
use tally_rules::contest::ContestId;
use tally_rules::contest::definition::ContestSpec;
use tally_rules::ledger::Currency;
use tally_rules::webhook::EventType;
use tally_service::contests::change;
use tally_service::contests::execute::ContestActor;
use tally_service::events::KEEP_MICROS;
use tally_service::webhooks::{
    self, Delivery, DeliveryCallback, Named, Patch, ReceiverResponse, Sender, deliveries,
};
use tally_testkit::GIVE_UP;
use tally_testkit::wait_until;

const DAY: i64 = 24 * 3600 * 1_000_000;

type Sent = (Delivery, DeliveryCallback);

/// Gives deliveries to the test, which answers them.
struct Held(Mutex<Pipe<Sent>>);

impl Sender for Held {
    fn send(&self, delivery: Delivery, done: DeliveryCallback) {
        // The test may have ended.
        drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).send((delivery, done)));
    }
}

fn start(world: &World) -> (Named, Receiver<Sent>) {
    start_with(world, &[EventType::Contest], &BTreeMap::new())
}

fn start_with(
    world: &World,
    events: &[EventType],
    marks: &BTreeMap<Currency, i64>,
) -> (Named, Receiver<Sent>) {
    let (pipe, held) = channel();
    world.tally.start_webhooks(Arc::new(Held(Mutex::new(pipe)))).unwrap();
    let by = (&Origin::default(), None);
    let made = webhooks::create(&world.tally, &"https://a/".into(), (events, marks), by).unwrap();
    (made.named, held)
}

fn answer(status: u16) -> ReceiverResponse {
    let failure = (status >= 300).then(|| format!("status {status}").into());
    ReceiverResponse { status: Some(status), failure }
}

fn enable(world: &World, hook: &Named, enabled: bool) {
    let patch = Patch { enabled: Some(enabled), ..Patch::default() };
    webhooks::patch(&world.tally, hook.id, &patch, (&Origin::default(), None)).unwrap();
}

/// Makes a contest, or changes it.
fn event(world: &World, contest: &str, is_new: bool) {
    let (id, actor) = (ContestId::new(contest).unwrap(), ContestActor::SERVER);
    let spec = ContestSpec { title: Some(world.now().0.to_string()), ..ContestSpec::default() };
    match is_new {
        true => drop(change::create(&world.tally, &id, &actor, &spec, None).unwrap()),
        false => drop(change::patch(&world.tally, &id, &actor, &spec, None).unwrap()),
    }
    world.advance(1);
}

/// The next delivery, which must have this number.
fn expect(held: &Receiver<Sent>, number: u64) -> Sent {
    let (delivery, done) = held.recv_timeout(GIVE_UP).expect("it is sent");
    assert_eq!(delivery.event.number, number);
    (delivery, done)
}

fn positions(world: &World, hook: &Named) -> Vec<u64> {
    let page = deliveries::list(&world.tally, hook.id, None, None, 10_000).unwrap();
    page.rows.iter().map(|row| row.position.delivered).collect()
}

/// Another server, or a request, delivers an event while this one waits for its answer.
#[test]
fn a_late_answer_sets_no_position_back() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        let (hook, held) = start(&world);
        event(&world, "cup", true);
        let (first, late) = expect(&held, 1);
        let id = first.event.id.clone();
        std::thread::scope(|scope| {
            let sending =
                scope.spawn(|| world.wait(deliveries::send(&world.tally, hook.id, &id, None)).unwrap());
            let (again, done) = expect(&held, 1);
            assert_eq!(again.event.id, first.event.id);
            done(answer(200));
            let (sent, _) = sending.join().unwrap();
            assert_eq!(sent.answer.status, Some(200));
            let page = deliveries::list(&world.tally, hook.id, None, None, 9).unwrap();
            assert_eq!(sent.at, Some(page.rows[0].position.at), "as the list has it");
        });
        assert_eq!(positions(&world, &hook), [1], "{kind:?}");
        event(&world, "cup", false);
        late(answer(500));
        let (_, done) = expect(&held, 2);
        let page = deliveries::list(&world.tally, hook.id, Some(true), None, 9).unwrap();
        assert!(page.rows.is_empty(), "{:?}", page.rows);
        done(answer(204));
        wait_until("the second is stored", || positions(&world, &hook) == [2]);
        world.tally.drain();
    }
}

#[test]
fn events_that_expire_before_they_are_delivered_are_counted() {
    let world = World::new(Kind::Sqlite);
    let (hook, held) = start(&world);
    event(&world, "cup", true);
    let (_, done) = expect(&held, 1);
    done(answer(200));
    wait_until("it is stored", || positions(&world, &hook) == [1]);
    enable(&world, &hook, false);
    event(&world, "cup", false);
    event(&world, "cup", false);
    world.advance(KEEP_MICROS + DAY / 2);
    world.tally.store.ledger().expire_events(world.now().plus(-KEEP_MICROS), 100).unwrap();
    event(&world, "cup", false);
    enable(&world, &hook, true);
    let (delivery, done) = expect(&held, 4);
    assert_eq!(delivery.event.missed, 2);
    done(answer(200));
    wait_until("it is stored", || positions(&world, &hook) == [4]);
    // A position stays longer than the events that it stands for, and no longer.
    event(&world, "other", true);
    let (_, done) = expect(&held, 1);
    world.advance(KEEP_MICROS + 2 * DAY);
    done(answer(200));
    wait_until("the old position is deleted", || positions(&world, &hook) == [1]);
    world.tally.drain();
}

/// More topics than a webhook has in memory.
#[test]
fn a_receiver_that_is_far_behind_gets_all_topics_once() {
    const CONTESTS: usize = 1_300;
    let world = World::new(Kind::Sqlite);
    let (hook, held) = start(&world);
    enable(&world, &hook, false);
    (0..CONTESTS).for_each(|number| event(&world, &format!("c{number}"), true));
    enable(&world, &hook, true);
    let mut seen = BTreeSet::new();
    while seen.len() < CONTESTS {
        let (delivery, done) = expect(&held, 1);
        assert!(seen.insert(delivery.event.subject.to_string()), "{}", delivery.event.subject);
        done(answer(200));
    }
    wait_until("all are stored", || positions(&world, &hook).len() == CONTESTS);
    world.tally.drain();
}
