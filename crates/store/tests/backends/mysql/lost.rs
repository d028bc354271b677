//! A database that has lost acknowledged commits: the store refuses everything, and one that is opened anew goes on.

use super::*;
use std::sync::atomic::{AtomicBool, Ordering};
use tally_store::LostCommits;
use tally_store::{Coordination, Reads, Task, Transactions};
use tally_testkit::{SetAtEnd, wait_until};

for_both!(
    a_store_refuses_a_database_that_has_lost_its_commits,
    a_server_that_writes_nothing_notices_by_its_renewals,
    servers_side_by_side_begin_a_new_generation,
    a_server_that_starts_waits_for_silent_ones,
    a_revision_that_is_gone_is_noticed,
    a_database_that_lost_everything_is_not_made_again,
    cut_connections_and_lost_answers_are_no_loss,
    several_primaries_are_refused,
);

const LEASE: Duration = Duration::from_secs(2);

fn alone() -> Options {
    Options { writer: Some("one".into()), lease: LEASE, ..impatient() }
}

fn beside() -> Options {
    Options { beside: Some("one of several".into()), lease: LEASE, ..impatient() }
}

/// After a commit that must be reported as lost.
#[track_caller]
fn is_lost(store: &MySqlStore, committed: &Committed) -> LostCommits {
    let lost = store.lost().expect("it is known");
    assert!(lost.present < committed.version && committed.version <= lost.newest, "{lost:?}");
    assert!(!store.may_answer());
    let why = add(store, |_| panic!("it decides on a history that is gone")).unwrap_err();
    assert!(matches!(&why, StoreError::Unavailable(why) if why.contains("has lost commits")), "{why}");
    is_away(&store.boards());
    is_away(&store.resolve(&committed.outbox.unwrap_or_default()));
    lost
}

fn a_store_refuses_a_database_that_has_lost_its_commits(kind: DatabaseKind) {
    let mut server = ScratchDatabase::start(kind);
    let url = server.create_database();
    for options in [alone(), impatient()] {
        let store = MySqlStore::open(&url, &options).unwrap();
        let before = count(&store);
        add(&store, |_| ()).unwrap();
        server.keep_copy();
        add(&store, |_| ()).unwrap();
        assert!(store.lost().is_none(), "a database that was killed has lost nothing");
        let last = add(&store, |_| ()).unwrap();
        server.put_copy_back();
        // Other commits, so that there are as many as before.
        let other = open(&url);
        add(&other, |_| ()).unwrap();
        add(&other, |_| ()).unwrap();
        is_away(&add(&store, |_| ()));
        let lost = is_lost(&store, &last);
        assert!(lost.seconds().is_some_and(|seconds| seconds > 0.0 && seconds < 60.0), "{lost:?}");
        // It is given back at once, and the next one to open it sees the present rows.
        store.release();
        let again = MySqlStore::open(&url, &Options { anew: Some(u64::MAX), ..options }).unwrap();
        assert_eq!(count(&again), before + 3);
        add(&again, |_| ()).unwrap();
        assert_eq!((count(&again), again.lost(), again.may_answer()), (before + 4, None, true));
    }
}

fn a_server_that_writes_nothing_notices_by_its_renewals(kind: DatabaseKind) {
    let mut server = ScratchDatabase::start(kind);
    let url = server.create_database();
    let name = url.rsplit('/').next().unwrap();
    let newest = |server: &ScratchDatabase| server.sql(&format!("SELECT MAX(version) FROM {name}.batches"));
    let renews = |server: &ScratchDatabase| {
        for _ in 0..2 {
            let before = newest(server);
            wait_until("a renewal leaves a marker", || newest(server) != before);
        }
    };
    for (options, servers) in [(alone(), 1), (beside(), 2)] {
        let all: Vec<_> = (0..servers).map(|_| MySqlStore::open(&url, &options).unwrap()).collect();
        renews(&server);
        let rows = server.sql(&format!("SELECT COUNT(*) FROM {name}.batches")).parse::<u64>().unwrap();
        assert!(rows <= 4, "they do not pile up: {rows}");
        assert!(all.iter().all(|store| store.may_answer()));
        server.keep_copy();
        (0..servers).for_each(|_| renews(&server));
        assert!(all.iter().all(|store| store.lost().is_none()));
        server.put_copy_back();
        wait_until("it is noticed", || all.iter().all(|store| store.lost().is_some()));
        assert!(all.iter().all(|store| !store.may_answer()));
        drop(all);
        drop(MySqlStore::open(&url, &Options { anew: Some(u64::MAX), ..options }).unwrap());
        server.sql(&format!("UPDATE {name}.leases SET expires_at = 0; DELETE FROM {name}.batches"));
    }
}

fn servers_side_by_side_begin_a_new_generation(kind: DatabaseKind) {
    let url = ScratchDatabase::shared(kind).create_database();
    let long = Options { lease: Duration::from_secs(3600), ..beside() };
    let [first, second] = [(); 2].map(|()| MySqlStore::open(&url, &long).unwrap());
    assert_eq!(first.generation(), second.generation());
    first.change_feed(&[]).unwrap();
    let minute = Duration::from_secs(60);
    assert_eq!(second.lease_task(Task::Load, minute), Ok(true));
    // A server that has found a loss begins a new generation, and the others read everything anew as well.
    let finds = Options { anew: Some(first.generation()), ..long.clone() };
    let anew = MySqlStore::open(&url, &finds).unwrap();
    assert!(anew.generation() > first.generation());
    is_away(&first.change_feed(&[]));
    assert!(first.lost().is_some_and(|lost| lost.by_others));
    is_away(&add(&first, |_| ()));
    // No task lease of before holds a task up: its server refuses even to give it back.
    is_away(&second.change_feed(&[]));
    is_away(&second.lease_task(Task::Load, Duration::ZERO));
    assert_eq!(anew.lease_task(Task::Load, minute), Ok(true));
    // One that finds the same loss later joins.
    let joined = MySqlStore::open(&url, &finds).unwrap();
    assert_eq!(joined.generation(), anew.generation());
    anew.change_feed(&[]).unwrap();
    assert_eq!(
        joined.lease_task(Task::Load, minute),
        Ok(false),
        "it ends none of the generation that it joins"
    );
    joined.change_feed(&[]).unwrap();
    add(&joined, |_| ()).unwrap();
}

/// The database was away for longer than the lease, and a server starts before a running one has renewed it.
fn a_server_that_starts_waits_for_silent_ones(kind: DatabaseKind) {
    let server = ScratchDatabase::shared(kind);
    let url = server.create_database();
    let name = url.rsplit('/').next().unwrap();
    let are_silent = || drop(server.sql(&format!("UPDATE {name}.leases SET expires_at = 1")));
    // The running one renews every two seconds, and the other waits for up to four.
    let of = |seconds| Options { lease: Duration::from_secs(seconds), ..beside() };
    let running = MySqlStore::open(&url, &of(10)).unwrap();
    assert_eq!(running.lease_task(Task::Load, Duration::from_secs(60)), Ok(true));
    are_silent();
    let started = MySqlStore::open(&url, &of(20)).unwrap();
    assert_eq!(started.generation(), running.generation());
    running.change_feed(&[]).unwrap();
    add(&running, |_| ()).unwrap();
    assert_eq!(started.lease_task(Task::Load, Duration::ZERO), Ok(false), "the task has its server");
    // Without a sign of them, a new generation begins.
    let generation = running.generation();
    drop((running, started));
    are_silent();
    let mut messages = Vec::new();
    let alone = MySqlStore::open_reporting(&url, &of(2), &mut |what| messages.push(what.to_owned())).unwrap();
    assert!(alone.generation() > generation);
    assert!(messages.len() == 1 && messages[0].contains("are silent"), "{messages:?}");
}

fn a_revision_that_is_gone_is_noticed(kind: DatabaseKind) {
    let server = ScratchDatabase::shared(kind);
    let url = server.create_database();
    let (store, other) = (open(&url), open(&url));
    crate::contract::create(&other, "b", &tally_rules::Definition::default()).unwrap();
    let seen = store.change_feed(&[]).unwrap().next;
    assert_eq!(store.change_feed(&seen).unwrap().next, seen);
    let name = url.rsplit('/').next().unwrap();
    server.sql(&format!("UPDATE {name}.revisions SET revision = revision - 1"));
    is_away(&store.change_feed(&seen));
    let lost = store.lost().unwrap();
    assert_eq!((lost.present, lost.newest), (seen[0].revision - 1, seen[0].revision));
}

fn a_database_that_lost_everything_is_not_made_again(kind: DatabaseKind) {
    let server = ScratchDatabase::shared(kind);
    let url = server.create_database();
    let anew = Options { anew: Some(u64::MAX), ..alone() };
    let error = MySqlStore::open(&url, &anew).map(drop).unwrap_err();
    assert!(matches!(&error, StoreError::NotOurs(why) if why.contains("is empty")), "{error}");
    let name = url.rsplit('/').next().unwrap();
    let tables = format!("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = '{name}'");
    assert_eq!(server.sql(&tables), "0");
}

/// Commits of several threads on connections that are killed all the time, with concurrent deletes, checks and lost answers. A
/// commit counts as missing only if it was acknowledged and no other commit has followed it.
fn cut_connections_and_lost_answers_are_no_loss(kind: DatabaseKind) {
    let server = ScratchDatabase::shared(kind);
    let (url, proxy) = (server.create_database(), Proxy::start(server.address()));
    let through = url.replace(&server.address().to_string(), &proxy.address().to_string());
    let store = MySqlStore::open(&through, &Options { lease: Duration::from_secs(1), ..alone() }).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let end = SetAtEnd::new(&stop);
        for thread in 0..4 {
            let (store, stop) = (&store, &stop);
            scope.spawn(move || {
                let player = format!("counter {thread}");
                while !stop.load(Ordering::SeqCst) {
                    let row = (key(1, 0, &player), Some(record(1)));
                    match store.run(&ReadSet::default(), &mut |_| scores(vec![row.clone()])) {
                        Ok(_) | Err(StoreError::Unavailable(_) | StoreError::Conflict(_)) => {}
                        Err(StoreError::InDoubt { batch, .. }) => drop(store.resolve(&batch)),
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
        for round in 0..60 {
            std::thread::sleep(Duration::from_millis(20));
            if round % 2 == 0 { proxy.cut() } else { proxy.cut_at(COMMIT, tally_testkit::Cut::Answer) }
        }
        drop(end);
    });
    assert_eq!(store.lost(), None);
    add(&store, |_| ()).unwrap();
}

fn several_primaries_are_refused(kind: DatabaseKind) {
    if kind == DatabaseKind::MariaDb10 {
        // Galera's nodes start with a library that is not installed; their status is tested without one.
        let server = ScratchDatabase::shared(kind);
        assert_eq!(server.sql("SELECT @@wsrep_on"), "0");
        return;
    }
    let server = ScratchDatabase::start(kind);
    let url = server.create_database();
    server.sql("INSTALL PLUGIN group_replication SONAME 'group_replication.so'");
    drop(open(&url));
    server.sql("SET GLOBAL group_replication_single_primary_mode = OFF");
    let error = MySqlStore::open(&url, &impatient()).map(drop).unwrap_err();
    assert!(matches!(&error, StoreError::Replication(why) if why.contains("several primaries")), "{error}");
}
