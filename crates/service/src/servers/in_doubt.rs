//! In-doubt commits outside of lanes: their replies were lost, and the store could not resolve them at once.
//!
//! A lane keeps its batch until its commit is resolved. An API key that is made or revoked and a leaderboard that is made or
//! deleted have no lane. Such a commit is resolved as soon as the store responds, and then API keys and leaderboards are
//! read again. So are the leaderboards of a contest that has started while its caller got no reply. Not here: requests
//! meanwhile.

use crate::boards;
use crate::failure::Failure;
use crate::tally::Tally;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tally_store::{BatchId, Committed, Loaded, ReadSet, Store, StoreError, WriteSet};

/// The in-doubt commits of this server.
#[derive(Debug, Default)]
pub(crate) struct InDoubtCommits(Mutex<Vec<BatchId>>);

impl InDoubtCommits {
    /// Runs a transaction once. If its reply is lost, the store resolves it.
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

/// Resolves all of them, and reads API keys and leaderboards again. Blocks on the store.
pub(crate) fn resolve_all(tally: &Tally) -> Result<(), Failure> {
    // Also those of other callers, such as the close of a period that failed: a follower that starts needs their outcome.
    tally.store.tapped_in_doubt().iter().try_for_each(|batch| tally.store.resolve(batch).map(drop))?;
    let (in_doubt, unheard) = (&tally.keys.in_doubt, &tally.lane.shared().started_unheard);
    if in_doubt.all().is_empty() && !unheard.load(Ordering::SeqCst) {
        return Ok(());
    }
    let _one = tally.changing_boards.lock().unwrap_or_else(PoisonError::into_inner);
    let open = in_doubt.all().clone();
    // A commit that was not done is not done any more after this.
    open.iter().try_for_each(|batch| tally.store.resolve(batch).map(drop))?;
    tally.keys.reload()?;
    // Before the leaderboards are read: a start meanwhile has them read once more.
    let was_unheard = unheard.swap(false, Ordering::SeqCst);
    boards::read_again(tally).inspect_err(|_| {
        unheard.fetch_or(was_unheard, Ordering::SeqCst);
    })?;
    in_doubt.all().retain(|batch| !open.contains(batch));
    Ok(())
}
