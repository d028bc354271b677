//! Faults of Redis only: it loses applications, it is unavailable, it loses answers. Also servers that die in between.

use super::site::{Kind, Site, player};
use super::{boss, listed, members, noted, row};
use crate::wallets::world::refused;
use crate::wrapped::{Difference, Wrapped};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tally_ranking::RedisApplications;
use tally_ranking::redis::Options;
use tally_ranking::redis::applications::ApplicationsKey;
use tally_rules::contest::definition::ContestSpec;
use tally_rules::contest::record::ApplicationLocation;
use tally_rules::contest::{ContestId, ContestRecord, ContestRight, ContestState, Status};
use tally_rules::profile::Profile;
use tally_rules::{Origin, Rejection};
use tally_service::contests::execute::ContestActor;
use tally_service::contests::{apply, change, finish, read, scheduler, start};
use tally_service::failure::Fault;
use tally_service::players::{erase, profile};
use tally_service::{Failure, Tally};
use tally_store::{Committed, Loaded, ReadSet, Store, StoreError, WriteSet};
use tally_testkit::{Cut, Proxy, Reply, wait_until};

fn applied(tally: &Tally, id: &ContestId, no: usize) -> Result<(), Failure> {
    apply::apply(tally, id, &ContestActor::SERVER, &player(no), None).map(drop)
}

fn accept(tally: &Tally, id: &ContestId, no: usize) -> Result<Status, Rejection> {
    row(apply::decide(tally, id, &boss(), &[player(no)], true, None))
}

/// Every query about applications, by name.
fn every_question(tally: &Tally, id: &ContestId) -> Vec<(&'static str, Result<(), Failure>)> {
    let who = [player(1)];
    vec![
        ("apply", applied(tally, id, 2)),
        ("accept", apply::decide(tally, id, &boss(), &who, true, None).map(drop)),
        ("reject", apply::decide(tally, id, &boss(), &who, false, None).map(drop)),
        ("withdraw", apply::withdraw(tally, id, &ContestActor::SERVER, &who[0], None).map(drop)),
        ("list", read::applications(tally, id, &boss(), Status::Pending, (0, 9)).map(drop)),
        ("start", start::start(tally, id, &boss(), None).map(drop)),
    ]
}

fn key(record: &ContestRecord) -> ApplicationsKey {
    let ApplicationLocation::Redis(number) = record.kept else { panic!("{:?}", record.kept) };
    ApplicationsKey { contest: record.no, number }
}

fn assert_lost(tally: &Tally, id: &ContestId) {
    for (question, answer) in every_question(tally, id) {
        let Err(Failure::Rejected(rejection)) = answer else { panic!("{question}: {answer:?}") };
        assert_eq!(rejection, Rejection::ApplicationsLost, "{question}");
    }
    let record = read::get(tally, id).unwrap();
    assert_eq!((record.state, record.members), (ContestState::Open, 0));
    assert_eq!(read::counts(tally, &[&record]), [None]);
}

/// A flush, a restart from a snapshot without the last change, and each key that may be evicted.
#[test]
fn what_is_lost_is_never_taken_for_less() {
    let mut site = Site::new(Kind::Redis);
    let tally = site.serve();
    for loss in ["flush", "restart", "d", "p", "a", "r", "b"] {
        let id = site.open(&tally, &format!("cup-{loss}"));
        for no in [1, 3, 4] {
            applied(&tally, &id, no).unwrap();
        }
        accept(&tally, &id, 3).unwrap();
        row(apply::decide(&tally, &id, &boss(), &[player(4)], false, None)).unwrap();
        match loss {
            "flush" => assert_eq!(site.redis().client().call(&["FLUSHALL"]), Reply::Simple(b"OK".into())),
            "restart" => {
                assert_eq!(site.redis().client().call(&["SAVE"]), Reply::Simple(b"OK".into()));
                applied(&tally, &id, 5).unwrap();
                site.redis().kill();
                site.redis().restart();
                wait_until("Redis answers", || !matches!(applied(&tally, &id, 6), Err(Failure::Fault(_))));
            }
            one => {
                let key = key(&read::get(&tally, &id).unwrap());
                let name = format!("{{tally:contest:{}}}:{}:{one}", key.contest, key.number);
                assert_eq!(site.redis().client().call(&["DEL", &name]), Reply::Integer(1));
            }
        }
        assert_lost(&tally, &id);
        // Staff begins anew, and former applicants have to apply again.
        let nobody = change::open(&tally, &id, &ContestActor::SERVER, None);
        assert_eq!(refused(nobody), Rejection::Forbidden(ContestRight::Staff));
        let before = read::get(&tally, &id).unwrap();
        let opened = change::open(&tally, &id, &boss(), None).unwrap();
        assert_ne!(key(&opened.record).number, key(&before).number);
        assert_eq!(
            refused(change::open(&tally, &id, &boss(), None)),
            Rejection::ContestState(ContestState::Open)
        );
        assert_eq!(accept(&tally, &id, 3), Err(Rejection::NotApplied));
        applied(&tally, &id, 3).unwrap();
        accept(&tally, &id, 3).unwrap();
        start::start(&tally, &id, &boss(), None).unwrap();
        assert_eq!(members(&tally, &id), [player(3)]);
    }
    tally.drain();
}

/// A start by the clock passes: the applicants are unknown. Other contests go on.
#[test]
fn a_start_without_members_passes() {
    let mut site = Site::new(Kind::Valkey);
    let tally = site.serve();
    let at = |seconds: i64| Some(Some(site.now().plus(seconds * 1_000_000)));
    let ids = ["lost", "paid"].map(|name| ContestId::new(name).unwrap());
    for (id, fee) in ids.iter().zip([false, true]) {
        let spec = ContestSpec { opens_at: at(1), starts_at: at(10), ends_at: at(20), ..super::cup(fee) };
        change::create(&tally, id, &ContestActor::SERVER, &spec, None).unwrap();
    }
    site.advance(1_000_000);
    scheduler::do_due(&tally).unwrap();
    applied(&tally, &ids[0], 1).unwrap();
    accept(&tally, &ids[0], 1).unwrap();
    site.redis().client().call(&["FLUSHALL"]);
    site.advance(10_000_000);
    scheduler::do_due(&tally).unwrap();
    let states = || ids.each_ref().map(|id| read::get(&tally, id).unwrap().state);
    assert_eq!(states(), [ContestState::Open, ContestState::Running]);
    assert_eq!(read::get(&tally, &ids[0]).unwrap().due(), None);
    assert_lost(&tally, &ids[0]);
    // Opened again, it does not start by a time that has passed.
    change::open(&tally, &ids[0], &boss(), None).unwrap();
    scheduler::do_due(&tally).unwrap();
    assert_eq!(states(), [ContestState::Open, ContestState::Running]);
    applied(&tally, &ids[0], 1).unwrap();
    finish::cancel(&tally, &ids[0], &boss(), None).unwrap();
    tally.drain();
}

/// Contests that cannot go on, however many, delay no other; they go on when it is back.
#[test]
fn contests_that_wait_for_redis_keep_no_others() {
    let mut site = Site::new(Kind::Redis);
    let proxy = Proxy::start(site.redis().address());
    let tally = site.serve_with(Some(&format!("redis://{}", proxy.address())));
    let at = |seconds: i64| Some(Some(site.now().plus(seconds * 1_000_000)));
    let waiting: Vec<_> = (0..150).map(|no| ContestId::new(&format!("waits-{no}")).unwrap()).collect();
    for id in &waiting {
        let spec = ContestSpec { opens_at: at(1), ..super::cup(false) };
        change::create(&tally, id, &ContestActor::SERVER, &spec, None).unwrap();
    }
    let paid = ContestId::new("paid").unwrap();
    let spec = ContestSpec { opens_at: at(2), ..super::cup(true) };
    change::create(&tally, &paid, &ContestActor::SERVER, &spec, None).unwrap();
    proxy.refuse();
    proxy.cut();
    site.advance(3_000_000);
    // It is read for the first of them only; the others do not wait for it.
    let passed = scheduler::do_due(&tally);
    let why = |fault: &Fault| fault.to_string().contains("this pass does not try it again");
    assert!(matches!(&passed, Err(Failure::Fault(fault)) if why(fault)), "{passed:?}");
    let state = |id| read::get(&tally, id).unwrap().state;
    assert_eq!(state(&paid), ContestState::Open);
    assert!(waiting.iter().all(|id| state(id) == ContestState::Draft));
    proxy.pass();
    wait_until("what is due is done", || scheduler::do_due(&tally).is_ok());
    assert!(waiting.iter().all(|id| state(id) == ContestState::Open));
    tally.drain();
}

/// Nothing changes while Redis is unavailable, and every reply says so. Requests that do not need it go on, and it is
/// cleared later.
#[test]
fn what_is_away_changes_nothing() {
    let mut site = Site::new(Kind::Redis);
    let proxy = Proxy::start(site.redis().address());
    let tally = site.serve_with(Some(&format!("redis://{}", proxy.address())));
    let [cup, other] = ["cup", "other"].map(|name| site.open(&tally, name));
    let draft = ContestId::new("draft").unwrap();
    change::create(&tally, &draft, &ContestActor::SERVER, &super::cup(false), None).unwrap();
    for id in [&cup, &other] {
        applied(&tally, id, 1).unwrap();
        accept(&tally, id, 1).unwrap();
    }
    proxy.refuse();
    proxy.cut();
    // A change on a connection that has just broken may have been made; a read notices that it is.
    assert_eq!(read::counts(&tally, &[&read::get(&tally, &cup).unwrap()]), [None]);
    let mut answers = every_question(&tally, &cup);
    answers.push(("open", change::open(&tally, &draft, &boss(), None).map(drop)));
    for (question, answer) in answers {
        assert!(
            matches!(answer, Err(Failure::Fault(Fault::ApplicationsUnavailable(_)))),
            "{question}: {answer:?}"
        );
    }
    let [record, drafted] = [&cup, &draft].map(|id| read::get(&tally, id).unwrap());
    assert_eq!((record.state, drafted.state), (ContestState::Open, ContestState::Draft));
    assert_eq!(read::counts(&tally, &[&record, &drafted]), [None, Some(drafted.applications)]);
    // Cancelled without it; it is cleared when it is back.
    finish::cancel(&tally, &other, &boss(), None).unwrap();
    assert!(read::get(&tally, &other).unwrap().is_to_be_cleared());
    proxy.pass();
    wait_until("it has applied", || {
        matches!(applied(&tally, &cup, 2), Ok(()) | Err(Failure::Rejected(Rejection::AlreadyApplied(_))))
    });
    scheduler::do_due(&tally).unwrap();
    let cleared = read::get(&tally, &other).unwrap();
    assert_eq!(
        (cleared.state, cleared.kept, cleared.due()),
        (ContestState::Cancelled, ApplicationLocation::Store, None)
    );
    assert_eq!(
        (listed(&tally, &cup, Status::Accepted), listed(&tally, &cup, Status::Pending)),
        (vec![player(1)], vec![player(2)])
    );
    start::start(&tally, &cup, &boss(), None).unwrap();
    assert_eq!(members(&tally, &cup), [player(1)]);
    site.assert_empty();
    tally.drain();
}

/// A server that died between its read and its transaction: there is no partial start, and others go on.
#[test]
fn a_start_that_died_is_let_go() {
    let mut site = Site::new(Kind::Valkey);
    let tally = site.serve();
    let id = site.open(&tally, "cup");
    for no in [1, 2] {
        applied(&tally, &id, no).unwrap();
    }
    let record = read::get(&tally, &id).unwrap();
    let dead =
        RedisApplications::open(&format!("redis://{}", site.redis().address()), &Options::default()).unwrap();
    dead.freeze(key(&record), record.revision).unwrap();
    // An applicant does not wait; a decision does, and then no start counts any more that had read before.
    applied(&tally, &id, 3).unwrap();
    accept(&tally, &id, 1).unwrap();
    assert!(read::get(&tally, &id).unwrap().revision > record.revision);
    dead.freeze(key(&record), record.revision).unwrap();
    start::start(&tally, &id, &boss(), None).unwrap();
    assert_eq!(members(&tally, &id), [player(1)]);
    site.assert_empty();
    tally.drain();
}

/// Erasing waits for an unavailable Redis, because it may have applications; lost ones need no erasure.
#[test]
fn erasing_says_that_redis_is_away_and_passes_over_what_is_lost() {
    let mut site = Site::new(Kind::Redis);
    let proxy = Proxy::start(site.redis().address());
    let tally = site.serve_with(Some(&format!("redis://{}", proxy.address())));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let id = site.open(&tally, "cup");
    applied(&tally, &id, 1).unwrap();
    profile::put(&tally, &player(1), &Profile::default(), None).unwrap();
    let erased = || runtime.block_on(erase::erase(&tally, player(1), Origin::BACKGROUND, None));
    proxy.refuse();
    proxy.cut();
    let away = erased();
    assert!(matches!(away, Err(Failure::Fault(Fault::ApplicationsUnavailable(_)))), "{away:?}");
    assert!(profile::get(&tally, &player(1)).is_ok(), "nothing is erased in part");
    proxy.pass();
    site.redis().client().call(&["FLUSHALL"]);
    wait_until("Redis answers", || !matches!(erased(), Err(Failure::Fault(_))));
    assert_eq!(refused(profile::get(&tally, &player(1))), Rejection::PlayerNotFound);
    assert_lost(&tally, &id);
    tally.drain();
}

/// A lost reply does not make another request.
#[test]
fn an_answer_that_is_lost_is_found_again() {
    let mut site = Site::new(Kind::Redis);
    let proxy = Proxy::start(site.redis().address());
    let tally = site.serve_with(Some(&format!("redis://{}", proxy.address())));
    let id = site.open(&tally, "cup");
    for cut in [Cut::Before, Cut::Answer] {
        proxy.cut_at(player(1).as_bytes(), cut);
        applied(&tally, &id, 1).unwrap();
        assert!(!proxy.is_armed());
        // The second time the player is named is the change: the first is a read.
        for accepted in [true, false] {
            proxy.cut_at(b"1700000000000000", cut);
            match accepted {
                true => assert_eq!(accept(&tally, &id, 1), Ok(Status::Accepted)),
                false => drop(apply::withdraw(&tally, &id, &ContestActor::SERVER, &player(1), None).unwrap()),
            }
            assert!(!proxy.is_armed());
        }
    }
    // The outcome is unknown, so no reply claims one.
    proxy.cut_off_at(player(7).as_bytes(), Cut::Answer);
    let done = applied(&tally, &id, 7);
    assert!(matches!(done, Err(Failure::Fault(Fault::OutcomeUnknown(_)))), "{done:?}");
    tally.drain();
}

/// The row of a decision is stored first. Without it nothing is decided, and no failure in between leaves a decision without it.
#[test]
fn no_decision_lacks_its_row() {
    let mut site = Site::new(Kind::Redis);
    let proxy = Proxy::start(site.redis().address());
    let url = format!("redis://{}", proxy.address());
    let away = Arc::new(AtomicBool::new(false));
    site.store = Arc::new(Wrapped(Refusing { inner: Arc::clone(&site.store), away: Arc::clone(&away) }));
    let tally = site.serve_with(Some(&url));
    let id = site.open(&tally, "cup");
    for no in 1..=3 {
        applied(&tally, &id, no).unwrap();
    }
    let actions = || noted(&tally, &id).into_iter().map(|(.., detail)| detail).collect::<Vec<_>>();
    away.store(true, Ordering::SeqCst);
    let refused = apply::decide(&tally, &id, &boss(), &[player(1)], true, None);
    assert!(matches!(refused, Err(Failure::Fault(Fault::StoreUnavailable(_)))), "{refused:?}");
    away.store(false, Ordering::SeqCst);
    assert_eq!((listed(&tally, &id, Status::Accepted), actions()), (vec![], vec![]));
    // The reply of Redis is lost once: the second try finds the decision, and leaves no second row.
    proxy.cut_at(b"1700000000000000", Cut::Answer);
    accept(&tally, &id, 1).unwrap();
    assert!(!proxy.is_armed());
    assert_eq!(actions(), ["1 player: p01"]);
    // The decision is made, and its reply is lost for good.
    site.advance(1);
    proxy.cut_off_at(b"1700000000000000", Cut::Answer);
    let lost = apply::decide(&tally, &id, &boss(), &[player(2)], true, None);
    assert!(matches!(lost, Err(Failure::Fault(Fault::OutcomeUnknown(_)))), "{lost:?}");
    proxy.pass();
    wait_until("Redis answers", || read::counts(&tally, &[&read::get(&tally, &id).unwrap()]) != [None]);
    assert_eq!(listed(&tally, &id, Status::Accepted), [player(1), player(2)]);
    assert_eq!(actions(), ["1 player: p01", "1 player: p02"]);
    tally.drain();
}

/// A store that refuses transactions while it is away.
struct Refusing {
    inner: Arc<dyn Store>,
    away: Arc<AtomicBool>,
}

impl Difference for Refusing {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    fn run(
        &self,
        plan: &ReadSet,
        decide: &mut dyn FnMut(&Loaded) -> WriteSet,
    ) -> Result<Committed, StoreError> {
        if self.away.load(Ordering::SeqCst) {
            return Err(StoreError::Unavailable("away".into()));
        }
        self.inner.run(plan, decide)
    }
}

/// Redis is not configured any more, or another one is: the server takes no list for empty.
#[test]
fn a_server_without_that_redis_says_so() {
    let site = Site::new(Kind::Valkey);
    let tally = site.serve();
    let id = site.open(&tally, "cup");
    applied(&tally, &id, 1).unwrap();
    tally.drain();
    drop(tally);
    let other = Site::new(Kind::Valkey);
    let elsewhere = site.serve_with(other.url().as_deref());
    assert_lost(&elsewhere, &id);
    elsewhere.drain();
    drop(elsewhere);
    let without = site.serve_with(None);
    for (question, answer) in every_question(&without, &id) {
        assert!(
            matches!(answer, Err(Failure::Fault(Fault::ApplicationsUnavailable(_)))),
            "{question}: {answer:?}"
        );
    }
    without.drain();
    drop(without);
    // Everything is as before when it is back.
    let tally = site.serve();
    assert_eq!(listed(&tally, &id, Status::Pending), [player(1)]);
    tally.drain();
}

/// More than are read whole: pages of any size, in order of arrival.
#[test]
fn many_applications_come_in_pages() {
    let mut site = Site::new(Kind::Valkey);
    let tally = site.serve();
    let id = site.open(&tally, "cup");
    let all: Vec<usize> = (1..=600).collect();
    all.iter().for_each(|no| applied(&tally, &id, *no).unwrap());
    let page = |above, limit| {
        read::applications(&tally, &id, &boss(), Status::Pending, (above, limit)).unwrap().rows
    };
    for (above, limit) in [(0, 1_000), (0, 599), (550, 7), (599, 1), (600, 9)] {
        let names: Vec<_> = page(above, limit).into_iter().map(|(player, _)| player).collect();
        let wanted = all.iter().skip(usize::try_from(above).unwrap()).take(limit);
        assert_eq!(names, wanted.map(|no| player(*no)).collect::<Vec<_>>());
    }
    finish::cancel(&tally, &id, &boss(), None).unwrap();
    assert_eq!(site.redis().client().call(&["DBSIZE"]), Reply::Integer(0));
    tally.drain();
}
