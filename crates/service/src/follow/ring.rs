//! The changes of the leader's last transactions, in memory, for its followers.
//!
//! It has a bound in bytes; the oldest go first. A follower that needs one of those reads the store anew.

use super::Position;
use super::message::{Leading, Message};
use crate::failure::{Failure, Fault};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tally_store::{CommitTap, Store};
use tokio::sync::watch;

/// The bytes that are kept: at 20,000 submits a second those of three minutes.
const BYTES_MAX: usize = 128 << 20;
/// What a change takes in memory beside its bytes.
const CHANGE_BYTES: usize = 64;
/// The bytes of a message, but for its last change.
const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// The last changes, by number.
#[derive(Debug)]
pub struct ChangeRing {
    changes: Mutex<Kept>,
    newest: watch::Sender<u64>,
    bytes_max: usize,
}

#[derive(Debug, Default)]
struct Kept {
    token: u64,
    /// The number of the first one.
    first: u64,
    changes: VecDeque<Vec<u8>>,
    bytes: usize,
    /// No change comes any more.
    ended: bool,
    /// When the last follower asked, and the number up to which some follower has everything.
    asked: Option<Instant>,
    read: u64,
    /// When each transaction began that is on its way, by its ticket.
    begun: BTreeMap<u64, Instant>,
    tickets: u64,
}

impl Default for ChangeRing {
    fn default() -> Self {
        Self::with_bytes_max(BYTES_MAX)
    }
}

impl CommitTap for ChangeRing {
    fn begun(&self) -> u64 {
        let mut kept = self.kept();
        kept.tickets += 1;
        let ticket = kept.tickets;
        kept.begun.insert(ticket, Instant::now());
        ticket
    }

    fn ended(&self, ticket: u64) {
        self.kept().begun.remove(&ticket);
    }

    fn committed(&self, changes: Vec<u8>) {
        let mut kept = self.kept();
        kept.bytes += memory_of(&changes);
        kept.changes.push_back(changes);
        while kept.bytes > self.bytes_max && kept.changes.len() > 1 {
            let oldest = kept.changes.pop_front();
            kept.bytes -= oldest.as_ref().map_or(0, memory_of);
            kept.first += 1;
        }
        // Under the lock, so that it only grows.
        self.newest.send_replace(kept.newest());
    }
}

fn memory_of(changes: &Vec<u8>) -> usize {
    changes.capacity() + CHANGE_BYTES
}

impl ChangeRing {
    /// One that keeps at most so many bytes, or one change.
    pub fn with_bytes_max(bytes_max: usize) -> Self {
        let changes = Mutex::new(Kept { first: 1, ..Kept::default() });
        Self { changes, newest: watch::Sender::new(0), bytes_max }
    }

    /// The changes of this server, which must be the one writer of a database. Before any of them.
    pub(crate) fn tap(store: &dyn Store) -> Result<Arc<Self>, Failure> {
        let ring = Arc::new(Self::default());
        let token = store.tap(Arc::<Self>::clone(&ring));
        let token = token.ok_or_else(|| Fault::Broken("only the one writer of a database leads".into()))?;
        ring.kept().token = token;
        Ok(ring)
    }

    /// The last change.
    pub fn position(&self) -> Position {
        let kept = self.kept();
        Position { token: kept.token, number: kept.newest() }
    }

    /// No change comes any more: followers are told at once.
    pub fn end(&self) {
        self.kept().ended = true;
        self.newest.send_modify(|_| ());
    }

    /// Whether some follower has asked within that time.
    pub fn is_followed(&self, within: Duration) -> bool {
        self.kept().asked.is_some_and(|asked| asked.elapsed() < within)
    }

    /// Whether some follower has every change.
    pub fn is_read(&self) -> bool {
        let kept = self.kept();
        kept.read == kept.newest()
    }

    /// The changes after a position; without a position, no changes. If there are none, it waits so long for
    /// one.
    pub async fn read(&self, after: Option<Position>, wait: Duration, leading: Leading) -> Message {
        let mut changed = self.newest.subscribe();
        if self.note(after) {
            // Also when no change comes any more.
            drop(tokio::time::timeout(wait, changed.changed()).await);
        }
        let kept = self.kept();
        let (newest, ends) = (Position { token: kept.token, number: kept.newest() }, kept.ended);
        let pending = kept.pending();
        let Some(after) = after else {
            return Message { newest, ends, leading, pending, first: kept.newest() + 1, changes: Vec::new() };
        };
        let is_kept =
            after.token == kept.token && (kept.first..=kept.newest() + 1).contains(&(after.number + 1));
        let Some(skip) = is_kept.then(|| after.number + 1 - kept.first) else {
            return Message { newest, ends, leading, pending, first: 0, changes: Vec::new() };
        };
        let mut bytes = 0;
        let rest = kept.changes.iter().skip(usize::try_from(skip).unwrap_or(usize::MAX));
        let some = rest.take_while(|one| {
            let fits = bytes < MESSAGE_BYTES_MAX;
            bytes += one.len();
            fits
        });
        Message { newest, ends, leading, pending, first: after.number + 1, changes: some.cloned().collect() }
    }

    /// Notes what a follower has; whether there is nothing new for it.
    fn note(&self, after: Option<Position>) -> bool {
        let mut kept = self.kept();
        kept.asked = Some(Instant::now());
        let Some(after) = after.filter(|after| after.token == kept.token) else { return false };
        kept.read = kept.read.max(after.number.min(kept.newest()));
        after.number == kept.newest() && !kept.ended
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn newest(&self) -> u64 {
        self.first + self.changes.len() as u64 - 1
    }

    /// See [`Message::pending`].
    fn pending(&self) -> u64 {
        let age = |at: &Instant| u64::try_from(at.elapsed().as_micros()).unwrap_or(u64::MAX).max(1);
        self.begun.values().next().map_or(0, age)
    }
}
