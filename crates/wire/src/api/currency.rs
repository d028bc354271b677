//! The default currency of fees and prizes: a body may leave it out, as a transfer may.
//!
//! It is written into the body before that is read, so that a wrong body has the same errors with and without it.

use serde_json::Value;
use tally_rules::ledger::Currency;

/// Writes the default currency where an entry fee or a prize of a contest, a series or a leaderboard has none.
pub fn fill(body: &mut Value, home: Currency) {
    let Some(object) = body.as_object_mut() else { return };
    for (name, value) in object {
        match name.as_str() {
            "entry_fee" => fill_one(value, home),
            "prizes" => value.as_array_mut().into_iter().flatten().for_each(|prize| fill_one(prize, home)),
            "periods" => value.as_array_mut().into_iter().flatten().for_each(|period| fill(period, home)),
            "template" | "leaderboard" => fill(value, home),
            _ => {}
        }
    }
}

fn fill_one(money: &mut Value, home: Currency) {
    if let Some(object) = money.as_object_mut() {
        object.entry("currency").or_insert_with(|| home.as_str().into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_has_no_currency_gets_the_default_one() {
        let home = Currency::parse("KRW").unwrap();
        let prizes = |more: Value| json!([{"from": 1, "currency": "USD"}, more, 7]);
        let (without, with) = (json!({"from": 2}), json!({"from": 2, "currency": "KRW"}));
        let contest = |prize: Value, fee: Value| json!({"title": "T", "entry_fee": fee, "prizes": prizes(prize.clone()), "leaderboard": {"periods": [{"prizes": [prize]}]}});
        let mut body = contest(without.clone(), json!({"amount": 1}));
        fill(&mut body, home);
        let wanted = contest(with, json!({"amount": 1, "currency": "KRW"}));
        assert_eq!(body, wanted);
        let mut series = json!({"template": contest(without, json!({"amount": 1}))});
        fill(&mut series, home);
        assert_eq!(series, json!({"template": wanted}));
        for mut other in [json!(null), json!([]), json!({"entry_fee": null, "prizes": 1, "periods": [1]})] {
            let before = other.clone();
            fill(&mut other, home);
            assert_eq!(other, before);
        }
    }
}
