//! The shipped sample: men's full international football, 1872 to 2026, and its conversion to
//! scores.
//!
//! Source: `martj42/international_results`, CC0 1.0.

use crate::csv_scores::{Columns, Filter, ScoreSource};
use tally_rules::score::ScoreInput;
use tally_rules::{Micros, PlayerId};
use tally_wire::time;

/// One row per goal.
pub(crate) const GOALSCORERS: &[u8] = include_bytes!("../sample/goalscorers.csv");
/// One row per match.
pub(crate) const RESULTS: &[u8] = include_bytes!("../sample/results.csv");

/// Goals by scorer: own goals do not count, and rows without a scorer are rejects.
pub(crate) fn goal_columns() -> Columns {
    Columns {
        player: "scorer".into(),
        score: ScoreSource::Constant(ScoreInput::Int(1)),
        at: Some("date".into()),
        filters: Filter::parse("own_goal=FALSE").into_iter().collect(),
        missing: vec!["NA".into()],
    }
}

/// Three points for a win, one for a draw.
pub(crate) struct Match {
    /// Home and away with their points.
    pub(crate) teams: [(PlayerId, i64); 2],
    /// The day.
    pub(crate) at: Micros,
}

/// Reads a row of the table of matches; `None` if it was not played or is invalid.
pub(crate) fn read_match(record: &csv::StringRecord) -> Option<Match> {
    let goals = |at: usize| record.get(at)?.parse::<u32>().ok();
    let (home, away) = (PlayerId::new(record.get(1)?).ok()?, PlayerId::new(record.get(2)?).ok()?);
    let (to_home, to_away) = match goals(3)?.cmp(&goals(4)?) {
        std::cmp::Ordering::Greater => (3, 0),
        std::cmp::Ordering::Less => (0, 3),
        std::cmp::Ordering::Equal => (1, 1),
    };
    Some(Match { teams: [(home, to_home), (away, to_away)], at: time::parse_or_date(record.get(0)?)? })
}

/// Whether a row of the table of matches is of this tournament in this year.
pub(crate) fn is_of(record: &csv::StringRecord, (tournament, year): (&str, &str)) -> bool {
    record.get(5) == Some(tournament) && record.get(0).is_some_and(|day| day.starts_with(year))
}
