//! Corrupt rows, planted by SQL: a request that needs one fails alone, the start leaves it out, and unusable data is reported.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tally_rules::contest::{
    Application, Contest, ContestId, ContestPlayer, ContestRecord, ContestState, Payout, Series,
    SeriesRecord, Status,
};
use tally_rules::definition::{BoardSpec, Update};
use tally_rules::event::{ContestChanged, Event, EventKind};
use tally_rules::ledger::member::Login;
use tally_rules::ledger::pin::Attempts;
use tally_rules::ledger::{
    Amount, Currencies, Currency, Member, MemberId, TransferKind, TransferRequest, Uuid, WalletKey,
};
use tally_rules::role::Role;
use tally_rules::score::ScoreInput;
use tally_rules::{BoardId, Micros, Origin, PlayerId, Rejection};
use tally_service::ledger::transfers::NewTransfer;
use tally_service::ledger::{LedgerSettings, transfers};
use tally_service::members::{self, NewMember};
use tally_service::scores::remove::remove;
use tally_service::scores::submit::{NewScore, submit_batch};
use tally_service::secret::Secret;
use tally_service::{ALL_TIME, Clock, Failure, Fault, Keys, Progress, Settings, Tally, boards, damaged};
use tally_store::mysql::MySqlStore;
use tally_store::sqlite::SqliteStore;
use tally_store::{
    ContestWriteSet, EntrantKey, LedgerWriteSet, Listing, PayoutKey, ReadSet, Store, Topic, WriteSet,
};
use tally_testkit::{DatabaseKind, ScratchDatabase, wait_until};
use tokio::runtime::Runtime;

/// Where the store is.
enum Place {
    File(tempfile::TempDir),
    Database(&'static ScratchDatabase, String),
}

impl Place {
    fn all() -> [Self; 2] {
        let database = ScratchDatabase::shared(DatabaseKind::MariaDb10);
        [Self::File(tempfile::tempdir().unwrap()), Self::Database(database, database.create_database())]
    }

    fn is_file(&self) -> bool {
        matches!(self, Self::File(_))
    }

    fn open(&self) -> Arc<dyn Store> {
        match self {
            Self::File(folder) => Arc::new(
                SqliteStore::open(&folder.path().join("t.db"), &tally_store::sqlite::Options::default())
                    .unwrap(),
            ),
            Self::Database(_, url) => {
                Arc::new(MySqlStore::open(url, &tally_store::mysql::Options::default()).unwrap())
            }
        }
    }

    /// Changes rows behind the store's back, while no process has it open.
    fn sql(&self, text: &str) {
        match self {
            Self::File(folder) => {
                let file = rusqlite::Connection::open(folder.path().join("t.db")).unwrap();
                // As a damaged page does: neither checks nor types hold.
                let loose = "PRAGMA ignore_check_constraints = 1; PRAGMA writable_schema = ON; \
                     UPDATE sqlite_schema SET sql = replace(sql, 'STRICT, ', '') WHERE sql LIKE '%STRICT, %'; \
                     PRAGMA writable_schema = RESET;";
                file.execute_batch(&format!("{loose} {text}")).unwrap();
            }
            Self::Database(server, url) => {
                let name = url.rsplit('/').next().unwrap();
                server.sql(&format!(
                    "USE {name}; SET foreign_key_checks = 0, check_constraint_checks = 0; {text}"
                ));
            }
        }
    }
}

/// A service on one of these stores.
struct Served {
    tally: Arc<Tally>,
    keys: Arc<Keys>,
    runtime: Runtime,
}

impl Served {
    fn start(place: &Place) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        let now = AtomicI64::new(1_700_000_000_000_000);
        let clock = Clock::of(move || Micros(now.fetch_add(1, Ordering::SeqCst)));
        let won = Currency::parse("KRW").unwrap();
        let ledger =
            LedgerSettings { currencies: Currencies::new((won, 0), []), ..LedgerSettings::default() };
        let (secret, settings) = (Secret::new([1; 32]), Settings { ledger, ..Settings::default() });
        let store = place.open();
        let keys = Keys::load(Arc::clone(&store), secret.clone(), clock.clone(), &settings).unwrap();
        let keys = Arc::new(keys);
        let tally = Tally::start(store, Arc::clone(&keys), clock, settings, &Progress::default());
        Self { tally: tally.unwrap(), keys, runtime }
    }

    fn stop(self) {
        self.tally.drain();
        wait_until("no other has the service", || Arc::strong_count(&self.tally) == 1);
    }

    fn put(&self, name: &str) -> Result<(), Failure> {
        let (tally, id) = (Arc::clone(&self.tally), BoardId::new(name).unwrap());
        let spec = BoardSpec { update: Some(Update::Best), ..BoardSpec::default() };
        let put = move || boards::put(&tally, &id, &spec, &Origin::BACKGROUND, None).map(drop);
        self.runtime.block_on(async { tokio::task::spawn_blocking(put).await.unwrap() })
    }

    /// Scores of many players in one request: the result of each.
    fn submit(&self, board: &str, rows: &[(&str, i64)]) -> Vec<Result<i64, Failure>> {
        let new = |(name, score): &(&str, i64)| NewScore {
            board: BoardId::new(board).unwrap(),
            player: player(name),
            score: ScoreInput::Int(*score),
            subscore: None,
            at: None,
            idempotency: None,
        };
        let done =
            self.runtime.block_on(submit_batch(&self.tally, rows.iter().map(new).collect(), false)).unwrap();
        done.into_iter().map(|row| row.map(|(_, done)| done.record.score)).collect()
    }

    fn ranks(&self, board: &str) -> u64 {
        self.tally.boards.get(board).unwrap().ranking.total()
    }

    fn member(&self, name: &str) -> MemberId {
        let member = Member {
            login: Login::new(name).unwrap(),
            phone: None,
            player: player(name),
            name: name.into(),
            password: None,
            pin: None,
            attempts: Attempts::default(),
            tokens_from: Micros(0),
            closed_at: None,
        };
        let new = NewMember { member, player_is_id: true, idempotency: None };
        self.runtime.block_on(members::create(&self.tally, new, &Origin::BACKGROUND)).unwrap().id
    }

    /// Deposits to many at once: the result of each.
    fn deposit(&self, to: &[MemberId]) -> Vec<Result<(), Failure>> {
        let new = |to: &MemberId| {
            let order = TransferRequest {
                what: TransferKind::Deposit { to: *to },
                currency: Currency::parse("KRW").unwrap(),
                amount: Amount::new(5).unwrap(),
                reference: None,
            };
            (NewTransfer { order, origin: Origin::default(), idempotency: None, mint_cap: None }, false)
        };
        let done =
            self.runtime.block_on(transfers::post_all(&self.tally, to.iter().map(new).collect())).unwrap();
        done.into_iter().map(|one| one.map(drop)).collect()
    }
}

fn player(name: &str) -> PlayerId {
    PlayerId::new(name).unwrap()
}

fn hex(id: Uuid) -> String {
    format!("x'{:032x}'", u128::from_be_bytes(id.0))
}

/// The key of the corrupt row that a request met.
#[track_caller]
fn named<T: std::fmt::Debug>(done: Result<T, Failure>) -> (&'static str, String) {
    match done {
        Err(Failure::Fault(Fault::Damaged(row))) => (row.table, row.key),
        done => panic!("{done:?}"),
    }
}

#[test]
fn a_damaged_score_is_left_out_at_the_start_and_fails_its_players_requests_alone() {
    for place in Place::all() {
        let served = Served::start(&place);
        served.put("b").unwrap();
        served
            .submit("b", &[("ann", 10), ("bob", 20), ("cid", 30)])
            .into_iter()
            .for_each(|row| assert!(row.is_ok()));
        served.stop();
        place.sql(if place.is_file() {
            "UPDATE scores SET score = 'many' WHERE player = 'ann'; UPDATE scores SET player = CAST(x'ff' AS TEXT) WHERE player = 'cid';"
        } else {
            "UPDATE scores SET gone = 7 WHERE player = 'ann'; UPDATE scores SET player = x'ff' WHERE player = 'cid';"
        });
        let served = Served::start(&place);
        let tally = &served.tally;
        assert_eq!(served.ranks("b"), 1);
        let noted: Vec<String> = tally.store.corrupt_rows().into_iter().map(|row| row.key).collect();
        assert_eq!(noted, ["1/0/ann", "1/0/x'ff'"]);
        // Other requests of the same batches are done.
        let others: Vec<String> = (0..40).map(|number| format!("p{number}")).collect();
        let mut rows: Vec<(&str, i64)> = others.iter().map(|name| (name.as_str(), 1)).collect();
        rows.insert(17, ("ann", 5));
        rows.push(("bob", 25));
        let mut done = served.submit("b", &rows);
        assert_eq!(named(done.remove(17)), ("scores", "1/0/ann".into()));
        assert_eq!(done.pop().unwrap().unwrap(), 25);
        done.into_iter().for_each(|row| assert_eq!(row.unwrap(), 1));
        assert_eq!(served.ranks("b"), 41);
        // Its missing rank is no evidence.
        let board = tally.boards.get("b").unwrap();
        let key = damaged::noted(&*tally.store, &board, Some(ALL_TIME), &player("ann")).unwrap();
        assert_eq!(named(damaged::check(&*tally.store, key)).1, "1/0/ann");
        assert_eq!(damaged::noted(&*tally.store, &board, Some(ALL_TIME), &player("bob")), None);
        let removed =
            served.runtime.block_on(remove(tally, &board.id, player("ann"), &Origin::BACKGROUND, None));
        assert_eq!(named(removed).1, "1/0/ann");
        drop(board);
        served.stop();
        // Repaired, it is as it was.
        place.sql(if place.is_file() {
            "UPDATE scores SET score = 10 WHERE player = 'ann';"
        } else {
            "UPDATE scores SET gone = 0 WHERE player = 'ann';"
        });
        let served = Served::start(&place);
        assert_eq!(served.ranks("b"), 42);
        assert_eq!(served.submit("b", &[("ann", 5)]).pop().unwrap().unwrap(), 10);
        served.stop();
    }
}

#[test]
fn a_damaged_wallet_fails_its_own_requests() {
    for place in Place::all() {
        let served = Served::start(&place);
        let members: Vec<MemberId> = (0..12).map(|number| served.member(&format!("m{number}"))).collect();
        served.stop();
        place.sql(&format!("UPDATE wallets SET closed = 7 WHERE member = {};", hex(members[5].0)));
        let served = Served::start(&place);
        let mut done = served.deposit(&members);
        assert_eq!(named(done.remove(5)), ("wallets", format!("{}/KRW", members[5].0)));
        done.into_iter().for_each(|one| one.unwrap());
        served.stop();
    }
}

#[test]
fn a_damaged_board_is_unavailable_alone() {
    for place in Place::all() {
        let served = Served::start(&place);
        for name in ["good", "definition", "period", "hidden"] {
            served.put(name).unwrap();
            served.submit(name, &[("ann", 10)]).pop().unwrap().unwrap();
        }
        served.stop();
        place.sql(
            "UPDATE boards SET ranking = 'sideways' WHERE id = 'definition'; \
             INSERT INTO parts VALUES ((SELECT no FROM boards WHERE id = 'period'), 1, 0, 0, 9, 7, 0, 0, 0);",
        );
        place.sql(if place.is_file() {
            "INSERT INTO bans (board, player) VALUES ((SELECT no FROM boards WHERE id = 'hidden'), CAST(x'ff' AS TEXT));"
        } else {
            "INSERT INTO bans (board, player) VALUES ((SELECT no FROM boards WHERE id = 'hidden'), x'ff');"
        });
        let served = Served::start(&place);
        assert_eq!(served.submit("good", &[("ann", 11)]).pop().unwrap().unwrap(), 11);
        for name in ["definition", "period", "hidden"] {
            let refused = served.submit(name, &[("ann", 11)]).pop().unwrap();
            assert!(
                matches!(refused, Err(Failure::Rejected(Rejection::LeaderboardDamaged))),
                "{name}: {refused:?}"
            );
            let refused = served.put(name);
            assert!(
                matches!(refused, Err(Failure::Rejected(Rejection::LeaderboardDamaged))),
                "{name}: {refused:?}"
            );
        }
        served.stop();
    }
}

#[test]
fn a_corrupt_key_authenticates_no_caller_and_counts_as_a_key() {
    for place in Place::all() {
        let served = Served::start(&place);
        let [bad, good] = ["bad", "good"]
            .map(|name| served.keys.create(Role::Server, name, &Origin::BACKGROUND, None).unwrap().token);
        served.stop();
        let table = if place.is_file() { "keys" } else { "api_keys" };
        place.sql(&format!("UPDATE {table} SET role = 'root' WHERE name = 'bad';"));
        let served = Served::start(&place);
        assert!(served.keys.authenticate(&bad).is_none());
        assert!(served.keys.authenticate(&good).is_some());
        served.stop();
        place.sql(&format!("DELETE FROM {table} WHERE name = 'good';"));
        let served = Served::start(&place);
        assert!(!served.keys.protected_mode());
        served.stop();
    }
}

/// Rows of every kind that a list shows: three contests, and of the first one three of everything else.
fn listed_rows(of: MemberId) -> WriteSet {
    let names = ["a", "b", "c"];
    let (no, won) = (Uuid([5; 16]), Currency::parse("KRW").unwrap());
    let id = |name: &str| ContestId::new(name).unwrap();
    let record = |at: u8| ContestRecord::new(Uuid([5 + at; 16]), Contest::default(), None, Micros(1));
    let entrant = |name: &str| EntrantKey { contest: no, player: player(name) };
    let application = |place| Application {
        status: Status::Pending,
        place,
        applied_at: Micros(1),
        member: None,
        hold: None,
    };
    let enrolled = |place| ContestPlayer { place, division: None, member: None };
    let payout = |name: &str| Payout {
        player: player(name),
        member: of,
        division: None,
        rank: 1,
        currency: won,
        amount: Amount::new(1).unwrap(),
        paid: None,
    };
    let series = || SeriesRecord {
        series: Series {
            template: Contest::default(),
            open: "0 0 * * *".into(),
            start: "0 1 * * *".into(),
            end: "0 2 * * *".into(),
            time_zone: "UTC".into(),
            ahead: 1,
        },
        from: Micros(1),
        since: Micros(1),
        due: None,
        last: None,
        created_at: Micros(1),
        updated_at: Micros(1),
    };
    let contests = ContestWriteSet {
        contests: (0..).zip(names).map(|(at, name)| (id(name), record(at))).collect(),
        applications: (1..).zip(names).map(|(at, name)| (entrant(name), Some(application(at)))).collect(),
        members: (0..).zip(names).map(|(at, name)| (entrant(name), enrolled(at))).collect(),
        payouts: (0..)
            .zip(names)
            .map(|(at, name)| (PayoutKey { contest: no, no: at }, payout(name)))
            .collect(),
        series: names.iter().map(|name| (id(name), Some(series()))).collect(),
        ..ContestWriteSet::default()
    };
    let happened = |to| {
        let changed = ContestChanged { contest: None, before: None, state: to, at: Micros(1), members: 0 };
        (Topic::Contest(no), Event { at: Micros(1), what: EventKind::Contest(changed) })
    };
    let events = [ContestState::Draft, ContestState::Open, ContestState::Running].map(happened).to_vec();
    WriteSet {
        ledger: LedgerWriteSet { contests, events, ..LedgerWriteSet::default() },
        ..WriteSet::default()
    }
}

/// The result of two pages of a list: the first with one readable row, and all behind it.
#[track_caller]
fn pages<T: Clone>(page: impl Fn(Option<T>, usize) -> Listing<T>) -> (usize, Vec<(&'static str, String)>) {
    let first = page(None, 1);
    assert_eq!((first.rows.len(), first.damaged.len()), (1, 0), "the first row is before the damaged one");
    let rest = page(first.rows.last().cloned(), 9);
    assert!(rest.clone().whole().is_err());
    (rest.rows.len(), rest.damaged.into_iter().map(|row| (row.table, row.key)).collect())
}

#[test]
fn a_list_names_the_damaged_row_and_goes_on_behind_it() {
    for place in Place::all() {
        let served = Served::start(&place);
        let member = served.member("ann");
        (0..3).for_each(|_| served.deposit(&[member]).remove(0).unwrap());
        let changes = listed_rows(member);
        served.stop();
        place.open().run(&ReadSet::default(), &mut |_| changes.clone()).unwrap();
        let bad = if place.is_file() { "CAST(x'ff' AS TEXT)" } else { "x'ff'" };
        place.sql(&format!(
            "UPDATE contests SET body = x'00' WHERE id = 'b'; UPDATE contest_series SET body = x'00' WHERE id = 'b'; \
             UPDATE contest_applications SET player = {bad} WHERE place = 2; \
             UPDATE contest_members SET player = {bad} WHERE place = 2; \
             UPDATE contest_prizes SET currency = '!' WHERE `no` = 1; UPDATE events SET body = x'00' WHERE number = 2; \
             UPDATE entries SET kind = 99 WHERE sequence = 2; UPDATE wallets SET closed = 7;"
        ));
        let store = place.open();
        let (ledger, no) = (store.ledger(), Uuid([5; 16]));
        let one = |table: &'static str, key: &str| (1, vec![(table, key.to_owned())]);
        let contests = pages(|after: Option<(ContestId, ContestRecord)>, limit| {
            ledger.list_contests(None, after.as_ref().map(|row| &row.0), limit).unwrap()
        });
        assert_eq!(contests, one("contests", "b"));
        let series = pages(|after: Option<(ContestId, SeriesRecord)>, limit| {
            ledger.list_series(after.as_ref().map(|row| &row.0), limit).unwrap()
        });
        assert_eq!(series, one("contest_series", "b"));
        let applications = pages(|after: Option<(PlayerId, Application)>, limit| {
            let above = after.map_or(0, |row| row.1.place);
            ledger.list_applications(no, Status::Pending, above, limit).unwrap()
        });
        assert_eq!(applications, one("contest_applications", &format!("{no}/x'ff'")));
        // The name without letters is behind all others.
        let members = ledger.list_members(no, None, 9).unwrap();
        assert_eq!((members.rows.len(), &*members.damaged[0].key), (2, &*format!("{no}/x'ff'")));
        let payouts = pages(|after: Option<(u32, Payout)>, limit| {
            ledger.list_payouts(no, after.map_or(0, |row| row.0 + 1), limit).unwrap()
        });
        assert_eq!(payouts, one("contest_prizes", &format!("{no}/1")));
        let events = pages(|after: Option<(u64, Event)>, limit| {
            ledger.list_events(Topic::Contest(no), after.map_or(0, |row| row.0), limit).unwrap()
        });
        assert_eq!(events, one("events", &format!("contest {no}/2")));
        let won = Currency::parse("KRW").unwrap();
        let entries = ledger.list_entries(WalletKey { member, currency: won }, 1..9).unwrap();
        let numbers: Vec<u64> = entries.rows.iter().map(|row| row.0).collect();
        assert_eq!((numbers, &*entries.damaged[0].key), (vec![3, 1], &*format!("{}/KRW/2", member.0)));
        let wallets = ledger.list_wallets(member).unwrap();
        assert_eq!((wallets.rows.len(), &*wallets.damaged[0].key), (0, &*format!("{}/KRW", member.0)));
        assert_eq!(store.corrupt_row_count(), 8);
    }
}
