//! Holds: made, captured, voided, and ended by time.

use crate::wallets::world::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tally_rules::instant::SECOND;
use tally_rules::ledger::hold::{Ending, HoldEnd, HoldState};
use tally_rules::ledger::{Amount, MemberId, WalletKey};
use tally_rules::{Origin, Rejection};
use tally_service::Failure;
use tally_service::ledger::holds::{self, HoldDone, NewHold};
use tally_testkit::wait_until;

fn place(
    world: &World,
    member: MemberId,
    units: i64,
    seconds: Option<i64>,
    key: &str,
) -> Result<HoldDone, Failure> {
    let wallet = WalletKey { member, currency: code("KRW") };
    let expires_at = seconds.map(|seconds| world.now().plus(seconds * SECOND));
    let (amount, idempotency) = (Amount::new(units).unwrap(), idempotency(key, 1));
    world.wait(holds::place(
        &world.tally,
        NewHold { wallet, amount, expires_at, origin: Origin::default(), idempotency },
    ))
}

fn end(world: &World, done: &HoldDone, ending: Ending, key: &str) -> Result<HoldDone, Failure> {
    world.wait(holds::end(&world.tally, done.id, ending, Origin::default(), idempotency(key, 1)))
}

#[test]
fn a_hold_is_captured_once_and_told_as_it_was() {
    let world = World::new(Kind::Sqlite);
    let (ann, bob) = (world.member("ann", 100), world.member("bob", 0));
    let hold = place(&world, ann, 60, None, "h").unwrap();
    let short = Rejection::InsufficientFunds { needed: 41, available: 40 };
    assert_eq!(refused(world.transfer(ann, bob, 41, None)), short);
    let capture = Ending::Capture { amount: Some(Amount::new(20).unwrap()), to: Some(bob) };
    let captured = end(&world, &hold, capture, "c").unwrap();
    assert!(matches!(captured.hold.end, Some((HoldEnd::Captured { amount: 20, .. }, _))), "{captured:?}");
    assert_eq!((world.balance(ann), world.balance(bob)), (80, 20));
    // The same again, under its key and under another; and the first reply for the hold itself.
    assert!(end(&world, &hold, capture, "c").unwrap().replayed);
    assert_eq!(end(&world, &hold, capture, "other").unwrap().hold, captured.hold);
    let again = place(&world, ann, 60, None, "h").unwrap();
    assert_eq!((again.id, again.hold, again.replayed), (hold.id, hold.hold.clone(), true));
    let rejection = refused(end(&world, &hold, Ending::Void, "v"));
    assert!(matches!(rejection, Rejection::HoldResolved(HoldState::Captured, _)), "{rejection:?}");
    assert_eq!((world.balance(ann), world.balance(bob)), (80, 20));
    world.end(&[ann, bob]);
}

#[test]
fn what_a_hold_held_is_free_when_its_time_has_run_out() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        let ann = world.member("ann", 100);
        let hold = place(&world, ann, 100, Some(10), "h").unwrap();
        let other = place(&world, ann, 1, None, "i");
        assert_eq!(refused(other), Rejection::InsufficientFunds { needed: 1, available: 0 });
        world.advance(10 * SECOND);
        assert_eq!(refused(end(&world, &hold, Ending::Void, "v")), Rejection::HoldExpired);
        // A background task checks every second.
        wait_until("the hold has expired", || place(&world, ann, 100, None, "j").is_ok());
        let hold = world.wait(holds::find(&world.tally, hold.id)).unwrap();
        assert!(matches!(hold.end, Some((HoldEnd::Expired, _))), "{hold:?}");
        world.end(&[ann]);
    }
}

/// A hold that is due by a wrong clock only is open: its money is held, and it can be captured and voided.
#[test]
fn a_wrong_clock_ends_no_hold_and_refuses_no_end() {
    const HOUR: i64 = 3_600 * SECOND;
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let ahead = Arc::new(AtomicI64::new(0));
        let world = World::with_ahead(kind, &ahead);
        let (ann, bob) = (world.member("ann", 100), world.member("bob", 0));
        let [kept, captured, voided] = [("kept", 60), ("captured", 30), ("voided", 10)]
            .map(|(key, units)| place(&world, ann, units, Some(3_600), key).unwrap());
        let find = |hold: &HoldDone| world.wait(holds::find(&world.tally, hold.id)).unwrap();
        let is_held = || {
            // The background task checks every second; this is one more check.
            world.tally.work().unwrap();
            let all = world.transfer(ann, bob, 1, None);
            find(&kept).end.is_none() && refused(all).code() == "insufficient_funds"
        };
        assert!(is_held());
        ahead.store(25 * HOUR, Ordering::SeqCst);
        assert!(is_held(), "an expiry that is due by the wrong clock only");
        assert_eq!(world.tally.clock_jump(), Some(25 * HOUR));
        let capture = Ending::Capture { amount: None, to: Some(bob) };
        let done = end(&world, &captured, capture, "c").unwrap();
        assert!(matches!(done.hold.end, Some((HoldEnd::Captured { amount: 30, .. }, _))), "{done:?}");
        let done = end(&world, &voided, Ending::Void, "v").unwrap();
        assert!(matches!(done.hold.end, Some((HoldEnd::Voided, _))), "{done:?}");
        assert_eq!((world.balance(ann), world.balance(bob)), (70, 30));
        // What was voided is free, and the rest is held.
        world.transfer(ann, bob, 10, None).unwrap();
        assert!(is_held());
        ahead.store(0, Ordering::SeqCst);
        assert_eq!(world.tally.clock_jump(), None);
        assert!(is_held(), "the jump was undone");
        world.advance(HOUR);
        assert_eq!(refused(end(&world, &kept, Ending::Void, "late")), Rejection::HoldExpired);
        world.tally.work().unwrap();
        assert!(matches!(find(&kept).end, Some((HoldEnd::Expired, _))));
        world.transfer(ann, bob, 60, None).unwrap();
        world.end(&[ann, bob]);
    }
}
