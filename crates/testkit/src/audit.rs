//! What must hold for any server at rest: pages equal a sort of their own records, ranks and totals agree, and all
//! queues are empty.
//!
//! Each [`crate::TestTally`] runs it when it is dropped, so every test ends with it. A restart rebuilds the rankings
//! from the stored rows. So the same audit before and after a restart compares the rankings with the store. Not here:
//! reading the store itself.

use crate::http::{Client, Response, segment};
use crate::model::{Board, Definition, Range, Record};
use crate::wait_until;
use serde_json::{Value, json};

/// Entries of a board whose profiles are read one by one.
const PROFILES_ASKED: usize = 20;

/// Metrics that are zero at rest.
const QUEUES: [&str; 5] = [
    "tally_lane_queued_requests",
    "tally_lane_queued_bytes",
    "tally_lane_in_flight",
    "tally_ledger_lane_queued_requests",
    "tally_ledger_lane_in_flight",
];

/// Checks everything that the server shows. Returns it, for a comparison after a restart on the same store.
pub fn audit(client: &mut Client) -> Vec<Value> {
    let mut seen = Vec::new();
    for shown in boards(client) {
        let board = audit_board(client, &shown);
        seen.push(json!({"shown": shown, "entries": audit_profiles(client, &shown, &board)}));
    }
    check_queues(client);
    seen
}

/// Every board, by the pages of the list.
pub fn boards(client: &mut Client) -> Vec<Value> {
    read_pages(client, "/v1/leaderboards?limit=100", "items").0
}

/// All pages of a board, as a board of the model.
pub fn audit_board(client: &mut Client, shown: &Value) -> Board {
    let name = shown["board"].as_str().expect("a board has a name");
    let target = format!("/v1/leaderboards/{}/scores?limit=1000", segment(name));
    let definition = Definition::of_json(shown);
    let (entries, pages) = read_pages(client, &target, "entries");
    let records = entries.iter().map(|entry| Record::of_json(&definition, entry)).collect();
    let board = Board::of(definition, records);
    assert_eq!(
        entries,
        board.entries(&Range::default()),
        "the pages of `{name}` are not a sort of its records"
    );
    let backwards = read_pages(client, &format!("{target}&order=worst"), "entries").0;
    let reversed: Vec<Value> = entries.iter().rev().cloned().collect();
    assert_eq!(backwards, reversed, "`{name}` read from the worst is not the reverse of the best first");
    // Without an all-time window, a page is that of the first period.
    let part =
        if shown["all_time"] == json!(false) { &shown["periods"][0]["name"] } else { &json!("all_time") };
    let count = &shown["counts"][part.as_str().expect("a part has a name")];
    assert_eq!(count, &json!(entries.len()), "`{name}`");
    for page in pages {
        assert_eq!(page["total"], json!(entries.len()), "`{name}`");
    }
    board
}

/// The pages of a board with profiles: the same entries, each with the profile of the player's own route. A player without a
/// profile has an empty one there.
fn audit_profiles(client: &mut Client, shown: &Value, board: &Board) -> Vec<Value> {
    let name = shown["board"].as_str().expect("a board has a name");
    let target = format!("/v1/leaderboards/{}/scores?limit=1000&expand=player", segment(name));
    let (entries, _) = read_pages(client, &target, "entries");
    let without = |entry: &Value| {
        let mut entry = entry.clone();
        let profile = entry.as_object_mut().and_then(|entry| entry.remove("profile"));
        assert!(profile.is_some(), "an entry of `{name}` has no profile, not even null: {entry}");
        entry
    };
    let plain: Vec<Value> = entries.iter().map(without).collect();
    assert_eq!(plain, board.entries(&Range::default()), "`{name}` with profiles has other entries");
    // Single reads are slow, so a board of many players is checked only at its top.
    for entry in entries.iter().take(PROFILES_ASKED) {
        let answer =
            client.get(&format!("/v1/players/{}", segment(entry["player"].as_str().expect("a name"))));
        let mut own = answer.expect(200);
        assert_eq!(own.as_object_mut().and_then(|own| own.remove("player")).as_ref(), entry.get("player"));
        let shown = if entry["profile"].is_null() { json!({}) } else { entry["profile"].clone() };
        assert_eq!(shown, own, "the profile on `{name}` is not the player's: {entry}");
    }
    entries
}

/// A list to its end: the items, and the pages with them.
pub fn read_pages(client: &mut Client, target: &str, member: &str) -> (Vec<Value>, Vec<Value>) {
    let (mut items, mut pages) = (Vec::new(), Vec::new());
    let mut next = target.to_owned();
    loop {
        let page = client.get(&next).expect(200);
        items.extend(page[member].as_array().expect("a page has items").iter().cloned());
        let cursor = page["next_cursor"].as_str().map(str::to_owned);
        pages.push(page);
        let Some(cursor) = cursor else { return (items, pages) };
        assert!(pages.len() < 100_000, "a list without an end");
        next = format!("{target}&cursor={}", segment(&cursor));
    }
}

/// A value of the metrics.
pub fn metric(metrics: &Response, name: &str) -> f64 {
    let text = metrics.text();
    // Labels have no order.
    let labels_of = |series: &str| {
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let mut labels: Vec<String> = labels.trim_end_matches('}').split(',').map(str::to_owned).collect();
        labels.sort_unstable();
        (name.to_owned(), labels)
    };
    let wanted = labels_of(name);
    let mut series = text.lines().filter_map(|line| line.rsplit_once(' '));
    let line = series.find(|(series, _)| series.starts_with(&wanted.0) && labels_of(series) == wanted);
    let (_, line) = line.unwrap_or_else(|| panic!("no metric {name} in {text}"));
    line.trim().parse().expect("metrics are numbers")
}

fn check_queues(client: &mut Client) {
    // A reply leaves shortly before its batch leaves the count.
    wait_until("all queues are empty", || {
        let metrics = client.get("/metrics");
        assert_eq!(metrics.status, 200, "{}", metrics.text());
        QUEUES.iter().all(|name| metric(&metrics, name) == 0.0)
    });
}
