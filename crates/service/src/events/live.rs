//! The scores of one board as they are published, for those who watch it: who has changed, and what each is a moment later.
//!
//! Publishing notes names, and only while somebody watches: else it costs one look at a number. Where orders are in Redis
//! several servers publish, so the names are noted and asked for there. What a player's record and
//! rank are is asked of the order when a batch goes out, so each batch has the newest of every player, whatever lane
//! published it in which order. Nothing here is stored. Not here: when a batch goes out (`events`), and its form on the wire.

use crate::boards::Board;
use crate::failure::{Failure, Fault};
use crate::periods::{ALL_TIME_NAME, LivePart};
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;
use tally_ranking::{RankedEntry, Watched, WindowRanking};
use tally_rules::{Micros, PlayerId};
use tally_store::Part;
use tally_store::plan::ALL_TIME;
use tokio::sync::{broadcast, watch};

/// Players of one batch where few watch, and at least.
const BATCH_PLAYERS: usize = 1_000;
const BATCH_PLAYERS_MIN: usize = 100;
/// What all who watch a board are sent between two looks, a tenth of a second, in records: a thousand who watch must not take the
/// processors from those who score. Where one batch is more than that, some looks are left out after it.
const SENT_AT_ONCE: usize = 10_000;
/// Names that wait for a batch; beyond, a batch says that it leaves some out.
const WAITING_MAX: usize = 10_000;
/// Batches that a stream may be behind; one that is further behind is too slow.
const BATCHES_BEHIND: usize = 64;

/// What has changed on a board since the last batch.
#[derive(Debug)]
pub struct ScoreBatch {
    /// What users call the part that this is of.
    pub period: String,
    /// Where those who have a place are now, best first.
    pub places: Vec<RankedEntry>,
    /// Those who have none any more.
    pub gone: Vec<PlayerId>,
    /// How many players the part has.
    pub total: u64,
    /// Whether others have changed too who are not told.
    pub left_out: bool,
    /// When it was made.
    pub made: Instant,
    /// As it goes over the wire, made by the first stream that sends it, for each way to write integers.
    pub written: [OnceLock<Arc<[u8]>>; 2],
}

/// The part of a board that knows who watches it.
#[derive(Debug, Default)]
pub(crate) struct Live {
    watchers: AtomicUsize,
    changed: Mutex<Noted>,
    batches: OnceLock<broadcast::Sender<Arc<ScoreBatch>>>,
    /// The last looks at parts that others publish to.
    looks: Mutex<BTreeMap<Part, Watched>>,
    /// Wakes those who wait for a period to be closed.
    closed: OnceLock<watch::Sender<()>>,
    /// The number of the last event that was found, and one more.
    known: AtomicU64,
    /// Looks that are left out.
    rests: AtomicUsize,
}

#[derive(Debug, Default)]
struct Noted {
    players: BTreeMap<Part, HashSet<PlayerId>>,
    waiting: usize,
    left_out: bool,
}

/// One who watches a board, until it is dropped.
#[derive(Debug)]
pub struct Watch {
    board: Arc<Board>,
    batches: broadcast::Receiver<Arc<ScoreBatch>>,
}

/// Whoever watches does not read fast enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooSlow;

impl Watch {
    pub(super) fn new(board: &Arc<Board>) -> Self {
        let live = &board.live;
        live.watchers.fetch_add(1, Ordering::SeqCst);
        let batches = live.batches.get_or_init(|| broadcast::Sender::new(BATCHES_BEHIND)).subscribe();
        Self { board: Arc::clone(board), batches }
    }

    /// The board.
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
    /// Whether anybody watches.
    pub(crate) fn is_watched(&self) -> bool {
        self.watchers() > 0
    }

    fn watchers(&self) -> usize {
        self.watchers.load(Ordering::Relaxed)
    }

    /// Whether this look is left out. Only one thread looks.
    fn rests(&self) -> bool {
        let left = self.rests.load(Ordering::Relaxed);
        self.rests.store(left.saturating_sub(1), Ordering::Relaxed);
        left > 0
    }

    /// Notes who has changed in a part.
    pub(crate) fn note<'a>(&self, part: Part, players: impl Iterator<Item = &'a PlayerId>) {
        let mut noted = self.changed();
        let noted = &mut *noted;
        let of_part = noted.players.entry(part).or_default();
        for player in players {
            if of_part.contains(player) {
                continue;
            }
            if noted.waiting == WAITING_MAX {
                noted.left_out = true;
                return;
            }
            noted.waiting += 1;
            of_part.insert(player.clone());
        }
    }

    /// Hears when a period may have been closed.
    pub(super) fn listen(&self) -> watch::Receiver<()> {
        self.closed.get_or_init(|| watch::Sender::new(())).subscribe()
    }

    /// A period may have been closed.
    pub(crate) fn wake(&self) {
        if let Some(closed) = self.closed.get() {
            closed.send_replace(());
        }
    }

    /// The same where the last event is another one than was known.
    pub(super) fn compare(&self, last: u64) {
        if self.known.swap(last + 1, Ordering::SeqCst) != last + 1 {
            self.wake();
        }
    }

    fn changed(&self) -> std::sync::MutexGuard<'_, Noted> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes names for one batch.
    fn take(&self) -> Option<(Part, Vec<PlayerId>, bool)> {
        let mut noted = self.changed();
        let noted = &mut *noted;
        noted.players.retain(|_, players| !players.is_empty());
        let mut first = noted.players.first_entry()?;
        let part = *first.key();
        let most = (SENT_AT_ONCE / self.watchers().max(1)).clamp(BATCH_PLAYERS_MIN, BATCH_PLAYERS);
        let players: Vec<PlayerId> = if first.get().len() <= most {
            first.remove().into_iter().collect()
        } else {
            let some: HashSet<PlayerId> = first.get().iter().take(most).cloned().collect();
            first.get_mut().retain(|player| !some.contains(player));
            some.into_iter().collect()
        };
        noted.waiting -= players.len();
        Some((part, players, std::mem::take(&mut noted.left_out)))
    }

    /// Forgets who has changed: nobody watches.
    fn forget(&self) {
        *self.changed() = Noted::default();
        self.looks().clear();
    }

    fn looks(&self) -> std::sync::MutexGuard<'_, BTreeMap<Part, Watched>> {
        self.looks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Board {
    /// Whether those who watch hear of a part: the one that is meant where nobody names one.
    pub(crate) fn shows_live(&self, part: Part) -> bool {
        if self.definition.all_time {
            return part == ALL_TIME;
        }
        let periods = self.periods();
        periods.rules.first().is_some_and(|first| first.live(part).is_some())
    }

    /// Parts of which those who watch hear, those too that begin with their first score: now and next.
    fn parts_live(&self, now: Micros) -> Vec<(Part, Option<Arc<LivePart>>)> {
        if self.definition.all_time {
            return vec![(ALL_TIME, None)];
        }
        let periods = self.periods();
        let Some(first) = periods.rules.first() else { return Vec::new() };
        let mut parts: Vec<_> = first.live.iter().map(|live| (live.part, Some(Arc::clone(live)))).collect();
        let current = first.span_at(now);
        let next = current.and_then(|span| first.span_at(span.end));
        for part in current.into_iter().chain(next).map(|span| first.aimed(span).part) {
            if first.live(part).is_none() {
                parts.push((part, None));
            }
        }
        parts
    }

    /// Notes who has changed in Redis since the last look, and goes on to be told. Blocks.
    pub(super) fn look_live(&self, now: Micros) -> Result<(), Failure> {
        if !self.is_shared() {
            return Ok(());
        }
        let parts = self.parts_live(now);
        let mut looks = self.live.looks();
        looks.retain(|part, _| parts.iter().any(|(known, _)| known == part));
        for (part, live) in &parts {
            let fresh;
            let order = match live {
                Some(live) => &live.order,
                None if *part == ALL_TIME => &self.order,
                None => {
                    fresh = self.order_of_part(*part);
                    &fresh
                }
            };
            let Some(remote) = order.remote() else { continue };
            let (players, left_out) = remote.changed(looks.entry(*part).or_default()).map_err(Fault::from)?;
            self.live.note(*part, players.iter());
            self.live.changed().left_out |= left_out;
        }
        Ok(())
    }

    /// Sends one batch of what has changed, if there is anything; whether anybody still watches.
    pub(super) fn send_live(&self, now: Micros) -> Result<bool, Failure> {
        let live = &self.live;
        if !live.is_watched() {
            live.forget();
            return Ok(false);
        }
        if live.rests() {
            return Ok(true);
        }
        self.look_live(now)?;
        let Some((part, players, left_out)) = live.take() else { return Ok(true) };
        let sent = self.batch((part, now), &players, left_out);
        if sent.is_err() {
            live.note(part, players.iter());
        }
        if let (Some(batch), Some(batches)) = (sent?, live.batches.get()) {
            let sent = live.watchers() * players.len();
            live.rests.store(sent.saturating_sub(1) / SENT_AT_ONCE, Ordering::Relaxed);
            // Whoever has gone meanwhile needs none.
            drop(batches.send(Arc::new(batch)));
        }
        Ok(true)
    }

    fn batch(
        &self,
        (part, now): (Part, Micros),
        players: &[PlayerId],
        left_out: bool,
    ) -> Result<Option<ScoreBatch>, Failure> {
        let ask = |order: &WindowRanking| order.read(|order| order.among(players)).map_err(Fault::from);
        let (period, among) = if part == ALL_TIME {
            (ALL_TIME_NAME.to_owned(), ask(&self.order)?)
        } else {
            let found = {
                let periods = self.periods();
                let live = periods.live(part).cloned();
                live.and_then(|live| Some((periods.rule_no(live.rule)?.name(live.span.start), live)))
            };
            let Some((period, live)) = found else {
                // It is closed by now: what it came to is read there. Or it was begun by another server, and is known here soon.
                if self.parts_live(now).iter().any(|(known, _)| *known == part) {
                    self.live.note(part, players.iter());
                }
                return Ok(None);
            };
            (period, ask(&live.order)?)
        };
        let places = among.entries.into_iter().map(|(_, place)| place).collect();
        let (gone, total) = (among.missing, among.total);
        Ok(Some(ScoreBatch {
            period,
            places,
            gone,
            total,
            left_out,
            made: Instant::now(),
            written: Default::default(),
        }))
    }
}

#[cfg(test)]
mod tests;
