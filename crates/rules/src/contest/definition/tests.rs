//! Specs, wrong fields and frozen fields, by table.

use super::super::pool::PoolPrize;
use super::*;

fn currencies() -> Currencies {
    Currencies::default()
}

fn code(text: &str) -> Currency {
    Currency::parse(text).unwrap()
}

fn amount(units: i64) -> Amount {
    Amount::new(units).unwrap()
}

fn player(name: &str) -> PlayerId {
    PlayerId::new(name).unwrap()
}

fn prize(from: u32, to: u32, currency: &str) -> Prize {
    Prize { from, to, currency: code(currency), amount: amount(5) }
}

#[test]
fn a_title_is_all_it_takes() {
    let spec = ContestSpec { title: Some("Cup".into()), ..ContestSpec::default() };
    let made = spec.create(&currencies(), ContestLimits::default()).unwrap();
    assert_eq!(made, Contest { title: "Cup".into(), capacity: 100_000, ..Contest::default() });
    let fee = Some(Some(Fee { currency: code("KRW"), amount: amount(1) }));
    let paid = ContestSpec { entry_fee: fee, ..spec };
    assert_eq!(paid.create(&currencies(), ContestLimits::default()).unwrap().capacity, 10_000);
    let too_large = ContestSpec { capacity: Some(10_001), ..paid };
    assert_eq!(
        too_large.create(&currencies(), ContestLimits::default()),
        Err(Rejection::ContestTooLarge(10_000))
    );
}

#[test]
fn every_wrong_field_is_named() {
    let spec = ContestSpec {
        title: Some(" ".into()),
        staff: Some(vec![player("a"), player("b"), player("a")]),
        capacity: Some(0),
        players_min: Some(NonZeroU32::new(1)),
        join_s: Some(NonZeroU32::new(LENGTH_S_MAX + 1)),
        review_s: Some(Some(LENGTH_S_MAX + 1)),
        entry_fee: Some(Some(Fee { currency: code("EUR"), amount: amount(1) })),
        leaderboard: Some(Definition { all_time: false, periods: Vec::new(), ..Definition::default() }),
        prizes: Some(vec![prize(1, 2, "KRW"), prize(2, 2, "EUR")]),
        pool: Some(Some(PrizePool {
            prizes: vec![PoolPrize { from: 1, to: 3, share: 4_000 }],
            rake: 1,
            min: None,
        })),
        opens_at: Some(Some(Micros(5))),
        starts_at: Some(Some(Micros(4))),
        ends_at: Some(Some(Micros(4))),
        ..ContestSpec::default()
    };
    let Err(Rejection::InvalidContest(wrong)) = spec.create(&currencies(), ContestLimits::default()) else {
        panic!()
    };
    let pointers: Vec<&str> = wrong.iter().map(|one| one.pointer.as_str()).collect();
    let wanted = [
        "/title",
        "/staff/2",
        "/capacity",
        "/players_min",
        "/entry_fee/currency",
        "/leaderboard/periods",
        "/prizes/1/from",
        "/prizes/1/currency",
        "/pool/prizes/0/share",
        "/starts_at",
        "/ends_at",
        "/review_s",
        "/join_s",
    ];
    assert_eq!(pointers, wanted);
}

#[test]
fn times_follow_each_other_and_any_may_be_missing() {
    let at = |opens: Option<i64>, starts: Option<i64>, ends: Option<i64>| {
        let [opens_at, starts_at, ends_at] = [opens, starts, ends].map(|at| Some(at.map(Micros)));
        let spec =
            ContestSpec { title: Some("x".into()), opens_at, starts_at, ends_at, ..ContestSpec::default() };
        match spec.create(&currencies(), ContestLimits::default()) {
            Ok(_) => Vec::new(),
            Err(Rejection::InvalidContest(wrong)) => wrong.into_iter().map(|one| one.pointer).collect(),
            Err(other) => panic!("{other:?}"),
        }
    };
    assert!(at(None, None, None).is_empty());
    assert!(at(Some(1), Some(1), Some(2)).is_empty());
    assert!(at(None, None, Some(-5)).is_empty());
    assert_eq!(at(Some(2), Some(1), Some(3)), ["/starts_at"]);
    assert_eq!(at(Some(2), None, Some(1)), ["/ends_at"]);
    assert_eq!(at(None, Some(2), Some(2)), ["/ends_at"]);
}

/// Each field is changed in each state, and left unchanged, which is never refused.
#[test]
fn fields_freeze_one_after_the_other() {
    let base = ContestSpec {
        title: Some("Cup".into()),
        capacity: Some(8),
        ends_at: Some(Some(Micros(100))),
        entry_fee: Some(Some(Fee { currency: code("KRW"), amount: amount(7) })),
        pool: Some(Some(PrizePool {
            prizes: vec![PoolPrize { from: 1, to: 1, share: 9_000 }],
            rake: 0,
            min: None,
        })),
        ..ContestSpec::default()
    };
    let base = base.create(&currencies(), ContestLimits::default()).unwrap();
    let one = ContestSpec::default;
    let ascending = Definition { order: crate::definition::Order::Ascending, ..Definition::default() };
    let changes = [
        ("title", ContestSpec { title: Some("Cup 2".into()), ..one() }, "finished"),
        ("staff", ContestSpec { staff: Some(vec![player("a")]), ..one() }, "finished"),
        ("capacity", ContestSpec { capacity: Some(9), ..one() }, "open"),
        ("capacity", ContestSpec { capacity: Some(7), ..one() }, "draft"),
        ("on_invalid", ContestSpec { on_invalid: Some(OnInvalid::Skip), ..one() }, "open"),
        ("auto_accept", ContestSpec { auto_accept: Some(true), ..one() }, "open"),
        ("players_min", ContestSpec { players_min: Some(NonZeroU32::new(2)), ..one() }, "open"),
        ("below_min", ContestSpec { below_min: Some(BelowMin::Start), ..one() }, "open"),
        ("join_s", ContestSpec { join_s: Some(NonZeroU32::new(9)), ..one() }, "running"),
        ("attempts_max", ContestSpec { attempts_max: Some(NonZeroU32::new(9)), ..one() }, "draft"),
        (
            "entry_fee",
            ContestSpec { entry_fee: Some(Some(Fee { currency: code("KRW"), amount: amount(1) })), ..one() },
            "draft",
        ),
        ("leaderboard", ContestSpec { leaderboard: Some(ascending), ..one() }, "draft"),
        ("prizes", ContestSpec { prizes: Some(vec![prize(1, 1, "KRW")]), ..one() }, "draft"),
        ("prize_ties", ContestSpec { prize_ties: Some(PrizeTies::Each), ..one() }, "draft"),
        ("pool", ContestSpec { pool: Some(None), ..one() }, "draft"),
        ("division_size", ContestSpec { division_size: Some(NonZeroU32::new(2)), ..one() }, "open"),
        ("opens_at", ContestSpec { opens_at: Some(Some(Micros(1))), ..one() }, "draft"),
        ("starts_at", ContestSpec { starts_at: Some(Some(Micros(1))), ..one() }, "open"),
        ("ends_at", ContestSpec { ends_at: Some(Some(Micros(101))), ..one() }, "running"),
        ("review_s", ContestSpec { review_s: Some(Some(60)), ..one() }, "finished"),
    ];
    let names: Vec<&str> = changes.iter().map(|(name, ..)| *name).collect();
    assert_eq!(names, FROZEN_FROM.iter().map(|field| field.0).collect::<Vec<_>>());
    let whole = ContestSpec { capacity: Some(8), title: Some("Cup".into()), ..one() };
    for state in ContestState::ALL {
        for (name, spec, last) in &changes {
            let may = *state <= ContestState::parse(last).unwrap();
            let done = spec.change(&base, *state, &currencies(), ContestLimits::default());
            let refused = Rejection::ContestFrozen { state: *state, fields: vec![*name] };
            assert_eq!(done.map(drop), if may { Ok(()) } else { Err(refused) }, "{name} in {state}");
        }
        assert_eq!(whole.change(&base, *state, &currencies(), ContestLimits::default()), Ok(base.clone()));
    }
}

#[test]
fn the_clock_cancels_with_fewer_members_than_it_needs() {
    let contest =
        |least, below_min| Contest { players_min: NonZeroU32::new(least), below_min, ..Contest::default() };
    // (players_min, below_min, members, whether it is cancelled)
    let rows = [
        (0, BelowMin::Cancel, 0, false),
        (1, BelowMin::Cancel, 0, true),
        (1, BelowMin::Cancel, 1, false),
        (3, BelowMin::Cancel, 2, true),
        (3, BelowMin::Cancel, 4, false),
        (3, BelowMin::Start, 2, false),
    ];
    for (least, below_min, members, wanted) in rows {
        assert_eq!(contest(least, below_min).lacks_members(members), wanted, "{least} {below_min} {members}");
    }
}

/// A bound that was lowered does not prevent changes of other fields.
#[test]
fn a_contest_keeps_the_places_of_an_earlier_bound() {
    let large = ContestSpec { title: Some("Cup".into()), capacity: Some(9), ..ContestSpec::default() };
    let present = large.create(&currencies(), ContestLimits::default()).unwrap();
    let lower = ContestLimits { members_max: 8, ..ContestLimits::default() };
    let change =
        |spec: ContestSpec| spec.change(&present, ContestState::Draft, &currencies(), lower).map(drop);
    assert_eq!(
        change(ContestSpec { title: Some("Cup 2".into()), capacity: Some(9), ..ContestSpec::default() }),
        Ok(())
    );
    let too_large = Err(Rejection::ContestTooLarge(8));
    assert_eq!(change(ContestSpec { capacity: Some(10), ..ContestSpec::default() }), too_large);
}

#[test]
fn the_documentation_has_this_table() {
    let text = include_str!("../../../../../docs/contests.md");
    let (begin, end) = ("<!-- the table of fields -->\n", "<!-- end -->");
    let shown = text.split_once(begin).and_then(|(_, rest)| rest.split_once(end)).map(|(table, _)| table);
    assert_eq!(shown, Some(markdown().as_str()), "put this into docs/contests.md:\n{}", markdown());
}
