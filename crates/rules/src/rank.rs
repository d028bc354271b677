//! Ranks and percentiles from counts.

use crate::definition::Ranking;

/// What a ranking index counts for one record without a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankCounts {
    /// Records before it.
    pub before: u64,
    /// Records with a strictly better score (and subscore).
    pub better: u64,
    /// Distinct better scores.
    pub distinct_better: u64,
}

/// The rank, from 1, for the board's kind of ranking.
pub fn rank(ranking: Ranking, counts: RankCounts) -> u64 {
    1 + match ranking {
        Ranking::Ordinal => counts.before,
        Ranking::Competition => counts.better,
        Ranking::Dense => counts.distinct_better,
    }
}

/// A percentage with two decimals, as hundredths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percentile(pub u32);

/// 100 × (total − players with a better rank) / total, rounded half up; the best player has 100.
///
/// Players with a better rank are those before it on an ordinal board, and those with a better score on others.
pub fn percentile(ranking: Ranking, counts: RankCounts, total: u64) -> Percentile {
    assert!(total > 0, "a ranked player is on the board");
    let ahead = match ranking {
        Ranking::Ordinal => counts.before,
        Ranking::Competition | Ranking::Dense => counts.better,
    };
    assert!(ahead < total, "a player is not ahead of itself");
    let (part, whole) = (u128::from(total - ahead) * 10_000, u128::from(total));
    let hundredths = (2 * part + whole) / (2 * whole);
    Percentile(u32::try_from(hundredths).expect("at most 10,000"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The counts of each record of a sorted list, computed in the plain way.
    fn counts(scores: &[i64]) -> Vec<RankCounts> {
        let one = |at: usize| {
            let ahead: Vec<i64> = scores[..at].iter().copied().filter(|score| *score != scores[at]).collect();
            let mut distinct = ahead.clone();
            distinct.dedup();
            RankCounts {
                before: at as u64,
                better: ahead.len() as u64,
                distinct_better: distinct.len() as u64,
            }
        };
        (0..scores.len()).map(one).collect()
    }

    #[test]
    fn the_three_kinds_of_rank() {
        let counts = counts(&[90, 80, 80, 70]);
        for (ranking, expected) in [
            (Ranking::Ordinal, [1, 2, 3, 4]),
            (Ranking::Competition, [1, 2, 2, 4]),
            (Ranking::Dense, [1, 2, 2, 3]),
        ] {
            let ranks: Vec<u64> = counts.iter().map(|one| rank(ranking, *one)).collect();
            assert_eq!(ranks, expected, "{ranking}");
        }
    }

    #[test]
    fn percentiles_have_two_decimals_and_the_best_has_100() {
        let at = |before, total| {
            percentile(Ranking::Ordinal, RankCounts { before, better: 0, distinct_better: 0 }, total).0
        };
        assert_eq!([at(0, 3), at(1, 3), at(2, 3)], [10_000, 6_667, 3_333]);
        assert_eq!(at(0, 1), 10_000);
        assert_eq!(at(u64::MAX - 2, u64::MAX), 0);
    }

    #[test]
    fn players_with_one_rank_have_one_percentile() {
        let counts = counts(&[90, 80, 80, 70]);
        let of = |ranking| counts.iter().map(|one| percentile(ranking, *one, 4).0).collect::<Vec<_>>();
        assert_eq!(of(Ranking::Competition), [10_000, 7_500, 7_500, 2_500]);
        assert_eq!(of(Ranking::Dense), [10_000, 7_500, 7_500, 2_500]);
        assert_eq!(of(Ranking::Ordinal), [10_000, 7_500, 5_000, 2_500]);
    }
}
