//! The review of a contest: bans and cancellation between its end and its prizes, the clock after it, and reversed fees and prizes.

use crate::wallets::contests::spec;
use crate::wallets::histories::dying::{Dying, End};
use crate::wallets::histories::paper::{FEE, Op};
use crate::wallets::histories::{Hand, player_of};
use crate::wallets::owed::running;
use crate::wallets::world::*;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Barrier};
use tally_rules::audit::{AuditAction, AuditEntry};
use tally_rules::contest::definition::ContestSpec;
use tally_rules::contest::member::UnpaidReason;
use tally_rules::contest::record::ContestTask;
use tally_rules::contest::{ContestId, ContestRight, ContestState, Payout};
use tally_rules::ledger::{Amount, EntryKind, MemberId, TransferId, WalletKey};
use tally_rules::score::ScoreInput;
use tally_rules::{Actor, Origin, PlayerId, Rejection};
use tally_service::contests::execute::{ActingAs, ContestActor};
use tally_service::contests::{change, correct, finish, preview, read, scheduler, settle};
use tally_service::ledger::reversals::{self, NewReversal};
use tally_service::scan::ListRange;
use tally_service::{Failure, Tally, audit, owed};

const SECOND: i64 = 1_000_000;

fn cup() -> ContestId {
    ContestId::new("cup").unwrap()
}

fn hand<'a>(world: &'a World, tally: &'a Arc<Tally>, members: &'a [MemberId]) -> Hand<'a> {
    Hand { tally, runtime: &world.runtime, members }
}

/// A contest that is over; the first member has the best score.
fn finished(world: &World, id: &ContestId, spec: &ContestSpec, members: &[MemberId]) {
    running(world, id, spec, members);
    let hand = hand(world, &world.tally, members);
    for player in 0..members.len() {
        hand.act(id, Op::Score(player, 9 - player as i64), None, None).unwrap();
    }
    hand.act(id, Op::Finish, None, None).unwrap();
}

fn balances(world: &World, members: &[MemberId]) -> Vec<i64> {
    members.iter().map(|member| world.balance(*member)).collect()
}

fn reverse(world: &World, transfer: TransferId, units: Option<i64>) -> Result<(), Failure> {
    let (amount, origin) = (units.map(|units| Amount::new(units).unwrap()), Origin::default());
    let new = NewReversal { transaction: transfer.0, amount, origin, idempotency: None };
    world.wait(reversals::reverse(&world.tally, new)).map(drop)
}

/// The transfer of the fee that a member paid.
fn fee_of(world: &World, member: MemberId) -> TransferId {
    let wallet = WalletKey { member, currency: code("KRW") };
    let entries = world.tally.store.ledger().history(wallet, 1..9).unwrap();
    entries.into_iter().find(|(_, entry)| entry.kind == EntryKind::Fee).expect("it has paid").1.transfer
}

/// The process ends after each step of a settling, and the next one goes on. The act and its key are those of the first step.
#[test]
fn a_settling_that_dies_at_any_step_goes_on() {
    for (steps, work) in [(1, ContestTask::Determine), (2, ContestTask::Pay { done: 0 })] {
        for kind in [Kind::Sqlite, Kind::MariaDb] {
            let world = World::new(kind);
            let members = ["ann", "bob", "cid"].map(|name| world.member(name, 50));
            finished(&world, &cup(), &spec(true), &members);
            hand(&world, &world.tally, &members).act(&cup(), Op::Ban(0, true), None, None).unwrap();
            let store = Arc::clone(&world.tally.store);
            world.tally.drain();
            let dying = Dying::new(Arc::clone(&store));
            let now = Arc::new(AtomicI64::new(world.now().0));
            let process = start(Arc::clone(&dying) as Arc<_>, &now, settings()).unwrap();
            let (boss, key) = (ActingAs::Admin.by(Actor::CommandLine), idempotency("settle", 1));
            dying.arm(steps, End::Before);
            settle::settle(&process, &cup(), &boss, key.as_ref()).unwrap();
            let left = store.ledger().contest(&cup()).unwrap().unwrap();
            assert_eq!((left.state, &left.work), (ContestState::Finished, &work));
            drop(process);
            let world = World::on(store, tempfile::tempdir().unwrap());
            let again = settle::settle(&world.tally, &cup(), &boss, key.as_ref()).unwrap();
            assert_eq!((again.record.state, again.replayed), (ContestState::Settled, true));
            assert_eq!(balances(&world, &members), [50 - FEE, 50 - FEE + 101, 50 - FEE + 30]);
            let acts = audit::Filter { subject: Some("cup".into()), ..audit::Filter::default() };
            let acts = audit::list(&world.tally, &acts, &ListRange { limit: 99, ..ListRange::default() })
                .unwrap()
                .rows;
            let settled = acts.iter().filter(|(_, row)| row.action == AuditAction::ContestSettled);
            assert_eq!(settled.map(|(_, row)| row.origin.actor).collect::<Vec<_>>(), [Actor::CommandLine]);
            world.end(&members);
        }
    }
}

/// The review is closed before the prizes are known: from then on the leaderboard itself refuses bans.
#[test]
fn while_prizes_are_determined_nothing_changes_them() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        let members = ["ann", "bob"].map(|name| world.member(name, 50));
        finished(&world, &cup(), &spec(false), &members);
        let store = Arc::clone(&world.tally.store);
        world.tally.drain();
        let dying = Dying::new(Arc::clone(&store));
        let now = Arc::new(AtomicI64::new(world.now().0));
        let process = start(Arc::clone(&dying) as Arc<_>, &now, settings()).unwrap();
        // The prizes are not stored, and the process lives on.
        dying.arm(1, End::LostUndone);
        settle::settle(&process, &cup(), &ContestActor::ADMIN, None).unwrap();
        let late = finish::cancel(&process, &cup(), &ContestActor::ADMIN, None);
        assert_eq!(refused(late), Rejection::ContestState(ContestState::Settled));
        let late = preview::preview(&process, &cup(), &ContestActor::ADMIN, (0, 9)).map(drop);
        assert_eq!(refused(late), Rejection::ContestState(ContestState::Settled));
        let (board, first) = (cup().board(None), player_of(members[0]));
        let late =
            tally_service::players::erase::ban(&process, &board, first, true, Origin::BACKGROUND, None);
        assert_eq!(refused(world.wait(late)), Rejection::ContestState(ContestState::Settled));
        scheduler::do_due(&process).unwrap();
        assert_eq!(read::get(&process, &cup()).unwrap().state, ContestState::Settled);
        process.drain();
        let world = World::on(store, tempfile::tempdir().unwrap());
        assert_eq!(balances(&world, &members), [151, 80]);
        world.end(&members);
    }
}

/// A ban that is answered before the settling counts, and one that is rejected does not.
#[test]
fn a_ban_beside_a_settling_counts_exactly_if_it_is_done() {
    let world = World::new(Kind::Sqlite);
    let members = ["ann", "bob"].map(|name| world.member(name, 0));
    for round in 0..40 {
        let id = ContestId::new(&format!("cup-{round}")).unwrap();
        finished(&world, &id, &spec(false), &members);
        let both = Barrier::new(2);
        let banned = std::thread::scope(|scope| {
            let settling = scope.spawn(|| {
                both.wait();
                settle::settle(&world.tally, &id, &ContestActor::ADMIN, None).unwrap()
            });
            both.wait();
            let hand = hand(&world, &world.tally, &members);
            let banned = hand.act(&id, Op::Ban(0, true), None, None);
            assert_eq!(settling.join().unwrap().record.state, ContestState::Settled);
            banned
        });
        let prizes = read::prizes(&world.tally, &id, 0, 9).unwrap().rows;
        let first = prizes[0].1.player.clone();
        match banned {
            Ok(()) => assert_eq!((first, prizes.len()), (player_of(members[1]), 1)),
            banned => {
                assert_eq!(refused(banned), Rejection::ContestState(ContestState::Settled));
                assert_eq!((first, prizes.len()), (player_of(members[0]), 2));
            }
        }
    }
    world.end(&members);
}

/// The record is set, whatever the update rule says, and its instant stays.
#[test]
fn a_corrected_score_decides_the_prizes() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        let members = ["ann", "bob", "cid"].map(|name| world.member(name, 50));
        let boss = ActingAs::Admin.by(Origin {
            actor: Actor::CommandLine,
            reason: Some("why".into()),
            metadata: None,
        });
        let cup = cup();
        let correct = |actor: &ContestActor, player: &PlayerId, score, key| {
            let (score, idempotency) = ((ScoreInput::Int(score), None), idempotency(key, 1));
            let done = correct::correct(&world.tally, &cup, actor, player, score, idempotency);
            world.wait(done).map(|(_, done)| done)
        };
        let [ann, bob, cid] = members.map(player_of);
        running(&world, &cup, &spec(true), &members);
        let hand = hand(&world, &world.tally, &members);
        for op in [Op::Score(0, 9), Op::Score(1, 8)] {
            hand.act(&cup, op, None, None).unwrap();
        }
        let early = refused(correct(&boss, &ann, 3, "early"));
        assert_eq!(early, Rejection::ContestState(ContestState::Running));
        hand.act(&cup, Op::Finish, None, None).unwrap();
        assert_eq!(
            refused(correct(&ContestActor::SERVER, &ann, 3, "server")),
            Rejection::Forbidden(ContestRight::Staff)
        );
        let nobody = PlayerId::new("nobody").unwrap();
        assert_eq!(refused(correct(&boss, &nobody, 3, "nobody")), Rejection::PlayerNotFound);
        let done = correct(&boss, &ann, 3, "ann").unwrap();
        let previous = done.previous.expect("it had a score");
        assert_eq!((previous.record.score, previous.rank), (9, Some(1)));
        assert_eq!((done.record.score, done.rank, done.replayed), (3, Some(2), false));
        assert_eq!(done.record.at, previous.record.at);
        // One that never was submitted, of a player that is banned meanwhile.
        hand.act(&cup, Op::Ban(2, true), None, None).unwrap();
        let new = correct(&boss, &cid, 5, "cid").unwrap();
        assert_eq!((new.previous, new.rank), (None, None));
        hand.act(&cup, Op::Ban(2, false), None, None).unwrap();
        assert_eq!(correct(&boss, &cid, 5, "cid").unwrap().rank, Some(2));
        settle::settle(&world.tally, &cup, &ContestActor::ADMIN, None).unwrap();
        let late = refused(correct(&boss, &bob, 1, "late"));
        assert_eq!(late, Rejection::ContestState(ContestState::Settled));
        let again = correct(&boss, &ann, 3, "ann").unwrap();
        assert_eq!((again.record, again.replayed), (done.record, true));
        assert_eq!(balances(&world, &members), [30, 101, 30].map(|prize| 50 - FEE + prize));
        let acts = audit::Filter { action: Some(AuditAction::ScoreCorrected), ..audit::Filter::default() };
        let acts =
            audit::list(&world.tally, &acts, &ListRange { limit: 9, ..ListRange::default() }).unwrap().rows;
        let act = |row: &AuditEntry| {
            [Some(&row.subject), row.detail.as_ref(), row.origin.reason.as_ref()]
                .map(|text| text.unwrap().to_string())
        };
        let mut acts: Vec<_> = acts.iter().map(|(_, row)| act(row)).collect();
        acts.sort_unstable();
        let mut wanted = [(&ann, "9 to 3"), (&cid, "none to 5")]
            .map(|(player, scores)| [player.as_str().into(), format!("contest:cup: {scores}"), "why".into()]);
        wanted.sort_unstable();
        assert_eq!(acts, wanted);
        world.end(&members);
    }
}

#[test]
fn the_clock_settles_after_the_review() {
    let world = World::new(Kind::Sqlite);
    let members = ["ann", "bob"].map(|name| world.member(name, 50));
    let tally = &world.tally;
    let review = |seconds| ContestSpec { review_s: Some(seconds), ..ContestSpec::default() };
    finished(&world, &cup(), &ContestSpec { review_s: Some(Some(60)), ..spec(true) }, &members);
    let state_after = |seconds: i64| {
        world.advance(seconds * SECOND);
        scheduler::do_due(tally).unwrap();
        read::get(tally, &cup()).unwrap().state
    };
    assert_eq!(state_after(59), ContestState::Finished);
    // The review takes longer.
    change::patch(tally, &cup(), &ContestActor::SERVER, &review(Some(90)), None).unwrap();
    assert_eq!(state_after(30), ContestState::Finished);
    assert_eq!(state_after(1), ContestState::Settled);
    let late = change::patch(tally, &cup(), &ContestActor::SERVER, &review(None), None);
    assert_eq!(refused(late), Rejection::ContestState(ContestState::Settled));
    assert_eq!(balances(&world, &members), [50 - FEE + 101, 50 - FEE + 30]);
    world.end(&members);
}

/// What was reversed of a fee is not paid back again, whether the contest runs or is reviewed.
#[test]
fn a_reversed_fee_is_not_paid_back_again() {
    for (kind, ends) in [(Kind::Sqlite, false), (Kind::MariaDb, true), (Kind::MySql, false)] {
        let world = World::new(kind);
        let members = ["ann", "bob", "cid"].map(|name| world.member(name, 50));
        match ends {
            true => finished(&world, &cup(), &spec(true), &members),
            false => drop(running(&world, &cup(), &spec(true), &members)),
        }
        let fees = members.map(|member| fee_of(&world, member));
        reverse(&world, fees[0], None).unwrap();
        reverse(&world, fees[1], Some(3)).unwrap();
        reverse(&world, fees[1], Some(1)).unwrap();
        assert_eq!(balances(&world, &members), [50, 44, 40]);
        finish::cancel(&world.tally, &cup(), &ContestActor::ADMIN, None).unwrap();
        assert_eq!(balances(&world, &members), [50, 50, 50]);
        let rows = read::refunds(&world.tally, &cup(), 0, 9).unwrap().rows;
        let paid = |(_, row): &(u32, Payout)| (row.amount.units(), row.paid.unwrap().err());
        let whole = (FEE, Some(UnpaidReason::Reversed));
        assert_eq!(rows.iter().map(paid).collect::<Vec<_>>(), [whole, (FEE - 4, None), (FEE, None)]);
        assert_eq!(owed::list(&world.tally, None, 9).unwrap().rows, []);
        // The contest has paid the rest.
        for fee in fees {
            assert_eq!(refused(reverse(&world, fee, None)), Rejection::ContestState(ContestState::Cancelled));
        }
        // A refund can be taken back, and the contest knows.
        let refund = rows[2].1.paid.unwrap().unwrap();
        reverse(&world, refund, Some(2)).unwrap();
        let reversed = read::reversed(&world.tally, &cup(), &rows).unwrap();
        assert_eq!(reversed.into_iter().collect::<Vec<_>>(), [(refund, 2)]);
        world.end(&members);
    }
}

#[test]
fn what_is_still_to_be_paid_back_is_owed_without_its_reversals() {
    let world = World::new(Kind::Sqlite);
    let members = ["ann", "bob"].map(|name| world.member(name, 50));
    running(&world, &cup(), &spec(true), &members);
    let store = Arc::clone(&world.tally.store);
    reverse(&world, fee_of(&world, members[0]), Some(4)).unwrap();
    reverse(&world, fee_of(&world, members[1]), None).unwrap();
    world.tally.drain();
    let dying = Dying::new(Arc::clone(&store));
    let now = Arc::new(AtomicI64::new(world.now().0));
    let process = start(Arc::clone(&dying) as Arc<_>, &now, settings()).unwrap();
    dying.arm(1, End::Before);
    finish::cancel(&process, &cup(), &ContestActor::ADMIN, None).unwrap();
    let debts = owed::list(&process, None, 9).unwrap().rows;
    let debts: Vec<_> = debts.iter().map(|debt| (debt.member, debt.amount)).collect();
    assert_eq!(debts, [(Some(members[0]), FEE - 4)]);
    drop(process);
    let world = World::on(store, tempfile::tempdir().unwrap());
    scheduler::do_due(&world.tally).unwrap();
    assert_eq!(balances(&world, &members), [50, 50]);
    world.end(&members);
}

#[test]
fn a_prize_is_clawed_back_and_its_contest_knows() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        let members = ["ann", "bob"].map(|name| world.member(name, 50));
        finished(&world, &cup(), &spec(true), &members);
        settle::settle(&world.tally, &cup(), &ContestActor::ADMIN, None).unwrap();
        let rows = read::prizes(&world.tally, &cup(), 0, 9).unwrap().rows;
        let none = read::reversed(&world.tally, &cup(), &rows).unwrap();
        assert_eq!(none.len(), 0);
        let prize = rows[0].1.paid.unwrap().unwrap();
        reverse(&world, prize, Some(100)).unwrap();
        reverse(&world, prize, None).unwrap();
        assert_eq!(refused(reverse(&world, prize, None)), Rejection::ExceedsReversible { left: 0 });
        // The fee of a contest that was not cancelled is taken back like any transfer.
        reverse(&world, fee_of(&world, members[0]), None).unwrap();
        let reversed = read::reversed(&world.tally, &cup(), &rows).unwrap();
        assert_eq!(reversed.into_iter().collect::<Vec<_>>(), [(prize, 101)]);
        assert_eq!(balances(&world, &members), [50, 50 - FEE + 30]);
        assert_eq!(owed::list(&world.tally, None, 9).unwrap().rows, []);
        world.end(&members);
    }
}
