//! Stored periods against the calendar of their rule.
//!
//! A stored span does not change with its rule's schedule, and past schedules are not stored. So a span outside of the
//! present schedule is counted, and reported only for what no schedule can make. Not here: records (`scores`).

use super::Run;
use crate::calendar::Calendar;
use std::collections::BTreeMap;
use tally_rules::Micros;
use tally_rules::instant::SECOND;
use tally_rules::period::{TimeSpan, window_number};
use tally_store::{BoardNo, BoardRow, Window, WindowRow};

/// Since when local times of all zones differ from UTC by whole minutes: 1973.
const WHOLE_MINUTES_FROM: Micros = Micros(94_694_400 * SECOND);

/// Schedules that were read, and the period before.
pub(super) struct Schedules {
    now: Micros,
    known: BTreeMap<(BoardNo, u32), Option<Calendar>>,
    last: Option<(BoardNo, u32, TimeSpan)>,
}

impl Schedules {
    pub(super) fn new(now: Micros) -> Self {
        Self { now, known: BTreeMap::new(), last: None }
    }

    /// Judges a period; they arrive in order of their numbers, so those of a rule in order of time.
    pub(super) fn check(&mut self, (board, row): (&BoardRow, &WindowRow), name: String, run: &mut Run<'_>) {
        let WindowRow { window, rule: no, span, closed, .. } = *row;
        let mut found = |what: String| run.found("parts", &name, what);
        let before = self.last.replace((board.no, no, span));
        let Some(rule) = board.definition.periods.iter().find(|rule| rule.no == no) else {
            return found(format!("its rule {no} is not there"));
        };
        if window != Window(window_number(no, span.start)) {
            found(format!("its number is not that of rule {no} and its start"));
        }
        if span.end <= span.start {
            return found("it ends before it starts".into());
        }
        let overlaps = |(of, rule, before): (BoardNo, u32, TimeSpan)| {
            of == board.no && rule == no && before.end > span.start
        };
        if before.is_some_and(overlaps) {
            found("it starts before the period before it ends".into());
        }
        if closed && span.end > self.now {
            found("it is closed before its end".into());
        }
        let read = || Calendar::parse(&rule.schedule, &rule.time_zone).ok();
        let calendar = self.known.entry((board.no, no)).or_insert_with(read);
        let Some(calendar) = calendar else {
            return found(format!("the schedule of its rule `{}` cannot be read", rule.name));
        };
        if calendar.span(span.start) == Some(span) {
            return;
        }
        run.reconciled.scores.earlier_schedule += 1;
        let is_whole = |at: Micros| at < WHOLE_MINUTES_FROM || at.0.rem_euclid(60 * SECOND) == 0;
        if !is_whole(span.start) || !is_whole(span.end) {
            run.found("parts", &name, "it starts or ends within a minute, which no schedule gives");
        }
    }
}
