//! Chunks of members and of transfers, field by field.

use super::world::{World, import, ledger_head, member_row, transfer_row};
use serde_json::{Value, json};
use tally_testkit::Request;

fn with(mut value: Value, name: &str, replaced: Option<Value>) -> Value {
    let object = value.as_object_mut().expect("it is an object");
    object.remove(name);
    object.extend(replaced.map(|replaced| (name.to_owned(), replaced)));
    value
}

fn chunk(what: &str, body: String) -> Request {
    Request::new("POST", format!("/v1/imports/{what}")).body("application/x-ndjson", body)
}

/// Refuses a chunk with each of these values of a field, and without the field if it is `required`.
fn fields(world: &mut World, what: &str, row: &Value, list: &[(&str, bool, Vec<Value>)]) {
    let mut refuse = |body: String, code: &str, pointer: &str| {
        world.refuse(&chunk(what, body), 400, code, Some(pointer));
    };
    for (name, required, values) in list {
        let mut values: Vec<Option<Value>> = values.iter().cloned().map(Some).collect();
        values.extend(required.then_some(None));
        for value in values {
            let body = import(&ledger_head(), &[with(row.clone(), name, value)]);
            refuse(body, "invalid_field", &format!("/1/{name}"));
        }
    }
    refuse(import(&ledger_head(), &[with(row.clone(), "x", Some(json!(1)))]), "unknown_field", "/1/x");
    refuse(import(&ledger_head(), &[row.clone(), row.clone()]), "invalid_field", "/2/line");
    refuse(String::new(), "invalid_field", "/0");
    for name in ["digest", "lines_before", "lines_after"] {
        let body = import(&with(ledger_head(), name, None), std::slice::from_ref(row));
        refuse(body, "invalid_field", &format!("/0/{name}"));
    }
    let before = with(ledger_head(), "lines_before", Some(json!(3)));
    refuse(import(&before, std::slice::from_ref(row)), "invalid_field", "/0/lines_after");
    refuse(import(&with(ledger_head(), "board", Some(json!("b"))), &[]), "unknown_field", "/0/board");
    let far = with(ledger_head(), "lines_after", Some(json!(10_000)));
    let many: Vec<Value> = (1..=5_001).map(|line| with(row.clone(), "line", Some(json!(line)))).collect();
    refuse(import(&far, &many), "invalid_field", "");
    let gap = with(with(ledger_head(), "lines_before", Some(json!(5))), "lines_after", Some(json!(9)));
    world.refuse(&chunk(what, import(&gap, &[])), 409, "import_out_of_order", None);
}

#[test]
fn of_members() {
    let text = || vec![json!(null), json!(1), json!([])];
    let amounts = || {
        vec![
            json!(null),
            json!(0),
            json!(-1),
            json!(1.5),
            json!("0"),
            json!("1e2"),
            json!("10000000000000000"),
        ]
    };
    let list = [
        ("line", true, vec![json!(null), json!(-1), json!("2"), json!(0), json!(3)]),
        ("login_id", true, vec![json!(null), json!(1), json!(""), json!("x".repeat(129)), json!("a\nb")]),
        ("password_hash", false, text()),
        ("pin", false, text()),
        ("phone_number", false, text()),
        ("name", false, text()),
        ("player", false, vec![json!(null), json!(""), json!(".")]),
        ("balance", false, amounts()),
    ];
    fields(&mut World::start(), "members", &member_row(), &list);
}

#[test]
fn of_movements() {
    let logins = || vec![json!(null), json!(1), json!("")];
    let list = [
        ("line", true, vec![json!(null), json!(0), json!(3)]),
        ("from", true, logins()),
        ("to", true, logins()),
        ("amount", true, vec![json!(null), json!(0), json!(-1), json!("01"), json!(1.5)]),
    ];
    fields(&mut World::start(), "transfers", &transfer_row(), &list);
}
