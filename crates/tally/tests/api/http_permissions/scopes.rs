//! Every route with a key of each single scope: allowed as the table here says, or refused with the name of the scope.

use super::{Allowed, FORBIDDEN, check, of_role, prepare, request, sign_in, state};
use crate::TALLY;
use serde_json::json;
use tally_testkit::routes::{Route, all};
use tally_testkit::{Request, TestTally};

/// The contract: the routes that each scope allows, beside those of a reader.
const TABLE: [(&str, &[&str]); 9] = [
    (
        "scores:write",
        &[
            "POST /v1/leaderboards/{board}/scores",
            "DELETE /v1/leaderboards/{board}/players/{player}",
            "POST /v1/scores/batch",
            "PUT /v1/players/{player}",
            "GET /v1/imports/{board}/{digest}",
            "POST /v1/imports",
        ],
    ),
    (
        "boards:admin",
        &[
            "PUT /v1/leaderboards/{board}",
            "DELETE /v1/leaderboards/{board}",
            "POST /v1/leaderboards/{board}/prizes/repay",
            "POST /v1/leaderboards/{board}/players/{player}/correct",
            "POST /v1/leaderboards/{board}/players/{player}/ban",
            "POST /v1/leaderboards/{board}/players/{player}/restore",
            "DELETE /v1/players/{player}",
        ],
    ),
    ("members:read", &["GET /v1/members", "GET /v1/members/{member}"]),
    (
        "members:write",
        &[
            "POST /v1/members",
            "PATCH /v1/members/{member}",
            "POST /v1/members/{member}/close",
            "POST /v1/members/{member}/unlock-pin",
            "POST /v1/members/{member}/sign-out",
            "POST /v1/imports/members",
        ],
    ),
    (
        "money:read",
        &[
            "GET /v1/wallets/{member}",
            "GET /v1/wallets/{member}/transactions",
            "GET /v1/holds",
            "GET /v1/holds/{hold}",
            "GET /v1/ledger/accounts",
            "GET /v1/ledger/trial-balance",
            "GET /v1/ledger/owed",
            "GET /v1/ledger/transactions",
            "GET /v1/ledger/transactions/{transaction}",
        ],
    ),
    (
        "money:move",
        &[
            "POST /v1/withdrawals",
            "POST /v1/transfers",
            "POST /v1/transfers/batch",
            "POST /v1/holds",
            "POST /v1/holds/{hold}/capture",
            "POST /v1/holds/{hold}/void",
            "POST /v1/ledger/transactions/{transaction}/reverse",
            "POST /v1/imports/transfers",
        ],
    ),
    ("money:mint", &["POST /v1/deposits"]),
    (
        "contests:manage",
        &[
            "POST /v1/contests",
            "PATCH /v1/contests/{contest}",
            "POST /v1/contests/{contest}/open",
            "POST /v1/contests/{contest}/start",
            "POST /v1/contests/{contest}/finish",
            "POST /v1/contests/{contest}/settle",
            "POST /v1/contests/{contest}/repay",
            "POST /v1/contests/{contest}/cancel",
            "POST /v1/contests/{contest}/applications",
            "GET /v1/contests/{contest}/applications",
            "GET /v1/players/{player}/contests",
            "POST /v1/contests/{contest}/applications/accept",
            "POST /v1/contests/{contest}/applications/reject",
            "DELETE /v1/contests/{contest}/applications/{player}",
            "POST /v1/contests/{contest}/players/{player}/ban",
            "POST /v1/contests/{contest}/players/{player}/restore",
            "POST /v1/contests/{contest}/players/{player}/correct",
            "POST /v1/contest-series",
            "PATCH /v1/contest-series/{series}",
            "DELETE /v1/contest-series/{series}",
        ],
    ),
    ("audit:read", &["GET /v1/audit"]),
];

/// Routes that make money beside what their scope allows, so they need `money:mint`, too.
const MINT: [&str; 1] = ["POST /v1/leaderboards/{board}/prizes/repay"];

/// What a refusal of a key with one scope says is missing; `None` if the key is admitted.
fn missing(scope: &str, route: &Route) -> Option<String> {
    let name = format!("{} {}", route.method, route.path);
    let needed = TABLE.iter().find(|(_, routes)| routes.contains(&name.as_str())).map(|(scope, _)| *scope);
    match (route.right.as_str(), needed) {
        ("Open" | "Observe" | "Read", None) => None,
        ("Own", None) => Some("this needs the token of a member".into()),
        ("Administer", None) => Some("this needs a key of role `admin`".into()),
        ("Write" | "Audit" | "Play", Some(needed)) if needed == scope => {
            MINT.contains(&name.as_str()).then(|| "prizes and balances need the scope `money:mint`".into())
        }
        ("Write" | "Audit" | "Play", Some(needed)) => Some(format!("this needs the scope `{needed}`")),
        other => panic!("{name} is not in the table, or in the wrong part of it: {other:?}"),
    }
}

#[test]
fn the_table_has_every_route_once() {
    let mut listed: Vec<&str> = TABLE.iter().flat_map(|(_, routes)| *routes).copied().collect();
    let has_scope = |route: &Route| ["Write", "Audit", "Play"].contains(&route.right.as_str());
    let mut routes: Vec<String> = all()
        .iter()
        .filter(|route| has_scope(route))
        .map(|route| format!("{} {}", route.method, route.path))
        .collect();
    listed.sort_unstable();
    routes.sort_unstable();
    assert_eq!(listed, routes);
}

/// Scopes allow different routes, and each route has rows of its own, so no scope spoils the rows of another one.
#[test]
fn a_scope_allows_its_routes_and_no_others() {
    let server = TestTally::start(TALLY);
    let (mut local, routes) = (server.local(), all());
    prepare(&mut local);
    let keys = TABLE.map(|(scope, _)| {
        let made = local.post("/v1/keys", &json!({"scopes": [scope]})).expect(201);
        (scope, made["key"].as_str().expect("a key").to_owned())
    });
    for (scope, key) in &keys {
        let mut client = server.client().with_key(key);
        let before = state(&mut local);
        for (number, route) in routes.iter().enumerate() {
            let Some(why) = missing(scope, route) else { continue };
            let (answer, what) = (client.send(&request(route, number)), format!("{scope} at {route:?}"));
            check(&answer, FORBIDDEN, &what);
            let detail = answer.json()["detail"].as_str().expect("a text").to_owned();
            assert!(detail.starts_with(&format!("permission denied: {why}")), "{what}: {detail}");
            assert!(detail.ends_with(&format!("; this key has the scopes `{scope}`")), "{what}: {detail}");
        }
        assert_eq!(before, state(&mut local), "{scope} was refused, and yet");
        for (number, route) in routes.iter().enumerate().filter(|(_, route)| missing(scope, route).is_none())
        {
            // The state of a contest refuses a key that names no player, as it does for the role `server`.
            let expected = if route.right == "Play" { of_role("server", route) } else { Allowed };
            let (answer, what) = (client.send(&request(route, number)), format!("{scope} at {route:?}"));
            check(&answer, expected, &what);
            if expected != Allowed {
                let detail = answer.json()["detail"].to_string();
                assert!(!detail.contains("this needs the scope"), "{what}: {detail}");
            }
        }
    }
}

/// All scopes together are the role `server` and the audit log, and never the role `admin`.
#[test]
fn all_scopes_make_no_admin() {
    let server = TestTally::start(TALLY);
    let scopes = TABLE.map(|(scope, _)| scope);
    let made = server.local().post("/v1/keys", &json!({"scopes": scopes})).expect(201);
    let mut client = server.client().with_key(made["key"].as_str().expect("a key"));
    check(&client.get("/v1/keys"), FORBIDDEN, "keys");
    check(&client.post("/v1/keys", &json!({"role": "reader"})), FORBIDDEN, "a new key");
    assert_eq!(client.get("/v1/status").expect(200).get("settings"), None);
    let id = made["id"].as_str().expect("an id");
    server.run(&["keys", "create", "--role", "admin"]).expect(0);
    server.local().delete(&format!("/v1/keys/{id}")).expect(204);
}

/// Each page of a preview computes all prizes. So the list, which any caller may read, needs more for it.
#[test]
fn a_preview_of_prizes_is_for_staff_and_keys_that_manage_contests() {
    let server = TestTally::start(TALLY);
    let mut local = server.local();
    prepare(&mut local);
    let token = sign_in(&server).expect("the password is right");
    let player = server.client().with_key(&token).get("/v1/me").expect(200)["player"].clone();
    local.post("/v1/contests", &json!({"id": "ours", "title": "C", "staff": [player]})).expect(201);
    local.post("/v1/contests", &json!({"id": "other", "title": "C"})).expect(201);
    let preview = |contest: &str, key: &str| {
        let request = Request::new("GET", format!("/v1/contests/{contest}/prizes?preview=true"));
        server.client().send(&request.key(key))
    };
    // A draft has no prizes, which only callers learn that may see them.
    preview("ours", &token).refused(409, "contest_state");
    let refused = |contest: &str, key: &str, why: &str| {
        let answer = preview(contest, key);
        check(&answer, FORBIDDEN, why);
        let detail = answer.json()["detail"].to_string();
        assert!(detail.contains(why), "{detail}");
    };
    refused("other", &token, "a player of the contest's `staff`");
    for body in [json!({"role": "reader"}), json!({"scopes": ["scores:write", "money:read"]})] {
        let made = local.post("/v1/keys", &body).expect(201);
        let key = made["key"].as_str().expect("a key");
        refused(
            "ours",
            key,
            "this needs the scope `contests:manage`, which the roles `server` and `admin` have; this key has",
        );
    }
    for body in [json!({"role": "admin"}), json!({"role": "server"}), json!({"scopes": ["contests:manage"]})]
    {
        let made = local.post("/v1/keys", &body).expect(201);
        preview("other", made["key"].as_str().expect("a key")).refused(409, "contest_state");
    }
}
