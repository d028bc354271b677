//! Series against lists of moments written out, under clocks that stop, run and jump.

use super::*;
use crate::ledger::Amount;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Moments that are written out and repeat after `length`.
#[derive(Clone, Debug)]
struct Every {
    length: i64,
    of: BTreeSet<i64>,
}

impl Every {
    fn is(&self, at: i64) -> bool {
        self.of.contains(&at.rem_euclid(self.length))
    }
}

impl Moments for Every {
    fn next(&self, after: Micros) -> Option<Micros> {
        (after.0 + 1..).take(self.length as usize).find(|at| self.is(*at)).map(Micros)
    }

    fn previous(&self, at: Micros) -> Option<Micros> {
        (0..self.length).map(|back| at.0 - back).find(|at| self.is(*at)).map(Micros)
    }

    fn minute(&self, at: Micros) -> Minute {
        let part = |divisor: i64| u8::try_from(at.0.div_euclid(divisor).rem_euclid(60)).unwrap();
        let year = u16::try_from(at.0.div_euclid(3_600).clamp(0, 9_999)).unwrap();
        Minute { year, month: 1, day: 1, hour: part(60), minute: part(1) }
    }
}

fn any_schedule() -> impl Strategy<Value = Every> {
    (2_i64..20, proptest::collection::btree_set(0_i64..20, 1..5)).prop_map(|(length, of)| {
        let of = of.into_iter().map(|at| at % length).collect();
        Every { length, of }
    })
}

fn series(ahead: u32) -> Series {
    let text = || "* * * * *".to_owned();
    let template = Contest { title: "Cup".into(), ..Contest::default() };
    Series { template, open: text(), start: text(), end: text(), time_zone: "UTC".into(), ahead }
}

fn name() -> ContestId {
    ContestId::of_series("cup").unwrap()
}

/// One contest by the contract, found moment by moment.
fn plain(table: &Timetable<Every>, start: i64) -> (i64, i64, i64) {
    let opens = (0..start).rev().find(|at| table.open.is(*at));
    let ends = (start + 1..).find(|at| table.end.is(*at));
    (opens.unwrap(), start, ends.unwrap())
}

proptest! {
    #[test]
    fn contests_are_those_of_the_starts_each_once_and_in_order(
        (open, start, end) in (any_schedule(), any_schedule(), any_schedule()),
        ahead in 1_u32..4,
        steps in proptest::collection::vec(0_i64..30, 1..20),
    ) {
        let table = Timetable { open, start, end };
        let mut now = 1_000;
        let mut record = SeriesRecord::new(series(ahead), &table, Micros(now));
        let mut made: Vec<Occurrence> = Vec::new();
        for step in steps {
            // Sometimes the server is down, and then catches up.
            now += step;
            while let Some(making) = record.make(&name(), &table, Micros(now)) {
                record = making.then.clone();
                made.push(making);
            }
            let future = made.iter().filter(|one| one.contest.starts_at > Some(Micros(now))).count();
            prop_assert_eq!(future, ahead as usize, "so many are there that have not started");
        }
        let last = made.last().unwrap().contest.starts_at.unwrap().0;
        let starts: Vec<i64> = (1_001..=last).filter(|at| table.start.is(*at)).collect();
        prop_assert_eq!(made.len(), starts.len());
        let mut before = Micros(1_000);
        for (one, start) in made.iter().zip(&starts) {
            let Contest { opens_at, starts_at, ends_at, .. } = &one.contest;
            let times = [opens_at, starts_at, ends_at].map(|at| at.unwrap().0);
            let (opens, starts, ends) = plain(&table, *start);
            prop_assert_eq!(times, [opens, starts, ends]);
            prop_assert!(one.contest.check(&Currencies::default(), ContestLimits::default()).is_ok());
            // The scheduled time never goes back, and is before the start.
            prop_assert!(before <= one.at && one.at < Micros(*start), "{:?}", one);
            let earlier = starts_before(&table, *start, ahead);
            prop_assert_eq!(one.at, Micros(earlier.max(1_000)));
            before = one.at;
        }
        let names: BTreeSet<&str> = made.iter().map(|one| one.id.as_str()).collect();
        prop_assert_eq!(names.len(), made.len());
        prop_assert_eq!(made.last().map(|one| &one.id), record.last.as_ref());
    }

    /// After a long time only the last missed contests are created. Then the series continues.
    #[test]
    fn what_was_missed_is_bounded(start in any_schedule(), away in 0_i64..4_000) {
        let table = Timetable { open: start.clone(), start: start.clone(), end: start };
        let mut record = SeriesRecord::new(series(1), &table, Micros(5_000));
        let now = 5_000 + away;
        let mut made = Vec::new();
        while let Some(making) = record.make(&name(), &table, Micros(now)) {
            record = making.then;
            made.push(making.contest.starts_at.unwrap().0);
        }
        let missed: Vec<i64> = (5_001..=now).filter(|at| table.start.is(*at)).collect();
        let next = (now + 1..).find(|at| table.start.is(*at)).unwrap();
        let kept = &missed[missed.len().saturating_sub(MISSED_MAX)..];
        let wanted: Vec<i64> = kept.iter().copied().chain([next]).collect();
        prop_assert_eq!(made, wanted);
    }
}

/// The start that is `ahead` starts before this one.
fn starts_before(table: &Timetable<Every>, start: i64, ahead: u32) -> i64 {
    (0..start).rev().filter(|at| table.start.is(*at)).nth(ahead as usize - 1).unwrap()
}

fn every(length: i64, of: &[i64]) -> Every {
    Every { length, of: of.iter().copied().collect() }
}

#[test]
fn other_schedules_count_from_now_and_other_templates_from_the_next() {
    let seldom = Timetable { open: every(100, &[0]), start: every(100, &[50]), end: every(100, &[90]) };
    let record = SeriesRecord::new(series(1), &seldom, Micros(1_010));
    let made = record.make(&name(), &seldom, Micros(1_010)).unwrap();
    assert_eq!((made.contest.starts_at, made.then.due), (Some(Micros(1_050)), Some(Micros(1_050))));
    // Only the template changes: no contest is created again.
    let mut other = series(1);
    other.template.title = "Other".into();
    let same = made.then.clone().changed(other.clone(), &seldom, Micros(1_020));
    assert_eq!((same.from, same.due), (made.then.from, made.then.due));
    assert_eq!(same.make(&name(), &seldom, Micros(1_049)), None);
    assert_eq!(same.make(&name(), &seldom, Micros(1_050)).unwrap().contest.title, "Other");
    // More frequent: from now on, whatever was created for later.
    let often = Timetable { open: every(10, &[0]), start: every(10, &[5]), end: every(10, &[9]) };
    other.start = "5 * * * *".into();
    let changed = made.then.clone().changed(other.clone(), &often, Micros(1_020));
    let next = changed.make(&name(), &often, Micros(1_020)).unwrap();
    assert_eq!((next.contest.starts_at, next.at), (Some(Micros(1_025)), Micros(1_020)));
    // A higher `ahead`: the missing contests are created now.
    let more = Series { ahead: 3, ..made.then.series.clone() };
    let changed = made.then.changed(more, &seldom, Micros(1_020));
    assert_eq!(changed.make(&name(), &seldom, Micros(1_020)).unwrap().contest.starts_at, Some(Micros(1_150)));
}

#[test]
fn too_many_at_a_time_are_refused() {
    let minutes = every(1, &[0]);
    let end = |after: i64| every(after, &[0]);
    let check = |end| Timetable { open: minutes.clone(), start: minutes.clone(), end }.check(Micros(0));
    assert_eq!(check(end(1)), Ok(()));
    assert_eq!(check(end(RUNNING_MAX as i64)), Ok(()));
    let Err(Rejection::InvalidContest(wrong)) = check(end(RUNNING_MAX as i64 + 1)) else { panic!() };
    assert_eq!(wrong[0].pointer, "/end");
}

#[test]
fn wrong_fields_of_a_template_are_named_where_they_are() {
    let spec = |title: &str, ahead| SeriesSpec {
        template: definition::ContestSpec { title: Some(title.into()), ..definition::ContestSpec::default() },
        ahead,
        ..SeriesSpec::default()
    };
    let (currencies, bounds) = (Currencies::default(), ContestLimits::default());
    let pointer = |done: Result<Series, Rejection>| match done {
        Err(Rejection::InvalidContest(wrong)) => wrong[0].pointer.clone(),
        done => panic!("{done:?}"),
    };
    assert_eq!(pointer(spec(" ", None).create(&currencies, bounds)), "/template/title");
    assert_eq!(pointer(spec("x", Some(0)).create(&currencies, bounds)), "/ahead");
    assert_eq!(pointer(spec("x", Some(AHEAD_MAX + 1)).create(&currencies, bounds)), "/ahead");
    let made = spec("x", None).create(&currencies, bounds).unwrap();
    assert_eq!((made.ahead, made.time_zone.as_str()), (1, "UTC"));
    let changed = SeriesSpec { end: Some("1 * * * *".into()), ..SeriesSpec::default() };
    let changed = changed.change(&made, &currencies, bounds).unwrap();
    assert_eq!(changed, Series { end: "1 * * * *".into(), ..made.clone() });
    let fee = definition::Fee {
        currency: crate::ledger::Currency::parse("EUR").unwrap(),
        amount: Amount::new(1).unwrap(),
    };
    let template =
        definition::ContestSpec { entry_fee: Some(Some(fee)), ..definition::ContestSpec::default() };
    let wrong = SeriesSpec { template, ..SeriesSpec::default() };
    assert_eq!(pointer(wrong.change(&made, &currencies, bounds)), "/template/entry_fee/currency");
}
