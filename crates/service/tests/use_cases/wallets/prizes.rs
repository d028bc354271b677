//! Prizes of a board's periods: paid once when one is closed, to players that are members, in spite of crashes and concurrent
//! schedulers.

use crate::wallets::world::{Kind, World, code, idempotency, new_member, settings, start};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tally_rules::audit::AuditAction;
use tally_rules::contest::member::UnpaidReason;
use tally_rules::contest::{Payout, Prize, PrizeTies};
use tally_rules::definition::{BoardSpec, Ranking};
use tally_rules::ledger::{Amount, Member, MemberId, Uuid};
use tally_rules::period::{PeriodPayment, PeriodPrizes, PeriodRule};
use tally_rules::score::ScoreInput;
use tally_rules::{Actor, BoardId, Micros, Origin, PlayerId, Rejection};
use tally_service::members::NewMember;
use tally_service::owed::DebtFilter;
use tally_service::periods::pay_again::{self, PrizeCounts};
use tally_service::periods::view::{View, list};
use tally_service::periods::{prizes, scheduler};
use tally_service::players::erase;
use tally_service::scan::ListRange;
use tally_service::scores::submit::{self, NewScore};
use tally_service::{Failure, Tally, audit, boards, owed};
use tally_store::sqlite::SqliteStore;
use tally_store::{
    BoardNo, ContestWriteSet, LedgerWriteSet, PayoutKey, ReadSet, Transactions, Window, WindowKey, WriteSet,
};

pub(crate) const DAY: i64 = 24 * 3_600 * 1_000_000;

fn board() -> BoardId {
    BoardId::new("daily").unwrap()
}

pub(crate) fn table(units: i64) -> PeriodPrizes {
    let amount = Amount::new(units).unwrap();
    let table = vec![Prize { from: 1, to: 2, currency: code("KRW"), amount }];
    PeriodPrizes { table, ties: PrizeTies::Split, from: None }
}

pub(crate) fn daily(prizes: PeriodPrizes, keep: u32) -> BoardSpec {
    let (name, schedule, time_zone) = ("daily".into(), "0 0 * * *".into(), "UTC".into());
    let rule = PeriodRule { no: 0, name, schedule, time_zone, keep, grace_s: 0, prizes };
    BoardSpec { ranking: Some(Ranking::Competition), periods: Some(vec![rule]), ..BoardSpec::default() }
}

pub(crate) fn put(world: &World, tally: &Arc<Tally>, spec: &BoardSpec) -> Result<(), Failure> {
    let (tally, spec) = (Arc::clone(tally), spec.clone());
    let put = move || boards::put(&tally, &board(), &spec, &Origin::BACKGROUND, None).map(drop);
    world.wait(async { tokio::task::spawn_blocking(put).await.unwrap() })
}

pub(crate) fn player_of(member: MemberId) -> PlayerId {
    PlayerId::new(&member.0.to_string()).unwrap()
}

pub(crate) fn score(world: &World, tally: &Arc<Tally>, player: PlayerId, score: i64) {
    let (score, subscore, at) = (ScoreInput::Int(score), None, None);
    let new = NewScore { board: board(), player, score, subscore, at, idempotency: None };
    world.wait(submit::submit(tally, new)).unwrap();
}

/// The stored payouts of the last period, after all of them were tried: rank, amount, whether it is paid.
fn shown(tally: &Tally, now: Micros) -> Option<Vec<(u32, i64, bool)>> {
    let found = tally.boards.get(&board()).unwrap();
    let view = View::find(&found, Some("daily:previous"), now, |_| None).unwrap();
    let (rows, settled) = prizes::prizes(tally, &view, 0, 100).unwrap();
    let row = |(_, row): (u32, Payout)| (row.rank, row.amount.units(), matches!(row.paid, Some(Ok(_))));
    settled.then(|| rows.into_iter().map(row).collect())
}

#[test]
fn a_closed_period_pays_its_prizes_once() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        let tally = &world.tally;
        let members: Vec<MemberId> = ["ann", "bob", "cid"].map(|name| world.member(name, 0)).to_vec();
        put(&world, tally, &daily(table(100), 12)).unwrap();
        // Two share the first rank, one of them without a member; no player moves up.
        score(&world, tally, PlayerId::new("guest").unwrap(), 9);
        for (member, points) in members.iter().zip([9, 5, 1]) {
            score(&world, tally, player_of(*member), points);
        }
        prizes::pay_due(tally).unwrap();
        assert_eq!(world.balance(members[0]), 0, "it is not over");
        world.advance(DAY);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    scheduler::close_due(tally).unwrap();
                    prizes::pay_due(tally).unwrap();
                });
            }
        });
        prizes::pay_due(tally).unwrap();
        assert_eq!(members.iter().map(|member| world.balance(*member)).collect::<Vec<_>>(), [100, 0, 0]);
        // The winner without a member is listed, and is owed nothing.
        let mut rows = shown(tally, world.now()).unwrap();
        rows.sort_unstable();
        assert_eq!(rows, [(1, 100, false), (1, 100, true)]);
        assert!(owed::list(tally, None, 9).unwrap().rows.is_empty());
        let with_winners = DebtFilter { with_winners: true, ..DebtFilter::default() };
        let winners = owed::list_filtered(tally, &with_winners, None, 9).unwrap().rows;
        let found: Vec<_> = winners.iter().map(|row| (row.member, row.amount, row.reason(tally))).collect();
        assert_eq!(found, [(None, 100, "no_member")]);
        // Another server, or this one after a restart, finds it done.
        tally.drain();
        let later = Arc::new(AtomicI64::new(world.now().0));
        let next = start(Arc::clone(&tally.store), &later, settings()).unwrap();
        prizes::pay_due(&next).unwrap();
        next.drain();
        world.end(&members);
    }
}

/// The prizes of the last period, after they were tried again under this key; and whether that was a replay.
pub(crate) fn again(tally: &Tally, now: Micros, key: &str) -> (PrizeCounts, bool) {
    let found = tally.boards.get(&board()).unwrap();
    let view = View::find(&found, Some("daily:previous"), now, |_| None).unwrap();
    let origin = Origin { reason: Some("why".into()), ..Origin::from(Actor::CommandLine) };
    pay_again::pay_again(tally, &view, &origin, idempotency(key, 1).as_ref()).unwrap()
}

/// What could not be paid is paid once it can be, on request: a winner that was no member, and a wallet that was full.
#[test]
fn unpaid_prizes_of_a_period_are_paid_again_by_hand() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        let tally = &world.tally;
        let ann = world.member("ann", 0);
        let guest = PlayerId::new("guest").unwrap();
        put(&world, tally, &daily(table(100), 12)).unwrap();
        score(&world, tally, guest.clone(), 9);
        score(&world, tally, player_of(ann), 5);
        world.advance(DAY);
        let none = PrizeCounts::default();
        assert_eq!(again(tally, world.now(), "early"), (none, false), "it is not closed");
        scheduler::close_due(tally).unwrap();
        prizes::pay_due(tally).unwrap();
        let rows = |action: AuditAction| {
            let filter = audit::Filter { action: Some(action), ..audit::Filter::default() };
            audit::list(tally, &filter, &ListRange { limit: 9, ..ListRange::default() }).unwrap().rows
        };
        let unpaid = PrizeCounts { settled: true, paid: 1, no_member: 1, ..none };
        assert_eq!(again(tally, world.now(), "one"), (unpaid, false));
        assert_eq!(rows(AuditAction::PrizesRepaid), [], "nothing was paid");
        let new = new_member("guest");
        let member = Member { player: guest.clone(), ..new.member };
        let id = world.create(NewMember { member, player_is_id: false, idempotency: None }).unwrap().id;
        // A retry does nothing more. Another request pays, once.
        assert_eq!(again(tally, world.now(), "one"), (unpaid, true));
        assert_eq!(world.balance(id), 0);
        let paid = PrizeCounts { settled: true, paid: 2, ..none };
        for replayed in [false, true] {
            assert_eq!(again(tally, world.now(), "two"), (paid, replayed));
            assert_eq!((world.balance(id), world.balance(ann)), (100, 100));
        }
        assert_eq!(again(tally, world.now(), "three"), (paid, false));
        let [(_, act)] = &rows(AuditAction::PrizesRepaid)[..] else { panic!("one act") };
        assert_eq!((&*act.subject, act.origin.actor), ("daily", Actor::CommandLine));
        assert_eq!(act.origin.reason.as_deref(), Some("why"));
        let detail = act.detail.as_deref().unwrap();
        assert!(detail.starts_with("daily:20") && detail.ends_with(": 1 payment"), "{detail}");
        // The payment is found by its player, too.
        let [(_, paid)] = &rows(AuditAction::PlayerPaid)[..] else { panic!("one payment") };
        assert_eq!((&*paid.subject, &paid.origin), ("guest", &act.origin));
        let detail = paid.detail.as_deref().unwrap();
        let wanted = format!("prize: 100 KRW to {} of daily/daily:20", id.0);
        assert!(detail.starts_with(&wanted), "{detail}");
        world.end(&[ann, id]);
    }
}

/// The payouts of a period are fixed when it is closed, also if there are none.
#[test]
fn a_player_that_is_restored_later_gets_no_prize_of_a_closed_period() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        let (tally, ann) = (&world.tally, world.member("ann", 0));
        put(&world, tally, &daily(table(100), 12)).unwrap();
        score(&world, tally, player_of(ann), 9);
        let ban = |banned| {
            world
                .wait(erase::ban(tally, &board(), player_of(ann), banned, Origin::BACKGROUND, None))
                .unwrap();
        };
        let look = || {
            scheduler::close_due(tally).unwrap();
            prizes::pay_due(tally).unwrap();
        };
        ban(true);
        world.advance(DAY);
        look();
        ban(false);
        look();
        assert_eq!(world.balance(ann), 0);
        assert_eq!(shown(tally, world.now()), Some(Vec::new()));
        world.end(&[ann]);
    }
}

/// A ban takes the only player of a closed period. The period stays in the list with its prizes.
#[test]
fn a_closed_period_without_players_is_listed_if_it_has_prizes() {
    let world = World::new(Kind::Sqlite);
    let (tally, ann) = (&world.tally, world.member("ann", 0));
    put(&world, tally, &daily(table(100), 12)).unwrap();
    score(&world, tally, player_of(ann), 9);
    world.advance(DAY);
    scheduler::close_due(tally).unwrap();
    prizes::pay_due(tally).unwrap();
    let closed = || -> Vec<u64> {
        let all = list(&tally.boards.get(&board()).unwrap(), world.now());
        all.into_iter().filter(|one| one.state == "closed").map(|one| one.total).collect()
    };
    assert_eq!(closed(), [1]);
    world.wait(erase::ban(tally, &board(), player_of(ann), true, Origin::BACKGROUND, None)).unwrap();
    scheduler::refresh_due(tally).unwrap();
    assert_eq!(closed(), [0]);
    assert_eq!(shown(tally, world.now()), Some(vec![(1, 100, true)]));
    world.end(&[ann]);
}

/// The service ends without notice after each step, and goes on with the stored state.
#[test]
fn a_crash_between_closing_and_paying_loses_nothing() {
    let world = World::new(Kind::Sqlite);
    let member = world.member("ann", 0);
    put(&world, &world.tally, &daily(table(7), 12)).unwrap();
    score(&world, &world.tally, player_of(member), 5);
    // Only closed, its prizes not processed: the scheduler of contests has stopped before the day ends.
    world.tally.drain();
    let now = Arc::new(AtomicI64::new(world.now().0 + DAY));
    let next = start(Arc::clone(&world.tally.store), &now, settings()).unwrap();
    // It was closed and paid before the server answers requests.
    assert_eq!(shown(&next, Micros(now.load(Ordering::SeqCst))), Some(vec![(1, 7, true)]));
    assert_eq!(world.balance(member), 7);
    next.drain();
    world.end(&[member]);
}

#[test]
fn prizes_are_for_periods_that_are_closed_after_they_were_promised() {
    let world = World::new(Kind::Sqlite);
    let tally = &world.tally;
    let member = world.member("ann", 0);
    put(&world, tally, &daily(PeriodPrizes::default(), 0)).unwrap();
    score(&world, tally, player_of(member), 5);
    world.advance(DAY);
    let look = || {
        scheduler::close_due(tally).unwrap();
        prizes::pay_due(tally).unwrap();
        scheduler::close_due(tally).unwrap();
    };
    // The first day is over when the prizes are added.
    put(&world, tally, &daily(table(7), 0)).unwrap();
    look();
    assert_eq!(world.balance(member), 0);
    // Nothing is kept of a closed period, but not before it is paid; other prizes are those of the day that is open.
    score(&world, tally, player_of(member), 5);
    put(&world, tally, &daily(table(20), 0)).unwrap();
    world.advance(DAY);
    look();
    assert_eq!(world.balance(member), 20);
    let found = tally.boards.get(&board()).unwrap();
    assert!(found.periods().rules[0].closed.iter().all(|row| row.total == 0));
    // None any more.
    score(&world, tally, player_of(member), 5);
    put(&world, tally, &daily(PeriodPrizes::default(), 0)).unwrap();
    world.advance(DAY);
    look();
    assert_eq!(world.balance(member), 20);
    world.end(&[member]);
}

/// A period that is over pays the prizes that were promised while it ran, whatever happens to the board.
#[test]
fn what_was_promised_when_a_period_ended_is_paid_whatever_follows() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        let tally = &world.tally;
        let member = world.member("ann", 0);
        let mut renamed = daily(table(20), 12);
        renamed.periods.as_mut().unwrap()[0].name = "other".into();
        let changes = [
            Some(daily(PeriodPrizes::default(), 12)),
            Some(daily(table(20), 12)),
            Some(BoardSpec { periods: Some(Vec::new()), ..renamed.clone() }),
            Some(renamed),
            None,
        ];
        for (days, change) in (1..).zip(changes) {
            put(&world, tally, &daily(table(7), 12)).unwrap();
            score(&world, tally, player_of(member), 5);
            world.advance(DAY);
            // No scheduler has processed it yet.
            match &change {
                Some(spec) => put(&world, tally, spec).unwrap(),
                None => {
                    let tally = Arc::clone(tally);
                    let delete =
                        move || boards::delete(&tally, &board(), &Origin::BACKGROUND, None).map(drop);
                    world.wait(async { tokio::task::spawn_blocking(delete).await.unwrap() }).unwrap();
                }
            }
            prizes::pay_due(tally).unwrap();
            assert_eq!(world.balance(member), 7 * days, "{change:?}");
        }
        world.end(&[member]);
    }
}

#[test]
fn prizes_that_cannot_be_are_refused() {
    let world = World::new(Kind::Sqlite);
    let mut wrong = table(5);
    wrong.table[0].currency = code("EUR");
    let mut twice = table(5);
    twice.table.push(twice.table[0]);
    for prizes in [wrong, twice] {
        let done = put(&world, &world.tally, &daily(prizes, 1));
        let Err(Failure::Rejected(Rejection::InvalidDefinition(wrong))) = done else { panic!("{done:?}") };
        assert!(wrong.pointer.starts_with("/periods/0/prizes/"), "{wrong:?}");
        assert!(wrong.why.contains("period `daily`: prizes/"), "{wrong:?}");
    }
    world.end(&[]);
}

/// The stored prizes of a period: the first one has been tried.
fn written_down(member: MemberId, (no, key, count): (Uuid, WindowKey, u32)) -> WriteSet {
    let payout = |rank| Payout {
        player: player_of(member),
        member,
        division: None,
        rank,
        currency: code("KRW"),
        amount: Amount::new(1).unwrap(),
        paid: None,
    };
    let had = Payout { paid: Some(Err(UnpaidReason::LimitExceeded)), ..payout(1) };
    let first = std::iter::once(had).chain((1..count).map(|place| payout(place + 1)));
    let payouts = (0..).zip(first).map(|(place, row)| (PayoutKey { contest: no, no: place }, row)).collect();
    let period = "daily:2026-11-16".to_owned();
    let payment = PeriodPayment { no, board: board(), period, count, done: 1, at: Micros(5) };
    let contests = ContestWriteSet { payouts, payments: vec![(key, payment)], ..ContestWriteSet::default() };
    let ledger = LedgerWriteSet { contests, ..LedgerWriteSet::default() };
    WriteSet { ledger, ..WriteSet::default() }
}

/// A crash leaves stored and unpaid prizes only; each is paid once, whichever server goes on.
#[test]
fn what_a_crash_left_written_down_is_paid_once() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        let member = world.member("ann", 0);
        let (no, key, count) = (Uuid([7; 16]), WindowKey { board: BoardNo(77), window: Window(5) }, 1_201);
        let changes = written_down(member, (no, key, count));
        world.tally.store.run(&ReadSet::default(), &mut |_| changes.clone()).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| prizes::pay_due(&world.tally).unwrap());
            }
        });
        prizes::pay_due(&world.tally).unwrap();
        assert_eq!(world.balance(member), i64::from(count) - 1);
        let paid = world.tally.store.ledger().payouts(no, 1, 2_000).unwrap();
        assert!(paid.iter().all(|row| matches!(row.1.paid, Some(Ok(_)))));
        assert!(!world.tally.store.ledger().payment(key).unwrap().unwrap().is_open());
        let owed = crate::wallets::verify::owed(&crate::wallets::verify::verify(&*world.tally.store).0);
        assert_eq!(owed, [debt(member, "not paid: limit_exceeded")]);
        world.end(&[member]);
    }
}

fn debt(member: MemberId, why: &str) -> String {
    let player = player_of(member);
    format!("period {}/daily:2026-11-16, player {}: prize of 1 KRW, {why}", board().as_str(), player.as_str())
}

#[test]
fn what_is_written_down_and_not_paid_is_listed_as_owed() {
    let folder = tempfile::tempdir().unwrap();
    let store =
        SqliteStore::open(&folder.path().join("t.db"), &tally_store::sqlite::Options::default()).unwrap();
    let member = MemberId(Uuid([9; 16]));
    let of = (Uuid([7; 16]), WindowKey { board: BoardNo(77), window: Window(5) }, 201);
    let changes = written_down(member, of);
    store.run(&ReadSet::default(), &mut |_| changes.clone()).unwrap();
    let (verified, found) = crate::wallets::verify::verify(&store);
    assert_eq!(found, [""; 0]);
    assert_eq!((verified.owed.count, verified.owed.sums[&code("KRW")]), (201, 201));
    let owed = crate::wallets::verify::owed(&verified);
    assert_eq!(owed[..2], [debt(member, "not paid: limit_exceeded"), debt(member, "not paid yet")]);
}
