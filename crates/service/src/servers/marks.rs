//! Publishing what a server committed and did not publish: it died in between, was frozen, or Redis was away from it.
//!
//! Every batch leaves a mark with its transaction, which goes when it is published. One that stays is published by whoever
//! has the turn, from the rows as they are by then: a row's version keeps an older state of it from staying, whoever
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
use tally_store::{BoardNo, Mark, Marked, Name, Part, PartKey, Revisions, ScoreKey, Store, StoreError};

/// A mark so old is not that of a server that is about to publish.
pub(crate) const AGE: Duration = Duration::from_secs(3);
/// Rows of a part that are published at once.
const ROWS: usize = 5_000;

/// A player, what the store has of it, and the version of that.
type Found = (PlayerId, Option<Record>, u64);

/// Publishes what marks of that age name, and takes them off; how many there were. Those of boards that this server does not know
/// stay until it does, and keep no others.
pub(crate) fn republish(store: &dyn Store, boards: &Boards, age: Duration) -> Result<usize, Failure> {
    let (mut count, mut after) = (0, None);
    loop {
        let marks = store.marks(age, after)?;
        let Some(last) = marks.last() else { return Ok(count) };
        after = Some(last.batch);
        let mut keys: BTreeMap<PartKey, BTreeMap<PlayerId, u64>> = BTreeMap::new();
        // All of them are of one database.
        let (shard, mut parts) = (usize::from(last.batch.shard), HashSet::new());
        for Mark { version, what, .. } in &marks {
            match what {
                Marked::Parts(some) => parts.extend(some.iter().copied()),
                Marked::Records(some) => {
                    for ScoreKey { board, part, player } in some {
                        let of_part = keys.entry(PartKey { board: *board, part: *part }).or_default();
                        let newest = of_part.entry(player.clone()).or_default();
                        *newest = (*newest).max(*version);
                    }
                }
            }
        }
        let mut unknown = HashSet::new();
        for part in parts {
            keys.remove(&part);
            let publish =
                |board: &Board, remote: &RemoteRanking| whole(store, board, (part.part, shard), remote);
            if !with_order((store, boards), part, publish)? {
                unknown.insert(part);
            }
        }
        for (part, players) in keys {
            let publish =
                |board: &Board, remote: &RemoteRanking| some(store, board, part.part, (players, remote));
            if !with_order((store, boards), part, publish)? {
                unknown.insert(part);
            }
        }
        let names = |what: &Marked| match what {
            Marked::Parts(some) => some.iter().any(|part| unknown.contains(part)),
            Marked::Records(some) => {
                some.iter().any(|key| unknown.contains(&PartKey { board: key.board, part: key.part }))
            }
        };
        let done: Vec<_> = marks.iter().filter(|mark| !names(&mark.what)).map(|mark| mark.batch).collect();
        store.take_marks_off(&done)?;
        count += done.len();
    }
}

/// Publishes whatever is stored of a board over all time: after this its order has everything that was committed before,
/// also what a server that died or was frozen has not published.
pub(crate) fn publish_all(store: &dyn Store, board: &Board) -> Result<(), Failure> {
    let Some(remote) = board.order.remote() else { return Ok(()) };
    (0..store.shards()).try_for_each(|shard| whole(store, board, (ALL_TIME, shard), remote))
}

/// Publishes what is stored of one player.
pub(crate) fn publish_one(
    store: &dyn Store,
    board: &Board,
    part: Part,
    player: &PlayerId,
) -> Result<(), Failure> {
    let live = board.periods().live(part).cloned();
    let order = if part == ALL_TIME { Some(&board.order) } else { live.as_ref().map(|live| &live.order) };
    let remote = order.and_then(WindowRanking::remote);
    let players = BTreeMap::from([(player.clone(), 0)]);
    remote.map_or(Ok(()), |remote| some(store, board, part, (players, remote)))
}

/// Publishes what is stored of some players, whose changes had these versions at least.
fn some(
    store: &dyn Store,
    board: &Board,
    part: Part,
    (players, remote): (BTreeMap<PlayerId, u64>, &RemoteRanking),
) -> Result<(), Failure> {
    let key = |player: &PlayerId| ScoreKey { board: board.no, part, player: player.clone() };
    let keys: Vec<ScoreKey> = players.keys().map(key).collect();
    let states: Vec<_> = match store.states(&keys) {
        // Those that can be read, each alone.
        Err(StoreError::Damaged(_)) => keys
            .iter()
            .map(|key| match store.states(std::slice::from_ref(key)) {
                Err(StoreError::Damaged(row)) => {
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
    publish(store, board.no, remote, rows.collect())
}

/// Publishes whatever one database has of a part.
fn whole(
    store: &dyn Store,
    board: &Board,
    (part, shard): (Part, usize),
    remote: &RemoteRanking,
) -> Result<(), Failure> {
    let mut after = None;
    loop {
        let mut rows: Vec<Found> = Vec::new();
        let mut each = |player, record, version| rows.push((player, record, version));
        let walked = store.walk_states(Some(shard), (board.no, part), after.as_ref(), ROWS, &mut each)?;
        after = rows.last().map(|(player, ..)| player.clone());
        publish(store, board.no, remote, rows)?;
        if walked < ROWS {
            return Ok(());
        }
    }
}

/// Who is hidden is asked after the rows were read: hiding writes a player's rows anew, so a row from before it is older than
/// what hiding publishes, and of one from after it is known here.
fn publish(
    store: &dyn Store,
    board: BoardNo,
    remote: &RemoteRanking,
    rows: Vec<Found>,
) -> Result<(), Failure> {
    let players: Vec<PlayerId> = rows.iter().map(|(player, ..)| player.clone()).collect();
    let hidden = store.banned(board, &players)?;
    let row = |(player, record, version): &Found| {
        let hidden = hidden.contains(player);
        (player.clone(), *record, *version, hidden)
    };
    let rows: Vec<_> = rows.iter().map(row).collect();
    let rows = rows.iter().map(|(player, record, version, hidden)| VersionedRow {
        player,
        record: record.as_ref(),
        version: *version,
        hidden: *hidden,
    });
    Ok(remote.republish(rows)?)
}

/// Does it with the order of a part, where there is one still: a closed part and one that is gone have none. False where
/// this server does not know the board yet.
fn with_order(
    (store, boards): (&dyn Store, &Boards),
    part: PartKey,
    with: impl FnOnce(&Board, &RemoteRanking) -> Result<(), Failure>,
) -> Result<bool, Failure> {
    let Some(board) = boards.by_no(part.board) else {
        return Ok(store
            .board(Name::No(part.board), Some(&Revisions::new(vec![u64::MAX; store.shards()])))?
            .is_none());
    };
    if part.part == ALL_TIME {
        board.order.remote().map_or(Ok(()), |remote| with(&board, remote))?;
        return Ok(true);
    }
    if board.periods().live(part.part).is_none() {
        // It may have been opened a moment ago.
        renew(store, &board)?;
        if board.periods().live(part.part).is_none() && !board.revisions().unheard().is_empty() {
            // By a database that is away.
            return Ok(false);
        }
    }
    let live = board.periods().live(part.part).cloned();
    live.and_then(|live| live.order.remote().map(|remote| with(&board, remote))).unwrap_or(Ok(()))?;
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
    use tally_store::{BoardChange, BoardRow, Changes, Plan};
    use tally_testkit::{DatabaseKind, ScratchDatabase};

    fn board(store: &dyn Store, name: &str) -> BoardRow {
        let id = BoardId::new(name).unwrap();
        let plan = Plan { board_names: vec![id.clone()], ..Plan::default() };
        let mut made = None;
        let mut create = |loaded: &tally_store::Loaded| {
            let (no, definition) = (loaded.next_board, Definition::default());
            let row = BoardRow { no, id: id.clone(), definition, created_at: Micros(1) };
            made = Some(row.clone());
            Changes { boards: vec![BoardChange::Create(row)], ..Changes::default() }
        };
        store.run(&plan, &mut create).unwrap();
        made.unwrap()
    }

    /// A batch of one score that is not published.
    fn mark(store: &dyn Store, board: BoardNo, score: i64) {
        let key = ScoreKey { board, part: ALL_TIME, player: PlayerId::new("ann").unwrap() };
        let plan = Plan { scores: vec![key.clone()], marks: true, ..Plan::default() };
        let record = Record { score, subscore: 0, at: Micros(score) };
        let change = |_: &_| Changes { scores: vec![(key.clone(), Some(record))], ..Changes::default() };
        store.run(&plan, &mut { change }).unwrap();
    }

    /// However long the ranking is away, the table stays small, and nothing that is to be published is forgotten.
    #[test]
    fn what_is_not_published_is_folded() {
        const BATCHES: usize = 700;
        let server = ScratchDatabase::shared(DatabaseKind::MariaDb10);
        let url = server.create_database();
        let store = MySqlStore::open(&url, &Options::default()).unwrap();
        let board = board(&store, "b");
        let unpublished = Unpublished::default();
        for number in 0..BATCHES {
            let player = PlayerId::new(&format!("p{number:03}")).unwrap();
            let key = ScoreKey { board: board.no, part: ALL_TIME, player };
            let plan = Plan { scores: vec![key.clone()], marks: true, ..Plan::default() };
            let record = Record { score: 1, subscore: 0, at: Micros(1) };
            let change = |_: &_| Changes { scores: vec![(key.clone(), Some(record))], ..Changes::default() };
            let committed = store.run(&plan, &mut { change }).unwrap();
            unpublished.add(&store, committed.marked.unwrap());
        }
        let database = url.rsplit('/').next().unwrap();
        let rows: usize = server.sql(&format!("SELECT COUNT(*) FROM {database}.batches")).parse().unwrap();
        assert!(rows < BATCHES / 2, "{rows} rows of {BATCHES} batches");
        let (mut named, mut after) = (HashSet::new(), None);
        while let Some(last) = {
            let marks = store.marks(Duration::ZERO, after).unwrap();
            for mark in &marks {
                let Marked::Records(keys) = &mark.what else { panic!("they are few") };
                named.extend(keys.iter().map(|key| key.player.clone()));
            }
            marks.last().map(|mark| mark.batch)
        } {
            after = Some(last);
        }
        assert_eq!(named.len(), BATCHES);
        unpublished.settle(&store, || false);
        assert!(!store.marks(Duration::ZERO, None).unwrap().is_empty());
        unpublished.settle(&store, || true);
        // The last commit stays until there is another one.
        drop(self::board(&store, "other"));
        // Each of these takes some of them along.
        (0..BATCHES).for_each(|_| drop(store.marks(Duration::ZERO, None).unwrap()));
        assert_eq!(store.marks(Duration::ZERO, None), Ok(Vec::new()));
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
        assert_eq!(store.marks(Duration::ZERO, None), Ok(Vec::new()));
    }
}
