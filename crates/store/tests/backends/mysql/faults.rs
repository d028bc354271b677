//! Faults of networks and servers: each either goes well in the end or reports what happened. The store goes on by itself.

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use tally_store::{BlockKey, BoardNo, Maintenance, Reads, StoredBlock, Transactions, Window, WindowKey};
use tally_testkit::{wait_for, wait_until};

for_both!(
    a_connection_that_is_refused_is_away,
    a_connection_that_was_lost_while_idle_is_made_again,
    a_batch_that_is_cut_is_done_once_or_not_at_all,
    a_deadlock_is_a_conflict_and_nothing_is_done,
    a_lock_that_is_waited_for_too_long_is_a_conflict,
    a_transaction_that_falls_silent_lets_go_of_its_rows,
    more_connections_than_the_server_has_are_away,
    more_callers_than_connections_wait,
    a_database_that_is_read_only_is_away,
    a_killed_server_is_away_until_it_is_back,
    a_frozen_server_is_given_up_in_time,
    another_server_takes_over_at_the_same_address,
    a_batch_larger_than_a_message_is_one_transaction,
);

fn a_connection_that_is_refused_is_away(kind: DatabaseKind) {
    let (proxy, store, _) = behind_proxy(ScratchDatabase::shared(kind));
    add(&store, |_| ()).unwrap();
    proxy.refuse();
    proxy.cut();
    is_away(&add(&store, |_| ()));
    is_away(&store.boards());
    is_away(&store.expire_requests(tally_rules::Micros(0), 1));
    proxy.pass();
    add(&store, |_| ()).unwrap();
    assert_eq!((count(&store), store.boards().unwrap()), (2, vec![]));
}

fn a_connection_that_was_lost_while_idle_is_made_again(kind: DatabaseKind) {
    let (proxy, store, _) = behind_proxy(ScratchDatabase::shared(kind));
    for round in 1..=3 {
        proxy.cut();
        add(&store, |_| ()).unwrap();
        proxy.cut();
        assert_eq!(count(&store), round);
        proxy.cut();
        store.run(&ReadSet::default(), &mut |_| one_more(round - 1)).unwrap();
        assert_eq!(count(&store), round);
    }
    assert!(proxy.connections_ever() > 9);
}

fn a_batch_that_is_cut_is_done_once_or_not_at_all(kind: DatabaseKind) {
    let (proxy, store, _) = behind_proxy(ScratchDatabase::shared(kind));
    let mut done = 0;
    for at in ["START TRANSACTION", "FOR UPDATE", "INSERT INTO scores"] {
        for cut in [Cut::Before, Cut::Answer] {
            // The first time it begins again. Each time it is unavailable, unless the cut took the answer to its end along.
            proxy.cut_at(at.as_bytes(), cut);
            add(&store, |_| ()).unwrap();
            done += 1;
            assert!(!proxy.is_armed());
            assert_eq!(count(&store), done, "{at}, {cut:?}");
        }
    }
    is_away(&add(&store, |_| proxy.cut_at(b"INSERT INTO scores", Cut::Before)));
    assert_eq!(count(&store), done);
}

fn a_deadlock_is_a_conflict_and_nothing_is_done(kind: DatabaseKind) {
    let store = open(&ScratchDatabase::shared(kind).create_database());
    let all = ["a", "b"].map(|name| (key(1, 0, name), Some(record(0))));
    store.run(&ReadSet::default(), &mut |_| scores(all.to_vec())).unwrap();
    let have_read = AtomicUsize::new(0);
    // Each holds the rows that it read, and then writes those of the other.
    let cross = |reads: &str, writes: &str| {
        let mut met = false;
        store.run(&plan_of(vec![key(1, 0, reads)]), &mut |_| {
            if !std::mem::replace(&mut met, true) {
                have_read.fetch_add(1, Ordering::SeqCst);
                wait_until("both have read", || have_read.load(Ordering::SeqCst) == 2);
            }
            scores(vec![(key(1, 0, writes), Some(record(7)))])
        })
    };
    let (one, other) = std::thread::scope(|scope| {
        let one = scope.spawn(|| cross("a", "b"));
        let other = scope.spawn(|| cross("b", "a"));
        (one.join().unwrap(), other.join().unwrap())
    });
    let conflicts = [&one, &other].map(|done| matches!(done, Err(StoreError::Conflict(_))));
    assert_eq!(conflicts.iter().filter(|conflict| **conflict).count(), 1, "{one:?} {other:?}");
    let found = store.records(&[key(1, 0, "a"), key(1, 0, "b")]).unwrap();
    let written = Some(record(7));
    assert_eq!((found[1] == written, found[0] == written), (one.is_ok(), other.is_ok()));
}

fn a_lock_that_is_waited_for_too_long_is_a_conflict(kind: DatabaseKind) {
    let url = ScratchDatabase::shared(kind).create_database();
    // Its transaction is not ended before the other one has waited for it.
    let other = Options { lock_wait: impatient().lock_wait, ..patient() };
    let (store, other) = (open(&url), MySqlStore::open(&url, &other).unwrap());
    add(&store, |_| ()).unwrap();
    add(&store, |_| {
        let waited = add(&other, |_| ());
        assert!(matches!(waited, Err(StoreError::Conflict(_))), "{waited:?}");
    })
    .unwrap();
    assert_eq!(count(&other), 2);
    add(&other, |_| ()).unwrap();
    assert_eq!(count(&store), 3);
}

/// A server that is frozen between its two messages, or cut off, holds up others for seconds. It writes nothing of its old
/// decision.
fn a_transaction_that_falls_silent_lets_go_of_its_rows(kind: DatabaseKind) {
    const TRIES_MAX: usize = 30;
    let url = ScratchDatabase::shared(kind).create_database();
    let (store, other) = (open_impatient(&url), open_impatient(&url));
    add(&store, |_| ()).unwrap();
    let mut beside = other.ledger().snapshot().unwrap();
    beside.totals().unwrap();
    // Its connection is not new, so the undone transaction is decided again on another.
    let done = add(&store, |decided| {
        if decided > 1 {
            return;
        }
        let mut tries = (0..TRIES_MAX).map(|_| add(&other, |_| ()));
        let done = tries.find(|done| !matches!(done, Err(StoreError::Conflict(_))));
        assert!(matches!(done, Some(Ok(_))), "{kind:?}: {done:?} while the other is silent");
    });
    done.unwrap();
    assert_eq!(count(&other), 3);
    // A slow read is not ended, also when others end transactions that hold rows.
    beside.totals().unwrap();
    let mut snapshot = store.ledger().snapshot().unwrap();
    std::thread::sleep(Duration::from_secs(5));
    snapshot.totals().unwrap();
}

fn more_connections_than_the_server_has_are_away(kind: DatabaseKind) {
    let server = ScratchDatabase::start_with(kind, &["--max-connections=4"]);
    let url = server.create_database();
    let mut stores = Vec::new();
    let refused = loop {
        match MySqlStore::open(&url, &impatient()) {
            Ok(store) => stores.push(store),
            Err(error) => break error,
        }
        assert!(stores.len() < 20, "more than any server allows with these settings");
    };
    assert!(matches!(&refused, StoreError::Unavailable(why) if why.contains("1040")), "{refused:?}");
    // Those that are open go on.
    add(&stores[0], |_| ()).unwrap();
    stores.truncate(1);
    let began = std::time::Instant::now();
    let again = loop {
        match MySqlStore::open(&url, &impatient()) {
            Ok(store) => break store,
            // The server has not noticed yet that they are closed.
            Err(StoreError::Unavailable(_)) if began.elapsed() < GIVE_UP => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    };
    add(&again, |_| ()).unwrap();
    assert_eq!(count(&stores[0]), 2);
}

fn more_callers_than_connections_wait(kind: DatabaseKind) {
    let url = ScratchDatabase::shared(kind).create_database();
    let store = MySqlStore::open(&url, &Options { pool_max: 2, ..impatient() }).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..10 {
                    run(&store, &counter(), &mut |loaded| {
                        one_more(loaded.scores[0].map_or(0, |old| old.score))
                    })
                    .unwrap();
                }
            });
        }
    });
    assert_eq!(count(&store), 80);
    let gauges: std::collections::BTreeMap<_, _> = store.gauges().into_iter().collect();
    assert!(gauges["connections"] <= 2.0 && gauges["connection_waits"] > 0.0, "{gauges:?}");
    assert_eq!((gauges["connections_used"], gauges["commits_lost"]), (0.0, 0.0));
    // A request that holds the only connections and never ends.
    let alone = MySqlStore::open(&url, &Options { pool_max: 1, ..impatient() }).unwrap();
    add(&alone, |_| is_away(&alone.boards())).unwrap();
    assert_eq!(alone.boards().unwrap(), []);
}

fn a_database_that_is_read_only_is_away(kind: DatabaseKind) {
    let server = ScratchDatabase::start(kind);
    let url = server.create_database();
    let name = url.rsplit('/').next().unwrap();
    // An account that may administer a server may write to it all the same.
    server.sql(&format!(
        "CREATE USER player@'127.0.0.1' IDENTIFIED BY 'secret'; GRANT ALL ON {name}.* TO player@'127.0.0.1'"
    ));
    let store = open(&url.replace("root@", "player:secret@"));
    add(&store, |_| ()).unwrap();
    server.sql("SET GLOBAL read_only = 1");
    is_away(&add(&store, |_| ()));
    is_away(&store.set_meta("a", b"b"));
    assert_eq!(count(&store), 1);
    server.sql("SET GLOBAL read_only = 0");
    add(&store, |_| ()).unwrap();
    assert_eq!(count(&store), 2);
}

fn a_killed_server_is_away_until_it_is_back(kind: DatabaseKind) {
    let mut server = ScratchDatabase::start(kind);
    let store = open(&server.create_database());
    add(&store, |_| ()).unwrap();
    server.kill();
    is_away(&add(&store, |_| ()));
    is_away(&store.records(&counter().scores));
    server.restart();
    assert_eq!(count(&store), 1);
    add(&store, |_| ()).unwrap();
    server.kill();
    server.restart();
    // There was no query meanwhile: the first one finds its connection gone and makes another.
    add(&store, |_| ()).unwrap();
    assert_eq!(count(&store), 3);
}

fn a_frozen_server_is_given_up_in_time(kind: DatabaseKind) {
    let server = ScratchDatabase::start(kind);
    let store = open_impatient(&server.create_database());
    add(&store, |_| ()).unwrap();
    server.freeze();
    is_away(&add(&store, |_| ()));
    is_away(&store.boards());
    server.thaw();
    let done = add(&store, |times| {
        if times == 1 {
            server.freeze();
        }
    });
    let Err(StoreError::InDoubt { batch, .. }) = done else { panic!("{done:?}") };
    server.thaw();
    // It may have been done, after all; the reported outcome is the present state.
    let was_done = wait_for("the outcome is known", || match store.resolve(&batch) {
        Ok(done) => Some(done.is_some()),
        Err(StoreError::Unavailable(_) | StoreError::Conflict(_)) => None,
        Err(error) => panic!("{error}"),
    });
    assert_eq!(count(&store), 1 + i64::from(was_done));
    add(&store, |_| ()).unwrap();
    assert_eq!(count(&store), 2 + i64::from(was_done));
}

fn another_server_takes_over_at_the_same_address(kind: DatabaseKind) {
    let (one, other) = (ScratchDatabase::shared(kind), ScratchDatabase::start(kind));
    let (proxy, store, url) = behind_proxy(one);
    add(&store, |_| ()).unwrap();
    let name = url.rsplit('/').next().unwrap();
    other.sql(&format!("CREATE DATABASE {name}"));
    let there = open(&other.url(name));
    store.run(&ReadSet::default(), &mut |_| one_more(40)).unwrap();
    there.run(&ReadSet::default(), &mut |_| one_more(40)).unwrap();
    // It has everything that the first one acknowledged, as a synchronous replica has.
    let markers = format!("SELECT HEX(link), sequence, version, fence FROM {name}.batches");
    for marker in one.sql(&markers).lines() {
        let (link, rest) = marker.split_once('\t').unwrap();
        let values = format!("(UNHEX('{link}'), {})", rest.replace('\t', ", "));
        other.sql(&format!("INSERT INTO {name}.batches (link, sequence, version, fence) VALUES {values}"));
    }
    proxy.retarget(other.address());
    proxy.cut();
    add(&store, |_| ()).unwrap();
    assert_eq!((count(&there), count(&open(&url))), (42, 41));
}

fn a_batch_larger_than_a_message_is_one_transaction(kind: DatabaseKind) {
    let server = ScratchDatabase::start_with(kind, &["--max-allowed-packet=128K"]);
    let (proxy, store, _) = behind_proxy(&server);
    let names = (0..2000).map(|number| key(1, 0, &format!("{number:04}-{}", "x".repeat(60))));
    let plan = plan_of(names.collect());
    let all = |score| scores(plan.scores.iter().map(|key| (key.clone(), Some(record(score)))).collect());
    for score in 1..=2 {
        store.run(&plan, &mut |_| all(score)).unwrap();
        assert!(store.records(&plan.scores).unwrap().iter().all(|found| *found == Some(record(score))));
    }
    // Cut in the last of its messages, each time: nothing remains of the others.
    is_away(&store.run(&plan, &mut |_| {
        proxy.cut_at(COMMIT, Cut::Before);
        all(3)
    }));
    assert!(store.records(&plan.scores).unwrap().iter().all(|found| *found == Some(record(2))));
    // A row that is too large by itself is refused.
    let window = WindowKey { board: BoardNo(1), window: Window(5) };
    let large = StoredBlock { distinct_better: 0, entries: vec![7; 200 << 10] };
    let blocks = vec![(BlockKey { window, version: 1, block: 0 }, large)];
    let changes = WriteSet { blocks, ..WriteSet::default() };
    let refused = store.run(&ReadSet::default(), &mut |_| changes.clone());
    assert!(matches!(refused, Err(StoreError::Row(_))), "{refused:?}");
    add(&store, |_| ()).unwrap();
}
