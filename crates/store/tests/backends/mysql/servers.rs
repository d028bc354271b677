//! The exchange between several servers of one store: revisions, the outbox and task leases.

use super::*;
use crate::contract::{archives, create, key_row, load, write};
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use tally_rules::{BoardId, Definition, PlayerId};
use tally_store::archive::ArchiveStep;
use tally_store::{
    BanKey, Bans, BoardChange, BoardNo, BoardRef, BoardState, Coordination, FeedPage, FeedPosition,
    KeyChange, Maintenance, OutboxContent, Reads, Revisions, Task, Transactions, Window, WindowKey,
};
use tally_testkit::SetAtEnd;

for_both!(
    every_change_has_a_revision_that_followers_hear_of,
    a_follower_misses_no_write_of_any_server,
    a_follower_gets_past_a_transaction_on_thousands_of_boards,
    a_board_is_read_as_of_its_revision,
    only_bans_that_are_new_are_read,
    a_transaction_knows_which_revision_it_stands_on,
    outbox_entries_stay_until_they_are_published,
    removed_records_are_walked_with_their_versions,
    one_has_a_turn_until_its_time_is_over,
    a_month_that_one_server_archives_is_read_by_the_other_at_once,
);

/// Two servers with one folder: either does a step, and both read the same after each.
fn a_month_that_one_server_archives_is_read_by_the_other_at_once(kind: DatabaseKind) {
    let url = ScratchDatabase::shared(kind).create_database();
    let folder = tempfile::tempdir().unwrap();
    let beside = |who: &str| {
        let (beside, archives) = (Some(who.to_owned()), Some(folder.path().to_owned()));
        MySqlStore::open(&url, &Options { beside, archives, ..patient() }).unwrap()
    };
    let both = [beside("one"), beside("another")];
    archives::fill(&both[0]);
    let before = archives::look(&both[1]);
    archives::ask(&both[0], &[archives::month("2025-11"), archives::month("2025-12")]);
    for at in 0.. {
        let done = archives::one_step(&both[at % 2]);
        assert!(both.iter().all(|store| archives::look(store) == before), "{done:?}");
        if done == ArchiveStep::Nothing {
            break;
        }
    }
    assert!(both[1].lease_task(Task::Archives, Duration::from_secs(9)).unwrap());
    assert!(!both[0].lease_task(Task::Archives, Duration::from_secs(9)).unwrap());
    // A server without the folder gives no shorter history.
    let away = open(&url);
    let everything = away.ledger().list_transfers(archives::last(), 9_999);
    assert!(matches!(everything, Err(StoreError::Archive { .. })), "{everything:?}");
}

fn ban(board: BoardNo, player: &str, banned: bool) -> WriteSet {
    let player = PlayerId::new(player).unwrap();
    WriteSet { bans: vec![(BanKey { board, player }, banned)], ..WriteSet::default() }
}

/// The changes since then; the follower goes on from there.
fn next(store: &dyn Store, from: &mut Vec<FeedPosition>) -> FeedPage {
    let changed = store.change_feed(from).unwrap();
    assert!(changed.next >= *from && !changed.more);
    from.clone_from(&changed.next);
    changed
}

fn every_change_has_a_revision_that_followers_hear_of(kind: DatabaseKind) {
    let url = ScratchDatabase::shared(kind).create_database();
    let (store, other) = (open(&url), open(&url));
    let mut from = Vec::new();
    next(&other, &mut from);
    let board = create(&store, "b", &Definition::default()).unwrap();
    let elsewhere = create(&store, "c", &Definition::default()).unwrap();
    assert_eq!(next(&other, &mut from).boards, [board, elsewhere]);
    assert_eq!(next(&other, &mut from).boards, []);
    let window = crate::contract::windows::row(5, false, 0);
    let key = WindowKey { board, window: window.window };
    let redefined = Definition { implicit: true, ..Definition::default() };
    let changes = [
        ban(board, "p", true),
        WriteSet { windows: vec![(key, Some(window))], ..WriteSet::default() },
        WriteSet { boards: vec![BoardChange::Redefine(board, redefined.clone())], ..WriteSet::default() },
    ];
    for change in changes {
        let plan = ReadSet { boards: vec![board], exclusive: true, ..ReadSet::default() };
        let done = store.run(&plan, &mut |_| change.clone()).unwrap();
        let changed = next(&other, &mut from);
        assert_eq!((changed.boards, changed.keys), (vec![board], false), "{change:?}");
        assert_eq!(other.board(BoardRef::No(board), None).unwrap().unwrap().revisions.of(0), done.revision);
    }
    let state = other.board(BoardRef::Id(&BoardId::new("b").unwrap()), None).unwrap().unwrap();
    let BoardState { row, bans, windows, .. } = state;
    assert_eq!((row.no, row.definition), (board, redefined));
    assert_eq!((bans, windows), (Bans::All(vec![PlayerId::new("p").unwrap()]), vec![window]));
    // Servers cache no records.
    add(&store, |_| ()).unwrap();
    assert_eq!(next(&other, &mut from), FeedPage { next: from.clone(), ..FeedPage::default() });
    let keys = vec![KeyChange::Create(key_row("k", 1))];
    write(&store, &WriteSet { keys, ..WriteSet::default() }).unwrap();
    let changed = next(&other, &mut from);
    assert_eq!((changed.boards, changed.keys), (vec![], true));
    let gone = WriteSet { boards: vec![BoardChange::Delete(board)], ..WriteSet::default() };
    write(&store, &gone).unwrap();
    assert_eq!(next(&other, &mut from).boards, [board]);
    assert_eq!(other.board(BoardRef::No(board), None).unwrap(), None);
    assert_eq!(load(&other, &ReadSet { boards: vec![board], ..ReadSet::default() }).boards, [None]);
    let purged = other.purge_deleted(100).unwrap() + other.purge_deleted(100).unwrap();
    assert_eq!(purged, 3, "ban, part and record");
}

/// Three write at once, one follows: at the end its copy is the stored state.
fn a_follower_misses_no_write_of_any_server(kind: DatabaseKind) {
    const ROUNDS: usize = 40;
    let url = ScratchDatabase::shared(kind).create_database();
    let store = open(&url);
    let boards: Vec<BoardNo> =
        (0..5).map(|nth| create(&store, &format!("b{nth}"), &Definition::default()).unwrap()).collect();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let end = SetAtEnd::new(&done);
        let writers: Vec<_> = (0..3)
            .map(|writer| {
                let (url, boards) = (&url, &boards);
                scope.spawn(move || {
                    let store = open(url);
                    for round in 0..ROUNDS {
                        let board = boards[(writer * 7 + round * 3) % boards.len()];
                        let change = ban(board, &format!("p{}", round % 4), (round + writer) % 2 == 0);
                        let plan =
                            ReadSet { boards: vec![board], exclusive: round % 3 == 0, ..ReadSet::default() };
                        run(&store, &plan, &mut |_| change.clone()).unwrap();
                    }
                })
            })
            .collect();
        let follower = scope.spawn(|| {
            let store = open(&url);
            let (mut from, mut copies) = (Vec::new(), BTreeMap::new());
            loop {
                let last = done.load(Ordering::SeqCst);
                for board in next(&store, &mut from).boards {
                    let (known, banned): &mut (Revisions, HashSet<PlayerId>) =
                        copies.entry(board).or_default();
                    let at = Some(&*known).filter(|known| known.are_known());
                    let state = store.board(BoardRef::No(board), at).unwrap().unwrap();
                    assert!(at.is_none() || matches!(state.bans, Bans::Since { .. }));
                    assert!(state.bans.apply(known, banned));
                    *known = state.revisions;
                }
                if last {
                    return copies;
                }
            }
        });
        for writer in writers {
            writer.join().unwrap();
        }
        drop(end);
        for (board, (revisions, banned)) in follower.join().unwrap() {
            let state = store.board(BoardRef::No(board), None).unwrap().unwrap();
            let mut stored = HashSet::new();
            state.bans.apply(&Revisions::default(), &mut stored);
            assert_eq!((revisions, banned), (state.revisions, stored));
        }
    });
}

/// All boards of a transaction have one revision, so a page of the feed may end between two of them.
fn a_follower_gets_past_a_transaction_on_thousands_of_boards(kind: DatabaseKind) {
    let server = ScratchDatabase::shared(kind);
    let url = server.create_database();
    // The end of a transaction of thousands of rows may take longer than that of a short one.
    let store = MySqlStore::open(&url, &Options { lock_wait: GIVE_UP, ..patient() }).unwrap();
    let other = open(&url);
    let mut from = Vec::new();
    next(&other, &mut from);
    let rows: Vec<String> = (1..=2_500).map(|no| format!("({no}, 1, 0)")).collect();
    let name = url.rsplit('/').next().unwrap();
    server.sql(&format!("INSERT INTO {name}.revisions (board, revision, gone) VALUES {}", rows.join(",")));
    let player = PlayerId::new("p").unwrap();
    let ban = |no| (BanKey { board: BoardNo(no), player: player.clone() }, true);
    for last in [998, 999, 1_000, 1_001, 2_500] {
        let bans: Vec<_> = (1..=last).map(ban).collect();
        write(&store, &WriteSet { bans, ..WriteSet::default() }).unwrap();
        let mut seen = Vec::new();
        loop {
            let changed = other.change_feed(&from).unwrap();
            assert!(changed.next > from || !changed.more, "the feed stands still at {from:?}");
            from = changed.next;
            seen.extend(changed.boards);
            if !changed.more {
                break;
            }
        }
        assert_eq!(seen, (1..=last).map(BoardNo).collect::<Vec<_>>());
    }
}

/// Three ban players and restore them, two read: the banned players are those of the changes up to the revision, and of no later
/// one.
fn a_board_is_read_as_of_its_revision(kind: DatabaseKind) {
    const ROUNDS: usize = 60;
    let url = ScratchDatabase::shared(kind).create_database();
    let id = BoardId::new("b").unwrap();
    let board = create(&open(&url), "b", &Definition::default()).unwrap();
    let written = AtomicBool::new(false);
    let (changes, reads) = std::thread::scope(|scope| {
        let (url, written) = (&url, &written);
        let end = SetAtEnd::new(written);
        let writers: Vec<_> = (0..3)
            .map(|writer| {
                scope.spawn(move || {
                    let store = open(url);
                    let plan = ReadSet { boards: vec![board], exclusive: true, ..ReadSet::default() };
                    let change = |round: usize| {
                        let (player, banned) =
                            (format!("p{writer}-{}", round % 7), (round / 7).is_multiple_of(2));
                        let done = run(&store, &plan, &mut |_| ban(board, &player, banned)).unwrap();
                        (done.revision, (player, banned))
                    };
                    (0..ROUNDS).map(change).collect::<Vec<_>>()
                })
            })
            .collect();
        let readers = [BoardRef::No(board), BoardRef::Id(&id)].map(|name| {
            scope.spawn(move || {
                let (store, mut seen) = (open(url), Vec::new());
                while !written.load(Ordering::SeqCst) {
                    let state = store.board(name, None).unwrap().unwrap();
                    let Bans::All(bans) = state.bans else { panic!("all were asked for") };
                    seen.push((state.revisions.of(0), bans));
                }
                seen
            })
        });
        let changes: BTreeMap<_, _> = writers.into_iter().flat_map(|one| one.join().unwrap()).collect();
        drop(end);
        (changes, readers.map(|one| one.join().unwrap()))
    });
    assert_eq!(changes.len(), 3 * ROUNDS, "each has a revision of its own");
    for (revision, bans) in reads.into_iter().flatten() {
        let last: BTreeMap<_, _> = changes.range(..=revision).map(|(_, (player, to))| (player, to)).collect();
        let banned: Vec<_> =
            last.iter().filter(|(_, banned)| ***banned).map(|(player, _)| player.as_str()).collect();
        let seen: Vec<_> = bans.iter().map(PlayerId::as_str).collect();
        assert_eq!(seen, banned, "revision {revision}");
    }
}

fn only_bans_that_are_new_are_read(kind: DatabaseKind) {
    let server = ScratchDatabase::shared(kind);
    let url = server.create_database();
    let store = open(&url);
    let board = create(&store, "b", &Definition::default()).unwrap();
    let player = |name: &str| PlayerId::new(name).unwrap();
    let set = |name: &str, banned| write(&store, &ban(board, name, banned)).unwrap();
    let state = |known: Option<&Revisions>| store.board(BoardRef::No(board), known).unwrap().unwrap();
    set("a", true);
    set("b", true);
    let known = state(None).revisions;
    let since = |changes: &[(&str, bool)]| Bans::Since {
        revisions: known.clone(),
        changes: changes.iter().map(|(name, banned)| (player(name), *banned)).collect(),
    };
    assert_eq!(state(Some(&known)).bans, since(&[]));
    set("c", true);
    set("a", false);
    assert_eq!(state(Some(&known)).bans, since(&[("a", false), ("c", true)]));
    set("a", true);
    set("c", false);
    assert_eq!(state(Some(&known)).bans, since(&[("a", true), ("c", false)]));
    assert_eq!(store.banned(board, &["c", "b", "a"].map(player)).unwrap(), ["a", "b"].map(player).into());
    // Lifted bans are kept an hour. A server whose revision is older than the oldest stored one reads all.
    let name = url.rsplit('/').next().unwrap();
    server.sql(&format!("UPDATE {name}.lifted_bans SET revision = revision - 3600000000"));
    assert_eq!(store.purge_deleted(100).unwrap(), 0);
    assert_eq!(server.sql(&format!("SELECT COUNT(*) FROM {name}.lifted_bans")).trim(), "0");
    server.sql(&format!(
        "UPDATE {name}.revisions SET bans_forgotten = {} WHERE board = {}",
        known.of(0) + 1,
        board.0
    ));
    assert_eq!(state(Some(&known)).bans, Bans::All(vec![player("a"), player("b")]));
    let now = state(None).revisions;
    assert_eq!(state(Some(&now)).bans, Bans::Since { revisions: now, changes: vec![] });
}

fn a_transaction_knows_which_revision_it_stands_on(kind: DatabaseKind) {
    let url = ScratchDatabase::shared(kind).create_database();
    let (store, other) = (open(&url), open(&url));
    let board = create(&store, "b", &Definition::default()).unwrap();
    let known = store.board(BoardRef::No(board), None).unwrap().unwrap().revisions.of(0);
    let plan = ReadSet { boards: vec![board], ..counter() };
    let mut seen = Vec::new();
    // A server that bans a player waits until this one has ended.
    std::thread::scope(|scope| {
        let mut hiding = None;
        store
            .run(&plan, &mut |loaded| {
                seen.push(loaded.boards[0]);
                hiding =
                    Some(scope.spawn(|| run(&other, &ReadSet::default(), &mut |_| ban(board, "p", true))));
                std::thread::sleep(Duration::from_millis(50));
                assert_eq!(store.bans(board).unwrap(), []);
                one_more(0)
            })
            .unwrap();
        hiding.unwrap().join().unwrap().unwrap();
    });
    assert_eq!(seen, [Some(known)]);
    let now = load(&store, &plan).boards[0];
    assert!(now > Some(known), "{now:?} after {known}");
}

fn outbox_entries_stay_until_they_are_published(kind: DatabaseKind) {
    let server = ScratchDatabase::shared(kind);
    let url = server.create_database();
    let (store, other) = (open(&url), open(&url));
    let plan = ReadSet { outbox: true, ..counter() };
    let mark = || store.run(&plan, &mut |loaded| one_more(loaded.scores[0].map_or(0, |old| old.score)));
    let first = mark().unwrap();
    let second = mark().unwrap();
    let found = other.outbox(Duration::ZERO, None).unwrap();
    assert_eq!(found.len(), 2, "another server sees both");
    assert!(found.iter().all(|one| one.what == OutboxContent::Records(counter().scores)));
    assert_eq!(other.outbox(Duration::from_secs(3600), None).unwrap(), []);
    // Published: it goes with the next transaction of its server, or with its next read.
    store.published(first.outbox.unwrap());
    add(&store, |_| ()).unwrap();
    let left: Vec<_> = other.outbox(Duration::ZERO, None).unwrap().into_iter().map(|one| one.batch).collect();
    assert_eq!(left, [second.outbox.unwrap()]);
    // Published by another: the row still has the outcome of the commit.
    other.clear_outbox(&left).unwrap();
    assert_eq!(other.outbox(Duration::ZERO, None).unwrap(), []);
    assert_eq!(other.resolve(&left[0]).unwrap().map(|done| done.version), Some(second.version));
    // More than one page has: each is returned once, in order, whether any was deleted or not.
    let mut batches: Vec<_> = (0..130).map(|_| mark().unwrap().outbox.unwrap()).collect();
    batches.sort();
    let (mut pages, mut seen): (Vec<usize>, Vec<_>) = (Vec::new(), Vec::new());
    loop {
        let page = other.outbox(Duration::ZERO, seen.last().copied()).unwrap();
        if page.is_empty() {
            break;
        }
        pages.push(page.len());
        seen.extend(page.iter().map(|one| one.batch));
    }
    assert_eq!((pages, &seen), (vec![64, 64, 2], &batches));
    other.clear_outbox(&batches).unwrap();
    // Nothing was written, so nothing is left.
    assert_eq!(store.run(&plan, &mut |_| WriteSet::default()).unwrap().outbox, None);
    let third = mark().unwrap();
    store.published(third.outbox.unwrap());
    // It is the last commit, by which a loss would be noticed, until there is another one.
    add(&store, |_| ()).unwrap();
    assert_eq!(store.outbox(Duration::ZERO, None).unwrap(), []);
}

fn removed_records_are_walked_with_their_versions(kind: DatabaseKind) {
    let url = ScratchDatabase::shared(kind).create_database();
    let store = open(&url);
    let keys = [key(1, 0, "a"), key(1, 0, "b")];
    let both = scores(keys.iter().map(|key| (key.clone(), Some(record(1)))).collect());
    let first = store.run(&plan_of(keys.to_vec()), &mut |_| both.clone()).unwrap().version;
    let gone = scores(vec![(keys[0].clone(), None)]);
    let second = store.run(&plan_of(keys.to_vec()), &mut |_| gone.clone()).unwrap().version;
    let mut seen = Vec::new();
    let mut each = |player: PlayerId, record: Option<Record>, version| seen.push((player, record, version));
    assert_eq!(store.scan_states(None, (BoardNo(1), Window(0)), None, 9, &mut each), Ok(2));
    let names = keys.clone().map(|key| key.player);
    assert_eq!(seen, [(names[0].clone(), None, second), (names[1].clone(), Some(record(1)), first)]);
    let states = store.states(&[keys[1].clone(), key(1, 0, "c"), keys[0].clone()]).unwrap();
    assert_eq!(states, [Some((Some(record(1)), first)), None, Some((None, second))]);
}

fn one_has_a_turn_until_its_time_is_over(kind: DatabaseKind) {
    let url = ScratchDatabase::shared(kind).create_database();
    let (store, other) = (open(&url), open(&url));
    let long = Duration::from_secs(60);
    assert_eq!(store.lease_task(Task::Load, long), Ok(true));
    assert_eq!(store.lease_task(Task::Load, long), Ok(true), "it is kept");
    assert_eq!(other.lease_task(Task::Load, long), Ok(false));
    assert_eq!(other.lease_task(Task::Outbox, long), Ok(true), "each task by itself");
    assert_eq!(store.lease_task(Task::Load, Duration::ZERO), Ok(true), "given back");
    assert_eq!(other.lease_task(Task::Load, long), Ok(true));
    assert_eq!(store.lease_task(Task::Load, Duration::ZERO), Ok(false));
    for task in [Task::Clean, Task::Periods] {
        assert_eq!(store.lease_task(task, Duration::ZERO), Ok(true));
    }
}
