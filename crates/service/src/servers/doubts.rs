//! Transactions outside of lanes whose answer was lost, and that could not be asked about at once.
//!
//! A lane keeps its batch until it is known what became of it. A key that is made or revoked and a leaderboard that is made
//! or deleted have no lane: such a commit is asked about as soon as the store answers, and then what is known here of keys and
//! leaderboards is read again. So are the leaderboards of a contest that has started while its caller could not be told. Not
//! here: what is answered meanwhile.

use crate::boards;
use crate::failure::Failure;
use crate::tally::Tally;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tally_store::{BatchId, Committed, Loaded, ReadSet, Store, StoreError, WriteSet};

/// Those of this server.
#[derive(Debug, Default)]
pub(crate) struct Doubts(Mutex<Vec<BatchId>>);

impl Doubts {
    /// Runs a transaction once. Where its answer is lost the store is asked what became of it.
    pub(crate) fn run(
        &self,
        store: &dyn Store,
        plan: &ReadSet,
        decide: &mut dyn FnMut(&Loaded) -> WriteSet,
    ) -> Result<Committed, StoreError> {
        match store.run(plan, decide) {
            Err(StoreError::InDoubt { batch, why }) => match store.resolve(&batch) {
                Ok(Some(committed)) => Ok(committed),
                Ok(None) => Err(StoreError::Unavailable(why)),
                Err(_) => {
                    self.all().push(batch);
                    Err(StoreError::InDoubt { batch, why })
                }
            },
            done => done,
        }
    }

    fn all(&self) -> MutexGuard<'_, Vec<BatchId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Finds out what became of them, and brings keys and leaderboards to what is stored. Blocks on the store.
pub(crate) fn find_out(tally: &Tally) -> Result<(), Failure> {
    let (doubts, unheard) = (&tally.keys.doubts, &tally.lane.shared().started_unheard);
    if doubts.all().is_empty() && !unheard.load(Ordering::SeqCst) {
        return Ok(());
    }
    let _one = tally.changing_boards.lock().unwrap_or_else(PoisonError::into_inner);
    let open = doubts.all().clone();
    // One that was not done is not done any more after this.
    open.iter().try_for_each(|batch| tally.store.resolve(batch).map(drop))?;
    tally.keys.reload()?;
    // Before the leaderboards are read: a start that is heard of meanwhile has them read once more.
    let was_unheard = unheard.swap(false, Ordering::SeqCst);
    boards::read_again(tally).inspect_err(|_| {
        unheard.fetch_or(was_unheard, Ordering::SeqCst);
    })?;
    doubts.all().retain(|batch| !open.contains(batch));
    Ok(())
}
