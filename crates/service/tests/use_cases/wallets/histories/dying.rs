//! A store in front of a real one that ends as a process or a connection does. It ends before a commit, after it, or with
//! its reply lost.
//!
//! It writes nothing more once it is dead, so a service on it can be dropped as a kill leaves it. Not here: a real kill, which
//! the tests of the binary have, and the file after one, which the store's have.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tally_rules::profile::Profile;
use tally_rules::{Micros, PlayerId, Record};
use tally_store::{
    BatchId, Block, BlockKey, BoardNo, BoardRow, Committed, Coordination, ImportKey, ImportRow, KeyRow,
    Ledger, Loaded, Maintenance, ReadSet, Reads, ScoreKey, Slow, Store, StoreError, Transactions, Window,
    WindowKey, WindowRow, WriteSet,
};

/// The way a transaction fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The process dies before it commits.
    Before,
    /// The process dies when it has committed.
    After,
    /// It has committed, and the reply is lost.
    LostDone,
    /// It has not committed, and the reply is lost.
    LostUndone,
    /// It has committed, the reply is lost, and so is that of the first query for its outcome.
    Unknown,
}

/// The store.
pub(crate) struct Dying {
    inner: Arc<dyn Store>,
    state: Mutex<State>,
    money: Mutex<()>,
    reads: AtomicUsize,
}

#[derive(Default)]
struct State {
    /// The next failure, and the number of transactions before it.
    armed: Option<(u32, End)>,
    dead: bool,
    /// The outcomes of those whose reply was lost.
    lost: BTreeMap<BatchId, Option<Committed>>,
    /// Whether the next query for an outcome has no reply.
    is_deaf: bool,
}

impl Dying {
    pub(crate) fn new(inner: Arc<dyn Store>) -> Arc<Self> {
        let (state, money) = (Mutex::default(), Mutex::default());
        Arc::new(Self { inner, state, money, reads: AtomicUsize::new(0) })
    }

    /// Transactions of the ledger wait until this is dropped.
    pub(crate) fn hold_money(&self) -> MutexGuard<'_, ()> {
        self.money.lock().unwrap()
    }

    /// The transaction after so many more ends like that.
    pub(crate) fn arm(&self, after: u32, end: End) {
        self.state.lock().unwrap().armed = Some((after, end));
    }

    /// Reads of the ledger so far.
    pub(crate) fn reads(&self) -> usize {
        self.reads.load(Ordering::SeqCst)
    }

    /// The process has died of another cause.
    pub(crate) fn die(&self) {
        self.state.lock().unwrap().dead = true;
    }

    /// Later transactions do not fail. Whether something has failed, and whether it is dead.
    pub(crate) fn disarm(&self) -> (bool, bool) {
        let mut state = self.state.lock().unwrap();
        (state.armed.take().is_none(), state.dead)
    }

    /// The failure of the next transaction.
    fn next(&self) -> Result<Option<End>, StoreError> {
        let mut state = self.state.lock().unwrap();
        if state.dead {
            return Err(away());
        }
        match state.armed {
            Some((0, end)) => {
                state.armed = None;
                state.dead = matches!(end, End::Before | End::After);
                Ok(Some(end))
            }
            Some((left, end)) => {
                state.armed = Some((left - 1, end));
                Ok(None)
            }
            None => Ok(None),
        }
    }
}

fn away() -> StoreError {
    StoreError::Unavailable("the process is dead".into())
}

impl Transactions for Dying {
    fn run(
        &self,
        plan: &ReadSet,
        decide: &mut dyn FnMut(&Loaded) -> WriteSet,
    ) -> Result<Committed, StoreError> {
        let _money =
            (!plan.ledger.is_empty()).then(|| self.money.lock().unwrap_or_else(PoisonError::into_inner));
        let end = match self.next()? {
            None => return self.inner.run(plan, decide),
            Some(End::Before) => return Err(away()),
            Some(end) => end,
        };
        let done = match end {
            End::LostUndone => {
                self.inner.run(plan, &mut |loaded| {
                    drop(decide(loaded));
                    WriteSet::default()
                })?;
                None
            }
            _ => Some(self.inner.run(plan, decide)?),
        };
        if end == End::After {
            return Err(away());
        }
        let mut state = self.state.lock().unwrap();
        state.is_deaf = end == End::Unknown;
        let batch =
            BatchId { link: *b"nobody has heard", sequence: state.lost.len() as u64, ..BatchId::default() };
        state.lost.insert(batch, done);
        Err(StoreError::InDoubt { batch, why: "the test cut it".into() })
    }

    fn resolve(&self, batch: &BatchId) -> Result<Option<Committed>, StoreError> {
        if std::mem::take(&mut self.state.lock().unwrap().is_deaf) {
            return Err(away());
        }
        let lost = self.state.lock().unwrap().lost.get(batch).cloned();
        lost.map_or_else(|| self.inner.resolve(batch), Ok)
    }
}

impl Reads for Dying {
    fn ledger(&self) -> &dyn Ledger {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.inner.ledger()
    }

    fn boards(&self) -> Result<Vec<BoardRow>, StoreError> {
        self.inner.boards()
    }

    fn keys(&self) -> Result<Vec<KeyRow>, StoreError> {
        self.inner.keys()
    }

    fn had_keys(&self) -> Result<bool, StoreError> {
        self.inner.had_keys()
    }

    fn scan_versions(
        &self,
        board: BoardNo,
        window: Window,
        after: Option<&PlayerId>,
        limit: usize,
        each: &mut dyn FnMut(PlayerId, Record, u64),
    ) -> Result<usize, StoreError> {
        self.inner.scan_versions(board, window, after, limit, each)
    }

    fn windows(&self, board: BoardNo) -> Result<Vec<WindowRow>, StoreError> {
        self.inner.windows(board)
    }

    fn block(&self, key: &BlockKey) -> Result<Option<Block>, StoreError> {
        self.inner.block(key)
    }

    fn records(&self, keys: &[ScoreKey]) -> Result<Vec<Option<Record>>, StoreError> {
        self.inner.records(keys)
    }

    fn count_scores(&self, board: BoardNo, window: Window) -> Result<u64, StoreError> {
        self.inner.count_scores(board, window)
    }

    fn import_progress(&self, key: &ImportKey) -> Result<Option<ImportRow>, StoreError> {
        self.inner.import_progress(key)
    }

    fn bans(&self, board: BoardNo) -> Result<Vec<PlayerId>, StoreError> {
        self.inner.bans(board)
    }

    fn profiles(&self, players: &[PlayerId]) -> Result<Vec<Result<Option<Profile>, StoreError>>, StoreError> {
        self.inner.profiles(players)
    }

    fn meta(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.meta(name)
    }
}

impl Coordination for Dying {}

impl Maintenance for Dying {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn expire_requests(&self, before: Micros, limit: usize) -> Result<usize, StoreError> {
        self.inner.expire_requests(before, limit)
    }

    fn purge_deleted(&self, limit: usize) -> Result<usize, StoreError> {
        self.inner.purge_deleted(limit)
    }

    fn unpurged(&self, windows: &[WindowKey], shard: usize) -> Result<Vec<WindowKey>, StoreError> {
        self.inner.unpurged(windows, shard)
    }

    fn purge_window(&self, window: WindowKey, limit: usize) -> Result<bool, StoreError> {
        self.inner.purge_window(window, limit)
    }

    fn set_meta(&self, name: &str, value: &[u8]) -> Result<(), StoreError> {
        self.inner.set_meta(name, value)
    }

    fn checkpoint(&self) -> Result<(), StoreError> {
        self.inner.checkpoint()
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        self.inner.gauges()
    }

    fn slow(&self) -> Vec<Slow> {
        self.inner.slow()
    }
}
