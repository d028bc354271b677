//! Purging what is left of forgotten periods, for a request that needs their numbers.
//!
//! A request gets so much purged and no more; after that its sender is told to come again. Not here: the purge of everything
//! that is left, at leisure ([`maintenance`](crate::maintenance)).

use crate::failure::{Failure, Fault};
use tally_store::{Store, WindowKey};

/// Rows in one bite: no other write waits for more of them.
const BITE_ROWS: usize = 500;
/// Bites of one request.
const BITES_MAX: usize = 400;

/// How many bites a request has left.
pub(crate) struct Purge {
    bites: usize,
}

impl Default for Purge {
    fn default() -> Self {
        Self { bites: BITES_MAX }
    }
}

impl Purge {
    /// Purges these before the request is tried again. Blocks.
    pub(crate) fn of(mut self, store: &dyn Store, windows: Vec<WindowKey>) -> Result<Self, Failure> {
        // One for trying again: others may forget a period once more.
        let Some(left) = self.bites.checked_sub(1) else { return Err(Fault::Purging(windows).into()) };
        self.bites = left;
        for window in windows {
            while self.bites > 0 && !store.purge_window(window, BITE_ROWS)? {
                self.bites -= 1;
            }
        }
        Ok(self)
    }
}
