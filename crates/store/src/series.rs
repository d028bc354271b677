//! Series of contests in a store: what is read of them without a transaction.
//!
//! A series is found by its name and by when its next contest is made; the rest is bytes. Whoever makes a contest reads its series
//! in the same transaction, so that two servers make it once. Not here: rules, and the tables.

use crate::contest_reads::{Due, DueAfter};
use crate::{Listing, StoreError};
use tally_rules::Micros;
use tally_rules::contest::{ContestId, SeriesRecord};

/// What can be read of series without a transaction.
pub trait SeriesReads {
    /// A series.
    fn series(&self, id: &ContestId) -> Result<Option<SeriesRecord>, StoreError>;

    /// At most `limit` series in order of names, from the first one after `after`.
    fn list_series(
        &self,
        after: Option<&ContestId>,
        limit: usize,
    ) -> Result<Listing<(ContestId, SeriesRecord)>, StoreError>;

    /// At most `limit` series of which a contest is to be made at `now` or before, first things first, from the first one
    /// behind `after`.
    fn due_series(&self, now: Micros, after: DueAfter<'_>, limit: usize) -> Result<Due, StoreError>;
}
