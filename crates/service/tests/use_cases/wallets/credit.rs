//! Promotional credit on real stores: a wrong clock, and `verify` on credit that was broken by SQL.

use crate::wallets::verify::{Broken, Place, fault, hex};
use crate::wallets::world::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tally_rules::Origin;
use tally_rules::instant::SECOND;
use tally_rules::ledger::{Amount, MemberId, TransferKind, Uuid, WalletKey};
use tally_service::ledger::holds::{self, NewHold};
use tally_store::sqlite::{Options, SqliteStore};

const HOUR: i64 = 3_600 * SECOND;

/// Credit that expires in that time.
fn promote(world: &World, to: MemberId, units: i64, micros: i64) {
    let expires_at = world.now().plus(micros);
    world.post(order(TransferKind::Promotion { to, expires_at }, units), None).unwrap();
}

/// What has not expired, what holds reserve of expired credit, and what has lapsed.
fn credit(world: &World, member: MemberId) -> (i64, i64, i64) {
    let wallets = world.tally.store.ledger().wallets_of(member).unwrap();
    let credits = wallets[0].1.credits.as_deref().cloned().unwrap_or_default();
    (credits.unexpired(), credits.covered, credits.lapsed)
}

/// Neither a request nor the background task expires credit by a wrong clock, also after a restart that cannot know the jump.
#[test]
fn a_wrong_clock_expires_no_credit() {
    let ahead = Arc::new(AtomicI64::new(0));
    let mut world = World::with_ahead(Kind::Sqlite, &ahead);
    let ann = world.member("ann", 10);
    let fee = |world: &World, units| world.post(order(TransferKind::Fee { from: ann }, units), None);
    promote(&world, ann, 50, HOUR);
    ahead.store(25 * HOUR, Ordering::SeqCst);
    for left in [45, 40] {
        world.tally.work().unwrap();
        assert!(world.tally.clock_jump().is_some(), "it is in doubt");
        fee(&world, 5).unwrap();
        assert_eq!(credit(&world, ann), (left, 0, 0));
        let folder = world.stop();
        let store = SqliteStore::open(&folder.path().join("t.db"), &Options::default()).unwrap();
        world = World::by(Arc::new(store), folder, &ahead);
    }
    ahead.store(0, Ordering::SeqCst);
    let folder = world.stop();
    let store = SqliteStore::open(&folder.path().join("t.db"), &Options::default()).unwrap();
    let world = World::on(Arc::new(store), folder);
    world.advance(HOUR);
    while world.tally.clock_jump().is_some() {
        world.advance(HOUR);
    }
    assert_eq!(refused(fee(&world, 11)).code(), "insufficient_funds");
    world.tally.work().unwrap();
    assert_eq!((credit(&world, ann), world.balance(ann)), ((0, 0, 0), 10));
    world.end(&[ann]);
}

/// The credit of a wallet as a store has it. An amount below 64 is one byte: its double.
fn stored(lapsed: u8, covered: u8, open: &[u8]) -> String {
    let open: Vec<String> =
        (1..).zip(open).map(|(at, left)| format!("{:02x}{:02x}", 2 * at, 2 * left)).collect();
    format!("x'01{:02x}{:02x}{:02x}{}'", 2 * lapsed, 2 * covered, open.len(), open.concat())
}

fn of_credit(ann: Uuid) -> Vec<Broken> {
    let set = |credit: String| format!("UPDATE wallets SET credits = {credit} WHERE member = {}", hex(ann));
    let wallet = format!("wallets {ann}/KRW: ");
    vec![
        fault(
            set(stored(0, 0, &[40, 1])),
            &[&format!("{wallet}its credit is 41 of a balance of 50, and its entries leave at most 40")],
        ),
        fault(set(stored(0, 12, &[])), &[&format!("{wallet}holds reserve 12, and 0 has lapsed")]),
        fault(set(stored(40, 0, &[])), &[&format!("{wallet}holds reserve 0, and 40 has lapsed")]),
        fault(
            format!("UPDATE entries SET kind = 1 WHERE kind = 13 AND member = {}", hex(ann)),
            &[
                &format!("{wallet}its credit is 35 of a balance of 50, and its entries leave at most 0"),
                "promotion of 40",
            ],
        ),
        // As with any wallet that cannot be read, what belongs to it has none.
        fault(
            set("x'0102'".into()),
            &[
                &format!("{wallet}it is damaged: credit that cannot be"),
                &format!("members {ann}: its wallet is not there"),
                &format!("entries {ann}/KRW/1: its wallet is not there"),
                &format!("holds {ann}/KRW: 11 is held of a wallet that is not there"),
                "totals BANK_PAYABLE/KRW: 50 is owed, and wallets have 0",
            ],
        ),
    ]
}

#[test]
fn every_kind_of_credit_that_was_broken_by_sql_is_named() {
    let make = |world: &World| {
        let ann = world.member("ann", 20);
        promote(world, ann, 40, HOUR);
        world.post(order(TransferKind::Fee { from: ann }, 5), None).unwrap();
        world.post(order(TransferKind::PlainWithdrawal { from: ann }, 5), None).unwrap();
        let wallet = WalletKey { member: ann, currency: code("KRW") };
        let amount = Amount::new(11).unwrap();
        let hold = NewHold { wallet, amount, expires_at: None, origin: Origin::default(), idempotency: None };
        world.wait(holds::place(&world.tally, hold)).unwrap();
        ann.0
    };
    for (place, ann) in Place::each(make) {
        place.break_each(&["wallets", "entries"], of_credit(ann));
    }
}
