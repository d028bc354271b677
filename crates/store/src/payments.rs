//! What is paid for closed periods, in a store: what is read of it without a transaction.
//!
//! A payment is found by its period; its prizes are among those of contests, by a number that it was given once. Not here: rules,
//! and the tables.

use crate::{StoreError, WindowKey};
use tally_rules::period::Payment;

/// What can be read of payments without a transaction.
pub trait PaymentReads {
    /// What is paid for a period.
    fn payment(&self, key: WindowKey) -> Result<Option<Payment>, StoreError>;

    /// At most `limit` periods with a payment, from the first one after `after`: those whose prizes have not all had their turn, or
    /// all.
    fn payments(
        &self,
        open: bool,
        after: Option<WindowKey>,
        limit: usize,
    ) -> Result<Vec<WindowKey>, StoreError>;
}
