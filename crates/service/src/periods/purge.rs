//! Purging the rows of deleted periods, for a request that needs their numbers.
//!
//! A request purges a bounded number of rows; then its sender must retry. Not here: the purge of everything else in the
//! background ([`maintenance`](crate::maintenance)).

use crate::failure::{Failure, Fault};
use tally_store::{Store, WindowKey};

/// Rows in one step: no other write waits for more of them.
const STEP_ROWS: usize = 500;
/// Steps of one request.
const STEPS_MAX: usize = 400;

/// How many steps a request has left.
pub(crate) struct Purge {
    steps: usize,
}

impl Default for Purge {
    fn default() -> Self {
        Self { steps: STEPS_MAX }
    }
}

impl Purge {
    /// Purges these before the request is tried again. Blocks.
    pub(crate) fn of(mut self, store: &dyn Store, windows: Vec<WindowKey>) -> Result<Self, Failure> {
        // One step for a retry: another server may delete a period once more.
        let Some(left) = self.steps.checked_sub(1) else { return Err(Fault::Purging(windows).into()) };
        self.steps = left;
        for window in windows {
            while self.steps > 0 && !store.purge_window(window, STEP_ROWS)? {
                self.steps -= 1;
            }
        }
        Ok(self)
    }
}
