//! Erasing a player beside contests in every state: reversible state goes, payments stay. Neither settling nor paying back meets
//! a gap.

use crate::wallets::world::{Kind, World, code, idempotency, refused};
use tally_rules::contest::definition::{ContestSpec, Fee};
use tally_rules::contest::{ContestId, ContestRight, ContestState, Payout, Prize, Status};
use tally_rules::ledger::{Amount, MemberId};
use tally_rules::score::ScoreInput;
use tally_rules::{Origin, PlayerId, Rejection};
use tally_service::contests::execute::{ActingAs, ContestActor};
use tally_service::contests::{apply, ban, change, finish, read, settle, start};
use tally_service::players::erase;
use tally_service::scores::submit::{self, NewScore};

const FEE: i64 = 10;
const FIRST: i64 = 70;
const SECOND: i64 = 30;

fn amount(units: i64) -> Amount {
    Amount::new(units).unwrap()
}

fn player(member: MemberId) -> PlayerId {
    PlayerId::new(&member.0.to_string()).unwrap()
}

fn spec() -> ContestSpec {
    let prize = |(from, units)| Prize { from, to: from, currency: code("KRW"), amount: amount(units) };
    ContestSpec {
        title: Some("Cup".into()),
        entry_fee: Some(Some(Fee { currency: code("KRW"), amount: amount(FEE) })),
        prizes: Some([(1, FIRST), (2, SECOND)].map(prize).to_vec()),
        ..ContestSpec::default()
    }
}

/// A contest that is open, to which all have applied; of them the last is still waiting.
fn open(world: &World, name: &str, members: &[MemberId]) -> ContestId {
    let (tally, id) = (&world.tally, ContestId::new(name).unwrap());
    change::create(tally, &id, &ContestActor::SERVER, &spec(), None).unwrap();
    change::open(tally, &id, &ContestActor::ADMIN, None).unwrap();
    let players: Vec<_> = members.iter().map(|member| player(*member)).collect();
    for one in &players {
        apply::apply(tally, &id, &ContestActor::SERVER, one, None).unwrap();
    }
    apply::decide(tally, &id, &ContestActor::ADMIN, &players[..players.len() - 1], true, None).unwrap();
    id
}

/// One that runs, in which each but the last has scored, the first most.
fn running(world: &World, name: &str, members: &[MemberId]) -> ContestId {
    let id = open(world, name, members);
    start::start(&world.tally, &id, &ContestActor::ADMIN, None).unwrap();
    for (member, score) in members[..members.len() - 1].iter().zip((1..9).rev()) {
        submit(world, &id, *member, score).unwrap();
    }
    id
}

fn submit(world: &World, id: &ContestId, member: MemberId, score: i64) -> Result<(), tally_service::Failure> {
    let (board, player, score) = (id.board(None), player(member), ScoreInput::Int(score));
    let new = NewScore { board, player, score, subscore: None, at: None, idempotency: None };
    world.wait(submit::submit(&world.tally, new)).map(drop)
}

fn finished(world: &World, name: &str, members: &[MemberId]) -> ContestId {
    let id = running(world, name, members);
    finish::finish(&world.tally, &id, &ContestActor::ADMIN, None).unwrap();
    id
}

/// The amount paid to each player.
fn paid(rows: Vec<(u32, Payout)>) -> Vec<(PlayerId, i64)> {
    rows.into_iter().map(|(_, row)| (row.player, row.amount.units())).collect()
}

fn balances(world: &World, members: &[MemberId]) -> Vec<i64> {
    members.iter().map(|member| world.balance(*member)).collect()
}

fn held(world: &World, member: MemberId) -> i64 {
    world.tally.store.ledger().wallets_of(member).unwrap()[0].1.held
}

fn erased(world: &World, member: MemberId) {
    assert!(!world.wait(erase::erase(&world.tally, player(member), Origin::BACKGROUND, None)).unwrap());
}

fn counts(world: &World, id: &ContestId) -> [u32; 3] {
    let counts = read::counts(&world.tally, &[&read::get(&world.tally, id).unwrap()])[0].unwrap();
    [counts.pending, counts.accepted, counts.rejected]
}

/// Pending and accepted applications go, with their holds; an erased player may apply again. A rejection stays.
fn of_an_open_one_applications_are_taken_back(kind: Kind) {
    let world = World::new(kind);
    let members = ["ann", "bob", "cid"].map(|name| world.member(name, 100));
    let [ann, bob, cid] = members;
    let (tally, cups) = (&world.tally, ["a", "b"].map(|name| open(&world, name, &members)));
    let all = [player(ann)];
    apply::decide(tally, &cups[1], &ContestActor::ADMIN, &all, false, None).unwrap();
    assert_eq!((counts(&world, &cups[0]), counts(&world, &cups[1])), ([1, 2, 0], [1, 1, 1]));
    assert_eq!(members.map(|member| held(&world, member)), [FEE, 2 * FEE, 2 * FEE]);
    let key = idempotency("erase cid", 1);
    assert!(!world.wait(erase::erase(tally, player(cid), Origin::BACKGROUND, key.clone())).unwrap());
    assert!(!world.wait(erase::erase(tally, player(ann), Origin::BACKGROUND, None)).unwrap());
    assert_eq!((counts(&world, &cups[0]), counts(&world, &cups[1])), ([0, 1, 0], [0, 1, 1]));
    assert_eq!(members.map(|member| held(&world, member)), [0, 2 * FEE, 0]);
    assert_eq!(balances(&world, &members), [100; 3]);
    // A second time there is nothing left to erase; a rejection is none of its traces.
    for member in [ann, cid] {
        let again = world.wait(erase::erase(tally, player(member), Origin::BACKGROUND, None));
        assert_eq!(refused(again), Rejection::PlayerNotFound);
    }
    assert_eq!(
        refused(apply::apply(tally, &cups[1], &ContestActor::SERVER, &player(ann), None)),
        Rejection::AlreadyRejected
    );
    // A retry does not remove a player that came back.
    apply::apply(tally, &cups[0], &ContestActor::SERVER, &player(cid), None).unwrap();
    assert!(world.wait(erase::erase(tally, player(cid), Origin::BACKGROUND, key)).unwrap());
    assert_eq!((counts(&world, &cups[0]), held(&world, cid)), ([1, 1, 0], FEE));
    let started = start::start(tally, &cups[0], &ContestActor::ADMIN, None).unwrap();
    assert_eq!((started.done.record.members, started.failed.len()), (1, 0));
    finish::cancel(tally, &cups[1], &ContestActor::ADMIN, None).unwrap();
    assert_eq!(members.map(|member| held(&world, member)), [0; 3]);
    assert_eq!(balances(&world, &[ann, bob, cid]), [100, 100 - FEE, 100]);
    world.end(&members);
}

/// A member stays one, without its scores: others move up, no prize is paid for it, it may score anew.
fn of_a_running_one_scores_go_and_the_member_stays(kind: Kind) {
    let world = World::new(kind);
    let members = ["ann", "bob", "cid", "late"].map(|name| world.member(name, 100));
    let [ann, bob, cid, _] = members;
    let (tally, cup) = (&world.tally, running(&world, "cup", &members));
    let called_off = running(&world, "off", &members);
    erased(&world, ann);
    erased(&world, cid);
    let listed = read::members(tally, &cup, None, 9).unwrap().rows;
    assert_eq!(listed.len(), 3);
    submit(&world, &cup, cid, 1).unwrap();
    finish::finish(tally, &cup, &ContestActor::ADMIN, None).unwrap();
    settle::settle(tally, &cup, &ContestActor::ADMIN, None).unwrap();
    let prizes = paid(read::prizes(tally, &cup, 0, 9).unwrap().rows);
    assert_eq!(prizes, [(player(bob), FIRST), (player(cid), SECOND)]);
    // Captured fees are paid back, erased or not.
    finish::cancel(tally, &called_off, &ContestActor::ADMIN, None).unwrap();
    let mut refunds = paid(read::refunds(tally, &called_off, 0, 9).unwrap().rows);
    refunds.sort();
    let mut wanted = [ann, bob, cid].map(|member| (player(member), FEE));
    wanted.sort();
    assert_eq!(refunds, wanted);
    assert_eq!(balances(&world, &members), [100 - FEE, 100 - FEE + FIRST, 100 - FEE + SECOND, 100]);
    world.end(&members);
}

/// An erasure does not lift a ban, nor does the way to a board that is not the contest's.
fn of_a_running_one_a_ban_stays(kind: Kind) {
    let world = World::new(kind);
    let members = ["ann", "bob", "late"].map(|name| world.member(name, 100));
    let [ann, bob, _] = members;
    let (tally, cup) = (&world.tally, running(&world, "cup", &members));
    let board = cup.board(None);
    let on_board = |actor: ContestActor, banned| {
        world.wait(ban::on_board(tally, &board, &actor, &player(ann), banned, None))
    };
    assert_eq!(refused(on_board(ContestActor::SERVER, true)), Rejection::Forbidden(ContestRight::Staff));
    assert_eq!(
        refused(on_board(ActingAs::For(player(bob)).by(Origin::BACKGROUND), true)),
        Rejection::Forbidden(ContestRight::Staff)
    );
    on_board(ContestActor::ADMIN, true).unwrap();
    assert_eq!(refused(on_board(ContestActor::SERVER, false)), Rejection::Forbidden(ContestRight::Staff));
    let other = cup.board(Some(1));
    let ann_player = player(ann);
    let elsewhere = ban::on_board(tally, &other, &ContestActor::ADMIN, &ann_player, false, None);
    assert_eq!(refused(world.wait(elsewhere)), Rejection::PlayerNotFound);
    erased(&world, ann);
    submit(&world, &cup, ann, 9).unwrap();
    assert!(
        read::members(tally, &cup, None, 9)
            .unwrap()
            .rows
            .iter()
            .any(|row| row.player == player(ann) && row.banned)
    );
    finish::finish(tally, &cup, &ContestActor::ADMIN, None).unwrap();
    settle::settle(tally, &cup, &ContestActor::ADMIN, None).unwrap();
    assert_eq!(paid(read::prizes(tally, &cup, 0, 9).unwrap().rows), [(player(bob), FIRST)]);
    world.end(&members);
}

/// A rank goes with its player before settling; stored or paid prizes stay.
fn of_one_that_has_ended_what_is_paid_stays(kind: Kind) {
    let world = World::new(kind);
    let members = ["ann", "bob", "cid", "late"].map(|name| world.member(name, 200));
    let [ann, bob, cid, _] = members;
    let tally = &world.tally;
    let (before, after) = (finished(&world, "before", &members), finished(&world, "after", &members));
    settle::settle(tally, &after, &ContestActor::ADMIN, None).unwrap();
    erased(&world, ann);
    settle::settle(tally, &before, &ContestActor::ADMIN, None).unwrap();
    let of = |id| paid(read::prizes(tally, id, 0, 9).unwrap().rows);
    assert_eq!(of(&before), [(player(bob), FIRST), (player(cid), SECOND)]);
    assert_eq!(of(&after), [(player(ann), FIRST), (player(bob), SECOND)]);
    // It is settled even with an empty board.
    let empty = finished(&world, "empty", &[cid, ann]);
    erased(&world, cid);
    let done = settle::settle(tally, &empty, &ContestActor::ADMIN, None).unwrap();
    assert_eq!((done.record.state, done.record.prizes), (ContestState::Settled, Some(0)));
    let kept = 200 - 2 * FEE;
    let wanted = [kept + FIRST, kept + FIRST + SECOND, kept + SECOND - FEE, 200];
    assert_eq!(balances(&world, &members), wanted);
    let left =
        read::applications(tally, &before, &ContestActor::ADMIN, Status::Accepted, (0, 9)).unwrap().rows;
    assert_eq!(left, []);
    world.end(&members);
}

macro_rules! suite {
    ($($name:ident: $kind:expr;)+) => { $(
        mod $name {
            use super::*;

            #[test]
            fn of_an_open_one_applications_are_taken_back() {
                super::of_an_open_one_applications_are_taken_back($kind);
            }
            #[test]
            fn of_a_running_one_scores_go_and_the_member_stays() {
                super::of_a_running_one_scores_go_and_the_member_stays($kind);
            }
            #[test]
            fn of_a_running_one_a_ban_stays() {
                super::of_a_running_one_a_ban_stays($kind);
            }
            #[test]
            fn of_one_that_has_ended_what_is_paid_stays() {
                super::of_one_that_has_ended_what_is_paid_stays($kind);
            }
        }
    )+ };
}

suite! {
    sqlite: Kind::Sqlite;
    mariadb: Kind::MariaDb;
}
