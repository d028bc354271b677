//! Periods over HTTP: open ones, closed ones, and that a closed year is a sort of that year's rows.
//!
//! Years are used because none ends while a test runs (but at New Year in UTC). Not here: boundaries and time zones
//! (unit tests of the calendar), wrong definitions and names (`bad_input`).

use crate::TALLY;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tally_testkit::http::segment;
use tally_testkit::model::{Board, Definition, Range, Record, Score};
use tally_testkit::{Client, Request, Rng, TestTally, audit, wait_until};

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/sample/goalscorers.csv");

fn yearly(keep: u32) -> Value {
    json!({"name": "yearly", "schedule": "0 0 1 1 *", "keep": keep})
}

fn put(client: &mut Client, board: &str, definition: &Value, status: u16) -> Value {
    client.put(&format!("/v1/leaderboards/{board}"), definition).expect(status)
}

fn submit(client: &mut Client, board: &str, row: &Value) -> tally_testkit::Response {
    client.post(&format!("/v1/leaderboards/{board}/scores"), row)
}

/// A page, a rank or the neighbours, of a window.
fn target(board: &str, path: &str, period: &str) -> String {
    let limit = if path == "scores" { "limit=1000&" } else { "" };
    format!("/v1/leaderboards/{board}/{path}?{limit}period={}", segment(period))
}

fn listed(client: &mut Client, board: &str) -> Vec<Value> {
    audit::read_pages(client, &format!("/v1/leaderboards/{board}/periods?limit=1000"), "items").0
}

/// The present year, by the server's clock.
fn this_year(client: &mut Client, board: &str) -> i32 {
    let items = listed(client, board);
    let open = items.iter().find(|item| item["state"] == "open").expect("one is open");
    open["start"].as_str().expect("an instant")[..4].parse().expect("a year")
}

/// Sums by year: of the rows (date, player, score) in order.
fn years<'a>(rows: impl Iterator<Item = (&'a str, String, i64)>) -> BTreeMap<i32, Board> {
    let mut sums: BTreeMap<i32, BTreeMap<String, (i64, String)>> = BTreeMap::new();
    for (date, player, score) in rows {
        let year = date[..4].parse().expect("a year");
        let sum = sums.entry(year).or_default().entry(player).or_default();
        *sum = (sum.0 + score, format!("{date}T00:00:00.000000Z"));
    }
    let record = |(player, (sum, at))| Record { player, score: Score::Int(sum), subscore: 0, at };
    let definition = Definition::of_json(&json!({"update": "sum"}));
    let board = |sums: BTreeMap<String, _>| Board::of(definition, sums.into_iter().map(record).collect());
    sums.into_iter().map(|(year, sums)| (year, board(sums))).collect()
}

fn check_page(client: &mut Client, board: &str, period: &str, expected: &Board) {
    let (entries, pages) = audit::read_pages(client, &target(board, "scores", period), "entries");
    assert_eq!(entries, expected.entries(&Range::default()), "{board} {period}");
    for page in pages {
        assert_eq!(page["total"], json!(expected.total()), "{board} {period}");
        assert_eq!(page["board"], board);
    }
}

/// Every way to read a window returns a sort of its rows.
fn check_part(client: &mut Client, board: &str, year: i32, expected: &Board) {
    let period = format!("yearly:{year}-01-01");
    check_page(client, board, &period, expected);
    let whole = expected.entries(&Range::default());
    let base = target(board, "scores", &period).replace("limit=1000", "limit=7");
    let (entries, _) = audit::read_pages(client, &base, "entries");
    assert_eq!(entries, whole, "in small pages");
    let reversed = expected.entries(&Range { worst_first: true, ..Range::default() });
    assert_eq!(audit::read_pages(client, &format!("{base}&order=worst"), "entries").0, reversed);
    let cut = Range { offset: 3, min: Some(Score::Int(20)), max: Some(Score::Int(90)), ..Range::default() };
    let page = client.get(&format!("{base}&offset=3&min=20&max=90")).expect(200);
    let wanted: Vec<Value> = expected.entries(&cut).into_iter().take(7).collect();
    assert_eq!(page["entries"], json!(wanted), "a range of {period}");
    assert_eq!(page["period"], json!(period));

    for (at, entry) in whole.iter().enumerate() {
        let player = entry["player"].as_str().expect("a name");
        let path = format!("players/{}", segment(player));
        let place = client.get(&target(board, &path, &period)).expect(200);
        for member in ["rank", "score", "at"] {
            assert_eq!(place[member], entry[member], "{member} of {player} in {period}");
        }
        assert_eq!(place["total"], json!(whole.len()));
        assert_eq!(place["percentile"].as_f64(), expected.percentile(player), "{player} in {period}");
        assert_eq!(place["period"], json!(period));
        let around = format!("{}&above=2&below=3", target(board, &format!("{path}/around"), &period));
        let around = client.get(&around).expect(200);
        let near = &whole[at.saturating_sub(2)..whole.len().min(at + 4)];
        assert_eq!(around["entries"], json!(near), "around {player} in {period}");
    }
    let mut asked: Vec<&str> = whole.iter().step_by(3).filter_map(|entry| entry["player"].as_str()).collect();
    asked.truncate(20);
    asked.push("nobody");
    let among = target(board, "among", &period);
    let among = client.post(&among, &json!({"players": asked})).expect(200);
    assert_eq!(among["entries"], json!(expected.among(&asked)), "among each other in {period}");
    assert_eq!(among["missing"], json!(["nobody"]));
    let nobody = target(board, "players/nobody", &period);
    client.get(&nobody).refused(404, "player_not_ranked");
}

/// `[period, rank, total, score]` of each window of a reply.
fn windows(answer: &Value) -> Value {
    let all = answer["windows"].as_array().unwrap_or_else(|| panic!("no windows: {answer}"));
    all.iter().map(|one| json!([one["period"], one["rank"], one["total"], one["score"]])).collect()
}

/// A rule whose present instance began today, with the one before in its grace, and an instant in that one. Makes the leaderboard
/// `days`.
pub(crate) fn began_today(client: &mut Client) -> (Value, String) {
    let daily = json!({"periods": [{"name": "daily", "schedule": "0 0 * * *"}]});
    put(client, "days", &daily, 201);
    let today = listed(client, "days")[0]["starts_at"].as_str().expect("an instant").to_owned();
    let number = |text: &str| text.parse::<u32>().expect("a number");
    let (year, month, day) = (number(&today[..4]), number(&today[5..7]), number(&today[8..10]));
    let rule = json!({"name": "yearly", "schedule": format!("0 0 {day} {month} *"), "grace_s": 604_800});
    (rule, format!("{}-12-31T12:00:00Z", year - 1))
}

#[test]
fn a_submit_has_its_rank_in_each_window_if_it_asks() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    put(&mut client, "both", &json!({"periods": [yearly(50)]}), 201);
    let year = this_year(&mut client, "both");
    let (open, past) = (format!("yearly:{year}-01-01"), format!("{}-12-31T23:59:59Z", year - 1));
    let asking = |row: &Value| Request::new("POST", "/v1/leaderboards/both/scores?windows=all").json(row);
    // A score of last year counts for all time alone.
    let late = client.send(&asking(&json!({"player": "a", "score": 9, "at": past}))).expect(200);
    assert_eq!(windows(&late), json!([["all_time", 1, 1, 9]]));
    let once = asking(&json!({"player": "b", "score": 5})).idempotent("once");
    assert_eq!(windows(&client.send(&once).expect(200)), json!([["all_time", 2, 2, 5], [open, 1, 1, 5]]));
    // The best of the year is another record than that of all time.
    let better = client.send(&asking(&json!({"player": "a", "score": 7}))).expect(200);
    assert_eq!(windows(&better), json!([["all_time", 1, 2, 9], [open, 1, 2, 7]]));
    // A retry has the ranks of now, and need not ask as the first request did.
    let again = client.send(&once);
    assert!(again.is_replay());
    assert_eq!(windows(&again.expect(200)), json!([["all_time", 2, 2, 5], [open, 2, 2, 5]]));
    let plain =
        Request::new("POST", "/v1/leaderboards/both/scores").json(&json!({"player": "b", "score": 5}));
    let again = client.send(&plain.idempotent("once"));
    assert!(again.is_replay());
    assert_eq!(again.expect(200).get("windows"), None);
    // A banned player has records and no ranks, also in the answer to a retry.
    client.post("/v1/leaderboards/both/players/b/ban", &json!({})).expect(200);
    let banned = asking(&json!({"player": "b", "score": 6})).idempotent("banned");
    for _ in 0..2 {
        let answer = client.send(&banned).expect(200);
        assert_eq!(windows(&answer), json!([["all_time", null, null, 6], [open, null, null, 6]]));
    }
    let rows = json!({"scores": [
        {"board": "both", "player": "d", "score": 8},
        {"board": "none", "player": "d", "score": 8},
        {"board": "both", "player": "a", "score": 1},
    ]});
    let batch = Request::new("POST", "/v1/scores/batch?windows=all").json(&rows);
    let results = client.send(&batch).expect(200)["results"].clone();
    assert_eq!(windows(&results[0]), json!([["all_time", 2, 2, 8], [open, 1, 2, 8]]), "{results}");
    assert!(results[1]["error"].is_object() && results[1].get("windows").is_none(), "{results}");
    assert_eq!(windows(&results[2]), json!([["all_time", 1, 2, 9], [open, 2, 2, 7]]), "{results}");
    // So many ranks have a bound.
    let many =
        |rows: usize| json!({"scores": vec![json!({"board": "both", "player": "e", "score": 1}); rows]});
    let asking = |rows| Request::new("POST", "/v1/scores/batch?windows=all").json(&many(rows));
    let refused = client.send(&asking(201));
    refused.refused(400, "invalid_field");
    let told = refused.text();
    assert!(told.contains("must be an array of 1 to 200 objects with `windows=all`"), "{told}");
    client.get("/v1/leaderboards/both/players/e").refused(404, "player_not_ranked");
    let results = client.send(&asking(200)).expect(200)["results"].clone();
    assert_eq!(results.as_array().map(Vec::len), Some(200));
    client.post("/v1/scores/batch", &many(201)).expect(200);
}

#[test]
fn a_submit_counts_for_what_is_open() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    let only = json!({"all_time": false, "update": "sum", "periods": [yearly(50)]});
    let made = put(&mut client, "years", &only, 201);
    let told =
        json!([{"name": "yearly", "schedule": "0 0 1 1 *", "time_zone": "UTC", "keep": 50, "grace_s": 0}]);
    assert_eq!((&made["periods"], &made["counts"]), (&told, &json!({"yearly": 0})));
    assert_eq!(put(&mut client, "years", &only, 200), made);
    let both = json!({"update": "sum", "periods": [yearly(50)]});
    put(&mut client, "both", &both, 201);

    let year = this_year(&mut client, "years");
    let open = format!("yearly:{year}-01-01");
    let start = format!("{year}-01-01T00:00:00.000000Z");
    let end = format!("{}-01-01T00:00:00.000000Z", year + 1);
    let item = json!({"period": open, "name": "yearly", "starts_at": start, "ends_at": end, "start": start, "end": end,
        "state": "open", "total": 0});
    assert_eq!(listed(&mut client, "years"), [item], "open, though nobody has scored");
    assert_eq!(client.get(&target("years", "scores", "yearly")).expect(200)["period"], json!(open));

    let now = submit(&mut client, "years", &json!({"player": "a", "score": 3})).expect(200);
    assert_eq!((&now["period"], &now["rank"], &now["previous"]), (&json!(open), &json!(1), &Value::Null));
    assert_eq!(now.get("closed_periods"), None);
    // The boundary belongs to the next period, the microsecond before it to the last.
    let first = submit(&mut client, "years", &json!({"player": "a", "score": 4, "at": start})).expect(200);
    assert_eq!((&first["period"], &first["score"]), (&json!(open), &json!(7)));
    let last = format!("{}-12-31T23:59:59.999999Z", year - 1);
    let late = json!({"player": "a", "score": 9, "at": last});
    submit(&mut client, "years", &late).refused(409, "period_closed");
    let elsewhere = json!({"player": "a", "score": 9, "at": format!("{year}-01-01T00:59:59+01:00")});
    submit(&mut client, "years", &elsewhere).refused(409, "period_closed");
    let rows: Vec<Value> = ["years", "both", "years"]
        .iter()
        .zip([&late, &late, &json!({"player": "b", "score": 1})])
        .map(|(board, row)| {
            let mut row = row.clone();
            row["board"] = json!(board);
            row
        })
        .collect();
    let closed = json!([format!("yearly:{}-01-01", year - 1)]);
    let batch = Request::new("POST", "/v1/scores/batch").json(&json!({"scores": rows})).idempotent("once");
    for replayed in [None, Some(&json!(true))] {
        let answer = client.send(&batch).expect(200);
        let results = &answer["results"];
        assert_eq!(results[0]["error"]["code"], "period_closed", "{answer}");
        assert_eq!(results[1]["closed_periods"], closed, "{answer}");
        assert_eq!(results[1]["period"], "all_time");
        assert_eq!(results[2]["period"], json!(open), "{answer}");
        assert_eq!((results[1].get("replayed"), results[2].get("replayed")), (replayed, replayed));
    }
    let single = Request::new("POST", "/v1/leaderboards/both/scores").json(&late).idempotent("single");
    for _ in 0..2 {
        let answer = client.send(&single).expect(200);
        assert_eq!((&answer["closed_periods"], &answer["score"]), (&closed, &json!(18)), "{answer}");
    }

    let counts = |client: &mut Client, board: &str| {
        client.get(&format!("/v1/leaderboards/{board}")).expect(200)["counts"].clone()
    };
    assert_eq!(counts(&mut client, "years"), json!({"yearly": 2}));
    assert_eq!(counts(&mut client, "both"), json!({"all_time": 1, "yearly": 0}));
    client.get(&target("both", "players/a", "yearly")).refused(404, "player_not_ranked");
    assert_eq!(client.get(&target("years", "players/a", "all_time")).expect(200)["score"], 7);
    // Nobody played in the year before the leaderboard was made: it is an empty page.
    let empty = client.get(&target("years", "scores", "yearly:previous")).expect(200);
    assert_eq!((&empty["total"], &empty["entries"]), (&json!(0), &json!([])), "{empty}");
    client.get(&target("years", "players/a", "yearly:previous")).refused(404, "player_not_ranked");
}

/// A small file over three closed years, with equal sums and the first and last day of each.
fn small(year: i32) -> (String, BTreeMap<i32, Board>) {
    let mut rng = Rng::of("periods");
    let mut rows = Vec::new();
    for year in year - 3..year {
        for at in 0..300 {
            let (month, day) = match at {
                0 => (1, 1),
                1 => (12, 31),
                _ => (rng.between(1, 12), rng.between(1, 28)),
            };
            let who = format!("p{}", rng.below(60));
            rows.push((format!("{year}-{month:02}-{day:02}"), who, rng.between(1, 9)));
        }
    }
    rows.sort_by(|left, right| left.0.cmp(&right.0));
    let line = |text, (day, who, points): &(String, String, i64)| format!("{text}{day},{who},{points}\n");
    let text = rows.iter().fold("day,who,points\n".to_owned(), line);
    let boards = years(rows.iter().map(|(day, who, points)| (day.as_str(), who.clone(), *points)));
    (text, boards)
}

fn check_years(client: &mut Client, year: i32, expected: &BTreeMap<i32, Board>) {
    for (year, board) in expected {
        check_part(client, "years", *year, board);
    }
    let totals: Vec<Value> = listed(client, "years")
        .iter()
        .map(|item| json!([item["period"], item["state"], item["total"]]))
        .collect();
    let mut wanted = vec![json!([format!("yearly:{year}-01-01"), "open", 0])];
    for (year, board) in expected.iter().rev() {
        wanted.push(json!([format!("yearly:{year}-01-01"), "closed", board.total()]));
    }
    assert_eq!(totals, wanted, "newest first");
    let (walked, pages) = audit::read_pages(client, "/v1/leaderboards/years/periods?limit=1", "items");
    assert_eq!((walked, pages.len()), (listed(client, "years"), wanted.len()));
    let last = year - 1;
    for name in [
        "yearly:previous".to_owned(),
        format!("yearly:{last}-01-01"),
        format!("yearly:{last}-06-15"),
        format!("yearly:{last}-12-31"),
        format!("yearly:{last}-06-15T12:30"),
        format!("yearly:{last}-06-15T12:30:00.5Z"),
        format!("yearly:{year}-01-01T00:59:59+01:00"),
        format!("yearly:{}-12-31T23:00:00-01:00", last - 1),
    ] {
        let page = client.get(&target("years", "scores", &name)).expect(200);
        assert_eq!(page["period"], json!(format!("yearly:{last}-01-01")), "{name}");
        assert_eq!(page["entries"], json!(expected[&last].entries(&Range::default())), "{name}");
    }
    let open =
        client.get(&target("years", "scores", &format!("yearly:{year}-01-01T01:00:00+01:00"))).expect(200);
    assert_eq!((&open["period"], &open["total"]), (&json!(format!("yearly:{year}-01-01")), &json!(0)));
}

/// A server into whose closed periods a file is imported. While rows come, a ranking in Redis may refuse each attempt of the
/// scheduler to write the archive of a period.
fn takes_imports() -> TestTally {
    let mut server = TestTally::start(TALLY);
    server.allow("a board is changed all the time while the archive of a closed period is written");
    server
}

fn import(server: &TestTally, board: &str, path: &str, more: &[&str]) -> tally_testkit::command::Finished {
    server.run(&[&["import", "scores", board, path], more].concat())
}

#[test]
fn closed_years_are_a_sort_of_their_rows_whatever_happens() {
    let mut server = takes_imports();
    let mut client = server.client();
    put(&mut client, "years", &json!({"all_time": false, "update": "sum", "periods": [yearly(50)]}), 201);
    let year = this_year(&mut client, "years");
    let (text, mut expected) = small(year);
    let path = server.data().join("small.csv");
    std::fs::write(&path, text).expect("it is written");
    let path = path.to_str().expect("a path of text").to_owned();
    let columns = ["--player", "who", "--score", "points", "--at", "day"];
    import(&server, "years", &path, &columns).expect(0);
    check_years(&mut client, year, &expected);
    import(&server, "years", &path, &columns).expect(0);
    check_years(&mut client, year, &expected);

    server.terminate();
    server.restart();
    check_years(&mut server.client(), year, &expected);
    server.kill9();
    server.restart();
    let mut client = server.client();
    check_years(&mut client, year, &expected);

    // A ban or an erasure of a player reaches closed years, and lasts.
    for (verb, player) in [("ban", "p7"), ("ban", "p8"), ("restore", "p8")] {
        client.post(&format!("/v1/leaderboards/years/players/{player}/{verb}"), &json!({})).expect(200);
        for board in expected.values_mut() {
            if verb == "ban" { board.ban(player) } else { board.restore(player) }
        }
        check_years(&mut client, year, &expected);
    }
    client.delete("/v1/players/p9").expect(204);
    for board in expected.values_mut() {
        board.erase("p9");
    }
    check_years(&mut client, year, &expected);
    server.kill9();
    server.restart();
    let mut client = server.client();
    check_years(&mut client, year, &expected);
    // Removing is for open windows only.
    client.delete("/v1/leaderboards/years/players/p1").refused(404, "player_not_ranked");
    check_years(&mut client, year, &expected);
}

#[test]
fn periods_of_a_board_come_and_go() {
    let mut server = takes_imports();
    let mut client = server.client();
    put(&mut client, "b", &json!({"update": "sum", "periods": [yearly(50)]}), 201);
    let year = this_year(&mut client, "b");
    submit(&mut client, "b", &json!({"player": "a", "score": 5})).expect(200);
    let path = server.data().join("one.csv");
    std::fs::write(&path, format!("day,who\n{}-05-05,a\n", year - 1)).expect("it is written");
    let columns = ["--player", "who", "--score-value", "1", "--at", "day"];
    import(&server, "b", path.to_str().expect("a path of text"), &columns).expect(0);

    let monthly = json!({"name": "monthly", "schedule": "0 0 1 * *", "time_zone": "Asia/Seoul", "keep": 3, "grace_s": 60});
    let changed = put(&mut client, "b", &json!({"periods": [monthly, yearly(40)]}), 200);
    assert_eq!(
        changed["counts"],
        json!({"all_time": 1, "monthly": 0, "yearly": 1}),
        "an added one starts empty"
    );
    assert_eq!(changed["periods"][0], monthly);
    assert_eq!(changed["periods"][1]["keep"], 40);
    assert_eq!(put(&mut client, "b", &json!({}), 200), changed, "what is left out stays");
    let previous = client.get(&target("b", "players/a", "yearly:previous")).expect(200);
    assert_eq!((&previous["score"], &previous["total"]), (&json!(1), &json!(1)));
    submit(&mut client, "b", &json!({"player": "a", "score": 2})).expect(200);
    for (period, score) in [("monthly", 2), ("yearly", 7), ("all_time", 8)] {
        assert_eq!(client.get(&target("b", "players/a", period)).expect(200)["score"], score, "{period}");
    }

    let conflict = json!({"order": "ascending", "ties": "last", "periods": []});
    let refused = client.put("/v1/leaderboards/b", &conflict);
    refused.refused(409, "definition_conflict");
    let detail = refused.json()["detail"].as_str().expect("a detail").to_owned();
    assert!(detail.contains("order") && detail.contains("ties"), "{detail}");
    client.put("/v1/leaderboards/b", &json!({"all_time": false})).refused(409, "definition_conflict");
    assert_eq!(listed(&mut client, "b").len(), 3);

    // Nothing is deleted by a list that lacks a rule, before the caller says so.
    for lacks in [json!([monthly]), json!([]), json!([{"name": "years", "schedule": "0 0 1 1 *"}, monthly])] {
        let refused = client.put("/v1/leaderboards/b", &json!({"periods": lacks}));
        refused.refused(409, "period_has_history");
        let detail = refused.json()["detail"].as_str().expect("a detail").to_owned();
        assert!(detail.contains("`yearly`") || lacks == json!([]), "{detail}");
    }
    // Nor by a rule that keeps fewer closed periods than there are. One that keeps them all is accepted.
    put(&mut client, "b", &json!({"periods": [monthly, yearly(1)]}), 200);
    let fewer = json!({"periods": [monthly, yearly(0)]});
    let refused = client.put("/v1/leaderboards/b", &fewer);
    refused.refused(409, "period_has_history");
    let detail = refused.json()["detail"].as_str().expect("a detail").to_owned();
    assert!(detail.contains("`yearly`"), "{detail}");
    assert_eq!(client.get(&target("b", "players/a", "yearly:previous")).expect(200)["total"], 1);
    client.put("/v1/leaderboards/b?remove_periods=1", &json!({})).refused(400, "invalid_parameter");
    assert_eq!(put(&mut client, "b", &json!({}), 200)["periods"].as_array().map(Vec::len), Some(2));
    put(&mut client, "b?remove_periods=true", &fewer, 200);
    wait_until("the closed period is deleted", || listed(&mut client, "b").len() == 2);
    put(&mut client, "b?remove_periods=true", &json!({"periods": [monthly]}), 200);
    let gone = ["yearly".to_owned(), "yearly:previous".into(), format!("yearly:{}-01-01", year - 1)];
    for restarted in [false, true] {
        if restarted {
            server.kill9();
            server.restart();
        }
        let mut client = server.client();
        for period in &gone {
            client.get(&target("b", "scores", period)).refused(404, "period_not_found");
        }
        let names: Vec<Value> = listed(&mut client, "b").iter().map(|item| item["name"].clone()).collect();
        assert_eq!(names, ["monthly"]);
    }
    // Under its old name it is another, without the old one's history.
    let mut client = server.client();
    let again = put(&mut client, "b", &json!({"periods": [yearly(50), monthly]}), 200);
    assert_eq!(again["counts"], json!({"all_time": 1, "monthly": 1, "yearly": 0}));
    assert_eq!(client.get(&target("b", "scores", "yearly:previous")).expect(200)["total"], 0);
    // One without scores goes at once.
    put(&mut client, "b", &json!({"periods": [monthly]}), 200);
    put(&mut client, "b?remove_periods=true", &json!({"periods": []}), 200);
    assert_eq!(listed(&mut client, "b"), Vec::<Value>::new());
}

#[test]
fn goals_by_year() {
    let server = takes_imports();
    let mut client = server.client();
    put(&mut client, "goals", &json!({"update": "sum", "periods": [yearly(200)]}), 201);
    let columns = ["--player", "scorer", "--score-value", "1", "--at", "date"];
    let columns = [&columns[..], &["--where", "own_goal=FALSE", "--missing", "NA"]].concat();
    import(&server, "goals", SAMPLE, &columns).expect(0);
    let text = std::fs::read_to_string(SAMPLE).expect("the sample is shipped");
    let goal = |line| {
        let fields: Vec<&str> = str::split(line, ',').collect();
        assert_eq!(fields.len(), 8, "no field has a comma: {line}");
        let scorer = fields[4].trim_matches('"').replace("\"\"", "\"");
        (fields[6] == "FALSE" && scorer != "NA").then_some((fields[0], scorer, 1))
    };
    let expected = years(text.lines().skip(1).filter_map(goal));
    assert!(expected.len() > 80, "{} years", expected.len());
    for (year, board) in &expected {
        check_page(&mut client, "goals", &format!("yearly:{year}-01-01"), board);
    }
    let shown = listed(&mut client, "goals");
    let closed = shown.iter().filter(|item| item["total"] != json!(0)).rev();
    let wanted: Vec<Value> =
        expected.iter().map(|(year, board)| json!([format!("yearly:{year}-01-01"), board.total()])).collect();
    assert_eq!(closed.map(|item| json!([item["period"], item["total"]])).collect::<Vec<_>>(), wanted);
}
