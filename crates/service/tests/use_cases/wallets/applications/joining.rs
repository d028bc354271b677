//! Joining a contest that runs: until its time is over, while there is room, once, and with a leaderboard for each new division.

use super::site::{Kind, Site, cup, player};
use super::{boss, member_of, members};
use crate::wallets::world::{idempotency, refused};
use std::num::NonZeroU32;
use std::sync::Arc;
use tally_rules::contest::definition::ContestSpec;
use tally_rules::contest::{ContestState, Status};
use tally_rules::{BoardId, Rejection};
use tally_service::contests::actions::{ActionResult, ContestDone};
use tally_service::contests::{apply, read, start};
use tally_service::{Failure, Tally};

fn spec(capacity: u32, division_size: Option<u32>) -> ContestSpec {
    ContestSpec {
        capacity: Some(capacity),
        auto_accept: Some(true),
        join_s: Some(NonZeroU32::new(60)),
        division_size: Some(division_size.and_then(NonZeroU32::new)),
        ..cup(false)
    }
}

fn status(done: Result<ContestDone, Failure>) -> (Status, bool) {
    let done = done.unwrap();
    match done.result {
        ActionResult::Applied(application) => (application.status, done.replayed),
        other => panic!("{other:?}"),
    }
}

/// Two servers, four callers, and each player twice: no place is given twice, and no player gets two.
fn many_join(servers: &[Arc<Tally>; 2], id: &tally_rules::contest::ContestId, first: usize, each: usize) {
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                for no in first + thread / 2 * each..first + (thread / 2 + 1) * each {
                    match apply::apply(&servers[thread % 2], id, &member_of(no), &player(no), None) {
                        Ok(done) => assert_eq!(status(Ok(done)).0, Status::Accepted),
                        Err(Failure::Rejected(Rejection::AlreadyApplied(_) | Rejection::ContestFull(_))) => {}
                        Err(other) => panic!("{other}"),
                    }
                }
            });
        }
    });
}

pub(super) fn players_join_a_contest_that_runs(kind: Kind) {
    let site = Site::new(kind);
    let servers = [site.serve(), site.serve()];
    let id = site.open_with(&servers[0], "cup", &spec(40, None));
    let apply = |at: usize, no: usize, key: Option<&str>| {
        let key = key.and_then(|key| idempotency(key, 1));
        apply::apply(&servers[at], &id, &member_of(no), &player(no), key.as_ref())
    };
    assert_eq!(status(apply(0, 1, Some("one"))), (Status::Accepted, false));
    start::start(&servers[0], &id, &boss(), None).unwrap();
    // A retry of a request from before the start, and a new request of the same player.
    assert_eq!(status(apply(1, 1, Some("one"))), (Status::Accepted, true));
    assert_eq!(refused(apply(1, 1, None)), Rejection::AlreadyApplied(Status::Accepted));
    assert_eq!(refused(apply(1, 0, None)), Rejection::StaffCannotApply);
    assert_eq!(status(apply(1, 2, Some("two"))), (Status::Accepted, false));
    assert_eq!(status(apply(0, 2, Some("two"))), (Status::Accepted, true));
    many_join(&servers, &id, 3, 25);
    assert_eq!(refused(apply(0, 90, None)), Rejection::ContestFull(40));
    let all = members(&servers[1], &id);
    assert_eq!((all.len(), &all[..2]), (40, &[player(1), player(2)][..]));
    let places: Vec<u32> = {
        let mut rows = read::members(&servers[0], &id, None, 99).unwrap().rows;
        rows.sort_by_key(|row| row.enrolled.place);
        rows.into_iter().map(|row| row.enrolled.place).collect()
    };
    assert_eq!(places, (0..40).collect::<Vec<u32>>());
    let details = super::noted(&servers[0], &id);
    assert!(details.iter().any(|(.., detail)| detail == "1 player: p02"), "{details:?}");

    let late = site.open_with(&servers[0], "late", &spec(9, None));
    start::start(&servers[0], &late, &boss(), None).unwrap();
    let join = |no| apply::apply(&servers[1], &late, &member_of(no), &player(no), None);
    site.advance(59_999_999);
    assert_eq!(status(join(1)).0, Status::Accepted);
    site.advance(1);
    assert_eq!(refused(join(2)), Rejection::ContestState(ContestState::Running));
    assert_eq!(members(&servers[0], &late), [player(1)]);
    let closed = ContestSpec { join_s: None, ..spec(9, None) };
    let closed = site.open_with(&servers[0], "closed", &closed);
    start::start(&servers[0], &closed, &boss(), None).unwrap();
    let join = apply::apply(&servers[1], &closed, &member_of(1), &player(1), None);
    assert_eq!(refused(join), Rejection::ContestState(ContestState::Running));
    servers.iter().for_each(|tally| tally.drain());
}

pub(super) fn the_first_of_a_division_makes_its_leaderboard(kind: Kind) {
    let site = Site::new(kind);
    let servers = [site.serve(), site.serve()];
    let id = site.open_with(&servers[0], "cup", &spec(50, Some(3)));
    start::start(&servers[0], &id, &boss(), None).unwrap();
    many_join(&servers, &id, 1, 10);
    let rows = read::members(&servers[0], &id, None, 99).unwrap().rows;
    assert_eq!(rows.len(), 20);
    assert!(rows.iter().all(|row| row.enrolled.division == Some(row.enrolled.place / 3 + 1)), "{rows:?}");
    let record = read::get(&servers[1], &id).unwrap();
    assert_eq!(record.members, 20);
    for division in 1..=7 {
        let board = BoardId::new(&format!("contest:cup:{division}")).unwrap();
        assert!(servers.iter().any(|tally| tally.boards.get(&board).is_some()), "{board:?}");
    }
    servers.iter().for_each(|tally| tally.drain());
}
