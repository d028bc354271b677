//! The plain model: every window is a map, sorted for each read.
//!
//! A rule is its history of calendars: a changed schedule counts from the end of the period that was present then. Open is a
//! comparison of instants. The rules of scores and of ranking are the plain forms of `tally-rules`. Nothing of blocks, trees,
//! lanes, stored spans or the scheduler is in it.

use std::collections::{BTreeMap, BTreeSet};
use tally_ranking::RankedEntry;
use tally_rules::definition::Definition;
use tally_rules::instant::SECOND;
use tally_rules::period::{PeriodRule, TimeSpan};
use tally_rules::rank::{self, Percentile, RankCounts};
use tally_rules::record::{self, Updated};
use tally_rules::{Micros, PlayerId, Record, Rejection, order_key};
use tally_service::calendar::Calendar;
use tally_service::periods::view::Listed;

/// All time is (0, 0); others are (serial number of the rule, start).
pub(crate) type Window = (usize, i64);

pub(crate) const ALL_TIME: Window = (0, 0);

/// One rule of the board, as long as it exists.
#[derive(Clone)]
pub(crate) struct Rule {
    pub(crate) says: PeriodRule,
    serial: usize,
    /// From which instant on each calendar counts.
    calendars: Vec<(i64, Calendar)>,
}

impl Rule {
    fn new(says: PeriodRule, serial: usize) -> Self {
        let calendars = vec![(i64::MIN, calendar(&says))];
        Self { says, serial, calendars }
    }

    pub(crate) fn span_at(&self, at: Micros) -> TimeSpan {
        let after = self.calendars.partition_point(|(from, _)| *from <= at.0);
        let (from, calendar) = &self.calendars[after - 1];
        let span = calendar.span(at).unwrap();
        let to = self.calendars.get(after).map_or(i64::MAX, |(to, _)| *to);
        TimeSpan { start: span.start.max(Micros(*from)), end: span.end.min(Micros(to)) }
    }

    pub(crate) fn window(&self, span: TimeSpan) -> Window {
        (self.serial, span.start.0)
    }

    /// The public name of the period that starts then.
    pub(crate) fn name(&self, start: i64) -> String {
        let (_, calendar) = self.calendars.last().unwrap();
        format!("{}:{}", self.says.name, calendar.name(Micros(start)))
    }

    fn due(&self, span: TimeSpan) -> Micros {
        span.end.plus(i64::from(self.says.grace_s) * SECOND)
    }
}

fn calendar(says: &PeriodRule) -> Calendar {
    Calendar::parse(&says.schedule, &says.time_zone).unwrap()
}

/// The result of a submit in the window that its reply names.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Submitted {
    pub(crate) window: Window,
    pub(crate) period: String,
    pub(crate) late: Vec<String>,
    pub(crate) updated: Updated,
    pub(crate) previous: Option<Record>,
    /// Before and after.
    pub(crate) ranks: (Option<u64>, Option<u64>),
}

pub(crate) struct Model {
    pub(crate) definition: Definition,
    pub(crate) rules: Vec<Rule>,
    serials: usize,
    pub(crate) records: BTreeMap<Window, BTreeMap<PlayerId, Record>>,
    /// Closed ones that a longer grace does not open again.
    sealed: BTreeSet<Window>,
    pub(crate) banned: BTreeSet<PlayerId>,
}

impl Model {
    pub(crate) fn new(definition: Definition) -> Self {
        let (records, sealed, banned) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        let periods = definition.periods.clone();
        let mut model = Self { definition, rules: Vec::new(), serials: 0, records, sealed, banned };
        model.redefine(periods, Micros(0));
        model
    }

    fn open(&self, rule: &Rule, span: TimeSpan, now: Micros) -> bool {
        let newest = self.sealed.range((rule.serial, i64::MIN)..(rule.serial + 1, i64::MIN)).next_back();
        now < rule.due(span) && newest.is_none_or(|(_, newest)| *newest < span.start.0)
    }

    pub(crate) fn rule(&self, window: Window) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.serial == window.0)
    }

    fn is_open(&self, window: Window, now: Micros) -> bool {
        let open = |rule: &Rule| self.open(rule, rule.span_at(Micros(window.1)), now);
        window == ALL_TIME || self.rule(window).is_some_and(open)
    }

    /// Windows that a score of that instant counts for, and the names of those that are closed to it.
    fn targets(&self, at: Micros, now: Micros) -> (Vec<Window>, Vec<String>) {
        let mut open: Vec<Window> = self.definition.all_time.then_some(ALL_TIME).into_iter().collect();
        let mut late = Vec::new();
        for rule in &self.rules {
            let span = rule.span_at(at);
            if self.open(rule, span, now) {
                open.push(rule.window(span));
            } else {
                late.push(rule.name(span.start.0));
            }
        }
        (open, late)
    }

    pub(crate) fn submit(
        &mut self,
        player: &PlayerId,
        new: Record,
        now: Micros,
    ) -> Result<Submitted, Rejection> {
        let (open, late) = self.targets(new.at, now);
        let first = *open.first().ok_or(Rejection::PeriodClosed(Some(new.at)))?;
        let before =
            |window: &Window| self.records.get(window).and_then(|records| records.get(player)).copied();
        let apply = |window| Ok((window, record::apply(&self.definition, before(&window), new)?));
        let all: Vec<(Window, Updated)> =
            open.iter().copied().map(apply).collect::<Result<_, Rejection>>()?;
        let (updated, previous) = (all[0].1, before(&first));
        let rank_before = self.rank(first, player);
        for (window, updated) in all {
            self.records.entry(window).or_default().insert(player.clone(), updated.record);
        }
        let ranks = (rank_before, self.rank(first, player));
        let period = self.period(first);
        Ok(Submitted { window: first, period, late, updated, previous, ranks })
    }

    /// The public name of a window.
    pub(crate) fn period(&self, window: Window) -> String {
        self.rule(window).map_or_else(|| "all_time".to_owned(), |rule| rule.name(window.1))
    }

    /// Whether the player was anywhere that is open.
    pub(crate) fn remove(&mut self, player: &PlayerId, now: Micros) -> bool {
        let windows: Vec<Window> =
            self.records.keys().copied().filter(|window| self.is_open(*window, now)).collect();
        windows.iter().fold(false, |known, window| {
            let removed = self.records.get_mut(window).and_then(|records| records.remove(player));
            known | removed.is_some()
        })
    }

    /// Whether the player was known.
    pub(crate) fn erase(&mut self, player: &PlayerId) -> bool {
        let mut known = self.banned.remove(player);
        self.records.values_mut().for_each(|window| known |= window.remove(player).is_some());
        self.sealed.retain(|window| self.records.get(window).is_some_and(|records| !records.is_empty()));
        known
    }

    /// Forgets empty and closed windows, and closed ones beyond those that are kept.
    pub(crate) fn close(&mut self, now: Micros) {
        let closed: Vec<Window> =
            self.records.keys().copied().filter(|window| !self.is_open(*window, now)).collect();
        let mut left: BTreeMap<(usize, bool), u32> = BTreeMap::new();
        for window in closed.into_iter().rev() {
            let keep = self.rule(window).map_or(0, |rule| rule.says.keep);
            let shown = !self.places(window).is_empty();
            let left = left.entry((window.0, shown)).or_insert(keep);
            if self.records[&window].is_empty() || *left == 0 {
                self.records.remove(&window);
                self.sealed.remove(&window);
            } else {
                *left -= 1;
            }
        }
    }

    /// Puts other periods into force; everything that is due must have been closed.
    pub(crate) fn redefine(&mut self, periods: Vec<PeriodRule>, now: Micros) {
        let due: Vec<Window> =
            self.records.keys().copied().filter(|window| !self.is_open(*window, now)).collect();
        self.sealed.extend(due);
        let old = std::mem::take(&mut self.rules);
        for says in periods {
            let Some(mut rule) = old.iter().find(|old| old.says.name == says.name).cloned() else {
                self.serials += 1;
                self.rules.push(Rule::new(says, self.serials));
                continue;
            };
            if (&rule.says.schedule, &rule.says.time_zone) != (&says.schedule, &says.time_zone) {
                let present = rule.span_at(now);
                // Its end is fixed from now on, so it exists.
                self.records.entry(rule.window(present)).or_default();
                rule.calendars.retain(|(from, _)| *from < present.end.0);
                rule.calendars.push((present.end.0, calendar(&says)));
            }
            rule.says = says;
            self.rules.push(rule);
        }
        let stays =
            |window: &Window| *window == ALL_TIME || self.rules.iter().any(|rule| rule.serial == window.0);
        self.records.retain(|window, _| stays(window));
        self.sealed.retain(stays);
    }

    /// Visible records, best first.
    fn sorted(&self, window: Window) -> Vec<(&PlayerId, &Record)> {
        let shown = |one: &(&PlayerId, &Record)| !self.banned.contains(one.0);
        let mut list: Vec<_> = self.records.get(&window).into_iter().flatten().filter(shown).collect();
        list.sort_by(|a, b| self.compare((a.1, a.0), (b.1, b.0)));
        list
    }

    pub(crate) fn compare(&self, a: (&Record, &PlayerId), b: (&Record, &PlayerId)) -> std::cmp::Ordering {
        order_key::compare(&self.definition, (a.0, a.1.as_bytes()), (b.0, b.1.as_bytes()))
    }

    /// The countable properties of each of a sorted list.
    pub(crate) fn counts(&self, list: &[(&PlayerId, &Record)], at: usize) -> RankCounts {
        let key = |record: &Record| order_key::normal(&self.definition, record);
        let mut better: Vec<_> =
            list.iter().map(|(_, one)| key(one)).filter(|one| *one < key(list[at].1)).collect();
        let count = better.len() as u64;
        better.dedup();
        RankCounts { before: at as u64, better: count, distinct_better: better.len() as u64 }
    }

    pub(crate) fn places(&self, window: Window) -> Vec<RankedEntry> {
        self.ranked(&self.sorted(window)).into_iter().map(|(place, _)| place).collect()
    }

    /// Places with percentiles.
    pub(crate) fn ranked(&self, list: &[(&PlayerId, &Record)]) -> Vec<(RankedEntry, Percentile)> {
        let ranking = self.definition.ranking;
        let one = |at: usize| {
            let counts = self.counts(list, at);
            let place = RankedEntry {
                rank: rank::rank(ranking, counts),
                player: list[at].0.clone(),
                record: *list[at].1,
            };
            (place, rank::percentile(ranking, counts, list.len() as u64))
        };
        (0..list.len()).map(one).collect()
    }

    pub(crate) fn rank(&self, window: Window, player: &PlayerId) -> Option<u64> {
        self.places(window).iter().find(|place| place.player == *player).map(|place| place.rank)
    }

    /// The rank that a record of this player would have among the others.
    pub(crate) fn rank_of(&self, window: Window, player: &PlayerId, record: &Record) -> u64 {
        let mut list = self.sorted(window);
        list.retain(|(other, _)| *other != player);
        list.push((player, record));
        list.sort_by(|a, b| self.compare((a.1, a.0), (b.1, b.0)));
        let at = list.iter().position(|(other, _)| *other == player).unwrap();
        rank::rank(self.definition.ranking, self.counts(&list, at))
    }

    pub(crate) fn list(&self, now: Micros) -> Vec<Listed> {
        let mut all = Vec::new();
        for rule in &self.rules {
            let known = self.records.keys().filter(|window| window.0 == rule.serial);
            let mut spans: Vec<TimeSpan> = known.map(|window| rule.span_at(Micros(window.1))).collect();
            spans.extend(Some(rule.span_at(now)).filter(|present| !spans.contains(present)));
            for span in spans {
                let total = self.places(rule.window(span)).len() as u64;
                let state = match self.open(rule, span, now) {
                    true if now < span.end => "open",
                    true => "closing",
                    false => "closed",
                };
                if total > 0 || state == "open" {
                    let (period, name) = (rule.name(span.start.0), rule.says.name.clone());
                    all.push(Listed { period, name, start: span.start, end: span.end, state, total });
                }
            }
        }
        all.sort_by(|a, b| (b.start, &a.name).cmp(&(a.start, &b.name)));
        all
    }
}
