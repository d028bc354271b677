//! Contests: rows read back by every way, lists in their orders, and random changes against maps.

use super::*;
use std::collections::BTreeMap;
use tally_rules::contest::application::ApplicationCounts;
use tally_rules::contest::definition::Fee;
use tally_rules::contest::member::UnpaidReason;
use tally_rules::contest::pool::{PoolPrize, PoolResult, PrizePool};
use tally_rules::contest::record::{ApplicationLocation, ContestTask, StartReport};
use tally_rules::contest::start::{InvalidApplication, InvalidReason};
use tally_rules::contest::{
    Application, BelowMin, Contest, ContestId, ContestPlayer, ContestRecord, ContestState, OnInvalid, Payout,
    Prize, PrizeTies, Series, SeriesRecord, Status,
};
use tally_rules::ledger::{Amount, Currency, HoldId, MemberId, TransferId, Uuid};
use tally_rules::period::PeriodPayment;
use tally_store::{
    ContestReadSet, ContestWriteSet, EntrantKey, LedgerReadSet, LedgerWriteSet, PayoutKey, WindowKey,
};
use tally_testkit::Rng;
use tally_testkit::rng::soak;

pub(crate) fn name(text: &str) -> ContestId {
    ContestId::new(text).unwrap()
}

fn number(number: u8) -> Uuid {
    Uuid([number; 16])
}

fn pool() -> PrizePool {
    let prizes = [(1, 1, 5_000), (2, u32::MAX, 1)].map(|(from, to, share)| PoolPrize { from, to, share });
    PrizePool { prizes: prizes.to_vec(), rake: 10_000, min: Amount::new(1 << 40).ok() }
}

/// A contest with something, or nothing, in every field.
pub(crate) fn row(no: u8, full: bool) -> ContestRecord {
    let won = Currency::parse("KRW").unwrap();
    let amount = Amount::new(1 << 40).unwrap();
    let contest = Contest { title: "Zoë's cup".into(), capacity: 7, ..Contest::default() };
    if !full {
        return ContestRecord::new(number(no), contest, None, Micros(-3));
    }
    let mut row = ContestRecord::new(number(no), contest, Some(name("series")), Micros(i64::MIN));
    row.contest.staff = ["日本", "a\0"].map(|name| PlayerId::new(name).unwrap()).to_vec();
    row.contest.on_invalid = OnInvalid::Skip;
    row.contest.entry_fee = Some(Fee { currency: won, amount });
    row.contest.leaderboard = super::boards::definitions()[2].clone();
    row.contest.prizes = vec![Prize { from: 1, to: u32::MAX, currency: won, amount }];
    row.contest.prize_ties = PrizeTies::Each;
    row.contest.division_size = Some(50.try_into().unwrap());
    row.contest.opens_at = Some(Micros(-1));
    row.contest.starts_at = Some(Micros(0));
    row.contest.ends_at = Some(Micros(i64::MAX));
    (row.state, row.since, row.revision, row.members) =
        (ContestState::Running, Micros(5), u64::MAX, u32::MAX);
    row.kept = if no == 3 { ApplicationLocation::Redis(number(9)) } else { ApplicationLocation::Lost };
    // Earlier releases, whose row has the number 1, had neither.
    if no != 1 {
        (row.contest.review_s, row.reversed_payouts) = (Some(u32::MAX), 4);
        row.contest.auto_accept = true;
        row.contest.players_min = Some(u32::MAX.try_into().unwrap());
        row.contest.join_s = Some(1.try_into().unwrap());
        row.contest.attempts_max = Some(u32::MAX.try_into().unwrap());
        row.contest.below_min = BelowMin::Start;
        row.contest.pool = Some(pool());
        row.pool_result = Some(PoolResult { first: 7, rake: 1 << 50, top_up: 0 });
        row.reversed_fees = vec![(MemberId(number(1)), 1), (MemberId(number(2)), i64::MAX)];
    }
    row.applications = ApplicationCounts { pending: 1, accepted: 2, rejected: 3, places: u64::MAX };
    let failed = InvalidApplication { player: PlayerId::new("bob").unwrap(), why: InvalidReason::HoldGone };
    row.report = Some(StartReport { enrolled: 9, failed: 1, first_failed: vec![failed] });
    (row.work, row.prizes) = (ContestTask::Refund { after: Some(PlayerId::new("zoë").unwrap()) }, Some(8));
    row
}

fn entrant(contest: u8, player: &str) -> EntrantKey {
    EntrantKey { contest: number(contest), player: PlayerId::new(player).unwrap() }
}

fn application(status: Status, place: u64, full: bool) -> Application {
    let (member, hold) = (full.then_some(MemberId(number(7))), full.then_some(HoldId(number(8))));
    Application { status, place, applied_at: Micros(-7), member, hold }
}

/// Something in the tables that the fixtures leave empty.
pub(crate) fn applied_and_paid() -> ContestWriteSet {
    let payout = Payout {
        player: PlayerId::new("zoë").unwrap(),
        member: MemberId(number(3)),
        division: Some(4),
        rank: 2,
        currency: Currency::parse("KRW").unwrap(),
        amount: Amount::new(5).unwrap(),
        paid: Some(Err(UnpaidReason::MemberClosed)),
    };
    let paid = Payout { division: None, paid: Some(Ok(TransferId(number(4)))), ..payout.clone() };
    let payment = PeriodPayment {
        no: number(5),
        board: BoardId::new("日本").unwrap(),
        period: "weekly:2026-11-16".into(),
        count: 3,
        done: 1,
        at: Micros(-1),
    };
    let ended = PeriodPayment { done: 3, ..payment.clone() };
    let of = |window| WindowKey { board: BoardNo(1), window: Window(window) };
    ContestWriteSet {
        applications: vec![
            (entrant(1, "ann"), Some(application(Status::Pending, 1, true))),
            (entrant(1, "zoë"), Some(application(Status::Rejected, 2, false))),
        ],
        members: vec![
            (entrant(1, "ann"), ContestPlayer { place: 0, division: None, member: None }),
            (
                entrant(1, "zoë"),
                ContestPlayer { place: 1, division: Some(7), member: Some(MemberId(number(3))) },
            ),
        ],
        payouts: vec![
            (PayoutKey { contest: number(1), no: 0 }, payout),
            (PayoutKey { contest: number(1), no: 7 }, paid),
        ],
        payments: vec![(of(1), payment), (of((1 << 62) + 5), ended)],
        ..ContestWriteSet::default()
    }
}

fn put(store: &dyn Store, contests: ContestWriteSet) {
    let ledger = LedgerWriteSet { contests, ..LedgerWriteSet::default() };
    write(store, &WriteSet { ledger, ..WriteSet::default() }).unwrap();
}

fn locked(store: &dyn Store, contests: ContestReadSet) -> tally_store::ContestLoaded {
    let plan =
        ReadSet { ledger: LedgerReadSet { contests, ..LedgerReadSet::default() }, ..ReadSet::default() };
    load(store, &plan).ledger.contests
}

/// Each of the fields that follow the location of applications makes it be written.
fn reviews_and_reversals_read_back(store: &dyn Store, id: &ContestId, row: &ContestRecord) {
    let keep = |row: &ContestRecord| {
        put(
            store,
            ContestWriteSet { contests: vec![(id.clone(), row.clone())], ..ContestWriteSet::default() },
        );
        assert_eq!(store.ledger().contest(id).unwrap().as_ref(), Some(row));
    };
    let mut changed = ContestRecord { kept: ApplicationLocation::Store, ..row.clone() };
    (changed.contest.auto_accept, changed.contest.players_min) = (false, None);
    (changed.contest.join_s, changed.contest.attempts_max) = (None, None);
    changed.contest.below_min = BelowMin::Cancel;
    (changed.contest.pool, changed.pool_result) = (None, None);
    let cases: [fn(&mut ContestRecord); 11] = [
        |row| row.contest.review_s = Some(0),
        |row| (row.contest.review_s, row.reversed_payouts) = (None, 1),
        |row| (row.reversed_fees, row.reversed_payouts) = (vec![(MemberId(number(7)), 5)], 0),
        |row| (row.reversed_fees, row.work) = (Vec::new(), ContestTask::Determine),
        |row| row.contest.auto_accept = true,
        |row| (row.contest.auto_accept, row.contest.players_min) = (false, Some(1.try_into().unwrap())),
        |row| (row.contest.players_min, row.contest.join_s) = (None, Some(7.try_into().unwrap())),
        |row| (row.contest.join_s, row.contest.attempts_max) = (None, Some(1.try_into().unwrap())),
        |row| (row.contest.attempts_max, row.contest.below_min) = (None, BelowMin::Start),
        |row| {
            (row.contest.below_min, row.contest.pool) =
                (BelowMin::Cancel, Some(PrizePool { min: None, ..pool() }))
        },
        |row| row.pool_result = Some(PoolResult { first: 0, rake: 0, top_up: i64::MAX }),
    ];
    for case in cases {
        case(&mut changed);
        keep(&changed);
    }
    keep(row);
}

pub(crate) fn contests_read_back_and_are_listed_by_state(backend: &dyn Backend) {
    let store = open(backend);
    let all = ["B", "a", "a.1", "c"].map(name);
    let mut rows = [row(1, true), row(2, false), row(3, true), row(4, false)];
    for (id, row) in all.iter().zip(&rows) {
        put(
            &*store,
            ContestWriteSet { contests: vec![(id.clone(), row.clone())], ..ContestWriteSet::default() },
        );
    }
    let listed = |state, after: Option<&ContestId>, limit| {
        let found = store.ledger().contests(state, after, limit).unwrap();
        found.into_iter().map(|(id, _)| id.as_str().to_owned()).collect::<Vec<_>>()
    };
    let looks = || {
        for (id, row) in all.iter().zip(&rows) {
            assert_eq!(store.ledger().contest(id).unwrap().as_ref(), Some(row));
        }
        let plan = ContestReadSet { contests: all.to_vec(), ..ContestReadSet::default() };
        assert_eq!(locked(&*store, plan).contests, rows.clone().map(Some));
        assert_eq!(store.ledger().contest(&name("b")).unwrap(), None);
        assert_eq!(listed(None, None, 9), ["B", "a", "a.1", "c"]);
        assert_eq!(listed(None, Some(&all[1]), 1), ["a.1"]);
        assert_eq!(listed(Some(ContestState::Draft), None, 9), ["a", "c"]);
        assert_eq!(listed(Some(ContestState::Running), Some(&all[0]), 9), ["a.1"]);
        assert_eq!(listed(Some(ContestState::Settled), None, 9), Vec::<String>::new());
        let counts: Vec<usize> =
            ContestState::ALL.iter().map(|state| listed(Some(*state), None, 9).len()).collect();
        assert_eq!(counts.iter().sum::<usize>(), 4);
        assert_eq!(store.ledger().count_contests(9).unwrap(), counts);
        let bounded = counts.iter().map(|count| (*count).min(1)).collect::<Vec<_>>();
        assert_eq!(store.ledger().count_contests(1).unwrap(), bounded);
    };
    looks();
    store.checkpoint().unwrap();
    looks();
    reviews_and_reversals_read_back(&*store, &all[1], &rows[1]);
    // Work that is under way is due whatever the clock says; a draft that is never opened never is.
    let due_behind = |now, after, limit| {
        let found = store.ledger().due_contests(Micros(now), after, limit).unwrap();
        found.into_iter().map(|(at, id)| (at.0, id.as_str().to_owned())).collect::<Vec<_>>()
    };
    let due = |now, limit| due_behind(now, None, limit);
    assert_eq!(due(-1, 9), []);
    assert_eq!(due(0, 1), [(0, "B".into())]);
    rows[3].contest.opens_at = Some(Micros(-2));
    rows[0].work = ContestTask::None;
    for place in [0, 3] {
        let contests = vec![(all[place].clone(), rows[place].clone())];
        put(&*store, ContestWriteSet { contests, ..ContestWriteSet::default() });
    }
    for _ in 0..2 {
        assert_eq!(due(5, 9), [(-2, "c".into()), (0, "a.1".into())]);
        assert_eq!(due_behind(5, Some((Micros(-2), "b")), 9), due(5, 9));
        assert_eq!(due_behind(5, Some((Micros(-2), "c")), 9), [(0, "a.1".into())]);
        assert_eq!(due_behind(5, Some((Micros(0), "")), 9), [(0, "a.1".into())]);
        assert_eq!(due_behind(5, Some((Micros(0), "a.1")), 9), []);
        assert_eq!(due(i64::MAX, 9).len(), 3);
        store.checkpoint().unwrap();
    }
    // A contest in another state than its last count.
    rows[1].state = ContestState::Finished;
    let contests = vec![(all[1].clone(), rows[1].clone())];
    put(&*store, ContestWriteSet { contests, ..ContestWriteSet::default() });
    for _ in 0..2 {
        let of = |state: &ContestState| rows.iter().filter(|row| row.state == *state).count();
        let counts: Vec<usize> = ContestState::ALL.iter().map(of).collect();
        assert_eq!(store.ledger().count_contests(9).unwrap(), counts);
        store.checkpoint().unwrap();
    }
}

const PLAYERS: [&str; 12] =
    ["ann", "bob", "zoë", "日本", "c\0d", "a", "b", "ba", "bb", "c", "c\0", "\u{10ffff}"];

pub(crate) fn applications_come_in_order_of_arrival(backend: &dyn Backend) {
    let store = open(backend);
    let mut rng = Rng::of("applications");
    for _ in 0..soak(3) {
        let mut rows: BTreeMap<EntrantKey, Application> = BTreeMap::new();
        for place in 1..150_u64 {
            let key = entrant(rng.below(2) as u8 + 1, PLAYERS[rng.below(PLAYERS.len() as u64) as usize]);
            let status = Status::ALL[rng.below(3) as usize];
            let now = (rng.below(4) > 0).then(|| application(status, place, rng.below(2) == 0));
            let plan = ContestReadSet { applications: vec![key.clone()], ..ContestReadSet::default() };
            assert_eq!(locked(&*store, plan).applications, [rows.get(&key).copied()]);
            // As transactions do: every written row was read.
            let plan = ContestReadSet { applications: vec![key.clone()], ..ContestReadSet::default() };
            let plan = ReadSet {
                ledger: LedgerReadSet { contests: plan, ..LedgerReadSet::default() },
                ..ReadSet::default()
            };
            let applications = vec![(key.clone(), now)];
            let contests = ContestWriteSet { applications, ..ContestWriteSet::default() };
            let ledger = LedgerWriteSet { contests, ..LedgerWriteSet::default() };
            run(&*store, &plan, &mut |_| WriteSet { ledger: ledger.clone(), ..WriteSet::default() }).unwrap();
            match now {
                Some(now) => drop(rows.insert(key, now)),
                None => drop(rows.remove(&key)),
            }
            if rng.below(10) == 0 {
                store.checkpoint().unwrap();
            }
            for contest in [1, 2] {
                let of: Vec<_> = rows.iter().filter(|(key, _)| key.contest == number(contest)).collect();
                let after = (rng.below(3) > 0).then(|| entrant(contest, PLAYERS[rng.below(12) as usize]));
                let limit = rng.below(5) as usize + 1;
                let player = after.as_ref().map(|key| &key.player);
                let first = store.ledger().first_applications(number(contest), player, limit).unwrap();
                let wanted = of.iter().filter(|(key, _)| Some(*key) > after.as_ref()).take(limit);
                let wanted: Vec<_> = wanted.map(|(key, row)| (key.player.clone(), **row)).collect();
                assert_eq!(first, wanted, "{limit} after {after:?}");
                for status in Status::ALL {
                    let above = rng.below(place + 1);
                    let found = store.ledger().applications(number(contest), *status, above, 2).unwrap();
                    let mut wanted: Vec<_> = of
                        .iter()
                        .filter(|(_, row)| row.status == *status && row.place > above)
                        .map(|(key, row)| (key.player.clone(), **row))
                        .collect();
                    wanted.sort_by_key(|(_, row)| row.place);
                    wanted.truncate(2);
                    assert_eq!(found, wanted, "{status} above {above}");
                }
            }
        }
        let mut all: BTreeMap<_, _> = rows.iter().map(|(key, row)| (key.clone(), Some(*row))).collect();
        let player = PlayerId::new("nobody").unwrap();
        all.insert(EntrantKey { contest: number(250), player }, None);
        let keys: Vec<_> = all.keys().cloned().collect();
        let found = store.ledger().applications_of(&keys).unwrap();
        assert_eq!(found, all.into_values().collect::<Vec<_>>());
        for key in rows.into_keys() {
            let applications = vec![(key, None)];
            put(&*store, ContestWriteSet { applications, ..ContestWriteSet::default() });
        }
    }
}

pub(crate) fn members_and_prizes_read_back_page_by_page(backend: &dyn Backend) {
    let store = open(backend);
    let enrolled = |place: u32| ContestPlayer {
        place,
        division: place.is_multiple_of(2).then_some(place),
        member: place.is_multiple_of(3).then_some(MemberId(number(9))),
    };
    let members: Vec<_> = (0..1_500).map(|no| (entrant(1, &format!("p{no:04}")), enrolled(no))).collect();
    let payout = |rank: u32, paid| Payout {
        player: PlayerId::new("zoë").unwrap(),
        member: MemberId(number(3)),
        division: (rank == 2).then_some(4),
        rank,
        currency: Currency::parse("KRW").unwrap(),
        amount: Amount::new(5).unwrap(),
        paid,
    };
    let key = |no| PayoutKey { contest: number(1), no };
    let payouts: Vec<_> = (0..4).map(|no| (key(no), payout(no + 1, None))).collect();
    let other = (entrant(2, "p0000"), enrolled(0));
    let all = members.iter().cloned().chain([other]).collect();
    put(&*store, ContestWriteSet { members: all, payouts: payouts.clone(), ..ContestWriteSet::default() });
    let paid = [Some(Ok(TransferId(number(4)))), Some(Err(UnpaidReason::MemberClosed))];
    // A winner without a member becomes one, and is paid.
    let became = Payout { member: MemberId(number(6)), ..payout(2, paid[0]) };
    let changed = vec![(key(1), became.clone()), (key(2), payout(3, paid[1]))];
    put(&*store, ContestWriteSet { payouts: changed, ..ContestWriteSet::default() });
    let refund = vec![(key(7), payout(0, paid[0]))];
    put(&*store, ContestWriteSet { payouts: refund, ..ContestWriteSet::default() });
    let wanted: Vec<_> = members.iter().map(|(key, row)| (key.player.clone(), *row)).collect();
    for _ in 0..2 {
        let (mut walked, mut after) = (Vec::new(), None);
        loop {
            let page = store.ledger().contest_members(number(1), after.as_ref(), 400).unwrap();
            let Some((last, _)) = page.last() else { break };
            after = Some(last.clone());
            walked.extend(page);
        }
        assert_eq!(walked, wanted);
        let keys = ["p0003", "p1499", "p1500"].map(|name| entrant(1, name));
        let found = store.ledger().enrolled(&keys).unwrap();
        assert_eq!(found, [Some(enrolled(3)), Some(enrolled(1_499)), None]);
        let plan = ContestReadSet { members: keys.to_vec(), ..ContestReadSet::default() };
        assert_eq!(locked(&*store, plan).members, found);
        let prizes = store.ledger().payouts(number(1), 1, 2).unwrap();
        assert_eq!(prizes, [(1, became.clone()), (2, payout(3, paid[1]))]);
        // Numbers may have gaps.
        assert_eq!(
            store.ledger().payouts(number(1), 3, 9).unwrap(),
            [(3, payout(4, None)), (7, payout(0, paid[0]))]
        );
        assert_eq!(store.ledger().payouts(number(2), 0, 9).unwrap(), []);
        store.checkpoint().unwrap();
    }
}

pub(crate) fn series_row(due: Option<i64>, full: bool) -> SeriesRecord {
    let text = |text: &str| text.to_owned();
    let mut template = row(1, full).contest;
    // The fields that came later, with a review and without one. The stores of earlier releases have a series that is due at 5.
    if let (Some(due), true) = (due.filter(|due| *due != 5), full) {
        (template.auto_accept, template.pool) = (true, Some(pool()));
        template.review_s = (due % 2 == 0).then_some(60);
    }
    let series = Series {
        template,
        open: text("0 0 * * *"),
        start: text("0 9 * * MON-FRI"),
        end: text("30 17 * * *"),
        time_zone: text("Asia/Seoul"),
        ahead: if full { u32::MAX } else { 1 },
    };
    SeriesRecord {
        series,
        from: Micros(i64::MIN),
        since: Micros(-1),
        due: due.map(Micros),
        last: full.then(|| name("cup-202611220900")),
        created_at: Micros(7),
        updated_at: Micros(i64::MAX),
    }
}

pub(crate) fn series_come_and_go_and_are_found_when_they_are_due(backend: &dyn Backend) {
    let store = open(backend);
    let mut rng = Rng::of("series");
    let names = ["B", "a", "a.1", "c"].map(name);
    let mut rows: BTreeMap<ContestId, SeriesRecord> = BTreeMap::new();
    for _ in 0..60 * soak(1) {
        let id = names[rng.below(4) as usize].clone();
        let due = (rng.below(4) > 0).then(|| rng.below(5) as i64 - 2);
        let mut now = (rng.below(3) > 0).then(|| series_row(due, rng.below(2) == 0));
        for row in now.iter_mut().filter(|_| rng.below(2) == 0) {
            row.series.template.review_s = Some(7);
        }
        // Its next contest is made in the same transaction.
        let plan =
            ContestReadSet { series: vec![id.clone()], contests: vec![id.clone()], ..Default::default() };
        let plan = ReadSet {
            ledger: LedgerReadSet { contests: plan, ..LedgerReadSet::default() },
            ..ReadSet::default()
        };
        let contests =
            ContestWriteSet { series: vec![(id.clone(), now.clone())], ..ContestWriteSet::default() };
        let ledger = LedgerWriteSet { contests, ..LedgerWriteSet::default() };
        let mut found = None;
        run(&*store, &plan, &mut |loaded| {
            found.clone_from(&loaded.ledger.contests.series[0]);
            WriteSet { ledger: ledger.clone(), ..WriteSet::default() }
        })
        .unwrap();
        assert_eq!(found.as_ref(), rows.get(&id));
        match now {
            Some(now) => drop(rows.insert(id.clone(), now)),
            None => drop(rows.remove(&id)),
        }
        if rng.below(8) == 0 {
            store.checkpoint().unwrap();
        }
        assert_eq!(store.ledger().series(&id).unwrap().as_ref(), rows.get(&id));
        let all: Vec<_> = rows.iter().map(|(id, row)| (id.clone(), row.clone())).collect();
        assert_eq!(store.ledger().list_series(None, 9).unwrap().whole().unwrap(), all);
        let after: Vec<_> = all.iter().filter(|(other, _)| *other > id).take(2).cloned().collect();
        assert_eq!(store.ledger().list_series(Some(&id), 2).unwrap().whole().unwrap(), after);
        let now = rng.below(5) as i64 - 2;
        let after = (rng.below(2) == 0)
            .then(|| (Micros(rng.below(5) as i64 - 2), ["", "B", "b"][rng.below(3) as usize]));
        let mut due: Vec<_> = all.into_iter().filter_map(|(id, row)| Some((row.due?, id))).collect();
        due.retain(|(at, id)| at.0 <= now && after.is_none_or(|after| (*at, id.as_str()) > after));
        due.sort();
        due.truncate(2);
        assert_eq!(store.ledger().due_series(Micros(now), after, 2).unwrap(), due);
    }
}

pub(crate) fn payments_read_back_and_are_found_while_they_are_open(backend: &dyn Backend) {
    let store = open(backend);
    let mut rng = Rng::of("payments");
    let key = |board, window| WindowKey { board: BoardNo(board), window: Window(window) };
    let keys = [key(1, 1), key(1, (1 << 62) + 5), key(2, 1)];
    let mut rows: BTreeMap<WindowKey, PeriodPayment> = BTreeMap::new();
    for _ in 0..40 * soak(1) {
        let key = keys[rng.below(3) as usize];
        let payment = PeriodPayment {
            no: number(rng.below(200) as u8),
            board: BoardId::new("日本").unwrap(),
            period: "weekly:2026-11-16".into(),
            count: 3,
            done: rng.below(4) as u32,
            at: Micros(-1),
        };
        let contests = ContestReadSet { payments: vec![key], ..ContestReadSet::default() };
        let plan =
            ReadSet { ledger: LedgerReadSet { contests, ..LedgerReadSet::default() }, ..ReadSet::default() };
        let contests =
            ContestWriteSet { payments: vec![(key, payment.clone())], ..ContestWriteSet::default() };
        let ledger = LedgerWriteSet { contests, ..LedgerWriteSet::default() };
        let mut found = None;
        run(&*store, &plan, &mut |loaded| {
            found.clone_from(&loaded.ledger.contests.payments[0]);
            WriteSet { ledger: ledger.clone(), ..WriteSet::default() }
        })
        .unwrap();
        assert_eq!(found.as_ref(), rows.get(&key));
        rows.insert(key, payment);
        if rng.below(8) == 0 {
            store.checkpoint().unwrap();
        }
        assert_eq!(store.ledger().payment(key).unwrap().as_ref(), rows.get(&key));
        let open = rows.iter().filter(|(_, payment)| payment.is_open()).map(|(key, _)| *key);
        let open: Vec<_> = open.collect();
        assert_eq!(
            store.ledger().payments(false, None, 9).unwrap(),
            rows.keys().copied().collect::<Vec<_>>()
        );
        for after in [None, Some(keys[0]), Some(keys[1]), Some(keys[2])] {
            let wanted = open.iter().copied().filter(|key| after.is_none_or(|after| *key > after)).take(2);
            assert_eq!(store.ledger().payments(true, after, 2).unwrap(), wanted.collect::<Vec<_>>());
        }
    }
}
