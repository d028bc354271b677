//! Idempotency rows and the progress of imports.

use super::*;
use tally_rules::definition::ScoreType;
use tally_store::{ImportKey, ImportRow};

fn put(store: &dyn Store, key: &RequestKey, value: &Stored) {
    let requests = vec![(key.clone(), value.clone())];
    write(store, &WriteSet { requests, ..WriteSet::default() }).unwrap();
}

fn get(store: &dyn Store, keys: &[RequestKey]) -> Vec<Option<Stored>> {
    load(store, &ReadSet { requests: keys.to_vec(), ..ReadSet::default() }).requests
}

pub(crate) fn a_request_reads_back_with_its_outcome(backend: &dyn Backend) {
    let store = open(backend);
    let outcomes = [
        Outcome::Removed,
        Outcome::BoardPut { created: true },
        Outcome::BoardPut { created: false },
        Outcome::Submitted {
            record: record(i64::MIN),
            previous: None,
            changed: false,
            score: ScoreType::Int64,
            subscore: false,
        },
        Outcome::Submitted {
            record: record(i64::MAX),
            previous: Some(record(-5)),
            changed: true,
            score: ScoreType::Int64,
            subscore: false,
        },
    ];
    let mut keys: Vec<RequestKey> = (0..5).map(|row| request("scope", &format!("{row}"))).collect();
    keys[4] = request("ä", &"k".repeat(255));
    let values =
        outcomes.into_iter().zip(0u8..).map(|(outcome, row)| stored(row * 51, -i64::from(row), outcome));
    let requests: Vec<_> = keys.iter().cloned().zip(values).collect();
    write(&*store, &WriteSet { requests: requests.clone(), ..WriteSet::default() }).unwrap();
    drop(store);
    let found = get(&*open(backend), &keys);
    assert_eq!(found, requests.into_iter().map(|(_, value)| Some(value)).collect::<Vec<_>>());
}

pub(crate) fn a_request_is_replaced(backend: &dyn Backend) {
    let store = open(backend);
    let key = request("s", "k");
    for (print, at) in [(1, 100), (2, 300), (3, 200)] {
        let value = stored(print, at, Outcome::BoardPut { created: print == 2 });
        put(&*store, &key, &value);
        assert_eq!(get(&*store, std::slice::from_ref(&key)), [Some(value)]);
    }
    // Replaced also where the old are found: none is older than 200, and there is one to forget.
    assert_eq!(store.expire_requests(Micros(200), 9).unwrap(), 0);
    assert_eq!(store.expire_requests(Micros(201), 9).unwrap(), 1);
    assert_eq!(get(&*store, &[key]), [None]);
}

pub(crate) fn scopes_keep_keys_apart(backend: &dyn Backend) {
    let store = open(backend);
    let mut keys: Vec<_> =
        [("a", "b"), ("a", "B"), ("A", "b"), ("a", "b "), ("ab", ""), ("", "ab"), ("a", "\0")]
            .map(|(scope, key)| request(scope, key))
            .to_vec();
    keys.sort();
    for (key, print) in keys.iter().zip(1..) {
        put(&*store, key, &stored(print, 0, Outcome::Removed));
    }
    let prints: Vec<_> =
        get(&*store, &keys).into_iter().map(|found| found.unwrap().fingerprint.0[0]).collect();
    assert_eq!(prints, [1, 2, 3, 4, 5, 6, 7]);
}

pub(crate) fn expiry_takes_only_the_old_and_at_most_the_limit(backend: &dyn Backend) {
    let store = open(backend);
    // Their age and the order of their keys are independent.
    let requests: Vec<_> = (0..50_i64)
        .map(|row| (request("s", &format!("{row:02}")), stored(1, row * 7 % 50, Outcome::Removed)))
        .collect();
    let keys: Vec<_> = requests.iter().map(|(key, _)| key.clone()).collect();
    write(&*store, &WriteSet { requests: requests.clone(), ..WriteSet::default() }).unwrap();
    assert_eq!(store.expire_requests(Micros(30), 0).unwrap(), 0);
    for left in [30, 18, 6] {
        assert_eq!(store.expire_requests(Micros(30), 12).unwrap(), left.min(12));
    }
    assert_eq!(store.expire_requests(Micros(30), 12).unwrap(), 0);
    drop(store);
    let store = open(backend);
    for ((_, value), found) in requests.iter().zip(get(&*store, &keys)) {
        assert_eq!(found.is_some(), value.at >= Micros(30), "{value:?}");
    }
    assert_eq!(store.expire_requests(Micros(i64::MAX), usize::MAX).unwrap(), 20);
}

pub(crate) fn an_import_reads_back_and_moves_on(backend: &dyn Backend) {
    let store = open(backend);
    let key = |board: u32, file: u8| ImportKey { board: BoardNo(board), digest: [file; 32] };
    let row =
        |lines: u64, finished: bool| ImportRow { lines, taken: lines / 2, refused: lines / 3, finished };
    let imports =
        vec![(key(1, 0), row(10, false)), (key(1, 255), row(20, true)), (key(2, 0), row(1 << 60, false))];
    write(&*store, &WriteSet { imports: imports.clone(), ..WriteSet::default() }).unwrap();
    let moved = vec![(key(1, 0), row(11, true))];
    write(&*store, &WriteSet { imports: moved, ..WriteSet::default() }).unwrap();
    drop(store);
    let store = open(backend);
    let plan = ReadSet { imports: vec![key(1, 0), key(1, 7), key(1, 255), key(2, 0)], ..ReadSet::default() };
    let wanted = [Some(row(11, true)), None, Some(row(20, true)), Some(row(1 << 60, false))];
    assert_eq!(load(&*store, &plan).imports, wanted);
    for (key, row) in plan.imports.iter().zip(wanted) {
        assert_eq!(store.import_progress(key).unwrap(), row);
    }
}

pub(crate) fn counts_past_the_range_are_refused(backend: &dyn Backend) {
    let store = open(backend);
    let key = ImportKey { board: BoardNo(1), digest: [0; 32] };
    let imports = vec![(key.clone(), ImportRow { lines: u64::MAX, ..ImportRow::default() })];
    let changes = WriteSet { imports, ..scores(vec![(super::key(1, 0, "ann"), Some(record(1)))]) };
    let refused = write(&*store, &changes);
    assert!(matches!(refused, Err(StoreError::Row(_))), "{refused:?}");
    assert_eq!(store.import_progress(&key).unwrap(), None);
    assert_eq!(walk(&*store, BoardNo(1), Window(0), 9), []);
}
