//! Events: numbered without a gap by all writers, read on from any number, forgotten by age except the last number.

use super::ledger::{member_id, wallet, wallet_key};
use super::*;
use std::sync::atomic::{AtomicBool, Ordering};
use tally_rules::contest::ContestState;
use tally_rules::event::{ContestChanged, Event, EventKind, PeriodClosed};
use tally_rules::ledger::Uuid;
use tally_rules::period::TimeSpan;
use tally_store::{LedgerWriteSet, Topic};
use tally_testkit::SetAtEnd;

pub(crate) fn contest(number: u8) -> Topic {
    Topic::Contest(Uuid([number; 16]))
}

/// An event with its number.
pub(crate) fn event(at: i64, number: u32) -> Event {
    let before = (number > 1).then_some(ContestState::Draft);
    let contest = None;
    let changed =
        ContestChanged { contest, before, state: ContestState::Open, at: Micros(-at), members: number };
    Event { at: Micros(at), what: EventKind::Contest(changed) }
}

fn closed(at: i64, total: u64) -> Event {
    let span = TimeSpan { start: Micros(i64::MIN), end: Micros(i64::MAX) };
    let (period, name) = ("weekly:2026-11-16".into(), "weekly".into());
    Event { at: Micros(at), what: EventKind::PeriodClosed(PeriodClosed { period, name, span, total }) }
}

fn add(store: &dyn Store, events: Vec<(Topic, Event)>) {
    let ledger = LedgerWriteSet { events, ..LedgerWriteSet::default() };
    write(store, &WriteSet { ledger, ..WriteSet::default() }).unwrap();
}

pub(crate) fn events_are_numbered_and_read_on_from_any_of_them(backend: &dyn Backend) {
    let store = open(backend);
    let (first, second, board) = (contest(1), contest(2), Topic::Board(BoardNo(7)));
    assert_eq!(store.ledger().last_events(&[]).unwrap(), Vec::<u64>::new());
    assert_eq!(store.ledger().last_events(&[board, first]).unwrap(), [0, 0]);
    // Several of one topic in one transaction, in their order, beside others.
    add(&*store, vec![(second, event(5, 1)), (first, event(5, 1)), (second, event(5, 2))]);
    store.checkpoint().unwrap();
    add(&*store, vec![(board, closed(6, u64::MAX)), (second, event(6, 3))]);
    for number in 4..=30 {
        add(&*store, vec![(second, event(7, number))]);
    }
    drop(store);
    let store = open(backend);
    let read = store.ledger();
    assert_eq!(read.last_events(&[board, first, second, contest(3)]).unwrap(), [1, 1, 30, 0]);
    assert_eq!(read.events(board, 0, 9).unwrap(), [(1, closed(6, u64::MAX))]);
    assert_eq!(read.events(first, 0, 9).unwrap(), [(1, event(5, 1))]);
    let at = |number: u32| match number {
        1 | 2 => 5,
        3 => 6,
        _ => 7,
    };
    let all = |after: u32, limit: usize| {
        let numbers = (after + 1..=30).take(limit);
        numbers.map(|number| (u64::from(number), event(at(number), number))).collect::<Vec<_>>()
    };
    for after in [0, 1, 2, 3, 29, 30] {
        for limit in [1, 2, 100] {
            assert_eq!(
                read.events(second, after.into(), limit).unwrap(),
                all(after, limit),
                "{after} {limit}"
            );
        }
    }
    assert_eq!(read.events(second, u64::from(u32::MAX), 9).unwrap(), []);
    assert_eq!(read.events(contest(3), 0, 9).unwrap(), []);
}

pub(crate) fn an_event_is_there_with_its_transaction_or_not_at_all(backend: &dyn Backend) {
    let store = open(backend);
    let no = create(&*store, "b", &Definition::default()).unwrap();
    let ledger = LedgerWriteSet { events: vec![(contest(1), event(1, 1))], ..LedgerWriteSet::default() };
    // A name in use: all of it is refused.
    let row = BoardRow {
        no: BoardNo(no.0 + 1),
        id: BoardId::new("b").unwrap(),
        definition: Definition::default(),
        created_at: Micros(0),
    };
    let boards = vec![BoardChange::Create(row)];
    let refused = write(&*store, &WriteSet { boards, ledger: ledger.clone(), ..WriteSet::default() });
    assert!(matches!(refused, Err(StoreError::Row(_))), "{refused:?}");
    assert_eq!(store.ledger().last_events(&[contest(1)]).unwrap(), [0]);
    write(&*store, &WriteSet { ledger, ..WriteSet::default() }).unwrap();
    assert_eq!(store.ledger().events(contest(1), 0, 9).unwrap(), [(1, event(1, 1))]);
}

/// A reader that sees a number has seen all before it: no commit becomes visible behind a later one.
pub(crate) fn numbers_become_visible_in_their_order(backend: &dyn Backend) {
    const WRITERS: u32 = 4;
    const EACH: u32 = 25;
    let store = open(backend);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let end = SetAtEnd::new(&done);
        let reader = scope.spawn(|| {
            let (mut after, mut seen) = (0, Vec::new());
            loop {
                let last = done.load(Ordering::SeqCst);
                let found = store.ledger().events(contest(1), after, 7).unwrap();
                for (number, event) in &found {
                    assert_eq!(*number, after + 1, "one was passed over");
                    after = *number;
                    seen.push(event.at.0);
                }
                if last && found.is_empty() {
                    return seen;
                }
            }
        });
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let store = &store;
                scope.spawn(move || {
                    for nth in 0..EACH {
                        add(&**store, vec![(contest(1), event(i64::from(writer * EACH + nth), 1))]);
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        drop(end);
        let mut seen = reader.join().unwrap();
        // Each writer's in its order, and each once.
        for writer in 0..WRITERS {
            let own = |at: &&i64| **at / i64::from(EACH) == i64::from(writer);
            assert!(seen.iter().filter(own).is_sorted());
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..i64::from(WRITERS * EACH)).collect::<Vec<_>>());
    });
}

pub(crate) fn old_events_go_and_numbers_go_on(backend: &dyn Backend) {
    let store = open(backend);
    for number in 1..=6 {
        add(&*store, vec![(contest(1), event(i64::from(number), number)), (contest(2), event(9, number))]);
    }
    let read = |store: &dyn Store| {
        let found = store.ledger().events(contest(1), 0, 9).unwrap();
        found.into_iter().map(|(number, _)| number).collect::<Vec<_>>()
    };
    let expire =
        |store: &dyn Store, before, limit| store.ledger().expire_events(Micros(before), limit).unwrap();
    assert_eq!(expire(&*store, 1, 9), 0);
    assert_eq!(expire(&*store, 5, 3), 3);
    assert_eq!(read(&*store), [4, 5, 6]);
    assert_eq!(expire(&*store, 5, 3), 1);
    assert_eq!(expire(&*store, 9, 9), 2);
    drop(store);
    let store = open(backend);
    assert!(read(&*store).is_empty());
    assert_eq!(store.ledger().events(contest(2), 0, 9).unwrap().len(), 6);
    // A deleted event is known by its number, which is not used again.
    assert_eq!(store.ledger().last_events(&[contest(1)]).unwrap(), [6]);
    add(&*store, vec![(contest(1), event(9, 7))]);
    assert_eq!(store.ledger().events(contest(1), 5, 9).unwrap(), [(7, event(9, 7))]);
}

pub(crate) fn a_deleted_board_takes_its_events_along(backend: &dyn Backend) {
    let store = open(backend);
    let boards = ["gone", "kept"].map(|name| create(&*store, name, &Definition::default()).unwrap());
    let [gone, kept] = boards.map(Topic::Board);
    for total in 1..=5 {
        add(&*store, vec![(gone, closed(1, total)), (kept, closed(1, total))]);
    }
    let delete = vec![BoardChange::Delete(boards[0])];
    write(&*store, &WriteSet { boards: delete, ..WriteSet::default() }).unwrap();
    while store.purge_deleted(2).unwrap() > 0 {}
    let read = store.ledger();
    assert_eq!(read.last_events(&[gone, kept]).unwrap(), [0, 5]);
    assert_eq!((read.events(gone, 0, 9).unwrap().len(), read.events(kept, 0, 9).unwrap().len()), (0, 5));
}

pub(crate) fn last_entries_are_those_of_the_wallets(backend: &dyn Backend) {
    let store = open(backend);
    let keys = [(1, "KRW"), (1, "USD"), (2, "KRW"), (4, "EUR")].map(|(who, code)| wallet_key(who, code));
    let wallets: Vec<_> = keys.iter().zip(0..).map(|(key, last)| (*key, wallet(10, last))).collect();
    let ledger = LedgerWriteSet { wallets: wallets.clone(), ..LedgerWriteSet::default() };
    write(&*store, &WriteSet { ledger, ..WriteSet::default() }).unwrap();
    store.checkpoint().unwrap();
    let ledger = LedgerWriteSet { wallets: vec![(keys[1], wallet(10, 9))], ..LedgerWriteSet::default() };
    write(&*store, &WriteSet { ledger, ..WriteSet::default() }).unwrap();
    let last = |members: &[u8]| {
        let members: Vec<_> = members.iter().map(|number| member_id(*number)).collect();
        store.ledger().last_entries(&members).unwrap()
    };
    assert_eq!(last(&[]), []);
    assert_eq!(last(&[1]), [(keys[0], 0), (keys[1], 9)]);
    assert_eq!(last(&[1, 2, 3, 4]), [(keys[0], 0), (keys[1], 9), (keys[2], 2), (keys[3], 3)]);
}
