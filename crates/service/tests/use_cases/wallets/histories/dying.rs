//! A store in front of a real one that ends as a process or a connection does. It ends before a commit, after it, or with
//! its reply lost.
//!
//! It writes nothing more once it is dead, so a service on it can be dropped as a kill leaves it. Not here: a real kill, which
//! the tests of the binary have, and the file after one, which the store's have.

use crate::wrapped::{Difference, Wrapped};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tally_store::{BatchId, Committed, Ledger, Loaded, ReadSet, Store, StoreError, WriteSet};

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

/// The store, as a service has it.
pub(crate) type DyingStore = Arc<Wrapped<Dying>>;

/// Its difference from a store that lives.
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
    pub(crate) fn new(inner: Arc<dyn Store>) -> DyingStore {
        let (state, money) = (Mutex::default(), Mutex::default());
        Arc::new(Wrapped(Self { inner, state, money, reads: AtomicUsize::new(0) }))
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

impl Difference for Dying {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

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

    fn ledger(&self) -> &dyn Ledger {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.inner.ledger()
    }
}
