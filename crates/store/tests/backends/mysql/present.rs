//! Several servers on one database: the basis of a decision still holds when it is written, and versions only grow.

use super::*;
use crate::contract::{request, stored, write};
use tally_rules::outcome::Outcome;
use tally_store::{Maintenance, Reads, Transactions};

for_both!(
    what_was_absent_and_came_meanwhile_is_a_conflict,
    many_new_players_at_once_are_no_deadlock,
    versions_grow_with_writes_of_every_server,
    a_removed_record_keeps_its_version_for_an_hour,
    traces_of_connections_are_forgotten_when_they_are_old,
    the_requests_of_a_batch_and_their_effects_are_of_one_moment,
);

fn what_was_absent_and_came_meanwhile_is_a_conflict(kind: DatabaseKind) {
    let url = ScratchDatabase::shared(kind).create_database();
    let (store, other) = (open(&url), open(&url));
    let (new, else_) = (key(1, 0, "new"), key(1, 0, "somebody else"));
    let plan = ReadSet { requests: vec![request("s", "k")], ..plan_of(vec![new.clone(), else_.clone()]) };
    // Its writes: the key itself, another key, a removal of the key, nothing.
    let writes = [
        scores(vec![(new.clone(), Some(record(1)))]),
        scores(vec![(else_.clone(), Some(record(1)))]),
        scores(vec![(new.clone(), None)]),
        WriteSet::default(),
    ];
    for (round, changes) in writes.into_iter().enumerate() {
        let done = store.run(&plan, &mut |loaded| {
            assert_eq!((loaded.scores[0], &loaded.requests[0]), (None, &None));
            write(&other, &scores(vec![(new.clone(), Some(record(7)))])).unwrap();
            changes.clone()
        });
        assert!(matches!(done, Err(StoreError::Conflict(_))), "round {round}: {done:?}");
        let found = store.records(&plan.scores).unwrap();
        assert_eq!(found, [Some(record(7)), None], "round {round}");
        // Decided again it sees the new rows; and a removed row is locked like any other.
        store
            .run(&plan, &mut |loaded| {
                assert_eq!(loaded.scores[0], Some(record(7)));
                scores(vec![(new.clone(), None)])
            })
            .unwrap();
        let name = url.rsplit('/').next().unwrap();
        ScratchDatabase::shared(kind).sql(&format!("DELETE FROM {name}.scores"));
    }
    // The same for requests: it keeps a retry on two servers from having two effects.
    let done = store.run(&plan, &mut |_| {
        let requests = vec![(request("s", "k"), stored(1, 1, Outcome::Removed))];
        let changes = WriteSet { requests, ..WriteSet::default() };
        write(&other, &changes).unwrap();
        changes
    });
    assert!(matches!(done, Err(StoreError::Conflict(_))), "{done:?}");
}

/// Batches of new players fill the same gaps of the key from all sides.
fn many_new_players_at_once_are_no_deadlock(kind: DatabaseKind) {
    let url = ScratchDatabase::shared(kind).create_database();
    let (store, other) = (open(&url), open(&url));
    std::thread::scope(|scope| {
        for thread in 0..4_usize {
            let store = if thread % 2 == 0 { &store } else { &other };
            scope.spawn(move || {
                for round in 0..20 {
                    let names = (0..30).map(|number| format!("{:03}", (number * 37 + round * 11) % 1000));
                    let keys = names.map(|name| key(1, 0, &format!("{name} {thread}"))).collect();
                    let plan = plan_of(keys);
                    // Not tried again: there is no conflict.
                    store
                        .run(&plan, &mut |_| {
                            scores(plan.scores.iter().map(|key| (key.clone(), Some(record(1)))).collect())
                        })
                        .unwrap();
                }
            });
        }
    });
}

fn versions_grow_with_writes_of_every_server(kind: DatabaseKind) {
    let server = ScratchDatabase::shared(kind);
    let url = server.create_database();
    let name = url.rsplit('/').next().unwrap();
    let stores = [open(&url), open(&url)];
    let mut last = Committed::default();
    for round in 0..40 {
        let done = add(&stores[round % 2], |_| ()).unwrap();
        assert!(done > last, "{done:?} after {last:?}");
        last = done;
        if round == 20 {
            // Written by a server whose clock was ahead by a day.
            let ahead = last.version + 24 * 3600 * 1_000_000;
            server.sql(&format!("UPDATE {name}.scores SET version = {ahead}"));
            last.version = ahead;
        }
    }
    // Without reading: the row's version grows all the same.
    let stored = || server.sql(&format!("SELECT version FROM {name}.scores")).parse::<u64>().unwrap();
    assert_eq!(stored(), last.version);
    stores[0].run(&ReadSet::default(), &mut |_| one_more(7)).unwrap();
    assert_eq!(stored(), last.version + 1);
}

fn a_removed_record_keeps_its_version_for_an_hour(kind: DatabaseKind) {
    let server = ScratchDatabase::shared(kind);
    let url = server.create_database();
    let name = url.rsplit('/').next().unwrap();
    let store = open(&url);
    let written = add(&store, |_| ()).unwrap();
    let remove = || scores(vec![(key(1, 0, "counter"), None)]);
    let removed = store.run(&counter(), &mut |_| remove()).unwrap();
    assert!(removed > written);
    assert_eq!(
        (count(&store), store.count_scores(counter().scores[0].board, counter().scores[0].window)),
        (0, Ok(0))
    );
    assert_eq!(store.purge_deleted(100).unwrap(), 0);
    assert_eq!(
        server.sql(&format!("SELECT version, gone FROM {name}.scores")),
        format!("{}\t1", removed.version)
    );
    let again = add(&store, |_| ()).unwrap();
    assert!(again > removed);
    store.run(&counter(), &mut |_| remove()).unwrap();
    // The first removal was long ago: the row is not that of then.
    server.sql(&format!("UPDATE {name}.removed SET version = 5 WHERE version = {}", removed.version));
    assert_eq!(store.purge_deleted(100).unwrap(), 1);
    assert_eq!(server.sql(&format!("SELECT COUNT(*) FROM {name}.scores")), "1");
    server.sql(&format!("UPDATE {name}.removed SET version = 5; UPDATE {name}.scores SET version = 5"));
    assert_eq!(store.purge_deleted(100).unwrap(), 1);
    assert_eq!(store.purge_deleted(100).unwrap(), 0);
    let left = format!("SELECT (SELECT COUNT(*) FROM {name}.scores) + (SELECT COUNT(*) FROM {name}.removed)");
    assert_eq!(server.sql(&left), "0");
}

fn traces_of_connections_are_forgotten_when_they_are_old(kind: DatabaseKind) {
    let server = ScratchDatabase::shared(kind);
    let url = server.create_database();
    let name = url.rsplit('/').next().unwrap();
    let store = open(&url);
    let traces = || server.sql(&format!("SELECT COUNT(*) FROM {name}.batches"));
    for round in 1..=3 {
        let other = open(&url);
        for _ in 0..5 {
            add(&other, |_| ()).unwrap();
        }
        assert_eq!(traces(), format!("{}", 2 * round), "the last one of each connection, and the one before");
    }
    assert_eq!(store.purge_deleted(100).unwrap(), 0);
    assert_eq!(traces(), "6");
    server.sql(&format!("UPDATE {name}.batches SET version = 5 ORDER BY link LIMIT 2"));
    store.purge_deleted(100).unwrap();
    assert_eq!(traces(), "4");
}

/// Readers that change nothing never see an effect without its request, nor the other way round.
fn the_requests_of_a_batch_and_their_effects_are_of_one_moment(kind: DatabaseKind) {
    const ROUNDS: i64 = 60;
    let url = ScratchDatabase::shared(kind).create_database();
    let (store, other) = (open(&url), open(&url));
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            for round in 0..ROUNDS {
                let requests = vec![(request("s", &format!("{round}")), stored(1, 1, Outcome::Removed))];
                let rows = vec![(key(1, 0, &format!("{round}")), Some(record(1)))];
                write(&store, &WriteSet { requests, ..scores(rows) }).unwrap();
            }
        });
        for round in 0..ROUNDS {
            let name = format!("{round}");
            let plan = ReadSet { requests: vec![request("s", &name)], ..plan_of(vec![key(1, 0, &name)]) };
            loop {
                let is_last = writing.is_finished();
                let loaded = crate::contract::load(&other, &plan);
                assert_eq!(loaded.requests[0].is_some(), loaded.scores[0].is_some(), "round {round}");
                if loaded.scores[0].is_some() {
                    break;
                }
                assert!(!is_last, "round {round} was not written");
            }
        }
    });
}
