//! A player's record on one board, and what a submit makes of it: best, latest or sum.

use crate::definition::{Definition, Order, Subscore, Update};
use crate::instant::Micros;
use crate::rejection::Rejection;
use crate::score;
use std::cmp::Ordering;

/// The stored score of a player. Scores are ordered integers, see [`crate::score`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// The score.
    pub score: i64,
    /// The subscore; 0 if the board has none.
    pub subscore: i64,
    /// When the score or subscore last changed, by the submit's instant.
    pub at: Micros,
}

/// A record after a submit, and whether it differs from the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Updated {
    /// The record now.
    pub record: Record,
    /// Whether the submit changed it.
    pub changed: bool,
}

/// Applies one submit to the present record of its player.
pub fn apply(definition: &Definition, present: Option<Record>, submit: Record) -> Result<Updated, Rejection> {
    let Some(old) = present else {
        return Ok(Updated { record: submit, changed: true });
    };
    let record = match definition.update {
        Update::Best => match better(definition, &submit, &old) {
            Ordering::Less => submit,
            Ordering::Equal | Ordering::Greater => old,
        },
        Update::Latest if submit.at < old.at => old,
        Update::Latest if (submit.score, submit.subscore) == (old.score, old.subscore) => old,
        Update::Latest => submit,
        Update::Sum => {
            let score = score::sum(definition.score, old.score, submit.score)?;
            let at = if score == old.score { old.at } else { old.at.max(submit.at) };
            Record { score, subscore: 0, at }
        }
    };
    Ok(Updated { record, changed: record != old })
}

/// `Less` if the first record is better by score, then subscore. Ties are not compared.
pub fn better(definition: &Definition, left: &Record, right: &Record) -> Ordering {
    let by_score = match definition.order {
        Order::Descending => right.score.cmp(&left.score),
        Order::Ascending => left.score.cmp(&right.score),
    };
    by_score.then_with(|| match definition.subscore {
        Subscore::None => Ordering::Equal,
        Subscore::Descending => right.subscore.cmp(&left.subscore),
        Subscore::Ascending => left.subscore.cmp(&right.subscore),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::ScoreType;

    fn record(score: i64, subscore: i64, at: i64) -> Record {
        Record { score, subscore, at: Micros(at) }
    }

    fn board(update: Update) -> Definition {
        Definition { update, ..Definition::default() }
    }

    /// (present, submit) -> record after, changed
    type Row = ((i64, i64, i64), (i64, i64, i64), (i64, i64, i64), bool);

    fn check(definition: &Definition, rows: &[Row]) {
        for (old, new, after, changed) in rows {
            let got =
                apply(definition, Some(record(old.0, old.1, old.2)), record(new.0, new.1, new.2)).unwrap();
            assert_eq!(got, Updated { record: record(after.0, after.1, after.2), changed: *changed });
        }
    }

    #[test]
    fn best_keeps_the_better_and_its_instant() {
        let rows: &[Row] = &[
            ((10, 0, 1), (11, 0, 2), (11, 0, 2), true),
            ((10, 0, 1), (9, 0, 2), (10, 0, 1), false),
            ((10, 0, 1), (10, 0, 2), (10, 0, 1), false),
        ];
        check(&board(Update::Best), rows);
    }

    #[test]
    fn best_asks_the_subscore_in_its_own_direction() {
        let definition =
            Definition { subscore: Subscore::Ascending, order: Order::Descending, ..Definition::default() };
        let rows: &[Row] = &[
            ((10, 5, 1), (10, 4, 2), (10, 4, 2), true),
            ((10, 5, 1), (10, 6, 2), (10, 5, 1), false),
            ((10, 5, 1), (11, 9, 2), (11, 9, 2), true),
        ];
        check(&definition, rows);
    }

    #[test]
    fn latest_never_goes_back_in_time() {
        let rows: &[Row] = &[
            ((10, 0, 5), (3, 0, 5), (3, 0, 5), true),
            ((10, 0, 5), (3, 0, 4), (10, 0, 5), false),
            ((10, 0, 5), (10, 0, 9), (10, 0, 5), false),
        ];
        check(&board(Update::Latest), rows);
    }

    #[test]
    fn sum_adds_and_its_instant_never_moves_back() {
        let rows: &[Row] = &[
            ((10, 0, 5), (3, 0, 4), (13, 0, 5), true),
            ((10, 0, 5), (-3, 0, 6), (7, 0, 6), true),
            ((10, 0, 5), (0, 0, 9), (10, 0, 5), false),
        ];
        check(&board(Update::Sum), rows);
    }

    #[test]
    fn a_sum_past_the_range_is_refused() {
        let refused = apply(&board(Update::Sum), Some(record(i64::MAX, 0, 1)), record(1, 0, 2));
        assert_eq!(refused, Err(Rejection::ScoreOverflow(Some(i128::from(i64::MAX) + 1))));
        let floats = Definition { score: ScoreType::Float64, ..board(Update::Sum) };
        let (up, down) =
            (score::from_f64(f64::INFINITY).unwrap(), score::from_f64(f64::NEG_INFINITY).unwrap());
        let refused = apply(&floats, Some(record(up, 0, 1)), record(down, 0, 2));
        assert_eq!(refused, Err(Rejection::ScoreOverflow(None)));
    }

    #[test]
    fn the_first_submit_is_a_change_even_of_zero() {
        for update in Update::ALL {
            let got = apply(&board(*update), None, record(0, 0, 7)).unwrap();
            assert_eq!(got, Updated { record: record(0, 0, 7), changed: true });
        }
    }
}
