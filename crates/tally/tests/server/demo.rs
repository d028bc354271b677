//! `serve --demo`: the shipped football as leaderboards, the same figures however the filling went.
//!
//! The required content of the boards is added up here from the sample itself, in the plainest way. Not here: the import
//! that fills them (`import.rs`).

use crate::TALLY;
use crate::pages::run_page;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;
use tally_testkit::audit::{audit_board, boards, read_pages};
use tally_testkit::model::{Board, Definition, Range, Record, Score};
use tally_testkit::{Client, GIVE_UP, TestTally, wait_until};

const GOALSCORERS: &str = include_str!("../../sample/goalscorers.csv");
const RESULTS: &str = include_str!("../../sample/results.csv");

pub(crate) fn demo() -> TestTally {
    let mut server = TestTally::stopped(TALLY);
    server.add_arg("--demo");
    server
}

fn rows(text: &str) -> Vec<csv::StringRecord> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.records().collect::<Result<_, _>>().expect("the sample is CSV")
}

fn board(sums: BTreeMap<String, (i64, String)>) -> Board {
    let record = |(player, (score, day))| Record {
        player,
        score: Score::Int(score),
        subscore: 0,
        at: format!("{day}T00:00:00.000000Z"),
    };
    Board::of(Definition::of_json(&json!({"update": "sum"})), sums.into_iter().map(record).collect())
}

/// On a sum the instant is that of the newest row.
fn add(sums: &mut BTreeMap<String, (i64, String)>, player: &str, score: i64, day: &str) {
    let sum = sums.entry(player.to_owned()).or_default();
    sum.0 += score;
    if sum.1.as_str() < day {
        day.clone_into(&mut sum.1);
    }
}

/// The board `goals`, and how many own goals and rows without a scorer it leaves out.
fn goals() -> (Board, usize, usize) {
    let (mut sums, mut own, mut nobody) = (BTreeMap::new(), 0, 0);
    for row in rows(GOALSCORERS) {
        match (&row[6], &row[4]) {
            ("FALSE", "NA") => nobody += 1,
            ("FALSE", scorer) => add(&mut sums, scorer, 1, &row[0]),
            _ => own += 1,
        }
    }
    (board(sums), own, nobody)
}

/// The board `goals-by-year`: a year's goals by the year.
fn goals_by_year() -> BTreeMap<String, Board> {
    let mut years: BTreeMap<String, BTreeMap<String, (i64, String)>> = BTreeMap::new();
    for row in rows(GOALSCORERS).iter().filter(|row| &row[6] == "FALSE" && &row[4] != "NA") {
        add(years.entry(row[0][..4].to_owned()).or_default(), &row[4], 1, &row[0]);
    }
    years.into_iter().map(|(year, sums)| (year, board(sums))).collect()
}

fn check_years(client: &mut Client) {
    let (periods, _) = read_pages(client, "/v1/leaderboards/goals-by-year/periods?limit=50", "items");
    let mut expected = goals_by_year();
    for period in periods.iter().rev() {
        let name = period["period"].as_str().expect("a period has a name");
        let year = expected.remove(&period["start"].as_str().expect("a start")[..4]);
        let entries = year.map_or_else(Vec::new, |year| year.entries(&Range::default()));
        let target = format!("/v1/leaderboards/goals-by-year/scores?limit=1000&period={name}");
        let (found, pages) = read_pages(client, &target, "entries");
        assert!(found == entries, "{period}: {} and {}", found.len(), entries.len());
        assert_eq!((&pages[0]["total"], &period["total"]), (&json!(entries.len()), &json!(entries.len())));
    }
    assert!(expected.is_empty(), "years without a period: {:?}", expected.keys());
}

/// The board `points`, and how many matches have no result.
fn points() -> (Board, usize) {
    let (mut sums, mut unplayed) = (BTreeMap::new(), 0);
    for row in rows(RESULTS) {
        let (Ok(home), Ok(away)) = (row[3].parse::<u32>(), row[4].parse::<u32>()) else {
            unplayed += 1;
            continue;
        };
        let (to_home, to_away) = match home.cmp(&away) {
            std::cmp::Ordering::Greater => (3, 0),
            std::cmp::Ordering::Less => (0, 3),
            std::cmp::Ordering::Equal => (1, 1),
        };
        for (team, points) in [(&row[1], to_home), (&row[2], to_away)] {
            if points > 0 {
                add(&mut sums, team, points, &row[0]);
            }
        }
    }
    (board(sums), unplayed)
}

/// The figures that everyone can look up, then every entry.
fn check_boards(client: &mut Client) {
    let (entries, pages) = read_pages(client, "/v1/leaderboards/goals/scores?limit=1000", "entries");
    let top: Vec<Value> =
        entries.iter().take(2).map(|entry| json!([entry["player"], entry["score"]])).collect();
    assert_eq!(top, [json!(["Cristiano Ronaldo", 124]), json!(["Harry Kane", 75])]);
    assert_eq!(pages[0]["total"], 14_853);
    assert_eq!(entries.iter().filter_map(|entry| entry["score"].as_i64()).sum::<i64>(), 46_934);
    let page = client.get("/v1/leaderboards/points/scores?limit=3").expect(200);
    let top: Vec<Value> = page["entries"]
        .as_array()
        .expect("entries")
        .iter()
        .map(|entry| json!([entry["player"], entry["score"]]))
        .collect();
    assert_eq!(top, [json!(["Brazil", 2242]), json!(["England", 2152]), json!(["Argentina", 2054])]);
    for shown in boards(client) {
        let expected = match shown["board"].as_str() {
            Some("goals") => goals().0,
            Some("points") => points().0,
            _ => continue,
        };
        let found = audit_board(client, &shown);
        assert!(found.entries(&Range::default()) == expected.entries(&Range::default()), "{shown}");
    }
    check_years(client);
}

/// Omitted rows are reported, not silent.
fn check_told(server: &TestTally) {
    let ((_, own, nobody), (_, unplayed)) = (goals(), points());
    for words in [
        format!("{own} own goals"),
        format!("{nobody} rows without a scorer"),
        format!("{unplayed} matches without a result"),
    ] {
        server.wait_logged(&words);
    }
    assert!(!server.log().iter().any(|line| line.contains(" 0 scorers")), "{:?}", server.log());
}

#[test]
fn an_empty_directory_is_filled_and_then_served_as_it_is() {
    let mut server = demo();
    server.restart();
    check_boards(&mut server.client());
    check_told(&server);
    server.wait_logged("Harry%20Kane");
    let log = server.log();
    let hint = log.iter().find(|line| line.contains("curl") && line.contains("Harry%20Kane"));
    let address = server.address().to_string();
    assert!(hint.is_some_and(|hint| hint.contains(&address)), "it says what to try: {log:?}");

    let row = json!({"player": "Harry Kane", "score": 100});
    server.client().post("/v1/leaderboards/goals/scores", &row).expect(200);
    server.client().delete("/v1/leaderboards/points").expect(204);
    server.terminate();
    server.restart();
    let first = server.client().get("/v1/leaderboards/goals/scores?limit=1").expect(200);
    assert_eq!(
        (&first["entries"][0]["player"], &first["entries"][0]["score"]),
        (&json!("Harry Kane"), &json!(175))
    );
    assert_eq!(first["total"], 14_853);
    server.client().get("/v1/leaderboards/points").refused(404, "leaderboard_not_found");
}

/// Runs the commands that were printed after so many lines of the log, but those with this text. Returns what they print.
fn run_printed(server: &TestTally, before: usize, leaves_out: &str) -> String {
    let is_command = |line: &&String| {
        let words = ["  curl ", "  redis-cli ", "  REDISCLI_AUTH=", "  export "];
        words.iter().any(|word| line.starts_with(word)) || line.starts_with(&format!("  {TALLY} "))
    };
    let log = server.log();
    let printed: Vec<&String> = log[before..].iter().filter(is_command).collect();
    let script: Vec<&str> =
        printed.iter().map(|line| line.as_str()).filter(|line| !line.contains(leaves_out)).collect();
    let fails =
        "set -euo pipefail\ncurl() { command curl --silent --show-error --fail-with-body \"$@\"; echo; }\n";
    let mut bash = std::process::Command::new("bash");
    let done = bash.args(["-c", &format!("{fails}{}", script.join("\n"))]).output().expect("bash runs");
    let (out, errors) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{script:#?}\n{out}\n{errors}");
    assert!(script.len() > 8, "{script:#?}");
    out.into_owned()
}

#[test]
fn the_printed_commands_work_as_they_are() {
    let mut server = demo();
    server.restart();
    server.wait_logged("/v1/contests/world-cup-2026/finish");
    let said = run_printed(&server, 0, "nothing is left out");
    for words in ["Cristiano Ronaldo", "\"Harry Kane\"", "ok    ledger: ", "\"user0000001\""] {
        assert!(said.contains(words), "no {words:?} in {said}");
    }
    server.terminate();
    let before = server.log().len();
    server.set("TALLY_KEYS_REQUIRED", "true");
    server.restart();
    wait_until("the last command is printed", || {
        server.log()[before..].iter().any(|line| line.contains("/v1/contests/world-cup-2026/finish"))
    });
    run_printed(&server, before, "world-cup-2026/finish");
    server.client().get("/v1/leaderboards").refused(401, "unauthorized");
}

#[test]
fn what_is_no_demo_stays_as_it_is() {
    let mut server = TestTally::start(TALLY);
    let mut client = server.client();
    client.put("/v1/leaderboards/goals", &json!({"order": "ascending"})).expect(201);
    client.post("/v1/leaderboards/goals/scores", &json!({"player": "me", "score": 1})).expect(200);
    let before = client.get("/v1/leaderboards/goals/scores").expect(200);
    server.terminate();
    server.add_arg("--demo");
    server.restart();
    let mut client = server.client();
    assert_eq!(client.get("/v1/leaderboards").expect(200)["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(client.get("/v1/leaderboards/goals/scores").expect(200), before);
}

/// A tournament: its teams with their points, best first; equal points are in the order of the day of the last match.
fn tournament(name: &str, year: &str) -> Vec<(String, i64)> {
    let mut points: BTreeMap<String, i64> = BTreeMap::new();
    for row in rows(RESULTS).iter().filter(|row| &row[5] == name && row[0].starts_with(year)) {
        let goals = |at: usize| row[at].parse::<u32>().expect("it was played");
        let (to_home, to_away) = match goals(3).cmp(&goals(4)) {
            std::cmp::Ordering::Greater => (3, 0),
            std::cmp::Ordering::Less => (0, 3),
            std::cmp::Ordering::Equal => (1, 1),
        };
        *points.entry(row[1].to_owned()).or_default() += to_home;
        *points.entry(row[2].to_owned()).or_default() += to_away;
    }
    let mut all: Vec<_> = points.into_iter().collect();
    all.sort_by_key(|(_, points)| std::cmp::Reverse(*points));
    all
}

/// A contest, its state, and its teams with their points.
type Tournament = (&'static str, &'static str, Vec<(String, i64)>);

fn tournaments() -> [Tournament; 6] {
    [
        ("african-cup-2025", "draft", tournament("African Cup of Nations", "2025")),
        ("copa-america-2021", "cancelled", tournament("Copa América", "2021")),
        ("copa-america-2024", "open", tournament("Copa América", "2024")),
        ("euro-2024", "finished", tournament("UEFA Euro", "2024")),
        ("world-cup-2022", "settled", tournament("FIFA World Cup", "2022")),
        ("world-cup-2026", "running", tournament("FIFA World Cup", "2026")),
    ]
}

fn balance(client: &mut Client, team: &str) -> (String, String) {
    let found = client.get(&format!("/v1/members?player={}", team.replace(' ', "%20"))).expect(200);
    let id = found["items"][0]["id"].as_str().unwrap_or_else(|| panic!("no member is {team}")).to_owned();
    let wallet = client.get(&format!("/v1/wallets/{id}")).expect(200)["items"][0].clone();
    let text = |name: &str| wallet[name].as_str().expect("an amount").to_owned();
    (text("balance"), text("held"))
}

/// One contest in each state, each with the results of its tournament, and the money where it belongs.
fn check_contests(client: &mut Client) {
    let all = client.get("/v1/contests?limit=10").expect(200);
    let all = all["items"].as_array().expect("contests");
    assert_eq!(all.len(), tournaments().len());
    for (shown, (id, state, teams)) in all.iter().zip(tournaments()) {
        assert_eq!((&shown["id"], &shown["state"]), (&json!(id), &json!(state)));
        let has_started = !["draft", "open"].contains(&state);
        let members = if has_started { teams.len() } else { 0 };
        assert_eq!(shown["counts"]["players"], json!(members), "{id}");
        if !has_started {
            continue;
        }
        let entries = client.get(&format!("/v1/leaderboards/contest:{id}/scores?limit=100")).expect(200);
        let entries = entries["entries"].as_array().expect("entries").clone();
        let points: Vec<_> = entries.iter().map(|entry| entry["score"].as_i64().expect("points")).collect();
        assert_eq!(points, teams.iter().map(|(_, points)| *points).collect::<Vec<_>>(), "{id}");
        for entry in entries {
            let found = teams.iter().find(|(team, _)| *team == entry["player"]);
            assert_eq!(found.map(|(_, points)| json!(points)), Some(entry["score"].clone()), "{entry}");
        }
    }
    let open = &all[2]["counts"];
    assert_eq!((&open["pending"], &open["accepted"], &open["rejected"]), (&json!(7), &json!(8), &json!(1)));
    let prizes = client.get("/v1/contests/world-cup-2022/prizes").expect(200);
    let shown = |prize: &Value| json!([prize["rank"], prize["player"], prize["amount"]]);
    let prizes: Vec<Value> = prizes["items"].as_array().expect("prizes").iter().map(shown).collect();
    assert_eq!(
        prizes,
        [
            json!([1, "France", "100000"]),
            json!([2, "Argentina", "50000"]),
            json!([3, "Netherlands", "10000"]),
            json!([4, "Morocco", "10000"])
        ]
    );
    let refunds = client.get("/v1/contests/copa-america-2021/refunds?limit=100").expect(200);
    assert_eq!(refunds["items"].as_array().map(Vec::len), Some(10));
    // France played three times that cost something, and won; Bolivia got one fee back, and is rejected or holds another.
    assert_eq!(balance(client, "France"), ("107000".to_owned(), "0".to_owned()));
    assert_eq!(balance(client, "Qatar"), ("8000".to_owned(), "0".to_owned()));
    assert_eq!(balance(client, "Chile").0, "10000", "it plays in none that was not called off");
}

#[test]
fn contests_of_every_state_are_there_and_what_the_pages_show_works() {
    let mut server = demo();
    server.restart();
    check_contests(&mut server.client());
    let readme = include_str!("../../../../README.md");
    let page = include_str!("../../../../docs/contests.md");
    let of_contests = |block: &str| block.contains("/v1/contests");
    assert!(run_page(&server, page, of_contests) > 5 && run_page(&server, readme, of_contests) > 5);
    let states = |client: &mut Client| -> Vec<Value> {
        let all = client.get("/v1/contests").expect(200);
        all["items"].as_array().expect("contests").iter().map(|one| one["state"].clone()).collect()
    };
    let wanted = ["running", "cancelled", "open", "settled", "settled", "settled"];
    assert_eq!(states(&mut server.client()), wanted);
    server.run(&["verify"]).expect(0);
}

/// Every member once, every transfer once, and in balance.
fn check_wallets(server: &TestTally) {
    check_contests(&mut server.client());
    let teams: BTreeSet<String> =
        tournaments().into_iter().flat_map(|(_, _, teams)| teams).map(|(team, _)| team).collect();
    // Fees of four contests that started, those of one of them paid back, and four prizes.
    let fees: usize = [1, 3, 4, 5].map(|at| tournaments()[at].2.len()).iter().sum();
    let back = tournaments()[1].2.len();
    let verified = server.run(&["verify"]);
    let (members, one_sided) = (100 + teams.len(), teams.len() + fees + back + 4);
    let whole = format!(
        "{members} members, {members} wallets, {} entries, {} movements and",
        2100 + one_sided,
        1100 + one_sided
    );
    assert!(verified.expect(0).contains(&whole), "no {whole} in {}", verified.stdout);
    let found = server.client().get("/v1/members?login_id=user0000001").expect(200);
    assert_eq!(found["items"][0]["phone_number"], json!("01000000001"), "{found}");
}

/// Waits until so many rows of the demo are done, and asks for ranks then. Returns whether the filling was met, and whether they
/// were refused.
fn wait_for(client: &mut Client, rows: u64) -> (bool, bool) {
    let began = Instant::now();
    loop {
        let ready = client.get("/readyz");
        if ready.status == 200 {
            return (false, false);
        }
        assert!(began.elapsed() < GIVE_UP, "{}", ready.text());
        let at = ready.json();
        if at["phase"] == "demo" && at["done"].as_u64() >= Some(rows) {
            // It may be done by now.
            let answer = client.get("/v1/leaderboards/goals/scores");
            let is_refused = answer.status != 200;
            if is_refused {
                answer.refused(503, "loading");
            }
            return (true, is_refused);
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_filling_that_was_cut_short_goes_on_where_it_was() {
    let mut server = demo();
    let (mut cut, mut refused) = (0, 0);
    // In the first chunk, in every board, at the end; once by a regular end.
    for (rows, kill) in
        [(1, true), (15_000, true), (40_000, false), (60_000, true), (94_000, true), (140_000, true)]
    {
        server.launch();
        let (is_met, is_refused) = wait_for(&mut server.client(), rows);
        cut += u32::from(is_met);
        refused += u32::from(is_refused);
        if kill {
            server.kill9();
        } else {
            server.terminate();
        }
    }
    assert!(cut > 2, "the filling was met {cut} times only");
    assert!(refused > 0, "ranks were never refused while it was filled");
    server.restart();
    check_boards(&mut server.client());
    check_wallets(&server);
}
