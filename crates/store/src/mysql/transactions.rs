//! Transactions: the entry to [`run`].

use super::lease::Lease;
use super::notes::{Decide, Noted};
use super::{MySqlStore, run};
use crate::plan::{BatchId, Committed, Loaded, ReadSet, WriteSet};
use crate::{StoreError, Transactions};

impl Transactions for MySqlStore {
    fn run(
        &self,
        plan: &ReadSet,
        decide: &mut dyn FnMut(&Loaded) -> WriteSet,
    ) -> Result<Committed, StoreError> {
        self.may_write()?;
        let done = self.tapped.run(decide, |decide| {
            let decide: Decide<'_> = &mut |loaded, _| Noted { changes: decide(loaded), ..Noted::default() };
            let row_cache = self.lease.as_ref().is_some_and(Lease::is_alone).then_some(&self.row_cache);
            run::run((&self.pool, self.lease.as_ref(), row_cache), plan, decide)
        });
        done.map(|committed| self.keep_marks(committed))
    }

    fn resolve(&self, batch: &BatchId) -> Result<Option<Committed>, StoreError> {
        // The revision of a resolved commit is unknown, so cached leaderboards are read again.
        let outbox = Some(*batch);
        let resolved = self.pool.resolve(batch)?;
        self.tapped.resolved(batch, resolved.is_some());
        let committed = resolved.map(|version| Committed { version, outbox, ..Committed::default() });
        Ok(committed.map(|committed| self.keep_marks(committed)))
    }
}
