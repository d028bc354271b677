//! A board that is filled without a server applies its rule to the former records and to every row once. It does so however
//! often the filling ends in the middle.

use crate::world::rule;
use std::collections::BTreeMap;
use std::sync::Arc;
use tally_rules::definition::{Definition, Order, Update};
use tally_rules::score::ScoreInput;
use tally_rules::{BoardId, Micros, PlayerId, Record, record};
use tally_service::scores::fill::{FillTarget, Filling};
use tally_store::plan::ALL_TIME;
use tally_store::sqlite::{Options, SqliteStore};
use tally_store::{BoardChange, BoardNo, BoardRow, ReadSet, ScoreKey, Store, WriteSet};
use tally_testkit::rng::Rng;

const DIGEST: [u8; 32] = [7; 32];
/// Names of the file; earlier players are among them and between them.
const LINES: u64 = 12_000;

fn board() -> BoardId {
    BoardId::new("b").unwrap()
}

fn player(line: u64) -> PlayerId {
    PlayerId::new(&format!("p{line:06}")).unwrap()
}

fn open(store: &Arc<dyn Store>) -> Filling {
    match Filling::open(store, &board(), DIGEST) {
        Ok(FillTarget::Fillable(filling)) => *filling,
        _ => panic!("it can be filled"),
    }
}

/// Makes the board with these records.
fn make(store: &dyn Store, definition: &Definition, records: &BTreeMap<PlayerId, Record>) -> BoardNo {
    let plan = ReadSet { board_names: vec![board()], exclusive: true, ..ReadSet::default() };
    let mut no = BoardNo(0);
    let make = &mut |loaded: &tally_store::Loaded| {
        no = loaded.next_board;
        let row = BoardRow { no, id: board(), definition: definition.clone(), created_at: Micros(1) };
        WriteSet { boards: vec![BoardChange::Create(row)], ..WriteSet::default() }
    };
    store.run(&plan, make).unwrap();
    let key = |player: &PlayerId| ScoreKey { board: no, window: ALL_TIME, player: player.clone() };
    let scores: Vec<_> = records.iter().map(|(player, record)| (key(player), Some(*record))).collect();
    store
        .run(&ReadSet::default(), &mut |_| WriteSet { scores: scores.clone(), ..WriteSet::default() })
        .unwrap();
    no
}

fn all(store: &dyn Store, no: BoardNo) -> BTreeMap<PlayerId, Record> {
    let mut found = BTreeMap::new();
    store
        .scan_scores(no, ALL_TIME, None, usize::MAX, &mut |player, record| {
            assert!(found.insert(player, record).is_none());
        })
        .unwrap();
    found
}

fn definition(rng: &mut Rng) -> Definition {
    let update = [Update::Best, Update::Latest, Update::Sum][rng.below(3) as usize];
    let order = [Order::Ascending, Order::Descending][rng.below(2) as usize];
    Definition { update, order, ..Definition::default() }
}

#[test]
fn every_row_counts_once_whatever_was_there_and_wherever_it_was_broken_off() {
    let mut rng = Rng::of("fill");
    for _ in 0..8 {
        let rng = &mut rng;
        let folder = tempfile::tempdir().unwrap();
        let store: Arc<dyn Store> =
            Arc::new(SqliteStore::open(&folder.path().join("t.db"), &Options::default()).unwrap());
        let definition = definition(rng);
        // None, some or more than one step of the scan; before, among, between and after the rows.
        let many = [0, 50, 20_000][rng.below(3) as usize];
        let was = (0..many).map(|_| {
            let (line, score) = (rng.below(LINES * 2), i64::try_from(rng.below(500)).unwrap());
            let name = match rng.below(3) {
                0 => player(line),
                1 => PlayerId::new(&format!("p{line:06}x")).unwrap(),
                _ => PlayerId::new(&format!("{}{line}", ["a", "p", "z"][rng.below(3) as usize])).unwrap(),
            };
            (name, Record { score, subscore: 0, at: Micros(10) })
        });
        let mut model: BTreeMap<PlayerId, Record> = was.collect();
        let no = make(&*store, &definition, &model);
        // One row is more than a score of 64 bits can take, where scores are added up.
        let score = |line: u64| if line == 77 { i64::MAX } else { i64::try_from(line * 7919 % 500).unwrap() };
        model.insert(player(77), Record { score: 1, subscore: 0, at: Micros(10) });
        let key = ScoreKey { board: no, window: ALL_TIME, player: player(77) };
        let one = vec![(key, Some(model[&player(77)]))];
        store
            .run(&ReadSet::default(), &mut |_| WriteSet { scores: one.clone(), ..WriteSet::default() })
            .unwrap();

        let (mut now, mut written, mut refused) = (1_000, 0, 0);
        while written < LINES {
            let mut filling = open(&store);
            assert_eq!((filling.done().lines, filling.done().refused), (written, refused));
            for _ in 0..rng.below(4) {
                let first = filling.done().lines + 1;
                let last = LINES.min(first + rng.below(3_000));
                let rows: Vec<_> =
                    (first..=last).map(|line| (player(line), ScoreInput::Int(score(line)))).collect();
                if first > last {
                    break;
                }
                let chunk = filling.chunk(rows, last, Micros(now)).unwrap();
                if rng.below(3) == 0 {
                    // The load ends before this one is written, and before those after it.
                    break;
                }
                chunk.write(&*store).unwrap();
                for (line, at) in (first..=last).zip(now..) {
                    let submit = Record { score: score(line), subscore: 0, at: Micros(at) };
                    let previous = model.get(&player(line)).copied();
                    match record::apply(&definition, previous, submit) {
                        Ok(updated) => drop(model.insert(player(line), updated.record)),
                        Err(_) => refused += 1,
                    }
                }
                written = last;
                now += 100_000;
            }
        }
        let filling = open(&store);
        let done = filling.done();
        assert_eq!((done.lines, done.taken, done.refused), (LINES, LINES - refused, refused));
        assert_eq!(refused, u64::from(definition.update == Update::Sum));
        let found = all(&*store, no);
        assert_eq!(found.len(), model.len());
        for (player, record) in &model {
            assert_eq!(found.get(player), Some(record), "{player:?} of {definition:?}");
        }
    }
}

#[test]
fn a_chunk_that_another_process_was_before_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> =
        Arc::new(SqliteStore::open(&folder.path().join("t.db"), &Options::default()).unwrap());
    let no = make(&*store, &Definition::default(), &BTreeMap::new());
    let rows = || (1..=10).map(|line| (player(line), ScoreInput::Int(1))).collect();
    let mut one = open(&store);
    let mut other = open(&store);
    let (first, second) =
        (one.chunk(rows(), 10, Micros(5)).unwrap(), other.chunk(rows(), 10, Micros(9)).unwrap());
    first.write(&*store).unwrap();
    let there = all(&*store, no);
    second.write(&*store).unwrap_err();
    assert_eq!(all(&*store, no), there);
}

#[test]
fn boards_that_only_a_server_can_fill() {
    let folder = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> =
        Arc::new(SqliteStore::open(&folder.path().join("t.db"), &Options::default()).unwrap());
    assert!(matches!(Filling::open(&store, &board(), DIGEST), Ok(FillTarget::Missing)));
    let periods = vec![rule("day", "0 0 * * *", "UTC", 3, 0)];
    make(&*store, &Definition { periods, ..Definition::default() }, &BTreeMap::new());
    // Its scores count for periods too.
    assert!(matches!(Filling::open(&store, &board(), DIGEST), Ok(FillTarget::Served)));
}
