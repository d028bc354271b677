//! Members: bodies field by field, and searches.

use super::world::{World, bare, payment};
use serde_json::{Value, json};
use tally_testkit::Request;
use tally_testkit::routes::all;

#[test]
fn members_are_made_of_what_can_be_kept() {
    let mut world = World::start();
    let long = "x".repeat(257);
    let good = json!({"login_id": "new", "name": "New", "password": "open sesame", "pin": "0042", "phone_number": "010-1234", "player": "np"});
    let wrong: [(&str, Vec<Value>); 6] = [
        ("login_id", vec![json!(null), json!(""), json!(1), json!("a\nb"), json!("x".repeat(129))]),
        ("name", vec![json!(null), json!(""), json!(1), json!("a\tb"), json!(long)]),
        ("password", vec![json!(null), json!(""), json!("1234567"), json!(1), json!(long)]),
        (
            "pin",
            vec![
                json!(null),
                json!(""),
                json!("123"),
                json!("123456789"),
                json!("12a4"),
                json!("１２３４"),
                json!(42),
                json!(-1234),
                json!(1234.5),
                json!(true),
            ],
        ),
        (
            "phone_number",
            vec![json!(null), json!(""), json!("123"), json!("x"), json!("1".repeat(21)), json!(1_012_345)],
        ),
        ("player", vec![json!(null), json!(""), json!("."), json!(".."), json!("x".repeat(129)), json!(1)]),
    ];
    for (field, values) in wrong {
        for value in values {
            let mut body = good.clone();
            body[field] = value;
            let request = Request::new("POST", "/v1/members").json(&body);
            world.refuse(&request, 400, "invalid_field", Some(&format!("/{field}")));
        }
    }
    for field in ["login_id", "name"] {
        let mut body = good.clone();
        body.as_object_mut().expect("an object").remove(field);
        let request = Request::new("POST", "/v1/members").json(&body);
        world.refuse(&request, 400, "invalid_field", Some(&format!("/{field}")));
    }
    let mut body = good;
    body["balance"] = json!("1");
    let request = Request::new("POST", "/v1/members").json(&body);
    world.refuse(&request, 400, "unknown_field", Some("/balance"));
}

#[test]
fn members_are_looked_for_by_one_thing() {
    let mut world = World::start();
    for (query, pointer) in [
        ("", "login_id"),
        ("?login_id=a&player=b", "login_id"),
        ("?login_id=", "login_id"),
        ("?login_id=a%0Ab", "login_id"),
        ("?phone_number=x", "phone_number"),
        ("?phone_number=123", "phone_number"),
        ("?player=", "player"),
        ("?player=.", "player"),
    ] {
        let request = Request::new("GET", format!("/v1/members{query}"));
        world.refuse(&request, 400, "invalid_parameter", Some(pointer));
    }
    for nobody in ["017f22e2-79b0-71ec-8123-456789abcdec", "ann", "0", "-"] {
        let request = Request::new("GET", format!("/v1/members/{nobody}"));
        world.refuse(&request, 404, "member_not_found", None);
    }
}

#[test]
fn members_are_changed_into_what_can_be_kept() {
    let mut world = World::start();
    let route =
        all().into_iter().find(|route| route.method == "PATCH" && route.path.starts_with("/v1/members"));
    let route = route.expect("there is one");
    for (field, value) in [
        ("name", json!(null)),
        ("name", json!("")),
        ("player", json!(null)),
        ("player", json!("..")),
        ("phone_number", json!("x")),
        ("phone_number", json!(1)),
        ("password", json!("")),
        ("password", json!("1234567")),
        ("pin", json!("123")),
        ("pin", json!(42)),
    ] {
        let request = bare(&route).json(&json!({field: value}));
        world.refuse(&request, 400, "invalid_field", Some(&format!("/{field}")));
    }
    for field in ["login_id", "id", "balance", "closed_at"] {
        let request = bare(&route).json(&json!({field: "x"}));
        world.refuse(&request, 400, "unknown_field", Some(&format!("/{field}")));
    }
    let close = all().into_iter().find(|route| route.path.ends_with("/close")).expect("there is one");
    world.refuse(&bare(&close).json(&json!({"force": 1})), 400, "invalid_field", Some("/force"));
    world.refuse(&bare(&close).json(&json!({"really": true})), 400, "unknown_field", Some("/really"));
    let erase = all().into_iter().find(|route| route.path.ends_with("/erase")).expect("there is one");
    world.refuse(&bare(&erase).json(&json!({"force": true})), 400, "unknown_field", Some("/force"));
    world.refuse(&bare(&erase).json(&json!({"reason": 1})), 400, "invalid_field", Some("/reason"));
}

#[test]
fn signing_in_and_paying_take_what_they_say() {
    let mut world = World::start();
    for body in [
        json!({"loginId": "ann"}),
        json!({"loginId": "ann", "password": null}),
        json!({"loginId": "ann", "password": 1}),
        json!({"loginId": "ann", "password": "x".repeat(1_025)}),
    ] {
        let request = Request::new("POST", "/auth/signin").json(&body);
        world.refuse(&request, 400, "invalid_field", Some("/password"));
    }
    let both = json!({"loginId": "ann", "password": "x", "pin": "1234"});
    world.refuse(&Request::new("POST", "/auth/signin").json(&both), 400, "unknown_field", Some("/pin"));
    let route = all().into_iter().find(|route| route.path == "/transfer/phone-num").expect("there is one");
    let mut keyless = bare(&route).json(&payment());
    keyless.headers.retain(|(name, _)| name != "Idempotency-Key");
    world.refuse(&keyless, 400, "idempotency_key_required", Some("Idempotency-Key"));
    let wrong = [
        ("phoneNumber", json!(null), 400, "invalid_field"),
        ("phoneNumber", json!("x"), 400, "invalid_field"),
        ("phoneNumber", json!(1_012_345_678), 400, "invalid_field"),
        ("password", json!(null), 400, "invalid_field"),
        ("password", json!("123"), 400, "invalid_field"),
        ("password", json!("abcd"), 400, "invalid_field"),
        ("password", json!(-1), 400, "invalid_field"),
        ("password", json!(123_456_789), 400, "invalid_field"),
        ("amount", json!(null), 400, "invalid_field"),
        ("amount", json!(0), 422, "invalid_amount"),
        ("amount", json!(-5), 422, "invalid_amount"),
        ("amount", json!(1.5), 422, "invalid_amount"),
        ("amount", json!("1e2"), 422, "invalid_amount"),
        ("amount", json!("x"), 422, "invalid_amount"),
        ("amount", json!(true), 422, "invalid_amount"),
        ("amount", json!(1_000_000_000_000_001_i64), 422, "limit_exceeded"),
        ("amount", json!("12345678901234567"), 422, "limit_exceeded"),
    ];
    for (field, value, status, code) in wrong {
        let mut body = payment();
        body[field] = value;
        let pointer = format!("/{field}");
        let pointer = (status == 400).then_some(pointer.as_str());
        world.refuse(&bare(&route).json(&body), status, code, pointer);
    }
}
