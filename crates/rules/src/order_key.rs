//! The total order of a board's records, which decides ties.
//!
//! The order is (score, subscore, tie, player). [`normal`] turns score and subscore into integers of which the smaller is
//! better, for every direction of a board. So one comparison serves every board. [`compare`] is the whole order in its
//! plainest form: a ranking merged with changes uses it, and tests compare faster structures with it.

use crate::definition::{Definition, Order, Subscore, Ties};
use crate::record::Record;
use std::cmp::Ordering;

/// Score and subscore of a record as integers of which the smaller is better. The inverse is [`from_normal`].
pub fn normal(definition: &Definition, record: &Record) -> [i64; 2] {
    [directed(definition.order, record.score), sub(definition.subscore, record.subscore)]
}

/// Score and subscore from their normal form.
pub fn from_normal(definition: &Definition, normal: [i64; 2]) -> (i64, i64) {
    (directed(definition.order, normal[0]), sub(definition.subscore, normal[1]))
}

/// A score alone in normal form.
pub fn directed(order: Order, score: i64) -> i64 {
    match order {
        // The complement reverses the order of all of i64 without overflow; negation would not.
        Order::Descending => !score,
        Order::Ascending => score,
    }
}

fn sub(subscore: Subscore, value: i64) -> i64 {
    match subscore {
        Subscore::None => 0,
        Subscore::Descending => !value,
        Subscore::Ascending => value,
    }
}

/// The board's order of two records with their players' ids; `Less` is nearer to the top.
pub fn compare(definition: &Definition, left: (&Record, &[u8]), right: (&Record, &[u8])) -> Ordering {
    normal(definition, left.0).cmp(&normal(definition, right.0)).then_with(|| match definition.ties {
        Ties::First => left.0.at.cmp(&right.0.at).then_with(|| left.1.cmp(right.1)),
        Ties::Last => right.0.at.cmp(&left.0.at).then_with(|| left.1.cmp(right.1)),
        Ties::Player => left.1.cmp(right.1),
        Ties::PlayerReversed => right.1.cmp(left.1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instant::Micros;
    use crate::record;
    use proptest::prelude::*;

    fn at(score: i64, at: i64) -> Record {
        Record { score, subscore: 0, at: Micros(at) }
    }

    #[test]
    fn the_four_tie_rules() {
        let early = (at(5, 1), b"zoe".as_slice());
        let late = (at(5, 2), b"amy".as_slice());
        for (ties, first) in
            [(Ties::First, "zoe"), (Ties::Last, "amy"), (Ties::Player, "amy"), (Ties::PlayerReversed, "zoe")]
        {
            let definition = Definition { ties, ..Definition::default() };
            let ahead = compare(&definition, (&early.0, early.1), (&late.0, late.1)) == Ordering::Less;
            assert_eq!(if ahead { "zoe" } else { "amy" }, first, "{ties}");
        }
    }

    #[test]
    fn equal_instants_are_ordered_by_player_in_both_directions_of_time() {
        for ties in [Ties::First, Ties::Last] {
            let definition = Definition { ties, ..Definition::default() };
            assert_eq!(compare(&definition, (&at(5, 1), b"a"), (&at(5, 1), b"b")), Ordering::Less);
        }
    }

    fn any_definition() -> impl Strategy<Value = Definition> {
        let order = proptest::sample::select(Order::ALL);
        let subscore = proptest::sample::select(Subscore::ALL);
        (order, subscore).prop_map(|(order, subscore)| Definition {
            order,
            subscore,
            ..Definition::default()
        })
    }

    proptest! {
        #[test]
        fn normal_form_orders_as_the_rule_does(
            definition in any_definition(), a in any::<(i64, i64)>(), b in any::<(i64, i64)>()
        ) {
            let left = Record { score: a.0, subscore: a.1, at: Micros(0) };
            let right = Record { score: b.0, subscore: b.1, at: Micros(0) };
            let by_rule = record::better(&definition, &left, &right);
            prop_assert_eq!(by_rule, normal(&definition, &left).cmp(&normal(&definition, &right)));
            let back = from_normal(&definition, normal(&definition, &left));
            let subscore = if definition.has_subscore() { left.subscore } else { 0 };
            prop_assert_eq!(back, (left.score, subscore));
        }
    }
}
