//! Queries, parameter by parameter.

use super::world::World;
use serde_json::{Value, json};
use tally_testkit::Request;
use tally_testkit::routes::all;

const LISTS: [&str; 12] = [
    "/v1/leaderboards",
    "/v1/keys",
    "/v1/audit",
    "/v1/leaderboards/b/scores",
    "/v1/leaderboards/b/periods",
    "/v1/leaderboards/b/bans",
    "/v1/players/p/ranks",
    "/v1/players/p/contests",
    "/v1/members",
    "/v1/ledger/owed",
    "/v1/ledger/transactions",
    "/v1/holds",
];
const PAGE: &str = "/v1/leaderboards/b/scores";
const AROUND: &str = "/v1/leaderboards/b/players/p/around";

/// The parameters that each reading route has: a new route must be entered here.
const PARAMETERS: &[(&str, &[&str])] = &[
    ("/metrics", &[]),
    ("/v1/status", &[]),
    ("/v1/leaderboards", &["limit", "cursor"]),
    ("/v1/leaderboards/{board}", &[]),
    (
        "/v1/leaderboards/{board}/scores",
        &["limit", "cursor", "offset", "min", "max", "period", "order", "expand"],
    ),
    ("/v1/leaderboards/{board}/periods", &["limit", "cursor"]),
    ("/v1/leaderboards/{board}/bans", &["limit", "cursor"]),
    ("/v1/leaderboards/{board}/prizes", &["limit", "cursor", "period"]),
    ("/v1/leaderboards/{board}/events", &[]),
    ("/v1/contests/{contest}/events", &[]),
    ("/v1/me/events", &[]),
    ("/v1/leaderboards/{board}/players/{player}", &["period"]),
    ("/v1/leaderboards/{board}/players/{player}/around", &["above", "below", "period", "expand"]),
    ("/v1/imports/{board}/{digest}", &[]),
    ("/v1/players", &["prefix", "limit"]),
    ("/v1/players/{player}", &[]),
    ("/v1/players/{player}/ranks", &["limit", "cursor", "closed"]),
    ("/v1/players/{player}/contests", &["limit", "cursor"]),
    ("/v1/keys", &["limit", "cursor"]),
    ("/v1/ledger/archives", &[]),
    ("/v1/webhooks", &[]),
    ("/v1/webhooks/{webhook}", &[]),
    ("/v1/webhooks/{webhook}/deliveries", &["limit", "cursor", "state"]),
    ("/v1/audit", &["actor", "action", "subject", "subject_prefix", "from", "until", "limit", "cursor"]),
    ("/v1/currencies", &[]),
    ("/v1/members", &["login_id", "phone_number", "player", "limit", "cursor"]),
    ("/v1/members/{member}", &[]),
    ("/v1/members/{member}/export", &["reason"]),
    ("/v1/me", &[]),
    ("/v1/me/ranks", &["limit", "cursor"]),
    ("/v1/me/wallet", &["currency"]),
    ("/v1/me/transactions", &["limit", "cursor", "currency"]),
    ("/v1/wallets/{member}", &[]),
    ("/v1/wallets/{member}/transactions", &["limit", "cursor", "currency"]),
    ("/v1/holds", &["member", "state", "from", "until", "limit", "cursor"]),
    ("/v1/holds/{hold}", &[]),
    ("/v1/contests", &["limit", "cursor", "state", "series", "prefix"]),
    ("/v1/contests/{contest}", &[]),
    ("/v1/contests/{contest}/applications", &["limit", "cursor", "state", "status"]),
    ("/v1/contests/{contest}/players", &["limit", "cursor"]),
    ("/v1/contests/{contest}/prizes", &["preview", "limit", "cursor"]),
    ("/v1/contests/{contest}/refunds", &["limit", "cursor"]),
    ("/v1/contest-series", &["limit", "cursor"]),
    ("/v1/contest-series/{series}", &[]),
    ("/v1/ledger/accounts", &[]),
    ("/v1/ledger/trial-balance", &[]),
    ("/v1/ledger/owed", &["player", "no_member", "limit", "cursor"]),
    (
        "/v1/ledger/transactions",
        &[
            "member",
            "type",
            "reference",
            "contest",
            "actor",
            "currency",
            "amount_min",
            "amount_max",
            "from",
            "until",
            "limit",
            "cursor",
        ],
    ),
    ("/v1/ledger/transactions/{transaction}", &[]),
];

fn get(target: &str) -> Request {
    Request::new("GET", target)
}

fn among(query: &str) -> Request {
    let players = serde_json::json!({"players": ["p"]});
    Request::new("POST", format!("/v1/leaderboards/b/among?{query}")).json(&players)
}

#[test]
fn every_parameter_is_given_once() {
    let mut world = World::start();
    let mut seen = 0;
    for route in all().iter().filter(|route| route.method == "GET") {
        let known = PARAMETERS.iter().find(|(path, _)| *path == route.path);
        let (_, names) =
            known.unwrap_or_else(|| panic!("the parameters of {} are not listed here", route.path));
        for name in *names {
            seen += 1;
            let value = match *name {
                "order" => "best",
                "period" => "all_time",
                "cursor" => "x",
                "state" => "open",
                "status" => "pending",
                "expand" => "player",
                _ => "1",
            };
            let target = format!("{}?{name}={value}&{name}={value}", super::world::path(route, &[]));
            let request = Request { target: target.into_bytes(), ..super::world::bare(route) };
            world.refuse(&request, 400, "invalid_parameter", Some(name));
        }
    }
    assert_eq!(seen, PARAMETERS.iter().map(|(_, names)| names.len()).sum::<usize>());
}

#[test]
fn limits_are_from_1_to_1000() {
    let mut world = World::start();
    let history = format!("/v1/wallets/{}/transactions", super::world::money().ann);
    for list in LISTS.into_iter().chain([&*history]) {
        for value in ["0", "1001", "-1", "", "x", "1.0", "1e2", "%2B5", "0x10", "99999999999999999999", " 5"]
        {
            let target = format!("{list}?limit={}", value.replace(' ', "%20"));
            world.refuse(&get(&target), 400, "invalid_parameter", Some("limit"));
        }
        for value in ["1", "1000", "0005"] {
            world.client().get(&format!("{list}?limit={value}")).expect(200);
        }
    }
}

#[test]
fn numbers_of_a_page() {
    let mut world = World::start();
    for value in ["-1", "", "x", "1.5", "18446744073709551616", "1e3"] {
        world.refuse(&get(&format!("{PAGE}?offset={value}")), 400, "invalid_parameter", Some("offset"));
    }
    for name in ["min", "max"] {
        for value in [
            "",
            "x",
            "nan",
            "NaN",
            "infinity",
            "0x1",
            "1_000",
            "--1",
            "9223372036854775808",
            "1.5",
            "1e400",
            "inf",
            "1e3",
        ] {
            world.refuse(&get(&format!("{PAGE}?{name}={value}")), 400, "invalid_parameter", Some(name));
        }
        for value in ["", "x", "nan", "0x1"] {
            let target = format!("/v1/leaderboards/f/scores?{name}={value}");
            world.refuse(&get(&target), 400, "invalid_parameter", Some(name));
        }
        for value in ["inf", "-inf", "1.5", "9223372036854775808"] {
            world.client().get(&format!("/v1/leaderboards/f/scores?{name}={value}")).expect(200);
        }
    }
    for value in ["", "up", "BEST", "best,worst"] {
        world.refuse(&get(&format!("{PAGE}?order={value}")), 400, "invalid_parameter", Some("order"));
    }
}

#[test]
fn numbers_around_a_player() {
    let mut world = World::start();
    for name in ["above", "below"] {
        for value in ["-1", "101", "", "x", "1.5", "99999999999999999999"] {
            world.refuse(&get(&format!("{AROUND}?{name}={value}")), 400, "invalid_parameter", Some(name));
        }
    }
}

#[test]
fn what_is_expanded_is_players_or_nothing() {
    let mut world = World::start();
    for value in ["", "Player", "players", "profile", "player,board", "1", "%00"] {
        for target in [PAGE, AROUND] {
            world.refuse(&get(&format!("{target}?expand={value}")), 400, "invalid_parameter", Some("expand"));
        }
        world.refuse(&among(&format!("expand={value}")), 400, "invalid_parameter", Some("expand"));
    }
    for target in ["/v1/leaderboards/b/players/p", "/v1/leaderboards/b", "/v1/leaderboards", "/v1/players/q"]
    {
        world.refuse(&get(&format!("{target}?expand=player")), 400, "unknown_parameter", Some("expand"));
    }
}

#[test]
fn windows_of_a_submit_are_all_or_none() {
    let mut world = World::start();
    let score = json!({"player": "p", "score": 1});
    let rows = json!({"scores": [{"board": "b", "player": "p", "score": 1}]});
    for (path, body) in [("/v1/leaderboards/b/scores", score), ("/v1/scores/batch", rows)] {
        for query in ["windows=", "windows=All", "windows=weekly", "windows=1", "windows=all&windows=all"] {
            let request = Request::new("POST", format!("{path}?{query}")).json(&body);
            world.refuse(&request, 400, "invalid_parameter", Some("windows"));
        }
    }
}

#[test]
fn parameters_of_among() {
    let mut world = World::start();
    for (name, value) in [("expand", "player"), ("period", "all_time")] {
        let twice = among(&format!("{name}={value}&{name}={value}"));
        world.refuse(&twice, 400, "invalid_parameter", Some(name));
    }
    for name in ["limit", "cursor", "offset", "above", "players"] {
        world.refuse(&among(&format!("{name}=1")), 400, "unknown_parameter", Some(name));
    }
    for value in ["", "weekly", "2026-01-01"] {
        world.refuse(&among(&format!("period={value}")), 404, "period_not_found", None);
    }
}

#[test]
fn cursors_belong_to_their_list() {
    let mut world = World::start();
    let mut cursor = |target: &str| {
        let page = world.client().get(target).expect(200);
        page["next_cursor"].as_str().unwrap_or_else(|| panic!("no next page at {target}")).to_owned()
    };
    let boards = cursor("/v1/leaderboards?limit=1");
    let scores = cursor("/v1/leaderboards/b/scores?limit=1");
    let worst = cursor("/v1/leaderboards/b/scores?limit=1&order=worst");
    let other = cursor("/v1/leaderboards/other/scores?limit=1");
    let periods = cursor("/v1/leaderboards/w/periods?limit=1");
    let weekly = cursor("/v1/leaderboards/w/scores?limit=1&period=weekly");
    let moves = cursor("/v1/ledger/transactions?limit=1");
    for (list, foreign) in [
        ("/v1/leaderboards", vec![&scores, &periods]),
        ("/v1/keys", vec![&scores, &boards, &periods]),
        ("/v1/audit", vec![&scores, &boards, &periods, &moves]),
        ("/v1/ledger/transactions", vec![&scores, &boards]),
        ("/v1/holds", vec![&scores, &boards, &moves]),
        ("/v1/members", vec![&scores, &boards, &moves]),
        ("/v1/players/p/contests", vec![&scores, &boards]),
        (PAGE, vec![&boards, &worst, &other, &periods, &weekly]),
        ("/v1/leaderboards/w/scores", vec![&scores, &weekly]),
        ("/v1/leaderboards/w/periods", vec![&scores, &boards, &weekly]),
    ] {
        for foreign in foreign {
            world.refuse(&get(&format!("{list}?cursor={foreign}")), 400, "invalid_cursor", None);
        }
    }
    let turned = format!("{PAGE}?order=worst&cursor={scores}");
    world.refuse(&get(&turned), 400, "invalid_cursor", None);
    for list in LISTS {
        for garbage in ["", "x", "AAAA", "====", "%00", "a%20b", "AQ", "Ag", &"A".repeat(4_000)] {
            world.refuse(&get(&format!("{list}?cursor={garbage}")), 400, "invalid_cursor", None);
        }
    }
    for (list, own) in [("/v1/leaderboards", &boards), (PAGE, &scores)] {
        let cut = &own[..own.len() - 1];
        let answer = world.client().get(&format!("{list}?cursor={cut}"));
        // A name cut short may be another valid place, but never a fault.
        assert!(answer.status == 200 || answer.code() == "invalid_cursor", "{}", answer.text());
    }
    let both = format!("{PAGE}?cursor={scores}&offset=1");
    world.refuse(&get(&both), 400, "invalid_parameter", Some("offset"));
}

#[test]
fn filters_of_lists() {
    let mut world = World::start();
    let bad_instants = ["", "x", "2026-01-01", "1"];
    let bad_actors = ["", "x", "key:", "key:0123456789AB", "key:0123456789abc", "member:x", "Local"];
    let bad_amounts = ["", "0", "-1", "x", "1.0", "1000000000000001", "99999999999999999999"];
    let bad_members = ["", "x", "ann", "0190f8a0-1c2d-7a40-8f00-6b1d2c3e4f5"];
    let (transfers, holds) = ("/v1/ledger/transactions", "/v1/holds");
    let cases: [(&str, &str, &[&str]); 16] = [
        ("/v1/audit", "actor", &bad_actors),
        ("/v1/audit", "action", &["", "x", "key", "key.made", "KEY.CREATED"]),
        ("/v1/audit", "from", &bad_instants),
        ("/v1/audit", "until", &bad_instants),
        (transfers, "member", &bad_members),
        (transfers, "type", &["", "x", "Deposit", "transfer", "transfer_in"]),
        (transfers, "contest", &["", ".", "a%20b", "a/b"]),
        (transfers, "actor", &bad_actors),
        (transfers, "currency", &["", "krw", "TOOLONGER"]),
        (transfers, "amount_min", &bad_amounts),
        (transfers, "amount_max", &bad_amounts),
        (transfers, "from", &bad_instants),
        (holds, "member", &bad_members),
        (holds, "state", &["", "x", "Open", "closed"]),
        (holds, "until", &bad_instants),
        ("/v1/ledger/owed", "player", &[""]),
    ];
    for (list, name, values) in cases {
        for value in values {
            let request = get(&format!("{list}?{name}={value}"));
            world.refuse(&request, 400, "invalid_parameter", Some(name));
        }
    }
    let request = get("/v1/ledger/transactions?amount_min=3&amount_max=2");
    world.refuse(&request, 400, "invalid_parameter", Some("amount_max"));
}

/// Whether a body of this schema may have a reason.
fn has_reason(api: &Value, schema: &Value) -> bool {
    if let Some(reference) = schema["$ref"].as_str() {
        return has_reason(api, api.pointer(reference.trim_start_matches('#')).expect("it is defined"));
    }
    let of = |list: &&str| schema[*list].as_array().into_iter().flatten().any(|one| has_reason(api, one));
    schema["properties"]["reason"].is_object() || ["allOf", "oneOf", "anyOf"].iter().any(of)
}

/// Where OpenAPI has a reason a bad one is refused, and elsewhere it is an unknown parameter: acts without a body take it from
/// the query, those with one from it.
#[test]
fn reasons_are_taken_where_openapi_has_them() {
    let mut world = World::start();
    let api = world.client().get("/openapi.json").expect(200);
    let (long, mut seen) = ("x".repeat(256), [0, 0]);
    for route in all().iter().filter(|route| route.method != "GET") {
        let operation = &api["paths"][&route.path][route.method.to_lowercase()];
        let mut parameters = operation["parameters"].as_array().into_iter().flatten();
        let in_query = parameters.any(|one| one["$ref"] == "#/components/parameters/reason");
        let code = if in_query { "invalid_parameter" } else { "unknown_parameter" };
        let queries = if in_query {
            [format!("reason={long}"), "reason=a&reason=b".into()]
        } else {
            ["reason=a", "reason="].map(Into::into)
        };
        for query in queries {
            let mut request = super::world::valid(route);
            let mark = if request.target.contains(&b'?') { '&' } else { '?' };
            request.target.extend_from_slice(format!("{mark}{query}").as_bytes());
            world.refuse(&request, 400, code, Some("reason"));
        }
        let in_body = has_reason(&api, &operation["requestBody"]["content"]["application/json"]["schema"]);
        for bad in [json!(1), json!(null), json!(long)].iter().filter(|_| in_body) {
            let request = super::world::valid(route);
            let body = request.body.as_deref().filter(|body| !body.is_empty());
            let mut body: Value =
                body.map_or_else(|| json!({}), |body| serde_json::from_slice(body).expect("JSON"));
            body["reason"] = bad.clone();
            world.refuse(&request.json(&body), 400, "invalid_field", Some("/reason"));
        }
        seen = [seen[0] + usize::from(in_query), seen[1] + usize::from(in_body)];
    }
    assert_eq!(seen, [19, 25]);
}

/// A cursor of the list of keys can be had only while keys exist.
#[test]
fn cursors_of_keys_are_not_those_of_boards() {
    let world = World::start();
    let mut local = world.server.local();
    for role in ["admin", "reader"] {
        local.post("/v1/keys", &serde_json::json!({"role": role})).expect(201);
    }
    let page = local.get("/v1/keys?limit=1").expect(200);
    let cursor = page["next_cursor"].as_str().expect("there is another");
    local.get(&format!("/v1/keys?cursor={cursor}")).expect(200);
    local.get(&format!("/v1/leaderboards?cursor={cursor}")).refused(400, "invalid_cursor");
    local.get(&format!("{PAGE}?cursor={cursor}")).refused(400, "invalid_cursor");
}
