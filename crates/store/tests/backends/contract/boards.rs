//! Boards: created ones read back, names are free after a deletion, numbers never.

use super::*;
use tally_rules::contest::{Prize, PrizeTies};
use tally_rules::definition::{Order, Ranking, ScoreType, Subscore, Ties, Update};
use tally_rules::ledger::{Amount, Currency};
use tally_rules::period::{PeriodPrizes, PeriodRule};
use tally_store::{ImportKey, ImportRow};

/// A period whose values tell its name.
pub(crate) fn period(name: &str) -> PeriodRule {
    PeriodRule {
        no: 0,
        name: name.to_owned(),
        schedule: format!("0 {} * * 1", name.len() % 24),
        time_zone: "Europe/Berlin".to_owned(),
        keep: 12,
        grace_s: name.len() as u32,
        prizes: PeriodPrizes::default(),
    }
}

/// Definitions that together have every choice and every edge of a number.
pub(crate) fn definitions() -> Vec<Definition> {
    let mut all = vec![Definition::default()];
    all.extend(Order::ALL.iter().map(|order| Definition { order: *order, ..Definition::default() }));
    all.extend(Update::ALL.iter().map(|update| Definition { update: *update, ..Definition::default() }));
    all.extend(Ranking::ALL.iter().map(|ranking| Definition { ranking: *ranking, ..Definition::default() }));
    all.extend(Ties::ALL.iter().map(|ties| Definition { ties: *ties, ..Definition::default() }));
    all.extend(ScoreType::ALL.iter().map(|score| Definition { score: *score, ..Definition::default() }));
    all.extend(
        Subscore::ALL.iter().map(|subscore| Definition { subscore: *subscore, ..Definition::default() }),
    );
    let table = vec![Prize {
        from: 1,
        to: 9,
        currency: Currency::parse("KRW").unwrap(),
        amount: Amount::new(5).unwrap(),
    }];
    let paid = PeriodPrizes { table, ties: PrizeTies::Each, from: Some(Micros(-9)) };
    let paid = PeriodRule { no: 2, prizes: paid, ..period("paid") };
    let edges = PeriodRule { keep: u32::MAX, grace_s: u32::MAX, ..period("edges") };
    let zero = PeriodRule { keep: 0, grace_s: 0, schedule: String::new(), ..period("zero") };
    all.push(Definition { all_time: false, periods: vec![edges, zero, paid], ..Definition::default() });
    all
}

fn delete(store: &dyn Store, no: BoardNo) -> Result<(), StoreError> {
    write(store, &WriteSet { boards: vec![BoardChange::Delete(no)], ..WriteSet::default() })
}

fn redefine(store: &dyn Store, no: BoardNo, definition: Definition) -> Result<(), StoreError> {
    write(store, &WriteSet { boards: vec![BoardChange::Redefine(no, definition)], ..WriteSet::default() })
}

pub(crate) fn a_created_board_reads_back(backend: &dyn Backend) {
    let store = open(backend);
    let mut wanted = Vec::new();
    for (row, definition) in definitions().into_iter().enumerate() {
        let id = BoardId::new(&format!("Board {row} ä'\"")).unwrap();
        let no = BoardNo(row as u32 + 1);
        let created_at = Micros(if row == 0 { i64::MIN } else { i64::MAX - row as i64 });
        let board = BoardRow { no, id, definition, created_at };
        let boards = vec![BoardChange::Create(board.clone())];
        write(&*store, &WriteSet { boards, ..WriteSet::default() }).unwrap();
        wanted.push(board);
    }
    assert_eq!(store.boards().unwrap(), wanted);
    drop(store);
    let store = open(backend);
    assert_eq!(store.boards().unwrap(), wanted);
    for board in wanted {
        let plan = ReadSet { board_names: vec![board.id.clone()], ..ReadSet::default() };
        assert_eq!(load(&*store, &plan).board_names, [Some(board)]);
    }
}

pub(crate) fn numbers_count_up_and_are_never_reused(backend: &dyn Backend) {
    let mut last = BoardNo(0);
    for round in 0..4 {
        // Reopened each time: the last number must not be derived from the present rows.
        let store = open(backend);
        let no = create(&*store, "board", &Definition::default()).unwrap();
        assert!(no > last, "round {round}: {no:?} after {last:?}");
        last = no;
        delete(&*store, no).unwrap();
        while store.purge_deleted(100).unwrap() > 0 {}
    }
    let store = open(backend);
    let plan = ReadSet { board_names: vec![BoardId::new("x").unwrap()], ..ReadSet::default() };
    assert_eq!(load(&*store, &plan).next_board, BoardNo(last.0 + 1));
    // Two at once have neighbouring numbers.
    let next = last.0 + 1;
    let boards = (0..2).map(|row| {
        let id = BoardId::new(&format!("{}", 9 - row)).unwrap();
        BoardChange::Create(BoardRow {
            no: BoardNo(next + row),
            id,
            definition: Definition::default(),
            created_at: Micros(0),
        })
    });
    write(&*store, &WriteSet { boards: boards.collect(), ..WriteSet::default() }).unwrap();
    assert_eq!(load(&*store, &plan).next_board, BoardNo(next + 2));
}

pub(crate) fn a_name_has_one_live_board(backend: &dyn Backend) {
    let store = open(backend);
    create(&*store, "Board", &Definition::default()).unwrap();
    let again = create(&*store, "Board", &Definition::default());
    assert!(matches!(again, Err(StoreError::Row(_))), "{again:?}");
    // Names are bytes.
    for other in ["board", "Board ", "Boärd", "Bo\u{308}ard"] {
        create(&*store, other, &Definition::default()).unwrap();
    }
    assert_eq!(store.boards().unwrap().len(), 5);
    let longest = "ä".repeat(64);
    create(&*store, &longest, &Definition::default()).unwrap();
    assert_eq!(store.boards().unwrap()[5].id.as_str(), longest);
}

pub(crate) fn a_redefined_board_has_its_new_periods_in_order(backend: &dyn Backend) {
    let store = open(backend);
    let one = create(&*store, "one", &Definition { periods: vec![period("week")], ..Definition::default() })
        .unwrap();
    let two = create(&*store, "two", &Definition { periods: vec![period("week")], ..Definition::default() })
        .unwrap();
    let orders: [&[&str]; 5] = [&["b", "a", "week"], &["week", "b"], &[], &["c"], &["week", "a", "b", "c"]];
    for names in orders {
        let periods: Vec<_> = names.iter().map(|name| period(name)).collect();
        redefine(&*store, one, Definition { periods: periods.clone(), ..Definition::default() }).unwrap();
        let boards = store.boards().unwrap();
        assert_eq!(boards[0].definition.periods, periods);
        assert_eq!((boards[1].no, &boards[1].definition.periods), (two, &vec![period("week")]));
    }
    drop(store);
    assert_eq!(open(backend).boards().unwrap()[0].definition.periods.len(), 4);
}

pub(crate) fn a_deleted_board_is_gone_and_its_name_free(backend: &dyn Backend) {
    let store = open(backend);
    let with = Definition { periods: vec![period("week")], ..Definition::default() };
    let old = create(&*store, "board", &with).unwrap();
    write(&*store, &scores(vec![(key(old.0, 0, "ann"), Some(record(1)))])).unwrap();
    delete(&*store, old).unwrap();
    assert_eq!(store.boards().unwrap(), []);
    let plan = ReadSet {
        boards: vec![old],
        board_names: vec![BoardId::new("board").unwrap()],
        ..ReadSet::default()
    };
    let loaded = load(&*store, &plan);
    assert_eq!((loaded.boards, loaded.board_names), (vec![None], vec![None]));
    let new = create(&*store, "board", &Definition::default()).unwrap();
    assert!(new > old);
    assert_eq!(store.boards().unwrap()[0].definition.periods, []);
    assert_eq!(walk(&*store, new, Window(0), 10), [], "the old board's rows are not the new one's");
    write(&*store, &scores(vec![(key(new.0, 0, "ann"), Some(record(2)))])).unwrap();
    while store.purge_deleted(100).unwrap() > 0 {}
    assert_eq!(walk(&*store, new, Window(0), 10).len(), 1);
    assert_eq!(walk(&*store, old, Window(0), 10).len(), 0);
}

pub(crate) fn what_is_not_there_cannot_be_changed(backend: &dyn Backend) {
    let store = open(backend);
    let no = create(&*store, "board", &Definition::default()).unwrap();
    delete(&*store, no).unwrap();
    for missing in [no, BoardNo(99)] {
        for refused in [delete(&*store, missing), redefine(&*store, missing, Definition::default())] {
            assert!(matches!(refused, Err(StoreError::Row(_))), "{refused:?}");
        }
    }
    assert_eq!(store.boards().unwrap(), []);
}

/// Three boards of 10, 0 and 25 records in several windows and an import each; the second and the third are deleted.
fn with_deleted_boards(store: &dyn Store) {
    for (name, rows) in [("kept", 10), ("empty", 0), ("full", 25)] {
        let no = create(store, name, &Definition::default()).unwrap();
        let rows = (0..rows).map(|row| (key(no.0, row % 4, &format!("{row}")), Some(record(1)))).collect();
        write(store, &scores(rows)).unwrap();
        let imports = vec![(ImportKey { board: no, digest: [1; 32] }, ImportRow::default())];
        write(store, &WriteSet { imports, ..WriteSet::default() }).unwrap();
    }
    let boards = vec![BoardChange::Delete(BoardNo(2)), BoardChange::Delete(BoardNo(3))];
    write(store, &WriteSet { boards, ..WriteSet::default() }).unwrap();
}

fn rows_of(store: &dyn Store, board: u32) -> usize {
    let scores: usize = (0..4).map(|window| walk(store, BoardNo(board), Window(window), 100).len()).sum();
    let import = ImportKey { board: BoardNo(board), digest: [1; 32] };
    scores + usize::from(store.import_progress(&import).unwrap().is_some())
}

pub(crate) fn purging_is_bounded_and_leaves_others_alone(backend: &dyn Backend) {
    let store = open(backend);
    with_deleted_boards(&*store);
    assert_eq!(store.purge_deleted(0).unwrap(), 0);
    let mut left = 1 + 26;
    while left > 0 {
        let purged = store.purge_deleted(4).unwrap();
        assert_eq!(purged, left.min(4), "{left} left");
        left -= purged;
        assert_eq!(rows_of(&*store, 2) + rows_of(&*store, 3), left);
        assert_eq!(rows_of(&*store, 1), 11);
    }
    assert_eq!(store.purge_deleted(4).unwrap(), 0);
}

pub(crate) fn purging_goes_on_after_reopening(backend: &dyn Backend) {
    with_deleted_boards(&*open(backend));
    let mut purged = 0;
    for _ in 0..4 {
        purged += open(backend).purge_deleted(7).unwrap();
    }
    assert_eq!(purged, 27);
    assert_eq!(rows_of(&*open(backend), 1), 11);
}

pub(crate) fn a_board_may_be_replaced_in_one_transaction(backend: &dyn Backend) {
    let store = open(backend);
    let old = create(&*store, "board", &Definition::default()).unwrap();
    let id = BoardId::new("board").unwrap();
    let plan = ReadSet { board_names: vec![id.clone()], ..ReadSet::default() };
    run(&*store, &plan, &mut |loaded| {
        let definition = Definition { order: Order::Ascending, ..Definition::default() };
        let new = BoardRow { no: loaded.next_board, id: id.clone(), definition, created_at: Micros(9) };
        WriteSet { boards: vec![BoardChange::Delete(old), BoardChange::Create(new)], ..WriteSet::default() }
    })
    .unwrap();
    let boards = store.boards().unwrap();
    assert_eq!((boards.len(), boards[0].definition.order), (1, Order::Ascending));
}
