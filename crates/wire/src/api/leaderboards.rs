//! Leaderboards as JSON.

use crate::api::contests::{finish, read_prizes, write_prizes};
use crate::fields::{FieldError, Fields, boolean};
use crate::time;
use serde_json::{Map, Value, json};
use tally_rules::contest::PrizeTies;
use tally_rules::definition::{BoardSpec, Definition, Order, Ranking, ScoreType, Subscore, Ties, Update};
use tally_rules::period::{KEEP_DEFAULT, PeriodPrizes, PeriodRule};
use tally_rules::{BoardId, Micros};

/// The most periods that a board may have.
const PERIODS_MAX: usize = 16;

/// Reads the body of `PUT /v1/leaderboards/{board}`.
pub fn read_definition(body: Value) -> Result<BoardSpec, Vec<FieldError>> {
    read_definition_at("", body)
}

/// Reads a definition inside of a body, at this pointer.
pub(crate) fn read_definition_at(pointer: &str, body: Value) -> Result<BoardSpec, Vec<FieldError>> {
    let mut fields = Fields::new(pointer, body)?;
    let mut period_errors = Vec::new();
    let spec = BoardSpec {
        order: fields.optional("order", |value| choice(value, Order::parse, Order::choices)),
        update: fields.optional("update", |value| choice(value, Update::parse, Update::choices)),
        ranking: fields.optional("ranking", |value| choice(value, Ranking::parse, Ranking::choices)),
        ties: fields.optional("ties", |value| choice(value, Ties::parse, Ties::choices)),
        score: fields.optional("score", |value| choice(value, ScoreType::parse, ScoreType::choices)),
        subscore: fields.optional("subscore", |value| choice(value, Subscore::parse, Subscore::choices)),
        all_time: fields.optional("all_time", boolean),
        periods: fields.optional("periods", |value| read_periods(pointer, value, &mut period_errors)),
        keeps_history: false,
    };
    let rest = fields.finish().err().unwrap_or_default();
    period_errors.extend(rest);
    if period_errors.is_empty() { Ok(spec) } else { Err(period_errors) }
}

pub(crate) fn choice<T>(
    value: &Value,
    parse: fn(&str) -> Option<T>,
    choices: fn() -> String,
) -> Result<T, String> {
    value.as_str().and_then(parse).ok_or_else(|| format!("must be one of: {}", choices()))
}

fn read_periods(
    pointer: &str,
    value: &Value,
    errors: &mut Vec<FieldError>,
) -> Result<Vec<PeriodRule>, String> {
    let list = value.as_array().filter(|list| list.len() <= PERIODS_MAX);
    let list = list.ok_or_else(|| format!("must be an array of at most {PERIODS_MAX} periods"))?;
    let mut periods = Vec::new();
    for (at, one) in list.iter().enumerate() {
        match read_period(&format!("{pointer}/periods/{at}"), one.clone()) {
            Ok(period) => periods.push(period),
            Err(wrong) => errors.extend(wrong),
        }
    }
    Ok(periods)
}

fn read_period(pointer: &str, value: Value) -> Result<PeriodRule, Vec<FieldError>> {
    let mut fields = Fields::new(pointer, value)?;
    let count = |most: u64| {
        move |value: &Value| {
            let count = value.as_u64().filter(|count| *count <= most);
            count
                .and_then(|count| u32::try_from(count).ok())
                .ok_or(format!("must be an integer from 0 to {most}"))
        }
    };
    let name = fields.required("name", crate::fields::text);
    let schedule = fields.required("schedule", crate::fields::schedule);
    let time_zone = fields.optional("time_zone", crate::fields::text);
    let keep = fields.optional("keep", count(100_000));
    let grace_s = fields.optional("grace_s", count(604_800));
    let (mut inner, of_prizes) = (Vec::new(), format!("{pointer}/prizes"));
    let table = fields.optional("prizes", |value| read_prizes(&of_prizes, value, &mut inner));
    let ties = fields.optional("prize_ties", |value| choice(value, PrizeTies::parse, PrizeTies::choices));
    finish(fields, inner)?;
    let (table, ties) = (table.unwrap_or_default(), ties.unwrap_or(PrizeTies::Split));
    Ok(PeriodRule {
        no: 0,
        name: name.unwrap_or_default(),
        schedule: schedule.unwrap_or_default(),
        time_zone: time_zone.unwrap_or_else(|| "UTC".into()),
        keep: keep.unwrap_or(KEEP_DEFAULT),
        grace_s: grace_s.unwrap_or(0),
        prizes: PeriodPrizes { table, ties, from: None },
    })
}

/// A board in a reply.
pub fn write(board: &BoardId, definition: &Definition, counts: &[(&str, u64)], created_at: Micros) -> Value {
    let counts: Map<String, Value> =
        counts.iter().map(|(part, count)| ((*part).to_owned(), json!(count))).collect();
    let mut answer = json!({"board": board.as_str()});
    let object = answer.as_object_mut().expect("it is one");
    object.extend(write_definition(definition));
    object.insert("counts".into(), counts.into());
    object.insert("created_at".into(), time::format(created_at).into());
    answer
}

/// A definition in a reply.
pub(crate) fn write_definition(definition: &Definition) -> Map<String, Value> {
    let period = |one: &PeriodRule| {
        let mut shown = json!({"name": one.name, "schedule": one.schedule, "time_zone": one.time_zone,
            "keep": one.keep, "grace_s": one.grace_s});
        if !one.prizes.table.is_empty() {
            shown["prizes"] = write_prizes(&one.prizes.table);
            shown["prize_ties"] = json!(one.prizes.ties.as_str());
        }
        shown
    };
    let fields = [
        ("order", json!(definition.order.as_str())),
        ("update", json!(definition.update.as_str())),
        ("ranking", json!(definition.ranking.as_str())),
        ("ties", json!(definition.ties.as_str())),
        ("score", json!(definition.score.as_str())),
        ("subscore", json!(definition.subscore.as_str())),
        ("all_time", json!(definition.all_time)),
        ("periods", definition.periods.iter().map(period).collect()),
    ];
    fields.map(|(name, value)| (name.to_owned(), value)).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_answered_is_a_wish_for_the_same() {
        let definition = Definition { order: Order::Ascending, ties: Ties::Last, ..Definition::default() };
        let board = BoardId::new("goals").unwrap();
        let mut answer = write(&board, &definition, &[("all_time", 3)], Micros(0));
        let object = answer.as_object_mut().unwrap();
        for name in ["board", "counts", "created_at"] {
            assert!(object.remove(name).is_some());
        }
        assert_eq!(read_definition(answer).unwrap().create().unwrap(), definition);
    }

    #[test]
    fn prizes_of_periods_are_read_and_shown() {
        let period =
            |prizes: Value| json!({"periods": [{"name": "w", "schedule": "0 0 * * 1", "prizes": prizes}]});
        let prizes = json!([{"from": 1, "to": 2, "currency": "KRW", "amount": "5"}]);
        let definition = read_definition(period(prizes.clone())).unwrap().create().unwrap();
        let shown = write_definition(&definition);
        assert_eq!(
            (&shown["periods"][0]["prizes"], &shown["periods"][0]["prize_ties"]),
            (&prizes, &json!("split"))
        );
        assert_eq!(read_definition(shown.into()).unwrap().create().unwrap(), definition);
        for (prizes, pointer) in [
            (json!(1), "/periods/0/prizes"),
            (json!([1]), "/periods/0/prizes/0"),
            (json!([{"from": 0, "to": 1, "currency": "KRW", "amount": 1}]), "/periods/0/prizes/0/from"),
        ] {
            let wrong = read_definition(period(prizes)).unwrap_err();
            assert_eq!(wrong.iter().map(|one| one.pointer.as_str()).collect::<Vec<_>>(), [pointer]);
        }
    }

    #[test]
    fn wrong_choices_and_unknown_fields_are_named_together() {
        let errors = read_definition(json!({"order": "up", "all_time": 1, "colour": "red", "periods": [{}]}))
            .unwrap_err();
        let pointers: Vec<_> = errors.iter().map(|error| error.pointer.as_str()).collect();
        assert_eq!(pointers, ["/periods/0/name", "/periods/0/schedule", "/order", "/all_time", "/colour"]);
    }
}
