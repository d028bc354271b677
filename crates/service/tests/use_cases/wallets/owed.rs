//! Debts of contests and periods: they are paid once the currency is configured, and a start without that currency is refused. A
//! start pays what an earlier release left unpaid by mistake.

use crate::wallets::contests::spec;
use crate::wallets::histories::paper::FEE;
use crate::wallets::histories::{amount, player_of};
use crate::wallets::prizes::{DAY, daily, put, table};
use crate::wallets::world::{Kind, World, code, settings, start};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use tally_rules::contest::definition::{ContestSpec, Fee};
use tally_rules::contest::member::UnpaidReason;
use tally_rules::contest::record::ContestTask;
use tally_rules::contest::series::SeriesSpec;
use tally_rules::contest::{Contest, ContestId, ContestRecord, ContestState, Payout, Prize};
use tally_rules::ledger::{Currencies, MemberId, TransferKind, TransferRequest, Uuid};
use tally_rules::period::PeriodPayment;
use tally_rules::{BoardId, Definition, Micros, Origin};
use tally_service::contests::execute::ContestActor;
use tally_service::contests::{apply, change, finish, read, scheduler, series, start as begin};
use tally_service::ledger::LedgerSettings;
use tally_service::members;
use tally_service::owed::{self, DebtPosition};
use tally_service::periods::{prizes, scheduler as periods};
use tally_service::scores::submit::{self, NewScore};
use tally_service::{Failure, Tally, boards};
use tally_store::{
    BoardNo, ContestWriteSet, LedgerWriteSet, PayoutKey, ReadSet, Window, WindowKey, WriteSet,
};
use tally_testkit::wait_until;

/// Settings without the second currency.
fn without_usd() -> LedgerSettings {
    LedgerSettings { currencies: Currencies::new((code("KRW"), 0), []), ..settings() }
}

fn other(world: &World, settings: LedgerSettings) -> Result<Arc<Tally>, Failure> {
    let now = Arc::new(AtomicI64::new(world.now().0));
    start(Arc::clone(&world.tally.store), &now, settings)
}

fn usd(world: &World, member: MemberId) -> i64 {
    let wallets = world.tally.store.ledger().wallets_of(member).unwrap();
    wallets.iter().find(|(currency, _)| *currency == code("USD")).map_or(0, |(_, wallet)| wallet.balance)
}

fn move_usd(world: &World, what: TransferKind, units: i64) {
    let order = TransferRequest { what, currency: code("USD"), amount: amount(units), reference: None };
    world.post(order, None).unwrap();
}

fn store(world: &World, contests: ContestWriteSet) {
    let ledger = LedgerWriteSet { contests, ..LedgerWriteSet::default() };
    let changes = WriteSet { ledger, ..WriteSet::default() };
    world.tally.store.run(&ReadSet::default(), &mut |_| changes.clone()).unwrap();
}

fn payout(member: MemberId, rank: u32, currency: &str, paid: Option<UnpaidReason>) -> Payout {
    let (player, currency, amount) = (player_of(member), code(currency), amount(7));
    Payout { player, member, division: None, rank, currency, amount, paid: paid.map(Err) }
}

/// All debts, read in pages of one.
fn listed(tally: &Tally) -> Vec<String> {
    let (mut all, mut from) = (Vec::new(), None);
    loop {
        let page = owed::list(tally, from, 1).unwrap();
        assert!(page.rows.len() <= 1 && page.damaged.is_empty(), "{page:?}");
        all.extend(page.rows.iter().map(|debt| {
            let what = if debt.is_refund { "fee" } else { "prize" };
            format!("{}: {what} {} {}, {}", debt.of, debt.amount, debt.currency, debt.reason(tally))
        }));
        let Some(next) = page.next else { return all };
        assert_eq!(DebtPosition::parse(&next.to_string()), Some(next.clone()));
        from = Some(next);
    }
}

/// A contest of these members.
pub(crate) fn running(
    world: &World,
    id: &ContestId,
    spec: &ContestSpec,
    members: &[MemberId],
) -> ContestRecord {
    let tally = &world.tally;
    change::create(tally, id, &ContestActor::SERVER, spec, None).unwrap();
    change::open(tally, id, &ContestActor::ADMIN, None).unwrap();
    let players: Vec<_> = members.iter().map(|member| player_of(*member)).collect();
    for player in &players {
        apply::apply(tally, id, &ContestActor::SERVER, player, None).unwrap();
    }
    apply::decide(tally, id, &ContestActor::ADMIN, &players, true, None).unwrap();
    begin::start(tally, id, &ContestActor::ADMIN, None).unwrap();
    read::get(tally, id).unwrap()
}

/// A server without the currency leaves the payouts to one that has it.
#[test]
fn what_a_missing_currency_keeps_back_is_paid_when_it_is_there() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        let members = [world.member("ann", 0), world.member("bob", 0)];
        let poor = other(&world, without_usd()).unwrap();
        members.iter().for_each(|member| move_usd(&world, TransferKind::Deposit { to: *member }, 50));
        let id = ContestId::new("cup").unwrap();
        let fee = Fee { currency: code("USD"), amount: amount(FEE) };
        running(&world, &id, &ContestSpec { entry_fee: Some(Some(fee)), ..spec(false) }, &members);
        // Otherwise it would pay before the test reads.
        world.tally.drain();
        finish::cancel(&poor, &id, &ContestActor::ADMIN, None).unwrap();
        assert!(scheduler::do_due(&poor).is_err());
        let mut lacking = vec!["contest cup: fee 10 USD, currency_mismatch".to_owned(); 2];
        assert_eq!(listed(&poor), lacking);
        let record = read::get(&world.tally, &id).unwrap();
        assert_eq!(
            (record.state, record.work),
            (ContestState::Cancelled, ContestTask::Refund { after: None })
        );
        // The prizes of a period: those before the first that cannot be paid are paid.
        let (no, board, period) = (Uuid([7; 16]), BoardId::new("gone").unwrap(), "daily:1".to_owned());
        let payment = PeriodPayment { no, board, period, count: 3, done: 0, at: Micros(5) };
        let rows = ["KRW", "USD", "KRW"].map(|currency| payout(members[0], 1, currency, None));
        let key = WindowKey { board: BoardNo(77), window: Window(5) };
        let payouts = (0..).map(|place| PayoutKey { contest: no, no: place }).zip(rows).collect();
        store(
            &world,
            ContestWriteSet { payouts, payments: vec![(key, payment)], ..ContestWriteSet::default() },
        );
        assert!(prizes::pay_due(&poor).is_err());
        assert_eq!((world.balance(members[0]), usd(&world, members[0])), (7, 40));
        let pending = ["currency_mismatch", "pending"].into_iter().zip(["USD", "KRW"]);
        let pending = pending.map(|(why, of)| format!("period gone/daily:1: prize 7 {of}, {why}"));
        lacking.splice(0..0, pending);
        assert_eq!(listed(&poor), lacking);
        poor.drain();
        other(&world, settings()).unwrap().drain();
        assert_eq!((world.balance(members[0]), usd(&world, members[0])), (14, 57));
        assert_eq!(usd(&world, members[1]), 50);
        assert_eq!(listed(&world.tally), [""; 0]);
        let refunds = read::refunds(&world.tally, &id, 0, 9).unwrap();
        assert!(refunds.rows.iter().all(|(_, row)| matches!(row.paid, Some(Ok(_)))), "{refunds:?}");
        world.end(&members);
    }
}

/// Each use is named, and the start goes through when it has ended.
#[test]
fn a_start_without_a_currency_in_use_is_refused() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        let (tally, ann) = (&world.tally, world.member("ann", 0));
        let names = |wanted: &str| {
            let why = other(&world, without_usd()).map(|tally| tally.drain()).unwrap_err().to_string();
            assert!(why.contains("`currencies` lacks USD") && why.contains(wanted), "{why}");
        };
        let free = || other(&world, without_usd()).unwrap().drain();
        let prize = Prize { from: 1, to: 1, currency: code("USD"), amount: amount(1) };
        let template = ContestSpec { prizes: Some(vec![prize]), ..spec(false) };
        move_usd(&world, TransferKind::Deposit { to: ann }, 5);
        names("members have money in it");
        move_usd(&world, TransferKind::Withdrawal { from: ann }, 5);
        free();
        let cup = ContestId::new("cup").unwrap();
        change::create(tally, &cup, &ContestActor::SERVER, &template, None).unwrap();
        names("the contest `cup`, which is draft");
        finish::cancel(tally, &cup, &ContestActor::ADMIN, None).unwrap();
        free();
        let weekly = ContestId::new("weekly").unwrap();
        let text = |text: &str| Some(text.to_owned());
        let (open, begins, end) = (text("0 0 * * 1"), text("0 0 * * 2"), text("0 0 * * 3"));
        let spec = SeriesSpec {
            template,
            open,
            start: begins,
            end,
            time_zone: text("UTC"),
            ..SeriesSpec::default()
        };
        series::create(tally, &weekly, &ContestActor::SERVER, &spec, None).unwrap();
        names("the series `weekly`");
        series::delete(tally, &weekly, &ContestActor::SERVER, None).unwrap();
        for (id, _) in read::list(tally, Some(ContestState::Draft), None, 99).unwrap().rows {
            finish::cancel(tally, &id, &ContestActor::ADMIN, None).unwrap();
        }
        free();
        let mut rule = table(5);
        rule.table[0].currency = code("USD");
        put(&world, tally, &daily(rule, 5)).unwrap();
        names("periods of the leaderboard `daily`");
        put(&world, tally, &daily(table(5), 5)).unwrap();
        free();
        // Its background work would pay the prize before the start is tried.
        tally.drain();
        let no = Uuid([7; 16]);
        let (board, period) = (BoardId::new("gone").unwrap(), "daily:1".to_owned());
        let payment = PeriodPayment { no, board, period, count: 1, done: 0, at: Micros(5) };
        let key = WindowKey { board: BoardNo(77), window: Window(5) };
        let payouts = vec![(PayoutKey { contest: no, no: 0 }, payout(ann, 1, "USD", None))];
        store(
            &world,
            ContestWriteSet { payouts, payments: vec![(key, payment)], ..ContestWriteSet::default() },
        );
        names("prizes of the period daily:1 of `gone`");
        let next = World::on(Arc::clone(&tally.store), tempfile::tempdir().unwrap());
        prizes::pay_due(&next.tally).unwrap();
        move_usd(&next, TransferKind::Withdrawal { from: ann }, 7);
        free();
        next.end(&[ann]);
    }
}

/// As an earlier release left them: every payout is marked `member_closed`. Returns an open member, and a closed one.
fn left_by_an_earlier_release(world: &World) -> [MemberId; 2] {
    let members = ["ann", "bob"].map(|name| world.member(name, 50));
    let [ann, bob] = members;
    let fee = Fee { currency: code("KRW"), amount: amount(7) };
    let costs = ContestSpec { entry_fee: Some(Some(fee)), ..spec(false) };
    let [lost, won] = ["lost", "won"].map(|id| ContestId::new(id).unwrap());
    let cancelled = running(world, &lost, &costs, &members);
    let settled = running(world, &won, &spec(false), &members);
    world.wait(members::close(&world.tally, bob, true, Origin::BACKGROUND, None)).unwrap();
    let closed = Some(UnpaidReason::MemberClosed);
    let payment_no = Uuid([7; 16]);
    let (board, period) = (BoardId::new("gone").unwrap(), "daily:1".to_owned());
    let payment = PeriodPayment { no: payment_no, board, period, count: 2, done: 2, at: Micros(5) };
    let mut payouts: Vec<_> = [(cancelled.no, 0), (settled.no, 1), (payment_no, 1)]
        .into_iter()
        .flat_map(|(contest, rank)| {
            let key = move |no| PayoutKey { contest, no };
            (0..).map(key).zip([ann, bob].map(|member| payout(member, rank, "KRW", closed)))
        })
        .collect();
    payouts.sort_by_key(|(key, _)| *key);
    let contests = vec![
        (lost, ContestRecord { state: ContestState::Cancelled, ..cancelled }),
        (won, ContestRecord { state: ContestState::Settled, prizes: Some(2), ..settled }),
    ];
    let payments = vec![(WindowKey { board: BoardNo(77), window: Window(5) }, payment)];
    world.tally.drain();
    store(world, ContestWriteSet { contests, payouts, payments, ..ContestWriteSet::default() });
    members
}

/// The claims of a closed member: a fee goes back to it, a prize does not.
const OF_A_CLOSED_MEMBER: [&str; 2] =
    ["contest won: prize 7 KRW, member_closed", "period gone/daily:1: prize 7 KRW, member_closed"];

#[test]
fn what_was_left_unpaid_by_mistake_is_paid_once_by_a_start() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        let [ann, bob] = left_by_an_earlier_release(&world);
        world.tally.store.set_meta("unpaid_checked", b"").unwrap();
        for _ in 0..2 {
            other(&world, settings()).unwrap().drain();
            assert_eq!([world.balance(ann), world.balance(bob)], [50 - 7 + 3 * 7, 50]);
        }
        assert_eq!(listed(&world.tally), OF_A_CLOSED_MEMBER);
        world.end(&[ann, bob]);
    }
}

/// An earlier release has written them after the first start that searched for them: later starts do not, their scheduler does.
#[test]
fn what_is_left_unpaid_by_mistake_later_is_paid_once_by_the_scheduler() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        let [ann, bob] = left_by_an_earlier_release(&world);
        assert_eq!(world.tally.store.meta("unpaid_checked").unwrap().unwrap(), b"1");
        let next = other(&world, settings()).unwrap();
        wait_until("the scheduler has paid", || listed(&next).len() <= 2);
        next.drain();
        assert_eq!([world.balance(ann), world.balance(bob)], [50 - 7 + 3 * 7, 50]);
        assert_eq!(listed(&world.tally), OF_A_CLOSED_MEMBER);
        world.end(&[ann, bob]);
    }
}

/// A page costs a fixed number of reads however many contests there are, and the scan comes to its end.
#[test]
fn a_page_of_what_is_owed_is_bounded() {
    let world = World::new(Kind::Sqlite);
    let ann = world.member("ann", 0);
    let settled = |number: u16| {
        let id = ContestId::new(&format!("c{number:04}")).unwrap();
        let mut no = [0; 16];
        no[..2].copy_from_slice(&number.to_be_bytes());
        let record = ContestRecord::new(Uuid(no), Contest::default(), None, Micros(1));
        (id, ContestRecord { state: ContestState::Settled, prizes: Some(1), ..record })
    };
    let contests: Vec<_> = (0..450).map(settled).collect();
    let last = PayoutKey { contest: contests[449].1.no, no: 0 };
    let payouts = vec![(last, payout(ann, 1, "KRW", Some(UnpaidReason::LimitExceeded)))];
    store(&world, ContestWriteSet { contests, payouts, ..ContestWriteSet::default() });
    let (mut counts, mut from) = (Vec::new(), None);
    loop {
        let page = owed::list(&world.tally, from, 100).unwrap();
        counts.push(page.rows.len());
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    assert_eq!(counts, [0, 0, 1]);
    assert_eq!(listed(&world.tally), ["contest c0449: prize 7 KRW, limit_exceeded"]);
}

/// The prizes of a period that ends before its contest is cancelled are paid, those of one that ends after it are not.
#[test]
fn a_cancelled_contest_pays_no_prizes_of_periods_that_end_later() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        let (tally, ann) = (&world.tally, world.member("ann", 50));
        let id = ContestId::new("cup").unwrap();
        let rules = daily(table(100), 9).periods.unwrap();
        let leaderboard = Some(Definition { periods: rules, ..Definition::default() });
        running(&world, &id, &ContestSpec { leaderboard, ..spec(true) }, &[ann]);
        let play = || {
            let (board, player) = (id.board(None), player_of(ann));
            let score = tally_rules::score::ScoreInput::Int(5);
            let new = NewScore { board, player, score, subscore: None, at: None, idempotency: None };
            world.wait(submit::submit(tally, new)).unwrap();
        };
        let look = || {
            periods::close_due(tally).unwrap();
            prizes::pay_due(tally).unwrap();
        };
        play();
        world.advance(DAY);
        look();
        assert_eq!(world.balance(ann), 50 - FEE + 100);
        play();
        finish::cancel(tally, &id, &ContestActor::ADMIN, None).unwrap();
        assert_eq!(world.balance(ann), 50 + 100);
        world.advance(2 * DAY);
        look();
        assert_eq!(world.balance(ann), 50 + 100);
        // The deletion of its board does not pay them either.
        let (of, board) = (Arc::clone(tally), id.board(None));
        let delete = move || boards::delete(&of, &board, &Origin::BACKGROUND, None).map(drop);
        world.wait(async { tokio::task::spawn_blocking(delete).await.unwrap() }).unwrap();
        look();
        assert_eq!(world.balance(ann), 50 + 100);
        world.end(&[ann]);
    }
}
