//! Pages read by cursor while others write: a player that did not move is never skipped or shown twice, in both directions.
//!
//! The movers change all the time, the others never; removals hit the entry of a cursor. Also pages of random boards
//! against the model. Not here: exact answers of single pages (`http_scores.rs`).

use crate::TALLY;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tally_testkit::audit::read_pages;
use tally_testkit::http::segment;
use tally_testkit::{Client, Rng, SetAtEnd, TestTally};

const SCORES: &str = "/v1/leaderboards/b/scores";
const STAYING: usize = 400;
const MOVERS: u64 = 60;
/// A direction is read until this many changes were made meanwhile.
const CHANGES_LEAST: usize = 200;

fn submit_all(client: &mut Client, rows: &[Value]) {
    for rows in rows.chunks(1_000) {
        let answer = client.post("/v1/scores/batch", &json!({"scores": rows})).expect(200);
        for row in answer["results"].as_array().expect("results") {
            assert_eq!(row.get("error"), None, "{row}");
        }
    }
}

/// Moves and removes players until it is stopped.
fn stir(mut client: Client, stop: &AtomicBool, moved: &AtomicUsize, seed: u64) {
    let mut rng = Rng::new(seed);
    while !stop.load(Ordering::Relaxed) {
        let player = format!("m{}", rng.below(MOVERS));
        if rng.percent(20) {
            let status = client.delete(&format!("/v1/leaderboards/b/players/{player}")).status;
            assert!(status == 204 || status == 404, "{status}");
        } else {
            let score = rng.between(0, 100);
            client.post(SCORES, &json!({"player": player, "score": score})).expect(200);
        }
        moved.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn no_remaining_player_is_skipped_or_shown_twice() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    client.put("/v1/leaderboards/b", &json!({"update": "latest", "ranking": "competition"})).expect(201);
    let mut rng = Rng::of("pages");
    let row = |at: usize, rng: &mut Rng| json!({"board": "b", "player": format!("s{at}"), "score": rng.between(0, 100)});
    let rows: Vec<Value> = (0..STAYING).map(|at| row(at, &mut rng)).collect();
    submit_all(&mut client, &rows);
    let is_staying = |entry: &&Value| entry["player"].as_str().is_some_and(|player| player.starts_with('s'));
    let names = |entries: &[Value]| -> Vec<String> {
        entries
            .iter()
            .filter(is_staying)
            .map(|one| one["player"].as_str().expect("a name").to_owned())
            .collect()
    };
    let best_first = names(&read_pages(&mut client, &format!("{SCORES}?limit=1000"), "entries").0);
    assert_eq!(best_first.len(), STAYING);
    let mut worst_first = best_first.clone();
    worst_first.reverse();

    let (stop, moved) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let end = SetAtEnd::new(&stop);
        let stirring = (0..2).map(|seed| {
            let (client, stop, moved) = (server.client(), &stop, &moved);
            scope.spawn(move || stir(client, stop, moved, seed))
        });
        let stirring: Vec<_> = stirring.collect();
        for (order, expected) in [("best", &best_first), ("worst", &worst_first)] {
            let enough = moved.load(Ordering::Relaxed) + CHANGES_LEAST;
            for limit in [7, 100, 20, 1].into_iter().cycle() {
                // One that has ended has found a fault.
                if moved.load(Ordering::Relaxed) >= enough || stirring.iter().any(|one| one.is_finished()) {
                    break;
                }
                let (entries, _) =
                    read_pages(&mut client, &format!("{SCORES}?limit={limit}&order={order}"), "entries");
                assert_eq!(&names(&entries), expected, "{order} first, {limit} a page");
            }
        }
        drop(end);
        for thread in stirring {
            thread.join().expect("it moves players");
        }
    });
}

#[test]
fn the_entry_under_a_cursor_may_move_or_go() {
    let server = TestTally::start(TALLY);
    let mut client = server.client();
    client.put("/v1/leaderboards/b", &json!({"update": "latest", "ties": "player"})).expect(201);
    for (order, rest) in [("best", "def"), ("worst", "cba")] {
        for change in ["remove", "best", "worst", "none"] {
            let rows: Vec<Value> = "abcdef"
                .chars()
                .enumerate()
                .map(|(at, player)| json!({"board": "b", "player": player, "score": 50 - at}))
                .collect();
            submit_all(&mut client, &rows);
            let first = client.get(&format!("{SCORES}?limit=3&order={order}")).expect(200);
            let under = first["entries"][2]["player"].as_str().expect("a name").to_owned();
            let cursor = segment(first["next_cursor"].as_str().expect("there is more"));
            match change {
                "remove" => drop(client.delete(&format!("/v1/leaderboards/b/players/{under}")).expect(204)),
                "best" => drop(client.post(SCORES, &json!({"player": under, "score": 99})).expect(200)),
                "worst" => drop(client.post(SCORES, &json!({"player": under, "score": 0})).expect(200)),
                _ => {}
            }
            let page = client.get(&format!("{SCORES}?order={order}&cursor={cursor}")).expect(200);
            let shown: String = page["entries"]
                .as_array()
                .expect("entries")
                .iter()
                .filter_map(|one| one["player"].as_str())
                .filter(|player| *player != under)
                .collect();
            assert_eq!(shown, rest, "{order} first, then {change}");
        }
    }
}
