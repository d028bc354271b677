//! Bodies about players, field by field: profiles, and players among each other.

use super::world::World;
use serde_json::{Value, json};
use tally_testkit::Request;

fn put(body: &Value) -> Request {
    Request::new("PUT", "/v1/players/new").json(body)
}

#[test]
fn fields_of_a_profile() {
    let mut world = World::start();
    let long_address = format!("https://e.x/{}", "a".repeat(2_037));
    let large = json!({"k": "x".repeat(8 * 1_024 - 7)});
    for (name, values) in [
        (
            "name",
            vec![
                json!(null),
                json!(1),
                json!(true),
                json!([]),
                json!({}),
                json!(""),
                json!("a\nb"),
                json!("\u{0}"),
                json!("\u{7f}"),
                json!("\u{85}"),
                json!("n".repeat(257)),
                json!("ä".repeat(129)),
            ],
        ),
        (
            "avatar_url",
            vec![
                json!(null),
                json!(1),
                json!([]),
                json!(""),
                json!("x"),
                json!("javascript:alert(1)"),
                json!(" javascript:alert(1)"),
                json!("JavaScript:alert(1)"),
                json!("data:text/html,x"),
                json!("ftp://e.x/a"),
                json!("//e.x/a"),
                json!("https://"),
                json!("https://e.x/a b"),
                json!("https://e.x/\"onerror=x"),
                json!("https://e.x/'x"),
                json!("https://e.x/<x>"),
                json!("https://e.x/\n"),
                json!(long_address),
            ],
        ),
        ("metadata", vec![json!(null), json!(1), json!("x"), json!([]), json!([{}]), json!(true), large]),
    ] {
        for value in values {
            world.refuse(&put(&json!({name: value})), 400, "invalid_field", Some(&format!("/{name}")));
        }
    }
    for name in ["player", "x", "Name", "avatarUrl", "banned"] {
        world.refuse(&put(&json!({"name": "n", name: "x"})), 400, "unknown_field", Some(&format!("/{name}")));
    }
    let all = put(&json!({"name": "", "avatar_url": "x", "metadata": [], "x": 1}));
    let answer = world.refuse(&all, 400, "invalid_field", Some("/metadata"));
    let errors = answer.json()["errors"].as_array().cloned().unwrap_or_default();
    let mut pointers: Vec<&str> = errors.iter().filter_map(|error| error["pointer"].as_str()).collect();
    pointers.sort_unstable();
    assert_eq!(pointers, ["/avatar_url", "/metadata", "/name", "/x"], "all are named at once");
}

/// Existing data stays as it is when its replacement is refused.
#[test]
fn a_refused_profile_replaces_nothing() {
    let mut world = World::start();
    for body in [json!({"name": ""}), json!({"x": 1}), json!({"name": "R", "avatar_url": "javascript:x"})] {
        let request = Request::new("PUT", "/v1/players/q").json(&body);
        world.client().send(&request);
        world.unchanged(&request);
    }
}

#[test]
fn fields_of_among() {
    let mut world = World::start();
    let ask = |body: &Value| Request::new("POST", "/v1/leaderboards/b/among").json(body);
    for players in [json!(null), json!(1), json!("p"), json!({}), json!([]), json!(vec!["p"; 1_001])] {
        world.refuse(&ask(&json!({"players": players})), 400, "invalid_field", Some("/players"));
    }
    world.refuse(&ask(&json!({})), 400, "invalid_field", Some("/players"));
    let (long, long_bytes) = ("x".repeat(129), "ä".repeat(65));
    for one in [
        json!(null),
        json!(1),
        json!(true),
        json!([]),
        json!({"player": "p"}),
        json!(""),
        json!("."),
        json!(".."),
        json!(long),
        json!(long_bytes),
    ] {
        let request = ask(&json!({"players": ["p", one, "q"]}));
        world.refuse(&request, 400, "invalid_field", Some("/players/1"));
    }
    world.refuse(&ask(&json!({"players": ["p"], "x": 1})), 400, "unknown_field", Some("/x"));
    let nowhere = Request::new("POST", "/v1/leaderboards/none/among").json(&json!({"players": ["p"]}));
    world.refuse(&nowhere, 404, "leaderboard_not_found", None);
}

#[test]
fn players_that_are_not_there() {
    let mut world = World::start();
    for method in ["GET", "DELETE"] {
        world.refuse(&Request::new(method, "/v1/players/new"), 404, "player_not_found", None);
    }
    for verb in ["ban", "restore"] {
        let nowhere = Request::new("POST", format!("/v1/leaderboards/none/players/p/{verb}"));
        world.refuse(&nowhere, 404, "leaderboard_not_found", None);
    }
}
