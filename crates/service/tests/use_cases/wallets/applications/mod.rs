//! One suite for applications in every store: the embedded store, MariaDB, Redis, Valkey, a cluster.
//!
//! Each begins by asserting the store in use. Not here: money for them (`contests`), and faults of Redis only (`faults`).

mod faults;
mod joining;
mod site;

use crate::wallets::world::{idempotency, refused};
use site::{Kind, Site, cup, player};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tally_rules::audit::{AuditAction, AuditEntry};
use tally_rules::contest::definition::ContestSpec;
use tally_rules::contest::{ContestId, ContestRight, ContestState, Status};
use tally_rules::{Actor, Origin, PlayerId, Rejection};
use tally_service::audit;
use tally_service::contests::actions::{ActionResult, ContestDone};
use tally_service::contests::execute::{ActingAs, ContestActor};
use tally_service::contests::{apply, change, finish, of_player, read, scheduler, start};
use tally_service::players::erase;
use tally_service::scan::ListRange;
use tally_service::{Failure, Tally};
use tally_testkit::rng::soak;
use tally_testkit::{GIVE_UP, Rng};

const CAPACITY: usize = 3;
const PLAYERS: usize = 9;

fn boss() -> ContestActor {
    ActingAs::Member(player(0)).by(Origin::BACKGROUND)
}

/// A member that is not of the staff.
fn elsewhere() -> ContestActor {
    member_of(9)
}

/// A member for itself.
fn member_of(no: usize) -> ContestActor {
    ActingAs::Member(player(no)).by(Origin::BACKGROUND)
}

/// The one row of a decision.
fn row(done: Result<ContestDone, Failure>) -> Result<Status, Rejection> {
    match done.map(|done| done.result) {
        Ok(ActionResult::Decided(mut rows)) => rows.pop().unwrap(),
        Err(Failure::Rejected(rejection)) => Err(rejection),
        done => panic!("{done:?}"),
    }
}

fn listed(tally: &Tally, id: &ContestId, status: Status) -> Vec<PlayerId> {
    let (mut all, mut above) = (Vec::new(), 0);
    loop {
        let page = read::applications(tally, id, &boss(), status, (above, 2)).unwrap().rows;
        let Some((_, last)) = page.last() else { return all };
        above = last.place;
        assert!(page.iter().all(|(_, application)| application.status == status));
        all.extend(page.into_iter().map(|(player, _)| player));
    }
}

fn members(tally: &Tally, id: &ContestId) -> Vec<PlayerId> {
    let mut rows = read::members(tally, id, None, 1_000).unwrap().rows;
    rows.sort_by_key(|row| row.enrolled.place);
    rows.into_iter().map(|row| row.player).collect()
}

/// Three lists of players, as on paper.
#[derive(Clone, Debug, Default)]
struct Paper {
    pending: Vec<usize>,
    accepted: Vec<usize>,
    rejected: Vec<usize>,
}

fn take(list: &mut Vec<usize>, one: usize) -> bool {
    let found = list.iter().position(|other| *other == one);
    found.map(|at| list.remove(at)).is_some()
}

impl Paper {
    fn apply(&mut self, one: usize) -> Result<(), &'static str> {
        if self.rejected.contains(&one) {
            return Err("already_rejected");
        }
        if self.pending.contains(&one) || self.accepted.contains(&one) {
            return Err("already_applied");
        }
        if one == 0 {
            return Err("staff_cannot_apply");
        }
        self.pending.push(one);
        Ok(())
    }

    fn accept(&mut self, one: usize) -> Result<(), &'static str> {
        if self.accepted.contains(&one) {
            return Ok(());
        }
        if !self.pending.contains(&one) {
            return Err("not_applied");
        }
        if self.accepted.len() == CAPACITY {
            return Err("contest_full");
        }
        take(&mut self.pending, one);
        self.accepted.push(one);
        Ok(())
    }

    fn reject(&mut self, one: usize) -> Result<(), &'static str> {
        if self.rejected.contains(&one) {
            return Ok(());
        }
        if !take(&mut self.pending, one) && !take(&mut self.accepted, one) {
            return Err("not_applied");
        }
        self.rejected.push(one);
        Ok(())
    }

    fn withdraw(&mut self, one: usize) -> Result<(), &'static str> {
        if self.rejected.contains(&one) {
            return Err("already_rejected");
        }
        if take(&mut self.pending, one) || take(&mut self.accepted, one) {
            Ok(())
        } else {
            Err("not_applied")
        }
    }
}

/// Two contests side by side, with restarts of the server now and then; in the end the accepted players are members, in
/// that order.
fn histories_agree_with_paper(kind: Kind) {
    let mut rng = Rng::of("applications");
    for _ in 0..soak(1) {
        let site = Site::new(kind);
        let mut tally = site.serve();
        let ids = [site.open(&tally, "a"), site.open(&tally, "b")];
        let mut papers = [Paper::default(), Paper::default()];
        for _ in 0..150 {
            if rng.percent(4) {
                tally.drain();
                drop(tally);
                tally = site.serve();
            }
            let (at, one) = (rng.below(2) as usize, rng.below(PLAYERS as u64) as usize);
            let (id, paper, who) = (&ids[at], &mut papers[at], player(one));
            let two = [who.clone(), who.clone()];
            let done = |done: Result<ContestDone, Failure>| match done {
                Ok(_) => Ok(()),
                Err(Failure::Rejected(rejection)) => Err(rejection.code()),
                Err(fault) => panic!("{fault}"),
            };
            let decided = |accept| row(apply::decide(&tally, id, &boss(), &two, accept, None));
            let (now, wanted) = match rng.below(10) {
                0..5 => (done(apply::apply(&tally, id, &ContestActor::SERVER, &who, None)), paper.apply(one)),
                5..7 => (decided(true).map(drop).map_err(|rejection| rejection.code()), paper.accept(one)),
                7 => (decided(false).map(drop).map_err(|rejection| rejection.code()), paper.reject(one)),
                _ => (
                    done(apply::withdraw(&tally, id, &ContestActor::SERVER, &who, None)),
                    paper.withdraw(one),
                ),
            };
            assert_eq!(now, wanted, "{one} of {paper:?}");
            let lists = [&paper.pending, &paper.accepted, &paper.rejected];
            for (status, list) in Status::ALL.iter().zip(lists) {
                let wanted: Vec<PlayerId> = list.iter().map(|one| player(*one)).collect();
                assert_eq!(listed(&tally, id, *status), wanted, "{status}");
            }
            let record = read::get(&tally, id).unwrap();
            let counts = read::counts(&tally, &[&record])[0].unwrap();
            let counted = [counts.pending, counts.accepted, counts.rejected].map(|count| count as usize);
            assert_eq!(counted, lists.map(Vec::len));
            site.assert_where(&record);
        }
        start::start(&tally, &ids[0], &boss(), None).unwrap();
        assert_eq!(
            members(&tally, &ids[0]),
            papers[0].accepted.iter().map(|one| player(*one)).collect::<Vec<_>>()
        );
        finish::cancel(&tally, &ids[1], &boss(), None).unwrap();
        for id in &ids {
            let record = read::get(&tally, id).unwrap();
            assert_eq!(
                refused(apply::apply(&tally, id, &ContestActor::SERVER, &player(1), None)),
                Rejection::ContestState(record.state)
            );
            assert!(
                read::applications(&tally, id, &boss(), Status::Pending, (0, 9)).unwrap().rows.is_empty()
            );
            assert_eq!(read::counts(&tally, &[&record])[0].unwrap().all(), 0);
            assert_eq!(record.due(), None, "nothing is left to be done");
        }
        site.assert_empty();
        tally.drain();
    }
}

/// Two servers, with concurrent requests to both: one application for each player, no more than the capacity. The members are
/// those whose last reply before the start was "accepted".
fn many_at_once_are_exact(kind: Kind) {
    let site = Site::new(kind);
    let servers = [site.serve(), site.serve()];
    let id = site.open(&servers[0], "crowd");
    let all: Vec<PlayerId> = (1..=24).map(player).collect();
    let applied = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let (all, applied, id, tally) = (&all, &applied, &id, &servers[thread % 2]);
            scope.spawn(move || {
                for who in all.iter().skip(thread / 2 * 8).take(16) {
                    match apply::apply(tally, id, &ContestActor::SERVER, who, None) {
                        Ok(_) => drop(applied.fetch_add(1, Ordering::Relaxed)),
                        other => {
                            let rejection = refused(other);
                            assert!(matches!(rejection, Rejection::AlreadyApplied(_)), "{rejection:?}");
                        }
                    }
                }
            });
        }
    });
    assert_eq!((applied.into_inner(), listed(&servers[0], &id, Status::Pending).len()), (24, 24));
    // The last reply for each. One thread sends the requests of a row, so they have an order.
    let told = Mutex::new(BTreeMap::<PlayerId, Status>::new());
    let started = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (all, told, id, tally) = (&all, &told, &id, &servers[thread % 2]);
            scope.spawn(move || {
                for (at, who) in all.iter().enumerate().filter(|(at, _)| at % 4 == thread) {
                    let accept =
                        row(apply::decide(tally, id, &boss(), std::slice::from_ref(who), true, None));
                    match accept {
                        Ok(status) => drop(told.lock().unwrap().insert(who.clone(), status)),
                        Err(Rejection::ContestFull(_)) => continue,
                        Err(other) => {
                            return assert_eq!(other, Rejection::ContestState(ContestState::Running));
                        }
                    }
                    if at % 3 == 0 {
                        match apply::withdraw(tally, id, &ContestActor::SERVER, who, None) {
                            Ok(_) => drop(told.lock().unwrap().remove(who)),
                            other => {
                                return assert_eq!(
                                    refused(other),
                                    Rejection::ContestState(ContestState::Running)
                                );
                            }
                        }
                    }
                }
            });
        }
        for tally in &servers {
            let (id, started, all, told) = (&id, &started, &all, &told);
            scope.spawn(move || {
                // Not for ever: an accepted player may withdraw, and once the other has started no other is accepted.
                let began = Instant::now();
                while told.lock().unwrap().len() < 2 && started.load(Ordering::Relaxed) == 0 {
                    assert!(began.elapsed() < GIVE_UP, "no two are accepted");
                    std::thread::yield_now();
                }
                match start::start(tally, id, &boss(), None) {
                    Ok(done) => {
                        assert!(done.failed.is_empty() && done.done.record.members as usize <= all.len());
                        started.fetch_add(1, Ordering::Relaxed);
                    }
                    other => assert_eq!(refused(other), Rejection::ContestState(ContestState::Running)),
                }
            });
        }
    });
    assert_eq!(started.into_inner(), 1);
    let mut now = members(&servers[1], &id);
    assert!(now.len() <= CAPACITY, "{now:?}");
    now.sort();
    assert_eq!(now, told.into_inner().unwrap().into_keys().collect::<Vec<_>>());
    servers.iter().for_each(|tally| scheduler::do_due(tally).unwrap());
    site.assert_empty();
    servers.iter().for_each(|tally| tally.drain());
}

/// With a key a request has one effect, also when it is sent again after the start; another request is refused.
fn a_retry_has_the_effect_of_one(kind: Kind) {
    let site = Site::new(kind);
    let tally = site.serve();
    let id = site.open(&tally, "cup");
    let who = [player(1), player(2)];
    let applied = |print| {
        apply::apply(&tally, &id, &ContestActor::SERVER, &who[0], idempotency("apply", print).as_ref())
    };
    let first = applied(1).unwrap();
    let again = applied(1).unwrap();
    assert_eq!((first.replayed, again.replayed, &first.result), (false, true, &again.result));
    assert!(
        matches!(first.result, ActionResult::Applied(application) if application.applied_at == site.now())
    );
    assert_eq!(refused(applied(2)), Rejection::IdempotencyKeyReused);
    let accept =
        || apply::decide(&tally, &id, &boss(), &who, true, idempotency("accept", 1).as_ref()).unwrap();
    let rows = ActionResult::Decided(vec![Ok(Status::Accepted), Err(Rejection::NotApplied)]);
    assert_eq!((accept().result, accept().result), (rows.clone(), rows.clone()));
    let withdraw = || {
        apply::withdraw(&tally, &id, &ContestActor::SERVER, &who[0], idempotency("withdraw", 1).as_ref())
            .unwrap()
    };
    assert_eq!((withdraw().replayed, withdraw().replayed), (false, true));
    assert_eq!(row(apply::decide(&tally, &id, &boss(), &who[..1], true, None)), Err(Rejection::NotApplied));
    // The same player may apply again, and the outcome of the old request stays.
    apply::apply(&tally, &id, &ContestActor::SERVER, &who[0], None).unwrap();
    assert!(applied(1).unwrap().replayed);
    row(apply::decide(&tally, &id, &boss(), &who[..1], true, None)).unwrap();
    start::start(&tally, &id, &boss(), None).unwrap();
    let replayed = applied(1).unwrap();
    assert_eq!((replayed.replayed, replayed.record.state), (true, ContestState::Running));
    assert_eq!(accept().result, rows);
    tally.drain();
}

/// The rows of decisions on a contest in the audit log, oldest first: action, actor, reason and detail.
fn noted(tally: &Tally, id: &ContestId) -> Vec<(AuditAction, Actor, Option<String>, String)> {
    let filter = audit::Filter { subject: Some(id.as_str().into()), ..audit::Filter::default() };
    let mut rows =
        audit::list(tally, &filter, &ListRange { limit: 99, ..ListRange::default() }).unwrap().rows;
    rows.retain(|(_, row)| matches!(row.action, AuditAction::ContestAccepted | AuditAction::ContestRejected));
    let text = |text: Option<&Arc<str>>| text.map(|text| text.to_string());
    let one = |row: AuditEntry| {
        let detail = text(row.detail.as_ref()).expect("it names players");
        (row.action, row.origin.actor, text(row.origin.reason.as_ref()), detail)
    };
    rows.into_iter().rev().map(|(_, row)| one(row)).collect()
}

/// A decision leaves one row, whatever the application store: with its actor, its reason and the players that it concerns.
fn a_decision_leaves_a_row(kind: Kind) {
    let site = Site::new(kind);
    let tally = site.serve();
    let id = site.open(&tally, "cup");
    for no in 1..=3 {
        apply::apply(&tally, &id, &ContestActor::SERVER, &player(no), None).unwrap();
    }
    let origin = Origin { actor: Actor::CommandLine, reason: Some("the list".into()), metadata: None };
    let desk = ActingAs::Admin.by(origin);
    let once = idempotency("accept", 1);
    let players = |all: &[usize]| all.iter().map(|no| player(*no)).collect::<Vec<_>>();
    let decide = |all: &[usize], accept, key| {
        // The clock of the test stands still, and rows of one instant are in no order.
        site.advance(1);
        apply::decide(&tally, &id, &desk, &players(all), accept, key)
    };
    for replayed in [false, true] {
        assert_eq!(decide(&[1, 9, 3], true, once.as_ref()).unwrap().replayed, replayed);
    }
    decide(&[8, 9], true, None).unwrap();
    decide(&[2], false, None).unwrap();
    assert_eq!(
        refused(apply::decide(&tally, &id, &elsewhere(), &players(&[1]), true, None)),
        Rejection::Forbidden(ContestRight::Staff)
    );
    let row =
        |action, detail: &str| (action, Actor::CommandLine, Some("the list".to_owned()), detail.to_owned());
    let wanted = [
        row(AuditAction::ContestAccepted, "2 players: p01, p03"),
        row(AuditAction::ContestRejected, "1 player: p02"),
    ];
    assert_eq!(noted(&tally, &id), wanted);
    start::start(&tally, &id, &boss(), None).unwrap();
    assert_eq!(refused(decide(&[1], true, None)), Rejection::ContestState(ContestState::Running));
    assert_eq!(noted(&tally, &id), wanted);
    tally.drain();
}

/// Places are given in order of arrival, by one change each: none twice, on two servers.
fn accepted_at_once(kind: Kind) {
    let site = Site::new(kind);
    let servers = [site.serve(), site.serve()];
    let spec = ContestSpec { auto_accept: Some(true), ..cup(false) };
    let id = site.open_with(&servers[0], "cup", &spec);
    let apply = |at: usize, no, key: Option<&str>| {
        let key = key.and_then(|key| idempotency(key, 1));
        apply::apply(&servers[at], &id, &member_of(no), &player(no), key.as_ref())
    };
    let status = |done: Result<ContestDone, Failure>| match done.unwrap().result {
        ActionResult::Applied(application) => application.status,
        other => panic!("{other:?}"),
    };
    assert_eq!(status(apply(0, 1, Some("one"))), Status::Accepted);
    let again = apply(1, 1, Some("one")).unwrap();
    assert_eq!((again.replayed, status(Ok(again))), (true, Status::Accepted));
    assert_eq!(refused(apply(1, 1, None)), Rejection::AlreadyApplied(Status::Accepted));
    assert_eq!(refused(apply(0, 0, None)), Rejection::StaffCannotApply);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let apply = &apply;
            scope.spawn(move || {
                (2 + thread * 4..6 + thread * 4).for_each(|no| drop(apply(thread % 2, no, None).unwrap()))
            });
        }
    });
    let lists = || [Status::Accepted, Status::Pending].map(|status| listed(&servers[0], &id, status));
    assert_eq!(lists().map(|list| list.len()), [CAPACITY, 17 - CAPACITY]);
    let mut named: Vec<String> = noted(&servers[0], &id).into_iter().map(|(.., detail)| detail).collect();
    named.sort();
    // A row may be of a place that another player got first.
    let accepted = listed(&servers[0], &id, Status::Accepted);
    let missing: Vec<_> =
        accepted.iter().filter(|one| !named.contains(&format!("1 player: {}", one.as_str()))).collect();
    assert!(missing.is_empty(), "{missing:?} of {named:?}");
    // A place that is free again goes to the next that applies.
    apply::withdraw(&servers[1], &id, &ContestActor::SERVER, &accepted[1], None).unwrap();
    assert_eq!(status(apply(0, 30, None)), Status::Accepted);
    assert_eq!(status(apply(0, 31, None)), Status::Pending);
    let accepted = listed(&servers[1], &id, Status::Accepted);
    start::start(&servers[1], &id, &boss(), None).unwrap();
    assert_eq!(members(&servers[0], &id), accepted);
    scheduler::do_due(&servers[0]).unwrap();
    site.assert_empty();
    servers.iter().for_each(|tally| tally.drain());
}

/// The clock cancels a contest with too few members at its start, and nothing of it is left.
fn cancelled_below_its_minimum(kind: Kind) {
    let site = Site::new(kind);
    let tally = site.serve();
    let starts_at = Some(Some(site.now().plus(10_000_000)));
    let spec = ContestSpec {
        starts_at,
        players_min: Some(2.try_into().ok()),
        auto_accept: Some(true),
        ..cup(false)
    };
    let ids = ["few", "enough"].map(|name| site.open_with(&tally, name, &spec));
    for (id, no) in [(&ids[0], 1), (&ids[1], 1), (&ids[1], 2)] {
        apply::apply(&tally, id, &ContestActor::SERVER, &player(no), None).unwrap();
    }
    site.advance(10_000_000);
    scheduler::do_due(&tally).unwrap();
    let states = ids.each_ref().map(|id| read::get(&tally, id).unwrap().state);
    assert_eq!(states, [ContestState::Cancelled, ContestState::Running]);
    let record = read::get(&tally, &ids[0]).unwrap();
    assert_eq!((record.due(), record.report, record.since), (None, None, site.now()));
    let board = tally_rules::BoardId::new("contest:few").unwrap();
    assert!(tally.boards.get(&board).is_none(), "a contest that was not played has a leaderboard");
    site.assert_empty();
    tally.drain();
}

/// A contest that moves money has its applications in the store, whatever the setting says.
fn money_is_never_elsewhere(kind: Kind) {
    let site = Site::new(kind);
    let tally = site.serve();
    let id = ContestId::new("paid").unwrap();
    change::create(&tally, &id, &ContestActor::SERVER, &cup(true), None).unwrap();
    change::open(&tally, &id, &ContestActor::ADMIN, None).unwrap();
    assert_eq!(
        read::get(&tally, &id).unwrap().kept,
        tally_rules::contest::record::ApplicationLocation::Store
    );
    assert_eq!(
        refused(apply::apply(&tally, &id, &ContestActor::SERVER, &player(1), None)),
        Rejection::PlayerWithoutWallet(None)
    );
    site.assert_empty();
    tally.drain();
}

/// An erased player has applied nowhere, and may apply again; a rejection stays.
fn an_erased_player_has_not_applied(kind: Kind) {
    let site = Site::new(kind);
    let tally = site.serve();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let ids = [site.open(&tally, "a"), site.open(&tally, "b")];
    for id in &ids {
        for no in 1..4 {
            apply::apply(&tally, id, &ContestActor::SERVER, &player(no), None).unwrap();
        }
    }
    row(apply::decide(&tally, &ids[0], &boss(), &[player(1)], true, None)).unwrap();
    row(apply::decide(&tally, &ids[1], &boss(), &[player(2)], false, None)).unwrap();
    let applied = |no| {
        let found = of_player::of_name(&tally, &player(no), None, 9).unwrap().entered;
        found.into_iter().map(|one| (one.id, one.application.unwrap().status)).collect::<Vec<_>>()
    };
    let of_both = |statuses: [Status; 2]| ids.iter().cloned().zip(statuses).collect::<Vec<_>>();
    assert_eq!(applied(1), of_both([Status::Accepted, Status::Pending]));
    assert_eq!(applied(2), of_both([Status::Pending, Status::Rejected]));
    assert_eq!(applied(9), []);
    let erased = |no| runtime.block_on(erase::erase(&tally, player(no), Origin::BACKGROUND, None));
    for no in [1, 2] {
        assert!(!erased(no).unwrap());
        assert_eq!(refused(erased(no)), Rejection::PlayerNotFound);
    }
    let of = |id| Status::ALL.iter().map(|status| listed(&tally, id, *status)).collect::<Vec<_>>();
    assert_eq!(of(&ids[0]), [vec![player(3)], vec![], vec![]]);
    assert_eq!(of(&ids[1]), [vec![player(3)], vec![], vec![player(2)]]);
    assert_eq!(applied(1), []);
    apply::apply(&tally, &ids[0], &ContestActor::SERVER, &player(1), None).unwrap();
    ids.iter().for_each(|id| drop(start::start(&tally, id, &boss(), None).unwrap()));
    assert_eq!(refused(erased(3)), Rejection::PlayerNotFound);
    site.assert_empty();
    tally.drain();
}

macro_rules! suite {
    ($($name:ident: $kind:expr;)+) => { $(
        mod $name {
            use super::*;

            #[test]
            fn soak_histories_agree_with_paper() {
                super::histories_agree_with_paper($kind);
            }
            #[test]
            fn many_at_once_are_exact() {
                super::many_at_once_are_exact($kind);
            }
            #[test]
            fn a_retry_has_the_effect_of_one() {
                super::a_retry_has_the_effect_of_one($kind);
            }
            #[test]
            fn an_erased_player_has_not_applied() {
                super::an_erased_player_has_not_applied($kind);
            }
            #[test]
            fn a_decision_leaves_a_row() {
                super::a_decision_leaves_a_row($kind);
            }
            #[test]
            fn accepted_at_once() {
                super::accepted_at_once($kind);
            }
            #[test]
            fn players_join_a_contest_that_runs() {
                super::joining::players_join_a_contest_that_runs($kind);
            }
            #[test]
            fn the_first_of_a_division_makes_its_leaderboard() {
                super::joining::the_first_of_a_division_makes_its_leaderboard($kind);
            }
            #[test]
            fn cancelled_below_its_minimum() {
                super::cancelled_below_its_minimum($kind);
            }
            #[test]
            fn money_is_never_elsewhere() {
                super::money_is_never_elsewhere($kind);
            }
        }
    )+ };
}

suite! {
    sqlite: Kind::Sqlite;
    mariadb: Kind::MariaDb;
    redis: Kind::Redis;
    valkey: Kind::Valkey;
    cluster: Kind::Cluster;
}
