//! A board as a sorted vector, and the required answers of every backend after the same changes.
//!
//! The model uses the plain forms of the rules (`record::apply`, `order_key::compare`) and counts by comparing everything.
//! It has nothing of a tree or of Redis.

use super::Backend;
use proptest::prelude::*;
use std::collections::BTreeMap;
use tally_ranking::{Edge, PageQuery, PageStart, Published, RankedEntry, RankingChange};
use tally_rules::definition::{Definition, Order, Ranking, ScoreType, Subscore, Ties, Update};
use tally_rules::rank::{self, RankCounts};
use tally_rules::{Micros, PlayerId, Record, order_key, record};

/// A player, the score, subscore and instant now, and whether ranks are wanted.
type Change = (u8, Option<(i64, i64, i64)>, bool);

/// An operation on a board.
#[derive(Clone, Debug)]
pub(super) enum Op {
    Submit {
        player: u8,
        score: i64,
        subscore: i64,
        at: i64,
    },
    Remove {
        player: u8,
    },
    Reload,
    /// Changes that are published in one call.
    Batch(Vec<Change>),
}

pub(super) fn ops() -> impl Strategy<Value = Vec<Op>> {
    let extreme = prop_oneof![Just(i64::MIN), Just(i64::MAX), Just(0)];
    let score = prop_oneof![20 => -3i64..4, 1 => extreme];
    let change = proptest::option::of((score.clone(), -2i64..3, 0i64..12));
    let submit = (0u8..24, score, -2i64..3, 0i64..12).prop_map(|(player, score, subscore, at)| Op::Submit {
        player,
        score,
        subscore,
        at,
    });
    let op = prop_oneof![
        12 => submit,
        3 => (0u8..24).prop_map(|player| Op::Remove { player }),
        1 => Just(Op::Reload),
        2 => proptest::collection::vec((0u8..24, change, any::<bool>()), 1..20).prop_map(Op::Batch),
    ];
    proptest::collection::vec(op, 1..60)
}

pub(super) fn definitions() -> impl Strategy<Value = Definition> {
    use proptest::sample::select;
    let kinds = (select(Order::ALL), select(Update::ALL), select(Ranking::ALL), select(Ties::ALL));
    (kinds, select(Subscore::ALL)).prop_map(|((order, update, ranking, ties), subscore)| {
        let subscore = if update == Update::Sum { Subscore::None } else { subscore };
        Definition {
            order,
            update,
            ranking,
            ties,
            subscore,
            score: ScoreType::Int64,
            ..Definition::default()
        }
    })
}

/// Ids of several lengths, some a prefix of others: byte order is not length order.
pub(super) fn player(number: u8) -> PlayerId {
    PlayerId::new(&"ab\u{e9}"[..[1, 2, 4][usize::from(number % 3)]].repeat(1 + usize::from(number / 6)))
        .and_then(|id| PlayerId::new(&format!("{}{}", id.as_str(), number % 2)))
        .unwrap()
}

pub(super) struct Model {
    pub(super) definition: Definition,
    pub(super) records: BTreeMap<PlayerId, Record>,
}

impl Model {
    pub(super) fn sorted(&self) -> Vec<(&PlayerId, &Record)> {
        let mut all: Vec<_> = self.records.iter().collect();
        all.sort_by(|a, b| {
            order_key::compare(&self.definition, (a.1, a.0.as_bytes()), (b.1, b.0.as_bytes()))
        });
        all
    }

    fn counts(&self, list: &[(&PlayerId, &Record)], at: usize) -> RankCounts {
        let key = |record: &Record| order_key::normal(&self.definition, record);
        let mut better: Vec<_> =
            list.iter().map(|(_, record)| key(record)).filter(|other| *other < key(list[at].1)).collect();
        let count = better.len() as u64;
        better.dedup();
        RankCounts { before: at as u64, better: count, distinct_better: better.len() as u64 }
    }

    pub(super) fn places(&self, list: &[(&PlayerId, &Record)]) -> Vec<RankedEntry> {
        let place = |at: usize| RankedEntry {
            rank: rank::rank(self.definition.ranking, self.counts(list, at)),
            player: list[at].0.clone(),
            record: *list[at].1,
        };
        (0..list.len()).map(place).collect()
    }

    pub(super) fn rank_of(&self, player: &PlayerId) -> Option<u64> {
        let places = self.places(&self.sorted());
        places.iter().find(|place| place.player == *player).map(|place| place.rank)
    }
}

pub(super) fn check(model: &Model, ranking: &impl Backend) {
    let sorted = model.sorted();
    let places = model.places(&sorted);
    let total = places.len() as u64;
    assert_eq!(ranking.total(), total);
    check_pages(&places, ranking);
    check_ranges(&places, ranking);
    check_scan(&places, ranking);
    for (at, place) in places.iter().enumerate() {
        let ranked = ranking.read(|it| it.ranked(&place.player)).unwrap();
        let counts = model.counts(&sorted, at);
        assert_eq!((ranked.rank, ranked.record, ranked.total), (place.rank, place.record, total));
        assert_eq!(ranked.percentile, rank::percentile(model.definition.ranking, counts, total));
        assert_eq!(ranking.read(|it| it.rank_of(&place.player, &place.record)), place.rank);
        let around = ranking.read(|it| it.around(&place.player, 2, 3)).unwrap();
        assert_eq!(around.entries, places[at.saturating_sub(2)..(at + 4).min(places.len())]);
    }
    assert!(ranking.read(|it| it.ranked(&PlayerId::new("nobody").unwrap())).is_none());
    check_among(model, ranking, &places);
}

/// Page after page from both ends gives everything once.
fn check_pages(places: &[RankedEntry], ranking: &impl Backend) {
    for edge in [Edge::Best, Edge::Worst] {
        let mut expected = places.to_vec();
        if edge == Edge::Worst {
            expected.reverse();
        }
        let (mut start, mut walked) = (PageStart::Edge, Vec::new());
        loop {
            let query = PageQuery { edge, start, limit: 3, min: None, max: None };
            let page = ranking.read(|it| it.page(&query));
            walked.extend(page.entries);
            if !page.more {
                break;
            }
            let last: &RankedEntry = walked.last().unwrap();
            start = PageStart::After(last.record, last.player.clone());
        }
        assert_eq!(walked, expected);
        let start = PageStart::Offset(2);
        let query = PageQuery { edge, start, limit: 2, min: None, max: None };
        let page = ranking.read(|it| it.page(&query));
        assert_eq!(page.entries, expected.iter().skip(2).take(2).cloned().collect::<Vec<_>>());
    }
}

fn check_ranges(places: &[RankedEntry], ranking: &impl Backend) {
    for (min, max) in [(Some(-1), Some(1)), (None, Some(0)), (Some(1), None), (Some(2), Some(1))] {
        let within = |place: &&RankedEntry| {
            min.is_none_or(|min| place.record.score >= min) && max.is_none_or(|max| place.record.score <= max)
        };
        let page = ranking.read(|it| it.page(&PageQuery { limit: 100, min, max, ..PageQuery::default() }));
        assert_eq!(page.entries, places.iter().filter(within).cloned().collect::<Vec<_>>());
    }
}

/// A scan in small steps returns every player once.
fn check_scan(places: &[RankedEntry], ranking: &impl Backend) {
    let (mut cursor, mut met) = (0, Vec::new());
    loop {
        let (next, some) = ranking.read(|it| {
            let mut some = Vec::new();
            let next = it.scan(cursor, 3, &mut |id, record| {
                some.push((PlayerId::new(std::str::from_utf8(id).unwrap()).unwrap(), record));
            });
            (next, some)
        });
        met.extend(some);
        cursor = next;
        if cursor == 0 {
            break;
        }
    }
    let mut there: Vec<(PlayerId, Record)> =
        places.iter().map(|place| (place.player.clone(), place.record)).collect();
    there.sort_by(|a, b| a.0.cmp(&b.0));
    met.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(met, there);
}

fn check_among(model: &Model, ranking: &impl Backend, places: &[RankedEntry]) {
    let friends: Vec<PlayerId> = (0..24).step_by(3).chain([0, 3]).map(player).collect();
    let among = ranking.read(|it| it.among(&friends));
    let there: Vec<_> = model.sorted().into_iter().filter(|(player, _)| friends.contains(player)).collect();
    let ranks: Vec<u64> = model.places(&there).iter().map(|place| place.rank).collect();
    let overall: Vec<RankedEntry> =
        places.iter().filter(|place| friends.contains(&place.player)).cloned().collect();
    assert_eq!(among.entries, ranks.into_iter().zip(overall).collect::<Vec<_>>());
    let mut missing: Vec<&PlayerId> =
        friends.iter().filter(|one| !model.records.contains_key(*one)).collect();
    missing.sort();
    missing.dedup();
    let mut told: Vec<&PlayerId> = among.missing.iter().collect();
    told.sort();
    assert_eq!(told, missing);
}

pub(super) fn step(model: &mut Model, ranking: &impl Backend, op: &Op) {
    match op {
        Op::Submit { player: number, score, subscore, at } => {
            let player = player(*number);
            let subscore = if model.definition.has_subscore() { *subscore } else { 0 };
            let submit = Record { score: *score, subscore, at: Micros(*at) };
            let present = model.records.get(&player).copied();
            let Ok(updated) = record::apply(&model.definition, present, submit) else { return };
            let before = model.rank_of(&player);
            model.records.insert(player.clone(), updated.record);
            let change = RankingChange { player: player.clone(), record: Some(updated.record), ranked: true };
            let published = one(ranking, change, present);
            assert_eq!(published.before, before);
            assert_eq!(published.after, model.rank_of(&player));
        }
        Op::Remove { player: number } => {
            let player = player(*number);
            let before = model.rank_of(&player);
            let previous = model.records.remove(&player);
            let published = one(ranking, RankingChange { player, record: None, ranked: true }, previous);
            assert_eq!((published.before, published.after), (before, None));
        }
        Op::Reload => ranking.reload(&model.records),
        Op::Batch(changes) => batch(model, ranking, changes),
    }
}

/// Publishes one change that needs ranks.
fn one(ranking: &impl Backend, change: RankingChange, previous: Option<Record>) -> Published {
    let mut told = None;
    ranking.publish(&[(change, previous)], |_, published| assert!(told.replace(published).is_none()));
    told.unwrap()
}

/// Publishes several changes at once: each gets the reply that it would have had alone, in its order.
fn batch(model: &mut Model, ranking: &impl Backend, changes: &[Change]) {
    let (mut batch, mut wanted) = (Vec::new(), Vec::new());
    for (number, change, ranked) in changes {
        let player = player(*number);
        let before = model.rank_of(&player);
        let subscored = model.definition.has_subscore();
        let record = change.map(|(score, subscore, at)| Record {
            score,
            subscore: if subscored { subscore } else { 0 },
            at: Micros(at),
        });
        let previous = match record {
            Some(record) => model.records.insert(player.clone(), record),
            None => model.records.remove(&player),
        };
        if *ranked {
            wanted.push((batch.len(), Published { before, after: model.rank_of(&player) }));
        }
        batch.push((RankingChange { player, record, ranked: *ranked }, previous));
    }
    let mut told = Vec::new();
    ranking.publish(&batch, |at, published| told.push((at, published)));
    assert_eq!(told, wanted);
}
