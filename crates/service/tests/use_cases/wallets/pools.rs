//! Pools of contests: amounts to the unit, refunds, unpaid and reversed prizes, kills between the steps, and who reaches their wallets.
//!
//! Each test ends with the proof that debits equal credits, and with `verify`. Not here: the amounts themselves (`rules`), and random
//! stories (`story`).

use crate::wallets::histories::dying::{Dying, End};
use crate::wallets::histories::paper::{FEE, Op};
use crate::wallets::histories::{Hand, amount, player_of};
use crate::wallets::owed::running;
use crate::wallets::verify::{Place, fault, hex, in_a_database};
use crate::wallets::world::*;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use tally_rules::contest::definition::{ContestSpec, Fee};
use tally_rules::contest::pool::{PoolPrize, PoolResult, PrizePool};
use tally_rules::contest::record::ContestTask;
use tally_rules::contest::{ContestId, ContestState, Payout, Prize};
use tally_rules::definition::Ranking;
use tally_rules::ledger::account::Account;
use tally_rules::ledger::entry::EntryKind;
use tally_rules::ledger::hold::Ending;
use tally_rules::ledger::money::{AMOUNT_MAX, BALANCE_MAX};
use tally_rules::ledger::{Amount, MemberId, TransferId, TransferKind, WalletKey};
use tally_rules::{Definition, Origin, Rejection};
use tally_service::contests::execute::ContestActor;
use tally_service::contests::{finish, pay_again, preview, read, scheduler, settle};
use tally_service::ledger::holds::{self, NewHold};
use tally_service::ledger::reversals::{self, NewReversal};
use tally_service::{Failure, members, owed};
use tally_testkit::{DatabaseKind, ScratchDatabase};

/// In parts of ten thousand: 50 %, 30 %, 20 %.
const SHARES: [u32; 3] = [5_000, 3_000, 2_000];

fn cup() -> ContestId {
    ContestId::new("cup").unwrap()
}

fn pool(rake: u32, min: i64) -> ContestSpec {
    let share = |(rank, share)| PoolPrize { from: rank, to: rank, share };
    let prizes = (1..).zip(SHARES).map(share).collect();
    ContestSpec {
        title: Some("Cup".into()),
        capacity: Some(9),
        entry_fee: Some(Some(Fee { currency: code("KRW"), amount: amount(FEE) })),
        leaderboard: Some(Definition { ranking: Ranking::Competition, ..Definition::default() }),
        pool: Some(Some(PrizePool { prizes, rake, min: Amount::new(min).ok() })),
        ..ContestSpec::default()
    }
}

/// A contest with these scores of its first members that is over.
fn finished(world: &World, spec: &ContestSpec, members: &[MemberId], scores: &[i64]) -> MemberId {
    let record = running(world, &cup(), spec, members);
    let hand = Hand { tally: &world.tally, runtime: &world.runtime, members };
    for (player, score) in scores.iter().enumerate() {
        let division = spec.division_size.flatten().map(|size| player / size.get() as usize + 1);
        hand.act(&cup(), Op::Score(player, *score), division, None).unwrap();
    }
    hand.act(&cup(), Op::Finish, None, None).unwrap();
    record.pool_account().unwrap()
}

/// Settles it, and stores the prizes that the preview has.
fn settled(world: &World) -> PoolResult {
    let preview = || preview::preview(&world.tally, &cup(), &ContestActor::ADMIN, (0, 99));
    let promised = preview().unwrap();
    let done = settle::settle(&world.tally, &cup(), &ContestActor::ADMIN, None).unwrap();
    assert_eq!(done.record.state, ContestState::Settled);
    let result = done.record.pool_result.unwrap();
    let stored = read::prizes(&world.tally, &cup(), 0, 99).unwrap().rows;
    let unpaid = |(no, row)| (no, Payout { paid: None, ..row });
    assert_eq!(promised.rows, stored.into_iter().map(unpaid).collect::<Vec<_>>());
    assert_eq!((promised.first_of_pool, promised.prizes), (result.first, promised.rows.len()));
    assert_eq!(refused(preview().map(drop)), Rejection::ContestState(ContestState::Settled));
    result
}

fn balances(world: &World, members: &[MemberId]) -> Vec<i64> {
    members.iter().map(|member| world.balance(*member)).collect()
}

/// What an account has got, less what it has given.
fn account(world: &World, account: Account) -> i128 {
    let totals = world.tally.store.ledger().totals().unwrap();
    let of = totals.iter().filter(|(key, _)| key.account == account);
    of.map(|(_, total)| total.credits.cast_signed() - total.debits.cast_signed()).sum()
}

fn reverse(world: &World, transfer: TransferId, units: Option<i64>) -> Result<(), Failure> {
    let (amount, origin) = (units.map(amount), Origin::default());
    let new = NewReversal { transaction: transfer.0, amount, origin, idempotency: None };
    world.wait(reversals::reverse(&world.tally, new)).map(drop)
}

/// The transfer of the only entry of that kind in a wallet.
fn transfer_of(world: &World, member: MemberId, kind: EntryKind) -> TransferId {
    let wallet = WalletKey { member, currency: code("KRW") };
    let entries = world.tally.store.ledger().history(wallet, 1..99).unwrap();
    entries.into_iter().find(|(_, entry)| entry.kind == kind).expect("there is one").1.transfer
}

fn end(world: World, members: &[MemberId], pool: MemberId) {
    world.end(&[members, &[pool]].concat());
}

#[test]
fn every_unit_of_a_pool_is_paid_or_goes_to_an_account() {
    // (rake, minimum, scores, what the members get, rake taken, added)
    type Case<'a> = (u32, i64, &'a [i64], [i64; 3], i64, i64);
    let rows: [Case<'_>; 7] = [
        (0, 0, &[9, 8, 7], [15, 9, 6], 0, 0),
        (1_000, 0, &[9, 8, 7], [13, 8, 5], 4, 0),
        // Equal parts of the first two positions.
        (1_000, 0, &[9, 9, 7], [10, 10, 5], 5, 0),
        (0, 100, &[9, 8, 7], [50, 30, 20], 0, 70),
        // The guaranteed minimum is not paid for ranks that no player has.
        (0, 100, &[9], [50, 0, 0], 0, 20),
        (10_000, 33, &[9, 9, 9], [11, 11, 11], 0, 3),
        (0, 0, &[], [0, 0, 0], 30, 0),
    ];
    for (no, (rake, min, scores, paid, taken, added)) in rows.into_iter().enumerate() {
        let kind = [Kind::Sqlite, Kind::MariaDb, Kind::Sqlite, Kind::MySql][no % 4];
        let world = World::new(kind);
        let members = ["ann", "bob", "cid"].map(|name| world.member(name, 50));
        let account_of_pool = finished(&world, &pool(rake, min), &members, scores);
        assert_eq!((world.balance(account_of_pool), account(&world, Account::Fees)), (3 * FEE, 0));
        assert_eq!(settled(&world), PoolResult { first: 0, rake: taken, top_up: added });
        assert_eq!(balances(&world, &members), paid.map(|units| 50 - FEE + units), "row {no}");
        assert_eq!(world.balance(account_of_pool), 0);
        assert_eq!(account(&world, Account::Fees), i128::from(taken));
        assert_eq!(account(&world, Account::Prizes), -i128::from(added));
        end(world, &members, account_of_pool);
    }
}

#[test]
fn a_pool_pays_beside_prizes_of_a_table_and_in_each_division() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        let members = ["ann", "bob", "cid"].map(|name| world.member(name, 50));
        let prize = Prize { from: 1, to: 1, currency: code("KRW"), amount: amount(7) };
        let spec = ContestSpec {
            prizes: Some(vec![prize]),
            division_size: Some(Some(2.try_into().unwrap())),
            ..pool(1_000, 0)
        };
        let account_of_pool = finished(&world, &spec, &members, &[9, 8, 7]);
        // 27 are to be won: 18 in the first division, and 9 in the second.
        assert_eq!(settled(&world), PoolResult { first: 2, rake: 30 - 9 - 5 - 4, top_up: 0 });
        assert_eq!(balances(&world, &members), [40 + 7 + 9, 40 + 5, 40 + 7 + 4]);
        let rows = read::prizes(&world.tally, &cup(), 0, 9).unwrap().rows;
        let shown = rows.iter().map(|(_, row)| (row.division.unwrap(), row.rank, row.amount.units()));
        assert_eq!(shown.collect::<Vec<_>>(), [(1, 1, 7), (2, 1, 7), (1, 1, 9), (1, 2, 5), (2, 1, 4)]);
        assert_eq!((world.balance(account_of_pool), account(&world, Account::Prizes)), (0, -14));
        end(world, &members, account_of_pool);
    }
}

#[test]
fn a_cancelled_contest_pays_the_fees_back_from_its_pool() {
    for (kind, ends) in [(Kind::Sqlite, false), (Kind::MariaDb, true), (Kind::MySql, false)] {
        let world = World::new(kind);
        let members = ["ann", "bob", "cid"].map(|name| world.member(name, 50));
        let account_of_pool = match ends {
            true => finished(&world, &pool(1_000, 100), &members, &[9]),
            false => running(&world, &cup(), &pool(1_000, 100), &members).pool_account().unwrap(),
        };
        reverse(&world, transfer_of(&world, members[0], EntryKind::Fee), Some(4)).unwrap();
        reverse(&world, transfer_of(&world, members[1], EntryKind::Fee), None).unwrap();
        assert_eq!(world.balance(account_of_pool), 3 * FEE - 14);
        finish::cancel(&world.tally, &cup(), &ContestActor::ADMIN, None).unwrap();
        assert_eq!((balances(&world, &members), world.balance(account_of_pool)), (vec![50; 3], 0));
        let late = reverse(&world, transfer_of(&world, members[2], EntryKind::Fee), None);
        assert_eq!(refused(late), Rejection::ContestState(ContestState::Cancelled));
        // What is taken back of a refund does not stay in the pool.
        reverse(&world, transfer_of(&world, members[2], EntryKind::Refund), Some(3)).unwrap();
        assert_eq!((world.balance(members[2]), world.balance(account_of_pool)), (47, 0));
        assert_eq!((account(&world, Account::Fees), account(&world, Account::Prizes)), (3, 0));
        end(world, &members, account_of_pool);
    }
}

#[test]
fn what_a_winner_cannot_get_stays_in_the_pool_until_it_is_paid() {
    let world = World::new(Kind::Sqlite);
    let members = ["ann", "bob", "cid"].map(|name| world.member(name, 50));
    let account_of_pool = finished(&world, &pool(0, 0), &members, &[9, 8, 7]);
    let deposit = TransferKind::Deposit { to: members[0] };
    let full = BALANCE_MAX / AMOUNT_MAX;
    let many = (1..full).map(|_| (order(deposit, AMOUNT_MAX), false)).collect();
    world.post_all(many).into_iter().for_each(|done| drop(done.unwrap()));
    let left = BALANCE_MAX - world.balance(members[0]);
    world.post(order(deposit, left), None).unwrap();
    world.wait(members::close(&world.tally, members[1], true, Origin::BACKGROUND, None)).unwrap();
    assert_eq!(settled(&world), PoolResult { first: 0, rake: 0, top_up: 0 });
    assert_eq!((world.balance(account_of_pool), world.balance(members[2])), (15 + 9, 40 + 6));
    let debts = owed::list(&world.tally, None, 9).unwrap().rows;
    assert_eq!(debts.iter().map(|debt| debt.amount).collect::<Vec<_>>(), [15, 9]);
    world.post(order(TransferKind::Withdrawal { from: members[0] }, 20), None).unwrap();
    pay_again::pay_again(&world.tally, &cup(), &ContestActor::ADMIN, None).unwrap();
    assert_eq!((world.balance(members[0]), world.balance(account_of_pool)), (BALANCE_MAX - 5, 9));
    assert_eq!((account(&world, Account::Fees), account(&world, Account::Prizes)), (0, 0));
    end(world, &members, account_of_pool);
}

#[test]
fn a_prize_that_is_taken_back_goes_to_the_operator_and_fees_of_a_settled_contest_stay() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        let members = ["ann", "bob", "cid"].map(|name| world.member(name, 50));
        let account_of_pool = finished(&world, &pool(1_000, 0), &members, &[9, 8, 7]);
        reverse(&world, transfer_of(&world, members[2], EntryKind::Fee), Some(5)).unwrap();
        // 25 are left, and 23 to be won.
        assert_eq!(settled(&world), PoolResult { first: 0, rake: 25 - 11 - 6 - 4, top_up: 0 });
        let prize = transfer_of(&world, members[0], EntryKind::Prize);
        reverse(&world, prize, Some(1)).unwrap();
        reverse(&world, prize, None).unwrap();
        assert_eq!(refused(reverse(&world, prize, None)), Rejection::ExceedsReversible { left: 0 });
        assert_eq!((world.balance(members[0]), world.balance(account_of_pool)), (40, 0));
        assert_eq!(account(&world, Account::Fees), 4 + 11);
        let fee = reverse(&world, transfer_of(&world, members[0], EntryKind::Fee), None);
        assert_eq!(refused(fee), Rejection::ContestState(ContestState::Settled));
        let rake = reverse(&world, transfer_of(&world, account_of_pool, EntryKind::Fee), None);
        assert_eq!(refused(rake), Rejection::NotReversible);
        let rows = read::prizes(&world.tally, &cup(), 0, 9).unwrap().rows;
        let reversed = read::reversed(&world.tally, &cup(), &rows).unwrap();
        assert_eq!(reversed.into_iter().collect::<Vec<_>>(), [(prize, 11)]);
        end(world, &members, account_of_pool);
    }
}

/// The process ends after each step of a settling, and the next one goes on.
#[test]
fn a_settling_that_dies_at_any_step_pays_the_pool_once() {
    for (steps, kind) in [(1, Kind::Sqlite), (2, Kind::Sqlite), (1, Kind::MariaDb), (2, Kind::MariaDb)] {
        for how in [End::Before, End::After] {
            let world = World::new(kind);
            let members = ["ann", "bob", "cid"].map(|name| world.member(name, 50));
            let account_of_pool = finished(&world, &pool(1_000, 40), &members, &[9, 8, 7]);
            let store = Arc::clone(&world.tally.store);
            world.tally.drain();
            let dying = Dying::new(Arc::clone(&store));
            let now = Arc::new(AtomicI64::new(world.now().0));
            let process = start(Arc::clone(&dying) as Arc<_>, &now, settings()).unwrap();
            dying.arm(steps, how);
            drop(settle::settle(&process, &cup(), &ContestActor::ADMIN, None));
            dying.die();
            drop(process);
            let world = World::on(store, tempfile::tempdir().unwrap());
            scheduler::do_due(&world.tally).unwrap();
            let record = read::get(&world.tally, &cup()).unwrap();
            assert_eq!((record.state, record.work), (ContestState::Settled, ContestTask::None));
            assert_eq!(record.pool_result, Some(PoolResult { first: 0, rake: 0, top_up: 10 }));
            assert_eq!(balances(&world, &members), [40 + 20, 40 + 12, 40 + 8]);
            assert_eq!(world.balance(account_of_pool), 0);
            end(world, &members, account_of_pool);
        }
    }
}

/// No caller puts money into the wallet of a pool, takes it out, or holds it.
#[test]
fn only_its_contest_reaches_the_wallet_of_a_pool() {
    let world = World::new(Kind::Sqlite);
    let members = ["ann", "bob"].map(|name| world.member(name, 50));
    let pool = finished(&world, &pool(0, 0), &members, &[9]);
    let post = |what| refused(world.post(order(what, 1), None));
    assert_eq!(post(TransferKind::Deposit { to: pool }), Rejection::RecipientNotFound);
    assert_eq!(post(TransferKind::Transfer { from: members[0], to: pool }), Rejection::RecipientNotFound);
    assert_eq!(post(TransferKind::Transfer { from: pool, to: members[0] }), Rejection::MemberNotFound);
    assert_eq!(post(TransferKind::Withdrawal { from: pool }), Rejection::MemberNotFound);
    let hold = |member| {
        let (wallet, origin) = (WalletKey { member, currency: code("KRW") }, Origin::default());
        let new = NewHold { wallet, amount: amount(1), expires_at: None, origin, idempotency: None };
        world.wait(holds::place(&world.tally, new))
    };
    assert_eq!(refused(hold(pool)), Rejection::MemberNotFound);
    let held = hold(members[0]).unwrap().id;
    let ending = Ending::Capture { amount: None, to: Some(pool) };
    let captured = world.wait(holds::end(&world.tally, held, ending, Origin::default(), None));
    assert_eq!(refused(captured), Rejection::RecipientNotFound);
    world.wait(holds::end(&world.tally, held, Ending::Void, Origin::default(), None)).unwrap();
    settled(&world);
    // 10 of 20, and 10 for ranks that no player has.
    assert_eq!(balances(&world, &members), [50, 40]);
    end(world, &members, pool);
}

#[test]
fn a_pool_that_disagrees_is_named() {
    let server = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let (world, name) = in_a_database(server);
    let members = ["ann", "bob", "cid"].map(|name| world.member(name, 50));
    finished(&world, &pool(1_000, 0), &members, &[9, 8, 7]);
    settled(&world);
    let record = read::get(&world.tally, &cup()).unwrap();
    let other = MemberId::of_pool(tally_rules::ledger::Uuid::new(world.now(), 8));
    let row = format!("contest = {} AND `no` = 1", hex(record.no));
    let faults = vec![
        fault(
            format!("UPDATE contest_prizes SET transfer = NULL WHERE {row}"),
            &[
                "contest_prizes cup/1: it was never paid",
                "it is a prize of the contest cup, which has none here",
                "contests cup: its pool has 0, and should have 8",
            ],
        ),
        fault(
            format!("UPDATE contest_prizes SET amount = 9 WHERE {row}"),
            &[
                "its prize of the pool is 9, and its movement 8",
                "contests cup: its pool is 26 of fees of 30, and its prizes are 27",
            ],
        ),
        fault(
            format!(
                "INSERT INTO wallets (member, currency, balance, held, sequence, closed, spent_day, spent) \
                 VALUES ({}, 'KRW', 0, 0, 0, 0, 0, 0)",
                hex(other.0)
            ),
            &["wallets pools: there are 2 of pools, and contests have 1"],
        ),
    ];
    Place::Server(world, server, name).break_each(&["contest_prizes", "wallets"], faults);
}

/// The rows of a pool's wallet say what they are, and its winners see prizes.
#[test]
fn histories_say_what_moved() {
    let world = World::new(Kind::Sqlite);
    let members = ["ann", "bob"].map(|name| world.member(name, 50));
    let pool = finished(&world, &pool(1_000, 0), &members, &[9, 8]);
    settled(&world);
    let kinds = |member| {
        let wallet = WalletKey { member, currency: code("KRW") };
        let mut entries = world.tally.store.ledger().history(wallet, 1..99).unwrap();
        entries.sort_by_key(|(no, _)| *no);
        entries.into_iter().map(|(_, entry)| (entry.kind, entry.amount)).collect::<Vec<_>>()
    };
    let (arrived, out) = (EntryKind::TransferIn, EntryKind::PrizeOut);
    assert_eq!(kinds(pool), [(arrived, 10), (arrived, 10), (EntryKind::Fee, 6), (out, 9), (out, 5)]);
    assert_eq!(kinds(members[0]), [(EntryKind::Deposit, 50), (EntryKind::Fee, 10), (EntryKind::Prize, 9)]);
    let rows: Vec<(u32, Payout)> = read::prizes(&world.tally, &cup(), 0, 9).unwrap().rows;
    assert_eq!(rows.iter().map(|(_, row)| row.player.clone()).collect::<Vec<_>>(), members.map(player_of));
    end(world, &members, pool);
}
