//! Replaying prizes of periods, and rows of missing owners: by SQL one row of each kind wrong, each named.

use crate::wallets::prizes::{DAY, daily, player_of, put, score, table};
use crate::wallets::verify::{Broken, GHOST, Place, fault, hex, in_a_database, verify};
use crate::wallets::world::{World, order};
use tally_rules::ledger::{MemberId, TransferKind, TransferRequest, Uuid};
use tally_rules::period::PeriodPayment;
use tally_service::periods::{prizes, scheduler};
use tally_testkit::{DatabaseKind, ScratchDatabase};

const TABLES: [&str; 5] =
    ["period_payments", "contest_applications", "contest_members", "contest_prizes", "entries"];

/// Two members that were paid for the first two ranks of a day, and the keys of its prizes.
struct Made {
    ann: MemberId,
    bob: MemberId,
    no: Uuid,
    /// The period, as references name it.
    period: String,
}

fn make(world: &World) -> Made {
    let [ann, bob] = ["ann", "bob"].map(|name| world.member(name, 0));
    put(world, &world.tally, &daily(table(100), 12)).unwrap();
    score(world, &world.tally, player_of(ann), 9);
    score(world, &world.tally, player_of(bob), 5);
    world.advance(DAY);
    scheduler::close_due(&world.tally).unwrap();
    prizes::pay_due(&world.tally).unwrap();
    let mut snapshot = world.tally.store.ledger().snapshot().unwrap();
    let paid: Vec<PeriodPayment> =
        snapshot.payments(None, 9).unwrap().into_iter().map(|(_, row)| row).collect();
    let [PeriodPayment { no, board, period, count: 2, done: 2, .. }] = &paid[..] else { panic!("{paid:?}") };
    Made { ann, bob, no: *no, period: format!("{}/{period}", board.as_str()) }
}

fn of_prizes(Made { ann, no, period, .. }: &Made) -> Vec<Broken> {
    let (no, ghost, player) = (hex(*no), hex(GHOST), player_of(*ann));
    let first = format!("contest = {no} AND `no` = 0");
    let row = format!("contest_prizes {period}/{}", player.as_str());
    let left = format!("entries {}/KRW/1: it is a prize of the period {period}, which has none here", ann.0);
    let copy = |contest: &str, number: u8, transfer: &str| {
        format!(
            "INSERT INTO contest_prizes SELECT {contest}, {number}, player, member, division, `rank`, currency, \
             amount, {transfer}, unpaid FROM kept_contest_prizes WHERE {first}"
        )
    };
    let unknown = format!("{GHOST}: what it belongs to is not there");
    vec![
        fault(
            format!("DELETE FROM contest_prizes WHERE {first}"),
            &[&format!("period_payments {period}: 2 were to be paid, and there are 1"), &left],
        ),
        fault(
            format!("UPDATE contest_prizes SET transfer = NULL WHERE {first}"),
            &[&format!("contest_prizes {period}/0: it was never paid"), &left],
        ),
        fault(
            format!("UPDATE contest_prizes SET transfer = {ghost} WHERE {first}"),
            &[&format!("{row}: its prize, 100, is no movement"), &left],
        ),
        fault(
            format!("UPDATE contest_prizes SET amount = 99 WHERE {first}"),
            &[&format!("{row}: its prize is 99, and its movement 100")],
        ),
        fault(
            copy(&no, 7, "transfer"),
            &[
                &format!("period_payments {period}: 2 were to be paid, and there are 3"),
                &format!("contest_prizes {period}/7: it is paid before its turn"),
                &format!("{row}: its prize is there 2 times"),
            ],
        ),
        fault(copy(&ghost, 0, "NULL"), &[&format!("contest_prizes {unknown}")]),
        fault(
            format!(
                "INSERT INTO contest_members VALUES ({ghost}, 'a', 0, NULL, NULL), ({ghost}, 'b', 1, NULL, NULL)"
            ),
            &[&format!("contest_members {unknown}")],
        ),
        fault(
            format!("INSERT INTO contest_applications VALUES ({ghost}, 'a', 'pending', 1, 0, NULL, NULL)"),
            &[&format!("contest_applications {unknown}")],
        ),
    ]
}

fn of_movements(Made { ann, bob, no, period }: &Made) -> Vec<Broken> {
    let left = |member: &MemberId| {
        format!("entries {}/KRW/1: it is a prize of the period {period}, which", member.0)
    };
    let none =
        format!("contest_prizes {period}/{}: its prize, 100, is no movement", player_of(*ann).as_str());
    let entry = format!("member = {} AND kind = 7", hex(ann.0));
    vec![
        fault(format!("UPDATE entries SET reference = NULL WHERE {entry}"), &[&none]),
        fault(
            format!("UPDATE entries SET reference = 'daily/daily:2001-01-01' WHERE {entry}"),
            &[&none, "it is a prize of the period daily/daily:2001-01-01, which has none here"],
        ),
        fault(
            "DELETE FROM period_payments".into(),
            &[&format!("contest_prizes {no}: what it belongs to is not there"), &left(ann), &left(bob)],
        ),
        fault("DELETE FROM period_payments; DELETE FROM contest_prizes".into(), &[&left(ann), &left(bob)]),
    ]
}

#[test]
fn every_row_of_a_periods_prizes_that_was_broken_by_sql_is_named() {
    let server = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let (world, name) = in_a_database(server);
    let made = make(&world);
    // The schedulers themselves would pay what a fault makes due again.
    world.tally.drain();
    let faults = [of_prizes(&made), of_movements(&made)].concat();
    Place::Server(world, server, name).break_each(&TABLES, faults);
}

/// A prize that is paid twice is money that agrees with its wallet, and with no row.
#[test]
fn a_prize_of_a_period_that_was_paid_twice_is_named() {
    let (world, _) = in_a_database(ScratchDatabase::shared(DatabaseKind::MariaDb10));
    let Made { ann, period, .. } = make(&world);
    assert_eq!(verify(&*world.tally.store).1, [""; 0]);
    let again = TransferRequest {
        reference: Some(period.as_str().into()),
        ..order(TransferKind::Prize { to: ann }, 100)
    };
    world.post(again, None).unwrap();
    let named = format!("entries {}/KRW/2: it is a prize of the period {period}, which has none here", ann.0);
    assert_eq!(verify(&*world.tally.store).1, [named]);
    world.tally.drain();
}
