//! Payments of closed periods: reads without a transaction.
//!
//! A payment is found by its period. Its prizes are stored among those of contests, by a number that is given once. Not
//! here: rules, and the tables.

use crate::{StoreError, WindowKey};
use tally_rules::period::PeriodPayment;

/// Reads of payments without a transaction.
pub trait PaymentReads {
    /// The payment of a period.
    fn payment(&self, key: WindowKey) -> Result<Option<PeriodPayment>, StoreError>;

    /// At most `limit` periods with a payment, from the first one after `after`: those whose payment is not finished, or
    /// all.
    fn payments(
        &self,
        open: bool,
        after: Option<WindowKey>,
        limit: usize,
    ) -> Result<Vec<WindowKey>, StoreError>;
}
