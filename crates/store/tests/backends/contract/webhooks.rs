//! Webhooks and their positions: read, listed, changed and removed; and the events of all topics by their times.

use super::events::{contest, event};
use super::*;
use std::collections::BTreeMap;
use tally_rules::ledger::{Currency, MemberId, Uuid, WalletKey};
use tally_rules::webhook::{EventRef, EventType, Failing, Position, Webhook};
use tally_store::{EventKey, LedgerReadSet, LedgerWriteSet, Topic, WebhookKey, WebhookRow};

fn id(number: u8) -> Uuid {
    Uuid([number; 16])
}

fn webhook(url: &str) -> WebhookRow {
    WebhookRow::Webhook(Webhook {
        url: url.into(),
        events: vec![EventType::Contest],
        marks: [(Currency::parse("KRW").unwrap(), 100)].into(),
        created_at: Micros(1),
        enabled_at: Micros(2),
        disabled: None,
        secret: 1,
        made_by: 15,
        previous_made_by: 3,
        previous_until: Some(Micros(3)),
    })
}

fn position(delivered: u64) -> WebhookRow {
    let failing = Failing { since: Micros(1), attempts: 2, next: Micros(i64::MAX), why: "ä".into() };
    let tried = EventRef { number: delivered + 1, at: Micros(5) };
    WebhookRow::Position(Position {
        tried,
        status: Some(599),
        failing: (delivered == 7).then_some(failing),
        ..Position::new("cup".into(), delivered)
    })
}

fn wallet() -> WalletKey {
    WalletKey { member: MemberId(id(3)), currency: Currency::parse("GOLD2026").unwrap() }
}

fn at(topic: Option<Topic>, number: u8) -> WebhookKey {
    WebhookKey { topic, id: id(number) }
}

/// A webhook, and a position that fails.
pub(crate) fn rows_of_fixtures() -> Vec<(WebhookKey, Option<WebhookRow>)> {
    // As releases before marks and before a rotation of the secret stored it.
    let WebhookRow::Webhook(webhook) = webhook("https://a/") else { unreachable!("it is one") };
    let webhook =
        WebhookRow::Webhook(Webhook { marks: BTreeMap::new(), made_by: 0, previous_made_by: 0, ..webhook });
    vec![(at(None, 1), Some(webhook)), (at(Some(contest(1)), 1), Some(position(7)))]
}

fn put(store: &dyn Store, rows: Vec<(WebhookKey, Option<WebhookRow>)>) -> Result<(), StoreError> {
    let ledger = LedgerWriteSet { webhooks: rows, ..LedgerWriteSet::default() };
    write(store, &WriteSet { ledger, ..WriteSet::default() })
}

pub(crate) fn webhooks_come_before_positions_and_read_back(backend: &dyn Backend) {
    let store = open(backend);
    assert_eq!(store.ledger().list_webhook_rows(None, 9).unwrap().rows, []);
    let board = Some(Topic::Board(BoardNo(3)));
    let all = [
        (at(None, 1), webhook("https://a/")),
        (at(None, 9), webhook("https://b/")),
        (at(board, 1), position(0)),
        (at(board, 9), position(u64::MAX - 1)),
        (at(Some(contest(0)), 1), position(7)),
        (at(Some(Topic::Wallet(wallet())), 1), position(5)),
        (at(Some(Topic::Transfers), 1), position(6)),
    ];
    let rows = |range: std::ops::Range<usize>| {
        all[range].iter().cloned().map(|(key, row)| (key, Some(row))).collect::<Vec<_>>()
    };
    put(&*store, rows(2..4)).unwrap();
    store.checkpoint().unwrap();
    put(&*store, rows(0..2)).unwrap();
    put(&*store, rows(4..7)).unwrap();
    drop(store);
    let store = open(backend);
    let list =
        |after: Option<WebhookKey>, limit| store.ledger().list_webhook_rows(after, limit).unwrap().rows;
    assert_eq!(list(None, 9), all);
    for (place, (key, _)) in all.iter().enumerate() {
        assert_eq!(list(Some(*key), 2), all[place + 1..].iter().take(2).cloned().collect::<Vec<_>>());
    }
    let keys = [at(None, 1), at(None, 2), at(board, 9)];
    let found = [Some(all[0].1.clone()), None, Some(all[3].1.clone())];
    assert_eq!(store.ledger().webhook_rows(&keys).unwrap(), found);
    assert_eq!(store.ledger().webhook_rows(&[]).unwrap(), []);
}

pub(crate) fn a_transaction_reads_changes_and_removes_webhooks(backend: &dyn Backend) {
    let store = open(backend);
    let keys = vec![at(None, 1), at(None, 2), at(Some(contest(1)), 1)];
    put(&*store, vec![(keys[0], Some(webhook("https://a/"))), (keys[2], Some(position(7)))]).unwrap();
    for removed in [false, true] {
        let ledger = LedgerReadSet { webhooks: keys.clone(), ..LedgerReadSet::default() };
        let plan = ReadSet { ledger, ..ReadSet::default() };
        let mut seen = Vec::new();
        run(&*store, &plan, &mut |loaded| {
            seen.clone_from(&loaded.ledger.webhooks);
            let row = |number| if removed { None } else { Some(position(number)) };
            let webhooks = vec![(keys[1], Some(webhook("https://b/"))), (keys[2], row(8))];
            let ledger = LedgerWriteSet { webhooks, ..LedgerWriteSet::default() };
            WriteSet { ledger, ..WriteSet::default() }
        })
        .unwrap();
        let second = removed.then(|| webhook("https://b/"));
        let number = if removed { 8 } else { 7 };
        assert_eq!(seen, [Some(webhook("https://a/")), second, Some(position(number))]);
    }
    let found = store.ledger().webhook_rows(&keys).unwrap();
    assert_eq!(found, [Some(webhook("https://a/")), Some(webhook("https://b/")), None]);
    let listed = store.ledger().list_webhook_rows(Some(keys[1]), 9).unwrap();
    assert_eq!(listed.rows, []);
}

pub(crate) fn recent_events_are_in_order_of_their_times(backend: &dyn Backend) {
    let store = open(backend);
    let board = Topic::Board(BoardNo(7));
    let add = |events: Vec<(Topic, i64)>| {
        let events = events.into_iter().map(|(topic, at)| (topic, event(at, 1))).collect();
        let ledger = LedgerWriteSet { events, ..LedgerWriteSet::default() };
        write(&*store, &WriteSet { ledger, ..WriteSet::default() }).unwrap();
    };
    add(vec![(contest(2), 5), (contest(1), 5), (contest(2), 3)]);
    store.checkpoint().unwrap();
    add(vec![(contest(1), 5), (board, 4)]);
    let key = |topic, number| EventKey { topic, number };
    let all = [
        (3, key(contest(2), 2)),
        (4, key(board, 1)),
        (5, key(contest(1), 1)),
        (5, key(contest(1), 2)),
        (5, key(contest(2), 1)),
    ]
    .map(|(at, key)| (Micros(at), key));
    let first = (Micros(i64::MIN), key(Topic::Board(BoardNo(0)), 0));
    let recent = |after, limit| store.ledger().recent_events(after, limit).unwrap();
    assert_eq!(recent(first, 9), all);
    assert_eq!(recent(first, 2), all[..2]);
    for (place, event) in all.iter().enumerate() {
        assert_eq!(recent(*event, 9), all[place + 1..], "{place}");
        assert_eq!(recent(*event, 1), all[place + 1..].iter().take(1).copied().collect::<Vec<_>>());
    }
    assert_eq!(recent((Micros(4), key(contest(9), 0)), 9), all[2..]);
}
