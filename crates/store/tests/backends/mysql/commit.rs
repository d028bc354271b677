//! The answer to a COMMIT is lost: the transaction was done or not, and every query for it gets the same outcome.

use super::*;
use tally_store::BatchId;
use tally_store::Transactions;
use tally_testkit::wait_until;

for_both!(
    one_that_was_done_is_found_and_not_done_twice,
    one_that_was_not_done_is_done_on_a_new_connection,
    one_whose_message_is_held_is_done_on_a_new_connection,
    one_that_is_lost_again_and_again_is_away_and_not_done,
    one_that_cannot_be_resolved_now_is_resolved_later,
    one_that_was_not_done_never_will_be,
    a_plan_that_reads_nothing_is_found_as_well,
);

fn one_that_was_done_is_found_and_not_done_twice(kind: DatabaseKind) {
    let (proxy, store, _) = behind_proxy(ScratchDatabase::shared(kind));
    for round in 1..=3 {
        proxy.cut_at(COMMIT, Cut::Answer);
        let mut decided = 0;
        let done = add(&store, |times| decided = times).unwrap();
        assert!(!proxy.is_armed());
        assert_eq!((count(&store), decided), (round, 1));
        assert!(done.version > 0);
    }
}

fn one_that_was_not_done_is_done_on_a_new_connection(kind: DatabaseKind) {
    let (proxy, store, _) = behind_proxy(ScratchDatabase::shared(kind));
    for round in 1..=3 {
        proxy.cut_at(COMMIT, Cut::Before);
        let mut decided = 0;
        add(&store, |times| decided = times).unwrap();
        assert_eq!((count(&store), decided), (round, 2));
    }
}

fn one_that_is_lost_again_and_again_is_away_and_not_done(kind: DatabaseKind) {
    let (proxy, store, _) = behind_proxy(ScratchDatabase::shared(kind));
    add(&store, |_| ()).unwrap();
    is_away(&add(&store, |_| proxy.cut_at(COMMIT, Cut::Before)));
    assert_eq!(count(&store), 1);
    add(&store, |_| ()).unwrap();
    assert_eq!(count(&store), 2);
}

/// Adds one, with the connection cut there and no new one available.
fn add_and_lose(proxy: &Proxy, store: &dyn Store, cut: Cut) -> BatchId {
    let done = add(store, |_| {
        proxy.cut_at(COMMIT, cut);
        proxy.refuse();
    });
    let Err(StoreError::InDoubt { batch, .. }) = done else { panic!("{done:?}") };
    is_away(&store.resolve(&batch));
    proxy.pass();
    batch
}

fn one_that_cannot_be_resolved_now_is_resolved_later(kind: DatabaseKind) {
    let (proxy, store, _) = behind_proxy(ScratchDatabase::shared(kind));
    let first = add(&store, |_| ()).unwrap();
    let done = add_and_lose(&proxy, &store, Cut::Answer);
    let version = store.resolve(&done).unwrap().unwrap();
    assert!(version > first);
    let not_done = add_and_lose(&proxy, &store, Cut::Before);
    for _ in 0..3 {
        assert_eq!(store.resolve(&not_done).unwrap(), None);
        assert_eq!(store.resolve(&done).unwrap(), Some(version));
    }
    assert_eq!(count(&store), 2);
    assert!(add(&store, |_| ()).unwrap() > version);
}

/// The worst case: the message with the COMMIT is still on its way, and arrives after the query for its outcome.
fn one_that_was_not_done_never_will_be(kind: DatabaseKind) {
    let server = ScratchDatabase::shared(kind);
    let (proxy, store, url) = behind_proxy(server);
    let other = open(&url);
    add(&store, |_| ()).unwrap();
    let done = add(&store, |_| proxy.freeze());
    let Err(StoreError::InDoubt { batch, .. }) = done else { panic!("{done:?}") };
    assert_eq!(other.resolve(&batch).unwrap(), None);
    let name = url.rsplit('/').next().unwrap();
    let connections = format!(
        "SELECT COUNT(*) FROM information_schema.processlist WHERE db = '{name}' AND command <> 'Sleep'"
    );
    proxy.pass();
    // The server reads the message, and then that the client is gone.
    wait_until("it is gone", || proxy.connections() == 0 && server.sql(&connections) == "0");
    assert_eq!(count(&other), 1);
    assert_eq!(other.resolve(&batch).unwrap(), None);
    add(&store, |_| ()).unwrap();
    assert_eq!(count(&other), 2);
}

fn a_plan_that_reads_nothing_is_found_as_well(kind: DatabaseKind) {
    let (proxy, store, _) = behind_proxy(ScratchDatabase::shared(kind));
    for (round, cut) in [Cut::Answer, Cut::Before, Cut::Answer].into_iter().enumerate() {
        let round = round as i64;
        proxy.cut_at(COMMIT, cut);
        let done = store.run(&ReadSet::default(), &mut |_| one_more(round)).unwrap();
        assert!(!proxy.is_armed());
        assert_eq!(count(&store), round + 1);
        assert!(done.version > 1_600_000_000_000_000, "the clock of the database: {done:?}");
    }
}

/// It is not waited for as long as for a query, which is for ever here.
fn one_whose_message_is_held_is_done_on_a_new_connection(kind: DatabaseKind) {
    let (proxy, _, url) = behind_proxy(ScratchDatabase::shared(kind));
    let through =
        url.replace(&ScratchDatabase::shared(kind).address().to_string(), &proxy.address().to_string());
    let options = Options { query_timeout: Duration::from_secs(3_600), ..Options::default() };
    let store = MySqlStore::open(&through, &options).unwrap();
    let (told, done) = std::sync::mpsc::channel();
    let mut decided = 0;
    std::thread::scope(|scope| {
        let proxy = &proxy;
        proxy.cut_at(COMMIT, Cut::Held);
        // Were it waited for, it would come in the end and be done as it was decided first.
        scope.spawn(move || done.recv_timeout(GIVE_UP / 2).unwrap_or_else(|_| proxy.pass()));
        add(&store, |times| decided = times).unwrap();
        told.send(()).unwrap();
    });
    assert_eq!((count(&store), decided), (1, 2));
    // It comes, and does nothing.
    proxy.pass();
    add(&store, |_| ()).unwrap();
    assert_eq!(count(&store), 2);
}
