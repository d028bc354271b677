//! Ends of members, clocks, processes and leaderboards while entries or money of a contest depend on them.
//!
//! Not here: removed currencies (`owed`), and random stories of all of it (`story`).

use crate::wallets::contests::spec;
use crate::wallets::histories::dying::{Dying, End};
use crate::wallets::histories::paper::{FEE, Op};
use crate::wallets::histories::{Hand, player_of};
use crate::wallets::owed::running;
use crate::wallets::prizes::{DAY, daily, put, score, table};
use crate::wallets::world::{Kind, World, idempotency, new_member, refused, settings, start, start_set};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tally_rules::contest::definition::ContestSpec;
use tally_rules::contest::record::ContestTask;
use tally_rules::contest::series::SeriesSpec;
use tally_rules::contest::{ContestId, ContestRight, ContestState};
use tally_rules::ledger::lines::MemberLine;
use tally_rules::ledger::member::Login;
use tally_rules::ledger::{Member, MemberId};
use tally_rules::{Actor, BoardId, Definition, Micros, Origin, PlayerId, Rejection};
use tally_service::contests::actions::ActionResult;
use tally_service::contests::execute::{ActingAs, ContestActor};
use tally_service::contests::{
    apply, change, expire, finish, read, scheduler, series, settle, start as begin,
};
use tally_service::ledger::import::{self, NewChunk};
use tally_service::members::change::MemberChange;
use tally_service::members::{self, NewMember};
use tally_service::periods::{prizes, scheduler as periods};
use tally_service::{Background, Clock, Failure, Fault, LaneByHand, Settings, Tally, boards};
use tally_testkit::wait_until;

fn cup() -> ContestId {
    ContestId::new("cup").unwrap()
}

/// A member with a player of that name; the key is one of retries.
fn heir(name: &str, key: &str) -> NewMember {
    let new = new_member(&format!("login of {name}, {key}"));
    let member = Member { player: PlayerId::new(name).unwrap(), ..new.member };
    NewMember { member, player_is_id: false, idempotency: idempotency(key, 1) }
}

#[test]
fn a_name_with_the_entry_of_a_closed_member_is_not_given_to_another() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        let tally = &world.tally;
        let made = ["ann", "bob"].map(|name| world.create(heir(name, name)).unwrap().id);
        let names = ["ann", "bob"].map(|name| PlayerId::new(name).unwrap());
        for (id, fee) in [("cup", true), ("free", false)] {
            let id = ContestId::new(id).unwrap();
            let prizes = if fee { spec(false).prizes } else { None };
            let spec = ContestSpec { prizes, ..spec(false) };
            change::create(tally, &id, &ContestActor::SERVER, &spec, None).unwrap();
            change::open(tally, &id, &ContestActor::ADMIN, None).unwrap();
            apply::apply(tally, &id, &ContestActor::SERVER, &names[usize::from(!fee)], None).unwrap();
        }
        for one in made {
            world.wait(members::close(tally, one, true, Origin::BACKGROUND, None)).unwrap();
        }
        let in_cup = || Rejection::PlayerInContest("cup".into());
        let refuses = |key: &str| {
            assert_eq!(refused(world.create(heir("ann", key))), in_cup());
            let line =
                MemberLine { login: Login::new(key).unwrap(), player: Some(names[0].clone()), ..line(key) };
            let chunk = |digest| NewChunk {
                digest,
                lines_before: 0,
                lines_after: 2,
                rows: vec![(1, line.clone()), (2, self::line(&format!("other {key}")))],
                last: true,
            };
            let digest = [key.as_bytes()[0]; 32];
            let done = world.wait(import::members(tally, Actor::CommandLine, chunk(digest))).unwrap();
            let shown: Vec<_> = done.refused.iter().map(|row| (row.line, row.field, row.code)).collect();
            assert_eq!((shown, done.progress.taken), (vec![(1, "player", "player_in_contest")], 1));
        };
        refuses("open");
        apply::decide(tally, &cup(), &ContestActor::ADMIN, &names[..1], true, None).unwrap();
        // A retry of a done request gets its outcome.
        assert!(world.create(heir("ann", "ann")).unwrap().replayed);
        // Accounts without a member move no money.
        let bob = world.create(heir("bob", "new")).unwrap().id;
        finish::cancel(tally, &cup(), &ContestActor::ADMIN, None).unwrap();
        let ann = world.create(heir("ann", "new ann")).unwrap().id;
        assert!(matches!(refused(world.create(heir("ann", "third"))), Rejection::PlayerTaken(_)));
        world.end(&[made[0], made[1], ann, bob]);
    }
}

/// Another server closes the member between the read of its name and the transaction that gives it to a new one.
#[test]
fn a_name_whose_member_closes_meanwhile_is_not_given_to_another() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        let tally = &world.tally;
        let [ann, bob] = ["ann", "bob"].map(|name| world.create(heir(name, name)).unwrap().id);
        let names = ["ann", "bob"].map(|name| PlayerId::new(name).unwrap());
        change::create(tally, &cup(), &ContestActor::SERVER, &spec(false), None).unwrap();
        change::open(tally, &cup(), &ContestActor::ADMIN, None).unwrap();
        for name in &names {
            apply::apply(tally, &cup(), &ContestActor::SERVER, name, None).unwrap();
        }
        let now = world.now();
        let with =
            Settings { background: Background::ByHand(|| ()), ledger: settings(), ..Settings::default() };
        let own = &start_set(Arc::clone(&tally.store), Clock::of(move || now), with).unwrap();
        let made =
            interleaved(&world, own, members::create(own, heir("ann", "new"), &Origin::BACKGROUND), ann);
        assert_eq!(refused(made), Rejection::PlayerInContest("cup".into()));
        let row = MemberLine { player: Some(names[1].clone()), ..line("new bob") };
        let rows = vec![(1, row), (2, line("other"))];
        let chunk = NewChunk { digest: [7; 32], lines_before: 0, lines_after: 2, rows, last: true };
        let done = interleaved(&world, own, import::members(own, Actor::CommandLine, chunk), bob).unwrap();
        let shown: Vec<_> = done.refused.iter().map(|row| (row.line, row.code)).collect();
        assert_eq!((shown, done.progress.taken, done.replayed), (vec![(1, "player_in_contest")], 1, false));
        own.drain();
        finish::cancel(tally, &cup(), &ContestActor::ADMIN, None).unwrap();
        world.end(&[ann, bob]);
    }
}

/// Does something on a server without threads, and closes a member elsewhere when the request is in the queue.
fn interleaved<T>(
    world: &World,
    own: &Tally,
    what: impl Future<Output = Result<T, Failure>>,
    member: MemberId,
) -> Result<T, Failure> {
    world.wait(async {
        let mut what = std::pin::pin!(what);
        let mut is_closed = false;
        loop {
            if let Ok(done) = tokio::time::timeout(Duration::from_millis(1), what.as_mut()).await {
                return done;
            }
            if !is_closed && own.ledger_stats().queued_requests == 1 {
                members::close(&world.tally, member, true, Origin::BACKGROUND, None).await.unwrap();
                is_closed = true;
            }
            tokio::task::block_in_place(|| while is_closed && own.step(LaneByHand::Ledger) {});
        }
    })
}

/// The same while the contest runs: the new member would score for the entry of the old one.
#[test]
fn a_name_in_a_contest_that_runs_stays_that_of_its_closed_member() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        let ann = world.member("ann", 50);
        running(&world, &cup(), &spec(true), &[ann]);
        world.wait(members::close(&world.tally, ann, true, Origin::BACKGROUND, None)).unwrap();
        let name = player_of(ann);
        assert_eq!(refused(world.create(heir(name.as_str(), "a"))), Rejection::PlayerInContest("cup".into()));
        finish::finish(&world.tally, &cup(), &ContestActor::ADMIN, None).unwrap();
        let heir = world.create(heir(name.as_str(), "b")).unwrap().id;
        settle::settle(&world.tally, &cup(), &ContestActor::ADMIN, None).unwrap();
        world.end(&[ann, heir]);
    }
}

/// The name of a closed organiser gives its next member no permission.
#[test]
fn a_closed_member_is_no_longer_staff_and_its_name_is_none_either() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        let (tally, ann, bob) = (&world.tally, world.member("ann", 50), world.member("bob", 0));
        let boss = world.create(heir("boss", "a")).unwrap().id;
        running(&world, &cup(), &spec(true), &[ann]);
        let weekly = ContestId::new("weekly").unwrap();
        series::create(tally, &weekly, &ContestActor::SERVER, &weekly_series(), None).unwrap();
        // A renaming neither gives nor leaves it.
        for (member, name) in [(bob, "boss"), (boss, "other")] {
            let change = MemberChange { player: PlayerId::new(name).ok(), ..MemberChange::default() };
            let renamed = world.wait(members::change(tally, member, change, Some(Origin::BACKGROUND), None));
            assert!(matches!(refused(renamed), Rejection::PlayerInContest(_)), "{name}");
        }
        world.wait(members::close(tally, boss, true, Origin::BACKGROUND, None)).unwrap();
        let heir = world.create(heir("boss", "b")).unwrap().id;
        let next = series::get(tally, &weekly).unwrap().series.template.staff;
        assert_eq!((read::get(tally, &cup()).unwrap().contest.staff, next), (Vec::new(), Vec::new()));
        let actor = ActingAs::Member(PlayerId::new("boss").unwrap()).by(Origin::BACKGROUND);
        assert_eq!(
            refused(finish::cancel(tally, &cup(), &actor, None)),
            Rejection::Forbidden(ContestRight::Staff)
        );
        // The other closings remove nothing from the staff that was set since.
        let staff =
            ContestSpec { staff: Some(vec![PlayerId::new("boss").unwrap()]), ..ContestSpec::default() };
        change::patch(tally, &cup(), &ContestActor::ADMIN, &staff, None).unwrap();
        world.wait(members::close(tally, boss, true, Origin::BACKGROUND, None)).unwrap();
        finish::cancel(tally, &cup(), &actor, None).unwrap();
        world.end(&[ann, bob, boss, heir]);
    }
}

/// A series copies its staff to future contests, so a renaming neither gives nor leaves it, whatever contests exist.
#[test]
fn staff_of_a_series_is_not_renamed() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        let (tally, bob) = (&world.tally, world.member("bob", 0));
        let boss = world.create(heir("boss", "a")).unwrap().id;
        let weekly = ContestId::new("weekly").unwrap();
        series::create(tally, &weekly, &ContestActor::SERVER, &weekly_series(), None).unwrap();
        for (id, _) in read::list(tally, Some(ContestState::Draft), None, 99).unwrap().rows {
            finish::cancel(tally, &id, &ContestActor::ADMIN, None).unwrap();
        }
        let rename = |member, name| {
            let change = MemberChange { player: PlayerId::new(name).ok(), ..MemberChange::default() };
            world.wait(members::change(tally, member, change, Some(Origin::BACKGROUND), None)).map(drop)
        };
        for (member, name) in [(bob, "boss"), (boss, "other")] {
            assert_eq!(refused(rename(member, name)), Rejection::PlayerInContest("weekly".into()), "{name}");
        }
        series::delete(tally, &weekly, &ContestActor::SERVER, None).unwrap();
        rename(boss, "other").unwrap();
        rename(bob, "boss").unwrap();
        world.end(&[bob, boss]);
    }
}

fn weekly_series() -> SeriesSpec {
    let text = |text: &str| Some(text.to_owned());
    let (open, start, end) = (text("0 0 * * 1"), text("0 0 * * 2"), text("0 0 * * 3"));
    let (template, time_zone) = (spec(false), text("UTC"));
    SeriesSpec { template, open, start, end, time_zone, ..SeriesSpec::default() }
}

fn line(login: &str) -> MemberLine {
    MemberLine {
        login: Login::new(login).unwrap(),
        password_hash: None,
        pin: None,
        phone_number: None,
        name: None,
        player: None,
        balance: None,
    }
}

/// Work that began while a clock was ahead goes on at once.
#[test]
fn work_of_a_contest_waits_for_no_clock() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        let ann = world.member("ann", 50);
        running(&world, &cup(), &spec(true), &[ann]);
        let store = Arc::clone(&world.tally.store);
        world.tally.drain();
        let ahead = Arc::new(AtomicI64::new(world.now().0 + DAY));
        let dying = Dying::new(Arc::clone(&store));
        let process = start(Arc::clone(&dying) as Arc<_>, &ahead, settings()).unwrap();
        // The process ends when the contest is cancelled, and before the fee is paid back.
        dying.arm(1, End::Before);
        finish::cancel(&process, &cup(), &ContestActor::ADMIN, None).unwrap();
        let record = read::get(&process, &cup()).unwrap();
        assert_eq!(
            (record.state, record.work, record.since.0),
            (ContestState::Cancelled, ContestTask::Refund { after: None }, ahead.load(Ordering::SeqCst))
        );
        drop(process);
        let world = World::on(store, tempfile::tempdir().unwrap());
        scheduler::do_due(&world.tally).unwrap();
        assert_eq!(world.balance(ann), 50);
        world.end(&[ann]);
    }
}

/// A closed review and stored payouts are settled: the process that settles dies before the prizes are stored, and before the
/// first payment.
#[test]
fn a_settling_that_is_committed_is_no_error() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        settling_dies(kind, 1);
        settling_dies(kind, 2);
    }
}

/// The process that settles dies after so many transactions, and the next one settles.
fn settling_dies(kind: Kind, after: u32) {
    let world = World::new(kind);
    let members = [world.member("ann", 50)];
    running(&world, &cup(), &spec(true), &members);
    let store = Arc::clone(&world.tally.store);
    world.tally.drain();
    let dying = Dying::new(Arc::clone(&store));
    let now = Arc::new(AtomicI64::new(world.now().0));
    let process = start(Arc::clone(&dying) as Arc<_>, &now, settings()).unwrap();
    let hand = Hand { tally: &process, runtime: &world.runtime, members: &members };
    hand.act(&cup(), Op::Score(0, 5), None, None).unwrap();
    hand.act(&cup(), Op::Finish, None, None).unwrap();
    dying.arm(after, End::Before);
    let done = settle::settle(&process, &cup(), &ContestActor::ADMIN, idempotency("s", 1).as_ref()).unwrap();
    // The reply is that of the closing.
    assert_eq!((done.record.state, &done.record.work), (ContestState::Finished, &ContestTask::Determine));
    drop(process);
    let next = World::on(store, tempfile::tempdir().unwrap());
    let again =
        settle::settle(&next.tally, &cup(), &ContestActor::ADMIN, idempotency("s", 1).as_ref()).unwrap();
    assert_eq!((again.record.state, again.replayed), (ContestState::Settled, true));
    assert_eq!(next.balance(members[0]), 50 - FEE + 101);
    next.end(&members);
}

/// A leaderboard exists, or not, as it is stored, also after a request whose outcome was not known.
#[test]
fn a_leaderboard_whose_outcome_was_lost_is_as_it_is_stored() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        world.tally.drain();
        let dying = Dying::new(Arc::clone(&world.tally.store));
        let now = Arc::new(AtomicI64::new(world.now().0));
        let tally = &start(Arc::clone(&dying) as Arc<_>, &now, settings()).unwrap();
        let board = BoardId::new("daily").unwrap();
        let make = || put(&world, tally, &daily(table(7), 9));
        let delete = || boards::delete(tally, &board, &Origin::BACKGROUND, None);
        for end in [End::LostDone, End::Unknown] {
            dying.arm(0, end);
            if end == End::Unknown {
                assert!(matches!(make(), Err(Failure::Fault(Fault::OutcomeUnknown(_)))));
            }
            make().unwrap();
            score(&world, tally, PlayerId::new("guest").unwrap(), 5);
            dying.arm(0, end);
            if end == End::Unknown {
                assert!(matches!(delete(), Err(Failure::Fault(Fault::OutcomeUnknown(_)))));
                assert_eq!(refused(delete()), Rejection::LeaderboardNotFound(None));
            } else {
                delete().unwrap();
            }
            assert!(tally.boards.get(&board).is_none(), "{end:?}");
        }
        tally.drain();
        world.end(&[]);
    }
}

/// A contest whose start was in doubt has its leaderboard once the store has answered, not only after the next start of a server.
#[test]
fn the_leaderboard_of_a_start_that_was_in_doubt_is_there() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        let members = [world.member("ann", 50)];
        let player = player_of(members[0]);
        let tally = &world.tally;
        change::create(tally, &cup(), &ContestActor::SERVER, &spec(true), None).unwrap();
        change::open(tally, &cup(), &ContestActor::ADMIN, None).unwrap();
        apply::apply(tally, &cup(), &ContestActor::SERVER, &player, None).unwrap();
        apply::decide(tally, &cup(), &ContestActor::ADMIN, &[player], true, None).unwrap();
        let store = Arc::clone(&tally.store);
        tally.drain();
        let dying = Dying::new(Arc::clone(&store));
        let now = Arc::new(AtomicI64::new(world.now().0));
        let process = start(Arc::clone(&dying) as Arc<_>, &now, settings()).unwrap();
        dying.arm(0, End::Unknown);
        let lost = begin::start(&process, &cup(), &ContestActor::ADMIN, None);
        assert!(matches!(lost, Err(Failure::Fault(Fault::OutcomeUnknown(_)))), "{lost:?}");
        wait_until("it runs", || read::get(&process, &cup()).unwrap().state == ContestState::Running);
        let hand = Hand { tally: &process, runtime: &world.runtime, members: &members };
        // The lane may not know it yet.
        let is_there = || process.work().is_ok() && process.boards.get(&cup().board(None)).is_some();
        let mut looks = 0..2000;
        while !is_there() {
            looks.next().expect("it has its leaderboard");
            std::thread::sleep(Duration::from_millis(5));
        }
        hand.act(&cup(), Op::Score(0, 5), None, None).unwrap();
        hand.act(&cup(), Op::Finish, None, None).unwrap();
        let done = settle::settle(&process, &cup(), &ContestActor::ADMIN, None).unwrap();
        assert_eq!(done.record.state, ContestState::Settled);
        process.drain();
        drop(process);
        World::on(store, tempfile::tempdir().unwrap()).end(&members);
    }
}

/// A server that keeps leaderboards of ended contests for two days, and has a limit of leaderboards.
fn keeping(world: &World, now: &Arc<AtomicI64>, boards_max: usize) -> Arc<Tally> {
    let time = Arc::clone(now);
    let clock = Clock::of(move || Micros(time.load(Ordering::SeqCst)));
    let contests_keep_micros = Some(2 * DAY);
    let with = Settings { contests_keep_micros, boards_max, ledger: settings(), ..Settings::default() };
    start_set(Arc::clone(&world.tally.store), clock, with).unwrap()
}

/// Settled and cancelled contests free their leaderboards; one that is not settled and one with an unpaid period wait.
#[test]
fn leaderboards_of_contests_that_are_over_go_after_a_time() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        let ann = world.member("ann", 50);
        world.tally.drain();
        let now = Arc::new(AtomicI64::new(world.now().0));
        let tally = &keeping(&world, &now, 4);
        let [settled, cancelled, waits, promised, fifth] =
            ["settled", "cancelled", "waits", "promised", "fifth"].map(|id| ContestId::new(id).unwrap());
        // A year, so that no thread closes it before the leaderboards go.
        let mut periods = daily(table(7), 9).periods.unwrap();
        periods[0].schedule = "0 0 1 1 *".into();
        let leaderboard = Definition { periods, ..Definition::default() };
        let promising = ContestSpec { leaderboard: Some(leaderboard), ..spec(false) };
        let begin = |id: &ContestId, spec: &ContestSpec| {
            change::create(tally, id, &ContestActor::SERVER, spec, None).unwrap();
            change::open(tally, id, &ContestActor::ADMIN, None).unwrap();
            apply::apply(tally, id, &ContestActor::SERVER, &player_of(ann), None).unwrap();
            apply::decide(tally, id, &ContestActor::ADMIN, &[player_of(ann)], true, None).unwrap();
            begin::start(tally, id, &ContestActor::ADMIN, None).unwrap();
        };
        for (id, spec) in
            [(&settled, spec(true)), (&cancelled, spec(false)), (&waits, spec(false)), (&promised, promising)]
        {
            begin(id, &spec);
        }
        let hand = Hand { tally, runtime: &world.runtime, members: &[ann] };
        hand.act(&promised, Op::Score(0, 5), None, None).unwrap();
        for id in [&settled, &waits, &promised] {
            finish::finish(tally, id, &ContestActor::ADMIN, None).unwrap();
        }
        for id in [&settled, &promised] {
            settle::settle(tally, id, &ContestActor::ADMIN, None).unwrap();
        }
        finish::cancel(tally, &cancelled, &ContestActor::ADMIN, None).unwrap();
        change::create(tally, &fifth, &ContestActor::SERVER, &spec(true), None).unwrap();
        let open = || change::open(tally, &fifth, &ContestActor::ADMIN, None).map(drop);
        assert_eq!(refused(open()), Rejection::TooManyBoards);
        let there = || {
            expire::delete_due(tally).unwrap();
            [&settled, &cancelled, &waits, &promised].map(|id| tally.boards.get(&id.board(None)).is_some())
        };
        now.fetch_add(2 * DAY - 1, Ordering::SeqCst);
        assert_eq!(there(), [true; 4]);
        now.fetch_add(1, Ordering::SeqCst);
        assert_eq!(there(), [false, false, true, true]);
        open().unwrap();
        // The period of the last is closed and paid first.
        now.fetch_add(60 * DAY, Ordering::SeqCst);
        periods::close_due(tally).unwrap();
        prizes::pay_due(tally).unwrap();
        assert_eq!(there(), [false, false, true, false]);
        assert_eq!(read::prizes(tally, &promised, 0, 9).unwrap().rows.len(), 1);
        finish::cancel(tally, &fifth, &ContestActor::ADMIN, None).unwrap();
        tally.drain();
        assert_eq!(world.balance(ann), 50 - FEE + 101 + 7);
        world.end(&[ann]);
    }
}

/// A sorted set that has lost its last player stays until another leaderboard needs its place. A contest needs it like a
/// leaderboard: when it opens, when its players are accepted, and when it starts.
#[test]
fn unused_leaderboards_make_room_for_those_of_contests() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        world.tally.drain();
        let tally = &keeping(&world, &Arc::new(AtomicI64::new(world.now().0)), 3);
        let fill = || {
            for name in ["a", "b", "c"] {
                boards::sorted_set(tally, &BoardId::new(name).unwrap()).unwrap();
            }
            assert_eq!(tally.boards.len(), 3);
        };
        let size = |size: u32| Some(size.try_into().ok());
        let divided = ContestSpec { prizes: None, capacity: Some(6), division_size: size(2), ..spec(false) };
        change::create(tally, &cup(), &ContestActor::SERVER, &divided, None).unwrap();
        fill();
        change::open(tally, &cup(), &ContestActor::ADMIN, None).unwrap();
        let players: Vec<_> = (0..6).map(|no| PlayerId::new(&format!("p{no}")).unwrap()).collect();
        for player in &players {
            apply::apply(tally, &cup(), &ContestActor::SERVER, player, None).unwrap();
        }
        fill();
        let done = apply::decide(tally, &cup(), &ContestActor::ADMIN, &players, true, None).unwrap();
        let ActionResult::Decided(rows) = done.result else { panic!("it is a decision") };
        assert!(rows.iter().all(Result::is_ok), "{rows:?}");
        fill();
        let larger = ContestSpec { division_size: size(3), ..ContestSpec::default() };
        change::patch(tally, &cup(), &ContestActor::ADMIN, &larger, None).unwrap();
        fill();
        begin::start(tally, &cup(), &ContestActor::ADMIN, None).unwrap();
        assert_eq!(read::get(tally, &cup()).unwrap().members, 6);
        tally.drain();
        world.end(&[]);
    }
}

/// A contest opens only if another leaderboard may be made. Otherwise it would hold fees for nothing.
#[test]
fn a_contest_opens_only_where_a_leaderboard_may_be_made() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        world.tally.drain();
        let tally = &keeping(&world, &Arc::new(AtomicI64::new(world.now().0)), 1);
        change::create(tally, &cup(), &ContestActor::SERVER, &spec(true), None).unwrap();
        put(&world, tally, &daily(table(7), 9)).unwrap();
        assert_eq!(
            refused(change::open(tally, &cup(), &ContestActor::ADMIN, None).map(drop)),
            Rejection::TooManyBoards
        );
        assert_eq!(read::get(tally, &cup()).unwrap().state, ContestState::Draft);
        tally.drain();
        world.end(&[]);
    }
}
