//! Bodies about money, field by field, as single requests and as rows of a batch.

use super::world::{BAD_IDS, Money, World, money, replaced};
use serde_json::json;
use tally_testkit::Request;

/// Amounts as they are written, and their errors.
const BAD_AMOUNTS: [(&str, u16, &str); 30] = [
    ("null", 400, "invalid_field"),
    ("0", 422, "invalid_amount"),
    ("-0", 422, "invalid_amount"),
    ("-1", 422, "invalid_amount"),
    ("100.0", 422, "invalid_amount"),
    ("0.5", 422, "invalid_amount"),
    ("1e2", 422, "invalid_amount"),
    ("1E2", 422, "invalid_amount"),
    ("1e400", 422, "invalid_amount"),
    ("true", 422, "invalid_amount"),
    ("[]", 422, "invalid_amount"),
    ("[1]", 422, "invalid_amount"),
    ("{}", 422, "invalid_amount"),
    ("\"\"", 422, "invalid_amount"),
    ("\"0\"", 422, "invalid_amount"),
    ("\"01\"", 422, "invalid_amount"),
    ("\"+1\"", 422, "invalid_amount"),
    ("\"-1\"", 422, "invalid_amount"),
    ("\" 1\"", 422, "invalid_amount"),
    ("\"1 \"", 422, "invalid_amount"),
    ("\"1.0\"", 422, "invalid_amount"),
    ("\"1e2\"", 422, "invalid_amount"),
    ("\"x\"", 422, "invalid_amount"),
    ("\"1,000\"", 422, "invalid_amount"),
    ("1000000000000001", 422, "limit_exceeded"),
    ("\"1000000000000001\"", 422, "limit_exceeded"),
    ("\"10000000000000000\"", 422, "limit_exceeded"),
    ("9223372036854775808", 422, "limit_exceeded"),
    ("123456789012345678901234567890", 422, "limit_exceeded"),
    ("\"123456789012345678901234567890\"", 422, "limit_exceeded"),
];

/// The paths that move money, each with its fields for members.
fn operations() -> [(&'static str, Vec<(&'static str, String)>); 4] {
    let Money { ann, bob, .. } = money();
    [
        ("/v1/deposits", vec![("to", ann.clone())]),
        ("/v1/withdrawals", vec![("from", ann.clone())]),
        ("/v1/transfers", vec![("from", ann.clone()), ("to", bob)]),
        ("/v1/holds", vec![("member", ann)]),
    ]
}

/// A body with one field replaced, or left out.
fn body(members: &[(&str, String)], name: &str, value: Option<&str>) -> String {
    let mut fields: Vec<(&str, String)> =
        members.iter().map(|(name, id)| (*name, format!("\"{id}\""))).collect();
    fields.push(("amount", "1".into()));
    format!("{{{}}}", replaced(fields, name, value))
}

/// (field, value, status, code) of the errors of every endpoint that moves money.
fn bad_fields(members: &[(&'static str, String)]) -> Vec<(&'static str, Option<String>, u16, &'static str)> {
    let mut bad = vec![("amount", None, 400, "invalid_field")];
    for (value, status, code) in BAD_AMOUNTS {
        bad.push(("amount", Some(value.to_owned()), status, code));
    }
    for (name, _) in members {
        bad.push((name, None, 400, "invalid_field"));
        for value in ["null", "1", "true", "[]", "{}"] {
            bad.push((name, Some(value.to_owned()), 400, "invalid_field"));
        }
        let code = if *name == "to" { "recipient_not_found" } else { "member_not_found" };
        for value in ["\"\"", "\"x\"", "\"0190f8a0-0000-7000-8000-000000000000\""] {
            bad.push((name, Some(value.to_owned()), 404, code));
        }
    }
    for value in ["null", "1", "\"\"", "\"krw\"", "\"KRW \"", "\"LONGERTHAN8\"", "[]"] {
        bad.push(("currency", Some(value.to_owned()), 400, "invalid_field"));
    }
    bad.push(("currency", Some("\"XAU\"".into()), 422, "currency_mismatch"));
    bad.push(("x", Some("1".into()), 400, "unknown_field"));
    bad.push(("Amount", Some("1".into()), 400, "unknown_field"));
    bad
}

/// Values that are no reference and no reason.
fn bad_texts() -> [String; 5] {
    let (long, long_bytes) = (format!("\"{}\"", "x".repeat(256)), format!("\"{}\"", "ä".repeat(128)));
    ["null".into(), "1".into(), "[]".into(), long, long_bytes]
}

/// Values that are no metadata.
fn bad_metadata() -> Vec<(&'static str, Option<String>, u16, &'static str)> {
    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(2_041));
    let values = ["null".into(), "1".into(), "\"{}\"".into(), "[]".into(), long];
    values.into_iter().map(|value| ("metadata", Some(value), 400, "invalid_field")).collect()
}

fn texts(name: &'static str) -> [(&'static str, Option<String>, u16, &'static str); 5] {
    bad_texts().map(|value| (name, Some(value), 400, "invalid_field"))
}

#[test]
fn fields_of_movements_and_holds() {
    let mut world = World::start();
    for (path, members) in operations() {
        let mut bad = bad_fields(&members);
        bad.extend(texts("reason"));
        bad.extend(bad_metadata());
        if path == "/v1/withdrawals" {
            for value in ["null", "1", "\"\"", "\"false\""] {
                bad.push(("promotional", Some(value.to_owned()), 400, "invalid_field"));
            }
        }
        if path == "/v1/deposits" {
            for value in ["null", "1", "\"\"", "\"now\"", "\"2026-01-01\""] {
                bad.push(("expires_at", Some(value.to_owned()), 400, "invalid_field"));
            }
            let past = "\"2020-01-01T00:00:00Z\"".to_owned();
            bad.push(("expires_at", Some(past), 422, "credit_expiry_in_past"));
        }
        if path == "/v1/transfers" {
            for (name, value) in [("promotional", "true"), ("expires_at", "\"2999-01-01T00:00:00Z\"")] {
                bad.push((name, Some(value.to_owned()), 400, "unknown_field"));
            }
        }
        if path == "/v1/holds" {
            for value in ["null", "1", "\"\"", "\"now\"", "\"2026-01-01\""] {
                bad.push(("expires_at", Some(value.to_owned()), 400, "invalid_field"));
            }
            bad.push(("expires_at", Some("\"2020-01-01T00:00:00Z\"".into()), 422, "hold_expiry_in_past"));
            bad.push(("reference", Some("\"x\"".into()), 400, "unknown_field"));
        } else {
            bad.extend(texts("reference"));
        }
        for (name, value, status, code) in bad {
            let request =
                Request::new("POST", path).body("application/json", body(&members, name, value.as_deref()));
            // A rule about the amount alone names it; the others are about more than a field.
            let named = status == 400 || ["invalid_amount", "limit_exceeded"].contains(&code);
            let pointer = format!("/{name}");
            world.refuse(&request, status, code, named.then_some(&*pointer));
        }
    }
}

#[test]
fn fields_of_a_capture() {
    let mut world = World::start();
    let path = valid_hold();
    let mut refuse = |body: &str, status: u16, code: &str, pointer: Option<&str>| {
        let request = Request::new("POST", &path).body("application/json", body);
        world.refuse(&request, status, code, pointer);
    };
    for (value, status, code) in BAD_AMOUNTS {
        refuse(&format!("{{\"amount\":{value}}}"), status, code, Some("/amount"));
    }
    for value in ["null", "1", "[]"] {
        refuse(&format!("{{\"to\":{value}}}"), 400, "invalid_field", Some("/to"));
    }
    for value in bad_texts() {
        refuse(&format!("{{\"reason\":{value}}}"), 400, "invalid_field", Some("/reason"));
    }
    refuse("{\"to\":\"x\"}", 404, "recipient_not_found", None);
    refuse("{\"amount\":11}", 422, "exceeds_hold", None);
    refuse("{\"x\":1}", 400, "unknown_field", Some("/x"));
    for body in ["[]", "1", "null", "\"x\""] {
        refuse(body, 400, "invalid_field", Some(""));
    }
}

#[test]
fn fields_of_a_void() {
    let mut world = World::start();
    let path = valid_path("/void");
    let mut refuse = |body: &str, code: &str, pointer: &str| {
        let request = Request::new("POST", &path).body("application/json", body);
        world.refuse(&request, 400, code, Some(pointer));
    };
    for value in bad_texts() {
        refuse(&format!("{{\"reason\":{value}}}"), "invalid_field", "/reason");
    }
    for name in ["amount", "to", "x"] {
        refuse(&format!("{{\"{name}\":1}}"), "unknown_field", &format!("/{name}"));
    }
    for body in ["[]", "1", "null", "\"x\""] {
        refuse(body, "invalid_field", "");
    }
}

fn valid_hold() -> String {
    valid_path("/capture")
}

/// The path of the route that ends so, to the hold or the transfer that there is.
fn valid_path(end: &str) -> String {
    let route = tally_testkit::routes::all();
    let found = route.iter().find(|route| route.path.ends_with(end)).expect("there is one");
    super::world::path(found, &[])
}

#[test]
fn fields_of_a_reversal() {
    let mut world = World::start();
    let path = valid_path("/reverse");
    let mut refuse = |body: &str, status: u16, code: &str, pointer: Option<&str>| {
        let request = Request::new("POST", &path).body("application/json", body);
        world.refuse(&request, status, code, pointer);
    };
    for (value, status, code) in BAD_AMOUNTS {
        refuse(&format!("{{\"amount\":{value}}}"), status, code, Some("/amount"));
    }
    for value in bad_texts() {
        refuse(&format!("{{\"reason\":{value}}}"), 400, "invalid_field", Some("/reason"));
    }
    refuse("{\"amount\":101}", 422, "exceeds_reversible", None);
    refuse("{\"to\":\"x\"}", 400, "unknown_field", Some("/to"));
    for body in ["[]", "1", "null", "\"x\""] {
        refuse(body, 400, "invalid_field", Some(""));
    }
}

/// Each bad row between two good ones, which are posted and taken back.
#[test]
fn a_bad_row_of_money_fails_alone() {
    let mut world = World::start();
    let Money { ann, bob, .. } = money();
    let members = [("from", ann.clone()), ("to", bob.clone())];
    let mut rows: Vec<(String, &str)> = Vec::new();
    for (name, value, _, code) in bad_fields(&members)
        .into_iter()
        .chain(texts("reference"))
        .chain(texts("reason"))
        .chain(bad_metadata())
    {
        rows.push((body(&members, name, value.as_deref()), code));
    }
    for value in BAD_IDS {
        rows.push((body(&members, "id", Some(value)), "invalid_field"));
    }
    for value in ["null", "1", "\"true\""] {
        rows.push((body(&members, "linked", Some(value)), "invalid_field"));
    }
    // All in one batch, so that nothing but the good ones leaves a trace.
    let good = |from: &str, to: &str| json!({"from": from, "to": to, "amount": 3}).to_string();
    for (bad, code) in &rows {
        let (first, last) = (good(&ann, &bob), good(&bob, &ann));
        // The last is beyond a row that may tie it.
        let text = format!("{{\"transfers\":[{first},{bad},{{}},{last}]}}");
        let request = Request::new("POST", "/v1/transfers/batch").body("application/json", text);
        let answer = world.client().send(&request).expect(200);
        let results = answer["results"].as_array().expect("results");
        assert_eq!((results.len(), &results[1]["error"]["code"]), (4, &json!(code)), "{bad}: {answer}");
        for at in [0, 3] {
            assert_eq!(results[at]["status"], "posted", "{bad}: {answer}");
        }
    }
    let wallets = world.client().get(&format!("/v1/wallets/{ann}")).expect(200);
    assert_eq!(wallets["items"][0]["balance"], "100");
}

#[test]
fn the_list_of_transfers() {
    let mut world = World::start();
    let Money { ann, bob, .. } = money();
    let row = json!({"from": ann, "to": bob, "amount": 1});
    world.refuse_lists("/v1/transfers/batch", "transfers", &row);
}
