//! Moving records to another number of databases, cut at any moment.

use super::*;
use crate::contract::{create, load, request, stored, walk};
use std::collections::BTreeMap;
use tally_rules::outcome::Outcome;
use tally_rules::period::TimeSpan;
use tally_rules::{BoardId, Definition, Micros};
use tally_store::mysql::MySqlStore;
use tally_store::shards::{MoveProgress, check_alone, reshard};
use tally_store::{BanKey, BoardNo, ScoreKey, Window, WindowKey, WindowRow};
use tally_testkit::{Cut, Proxy};

const PLAYERS: u32 = 600;

/// The stored state, by queries.
#[derive(Debug, PartialEq)]
struct StoredState {
    scores: BTreeMap<ScoreKey, Record>,
    bans: Vec<PlayerId>,
    windows: Vec<WindowRow>,
    boards: Vec<String>,
    next_board: BoardNo,
    requests: usize,
    remembered: Option<Vec<u8>>,
}

fn player(number: u32) -> PlayerId {
    PlayerId::new(&format!("player {number}")).unwrap()
}

fn requests() -> Vec<tally_rules::idempotency::RequestKey> {
    let mut keys: Vec<_> = (0..20).map(|number| request("s", &format!("{number}"))).collect();
    keys.sort();
    keys
}

fn fill(store: &dyn Store) {
    for name in ["a", "gone", "b"] {
        create(store, name, &Definition::default()).unwrap();
    }
    for (board, window) in [(1, 0), (2, 0), (3, 0), (3, 77)] {
        let rows = (0..PLAYERS).map(|number| {
            let key = ScoreKey { board: BoardNo(board), window: Window(window), player: player(number) };
            (key, Some(record(i64::from(number + board))))
        });
        store.run(&ReadSet::default(), &mut |_| scores(rows.clone().collect())).unwrap();
    }
    let removed = (0..9)
        .map(|number| (ScoreKey { board: BoardNo(1), window: Window(0), player: player(number) }, None));
    let plan = plan_of(removed.clone().map(|(key, _)| key).collect());
    store.run(&plan, &mut |_| scores(removed.clone().collect())).unwrap();
    let span = TimeSpan { start: Micros(0), end: Micros(9) };
    let row =
        WindowRow { window: Window(77), rule: 0, span, closed: false, version: 0, stale: false, total: 0 };
    let mut bans: Vec<_> =
        (0..30).map(|number| (BanKey { board: BoardNo(3), player: player(number) }, true)).collect();
    bans.sort();
    let requests = requests().into_iter().map(|key| (key, stored(1, 5, Outcome::Removed)));
    let changes = WriteSet {
        bans,
        requests: requests.collect(),
        windows: vec![(WindowKey { board: BoardNo(3), window: Window(77) }, Some(row))],
        boards: vec![tally_store::BoardChange::Delete(BoardNo(2))],
        ..WriteSet::default()
    };
    store.run(&ReadSet::default(), &mut |_| changes.clone()).unwrap();
    store.set_meta("a", b"b").unwrap();
}

fn stored_state(store: &dyn Store) -> StoredState {
    let mut scores = BTreeMap::new();
    for (board, window) in [(1, 0), (2, 0), (3, 0), (3, 77)] {
        let (board, window) = (BoardNo(board), Window(window));
        for (player, record) in walk(store, board, window, 100) {
            scores.insert(ScoreKey { board, window, player }, record);
        }
    }
    let keys: Vec<ScoreKey> = scores.keys().cloned().collect();
    let records = store.records(&keys).unwrap();
    assert!(
        keys.iter().zip(records).all(|(key, record)| record == Some(scores[key])),
        "a record is not at home"
    );
    let plan =
        ReadSet { requests: requests(), board_names: vec![BoardId::new("z").unwrap()], ..ReadSet::default() };
    let loaded = load(store, &plan);
    StoredState {
        scores,
        bans: store.bans(BoardNo(3)).unwrap(),
        windows: store.windows(BoardNo(3)).unwrap(),
        boards: store.boards().unwrap().into_iter().map(|row| row.id.as_str().to_owned()).collect(),
        next_board: loaded.next_board,
        requests: loaded.requests.iter().flatten().count(),
        remembered: store.meta("a").unwrap(),
    }
}

fn move_to(from: &[String], to: &[String]) -> Result<tally_store::shards::Resharded, StoreError> {
    let mut last = MoveProgress::default();
    let done = reshard(from, to, &impatient(), &mut |_| (), &mut |progress| {
        assert!(progress.done >= last.done && progress.done <= progress.total);
        last = progress;
    });
    if done.is_ok() {
        assert_eq!(last.done, last.total, "{done:?}");
    }
    done
}

/// A store on these databases, as a server would open it.
fn opened(urls: &[String]) -> Box<dyn Store> {
    let [one] = urls else { return Box::new(open(urls)) };
    let store = MySqlStore::open(one, &impatient()).unwrap();
    check_alone(&store).unwrap();
    Box::new(store)
}

#[test]
fn records_move_from_one_to_two_to_three_to_one_and_nothing_else_changes() {
    let all = Databases::new(DatabaseKind::MariaDb10, 4).urls;
    fill(&*opened(&all[..1]));
    let mut before = stored_state(&*opened(&all[..1]));
    // Rows of deleted boards are purged before.
    before.scores.retain(|key, _| key.board != BoardNo(2));
    assert_eq!((before.scores.len(), before.requests), (3 * PLAYERS as usize - 9, 20));
    let lists: [&[usize]; 5] = [&[0, 1], &[0, 1, 2], &[0, 3], &[0], &[0]];
    let mut from: Vec<String> = all[..1].to_vec();
    for list in lists {
        let to: Vec<String> = list.iter().map(|at| all[*at].clone()).collect();
        let grows = to.starts_with(&from);
        if !grows {
            let refused = move_to(&[], &to);
            assert!(
                matches!(&refused, Err(StoreError::Layout(why)) if why.contains("--from")),
                "{refused:?}"
            );
        }
        let done = move_to(if grows { &[] } else { &from }, &to).unwrap();
        assert_eq!((done.rows, done.shards), (before.scores.len() as u64, (from.len(), to.len())));
        assert_eq!(stored_state(&*opened(&to)), before, "{list:?}");
        // A caller that did not learn of the end repeats the command.
        let again = reshard(&from, &to, &impatient(), &mut |_| (), &mut |_| ()).unwrap();
        assert_eq!((again.rows, again.resumed), (done.rows, true));
        assert_eq!(stored_state(&*opened(&to)), before, "{list:?}");
        // A database that was left out is no store.
        for url in from.iter().filter(|url| !to.contains(url)) {
            assert!(check_alone(&MySqlStore::open(url, &impatient()).unwrap()).is_err());
        }
        from = to;
    }
    // A database that was left out takes nothing either: it is not empty.
    let refused = move_to(&[], &all[..2]);
    assert!(matches!(&refused, Err(StoreError::Layout(why)) if why.contains("is not empty")), "{refused:?}");
}

#[test]
fn an_interrupted_reshard_continues_and_no_server_opens_the_store_meanwhile() {
    let server = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let steps = [
        "INSERT INTO boards",
        "INSERT INTO requests",
        "REPLACE INTO scores",
        "DELETE FROM scores WHERE (",
        "DELETE FROM meta",
    ];
    let mut cuts = 0;
    for (at, cut) in steps.iter().flat_map(|at| [(at, Cut::Before), (at, Cut::Answer)]) {
        let urls = [server.create_database(), server.create_database()];
        fill(&*opened(&urls[..1]));
        let mut before = stored_state(&*opened(&urls[..1]));
        before.scores.retain(|key, _| key.board != BoardNo(2));
        let proxies = [(); 2].map(|()| Proxy::start(server.address()));
        let own = server.address().to_string();
        let through = [0, 1].map(|shard| urls[shard].replace(&own, &proxies[shard].address().to_string()));
        for proxy in &proxies {
            proxy.cut_off_at(at.as_bytes(), cut);
            let done = move_to(&[], &through);
            proxy.pass();
            if done.is_err() {
                cuts += 1;
                // Not before it has begun, and from then on until it has ended. The answer to its very last message: it has
                // ended and the caller does not know.
                if (*at, cut) == ("DELETE FROM meta", Cut::Answer) {
                    continue;
                }
                let opens = check_alone(&MySqlStore::open(&urls[0], &impatient()).unwrap());
                assert!(format!("{opens:?}").contains("go on with the same"), "{at}, {cut:?}: {opens:?}");
                let opens = Shards::open(&urls, &impatient()).map(drop);
                assert!(format!("{opens:?}").contains("go on with the same"), "{at}, {cut:?}: {opens:?}");
            }
        }
        let done = move_to(&[], &through).unwrap();
        assert_eq!(done.rows, before.scores.len() as u64);
        assert_eq!(stored_state(&*opened(&urls)), before, "{at}, {cut:?}");
    }
    assert!(cuts > 3, "{cuts}");
}
