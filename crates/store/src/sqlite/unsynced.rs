//! Asynchronous commits: transactions in the journal that are not known to be on the disk, for at most a second.
//!
//! A thread syncs half a second after the first of them. It syncs the log by its own descriptor, so writers go on meanwhile.
//! The system reports an error once to each descriptor, so it reaches both. The backlog is bounded in bytes and in age: past
//! a limit the next transaction is synced itself, and with it everything before. After a failed sync the state of the disk
//! is unknown, so nothing is appended before the journal was repaired. Not here: the repair (`run`).

use super::options::Background;
use super::state::Shared;
use super::sync_failure::SyncFailure;
use crate::ThrottledLog;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};
use tally_disk::DiskFile;

/// The time from the first unsynced transaction to the sync. It leaves as much again for the sync itself.
const SYNC_AFTER: Duration = Duration::from_millis(500);

/// Past this age of the backlog, the next transaction is synced.
const AGE_MAX: Duration = Duration::from_millis(900);

/// Past this size of the backlog in bytes, too.
const BYTES_MAX: u64 = 8 << 20;

/// The name of the operation in the log.
const WHAT: &str = "write the journal";

#[derive(Debug, Default)]
pub(super) struct Unsynced {
    state: Mutex<State>,
    wake: Condvar,
    log: ThrottledLog<String>,
    sync_failure: Option<Arc<SyncFailure>>,
}

#[derive(Debug, Default)]
struct State {
    /// The unsynced transactions of the present log.
    waiting: Option<Waiting>,
    /// Everything up to this batch is on the disk.
    synced: u64,
    failed: Option<String>,
    stop: bool,
}

#[derive(Clone, Debug)]
struct Waiting {
    log: Arc<dyn DiskFile>,
    since: Instant,
    last: u64,
    transactions: u64,
    bytes: u64,
}

/// The size of the backlog.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Lag {
    pub(super) transactions: u64,
    pub(super) bytes: u64,
    pub(super) seconds: f64,
}

impl Unsynced {
    /// With the marker that a failure leaves.
    pub(super) fn new(sync_failure: Arc<SyncFailure>) -> Self {
        Self { sync_failure: Some(sync_failure), ..Self::default() }
    }

    /// The batch up to which everything is on the disk.
    pub(super) fn synced(&self) -> u64 {
        self.state().synced
    }

    /// Whether nothing is unsynced.
    pub(super) fn is_empty(&self) -> bool {
        self.state().waiting.is_none()
    }

    /// Whether one more transaction of that size must be synced at once.
    pub(super) fn is_full(&self, bytes: usize) -> bool {
        let state = self.state();
        let full =
            |waiting: &Waiting| waiting.bytes + bytes as u64 > BYTES_MAX || waiting.since.elapsed() > AGE_MAX;
        state.waiting.as_ref().is_some_and(full)
    }

    /// Records a transaction that was appended without a sync.
    pub(super) fn add(&self, log: impl FnOnce() -> Arc<dyn DiskFile>, batch: u64, bytes: usize) {
        let mut state = self.state();
        let waiting = state.waiting.get_or_insert_with(|| Waiting {
            log: log(),
            since: Instant::now(),
            last: 0,
            transactions: 0,
            bytes: 0,
        });
        waiting.last = batch;
        waiting.transactions += 1;
        waiting.bytes += bytes as u64;
        if waiting.transactions == 1 {
            self.wake.notify_one();
        }
    }

    /// Records that everything up to a batch is on the disk, because the caller synced it.
    pub(super) fn clear(&self, batch: u64) {
        let mut state = self.state();
        state.synced = batch;
        state.waiting = None;
        if state.failed.take().is_some() {
            self.log.works(WHAT);
        }
    }

    /// Why the last sync failed, if nothing was repaired since.
    pub(super) fn failed(&self) -> Option<String> {
        self.state().failed.clone()
    }

    /// Records a failed sync or append: the state of the disk is unknown.
    pub(super) fn fail(&self, why: String) {
        self.log.fails(WHAT, why.clone(), &why);
        self.sync_failure.iter().for_each(|sync_failure| sync_failure.mark());
        self.state().failed = Some(why);
    }

    pub(super) fn lag(&self) -> Lag {
        let state = self.state();
        let Some(waiting) = &state.waiting else { return Lag::default() };
        let seconds = waiting.since.elapsed().as_secs_f64();
        Lag { transactions: waiting.transactions, bytes: waiting.bytes, seconds }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Syncs the backlog at once, for stores without a thread.
    pub(super) fn sync_now(&self) {
        let waiting = {
            let state = self.state();
            state.waiting.clone().filter(|_| state.failed.is_none())
        };
        if let Some(waiting) = waiting {
            self.sync(&waiting);
        }
    }

    /// Syncs the backlog whenever it is old enough, until it is stopped.
    fn work(&self) {
        loop {
            let mut state = self.state();
            let waiting = loop {
                if state.stop {
                    return;
                }
                state = match &state.waiting {
                    Some(_) if state.failed.is_some() => self.wait(state, SYNC_AFTER),
                    Some(waiting) => {
                        let left = SYNC_AFTER.saturating_sub(waiting.since.elapsed());
                        if left.is_zero() {
                            break waiting.clone();
                        }
                        self.wait(state, left)
                    }
                    None => self.wake.wait(state).unwrap_or_else(PoisonError::into_inner),
                };
            };
            drop(state);
            self.sync(&waiting);
        }
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, time: Duration) -> MutexGuard<'a, State> {
        self.wake.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0
    }

    fn sync(&self, done: &Waiting) {
        let began = Instant::now();
        if let Err(error) = done.log.sync() {
            // Even if everything was synced meanwhile: the system reports a failure only once.
            return self.fail(format!("sync the journal: {error}"));
        }
        let mut state = self.state();
        if state.synced >= done.last {
            return;
        }
        state.synced = done.last;
        // Transactions that were added meanwhile came after this sync began.
        let left = state.waiting.take().filter(|waiting| waiting.last > done.last);
        state.waiting = left.map(|waiting| Waiting {
            since: began,
            transactions: waiting.transactions.saturating_sub(done.transactions),
            bytes: waiting.bytes.saturating_sub(done.bytes),
            ..waiting
        });
    }
}

/// The thread, if the store has threads. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Syncs {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Syncs {
    pub(super) fn start(shared: &Arc<Shared>) -> std::io::Result<Self> {
        let thread = match shared.options.background {
            Background::ByHand => None,
            Background::Threads => {
                let (named, of_thread) = (Builder::new().name("store-sync".into()), Arc::clone(shared));
                Some(named.spawn(move || of_thread.unsynced.work())?)
            }
        };
        Ok(Self { shared: Arc::clone(shared), thread })
    }
}

impl Drop for Syncs {
    fn drop(&mut self) {
        self.shared.unsynced.state().stop = true;
        self.shared.unsynced.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            // The panic hook has reported its panic; the checkpoint syncs again.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Fails;

    impl DiskFile for Fails {
        fn write_at(&self, _at: u64, _bytes: &[u8]) -> std::io::Result<()> {
            Ok(())
        }

        fn set_len(&self, _bytes: u64) -> std::io::Result<()> {
            Ok(())
        }

        fn sync(&self) -> std::io::Result<()> {
            Err(std::io::Error::other("on purpose"))
        }

        fn length(&self) -> std::io::Result<u64> {
            Ok(0)
        }
    }

    /// The system reports a failed write-back once. A writer that synced meanwhile must not hide the report.
    #[test]
    fn an_error_of_a_sync_is_kept_where_everything_was_synced_meanwhile() {
        let unsynced = Unsynced::default();
        unsynced.add(|| Arc::new(Fails), 1, 10);
        let waiting = unsynced.state().waiting.clone().expect("one waits");
        unsynced.clear(1);
        unsynced.sync(&waiting);
        assert!(unsynced.failed().is_some_and(|why| why.contains("on purpose")));
    }
}
