//! Orders that are kept elsewhere and are not what is stored: published again, or loaded anew by one server for all.
//!
//! Until that is done, nobody is told a rank of them. Not here: orders in memory, which cannot be behind.

use super::order::{self, Step};
use super::walk::Readers;
use crate::boards::Board;
use crate::damaged;
use crate::failure::{Failure, Fault};
use crate::progress::Progress;
use crate::scores::unpublished;
use crate::servers::{self, marks};
use crate::tally::Tally;
use crate::trial::Trial;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tally_ranking::{LoadState, RankingBackend, RemoteLoad, RemoteRanking, VersionedRow, WindowRanking};
use tally_rules::instant::SECOND;
use tally_rules::{Micros, PlayerId, Record};
use tally_store::plan::ALL_TIME;
use tally_store::{BoardNo, Part, Store, Task};

/// How long those who went are remembered, as in the store.
const KEPT_MICROS: i64 = 3_600 * SECOND;
/// How long a server that says nothing stays the one that loads.
const TURN: Duration = Duration::from_secs(5);
/// Between two looks at a load of another server.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// The name under which the store remembers which generation of servers has loaded everything.
const LOADED: &str = "ranking_loaded";
/// Rows read in one go with their versions: they are held until it is known who is hidden.
const VERSIONS_ROWS: usize = 10_000;
/// How often a load says that it goes on.
const SAY_AGAIN: Duration = Duration::from_secs(1);

/// Whether orders are kept elsewhere.
pub(super) fn are_elsewhere(tally: &Tally) -> bool {
    matches!(tally.settings.ranking, RankingBackend::Redis(_))
}

/// Brings every order to what is stored; with `everywhere` also those are looked at that seem right, and what other servers
/// have left. The first that the ranking does not answer for ends it: the others are as far away. After the first that a database
/// does not answer for, none is loaded, and what is known here is published all the same.
pub(super) fn catch_up(tally: &Tally, everywhere: bool) -> Result<(), Failure> {
    let store = &*tally.store;
    let (mut turn, mut mended) = (Turn::new(store), Ok(()));
    for board in tally.boards.from_no(BoardNo(0), usize::MAX) {
        for (part, order) in orders(&board) {
            match mend(&mut turn, &board, (part, &order), everywhere, mended.is_ok()) {
                Err(failure @ Failure::Fault(Fault::ShardAway { .. })) => mended = Err(failure),
                done => done?,
            }
        }
    }
    let waits = |board: &Arc<Board>| unpublished::has_some(board);
    let is_published = || !tally.boards.from_no(BoardNo(0), usize::MAX).iter().any(waits);
    tally.lane.shared().unpublished.settle(store, is_published);
    if everywhere && store.take_turn(Task::Marks, TURN)? {
        let found = marks::republish(store, &tally.boards, marks::AGE)?;
        if found > 0 {
            tracing::info!(batches = found, "published what a server had committed and not published");
        }
    }
    mended
}

/// The loading of a server that starts.
pub(crate) struct Start<'a> {
    turn: Turn<'a>,
    /// Which generation of servers has to load everything: where nobody was there, nobody knows what is elsewhere, or of
    /// which store it is.
    generation: Option<Vec<u8>>,
}

impl<'a> Start<'a> {
    /// Begins; waits while another server loads everything.
    pub(crate) fn new(store: &'a dyn Store) -> Result<Self, Failure> {
        let mut turn = Turn::new(store);
        let generation = store.generation().to_string().into_bytes();
        loop {
            if store.meta(LOADED)?.as_ref() == Some(&generation) {
                return Ok(Self { turn, generation: None });
            }
            if turn.take()? {
                return Ok(Self { turn, generation: Some(generation) });
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// Loads a board's orders where they have to be, or waits until another server has.
    pub(crate) fn load(&mut self, board: &Arc<Board>, mut each: impl FnMut(u64)) -> Result<(), Failure> {
        let store = self.turn.store;
        for (part, order) in orders(board) {
            let Some(remote) = order.get().remote() else { continue };
            let mut must = self.generation.is_some();
            while must || remote.catch_up()? != LoadState::Ready {
                if !self.turn.take()? {
                    std::thread::sleep(LOOK_AGAIN);
                    continue;
                }
                let read = |step| {
                    self.turn.go_on();
                    if let Step::Read { rows, .. } = step {
                        each(rows);
                    }
                };
                if must {
                    order::fill(store, board, part, order.get(), Readers::Few, read)?;
                } else {
                    fill_lost(store, (board.no, part), remote, read)?;
                }
                must = false;
            }
        }
        Ok(())
    }

    /// Everything is loaded.
    pub(crate) fn end(self) -> Result<(), Failure> {
        let store = self.turn.store;
        Ok(self.generation.map_or(Ok(()), |generation| store.set_meta(LOADED, &generation))?)
    }
}

/// What `/readyz` says meanwhile.
const AWAY: &str = "the ranking does not answer, or is loading itself";

/// Does something to orders elsewhere while nobody is served yet. Where they cannot be asked now it is tried again, for as
/// long as that takes.
pub(crate) fn patiently<T>(
    progress: &Progress,
    mut attempt: impl FnMut() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut trial = Trial::new("load ranks");
    loop {
        let done = attempt();
        if let Err(failure @ Failure::Fault(Fault::RanksAway(_))) = &done {
            progress.wait(Some(AWAY));
            trial.note(Instant::now(), Some(failure));
            std::thread::sleep(trial.pause());
            continue;
        }
        progress.wait(None);
        if done.is_ok() {
            trial.note(Instant::now(), None);
        }
        return done;
    }
}

/// Forgets who went from orders that are kept elsewhere, when nothing older than that can still arrive there.
pub(super) fn purge(tally: &Tally) {
    let before = u64::try_from(tally.now().plus(-KEPT_MICROS).0).unwrap_or(0);
    for board in tally.boards.from_no(BoardNo(0), usize::MAX) {
        board.each_order(|_, order| {
            // It costs memory until the next time, and nothing else.
            let remote = order.remote().filter(|remote| !remote.is_behind());
            drop(remote.map(|remote| remote.purge(before)));
        });
    }
}

/// The order of a part, held while it is mended.
enum Order {
    AllTime(Arc<Board>),
    Live(Arc<super::LivePart>),
}

impl Order {
    fn get(&self) -> &WindowRanking {
        match self {
            Self::AllTime(board) => &board.order,
            Self::Live(live) => &live.order,
        }
    }
}

fn orders(board: &Arc<Board>) -> Vec<(Part, Order)> {
    let all_time = board.definition.all_time.then(|| (ALL_TIME, Order::AllTime(Arc::clone(board))));
    all_time.into_iter().chain(board.live().into_iter().map(|live| (live.part, Order::Live(live)))).collect()
}

fn mend(
    turn: &mut Turn<'_>,
    board: &Arc<Board>,
    (part, order): (Part, &Order),
    everywhere: bool,
    may_load: bool,
) -> Result<(), Failure> {
    let Some(remote) = order.get().remote() else { return Ok(()) };
    if !everywhere && !remote.is_behind() {
        return Ok(());
    }
    if remote.catch_up()? == LoadState::Ready || !may_load || !turn.take()? {
        return Ok(());
    }
    // It may be lost because it was deleted or closed, which may not be known here yet.
    let store = turn.store;
    let is_there = servers::renew(store, board)?;
    if !is_there || part != ALL_TIME && board.periods().live(part).is_none() {
        return Ok(());
    }
    tracing::info!(board = board.id.as_str(), part = part.0, "load an order that was lost");
    fill_lost(store, (board.no, part), remote, |_| turn.go_on())
}

/// Makes an order exact where partitions of it are lost: the others stay.
fn fill_lost(
    store: &dyn Store,
    part: (BoardNo, Part),
    remote: &RemoteRanking,
    each: impl FnMut(Step),
) -> Result<(), Failure> {
    fill(store, part, remote.load()?, each)
}

/// Loads rows into partitions that are to be loaded.
pub(super) fn fill(
    store: &dyn Store,
    (board, part): (BoardNo, Part),
    mut loading: RemoteLoad<'_>,
    mut each: impl FnMut(Step),
) -> Result<(), Failure> {
    if !loading.is_idle() {
        let read = |newest, rows| each(Step::Read { newest, rows });
        walk_with_versions(store, board, part, read, |row| Ok(loading.push(row)?))?;
    }
    loading.finish()?;
    damaged::log_all(store);
    Ok(())
}

/// Every row of a part for Redis. Who is hidden is asked after rows were read: see `servers/marks`.
fn walk_with_versions(
    store: &dyn Store,
    board: BoardNo,
    part: Part,
    mut each: impl FnMut(Micros, u64),
    mut push: impl FnMut(VersionedRow<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut after = None;
    loop {
        let mut rows = Vec::new();
        let mut one = |player, record, version| rows.push((player, record, version));
        let walked = store.walk_states(None, (board, part), after.as_ref(), VERSIONS_ROWS, &mut one)?;
        let players: Vec<PlayerId> = rows.iter().map(|(player, ..)| player.clone()).collect();
        let hidden = store.banned(board, &players)?;
        let mut newest = Micros(i64::MIN);
        for (player, record, version) in &rows {
            let hidden = hidden.contains(player);
            newest = newest.max(record.as_ref().map_or(newest, |record: &Record| record.at));
            push(VersionedRow { player, record: record.as_ref(), version: *version, hidden })?;
        }
        each(newest, walked as u64);
        if walked < VERSIONS_ROWS {
            return Ok(());
        }
        after = rows.pop().map(|(player, ..)| player);
    }
}

/// The turn to load, given back when it goes.
struct Turn<'a> {
    store: &'a dyn Store,
    said: Option<Instant>,
}

impl<'a> Turn<'a> {
    fn new(store: &'a dyn Store) -> Self {
        Self { store, said: None }
    }

    fn take(&mut self) -> Result<bool, Failure> {
        let ours = self.store.take_turn(Task::Load, TURN)?;
        self.said = ours.then(Instant::now);
        Ok(ours)
    }

    /// It goes on. Where that is not heard another one may load too, which costs time and nothing else.
    fn go_on(&mut self) {
        if self.said.is_none_or(|said| said.elapsed() > SAY_AGAIN) {
            drop(self.take());
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.said.is_some() {
            drop(self.store.take_turn(Task::Load, Duration::ZERO));
        }
    }
}
