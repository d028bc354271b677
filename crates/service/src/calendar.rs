//! Schedules and time zones become boundaries: the instants at which one period ends and the next begins.
//!
//! A schedule is a five-field cron expression in a time zone's local time. Occurrences are found in local time and then
//! converted. A local time that the zone skips becomes the end of the gap; one that occurs twice becomes the first.
//! Equal boundaries are one. The time zones are those of the IANA database that is compiled in, so a machine without
//! one has the same results. Not here: which periods exist and what is in them.

use croner::parser::{CronParser, Seconds, Year};
use croner::{Cron, Direction};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Span as Length, Timestamp, ToSpan, Zoned};
use tally_rules::Micros;
use tally_rules::contest::id::Minute;
use tally_rules::period::TimeSpan;
use tally_rules::rejection::WrongField;

/// Further than the clocks of any zone were ever moved.
const MOVED_MAX_HOURS: i64 = 26;

/// A schedule in a time zone.
#[derive(Clone, Debug)]
pub struct Calendar {
    cron: Cron,
    zone: TimeZone,
}

impl Calendar {
    /// Parses a schedule and a zone; an error is a sentence, with the path of the field in a period.
    pub fn parse(schedule: &str, time_zone: &str) -> Result<Self, WrongField> {
        let wrong = |why: String| WrongField::new("/schedule", why);
        check_fields(schedule).map_err(wrong)?;
        let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
        let cron = parser
            .parse(schedule)
            .map_err(|error| {
                let why = out_of_range(schedule).unwrap_or_else(|| error.to_string());
                format!("schedule `{schedule}` is not a five-field cron expression: {why}")
            })
            .map_err(wrong)?;
        // The library has its own zone for times without a known zone.
        let zone = TimeZone::get(time_zone).ok().filter(|zone| !zone.is_unknown());
        let unknown = || format!("time zone `{time_zone}` is not known; use an IANA name such as Asia/Seoul");
        let zone = zone.ok_or_else(|| WrongField::new("/time_zone", unknown()))?;
        let calendar = Self { cron, zone };
        if calendar.next(Micros(0)).is_none() {
            return Err(wrong(format!("schedule `{schedule}` never happens")));
        }
        Ok(calendar)
    }

    /// The first boundary after the instant.
    pub fn next(&self, after: Micros) -> Option<Micros> {
        self.boundary(after, Direction::Forward, |boundary| boundary > after)
    }

    /// The last boundary at or before the instant.
    pub fn previous(&self, at: Micros) -> Option<Micros> {
        self.boundary(at, Direction::Backward, |boundary| boundary <= at)
    }

    /// The span between two boundaries that contains the instant.
    pub fn span(&self, at: Micros) -> Option<TimeSpan> {
        Some(TimeSpan { start: self.previous(at)?, end: self.next(at)? })
    }

    /// The name of the period that starts then: its date in the zone, with the time if that is not midnight.
    pub fn name(&self, start: Micros) -> String {
        let local = self.local(start);
        let date = local.strftime("%Y-%m-%d");
        if local.hour() == 0 && local.minute() == 0 && local.second() == 0 {
            date.to_string()
        } else {
            local.strftime("%Y-%m-%dT%H:%M").to_string()
        }
    }

    /// The local minute of an instant.
    pub fn minute(&self, at: Micros) -> Minute {
        let local = self.local(at);
        // Years of four digits: no schedule has others.
        let year = u16::try_from(local.year()).unwrap_or(0);
        let of = |window: i8| u8::try_from(window).unwrap_or(0);
        let (hour, minute) = (of(local.hour()), of(local.minute()));
        Minute { year, month: of(local.month()), day: of(local.day()), hour, minute }
    }

    /// The instant of a local date, or of a date and time, in the zone.
    pub fn local_instant(&self, text: &str) -> Option<Micros> {
        let local: DateTime = match text.len() {
            10 => text.parse::<jiff::civil::Date>().ok()?.to_datetime(jiff::civil::Time::midnight()),
            // The library takes an hour without minutes, and ignores an offset after it.
            16 if text.as_bytes()[10] == b'T' && text.as_bytes()[13] == b':' => text.parse().ok()?,
            _ => return None,
        };
        self.place(local)
    }

    /// Scans occurrences in local time until one is the wanted instant.
    fn boundary(&self, from: Micros, way: Direction, wanted: impl Fn(Micros) -> bool) -> Option<Micros> {
        let local = self.local(from);
        // Near a change of the clocks local time does not follow time: begin earlier.
        let back = if self.moves_near(from) { MOVED_MAX_HOURS.hours() } else { Length::new() };
        let start = match way {
            Direction::Forward => local.checked_sub(back).ok()?,
            Direction::Backward => local.checked_add(back).ok()?,
        };
        // The cron library scans zoned times; in UTC that is plain local time without any moves.
        let mut at: Zoned = start.to_zoned(TimeZone::UTC).ok()?;
        let mut inclusive = true;
        loop {
            at = match way {
                Direction::Forward => self.cron.find_next_occurrence(&at, inclusive).ok()?,
                Direction::Backward => self.cron.find_previous_occurrence(&at, inclusive).ok()?,
            };
            inclusive = false;
            let boundary = self.place(at.datetime())?;
            if wanted(boundary) {
                return Some(boundary);
            }
        }
    }

    fn local(&self, at: Micros) -> DateTime {
        let timestamp = Timestamp::from_microsecond(at.0).unwrap_or(if at.0 < 0 {
            Timestamp::MIN
        } else {
            Timestamp::MAX
        });
        self.zone.to_datetime(timestamp)
    }

    /// When a local time happens.
    fn place(&self, local: DateTime) -> Option<Micros> {
        let ambiguous = self.zone.to_ambiguous_timestamp(local);
        let timestamp = match ambiguous.offset() {
            AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(local).ok()?,
            // Before the clocks are moved back: the first time.
            AmbiguousOffset::Fold { before, .. } => before.to_timestamp(local).ok()?,
            // The old offset puts it after the change, which is the end of the gap.
            AmbiguousOffset::Gap { before, .. } => {
                let behind = before.to_timestamp(local).ok()?;
                let mut moves = self.zone.preceding(behind.checked_add(1.second()).ok()?);
                moves.next()?.timestamp()
            }
        };
        Some(Micros(timestamp.as_microsecond()))
    }

    fn moves_near(&self, at: Micros) -> bool {
        let hours = 2 * MOVED_MAX_HOURS;
        let near = |micros: i64| Timestamp::from_microsecond(at.0.saturating_add(micros)).ok();
        let (Some(from), Some(to)) = (near(-hours * 3_600_000_000), near(hours * 3_600_000_000)) else {
            return false;
        };
        self.zone.following(from).next().is_some_and(|next| next.timestamp() <= to)
    }
}

/// Rejects what the library understands beyond five plain fields: nicknames, last days, nearest weekdays.
fn check_fields(schedule: &str) -> Result<(), String> {
    const NAMES: [&str; 19] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec", "sun", "mon",
        "tue", "wed", "thu", "fri", "sat",
    ];
    let fields: Vec<&str> = schedule.split(' ').collect();
    let plain = |field: &&str| {
        let mut words =
            field.split(|letter: char| !letter.is_ascii_alphabetic()).filter(|word| !word.is_empty());
        let marks = field.chars().all(|letter| letter.is_ascii_alphanumeric() || "*,-/".contains(letter));
        !field.is_empty() && marks && words.all(|word| NAMES.contains(&&*word.to_ascii_lowercase()))
    };
    if fields.len() == 5 && fields.iter().all(plain) {
        return Ok(());
    }
    Err(format!(
        "schedule `{schedule}` is not a five-field cron expression: minute, hour, day of month, month and day of week, \
         separated by one space"
    ))
}

/// The first number that its field cannot have: the library does not name it.
fn out_of_range(schedule: &str) -> Option<String> {
    const FIELDS: [(&str, u32, u32); 5] = [
        ("minute", 0, 59),
        ("hour", 0, 23),
        ("day of month", 1, 31),
        ("month", 1, 12),
        ("day of week", 0, 7),
    ];
    schedule.split(' ').zip(FIELDS).find_map(|(field, (name, low, high))| {
        // What follows a `/` is a step.
        let ranges = field.split(',').filter_map(|part| part.split('/').next());
        let mut numbers =
            ranges.flat_map(|range| range.split('-')).filter(|text| text.parse::<u32>().is_ok());
        let is_beyond = |text: &&str| text.parse().is_ok_and(|number: u32| !(low..=high).contains(&number));
        numbers.find(is_beyond).map(|number| format!("{name} `{number}` is not {low} to {high}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(text: &str) -> Micros {
        Micros(text.parse::<Timestamp>().unwrap().as_microsecond())
    }

    fn text(at: Micros) -> String {
        Timestamp::from_microsecond(at.0).unwrap().to_string()
    }

    fn nexts(schedule: &str, zone: &str, from: &str, count: usize) -> Vec<String> {
        let calendar = Calendar::parse(schedule, zone).unwrap();
        let mut now = at(from);
        let mut all = Vec::new();
        for _ in 0..count {
            now = calendar.next(now).unwrap();
            all.push(text(now));
        }
        all
    }

    #[test]
    fn weeks_begin_on_monday_in_seoul() {
        assert_eq!(
            nexts("0 0 * * 1", "Asia/Seoul", "2026-11-21T08:20:00Z", 2),
            ["2026-11-22T15:00:00Z", "2026-11-29T15:00:00Z"]
        );
        let calendar = Calendar::parse("0 0 * * MON", "Asia/Seoul").unwrap();
        let span = calendar.span(at("2026-11-21T08:20:00Z")).unwrap();
        assert_eq!(calendar.name(span.start), "2026-11-16");
        assert_eq!(calendar.local_instant("2026-11-16"), Some(span.start));
        for offset in ["2026-11-16T00+09", "2026-11-16T00-05"] {
            assert_eq!(calendar.local_instant(offset), None, "{offset}");
        }
    }

    #[test]
    fn days_of_23_and_25_hours() {
        let spring = nexts("0 0 * * *", "America/New_York", "2026-03-07T12:00:00Z", 3);
        assert_eq!(spring, ["2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z", "2026-03-10T04:00:00Z"]);
        let autumn = nexts("0 0 * * *", "America/New_York", "2026-10-31T12:00:00Z", 3);
        assert_eq!(autumn, ["2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z", "2026-11-03T05:00:00Z"]);
    }

    #[test]
    fn a_time_that_is_skipped_happens_at_the_end_of_the_gap() {
        // 02:30 is skipped on 8 March: clocks go from 02:00 to 03:00, which is 07:00 UTC.
        let days = nexts("30 2 * * *", "America/New_York", "2026-03-07T12:00:00Z", 2);
        assert_eq!(days, ["2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"]);
        let quarters = nexts("*/15 * * * *", "America/New_York", "2026-03-08T06:40:00Z", 3);
        assert_eq!(quarters, ["2026-03-08T06:45:00Z", "2026-03-08T07:00:00Z", "2026-03-08T07:15:00Z"]);
    }

    #[test]
    fn a_time_that_comes_twice_happens_the_first_time() {
        let days = nexts("30 1 * * *", "America/New_York", "2026-10-31T12:00:00Z", 2);
        assert_eq!(days, ["2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"]);
        // The hour that occurs twice is one period of two hours.
        let hours = nexts("0 * * * *", "America/New_York", "2026-11-01T04:30:00Z", 3);
        assert_eq!(hours, ["2026-11-01T05:00:00Z", "2026-11-01T07:00:00Z", "2026-11-01T08:00:00Z"]);
    }

    #[test]
    fn a_whole_day_that_was_skipped_is_no_boundary_of_its_own() {
        // Samoa went from 29 to 31 December 2011.
        let days = nexts("0 0 * * *", "Pacific/Apia", "2011-12-29T12:00:00Z", 2);
        assert_eq!(days, ["2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"]);
    }

    #[test]
    fn day_of_month_or_day_of_week_as_in_cron() {
        let days = nexts("0 0 13 * FRI", "UTC", "2026-11-10T00:00:00Z", 3);
        assert_eq!(days, ["2026-11-13T00:00:00Z", "2026-11-20T00:00:00Z", "2026-11-27T00:00:00Z"]);
        assert_eq!(nexts("0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", 1), ["2028-02-29T00:00:00Z"]);
    }

    #[test]
    fn years_before_1970_have_boundaries() {
        let calendar = Calendar::parse("0 0 1 1 *", "UTC").unwrap();
        let span = calendar.span(at("1872-11-30T00:00:00Z")).unwrap();
        assert_eq!(
            (calendar.name(span.start), text(span.end)),
            ("1872-01-01".into(), "1873-01-01T00:00:00Z".into())
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (schedule, zone, window) in [
            ("0 0 * *", "UTC", "five-field"),
            ("0 0 0 * * 1", "UTC", "five-field"),
            ("61 0 * * *", "UTC", "minute `61` is not 0 to 59"),
            ("0 0 * 1,13 *", "UTC", "month `13` is not 1 to 12"),
            ("0 0 30 2 *", "UTC", "never"),
            ("0 0 * * 1", "Mars/Base", "time zone"),
            ("0 0 * * 1", "Etc/Unknown", "time zone"),
            ("@daily", "UTC", "five-field"),
            ("0 0 L * *", "UTC", "five-field"),
            ("0 0 15W * *", "UTC", "five-field"),
            ("0 0 * * 1#2", "UTC", "five-field"),
            ("0 0 ? * 1", "UTC", "five-field"),
            (" 0 0 * * 1", "UTC", "five-field"),
        ] {
            let error = Calendar::parse(schedule, zone).unwrap_err();
            assert!(error.why.contains(window), "{schedule} {zone}: {error:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn an_instant_lies_in_its_span_and_spans_touch(
            micros in -3_000_000_000_000_000i64..3_000_000_000_000_000,
            schedule in proptest::sample::select(vec!["0 0 * * *", "30 2 * * *", "0 0 * * 1", "0 0 1 * *", "15 1 * * 0"]),
            zone in proptest::sample::select(vec!["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia"]),
        ) {
            let calendar = Calendar::parse(schedule, zone).unwrap();
            let span = calendar.span(Micros(micros)).unwrap();
            prop_assert!(span.contains(Micros(micros)));
            prop_assert_eq!(calendar.next(span.start), Some(span.end));
            prop_assert_eq!(calendar.previous(span.end.plus(-1)), Some(span.start));
            prop_assert_eq!(calendar.previous(span.end), Some(span.end));
        }
    }
}
