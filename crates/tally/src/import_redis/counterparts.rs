//! Which members of a sorted set have no counterpart on a leaderboard, and why: counts and the first examples.

use crate::sorted_sets::rules::{may_have_lost_digits, refusal, shown};
use std::collections::BTreeMap;
use tally_rules::definition::ScoreType;

/// Examples of each reason.
const EXAMPLES_MAX: usize = 3;

/// The counts of a set.
pub(super) struct Counterparts {
    scores: ScoreType,
    /// Members without a counterpart by reason, and examples.
    missing: BTreeMap<String, (u64, Vec<String>)>,
    /// Scores that are greater than doubles count exactly.
    inexact: u64,
}

impl Counterparts {
    /// Of a leaderboard with such scores.
    pub(super) fn new(scores: ScoreType) -> Self {
        Self { scores, missing: BTreeMap::new(), inexact: 0 }
    }

    pub(super) fn add(&mut self, member: &[u8], score: f64) {
        self.inexact += u64::from(may_have_lost_digits(score));
        if let Some(why) = refusal(self.scores, member, score) {
            let (count, examples) = self.missing.entry(why).or_default();
            *count += 1;
            if examples.len() < EXAMPLES_MAX {
                examples.push(format!("{} with {score}", shown(member)));
            }
        }
    }

    /// How many members have no counterpart.
    pub(super) fn missing(&self) -> u64 {
        self.missing.values().map(|(count, _)| count).sum()
    }

    /// What is to be said of the set.
    pub(super) fn lines(&self) -> Vec<String> {
        let missing = self.missing.iter().map(|(why, (count, examples))| {
            format!("{count} without a counterpart: {why}, such as {}", examples.join(", "))
        });
        let inexact = (self.inexact > 0).then(|| {
            format!("{} beyond 2^53: Redis may have lost the last digits of these scores", self.inexact)
        });
        missing.chain(inexact).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_counted_with_examples() {
        let mut counts = Counterparts::new(ScoreType::Int64);
        for (member, score) in [("a", 1.0), ("b", 1.5), ("c", 2.5), ("d", 3.5), ("e", 4.5), ("f", 1e17)] {
            counts.add(member.as_bytes(), score);
        }
        counts.add(b"\xff", 1.0);
        assert_eq!(counts.missing(), 5);
        let lines = counts.lines();
        assert_eq!(lines[0], "1 without a counterpart: the player is not UTF-8, such as \"\\xff\" with 1");
        assert!(lines[1].starts_with("4 without a counterpart: the score must be an integer"), "{lines:?}");
        assert!(lines[1].ends_with("such as \"b\" with 1.5, \"c\" with 2.5, \"d\" with 3.5"), "{lines:?}");
        assert!(lines[2].starts_with("1 beyond 2^53: "), "{lines:?}");
        assert_eq!((lines.len(), Counterparts::new(ScoreType::Float64).lines().len()), (3, 0));
    }
}
