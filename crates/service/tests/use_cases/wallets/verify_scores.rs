//! Verifying scores, periods, archives and applications: by SQL one row of each kind wrong, in a file and in a database, each
//! named. Every other test of this folder checks at its end that a sound store has none.

use crate::wallets::histories::paper::{FEE, Op, Shape};
use crate::wallets::histories::{Hand, player_of, spec};
use crate::wallets::prizes::{DAY, daily, put, score};
use crate::wallets::verify::{Broken, Place, fault, hex, verify};
use crate::wallets::world::World;
use tally_rules::contest::ContestId;
use tally_rules::ledger::MemberId;
use tally_rules::period::PeriodPrizes;
use tally_rules::{Micros, Origin, PlayerId};
use tally_service::contests::execute::ContestActor;
use tally_service::contests::{change, read};
use tally_service::periods::scheduler;
use tally_service::players::erase::ban;
use tally_service::verify::{Expected, Listener, reconcile};

const TABLES: [&str; 6] = ["scores", "parts", "blocks", "boards", "bans", "deleted_parts"];

fn player(name: &str) -> PlayerId {
    PlayerId::new(name).unwrap()
}

/// A closed day, with a banned player, and an open one. The name of the board, and the number of the closed window.
fn make(world: &World) -> (String, u64) {
    put(world, &world.tally, &daily(PeriodPrizes::default(), 12)).unwrap();
    for (name, points) in [("p1", 30), ("p2", 20), ("p3", 10)] {
        score(world, &world.tally, player(name), points);
    }
    let board = world.tally.boards.from_no(tally_service::BoardNo(0), 1).remove(0);
    world.wait(ban(&world.tally, &board.id, player("p3"), true, Origin::BACKGROUND, None)).unwrap();
    world.advance(DAY);
    scheduler::close_due(&world.tally).unwrap();
    score(world, &world.tally, player("p1"), 40);
    let parts = world.tally.store.windows(board.no).unwrap();
    let closed = parts.iter().find(|row| row.closed).unwrap();
    assert_eq!((parts.len(), closed.total), (2, 2));
    (board.id.as_str().to_owned(), closed.window.0)
}

fn of_scores(name: &str, part: u64, is_file: bool) -> Vec<Broken> {
    let of = format!("{name}/{part}");
    let closed = format!("part = {part}");
    let lost = |rows: u8| format!("parts {of}: {rows} of its records are not in its archive as they are");
    let lacks = |player: &str| format!("scores {of}/{player}: its archive lacks it");
    let more = if is_file { "" } else { ", version, gone" };
    let no_name = if is_file { "CAST(x'ff' AS TEXT)" } else { "x'ff'" };
    vec![
        fault(
            format!("UPDATE scores SET score = 31 WHERE {closed} AND player = 'p1'"),
            &[&format!("scores {of}/p1: its archive has another record"), &lost(1)],
        ),
        fault(
            format!("DELETE FROM scores WHERE {closed} AND player = 'p1'"),
            &[&format!("scores {of}/p1: its archive has it, and there is no record")],
        ),
        fault(
            format!(
                "INSERT INTO scores SELECT board, part, 'p9', score, subscore, `at`{more} FROM kept_scores \
                 WHERE {closed} AND player = 'p1'"
            ),
            &[&lost(1), &lacks("p9")],
        ),
        fault(
            "INSERT INTO bans (board, player) SELECT board, 'p1' FROM kept_bans".into(),
            &[&format!("scores {of}/p1: its archive has it, and the player is banned")],
        ),
        fault("DELETE FROM bans".into(), &[&lost(1), &lacks("p3")]),
        fault(
            "UPDATE scores SET subscore = 1 WHERE part = 0 AND player = 'p1'".into(),
            &[&format!("scores {name}/0/p1: it has a subscore")],
        ),
        fault(
            "UPDATE scores SET board = 99 WHERE part = 0".into(),
            &["scores 99/0: 3 records of a board that is not there"],
        ),
        fault(
            format!("UPDATE scores SET player = {no_name} WHERE {closed} AND player = 'p1'"),
            &[
                &format!("/{part}/x'ff': it is damaged"),
                &format!("scores {of}/p1: its archive has it, and there is no record that can be read"),
            ],
        ),
        fault("UPDATE boards SET ranking = 'sideways'".into(), &[&format!("boards {name}: it is damaged")]),
    ]
}

fn of_archives(name: &str, part: u64, is_file: bool) -> Vec<Broken> {
    let of = format!("{name}/{part}");
    let none = format!("parts {of}: it counts 2 players, and its archive has 0");
    let lost = format!("parts {of}: 2 of its records are not in its archive as they are");
    let [first, second] = ["p1", "p2"].map(|player| format!("scores {of}/{player}: its archive lacks it"));
    let joined = |more: &str| match is_file {
        true => format!("CAST(entries || {more} AS BLOB)"),
        false => format!("CONCAT(entries, {more})"),
    };
    let version = |version: u8| {
        format!(
            "INSERT INTO blocks SELECT board, part, {version}, block, distinct_better, entries FROM kept_blocks"
        )
    };
    // 30 and 20 points in the other order, as they are packed: the second comes first.
    vec![
        fault("DELETE FROM blocks".into(), &[&none, &lost, &first, &second]),
        fault(
            "UPDATE blocks SET block = 1".into(),
            &["/1/0: it is not there", &none, &lost, &first, &second],
        ),
        fault(
            format!("UPDATE blocks SET entries = {}", joined("x'ff'")),
            &["/1/0: its entries cannot be read", &none, &lost, &first, &second],
        ),
        fault(
            format!("UPDATE blocks SET entries = {}", joined("entries")),
            &[
                "/1/0: it has 4 entries, and its period has 2",
                "does not come after the one before",
                "it counts 2 players, and its archive has 4",
                "its archive has another record",
                "its archive has another record",
            ],
        ),
        fault(
            format!("UPDATE parts SET total = 9 WHERE part = {part}"),
            &["it has 2 entries, and its period has 9", "it counts 9 players, and its archive has 2"],
        ),
        fault(version(7), &[&format!("blocks {of}/7: its period has the archive 1")]),
        // The next one is being written.
        fault(version(2), &[]),
        fault(
            format!("{}; INSERT INTO deleted_parts SELECT board, part, 7 FROM kept_blocks", version(7)),
            &[],
        ),
        fault(
            "UPDATE blocks SET part = part + 1".into(),
            &[
                &none,
                &lost,
                &first,
                &second,
                &format!("blocks {name}/{}/1: its period is not stored", part + 1),
            ],
        ),
    ]
}

fn of_periods(name: &str, part: u64) -> Vec<Broken> {
    let of = format!("parts {name}/{part}");
    let archive = format!("blocks {name}/{part}/1: its period is not stored");
    vec![
        fault(
            format!("UPDATE parts SET ends = ends + 1000000 WHERE part = {part}"),
            &[
                &format!("{of}: it starts or ends within a minute"),
                "it starts before the period before it ends",
            ],
        ),
        fault(
            format!("UPDATE parts SET starts = starts + 3600000000 WHERE part = {part}"),
            &[&format!("{of}: its number is not that of rule 0 and its start")],
        ),
        fault(
            format!("UPDATE parts SET rule = 7 WHERE part = {part}"),
            &[&format!("{of}: its rule 7 is not there")],
        ),
        fault(
            format!("DELETE FROM parts WHERE part = {part}"),
            &[&format!("scores {name}/{part}: 3 records of a period that is not stored"), &archive],
        ),
        fault(
            format!("UPDATE parts SET closed = 7 WHERE part = {part}"),
            &[
                &format!("/{part}: it is damaged"),
                &format!("scores {name}/{part}: 3 records of a period that is not stored"),
                &archive,
            ],
        ),
    ]
}

#[test]
fn every_kind_of_score_and_period_that_was_broken_by_sql_is_named() {
    let each = Place::each(|world| {
        let made = make(world);
        let (verified, found) = verify(&*world.tally.store);
        assert_eq!(found, [""; 0]);
        let scores = verified.scores;
        assert_eq!((scores.boards, scores.records, scores.periods), (1, 3 + 3 + 1, 2));
        assert_eq!((scores.archives, scores.entries, scores.earlier_schedule), (1, 2, 0));
        made
    });
    for (place, (name, part)) in each {
        let is_file = place.is_file();
        let faults =
            [of_scores(&name, part, is_file), of_archives(&name, part, is_file), of_periods(&name, part)];
        place.break_each(&TABLES, faults.concat());
        // Nothing is closed before its end.
        let found = place.broken(&[], "", |store| {
            let (mut snapshot, mut found) = (store.ledger().snapshot().unwrap(), Vec::new());
            let listener = Listener {
                found: &mut |one| found.push(one.to_string()),
                read: &mut |_| (),
                proved: &mut |_, _| Ok(()),
            };
            reconcile(store, &mut *snapshot, (Expected::default(), Micros(0), None), listener).unwrap();
            found
        });
        assert_eq!(found, [format!("parts {name}/{part}: it is closed before its end")]);
    }
}

/// A contest with a fee, and an application in each status. Its number and the players.
fn apply(world: &World) -> (String, Vec<MemberId>) {
    let members: Vec<MemberId> = ["ann", "bob", "cid"].iter().map(|name| world.member(name, 100)).collect();
    let hand = Hand { tally: &world.tally, runtime: &world.runtime, members: &members };
    let id = ContestId::new("cup").unwrap();
    let shape = Shape { fee: FEE, prizes: true, ordinal: true, each: false, division: None };
    change::create(&world.tally, &id, &ContestActor::SERVER, &spec(shape), None).unwrap();
    for op in [Op::Open, Op::Apply(0), Op::Apply(1), Op::Accept(1), Op::Apply(2), Op::Reject(2)] {
        hand.act(&id, op, None, None).unwrap();
    }
    let (verified, found) = verify(&*world.tally.store);
    assert_eq!((verified.applications, found), (3, Vec::new()));
    (hex(read::get(&world.tally, &id).unwrap().no), members)
}

#[test]
fn every_application_that_was_broken_by_sql_is_named() {
    for (place, (no, members)) in Place::each(apply) {
        let [ann, bob, cid] = [0, 1, 2].map(|at| player_of(members[at]).as_str().to_owned());
        let of = |name: &str| format!("contest = {no} AND player = '{name}'");
        let hold = |name: &str| format!("(SELECT hold FROM kept_contest_applications WHERE {})", of(name));
        let row = |name: &str| format!("contest_applications cup/{name}: ");
        let alone = "it holds the fee of a contest, and no application has it";
        let faults = vec![
            fault(
                format!("UPDATE contest_applications SET hold = NULL WHERE {}", of(&ann)),
                &[&format!("{}it has no hold, and the contest has a fee", row(&ann)), alone],
            ),
            fault(
                format!("UPDATE contest_applications SET hold = {} WHERE {}", hold(&ann), of(&bob)),
                &["2 applications have its hold", alone],
            ),
            fault(
                format!("UPDATE contest_applications SET hold = x'{}' WHERE {}", "07".repeat(16), of(&ann)),
                &[&format!("{}its hold 07070707-0707-0707-0707-070707070707 is not there", row(&ann)), alone],
            ),
            fault(
                format!("UPDATE contest_applications SET member = {} WHERE {}", hex(members[1].0), of(&ann)),
                &[&row(&ann)],
            ),
            fault(
                format!("UPDATE contest_applications SET status = 'rejected' WHERE {}", of(&ann)),
                &[
                    &format!("{}it has a hold, and owes no fee", row(&ann)),
                    "contests cup: it counts [1, 1, 1]",
                ],
            ),
            fault(
                format!("DELETE FROM contest_applications WHERE {}", of(&cid)),
                &[
                    "contests cup: it counts [1, 1, 1] applications pending, accepted and rejected, and there are [1, 1, 0]",
                ],
            ),
            fault(
                format!("DELETE FROM contest_applications WHERE {}", of(&ann)),
                &["contests cup: it counts [1, 1, 1]", alone],
            ),
            fault(
                format!("UPDATE holds SET amount = amount + 1 WHERE id = {}", hold(&ann)),
                &["and the fee", "is held, and open holds are"],
            ),
        ];
        place.break_each(&["contest_applications", "holds"], faults);
    }
}
