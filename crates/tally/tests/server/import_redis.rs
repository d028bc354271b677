//! Sorted sets of a Redis that become leaderboards, are compared with them, and what has no counterpart; and the commands of
//! `docs/how-to/coming-from.md`.
//!
//! Not here: chunks, and rejects of files (`api/import.rs`).

use crate::TALLY;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use tally_testkit::command::{Finished, command};
use tally_testkit::{RedisKind, Reply, RespClient, ScratchRedis, TestTally, rng, wait_until};

const PAGE: &str = include_str!("../../../../docs/how-to/coming-from.md");

/// A server, a Redis, and a folder for what is read of it.
struct Sides {
    tally: TestTally,
    redis: ScratchRedis,
    files: tempfile::TempDir,
}

impl Sides {
    fn start() -> Self {
        let files = tempfile::tempdir().expect("a folder");
        Self { tally: TestTally::start(TALLY), redis: ScratchRedis::start(RedisKind::Redis7, &[]), files }
    }

    fn url(&self) -> String {
        format!("redis://{}", self.redis.address())
    }

    fn add(&self, key: &str, members: &[(&[u8], &str)]) {
        let mut client = self.redis.client();
        for (member, score) in members {
            let added = client.call(&[b"ZADD", key.as_bytes(), score.as_bytes(), member]);
            assert!(matches!(added, Reply::Integer(_)), "{added:?}");
        }
    }

    fn import(&self, pattern: &str, more: &[&str]) -> Finished {
        let (url, files) = (self.url(), self.files.path().to_str().expect("a path of text"));
        self.tally.run(&[&["import", "redis", &url, "--pattern", pattern, "--files", files], more].concat())
    }

    fn compare(&self, pattern: &str, more: &[&str]) -> Finished {
        let url = self.url();
        self.tally.run(&[&["compare", "redis", &url, "--pattern", pattern], more].concat())
    }

    /// The players of a leaderboard, best first, with their scores.
    fn shown(&self, board: &str) -> Vec<(String, Value)> {
        let (mut client, mut shown) = (self.tally.client(), Vec::new());
        let base = format!("/v1/leaderboards/{board}/scores?limit=1000");
        let mut path = base.clone();
        loop {
            let page = client.get(&path).expect(200);
            for entry in page["entries"].as_array().expect("entries") {
                shown.push((entry["player"].as_str().expect("a name").to_owned(), entry["score"].clone()));
            }
            match page["next_cursor"].as_str() {
                Some(cursor) => path = format!("{base}&cursor={cursor}"),
                None => return shown,
            }
        }
    }

    /// The leaderboards that the server has.
    fn boards(&self) -> Vec<Value> {
        let page = self.tally.client().get("/v1/leaderboards").expect(200);
        page["items"].as_array().expect("items").clone()
    }
}

fn texts(reply: Reply) -> Vec<String> {
    let Reply::Array(replies) = reply else { panic!("an array: {reply:?}") };
    let text = |reply| match reply {
        Reply::Bulk(bytes) => String::from_utf8(bytes).expect("UTF-8"),
        other => panic!("a text: {other:?}"),
    };
    replies.into_iter().map(text).collect()
}

fn best_first(client: &mut RespClient, key: &str) -> Vec<String> {
    texts(client.call(&["ZREVRANGE", key, "0", "-1"]))
}

#[track_caller]
fn has(text: &str, words: &str) {
    assert!(text.contains(words), "no {words:?} in {text}");
}

/// Many members, of which some have equal scores.
fn fill(redis: &ScratchRedis, key: &str, members: usize) {
    let add = |number: usize| {
        let score = format!("{}", (number * 7919 % members) as f64 / 2.0);
        let tied = if number.is_multiple_of(5) { "12.5".to_owned() } else { score };
        ["ZADD".to_owned(), key.to_owned(), tied, format!("p{number}")]
    };
    let commands: Vec<_> = (0..members).map(add).collect();
    for commands in commands.chunks(10_000) {
        redis.client().pipeline(commands);
    }
}

#[test]
fn sorted_sets_become_leaderboards_with_the_ranks_of_redis() {
    let sides = Sides::start();
    fill(&sides.redis, "lb:season", 2_500);
    let numbers: [(&[u8], &str); 5] = [
        (b"ann", "1e300"),
        (b"=bob", "-0.25"),
        (b"inf", "inf"),
        ("구글,\"x\"\n".as_bytes(), "9007199254740994"),
        (b"down", "-inf"),
    ];
    sides.add("lb:odd", &numbers);
    let mut client = sides.redis.client();
    client.call(&["SET", "lb:note", "x"]);
    let done = sides.import("lb:*", &["--create"]);
    has(done.expect(0), "2 sorted sets under `lb:*`; other keys that stay there: 1 of type string");
    has(&done.stdout, "imported 2500 rows into `season`");
    has(&done.stdout, "imported 5 rows into `odd`");
    for board in ["season", "odd"] {
        let players: Vec<String> = sides.shown(board).into_iter().map(|(player, _)| player).collect();
        assert_eq!(players, best_first(&mut client, &format!("lb:{board}")), "equal scores, too");
    }
    let scores: Vec<Value> = sides.shown("odd").into_iter().map(|(_, score)| score).collect();
    assert_eq!(
        scores,
        [json!("inf"), json!(1e300), json!(9_007_199_254_740_994.0), json!(-0.25), json!("-inf")]
    );
    has(
        sides.compare("lb:*", &[]).expect(0),
        "2 leaderboards, 2505 players: no difference in players, scores",
    );

    // Again, it changes nothing unless it is to read the sets once more.
    client.call(&["ZADD", "lb:season", "99999", "p7"]);
    let again = sides.import("lb:*", &["--create"]);
    has(again.expect(0), "season.csv was imported into `season` before: 2500 rows");
    assert_ne!(sides.shown("season")[0].0, "p7");
    let differs = sides.compare("lb:*", &[]);
    has(differs.expect(1), "0 only in Redis, 0 only in tally, 1 with another score; ");
    has(&differs.stdout, "  season: \"p7\" has 99999 in Redis and ");
    has(&differs.stdout, "  season: rank 1 is \"p7\" in Redis and ");
    sides.import("lb:*", &["--again"]).expect(0);
    assert_eq!(sides.shown("season")[0], ("p7".to_owned(), json!(99999.0)));
    sides.compare("lb:*", &[]).expect(0);
}

#[test]
fn a_dry_run_says_what_has_no_counterpart_and_changes_nothing() {
    let sides = Sides::start();
    let long = [b'x'; 129];
    sides.add(
        "lb:season",
        &[(b"ann", "30"), (b"bob", "20.5"), (b"\xff\xfe", "7"), (&long, "1"), (b"cy", "1e17")],
    );
    let mut client = sides.redis.client();
    client.call(&["PEXPIRE", "lb:season", "100000000"]);
    client.call(&["HSET", "lb:names", "ann", "Ann"]);
    let before = client.call(&["INFO", "commandstats"]);
    let done = sides.import("lb:*", &["--dry-run", "--create", "score=int64,ties=first"]);
    for words in [
        "1 sorted sets under `lb:*`; other keys that stay there: 1 of type hash",
        "\"lb:season\" -> season: 5 members, makes the leaderboard (order descending, update latest, score int64, ties first)",
        "  the key expires in Redis; a leaderboard stays",
        "  equal scores: Redis orders them by name, this leaderboard otherwise",
        "  1 without a counterpart: the player is not UTF-8, such as \"\\xff\\xfe\" with 7",
        "  1 without a counterpart: the player must be at most 128 bytes of UTF-8",
        "  1 without a counterpart: the score must be an integer",
        "  1 beyond 2^53: Redis may have lost the last digits of these scores",
        "dry run: nothing was changed; members without a counterpart: 3",
    ] {
        has(done.expect(0), words);
    }
    sides.import("lb:*", &["--dry-run", "--create", "score=int64", "--strict"]).expect(1);
    has(
        sides.import("lb:*", &["--dry-run"]).expect(0),
        "members, needs --create for the leaderboard (order descending",
    );
    assert_eq!(sides.boards(), [] as [Value; 0]);
    assert_eq!(std::fs::read_dir(sides.files.path()).expect("a folder").count(), 0);
    // The Redis has run no command that writes.
    let stats = |reply: Reply| match reply {
        Reply::Bulk(text) => String::from_utf8(text).expect("UTF-8"),
        other => panic!("a text: {other:?}"),
    };
    let (before, after) = (stats(before), stats(client.call(&["INFO", "commandstats"])));
    let names = |text: &str| -> Vec<String> {
        let names = text.lines().filter_map(|line| line.strip_prefix("cmdstat_")?.split_once(':'));
        names.map(|(name, _)| name.to_owned()).collect()
    };
    let known = names(&before);
    let new: Vec<String> = names(&after).into_iter().filter(|name| !known.contains(name)).collect();
    let reads = ["scan", "type", "zcard", "pttl", "zscan", "info", "hello", "select", "ping"];
    let reads_only = |name: &String| reads.contains(&name.as_str()) || name.starts_with("client");
    assert!(new.iter().all(reads_only), "{new:?}");
}

#[test]
fn members_without_a_counterpart_go_to_a_file_of_rejects() {
    let sides = Sides::start();
    sides.add("lb:season", &[(b"ann", "30"), (b"bob", "20.5"), (b"\xff\xfe", "7"), (b"", "1")]);
    let done = sides.import("lb:*", &["--create", "score=int64,update=best", "--strict"]);
    has(done.expect(1), "imported 1 rows into `season`");
    has(&done.stdout, "3 rejected, see ");
    let rejects = std::fs::read(sides.files.path().join("lb%3Aseason.rejects.csv")).expect("rejects");
    let rejects = String::from_utf8_lossy(&rejects).into_owned();
    for reason in ["the player is missing", "the player is not UTF-8", "must be an integer"] {
        has(&rejects, reason);
    }
    assert_eq!(sides.shown("season"), [("ann".to_owned(), json!(30))]);
    let compared = sides.compare("lb:*", &[]);
    has(compared.expect(0), "1 players: no difference");
    has(&compared.stdout, "members of Redis without a counterpart: 3");
}

#[test]
fn a_killed_import_continues_and_counts_each_member_once() {
    let sides = Sides::start();
    let members = rng::soak(20_000);
    let commands: Vec<_> = (0..members)
        .map(|number| ["ZADD".to_owned(), "many".to_owned(), "1".to_owned(), format!("p{number}")])
        .collect();
    commands.chunks(10_000).for_each(|commands| drop(sides.redis.client().pipeline(commands)));
    sides.tally.client().put("/v1/leaderboards/many", &json!({"update": "sum"})).expect(201);
    let total = || {
        let page = sides.tally.client().get("/v1/leaderboards/many").expect(200);
        page["counts"]["all_time"].as_u64().unwrap_or(0)
    };
    let (url, files) = (sides.url(), sides.files.path().to_str().expect("a path of text"));
    let args = ["import", "redis", &url, "--pattern", "many", "--files", files];
    let mut importer = command(TALLY, &args);
    importer.arg("--data").arg(sides.tally.data()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut importer = importer.spawn().expect("it starts");
    wait_until("a chunk is imported", || total() > 0);
    importer.kill().expect("it can be killed");
    importer.wait().expect("it ends");
    // Redis goes on; what was read before is what is imported.
    sides.add("many", &[(b"late", "1")]);
    let done = sides.tally.run(&args);
    done.expect(0);
    has(&done.stderr, "was read before");
    assert_eq!(total(), members as u64);
    assert!(sides.shown("many").iter().all(|(_, score)| *score == json!(1)), "each once");
    has(sides.tally.run(&args).expect(0), "before");
    let refused = sides.import("many", &["--again"]);
    refused.expect(2);
    has(&refused.stderr, "would count them twice");
}

#[test]
fn a_score_that_was_written_to_both_meanwhile_stays() {
    let sides = Sides::start();
    sides.add("lb:season", &[(b"ann", "10"), (b"bob", "20")]);
    sides.import("lb:*", &["--create"]).expect(0);
    // Another leaderboard gets the same lines, after a newer score.
    let mut game = RespClient::connect(sides.tally.resp());
    assert_eq!(game.call(&["ZADD", "lb:season", "99", "ann"]), Reply::Integer(1));
    let done = sides.import("lb:*", &["--board-from", "{board}"]);
    has(done.expect(0), "imported 2 rows into `lb:season`");
    let expected = [("ann".to_owned(), json!(99.0)), ("bob".to_owned(), json!(20.0))];
    assert_eq!(sides.shown("lb%3Aseason"), expected);
}

/// Players are personal data, and two imports would write one file.
#[test]
fn the_files_are_private_and_one_import_at_a_time_works_in_their_folder() {
    let sides = Sides::start();
    sides.add("lb:season", &[(b"ann", "10")]);
    let lock = File::create(sides.files.path().join(".lock")).expect("it is made");
    lock.try_lock().expect("no import works there");
    let refused = sides.import("lb:*", &["--create"]);
    refused.expect(1);
    has(&refused.stderr, "another import works in ");
    assert_eq!(sides.boards(), [] as [Value; 0]);
    // A program that another thread is starting may have the file, and would keep the lock of one that is only closed.
    lock.unlock().expect("it was locked");
    sides.import("lb:*", &["--create"]).expect(0);
    let files = std::fs::read_dir(sides.files.path()).expect("a folder").map(|file| {
        let file = file.expect("a file");
        let mode = file.metadata().expect("a file").permissions().mode() & 0o777;
        (file.file_name().into_string().expect("a text"), mode)
    });
    let files: Vec<(String, u32)> = files.filter(|(name, _)| name != ".lock").collect();
    assert_eq!(files, [("lb%3Aseason.csv".to_owned(), 0o600)], "no part stays");
}

#[test]
fn what_cannot_be_done_is_said_before_anything_is() {
    let sides = Sides::start();
    sides.add("lb:season", &[(b"ann", "10")]);
    sides.add("lb:a@b", &[(b"ann", "10")]);
    sides.tally.client().put("/v1/leaderboards/season", &json!({})).expect(201);
    for (pattern, more, code, words) in [
        ("board:*", &["--create"][..], 1, "has no sorted set under `board:*`"),
        (
            "lb:*",
            &["--create"],
            2,
            "the key \"lb:a@b\" is the leaderboard `a@b` by `lb:{board}`, which must not contain `@`",
        ),
        (
            "lb:s*",
            &["--create", "--board-from", "x:{board}"],
            2,
            "the key \"lb:season\" does not fit `x:{board}`",
        ),
        ("lb:s*", &["--board-from", "lb"], 2, "must have {board} in it"),
        ("lb:s*", &["--board-from", "{board}"], 1, "there is no leaderboard `lb:season`: --create makes"),
        (
            "lb:s*",
            &["--create", "ties=last", "--board-from", "lb:{board}"],
            1,
            "is there with another `ties`",
        ),
    ] {
        let done = sides.import(pattern, more);
        done.expect(code);
        has(&done.stderr, words);
    }
    assert_eq!(sides.boards().len(), 1);
    assert_eq!(sides.shown("season"), []);
    let missing = sides.compare("lb:s*", &["--board-from", "{board}"]);
    missing.expect(1);
    has(&missing.stderr, "there is no leaderboard `lb:season`");
}

#[test]
fn a_password_comes_from_a_file_alone() {
    let redis = ScratchRedis::start(RedisKind::Valkey9, &["--requirepass", "pass/w@rd"]);
    let sides = Sides { redis, ..Sides::start() };
    let mut client = sides.redis.client();
    client.pipeline(&[vec!["AUTH", "pass/w@rd"], vec!["ZADD", "season", "1", "ann"]]);
    let address = sides.redis.address();
    let file = |name: &str, text: &str| {
        let path = sides.files.path().join(name);
        std::fs::write(&path, text).expect("it is written");
        path.to_str().expect("a path of text").to_owned()
    };
    let run = |args: &[&str]| {
        sides.tally.run(&[&["import", "redis", "--pattern", "season", "--dry-run"], args].concat())
    };
    let (url, open) = (format!("redis://{address}"), format!("redis://:pass%2Fw%40rd@{address}"));
    let (password, right) = (file("password", "pass/w@rd\n"), file("url", &open));
    for args in [&[&url, "--redis-password-file", &password][..], &["--redis-url-file", &right]] {
        has(run(args).expect(0), "\"season\" -> season: 1 members");
    }
    let (wrong, both) = (file("wrong", "x"), [&*open, "--redis-password-file", &password]);
    for (args, code, words) in [
        (&[&*url][..], 1, "NOAUTH"),
        (&[&url, "--redis-password-file", &wrong], 1, "Redis"),
        (&[&open], 2, "which every account of this machine sees"),
        (&both, 2, "which every account of this machine sees"),
        (&["--redis-url-file", &right, "--redis-password-file", &password], 2, "both have a password"),
        (&[], 2, "required arguments"),
        (&["redis-cluster://a:1"], 1, "run the command for each"),
    ] {
        let done = run(args);
        done.expect(code);
        has(&done.stderr, words);
        assert!(!done.stderr.contains("rd@"), "{}", done.stderr);
    }
}

#[test]
fn rounds_of_a_comparison_go_on_for_a_time() {
    let sides = Sides::start();
    sides.add("lb:season", &[(b"ann", "10"), (b"bob", "20")]);
    sides.import("lb:*", &["--create"]).expect(0);
    let url = sides.url();
    let args = ["compare", "redis", &url, "--pattern", "lb:*", "--every", "1s", "--for", "10m"];
    let mut rounds = command(TALLY, &args);
    rounds.arg("--data").arg(sides.tally.data()).stdout(Stdio::piped());
    let mut rounds = rounds.spawn().expect("it starts");
    let lines = BufReader::new(rounds.stdout.take().expect("it is piped")).lines();
    let second = lines.map_while(Result::ok).find(|line| line.contains(" round 2: "));
    rounds.kill().expect("it can be killed");
    rounds.wait().expect("it ends");
    has(
        &second.expect("a second round"),
        " round 2: 1 leaderboards, 2 players: no difference in players, scores and the first 100 ranks",
    );
    // The time is over before another round.
    has(
        sides.compare("lb:*", &["--every", "1s", "--for", "1s"]).expect(0),
        " round 1: 1 leaderboards, 2 players: no ",
    );
    sides.add("lb:season", &[(b"cy", "5")]);
    let mut game = RespClient::connect(sides.tally.resp());
    game.call(&["ZADD", "season", "1", "dan"]);
    let differs = sides.compare("lb:*", &["--ranks", "2"]);
    has(
        differs.expect(1),
        "3 players: 1 only in Redis, 1 only in tally, 0 with another score; 0 of the first 2 ranks differ",
    );
    has(&differs.stdout, "  season: \"cy\" is only in Redis, with 5");
    has(&differs.stdout, "  season: \"dan\" is only in tally, with 1");
}

/// A block of the page.
fn of_page(name: &str) -> &'static str {
    let block = PAGE.split(&format!("```{name}\n")).nth(1).expect("the page has the block");
    block.split("```").next().expect("it ends")
}

/// The same with this Redis in the place of that of the page. A command leaves the usual port out.
fn block(redis: &ScratchRedis, name: &str) -> String {
    let address = redis.address().to_string();
    let folder = format!("redis-{}-0", address.replace(':', "-"));
    let block = of_page(name).replace("10.0.0.7:6379", &address).replace("redis-10.0.0.7-6379-0", &folder);
    block.replace("//10.0.0.7 ", &format!("//{address} "))
}

/// A shell that finds the program under test, and this server.
fn shell(script: &str, server: &TestTally) -> Command {
    let programs = Path::new(TALLY).parent().expect("a folder").display();
    let path = std::env::var("PATH").expect("there is one");
    let mut shell = command("sh", &["-euc", script]);
    shell.env("PATH", format!("{programs}:{path}")).env("TALLY_DATA", server.data());
    shell
}

/// A text without its times.
fn timeless(text: &str) -> String {
    let seconds = regex_lite::Regex::new(r"in [0-9.]+ s \([0-9]+ rows/s\)").expect("a pattern");
    let instant = regex_lite::Regex::new(r"(?m)^[0-9-]+T[0-9:.]+Z ").expect("a pattern");
    instant.replace_all(&seconds.replace_all(text, "in a moment"), "now ").into_owned()
}

#[test]
fn the_commands_of_the_page_move_sorted_sets_and_compare_them() {
    let sides = Sides::start();
    sides.add("lb:kills", &[(b"ann", "7"), (b"bob", "5"), (b"cy", "3")]);
    sides.add(
        "lb:season",
        &[(b"ann", "30"), (b"bob", "20.5"), (b"cy", "10"), (b"dan", "10"), (b"\xff\xfe", "7")],
    );
    let mut client = sides.redis.client();
    client.call(&["PEXPIRE", "lb:kills", "100000000"]);
    client.call(&["SET", "lb:note", "x"]);
    let run = |name: &str| {
        let script = block(&sides.redis, &format!("sh {name}")).replace(" --every 30s --for 1h", "");
        let mut shell = shell(&script, &sides.tally);
        let done = shell.current_dir(sides.files.path()).output().expect("there is a shell");
        let stderr = String::from_utf8_lossy(&done.stderr).into_owned();
        (done.status.code(), timeless(&String::from_utf8_lossy(&done.stdout)), stderr)
    };
    let shown = |name: &str| timeless(&block(&sides.redis, &format!("text {name}")));
    for (name, code, printed) in [
        ("redis-dry-run", 0, "redis-dry-run"),
        ("redis-import", 0, "redis-import"),
        ("redis-compare", 0, "redis-compare"),
        ("redis-compare", 1, "redis-differs"),
    ] {
        if code == 1 {
            let mut game = RespClient::connect(sides.tally.resp());
            assert_eq!(game.call(&["ZADD", "season", "25", "bob"]), Reply::Integer(0));
        }
        let (ended, text, stderr) = run(name);
        assert_eq!((ended, text), (Some(code), shown(printed)), "{stderr}");
    }
}

#[test]
fn the_command_of_the_page_imports_a_statistic_of_playfab() {
    let server = TestTally::start(TALLY);
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("statistic.csv"), of_page("csv playfab")).expect("it is written");
    let mut shell = shell(of_page("sh playfab"), &server);
    let done = shell.current_dir(folder.path()).output().expect("there is a shell");
    let (shown, printed) = (of_page("text playfab"), String::from_utf8_lossy(&done.stdout));
    assert_eq!(timeless(&printed), timeless(shown), "{}", String::from_utf8_lossy(&done.stderr));
    let page = server.client().get("/v1/leaderboards/kills/scores").expect(200);
    let first = &page["entries"][0];
    assert_eq!((&first["player"], &first["score"]), (&json!("8A1F2C3D4E5F6071"), &json!(420)));
}
