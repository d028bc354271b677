//! What a caller says of its transaction: it asks fewer shards, and finds what it has stored.

use super::*;
use crate::contract::{create, load, request, stored};
use tally_rules::outcome::Outcome;
use tally_rules::period::Span;
use tally_rules::{Definition, Micros};
use tally_store::{BoardNo, Part, PartKey, PartRow, ShardSet};
use tally_testkit::Proxy;

/// A player of the second of two shards.
fn there(store: &dyn Store) -> PlayerId {
    let mut players = (0..).map(|number| PlayerId::new(&format!("p{number}")).unwrap());
    players.find(|player| store.shard_of(player) == 1).unwrap()
}

fn part(number: u64, closed: bool) -> (PartKey, Option<PartRow>) {
    let (part, span) = (Part(number), Span { start: Micros(0), end: Micros(9) });
    let row = PartRow { part, rule: 0, span, closed, version: 0, stale: false, total: 0 };
    (PartKey { board: BoardNo(1), part }, Some(row))
}

#[test]
fn a_request_is_found_where_its_player_is() {
    let store = open(&Databases::new(DatabaseKind::MariaDb10, 2).urls);
    create(&store, "b", &Definition::default()).unwrap();
    let player = there(&store);
    // Its effect is its player's, and somebody else's too, and on the first shard as well.
    for (at, parts) in [(0, vec![]), (1, vec![part(5, true)]), (2, vec![part(6, false), part(7, true)])] {
        let requests = vec![request("s", &format!("{at}"))];
        let plan = Plan {
            boards: vec![BoardNo(1)],
            requests: requests.clone(),
            shards: ShardSet::of(1),
            ..Plan::default()
        };
        store
            .run(&plan, &mut |loaded| {
                assert_eq!((&loaded.requests[0], loaded.boards[0].is_some()), (&None, true));
                Changes {
                    requests: vec![(requests[0].clone(), stored(7, at, Outcome::Removed))],
                    parts: parts.clone(),
                    ..scores(vec![(key(1, 0, player.as_str()), Some(record(at)))])
                }
            })
            .unwrap();
        let found = load(&store, &plan).requests;
        assert_eq!(found, [Some(stored(7, at, Outcome::Removed))], "{at}");
        // Whoever does not know where asks all.
        assert_eq!(load(&store, &Plan { shards: ShardSet::default(), ..plan }).requests, found, "{at}");
    }
    let numbers: Vec<u64> = store.parts(BoardNo(1)).unwrap().iter().map(|row| row.part.0).collect();
    assert_eq!(numbers, [5, 6, 7]);
}

#[test]
fn requests_of_a_batch_of_several_are_each_where_their_player_is() {
    let store = open(&Databases::new(DatabaseKind::MariaDb10, 3).urls);
    let requests: Vec<_> = (0..3).map(|number| request("s", &format!("{number}"))).collect();
    let plan = Plan {
        requests: requests.clone(),
        shards: ShardSet::first(3),
        request_shards: vec![2, 0, 1],
        ..Plan::default()
    };
    let all: Vec<_> = requests.iter().map(|key| (key.clone(), stored(1, 1, Outcome::Removed))).collect();
    store.run(&plan, &mut |_| Changes { requests: all.clone(), ..Changes::default() }).unwrap();
    for (key, shard) in requests.iter().zip([2, 0, 1]) {
        let plan = Plan { requests: vec![key.clone()], shards: ShardSet::of(shard), ..Plan::default() };
        assert!(load(&store, &plan).requests[0].is_some(), "{key:?}");
    }
    assert_eq!(store.expire_requests(Micros(5), 9).unwrap(), 3, "each is stored once");
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
    let plan = Plan {
        boards: vec![BoardNo(1)],
        requests: vec![request("s", "k")],
        shards: ShardSet::of(1),
        ..Plan::default()
    };
    let changes = Changes {
        requests: vec![(request("s", "k"), stored(1, 1, Outcome::Removed))],
        parts: vec![part(5, false)],
        ..scores(vec![(key(1, 0, player.as_str()), Some(record(4)))])
    };
    store
        .run(&plan, &mut |loaded| {
            assert_eq!(loaded.boards, [Some(0)]);
            changes.clone()
        })
        .unwrap();
    assert_eq!(store.records(&[key(1, 0, player.as_str())]).unwrap(), [Some(record(4))]);
}
