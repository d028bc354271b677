//! A leaderboard whose row is locked: unrelated requests go on, and the message names the lock.

use std::sync::Arc;
use std::time::Duration;
use tally_rules::definition::BoardSpec;
use tally_rules::period::{PeriodPrizes, PeriodRule};
use tally_rules::{BoardId, Micros};
use tally_service::secret::Secret;
use tally_service::{Clock, Keys, Progress, Settings, Tally, boards};
use tally_store::Store;
use tally_store::mysql::{MySqlStore, Options};
use tally_testkit::{DatabaseKind, ScratchDatabase, wait_until};

/// Longer than everything that must not wait.
const LOCK_WAIT: Duration = Duration::from_secs(15);

fn start(url: &str) -> Arc<Tally> {
    let options = Options { lock_wait: LOCK_WAIT, ..Options::default() };
    let store: Arc<dyn Store> = Arc::new(MySqlStore::open(url, &options).unwrap());
    let clock = Clock::of(|| Micros(1_700_000_000_000_000));
    let (secret, settings) = (Secret::new([1; 32]), Settings::default());
    let keys = Keys::load(Arc::clone(&store), secret.clone(), clock.clone(), &settings).unwrap();
    Tally::start(store, Arc::new(keys), &secret, clock, settings, &Progress::default()).unwrap()
}

/// The number of the transaction that waits for a lock; empty if none does.
fn waiting(server: &ScratchDatabase, database: &str) -> String {
    server.sql(&format!(
        "SELECT trx_id FROM information_schema.innodb_trx JOIN information_schema.processlist \
         ON id = trx_mysql_thread_id WHERE trx_state = 'LOCK WAIT' AND db = '{database}'"
    ))
}

/// Holds the row of a leaderboard until [`let_go`].
fn hold(server: &ScratchDatabase, database: &str, no: u32) {
    let locking = format!("START TRANSACTION; SELECT revision FROM revisions WHERE board = {no} FOR UPDATE");
    // It is killed while it sleeps.
    let _killed = server.try_sql(&format!("USE {database}; {locking}; SELECT SLEEP(600)"));
}

/// The connection of [`hold`]; empty before it holds the row.
fn holder(server: &ScratchDatabase, database: &str) -> String {
    server.sql(&format!(
        "SELECT id FROM information_schema.processlist WHERE db = '{database}' AND info LIKE 'SELECT SLEEP%'"
    ))
}

fn let_go(server: &ScratchDatabase, database: &str) {
    server.sql(&format!("KILL {}", holder(server, database)));
}

/// Waits for the answer of a query.
fn some(what: &str, mut ask: impl FnMut() -> String) -> String {
    let mut answer = String::new();
    wait_until(what, || {
        answer = ask();
        !answer.is_empty()
    });
    answer
}

#[test]
fn a_change_of_a_leaderboard_that_waits_for_a_row_delays_no_other_leaderboard() {
    let server = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let url = server.create_database();
    let database = url.rsplit('/').next().unwrap();
    let tally = &start(&url);
    let [held, old, new] = &["held", "old", "new"].map(|name| BoardId::new(name).unwrap());
    boards::put(tally, old, &BoardSpec::default(), None).unwrap();
    let no = boards::put(tally, held, &BoardSpec::default(), None).unwrap().board.no;
    let daily = PeriodRule {
        no: 0,
        name: "daily".into(),
        schedule: "0 0 * * *".into(),
        time_zone: "UTC".into(),
        keep: 1,
        grace_s: 0,
        prizes: PeriodPrizes::default(),
    };
    let spec = BoardSpec { periods: Some(vec![daily]), ..BoardSpec::default() };
    std::thread::scope(|scope| {
        scope.spawn(|| hold(server, database, no.0));
        some("the row is locked", || holder(server, database));
        let change = scope.spawn(|| boards::put(tally, held, &spec, None).map(drop));
        let first = some("the change waits for the row", || waiting(server, database));
        let has_not_waited = |what: &str| {
            if waiting(server, database) != first {
                let_go(server, database);
                panic!("{what} waited for the change of another one");
            }
        };
        boards::sorted_set(tally, old).unwrap();
        has_not_waited("finding a leaderboard");
        // As the first ZADD of a name makes it.
        boards::sorted_set(tally, new).unwrap();
        has_not_waited("making a leaderboard");
        assert!(!boards::delete(tally, old, None).unwrap());
        has_not_waited("deleting a leaderboard");
        let_go(server, database);
        change.join().unwrap().unwrap();
    });
    assert!(tally.boards.get(new).is_some() && tally.boards.get(old).is_none());
    tally.drain();
}
