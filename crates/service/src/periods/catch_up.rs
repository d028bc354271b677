//! Rankings in Redis that lag behind the store: they are published again, or one server loads them again for all.
//!
//! Until that is done, no rank is read from them. Not here: rankings in memory, which cannot lag.

use super::archive::{self, LoadStep};
use super::scan::Readers;
use crate::backoff::Backoff;
use crate::boards::Board;
use crate::damaged;
use crate::failure::{Failure, Fault};
use crate::progress::Progress;
use crate::scores::unpublished;
use crate::servers::{self, outbox};
use crate::tally::Tally;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tally_ranking::{LoadState, RankingBackend, RemoteLoad, RemoteRanking, VersionedRow, WindowRanking};
use tally_rules::instant::SECOND;
use tally_rules::{Micros, PlayerId, Record};
use tally_store::plan::ALL_TIME;
use tally_store::{BoardNo, Store, Task, Window};

/// How long tombstones are kept, as in the store.
const KEPT_MICROS: i64 = 3_600 * SECOND;
/// How long the server that loads keeps the task lease without a sign of it.
const LEASE: Duration = Duration::from_secs(5);
/// The interval of checks of a load by another server.
const RETRY_PAUSE: Duration = Duration::from_millis(50);
/// The name under which the store remembers which generation of servers has loaded everything.
pub(crate) const LOADED: &str = "ranking_loaded";
/// Rows of one read with their versions: they are held until their bans are known.
const VERSIONS_ROWS: usize = 10_000;
/// How often a load renews its lease.
const RENEW_INTERVAL: Duration = Duration::from_secs(1);

/// Whether rankings are kept in Redis.
pub(crate) fn are_in_redis(tally: &Tally) -> bool {
    matches!(tally.settings.ranking, RankingBackend::Redis(_))
}

/// Brings every ranking to the stored state. With `everywhere` it also checks those that seem exact, and the outbox entries of
/// other servers. It ends at the first ranking that Redis does not respond for, because the others are there too. After the first
/// unavailable database it loads none, but still publishes the changes of this server.
pub(super) fn catch_up(tally: &Tally, everywhere: bool) -> Result<(), Failure> {
    let store = &*tally.store;
    let (lease, mut result) = (LoadLease::new(store), Ok(()));
    for board in tally.boards.from_no(BoardNo(0), usize::MAX) {
        for (window, ranking) in rankings(&board) {
            match restore(&lease, &board, (window, &ranking), everywhere, result.is_ok()) {
                Err(failure @ Failure::Fault(Fault::ShardUnavailable { .. })) => result = Err(failure),
                done => done?,
            }
        }
    }
    let waits = |board: &Arc<Board>| unpublished::has_some(board);
    let is_published = || !tally.boards.from_no(BoardNo(0), usize::MAX).iter().any(waits);
    tally.lane.shared().unpublished.settle(store, is_published);
    if everywhere && store.lease_task(Task::Outbox, LEASE)? {
        let found = outbox::republish(store, &tally.boards, outbox::AGE)?;
        if found > 0 {
            tracing::info!(batches = found, "published what a server had committed and not published");
        }
    }
    result
}

/// The loading of a server that starts.
pub(crate) struct Start<'a> {
    lease: LoadLease<'a>,
    /// The generation of servers that must load everything: while no server ran, Redis may have got rankings of another state, or
    /// of another store.
    generation: Option<Vec<u8>>,
}

impl<'a> Start<'a> {
    /// Begins; waits while another server loads everything.
    pub(crate) fn new(store: &'a dyn Store) -> Result<Self, Failure> {
        let lease = LoadLease::new(store);
        let generation = store.generation().to_string().into_bytes();
        loop {
            if store.meta(LOADED)?.as_ref() == Some(&generation) {
                return Ok(Self { lease, generation: None });
            }
            if lease.take()? {
                return Ok(Self { lease, generation: Some(generation) });
            }
            std::thread::sleep(RETRY_PAUSE);
        }
    }

    /// Loads a board's rankings if necessary, or waits until another server has.
    pub(crate) fn load(&self, board: &Arc<Board>, mut each: impl FnMut(u64)) -> Result<(), Failure> {
        let store = self.lease.store;
        for (window, ranking) in rankings(board) {
            let Some(remote) = ranking.get().remote() else { continue };
            let mut must = self.generation.is_some();
            while must || remote.catch_up()? != LoadState::Ready {
                if !self.lease.take()? {
                    std::thread::sleep(RETRY_PAUSE);
                    continue;
                }
                let read = |step| {
                    self.lease.renew();
                    if let LoadStep::Read { rows, .. } = step {
                        each(rows);
                    }
                };
                if must {
                    archive::fill(store, board, window, ranking.get(), Readers::Few, read)?;
                } else {
                    fill_lost(store, (board.no, window), remote, read)?;
                }
                must = false;
            }
        }
        Ok(())
    }

    /// Everything is loaded.
    pub(crate) fn end(self) -> Result<(), Failure> {
        let store = self.lease.store;
        Ok(self.generation.map_or(Ok(()), |generation| store.set_meta(LOADED, &generation))?)
    }
}

/// The text in `/readyz` meanwhile.
pub(crate) const RANKING_UNAVAILABLE: &str = "the ranking does not answer, or is loading itself";

/// Works on rankings in Redis while the server is loading. It retries for as long as Redis is unavailable.
pub(crate) fn retry_while_unavailable<T>(
    progress: &Progress,
    mut attempt: impl FnMut() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut backoff = Backoff::new("load ranks");
    loop {
        let done = attempt();
        if let Err(failure @ Failure::Fault(Fault::RanksUnavailable(_))) = &done {
            progress.wait(Some(RANKING_UNAVAILABLE));
            std::thread::sleep(backoff.note(Some(failure)));
            continue;
        }
        progress.wait(None);
        if done.is_ok() {
            backoff.note(None);
        }
        return done;
    }
}

/// The number of rankings in Redis that lag behind the store: they are not read.
pub(crate) fn lagging(tally: &Tally) -> usize {
    let mut lagging = 0;
    for board in tally.boards.from_no(BoardNo(0), usize::MAX) {
        board.each_ranking(|_, ranking| {
            lagging += usize::from(ranking.remote().is_some_and(RemoteRanking::is_lagging));
        });
    }
    lagging
}

/// Removes tombstones from rankings in Redis, when no older version can still arrive there.
pub(super) fn purge(tally: &Tally) {
    let before = u64::try_from(tally.now().plus(-KEPT_MICROS).0).unwrap_or(0);
    for board in tally.boards.from_no(BoardNo(0), usize::MAX) {
        board.each_ranking(|_, ranking| {
            // It costs memory until the next time, and nothing else.
            let remote = ranking.remote().filter(|remote| !remote.is_lagging());
            drop(remote.map(|remote| remote.purge(before)));
        });
    }
}

/// The ranking of a window, held while it is repaired.
enum RankingRef {
    AllTime(Arc<Board>),
    Live(Arc<super::LiveWindow>),
}

impl RankingRef {
    fn get(&self) -> &WindowRanking {
        match self {
            Self::AllTime(board) => &board.ranking,
            Self::Live(live) => &live.ranking,
        }
    }
}

fn rankings(board: &Arc<Board>) -> Vec<(Window, RankingRef)> {
    let all_time = board.definition.all_time.then(|| (ALL_TIME, RankingRef::AllTime(Arc::clone(board))));
    all_time
        .into_iter()
        .chain(board.live().into_iter().map(|live| (live.window, RankingRef::Live(live))))
        .collect()
}

fn restore(
    lease: &LoadLease<'_>,
    board: &Arc<Board>,
    (window, ranking): (Window, &RankingRef),
    everywhere: bool,
    may_load: bool,
) -> Result<(), Failure> {
    let Some(remote) = ranking.get().remote() else { return Ok(()) };
    if !everywhere && !remote.is_lagging() {
        return Ok(());
    }
    if remote.catch_up()? == LoadState::Ready || !may_load || !lease.take()? {
        return Ok(());
    }
    // It may be lost because it was deleted or closed, which may not be known here yet.
    let store = lease.store;
    let is_there = servers::renew(store, board)?;
    if !is_there || window != ALL_TIME && board.periods().live(window).is_none() {
        return Ok(());
    }
    tracing::info!(board = board.id.as_str(), window = window.0, "load a ranking that was lost");
    fill_lost(store, (board.no, window), remote, |_| lease.renew())
}

/// Makes a ranking exact if partitions of it are lost: the others stay.
fn fill_lost(
    store: &dyn Store,
    window: (BoardNo, Window),
    remote: &RemoteRanking,
    each: impl FnMut(LoadStep),
) -> Result<(), Failure> {
    fill(store, window, remote.load()?, each)
}

/// Loads rows into partitions that are to be loaded.
pub(super) fn fill(
    store: &dyn Store,
    (board, window): (BoardNo, Window),
    mut loading: RemoteLoad<'_>,
    mut each: impl FnMut(LoadStep),
) -> Result<(), Failure> {
    if !loading.is_idle() {
        let read = |newest, rows| each(LoadStep::Read { newest, rows });
        scan_with_versions(store, board, window, read, |row| Ok(loading.push(row)?))?;
    }
    loading.finish()?;
    damaged::log_all(store);
    Ok(())
}

/// Every row of a window for Redis. Bans are read after the rows: see `servers/outbox`.
fn scan_with_versions(
    store: &dyn Store,
    board: BoardNo,
    window: Window,
    mut each: impl FnMut(Micros, u64),
    mut push: impl FnMut(VersionedRow<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut after = None;
    loop {
        let mut rows = Vec::new();
        let mut one = |player, record, version| rows.push((player, record, version));
        let scanned = store.scan_states(None, (board, window), after.as_ref(), VERSIONS_ROWS, &mut one)?;
        let players: Vec<PlayerId> = rows.iter().map(|(player, ..)| player.clone()).collect();
        let banned = store.banned(board, &players)?;
        let mut newest = Micros(i64::MIN);
        for (player, record, version) in &rows {
            let banned = banned.contains(player);
            newest = newest.max(record.as_ref().map_or(newest, |record: &Record| record.at));
            push(VersionedRow { player, record: record.as_ref(), version: *version, banned })?;
        }
        each(newest, scanned as u64);
        if scanned < VERSIONS_ROWS {
            return Ok(());
        }
        after = rows.pop().map(|(player, ..)| player);
    }
}

/// The task lease to load, given back when this is dropped. Threads that load beside each other share it.
struct LoadLease<'a> {
    store: &'a dyn Store,
    renewed_at: Mutex<Option<Instant>>,
}

impl<'a> LoadLease<'a> {
    fn new(store: &'a dyn Store) -> Self {
        Self { store, renewed_at: Mutex::default() }
    }

    /// Takes it, or renews it if that was not done a moment ago: it is a commit.
    fn take(&self) -> Result<bool, Failure> {
        let mut renewed_at = self.renewed_at.lock().unwrap_or_else(PoisonError::into_inner);
        if renewed_at.is_some_and(|at| at.elapsed() < RENEW_INTERVAL) {
            return Ok(true);
        }
        let ours = self.store.lease_task(Task::Load, LEASE)?;
        *renewed_at = ours.then(Instant::now);
        Ok(ours)
    }

    /// Renews it during a load. If that fails, another server may load too, which only costs time.
    fn renew(&self) {
        drop(self.take());
    }
}

impl Drop for LoadLease<'_> {
    fn drop(&mut self) {
        if self.renewed_at.get_mut().unwrap_or_else(PoisonError::into_inner).is_some() {
            drop(self.store.lease_task(Task::Load, Duration::ZERO));
        }
    }
}
