//! Queries, parameter by parameter.

use super::world::World;
use tally_testkit::Request;
use tally_testkit::routes::all;

const LISTS: [&str; 6] = [
    "/v1/leaderboards",
    "/v1/keys",
    "/v1/audit",
    "/v1/leaderboards/b/scores",
    "/v1/leaderboards/b/periods",
    "/v1/ledger/owed",
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
    ("/v1/leaderboards/{board}/prizes", &["limit", "cursor", "period"]),
    ("/v1/leaderboards/{board}/events", &[]),
    ("/v1/contests/{contest}/events", &[]),
    ("/v1/me/events", &[]),
    ("/v1/leaderboards/{board}/players/{player}", &["period"]),
    ("/v1/leaderboards/{board}/players/{player}/around", &["above", "below", "period", "expand"]),
    ("/v1/imports/{board}/{digest}", &[]),
    ("/v1/players/{player}", &[]),
    ("/v1/keys", &["limit", "cursor"]),
    ("/v1/audit", &["actor", "action", "subject", "from", "until", "limit", "cursor"]),
    ("/v1/members", &["login_id", "phone_number", "player"]),
    ("/v1/members/{member}", &[]),
    ("/v1/me", &[]),
    ("/v1/me/ranks", &["limit", "cursor"]),
    ("/v1/me/wallet", &["currency"]),
    ("/v1/me/transactions", &["limit", "cursor", "currency"]),
    ("/v1/wallets/{member}", &[]),
    ("/v1/wallets/{member}/transactions", &["limit", "cursor", "currency"]),
    ("/v1/holds/{hold}", &[]),
    ("/v1/contests", &["limit", "cursor", "state"]),
    ("/v1/contests/{contest}", &[]),
    ("/v1/contests/{contest}/applications", &["limit", "cursor", "status"]),
    ("/v1/contests/{contest}/members", &["limit", "cursor"]),
    ("/v1/contests/{contest}/prizes", &["limit", "cursor"]),
    ("/v1/contests/{contest}/refunds", &["limit", "cursor"]),
    ("/v1/contest-series", &["limit", "cursor"]),
    ("/v1/contest-series/{series}", &[]),
    ("/v1/ledger/accounts", &[]),
    ("/v1/ledger/trial-balance", &[]),
    ("/v1/ledger/owed", &["limit", "cursor"]),
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
            world.client.get(&format!("{list}?limit={value}")).expect(200);
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
            world.client.get(&format!("/v1/leaderboards/f/scores?{name}={value}")).expect(200);
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
        let page = world.client.get(target).expect(200);
        page["next_cursor"].as_str().unwrap_or_else(|| panic!("no next page at {target}")).to_owned()
    };
    let boards = cursor("/v1/leaderboards?limit=1");
    let scores = cursor("/v1/leaderboards/b/scores?limit=1");
    let worst = cursor("/v1/leaderboards/b/scores?limit=1&order=worst");
    let other = cursor("/v1/leaderboards/other/scores?limit=1");
    let periods = cursor("/v1/leaderboards/w/periods?limit=1");
    let weekly = cursor("/v1/leaderboards/w/scores?limit=1&period=weekly");
    for (list, foreign) in [
        ("/v1/leaderboards", vec![&scores, &periods]),
        ("/v1/keys", vec![&scores, &boards, &periods]),
        ("/v1/audit", vec![&scores, &boards, &periods]),
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
        let answer = world.client.get(&format!("{list}?cursor={cut}"));
        // A name cut short may be another valid place, but never a fault.
        assert!(answer.status == 200 || answer.code() == "invalid_cursor", "{}", answer.text());
    }
    let both = format!("{PAGE}?cursor={scores}&offset=1");
    world.refuse(&get(&both), 400, "invalid_parameter", Some("offset"));
}

#[test]
fn filters_of_the_audit_log() {
    let mut world = World::start();
    let bad_instants = ["", "x", "2026-01-01", "1"];
    let cases: [(&str, &[&str]); 4] = [
        ("actor", &["", "x", "key:", "key:0123456789AB", "key:0123456789abc", "member:x", "Local"]),
        ("action", &["", "x", "key", "key.made", "KEY.CREATED"]),
        ("from", &bad_instants),
        ("until", &bad_instants),
    ];
    for (name, values) in cases {
        for value in values {
            let request = get(&format!("/v1/audit?{name}={value}"));
            world.refuse(&request, 400, "invalid_parameter", Some(name));
        }
    }
}

/// Acts without a body take their reason from the query, those with one from it.
#[test]
fn reasons_of_acts() {
    let mut world = World::start();
    let (long, mut seen) = ("x".repeat(256), 0);
    for route in all() {
        let acts = [
            ("POST", "/ban"),
            ("POST", "/restore"),
            ("POST", "/unlock-pin"),
            ("POST", "/sign-out"),
            ("POST", "/open"),
            ("POST", "/start"),
            ("POST", "/finish"),
            ("POST", "/settle"),
            ("POST", "/cancel"),
            ("DELETE", "/v1/leaderboards/{board}"),
            ("DELETE", "/v1/players/{player}"),
            ("DELETE", "/v1/contest-series/{series}"),
            ("DELETE", "/v1/keys/{id}"),
        ];
        let is_act = |(method, end): &(&str, &str)| {
            route.method == *method && (route.path == *end || method == &"POST" && route.path.ends_with(end))
        };
        if acts.iter().any(is_act) {
            seen += 1;
            for query in [format!("reason={long}"), "reason=a&reason=b".into()] {
                let target = format!("{}?{query}", super::world::path(&route, &[]));
                let request = Request { target: target.into_bytes(), ..super::world::bare(&route) };
                world.refuse(&request, 400, "invalid_parameter", Some("reason"));
            }
        }
    }
    assert_eq!(seen, 15);
    for (method, path) in [
        ("PUT", "/v1/leaderboards/new"),
        ("POST", "/v1/keys"),
        ("POST", "/v1/contests"),
        ("PATCH", "/v1/contest-series/yearly"),
    ] {
        for bad in [serde_json::json!(1), serde_json::json!(null), serde_json::json!(long)] {
            let request = Request::new(method, path).json(&serde_json::json!({"reason": bad}));
            world.refuse(&request, 400, "invalid_field", Some("/reason"));
        }
    }
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
