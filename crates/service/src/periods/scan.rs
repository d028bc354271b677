//! A range scan of every record of a window, by one thread or by several side by side, each into a separate load.
//!
//! An idle thread steals half of the remaining range of another. It halves the space of names and reads one row after the
//! middle, so nothing is scanned to find the half. Half of a space need not be half of its rows; a thread that is done early
//! steals again. Not here: rankings in Redis, and the use of a load.

use super::name_range::{beyond, middle};
use crate::boards::Board;
use crate::failure::{Failure, Fault};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use tally_ranking::{Loading, MemoryRanking};
use tally_rules::{Micros, PlayerId, Record};
use tally_store::{BoardNo, Store, Window};

/// Rows read in one go: large enough to hide the statement, small enough to stay in a cache of the processor.
const SCAN_ROWS: usize = if cfg!(test) { 64 } else { 10_000 };
/// Halvings after which the rest is taken whole: names are seldom alike in more signs than this takes.
const HALVINGS_MAX: usize = 200;

/// How many threads read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readers {
    /// As many threads as there are processors: no request is served yet.
    All,
    /// One for each database: requests are served meanwhile.
    Few,
}

/// Loads every record of a window without those of banned players. `each` gets the newest instant and the number of some rows.
pub(super) fn load(
    (store, board, window): (&dyn Store, &Board, Window),
    ranking: &MemoryRanking,
    readers: Readers,
    each: impl FnMut(Micros, u64),
) -> Result<Loading, Failure> {
    let threads = match readers {
        Readers::All => std::thread::available_parallelism().map_or(1, usize::from),
        Readers::Few => 1,
    };
    load_by(threads, (store, board, window), ranking, each)
}

/// The same by at least so many threads, if the window is large.
fn load_by(
    threads: usize,
    (store, board, window): (&dyn Store, &Board, Window),
    ranking: &MemoryRanking,
    mut each: impl FnMut(Micros, u64),
) -> Result<Loading, Failure> {
    let (of, shards) = ((board.no, window), store.shards());
    let mut loading = ranking.loading();
    let mut ranges = Vec::new();
    if shards == 1 {
        // Most windows are small: they need no other thread.
        let page = read(store, 0, of, None)?;
        let (newest, rows) = take(board, &mut loading, &page);
        each(newest, rows);
        if page.len() < SCAN_ROWS {
            return Ok(loading);
        }
        let after = page.last().map(|(player, _)| player.clone());
        ranges.push(Range { shard: 0, after, until: None });
    } else {
        ranges.extend((0..shards).map(|shard| Range { shard, after: None, until: None }));
    }
    let threads = threads.max(shards);
    let scan = Scan { store, of, state: Mutex::new(State { waiting: ranges, scanned: vec![None; threads] }) };
    std::thread::scope(|scope| {
        let (send, reports) = mpsc::channel();
        let start = |number| {
            let (scan, send) = (&scan, send.clone());
            let name = std::thread::Builder::new().name(format!("load-{number}"));
            name.spawn_scoped(scope, move || {
                let mut own = ranking.loading();
                scan.work(number, |page| {
                    // The receiver gets every report, unless a thread before has panicked.
                    let _ = send.send(take(board, &mut own, page));
                })?;
                Ok::<_, Failure>(own)
            })
        };
        let started: Vec<_> = (0..threads).map(start).collect();
        drop(send);
        reports.iter().for_each(|(newest, rows)| each(newest, rows));
        for thread in started {
            let thread = thread.map_err(|error| Fault::Broken(format!("start a thread: {error}")))?;
            loading.absorb(thread.join().expect("loading does not panic")?);
        }
        Ok(loading)
    })
}

/// Records with their players.
type Page = Vec<(PlayerId, Record)>;

/// The next rows of a shard.
fn read(
    store: &dyn Store,
    shard: usize,
    of: (BoardNo, Window),
    after: Option<&PlayerId>,
) -> Result<Page, Failure> {
    let mut page = Vec::with_capacity(SCAN_ROWS);
    store.scan_shard(shard, of, after, SCAN_ROWS, &mut |player, record, _| page.push((player, record)))?;
    Ok(page)
}

/// Puts rows into a load; their newest instant, and how many they are.
fn take(board: &Board, loading: &mut Loading, page: &[(PlayerId, Record)]) -> (Micros, u64) {
    let shown = page.iter().filter(|(player, _)| !board.is_banned(player));
    shown.for_each(|(player, record)| loading.push(player, record));
    let newest = page.iter().map(|(_, record)| record.at).max();
    (newest.unwrap_or(Micros(i64::MIN)), page.len() as u64)
}

/// Rows that are still to be read: those after one player, up to and with another.
#[derive(Clone, Debug)]
struct Range {
    shard: usize,
    after: Option<PlayerId>,
    until: Option<PlayerId>,
}

struct State {
    /// Ranges that no thread reads yet.
    waiting: Vec<Range>,
    /// The range that each thread has before it.
    scanned: Vec<Option<Range>>,
}

struct Scan<'a> {
    store: &'a dyn Store,
    of: (BoardNo, Window),
    state: Mutex<State>,
}

impl Scan<'_> {
    /// Reads until there is nothing left to share; `page` takes the rows.
    fn work(&self, own: usize, mut page: impl FnMut(&[(PlayerId, Record)])) -> Result<(), Failure> {
        while let Some(mut range) = self.next(own)? {
            loop {
                let rows = read(self.store, range.shard, self.of, range.after.as_ref())?;
                // The rows after the middle may belong to another thread by now.
                let (mine, left) = self.passed(own, &rows);
                page(&rows[..mine]);
                let Some(left) = left else { break };
                range = left;
            }
        }
        Ok(())
    }

    /// Notes read rows: how many of them are this thread's, and its remaining range then.
    fn passed(&self, own: usize, rows: &[(PlayerId, Record)]) -> (usize, Option<Range>) {
        let mut state = self.state();
        let range = state.scanned[own].as_mut().expect("it is being scanned");
        let mine = range
            .until
            .as_ref()
            .map_or(rows.len(), |until| rows.partition_point(|(player, _)| player <= until));
        if mine < rows.len() || rows.len() < SCAN_ROWS {
            state.scanned[own] = None;
        } else {
            range.after = rows.last().map(|(player, _)| player.clone());
        }
        (mine, state.scanned[own].clone())
    }

    /// The next range of an idle thread: a waiting one, or the second half of another's.
    fn next(&self, own: usize) -> Result<Option<Range>, Failure> {
        let mut state = self.state();
        let mut range = state.waiting.pop();
        for at in 0..state.scanned.len() {
            if range.is_some() {
                break;
            }
            let Some(whole) = state.scanned[at].clone() else { continue };
            if let Some(cut) = self.cut(&whole)? {
                let rear = Range { after: Some(cut.clone()), ..whole };
                state.scanned[at].as_mut().expect("it is there").until = Some(cut);
                range = Some(rear);
            }
        }
        state.scanned[own].clone_from(&range);
        Ok(range)
    }

    /// A name with rows of the range up to it and after it; `None` if there are few.
    fn cut(&self, range: &Range) -> Result<Option<PlayerId>, Failure> {
        let first = |after: Option<&PlayerId>| -> Result<Option<PlayerId>, Failure> {
            let mut found = None;
            self.store
                .scan_shard(range.shard, self.of, after, 1, &mut |player, _, _| found = Some(player))?;
            Ok(found.filter(|player| range.until.as_ref().is_none_or(|until| player <= until)))
        };
        let Some(least) = first(range.after.as_ref())? else { return Ok(None) };
        let mut most = range.until.clone();
        // Names often share their first signs: if there is nothing after those, halving begins there.
        for near in beyond(&least) {
            if most.as_ref().is_none_or(|most| near < *most) {
                if first(Some(&near))?.is_some() {
                    break;
                }
                most = Some(near);
            }
        }
        for _ in 0..HALVINGS_MAX {
            let Some(half) = middle(&least, most.as_ref()) else { break };
            if first(Some(&half))?.is_some() {
                return Ok(Some(half));
            }
            most = Some(half);
        }
        Ok(None)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use tally_ranking::RankingBackend;
    use tally_rules::{BoardId, Definition};
    use tally_store::Transactions;
    use tally_store::plan::ALL_TIME;
    use tally_store::sqlite::{Options, SqliteStore};
    use tally_store::{BoardChange, BoardRow, ReadSet, ScoreKey, WriteSet};

    /// Names that share much, little and nothing, in clusters.
    fn names() -> BTreeSet<String> {
        let ordered = (0..3_000).map(|number| format!("player{number:010}"));
        let heaped = (0..1_000).map(|number| format!("studio-with-a-long-name-{number:x}"));
        let strange = ["\u{0}", "\u{7f}", "ä", "\u{d7ff}", "\u{e000}", "\u{10ffff}", "\u{10ffff}\u{10ffff}"];
        let tail = (0..500).map(|number| format!("\u{10ffff}{number}"));
        ordered.chain(heaped).chain(strange.map(String::from)).chain(tail).collect()
    }

    fn filled(folder: &tempfile::TempDir, names: &BTreeSet<String>) -> (SqliteStore, Board) {
        let store = SqliteStore::open(&folder.path().join("t.db"), &Options::default()).unwrap();
        let (no, id) = (BoardNo(1), BoardId::new("b").unwrap());
        let row = BoardRow { no, id, definition: Definition::default(), created_at: Micros(0) };
        let board = Board::new(row.clone(), Vec::new(), &RankingBackend::Memory).unwrap();
        let keys = names.iter().map(|name| PlayerId::new(name).unwrap());
        let scores = (0..).zip(keys).map(|(score, player)| {
            let key = ScoreKey { board: no, window: ALL_TIME, player };
            (key, Some(Record { score, subscore: 0, at: Micros(score) }))
        });
        let changes = WriteSet {
            boards: vec![BoardChange::Create(row)],
            scores: scores.collect(),
            ..WriteSet::default()
        };
        store.run(&ReadSet::default(), &mut |_| changes.clone()).unwrap();
        (store, board)
    }

    #[test]
    fn however_many_read_every_record_is_read_once() {
        let (folder, names) = (tempfile::tempdir().unwrap(), names());
        let (store, board) = filled(&folder, &names);
        for threads in [1, 2, 3, 8] {
            let ranking = MemoryRanking::new(&board.definition);
            let (mut rows, mut newest) = (0, Micros(0));
            let each = |at: Micros, read| {
                rows += read;
                newest = newest.max(at);
            };
            let loading = load_by(threads, (&store, &board, ALL_TIME), &ranking, each).unwrap();
            let all = names.len() as u64;
            assert_eq!((rows, newest, loading.count()), (all, Micros(all as i64 - 1), all));
            // Fails if a player was read twice.
            ranking.load(loading, |_| {}).unwrap();
            assert_eq!(ranking.total(), all);
        }
    }

    #[test]
    fn a_range_is_cut_wherever_it_has_two_rows() {
        let (folder, names) = (tempfile::tempdir().unwrap(), names());
        let (store, board) = filled(&folder, &names);
        let state = Mutex::new(State { waiting: Vec::new(), scanned: Vec::new() });
        let scan = Scan { store: &store, of: (board.no, ALL_TIME), state };
        let mut ranges = vec![Range { shard: 0, after: None, until: None }];
        let mut ends = BTreeSet::new();
        while let Some(range) = ranges.pop() {
            match scan.cut(&range).unwrap() {
                Some(cut) => {
                    ranges.push(Range { until: Some(cut.clone()), ..range.clone() });
                    ranges.push(Range { after: Some(cut), ..range });
                }
                None => {
                    let rows = read(&store, 0, scan.of, range.after.as_ref()).unwrap();
                    let inside = rows
                        .iter()
                        .filter(|(player, _)| range.until.as_ref().is_none_or(|until| player <= until));
                    let inside: Vec<_> = inside.collect();
                    assert!(inside.len() <= 1, "{range:?} has {}", inside.len());
                    ends.extend(inside.into_iter().map(|(player, _)| player.as_str().to_owned()));
                }
            }
        }
        assert_eq!(ends, names);
    }
}
