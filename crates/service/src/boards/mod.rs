//! Leaderboards: the live ones by name, with everything of them that is in memory.
//!
//! What several servers share of a leaderboard is in the store, under a revision. This server has a copy, and the revision of
//! the copy. Not here: putting and deleting leaderboards ([`put`]), and following changes of other servers (`servers`).

mod put;
mod registry;
mod unused;

use crate::contests::play::Play;
use crate::events::live::Live;
use crate::periods::outdated::OutdatedArchives;
use crate::periods::{LiveWindow, Periods};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tally_ranking::{RankingBackend, WindowRanking};
use tally_rules::{BoardId, Definition, Micros, PlayerId, Rejection};
use tally_store::plan::ALL_TIME;
use tally_store::{BoardNo, BoardRow, BoardState, Revisions, Window};

pub use put::{BoardPut, delete, put, sorted_set};
pub(crate) use put::{read_again, run_once};
pub use registry::Boards;
pub(crate) use unused::{ReservedRoom, make_room};

/// A live leaderboard.
#[derive(Debug)]
pub struct Board {
    /// Its number in the store.
    pub no: BoardNo,
    /// Its public name.
    pub id: BoardId,
    /// Its definition, as it was created.
    pub definition: Definition,
    /// When it was created.
    pub created_at: Micros,
    /// The ranking over all time, without banned players.
    pub ranking: WindowRanking,
    /// The backend of its rankings.
    backend: RankingBackend,
    /// Banned players. Changed by the lane only, with the ranking; a batch is decided without it, because the submits of a
    /// banned player count like any other.
    pub(crate) banned: RwLock<HashSet<PlayerId>>,
    /// Whether its first score made it; a request for it ends that.
    implicit: AtomicBool,
    /// Its periods; in `definition` are those of its creation.
    periods: RwLock<Periods>,
    /// Closed periods whose archive must be written again.
    pub(crate) stale: OutdatedArchives,
    /// The revision of this copy; `None` if no other server writes.
    revisions: RwLock<Revisions>,
    /// The contest that it belongs to.
    pub(crate) play: OnceLock<Play>,
    /// The watchers of its live feed.
    pub(crate) live: Live,
    /// Batches under way that change it here when they are published.
    changing: AtomicUsize,
    /// Databases that may have committed such a batch: for each of those, one.
    in_doubt: Mutex<Vec<usize>>,
}

/// A batch that will change a leaderboard: until it is dropped the copy is not renewed.
#[derive(Debug)]
pub(crate) struct Changing {
    board: Arc<Board>,
    in_doubt: Option<usize>,
}

impl Changing {
    /// The commit of the batch on this database is in doubt; changes of other servers elsewhere are taken over meanwhile.
    pub(crate) fn doubt(&mut self, shard: usize) {
        if self.in_doubt.is_none() {
            self.in_doubt = Some(shard);
            self.board.in_doubt().push(shard);
            self.board.changing.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Drop for Changing {
    fn drop(&mut self) {
        let Some(shard) = self.in_doubt else {
            self.board.changing.fetch_sub(1, Ordering::SeqCst);
            return;
        };
        let mut all = self.board.in_doubt();
        if let Some(at) = all.iter().position(|other| *other == shard) {
            all.swap_remove(at);
        }
    }
}

impl Board {
    /// A board without records; rejected if a schedule is invalid.
    pub fn new(row: BoardRow, banned: Vec<PlayerId>, backend: &RankingBackend) -> Result<Self, Rejection> {
        let ranking = backend.of_window(row.no.0, ALL_TIME.0, &row.definition);
        let backend = backend.clone();
        let banned = RwLock::new(banned.into_iter().collect());
        let periods = RwLock::new(Periods::new(&row.definition).map_err(Rejection::InvalidDefinition)?);
        let BoardRow { no, id, definition, created_at } = row;
        let implicit = AtomicBool::new(definition.implicit);
        Ok(Self {
            no,
            id,
            definition,
            created_at,
            ranking,
            backend,
            banned,
            implicit,
            periods,
            stale: OutdatedArchives::default(),
            revisions: RwLock::default(),
            play: OnceLock::new(),
            live: Live::default(),
            changing: AtomicUsize::new(0),
            in_doubt: Mutex::default(),
        })
    }

    /// The revision of this copy. Read before anything else of it.
    pub(crate) fn revisions(&self) -> Revisions {
        self.revisions.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_revisions(&self, revisions: Revisions) {
        *self.revisions.write().unwrap_or_else(PoisonError::into_inner) = revisions;
    }

    /// Keeps the copy unchanged for a batch that was planned on those revisions; `None` if the revisions have changed.
    pub(crate) fn change(self: &Arc<Self>, planned: &Revisions) -> Option<Changing> {
        self.changing.fetch_add(1, Ordering::SeqCst);
        let changing = Changing { board: Arc::clone(self), in_doubt: None };
        (self.revisions() == *planned).then_some(changing)
    }

    fn in_doubt(&self) -> MutexGuard<'_, Vec<usize>> {
        self.in_doubt.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A batch that has changed it is published: the copy is as of this revision of a database.
    pub(crate) fn advance(&self, shard: usize, revision: u64) {
        self.revisions.write().unwrap_or_else(PoisonError::into_inner).advance(shard, revision);
    }

    /// Takes over the stored state if it has another revision; false while a batch that changes it is running. It forgets a
    /// revision that the database has lost, so that the leaderboard is read whole. The state of an unavailable database stays as
    /// cached: a period that only that one may have stays open.
    pub(crate) fn renew(&self, state: &BoardState) -> Result<bool, Rejection> {
        let mut fresh = Periods::new(&state.row.definition).map_err(Rejection::InvalidDefinition)?;
        // In this order everywhere.
        let mut banned = self.banned.write().unwrap_or_else(PoisonError::into_inner);
        let mut periods = self.periods_mut();
        let (unreached, known) = (state.revisions.unreached(), self.revisions());
        // In this order: a batch in doubt is noted there before it leaves this count.
        if self.changing.load(Ordering::SeqCst) > 0
            || !self.in_doubt().iter().all(|shard| unreached.has(*shard))
        {
            return Ok(false);
        }
        if state.revisions.are_behind(&known) {
            // Else a batch has changed it since it was read.
            if state.bans.are_since(&known) {
                self.set_revisions(Revisions::default());
            }
            return Ok(false);
        }
        if known.are_less_than(&state.revisions) {
            if !state.bans.apply(&known, &mut banned) {
                return Ok(false);
            }
            let mut windows = state.windows.clone();
            if !unreached.is_empty() {
                let is_missing =
                    |live: &&Arc<LiveWindow>| windows.iter().all(|row| row.window != live.window);
                let kept = periods.live_windows().filter(is_missing).map(|live| live.row(false));
                windows.extend(kept.collect::<Vec<_>>());
            }
            let known = |window: Window| periods.live(window).cloned();
            fresh.place(&windows, known, |row| self.new_ranking(row.window));
            *periods = fresh;
            self.implicit.store(state.row.definition.implicit, Ordering::Release);
            self.set_revisions(state.revisions.clone());
        }
        Ok(true)
    }

    /// Whether other servers may change it too.
    pub(crate) fn is_shared(&self) -> bool {
        self.ranking.waits()
    }

    /// The revisions of this copy, unless there is none yet.
    pub(crate) fn known(&self) -> Option<Revisions> {
        Some(self.revisions()).filter(Revisions::are_known)
    }

    /// The revisions of this copy, if other servers may change it too.
    pub(crate) fn shared_revisions(&self) -> Option<Revisions> {
        self.is_shared().then(|| self.revisions())
    }

    /// Its periods in memory.
    pub(crate) fn live(&self) -> Vec<Arc<LiveWindow>> {
        self.periods().live_windows().cloned().collect()
    }

    /// Bytes of this process' memory that its rankings take.
    pub fn bytes(&self) -> u64 {
        self.ranking.bytes() + self.live().iter().map(|live| live.ranking.bytes()).sum::<u64>()
    }

    /// The number of its players: over all time, or else in the present period of its first rule. That is the window of a
    /// request without a period.
    pub fn members(&self, now: Micros) -> u64 {
        if self.definition.all_time {
            return self.ranking.total();
        }
        let periods = self.periods();
        let mut live = periods.rules.first().into_iter().flat_map(|state| &state.live);
        live.find(|live| live.span.contains(now)).map_or(0, |live| live.ranking.total())
    }

    /// Calls something for the ranking of each window in memory, that over all time first.
    pub(crate) fn each_ranking(&self, mut with: impl FnMut(Window, &WindowRanking)) {
        if self.definition.all_time {
            with(ALL_TIME, &self.ranking);
        }
        self.live().iter().for_each(|live| with(live.window, &live.ranking));
    }

    /// The ranking of a window that is new to this process.
    pub(crate) fn new_ranking(&self, window: Window) -> WindowRanking {
        self.backend.of_window(self.no.0, window.0, &self.definition)
    }

    /// Removes its rankings from Redis.
    pub(crate) fn forget_rankings(&self) {
        self.ranking.forget();
        self.live().iter().for_each(|live| live.ranking.forget());
    }

    /// Whether requests see it. A leaderboard that its first score made disappears with its last player, ranked or banned.
    pub fn is_there(&self) -> bool {
        !self.is_implicit() || self.ranking.total() > 0 || self.has_bans()
    }

    /// Whether its first score made it, and no request has put it since.
    pub fn is_implicit(&self) -> bool {
        self.implicit.load(Ordering::Acquire)
    }

    /// It stays from now on, with players or without.
    pub(crate) fn keep(&self) {
        self.implicit.store(false, Ordering::Release);
    }

    /// Its periods now.
    pub fn periods(&self) -> RwLockReadGuard<'_, Periods> {
        self.periods.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// For the lane and the scheduler.
    pub(crate) fn periods_mut(&self) -> RwLockWriteGuard<'_, Periods> {
        self.periods.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the archive of a closed period lacks a change that may be acknowledged.
    pub(crate) fn is_lagging(&self, window: Window) -> bool {
        self.stale.is_lagging() && self.periods().closed(window).is_some_and(|row| row.stale)
    }

    /// The definition with its present periods.
    pub fn present_definition(&self) -> Definition {
        let periods = self.periods();
        Definition {
            periods: periods.rules.iter().map(|state| state.rule.clone()).collect(),
            rules_given: periods.rules_given,
            implicit: self.is_implicit(),
            ..self.definition.clone()
        }
    }

    /// Whether any player is banned here.
    pub(crate) fn has_bans(&self) -> bool {
        !self.banned.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// At most `limit` banned players in order of bytes, from the first one after `after`.
    pub fn bans(&self, after: Option<&PlayerId>, limit: usize) -> Vec<PlayerId> {
        let banned = self.banned.read().unwrap_or_else(PoisonError::into_inner);
        let mut found: Vec<&PlayerId> =
            banned.iter().filter(|player| after.is_none_or(|after| *player > after)).collect();
        found.sort_unstable();
        found.into_iter().take(limit).cloned().collect()
    }

    /// Whether a player is banned here.
    pub fn is_banned(&self, player: &PlayerId) -> bool {
        self.banned.read().unwrap_or_else(PoisonError::into_inner).contains(player)
    }
}
