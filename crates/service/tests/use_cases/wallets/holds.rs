//! Holds: made, captured, voided, and ended by time.

use crate::wallets::world::*;
use tally_rules::Rejection;
use tally_rules::instant::SECOND;
use tally_rules::ledger::hold::{End, Ending};
use tally_rules::ledger::{Amount, MemberId, WalletKey};
use tally_service::Failure;
use tally_service::ledger::holds::{self, HoldDone, NewHold};

fn place(
    world: &World,
    member: MemberId,
    units: i64,
    seconds: Option<i64>,
    key: &str,
) -> Result<HoldDone, Failure> {
    let wallet = WalletKey { member, currency: code("KRW") };
    let expires_at = seconds.map(|seconds| world.now().plus(seconds * SECOND));
    let (amount, identity) = (Amount::new(units).unwrap(), identity(key, 1));
    world.wait(holds::place(&world.tally, NewHold { wallet, amount, expires_at, identity }))
}

fn end(world: &World, done: &HoldDone, ending: Ending, key: &str) -> Result<HoldDone, Failure> {
    world.wait(holds::end(&world.tally, done.id, ending, identity(key, 1)))
}

#[test]
fn a_hold_is_captured_once_and_told_as_it_was() {
    let world = World::new(Kind::Sqlite);
    let (ann, bob) = (world.member("ann", 100), world.member("bob", 0));
    let hold = place(&world, ann, 60, None, "h").unwrap();
    assert_eq!(refused(world.transfer(ann, bob, 41, None)), Rejection::InsufficientFunds);
    let capture = Ending::Capture { amount: Some(Amount::new(20).unwrap()), to: Some(bob) };
    let captured = end(&world, &hold, capture, "c").unwrap();
    assert!(matches!(captured.hold.end, Some((End::Captured { amount: 20, .. }, _))), "{captured:?}");
    assert_eq!((world.balance(ann), world.balance(bob)), (80, 20));
    // The same again, under its key and under another; and what was said at first of the hold itself.
    assert!(end(&world, &hold, capture, "c").unwrap().replayed);
    assert_eq!(end(&world, &hold, capture, "other").unwrap().hold, captured.hold);
    let again = place(&world, ann, 60, None, "h").unwrap();
    assert_eq!((again.id, again.hold, again.replayed), (hold.id, hold.hold, true));
    assert_eq!(refused(end(&world, &hold, Ending::Void, "v")), Rejection::HoldResolved);
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
        assert_eq!(refused(other), Rejection::InsufficientFunds);
        world.advance(10 * SECOND);
        assert_eq!(refused(end(&world, &hold, Ending::Void, "v")), Rejection::HoldExpired);
        // Somebody looks every second.
        while place(&world, ann, 100, None, "j").is_err() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let hold = world.wait(holds::find(&world.tally, hold.id)).unwrap();
        assert!(matches!(hold.end, Some((End::Expired, _))), "{hold:?}");
        world.end(&[ann]);
    }
}
