//! Several servers side by side on several databases: what each reads of the others, and the remains of one that dies in between.

use super::*;
use crate::contract::create;
use tally_rules::Definition;
use tally_rules::period::TimeSpan;
use tally_rules::{BoardId, Micros};
use tally_store::{
    BanKey, Bans, BoardChange, BoardNo, BoardRef, Coordination, FeedPosition, Garbage, Maintenance,
    OutboxContent, Reads, Revisions, ShardSet, Transactions, Window, WindowKey, WindowRow,
};
use tally_testkit::{wait_for, wait_until};

const BOARD: BoardNo = BoardNo(1);

fn beside(urls: &[String], who: &str) -> Shards {
    Shards::open(urls, &Options { beside: Some(who.into()), ..impatient() }).unwrap()
}

fn databases() -> Vec<String> {
    Databases::new(DatabaseKind::MariaDb10, 2).urls
}

/// A player of a database.
fn player(store: &dyn Store, shard: usize, nth: usize) -> PlayerId {
    let all = (0..).map(|number| PlayerId::new(&format!("p{number}")).unwrap());
    all.filter(|player| store.shard_of(player) == shard).nth(nth).unwrap()
}

fn ban(player: PlayerId, banned: bool) -> WriteSet {
    WriteSet { bans: vec![(BanKey { board: BOARD, player }, banned)], ..WriteSet::default() }
}

fn alter(store: &dyn Store, changes: &WriteSet) -> Result<(), StoreError> {
    let plan = ReadSet { boards: vec![BOARD], exclusive: true, ..ReadSet::default() };
    store.run(&plan, &mut |_| changes.clone()).map(drop)
}

fn next(store: &dyn Store, at: &mut Vec<FeedPosition>) -> Vec<BoardNo> {
    let changed = store.change_feed(at).unwrap();
    *at = changed.next;
    changed.boards
}

fn state(store: &dyn Store, known: Option<&Revisions>) -> (Revisions, Bans) {
    let state = store.board(BoardRef::No(BOARD), known).unwrap().unwrap();
    (state.revisions, state.bans)
}

#[test]
fn what_one_changes_on_any_database_the_other_hears() {
    let urls = databases();
    let (first, second) = (beside(&urls, "first"), beside(&urls, "second"));
    create(&first, "b", &Definition::default()).unwrap();
    let mut at = Vec::new();
    next(&second, &mut at);
    assert_eq!(next(&second, &mut at), []);
    for shard in [0, 1] {
        let (before, _) = state(&second, None);
        let who = player(&first, shard, 0);
        alter(&first, &ban(who.clone(), true)).unwrap();
        assert_eq!(next(&second, &mut at), [BOARD], "of database {shard}");
        let (after, bans) = state(&second, Some(&before));
        assert_eq!(bans, Bans::Since { revisions: before.clone(), changes: vec![(who, true)] });
        let changed = [0, 1].map(|shard| after.of(shard) != before.of(shard));
        assert_eq!(changed, [shard == 0, shard == 1], "{before:?} {after:?}");
    }
    // A transaction sees the revision of its own database.
    let (known, bans) = state(&second, None);
    let mut banned: Vec<PlayerId> = (0..2).map(|shard| player(&first, shard, 0)).collect();
    banned.sort_unstable();
    assert_eq!(bans, Bans::All(banned));
    for shard in [0, 1] {
        let plan = ReadSet { boards: vec![BOARD], shards: ShardSet::of(shard), ..ReadSet::default() };
        second
            .run(&plan, &mut |loaded| {
                assert_eq!(loaded.boards, [Some(known.of(shard))]);
                WriteSet::default()
            })
            .unwrap();
    }
}

#[test]
fn a_lagging_database_is_updated_by_the_server_that_finds_it() {
    let server = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let urls = databases();
    let (first, second) = (beside(&urls, "first"), beside(&urls, "second"));
    for name in ["a", "b", "c", "c2"] {
        create(&first, name, &Definition::default()).unwrap();
    }
    let [one, other] = [0, 1].map(|at| urls[at as usize].rsplit('/').next().unwrap().to_owned());
    // As if the first server had died in between, three times. The other database does not know board 4, which has the name of 3
    // since. It knows board 1 as it was, and not that boards 2 and 3 are deleted.
    server.sql(&format!("DELETE FROM {other}.boards WHERE `no` = 4"));
    server.sql(&format!("DELETE FROM {other}.revisions WHERE board = 4"));
    server.sql(&format!("UPDATE {one}.boards SET implicit = 1 WHERE `no` = 1"));
    server.sql(&format!("DELETE FROM {one}.boards WHERE `no` IN (2, 3)"));
    server.sql(&format!("UPDATE {one}.boards SET id = 'c' WHERE `no` = 4"));
    server.sql(&format!("UPDATE {one}.revisions SET gone = 1 WHERE board IN (2, 3)"));
    server.sql(&format!("INSERT INTO {one}.deleted_boards VALUES (2), (3)"));
    let who = player(&second, 1, 0);
    let key = key(4, 0, who.as_str());
    let plan = ReadSet { boards: vec![BoardNo(4)], scores: vec![key.clone()], ..ReadSet::default() };
    let mut live = Vec::new();
    second
        .run(&plan, &mut |loaded| {
            live.clone_from(&loaded.boards);
            scores(vec![(key.clone(), Some(record(5)))])
        })
        .unwrap();
    assert!(live[0].is_some());
    assert_eq!(second.records(&[key]).unwrap(), [Some(record(5))]);
    assert!(second.board(BoardRef::No(BOARD), None).unwrap().unwrap().row.definition.implicit);
    let of_other =
        |what: &str| server.sql(&format!("SELECT {what} FROM {other}.boards WHERE `no` IN (1, 2)"));
    assert_eq!(of_other("implicit").split_whitespace().next(), Some("1"));
    assert!(second.board(BoardRef::No(BoardNo(2)), None).unwrap().is_none());
    assert_eq!(of_other("`no`").trim(), "1");
    // It stays so if it really is gone.
    let plan = ReadSet { boards: vec![BoardNo(2)], shards: ShardSet::of(1), ..ReadSet::default() };
    second
        .run(&plan, &mut |loaded| {
            assert_eq!(loaded.boards, [None]);
            WriteSet::default()
        })
        .unwrap();
    while second.purge_deleted(100).unwrap() > 0 {}
    assert_eq!(server.sql(&format!("SELECT COUNT(*) FROM {other}.deleted_boards")).trim(), "0");
}

#[test]
fn the_last_update_has_the_newest_state() {
    let urls = databases();
    let (first, second) = (beside(&urls, "first"), beside(&urls, "second"));
    create(&first, "b", &Definition::default()).unwrap();
    std::thread::scope(|scope| {
        for (store, implicit) in [(&first, true), (&second, false)] {
            scope.spawn(move || {
                for nth in 0..30 {
                    let definition =
                        Definition { implicit: implicit == (nth % 2 == 0), ..Definition::default() };
                    let change = BoardChange::Redefine(BOARD, definition);
                    loop {
                        match alter(store, &WriteSet { boards: vec![change.clone()], ..WriteSet::default() })
                        {
                            Err(StoreError::Conflict(_)) => {}
                            done => break done.unwrap(),
                        }
                    }
                }
            });
        }
    });
    let rows: Vec<_> = first.each().iter().map(|store| store.boards().unwrap()).collect();
    assert_eq!(rows[0], rows[1]);
    assert_eq!(rows[0][0].id, BoardId::new("b").unwrap());
}

#[test]
fn a_period_is_over_when_every_database_knows() {
    let world = World::new();
    let (first, second) = (beside(&world.through, "first"), beside(&world.urls, "second"));
    create(&first, "b", &Definition::default()).unwrap();
    let span = TimeSpan { start: Micros(0), end: Micros(9) };
    let row =
        |closed| WindowRow { window: Window(7), rule: 0, span, closed, version: 0, stale: false, total: 0 };
    let window = WindowKey { board: BOARD, window: Window(7) };
    let windows = |closed| WriteSet { windows: vec![(window, Some(row(closed)))], ..WriteSet::default() };
    // It begins with a record of the second database, as both servers may have seen it.
    let plan =
        ReadSet { boards: vec![BOARD], exclusive: true, shards: ShardSet::of(1), ..ReadSet::default() };
    second.run(&plan, &mut |_| windows(false)).unwrap();
    let (open, _) = state(&second, None);
    world.cut_off(1);
    let done = alter(&first, &windows(true));
    assert!(matches!(done, Err(StoreError::Partly(_))), "{done:?}");
    // The server that reads the leaderboard anew updates the database.
    let (over, _) = state(&second, None);
    assert!(
        over.of(0) > open.of(0) && over.of(1) > open.of(1),
        "a plan of {open:?} is planned again: {over:?}"
    );
    assert_eq!(second.each()[1].windows(BOARD).unwrap(), [row(true)]);
    world.proxies[1].pass();
    wait_until("every database has it", || match alter(&first, &windows(true)) {
        Err(StoreError::Partly(_)) => false,
        done => {
            done.unwrap();
            true
        }
    });
    // A database that has the change already is not written to again.
    assert_eq!(state(&second, None).0.of(1), over.of(1));
    assert_eq!(second.windows(BOARD).unwrap(), [row(true)]);
}

#[test]
fn a_leaderboard_that_is_known_is_read_without_a_database_that_is_away() {
    let world = World::new();
    let (first, second) = (beside(&world.through, "first"), beside(&world.urls, "second"));
    create(&first, "b", &Definition::default()).unwrap();
    let (known, _) = state(&first, None);
    world.cut_off(1);
    let [who, other] = [0, 1].map(|shard| player(&first, shard, 0));
    alter(&second, &ban(who.clone(), true)).unwrap();
    alter(&second, &ban(other.clone(), true)).unwrap();
    let (partly, bans) = state(&first, Some(&known));
    assert_eq!(bans, Bans::Since { revisions: known.clone(), changes: vec![(who, true)] });
    assert_eq!(partly.unreached(), ShardSet::of(1));
    let (now, _) = state(&second, None);
    let holds = |read: &Revisions| [0, 1].map(|shard| read.holds(shard, now.of(shard)));
    assert_eq!((partly.of(1), holds(&partly)), (known.of(1), [true, false]));
    assert!(known.are_less_than(&partly) && !partly.holds(1, known.of(1)));
    // One that is not known is read whole.
    is_away(&first.board(BoardRef::No(BOARD), None));
    world.proxies[1].pass();
    let (whole, bans) = wait_for("every database is reached", || {
        let (read, bans) = state(&first, Some(&partly));
        read.unreached().is_empty().then_some((read, bans))
    });
    assert_eq!(
        (holds(&whole), bans),
        ([true, true], Bans::Since { revisions: partly.clone(), changes: vec![(other, true)] })
    );
    assert!(partly.are_less_than(&whole));
}

/// As if the server that forgot a period had died before it updated the others.
#[test]
fn a_forgotten_period_is_purged_on_the_first_database_when_the_others_know() {
    let server = ScratchDatabase::shared(DatabaseKind::MariaDb10);
    let urls = databases();
    let (first, second) = (beside(&urls, "first"), beside(&urls, "second"));
    create(&first, "b", &Definition::default()).unwrap();
    let span = TimeSpan { start: Micros(0), end: Micros(9) };
    let row =
        WindowRow { window: Window(7), rule: 0, span, closed: true, version: 0, stale: false, total: 0 };
    let part = WindowKey { board: BOARD, window: Window(7) };
    alter(&first, &WriteSet { windows: vec![(part, Some(row))], ..WriteSet::default() }).unwrap();
    let who = player(&first, 1, 0);
    let key = key(BOARD.0, 7, who.as_str());
    let plan = ReadSet { scores: vec![key.clone()], ..ReadSet::default() };
    first.run(&plan, &mut |_| scores(vec![(key.clone(), Some(record(1)))])).unwrap();
    let [one, other] = [0, 1].map(|at| urls[at as usize].rsplit('/').next().unwrap().to_owned());
    server.sql(&format!("DELETE FROM {one}.parts; INSERT INTO {one}.deleted_parts VALUES (1, 7, -1)"));
    while second.purge_deleted(100).unwrap() > 0 {}
    assert_eq!(server.sql(&format!("SELECT COUNT(*) FROM {other}.parts")).trim(), "0");
    assert_eq!(second.records(&[key]).unwrap(), [None]);
    assert_eq!([0, 1].map(|shard| second.unpurged(&[part], shard).unwrap()), [Vec::new(), Vec::new()]);
}

#[test]
fn what_is_deleted_is_purged_on_the_first_database_last() {
    let store = beside(&databases(), "one");
    create(&store, "b", &Definition::default()).unwrap();
    let part = WindowKey { board: BOARD, window: Window(7) };
    let keys: Vec<_> = (0..3).map(|nth| key(BOARD.0, 7, player(&store, 1, nth).as_str())).collect();
    for key in &keys {
        let plan = ReadSet { scores: vec![key.clone()], ..ReadSet::default() };
        store.run(&plan, &mut |_| scores(vec![(key.clone(), Some(record(1)))])).unwrap();
    }
    let gone =
        WriteSet { windows: vec![(part, None)], garbage: vec![Garbage::Window(part)], ..WriteSet::default() };
    alter(&store, &gone).unwrap();
    while !store.purge_window(part, 1).unwrap() {
        assert_eq!(store.unpurged(&[part], 0).unwrap(), [part]);
    }
    assert_eq!([0, 1].map(|shard| store.unpurged(&[part], shard).unwrap()), [Vec::new(), Vec::new()]);
}

#[test]
fn a_database_that_is_away_keeps_no_marks_and_no_periods_of_others() {
    let world = World::new();
    let store = beside(&world.through, "one");
    create(&store, "b", &Definition::default()).unwrap();
    let part = WindowKey { board: BOARD, window: Window(7) };
    for (away, here) in [(0, 1), (1, 0)] {
        let key = key(BOARD.0, 0, player(&store, here, 0).as_str());
        let plan =
            ReadSet { boards: vec![BOARD], scores: vec![key.clone()], outbox: true, ..ReadSet::default() };
        let score = |_: &_| scores(vec![(key.clone(), Some(record(1)))]);
        let left = retry_while_unavailable(|| store.run(&plan, &mut { score })).outbox.unwrap();
        world.cut_off(away);
        let found = store.outbox(Duration::ZERO, None).unwrap();
        assert_eq!(found.iter().map(|mark| mark.batch).collect::<Vec<_>>(), [left]);
        assert_eq!(store.outbox(Duration::ZERO, Some(left)).unwrap(), []);
        let mut players = Vec::new();
        let mut each = |player, _, _| players.push(player);
        store.scan_states(Some(here), (BOARD, Window(0)), None, 9, &mut each).unwrap();
        assert_eq!(players, [key.player]);
        assert_eq!(store.unpurged(&[part], here).unwrap(), []);
        store.clear_outbox(&[left]).unwrap();
        world.proxies[away].pass();
    }
}

#[test]
fn marks_of_every_database_are_found_and_taken_off() {
    let urls = databases();
    let (first, second) = (beside(&urls, "first"), beside(&urls, "second"));
    create(&first, "b", &Definition::default()).unwrap();
    let keys = [0, 1].map(|shard| key(BOARD.0, 0, player(&first, shard, 0).as_str()));
    let mut left = Vec::new();
    for key in &keys {
        let plan =
            ReadSet { boards: vec![BOARD], scores: vec![key.clone()], outbox: true, ..ReadSet::default() };
        let done = first.run(&plan, &mut |_| scores(vec![(key.clone(), Some(record(1)))])).unwrap();
        left.push(done.outbox.unwrap());
    }
    let (mut found, mut after) = (Vec::new(), None);
    while let Some(last) = second
        .outbox(Duration::ZERO, after)
        .unwrap()
        .into_iter()
        .inspect(|mark| found.push(mark.clone()))
        .last()
    {
        after = Some(last.batch);
    }
    let what: Vec<_> = found.iter().map(|mark| (mark.batch, mark.what.clone())).collect();
    let wanted: Vec<_> = left
        .iter()
        .zip(&keys)
        .map(|(batch, key)| (*batch, OutboxContent::Records(vec![key.clone()])))
        .collect();
    assert_eq!(what, wanted);
    for (batch, mark) in left.iter().zip(&found) {
        assert_eq!(second.resolve(batch).unwrap().map(|done| done.version), Some(mark.version));
    }
    // Those of one database can be merged; those of several stay apart.
    assert_eq!(first.merge_outbox(&left).unwrap(), None);
    let folded = first.merge_outbox(&left[1..]).unwrap().unwrap();
    assert_eq!(second.outbox(Duration::ZERO, Some(left[0])).unwrap()[0].batch, folded);
    second.clear_outbox(&[left[0], folded]).unwrap();
    assert!(second.outbox(Duration::ZERO, None).unwrap().is_empty());
    let states = second.states(&keys).unwrap();
    assert!(
        states.iter().all(|state| matches!(state, Some((Some(_), version)) if *version > 0)),
        "{states:?}"
    );
}
