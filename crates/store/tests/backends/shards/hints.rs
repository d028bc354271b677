//! Hints of a caller about its transaction: it reads fewer shards, and finds what it has stored.

use super::*;
use crate::contract::{create, load, request, stored};
use tally_rules::outcome::Outcome;
use tally_rules::period::TimeSpan;
use tally_rules::{Definition, Micros};
use tally_store::{
    BoardNo, ImportKey, ImportRow, Reads, ShardSet, Transactions, Window, WindowKey, WindowRow,
};
use tally_testkit::Proxy;

/// A player of the second of two shards.
fn there(store: &dyn Store) -> PlayerId {
    let mut players = (0..).map(|number| PlayerId::new(&format!("p{number}")).unwrap());
    players.find(|player| store.shard_of(player) == 1).unwrap()
}

fn window(number: u64, closed: bool) -> (WindowKey, Option<WindowRow>) {
    let (window, span) = (Window(number), TimeSpan { start: Micros(0), end: Micros(9) });
    let row = WindowRow { window, rule: 0, span, closed, version: 0, stale: false, total: 0 };
    (WindowKey { board: BoardNo(1), window }, Some(row))
}

#[test]
fn a_request_is_found_where_its_player_is() {
    let store = open(&Databases::new(DatabaseKind::MariaDb10, 2).urls);
    create(&store, "b", &Definition::default()).unwrap();
    let player = there(&store);
    // Its effect is its player's, and another player's too, and on the first shard as well.
    for (at, windows) in
        [(0, vec![]), (1, vec![window(5, true)]), (2, vec![window(6, false), window(7, true)])]
    {
        let requests = vec![request("s", &format!("{at}"))];
        let plan = ReadSet {
            boards: vec![BoardNo(1)],
            requests: requests.clone(),
            shards: ShardSet::of(1),
            ..ReadSet::default()
        };
        store
            .run(&plan, &mut |loaded| {
                assert_eq!((&loaded.requests[0], loaded.boards[0].is_some()), (&None, true));
                WriteSet {
                    requests: vec![(requests[0].clone(), stored(7, at, Outcome::Removed))],
                    windows: windows.clone(),
                    ..scores(vec![(key(1, 0, player.as_str()), Some(record(at)))])
                }
            })
            .unwrap();
        let found = load(&store, &plan).requests;
        assert_eq!(found, [Some(stored(7, at, Outcome::Removed))], "{at}");
        // A caller without a hint reads all.
        assert_eq!(load(&store, &ReadSet { shards: ShardSet::default(), ..plan }).requests, found, "{at}");
    }
    let numbers: Vec<u64> = store.windows(BoardNo(1)).unwrap().iter().map(|row| row.window.0).collect();
    assert_eq!(numbers, [5, 6, 7]);
}

#[test]
fn an_import_is_as_far_as_the_first_database_and_counts_the_rows_of_all() {
    let store = open(&Databases::new(DatabaseKind::MariaDb10, 2).urls);
    create(&store, "b", &Definition::default()).unwrap();
    let key = ImportKey { board: BoardNo(1), digest: [1; 32] };
    let go_on = |shard, lines, taken| {
        let shards = ShardSet::of(shard);
        let plan = ReadSet { imports: vec![key.clone()], shards, ..ReadSet::default() };
        let row = ImportRow { lines, taken, refused: 1, finished: lines == 9 };
        let changes = WriteSet { imports: vec![(key.clone(), row)], ..WriteSet::default() };
        store.run(&plan, &mut |_| changes.clone()).unwrap();
        assert_eq!(load(&store, &plan).imports, [Some(row)], "each has a position of its own");
        store.import_progress(&key).unwrap().map(|row| (row.lines, row.taken, row.refused, row.finished))
    };
    assert_eq!(store.import_progress(&key).unwrap(), None);
    assert_eq!(go_on(1, 5, 2), None);
    assert_eq!(go_on(0, 5, 3), Some((5, 5, 2, false)));
    assert_eq!(go_on(1, 9, 4), Some((5, 7, 2, false)));
    assert_eq!(go_on(0, 9, 3), Some((9, 7, 2, true)));
}

#[test]
fn what_concerns_one_shard_asks_no_other() {
    let server = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let proxy = Proxy::start(server.address());
    let (one, other) = (server.create_database(), server.create_database());
    let through = one.replace(&server.address().to_string(), &proxy.address().to_string());
    let store = open(&[through, other]);
    create(&store, "b", &Definition::default()).unwrap();
    let player = there(&store);
    proxy.refuse();
    proxy.cut();
    let plan = ReadSet {
        boards: vec![BoardNo(1)],
        requests: vec![request("s", "k")],
        shards: ShardSet::of(1),
        ..ReadSet::default()
    };
    let changes = WriteSet {
        requests: vec![(request("s", "k"), stored(1, 1, Outcome::Removed))],
        windows: vec![window(5, false)],
        ..scores(vec![(key(1, 0, player.as_str()), Some(record(4)))])
    };
    store
        .run(&plan, &mut |loaded| {
            assert!(loaded.boards[0].is_some());
            changes.clone()
        })
        .unwrap();
    assert_eq!(store.records(&[key(1, 0, player.as_str())]).unwrap(), [Some(record(4))]);
}
