//! Batches of scores: which watchers get how many, and which are too slow.

use super::*;
use tally_ranking::{RankingBackend, RankingChange};
use tally_rules::{BoardId, Definition, Record};
use tally_store::{BoardNo, BoardRow};

fn board() -> Arc<Board> {
    let (id, definition) = (BoardId::new("b").unwrap(), Definition::default());
    let row = BoardRow { no: BoardNo(1), id, definition, created_at: Micros(0) };
    Arc::new(Board::new(row, Vec::new(), &RankingBackend::Memory).unwrap())
}

/// Publishes as a lane does.
fn publish(board: &Board, players: std::ops::Range<usize>, score: Option<i64>) {
    let change = |number: usize| {
        let player = PlayerId::new(&format!("p{number}")).unwrap();
        let record = score.map(|score| Record { score, subscore: 0, at: Micros(score) });
        RankingChange { player, record, ranked: false }
    };
    let changes: Vec<RankingChange> = players.map(change).collect();
    board.ranking.publish(&changes, 0, |_, _| {});
    assert!(board.live.is_watched() && board.shows_live(ALL_TIME));
    board.live.note(ALL_TIME, changes.iter().map(|moved| &moved.player));
}

/// The batches that are sent until nothing is left.
fn sent(board: &Board, watch: &mut Watch) -> Vec<Arc<ScoreBatch>> {
    let mut all = Vec::new();
    loop {
        assert!(board.send_live(Micros(0)).unwrap());
        match watch.batches.try_recv() {
            Ok(batch) => all.push(batch),
            Err(error) => {
                assert_eq!(error, broadcast::error::TryRecvError::Empty);
                return all;
            }
        }
    }
}

#[test]
fn a_batch_has_the_newest_of_each_player_and_the_removed_ones() {
    let board = board();
    assert!(!board.live.is_watched() && !board.send_live(Micros(0)).unwrap());
    let mut watch = Watch::new(&board);
    (1..=9).for_each(|score| publish(&board, 0..3, Some(score)));
    publish(&board, 1..2, None);
    let [batch] = &sent(&board, &mut watch)[..] else { panic!("one batch") };
    let places: Vec<_> =
        batch.places.iter().map(|place| (place.rank, place.player.as_str(), place.record.score)).collect();
    assert_eq!(places, [(1, "p0", 9), (2, "p2", 9)]);
    assert_eq!((batch.unranked.len(), batch.unranked[0].as_str(), batch.total), (1, "p1", 2));
    assert_eq!((&*batch.period, batch.left_out), ("all_time", false));
    assert_eq!(sent(&board, &mut watch).len(), 0);
    drop(watch);
    assert!(!board.live.is_watched() && !board.send_live(Micros(0)).unwrap());
}

#[test]
fn a_batch_and_what_waits_for_one_are_bounded() {
    let board = board();
    let mut watch = Watch::new(&board);
    publish(&board, 0..WAITING_MAX + 500, Some(1));
    let all = sent(&board, &mut watch);
    assert_eq!(all.len(), WAITING_MAX / BATCH_PLAYERS);
    let told: HashSet<&str> =
        all.iter().flat_map(|batch| batch.places.iter().map(|place| place.player.as_str())).collect();
    assert_eq!(told.len(), WAITING_MAX, "each once");
    let left_out: Vec<bool> = all.iter().map(|batch| batch.left_out).collect();
    assert_eq!((left_out[0], left_out[1..].contains(&true)), (true, false));
}

#[test]
fn the_more_watch_the_less_often_they_are_told() {
    let board = board();
    let mut watches: Vec<Watch> = (0..1_000).map(|_| Watch::new(&board)).collect();
    publish(&board, 0..500, Some(1));
    let mut told = Vec::new();
    for round in 0..25 {
        assert!(board.send_live(Micros(0)).unwrap());
        if let Ok(batch) = watches[0].batches.try_recv() {
            told.push((round, batch.places.len()));
        }
    }
    assert_eq!(told, [(0, 100), (10, 100), (20, 100)]);
    // Waiting changes are sent at once when few watchers are left.
    watches.truncate(1);
    board.live.rests.store(0, Ordering::Relaxed);
    assert_eq!(sent(&board, &mut watches[0]).iter().map(|batch| batch.places.len()).sum::<usize>(), 200);
}

#[test]
fn only_a_reader_too_far_behind_is_told_so() {
    let board = board();
    let (mut asleep, mut awake) = (Watch::new(&board), Watch::new(&board));
    for score in 0..=BATCHES_BEHIND as i64 {
        publish(&board, 0..1, Some(score));
        assert_eq!(sent(&board, &mut awake).len(), 1);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert_eq!(runtime.block_on(asleep.next()).err(), Some(TooSlow));
}
