//! One part of one board in memory: a counted tree behind a lock.
//!
//! Writers are the lanes, one batch at a time, so the lock is taken once per batch and board; readers take it shared
//! for microseconds. The lock is the standard one and never held across an await: nothing under it waits.
//!
//! Boards with a subscore use a wider tree; everybody else pays 8 bytes a player less. The only `match` on that is
//! the macro below.

use crate::page::{Edge, Page, PageQuery, Place, Ranked, Start};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use tally_index::{Builder, Duplicate, Entry, Order, Row, Score, Tie};
use tally_rules::definition::{Definition, Ranking, Ties};
use tally_rules::rank::{self, Counts};
use tally_rules::{Micros, PlayerId, Record, order_key};

/// The order of one part.
pub struct PartOrder {
    rules: Rules,
    tree: RwLock<Tree>,
}

/// A committed change of one player.
#[derive(Clone, Debug)]
pub struct Movement {
    /// Who.
    pub player: PlayerId,
    /// The record now; `None` removes the player.
    pub record: Option<Record>,
}

/// Ranks around a published change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Published {
    /// The rank just before.
    pub before: Option<u64>,
    /// The rank just after.
    pub after: Option<u64>,
}

/// The tree of a part, by the width of its scores.
enum Tree {
    Plain(Order<i64>),
    Wide(Order<[i64; 2]>),
}

/// What of the definition an order needs.
#[derive(Clone, Debug)]
struct Rules {
    definition: Definition,
}

macro_rules! on_tree {
    ($tree:expr, $order:ident => $body:expr) => {
        match $tree {
            Tree::Plain($order) => $body,
            Tree::Wide($order) => $body,
        }
    };
}

impl PartOrder {
    /// An empty order for boards of this definition.
    pub fn new(definition: &Definition) -> Self {
        let rules = Rules { definition: definition.clone() };
        let (tie, dense) = (rules.tie(), rules.dense());
        let tree = if definition.has_subscore() {
            Tree::Wide(Order::new(tie, dense))
        } else {
            Tree::Plain(Order::new(tie, dense))
        };
        Self { rules, tree: RwLock::new(tree) }
    }

    /// Publishes committed changes in their order, and says each one's ranks around it.
    pub fn publish(&self, movements: &[Movement]) -> Vec<Published> {
        let mut tree = self.tree.write().unwrap_or_else(PoisonError::into_inner);
        let one = |movement: &Movement| on_tree!(&mut *tree, order => self.rules.publish(order, movement));
        movements.iter().map(one).collect()
    }

    /// Replaces the whole order by what was loaded; refused where a player came twice.
    pub fn load(&self, loading: Loading) -> Result<(), Duplicate> {
        let loaded = loading.finish()?;
        *self.tree.write().unwrap_or_else(PoisonError::into_inner) = loaded;
        Ok(())
    }

    /// An empty load for this order.
    pub fn loading(&self) -> Loading {
        let (tie, dense) = (self.rules.tie(), self.rules.dense());
        let tree = if self.rules.definition.has_subscore() {
            LoadingTree::Wide(Builder::new(tie, dense))
        } else {
            LoadingTree::Plain(Builder::new(tie, dense))
        };
        Loading { rules: self.rules.clone(), tree }
    }

    /// How many players it has.
    pub fn total(&self) -> u64 {
        on_tree!(&*self.read(), order => order.len())
    }

    /// Bytes of memory it holds.
    pub fn bytes(&self) -> u64 {
        on_tree!(&*self.read(), order => order.bytes())
    }

    /// A player's place.
    pub fn ranked(&self, player: &PlayerId) -> Option<Ranked> {
        on_tree!(&*self.read(), order => {
            let (entry, before) = order.find(player.as_bytes())?;
            let counts = self.rules.counts(order, &entry, before);
            let (ranking, total) = (self.rules.definition.ranking, order.len());
            Some(Ranked {
                rank: rank::rank(ranking, counts),
                record: self.rules.record(entry.score, entry.stamp),
                total,
                percentile: rank::percentile(ranking, counts, total),
            })
        })
    }

    /// The rank that a record of this player has or would have among the others.
    pub fn rank_of(&self, player: &PlayerId, record: &Record) -> u64 {
        on_tree!(&*self.read(), order => self.rules.rank_of(order, player, record))
    }

    /// A stretch of the order.
    pub fn page(&self, query: &PageQuery) -> Page {
        on_tree!(&*self.read(), order => self.rules.page(order, query))
    }

    /// The places around a player, the player among them, clipped at the ends.
    pub fn around(&self, player: &PlayerId, above: usize, below: usize) -> Option<Page> {
        on_tree!(&*self.read(), order => {
            let place = order.ordinal(player.as_bytes())?;
            let from = place.saturating_sub(above as u64);
            let to = (place + below as u64 + 1).min(order.len());
            Some(self.rules.stretch(order, Edge::Best, from, to, usize::MAX))
        })
    }

    fn read(&self) -> RwLockReadGuard<'_, Tree> {
        self.tree.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for PartOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PartOrder").field("total", &self.total()).finish_non_exhaustive()
    }
}

/// An order being loaded: records in any order, built at once at the end.
pub struct Loading {
    rules: Rules,
    tree: LoadingTree,
}

enum LoadingTree {
    Plain(Builder<i64>),
    Wide(Builder<[i64; 2]>),
}

impl Loading {
    /// Takes one record; no player may come twice.
    pub fn push(&mut self, player: &PlayerId, record: &Record) {
        match &mut self.tree {
            LoadingTree::Plain(builder) => builder.push(player.as_bytes(), self.rules.entry(record)),
            LoadingTree::Wide(builder) => builder.push(player.as_bytes(), self.rules.entry(record)),
        }
    }

    fn finish(self) -> Result<Tree, Duplicate> {
        Ok(match self.tree {
            LoadingTree::Plain(builder) => Tree::Plain(builder.finish()?),
            LoadingTree::Wide(builder) => Tree::Wide(builder.finish()?),
        })
    }
}

/// How a tree's score stands for score and subscore in normal form.
trait Normal: Score {
    fn of(normal: [i64; 2]) -> Self;
    fn parts(self) -> [i64; 2];
    /// The first and the last score with this first half.
    fn span(first: i64) -> (Self, Self);
}

impl Normal for i64 {
    fn of(normal: [i64; 2]) -> Self {
        normal[0]
    }
    fn parts(self) -> [i64; 2] {
        [self, 0]
    }
    fn span(first: i64) -> (Self, Self) {
        (first, first)
    }
}

impl Normal for [i64; 2] {
    fn of(normal: [i64; 2]) -> Self {
        normal
    }
    fn parts(self) -> [i64; 2] {
        self
    }
    fn span(first: i64) -> (Self, Self) {
        ([first, i64::MIN], [first, i64::MAX])
    }
}

impl Rules {
    fn tie(&self) -> Tie {
        match self.definition.ties {
            Ties::First => Tie::StampAscending,
            Ties::Last => Tie::StampDescending,
            Ties::Player => Tie::Id,
            Ties::PlayerReversed => Tie::IdReversed,
        }
    }

    fn dense(&self) -> bool {
        self.definition.ranking == Ranking::Dense
    }

    fn entry<S: Normal>(&self, record: &Record) -> Entry<S> {
        Entry { score: S::of(order_key::normal(&self.definition, record)), stamp: record.at.0 }
    }

    /// Whether two entries of one player stand at the same place; the instant counts only where it decides ties.
    fn same_key<S: Normal>(&self, left: &Entry<S>, right: &Entry<S>) -> bool {
        let timed = matches!(self.definition.ties, Ties::First | Ties::Last);
        left.score == right.score && (!timed || left.stamp == right.stamp)
    }

    fn record<S: Normal>(&self, score: S, stamp: i64) -> Record {
        let (score, subscore) = order_key::from_normal(&self.definition, score.parts());
        Record { score, subscore, at: Micros(stamp) }
    }

    fn publish<S: Normal>(&self, order: &mut Order<S>, movement: &Movement) -> Published {
        let id = movement.player.as_bytes();
        let present: Option<(Entry<S>, u64)> = order.find(id);
        let before = present.map(|(entry, place)| self.rank_at(order, &entry, place));
        let Some(record) = &movement.record else {
            order.remove(id);
            return Published { before, after: None };
        };
        let entry = self.entry(record);
        if present.is_some_and(|(now, _)| now == entry) {
            return Published { before, after: before };
        }
        order.set(id, entry);
        let place = order.ordinal(id).expect("a player that was just set has a place");
        Published { before, after: Some(self.rank_at(order, &entry, place)) }
    }

    fn counts<S: Normal>(&self, order: &Order<S>, entry: &Entry<S>, before: u64) -> Counts {
        match self.definition.ranking {
            Ranking::Ordinal => Counts { before, better: 0, distinct_better: 0 },
            Ranking::Competition => {
                Counts { before, better: order.count_better(entry.score), distinct_better: 0 }
            }
            Ranking::Dense => Counts {
                before,
                better: order.count_better(entry.score),
                distinct_better: order.count_distinct_better(entry.score),
            },
        }
    }

    /// The rank of a present entry at that place.
    fn rank_at<S: Normal>(&self, order: &Order<S>, entry: &Entry<S>, place: u64) -> u64 {
        1 + match self.definition.ranking {
            Ranking::Ordinal => place,
            Ranking::Competition => order.count_better(entry.score),
            Ranking::Dense => order.count_distinct_better(entry.score),
        }
    }

    fn rank_of<S: Normal>(&self, order: &Order<S>, player: &PlayerId, record: &Record) -> u64 {
        let entry: Entry<S> = self.entry(record);
        let id = player.as_bytes();
        1 + match self.definition.ranking {
            Ranking::Competition => order.count_better(entry.score),
            Ranking::Dense => order.count_distinct_better(entry.score),
            Ranking::Ordinal => {
                let before = order.lower_bound(entry.score, entry.stamp, id);
                // The player's present entry is not one of the others.
                let own = order.ordinal(id).is_some_and(|own| own < before);
                before - u64::from(own)
            }
        }
    }

    fn page<S: Normal>(&self, order: &Order<S>, query: &PageQuery) -> Page {
        let (from, to) = self.bounds(order, query);
        let (from, to) = match (&query.start, query.edge) {
            (Start::Edge, _) => (from, to),
            (Start::Offset(offset), Edge::Best) => (from.saturating_add(*offset), to),
            (Start::Offset(offset), Edge::Worst) => (from, to.saturating_sub(*offset)),
            (Start::After(record, player), edge) => {
                let entry: Entry<S> = self.entry(record);
                let place = order.lower_bound(entry.score, entry.stamp, player.as_bytes());
                let unmoved = order.get(player.as_bytes()).is_some_and(|now| self.same_key(&now, &entry));
                match edge {
                    Edge::Best => (from.max(place + u64::from(unmoved)), to),
                    Edge::Worst => (from, to.min(place)),
                }
            }
        };
        self.stretch(order, query.edge, from, to, query.limit)
    }

    /// The places that hold scores from `min` to `max`.
    fn bounds<S: Normal>(&self, order: &Order<S>, query: &PageQuery) -> (u64, u64) {
        let normal = |score: i64| order_key::directed(self.definition.order, score);
        let (a, b) = (query.min.map(normal), query.max.map(normal));
        let (best, worst) = match self.definition.order {
            tally_rules::definition::Order::Descending => (b, a),
            tally_rules::definition::Order::Ascending => (a, b),
        };
        let from = best.map_or(0, |first| order.count_better(S::span(first).0));
        let to = worst.map_or(order.len(), |last| order.count_at_least(S::span(last).1));
        (from, to)
    }

    /// Entries of the places `from..to`, seen from an edge, at most `limit`.
    fn stretch<S: Normal>(&self, order: &Order<S>, edge: Edge, from: u64, to: u64, limit: usize) -> Page {
        let total = order.len();
        if from >= to {
            return Page { total, entries: Vec::new(), more: false };
        }
        let take = usize::try_from(to - from).unwrap_or(usize::MAX).min(limit);
        let entries = match edge {
            Edge::Best => self.places(order, order.walk(from), from, 1, take),
            Edge::Worst => self.places(order, order.walk_back(to - 1), to - 1, -1, take),
        };
        Page { total, more: (take as u64) < to - from, entries }
    }

    /// Gives ranks to a walk; shared ranks are asked of the tree only where the score changes.
    fn places<'a, S: Normal>(
        &self,
        order: &Order<S>,
        walk: impl Iterator<Item = Row<'a, S>>,
        first: u64,
        step: i64,
        take: usize,
    ) -> Vec<Place> {
        let mut shared: Option<(S, u64)> = None;
        let mut place = first;
        let mut places = Vec::with_capacity(take);
        for row in walk.take(take) {
            let rank = match (self.definition.ranking, shared) {
                (Ranking::Ordinal, _) => place + 1,
                (_, Some((score, rank))) if score == row.score => rank,
                (Ranking::Competition, _) => order.count_better(row.score) + 1,
                (Ranking::Dense, _) => order.count_distinct_better(row.score) + 1,
            };
            shared = Some((row.score, rank));
            let player = std::str::from_utf8(row.id).ok().and_then(|id| PlayerId::new(id).ok());
            let player = player.expect("only checked ids enter the order");
            places.push(Place { rank, player, record: self.record(row.score, row.stamp) });
            place = place.saturating_add_signed(step);
        }
        places
    }
}
