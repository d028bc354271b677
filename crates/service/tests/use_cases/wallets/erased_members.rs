//! Erased members on real stores: prizes of periods, words of reversals before and after, and a reason of an earlier release.
//!
//! Not here: what an erasure shows over HTTP, kills and several servers (`tally/tests`).

use crate::wallets::contests::spec;
use crate::wallets::prizes::{DAY, again, daily, put, score, table};
use crate::wallets::world::*;
use tally_rules::audit::AuditAction;
use tally_rules::contest::definition::{ContestSpec, Fee};
use tally_rules::contest::member::UnpaidReason;
use tally_rules::contest::{ContestId, ContestRecord, ContestState, Payout};
use tally_rules::ledger::{Amount, Erasure, MemberId, ReversalLink, TransferId, TransferKind};
use tally_rules::{Actor, Origin, PlayerId};
use tally_service::audit;
use tally_service::contests::execute::ContestActor;
use tally_service::contests::{apply, change, pay_again, read as contests, start};
use tally_service::ledger::reversals::{self, NewReversal};
use tally_service::ledger::{read, transfers::NewTransfer};
use tally_service::members::change::MemberChange;
use tally_service::members::{self, NewMember, erase};
use tally_service::periods::{prizes, scheduler};
use tally_service::scan::ListRange;
use tally_store::{ContestWriteSet, LedgerWriteSet, PayoutKey, ReadSet, WriteSet};
use tally_testkit::wait_until;

/// A member whose player has a name of its own.
fn person(world: &World, name: &str) -> MemberId {
    let new = new_member(name);
    let member = tally_rules::ledger::Member { player: PlayerId::new(name).unwrap(), ..new.member };
    world.create(NewMember { member, player_is_id: false, idempotency: None }).unwrap().id
}

fn erased(world: &World, member: MemberId) {
    world.wait(erase(&world.tally, member, Origin::BACKGROUND, None)).unwrap();
    wait_until("the erasure is done", || {
        let row = members::find::by_id(&world.tally, member).unwrap();
        row.erasure(member) == Some(Erasure::Done)
    });
}

fn with_reason(world: &World, what: TransferKind, units: i64, reason: &str) -> TransferId {
    let origin = Origin { actor: Actor::CommandLine, reason: Some(reason.into()), metadata: None };
    let new = NewTransfer { order: order(what, units), origin, idempotency: None, mint_cap: None };
    let done = world.wait(tally_service::ledger::transfers::post(&world.tally, new)).unwrap();
    done.posted.entry.transfer
}

fn reversed(world: &World, transfer: TransferId, units: i64, reason: &str) -> TransferId {
    let new = NewReversal {
        transaction: transfer.0,
        amount: Some(Amount::new(units).unwrap()),
        origin: Origin { actor: Actor::CommandLine, reason: Some(reason.into()), metadata: None },
        idempotency: None,
    };
    world.wait(reversals::reverse(&world.tally, new)).unwrap().posted.entry.transfer
}

fn reason(world: &World, transfer: TransferId) -> Option<String> {
    world.wait(read::transfer(&world.tally, transfer.0)).unwrap().reason().map(str::to_owned)
}

#[test]
fn prizes_of_periods_get_the_pseudonym() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        let (ann, bob) = (person(&world, "ann-player"), person(&world, "bob-player"));
        put(&world, &world.tally, &daily(table(100), 12)).unwrap();
        score(&world, &world.tally, PlayerId::new("ann-player").unwrap(), 9);
        score(&world, &world.tally, PlayerId::new("bob-player").unwrap(), 5);
        world.advance(DAY);
        scheduler::close_due(&world.tally).unwrap();
        prizes::pay_due(&world.tally).unwrap();
        let rest = world.balance(ann);
        assert_eq!((rest, world.balance(bob)), (100, 100));
        world.post(order(TransferKind::Withdrawal { from: ann }, rest), None).unwrap();
        erased(&world, ann);
        let mut snapshot = world.tally.store.ledger().snapshot().unwrap();
        let payments = snapshot.payments(None, 9).unwrap();
        let rows = snapshot.payouts(payments[0].1.no, 0, 9).unwrap();
        let players: Vec<String> = rows.iter().map(|(_, row)| row.player.as_str().to_owned()).collect();
        assert_eq!(players, [ann.0.to_string(), "bob-player".into()]);
        drop(snapshot);
        world.end(&[ann, bob]);
    }
}

/// A winner that became a member later has a row without it.
#[test]
fn prizes_that_were_won_without_a_member_get_the_pseudonym() {
    let world = World::new(Kind::Sqlite);
    put(&world, &world.tally, &daily(table(100), 12)).unwrap();
    for name in ["ann-player", "bob-player"] {
        score(&world, &world.tally, PlayerId::new(name).unwrap(), 9);
    }
    world.advance(DAY);
    scheduler::close_due(&world.tally).unwrap();
    prizes::pay_due(&world.tally).unwrap();
    let ann = person(&world, "ann-player");
    erased(&world, ann);
    let mut snapshot = world.tally.store.ledger().snapshot().unwrap();
    let payments = snapshot.payments(None, 9).unwrap();
    let rows = snapshot.payouts(payments[0].1.no, 0, 9).unwrap();
    let players: Vec<String> = rows.iter().map(|(_, row)| row.player.as_str().to_owned()).collect();
    assert_eq!(players, [ann.0.to_string(), "bob-player".into()]);
    drop(snapshot);
    world.end(&[ann]);
}

#[test]
fn words_from_before_go_and_a_later_reversal_keeps_its_reason() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        let (ann, bob) = (person(&world, "ann-player"), world.member("bob", 0));
        with_reason(&world, TransferKind::Deposit { to: ann }, 100, "gift of ann");
        let gift = with_reason(&world, TransferKind::Transfer { from: ann, to: bob }, 60, "ann likes bob");
        let before = reversed(&world, gift, 10, "ann does not like bob");
        // Releases before this one kept the reason of a reversal in its link.
        let link = ReversalLink::Reverses { original: gift, reason: Some("ann was wrong".into()) };
        let ledger = LedgerWriteSet { reversals: vec![(before, link)], ..LedgerWriteSet::default() };
        let changes = WriteSet { ledger, ..WriteSet::default() };
        world.tally.store.run(&ReadSet::default(), &mut |_| changes.clone()).unwrap();
        let rest = world.balance(ann);
        world.post(order(TransferKind::Withdrawal { from: ann }, rest), None).unwrap();
        erased(&world, ann);
        assert_eq!((reason(&world, gift), reason(&world, before)), (None, None));
        let link = world.tally.store.ledger().reversal(before).unwrap();
        assert_eq!(link, Some(ReversalLink::Reverses { original: gift, reason: None }));
        world.advance(1_000_000);
        let after = reversed(&world, gift, 20, "chargeback 7");
        // Another request looks once more for words from before.
        erased(&world, ann);
        assert_eq!(reason(&world, after).as_deref(), Some("chargeback 7"));
        world.end(&[ann, bob]);
    }
}

/// Subjects and reasons of the payments in the audit log.
fn payments(world: &World) -> Vec<(String, Option<String>)> {
    let filter = audit::Filter { action: Some(AuditAction::PlayerPaid), ..audit::Filter::default() };
    let rows =
        audit::list(&world.tally, &filter, &ListRange { limit: 9, ..ListRange::default() }).unwrap().rows;
    let row = |(_, row): (_, tally_rules::audit::AuditEntry)| {
        (row.subject.to_string(), row.origin.reason.as_deref().map(str::to_owned))
    };
    rows.into_iter().map(row).collect()
}

fn emptied(world: &World, member: MemberId) {
    let rest = world.balance(member);
    world.post(order(TransferKind::Withdrawal { from: member }, rest), None).unwrap();
}

/// A cancelled contest that could not pay the fee of its only player back.
fn owes_a_fee(world: &World, member: MemberId, player: &PlayerId) -> ContestId {
    let (tally, id) = (&world.tally, ContestId::new("cup").unwrap());
    let fee = Fee { currency: code("KRW"), amount: Amount::new(7).unwrap() };
    let spec = ContestSpec { entry_fee: Some(Some(fee)), ..spec(false) };
    change::create(tally, &id, &ContestActor::SERVER, &spec, None).unwrap();
    change::open(tally, &id, &ContestActor::ADMIN, None).unwrap();
    apply::apply(tally, &id, &ContestActor::SERVER, player, None).unwrap();
    apply::decide(tally, &id, &ContestActor::ADMIN, std::slice::from_ref(player), true, None).unwrap();
    start::start(tally, &id, &ContestActor::ADMIN, None).unwrap();
    let record = contests::get(tally, &id).unwrap();
    let refund = Payout {
        player: player.clone(),
        member,
        division: None,
        rank: 0,
        currency: fee.currency,
        amount: fee.amount,
        paid: Some(Err(UnpaidReason::LimitExceeded)),
    };
    let payouts = vec![(PayoutKey { contest: record.no, no: 0 }, refund)];
    let rows = vec![(id.clone(), ContestRecord { state: ContestState::Cancelled, ..record })];
    let contests = ContestWriteSet { contests: rows, payouts, ..ContestWriteSet::default() };
    let ledger = LedgerWriteSet { contests, ..LedgerWriteSet::default() };
    let changes = WriteSet { ledger, ..WriteSet::default() };
    tally.store.run(&ReadSet::default(), &mut |_| changes.clone()).unwrap();
    id
}

/// The player of what is still owed keeps its name, so a payment after the erasure names it until the next one.
#[test]
fn a_fee_that_is_paid_back_after_the_erasure_gets_the_pseudonym_by_the_next_one() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        let (ann, player) = (person(&world, "ann-player"), PlayerId::new("ann-player").unwrap());
        world.post(order(TransferKind::Deposit { to: ann }, 50), None).unwrap();
        let id = owes_a_fee(&world, ann, &player);
        emptied(&world, ann);
        erased(&world, ann);
        let origin = Origin { actor: Actor::CommandLine, reason: Some("ann asked".into()), metadata: None };
        pay_again::pay_again(&world.tally, &id, &ContestActor::ADMIN.with(origin), None).unwrap();
        assert_eq!(world.balance(ann), 7);
        assert_eq!(payments(&world), [("ann-player".to_owned(), Some("ann asked".to_owned()))]);
        // The background may be at work on the first erasure; then a request leaves it the rows.
        wait_until("the payment has the pseudonym", || {
            erased(&world, ann);
            payments(&world) == [(ann.0.to_string(), None)]
        });
        world.tally.drain();
    }
}

/// The payment names the player as it was when it won.
#[test]
fn a_payment_under_an_earlier_name_of_the_player_gets_the_pseudonym() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        put(&world, &world.tally, &daily(table(100), 12)).unwrap();
        score(&world, &world.tally, PlayerId::new("bob-player").unwrap(), 9);
        world.advance(DAY);
        scheduler::close_due(&world.tally).unwrap();
        prizes::pay_due(&world.tally).unwrap();
        let bob = person(&world, "bob-player");
        assert_eq!(again(&world.tally, world.now(), "again").0.paid, 1);
        let player = Some(PlayerId::new("bobby").unwrap());
        let renamed = MemberChange { player, ..MemberChange::default() };
        world.wait(members::change(&world.tally, bob, renamed, Some(Origin::BACKGROUND), None)).unwrap();
        assert_eq!(payments(&world), [("bob-player".to_owned(), Some("why".to_owned()))]);
        emptied(&world, bob);
        erased(&world, bob);
        assert_eq!(payments(&world), [(bob.0.to_string(), None)]);
        world.tally.drain();
    }
}
