//! The model against tables, because all other tests compare with it.

use super::*;

fn record(player: &str, score: i64, at: &str) -> Record {
    Record { player: player.into(), score: Score::Int(score), subscore: 0, at: at.into() }
}

fn board(words: &Value) -> Board {
    let records = vec![record("a", 5, "1"), record("b", 5, "2"), record("c", 7, "3"), record("d", 1, "4")];
    Board::of(Definition::of_json(words), records)
}

#[test]
fn the_contract_s_examples_of_ranks() {
    for (ranking, ranks) in
        [("ordinal", [1, 2, 3, 4]), ("competition", [1, 2, 2, 4]), ("dense", [1, 2, 2, 3])]
    {
        let board = board(&json!({"ranking": ranking}));
        assert_eq!(board.sorted().iter().map(|(rank, _)| *rank).collect::<Vec<_>>(), ranks, "{ranking}");
    }
    assert_eq!(board(&json!({})).percentile("c"), Some(100.0));
    assert_eq!(board(&json!({"ranking": "dense"})).percentile("b"), Some(75.0));
}

#[test]
fn ties_and_directions() {
    for (words, order) in [
        (json!({"ties": "first"}), "cabd"),
        (json!({"ties": "last"}), "cbad"),
        (json!({"ties": "player"}), "cabd"),
        (json!({"ties": "player_reversed"}), "cbad"),
        (json!({"order": "ascending"}), "dabc"),
    ] {
        let board = board(&words);
        let players: String = board.sorted().iter().map(|(_, record)| record.player.as_str()).collect();
        assert_eq!(players, order, "{words}");
    }
}

#[test]
fn a_banned_player_counts_for_no_rank() {
    let mut board = board(&json!({"ranking": "dense"}));
    assert_eq!(board.among(&["d", "b", "b", "x"])[1]["overall_rank"], 3);
    board.ban("c");
    let shown: Vec<_> = board.sorted().iter().map(|(rank, _)| *rank).collect();
    assert_eq!((board.total(), shown, board.percentile("b")), (3, vec![1, 1, 2], Some(100.0)));
    let answer = board.submit(record("c", 9, "9")).unwrap();
    assert_eq!((&answer["rank"], &answer["previous"]["rank"]), (&Value::Null, &Value::Null));
    board.restore("c");
    assert_eq!(board.rank("c"), Some(1));
    board.ban("nobody");
    assert_eq!((board.erase("nobody"), board.erase("nobody"), board.erase("a")), (true, false, true));
}

#[test]
fn updates() {
    let mut sum = board(&json!({"update": "sum"}));
    assert_eq!(sum.submit(record("d", 9, "0")).unwrap()["at"], "4");
    assert_eq!(sum.submit(record("d", i64::MAX, "5")), None);
    let mut latest = board(&json!({"update": "latest"}));
    assert_eq!(latest.submit(record("c", 1, "2")).unwrap()["changed"], false);
    let answer = latest.submit(record("c", 1, "9")).unwrap();
    assert_eq!((&answer["rank"], &answer["previous"]), (&json!(4), &json!({"score": 7, "rank": 1})));
    assert_eq!(board(&json!({})).submit(record("a", 4, "9")).unwrap()["score"], 5);
}
