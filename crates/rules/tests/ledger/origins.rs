//! The actor and the reason of transfers and holds: those of the request that is decided, and no others.

use crate::world::{World, code, member};
use tally_rules::clock::DecisionTime;
use tally_rules::ledger::hold::Ending;
use tally_rules::ledger::limits::CurrencyLimits;
use tally_rules::ledger::working_set::LedgerWorkingSet;
use tally_rules::ledger::{
    Amount, HoldId, ReversalRequest, TransferId, TransferKind, TransferRequest, WalletKey,
};
use tally_rules::{Actor, KeyId, Micros, Origin};

fn origin(number: u8, reason: Option<&str>) -> Origin {
    Origin { actor: Actor::Key(KeyId([number; 6])), reason: reason.map(Into::into), metadata: None }
}

fn deposit(book: &mut LedgerWorkingSet<'_>, id: TransferId, now: Micros) {
    let what = TransferKind::Deposit { to: member(0) };
    let amount = Amount::new(100).unwrap();
    book.post(id, &TransferRequest { what, currency: code("KRW"), amount, reference: None }, now).unwrap();
}

#[test]
fn each_request_of_a_batch_leaves_its_own_origin() {
    let mut world = World::new(CurrencyLimits::default());
    let now = world.now;
    let ids = world.transact(|book, id| {
        book.open(member(0));
        let ids = [id(), id(), id()].map(TransferId);
        for (id, origin) in ids.iter().zip([origin(1, Some("gift")), origin(2, None), Origin::BACKGROUND]) {
            book.set_origin(origin);
            deposit(book, *id, now);
        }
        ids
    });
    let found = ids.map(|id| world.transfers[&id].origin.clone());
    assert_eq!(found, [origin(1, Some("gift")), origin(2, None), Origin::BACKGROUND]);
}

#[test]
fn a_reversal_has_its_own_origin_and_the_original_keeps_its_own() {
    let mut world = World::new(CurrencyLimits::default());
    let now = world.now;
    let made = world.transact(|book, id| {
        book.open(member(0));
        let made = TransferId(id());
        book.set_origin(origin(1, Some("gift")));
        deposit(book, made, now);
        made
    });
    let transfer = world.transfers[&made].clone();
    let request = ReversalRequest { original: made, transfer, amount: None, reference: None };
    let back = world.transact(|book, id| {
        let back = TransferId(id());
        book.set_origin(origin(2, Some("chargeback")));
        book.reverse(back, &request).unwrap();
        back
    });
    assert_eq!(world.transfers[&made].origin, origin(1, Some("gift")));
    assert_eq!(world.transfers[&back].origin, origin(2, Some("chargeback")));
}

#[test]
fn a_hold_knows_who_made_it_and_who_ended_it() {
    let mut world = World::new(CurrencyLimits::default());
    let (now, wallet) = (world.now, WalletKey { member: member(0), currency: code("KRW") });
    let time = DecisionTime::trusted(now);
    let holds = world.transact(|book, id| {
        book.open(member(0));
        deposit(book, TransferId(id()), now);
        book.set_origin(origin(1, Some("entry")));
        [0, 0, 1].map(|later| {
            let hold = HoldId(id());
            book.place(hold, wallet, Amount::new(10).unwrap(), Some(now.plus(later + 1)), now).unwrap();
            hold
        })
    });
    assert_eq!(world.holds[&holds[0]].ended_by, Origin::default(), "it is open");
    let transfer = world.transact(|book, id| {
        let transfer = TransferId(id());
        book.set_origin(origin(2, Some("won")));
        book.end(holds[0], Ending::Capture { amount: None, to: None }, transfer, time).unwrap();
        book.set_origin(origin(3, None));
        book.end(holds[1], Ending::Void, TransferId(id()), time).unwrap();
        // Repeating an end changes nothing, whoever repeats it.
        book.end(holds[0], Ending::Capture { amount: None, to: None }, TransferId(id()), time).unwrap();
        book.set_origin(Origin::BACKGROUND);
        assert!(book.expire(holds[2], now.plus(9)).is_some());
        transfer
    });
    let ends = holds.map(|hold| world.holds[&hold].ended_by.clone());
    assert_eq!(ends, [origin(2, Some("won")), origin(3, None), Origin::BACKGROUND]);
    assert_eq!(world.transfers[&transfer].origin, origin(2, Some("won")));
    assert!(holds.iter().all(|hold| world.holds[hold].origin == origin(1, Some("entry"))));
}
