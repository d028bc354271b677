//! Wishes, wrong fields and frozen ones, by table.

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
    let wish = Wish { title: Some("Cup".into()), ..Wish::default() };
    let made = wish.create(&currencies(), Bounds::default()).unwrap();
    assert_eq!(made, Contest { title: "Cup".into(), capacity: 100_000, ..Contest::default() });
    let fee = Some(Some(Fee { currency: code("KRW"), amount: amount(1) }));
    let paid = Wish { entry_fee: fee, ..wish };
    assert_eq!(paid.create(&currencies(), Bounds::default()).unwrap().capacity, 10_000);
    let too_large = Wish { capacity: Some(10_001), ..paid };
    assert_eq!(too_large.create(&currencies(), Bounds::default()), Err(Refusal::ContestTooLarge(10_000)));
}

#[test]
fn every_wrong_field_is_named() {
    let wish = Wish {
        title: Some(" ".into()),
        staff: Some(vec![player("a"), player("b"), player("a")]),
        capacity: Some(0),
        entry_fee: Some(Some(Fee { currency: code("EUR"), amount: amount(1) })),
        leaderboard: Some(Definition { all_time: false, periods: Vec::new(), ..Definition::default() }),
        prizes: Some(vec![prize(1, 2, "KRW"), prize(2, 2, "EUR")]),
        opens_at: Some(Some(Micros(5))),
        starts_at: Some(Some(Micros(4))),
        ends_at: Some(Some(Micros(4))),
        ..Wish::default()
    };
    let Err(Refusal::InvalidContest(wrong)) = wish.create(&currencies(), Bounds::default()) else { panic!() };
    let pointers: Vec<&str> = wrong.iter().map(|one| one.pointer.as_str()).collect();
    let wanted = [
        "/title",
        "/staff/2",
        "/capacity",
        "/entry_fee/currency",
        "/leaderboard/periods",
        "/prizes/1/from",
        "/prizes/1/currency",
        "/starts_at",
        "/ends_at",
    ];
    assert_eq!(pointers, wanted);
}

#[test]
fn times_follow_each_other_and_any_may_be_missing() {
    let at = |opens: Option<i64>, starts: Option<i64>, ends: Option<i64>| {
        let [opens_at, starts_at, ends_at] = [opens, starts, ends].map(|at| Some(at.map(Micros)));
        let wish = Wish { title: Some("x".into()), opens_at, starts_at, ends_at, ..Wish::default() };
        match wish.create(&currencies(), Bounds::default()) {
            Ok(_) => Vec::new(),
            Err(Refusal::InvalidContest(wrong)) => wrong.into_iter().map(|one| one.pointer).collect(),
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

/// Each field is changed in each state; and left as it is, which is never refused.
#[test]
fn fields_freeze_one_after_the_other() {
    let base = Wish {
        title: Some("Cup".into()),
        capacity: Some(8),
        ends_at: Some(Some(Micros(100))),
        ..Wish::default()
    };
    let base = base.create(&currencies(), Bounds::default()).unwrap();
    let one = Wish::default;
    let ascending = Definition { order: crate::definition::Order::Ascending, ..Definition::default() };
    let changes = [
        ("title", Wish { title: Some("Cup 2".into()), ..one() }, "finished"),
        ("staff", Wish { staff: Some(vec![player("a")]), ..one() }, "finished"),
        ("capacity", Wish { capacity: Some(9), ..one() }, "open"),
        ("capacity", Wish { capacity: Some(7), ..one() }, "draft"),
        ("on_invalid", Wish { on_invalid: Some(OnInvalid::Skip), ..one() }, "open"),
        (
            "entry_fee",
            Wish { entry_fee: Some(Some(Fee { currency: code("KRW"), amount: amount(1) })), ..one() },
            "draft",
        ),
        ("leaderboard", Wish { leaderboard: Some(ascending), ..one() }, "draft"),
        ("prizes", Wish { prizes: Some(vec![prize(1, 1, "KRW")]), ..one() }, "draft"),
        ("prize_ties", Wish { prize_ties: Some(PrizeTies::Each), ..one() }, "draft"),
        ("division_size", Wish { division_size: Some(NonZeroU32::new(2)), ..one() }, "open"),
        ("opens_at", Wish { opens_at: Some(Some(Micros(1))), ..one() }, "draft"),
        ("starts_at", Wish { starts_at: Some(Some(Micros(1))), ..one() }, "open"),
        ("ends_at", Wish { ends_at: Some(Some(Micros(101))), ..one() }, "running"),
    ];
    let names: Vec<&str> = changes.iter().map(|(name, ..)| *name).collect();
    assert_eq!(names, FROZEN_FROM.iter().map(|field| field.0).collect::<Vec<_>>());
    let whole = Wish { capacity: Some(8), title: Some("Cup".into()), ..one() };
    for state in State::ALL {
        for (name, wish, last) in &changes {
            let may = *state <= State::parse(last).unwrap();
            let done = wish.change(&base, *state, &currencies(), Bounds::default());
            let refused = Refusal::ContestFrozen { state: *state, fields: vec![*name] };
            assert_eq!(done.map(drop), if may { Ok(()) } else { Err(refused) }, "{name} in {state}");
        }
        assert_eq!(whole.change(&base, *state, &currencies(), Bounds::default()), Ok(base.clone()));
    }
}

/// A bound that was lowered keeps no other field from changing.
#[test]
fn a_contest_keeps_the_places_of_an_earlier_bound() {
    let large = Wish { title: Some("Cup".into()), capacity: Some(9), ..Wish::default() };
    let present = large.create(&currencies(), Bounds::default()).unwrap();
    let lower = Bounds { members_max: 8, ..Bounds::default() };
    let change = |wish: Wish| wish.change(&present, State::Draft, &currencies(), lower).map(drop);
    assert_eq!(change(Wish { title: Some("Cup 2".into()), capacity: Some(9), ..Wish::default() }), Ok(()));
    let too_large = Err(Refusal::ContestTooLarge(8));
    assert_eq!(change(Wish { capacity: Some(10), ..Wish::default() }), too_large);
}

#[test]
fn the_documentation_has_this_table() {
    let text = include_str!("../../../../../docs/contests.md");
    let (begin, end) = ("<!-- the table of fields -->\n", "<!-- end -->");
    let shown = text.split_once(begin).and_then(|(_, rest)| rest.split_once(end)).map(|(table, _)| table);
    assert_eq!(shown, Some(markdown().as_str()), "put this into docs/contests.md:\n{}", markdown());
}
