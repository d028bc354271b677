//! The live feed of a leaderboard: which players have changed, and the record and rank of each a moment later.
//!
//! Publishing notes names, and only while the leaderboard is watched; otherwise it costs one read of a number. With rankings in
//! Redis several servers publish, so names are noted and read there. The ranking is read when a batch is sent, so each batch
//! has the newest record of every player, whatever the order of publishing. Nothing here is stored. Not here: when a batch is
//! sent (`events`), and its form on the wire.

use crate::boards::Board;
use crate::failure::{Failure, Fault};
use crate::periods::{ALL_TIME_NAME, LiveWindow};
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;
use tally_ranking::{RankedEntry, Watched, WindowRanking};
use tally_rules::{Micros, PlayerId};
use tally_store::Window;
use tally_store::plan::ALL_TIME;
use tokio::sync::{broadcast, watch};

/// Players of one batch at most: with few watchers, and with many.
const BATCH_PLAYERS: usize = 1_000;
const BATCH_PLAYERS_MIN: usize = 100;
/// Records for all watchers of a leaderboard in one round, a tenth of a second: a thousand watchers must not take the
/// processors from requests. After a larger batch some rounds are skipped.
const SENT_AT_ONCE: usize = 10_000;
/// Names that wait for a batch; further ones set the flag that some are left out.
const WAITING_MAX: usize = 10_000;
/// Batches that a stream may lag; a stream that lags more is too slow.
const BATCHES_BEHIND: usize = 64;

/// The changes of a leaderboard since the last batch.
#[derive(Debug)]
pub struct ScoreBatch {
    /// The public name of the window.
    pub period: String,
    /// Ranked players that have changed, best first.
    pub places: Vec<RankedEntry>,
    /// Players that are no longer ranked.
    pub unranked: Vec<PlayerId>,
    /// How many players are ranked.
    pub total: u64,
    /// Whether the batch leaves out players that have changed.
    pub left_out: bool,
    /// When the batch was made.
    pub made: Instant,
    /// The batch on the wire, made by the first stream that sends it, for each way to write integers.
    pub written: [OnceLock<Arc<[u8]>>; 2],
}

/// The watchers of a leaderboard.
#[derive(Debug, Default)]
pub(crate) struct Live {
    watchers: AtomicUsize,
    changed: Mutex<Noted>,
    batches: OnceLock<broadcast::Sender<Arc<ScoreBatch>>>,
    /// The last reads of rankings that other servers publish to.
    watched: Mutex<BTreeMap<Window, Watched>>,
    /// Wakes streams that wait for a period to be closed.
    closed: OnceLock<watch::Sender<()>>,
    /// The number of the last event that was found, and one more.
    known: AtomicU64,
    /// Rounds to skip.
    rests: AtomicUsize,
}

#[derive(Debug, Default)]
struct Noted {
    players: BTreeMap<Window, HashSet<PlayerId>>,
    waiting: usize,
    left_out: bool,
}

/// A watcher of a leaderboard, until it is dropped.
#[derive(Debug)]
pub struct Watch {
    board: Arc<Board>,
    batches: broadcast::Receiver<Arc<ScoreBatch>>,
}

/// The watcher does not read fast enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooSlow;

impl Watch {
    pub(super) fn new(board: &Arc<Board>) -> Self {
        let live = &board.live;
        live.watchers.fetch_add(1, Ordering::SeqCst);
        let batches = live.batches.get_or_init(|| broadcast::Sender::new(BATCHES_BEHIND)).subscribe();
        Self { board: Arc::clone(board), batches }
    }

    /// The leaderboard that is watched.
    pub fn board(&self) -> &Arc<Board> {
        &self.board
    }

    /// The next batch.
    pub async fn next(&mut self) -> Result<Arc<ScoreBatch>, TooSlow> {
        match self.batches.recv().await {
            Ok(batch) => Ok(batch),
            Err(broadcast::error::RecvError::Lagged(_)) => Err(TooSlow),
            Err(broadcast::error::RecvError::Closed) => unreachable!("the board has the other end"),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.board.live.watchers.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Live {
    /// Whether there is a watcher.
    pub(crate) fn is_watched(&self) -> bool {
        self.watchers() > 0
    }

    fn watchers(&self) -> usize {
        self.watchers.load(Ordering::Relaxed)
    }

    /// Whether this round is skipped. Only the background task runs rounds.
    fn rests(&self) -> bool {
        let left = self.rests.load(Ordering::Relaxed);
        self.rests.store(left.saturating_sub(1), Ordering::Relaxed);
        left > 0
    }

    /// Notes the players that have changed in a ranking.
    pub(crate) fn note<'a>(&self, window: Window, players: impl Iterator<Item = &'a PlayerId>) {
        let mut noted = self.changed();
        let noted = &mut *noted;
        let of_window = noted.players.entry(window).or_default();
        for player in players {
            if of_window.contains(player) {
                continue;
            }
            if noted.waiting == WAITING_MAX {
                noted.left_out = true;
                return;
            }
            noted.waiting += 1;
            of_window.insert(player.clone());
        }
    }

    /// A receiver that is woken when a period may have been closed.
    pub(super) fn listen(&self) -> watch::Receiver<()> {
        self.closed.get_or_init(|| watch::Sender::new(())).subscribe()
    }

    /// A period may have been closed.
    pub(crate) fn wake(&self) {
        if let Some(closed) = self.closed.get() {
            closed.send_replace(());
        }
    }

    /// The same if the last event differs from the observed one.
    pub(super) fn compare(&self, last: u64) {
        if self.known.swap(last + 1, Ordering::SeqCst) != last + 1 {
            self.wake();
        }
    }

    fn changed(&self) -> std::sync::MutexGuard<'_, Noted> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes names for one batch.
    fn take(&self) -> Option<(Window, Vec<PlayerId>, bool)> {
        let mut noted = self.changed();
        let noted = &mut *noted;
        noted.players.retain(|_, players| !players.is_empty());
        let mut first = noted.players.first_entry()?;
        let window = *first.key();
        let most = (SENT_AT_ONCE / self.watchers().max(1)).clamp(BATCH_PLAYERS_MIN, BATCH_PLAYERS);
        let players: Vec<PlayerId> = if first.get().len() <= most {
            first.remove().into_iter().collect()
        } else {
            let some: HashSet<PlayerId> = first.get().iter().take(most).cloned().collect();
            first.get_mut().retain(|player| !some.contains(player));
            some.into_iter().collect()
        };
        noted.waiting -= players.len();
        Some((window, players, std::mem::take(&mut noted.left_out)))
    }

    /// Forgets the players that have changed, because there is no watcher.
    fn forget(&self) {
        *self.changed() = Noted::default();
        self.watched().clear();
    }

    fn watched(&self) -> std::sync::MutexGuard<'_, BTreeMap<Window, Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Board {
    /// Whether watchers get a window: that of a request without a period.
    pub(crate) fn shows_live(&self, window: Window) -> bool {
        if self.definition.all_time {
            return window == ALL_TIME;
        }
        let periods = self.periods();
        periods.rules.first().is_some_and(|first| first.live(window).is_some())
    }

    /// The windows that watchers get, also those that begin with their first score: now and next.
    fn windows_live(&self, now: Micros) -> Vec<(Window, Option<Arc<LiveWindow>>)> {
        if self.definition.all_time {
            return vec![(ALL_TIME, None)];
        }
        let periods = self.periods();
        let Some(first) = periods.rules.first() else { return Vec::new() };
        let mut windows: Vec<_> =
            first.live.iter().map(|live| (live.window, Some(Arc::clone(live)))).collect();
        let current = first.span_at(now);
        let next = current.and_then(|span| first.span_at(span.end));
        for window in current.into_iter().chain(next).map(|span| first.target(span).window) {
            if first.live(window).is_none() {
                windows.push((window, None));
            }
        }
        windows
    }

    /// Notes the players that have changed in Redis since the last round, and continues to watch. Blocks.
    pub(super) fn poll_live(&self, now: Micros) -> Result<(), Failure> {
        if !self.is_shared() {
            return Ok(());
        }
        let windows = self.windows_live(now);
        let mut watched = self.live.watched();
        watched.retain(|window, _| windows.iter().any(|(known, _)| known == window));
        for (window, live) in &windows {
            let fresh;
            let ranking = match live {
                Some(live) => &live.ranking,
                None if *window == ALL_TIME => &self.ranking,
                None => {
                    fresh = self.new_ranking(*window);
                    &fresh
                }
            };
            let Some(remote) = ranking.remote() else { continue };
            let (players, left_out) =
                remote.changed(watched.entry(*window).or_default()).map_err(Fault::from)?;
            self.live.note(*window, players.iter());
            self.live.changed().left_out |= left_out;
        }
        Ok(())
    }

    /// Sends one batch of changes, if there are any; whether there still is a watcher.
    pub(super) fn send_live(&self, now: Micros) -> Result<bool, Failure> {
        let live = &self.live;
        if !live.is_watched() {
            live.forget();
            return Ok(false);
        }
        if live.rests() {
            return Ok(true);
        }
        self.poll_live(now)?;
        let Some((window, players, left_out)) = live.take() else { return Ok(true) };
        let sent = self.batch((window, now), &players, left_out);
        if sent.is_err() {
            live.note(window, players.iter());
        }
        if let (Some(batch), Some(batches)) = (sent?, live.batches.get()) {
            let sent = live.watchers() * players.len();
            live.rests.store(sent.saturating_sub(1) / SENT_AT_ONCE, Ordering::Relaxed);
            // A watcher that has left meanwhile needs no batch.
            drop(batches.send(Arc::new(batch)));
        }
        Ok(true)
    }

    fn batch(
        &self,
        (window, now): (Window, Micros),
        players: &[PlayerId],
        left_out: bool,
    ) -> Result<Option<ScoreBatch>, Failure> {
        let ask =
            |ranking: &WindowRanking| ranking.read(|ranking| ranking.among(players)).map_err(Fault::from);
        let (period, among) = if window == ALL_TIME {
            (ALL_TIME_NAME.to_owned(), ask(&self.ranking)?)
        } else {
            let found = {
                let periods = self.periods();
                let live = periods.live(window).cloned();
                live.and_then(|live| Some((periods.rule_no(live.rule)?.name(live.span.start), live)))
            };
            let Some((period, live)) = found else {
                // It is closed by now, and its ranks are in the archive. Or another server began it, and it will soon be in
                // memory here.
                if self.windows_live(now).iter().any(|(known, _)| *known == window) {
                    self.live.note(window, players.iter());
                }
                return Ok(None);
            };
            if live.span.end <= now {
                // It is over, and takes late scores. Watchers get the next one.
                self.live.changed().left_out |= left_out;
                return Ok(None);
            }
            (period, ask(&live.ranking)?)
        };
        let places = among.entries.into_iter().map(|(_, place)| place).collect();
        let (unranked, total) = (among.missing, among.total);
        Ok(Some(ScoreBatch {
            period,
            places,
            unranked,
            total,
            left_out,
            made: Instant::now(),
            written: Default::default(),
        }))
    }
}

#[cfg(test)]
mod tests;
