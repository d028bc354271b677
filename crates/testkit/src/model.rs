//! A leaderboard in its plainest form: a vector that every query sorts again.
//!
//! Written from the contract, not from the product: no code is shared with it. Instants stay the text of the
//! responses (UTC, microseconds), which sorts as they do from the year 0 on. Not here: periods, speed.

use crate::rng::Rng;
use serde_json::{Value, json};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// The definition of a board, in the words of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition {
    /// `descending` or `ascending`.
    pub order: &'static str,
    /// `best`, `latest` or `sum`.
    pub update: &'static str,
    /// `ordinal`, `competition` or `dense`.
    pub ranking: &'static str,
    /// `first`, `last`, `player` or `player_reversed`.
    pub ties: &'static str,
    /// `int64` or `float64`.
    pub score: &'static str,
    /// `none`, `descending` or `ascending`.
    pub subscore: &'static str,
}

/// All values of each field, the default first.
pub const CHOICES: [(&str, &[&str]); 6] = [
    ("order", &["descending", "ascending"]),
    ("update", &["best", "latest", "sum"]),
    ("ranking", &["ordinal", "competition", "dense"]),
    ("ties", &["first", "last", "player", "player_reversed"]),
    ("score", &["int64", "float64"]),
    ("subscore", &["none", "descending", "ascending"]),
];

impl Default for Definition {
    fn default() -> Self {
        Self::choose(|_, words| words[0])
    }
}

impl Definition {
    fn choose(mut word: impl FnMut(&str, &'static [&'static str]) -> &'static str) -> Self {
        let [order, update, ranking, ties, score, subscore] = CHOICES.map(|(name, words)| word(name, words));
        Self { order, update, ranking, ties, score, subscore }
    }

    /// The definition in a board's JSON.
    pub fn of_json(board: &Value) -> Self {
        Self::choose(|name, words| {
            let said = board[name].as_str();
            let known = words.iter().find(|word| said.is_none_or(|said| said == **word));
            known.unwrap_or_else(|| panic!("`{name}` is not a choice of the contract in {board}"))
        })
    }

    /// A random definition that the contract allows.
    pub fn random(rng: &mut Rng) -> Self {
        let mut any = Self::choose(|_, words| *rng.pick::<&str>(words));
        if any.update == "sum" {
            any.subscore = "none";
        }
        any
    }

    /// The body that creates the board.
    pub fn json(&self) -> Value {
        json!({"order": self.order, "update": self.update, "ranking": self.ranking, "ties": self.ties,
            "score": self.score, "subscore": self.subscore})
    }

    fn better(&self, left: &Record, right: &Record) -> Ordering {
        let directed = |up: bool, order: Ordering| if up { order } else { order.reverse() };
        let by_score = directed(self.order == "ascending", left.score.order(right.score));
        let by_subscore = directed(self.subscore == "ascending", left.subscore.cmp(&right.subscore));
        by_score.then(by_subscore)
    }

    fn compare(&self, left: &Record, right: &Record) -> Ordering {
        let player = left.player.as_bytes().cmp(right.player.as_bytes());
        self.better(left, right).then_with(|| match self.ties {
            "first" => left.at.cmp(&right.at).then(player),
            "last" => right.at.cmp(&left.at).then(player),
            "player" => player,
            "player_reversed" => player.reverse(),
            other => unreachable!("{other}"),
        })
    }
}

/// A score of either kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Score {
    /// On int64 boards.
    Int(i64),
    /// On float64 boards.
    Float(f64),
}

impl Score {
    fn order(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Int(left), Self::Int(right)) => left.cmp(&right),
            (Self::Float(left), Self::Float(right)) => left.partial_cmp(&right).expect("scores are numbers"),
            (Self::Int(_) | Self::Float(_), _) => panic!("one board holds one kind of score"),
        }
    }

    fn plus(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Int(left), Self::Int(right)) => left.checked_add(right).map(Self::Int),
            (Self::Float(left), Self::Float(right)) => {
                Some(left + right).filter(|sum| !sum.is_nan()).map(Self::Float)
            }
            (Self::Int(_) | Self::Float(_), _) => panic!("one board holds one kind of score"),
        }
    }

    /// As in responses.
    pub fn json(self) -> Value {
        match self {
            Self::Int(value) => json!(value),
            Self::Float(f64::INFINITY) => json!("inf"),
            Self::Float(f64::NEG_INFINITY) => json!("-inf"),
            Self::Float(value) => json!(value),
        }
    }

    /// Reads the score of a response for that kind of board.
    pub fn of_json(kind: &str, value: &Value) -> Self {
        let read = match (kind, value.as_str()) {
            ("float64", Some("inf")) => Some(Self::Float(f64::INFINITY)),
            ("float64", Some("-inf")) => Some(Self::Float(f64::NEG_INFINITY)),
            ("float64", _) => value.as_f64().map(Self::Float),
            _ => value.as_i64().map(Self::Int),
        };
        read.unwrap_or_else(|| panic!("{value} is no {kind} score"))
    }
}

/// The record of a player on a board.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The player.
    pub player: String,
    /// The score.
    pub score: Score,
    /// The subscore; 0 if the board has none.
    pub subscore: i64,
    /// The instant, as text.
    pub at: String,
}

impl Record {
    /// Reads an entry of a page or of an export.
    pub fn of_json(definition: &Definition, entry: &Value) -> Self {
        let text =
            |name: &str| entry[name].as_str().unwrap_or_else(|| panic!("no `{name}` in {entry}")).to_owned();
        let has = definition.subscore != "none";
        assert_eq!(
            entry.get("subscore").is_some(),
            has,
            "`subscore` stands where the board has one: {entry}"
        );
        Self {
            player: text("player"),
            score: Score::of_json(definition.score, &entry["score"]),
            subscore: if has { entry["subscore"].as_i64().expect("subscores are integers") } else { 0 },
            at: text("at"),
        }
    }

    fn numbers(&self, definition: &Definition) -> Value {
        let mut numbers = json!({"score": self.score.json()});
        if definition.subscore != "none" {
            numbers["subscore"] = json!(self.subscore);
        }
        numbers
    }

    /// As an entry of a page.
    pub fn json(&self, definition: &Definition, rank: Option<u64>) -> Value {
        let mut entry = self.numbers(definition);
        entry["player"] = json!(self.player);
        entry["at"] = json!(self.at);
        entry["rank"] = json!(rank);
        entry
    }
}

/// The entries of a page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Range {
    /// From the worst upwards.
    pub worst_first: bool,
    /// Entries to skip at the beginning.
    pub offset: usize,
    /// The lowest score.
    pub min: Option<Score>,
    /// The highest score.
    pub max: Option<Score>,
}

/// A board.
#[derive(Clone, Debug)]
pub struct Board {
    /// Its definition.
    pub definition: Definition,
    records: Vec<Record>,
    banned: BTreeSet<String>,
}

impl Board {
    /// A board without records.
    pub fn new(definition: Definition) -> Self {
        Self { definition, records: Vec::new(), banned: BTreeSet::new() }
    }

    /// A board with these records.
    pub fn of(definition: Definition, records: Vec<Record>) -> Self {
        let mut players: Vec<&str> = records.iter().map(|record| record.player.as_str()).collect();
        players.sort_unstable();
        assert!(players.windows(2).all(|two| two[0] != two[1]), "a player stands twice on a board");
        Self { definition, records, banned: BTreeSet::new() }
    }

    /// The number of players in its ranks.
    pub fn total(&self) -> usize {
        self.records.iter().filter(|record| !self.banned.contains(&record.player)).count()
    }

    /// Bans a player, on the board or not.
    pub fn ban(&mut self, player: &str) {
        self.banned.insert(player.to_owned());
    }

    /// Unbans a player.
    pub fn restore(&mut self, player: &str) {
        self.banned.remove(player);
    }

    /// Removes everything of a player; returns whether there was anything.
    pub fn erase(&mut self, player: &str) -> bool {
        let banned = self.banned.remove(player);
        self.remove(player) || banned
    }

    /// A player's record, banned or not.
    pub fn get(&self, player: &str) -> Option<&Record> {
        self.records.iter().find(|record| record.player == player)
    }

    /// Applies a submit and returns its response without the members that name the board; `None` for an overflow.
    pub fn submit(&mut self, new: Record) -> Option<Value> {
        let definition = self.definition;
        let old = self.get(&new.player).cloned();
        let after = match &old {
            None => new.clone(),
            Some(old) => updated(&definition, old, &new)?,
        };
        let before = old.as_ref().and_then(|old| self.rank(&old.player));
        self.records.retain(|record| record.player != new.player);
        self.records.push(after.clone());
        let mut answer = after.json(&definition, self.rank(&new.player));
        answer["changed"] = json!(old.as_ref() != Some(&after));
        answer["previous"] = old.map_or(Value::Null, |old| {
            let mut previous = old.numbers(&definition);
            previous["rank"] = json!(before);
            previous
        });
        Some(answer)
    }

    /// Removes a player's record; returns whether there was one.
    pub fn remove(&mut self, player: &str) -> bool {
        let before = self.records.len();
        self.records.retain(|record| record.player != player);
        self.records.len() < before
    }

    /// Every ranked record with its rank, from the best.
    pub fn sorted(&self) -> Vec<(u64, &Record)> {
        self.ranked(|player| !self.banned.contains(player))
    }

    /// The ranks of these players among each other, as entries of a response.
    pub fn among(&self, players: &[&str]) -> Vec<Value> {
        let shown = |player: &str| players.contains(&player) && !self.banned.contains(player);
        let entry = |(rank, record): (u64, &Record)| {
            let mut entry = record.json(&self.definition, Some(rank));
            entry["overall_rank"] = json!(self.rank(&record.player));
            entry
        };
        self.ranked(shown).into_iter().map(entry).collect()
    }

    fn ranked(&self, shown: impl Fn(&str) -> bool) -> Vec<(u64, &Record)> {
        let mut sorted: Vec<&Record> = self.records.iter().filter(|record| shown(&record.player)).collect();
        sorted.sort_by(|left, right| self.definition.compare(left, right));
        let (mut rank, mut ranked) = (0, Vec::with_capacity(sorted.len()));
        for (at, record) in sorted.iter().enumerate() {
            let place = at as u64 + 1;
            let shared = at > 0 && self.definition.better(sorted[at - 1], record) == Ordering::Equal;
            rank = match self.definition.ranking {
                "ordinal" => place,
                _ if shared => rank,
                "competition" => place,
                _ => rank + 1,
            };
            ranked.push((rank, *record));
        }
        ranked
    }

    /// A player's rank.
    pub fn rank(&self, player: &str) -> Option<u64> {
        self.sorted().into_iter().find(|(_, record)| record.player == player).map(|(rank, _)| rank)
    }

    /// 100 × (total − players of better rank) / total, with two decimals.
    pub fn percentile(&self, player: &str) -> Option<f64> {
        let (own, total) = (self.rank(player)?, self.total());
        let better = self.sorted().iter().filter(|(rank, _)| *rank < own).count();
        // In integers up to the last step: thousandths, rounded half up to hundredths.
        let (part, whole) = ((total - better) * 10_000, total);
        Some(((2 * part + whole) / (2 * whole)) as f64 / 100.0)
    }

    /// Entries as pages show them, without a limit.
    pub fn entries(&self, range: &Range) -> Vec<Value> {
        let inside = |record: &Record| {
            range.min.is_none_or(|min| record.score.order(min).is_ge())
                && range.max.is_none_or(|max| record.score.order(max).is_le())
        };
        let mut kept: Vec<(u64, &Record)> =
            self.sorted().into_iter().filter(|(_, record)| inside(record)).collect();
        if range.worst_first {
            kept.reverse();
        }
        let kept = kept.into_iter().skip(range.offset);
        kept.map(|(rank, record)| record.json(&self.definition, Some(rank))).collect()
    }
}

/// The record after a submit; `None` for a sum out of range.
fn updated(definition: &Definition, old: &Record, new: &Record) -> Option<Record> {
    Some(match definition.update {
        "best" if definition.better(new, old).is_lt() => new.clone(),
        "latest" if new.at >= old.at && (new.score, new.subscore) != (old.score, old.subscore) => new.clone(),
        "sum" => {
            let score = old.score.plus(new.score)?;
            let at = if score == old.score { &old.at } else { (&old.at).max(&new.at) };
            Record { player: old.player.clone(), score, subscore: 0, at: at.clone() }
        }
        _ => old.clone(),
    })
}

#[cfg(test)]
mod tests;
