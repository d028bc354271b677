//! One server writes: the second gets an error, a silent one is fenced, and a database that was unavailable takes nothing.

use super::*;
use std::sync::atomic::{AtomicBool, Ordering};
use tally_store::{Coordination, Maintenance, Transactions};
use tally_testkit::SetAtEnd;

for_both!(
    a_second_server_learns_the_holder,
    one_that_was_given_back_can_be_had_at_once,
    one_that_is_silent_is_waited_for,
    one_that_was_fenced_neither_writes_nor_answers,
    nothing_is_committed_while_it_is_being_taken,
    no_server_takes_it_from_a_commit_that_waits,
    a_database_that_was_away_takes_nothing,
    shared_stores_need_none,
    side_by_side_and_alone_exclude_each_other,
    servers_beside_fence_one_that_wrote_alone,
    a_start_that_is_frozen_holds_up_neither_a_start_nor_a_renewal,
    a_clock_that_is_far_from_the_database_is_refused,
    a_clock_that_parts_from_the_database_is_told,
    a_renewal_whose_answer_is_lost_counts,
);

const LEASE: Duration = Duration::from_secs(3);

fn writer(name: &str) -> Options {
    Options { writer: Some(name.into()), lease: LEASE, ..impatient() }
}

fn open_as(url: &str, name: &str) -> Result<MySqlStore, StoreError> {
    MySqlStore::open(url, &writer(name))
}

fn is_locked<T: std::fmt::Debug>(done: &Result<T, StoreError>) {
    assert!(matches!(done, Err(StoreError::Locked(_))), "{done:?}");
}

fn name(url: &str) -> &str {
    url.rsplit('/').next().unwrap()
}

/// Acts as a server that takes the lease after the other was silent, whatever the time.
fn steal(server: &ScratchDatabase, url: &str) {
    let set = "fence = fence + 1, holder = 'the thief', expires_at = expires_at + 60000000";
    server.sql(&format!("UPDATE {}.leases SET {set}", name(url)));
}

#[track_caller]
fn wait_until(what: impl Fn() -> bool) {
    tally_testkit::wait_until("what the lease waits for", what);
}

fn a_second_server_learns_the_holder(kind: DatabaseKind) {
    let url = ScratchDatabase::shared(kind).create_database();
    let first = open_as(&url, "the first").unwrap();
    first.announce("127.0.0.1:1234").unwrap();
    let mut messages = Vec::new();
    let second =
        MySqlStore::open_reporting(&url, &writer("the second"), &mut |what| messages.push(what.to_owned()));
    let Err(StoreError::Locked(who)) = second.map(drop) else { panic!("it is not refused") };
    let address = url.split("root@").nth(1).unwrap();
    assert_eq!(who, format!("`mysql://{address}` is held by the first, which answers at 127.0.0.1:1234"));
    assert!(
        messages.len() == 1 && messages[0].contains("the first") && messages[0].contains("3s"),
        "{messages:?}"
    );
    add(&first, |_| ()).unwrap();
    assert!(first.may_answer() && first.taken_by().is_none());
}

fn one_that_was_given_back_can_be_had_at_once(kind: DatabaseKind) {
    let url = ScratchDatabase::shared(kind).create_database();
    for round in 1..=3 {
        let mut messages = 0;
        let options = Options { lease: Duration::from_secs(3600), ..writer("one") };
        let store = MySqlStore::open_reporting(&url, &options, &mut |_| messages += 1).unwrap();
        add(&store, |_| ()).unwrap();
        assert_eq!((count(&store), messages), (round, 0));
        store.release();
        is_locked(&add(&store, |_| ()));
        assert!(!store.may_answer());
    }
}

fn one_that_is_silent_is_waited_for(kind: DatabaseKind) {
    let (proxy, first, url) = {
        let server = ScratchDatabase::shared(kind);
        let proxy = Proxy::start(server.address());
        let url = server.create_database();
        let through = url.replace(&server.address().to_string(), &proxy.address().to_string());
        (proxy, open_as(&through, "the first").unwrap(), url)
    };
    add(&first, |_| ()).unwrap();
    // It runs and cannot say so.
    proxy.refuse();
    proxy.cut();
    let mut messages = 0;
    let second = MySqlStore::open_reporting(&url, &writer("the second"), &mut |_| messages += 1).unwrap();
    assert_eq!(messages, 1);
    assert!(!first.may_answer(), "its time was over before the other's began");
    add(&second, |_| ()).unwrap();
    is_away(&add(&first, |_| ()));
    // The time at which it learns this does not matter either.
    proxy.pass();
    is_locked(&add(&first, |_| ()));
    wait_until(|| first.taken_by().is_some());
    assert_eq!(first.taken_by().unwrap(), "the second");
    let Err(StoreError::Locked(why)) = add(&first, |_| ()) else { panic!("it is not refused") };
    assert!(why.ends_with("is held by the second"), "{why}");
    assert!(!first.may_answer() && second.may_answer());
    // Giving back a lease that it does not have changes no other.
    drop(first);
    add(&second, |_| ()).unwrap();
    assert_eq!(count(&second), 3);
}

fn one_that_was_fenced_neither_writes_nor_answers(kind: DatabaseKind) {
    let server = ScratchDatabase::shared(kind);
    for reads in [true, false] {
        for writes in [true, false] {
            let url = server.create_database();
            let options = Options { lease: Duration::from_secs(3600), ..writer("the first") };
            let store = MySqlStore::open(&url, &options).unwrap();
            let plan = if reads { counter() } else { ReadSet::default() };
            let run = || store.run(&plan, &mut |_| if writes { one_more(6) } else { WriteSet::default() });
            run().unwrap();
            steal(server, &url);
            let written = count(&store);
            if reads || writes {
                // Only the database can have reported it.
                is_locked(&run());
            } else {
                // It sends no query, so only time could show it.
                run().unwrap();
                is_locked(&add(&store, |_| ()));
            }
            wait_until(|| store.taken_by().is_some());
            assert!(!store.may_answer());
            is_locked(&run());
            assert_eq!((count(&store), store.taken_by().unwrap()), (written, "the thief".to_owned()));
        }
    }
}

/// The next holder of the lease has its row before the first one's transaction reads: that one waits, and then sees another.
fn nothing_is_committed_while_it_is_being_taken(kind: DatabaseKind) {
    let server = ScratchDatabase::shared(kind);
    let url = server.create_database();
    // It waits for longer than the lock is held.
    let options = Options {
        lease: Duration::from_secs(3600),
        lock_wait: GIVE_UP / 2,
        query_timeout: GIVE_UP,
        ..writer("one")
    };
    let store = MySqlStore::open(&url, &options).unwrap();
    add(&store, |_| ()).unwrap();
    let taken = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let take = "UPDATE leases SET fence = fence + 1; SELECT SLEEP(5)";
            server.sql(&format!("USE {}; START TRANSACTION; {take}; COMMIT", name(&url)));
            taken.store(true, Ordering::SeqCst);
        });
        let sleeps =
            "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP%' AND db = ";
        wait_until(|| server.sql(&format!("{sleeps} '{}'", name(&url))) != "0");
        is_locked(&add(&store, |_| assert!(!taken.load(Ordering::SeqCst), "the test is too late")));
    });
    assert_eq!(count(&store), 1);
}

/// The other order: a transaction that has read is committed before the lease can be taken.
fn no_server_takes_it_from_a_commit_that_waits(kind: DatabaseKind) {
    let server = ScratchDatabase::shared(kind);
    let url = server.create_database();
    let options = Options { lease: Duration::from_secs(3600), ..writer("one") };
    let store = MySqlStore::open(&url, &options).unwrap();
    // As a transaction does that has run its last insert.
    let look = "SELECT (SELECT 0 FROM leases WHERE name = 'writer' AND fence = 1 LOCK IN SHARE MODE)";
    let take = "SET innodb_lock_wait_timeout = 1; UPDATE leases SET fence = fence + 1";
    std::thread::scope(|scope| {
        scope.spawn(|| {
            server.sql(&format!("USE {}; START TRANSACTION; {look}; SELECT SLEEP(8); COMMIT", name(&url)));
        });
        let sleeps =
            "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP%' AND db = ";
        wait_until(|| server.sql(&format!("{sleeps} '{}'", name(&url))) != "0");
        // Transactions that only read are not in its way.
        add(&store, |_| ()).unwrap();
        let refused = server.try_sql(&format!("USE {}; {take}", name(&url))).unwrap_err();
        assert!(refused.contains("1205"), "{refused}");
    });
}

fn a_database_that_was_away_takes_nothing(kind: DatabaseKind) {
    let server = ScratchDatabase::shared(kind);
    let proxy = Proxy::start(server.address());
    let url = server.create_database();
    let through = url.replace(&server.address().to_string(), &proxy.address().to_string());
    let store = open_as(&through, "the first").unwrap();
    for (round, freezes) in [true, false].into_iter().enumerate() {
        add(&store, |_| ()).unwrap();
        if freezes {
            proxy.freeze();
        } else {
            proxy.refuse();
            proxy.cut();
        }
        wait_until(|| !store.may_answer());
        assert_eq!(store.taken_by(), None);
        proxy.pass();
        wait_until(|| store.may_answer());
        assert_eq!((count(&store), store.taken_by()), (round as i64 + 1, None));
    }
    add(&store, |_| ()).unwrap();
}

fn shared_stores_need_none(kind: DatabaseKind) {
    let url = ScratchDatabase::shared(kind).create_database();
    let stores = [open(&url), open(&url)];
    for store in &stores {
        add(store, |_| ()).unwrap();
        assert!(store.may_answer() && store.taken_by().is_none());
    }
    assert_eq!(count(&stores[0]), 2);
}

fn side_by_side_and_alone_exclude_each_other(kind: DatabaseKind) {
    let server = ScratchDatabase::shared(kind);
    let url = server.create_database();
    let beside = |name: &str| {
        let options = Options { beside: Some(name.into()), lease: LEASE, ..impatient() };
        MySqlStore::open(&url, &options)
    };
    let (first, second) = (beside("the first").unwrap(), beside("the second").unwrap());
    for round in 1..=3 {
        let store = if round == 2 { &second } else { &first };
        run(store, &counter(), &mut |loaded| one_more(loaded.scores[0].map_or(0, |old| old.score))).unwrap();
    }
    // No server writes alone while one of them runs.
    drop(first);
    is_locked(&open_as(&url, "alone").map(drop));
    assert!(second.may_answer());
    // One that was frozen for longer than that is fenced.
    steal(server, &url);
    is_locked(&add(&second, |_| ()));
    wait_until(|| second.taken_by().is_some());
    assert!(!second.may_answer());
    drop(second);
    // No server joins while one writes alone.
    server.sql(&format!("UPDATE {}.leases SET expires_at = 0", name(&url)));
    let alone = open_as(&url, "alone").unwrap();
    is_locked(&beside("the third").map(drop));
    add(&alone, |_| ()).unwrap();
    alone.release();
    assert_eq!(count(&beside("the third").unwrap()), 4);
}

/// It may be frozen, not ended: its old decisions are not written after.
fn servers_beside_fence_one_that_wrote_alone(kind: DatabaseKind) {
    let server = ScratchDatabase::shared(kind);
    let url = server.create_database();
    let beside = |name: &str| {
        let options = Options { beside: Some(name.into()), lease: LEASE, ..impatient() };
        MySqlStore::open(&url, &options).unwrap()
    };
    let options = Options { lease: Duration::from_secs(3600), ..writer("alone") };
    let alone = MySqlStore::open(&url, &options).unwrap();
    add(&alone, |_| ()).unwrap();
    let is_silent = || drop(server.sql(&format!("UPDATE {}.leases SET expires_at = 0", name(&url))));
    is_silent();
    let first = beside("the first");
    add(&first, |_| ()).unwrap();
    is_locked(&add(&alone, |_| ()));
    wait_until(|| alone.taken_by().is_some());
    assert_eq!(alone.taken_by().unwrap(), "servers that write side by side");
    // They do not fence each other, even when all were silent.
    let second = beside("the second");
    is_silent();
    let third = beside("the third");
    for store in [&first, &second, &third] {
        add(store, |_| ()).unwrap();
    }
    assert_eq!(count(&third), 5);
}

/// It is frozen between its two messages, with both leases locked.
fn a_start_that_is_frozen_holds_up_neither_a_start_nor_a_renewal(kind: DatabaseKind) {
    let server = ScratchDatabase::shared(kind);
    let (proxy, url) = (Proxy::start(server.address()), server.create_database());
    let through = url.replace(&server.address().to_string(), &proxy.address().to_string());
    let beside = Options { beside: Some("beside".into()), lease: Duration::from_secs(10), ..impatient() };
    let frozen = Options { query_timeout: Duration::from_secs(60), ..beside.clone() };
    let newest = || server.sql(&format!("SELECT MAX(version) FROM {}.batches", name(&url)));
    let (through, frozen) = (&through, &frozen);
    std::thread::scope(|scope| {
        // From within the head of the message on: the server does not know that one has begun.
        let freeze = |begin: &[u8]| {
            proxy.cut_at(&[b"\0\x03", begin].concat(), Cut::Held);
            let start = scope.spawn(move || MySqlStore::open(through, frozen).map(drop));
            wait_until(|| !proxy.is_armed());
            start
        };
        let first = freeze(b"UPDATE leases SET expires_at = 0, holder = ");
        let running = MySqlStore::open(&url, &beside).unwrap();
        let second = freeze(b"UPDATE leases SET holder = ");
        // It waits for the locked row, so no renewal is under way that has it.
        let before = newest();
        wait_until(|| newest() != before || !running.may_answer());
        assert!(running.may_answer(), "the lease is renewed in time");
        proxy.pass();
        // They learn that they were cut off.
        [first, second].into_iter().for_each(|start| drop(start.join().unwrap()));
    });
}

/// A server that sets another time for its connections, and a URL of an account that this applies to.
fn in_another_time(kind: DatabaseKind, set: &str) -> (ScratchDatabase, String) {
    let init = format!("--init-connect=SET timestamp = UNIX_TIMESTAMP() + {set}");
    let server = ScratchDatabase::start_with(kind, &["--sysdate-is-now", &init]);
    let url = server.create_database();
    let account = "player@'127.0.0.1'";
    server.sql(&format!(
        "CREATE USER {account} IDENTIFIED BY 'secret'; GRANT ALL ON {}.* TO {account}",
        name(&url)
    ));
    let url = url.replace("root@", "player:secret@");
    (server, url)
}

fn a_clock_that_is_far_from_the_database_is_refused(kind: DatabaseKind) {
    for (set, word) in [("-3600", "s ahead of"), ("3600", "s behind")] {
        let (_server, url) = in_another_time(kind, set);
        for options in [writer("alone"), Options { beside: Some("beside".into()), ..impatient() }] {
            let refused = MySqlStore::open(&url, &options).map(drop);
            let Err(StoreError::Skewed(why)) = &refused else { panic!("{refused:?}") };
            assert!(why.contains(word) && why.contains("NTP"), "{why}");
        }
        // One that only reads decides nothing by its clock.
        open(&url);
    }
}

/// The time of a connection stands still there.
fn a_clock_that_parts_from_the_database_is_told(kind: DatabaseKind) {
    let (_server, url) = in_another_time(kind, "0");
    for options in [writer("alone"), Options { beside: Some("beside".into()), lease: LEASE, ..impatient() }] {
        let store = MySqlStore::open(&url, &options).unwrap();
        wait_until(|| store.clock_ahead() > 2_000_000);
        assert!(store.gauges().iter().any(|(name, value)| *name == "clock_ahead_seconds" && *value > 2.0));
        store.release();
        drop(store);
    }
}

/// The answer of every renewal is lost. They count as soon as the server has found their markers.
fn a_renewal_whose_answer_is_lost_counts(kind: DatabaseKind) {
    let server = ScratchDatabase::shared(kind);
    let (proxy, url) = (Proxy::start(server.address()), server.create_database());
    let through = url.replace(&server.address().to_string(), &proxy.address().to_string());
    // Each renewal needs a new connection, and a busy machine some time for it.
    let store = MySqlStore::open(&through, &Options { lease: 3 * LEASE, ..writer("one") }).unwrap();
    let left = || store.gauges().into_iter().find(|(name, _)| *name == "lease_seconds").unwrap().1;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let end = SetAtEnd::new(&is_over);
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                if !proxy.is_armed() {
                    proxy.cut_at(COMMIT, Cut::Answer);
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let (mut last, mut renewals) = (left(), 0);
        while renewals < 5 && store.may_answer() {
            let now = left();
            renewals += usize::from(now > last);
            last = now;
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(end);
        assert_eq!(renewals, 5, "the lease ended");
    });
}
