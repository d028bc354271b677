//! API keys, remembered values, and the figures of a store.

use super::*;
use std::collections::BTreeSet;
use tally_rules::ledger::limits::Spent;
use tally_rules::ledger::{Currency, MintKey};
use tally_rules::{Grant, KeyId};
use tally_store::{KeyChange, LedgerReadSet, LedgerWriteSet};

fn put(store: &dyn Store, change: KeyChange) -> Result<(), StoreError> {
    write(store, &WriteSet { keys: vec![change], ..WriteSet::default() })
}

pub(crate) fn keys_read_back_in_order_of_creation(backend: &dyn Backend) {
    let store = open(backend);
    // Neither by id nor by the clock, which may have been set back.
    let mut rows = [key_row("zz", 30), key_row("a", 30), key_row("m", 10), key_row("Zz", 10)].to_vec();
    let grants = ["admin", "reader", "server GEM=5 KRW=1000000", "money:mint audit:read KRW=1"];
    for (row, grant) in rows.iter_mut().zip(grants) {
        row.grant = Grant::parse(grant).unwrap();
    }
    rows[0].hash = [255; 32];
    rows[1].name = String::new();
    for row in &rows {
        put(&*store, KeyChange::Create(row.clone())).unwrap();
    }
    assert_eq!(store.keys().unwrap(), rows);
    drop(store);
    assert_eq!(open(backend).keys().unwrap(), rows);
}

pub(crate) fn a_revoked_key_is_gone_and_its_id_taken(backend: &dyn Backend) {
    let store = open(backend);
    for id in ["a", "b", "c"] {
        put(&*store, KeyChange::Create(key_row(id, 1))).unwrap();
    }
    put(&*store, KeyChange::Revoke("b".into(), Micros(2))).unwrap();
    assert_eq!(store.keys().unwrap(), [key_row("a", 1), key_row("c", 1)]);
    for taken in ["a", "b"] {
        let refused = put(&*store, KeyChange::Create(key_row(taken, 3)));
        assert!(matches!(refused, Err(StoreError::Row(_))), "{refused:?}");
    }
    let both = vec![KeyChange::Revoke("a".into(), Micros(4)), KeyChange::Create(key_row("d", 4))];
    write(&*store, &WriteSet { keys: both, ..WriteSet::default() }).unwrap();
    drop(store);
    assert_eq!(open(backend).keys().unwrap(), [key_row("c", 1), key_row("d", 4)]);
}

pub(crate) fn minted(key: u8, currency: &str) -> MintKey {
    MintKey { key: KeyId([key; 6]), currency: Currency::parse(currency).unwrap() }
}

pub(crate) fn what_keys_have_made_reads_back_and_is_replaced(backend: &dyn Backend) {
    let store = open(backend);
    let put = |store: &dyn Store, minted: Vec<(MintKey, Spent)>| {
        write(
            store,
            &WriteSet { ledger: LedgerWriteSet { minted, ..Default::default() }, ..WriteSet::default() },
        )
        .unwrap();
    };
    let rows = vec![
        (minted(0, "KRW"), Spent { day: 20_000, units: i64::MAX }),
        (minted(255, "GEM"), Spent { day: -1, units: 1 }),
        (minted(255, "KRW"), Spent { day: 0, units: 2 }),
    ];
    put(&*store, rows.clone());
    store.checkpoint().unwrap();
    put(&*store, vec![(rows[1].0, Spent { day: 3, units: 4 })]);
    let store = ledger::twice(backend, store, |store| {
        let keys = vec![rows[0].0, minted(1, "KRW"), rows[1].0, rows[2].0];
        let read = ledger::read(store, LedgerReadSet { minted: keys, ..LedgerReadSet::default() }).minted;
        assert_eq!(read, [Some(rows[0].1), None, Some(Spent { day: 3, units: 4 }), Some(rows[2].1)]);
    });
    drop(store);
}

/// Many that make money at once never exceed the cap, also before the first row exists.
pub(crate) fn concurrent_counts_of_a_key_add_up(backend: &dyn Backend) {
    let store = open(backend);
    let key = minted(7, "KRW");
    let add = |_| {
        let ledger = LedgerReadSet { minted: vec![key], ..LedgerReadSet::default() };
        run(&*store, &ReadSet { ledger, ..ReadSet::default() }, &mut |loaded| {
            let Spent { day, units } = loaded.ledger.minted[0].unwrap_or_default();
            let minted = vec![(key, Spent { day, units: units + 1 })];
            WriteSet { ledger: LedgerWriteSet { minted, ..Default::default() }, ..WriteSet::default() }
        })
        .unwrap();
    };
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..5).for_each(add));
        }
    });
    let ledger = LedgerReadSet { minted: vec![key], ..LedgerReadSet::default() };
    assert_eq!(ledger::read(&*store, ledger).minted, [Some(Spent { day: 0, units: 40 })]);
}

pub(crate) fn revoking_what_is_not_there_changes_nothing(backend: &dyn Backend) {
    let store = open(backend);
    assert!(!store.had_keys().unwrap());
    put(&*store, KeyChange::Create(key_row("a", 1))).unwrap();
    assert!(store.had_keys().unwrap());
    for id in ["b", "A", "a "] {
        put(&*store, KeyChange::Revoke(id.into(), Micros(2))).unwrap();
    }
    assert_eq!(store.keys().unwrap(), [key_row("a", 1)]);
    for at in [3, 4] {
        put(&*store, KeyChange::Revoke("a".into(), Micros(at))).unwrap();
        assert_eq!(store.keys().unwrap(), []);
    }
    assert!(store.had_keys().unwrap());
    drop(store);
    assert!(open(backend).had_keys().unwrap());
}

pub(crate) fn remembered_values_read_back(backend: &dyn Backend) {
    let store = open(backend);
    let values: [(&str, &[u8]); 4] = [("a", b""), ("A", &[0, 255, 0]), ("b", b"old"), ("b", b"new")];
    for (name, value) in values {
        store.set_meta(name, value).unwrap();
        assert_eq!(store.meta(name).unwrap().as_deref(), Some(value));
    }
    let long = vec![7; 4000];
    store.set_meta("long", &long).unwrap();
    drop(store);
    let store = open(backend);
    assert_eq!(store.meta("a").unwrap().as_deref(), Some(&b""[..]));
    assert_eq!(store.meta("A").unwrap().as_deref(), Some(&[0, 255, 0][..]));
    assert_eq!(store.meta("b").unwrap().as_deref(), Some(&b"new"[..]));
    assert_eq!(store.meta("long").unwrap(), Some(long));
    assert_eq!(store.meta("c").unwrap(), None);
    let refused = store.set_meta("store.next_board", b"1");
    assert!(matches!(refused, Err(StoreError::Row(_))), "{refused:?}");
}

pub(crate) fn gauges_have_different_names(backend: &dyn Backend) {
    let store = open(backend);
    let gauges = store.gauges();
    let names: BTreeSet<&str> = gauges.iter().map(|(name, _)| *name).collect();
    assert!(!names.is_empty());
    assert_eq!(names.len(), gauges.len());
    assert!(gauges.iter().all(|(_, value)| value.is_finite()), "{gauges:?}");
    // A counter only grows: a rate of another figure would be wrong.
    let counters = |store: &dyn Store| -> Vec<(&'static str, f64)> {
        store.gauges().into_iter().filter(|(name, _)| tally_store::COUNTERS.contains(name)).collect()
    };
    let before = counters(&*store);
    assert!(!before.is_empty());
    store.set_meta("a", b"new").unwrap();
    store.checkpoint().unwrap();
    let after = counters(&*store);
    let grew = |at: usize| before[at].0 == after[at].0 && after[at].1 >= before[at].1;
    assert!((0..before.len()).all(grew), "{before:?} {after:?}");
}
