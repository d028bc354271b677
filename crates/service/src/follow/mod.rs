//! Servers with rankings in memory that follow the one that writes.
//!
//! One server of a store has the lease and leads. It keeps the changes of its committed transactions for a while (`ring`).
//! Followers read them over HTTP (`message`) and make the same changes to the same rankings (`apply`). A follower can always be
//! made anew: it reads the store, then every change since. So the store is the truth, and a gap costs only time.
//!
//! A [`Position`] names a state: the fencing token of the leader, and the number of its last change. Not here: the connection to
//! the leader and taking over its place (crate `tally`), and the lease (crate `store`).

mod apply;
mod handover;
mod message;
mod ring;

pub use apply::apply;
pub use handover::Handover;
pub use message::{Leading, Message, MessageFault};
pub use ring::ChangeRing;

use std::collections::{BTreeMap, VecDeque};
use std::fmt::{Display, Formatter};
use std::str::FromStr;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tally_rules::Micros;
use tally_store::{BatchId, BoardChange, BoardNo, Changes};
use tokio::sync::watch;

/// So much earlier than the leader deletes marks, a follower counts them as deleted.
const MARKS_MARGIN: Duration = Duration::from_secs(1);

/// How many changes one leader has committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The fencing token of the leader: a later one has a greater one.
    pub token: u64,
    /// The number of its last change; 0 before the first one.
    pub number: u64,
}

impl Display for Position {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.token, self.number)
    }
}

impl FromStr for Position {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (token, number) = text.split_once('.').ok_or(())?;
        let digits =
            |text: &str| text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
        Ok(Self { token: digits(token).ok_or(())?, number: digits(number).ok_or(())? })
    }
}

/// The part of a server among those of its store.
#[derive(Clone, Debug, Default)]
pub enum Role {
    /// No other server follows it.
    #[default]
    Alone,
    /// It writes, and others may follow it. Without rankings of a follower it loads them.
    Leads(Option<Handover>),
    /// It follows the leader.
    Follows(Arc<Following>),
}

impl Role {
    pub(crate) fn handover(&self) -> Option<&Handover> {
        match self {
            Self::Leads(handover) => handover.as_ref(),
            Self::Alone | Self::Follows(_) => None,
        }
    }

    pub(crate) fn leads(&self) -> bool {
        matches!(self, Self::Leads(_))
    }

    pub(crate) fn following(&self) -> Option<Arc<Following>> {
        match self {
            Self::Follows(following) => Some(Arc::clone(following)),
            Self::Alone | Self::Leads(_) => None,
        }
    }
}

/// What a follower knows of itself and of the leader.
#[derive(Debug)]
pub struct Following {
    leader: Arc<str>,
    token: u64,
    /// The number of the last change that was made here.
    number: watch::Sender<u64>,
    /// The same of the last one that was begun.
    begun: AtomicU64,
    base: Instant,
    /// The state here contains everything that the leader had committed then, in microseconds after `base`.
    known: AtomicU64,
    age_max: Duration,
    /// The newest instant of a record.
    newest: AtomicI64,
    takeover_facts: Mutex<TakeoverFacts>,
}

/// What a follower needs when it leads after a leader that did not stop by itself.
#[derive(Clone, Debug, Default)]
struct TakeoverFacts {
    /// The revision of each leaderboard here; 0 if it is unknown.
    revisions: BTreeMap<BoardNo, u64>,
    /// The last transactions that were made here and have marks, oldest first.
    applied: VecDeque<(Instant, BatchId)>,
    /// What the leader last said of itself.
    leading: Leading,
}

impl TakeoverFacts {
    /// For how long the leader has certainly kept the marks of a transaction.
    fn marks_kept(&self) -> Duration {
        Duration::from_micros(self.leading.marks).saturating_sub(MARKS_MARGIN)
    }
}

impl Following {
    /// Of a leader at that address, from a position on. It may answer once it has [`reached`](Self::reached) a state.
    pub fn new(leader: &str, from: Position, age_max: Duration) -> Self {
        Self {
            leader: leader.into(),
            token: from.token,
            number: watch::Sender::new(from.number),
            begun: AtomicU64::new(from.number),
            base: Instant::now(),
            known: AtomicU64::new(0),
            age_max,
            newest: AtomicI64::new(i64::MIN),
            takeover_facts: Mutex::default(),
        }
    }

    /// What the leader says of itself.
    pub fn hear(&self, leading: Leading) {
        self.takeover_facts().leading = leading;
    }

    /// Whether a leader whose lease ends then is followed so closely that what this server has missed of it can be told: the
    /// database has marks of everything since, and its last renewal.
    pub fn can_catch_up(&self, expires_at: u64) -> bool {
        let known = self.takeover_facts();
        let Leading { renewed, marks } = known.leading;
        // The clock of this machine stops while that sleeps. The database's shows for how long the leader has gone on.
        self.age() < known.marks_kept() && (renewed..=renewed.saturating_add(marks / 2)).contains(&expires_at)
    }

    fn takeover_facts(&self) -> MutexGuard<'_, TakeoverFacts> {
        self.takeover_facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The leaderboards were loaded: with these revisions at least, and with records up to that instant.
    pub(crate) fn loaded(&self, revisions: Vec<(BoardNo, u64)>, newest: Micros) {
        self.takeover_facts().revisions = revisions.into_iter().collect();
        self.note_instant(newest);
    }

    /// Notes a change that was made.
    fn note(&self, changes: &Changes) {
        let newest = changes.scores.iter().filter_map(|(_, record)| Some(record.as_ref()?.at)).max();
        newest.into_iter().for_each(|newest| self.note_instant(newest));
        let mut known = self.takeover_facts();
        known.applied.extend(changes.batch.map(|batch| (Instant::now(), batch)));
        let kept = Duration::from_micros(known.leading.marks);
        while known.applied.front().is_some_and(|(at, _)| at.elapsed() > kept) {
            known.applied.pop_front();
        }
        let revision = changes.revision.unwrap_or(0);
        let (bans, windows) = (changes.bans.iter(), changes.windows.iter());
        let touched = bans.map(|(key, _)| key.board).chain(windows.map(|(key, _)| key.board));
        known.revisions.extend(touched.map(|no| (no, revision)));
        for change in &changes.boards {
            match change {
                BoardChange::Delete(no) => drop(known.revisions.remove(no)),
                other => drop(known.revisions.insert(other.no(), revision)),
            }
        }
    }

    /// A record of that instant is in the rankings.
    fn note_instant(&self, at: Micros) {
        self.newest.fetch_max(at.0, Ordering::AcqRel);
    }

    /// The address of the leader.
    pub fn leader(&self) -> Arc<str> {
        Arc::clone(&self.leader)
    }

    /// The state of the rankings here.
    pub fn position(&self) -> Position {
        Position { token: self.token, number: *self.number.borrow() }
    }

    /// The change of that number is made here from now on.
    pub fn begin(&self, number: u64) {
        self.begun.store(number, Ordering::SeqCst);
    }

    /// It was made.
    pub fn advance(&self, number: u64) {
        self.number.send_replace(number);
    }

    /// This server leads from now on, with the same rankings: no read of a request that began before is of one state.
    pub(crate) fn end(&self) {
        self.begun.store(u64::MAX, Ordering::SeqCst);
    }

    /// Whether the rankings are as of this position, and no change has been begun since: what was read in between is exactly that.
    pub fn is_still(&self, position: Position) -> bool {
        self.begun.load(Ordering::SeqCst) == position.number
    }

    /// Waits so long for a state that contains a position; whether it is there. A leader begins with everything that those before
    /// it have acknowledged.
    pub async fn contains(&self, position: Position, wait: Duration) -> bool {
        if position.token != self.token {
            return position.token < self.token;
        }
        let mut number = self.number.subscribe();
        let there = number.wait_for(|number| *number >= position.number);
        tokio::time::timeout(wait, there).await.is_ok_and(|there| there.is_ok())
    }

    /// Everything was made here that the leader had committed when it was asked then.
    pub fn reached(&self, asked: Instant) {
        self.known.store(self.micros(asked), Ordering::Release);
    }

    /// How old the state may be: since then the leader may have committed more.
    pub fn age(&self) -> Duration {
        let now = self.micros(Instant::now());
        Duration::from_micros(now.saturating_sub(self.known.load(Ordering::Acquire)))
    }

    /// Whether the state is recent enough to answer from.
    pub fn may_answer(&self) -> bool {
        self.age() <= self.age_max
    }

    /// From 1, so that 0 is before every instant.
    fn micros(&self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.base).as_micros();
        u64::try_from(since).unwrap_or(u64::MAX).saturating_add(1)
    }
}
