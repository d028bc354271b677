//! What is a difference between a sorted set and its leaderboard: rules without I/O.

use crate::sorted_sets::rules::shown;
use std::collections::BTreeMap;
use tally_rules::definition::ScoreType;
use tally_rules::score::{ScoreInput, ordered};

/// Players that are kept by name; more are counted alone.
pub(super) const KEPT_MAX: usize = 1_000;

/// The scores of one player, in Redis and in tally.
pub(super) type Pair = (Option<ScoreInput>, Option<ScoreInput>);

/// How many players differ, and in what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) only_redis: u64,
    pub(super) only_tally: u64,
    pub(super) scores: u64,
}

impl Counts {
    pub(super) fn add(&mut self, other: Self) {
        self.only_redis += other.only_redis;
        self.only_tally += other.only_tally;
        self.scores += other.scores;
    }

    pub(super) fn all(self) -> u64 {
        self.only_redis + self.only_tally + self.scores
    }

    fn note(&mut self, pair: &Pair) {
        match pair {
            (Some(_), None) => self.only_redis += 1,
            (None, Some(_)) => self.only_tally += 1,
            (Some(_), Some(_)) => self.scores += 1,
            (None, None) => {}
        }
    }
}

/// The players of one leaderboard that differ.
pub(super) struct Differences {
    scores: ScoreType,
    /// By player.
    pub(super) kept: BTreeMap<String, Pair>,
    /// Those beyond the kept ones.
    more: Counts,
}

impl Differences {
    pub(super) fn new(scores: ScoreType) -> Self {
        Self { scores, kept: BTreeMap::new(), more: Counts::default() }
    }

    /// Notes a player if its scores differ.
    pub(super) fn check(&mut self, player: &str, pair: Pair) {
        if is_equal(self.scores, pair) {
            return;
        }
        if self.kept.len() < KEPT_MAX || self.kept.contains_key(player) {
            self.kept.insert(player.to_owned(), pair);
        } else {
            self.more.note(&pair);
        }
    }

    /// Whether all of them are kept.
    pub(super) fn is_whole(&self) -> bool {
        self.more == Counts::default()
    }

    pub(super) fn counts(&self) -> Counts {
        let mut counts = self.more;
        self.kept.values().for_each(|pair| counts.note(pair));
        counts
    }

    /// The first of them in words.
    pub(super) fn examples(&self, count: usize) -> impl Iterator<Item = String> {
        self.kept.iter().take(count).map(|(player, pair)| {
            let player = shown(player.as_bytes());
            match pair {
                (Some(redis), None) => format!("{player} is only in Redis, with {}", text(*redis)),
                (None, Some(tally)) => format!("{player} is only in tally, with {}", text(*tally)),
                (Some(redis), Some(tally)) => {
                    format!("{player} has {} in Redis and {} in tally", text(*redis), text(*tally))
                }
                (None, None) => format!("{player} is gone"),
            }
        })
    }
}

/// Whether both sides have a player with one score, or neither has it.
fn is_equal(scores: ScoreType, pair: Pair) -> bool {
    match pair {
        (Some(redis), Some(tally)) => {
            let (redis, tally) = (ordered(scores, redis), ordered(scores, tally));
            redis.is_ok() && redis == tally
        }
        (redis, tally) => redis.is_none() && tally.is_none(),
    }
}

fn text(score: ScoreInput) -> String {
    match score {
        ScoreInput::Int(int) => int.to_string(),
        ScoreInput::Float(float) => float.to_string(),
    }
}

/// A player with its score on one side.
pub(super) type Entry = (String, ScoreInput);

/// The ranks, from 1, at which the sides have different players. A leaderboard that does not order equal scores as Redis does may have
/// another player of the same score there.
pub(super) fn other_ranks(
    scores: ScoreType,
    redis: &[Entry],
    tally: &[Entry],
    ties_like_redis: bool,
) -> Vec<usize> {
    let is_other = |redis: &Entry, tally: &Entry| {
        redis.0 != tally.0 && (ties_like_redis || !is_equal(scores, (Some(redis.1), Some(tally.1))))
    };
    let pairs = (1..).zip(redis.iter().zip(tally));
    pairs.filter(|(_, (redis, tally))| is_other(redis, tally)).map(|(rank, _)| rank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ScoreInput::{Float, Int};

    #[test]
    fn players_differ_by_score_or_are_on_one_side() {
        let mut found = Differences::new(ScoreType::Float64);
        for (player, pair) in [
            ("same", (Some(Int(3)), Some(Float(3.0)))),
            ("gone", (None, None)),
            ("score", (Some(Float(20.5)), Some(Int(21)))),
            ("redis", (Some(Int(1)), None)),
            ("tally", (None, Some(Float(1.5)))),
            // A set may return a member twice.
            ("redis", (Some(Int(2)), None)),
        ] {
            found.check(player, pair);
        }
        let counts = found.counts();
        assert_eq!(counts, Counts { only_redis: 1, only_tally: 1, scores: 1 });
        let examples: Vec<String> = found.examples(5).collect();
        assert_eq!(
            examples,
            [
                "\"redis\" is only in Redis, with 2",
                "\"score\" has 20.5 in Redis and 21 in tally",
                "\"tally\" is only in tally, with 1.5"
            ]
        );
        assert!(found.is_whole());
    }

    #[test]
    fn players_beyond_the_kept_ones_are_counted() {
        let mut found = Differences::new(ScoreType::Int64);
        (0..=KEPT_MAX).for_each(|number| found.check(&number.to_string(), (Some(Int(1)), None)));
        assert_eq!(
            (found.counts().all(), found.kept.len(), found.is_whole()),
            (KEPT_MAX as u64 + 1, KEPT_MAX, false)
        );
    }

    #[test]
    fn a_fraction_is_no_score_of_integers() {
        assert!(!is_equal(ScoreType::Int64, (Some(Float(1.5)), Some(Int(1)))));
        assert!(is_equal(ScoreType::Int64, (Some(Int(1)), Some(Int(1)))));
    }

    #[test]
    fn ranks_are_compared_by_player_and_ties_by_their_rule() {
        let first = |players: &[(&str, i64)]| -> Vec<Entry> {
            players.iter().map(|(player, score)| ((*player).to_owned(), Int(*score))).collect()
        };
        let redis = first(&[("ann", 9), ("cy", 5), ("bob", 5), ("dan", 1)]);
        let ranks = |tally: &[(&str, i64)], like| other_ranks(ScoreType::Int64, &redis, &first(tally), like);
        assert_eq!(ranks(&[("ann", 9), ("cy", 5), ("bob", 5), ("dan", 1)], true), [0; 0]);
        assert_eq!(ranks(&[("ann", 9), ("bob", 5), ("cy", 5), ("dan", 1)], true), [2, 3]);
        assert_eq!(ranks(&[("ann", 9), ("bob", 5), ("cy", 5), ("dan", 1)], false), [0; 0]);
        assert_eq!(ranks(&[("dan", 10), ("ann", 9), ("cy", 5), ("bob", 5)], false), [1, 2, 4]);
        assert_eq!(ranks(&[("ann", 9)], true), [0; 0]);
    }
}
