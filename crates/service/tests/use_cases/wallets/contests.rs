//! The scheduler of contests, banned players, two starts at once, and limits of wallets.
//!
//! Not here: random histories (`histories`).

use crate::wallets::histories::dying::Dying;
use crate::wallets::histories::paper::{FEE, Op, Shape};
use crate::wallets::histories::{self, Hand, amount, player_of};
use crate::wallets::world::{
    Kind, World, code, idempotency, order, refused, settings, start, start_by, start_set,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tally_rules::audit::{AuditAction, AuditEntry};
use tally_rules::clock::Reading;
use tally_rules::contest::definition::OnInvalid;
use tally_rules::contest::definition::{ContestSpec, Fee};
use tally_rules::contest::member::UnpaidReason;
use tally_rules::contest::start::{InvalidApplication, InvalidReason};
use tally_rules::contest::{ContestId, ContestRight, ContestState, Payout};
use tally_rules::ledger::EntryKind;
use tally_rules::ledger::entry::EntryKey;
use tally_rules::ledger::hold::Ending;
use tally_rules::ledger::money::{AMOUNT_MAX, BALANCE_MAX};
use tally_rules::ledger::{Amount, MemberId, TransferKind, WalletKey};
use tally_rules::{Actor, BoardId, Micros, Origin, PlayerId, Rejection};
use tally_service::audit;
use tally_service::clock::TimeSource;
use tally_service::contests::actions::ActionResult;
use tally_service::contests::execute::{ActingAs, ContestActor};
use tally_service::contests::{apply, ban, change, finish, pay_again, read, scheduler, start as begin};
use tally_service::ledger::holds::{self, NewHold};
use tally_service::members;
use tally_service::members::change::MemberChange;
use tally_service::scan::ListRange;
use tally_service::settings::Background;
use tally_service::{Clock, Failure, Settings, Tally, boards};

/// Two places more than the applicants, a fee or none, and prizes without shared ranks.
pub(crate) fn spec(fee: bool) -> ContestSpec {
    let fee = if fee { FEE } else { 0 };
    histories::spec(Shape { fee, prizes: true, ordinal: true, each: false, division: None })
}

/// Does it for real.
fn act(
    world: &World,
    tally: &Arc<Tally>,
    id: &ContestId,
    op: Op,
    members: &[MemberId],
) -> Result<(), Failure> {
    Hand { tally, runtime: &world.runtime, members }.act(id, op, None, None)
}

#[test]
fn what_the_clock_missed_happens_in_order_before_any_request() {
    let world = World::new(Kind::Sqlite);
    let member = world.member("ann", 50);
    let now = world.now();
    let at = |seconds: i64| Some(Some(now.plus(seconds * 1_000_000)));
    let timed = ContestSpec { opens_at: at(10), starts_at: at(20), ends_at: at(30), ..spec(true) };
    let (cup, idle) = (ContestId::new("cup").unwrap(), ContestId::new("idle").unwrap());
    change::create(&world.tally, &cup, &ContestActor::SERVER, &timed, None).unwrap();
    // This one is not to be opened.
    let never = ContestSpec { opens_at: Some(None), ..timed.clone() };
    change::create(&world.tally, &idle, &ContestActor::SERVER, &never, None).unwrap();
    world.advance(12_000_000);
    scheduler::do_due(&world.tally).unwrap();
    let player = player_of(member);
    apply::apply(&world.tally, &cup, &ActingAs::Member(player.clone()).by(Origin::BACKGROUND), &player, None)
        .unwrap();
    apply::decide(&world.tally, &cup, &ContestActor::ADMIN, std::slice::from_ref(&player), true, None)
        .unwrap();
    let tally = &world.tally;
    let after = |id: &ContestId| {
        let record = read::get(tally, id).unwrap();
        (record.state, (record.since.0 - now.0) / 1_000_000)
    };
    assert_eq!((after(&cup), after(&idle)), ((ContestState::Open, 10), (ContestState::Draft, 0)));
    // The server is down at both moments.
    tally.drain();
    let late = Arc::new(AtomicI64::new(now.0 + 100_000_000));
    let next = start(Arc::clone(&tally.store), &late, settings()).unwrap();
    let record = read::get(&next, &cup).unwrap();
    assert_eq!(
        (record.state, record.members, record.since),
        (ContestState::Finished, 1, now.plus(30_000_000))
    );
    let of_cup = audit::Filter { subject: Some("cup".into()), ..audit::Filter::default() };
    let acts = audit::list(&next, &of_cup, &ListRange { limit: 9, ..ListRange::default() }).unwrap().rows;
    let mut acts: Vec<_> = acts.iter().map(|(_, row)| (row.action, row.origin.actor)).collect();
    // The clock of the test stands still: acts of one instant are in no order.
    acts.sort_unstable_by_key(|(action, _)| action.number());
    use AuditAction::{ContestAccepted, ContestCreated, ContestFinished, ContestOpened, ContestStarted};
    let wanted = [ContestCreated, ContestOpened, ContestAccepted, ContestStarted, ContestFinished];
    assert_eq!(acts, wanted.map(|action| (action, Actor::Background)));
    assert_eq!(read::get(&next, &idle).unwrap().state, ContestState::Draft);
    assert_eq!(next.store.ledger().wallets_of(member).unwrap()[0].1.balance, 40);
    // Opened by hand after its start has passed, it waits for a start by hand.
    change::open(&next, &idle, &ContestActor::ADMIN, None).unwrap();
    late.fetch_add(1_000_000, Ordering::SeqCst);
    scheduler::do_due(&next).unwrap();
    assert_eq!(read::get(&next, &idle).unwrap().state, ContestState::Open);
    next.drain();
}

#[test]
fn a_player_that_is_banned_in_the_review_gets_no_prize_and_final_ranks_hold() {
    let world = World::new(Kind::Sqlite);
    let members: Vec<MemberId> = (0..2).map(|no| world.member(&format!("m{no}"), 50)).collect();
    let id = ContestId::new("cup").unwrap();
    change::create(&world.tally, &id, &ContestActor::SERVER, &spec(false), None).unwrap();
    for (player, op) in
        [Op::Apply as fn(usize) -> Op, Op::Accept].into_iter().flat_map(|op| [(0, op), (1, op)])
    {
        drop(act(&world, &world.tally, &id, Op::Open, &members));
        act(&world, &world.tally, &id, op(player), &members).unwrap();
    }
    act(&world, &world.tally, &id, Op::Start, &members).unwrap();
    act(&world, &world.tally, &id, Op::Score(0, 9), &members).unwrap();
    act(&world, &world.tally, &id, Op::Score(1, 5), &members).unwrap();
    let set_ban = |actor: ContestActor, player: PlayerId, banned| {
        world.wait(ban::ban(&world.tally, &id, &actor, &player, banned, None))
    };
    let boss = || ActingAs::Member(PlayerId::new("boss").unwrap()).by(Origin::BACKGROUND);
    let first = player_of(members[0]);
    assert_eq!(
        refused(set_ban(ContestActor::SERVER, first.clone(), true)),
        Rejection::Forbidden(ContestRight::Staff)
    );
    assert_eq!(refused(set_ban(boss(), PlayerId::new("x").unwrap(), true)), Rejection::PlayerNotFound);
    for banned in [true, false, true] {
        set_ban(boss(), first.clone(), banned).unwrap();
    }
    act(&world, &world.tally, &id, Op::Finish, &members).unwrap();
    for banned in [false, true] {
        set_ban(boss(), first.clone(), banned).unwrap();
    }
    act(&world, &world.tally, &id, Op::Settle, &members).unwrap();
    let ended = Rejection::ContestState(ContestState::Settled);
    assert_eq!(refused(set_ban(boss(), first.clone(), false)), ended);
    // Nor by a request to the board itself.
    let board = id.board(None);
    let shown =
        tally_service::players::erase::ban(&world.tally, &board, first, false, Origin::BACKGROUND, None);
    assert_eq!(refused(world.wait(shown)), ended);
    assert_eq!([world.balance(members[0]), world.balance(members[1])], [50, 151]);
    world.end(&members);
}

#[test]
fn two_starts_at_once_are_one() {
    let world = World::new(Kind::Sqlite);
    let members: Vec<MemberId> = (0..2).map(|no| world.member(&format!("m{no}"), 50)).collect();
    let id = ContestId::new("cup").unwrap();
    change::create(&world.tally, &id, &ContestActor::SERVER, &spec(true), None).unwrap();
    change::open(&world.tally, &id, &ContestActor::ADMIN, None).unwrap();
    let players: Vec<_> = members.iter().map(|member| player_of(*member)).collect();
    for player in &players {
        apply::apply(&world.tally, &id, &ContestActor::SERVER, player, None).unwrap();
    }
    let boss = ActingAs::For(PlayerId::new("boss").unwrap()).by(Origin::BACKGROUND);
    apply::decide(&world.tally, &id, &boss, &players, true, None).unwrap();
    let nobody = ActingAs::Member(PlayerId::new("nobody").unwrap()).by(Origin::BACKGROUND);
    assert_eq!(
        refused(begin::start(&world.tally, &id, &nobody, None).map(drop)),
        Rejection::Forbidden(ContestRight::Staff)
    );
    let done: Vec<_> = std::thread::scope(|scope| {
        let start = || begin::start(&world.tally, &id, &boss, None).map(drop);
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(start)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(done.iter().filter(|done| done.is_ok()).count(), 1);
    for failed in done.into_iter().filter(Result::is_err) {
        assert_eq!(refused(failed), Rejection::ContestState(ContestState::Running));
    }
    let record = read::get(&world.tally, &id).unwrap();
    assert_eq!((record.state, record.members), (ContestState::Running, 2));
    assert_eq!(world.balance(members[0]), 40);
    assert!(world.tally.store.ledger().first_applications(record.no, None, 9).unwrap().is_empty());
    world.end(&members);
}

/// An applicant that was made staff later is not accepted and does not start. A member is not made staff.
#[test]
fn staff_does_not_take_part_however_late_it_became_staff() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        let members: Vec<MemberId> = (0..3).map(|no| world.member(&format!("m{no}"), 50)).collect();
        let players: Vec<_> = members.iter().map(|member| player_of(*member)).collect();
        let id = ContestId::new("cup").unwrap();
        let tally = &world.tally;
        change::create(tally, &id, &ContestActor::SERVER, &spec(true), None).unwrap();
        change::open(tally, &id, &ContestActor::ADMIN, None).unwrap();
        for player in &players {
            apply::apply(tally, &id, &ContestActor::SERVER, player, None).unwrap();
        }
        apply::decide(tally, &id, &ContestActor::ADMIN, &players[..2], true, None).unwrap();
        let staff = |players: &[PlayerId]| {
            let spec = ContestSpec { staff: Some(players.to_vec()), ..ContestSpec::default() };
            change::patch(tally, &id, &ContestActor::ADMIN, &spec, None).map(drop)
        };
        staff(&players[1..]).unwrap();
        let done = apply::decide(tally, &id, &ContestActor::ADMIN, &players[2..], true, None).unwrap();
        assert_eq!(done.result, ActionResult::Decided(vec![Err(Rejection::StaffCannotApply)]));
        let started = begin::start(tally, &id, &ContestActor::ADMIN, None).map(drop);
        let Rejection::InvalidApplications { failed, accepted: 2 } = refused(started) else {
            panic!("its rows are refused")
        };
        assert_eq!(failed, [InvalidApplication { player: players[1].clone(), why: InvalidReason::Staff }]);
        let skip = ContestSpec { on_invalid: Some(OnInvalid::Skip), ..ContestSpec::default() };
        change::patch(tally, &id, &ContestActor::ADMIN, &skip, None).unwrap();
        begin::start(tally, &id, &ContestActor::ADMIN, None).unwrap();
        assert_eq!(read::get(tally, &id).unwrap().members, 1);
        let Rejection::InvalidContest(wrong) = refused(staff(&[players[2].clone(), players[0].clone()]))
        else {
            panic!("a member is not made staff")
        };
        assert_eq!(wrong.iter().map(|field| field.pointer.as_str()).collect::<Vec<_>>(), ["/staff/1"]);
        staff(&players[1..]).unwrap();
        assert_eq!([0, 1, 2].map(|no| world.balance(members[no])), [50 - FEE, 50, 50]);
        // Its history shows its payment as a fee.
        let wallet = WalletKey { member: members[0], currency: code("KRW") };
        let entry =
            world.tally.store.ledger().entries(&[EntryKey { wallet, sequence: 2 }]).unwrap().remove(0);
        assert_eq!(entry.map(|entry| (entry.kind, entry.amount)), Some((EntryKind::Fee, FEE)));
        world.end(&members);
    }
}

/// A player with an entry that is open or runs keeps its member, and no other member becomes that player.
#[test]
fn a_player_with_an_entry_is_not_renamed() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        let members = ["ann", "bob"].map(|name| world.member(name, 50));
        let (tally, id) = (&world.tally, ContestId::new("cup").unwrap());
        let name = |name: &str| PlayerId::new(name).unwrap();
        let rename = |member: MemberId, player: PlayerId| {
            let change = MemberChange { player: Some(player), ..MemberChange::default() };
            world.wait(members::change(tally, member, change, Some(Origin::BACKGROUND), None)).map(drop)
        };
        let refuses = || {
            for (member, player) in [(members[0], name("other")), (members[1], name("first"))] {
                assert_eq!(refused(rename(member, player)), Rejection::PlayerInContest("cup".into()));
            }
        };
        rename(members[0], name("first")).unwrap();
        change::create(tally, &id, &ContestActor::SERVER, &spec(true), None).unwrap();
        change::open(tally, &id, &ContestActor::ADMIN, None).unwrap();
        apply::apply(tally, &id, &ContestActor::SERVER, &name("first"), None).unwrap();
        refuses();
        apply::withdraw(tally, &id, &ContestActor::ADMIN, &name("first"), None).unwrap();
        rename(members[0], name("second")).unwrap();
        rename(members[0], name("first")).unwrap();
        apply::apply(tally, &id, &ContestActor::SERVER, &name("first"), None).unwrap();
        apply::decide(tally, &id, &ContestActor::ADMIN, &[name("first")], true, None).unwrap();
        begin::start(tally, &id, &ContestActor::ADMIN, None).unwrap();
        refuses();
        // The same player again is no renaming.
        rename(members[0], name("first")).unwrap();
        finish::cancel(tally, &id, &ContestActor::ADMIN, None).unwrap();
        rename(members[0], name("third")).unwrap();
        assert_eq!(members.map(|member| world.balance(member)), [50, 50]);
        world.end(&members);
    }
}

/// A contest is not opened with a larger capacity than leaderboards allow, nor is a player accepted without one.
#[test]
fn divisions_are_bounded_by_the_leaderboards_there_may_be() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        world.tally.drain();
        let now = Arc::new(AtomicI64::new(world.now().0));
        let clock = Clock::of(move || Micros(now.load(Ordering::SeqCst)));
        let with = Settings { boards_max: 3, ledger: settings(), ..Settings::default() };
        let tally = &start_set(Arc::clone(&world.tally.store), clock, with).unwrap();
        let one = |no: usize| PlayerId::new(&format!("p{no}")).unwrap();
        let id = ContestId::new("cup").unwrap();
        let free = ContestSpec { prizes: None, ..spec(false) };
        let places = |capacity, size: u32| ContestSpec {
            capacity: Some(capacity),
            division_size: Some(size.try_into().ok()),
            ..free.clone()
        };
        change::create(tally, &id, &ContestActor::SERVER, &places(7, 2), None).unwrap();
        let open = || change::open(tally, &id, &ContestActor::ADMIN, None).map(drop);
        let patch =
            |spec: ContestSpec| change::patch(tally, &id, &ContestActor::ADMIN, &spec, None).map(drop);
        patch(places(6, 2)).unwrap();
        open().unwrap();
        let size =
            |size: u32| ContestSpec { division_size: Some(size.try_into().ok()), ..ContestSpec::default() };
        for no in 0..6 {
            apply::apply(tally, &id, &ContestActor::SERVER, &one(no), None).unwrap();
        }
        // Another leaderboard was made meanwhile.
        let other = BoardId::new("other").unwrap();
        boards::put(tally, &other, &tally_rules::definition::BoardSpec::default(), &Origin::BACKGROUND, None)
            .unwrap();
        let all: Vec<_> = (0..6).map(one).collect();
        let done = apply::decide(tally, &id, &ContestActor::ADMIN, &all, true, None).unwrap();
        let ActionResult::Decided(rows) = done.result else { panic!("it is a decision") };
        assert!(rows[..4].iter().all(Result::is_ok), "{rows:?}");
        assert_eq!(refused(patch(size(1))), Rejection::TooManyBoards);
        assert_eq!(rows[4..], [Err(Rejection::TooManyBoards), Err(Rejection::TooManyBoards)]);
        begin::start(tally, &id, &ContestActor::ADMIN, None).unwrap();
        assert_eq!(read::get(tally, &id).unwrap().members, 4);
        tally.drain();
        world.end(&[]);
    }
}

/// A decision on many applications reads the ledger no more often than one on a single one.
#[test]
fn a_decision_reads_all_its_applications_at_once() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        world.tally.drain();
        let dying = Dying::new(Arc::clone(&world.tally.store));
        let now = world.now();
        let with =
            Settings { background: Background::ByHand(|| ()), ledger: settings(), ..Settings::default() };
        let own = start_set(Arc::clone(&dying) as Arc<_>, Clock::of(move || now), with).unwrap();
        let (id, players) = (ContestId::new("cup").unwrap(), ["a", "b", "c", "d"]);
        let players = players.map(|name| PlayerId::new(name).unwrap());
        let free = ContestSpec { prizes: None, capacity: Some(4), ..spec(false) };
        change::create(&own, &id, &ContestActor::SERVER, &free, None).unwrap();
        change::open(&own, &id, &ContestActor::ADMIN, None).unwrap();
        for player in &players {
            apply::apply(&own, &id, &ContestActor::SERVER, player, None).unwrap();
        }
        let reads = |players: &[PlayerId], accept| {
            let before = dying.reads();
            apply::decide(&own, &id, &ContestActor::ADMIN, players, accept, None).unwrap();
            dying.reads() - before
        };
        let one = reads(&players[..1], true);
        assert_eq!([reads(&players, true), reads(&players, false)], [one; 2]);
        own.drain();
        world.end(&[]);
    }
}

/// Applications close at the start time, also before the scheduler has started the contest.
#[test]
fn applications_close_when_the_contest_is_to_start() {
    for kind in [Kind::Sqlite, Kind::MariaDb] {
        let world = World::new(kind);
        let members = [world.member("ann", 50), world.member("bob", 50)];
        let players = members.map(player_of);
        let (tally, now) = (&world.tally, world.now());
        world.tally.drain();
        let time = Arc::new(AtomicI64::new(now.0));
        let tally_of = Arc::clone(&time);
        let clock = Clock::of(move || Micros(tally_of.load(Ordering::SeqCst)));
        let with =
            Settings { background: Background::ByHand(|| ()), ledger: settings(), ..Settings::default() };
        let own = start_set(Arc::clone(&tally.store), clock, with).unwrap();
        let id = ContestId::new("cup").unwrap();
        let timed = ContestSpec { starts_at: Some(Some(now.plus(10_000_000))), ..spec(true) };
        change::create(&own, &id, &ContestActor::SERVER, &timed, None).unwrap();
        change::open(&own, &id, &ContestActor::ADMIN, None).unwrap();
        let apply = |player| {
            apply::apply(&own, &id, &ContestActor::SERVER, player, idempotency("a", 1).as_ref()).map(drop)
        };
        time.fetch_add(9_999_999, Ordering::SeqCst);
        apply(&players[0]).unwrap();
        time.fetch_add(1, Ordering::SeqCst);
        // A retry of a done request is no new application.
        apply(&players[0]).unwrap();
        let late = apply::apply(&own, &id, &ContestActor::SERVER, &players[1], None).map(drop);
        assert_eq!(refused(late), Rejection::ContestState(ContestState::Running));
        scheduler::do_due(&own).unwrap();
        assert_eq!(read::get(&own, &id).unwrap().state, ContestState::Running);
        // A contest that is opened after its start has passed takes applications until a start by hand.
        let passed = ContestId::new("passed").unwrap();
        change::create(&own, &passed, &ContestActor::SERVER, &timed, None).unwrap();
        time.fetch_add(1, Ordering::SeqCst);
        change::open(&own, &passed, &ContestActor::ADMIN, None).unwrap();
        apply::apply(&own, &passed, &ContestActor::SERVER, &players[1], None).unwrap();
        finish::cancel(&own, &passed, &ContestActor::ADMIN, None).unwrap();
        own.drain();
        world.end(&members);
    }
}

/// A player that cannot be paid a prize does not take part, whether it costs something or not.
#[test]
fn a_closed_member_does_not_start() {
    for (kind, fee) in [(Kind::Sqlite, false), (Kind::MariaDb, false), (Kind::Sqlite, true)] {
        let world = World::new(kind);
        let members: Vec<MemberId> = (0..3).map(|no| world.member(&format!("m{no}"), 50)).collect();
        let players: Vec<_> = members.iter().map(|member| player_of(*member)).collect();
        let id = ContestId::new("cup").unwrap();
        change::create(&world.tally, &id, &ContestActor::SERVER, &spec(fee), None).unwrap();
        change::open(&world.tally, &id, &ContestActor::ADMIN, None).unwrap();
        for player in &players {
            apply::apply(&world.tally, &id, &ContestActor::SERVER, player, None).unwrap();
        }
        apply::decide(&world.tally, &id, &ContestActor::ADMIN, &players, true, None).unwrap();
        world.wait(members::close(&world.tally, members[1], true, Origin::BACKGROUND, None)).unwrap();
        let started = begin::start(&world.tally, &id, &ContestActor::ADMIN, None).map(drop);
        let Rejection::InvalidApplications { failed, .. } = refused(started) else {
            panic!("it is refused for its rows")
        };
        let named: Vec<_> = failed.into_iter().map(|row| (row.player, row.why)).collect();
        assert_eq!(named, [(players[1].clone(), InvalidReason::MemberClosed)]);
        apply::withdraw(&world.tally, &id, &ContestActor::ADMIN, &players[1], None).unwrap();
        begin::start(&world.tally, &id, &ContestActor::ADMIN, None).unwrap();
        let (record, left) = (read::get(&world.tally, &id).unwrap(), if fee { 50 - FEE } else { 50 });
        assert_eq!((record.members, world.balance(members[0])), (2, left));
        world.end(&members);
    }
}

#[test]
fn what_a_full_balance_cannot_take_is_written_down() {
    let world = World::new(Kind::Sqlite);
    let members = [world.member("ann", AMOUNT_MAX), world.member("bob", AMOUNT_MAX)];
    let ids = ["prize", "refund"].map(|id| ContestId::new(id).unwrap());
    for (id, units) in ids.iter().zip([AMOUNT_MAX - 1, 1]) {
        let fee = Fee { currency: code("KRW"), amount: amount(units) };
        let spec = ContestSpec { entry_fee: Some(Some(fee)), ..spec(true) };
        change::create(&world.tally, id, &ContestActor::SERVER, &spec, None).unwrap();
        act(&world, &world.tally, id, Op::Open, &members).unwrap();
        for op in [Op::Apply(0), Op::Accept(0), Op::Apply(1), Op::Accept(1), Op::Start] {
            act(&world, &world.tally, id, op, &members).unwrap();
        }
    }
    let full = BALANCE_MAX / AMOUNT_MAX;
    for piece in vec![500; usize::try_from(full / 500).unwrap()] {
        let deposit = (order(TransferKind::Deposit { to: members[0] }, AMOUNT_MAX), false);
        world.post_all(vec![deposit; piece]).into_iter().for_each(|done| drop(done.unwrap()));
    }
    assert_eq!(world.balance(members[0]), BALANCE_MAX);
    act(&world, &world.tally, &ids[0], Op::Score(0, 1), &members).unwrap();
    for (id, op) in [(&ids[0], Op::Finish), (&ids[0], Op::Settle), (&ids[1], Op::Cancel)] {
        act(&world, &world.tally, id, op, &members).unwrap();
    }
    let [first, second] = members.map(player_of);
    let paid = |rows: Vec<(u32, Payout)>| {
        let row = |(no, row): (u32, Payout)| (no, row.player, row.rank, row.amount.units(), row.paid);
        rows.into_iter().map(row).collect::<Vec<_>>()
    };
    let prizes = paid(read::prizes(&world.tally, &ids[0], 0, 9).unwrap().rows);
    let full = Some(Err(UnpaidReason::LimitExceeded));
    assert_eq!(prizes, [(0, first.clone(), 1, 101, full)]);
    let refunds = paid(read::refunds(&world.tally, &ids[1], 0, 9).unwrap().rows);
    let [(0, one, 0, 1, none), (1, other, 0, 1, Some(Ok(transfer)))] = &refunds[..] else {
        panic!("{refunds:?}")
    };
    assert_eq!((one, none, other), (&first, &full, &second));
    assert!(world.tally.store.ledger().transfer(*transfer).unwrap().is_some());
    assert_eq!(paid(read::refunds(&world.tally, &ids[1], 1, 9).unwrap().rows), refunds[1..]);
    let state = refused(read::refunds(&world.tally, &ids[0], 0, 9));
    assert_eq!(state, Rejection::ContestState(ContestState::Settled));
    assert_eq!(world.balance(members[1]), 1);
    let owed = crate::wallets::verify::owed(&crate::wallets::verify::verify(&*world.tally.store).0);
    let debt = |id: &ContestId, what| {
        format!("contest {}, player {}: {what} KRW, not paid: limit_exceeded", id.as_str(), first.as_str())
    };
    let mut wanted = [debt(&ids[0], "prize of 101"), debt(&ids[1], "fee back of 1")];
    wanted.sort();
    assert_eq!(owed, wanted);
    // By hand both are paid, each once, as soon as there is room.
    let again = |id: &ContestId, actor: &ContestActor, key: &str| {
        pay_again::pay_again(&world.tally, id, actor, idempotency(key, 1).as_ref())
    };
    assert_eq!(
        refused(again(&ids[0], &ContestActor::SERVER, "server")),
        Rejection::Forbidden(ContestRight::Staff)
    );
    again(&ids[0], &ContestActor::ADMIN, "full").unwrap();
    assert_eq!(paid(read::prizes(&world.tally, &ids[0], 0, 9).unwrap().rows), prizes);
    world.post(order(TransferKind::Withdrawal { from: members[0] }, 200), None).unwrap();
    for (id, sum) in ids.iter().zip([101, 102]) {
        for (key, replayed) in [("room", false), ("room", true), ("again", false)] {
            let key = format!("{key} {}", id.as_str());
            assert_eq!(again(id, &ContestActor::ADMIN, &key).unwrap().replayed, replayed);
            assert_eq!(world.balance(members[0]), BALANCE_MAX - 200 + sum);
        }
    }
    // The audit log has each payment by its player.
    let payments = audit::Filter { action: Some(AuditAction::PlayerPaid), ..audit::Filter::default() };
    let payments =
        audit::list(&world.tally, &payments, &ListRange { limit: 9, ..ListRange::default() }).unwrap().rows;
    assert!(payments.iter().all(|(_, row)| *row.subject == *first.as_str()), "{payments:?}");
    let detail =
        |(_, row): &(_, AuditEntry)| row.detail.as_deref().unwrap().split(',').next().unwrap().to_owned();
    let mut details: Vec<String> = payments.iter().map(detail).collect();
    details.sort();
    let member = members[0].0;
    let detail = |what: &str, of: &str| format!("{what} KRW to {member} of contest:{of}");
    assert_eq!(details, [detail("prize: 101", "prize"), detail("refund: 1", "refund")]);
    let (_, wrong) = crate::wallets::verify::verify(&*world.tally.store);
    assert_eq!(wrong, [""; 0]);
    assert_eq!(tally_service::owed::list(&world.tally, None, 9).unwrap().rows, []);
    world.end(&members);
}

#[test]
fn hiding_asked_again_after_the_end_is_what_was_done() {
    let world = World::new(Kind::Sqlite);
    let members = [world.member("ann", 50)];
    let id = ContestId::new("cup").unwrap();
    change::create(&world.tally, &id, &ContestActor::SERVER, &spec(false), None).unwrap();
    for op in [Op::Open, Op::Apply(0), Op::Accept(0), Op::Start] {
        act(&world, &world.tally, &id, op, &members).unwrap();
    }
    let set_ban = |key: &str, print| {
        let player = player_of(members[0]);
        let done = ban::ban(&world.tally, &id, &ContestActor::ADMIN, &player, true, idempotency(key, print));
        world.wait(done)
    };
    assert!(!set_ban("hide", 1).unwrap());
    act(&world, &world.tally, &id, Op::Finish, &members).unwrap();
    act(&world, &world.tally, &id, Op::Settle, &members).unwrap();
    assert!(set_ban("hide", 1).unwrap());
    assert_eq!(refused(set_ban("hide", 2)), Rejection::IdempotencyKeyReused);
    assert_eq!(refused(set_ban("anew", 1)), Rejection::ContestState(ContestState::Settled));
    world.end(&members);
}

/// Monotonic time stands still, and the wall clock is where the test puts it.
struct Jumping(Arc<AtomicI64>);

impl TimeSource for Jumping {
    fn read(&self) -> Reading {
        Reading { wall: Micros(self.0.load(Ordering::SeqCst)), monotonic: 0 }
    }
}

#[test]
fn a_clock_that_jumps_opens_no_contest_and_ends_no_hold() {
    let world = World::new(Kind::Sqlite);
    let ann = world.member("ann", 100);
    let now = world.now();
    let cup = ContestId::new("cup").unwrap();
    let timed = ContestSpec { opens_at: Some(Some(now.plus(10_000_000))), ..spec(true) };
    change::create(&world.tally, &cup, &ContestActor::SERVER, &timed, None).unwrap();
    world.tally.drain();
    let wall = Arc::new(AtomicI64::new(now.0));
    let clock = Clock::new(Jumping(Arc::clone(&wall)));
    let tally = start_by(Arc::clone(&world.tally.store), clock, settings(), None).unwrap();
    let wallet = WalletKey { member: ann, currency: code("KRW") };
    let (amount, expires_at) = (Amount::new(60).unwrap(), Some(now.plus(10_000_000)));
    let hold =
        NewHold { wallet, amount, expires_at, origin: Origin::default(), idempotency: idempotency("h", 1) };
    let hold = world.wait(holds::place(&tally, hold)).unwrap();
    wall.fetch_add(3_600_000_000, Ordering::SeqCst);
    scheduler::do_due(&tally).unwrap();
    assert_eq!(read::get(&tally, &cup).unwrap().state, ContestState::Draft);
    wall.fetch_sub(3_600_000_000, Ordering::SeqCst);
    scheduler::do_due(&tally).unwrap();
    let ending = Ending::Capture { amount: None, to: None };
    let captured =
        world.wait(holds::end(&tally, hold.id, ending, Origin::default(), idempotency("c", 1))).unwrap();
    assert!(captured.hold.end.is_some());
    // By a clock that does not jump due work is done.
    wall.fetch_add(20_000_000, Ordering::SeqCst);
    scheduler::do_due(&tally).unwrap();
    assert_eq!(read::get(&tally, &cup).unwrap().state, ContestState::Open);
    tally.drain();
}
