//! The periods of a leaderboard: which there are, which one an instant belongs to, and which still take scores.
//!
//! Spans come from the calendar unless they are stored. A stored end does not change, so a changed schedule counts from the
//! next boundary. The clock decides what is open, and not whether the scheduler has closed it yet. A closed period stays
//! closed, whatever the clock or a longer grace. Only the lane and the scheduler change this state.
//!
//! - [`scheduler`] closes what is due; [`archive`] writes the rankings of closed windows
//! - [`prizes`] pays what their ranks get, and [`pay_again`] what could not be paid then
//! - [`view`] reads

pub mod archive;
pub(crate) mod catch_up;
mod name_range;
pub(crate) mod outdated;
pub mod pay_again;
pub(crate) mod payments;
pub mod prizes;
pub(crate) mod purge;
pub(crate) mod scan;
pub mod scheduler;
mod shared_close;
pub mod view;

use crate::calendar::Calendar;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tally_ranking::WindowRanking;
use tally_rules::instant::SECOND;
use tally_rules::period::{PeriodRule, TimeSpan, window_number};
use tally_rules::rejection::WrongField;
use tally_rules::{Definition, Micros};
use tally_store::plan::ALL_TIME;
use tally_store::{ShardSet, Window, WindowRow};

/// The public name of the window over all time.
pub const ALL_TIME_NAME: &str = "all_time";

/// A period that is in memory: open, or closing.
#[derive(Debug)]
pub struct LiveWindow {
    /// Its number, unique on its leaderboard.
    pub window: Window,
    /// The number of its rule.
    pub rule: u32,
    /// From when to when.
    pub span: TimeSpan,
    /// Its ranking.
    pub ranking: WindowRanking,
    /// A bit for each database that has nothing to purge under its number.
    checked: AtomicU64,
}

impl LiveWindow {
    /// A period in memory.
    pub(crate) fn new(window: Window, rule: u32, span: TimeSpan, ranking: WindowRanking) -> Self {
        Self { window, rule, span, ranking, checked: AtomicU64::default() }
    }

    /// As it is stored before it has an archive.
    pub(crate) fn row(&self, closed: bool) -> WindowRow {
        let Self { window, rule, span, .. } = *self;
        WindowRow { window, rule, span, closed, version: 0, stale: false, total: 0 }
    }

    /// Whether all of these databases have nothing to purge under its number.
    pub(crate) fn is_checked(&self, shards: ShardSet) -> bool {
        shards.bits() & !self.checked.load(Ordering::Relaxed) == 0
    }

    /// This database has nothing to purge under its number.
    pub(crate) fn check(&self, shard: usize) {
        self.checked.fetch_or(ShardSet::of(shard).bits(), Ordering::Relaxed);
    }
}

/// One rule with its periods.
#[derive(Clone, Debug)]
pub struct RuleState {
    /// The rule as it was defined.
    pub rule: PeriodRule,
    /// The schedule of the rule.
    pub calendar: Calendar,
    /// Those in memory, oldest first.
    pub live: Vec<Arc<LiveWindow>>,
    /// Closed ones, oldest first. One without an archive has version 0.
    pub closed: Vec<WindowRow>,
}

/// All rules of a board.
#[derive(Clone, Debug, Default)]
pub struct Periods {
    /// In the order of the definition.
    pub rules: Vec<RuleState>,
    /// How many numbers were given to rules.
    pub rules_given: u32,
}

/// A window that a row counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetWindow {
    /// Its number, unique on its leaderboard.
    pub window: Window,
    /// Its rule and span; none for all time.
    pub period: Option<(u32, TimeSpan)>,
}

/// The window over all time.
pub(crate) const TARGET_ALL_TIME: TargetWindow = TargetWindow { window: ALL_TIME, period: None };

impl RuleState {
    /// A rule without periods.
    pub fn new(rule: PeriodRule) -> Result<Self, WrongField> {
        let calendar = Calendar::parse(&rule.schedule, &rule.time_zone).map_err(|wrong| {
            let why = format!("period `{}`: {}", rule.name, wrong.why);
            WrongField { why, ..wrong }
        })?;
        Ok(Self { rule, calendar, live: Vec::new(), closed: Vec::new() })
    }

    /// The period that contains an instant.
    pub fn span_at(&self, at: Micros) -> Option<TimeSpan> {
        if let Some(span) = self.spans().find(|span| span.contains(at)) {
            return Some(span);
        }
        let calendar = self.calendar.span(at)?;
        // Stored spans do not change; between them, those of the calendar are cut.
        let start = self.spans().map(|span| span.end).filter(|end| *end <= at).max();
        let end = self.spans().map(|span| span.start).filter(|start| *start > at).min();
        Some(TimeSpan {
            start: start.map_or(calendar.start, |start| start.max(calendar.start)),
            end: end.map_or(calendar.end, |end| end.min(calendar.end)),
        })
    }

    /// The first instant at which a period takes no more scores.
    pub fn due(&self, span: TimeSpan) -> Micros {
        span.end.plus(i64::from(self.rule.grace_s) * SECOND)
    }

    /// The public name of the period that starts then.
    pub fn name(&self, start: Micros) -> String {
        format!("{}:{}", self.rule.name, self.calendar.name(start))
    }

    /// The window of a span.
    pub fn target(&self, span: TimeSpan) -> TargetWindow {
        TargetWindow {
            window: Window(window_number(self.rule.no, span.start)),
            period: Some((self.rule.no, span)),
        }
    }

    /// The period in memory of that number.
    pub fn live(&self, window: Window) -> Option<&Arc<LiveWindow>> {
        self.live.iter().find(|live| live.window == window)
    }

    /// Whether a period takes scores. A period that is closed or before a closed one takes none, whatever the clock.
    pub fn takes(&self, span: TimeSpan, now: Micros) -> bool {
        now < self.due(span) && !self.is_closed(span)
    }

    /// Whether a period is closed or before a closed one.
    pub fn is_closed(&self, span: TimeSpan) -> bool {
        self.closed.last().is_some_and(|newest| span.start <= newest.span.start)
    }

    /// Replaces the row of a closed period, or removes it.
    pub(crate) fn replace_closed(&mut self, window: Window, row: Option<WindowRow>) {
        self.closed.retain(|old| old.window != window);
        self.closed.extend(row);
        self.closed.sort_by_key(|row| row.span.start);
    }

    /// The closed period of that span; its ranking may still be in memory.
    pub fn closed(&self, span: TimeSpan) -> Option<&WindowRow> {
        let at = self.closed.binary_search_by_key(&span.start, |row| row.span.start).ok()?;
        Some(&self.closed[at])
    }

    /// Whether the calendar alone would begin a period at the end of this one. Otherwise only its row has the start of the
    /// next one.
    pub fn calendar_follows(&self, span: TimeSpan) -> bool {
        self.calendar.span(span.end).is_some_and(|next| next.start == span.end)
    }

    fn spans(&self) -> impl Iterator<Item = TimeSpan> + '_ {
        self.live.iter().map(|live| live.span).chain(self.closed.iter().map(|row| row.span))
    }
}

impl Periods {
    /// The rules of a definition, without periods.
    pub fn new(definition: &Definition) -> Result<Self, WrongField> {
        let rule = |(at, rule): (usize, &PeriodRule)| {
            RuleState::new(rule.clone()).map_err(|wrong| wrong.within(&format!("/periods/{at}")))
        };
        let rules = definition.periods.iter().enumerate().map(rule).collect::<Result<_, _>>()?;
        Ok(Self { rules, rules_given: definition.rules_given })
    }

    /// The rule of that name.
    pub fn rule(&self, name: &str) -> Option<&RuleState> {
        self.rules.iter().find(|state| state.rule.name == name)
    }

    /// The rule of that number.
    pub fn rule_no(&self, no: u32) -> Option<&RuleState> {
        self.rules.iter().find(|state| state.rule.no == no)
    }

    /// The rule of that number.
    pub fn rule_mut(&mut self, no: u32) -> Option<&mut RuleState> {
        self.rules.iter_mut().find(|state| state.rule.no == no)
    }

    /// The period in memory of that number.
    pub fn live(&self, window: Window) -> Option<&Arc<LiveWindow>> {
        self.rules.iter().find_map(|state| state.live(window))
    }

    /// Those in memory.
    pub fn live_windows(&self) -> impl Iterator<Item = &Arc<LiveWindow>> {
        self.rules.iter().flat_map(|state| &state.live)
    }

    /// Adds periods as they are stored. `known` returns those that are in memory already, `ranking` makes the ranking of
    /// another one. A closed one without an archive is read from memory; but if lines of an import have made it, no memory
    /// has it.
    pub(crate) fn place(
        &mut self,
        rows: &[WindowRow],
        known: impl Fn(Window) -> Option<Arc<LiveWindow>>,
        ranking: impl Fn(&WindowRow) -> WindowRanking,
    ) {
        for row in rows {
            let Some(state) = self.rule_mut(row.rule) else { continue };
            let known = known(row.window).filter(|known| known.span == row.span);
            if !row.closed || row.version == 0 && (known.is_some() || !row.stale) {
                let WindowRow { window, rule, span, .. } = *row;
                let fresh = || Arc::new(LiveWindow::new(window, rule, span, ranking(row)));
                state.live.push(known.unwrap_or_else(fresh));
            }
            if row.closed {
                state.closed.push(*row);
            }
            state.live.sort_by_key(|live| live.span.start);
            state.closed.sort_by_key(|row| row.span.start);
        }
    }

    /// The periods that a score of that instant counts for now, and the names of those it is too late for.
    pub fn targets(&self, at: Micros, now: Micros) -> (Vec<TargetWindow>, Vec<String>) {
        self.targets_where(at, |state, span| state.takes(span, now))
    }

    /// The same as of then, when periods that are closed by now were open.
    pub fn targets_then(&self, at: Micros, then: Micros) -> (Vec<TargetWindow>, Vec<String>) {
        self.targets_where(at, |state, span| then < state.due(span))
    }

    fn targets_where(
        &self,
        at: Micros,
        takes: impl Fn(&RuleState, TimeSpan) -> bool,
    ) -> (Vec<TargetWindow>, Vec<String>) {
        let (mut open, mut closed) = (Vec::new(), Vec::new());
        for state in &self.rules {
            let Some(span) = state.span_at(at) else { continue };
            if takes(state, span) {
                open.push(state.target(span));
            } else {
                closed.push(state.name(span.start));
            }
        }
        (open, closed)
    }

    /// Every period that contains an instant, closed or not.
    pub fn targets_of_any_state(&self, at: Micros) -> Vec<TargetWindow> {
        self.rules.iter().filter_map(|state| Some(state.target(state.span_at(at)?))).collect()
    }

    /// Periods in memory that still take scores.
    pub fn open(&self, now: Micros) -> Vec<TargetWindow> {
        let of_rule = |state| {
            let state: &RuleState = state;
            let open = state.live.iter().filter(move |live| state.takes(live.span, now));
            open.map(|live| state.target(live.span))
        };
        self.rules.iter().flat_map(of_rule).collect()
    }

    /// The closed period of that number.
    pub fn closed(&self, window: Window) -> Option<&WindowRow> {
        self.rules.iter().find_map(|state| state.closed.iter().find(|row| row.window == window))
    }

    /// Closed periods with an outdated or missing archive. Those in memory are left out: their close writes the archive.
    pub fn stale(&self) -> Vec<Window> {
        let of_rule = |state| {
            let state: &RuleState = state;
            let marked = state.closed.iter().filter(|row| row.stale && state.live(row.window).is_none());
            marked.map(|row| row.window)
        };
        self.rules.iter().flat_map(of_rule).collect()
    }

    /// Closed periods that have an archive.
    pub fn packed(&self) -> Vec<WindowRow> {
        self.packed_anywhere(false)
    }

    /// Closed periods that have an archive, or of which another server may be writing it: it has to see a change of them.
    pub(crate) fn packed_anywhere(&self, is_shared: bool) -> Vec<WindowRow> {
        let all = self.rules.iter().flat_map(|state| &state.closed);
        all.filter(|row| is_shared || row.version > 0).copied().collect()
    }

    /// At most so many windows, open or closed: the newest, and as many of each rule.
    pub fn newest_windows(&self, most: usize) -> Vec<Window> {
        let each = most / self.rules.len().max(1);
        let of_rule = |state| {
            let state: &RuleState = state;
            // A period that is being closed is in both.
            let closed = state.closed.iter().rev().filter(|row| state.live(row.window).is_none());
            state.live.iter().map(|live| live.window).chain(closed.map(|row| row.window)).take(each)
        };
        self.rules.iter().flat_map(of_rule).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tally_rules::period::PeriodPrizes;

    fn rule(schedule: &str, grace_s: u32) -> RuleState {
        let rule = PeriodRule {
            no: 0,
            name: "hourly".into(),
            schedule: schedule.into(),
            time_zone: "UTC".into(),
            keep: 3,
            grace_s,
            prizes: PeriodPrizes::default(),
        };
        RuleState::new(rule).unwrap()
    }

    fn closed(number: u64, span: TimeSpan) -> WindowRow {
        WindowRow { window: Window(number), rule: 0, span, closed: true, version: 1, stale: false, total: 1 }
    }

    fn hours(hours: i64) -> Micros {
        Micros(hours * 3_600 * SECOND)
    }

    #[test]
    fn the_clock_says_what_is_open() {
        let periods = Periods { rules: vec![rule("0 * * * *", 60)], rules_given: 1 };
        let at = hours(10).plus(-1);
        for (now, open) in
            [(hours(10), true), (hours(10).plus(60 * SECOND - 1), true), (hours(10).plus(60 * SECOND), false)]
        {
            let (windows, closed) = periods.targets(at, now);
            assert_eq!((windows.len(), closed.len()), if open { (1, 0) } else { (0, 1) });
        }
        assert_eq!(periods.targets(at, hours(11)).1, ["hourly:1970-01-01T09:00"]);
    }

    #[test]
    fn a_stored_end_holds_and_the_next_period_begins_there() {
        let mut state = rule("0 * * * *", 0);
        let span = TimeSpan { start: hours(9), end: hours(9).plus(1_800 * SECOND) };
        state.closed.push(closed(1, span));
        assert_eq!(state.span_at(hours(9)), Some(span));
        assert_eq!(state.span_at(span.end), Some(TimeSpan { start: span.end, end: hours(10) }));
        assert_eq!(state.span_at(hours(8)), Some(TimeSpan { start: hours(8), end: hours(9) }));
    }

    #[test]
    fn the_newest_windows_are_of_all_rules() {
        let span = TimeSpan { start: hours(1), end: hours(2) };
        let with = |numbers: std::ops::Range<u64>| {
            let mut state = rule("0 * * * *", 0);
            state.closed.extend(numbers.map(|number| closed(number, span)));
            state
        };
        let periods = Periods { rules: vec![with(1..9), with(9..11)], rules_given: 2 };
        let newest =
            |most: usize| periods.newest_windows(most).iter().map(|window| window.0).collect::<Vec<_>>();
        assert_eq!(newest(4), [8, 7, 10, 9]);
        assert_eq!(newest(3), [8, 10]);
        assert_eq!(newest(usize::MAX).len(), 10);
        assert!(Periods::default().newest_windows(3).is_empty());
    }
}
