//! Imports from the command line: each line once, however often the command is run or killed.
//!
//! Also `POST /v1/imports`, by which they are done. Not here: malformed chunks (`bad_input`).

use crate::TALLY;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tally_testkit::command::{Finished, command};
use tally_testkit::{DatabaseKind, GIVE_UP, Request, ScratchDatabase, TestTally};

const GOALS: &str = "\
date,team,scorer,own_goal,minute
1916-07-02,Chile,NA,FALSE,44
1916-07-02,Uruguay,Isabelino Gradín,FALSE,55
1916-07-02,Uruguay,Isabelino Gradín,FALSE,70
1930-07-13,France,\"Laurent, Lucien\",FALSE,19
1930-07-14,USA,Ramón González,TRUE,45
1930-07-15,Argentina,Luis Monti,FALSE
not a date,Argentina,Luis Monti,FALSE,81
1930-07-16,Chile,Carlos Vidal,FALSE,3
";
const COLUMNS: [&str; 10] = [
    "--player",
    "scorer",
    "--score-value",
    "1",
    "--at",
    "date",
    "--where",
    "own_goal=FALSE",
    "--missing",
    "NA",
];

fn file(server: &TestTally, name: &str, text: &str) -> PathBuf {
    let path = server.data().join(name);
    std::fs::write(&path, text).expect("it is written");
    path
}

fn import(server: &TestTally, board: &str, path: &Path, more: &[&str]) -> Finished {
    let path = path.to_str().expect("a path of text");
    server.run(&[&["import", "scores", board, path], more].concat())
}

fn goals(server: &TestTally, path: &Path, more: &[&str]) -> Finished {
    import(server, "goals", path, &[&COLUMNS[..], more].concat())
}

/// The board by an export: `player score date`, best first.
fn shown(server: &TestTally, board: &str) -> Vec<String> {
    let text = server.run(&["export", board, "--format", "json"]).expect(0).to_owned();
    let line = |line: &str| {
        let entry: Value = serde_json::from_str(line).expect("JSON");
        let text = |name: &str| entry[name].as_str().expect("text").to_owned();
        format!("{} {} {}", text("player"), entry["score"], &text("at")[..10])
    };
    text.lines().map(line).collect()
}

const EXPECTED: [&str; 3] =
    ["Isabelino Gradín 2 1916-07-02", "Laurent, Lucien 1 1930-07-13", "Carlos Vidal 1 1930-07-16"];

#[test]
fn a_file_is_imported_once_with_and_without_a_server() {
    for running in [false, true] {
        let mut server = TestTally::start(TALLY);
        if !running {
            server.terminate();
        }
        let path = file(&server, "goals.csv", GOALS);
        let missing = goals(&server, &path, &[]);
        missing.expect(1);
        assert!(missing.stderr.contains("--create"), "{}", missing.stderr);
        let done = goals(&server, &path, &["--create", "update=sum"]);
        assert!(done.expect(0).contains("imported 4 rows"), "{}", done.stdout);
        for word in ["3 rejected", "1 left out"] {
            assert!(done.stdout.contains(word), "no {word:?} in {}", done.stdout);
        }
        assert_eq!(shown(&server, "goals"), EXPECTED);

        let again = goals(&server, &path, &["--create", "update=sum"]);
        assert!(again.expect(0).contains("before"), "it says so: {}", again.stdout);
        assert_eq!(shown(&server, "goals"), EXPECTED, "and changes nothing");
        goals(&server, &path, &["--again"]).expect(0);
        let doubled =
            ["Isabelino Gradín 4 1916-07-02", "Laurent, Lucien 2 1930-07-13", "Carlos Vidal 2 1930-07-16"];
        assert_eq!(shown(&server, "goals"), doubled);
        if !running {
            server.restart();
        }
    }
}

#[test]
fn a_file_with_another_delimiter_is_named_and_imported() {
    let server = TestTally::start(TALLY);
    for (name, sign, flag) in [("semicolons", ";", ";"), ("tabs", "\t", "\\t")] {
        let path = file(&server, &format!("{name}.csv"), &"player,points\nann,3\nbob\n".replace(',', sign));
        let columns = ["--player", "player", "--score", "points", "--create", "update=sum"];
        let refused = import(&server, name, &path, &columns);
        refused.expect(2);
        let advice = format!("add --delimiter '{flag}'");
        assert!(refused.stderr.contains(&advice), "no {advice:?} in {}", refused.stderr);
        let done = import(&server, name, &path, &[&columns[..], &["--delimiter", flag]].concat());
        assert!(done.expect(0).contains("imported 1 rows") && done.stdout.contains("1 rejected"), "{done:?}");
        let text = format!("login_id{sign}name\n{name}{sign}Ann\n");
        let path = file(&server, &format!("{name}-members.csv"), &text);
        let path = path.to_str().expect("a path of text");
        let refused = server.run(&["import", "members", path]);
        refused.expect(2);
        assert!(refused.stderr.contains(&advice), "no {advice:?} in {}", refused.stderr);
        let done = server.run(&["import", "members", path, "--delimiter", flag]);
        assert!(done.expect(0).contains("imported 1 members"), "{done:?}");
    }
    let wrong = server.run(&["import", "members", "members.csv", "--delimiter", "and"]);
    wrong.expect(2);
    assert!(wrong.stderr.contains("must be one character"), "{}", wrong.stderr);
}

fn rejects(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).expect("there is a file of rejects");
    text.lines().map(str::to_owned).collect()
}

#[test]
fn rejects_have_their_line_and_reason() {
    let server = TestTally::start(TALLY);
    let path = file(&server, "goals.csv", GOALS);
    goals(&server, &path, &["--create", "update=sum"]).expect(0);
    let rejects = rejects(&server.data().join("goals.rejects.csv"));
    assert_eq!(rejects.len(), 4, "{rejects:#?}");
    assert!(rejects[0].starts_with("line,reason,date,team"), "{rejects:#?}");
    for (row, (line, reason)) in
        rejects[1..].iter().zip([("2,", "missing"), ("7,", "5"), ("8,", "not a date")])
    {
        assert!(row.starts_with(line) && row.contains(reason), "line {line} because of {reason}: {row}");
    }
    // Refused by the server: a score that the board cannot hold.
    let path = file(&server, "points.csv", "player,points\na,1\nb,9223372036854775808\nc,1.5\nd,3\ne,\n");
    let done = import(
        &server,
        "points",
        &path,
        &["--player", "player", "--score", "points", "--create", "", "--strict"],
    );
    assert!(done.expect(1).contains("3 rejected"), "{}", done.stdout);
    assert_eq!(
        server.run(&["export", "points"]).expect(0).lines().count(),
        3,
        "strict takes the good lines too"
    );
}

#[test]
fn the_contract_s_name_of_the_rejects() {
    let server = TestTally::start(TALLY);
    let path = file(&server, "goals.csv", GOALS);
    goals(&server, &path, &["--create", "update=sum"]).expect(0);
    let names: Vec<String> = std::fs::read_dir(server.data())
        .expect("it is there")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.contains("rejects"))
        .collect();
    assert_eq!(names, ["goals.rejects.csv"], "FILE.csv has FILE.rejects.csv");
}

#[test]
fn filters_and_scores_of_columns() {
    let server = TestTally::start(TALLY);
    let text = "who,points,round,cheat\na,5,1,no\nb,7,1,yes\nc,9,2,no\nd,-,1,no\ne,4,1,?\n";
    let path = file(&server, "points.csv", text);
    for (board, more, expected) in [
        ("1", vec![], "c9 b7 a5 e4"),
        ("2", vec!["--where", "cheat=no"], "c9 a5"),
        ("3", vec!["--where", "cheat!=yes"], "c9 a5 e4"),
        ("4", vec!["--where", "cheat=no", "--where", "round=1"], "a5"),
        ("5", vec!["--missing", "-", "--missing", "?"], "c9 b7 a5 e4"),
        ("6", vec!["--create", "order=ascending,ties=player"], "e4 a5 b7 c9"),
    ] {
        let create: &[&str] = if more.contains(&"--create") { &[] } else { &["--create", ""] };
        let args = [&["--player", "who", "--score", "points"][..], &more, create].concat();
        import(&server, board, &path, &args).expect(0);
        let shown: Vec<String> =
            shown(&server, board).iter().map(|line| line.split(' ').take(2).collect::<String>()).collect();
        assert_eq!(shown.join(" "), expected, "{more:?}");
    }
    let column = import(&server, "1", &path, &["--player", "nobody", "--score", "points"]);
    column.expect(2);
    assert!(column.stderr.contains("who, points"), "it says what there is: {}", column.stderr);
    let file = import(&server, "1", Path::new("no such file.csv"), &["--player", "who", "--score", "points"]);
    file.expect(1);
    assert!(file.stderr.contains("no such file.csv"), "{}", file.stderr);
}

#[test]
fn a_killed_import_continues_where_it_was() {
    let server = TestTally::start(TALLY);
    let (rows, players) = (tally_testkit::rng::soak(60_000), 50);
    let text: String = (0..rows).map(|row| format!("p{}\n", row % players)).collect();
    let path = file(&server, "many.csv", &format!("who\n{text}"));
    server.client().put("/v1/leaderboards/many", &json!({"update": "sum"})).expect(201);
    let sum = || -> u64 {
        let page = server.client().get("/v1/leaderboards/many/scores?limit=1000").expect(200);
        page["entries"].as_array().expect("entries").iter().filter_map(|entry| entry["score"].as_u64()).sum()
    };
    let args =
        ["import", "scores", "many", path.to_str().expect("a path"), "--player", "who", "--score-value", "1"];
    let mut killed = 0;
    for least in [1, 20_000] {
        let mut importer = command(TALLY, &args);
        importer.arg("--data").arg(server.data()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut importer = importer.spawn().expect("it starts");
        let began = Instant::now();
        while sum() < least {
            assert!(began.elapsed() < GIVE_UP, "it never has {least} rows");
            std::thread::sleep(Duration::from_millis(1));
        }
        importer.kill().expect("it can be killed");
        let status = importer.wait().expect("it ends");
        killed += usize::from(status.code().is_none());
        let now = sum();
        assert!(now >= least && now <= rows as u64, "{now}");
    }
    assert!(killed > 0, "every import was faster than its killer");
    let done = server.run(&args);
    done.expect(0);
    assert!(done.stderr.contains("continuing"), "{}", done.stderr);
    assert_eq!(sum(), rows as u64, "each line counts once");
    assert!(server.run(&args).expect(0).contains("before"));
    assert_eq!(sum(), rows as u64);
}

fn chunk(before: u64, after: u64, last: bool, rows: &[(u64, &str, Value)]) -> Request {
    let head = json!({"board": "b", "digest": "0a".repeat(32), "lines_before": before, "lines_after": after, "last": last});
    let one = |(line, player, score): &(u64, &str, Value)| {
        json!({"line": line, "player": player, "score": score}).to_string()
    };
    let body = rows.iter().map(one).fold(head.to_string(), |body, row| format!("{body}\n{row}"));
    Request::new("POST", "/v1/imports").body("application/x-ndjson", body)
}

#[test]
fn chunks_are_taken_once_and_in_order() {
    let mut server = TestTally::start(TALLY);
    let mut client = server.client();
    client.put("/v1/leaderboards/b", &json!({"update": "sum"})).expect(201);
    let progress = format!("/v1/imports/b/{}", "0a".repeat(32));
    let is = |lines: u64, taken: u64, refused: u64, finished: bool| json!({"lines": lines, "taken": taken, "refused": refused, "finished": finished, "refused_rows": [], "rows": []});
    assert_eq!(client.get(&progress).expect(200), is(0, 0, 0, false));
    let first = chunk(0, 3, false, &[(2, "a", json!(1)), (3, "b", json!(2))]);
    assert_eq!(client.send(&first).expect(200), is(3, 2, 0, false));
    let again = client.send(&first);
    assert!(again.is_replay());
    assert_eq!(again.expect(200), is(3, 2, 0, false));
    client.send(&chunk(9, 10, false, &[])).refused(409, "import_out_of_order");

    server.kill9();
    server.restart();
    let mut client = server.client();
    assert_eq!(client.get(&progress).expect(200), is(3, 2, 0, false));
    let second = chunk(3, 6, true, &[(4, "a", json!(10)), (5, "c", json!("x1")), (6, "c", json!(3))]);
    client.send(&second).refused(400, "invalid_field");
    let second = chunk(3, 6, true, &[(4, "a", json!(10)), (5, "c", json!(0.5)), (6, "c", json!(3))]);
    let done = client.send(&second).expect(200);
    assert_eq!((&done["lines"], &done["taken"], &done["finished"]), (&json!(6), &json!(4), &json!(true)));
    let row = &done["refused_rows"][0];
    assert_eq!((&row["line"], &row["code"]), (&json!(5), &json!("invalid_field")));
    assert_eq!(done["rows"], done["refused_rows"], "the older name");
    assert_eq!(done["refused"], 1, "every refused line is counted");
    assert_eq!(client.get(&progress).expect(200), is(6, 4, 1, true));
    assert!(client.send(&second).is_replay());
    client.send(&chunk(6, 7, true, &[(7, "z", json!(1))])).refused(409, "import_repeated");
    let page = client.get("/v1/leaderboards/b/scores").expect(200);
    let shown: Vec<_> = page["entries"]
        .as_array()
        .expect("entries")
        .iter()
        .map(|one| (&one["player"], &one["score"]))
        .collect();
    assert_eq!(shown, [(&json!("a"), &json!(11)), (&json!("c"), &json!(3)), (&json!("b"), &json!(2))]);
}

const MEMBERS: &str = "\
login_id,password,pin,phone_number,name,player,balance
ann,correct horse,1234,010-5555-0001,Ann,ann,500
bob,,,,,,
cid,,12,,,,
ann,,,,Other,,
dee,,,010 5555 0001,,,
eve,,,,\"Eve
of two lines\",,0
fay,,,,,ann,
gus,,,,,,1.5
hal,,,,,,1000000000000000
ian,1234567,,,,,
";

#[test]
fn members_are_imported_once_with_and_without_a_server() {
    for running in [false, true] {
        let mut server = TestTally::start(TALLY);
        if !running {
            server.terminate();
        }
        let path = file(&server, "members.csv", MEMBERS);
        let import = |more: &[&str]| {
            server.run(&[&["import", "members", path.to_str().expect("a path of text")], more].concat())
        };
        let done = import(&["--strict"]);
        assert!(done.expect(1).contains("imported 4 members"), "{}", done.stdout);
        assert!(done.stdout.contains("6 rejected"), "{}", done.stdout);
        let rejects = std::fs::read_to_string(path.with_extension("rejects.csv")).expect("it is there");
        for line in [
            "4,pin: must be 4 to 8 digits,cid",
            "5,login_id: ",
            "6,phone_number: ",
            "9,player: ",
            "10,balance: must be",
            "12,password: must have at least 8 characters",
        ] {
            assert!(rejects.contains(&format!("\n{line}")), "no {line:?} in {rejects}");
        }
        let again = import(&["--strict"]);
        assert!(again.expect(0).contains("was imported before: 4 members"), "{}", again.stdout);
        let verified = server.run(&["verify"]);
        assert!(
            verified.expect(0).contains("4 members, 4 wallets, 2 entries, 2 movements"),
            "{}",
            verified.stdout
        );
        if !running {
            server.restart();
        }
        let found = server.client().get("/v1/members?login_id=ann").expect(200);
        let ann = &found["items"][0];
        assert_eq!((&ann["name"], &ann["player"]), (&json!("Ann"), &json!("ann")), "{ann}");
    }
    let server = TestTally::stopped(TALLY);
    let path = file(&server, "bad.csv", "login_id,sex\nann,f\n");
    let bad = server.run(&["import", "members", path.to_str().expect("a path of text")]);
    bad.expect(2);
    assert!(bad.stderr.contains("`sex` means nothing here; there are: login_id, password"), "{}", bad.stderr);
}

/// The command digests passwords itself, so no server sees them: it refuses those that the API refuses, in the same words.
#[test]
fn an_import_refuses_the_passwords_that_the_api_refuses() {
    let server = TestTally::start_set(TALLY, &[("TALLY_MEMBERS_PASSWORD_LENGTH_MIN", "10")]);
    // Characters count, not bytes.
    let passwords =
        ["x".into(), "y".repeat(9), "z".repeat(10), "é".repeat(9), "é".repeat(10), "l".repeat(257)];
    let rows: String =
        passwords.iter().enumerate().map(|(at, text)| format!("imported{at},{text}\n")).collect();
    let path = file(&server, "passwords.csv", &format!("login_id,password\n{rows}"));
    let done = server.run(&["import", "members", path.to_str().expect("a path of text")]);
    assert!(done.expect(0).contains("imported 2 members") && done.stdout.contains("4 rejected"), "{done:?}");
    let rejects = std::fs::read_to_string(path.with_extension("rejects.csv")).expect("it is there");
    let rejects: Vec<&str> = rejects.lines().skip(1).collect();
    let mut local = server.local();
    let mut refused = Vec::new();
    for (at, password) in passwords.iter().enumerate() {
        let member = json!({"login_id": format!("made{at}"), "name": "M", "password": password});
        let answer = local.post("/v1/members", &member);
        if answer.status == 201 {
            continue;
        }
        answer.refused(400, "invalid_field");
        let problem = answer.json();
        let why = problem["errors"][0]["detail"].as_str().expect("a reason").to_owned();
        refused.push(format!("{},password: {why},imported{at},{password}", at + 2));
    }
    assert_eq!(rejects, refused);
}

/// A server elsewhere may have another rule than the settings of the machine that imports.
#[test]
fn the_server_says_how_short_imported_passwords_may_be() {
    let mut server = TestTally::start_set(TALLY, &[("TALLY_MEMBERS_PASSWORD_LENGTH_MIN", "12")]);
    let url = format!("http://{}", server.address());
    for here in ["1", "64"] {
        let rows = format!("login_id,password\nann{here},12 letters..\nbob{here},11 letters.\n");
        let path = file(&server, &format!("elsewhere{here}.csv"), &rows);
        // The running server has the setting of its start.
        server.set("TALLY_MEMBERS_PASSWORD_LENGTH_MIN", here);
        let done = server.run(&["import", "members", path.to_str().expect("a path of text"), "--url", &url]);
        assert!(done.expect(0).contains("imported 1 members"), "{}", done.stdout);
        let rejects = std::fs::read_to_string(path.with_extension("rejects.csv")).expect("it is there");
        assert!(rejects.contains("\n3,password: must have at least 12 characters"), "{rejects}");
    }
}

/// Seeds twice, the second time further, with a server and without one, and replays the ledger.
fn seeded(server: &mut TestTally) {
    let seed = |server: &TestTally, members: &str, transactions: &str| {
        server
            .run(&["seed", "wallets", "--members", members, "--transactions", transactions])
            .expect(0)
            .to_owned()
    };
    let text = seed(server, "30", "2500");
    for words in
        ["30 members made", "2500 transactions with 5000 entries", "password  tally-seed", "01000000001"]
    {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
    let again = seed(server, "30", "2500");
    assert!(again.contains("0 members made") && again.contains("0 transactions"), "{again}");
    server.restart();
    let further = seed(server, "40", "100");
    assert!(further.contains("10 members made") && further.contains("100 transactions"), "{further}");
    let whole = "40 members, 40 wallets, 5240 entries, 2640 movements and 0 holds";
    let beside = server.run(&["verify"]);
    assert!(beside.expect(0).contains(whole) && !beside.stderr.contains("once more"), "{beside:?}");
    server.run(&["seed", "scores", "seeded", "--players", "2500"]).expect(0);
    let further = server.run(&["seed", "scores", "seeded", "--players", "3000"]);
    assert!(further.expect(0).contains("500 scores on `seeded`"), "{}", further.stdout);
    let total = server.client().get("/v1/leaderboards/seeded").expect(200);
    assert_eq!(total["counts"]["all_time"].as_u64(), Some(3000), "{total}");
    server.terminate();
    let alone = server.run(&["verify"]);
    assert!(alone.expect(0).contains(whole), "{}", alone.stdout);
    let left = std::fs::read_dir(server.data()).expect("it is there").flatten();
    assert!(!left.map(|one| one.file_name()).any(|name| name.to_string_lossy().starts_with("verify")));
}

/// Scores of every player of a board, page by page.
fn scores_of(server: &TestTally, board: &str) -> BTreeMap<String, i64> {
    let (mut client, mut found, mut cursor) = (server.client(), BTreeMap::new(), String::new());
    loop {
        let page = client.get(&format!("/v1/leaderboards/{board}/scores?limit=1000{cursor}")).expect(200);
        for row in page["entries"].as_array().expect("rows") {
            let name = row["player"].as_str().expect("a player").to_owned();
            assert_eq!(found.insert(name, row["score"].as_i64().expect("a score")), None);
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return found,
        }
    }
}

#[test]
fn scores_seeded_without_a_server_are_those_seeded_through_one() {
    const PLAYERS: usize = 21_000;
    let mut server = TestTally::start(TALLY);
    let seed = |server: &TestTally, board: &str, players: usize| {
        server.run(&["seed", "scores", board, "--players", &players.to_string()]).expect(0).to_owned()
    };
    let mut client = server.client();
    let weekly = json!({"periods": [{"name": "week", "schedule": "0 0 * * 1"}]});
    for (board, definition) in
        [("through", json!({"update": "sum"})), ("beside", json!({"update": "sum"})), ("weekly", weekly)]
    {
        client.put(&format!("/v1/leaderboards/{board}"), &definition).expect(201);
    }
    seed(&server, "through", PLAYERS);
    seed(&server, "beside", 100);
    // Some had scores before, one of them before all names and one after.
    let named: Vec<String> = scores_of(&server, "through").into_keys().collect();
    for player in [&named[50], &named[10_500], &named[PLAYERS - 1], "aaa", "zzz"] {
        for board in ["through", "beside"] {
            let score = json!({"player": player, "score": 1_000_000});
            client.post(&format!("/v1/leaderboards/{board}/scores"), &score).expect(200);
        }
    }
    server.terminate();
    let text = seed(&server, "beside", PLAYERS);
    assert!(text.contains("20900 scores on `beside`"), "{text}");
    assert!(seed(&server, "beside", PLAYERS).contains("0 scores on `beside`"));
    // A missing board is made; where scores count for more, a server does it.
    assert!(seed(&server, "new", 10).contains("10 scores on `new`"));
    assert!(seed(&server, "weekly", 10).contains("10 scores on `weekly`"));
    server.restart();
    let (through, beside) = (scores_of(&server, "through"), scores_of(&server, "beside"));
    assert_eq!(through.len(), PLAYERS + 2);
    assert!(through == beside, "the same scores");
    assert!(through[&named[10_500]] > 1_000_000, "added to what was there");
    assert_eq!(scores_of(&server, "new").len(), 10);
    let week = server.client().get("/v1/leaderboards/weekly/scores?period=week").expect(200);
    assert_eq!(week["entries"].as_array().map(Vec::len), Some(10), "{week}");
    // A running server goes on where the command was.
    assert!(seed(&server, "beside", PLAYERS + 5).contains("5 scores on `beside`"));
}

#[test]
fn a_file_is_seeded_in_balance() {
    let mut server = TestTally::stopped(TALLY);
    server.set("TALLY_STORE_URL", "");
    server.set("TALLY_RANKING_URL", "memory");
    seeded(&mut server);
}

#[test]
fn a_database_is_seeded_in_balance_and_a_broken_row_is_named() {
    let database = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let url = database.create_database();
    let mut server = TestTally::stopped(TALLY);
    server.set("TALLY_STORE_URL", &url);
    seeded(&mut server);
    let name = url.rsplit('/').next().expect("it ends in its name");
    database.sql(&format!("UPDATE {name}.wallets SET balance = balance + 1"));
    let broken = server.run(&["verify"]);
    let text = broken.expect(1);
    assert!(text.contains("its balance is ") && text.contains("41 rows disagree"), "{text}");
    // A row that is wrong is wrong in both readings, and named once.
    assert_eq!(text.matches("WRONG ").count(), 42, "{text}");
    assert!(broken.stderr.contains("the store is read once more"), "{broken:?}");
}

#[test]
fn shards_are_seeded_in_balance() {
    let database = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let urls = [database.create_database(), database.create_database()];
    let mut server = TestTally::stopped(TALLY);
    server.set("TALLY_STORE_URL", &urls.join(","));
    server.set("TALLY_RANKING_URL", "memory");
    seeded(&mut server);
}

/// A spreadsheet takes a text such as `=HYPERLINK(…)` for a formula; the names come back as they were.
#[test]
fn an_exported_name_is_no_formula_and_comes_back() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    let names = ["=HYPERLINK(\"http://x\")", "+1", "-1", "@sum", "'=1", "ann", "'ann"];
    for board in ["from", "to"] {
        client.put(&format!("/v1/leaderboards/{board}"), &json!({})).expect(201);
    }
    for (name, score) in names.iter().zip(1..) {
        client.post("/v1/leaderboards/from/scores", &json!({"player": name, "score": score})).expect(200);
    }
    let exported = server.run(&["export", "from"]).expect(0).to_owned();
    let mut reader = csv::Reader::from_reader(exported.as_bytes());
    for row in reader.records().map(|row| row.expect("a row")) {
        assert!(!row[1].starts_with(['=', '+', '-', '@']), "{row:?}");
    }
    import(&server, "to", &file(&server, "from.csv", &exported), &["--score", "score", "--player", "player"])
        .expect(0);
    let players = |board: &str| {
        let page = server.client().get(&format!("/v1/leaderboards/{board}/scores")).expect(200);
        let entries = page["entries"].as_array().expect("a list").clone();
        entries.iter().map(|entry| entry["player"].as_str().expect("a name").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(players("to"), players("from"));
    assert_eq!(players("to").len(), names.len());
}
