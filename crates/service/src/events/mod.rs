//! Events for streams: the scores of a leaderboard as they are published, and the stored events of contests, closed periods
//! and money.
//!
//! One background task serves all streams of a server, and only while there is one. Ten times a second it sends the newest
//! scores of each watched leaderboard ([`live`]). With several servers it queries the store four times a second, once for
//! all subjects, for new events. A stream is woken ([`hub`]) and reads on from its offset ([`log`]); it never polls by
//! itself. Not here: permissions, limits, and the form on the wire; the listeners have that.

pub mod hub;
pub mod live;
pub mod log;

use crate::background::{BackgroundTask, Job, Next};
use crate::boards::Board;
use crate::failure::{Failure, blocking};
use crate::tally::Tally;
use hub::{Hub, Listener, ObservedPosition, Subject};
use live::Watch;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tally_rules::instant::SECOND;
use tally_rules::ledger::{Currency, MemberId};
use tally_store::{StoreError, Topic};
use tokio::sync::Semaphore;

/// How long events are kept.
pub const KEEP_MICROS: i64 = 7 * 24 * 3600 * SECOND;
/// Between two batches of a leaderboard: at most ten a second.
const PAUSE: Duration = Duration::from_millis(100);
/// The pause between two queries for events of other servers.
const POLL_PAUSE: Duration = Duration::from_millis(250);
/// Streams that read in the store at once.
const READERS: usize = 4;

/// The streams of a server.
pub struct Events {
    watched: Mutex<Vec<Arc<Board>>>,
    pub(crate) hub: Arc<Hub>,
    task: BackgroundTask,
    readers: Semaphore,
}

impl Default for Events {
    fn default() -> Self {
        Self {
            watched: Mutex::default(),
            hub: Arc::default(),
            task: BackgroundTask::default(),
            readers: Semaphore::new(READERS),
        }
    }
}

impl Events {
    /// Starts the background task.
    pub(crate) fn start(&self, tally: &Arc<Tally>) -> Result<(), Failure> {
        let mut sending = Job::new("send scores to subscribers", PAUSE);
        let mut polling = Job::new("read events of other servers", POLL_PAUSE);
        self.task.start("events", tally, Next::WhenWoken, move |tally| {
            sending.run(|| tally.events.send(tally));
            if tally.has_others() {
                polling.run(|| Ok(tally.events.compare(tally)?));
            }
            if tally.events.is_idle(tally) { Next::WhenWoken } else { Next::After(PAUSE) }
        })
    }

    /// Ends it. Streams get nothing any more.
    pub(crate) fn stop(&self) {
        self.task.stop();
    }

    /// Begins to watch a leaderboard: the watcher gets what is published from now on.
    pub fn watch(&self, board: &Arc<Board>) -> Watch {
        let watch = Watch::new(board);
        let mut watched = self.watched();
        if !watched.iter().any(|known| Arc::ptr_eq(known, board)) {
            watched.push(Arc::clone(board));
        }
        let first = watched.len() == 1;
        drop(watched);
        if first {
            self.task.wake();
        }
        watch
    }

    /// Watches what other servers publish on a leaderboard from now on. Blocks.
    pub fn poll(&self, tally: &Tally, board: &Board) -> Result<(), Failure> {
        board.poll_live(tally.now())
    }

    /// Begins to listen to a subject.
    pub(crate) fn listen(&self, subject: Subject) -> Listener {
        let first = !self.hub.is_heard();
        let listener = Listener::new(&self.hub, subject);
        if first {
            self.task.wake();
        }
        listener
    }

    /// Reads in the store for a stream, a few of them at once.
    pub async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let _permit = self.readers.acquire().await;
        blocking(read).await
    }

    fn watched(&self) -> MutexGuard<'_, Vec<Arc<Board>>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends the changes of every watched leaderboard; those of an unavailable one wait.
    fn send(&self, tally: &Tally) -> Result<(), Failure> {
        let boards = self.watched().clone();
        let mut failed = None;
        for board in &boards {
            failed = board.send_live(tally.now()).err().or(failed);
        }
        // Under the lock: a new watcher counts before it checks whether the leaderboard is in the list.
        self.watched().retain(|board| board.live.is_watched());
        failed.map_or(Ok(()), Err)
    }

    /// Finds new events, whichever server wrote them.
    fn compare(&self, tally: &Tally) -> Result<(), StoreError> {
        let (boards, subjects) = (self.watched().clone(), self.hub.all());
        let ledger = tally.store.ledger();
        let mut topics: Vec<Topic> = boards.iter().map(|board| Topic::Board(board.no)).collect();
        let mut members: Vec<MemberId> = Vec::new();
        for subject in &subjects {
            match subject {
                Subject::Contest(no) => topics.push(Topic::Contest(*no)),
                Subject::Member(member) => members.push(*member),
            }
        }
        topics.sort_unstable();
        topics.dedup();
        members.sort_unstable();
        let last: BTreeMap<Topic, u64> = topics.iter().copied().zip(ledger.last_events(&topics)?).collect();
        for board in &boards {
            board.live.compare(last.get(&Topic::Board(board.no)).copied().unwrap_or(0));
        }
        let of_contest = |(topic, last): (&Topic, &u64)| match topic {
            Topic::Contest(no) => Some((Subject::Contest(*no), ObservedPosition::Event(*last))),
            _ => None,
        };
        self.hub.compare(last.iter().filter_map(of_contest));
        if members.is_empty() {
            return Ok(());
        }
        let mut entries: BTreeMap<MemberId, Vec<(Currency, u64)>> = BTreeMap::new();
        for (key, last) in ledger.last_entries(&members)? {
            entries.entry(key.member).or_default().push((key.currency, last));
        }
        let of_member = |(member, last)| (Subject::Member(member), ObservedPosition::Entries(last));
        self.hub.compare(entries.into_iter().map(of_member));
        Ok(())
    }

    /// Whether the task has nothing to do.
    fn is_idle(&self, tally: &Tally) -> bool {
        self.watched().is_empty() && !(tally.has_others() && self.hub.is_heard())
    }
}
