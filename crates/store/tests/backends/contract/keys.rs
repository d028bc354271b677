//! API keys, remembered values, and the figures of a store.

use super::*;
use std::collections::BTreeSet;
use tally_store::KeyChange;

fn put(store: &dyn Store, change: KeyChange) -> Result<(), StoreError> {
    write(store, &WriteSet { keys: vec![change], ..WriteSet::default() })
}

pub(crate) fn keys_read_back_in_order_of_creation(backend: &dyn Backend) {
    let store = open(backend);
    // Neither by id nor by the clock, which may have been set back.
    let mut rows = [key_row("zz", 30), key_row("a", 30), key_row("m", 10), key_row("Zz", 10)].to_vec();
    for (row, role) in rows.iter_mut().zip(Role::ALL) {
        row.role = *role;
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
}
