//! Contests' part of the tour: one that is played to its prizes, one that is cancelled, and the rejections of each state.

use super::operations::Tour;
use serde_json::{Value, json};
use tally_testkit::Request;

fn post(path: &str, body: &Value) -> Request {
    Request::new("POST", path).json(body)
}

fn act(id: &str, act: &str) -> Request {
    Request::new("POST", format!("/v1/contests/{id}/{act}"))
}

fn member(tour: &mut Tour<'_>, name: &str, units: u64) -> String {
    let made = json!({"login_id": name, "name": name, "player": name});
    let made = tour.local.post("/v1/members", &made).expect(201);
    if units > 0 {
        tour.local.post("/v1/deposits", &json!({"to": made["id"], "amount": units})).expect(201);
    }
    made["id"].as_str().expect("an id").to_owned()
}

/// The operations of the series of the examples, in a possible order.
const SERIES: [(&str, u16); 4] = [
    ("createContestSeries", 201),
    ("updateContestSeries", 200),
    ("getContestSeries", 200),
    ("listContestSeries", 200),
];

/// The contest of the examples, up to its start: spoilt examples find it so.
pub(crate) fn played(tour: &mut Tour<'_>) {
    for (id, status) in SERIES {
        tour.example(id, status);
    }
    tour.example("createContest", 201);
    tour.example("updateContest", 200);
    tour.example("openContest", 200);
    tour.example("streamContest", 200);
    tour.example("applyToContest", 201);
    tour.example("listApplications", 200);
    tour.example("withdrawApplication", 204);
    tour.example("applyToContest", 201);
    let players = tour.document.operation("acceptApplications").example(0);
    let two = post("/v1/contests/friday-cup/applications/accept", &json!({"players": ["pele", "nobody"]}));
    tour.good("acceptApplications", 200, players);
    tour.good("acceptApplications", 200, two);
    for player in ["zico", "rai"] {
        let path = "/v1/contests/friday-cup/applications";
        tour.good("applyToContest", 201, post(path, &json!({"player": player})));
    }
    let page = Request::new("GET", "/v1/contests/friday-cup/applications?limit=1");
    let next = tour.good("listApplications", 200, page)["next_cursor"].as_str().expect("two").to_owned();
    tour.example("listPlayerContests", 200);
    let path = format!("/v1/contests/friday-cup/applications?cursor={next}");
    tour.good("listApplications", 200, Request::new("GET", path));
    let reject = post("/v1/contests/friday-cup/applications/reject", &json!({"players": ["rai", "nobody"]}));
    tour.good("rejectApplications", 200, reject);
    let rai = post("/v1/contests/friday-cup/applications", &json!({"player": "rai"}));
    tour.refused("applyToContest", 409, "already_rejected", &rai);
    let rai = Request::new("DELETE", "/v1/contests/friday-cup/applications/rai");
    tour.refused("withdrawApplication", 409, "already_rejected", &rai);
    let nobody = Request::new("DELETE", "/v1/contests/friday-cup/applications/nobody");
    tour.refused("withdrawApplication", 404, "not_applied", &nobody);
    let pele = tour.document.operation("applyToContest").example(0);
    tour.refused("applyToContest", 409, "already_applied", &pele);
    let didi = post("/v1/contests/friday-cup/applications", &json!({"player": "didi"}));
    tour.refused("applyToContest", 422, "staff_cannot_apply", &didi);
    tour.example("startContest", 200);
    for id in ["getContest", "listContests", "listContestPlayers", "listPlayerContests"] {
        tour.example(id, 200);
    }
    let manager = json!({"login_id": "manager", "name": "M", "player": "contest-manager"});
    let manager = tour.good("createMember", 201, post("/v1/members", &manager));
    let staffed = json!({"id": "staffed", "title": "S", "staff": ["contest-manager"]});
    tour.good("createContest", 201, post("/v1/contests", &staffed));
    let erase = format!("/v1/members/{}/erase", manager["id"].as_str().expect("an id"));
    tour.refused("eraseMember", 409, "player_in_contest", &Request::new("POST", erase));
    tour.example("banContestPlayer", 200);
    tour.example("restoreContestPlayer", 200);
    let acting = tour.document.operation("banContestPlayer").example(0).header("Tally-Acting-Player", "pele");
    tour.refused("banContestPlayer", 403, "forbidden", &acting);
    let gil = json!({"login_id": "gil", "name": "Gil", "player": "gil"});
    let gil = tour.good("createMember", 201, post("/v1/members", &gil));
    let path = format!("/v1/members/{}", gil["id"].as_str().expect("an id"));
    let taken = Request::new("PATCH", path).json(&json!({"player": "pele"}));
    tour.refused("updateMember", 409, "player_in_contest", &taken);
}

pub(crate) fn tour(tour: &mut Tour<'_>) {
    let again = tour.document.operation("createContest").example(0);
    tour.refused("createContest", 409, "contest_exists", &again);
    let large = json!({"title": "Large", "capacity": 100_001});
    tour.refused("createContest", 422, "contest_too_large", &post("/v1/contests", &large));
    tour.local.post("/v1/contests", &json!({"id": "a-draft", "title": "D"})).expect(201);
    let large = Request::new("PATCH", "/v1/contests/a-draft").json(&json!({"capacity": 100_001}));
    tour.refused("updateContest", 422, "contest_too_large", &large);
    series(tour);
    with_money(tour);
    in_the_wrong_state(tour);
    let cancelled = tour.good("cancelContest", 200, act("a-draft", "cancel"));
    assert_eq!(cancelled["state"], "cancelled");
    tour.good("listContests", 200, Request::new("GET", "/v1/contests?state=cancelled"));
    tour.good("listContests", 200, Request::new("GET", "/v1/contests?prefix=FRI"));
    let page = tour.good("listContests", 200, Request::new("GET", "/v1/contests?limit=1"));
    let next = page["next_cursor"].as_str().expect("there are more").to_owned();
    tour.good("listContests", 200, Request::new("GET", format!("/v1/contests?cursor={next}")));
    let made = tour.good("listContests", 200, Request::new("GET", "/v1/contests?series=weekly&limit=1"));
    assert_eq!(made["items"][0]["series"], "weekly");
    let next = made["next_cursor"].as_str().expect("it has made two").to_owned();
    let rest = Request::new("GET", format!("/v1/contests?series=weekly&cursor={next}"));
    assert_eq!(tour.good("listContests", 200, rest)["items"].as_array().map(Vec::len), Some(1));
    let other = Request::new("GET", format!("/v1/contests?cursor={next}"));
    tour.refused("listContests", 400, "invalid_cursor", &other);
}

fn series(tour: &mut Tour<'_>) {
    let again = tour.document.operation("createContestSeries").example(0);
    tour.refused("createContestSeries", 409, "series_exists", &again);
    let large = json!({"id": "large", "template": {"title": "L", "capacity": 100_001}, "open": "0 0 * * *",
        "start": "0 1 * * *", "end": "0 2 * * *"});
    tour.refused("createContestSeries", 422, "contest_too_large", &post("/v1/contest-series", &large));
    let large = json!({"template": {"capacity": 100_001}});
    let large = Request::new("PATCH", "/v1/contest-series/daily-cup").json(&large);
    tour.refused("updateContestSeries", 422, "contest_too_large", &large);
    let other = json!({"id": "weekly", "template": {"title": "W", "division_size": 5}, "open": "0 0 * * 1",
        "start": "0 1 * * 1", "end": "0 2 * * 1", "ahead": 2});
    tour.good("createContestSeries", 201, post("/v1/contest-series", &other));
    let page = tour.good("listContestSeries", 200, Request::new("GET", "/v1/contest-series?limit=1"));
    let next = page["next_cursor"].as_str().expect("there are two").to_owned();
    let page = Request::new("GET", format!("/v1/contest-series?cursor={next}"));
    let last =
        tour.good("listContestSeries", 200, page)["items"][0]["last_contest"].as_str().map(str::to_owned);
    let made = Request::new("GET", format!("/v1/contests/{}", last.expect("it has made two")));
    assert_eq!(tour.good("getContest", 200, made)["series"], "weekly");
    tour.example("deleteContestSeries", 204);
}

/// A fee, prizes and divisions.
fn with_money(tour: &mut Tour<'_>) {
    let rich = member(tour, "contest-rich", 1_000);
    let leaver = member(tour, "contest-leaver", 1_000);
    for (name, units) in [("contest-ann", 1_000), ("contest-poor", 0)] {
        member(tour, name, units);
    }
    let cup = json!({"id": "paid", "title": "Paid", "entry_fee": {"currency": "KRW", "amount": "100"}, "staff": [],
        "prizes": [{"from": 1, "to": 2, "currency": "KRW", "amount": 50}], "prize_ties": "each", "capacity": 10,
        "division_size": 1, "ends_at": "2999-01-01T00:00:00Z", "leaderboard": {"periods": []}});
    tour.good("createContest", 201, post("/v1/contests", &cup));
    tour.good("openContest", 200, act("paid", "open"));
    let apply = |player: &str| post("/v1/contests/paid/applications", &json!({"player": player}));
    for (status, code, player) in
        [(422, "insufficient_funds", "contest-poor"), (422, "wallet_not_found", "contest-nobody")]
    {
        tour.refused("applyToContest", status, code, &apply(player));
    }
    let mut holds = Vec::new();
    for player in ["contest-rich", "contest-ann"] {
        let applied = tour.good("applyToContest", 201, apply(player));
        holds.push(applied["hold_id"].as_str().expect("a hold").to_owned());
    }
    // `status` is the older name.
    for name in ["state", "status"] {
        let list = format!("/v1/contests/paid/applications?{name}=pending");
        tour.good("listApplications", 200, Request::new("GET", list));
    }
    tour.good("applyToContest", 201, apply("contest-leaver"));
    let both = json!({"players": ["contest-rich", "contest-ann", "contest-leaver"]});
    tour.good("acceptApplications", 200, post("/v1/contests/paid/applications/accept", &both));
    tour.local.post(&format!("/v1/holds/{}/void", holds[1]), &json!({})).expect(200);
    tour.refused("startContest", 422, "invalid_applications", &act("paid", "start"));
    let skip = Request::new("PATCH", "/v1/contests/paid").json(&json!({"on_invalid": "skip"}));
    tour.good("updateContest", 200, skip);
    tour.good("startContest", 200, act("paid", "start"));
    tour.local.post(&format!("/v1/members/{leaver}/close"), &json!({"force": true})).expect(200);
    let heir = json!({"login_id": "contest-heir", "name": "Heir", "player": "contest-leaver"});
    tour.refused("createMember", 409, "player_in_contest", &post("/v1/members", &heir));
    tour.good("listContestPlayers", 200, Request::new("GET", "/v1/contests/paid/players"));
    let score = json!({"player": "contest-rich", "score": 1});
    tour.local.post("/v1/leaderboards/contest:paid:1/scores", &score).expect(200);
    let board = "/v1/leaderboards/contest:paid:1";
    tour.refused("deleteLeaderboard", 409, "board_in_use", &Request::new("DELETE", board));
    let row = Request::new("DELETE", format!("{board}/players/contest-rich"));
    tour.refused("removePlayer", 409, "board_in_use", &row);
    let scores = format!("{board}/scores");
    let stranger = post(&scores, &json!({"player": "contest-poor", "score": 1}));
    tour.refused("submitScore", 403, "not_a_member", &stranger);
    for (id, what) in [("banPlayer", "ban"), ("restorePlayer", "restore")] {
        let request = Request::new("POST", format!("{board}/players/contest-poor/{what}"));
        tour.refused(id, 404, "player_not_found", &request);
    }
    tour.good("finishContest", 200, act("paid", "finish"));
    tour.refused("submitScore", 409, "contest_state", &post(&scores, &score));
    let path = "/v1/contests/paid/players/contest-rich/correct";
    let correction = json!({"score": 2, "reason": "counted twice"});
    tour.good("correctScore", 200, post(path, &correction));
    let nobody = post("/v1/contests/paid/players/nobody/correct", &correction);
    tour.refused("correctScore", 404, "player_not_found", &nobody);
    let nobody = post(&format!("{board}/players/nobody/correct"), &correction);
    tour.refused("correctPlayerScore", 404, "player_not_found", &nobody);
    let preview = Request::new("GET", "/v1/contests/paid/prizes?preview=true");
    tour.good("listContestPrizes", 200, preview);
    tour.good("settleContest", 200, act("paid", "settle"));
    tour.good("settleContest", 200, act("paid", "settle"));
    tour.good("repayContest", 200, act("paid", "repay"));
    let reused = act("paid", "repay").idempotent("taken");
    tour.refused("repayContest", 422, "idempotency_key_reused", &reused);
    for (id, what) in [("banPlayer", "ban"), ("restorePlayer", "restore")] {
        let request = Request::new("POST", format!("{board}/players/contest-rich/{what}"));
        tour.refused(id, 409, "contest_state", &request);
    }
    let list = Request::new("GET", "/v1/contests/paid/prizes");
    let prizes = tour.good("listContestPrizes", 200, list.clone());
    assert_eq!((&prizes["items"][0]["member"], &prizes["items"][0]["paid"]), (&json!(rich), &json!(true)));
    let prize = prizes["items"][0]["group_id"].as_str().expect("a transfer");
    let part = json!({"amount": "1"});
    tour.local.post(&format!("/v1/ledger/transactions/{prize}/reverse"), &part).expect(201);
    let prizes = tour.good("listContestPrizes", 200, list);
    assert_eq!(prizes["items"][0]["reversed"], json!("1"));
    cancelled(tour, &rich);
}

/// A contest that has paid its fees back.
fn cancelled(tour: &mut Tour<'_>, rich: &str) {
    let cup = json!({"id": "off", "title": "Off", "entry_fee": {"currency": "KRW", "amount": "10"},
        "capacity": 1, "players_min": 1, "below_min": "start", "join_s": 60, "attempts_max": 1,
        "pool": {"prizes": [{"from": 1, "to": 1, "share": 10_000}], "rake": 1, "min": "5"}});
    tour.good("createContest", 201, post("/v1/contests", &cup));
    tour.good("openContest", 200, act("off", "open"));
    let path = "/v1/contests/off/applications";
    tour.good("applyToContest", 201, post(path, &json!({"player": "contest-rich"})));
    let players = json!({"players": ["contest-rich"]});
    tour.good("acceptApplications", 200, post(&format!("{path}/accept"), &players));
    tour.good("startContest", 200, act("off", "start"));
    tour.refused("applyToContest", 422, "contest_full", &post(path, &json!({"player": "contest-ann"})));
    let scores = "/v1/leaderboards/contest:off/scores";
    let score = json!({"player": "contest-rich", "score": 1});
    tour.good("submitScore", 200, post(scores, &score));
    tour.refused("submitScore", 409, "no_attempts_left", &post(scores, &score));
    let members = tour.good("listContestPlayers", 200, Request::new("GET", "/v1/contests/off/players"));
    assert_eq!(members["items"][0]["attempts"], json!(1));
    tour.good("cancelContest", 200, act("off", "cancel"));
    let refunds = tour.good("listContestRefunds", 200, Request::new("GET", "/v1/contests/off/refunds"));
    assert_eq!((&refunds["items"][0]["member"], &refunds["items"][0]["paid"]), (&json!(rich), &json!(true)));
    let moved = tour.local.get("/v1/ledger/transactions?contest=off").expect(200);
    let mut moved = moved["items"].as_array().expect("a list").iter();
    let fee = moved.find(|row| row["debit"]["member"] == json!(rich)).expect("the fee");
    let fee = fee["id"].as_str().expect("an id");
    // The contest has paid it back.
    let reversal = post(&format!("/v1/ledger/transactions/{fee}/reverse"), &json!({}));
    tour.refused("reverseMovement", 409, "contest_state", &reversal);
}

fn in_the_wrong_state(tour: &mut Tour<'_>) {
    let players = json!({"players": ["pele"]});
    for (id, request) in [
        ("updateContest", Request::new("PATCH", "/v1/contests/paid").json(&json!({"title": "Later"}))),
        ("openContest", act("paid", "open")),
        ("startContest", act("paid", "start")),
        ("finishContest", act("paid", "finish")),
        ("cancelContest", act("paid", "cancel")),
        ("settleContest", act("a-draft", "settle")),
        ("repayContest", act("a-draft", "repay")),
        ("applyToContest", post("/v1/contests/paid/applications", &json!({"player": "pele"}))),
        ("acceptApplications", post("/v1/contests/paid/applications/accept", &players)),
        ("rejectApplications", post("/v1/contests/paid/applications/reject", &players)),
        ("withdrawApplication", Request::new("DELETE", "/v1/contests/paid/applications/pele")),
        ("listContestPlayers", Request::new("GET", "/v1/contests/a-draft/players")),
        ("listContestPrizes", Request::new("GET", "/v1/contests/a-draft/prizes")),
        ("listContestRefunds", Request::new("GET", "/v1/contests/a-draft/refunds")),
        ("banContestPlayer", act("paid", "players/contest-rich/ban")),
        (
            "correctScore",
            post("/v1/contests/paid/players/contest-rich/correct", &json!({"score": 1, "reason": "late"})),
        ),
        (
            "correctPlayerScore",
            post(
                "/v1/leaderboards/contest:paid/players/contest-rich/correct",
                &json!({"score": 1, "reason": "late"}),
            ),
        ),
        ("restoreContestPlayer", act("paid", "players/contest-rich/restore")),
    ] {
        tour.refused(id, 409, "contest_state", &request);
    }
}

/// With the maximum of leaderboards and applications.
pub(crate) fn narrow(tour: &mut Tour<'_>) {
    tour.example("createContest", 201);
    let open = tour.document.operation("openContest").example(0);
    tour.refused("openContest", 422, "too_many_boards", &open);
    tour.example("deleteLeaderboard", 204);
    tour.example("openContest", 200);
    // It has no members yet, and no leaderboard.
    let tight = json!({"id": "tight", "title": "Tight", "division_size": 1, "join_s": 60});
    tour.good("createContest", 201, post("/v1/contests", &tight));
    tour.good("openContest", 200, act("tight", "open"));
    tour.good("startContest", 200, act("tight", "start"));
    tour.example("applyToContest", 201);
    tour.example("putLeaderboard", 201);
    let joins = post("/v1/contests/tight/applications", &json!({"player": "zico"}));
    tour.refused("applyToContest", 422, "too_many_boards", &joins);
    let another = post("/v1/contests/friday-cup/applications", &json!({"player": "zico"}));
    tour.refused("applyToContest", 422, "contest_too_large", &another);
    let start = tour.document.operation("startContest").example(0);
    tour.refused("startContest", 422, "too_many_boards", &start);
}
