//! The outbox: publishing what a server committed and did not publish, because it died, was frozen, or could not reach Redis.
//!
//! Every batch leaves an outbox entry with its transaction, which is deleted when it is published. The server with the task lease
//! publishes a remaining one, from the present rows. A row's version prevents an older state from staying, whichever server
//! publishes it, and when. Not here: what this very process could not send (`RemoteRanking` has it), which is the same change
//! with the same version.

use super::renew;
use crate::boards::{Board, Boards};
use crate::damaged;
use crate::failure::Failure;
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;
use tally_ranking::{RemoteRanking, VersionedRow, WindowRanking};
use tally_rules::{PlayerId, Record};
use tally_store::plan::ALL_TIME;
use tally_store::{
    BoardNo, BoardRef, OutboxContent, OutboxEntry, Revisions, ScoreKey, Store, StoreError, Window, WindowKey,
};

/// An entry so old is not that of a server that is about to publish.
pub(crate) const AGE: Duration = Duration::from_secs(3);
/// Rows of a window that are published at once.
const ROWS: usize = 5_000;

/// A player, what the store has of it, and the version of that.
type Found = (PlayerId, Option<Record>, u64);

/// Publishes the entries of that age, and clears them; returns their number. Those of boards that this server does not know yet
/// stay, and do not delay others.
pub(crate) fn republish(store: &dyn Store, boards: &Boards, age: Duration) -> Result<usize, Failure> {
    let (mut count, mut after) = (0, None);
    loop {
        let outbox = store.outbox(age, after)?;
        let Some(last) = outbox.last() else { return Ok(count) };
        after = Some(last.batch);
        let mut keys: BTreeMap<WindowKey, BTreeMap<PlayerId, u64>> = BTreeMap::new();
        // All of them are of one database.
        let (shard, mut windows) = (usize::from(last.batch.shard), HashSet::new());
        for OutboxEntry { version, what, .. } in &outbox {
            match what {
                OutboxContent::Windows(some) => windows.extend(some.iter().copied()),
                OutboxContent::Records(some) => {
                    for ScoreKey { board, window, player } in some {
                        let of_window = keys.entry(WindowKey { board: *board, window: *window }).or_default();
                        let newest = of_window.entry(player.clone()).or_default();
                        *newest = (*newest).max(*version);
                    }
                }
            }
        }
        let mut unknown = HashSet::new();
        for window in windows {
            keys.remove(&window);
            let publish = |board: &Board, remote: &RemoteRanking| {
                publish_window(store, board, (window.window, shard), remote)
            };
            if !with_ranking((store, boards), window, publish)? {
                unknown.insert(window);
            }
        }
        for (window, players) in keys {
            let publish = |board: &Board, remote: &RemoteRanking| {
                publish_players(store, board, window.window, (players, remote))
            };
            if !with_ranking((store, boards), window, publish)? {
                unknown.insert(window);
            }
        }
        let is_unknown = |what: &OutboxContent| match what {
            OutboxContent::Windows(some) => some.iter().any(|window| unknown.contains(window)),
            OutboxContent::Records(some) => {
                some.iter().any(|key| unknown.contains(&WindowKey { board: key.board, window: key.window }))
            }
        };
        let done: Vec<_> =
            outbox.iter().filter(|entry| !is_unknown(&entry.what)).map(|entry| entry.batch).collect();
        store.clear_outbox(&done)?;
        count += done.len();
    }
}

/// Publishes the stored state of a board over all time. After this its ranking has everything that was committed before, also by
/// a server that died or was frozen.
pub(crate) fn publish_all(store: &dyn Store, board: &Board) -> Result<(), Failure> {
    let Some(remote) = board.ranking.remote() else { return Ok(()) };
    (0..store.shards()).try_for_each(|shard| publish_window(store, board, (ALL_TIME, shard), remote))
}

/// Publishes the stored state of one player.
pub(crate) fn publish_one(
    store: &dyn Store,
    board: &Board,
    window: Window,
    player: &PlayerId,
) -> Result<(), Failure> {
    let live = board.periods().live(window).cloned();
    let ranking =
        if window == ALL_TIME { Some(&board.ranking) } else { live.as_ref().map(|live| &live.ranking) };
    let remote = ranking.and_then(WindowRanking::remote);
    let players = BTreeMap::from([(player.clone(), 0)]);
    remote.map_or(Ok(()), |remote| publish_players(store, board, window, (players, remote)))
}

/// Publishes the stored state of some players, whose changes had at least these versions.
fn publish_players(
    store: &dyn Store,
    board: &Board,
    window: Window,
    (players, remote): (BTreeMap<PlayerId, u64>, &RemoteRanking),
) -> Result<(), Failure> {
    let key = |player: &PlayerId| ScoreKey { board: board.no, window, player: player.clone() };
    let keys: Vec<ScoreKey> = players.keys().map(key).collect();
    let states: Vec<_> = match store.states(&keys) {
        // Those that can be read, each alone.
        Err(StoreError::CorruptRow(_)) => keys
            .iter()
            .map(|key| match store.states(std::slice::from_ref(key)) {
                Err(StoreError::CorruptRow(row)) => {
                    damaged::log(&row);
                    Ok(None)
                }
                state => state.map(|state| state.into_iter().next()),
            })
            .collect::<Result<_, _>>()?,
        states => states?.into_iter().map(Some).collect(),
    };
    let rows = players.into_iter().zip(states).filter_map(|((player, least), state)| {
        let (record, version) = state?.unwrap_or((None, least));
        Some((player, record, version))
    });
    publish_rows(store, board.no, remote, rows.collect())
}

/// Publishes all that one database has of a window.
fn publish_window(
    store: &dyn Store,
    board: &Board,
    (window, shard): (Window, usize),
    remote: &RemoteRanking,
) -> Result<(), Failure> {
    let mut after = None;
    loop {
        let mut rows: Vec<Found> = Vec::new();
        let mut each = |player, record, version| rows.push((player, record, version));
        let scanned = store.scan_states(Some(shard), (board.no, window), after.as_ref(), ROWS, &mut each)?;
        after = rows.last().map(|(player, ..)| player.clone());
        publish_rows(store, board.no, remote, rows)?;
        if scanned < ROWS {
            return Ok(());
        }
    }
}

/// Bans are read after the rows. A ban writes a player's rows again, so a row from before it is older than what the ban
/// publishes. For a row from after it, the ban is read here.
fn publish_rows(
    store: &dyn Store,
    board: BoardNo,
    remote: &RemoteRanking,
    rows: Vec<Found>,
) -> Result<(), Failure> {
    let players: Vec<PlayerId> = rows.iter().map(|(player, ..)| player.clone()).collect();
    let banned = store.banned(board, &players)?;
    let row = |(player, record, version): &Found| {
        let banned = banned.contains(player);
        (player.clone(), *record, *version, banned)
    };
    let rows: Vec<_> = rows.iter().map(row).collect();
    let rows = rows.iter().map(|(player, record, version, banned)| VersionedRow {
        player,
        record: record.as_ref(),
        version: *version,
        banned: *banned,
    });
    Ok(remote.republish(rows)?)
}

/// Calls `with` for the ranking of a window, if it still exists: a closed or deleted window has none. False if this server does
/// not know the board yet.
fn with_ranking(
    (store, boards): (&dyn Store, &Boards),
    window: WindowKey,
    with: impl FnOnce(&Board, &RemoteRanking) -> Result<(), Failure>,
) -> Result<bool, Failure> {
    let Some(board) = boards.by_no(window.board) else {
        return Ok(store
            .board(BoardRef::No(window.board), Some(&Revisions::new(vec![u64::MAX; store.shards()])))?
            .is_none());
    };
    if window.window == ALL_TIME {
        board.ranking.remote().map_or(Ok(()), |remote| with(&board, remote))?;
        return Ok(true);
    }
    if board.periods().live(window.window).is_none() {
        // It may have been opened a moment ago.
        renew(store, &board)?;
        if board.periods().live(window.window).is_none() && !board.revisions().unreached().is_empty() {
            // By a database that is unavailable.
            return Ok(false);
        }
    }
    let live = board.periods().live(window.window).cloned();
    live.and_then(|live| live.ranking.remote().map(|remote| with(&board, remote))).unwrap_or(Ok(()))?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scores::unpublished::Unpublished;
    use std::sync::Arc;
    use tally_ranking::RankingBackend;
    use tally_rules::{BoardId, Definition, Micros};
    use tally_store::mysql::{MySqlStore, Options};
    use tally_store::{BoardChange, BoardRow, ReadSet, WriteSet};
    use tally_store::{Coordination, Transactions};
    use tally_testkit::{DatabaseKind, ScratchDatabase};

    fn board(store: &dyn Store, name: &str) -> BoardRow {
        let id = BoardId::new(name).unwrap();
        let plan = ReadSet { board_names: vec![id.clone()], ..ReadSet::default() };
        let mut made = None;
        let mut create = |loaded: &tally_store::Loaded| {
            let (no, definition) = (loaded.next_board, Definition::default());
            let row = BoardRow { no, id: id.clone(), definition, created_at: Micros(1) };
            made = Some(row.clone());
            WriteSet { boards: vec![BoardChange::Create(row)], ..WriteSet::default() }
        };
        store.run(&plan, &mut create).unwrap();
        made.unwrap()
    }

    /// A batch of one score that is not published.
    fn mark(store: &dyn Store, board: BoardNo, score: i64) {
        let key = ScoreKey { board, window: ALL_TIME, player: PlayerId::new("ann").unwrap() };
        let plan = ReadSet { scores: vec![key.clone()], outbox: true, ..ReadSet::default() };
        let record = Record { score, subscore: 0, at: Micros(score) };
        let change = |_: &_| WriteSet { scores: vec![(key.clone(), Some(record))], ..WriteSet::default() };
        store.run(&plan, &mut { change }).unwrap();
    }

    /// The table stays small and no entry is lost, however long the ranking is unavailable.
    #[test]
    fn unpublished_entries_are_merged() {
        const BATCHES: usize = 700;
        let server = ScratchDatabase::shared(DatabaseKind::MariaDb10);
        let url = server.create_database();
        let store = MySqlStore::open(&url, &Options::default()).unwrap();
        let board = board(&store, "b");
        let unpublished = Unpublished::default();
        for number in 0..BATCHES {
            let player = PlayerId::new(&format!("p{number:03}")).unwrap();
            let key = ScoreKey { board: board.no, window: ALL_TIME, player };
            let plan = ReadSet { scores: vec![key.clone()], outbox: true, ..ReadSet::default() };
            let record = Record { score: 1, subscore: 0, at: Micros(1) };
            let change =
                |_: &_| WriteSet { scores: vec![(key.clone(), Some(record))], ..WriteSet::default() };
            let committed = store.run(&plan, &mut { change }).unwrap();
            unpublished.add(&store, committed.outbox.unwrap());
        }
        let database = url.rsplit('/').next().unwrap();
        let rows: usize = server.sql(&format!("SELECT COUNT(*) FROM {database}.batches")).parse().unwrap();
        assert!(rows < BATCHES / 2, "{rows} rows of {BATCHES} batches");
        let (mut named, mut after) = (HashSet::new(), None);
        while let Some(last) = {
            let outbox = store.outbox(Duration::ZERO, after).unwrap();
            for mark in &outbox {
                let OutboxContent::Records(keys) = &mark.what else { panic!("they are few") };
                named.extend(keys.iter().map(|key| key.player.clone()));
            }
            outbox.last().map(|mark| mark.batch)
        } {
            after = Some(last);
        }
        assert_eq!(named.len(), BATCHES);
        unpublished.settle(&store, || false);
        assert!(!store.outbox(Duration::ZERO, None).unwrap().is_empty());
        unpublished.settle(&store, || true);
        // The last commit stays until there is another one.
        drop(self::board(&store, "other"));
        // Each of these takes some of them along.
        (0..BATCHES).for_each(|_| drop(store.outbox(Duration::ZERO, None).unwrap()));
        assert_eq!(store.outbox(Duration::ZERO, None), Ok(Vec::new()));
    }

    #[test]
    fn marks_of_boards_that_are_not_known_keep_no_others() {
        let url = ScratchDatabase::shared(DatabaseKind::MariaDb10).create_database();
        let store = MySqlStore::open(&url, &Options::default()).unwrap();
        let [unknown, known] = ["unknown", "known"].map(|name| board(&store, name));
        (0..150).for_each(|score| mark(&store, unknown.no, score));
        mark(&store, known.no, 1);
        let boards = Boards::default();
        let put = |row: &BoardRow| {
            let board = Board::new(row.clone(), Vec::new(), &RankingBackend::Memory).unwrap();
            boards.set(&row.id, Some(Arc::new(board)));
        };
        put(&known);
        assert_eq!(republish(&store, &boards, Duration::ZERO).unwrap(), 1);
        assert_eq!(republish(&store, &boards, Duration::ZERO).unwrap(), 0);
        // Nothing of them is lost.
        put(&unknown);
        assert_eq!(republish(&store, &boards, Duration::ZERO).unwrap(), 150);
        assert_eq!(store.outbox(Duration::ZERO, None), Ok(Vec::new()));
    }
}
