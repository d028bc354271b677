//! Random operations against the model, for random definitions, with restarts and kills among the operations.
//!
//! One client, so that there is one order of events; every answer is compared whole. `TALLY_SEED` repeats a run,
//! `TALLY_SOAK` makes it longer. Not here: concurrency (`kill.rs`, `pages.rs`).

use crate::TALLY;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use tally_testkit::backends::share;
use tally_testkit::http::segment;
use tally_testkit::model::{Board, Definition, Range, Record, Score};
use tally_testkit::rng::soak;
use tally_testkit::{Client, Request, Response, Rng, TestTally};

const OPERATIONS: usize = 1_200;
const BOARDS: usize = 6;
/// Few players and scores, so that they collide.
const PLAYERS: [&str; 14] =
    ["a", "b", "c", "A", "aa", "é", "e\u{301}", "日本", "p/1", "p 1", "\n", "z", "zz", "~"];
const FAR: &str = "9";

struct Run {
    server: TestTally,
    client: Client,
    rng: Rng,
    boards: BTreeMap<String, Board>,
    profiles: BTreeMap<&'static str, Value>,
    /// The last instant that the server gave.
    newest: String,
    keys: u64,
}

impl Run {
    fn start(purpose: &str) -> Self {
        let server = TestTally::start(TALLY);
        let client = server.client();
        let (rng, boards, profiles) = (Rng::of(purpose), BTreeMap::new(), BTreeMap::new());
        let mut run = Self { server, client, rng, boards, profiles, newest: String::new(), keys: 0 };
        for _ in 0..BOARDS {
            run.create();
        }
        run
    }

    fn create(&mut self) {
        let name = format!("board {}", self.rng.below(BOARDS as u64 + 2));
        let definition = Definition::random(&mut self.rng);
        let target = format!("/v1/leaderboards/{}", segment(&name));
        let answer = self.client.put(&target, &definition.json());
        match self.boards.get(&name) {
            Some(board) if board.definition == definition => assert_eq!(answer.status, 200),
            Some(_) => answer.refused(409, "definition_conflict"),
            None => {
                answer.expect(201);
                self.boards.insert(name, Board::new(definition));
            }
        }
    }

    fn name(&mut self) -> String {
        let names: Vec<String> = self.boards.keys().cloned().collect();
        self.rng.pick(&names).clone()
    }

    fn player(&mut self) -> &'static str {
        PLAYERS[usize::try_from(self.rng.below(PLAYERS.len() as u64)).expect("small")]
    }

    fn score(&mut self, definition: &Definition) -> Score {
        let near = self.rng.between(-3, 3);
        match (definition.score, self.rng.below(40)) {
            ("int64", 0) => Score::Int(i64::MAX),
            ("int64", 1) => Score::Int(i64::MIN),
            ("int64", _) => Score::Int(near),
            (_, 0) => Score::Float(f64::INFINITY),
            (_, 1) => Score::Float(f64::NEG_INFINITY),
            // Quarters are exact, so sums are too.
            (_, _) => Score::Float(near as f64 / 4.0),
        }
    }

    /// A submit as a body, without its board.
    fn new_score(&mut self, definition: &Definition) -> Value {
        let mut body = json!({"player": self.player(), "score": self.score(definition).json()});
        if definition.subscore != "none" {
            body["subscore"] = json!(self.rng.between(-1, 1));
        }
        if self.rng.percent(40) {
            body["at"] = json!(format!("2026-01-01T00:00:0{}.000000Z", self.rng.below(4)));
        }
        body
    }

    /// Compares an answer, or a row of one, with the model's answer to the same submit.
    fn compare(&mut self, name: &str, body: &Value, answer: &Value, code: Option<&str>) {
        let board = self.boards.get_mut(name).expect("it is there");
        let definition = board.definition;
        let given = body["at"].as_str();
        // Without an instant the server gives one after all others; only a change shows it.
        let changed = answer["changed"] == json!(true);
        let at = given.or(if changed { answer["at"].as_str() } else { None }).unwrap_or(FAR).to_owned();
        if given.is_none() && changed {
            let moved =
                board.definition.update != "sum" || answer["at"].as_str() > Some(self.newest.as_str());
            assert!(moved, "{answer}");
            assert!(at > self.newest, "instants increase: {at} after {}", self.newest);
            self.newest.clone_from(&at);
        }
        let new = Record {
            player: body["player"].as_str().expect("a name").to_owned(),
            score: Score::of_json(definition.score, &body["score"]),
            subscore: body["subscore"].as_i64().unwrap_or(0),
            at,
        };
        match board.submit(new) {
            None => assert_eq!(code, Some("score_overflow"), "{body} on {name}: {answer}"),
            Some(mut expected) => {
                expected["board"] = json!(name);
                expected["period"] = json!("all_time");
                assert_eq!(answer, &expected, "{body} on {name} {definition:?}");
            }
        }
    }

    fn submit(&mut self) {
        let name = self.name();
        let definition = self.boards[&name].definition;
        let body = self.new_score(&definition);
        let mut request =
            Request::new("POST", format!("/v1/leaderboards/{}/scores", segment(&name))).json(&body);
        let with_key = self.rng.percent(20);
        if with_key {
            self.keys += 1;
            request = request.idempotent(&format!("key-{}", self.keys));
        }
        let answer = self.client.send(&request);
        self.compare(&name, &body, &answer.json(), Some(&answer.code()));
        if with_key && answer.status == 200 {
            let again = self.client.send(&request);
            assert!(again.is_replay());
            assert_eq!(again.json()["score"], answer.json()["score"]);
            assert_eq!(again.json()["rank"], answer.json()["rank"]);
        }
    }

    /// Rows of one batch are applied in order; ranks are those of their publication, so only the rest is compared.
    fn batch(&mut self) {
        let mut rows = Vec::new();
        for _ in 0..self.rng.between(1, 12) {
            let name = self.name();
            let definition = self.boards[&name].definition;
            let mut row = self.new_score(&definition);
            row["board"] = json!(name);
            rows.push(row);
        }
        let answer = self.client.post("/v1/scores/batch", &json!({"scores": rows})).expect(200);
        let results = answer["results"].as_array().expect("results");
        assert_eq!(results.len(), rows.len());
        for (row, result) in rows.iter().zip(results) {
            let name = row["board"].as_str().expect("a name").to_owned();
            self.compare(&name, row, result, result["error"]["code"].as_str());
        }
    }

    fn remove(&mut self) {
        let (name, player) = (self.name(), self.player());
        let target = format!("/v1/leaderboards/{}/players/{}", segment(&name), segment(player));
        let answer = self.client.delete(&target);
        if self.boards.get_mut(&name).expect("it is there").remove(player) {
            answer.expect(204);
        } else {
            answer.refused(404, "player_not_ranked");
        }
    }

    /// A change that may be sent with a key, and is then sent twice.
    fn change(&mut self, mut request: Request) -> Response {
        let with_key = self.rng.percent(30);
        if with_key {
            self.keys += 1;
            request = request.idempotent(&format!("key-{}", self.keys));
        }
        let answer = self.client.send(&request);
        if with_key && answer.status < 300 {
            let again = self.client.send(&request);
            assert!(again.is_replay(), "{again:?}");
            assert_eq!((again.status, again.text()), (answer.status, answer.text()));
        }
        answer
    }

    fn hide(&mut self) {
        let (name, player, banned) = (self.name(), self.player(), self.rng.percent(50));
        let verb = if banned { "ban" } else { "restore" };
        let target = format!("/v1/leaderboards/{}/players/{}/{verb}", segment(&name), segment(player));
        self.change(Request::new("POST", target)).expect(200);
        let board = self.boards.get_mut(&name).expect("it is there");
        if banned {
            board.ban(player);
        } else {
            board.restore(player);
        }
    }

    fn erase(&mut self) {
        let player = self.player();
        let answer = self.change(Request::new("DELETE", format!("/v1/players/{}", segment(player))));
        let mut known = self.profiles.remove(player).is_some();
        for board in self.boards.values_mut() {
            known |= board.erase(player);
        }
        if known {
            answer.expect(204);
        } else {
            answer.refused(404, "player_not_found");
        }
    }

    fn profile(&mut self) {
        let player = self.player();
        let target = format!("/v1/players/{}", segment(player));
        let mut profile = json!({"name": player.escape_debug().to_string()});
        if self.rng.percent(50) {
            profile["metadata"] = json!({"level": self.rng.below(100), "é": [null, {"deep": 0.5}]});
        }
        let new = !self.profiles.contains_key(player);
        let answer = self.change(Request::new("PUT", target).json(&profile));
        let mut shown = profile.clone();
        shown["player"] = json!(player);
        assert_eq!(answer.expect(if new { 201 } else { 200 }), shown);
        self.profiles.insert(player, profile);
    }

    fn among(&mut self) {
        let name = self.name();
        let asked: Vec<&str> = (0..self.rng.between(1, 20)).map(|_| self.player()).collect();
        let target = format!("/v1/leaderboards/{}/among", segment(&name));
        let answer = self.client.post(&target, &json!({"players": asked})).expect(200);
        let board = &self.boards[&name];
        assert_eq!(answer["entries"], json!(board.among(&asked)), "{asked:?} of {:?}", board.definition);
        let missing: BTreeSet<&str> =
            asked.iter().copied().filter(|player| board.rank(player).is_none()).collect();
        let told = answer["missing"].as_array().expect("a list");
        assert_eq!(told.len(), missing.len(), "each once: {answer}");
        assert_eq!(told.iter().filter_map(Value::as_str).collect::<BTreeSet<_>>(), missing);
    }

    /// The best of a board with their profiles.
    fn expanded(&mut self) {
        let name = self.name();
        let target = format!("/v1/leaderboards/{}/scores?expand=player&limit=5", segment(&name));
        let page = self.client.get(&target).expect(200);
        let mut expected: Vec<Value> =
            self.boards[&name].entries(&Range::default()).into_iter().take(5).collect();
        for entry in &mut expected {
            let profile = entry["player"].as_str().and_then(|player| self.profiles.get(player));
            entry["profile"] = json!(profile);
        }
        assert_eq!(page["entries"], json!(expected), "{name}");
    }

    fn delete(&mut self) {
        if self.boards.len() < 3 {
            return self.create();
        }
        let name = self.name();
        self.client.delete(&format!("/v1/leaderboards/{}", segment(&name))).expect(204);
        self.boards.remove(&name);
    }

    fn place(&mut self) {
        let (name, player) = (self.name(), self.player());
        let target = format!("/v1/leaderboards/{}/players/{}", segment(&name), segment(player));
        let answer = self.client.get(&target);
        let board = &self.boards[&name];
        let (Some(record), Some(rank)) = (board.get(player), board.rank(player)) else {
            return answer.refused(404, "player_not_ranked");
        };
        let mut expected = record.json(&board.definition, Some(rank));
        expected["board"] = json!(name);
        expected["period"] = json!("all_time");
        expected["total"] = json!(board.total());
        expected["percentile"] = json!(board.percentile(player));
        assert_eq!(answer.expect(200), expected, "{:?}", board.definition);
    }

    fn around(&mut self) {
        let (name, player) = (self.name(), self.player());
        let (above, below) = (self.rng.below(4), self.rng.below(4));
        let target = format!(
            "/v1/leaderboards/{}/players/{}/around?above={above}&below={below}",
            segment(&name),
            segment(player)
        );
        let answer = self.client.get(&target);
        let board = &self.boards[&name];
        let entries = board.entries(&Range::default());
        let Some(at) = entries.iter().position(|entry| entry["player"] == player) else {
            return answer.refused(404, "player_not_ranked");
        };
        let (above, below) = (usize::try_from(above).expect("small"), usize::try_from(below).expect("small"));
        let shown = &entries[at.saturating_sub(above)..(at + below + 1).min(entries.len())];
        assert_eq!(answer.expect(200)["entries"], json!(shown), "{:?}", board.definition);
    }

    fn page(&mut self) {
        let name = self.name();
        let definition = self.boards[&name].definition;
        let bound = |run: &mut Self| run.rng.percent(30).then(|| run.score(&definition));
        let (min, max) = (bound(self), bound(self));
        let worst_first = self.rng.percent(50);
        let limit = usize::try_from(self.rng.between(1, 6)).expect("small");
        let mut range = Range { worst_first, min, max, offset: 0 };
        let mut query = format!("limit={limit}&order={}", if worst_first { "worst" } else { "best" });
        for (name, bound) in [("min", range.min), ("max", range.max)] {
            if let Some(bound) = bound {
                let text = bound.json().to_string();
                query = format!("{query}&{name}={}", text.trim_matches('"'));
            }
        }
        let target = format!("/v1/leaderboards/{}/scores?{query}", segment(&name));
        let (walked, _) = tally_testkit::audit::read_pages(&mut self.client, &target, "entries");
        let board = &self.boards[&name];
        assert_eq!(walked, board.entries(&range), "{query} of {:?}", board.definition);
        range.offset = usize::try_from(self.rng.below(9)).expect("small");
        let page = self.client.get(&format!("{target}&offset={}", range.offset)).expect(200);
        let expected: Vec<Value> = board.entries(&range).into_iter().take(limit).collect();
        assert_eq!(
            page["entries"],
            json!(expected),
            "{query}&offset={} of {:?}",
            range.offset,
            board.definition
        );
        assert_eq!(page["total"], json!(board.total()));
    }

    fn restart(&mut self) {
        if self.rng.percent(50) {
            self.server.kill9();
        } else {
            self.server.terminate();
        }
        self.server.restart();
        self.client = self.server.client();
        self.check_all();
    }

    fn check_all(&mut self) {
        let shown = tally_testkit::audit::boards(&mut self.client);
        let names: Vec<&str> = shown.iter().filter_map(|board| board["board"].as_str()).collect();
        assert_eq!(names, self.boards.keys().collect::<Vec<_>>());
        for (shown, (name, board)) in shown.iter().zip(&self.boards) {
            assert_eq!(Definition::of_json(shown), board.definition, "{name}");
            let found = tally_testkit::audit::audit_board(&mut self.client, shown);
            assert_eq!(found.entries(&Range::default()), board.entries(&Range::default()), "{name}");
        }
        for player in PLAYERS {
            let answer = self.client.get(&format!("/v1/players/{}", segment(player)));
            let ranked = |board: &Board| {
                board.entries(&Range::default()).iter().any(|entry| entry["player"] == *player)
            };
            // A player without a profile is known by its scores. Those of a banned player are in no rank.
            if answer.status == 404 {
                answer.refused(404, "player_not_found");
                assert!(!self.profiles.contains_key(player) && !self.boards.values().any(ranked), "{player}");
                continue;
            }
            let mut expected = self.profiles.get(player).cloned().unwrap_or_else(|| json!({}));
            expected["player"] = json!(player);
            assert_eq!(answer.expect(200), expected);
        }
    }

    fn step(&mut self) {
        match self.rng.below(1_000) {
            0..350 => self.submit(),
            350..450 => self.batch(),
            450..500 => self.remove(),
            500..570 => self.hide(),
            570..595 => self.create(),
            595..603 => self.delete(),
            603..620 => self.erase(),
            620..650 => self.profile(),
            650..700 => self.among(),
            700..720 => self.expanded(),
            720..800 => self.place(),
            800..870 => self.around(),
            870..992 => self.page(),
            _ => self.restart(),
        }
    }
}

fn soak_run(purpose: &str) {
    let mut run = Run::start(purpose);
    for _ in 0..soak(OPERATIONS) / share() {
        run.step();
    }
    run.check_all();
}

#[test]
fn soak_random_operations_one() {
    soak_run("one");
}

#[test]
fn soak_random_operations_two() {
    soak_run("two");
}

#[test]
fn soak_random_operations_three() {
    soak_run("three");
}

/// Every definition there is, with a few players each: none is left to chance.
#[test]
fn soak_every_definition() {
    let mut run = Run::start("every definition");
    let mut number = 0;
    let mut words = vec![json!({})];
    for (name, choices) in tally_testkit::model::CHOICES {
        words = words
            .iter()
            .flat_map(|base| {
                choices.iter().map(|word| {
                    let mut more = base.clone();
                    more[name] = json!(word);
                    more
                })
            })
            .collect();
    }
    for words in words.iter().filter(|words| words["update"] != "sum" || words["subscore"] == "none") {
        let name = format!("definition {number}");
        number += 1;
        run.client.put(&format!("/v1/leaderboards/{}", segment(&name)), words).expect(201);
        run.boards = BTreeMap::from([(name.clone(), Board::new(Definition::of_json(words)))]);
        for _ in 0..soak(12) {
            run.submit();
        }
        run.hide();
        run.page();
        run.place();
        run.among();
        run.around();
        run.client.delete(&format!("/v1/leaderboards/{}", segment(&name))).expect(204);
    }
    assert!(number > 300, "{number} definitions");
}
