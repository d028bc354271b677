//! A leaderboard whose row is locked: unrelated requests go on, and the message names the lock.

use std::sync::Arc;
use std::time::{Duration, Instant};
use tally_rules::definition::BoardSpec;
use tally_rules::period::{PeriodPrizes, PeriodRule};
use tally_rules::{BoardId, Micros};
use tally_service::secret::Secret;
use tally_service::{Clock, Keys, Progress, Settings, Tally, boards};
use tally_store::mysql::{MySqlStore, Options};
use tally_store::{ReadSet, Store, Transactions, WriteSet};
use tally_testkit::{DatabaseKind, ScratchDatabase};

/// It happens at once or never; no measurement.
const GIVE_UP: Duration = Duration::from_secs(60);

fn start(url: &str) -> Arc<Tally> {
    let store: Arc<dyn Store> = Arc::new(MySqlStore::open(url, &Options::default()).unwrap());
    let clock = Clock::of(|| Micros(1_700_000_000_000_000));
    let (secret, settings) = (Secret::new([1; 32]), Settings::default());
    let keys = Keys::load(Arc::clone(&store), secret.clone(), clock.clone(), &settings).unwrap();
    Tally::start(store, Arc::new(keys), &secret, clock, settings, &Progress::default()).unwrap()
}

#[test]
fn a_change_of_a_leaderboard_that_waits_for_a_row_keeps_no_other_from_being_found() {
    let url = ScratchDatabase::shared(DatabaseKind::MariaDb10).create_database();
    let tally = start(&url);
    let [held, old, new] = ["held", "old", "new"].map(|name| BoardId::new(name).unwrap());
    boards::put(&tally, &old, &BoardSpec::default(), None).unwrap();
    let no = boards::put(&tally, &held, &BoardSpec::default(), None).unwrap().board.no;
    let other = MySqlStore::open(&url, &Options::default()).unwrap();
    let plan = ReadSet { boards: vec![no], exclusive: true, ..ReadSet::default() };
    std::thread::scope(|scope| {
        let mut changing = None;
        other
            .run(&plan, &mut |_| {
                let periods = vec![PeriodRule {
                    no: 0,
                    name: "daily".into(),
                    schedule: "0 0 * * *".into(),
                    time_zone: "UTC".into(),
                    keep: 1,
                    grace_s: 0,
                    prizes: PeriodPrizes::default(),
                }];
                let spec = BoardSpec { periods: Some(periods), ..BoardSpec::default() };
                let (tally, held) = (&tally, &held);
                let change = scope.spawn(move || boards::put(tally, held, &spec, None).map(drop));
                let began = Instant::now();
                while tally.lane_stats().in_flight == 0 {
                    assert!(began.elapsed() < GIVE_UP && !change.is_finished());
                    std::thread::yield_now();
                }
                let has_not_waited =
                    |what: &str| assert!(!change.is_finished(), "{what} waited for this one");
                boards::sorted_set(tally, &old).unwrap();
                has_not_waited("finding another leaderboard");
                // As the first ZADD of a name makes it.
                boards::sorted_set(tally, &new).unwrap();
                has_not_waited("making another leaderboard");
                changing = Some(change);
                WriteSet::default()
            })
            .unwrap();
        changing.unwrap().join().unwrap().unwrap();
    });
    assert!(tally.boards.get(&new).is_some());
    tally.drain();
}
