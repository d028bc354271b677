//! Series of contests in a store: reads without a transaction.
//!
//! A series is found by its name and by the time at which its next contest is created; the rest is bytes. A transaction that
//! creates a contest reads its series, so that two servers create it once. Not here: rules, and the tables.

use crate::contest_reads::{Due, DueAfter};
use crate::{Listing, StoreError};
use tally_rules::Micros;
use tally_rules::contest::{ContestId, SeriesRecord};

/// Reads of series without a transaction.
pub trait SeriesReads {
    /// A series.
    fn series(&self, id: &ContestId) -> Result<Option<SeriesRecord>, StoreError>;

    /// At most `limit` series in order of names, from the first one after `after`.
    fn list_series(
        &self,
        after: Option<&ContestId>,
        limit: usize,
    ) -> Result<Listing<(ContestId, SeriesRecord)>, StoreError>;

    /// At most `limit` series with a contest to create at `now` or before, in order of time, from the first one after
    /// `after`.
    fn due_series(&self, now: Micros, after: DueAfter<'_>, limit: usize) -> Result<Due, StoreError>;
}
