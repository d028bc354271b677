//! Replaying contests: by SQL one row of each kind wrong, each named. Every history of contests proves that a sound store has no
//! finding (`histories`).

use crate::wallets::histories::paper::{FEE, Op, Shape};
use crate::wallets::histories::{Hand, player_of, spec};
use crate::wallets::verify::{Broken, GHOST, Place, fault, hex, in_a_database, owed, verify};
use crate::wallets::world::World;
use tally_rules::contest::record::ContestTask;
use tally_rules::contest::{ContestId, ContestRecord};
use tally_rules::ledger::{MemberId, Uuid};
use tally_service::contests::execute::ContestActor;
use tally_service::contests::{change, read};
use tally_store::{ContestWriteSet, LedgerWriteSet, ReadSet, WriteSet};
use tally_testkit::{DatabaseKind, ScratchDatabase};

const TABLES: [&str; 4] = ["contests", "contest_members", "contest_prizes", "entries"];

/// Numbers of contests: one that paid its prizes, one that was cancelled.
struct Made {
    cup: Uuid,
    off: Uuid,
    members: Vec<MemberId>,
}

fn make(world: &World) -> Made {
    let members: Vec<MemberId> = ["ann", "bob", "cid"].iter().map(|name| world.member(name, 100)).collect();
    let hand = Hand { tally: &world.tally, runtime: &world.runtime, members: &members };
    let begin = |name: &str, players: &[usize]| {
        let id = ContestId::new(name).unwrap();
        let shape = Shape { fee: FEE, prizes: true, ordinal: true, each: false, division: None };
        change::create(&world.tally, &id, &ContestActor::SERVER, &spec(shape), None).unwrap();
        hand.act(&id, Op::Open, None, None).unwrap();
        for player in players {
            hand.act(&id, Op::Apply(*player), None, None).unwrap();
            hand.act(&id, Op::Accept(*player), None, None).unwrap();
        }
        hand.act(&id, Op::Start, None, None).unwrap();
        id
    };
    let (cup, off) = (begin("cup", &[0, 1]), begin("off", &[0]));
    for op in [Op::Score(0, 9), Op::Score(1, 5), Op::Finish, Op::Settle] {
        hand.act(&cup, op, None, None).unwrap();
    }
    hand.act(&off, Op::Cancel, None, None).unwrap();
    let no = |id: &ContestId| read::get(&world.tally, id).unwrap().no;
    Made { cup: no(&cup), off: no(&off), members }
}

fn of_members(made: &Made) -> Vec<Broken> {
    let [ann, cid] = [0, 2].map(|at| made.members[at]);
    let (name, no) = (player_of(ann), hex(made.cup));
    let name = name.as_str();
    let row = format!("contest = {no} AND player = '{name}'");
    let left = format!("entries {}/KRW/2: it is a fee of the contest cup, which has none here", ann.0);
    vec![
        fault(
            format!("DELETE FROM contest_members WHERE {row}"),
            &["contests cup: it counts 2 members, and there are 1", &left],
        ),
        fault(
            format!("UPDATE contest_members SET member = NULL WHERE {row}"),
            &[&format!("contest_members cup/{name}: it has no wallet"), &left],
        ),
        fault(
            format!("INSERT INTO contest_members VALUES ({no}, 'ghost', 9, NULL, {})", hex(cid.0)),
            &[
                "contests cup: it counts 2 members, and there are 3",
                "contest_members cup/ghost: its fee, 10, is no movement",
            ],
        ),
        // The same player's wallet twice.
        fault(
            format!("INSERT INTO contest_members VALUES ({no}, 'ghost', 9, NULL, {})", hex(ann.0)),
            &["contests cup: it counts 2 members, and there are 3", "its fee is there 2 times"],
        ),
    ]
}

fn of_prizes(made: &Made) -> Vec<Broken> {
    let ann = made.members[0];
    let name = player_of(ann);
    let (cup, off, name) = (hex(made.cup), hex(made.off), name.as_str());
    let (first, ghost) = (format!("contest = {cup} AND `no` = 0"), hex(GHOST));
    let left = "it is a prize of the contest cup, which has none here";
    vec![
        fault(
            format!("DELETE FROM contest_prizes WHERE {first}"),
            &["contests cup: 2 were to be paid, and there are 1", left],
        ),
        fault(
            format!("UPDATE contest_prizes SET transfer = NULL WHERE {first}"),
            &["contest_prizes cup/0: it was never paid", left],
        ),
        fault(
            format!("UPDATE contest_prizes SET transfer = NULL, unpaid = 'member_closed' WHERE {first}"),
            &["contest_prizes cup/0: it is marked member_closed, and its member is open: it is owed", left],
        ),
        fault(
            format!("UPDATE contest_prizes SET transfer = {ghost} WHERE {first}"),
            &[&format!("contest_prizes cup/{name}: its prize is another movement: ")],
        ),
        fault(
            format!("UPDATE contest_prizes SET amount = 100 WHERE {first}"),
            &[&format!("contest_prizes cup/{name}: its prize is 100, and its movement 101")],
        ),
        fault(
            format!(
                "INSERT INTO contest_prizes SELECT contest, 7, player, member, division, `rank`, currency, amount, \
                 transfer, unpaid FROM kept_contest_prizes WHERE {first}"
            ),
            &[
                "contests cup: 2 were to be paid, and there are 3",
                &format!("contest_prizes cup/{name}: its prize is there 2 times"),
            ],
        ),
        fault(
            format!("DELETE FROM contest_prizes WHERE contest = {off}"),
            &[
                "contests off: 1 were to be paid, and there are 0",
                "it is a refund of the contest off, which has none here",
            ],
        ),
    ]
}

fn of_movements(made: &Made) -> Vec<Broken> {
    let ann = made.members[0];
    let name = player_of(ann);
    let name = name.as_str();
    let entry = |kind: u8, of: &str| {
        format!("member = {} AND kind = {kind} AND reference = 'contest:{of}'", hex(ann.0))
    };
    vec![
        fault(
            format!("UPDATE entries SET reference = NULL WHERE {}", entry(6, "cup")),
            &[&format!("contest_members cup/{name}: its fee, 10, is no movement")],
        ),
        fault(
            format!("UPDATE entries SET reference = 'contest:cup' WHERE {}", entry(6, "off")),
            &[
                &format!("contest_members cup/{name}: its fee is 2 movements"),
                &format!("contest_members off/{name}: its fee, 10, is no movement"),
            ],
        ),
        fault(
            format!("UPDATE entries SET reference = 'contest:cup' WHERE {}", entry(8, "off")),
            &[
                &format!("contest_prizes off/{name}: its fee back, 10, is no movement"),
                "it is a refund of the contest cup, which has none here",
            ],
        ),
        fault(
            format!("UPDATE entries SET reference = 'contest:none' WHERE {}", entry(7, "cup")),
            &[
                &format!("contest_prizes cup/{name}: its prize, 101, is no movement"),
                "it is a prize of the contest none, which has none here",
            ],
        ),
    ]
}

#[test]
fn every_row_of_a_contest_that_was_broken_by_sql_is_named() {
    let server = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let (world, name) = in_a_database(server);
    let made = make(&world);
    assert_eq!(verify(&*world.tally.store).0.contests, 2);
    let faults = [of_members(&made), of_prizes(&made), of_movements(&made)].concat();
    let place = Place::Server(world, server, name);
    place.break_each(&TABLES, faults);
    let Place::Server(world, ..) = place else { return };
    // It was cancelled, and its fee is still to be paid back.
    world.tally.drain();
    let id = ContestId::new("off").unwrap();
    let record = world.tally.store.ledger().contest(&id).unwrap().unwrap();
    let contests = vec![(id, ContestRecord { work: ContestTask::Refund { after: None }, ..record })];
    let ledger =
        LedgerWriteSet { contests: ContestWriteSet { contests, ..<_>::default() }, ..<_>::default() };
    let changes = WriteSet { ledger, ..WriteSet::default() };
    world.tally.store.run(&ReadSet::default(), &mut |_| changes.clone()).unwrap();
    let (verified, found) = verify(&*world.tally.store);
    let player = player_of(made.members[0]);
    let debt = format!("contest off, player {}: fee back of 10 KRW, not paid yet", player.as_str());
    assert_eq!((owed(&verified), found), (vec![debt], Vec::new()));
}
