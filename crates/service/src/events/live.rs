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
use tally_ranking::{Place, Standings, Watched};
use tally_rules::PlayerId;
use tally_store::Part;
use tally_store::plan::ALL_TIME;
use tokio::sync::{broadcast, watch};

/// Players of one batch.
const BATCH_PLAYERS: usize = 1_000;
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
    pub places: Vec<Place>,
    /// Those who have none any more.
    pub gone: Vec<PlayerId>,
    /// How many players the part has.
    pub total: u64,
    /// Whether others have changed too who are not told.
    pub left_out: bool,
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
    closed: OnceLock<watch::Sender<u64>>,
    /// The number of the last event that was found, and one more.
    known: AtomicU64,
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
        self.watchers.load(Ordering::Relaxed) > 0
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
    pub(super) fn listen(&self) -> watch::Receiver<u64> {
        self.closed.get_or_init(|| watch::Sender::new(0)).subscribe()
    }

    /// A period may have been closed.
    pub(crate) fn wake(&self) {
        if let Some(closed) = self.closed.get() {
            closed.send_modify(|count| *count = count.wrapping_add(1));
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
        let players: Vec<PlayerId> = if first.get().len() <= BATCH_PLAYERS {
            first.remove().into_iter().collect()
        } else {
            let some: HashSet<PlayerId> = first.get().iter().take(BATCH_PLAYERS).cloned().collect();
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

    /// Notes who has changed in Redis since the last look, and goes on to be told. Blocks.
    pub(super) fn look_live(&self) -> Result<(), Failure> {
        if !self.is_shared() {
            return Ok(());
        }
        let parts: Vec<(Part, Option<Arc<LivePart>>)> = if self.definition.all_time {
            vec![(ALL_TIME, None)]
        } else {
            let periods = self.periods();
            let live = periods.rules.first().map_or(&[][..], |first| &first.live);
            live.iter().map(|live| (live.part, Some(Arc::clone(live)))).collect()
        };
        let mut looks = self.live.looks();
        looks.retain(|part, _| parts.iter().any(|(known, _)| known == part));
        for (part, live) in &parts {
            let order = live.as_ref().map_or(&self.order, |live| &live.order);
            let Some(remote) = order.remote() else { continue };
            let (players, left_out) = remote.changed(looks.entry(*part).or_default()).map_err(Fault::from)?;
            self.live.note(*part, players.iter());
            self.live.changed().left_out |= left_out;
        }
        Ok(())
    }

    /// Sends one batch of what has changed, if there is anything; whether anybody still watches.
    pub(super) fn send_live(&self) -> Result<bool, Failure> {
        let live = &self.live;
        if !live.is_watched() {
            live.forget();
            return Ok(false);
        }
        self.look_live()?;
        let Some((part, players, left_out)) = live.take() else { return Ok(true) };
        let sent = self.batch(part, &players, left_out);
        if sent.is_err() {
            live.note(part, players.iter());
        }
        if let (Some(batch), Some(batches)) = (sent?, live.batches.get()) {
            // Whoever has gone meanwhile needs none.
            drop(batches.send(Arc::new(batch)));
        }
        Ok(true)
    }

    fn batch(&self, part: Part, players: &[PlayerId], left_out: bool) -> Result<Option<ScoreBatch>, Failure> {
        let ask = |order: &Standings| order.read(|order| order.among(players)).map_err(Fault::from);
        let (period, among) = if part == ALL_TIME {
            (ALL_TIME_NAME.to_owned(), ask(&self.order)?)
        } else {
            let found = {
                let periods = self.periods();
                let live = periods.live(part).cloned();
                live.and_then(|live| Some((periods.rule_no(live.rule)?.name(live.span.start), live)))
            };
            // It is closed by now: what it came to is read there.
            let Some((period, live)) = found else { return Ok(None) };
            (period, ask(&live.order)?)
        };
        let places = among.entries.into_iter().map(|(_, place)| place).collect();
        let (gone, total) = (among.missing, among.total);
        Ok(Some(ScoreBatch { period, places, gone, total, left_out, written: Default::default() }))
    }
}
