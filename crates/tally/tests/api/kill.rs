//! Killed at any moment: nothing acknowledged is lost, nothing is done twice, no rank is ever wrong.
//!
//! Clients submit with keys and repeat unacknowledged requests, under the same key, after each restart. From the moment the
//! new process listens its ranks are read: each answer is "loading" or exact. Not here: the store's own crash tests, and
//! other operations around a kill (`model.rs`).

use crate::TALLY;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tally_testkit::backends::share;
use tally_testkit::model::{Board, Definition, Range, Record};
use tally_testkit::rng::soak;
use tally_testkit::{Client, GIVE_UP, Request, Response, Rng, SetAtEnd, TestTally, audit, wait_until};

const ROUNDS: usize = 20;
const CLIENTS: usize = 4;
const PLAYERS: u64 = 20;
const BOARDS: [(&str, &str); 3] = [("best", "best"), ("latest", "latest"), ("sum", "sum")];

/// A submit that must have exactly one effect.
#[derive(Clone, Debug)]
struct Wanted {
    key: String,
    board: &'static str,
    player: String,
    score: i64,
}

impl Wanted {
    fn request(&self) -> Request {
        let body = json!({"player": self.player, "score": self.score});
        Request::new("POST", format!("/v1/leaderboards/{}/scores", self.board))
            .json(&body)
            .idempotent(&self.key)
    }
}

/// One client's work over all rounds.
struct Worker {
    number: usize,
    rng: Rng,
    sent: usize,
    unsure: VecDeque<Wanted>,
    done: Vec<(Wanted, Value)>,
}

impl Worker {
    fn new(number: usize) -> Self {
        let rng = Rng::of(&format!("kill {number}"));
        Self { number, rng, sent: 0, unsure: VecDeque::new(), done: Vec::new() }
    }

    /// Players are the worker's own, so that its submits of one player have an order.
    fn next(&mut self) -> Wanted {
        if let Some(unsure) = self.unsure.pop_front() {
            return unsure;
        }
        self.sent += 1;
        Wanted {
            key: format!("w{}-{}", self.number, self.sent),
            board: self.rng.pick(&BOARDS).0,
            player: format!("w{}p{}", self.number, self.rng.below(PLAYERS)),
            score: self.rng.between(-50, 100),
        }
    }

    /// Submits until the server has ended, or the test has failed.
    fn work(&mut self, mut client: Client, (acknowledged, over): (&AtomicUsize, &AtomicBool)) {
        while !over.load(Ordering::Relaxed) {
            let wanted = self.next();
            let Ok(answer) = client.try_send(&wanted.request()) else {
                self.unsure.push_front(wanted);
                return;
            };
            self.take(wanted, &answer);
            acknowledged.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn take(&mut self, wanted: Wanted, answer: &Response) {
        let body = answer.expect(200);
        assert_eq!((&body["player"], &body["board"]), (&json!(wanted.player), &json!(wanted.board)));
        self.done.push((wanted, body));
    }
}

/// The required content of the boards after these submits, each once, in each worker's order.
fn expected(workers: &[Worker]) -> BTreeMap<&'static str, Board> {
    let definition = |update: &str| Definition::of_json(&json!({"update": update}));
    let mut boards: BTreeMap<_, _> =
        BOARDS.iter().map(|(name, update)| (*name, Board::new(definition(update)))).collect();
    for (wanted, answer) in workers.iter().flat_map(|worker| &worker.done) {
        let board = boards.get_mut(wanted.board).expect("it is one of ours");
        // A submit that changed nothing did not show its instant: it came after every other.
        let at = if answer["changed"] == json!(true) { &answer["at"] } else { &json!("9") };
        let at = at.as_str().expect("an instant").to_owned();
        let score = tally_testkit::model::Score::Int(wanted.score);
        let said = board.submit(Record { player: wanted.player.clone(), score, subscore: 0, at });
        let said = said.expect("sums are small");
        for member in ["score", "at", "changed"] {
            assert_eq!(answer[member], said[member], "{member} of {wanted:?}");
        }
        let previous = |answer: &Value| answer["previous"].get("score").cloned();
        assert_eq!(previous(answer), previous(&said), "{wanted:?}");
    }
    boards
}

fn ask(client: &mut Client, target: &str) -> Option<Value> {
    let answer = client.get(target);
    if answer.status == 503 {
        answer.refused(503, "loading");
        assert!(answer.header("retry-after").is_some(), "{answer:?}");
        return None;
    }
    Some(answer.expect(200))
}

/// Reads ranks from the moment it listens until it is ready, and once more.
fn poll(mut client: Client, stop: &AtomicBool) {
    let mut first: BTreeMap<&str, Value> = BTreeMap::new();
    loop {
        let last = stop.load(Ordering::Relaxed);
        for (board, _) in BOARDS {
            let Some(page) = ask(&mut client, &format!("/v1/leaderboards/{board}/scores?limit=1000")) else {
                continue;
            };
            check_page(board, &page);
            // There are no writes while it loads: the first answer is the final one.
            assert_eq!(
                &page,
                first.entry(board).or_insert_with(|| page.clone()),
                "{board} changed by itself"
            );
            for entry in page["entries"].as_array().expect("entries").iter().step_by(7) {
                let player = entry["player"].as_str().expect("a name");
                let place = ask(&mut client, &format!("/v1/leaderboards/{board}/players/{player}"));
                let place = place.expect("it was ready before");
                assert_eq!(
                    (&place["rank"], &place["total"]),
                    (&entry["rank"], &page["total"]),
                    "{board} {player}"
                );
            }
        }
        if last {
            assert_eq!(first.len(), BOARDS.len(), "every board was seen");
            return;
        }
    }
}

fn check_page(board: &str, page: &Value) {
    let entries = page["entries"].as_array().expect("entries");
    let definition = Definition::default();
    let records = entries.iter().map(|entry| Record::of_json(&definition, entry)).collect();
    let sorted = Board::of(definition, records).entries(&Range::default());
    assert_eq!(&sorted, entries, "{board} is not sorted by its own records");
    assert_eq!(page["total"], json!(entries.len()), "{board}");
}

fn check_boards(client: &mut Client, expected: &BTreeMap<&str, Board>) {
    let shown = audit::boards(client);
    assert_eq!(shown.len(), BOARDS.len());
    for board in shown {
        let name = board["board"].as_str().expect("a name");
        let found = audit::audit_board(client, &board).entries(&Range::default());
        assert_eq!(found, expected[name].entries(&Range::default()), "{name}");
    }
}

#[test]
fn a_kill_at_any_moment_loses_nothing_and_invents_nothing() {
    let mut server = TestTally::start(TALLY);
    let mut client = server.client();
    for (name, update) in BOARDS {
        client.put(&format!("/v1/leaderboards/{name}"), &json!({"update": update})).expect(201);
    }
    let mut workers: Vec<Worker> = (0..CLIENTS).map(Worker::new).collect();
    let mut rng = Rng::of("kill");
    let mut unsure = 0;
    for round in 0..soak(ROUNDS).div_ceil(share()) {
        let acknowledged = AtomicUsize::new(0);
        let least = 5 + usize::try_from(rng.below(150)).expect("it is small");
        let pause = Duration::from_micros(rng.below(20_000));
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _end = SetAtEnd::new(&over);
            let working = workers.iter_mut().map(|worker| {
                let (client, signals) = (server.client(), (&acknowledged, &over));
                scope.spawn(move || worker.work(client, signals))
            });
            let working: Vec<_> = working.collect();
            let began = Instant::now();
            while acknowledged.load(Ordering::Relaxed) < least {
                assert!(began.elapsed() < GIVE_UP, "no submits are acknowledged");
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(pause);
            server.kill9();
            // Each by the end of its connection.
            working.into_iter().for_each(|one| one.join().expect("no answer is wrong"));
        });
        let stop = AtomicBool::new(false);
        server.launch();
        std::thread::scope(|scope| {
            let end = SetAtEnd::new(&stop);
            let polling = scope.spawn(|| poll(server.client(), &stop));
            let health = server.client().get("/healthz").status;
            assert_eq!(health, 200, "it answers as soon as it listens");
            wait_until("it is ready", || server.client().get("/readyz").status != 503);
            drop(end);
            polling.join().expect("no rank is wrong");
        });
        server.wait_ready();
        let mut client = server.client();
        for worker in &mut workers {
            unsure += worker.unsure.len();
            while let Some(wanted) = worker.unsure.pop_front() {
                let answer = client.send(&wanted.request());
                worker.take(wanted, &answer);
            }
        }
        check_boards(&mut client, &expected(&workers));
        assert!(workers.iter().any(|worker| !worker.done.is_empty()), "round {round} did nothing");
    }
    // The states that a run reaches are random; that it reached some makes it a test.
    assert!(unsure > 0, "no kill met a request in flight");
}

#[test]
fn ranks_are_loading_or_exact_while_a_large_board_is_loaded() {
    let mut server = TestTally::start(TALLY);
    let mut client = server.client();
    client.put("/v1/leaderboards/big", &json!({"update": "latest"})).expect(201);
    let players = soak(20_000);
    let numbers: Vec<usize> = (0..players).collect();
    for chunk in numbers.chunks(1_000) {
        let row = |at: &usize| json!({"board": "big", "player": format!("p{at}"), "score": at});
        let rows: Vec<Value> = chunk.iter().map(row).collect();
        client.post("/v1/scores/batch", &json!({"scores": rows})).expect(200);
    }
    let mut loading = 0;
    for _ in 0..3 {
        server.kill9();
        server.launch();
        let mut client = server.client();
        loop {
            let answer = client.get("/v1/leaderboards/big/players/p0");
            if answer.status == 200 {
                let place = answer.json();
                assert_eq!((&place["rank"], &place["total"]), (&json!(players), &json!(players)));
                break;
            }
            answer.refused(503, "loading");
            let body = answer.json();
            let ready = client.get("/readyz");
            // It cannot report its progress before it knows the permissions.
            if body.get("phase").is_some() && ready.status == 503 {
                for member in ["phase", "done", "total", "eta_s"] {
                    assert!(body.get(member).is_some(), "{member} in {body}");
                    assert!(ready.json().get(member).is_some(), "{member} in {}", ready.text());
                }
            }
            loading += 1;
        }
        server.wait_ready();
    }
    assert!(loading > 0, "it was never seen loading");
}
