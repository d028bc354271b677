//! Every kind of read of a window, compared with the model's sorted list.

use super::Random;
use super::model::{ALL_TIME, Model, Window};
use crate::world::{World, player};
use std::cmp::Ordering;
use tally_ranking::{Among, Edge, Page, PageQuery, PageStart, Ranked, RankedEntry};
use tally_rules::rank::{self, Percentile, RankCounts};
use tally_rules::{Micros, PlayerId, Record};
use tally_service::periods::scheduler;
use tally_service::periods::view::{View, list};

/// All reads of a window.
struct Reads<'a> {
    world: &'a World,
    model: &'a Model,
    view: View,
    window: Window,
    places: Vec<RankedEntry>,
    percentiles: Vec<Percentile>,
    what: String,
}

/// Every window reads as the model says: those in memory, the closed ones, the list of them.
pub(crate) fn compare(world: &World, model: &mut Model, random: &mut Random) {
    scheduler::close_due(&world.tally()).unwrap();
    let now = world.now();
    model.close(now);
    let board = world.tally().boards.get(&crate::world::board()).unwrap();
    assert_eq!(list(&board, now), model.list(now), "periods at {now:?}");
    if model.definition.all_time {
        all_reads(world, model, ALL_TIME, "all_time", random);
    }
    for window in model.records.keys().copied().filter(|window| *window != ALL_TIME) {
        all_reads(world, model, window, &model.period(window), random);
    }
    for (at, rule) in model.rules.iter().enumerate() {
        let name = &rule.says.name;
        let present = rule.span_at(now);
        all_reads(world, model, rule.window(present), name, random);
        let before = rule.span_at(present.start.plus(-1));
        all_reads(world, model, rule.window(before), &format!("{name}:previous"), random);
        if at == 0 && !model.definition.all_time {
            all_reads(world, model, rule.window(present), "all_time", random);
        }
    }
}

fn all_reads(world: &World, model: &Model, window: Window, name: &str, random: &mut Random) {
    let what = format!("{name} at {:?}", world.now());
    let sorted: Vec<_> = model.places(window);
    let present = window == ALL_TIME
        || model.rule(window).is_some_and(|rule| rule.span_at(world.now()).start.0 == window.1);
    let Ok(view) = world.view(name) else {
        assert!(sorted.is_empty() && !present, "{what} is not there: {sorted:?}");
        return;
    };
    let list: Vec<(&PlayerId, &Record)> = sorted.iter().map(|place| (&place.player, &place.record)).collect();
    let percentiles = model.ranked(&list).into_iter().map(|(_, percentile)| percentile).collect();
    let reads = Reads { world, model, view, window, percentiles, places: sorted.clone(), what };
    // The instance before is empty if nobody played in it. Its name then follows the present schedule: no row has an earlier one.
    if present || !sorted.is_empty() {
        assert_eq!(reads.view.name, model.period(window), "{name}");
    }
    assert_eq!(reads.view.total(), sorted.len() as u64, "{}", reads.what);
    reads.page(Edge::Best, PageStart::Edge, 1_000, (None, None));
    for _ in 0..3 {
        match random.below(5) {
            0 | 1 => reads.random_page(random),
            2 => reads.player(random),
            3 => reads.among(random),
            _ => reads.walk(random),
        }
    }
}

impl Reads<'_> {
    fn page(
        &self,
        edge: Edge,
        start: PageStart,
        limit: usize,
        (min, max): (Option<i64>, Option<i64>),
    ) -> Page {
        let mut wanted = self.places.clone();
        if edge == Edge::Worst {
            wanted.reverse();
        }
        let in_range = |place: &RankedEntry| {
            min.is_none_or(|min| place.record.score >= min) && max.is_none_or(|max| place.record.score <= max)
        };
        wanted.retain(in_range);
        match &start {
            PageStart::Edge => {}
            PageStart::Offset(offset) => drop(wanted.drain(..wanted.len().min(*offset as usize))),
            PageStart::After(record, player) => {
                let beyond = if edge == Edge::Best { Ordering::Greater } else { Ordering::Less };
                let after =
                    |one: &RankedEntry| self.model.compare((&one.record, &one.player), (record, player));
                wanted.retain(|one| after(one) == beyond);
            }
        }
        let more = wanted.len() > limit;
        wanted.truncate(limit);
        let query = PageQuery { edge, start, limit, min, max };
        let page = self.view.read(&*self.world.tally().store, |order| order.page(&query)).unwrap();
        let wanted = Page { total: self.places.len() as u64, entries: wanted, more };
        assert_eq!(page, wanted, "{query:?} of {}", self.what);
        page
    }

    /// A page from anywhere: by offset, or behind a key that a player has, had or never had.
    fn random_page(&self, random: &mut Random) {
        let edge = random.pick(&[Edge::Best, Edge::Worst]);
        let start = match random.below(3) {
            0 => PageStart::Edge,
            1 => PageStart::Offset(random.below(8)),
            _ => {
                let (player, record) = self.any(random);
                PageStart::After(record, player)
            }
        };
        let mut bound = || (random.below(2) == 0).then(|| self.model_score(random));
        let range = (bound(), bound());
        self.page(edge, start, 1 + random.below(5) as usize, range);
    }

    /// Page after page from one end.
    fn walk(&self, random: &mut Random) {
        let (edge, limit) = (random.pick(&[Edge::Best, Edge::Worst]), 1 + random.below(4) as usize);
        let (mut start, mut seen) = (PageStart::Edge, 0);
        loop {
            let page = self.page(edge, start, limit, (None, None));
            seen += page.entries.len();
            let Some(last) = page.entries.last().filter(|_| page.more) else { break };
            start = PageStart::After(last.record, last.player.clone());
        }
        assert_eq!(seen, self.places.len(), "a walk through {}", self.what);
    }

    /// A player's position, its neighbours, and the position of another record.
    fn player(&self, random: &mut Random) {
        let store = &*self.world.tally().store;
        let (player, record) = self.any(random);
        let at = self.places.iter().position(|place| place.player == player);
        let total = self.places.len() as u64;
        let ranked = at.map(|at| {
            let RankedEntry { rank, record, .. } = self.places[at];
            Ranked { rank, record, total, percentile: self.percentiles[at] }
        });
        assert_eq!(
            self.view.read(store, |order| order.ranked(&player)).unwrap(),
            ranked,
            "{player:?} in {}",
            self.what
        );
        let (above, below) = (random.below(4) as usize, random.below(4) as usize);
        let around = at.map(|at| {
            let (from, to) = (at.saturating_sub(above), self.places.len().min(at + below + 1));
            let more = false;
            Page { total, entries: self.places[from..to].to_vec(), more }
        });
        let got = self.view.read(store, |order| order.around(&player, above, below)).unwrap();
        assert_eq!(got, around, "{above} above and {below} below {player:?} in {}", self.what);
        let rank = self.model.rank_of(self.window, &player, &record);
        let got = self.view.read(store, |order| order.rank_of(&player, &record)).unwrap();
        assert_eq!(got, rank, "{player:?} with {record:?} in {}", self.what);
    }

    fn among(&self, random: &mut Random) {
        let asked: Vec<PlayerId> =
            (0..random.below(9)).map(|_| player(random.pick(&super::PLAYERS))).collect();
        let mut once = asked.clone();
        let mut seen = std::collections::BTreeSet::new();
        once.retain(|player| seen.insert(player.clone()));
        let list: Vec<&RankedEntry> =
            self.places.iter().filter(|place| once.contains(&place.player)).collect();
        let normal =
            |place: &RankedEntry| tally_rules::order_key::normal(&self.model.definition, &place.record);
        let entry = |at: usize| {
            let mut better: Vec<_> =
                list[..at].iter().map(|one| normal(one)).filter(|one| *one != normal(list[at])).collect();
            let count = better.len() as u64;
            better.dedup();
            let counts =
                RankCounts { before: at as u64, better: count, distinct_better: better.len() as u64 };
            (rank::rank(self.model.definition.ranking, counts), list[at].clone())
        };
        let entries = (0..list.len()).map(entry).collect();
        once.retain(|player| self.places.iter().all(|place| place.player != *player));
        let wanted = Among { total: self.places.len() as u64, entries, missing: once };
        let got = self.view.read(&*self.world.tally().store, |order| order.among(&asked)).unwrap();
        assert_eq!(got, wanted, "{asked:?} among each other in {}", self.what);
    }

    /// A player with a record that it may have or not.
    fn any(&self, random: &mut Random) -> (PlayerId, Record) {
        if let Some(at) = random.below(3).checked_sub(1).filter(|_| !self.places.is_empty()) {
            let place = &self.places[(random.below(100) + at) as usize % self.places.len()];
            return (place.player.clone(), place.record);
        }
        let score = self.model_score(random);
        let subscore = if self.model.definition.has_subscore() { random.below(4) as i64 - 2 } else { 0 };
        let at = Micros(self.world.now().0 - random.below(2 * crate::world::DAY as u64) as i64);
        (player(random.pick(&super::PLAYERS)), Record { score, subscore, at })
    }

    fn model_score(&self, random: &mut Random) -> i64 {
        let kind = self.model.definition.score;
        tally_rules::score::ordered(kind, super::score(kind, random)).unwrap()
    }
}
