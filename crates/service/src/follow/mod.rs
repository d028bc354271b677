//! Servers with rankings in memory that follow the one that writes.
//!
//! One server of a store has the lease and leads. It keeps the changes of its committed transactions for a while ([`ring`]).
//! Followers read them over HTTP ([`message`]) and make the same changes to the same rankings ([`apply`]). A follower can always be
//! made anew: it reads the store, then every change since. So the store is the truth, and a gap costs only time.
//!
//! A [`Position`] names a state: the fencing token of the leader, and the number of its last change. Not here: the connection to
//! the leader and taking over its place (crate `tally`), and the lease (crate `store`).

mod apply;
mod message;
mod ring;

pub use apply::apply;
pub use message::{Message, MessageFault};
pub use ring::ChangeRing;

use crate::boards::Boards;
use crate::contests::play;
use crate::failure::Failure;
use crate::rebuild::Rebuilt;
use crate::tally::Tally;
use std::fmt::{Display, Formatter};
use std::str::FromStr;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};
use tally_rules::Micros;
use tally_store::{BoardNo, Store};
use tokio::sync::watch;

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

/// What a server that leads takes over from itself as a follower. It has every change of the leader before it, which has ended.
#[derive(Clone, Debug)]
pub struct Handover {
    /// The leaderboards with their rankings.
    boards: Arc<Boards>,
    /// The newest instant of their records.
    newest: Micros,
}

impl Handover {
    /// Of a service that followed, and does nothing more.
    pub fn of(tally: &Tally) -> Option<Self> {
        let following = tally.following.as_ref()?;
        Some(Self {
            boards: Arc::clone(&tally.boards),
            newest: Micros(following.newest.load(Ordering::Acquire)),
        })
    }

    /// What a start needs to know. The contests of leaderboards are read again, because a follower does not follow them.
    pub(crate) fn resume(&self, store: &dyn Store) -> Result<Rebuilt, Failure> {
        for board in self.boards.from_no(BoardNo(0), usize::MAX) {
            play::load(store, &board)?;
        }
        Ok(Rebuilt { boards: Arc::clone(&self.boards), newest: self.newest, claim: None })
    }
}

/// What a follower knows of itself and of the leader.
#[derive(Debug)]
pub struct Following {
    leader: RwLock<Arc<str>>,
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
}

impl Following {
    /// Of a leader at that address, from a position on. It may answer as soon as it is [`at`](Self::reached) a state.
    pub fn new(leader: &str, from: Position, age_max: Duration) -> Self {
        Self {
            leader: RwLock::new(leader.into()),
            token: from.token,
            number: watch::Sender::new(from.number),
            begun: AtomicU64::new(from.number),
            base: Instant::now(),
            known: AtomicU64::new(0),
            age_max,
            newest: AtomicI64::new(i64::MIN),
        }
    }

    /// A record of that instant is in the rankings.
    pub(crate) fn note_instant(&self, at: Micros) {
        self.newest.fetch_max(at.0, Ordering::AcqRel);
    }

    /// The address of the leader.
    pub fn leader(&self) -> Arc<str> {
        Arc::clone(&self.leader.read().unwrap_or_else(PoisonError::into_inner))
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
