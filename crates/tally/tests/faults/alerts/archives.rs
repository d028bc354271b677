//! A month of the ledger that cannot be archived: where its folder should be is a file. Then its clock jumps, and no row ends.

use super::World;
use crate::TALLY;
use serde_json::json;
use std::time::{SystemTime, UNIX_EPOCH};
use tally_rules::Micros;
use tally_rules::ledger::Month;
use tally_testkit::{TestTally, WallClock};

/// Longer than a month, and two hours.
const DAYS: i64 = 40 * 24 * 3_600;
const TWO_HOURS: i64 = 7_200_000_000;
/// More than the clock of this server may jump, which is more than those days.
const IN_DOUBT: i64 = 3_000 * 3_600;

/// A server with a transfer of a past month, and its clock, which is right.
pub(super) fn with_a_past_month() -> (TestTally, WallClock) {
    let mut clock = WallClock::at_present();
    clock.jump(-DAYS);
    let mut server = TestTally::stopped(TALLY);
    clock.set_for(&mut server);
    server.set("TALLY_STORE_URL", "");
    server.set("TALLY_CLOCK_JUMP_MAX", "2000h");
    server.set("TALLY_CLOCK_STEADY", "24h");
    server.allow(" WARN ");
    server.allow(" ERROR ");
    server.restart();
    let mut client = server.local();
    let member = client.post("/v1/members", &json!({"login_id": "ann", "name": "Ann"})).expect(201);
    client.post("/v1/deposits", &json!({"to": member["id"], "amount": 1})).expect(201);
    server.terminate();
    clock.jump(DAYS);
    server.restart();
    server.stay();
    (server, clock)
}

pub(super) fn cannot_be_written(world: &mut World, tally: &TestTally, clock: &mut WallClock) {
    std::fs::write(tally.data().join("archive"), b"").expect("the file can be written");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970").as_micros();
    let now = Micros(i64::try_from(now).expect("it is before 290000"));
    let before = Month::of(now.plus(-TWO_HOURS)).to_string();
    tally.local().post("/v1/ledger/archives", &json!({"before": before})).expect(202);
    world.fire("archives", &["TallyArchiveFails"]);
    // A clock in doubt lets no row end. The alert takes two minutes, so it is waited for at the end.
    clock.jump(IN_DOUBT);
}
